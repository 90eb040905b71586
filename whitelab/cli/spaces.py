"""What several commands make of their options: the setting, the pairs, the encoder, the embeddings."""

import shlex
from functools import partial

from whitelab.base.wording import cut_note, quantity
from whitelab.cli.writing import left_out, note, progress

# Options that `--setting` says all at once, None where nothing is said. Not every command has each.
_SETTING = ("layers", "k", "pooling", "fit", "aggregate", "whitening")


def setting_of(args, scopes=()):
    """The Setting of the options, checked as far as that needs no model, before minutes are spent on encoding.

    `scopes` are what a search names its own texts by, in place of the fit scopes of pairs.
    """
    from whitelab.scoring.setting import Setting

    if getattr(args, "setting", None):
        setting = _whole_setting(args)
    else:
        setting = Setting(**{"whitening": args.usual_whitening} | given_parts(args))
    return checked(args, setting, scopes)


def given_parts(args) -> dict:
    """The parts of a Setting that options of their own name; `--layers each` is none of them."""
    given = {name: getattr(args, name, None) for name in _SETTING}
    return {name: value for name, value in given.items() if value is not None and (name, value) != ("layers", "each")}


def checked(args, setting, scopes=()):
    """The setting as it is on the data of the options, checked as `setting_of`."""
    from whitelab.corpus.fitting import CORPUS
    from whitelab.encoding.pooling import GIVEN
    from whitelab.scoring.fit_text import check_text
    from whitelab.scoring.setting import EVERY, FIT_SCOPES

    if getattr(args, "vectors", None):
        _check_vectors(args, setting)
        _say_if_nothing_is_fitted(args, setting)
        return setting.with_(pooling=GIVEN)
    if getattr(args, "gold", None):
        raise ValueError(f"--gold {args.gold} needs --vectors; the scores of sentence pairs stand beside them")
    if setting.fit == "splits" and getattr(args, "columns", None):
        raise ValueError("fit='splits' has no meaning for one table, which --columns is for; use task")
    if setting.fit == EVERY:
        raise ValueError(f"fit={EVERY!r} needs --vectors, all of which it stands for")
    _check_tokens(args, setting)
    if setting.fit not in (*FIT_SCOPES, *scopes):
        check_text(setting.fit, args.data, getattr(args, "task", None), args.keep_going, scopes or FIT_SCOPES)
        if setting.fit.startswith(CORPUS):
            say_if_changed(setting.fit.removeprefix(CORPUS))
    _say_if_nothing_is_fitted(args, setting)
    return setting


def _say_if_nothing_is_fitted(args, setting) -> None:
    if "fit" in args.given and not setting.fits:
        note(f"fit={args.fit!r} changes nothing: --whitening {setting.whitening} is fitted to no text")


def say_if_changed(folder: str) -> None:
    """Say that the texts of an embedded corpus are others than those that were read, where they are."""
    from whitelab.corpus.manifest import Manifest
    from whitelab.corpus.texts import CHANGED, changed_since

    if changed_since(Manifest.read(folder)):
        note(f"corpus={folder!r}: {CHANGED}")


def _whole_setting(args):
    """The Setting that `--setting` spells; ValueError where another option says a part of it too."""
    from whitelab.scoring.setting import Setting

    for name in _SETTING:
        if (given := getattr(args, name, None)) is not None:
            given = ",".join(map(str, given)) if isinstance(given, tuple) else given
            raise ValueError(f"--{name} {given} does not go with --setting, which says all of it")
    try:
        setting = Setting.parse(args.setting)
    except ValueError as error:
        if repr(args.setting) in str(error):
            raise
        raise ValueError(f"in --setting {shlex.quote(args.setting)}, {error}") from None
    if not hasattr(args, "aggregate"):  # it joins scores, and decides no map and no cosine
        setting = setting.with_(aggregate="all")
    for name in ("layers", "k"):
        if not hasattr(args, name) and getattr(setting, name) != getattr(Setting(), name):
            rest = "; write L-1 for them" if name == "layers" else ""
            raise ValueError(
                f"--setting {args.setting!r} must not name {name}: this command goes through all of them{rest}"
            )
    return setting


def _check_tokens(args, setting) -> None:
    """Refuse the words of a model that has no vector for a word, before it is loaded."""
    from whitelab.encoding.names import WORD_TABLES, ModelName
    from whitelab.scoring.setting import TOKENS

    names = getattr(args, "model", None)
    if setting.fit == TOKENS and isinstance(names, str) and ModelName.parse(names).kind not in WORD_TABLES:
        raise ValueError(f"fit='tokens' needs a static: or sif: model, got model={names!r}")


def _check_vectors(args, setting) -> None:
    """Refuse options that only a model could answer to."""
    from whitelab.encoding.pooling import GIVEN
    from whitelab.scoring.setting import EVERY, OWN_SENTENCES, Setting

    valued = ("data", "columns", "model", "dtype", "pooling", "split", "num_layers", "max_length", "device", "cache")
    options = [f"{args.spelled[name]} {_shown(getattr(args, name))}" for name in valued if name in args.given]
    options += [args.spelled[name] for name in ("keep_going", "allow_bin", "no_store") if getattr(args, name, False)]
    if options:
        raise ValueError(f"{options[0]} does not go with --vectors, which stand for the data and the model")
    if setting.pooling not in (Setting.pooling, GIVEN):
        raise ValueError(f"pooling={setting.pooling!r} does not go with --vectors, which are pooled")
    if setting.fit not in (*OWN_SENTENCES, EVERY):
        either = " or ".join((*OWN_SENTENCES, EVERY))
        raise ValueError(f"fit={setting.fit!r} needs a model to embed that text; with --vectors use {either}")


def _shown(value: object) -> str:
    return " ".join(value) if isinstance(value, list) else str(value)


def statistics_device(args) -> str:
    """Where `--device` has statistics computed, by default on the best there is (`base.devices`)."""
    from whitelab.base.devices import choose_device, for_statistics

    return for_statistics("cpu" if args.on_cpu else getattr(args, "device", None) or choose_device())


def for_sweeps(args, space, *settings):
    """The space where a sweep over it is computed; `args.on_gpu` where that is a GPU. Maps of rows are on the CPU."""
    from whitelab.whitening import of_rows

    device = "cpu" if any(of_rows(one.whitening) for one in settings) else statistics_device(args)
    args.on_gpu |= device != "cpu"
    return space.to(device)


def open_space(args, setting, beside=(), check=None, intervals=False, vectors=None):
    """The task's embeddings, carrying what the setting fits on; the pairs, the encoder and the report beside them.

    What the settings `beside` it ask of a model is checked with it. `check(pairs)` raises ValueError for what does not
    go with the data, before a model is loaded. Where the command gives `intervals`, pairs too few for them are noted.
    Vectors that were given are their own encoder, without a report: `vectors`, where they were read before.
    """
    if getattr(args, "vectors", None):
        vectors = vectors or read_given(args)
        if check:
            check(vectors.pairs)
        if intervals:
            say_if_few(vectors.pairs.n_pairs, "pairs")
        _say_if_reversed(vectors.space, setting)
        say_if_starved(vectors.space, setting)
        return vectors.space, vectors.pairs, vectors, None
    pairs = read_pairs(args, args.task)
    if check:
        check(pairs)
    if intervals:
        say_if_few(pairs.n_pairs, "pairs")
    encoder = load_model(args, setting, *beside)
    space, report = embed_task(args, encoder, pairs, setting)
    space = with_fit_text(args, encoder, space, setting)
    _say_if_reversed(space, setting)
    say_if_starved(space, setting)
    return space, pairs, encoder, report


def say_if_few(count: int, items: str, means: bool = False) -> None:
    """Say what `few_note` has to say of intervals over so many `items`, of `means` or correlations."""
    from whitelab.statistics.significance import few_note

    if few := few_note(count, items, means):
        note(few)


def _say_if_reversed(space, setting) -> None:
    """Say that gold scores run the other way, where they do."""
    from whitelab.scoring.score import reversal

    if said := reversal(space, setting):
        note(said)


def say_if_starved(space, setting) -> None:
    """Say that a map sets the texts it is fitted on equally far apart, where they are so few."""
    from whitelab.scoring.fit_scopes import fit_scope
    from whitelab.whitening import too_few

    if (fitted := fit_scope(space, setting)).starved:
        note(too_few(setting.whitening, fitted.rank, space.dim))


def read_given(args, alone: bool = False):
    """The task that `--vectors` and `--gold` hold, or `Unpaired` where vectors may be `alone`."""
    from whitelab.encoding.precomputed import read_either, read_vectors

    vectors = (read_either if alone else read_vectors)(args.vectors, args.gold, args.task)
    note(*vectors.notes)
    return vectors


def of_split(split: str | None, load):
    """What `load(split=...)` gives of the named split, or of test where none is; a note where there is none such."""
    data = load(split=split or "test")
    if split and data.split != split:
        note(f"{data.source} has no splits: --split {split} is all of it")
    return data


def read_pairs(args, task: str | None):
    from whitelab.datasets import load

    options = {"columns": args.columns or (), "keep_going": args.keep_going}
    pairs = of_split(args.split, partial(load, args.data, task, **options))
    left_out(pairs.problems)
    return pairs


def load_model(args, *settings):
    """The encoder. Raises ValueError for `settings` that it cannot have, before a text is embedded."""
    from whitelab.encoding.encoders import load_encoder

    encoder = load_encoder(
        args.model,
        num_layers=args.num_layers,
        device=args.device,
        dtype=args.dtype,
        max_length=args.max_length,
        allow_bin=args.allow_bin,
    )
    for setting in settings:
        setting.sized(encoder.n_layers, encoder.dim)
    return encoder


def embed_task(args, encoder, pairs, setting):
    """The embeddings and the report; what a user should know of them goes to stderr."""
    from whitelab.encoding.embeddings import embed_pairs

    space, report = embed_pairs(encoder, pairs, setting.pooling, store=open_store(args), progress=progress())
    note(*pairs.notes, *report.notes)
    if report.truncated:
        note(cut_note(report.truncated, "sentence", encoder.max_length))
    return space, report


def open_store(args):
    from whitelab.store.embedding_store import Store

    return None if args.no_store else Store(args.cache)


def with_fit_text(args, encoder, space, setting):
    """The space, carrying the embedded text of the setting's fit where that is not the task's own sentences."""
    from whitelab.scoring import fit_text

    embedded = _embedder(args, encoder, setting)
    return fit_text.with_fit_text(space, setting, embedded, args.data, args.task, args.keep_going)


def _embedder(args, encoder, setting):
    """What embeds more sentences as those of the space were."""
    from whitelab.encoding.embed import embed

    return lambda sentences: embed(encoder, sentences, setting.pooling, store=open_store(args), progress=progress())[0]


def fit_ahead(space, settings, isotropy: bool = True) -> dict:
    """Fit the maps that are fitted to rows, with progress; the record of what that cost, empty where there is none."""
    import time

    from whitelab.scoring import fit_scopes

    start = time.perf_counter()
    maps = fit_scopes.fit_ahead(space, settings, isotropy, progress("fitting", "%"))
    if not maps:
        return {}
    cost = {"maps": len(maps), "seconds": time.perf_counter() - start}
    cost |= {name: maps[0].cost[name] for name in ("steps", "parameters") if name in maps[0].cost}
    trained = f", up to {cost['steps']:,} steps on {cost['parameters']:,} parameters" if "steps" in cost else ""
    note(f"fitted to rows: {quantity(len(maps), 'map')} in {cost['seconds']:.1f} s{trained}")
    return {"fit_cost": cost}


def _prompts(args, encoder) -> tuple[str, str]:
    """What is put before queries and documents: what was typed, or with --prompts what the model's makers say."""
    from whitelab.encoding.checkpoints import prompts, prompts_note

    typed, own = (args.query_prompt, args.document_prompt), prompts(encoder.files)
    if not args.prompts:
        if any(own) and not any(typed):
            note(f"the model's makers put prompts before queries and documents ({own[0]!r}, {own[1]!r}): see --prompts")
        return typed
    if any(typed):
        raise ValueError("--prompts takes the model's own prompts and goes with no typed one")
    if not any(own):
        raise ValueError(f"--prompts: model={encoder.name!r} names no prompt for queries or documents")
    note(*filter(None, [prompts_note(encoder.files)]))
    return own


def open_search(args, setting, beside=(), check=None, intervals=False):
    """The retrieval set, embedded, carrying the text a setting is fitted on, and the encoder.

    What to know of it goes to stderr. `beside`, `check` and `intervals` (over queries) are as those of `open_space`.
    """
    from whitelab.datasets import load_retrieval
    from whitelab.retrieval.embedded import embed_retrieval, for_documents
    from whitelab.scoring.fit_text import fit_rows

    data = of_split(args.split, partial(load_retrieval, args.data, keep_going=args.keep_going))
    left_out(data.problems)
    if check:
        check(data)
    if intervals:
        say_if_few(len(data.queries), "queries", means=True)
    encoder = load_model(args, setting, *beside)
    data = data.prompted(*_prompts(args, encoder))
    encoder = encoder if args.max_length else for_documents(encoder)
    space, report = embed_retrieval(encoder, data, setting.pooling, store=open_store(args), progress=progress())
    note(*data.notes, *report.notes)
    for cut, texts, what in (
        (space.truncated, data.documents, ("document", "documents")),
        (space.truncated_queries, data.queries, ("query", "queries")),
    ):
        if cut:
            note(f"{cut} of {quantity(len(texts), *what)} were cut to {encoder.max_length} tokens")
    if not space.carries(setting):
        embedded = _embedder(args, encoder, setting)
        space = space.with_text(setting.fit, fit_rows(setting.fit, embedded, keep_going=args.keep_going))
    say_if_starved(space.space, setting.with_(fit="corpus") if setting.fit == "task" else setting)
    return space, encoder


def setting_of_search(args):
    """`setting_of` where a retrieval set takes the place of pairs."""
    from whitelab.retrieval.embedded import FITS, check_setting
    from whitelab.scoring.setting import Setting

    for name in ("vectors", "task", "columns"):
        if getattr(args, name, None):
            raise ValueError(f"--search does not go with --{name}: documents and queries are embedded")
    if getattr(args, "fit", None) == Setting.fit:
        raise ValueError(f"fit={args.fit!r} has no meaning without pairs; use {', '.join(FITS)} or name other text")
    return check_setting(setting_of(args, tuple(FITS)))


def setting_of_either(args):
    """The Setting of a command that takes pairs or, with `--search`, a retrieval set."""
    if args.search:
        return setting_of_search(args)
    check_no_prompts(args)
    return setting_of(args)


def check_no_prompts(args) -> None:
    """Refuse words before queries and documents where there are none. Raises ValueError."""
    for name in ("query_prompt", "document_prompt", "prompts"):
        if getattr(args, name):
            raise ValueError(f"--{name.replace('_', '-')} goes with a search, which has queries and documents")


def open_either(args, setting, beside=(), check=None):
    """The embeddings of the pairs or of the retrieval set, as `open_space` and `open_search` for intervals."""
    if args.search:
        return open_search(args, setting, beside, check, intervals=True)[0]
    return open_space(args, setting, beside, check, intervals=True)[0]


def protocol_over(space, setting, layers: str) -> dict:
    """The record of the Protocol, `layers` saying in words which of them were gone through."""
    from whitelab.scoring.setting import Protocol

    return Protocol(setting.on(space), space.origin).as_dict() | {"layers": layers}
