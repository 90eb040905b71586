"""`corpus`: text of any size into vectors, chunk by chunk, a map fitted on all of it, and an index to search."""

import argparse
import contextlib
from pathlib import Path

from whitelab.base.wording import quantity, spaced
from whitelab.cli.options import bin_option, device_option, dtype_option, json_option, layers_option, variant_options
from whitelab.cli.spaces import say_if_changed
from whitelab.cli.writing import COLUMN, note, progress


def add_options(parser: argparse.ArgumentParser) -> None:
    steps = parser.add_subparsers(dest="step", required=True, metavar="STEP")
    for name, (summary, options, _) in STEPS.items():
        step = steps.add_parser(name, help=summary, description=summary)
        options(step)
        json_option(step)


def run(args):
    return STEPS[args.step][-1](args)


def _embed_options(step) -> None:
    from whitelab.corpus.chunks import CHUNK_TEXTS, STORED
    from whitelab.corpus.engines import ENGINES
    from whitelab.encoding.pooling import POOLING_LABELS

    step.add_argument("--text", required=True, help="a file, folder or glob of .txt, .jsonl, .csv or .parquet")
    kinds = "of .jsonl, .csv and .parquet"
    step.add_argument("--text-column", default="text", metavar=COLUMN, help=f"{kinds} (default: text)")
    step.add_argument("--id-column", default="id", metavar=COLUMN, help=f"{kinds} (default: id, or file and line)")
    step.add_argument("--out", required=True, metavar="FOLDER", help="where the chunks go, and are found again")
    step.add_argument("--model", default="bundled", help="as everywhere (default: bundled)")
    step.add_argument("--pooling", default="mean", choices=tuple(POOLING_LABELS), help="as everywhere (default: mean)")
    layers_option(step)
    step.add_argument("--apart", action="store_true", help="keep the layers apart, to fit on any average of them")
    step.add_argument("--max-length", type=int, help="in tokens (default: as everywhere)")
    bin_option(step)
    step.add_argument("--vectors", default="float32", choices=STORED, help="what chunks hold (default: float32)")
    step.add_argument(
        "--chunk",
        dest="chunk_texts",
        type=int,
        default=CHUNK_TEXTS,
        metavar="N",
        help=f"texts a chunk (default: {CHUNK_TEXTS})",
    )
    step.add_argument(
        "--engine", default="serial", choices=ENGINES, help="one process, several, or many machines (default: serial)"
    )
    step.add_argument(
        "--workers", type=int, default=2, help="processes, or actors of Ray, each with an encoder (default: 2)"
    )
    step.add_argument("--address", help="of a Ray cluster that is there; its nodes must see --out under the same path")
    step.add_argument("--gpus", type=float, default=0.0, help="of a GPU, for each actor of Ray, with --device cuda")
    dtype_option(step)
    device_option(step, "cpu")


def _fit_options(step) -> None:
    step.add_argument("folder", help="the --out of a finished embed")
    variant_options(step, "pca", of_moments=True)
    layers_option(step, "what the corpus holds")
    step.add_argument("--out", metavar="FILE", help="write the map as .npz")


def _status_options(step) -> None:
    step.add_argument("folder", help="the --out of an embed")


def _drift_options(step) -> None:
    step.add_argument("folder", help="the corpus a map was fitted on")
    step.add_argument("other", help="the one to hold against it")
    variant_options(step, "pca", of_moments=True)
    layers_option(step, "what the corpus holds")
    step.add_argument(
        "--map", metavar="FILE", help="the .npz that fit or whiten wrote, in place of the options of a fit"
    )


def _apply_options(step) -> None:
    from whitelab.corpus.applying import CODES

    step.add_argument("folder", help="the --out of a finished embed")
    step.add_argument("--out", required=True, metavar="FOLDER", help="where the mapped chunks go")
    variant_options(step, "pca", of_moments=True)
    layers_option(step, "what the corpus holds")
    step.add_argument(
        "--map", metavar="FILE", help="an .npz that fit or whiten wrote, in place of a fit on this corpus"
    )
    step.add_argument("--vectors", default="float16", choices=CODES, help="what chunks hold (default: float16)")


def _index_options(step) -> None:
    from whitelab.corpus.indexing import KINDS

    step.add_argument("folder", help="the --out of apply (--whitening none: vectors as they are)")
    step.add_argument(
        "--out", required=True, metavar="FOLDER", help="where the index goes; an earlier one of this kind is replaced"
    )
    step.add_argument(
        "--kind", default="flat", choices=KINDS, help="float32 vectors, or lists of short codes (default: flat)"
    )
    step.add_argument(
        "--lists", type=int, help="of ivfpq (default: four times the root of the rows, at most one for 40)"
    )
    step.add_argument("--bytes", type=int, help="of ivfpq, a vector (default: an eighth of its dimensions)")
    step.add_argument("--probes", type=int, help="lists that a search of ivfpq looks through (default: 16)")


def _search_options(step) -> None:
    step.add_argument("folder", help="the --out of apply, or of index")
    step.add_argument("--query", action="append", required=True, metavar="TEXT", help="a sentence; may be repeated")
    step.add_argument("--top", type=int, default=10, help="texts for each sentence (default: 10)")
    step.add_argument(
        "--workers", type=int, default=1, help="shards that are searched side by side, without an index (default: 1)"
    )
    bin_option(step)


def _embed(args):
    from whitelab.corpus.embedding import embed_corpus

    if "workers" in args.given and args.engine == "serial":
        raise ValueError(f"workers={args.workers} goes with --engine processes or ray: serial is one process")
    same = (
        "model",
        "pooling",
        "apart",
        "vectors",
        "dtype",
        "device",
        "max_length",
        "allow_bin",
        "engine",
        "workers",
        "address",
        "gpus",
    )
    made = embed_corpus(
        args.text,
        args.out,
        layers=args.layers or (-1,),
        chunk_texts=args.chunk_texts,
        text_column=args.text_column,
        id_column=args.id_column,
        progress=progress("encoding", "texts"),
        **{name: getattr(args, name) for name in same},
    )
    note(*made.notes)
    held = f"{quantity(made.sentences, 'text')} in {quantity(len(made.chunks), 'chunk')}"
    lines = [f"{held}, {quantity(made.encoded, 'different one')} encoded now"]
    others = len({path.stem for path in Path(args.out).glob("*.parquet")} - set(made.chunks))
    beside = f"beside them, unlisted: {quantity(others, 'chunk')} of another model, layer or text"
    lines += [beside] if others else []
    lines += [f"left out: {one}" for one in made.refused_lines]
    return made.as_dict(), [*lines, *(f"failed: {name}: {why}" for name, why in made.failed.items())]


_RUNNING = {
    True: "under way",
    False: "no process works on it: embed again goes on from here",
    None: "whether a process works on it cannot be told by this user",
}


def _status(args):
    from whitelab.corpus.manifest import Manifest, status
    from whitelab.corpus.texts import CHANGED, changed_since

    found, changed = status(args.folder), changed_since(Manifest.read(args.folder))
    note(*found.notes)
    chunks, texts = quantity(found.chunks, "chunk"), quantity(found.sentences, "text")
    lines = [f"{spaced(found.done)} of {chunks}, {spaced(found.sentences_done)} of {texts}"]
    if found.seconds_left:
        lines += [f"{found.rate:.0f} texts a second, {found.seconds_left:.0f} s left"]
    lines += [f"{quantity(found.lost, 'chunk')} damaged or gone since it was finished"] if found.lost else []
    lines += [_RUNNING[found.running]] if found.done < found.chunks else []
    lines += [f"left out: {one}" for one in found.left_out]
    lines += [CHANGED] if changed else []
    lines += [f"failed: {name}: {why}" for name, why in found.failed.items()]
    return found.as_dict() | {"text_changed": changed}, lines


def _fitted(args):
    """The map of the options with its record; a note where so few texts are no ground for it."""
    from whitelab.corpus.fitting import fit_corpus
    from whitelab.whitening import starved, too_few

    fitted, record = fit_corpus(args.folder, args.whitening, args.k, args.layers)
    if starved(args.whitening, record["distinct"], record["rank"]):
        note(too_few(args.whitening, record["rank"], fitted.dim))
    return fitted, record


def _fit(args):
    fitted, record = _fitted(args)
    say_if_changed(args.folder)
    if args.out:
        from whitelab.whitening.export import to_npz

        to_npz(args.out, fitted, record)
    written = [f"written: {args.out}"] if args.out else []
    return record, [*_told(record), *written]


def _told(record: dict) -> list[str]:
    """A record in lines, without Python's brackets and digits that nobody reads."""

    def said(value) -> str:
        if isinstance(value, list | tuple):
            return ", ".join(map(said, value))
        return "undefined" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)

    whole = {"k": "all"} if record.get("k", 0) is None else {}
    return [f"{name}: {said(value)}" for name, value in (record | whole).items()]


# What the measures of a drift are, as `corpus.fitting.Drift` has it.
_DRIFT = {
    "mean": "how far apart the means are, over the root of the first's total variance (0: not at all)",
    "variance": "the other's total variance over the first's (1: equal)",
    "spectrum": "by how many powers of 2 the variances along the first's directions differ, on average (0: equal)",
    "isotropy": "IsoScore (0 to 1) of the other's halves under the map of the first, on average",
    "own": "the same of each half under a map of the other half: where isotropy is lower than this by what matters to "
    "you, fit again",
}


def _drift(args):
    from whitelab.corpus.fitting import corpus_drift

    if args.map:
        _take_options_of_map(args)
    else:
        _fitted(args)
    found = corpus_drift(args.folder, args.other, args.whitening, args.k, args.layers).as_dict()
    for folder in dict.fromkeys((args.folder, args.other)):
        say_if_changed(folder)
    why = {}
    if found["own"] is None:
        why["reason"] = (
            f"half of {args.other} holds too few texts for a map of as many dimensions: whether a new fit would help "
            "cannot be told; keep fewer dimensions (k), or embed more text"
        )
        note(why["reason"])
    lines = zip(found, _told(found), strict=True)
    return found | why, [f"{line}, {_DRIFT[name]}" if name in _DRIFT else line for name, line in lines]


def _apply(args):
    from whitelab.corpus.applying import apply_map

    if args.map:
        fitted, record = _map_of_file(args)
    else:
        fitted, record = _fitted(args)
    say_if_changed(args.folder)
    found = apply_map(args.folder, args.out, fitted, record, args.vectors, progress("mapping", "chunks"))
    vectors = f"{quantity(found['sentences'], 'vector')} of {found['dim']} in {found['vectors']}"
    return found, [f"{vectors}, {quantity(found['written'], 'new chunk')}"]


def _take_options_of_map(args) -> None:
    """Put those of the fit into `args` that made the map of --map; say where this corpus makes another of them."""
    shipped, record = _map_of_file(args)
    args.whitening, args.k, args.layers = shipped.name, shipped.k, record.get("layers")
    args.spelled = {name: option for name, option in args.spelled.items() if name not in ("whitening", "k", "layers")}
    try:
        fitted, _ = _fitted(args)
    except ValueError as problem:
        raise ValueError(f"--map {args.map}: {args.folder} gives no such map: {problem}") from None
    if shipped.digest != fitted.digest:
        note(f"{args.map} was not fitted on what {args.folder} holds; measured is the map that a fit on it gives")


def _map_of_file(args):
    """The map of --map with its record, and what is to be said of it beside the corpus.

    Raises ValueError for an option that it says already, and where it does not go with the corpus.
    """
    from whitelab.corpus.applying import check_map
    from whitelab.corpus.manifest import Manifest
    from whitelab.whitening.export import from_npz

    given = [name for name in ("k", "layers") if getattr(args, name) is not None]
    if given or args.whitening != "pca":
        raise ValueError(f"--{(given or ['whitening'])[0]} does not go with --map, which says it")
    shipped, record = from_npz(args.map)
    corpus = Manifest.read(args.folder)
    try:
        check_map(shipped, record, corpus)
    except ValueError as problem:
        raise ValueError(f"--map {args.map}: {problem}") from None
    _say_if_made_otherwise(record, corpus)
    return shipped, record


def _say_if_made_otherwise(record: dict, corpus) -> None:
    """Say in what the vectors that a map's record is of differ from those of a corpus of the same width."""
    from whitelab.whitening.export import FORMATS, PROMPTED

    own = corpus.model
    if record.get("model", own) != own:
        note(f"the map was made with {record['model']}, the corpus with {own}: they go together where these are one")
    for name, value in (("max_length", corpus.max_length), ("dtype", corpus.compute)):
        if record.get(name) not in (None, value):
            note(f"the map is of vectors made with {name}={record[name]}, the corpus with {name}={value}")
    if any(record.get(f"{kind}_prompt") for kind in PROMPTED):
        note(FORMATS["npz"].prompts_note(record))


def _say_if_corpus_changed(folder: str) -> None:
    """`say_if_changed` of the corpus that an applied folder, or an index, was made of, where that is still there."""
    from whitelab.corpus.applying import read_applied
    from whitelab.datasets.layouts import existing_path
    from whitelab.datasets.pairs import DataError

    with contextlib.suppress(DataError):
        say_if_changed(read_applied(existing_path(folder))["corpus"])


def _index(args):
    from whitelab.corpus.indexing import build_index

    found = build_index(args.folder, args.out, args.kind, args.lists, args.bytes, args.probes)
    _say_if_corpus_changed(args.folder)
    few = {name: "too few rows to measure it" for name, value in found.items() if value is None}
    lines = zip(found, _told(found | few), strict=True)
    beside = ", beside exact search of the same vectors as they are stored"
    return found, [line + beside * (found[name] is not None and name == "recall@10") for name, line in lines]


def _search(args):
    from whitelab.corpus.searching import search_corpus

    found = search_corpus(args.folder, args.query, args.top, args.workers, args.allow_bin, note)
    _say_if_corpus_changed(args.folder)
    if all(not hit.text for hits in found for hit in hits):
        note("no texts: the folder that `corpus embed` wrote is not where it was; an index made beside it keeps them")
    lines = []
    for query, hits in zip(args.query, found, strict=True):
        lines += [query, *(f"  {hit.cosine:.4f}  {hit.id}  {hit.text}" for hit in hits)]
    return {"queries": args.query, "hits": [[hit._asdict() for hit in hits] for hits in found]}, lines


STEPS = {  # name: its summary, its options, what it does
    "embed": ("encode every chunk that is not there yet", _embed_options, _embed),
    "status": ("how far an embed is", _status_options, _status),
    "fit": ("fit a map on the whole corpus", _fit_options, _fit),
    "drift": ("how far another corpus lies from the one a map was fitted on", _drift_options, _drift),
    "apply": ("write every vector under a map, cut to k, in fewer bits", _apply_options, _apply),
    "index": ("make a faiss index of an applied corpus", _index_options, _index),
    "search": ("find the nearest texts to sentences", _search_options, _search),
}
