"""What several commands make of their options: the setting, the pairs, the encoder, the embeddings."""

from whitelab.cli.writing import left_out, note, progress

# Options that `--setting` says all at once: name -> what it is where nothing is said. Not every command has each.
_SETTING = {"layers": None, "k": None, "pooling": "mean", "fit": "task", "aggregate": "all"}


def setting_of(args, scopes=("splits",)):
    """The Setting of the options, checked as far as that needs no model, before minutes are spent on encoding.

    `scopes` are the names of fit scopes that are not those of other text.
    """
    from whitelab.encoding.pooling import GIVEN
    from whitelab.scoring.fit_scopes import scope_text
    from whitelab.scoring.setting import Setting

    if getattr(args, "setting", None):
        setting = _whole_setting(args)
    else:
        given = {name: getattr(args, name, usual) for name, usual in _SETTING.items()} | {"whitening": args.whitening}
        given["layers"] = given["layers"] if isinstance(given["layers"], tuple) else (-1,)
        setting = Setting(**given)
    if getattr(args, "vectors", None):
        _check_vectors(args, setting)
        return setting.with_(pooling=GIVEN)
    if getattr(args, "gold", None):
        raise ValueError(f"--gold {args.gold} needs --vectors; the scores of sentence pairs stand beside them")
    if setting.fits_other_text and setting.fit not in scopes:
        scope_text(setting.fit, args.data, getattr(args, "task", None), args.skip_malformed)
    return setting


def _whole_setting(args):
    """The Setting that `--setting` spells; ValueError where another option says a part of it too."""
    from whitelab.scoring.setting import Setting

    usual = _SETTING | {"whitening": args.usual_whitening}
    for name, value in usual.items():
        given = getattr(args, name, value)
        if given != value:
            given = ",".join(map(str, given)) if isinstance(given, tuple) else given
            raise ValueError(f"--{name} {given} does not go with --setting, which says all of it")
    setting = Setting.parse(args.setting)
    for name in ("layers", "k", "aggregate"):
        if not hasattr(args, name) and getattr(setting, name) != getattr(Setting(), name):
            raise ValueError(f"--setting {args.setting!r} must not name {name}: this command goes through all of them")
    return setting


def _check_vectors(args, setting) -> None:
    """Refuse options that only a model could answer to."""
    from whitelab.encoding.pooling import GIVEN
    from whitelab.scoring.setting import OWN_SENTENCES

    usual = {"data": "demo", "split": "test", "model": "bundled", "pooling": "mean", "dtype": "float32"}
    usual |= dict.fromkeys(("num_layers", "max_length", "device"))
    for name, value in usual.items():
        if getattr(args, name) != value:
            option = f"--{name.replace('_', '-')} {getattr(args, name)}"
            raise ValueError(f"{option} does not go with --vectors, which stand for the data and the model")
    if setting.pooling not in (usual["pooling"], GIVEN):
        raise ValueError(f"pooling={setting.pooling!r} does not go with --vectors, which are pooled")
    if setting.fit not in OWN_SENTENCES:
        either = " or ".join(OWN_SENTENCES)
        raise ValueError(f"fit={setting.fit!r} needs a model to embed that text; with --vectors use {either}")


def open_space(args, setting):
    """The task's embeddings, carrying what the setting fits on; the pairs, the encoder and the report beside them.

    Vectors that were given are their own encoder, without a report.
    """
    if getattr(args, "vectors", None):
        vectors = read_given(args)
        return vectors.space, vectors.pairs, vectors, None
    pairs = read_pairs(args, args.task)
    encoder = load_model(args)
    space, report = embed_task(args, encoder, pairs, setting)
    return with_fit_text(args, encoder, space, setting), pairs, encoder, report


def read_given(args):
    """The task that `--vectors` and `--gold` hold."""
    from whitelab.encoding.precomputed import read_vectors

    vectors = read_vectors(args.vectors, args.gold, args.task)
    for text in vectors.pairs.notes:
        note(text)
    return vectors


def read_pairs(args, task: str | None):
    from whitelab.datasets import load

    pairs = load(args.data, task, args.split, keep_going=args.skip_malformed)
    left_out(pairs.problems)
    return pairs


def load_model(args):
    from whitelab.encoding.encoders import load_encoder

    return load_encoder(
        args.model,
        num_layers=args.num_layers,
        device=args.device,
        dtype=args.dtype,
        max_length=args.max_length,
        allow_bin=args.allow_bin,
    )


def embed_task(args, encoder, pairs, setting):
    """The embeddings and the report; what a user should know of them goes to stderr."""
    from whitelab.encoding.embeddings import embed_pairs

    space, report = embed_pairs(encoder, pairs, setting.pooling, store=open_store(args), progress=progress())
    for text in (*pairs.notes, *report.notes):
        note(text)
    if report.truncated:
        note(f"{report.truncated} sentences were cut to {encoder.max_length} tokens")
    return space, report


def open_store(args):
    from whitelab.store.embedding_store import Store

    return None if args.no_store else Store(args.cache)


def with_fit_text(args, encoder, space, setting):
    """The space, carrying the embedded text of the setting's fit where that is not the task's own sentences."""
    from whitelab.encoding.encoders import embed
    from whitelab.scoring import fit_scopes

    def embedded(sentences):
        return embed(encoder, sentences, setting.pooling, store=open_store(args), progress=progress())[0]

    return fit_scopes.with_fit_text(space, setting, embedded, args.data, args.task, args.skip_malformed)


def protocol_over(space, setting, layers: str) -> dict:
    """The record of the Protocol, `layers` saying in words which of them were gone through."""
    from whitelab.scoring.setting import Protocol

    return Protocol(setting.on(space), space.origin).as_dict() | {"layers": layers}
