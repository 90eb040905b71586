"""The laboratory without a browser: `python -m whitelab score --layers 1,6 --whitening pca --json`.

Results go to stdout, everything else to stderr; wrong input exits with 2 and one line. Nothing heavy is
imported before a command runs, so `--help` answers at once.
"""

import argparse
import contextlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path


class _Parser(argparse.ArgumentParser):
    def error(self, message: str):
        self.exit(2, f"{self.prog}: error: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (0, or 2 for wrong input)."""
    argv = list(sys.argv[1:] if argv is None else argv)
    parser = _Parser(prog="python -m whitelab", description="A laboratory for the geometry of sentence embeddings.")
    chosen = next((word for word in argv if not word.startswith("-")), None)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    for name, (summary, add_options, _) in COMMANDS.items():
        sub = commands.add_parser(name, help=summary, description=summary)
        if name == chosen:  # the registries its options are read from import torch
            add_options(sub)
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    try:
        for result, lines in _results(args):
            if result is not None:
                _print(json.dumps(result, allow_nan=False, ensure_ascii=False) if args.json else "\n".join(lines))
    except KeyboardInterrupt:
        kept = "the last checkpoint is kept: --resume" if args.command == "train" else "finished shards are kept"
        print(f"interrupted; {kept}", file=sys.stderr)
        return 130
    except Exception as error:
        if not _is_for_the_user(error):
            raise
        print(f"python -m whitelab {args.command}: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return 0


def _results(args) -> Iterator[tuple[dict | None, list[str]]]:
    """What a command returns, or one after another what it yields; while it works, stdout is closed to it."""
    with contextlib.redirect_stdout(sys.stderr):
        found = COMMANDS[args.command][2](args)
    if not isinstance(found, Iterator):
        yield found
        return
    with contextlib.closing(found):
        while True:
            with contextlib.redirect_stdout(sys.stderr):
                one = next(found, None)
            if one is None:
                return
            yield one


def _print(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:  # the reader (head, less) has seen enough; keep Python from saying so again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_for_the_user(error: Exception) -> bool:
    from whitelab.store import StoreError

    return isinstance(error, (ValueError, OSError, MemoryError, StoreError))


# ---------------------------------------------------------------------------------------------- options


def _json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout")


def _data_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", default="demo", help="folder, file, 'demo' (bundled) or a downloaded source")
    parser.add_argument("--task", help="which task of the data, such as stsb, sickr, sts12 (if there are several)")
    parser.add_argument("--split", default="test", help="train, dev, test or all, where the data has splits")
    parser.add_argument("--skip-malformed", action="store_true", help="report malformed rows and keep the rest")


def _vectors_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--vectors",
        nargs="+",
        metavar="FILE",
        help="score vectors made elsewhere instead of a model's: .npy, .npz, .safetensors or Parquet with arrays "
        "first, second [p, d] and gold [p], or values [n, d] with row numbers first and second [p]",
    )
    parser.add_argument("--gold", metavar="FILE", help="for --vectors: scores, and row numbers or sentences if need be")


def _space_options(parser: argparse.ArgumentParser) -> None:
    from whitelab.encoders import BATCH_BYTES, DTYPES, MAX_LENGTH
    from whitelab.pooling import POOLINGS

    _data_options(parser)
    parser.add_argument(
        "--model",
        default="bundled",
        help="'bundled', a local folder or a Hugging Face name; NAME:3 for its first 3 blocks, random:NAME or "
        "random@7:NAME for random weights, static:NAME or sif:NAME for its word embeddings alone",
    )
    _bin_option(parser)
    parser.add_argument("--num-layers", type=int, help="keep only the first N transformer blocks")
    parser.add_argument(
        "--pooling", default="mean", choices=tuple(POOLINGS), help="cls in models that see both ways, last in decoders"
    )
    parser.add_argument(
        "--max-length", type=int, help=f"in tokens, special ones included (default: {MAX_LENGTH}, or the model's limit)"
    )
    parser.add_argument("--dtype", default="float32", choices=tuple(DTYPES), help="type to compute in")
    parser.add_argument("--device", choices=tuple(BATCH_BYTES), help="default: the best there is")
    parser.add_argument("--cache", help="folder of the embedding store (default: the user's cache folder)")
    parser.add_argument("--no-store", action="store_true", help="neither read nor keep embeddings on disk")
    _json_option(parser)


def _bin_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allow-bin", action="store_true", help="also take pickled weights (pytorch_model.bin), read without code"
    )


def _aggregate_option(parser: argparse.ArgumentParser) -> None:
    from whitelab.correlation import AGGREGATES

    parser.add_argument("--aggregate", default="all", choices=AGGREGATES, help="how subsets become one score")


def _whitening_options(parser: argparse.ArgumentParser, default: str, with_k: bool = True) -> None:
    from whitelab.whitening import WHITENERS

    parser.add_argument(
        "--whitening",
        default=default,
        type=_spec,
        metavar="NAME[:param=value,...]",
        help=f"{', '.join(WHITENERS)}; such as soft:gamma=0.5 or group:groups=8 (default: {default})",
    )
    if with_k:
        parser.add_argument("--k", type=int, help="keep the top-k eigen-directions")
    parser.add_argument(
        "--fit",
        default="task",
        metavar="task|splits|cross|PATH",
        help="what the variant is fitted on: the task's sentences, all its splits, each half of the pairs for the "
        "other, or a text file, file of pairs or folder (default: task)",
    )


def _spec(text: str) -> str:
    from whitelab.whitening import canonical

    try:
        return canonical(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("whitening=")) from None


def _layers_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--layers", type=_layers, help="layers to average, such as 1,6 (default: the last)")


def _layers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be layer numbers with commas, such as 1,6") from None


def _models_options(parser: argparse.ArgumentParser) -> None:
    _json_option(parser)


def _datasets_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", default="demo", help="folder, file, 'demo' or a downloaded source")
    _json_option(parser)


def _embed_options(parser: argparse.ArgumentParser) -> None:
    _space_options(parser)
    parser.add_argument("--out", help="also write every layer with its pairs to this .npz, which --vectors reads")


def _score_options(parser: argparse.ArgumentParser) -> None:
    _space_options(parser)
    _vectors_options(parser)
    _layers_option(parser)
    _whitening_options(parser, "none")
    _aggregate_option(parser)


def _pairs_options(parser: argparse.ArgumentParser) -> None:
    _space_options(parser)
    _vectors_options(parser)
    _whitening_options(parser, "none")
    _aggregate_option(parser)
    parser.add_argument(
        "--size",
        type=_sizes,
        help="score every subset of so many layers instead: all, 2, 1-3 or 1,3,5; then --task may name several "
        "tasks with commas, or all",
    )
    parser.add_argument("--top", type=int, help="with --size: how many of the best subsets to list (default: 10)")


def _sizes(text: str) -> str | tuple[int, ...]:
    if text == "all":
        return text
    try:
        ends = [[int(end) for end in part.split("-")] for part in text.split(",")]
        found = [size for part in ends for size in range(part[0], part[-1] + 1)]
    except ValueError:
        found = []
    if not found or any(len(part) > 2 for part in ends):
        raise argparse.ArgumentTypeError(f"{text!r} must be all, a number of layers, or several such as 1-3 or 1,3")
    return tuple(found)


def _kcurve_options(parser: argparse.ArgumentParser) -> None:
    _space_options(parser)
    _vectors_options(parser)
    parser.add_argument(
        "--layers",
        type=lambda text: text if text == "each" else _layers(text),
        help="layers to average, such as 1,6, or each: one curve a layer (default: the last)",
    )
    _whitening_options(parser, "pca", with_k=False)
    _aggregate_option(parser)


def _geometry_options(parser: argparse.ArgumentParser) -> None:
    from whitelab.geometry import POSITIVES

    _space_options(parser)
    _vectors_options(parser)
    _whitening_options(parser, "pca")
    _aggregate_option(parser)
    parser.add_argument("--positives", default="gt4", choices=tuple(POSITIVES), help="pairs the alignment is over")


def _compare_options(parser: argparse.ArgumentParser) -> None:
    from whitelab.compare import PRESETS
    from whitelab.encoders import DTYPES

    parser.add_argument("--models", default="bundled", help="names or folders, separated by commas")
    parser.add_argument("--data", default="demo", help="folder, file, 'demo' or a downloaded source")
    parser.add_argument("--tasks", default="all", help="'all', or names separated by commas")
    parser.add_argument(
        "--settings", help="'table1', or settings such as 'cls/L-1;L1+L6:pca@256' (default: the protocol's own)"
    )
    parser.add_argument("--protocol", default="whiteningbert", choices=tuple(PRESETS))
    parser.add_argument("--corpus", help="what bert-whitening-corpus fits on: a text file, pairs, a folder or 'demo'")
    parser.add_argument(
        "--presets",
        metavar="A,B",
        help="walk from one protocol to another instead, changing one choice at a time; --settings may name one "
        "setting for both (default: each protocol's own)",
    )
    parser.add_argument("--intervals", action="store_true", help="add 95 %% intervals, from resampled pairs")
    parser.add_argument("--skip-malformed", action="store_true", help="leave malformed rows out")
    _bin_option(parser)
    parser.add_argument("--dtype", default="float32", choices=tuple(DTYPES), help="type to compute in")
    parser.add_argument("--cache", help="folder of the embedding store (default: the user's cache folder)")
    parser.add_argument("--no-store", action="store_true", help="neither read nor keep embeddings on disk")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON document on stdout")
    form.add_argument("--csv", dest="form", action="store_const", const="csv", help="print a table as CSV")
    form.add_argument("--latex", dest="form", action="store_const", const="latex", help="print a LaTeX table")
    form.add_argument("--markdown", dest="form", action="store_const", const="markdown", help="the default")


def _probe_options(parser: argparse.ArgumentParser) -> None:
    from whitelab.encoders import DTYPES
    from whitelab.probe import CLASSIFIERS, DEFAULT, METRICS

    parser.add_argument(
        "--data", default="demo", help="a table, a folder of tables or in SentEval's layout, or 'demo' (the default)"
    )
    parser.add_argument("--task", default="all", help="'all', or names separated by commas, such as MR,TREC")
    parser.add_argument("--test", metavar="FILE", help="a second table that holds the test rows")
    for name, what in (("text", "the text"), ("first", "the first text of a pair"), ("second", "the second text")):
        parser.add_argument(f"--{name}", metavar="COLUMN", help=f"column of {what}, where its name does not say it")
    parser.add_argument("--label", metavar="COLUMN", help="column of the label")
    parser.add_argument("--split-column", metavar="COLUMN", help="column that says train, dev or test")
    parser.add_argument(
        "--positive", metavar="CLASS", help="of pairs, the class that says that they match (RTE on the hub: 0)"
    )
    parser.add_argument("--skip-malformed", action="store_true", help="report malformed rows and keep the rest")
    parser.add_argument("--model", default="bundled", help="names or folders, separated by commas")
    _bin_option(parser)
    parser.add_argument("--num-layers", type=int, help="keep only the first N transformer blocks")
    parser.add_argument(
        "--settings", default=DEFAULT, help=f"such as 'cls/L-1;L1+L6:pca@256'; L* is each layer (default: {DEFAULT})"
    )
    parser.add_argument(
        "--classifier",
        choices=tuple(CLASSIFIERS),
        help="default: linear; threshold for pairs; senteval, which linear also means there, in SentEval's layout",
    )
    parser.add_argument(
        "--fit",
        default="train",
        metavar="train|all|PATH",
        help="what the whitening is fitted on: the training texts, all texts, or other text (default: train)",
    )
    parser.add_argument("--k", type=int, default=5, help="neighbours of knn (default: 5)")
    parser.add_argument("--metric", default="euclidean", choices=METRICS, help="distance of knn")
    parser.add_argument("--folds", type=int, default=10, help="of cross-validation (default: 10)")
    parser.add_argument("--standardize", action="store_true", help="features to mean 0 and variance 1")
    parser.add_argument(
        "--threshold", type=float, default=0.5, help="a pair matches from this cosine on (default: 0.5)"
    )
    parser.add_argument("--max-length", type=int, help="in tokens, special ones included")
    parser.add_argument("--dtype", default="float32", choices=tuple(DTYPES), help="type to compute in")
    parser.add_argument("--cache", help="folder of the embedding store (default: the user's cache folder)")
    parser.add_argument("--no-store", action="store_true", help="neither read nor keep embeddings on disk")
    _json_option(parser)


def _whiten_options(parser: argparse.ArgumentParser) -> None:
    _space_options(parser)
    _layers_option(parser)
    _whitening_options(parser, "pca")
    parser.add_argument(
        "--export",
        required=True,
        choices=EXPORTS,
        help="a model folder for sentence-transformers, a faiss.LinearTransform, or mean and matrix for NumPy",
    )
    parser.add_argument("--out", required=True, help="folder or file to write; an earlier export is replaced")


# Options of `train` that are fields of TrainConfig, and what they are.
_TRAIN = {
    "objective": "what is trained for, with parameters, such as w-mse:embedding=32,size=64",
    "model": "the start, such as bundled:3 for the first three layers of the bundled model",
    "pooling": "of the last layer",
    "batch": "sentences a batch (default: 64, or the smallest the objective takes)",
    "steps": "how many",
    "lr": "rate of the encoder, after the warm-up",
    "head_lr": "rate of the head on top of it (default: that of the encoder)",
    "warmup": "steps in which the rate rises",
    "decay": "what the rate does afterwards: linear (to 0 at the end) or constant",
    "weight_decay": "of matrices",
    "clip": "bound of the gradient's length, 0 for none",
    "accumulation": "batches a step; what a loss compares stays within one",
    "precision": "type the encoder computes in",
    "seed": "decides the order of sentences, dropout and heads",
    "max_length": "in tokens, for training",
    "eval_every": "steps between two scores, 0 for the start and the end only",
    "save_every": "steps between two checkpoints",
}


def _train_options(parser: argparse.ArgumentParser) -> None:
    from dataclasses import fields
    from typing import get_args

    from whitelab.encoders import BATCH_BYTES
    from whitelab.objectives import OBJECTIVES
    from whitelab.training import TrainConfig

    kinds = {field.name: (field.type, field.default) for field in fields(TrainConfig)}
    for name, text in _TRAIN.items():
        kind, default = kinds[name]
        shown = f"; one of {', '.join(OBJECTIVES)}" if name == "objective" else ""
        shown += "" if default is None else f" (default: {default})"
        number = next(one for one in (int, float, str) if one in (kind, *get_args(kind)))
        parser.add_argument(f"--{name.replace('_', '-')}", type=number, help=text + shown)
    parser.add_argument(
        "--corpus", metavar="PATH", help="text file, one sentence a line; or pairs, whose labels stay unused"
    )
    parser.add_argument(
        "--eval", metavar="PATH", help="folder, file or 'demo' to score on (default: nothing is scored)"
    )
    parser.add_argument("--task", help="which task of --eval")
    parser.add_argument("--split", default="test", help="train, dev, test or all (default: test)")
    parser.add_argument("--out", metavar="DIR", help="folder of the run (default: a new one, listed by `models`)")
    parser.add_argument("--resume", action="store_true", help="go on with the run in --out from its last checkpoint")
    parser.add_argument("--device", choices=tuple(BATCH_BYTES), help="default: the best there is")
    parser.add_argument("--json", action="store_true", help="print one JSON document a step, and one at the end")


def _download_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="a source of --list, such as senteval")
    parser.add_argument("--list", action="store_true", help="list the sources with their sizes and licences")
    parser.add_argument("--to", help="folder to fetch it into (default: the user's cache, where --data NAME finds it)")
    parser.add_argument(
        "--accept-licence", action="store_true", help="you have read the source's terms and accept them"
    )
    _json_option(parser)


def _app_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=8501)
    parser.add_argument("--address", default="127.0.0.1", help="0.0.0.0 serves the whole network")
    parser.add_argument("--headless", action="store_true", help="do not open a browser")


EXPORTS = ("sentence-transformers", "faiss", "npz")


# ---------------------------------------------------------------------------------------------- commands


def _models(args):
    from dataclasses import asdict

    from whitelab.catalogue import entries
    from whitelab.models import BUNDLED, ModelError, allowed, cached_models, find_model, trained_models

    try:
        files = find_model(BUNDLED)
        bundled = {
            "name": BUNDLED,
            "model": files.name,
            "layers": files.layers,
            "dim": files.dim,
            "ready": True,
        }
    except ModelError as error:
        bundled = {"name": BUNDLED, "ready": False, "reason": str(error)}
    listed = {one.name: asdict(one) | {"published_as": one.published_as} for one in entries()}
    here = (*trained_models(), *cached_models())
    cached = [{"name": name, "ready": True} | listed.pop(name, {}) for name in here]
    others = [one | {"ready": False} for one in listed.values()]
    trained = [{"name": name, "ready": True} for name in trained_models()]
    models = [bundled, *trained, *(one for one in (*cached, *others) if allowed(one["name"]))]
    lines = [f"{'ready' if one['ready'] else 'to download':12} {_model_line(one)}".rstrip() for one in models]
    return {"models": models}, lines


def _model_line(one: dict) -> str:
    if "parameters" not in one:
        return one["name"]
    details = f"{one['layers']} layers, d {one['dim']}, {one['parameters']:g} M"
    return f"{one['name']:48} {one['title']:32} {details}{', pickled' if one['weights'] == 'bin' else ''}"


def _datasets(args):
    tasks, lines = _tasks_of(args.data)
    return {"data": args.data, "tasks": tasks}, lines


def _tasks_of(data: str) -> tuple[list[dict], list[str]]:
    from whitelab.datasets import discover

    tasks = [
        {
            "name": task.name,
            "title": task.title,
            "splits": list(task.splits),
            "subsets": list(task.subset_names),
            "published": task.published,
        }
        for task in discover(data)
    ]
    return tasks, [f"{t['name']:12} splits {', '.join(t['splits'])}; subsets {', '.join(t['subsets'])}" for t in tasks]


def _download(args):
    from whitelab.datasets import fetch

    if args.list == bool(args.name):
        raise ValueError("name a source, or --list to see them")
    if args.list:
        return _sources()
    folder = str(fetch(args.name, args.to, accept_licence=args.accept_licence, progress=_progress("fetching", "bytes")))
    tasks, lines = _tasks_of(folder)
    return {"source": args.name, "folder": folder, "tasks": tasks}, [folder, *lines]


def _sources():
    from whitelab.datasets import SOURCES, fetched
    from whitelab.datasets.sources import readable

    sources = [
        {
            "name": one.name,
            "title": one.title,
            "tasks": {task: list(splits) for task, splits in one.tasks.items()},
            "size": one.size,
            "licence": one.licence,
            "terms": one.terms,
            "home": one.home,
            "folder": str(folder) if (folder := fetched(one.name)) else None,
        }
        for one in SOURCES.values()
    ]
    lines = [f"{s['name']:12} {readable(s['size']):>8}  {s['title']}; licence: {s['licence']}" for s in sources]
    return {"sources": sources}, lines


def _space(args):
    """The task's pairs, embeddings, encoder and report the options ask for; given vectors are their own encoder."""
    if getattr(args, "vectors", None):
        given = _vectors(args)
        return given.pairs, given.space, given, None
    pairs = _pairs(args, args.task)
    encoder = _encoder(args)
    return pairs, *_embedded(args, encoder, pairs)


def _vectors(args):
    """The task that `--vectors` and `--gold` hold."""
    from whitelab.vectors import read_vectors

    given = read_vectors(args.vectors, args.gold, args.task)
    for note in given.pairs.notes:
        print(f"note: {note}", file=sys.stderr)
    return given


def _pairs(args, task: str | None):
    from whitelab.datasets import load

    pairs = load(args.data, task, args.split, keep_going=args.skip_malformed)
    for problem in pairs.problems:
        print(f"left out: {problem}", file=sys.stderr)
    return pairs


def _encoder(args):
    from whitelab.encoders import load_encoder

    return load_encoder(
        args.model,
        num_layers=args.num_layers,
        device=args.device,
        dtype=args.dtype,
        max_length=args.max_length,
        allow_bin=args.allow_bin,
    )


def _embedded(args, encoder, pairs):
    """The embeddings, the encoder and the report; what a user should know of them goes to stderr."""
    from whitelab.evaluate import embed_pairs

    space, report = embed_pairs(encoder, pairs, args.pooling, store=_store(args), progress=_progress())
    for note in (*pairs.notes, *report.notes):
        print(f"note: {note}", file=sys.stderr)
    if report.truncated:
        print(f"note: {report.truncated} sentences were cut to {encoder.max_length} tokens", file=sys.stderr)
    return space, encoder, report


def _store(args):
    from whitelab.store import Store

    return None if args.no_store else Store(args.cache)


def _corpus(args, encoder):
    """The embedded text of `--fit`, None where the task's own sentences are enough."""
    from whitelab.evaluate import embed_scope
    from whitelab.scopes import OWN, scope_text

    if args.fit in OWN:
        return None
    text = scope_text(args.fit, args.data, args.task, args.skip_malformed)
    return embed_scope(encoder, text, args.pooling, store=_store(args), progress=_progress())


def _progress(doing: str = "encoding", unit: str = "tokens") -> Callable[[int, int], None] | None:
    """A line that counts up on a terminal; nothing where stderr is a file."""
    if not sys.stderr.isatty():
        return None
    start = time.monotonic()

    def show(done: int, total: int) -> None:
        left = (time.monotonic() - start) * (total - done) / done if done else 0
        end = "\n" if done == total else ""
        print(
            f"\r{doing} {done:,} of {total:,} {unit}, {left:.0f} s left ",
            end=end,
            file=sys.stderr,
            flush=True,
        )

    return show


def _protocol(args, pairs, encoder, layers=None):
    """The Protocol of the options; `layers` None stands for the last."""
    from whitelab.evaluate import Protocol

    return Protocol(
        model=encoder.name,
        data=pairs.source,
        task=pairs.task,
        split=pairs.split,
        pooling=getattr(encoder, "pooling", args.pooling),
        layers=layers or (encoder.n_layers - 1,),
        whitening=args.whitening,
        k=getattr(args, "k", None),
        fit=args.fit,
        aggregate=getattr(args, "aggregate", "all"),
        dtype=encoder.dtype,
        max_length=encoder.max_length,
    )


def _embed(args):
    pairs, space, encoder, report = _space(args)
    if args.out:
        from whitelab.vectors import write_npz

        write_npz(args.out, pairs, space)
    result = {
        "model": encoder.name,
        "task": pairs.task,
        "pooling": args.pooling,
        "device": encoder.device,
        "dtype": encoder.dtype,
        "layers": space.n_layers,
        "sentences": space.n_sentences,
        "dim": space.dim,
        "encoded": report.encoded,
        "reused": report.reused,
        "truncated": report.truncated,
        "seconds": report.seconds,
        "out": args.out,
    }
    return result, [f"{name:10} {value}" for name, value in result.items() if value is not None]


def _check_early(args) -> None:
    """Refuse what needs no model to refuse, before minutes are spent on encoding."""
    from whitelab.scopes import OWN, scope_text
    from whitelab.whitening import check_k, variant

    if getattr(args, "vectors", None):
        _check_vectors(args)
    elif getattr(args, "gold", None):
        raise ValueError(f"--gold {args.gold} needs --vectors; the scores of sentence pairs stand beside them")
    k = getattr(args, "k", None)
    if k is not None and (k < 1 or not variant(args.whitening).takes_k):
        check_k(k, args.whitening, max(k, 1))
    if args.fit not in (*OWN, "splits"):
        scope_text(args.fit, args.data, args.task, args.skip_malformed)


def _check_vectors(args) -> None:
    """Refuse options that only a model could answer to."""
    from whitelab.scopes import OWN

    asked = {"data": "demo", "split": "test", "model": "bundled", "pooling": "mean", "dtype": "float32"}
    asked |= dict.fromkeys(("num_layers", "max_length", "device"))
    for name, default in asked.items():
        if getattr(args, name) != default:
            option = f"--{name.replace('_', '-')} {getattr(args, name)}"
            raise ValueError(f"{option} does not go with --vectors, which stand for the data and the model")
    if args.fit not in OWN:
        raise ValueError(f"fit={args.fit!r} needs a model to embed that text; with --vectors use {' or '.join(OWN)}")


def _score(args):
    from whitelab.evaluate import score

    _check_early(args)
    pairs, space, encoder, _ = _space(args)
    protocol = _protocol(args, pairs, encoder, args.layers)
    found = score(space, protocol, _corpus(args, encoder))
    shown = "undefined" if found.spearman is None else f"{found.spearman:.2f}"
    lines = [f"Spearman x 100  {shown}  ({found.pairs} pairs, rank {found.rank} of {found.dim})"]
    if found.reason:
        lines.append(found.reason)
    if len(found.subsets) > 1:
        for name, one in found.subsets.items():
            value = "undefined" if one.spearman is None else f"{one.spearman:.2f}"
            lines.append(f"  {name:24} {value:>9}  {one.pairs} pairs")
    lines.append(found.line())
    return found.as_dict(), lines


def _layer_pairs(args):
    from whitelab.layers import layer_pairs

    if args.size is not None:
        return _layer_subsets(args)
    if args.top is not None:
        raise ValueError(f"--top {args.top} needs --size, such as --size all")
    _check_early(args)
    pairs, space, encoder, _ = _space(args)
    corpus = _corpus(args, encoder)
    found = layer_pairs(space, args.whitening, args.k, args.aggregate, fit=args.fit, corpus=corpus)
    cells = [{"layers": list(c.layers), "spearman": c.spearman, "rank": c.rank} for c in found.cells]
    best = found.best and {"layers": list(found.best.layers), "spearman": found.best.spearman}
    protocol = _protocol(args, pairs, encoder, tuple(range(space.n_layers))).as_dict() | {"layers": "every pair"}
    ranked = sorted((c for c in cells if c["spearman"] is not None), key=lambda c: -c["spearman"])
    lines = [f"{'+'.join(map(str, dict.fromkeys(c['layers']))):8} {c['spearman']:.2f}" for c in ranked]
    return {"cells": cells, "best": best, "pairs": space.n_pairs, "protocol": protocol}, lines


def _layer_subsets(args):
    """Every subset of `--size` layers, or a declared search, on one task or on the average of several."""
    from whitelab.checks import check_int
    from whitelab.subsets import check_sizes, search

    _check_early(args)
    top = check_int(10 if args.top is None else args.top, "top", 1)
    if args.vectors:
        encoder = _vectors(args)
        check_sizes(args.size, encoder.n_layers)
        tasks, spaces = [encoder.pairs], {encoder.pairs.task: encoder.space}
    else:
        tasks = [_pairs(args, task) for task in _tasks(args)]
        if len(tasks) > 1 and args.fit == "splits":
            raise ValueError(f"fit='splits' must go with one task, got {', '.join(one.task for one in tasks)}")
        encoder = _encoder(args)
        check_sizes(args.size, encoder.n_layers)
        spaces = {one.task: _embedded(args, encoder, one)[0] for one in tasks}
    corpus = _corpus(args, encoder)
    options = {"top": top, "fit": args.fit, "corpus": corpus}
    found = search(spaces, args.size, args.whitening, args.k, args.aggregate, **options)
    result = found.as_dict()
    protocol = _protocol(args, tasks[0], encoder, tuple(range(encoder.n_layers))).as_dict()
    protocol |= {"layers": found.strategy}
    if len(tasks) == 1:
        del result["tasks"]
    else:
        protocol |= {"task": list(spaces), "data": args.data, "average": "mean over tasks"}
    return result | {"protocol": protocol}, _subset_lines(found)


def _tasks(args) -> list[str | None]:
    """The tasks that `--task` names: one, several with commas, or all."""
    from whitelab.datasets import discover

    names = [task.name for task in discover(args.data)]
    if args.task is None or args.task in names:
        return [args.task]
    return names if args.task == "all" else list(dict.fromkeys(args.task.split(",")))


def _subset_lines(found) -> list[str]:
    over = f", averaged over {', '.join(found.tasks)}" if len(found.tasks) > 1 else ""
    lines = [f"scored {found.scored:,} subsets in {found.seconds:.2f} s{over}", f"{found.strategy}", ""]
    if found.best is None:
        return [*lines, "Spearman is not defined for any of them"]
    lines += ["layers  best   of that many layers"]
    lines += [f"{n:6}  {one.spearman:.2f}  {_joined(one.layers)}" for n, one in found.ranking.best_by_size.items()]
    lines += ["", "place   score  layers"]
    lines += [f"{one.place:5}   {one.spearman:.2f}  {_joined(one.layers)}" for one in found.ranking.top]
    if len(found.tasks) > 1:
        lines += ["", "task         best  layers; the average's best layers there"]
        for (name, own), there in zip(found.tasks.items(), found.best.tasks, strict=True):
            lines.append(f"{name:10}  {own.best.spearman:.2f}  {_joined(own.best.layers)}; {there:.2f}")
    counts = ", ".join(f"{layer}: {count}" for layer, count in enumerate(found.ranking.layer_counts))
    return [*lines, "", f"how often a layer is among the best 100: {counts}"]


def _joined(layers: Sequence[int]) -> str:
    return "+".join(map(str, layers))


def _each_curve(args):
    """One curve over k for each layer alone."""
    from whitelab.dimensions import k_curves

    pairs, space, encoder, _ = _space(args)
    corpus = _corpus(args, encoder)
    settings = {"by_subset": False, "fit": args.fit, "corpus": corpus}
    curves = k_curves(space, None, args.whitening, args.aggregate, **settings)
    protocol = _protocol(args, pairs, encoder, tuple(range(space.n_layers))).as_dict()
    records = [
        {
            "layers": list(one.layers),
            "k": list(one.k),
            "spearman": list(one.spearman),
            "best_k": one.best_k,
            "knee": one.knee,
            "rank": one.rank,
        }
        for one in curves
    ]
    lines = ["layer  best k  score at best k  knee  score at d  rank"]
    for one in curves:
        if one.best_k:
            best, whole = one.spearman[one.best_k - 1], _short(one.spearman[-1])
            lines.append(f"{one.layers[0]:5}  {one.best_k:6}  {best:15.2f}  {one.knee:4}  {whole:>10}  {one.rank:4}")
        else:
            lines.append(f"{one.layers[0]:5}  undefined")
    return {"curves": records, "protocol": protocol | {"k": "every k", "layers": "each"}}, lines


def _kcurve(args):
    from whitelab.dimensions import k_curve

    _check_early(args)
    if args.layers == "each":
        return _each_curve(args)
    pairs, space, encoder, _ = _space(args)
    protocol = _protocol(args, pairs, encoder, args.layers)
    corpus = _corpus(args, encoder)
    curve = k_curve(space, protocol.layers, args.whitening, args.aggregate, fit=args.fit, corpus=corpus)
    result = {
        "k": list(curve.k),
        "spearman": list(curve.spearman),
        "best_k": curve.best_k,
        "knee": curve.knee,
        "rank": curve.rank,
        "subsets": {name: list(values) for name, values in curve.subsets.items()},
        "protocol": protocol.as_dict() | {"k": "every k"},
    }
    shown = [k for k in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 768, 1024, space.dim) if k <= space.dim]
    lines = [
        f"k = {k:5}  {curve.spearman[k - 1]:.2f}" for k in dict.fromkeys(shown) if curve.spearman[k - 1] is not None
    ]
    if curve.best_k:
        lines.append(f"best k {curve.best_k}, within 0.5 points from k = {curve.knee}, rank {curve.rank}")
    return result, lines


def _compare(args):
    from whitelab.compare import PRESETS, compare, parse_settings, resample, written
    from whitelab.encoders import load_encoder

    if args.presets is not None:
        return _walk(args)
    settings = parse_settings(args.settings or PRESETS[args.protocol].settings)
    tasks, models = _compared(args)
    options = {"store": _store(args), "keep_going": args.skip_malformed, "dtype": args.dtype, "corpus": args.corpus}
    options["load"] = lambda name, dtype: load_encoder(name, dtype=dtype, allow_bin=args.allow_bin)
    cells = []
    for cell in compare(models, args.data, tasks, settings, args.protocol, **options):
        cells.append(cell)
        value = cell.reason or "undefined" if cell.spearman is None else f"{cell.spearman:.2f}"
        print(f"{cell.model} · {cell.setting} · {cell.task}: {value}", file=sys.stderr)
    drawn = resample(cells) if args.intervals else None
    rows = [cell.as_dict(drawn and drawn.interval(cell.row, cell.task)) for cell in cells]
    return {"rows": rows}, [written(cells, args.form or "markdown", args.protocol, args.corpus, drawn).rstrip("\n")]


def _compared(args) -> tuple[list[str], list[str]]:
    """The tasks and models that the options name."""
    from whitelab.datasets import discover

    present = [task.name for task in discover(args.data)]
    tasks = present if args.tasks == "all" else [name.strip() for name in args.tasks.split(",")]
    if missing := [name for name in tasks if name not in present]:
        raise ValueError(f"tasks={','.join(missing)!r} must be among {', '.join(present)}")
    return tasks, [name.strip() for name in args.models.split(",") if name.strip()]


def _walk(args):
    """From one preset to another, for each model."""
    from whitelab.compare import decisions, differences, parse_settings, walks, worded
    from whitelab.encoders import load_encoder

    names = [name.strip() for name in args.presets.split(",")]
    settings = parse_settings(args.settings) if args.settings else [None]
    if len(names) != 2 or len(settings) != 1:
        raise ValueError(f"presets={args.presets!r} must be two protocols such as whiteningbert,mteb, with one setting")
    (a, b), (setting,) = names, settings
    found = {field: [worded(field, one) for one in pair] for field, pair in differences(a, b, setting).items()}
    tasks, models = _compared(args)
    options = {"setting": setting, "corpus": args.corpus, "store": _store(args), "keep_going": args.skip_malformed}
    records, lines = [], []
    for model in models:
        encoder = load_encoder(model, dtype=args.dtype, allow_bin=args.allow_bin)
        for one in walks(encoder, args.data, tasks, a, b, **options):
            records.append(one.as_dict())
            lines += [*_steps(one), ""]
    same = [field for field in decisions(a, setting) if field not in found]
    return {"walks": records, "differences": found, "same": same}, lines[:-1]


def _steps(one) -> list[str]:
    from whitelab.compare import FIELDS, worded

    def number(value: float | None, sign: str = "") -> str:
        return "undefined" if value is None else f"{round(value, 2) + 0.0:{sign}.2f}"

    head = f"{one.model} · {one.task}: {one.a} {number(one.start)}, {one.b} {number(one.end)}"
    rows = [
        f"  {number(step.change, '+'):>9}  {number(step.spearman):>9}  {FIELDS[step.field]}: "
        f"{worded(step.field, step.before)} -> {worded(step.field, step.after)}"
        for step in one.steps
    ]
    return [f"{head} ({number(one.difference, '+')})", *rows]


def _probe(args):
    """Classification beyond STS, raw against whitened."""
    from whitelab.probe import FITS, How, probes, usual
    from whitelab.scopes import scope_text

    tasks = _labelled(args)
    names = ("fit", "metric", "folds", "standardize", "threshold")
    how = {name: getattr(args, name) for name in names} | {"neighbours": args.k}
    hows = [How(args.classifier or usual(one), **how) for one in tasks]
    if args.fit not in FITS:
        scope_text(args.fit, "", None)  # refused before a model is loaded
    models = [name.strip() for name in args.model.split(",") if name.strip()]
    options = {name: getattr(args, name) for name in ("dtype", "max_length", "num_layers", "allow_bin")}
    rows = []
    for row in probes(models, tasks, args.settings, hows, store=_store(args), **options):
        rows.append(row)
        print(_probe_line(row), file=sys.stderr)
        if row.starved:
            print(
                f"note: {row.fitted} texts span only {row.rank} of {row.dim} dimensions, so the map sets them equally "
                "far apart: keep fewer (@k), or fit on more text (--fit)",
                file=sys.stderr,
            )
    if all(row.accuracy is None for row in rows):
        raise ValueError(rows[0].reason)
    return {"rows": [row.as_dict() for row in rows]}, [_probe_line(row) for row in rows]


def _labelled(args) -> list:
    """The tasks that `--task` names, read."""
    from whitelab.datasets import ColumnNames, discover_labelled, load_labelled

    columns = ColumnNames(args.text, args.label, args.first, args.second, args.split_column)
    present = [task.name for task in discover_labelled(args.data)]
    names = present if args.task == "all" else [name.strip() for name in args.task.split(",")]
    options = {"columns": columns, "test": args.test, "positive": args.positive, "keep_going": args.skip_malformed}
    found = [load_labelled(args.data, name, **options) for name in names]
    for one in found:
        for problem in one.problems:
            print(f"left out: {problem}", file=sys.stderr)
        for note in one.notes:
            print(f"note: {one.task}: {note}", file=sys.stderr)
    return found


def _probe_line(row) -> str:
    head = f"{row.model} · {row.setting} · {row.task}: "
    if row.accuracy is None:
        return head + row.reason
    interval = "" if row.low is None else f" ({row.low:.2f} to {row.high:.2f}, baseline {row.baseline:.2f})"
    best = ""
    if row.pairs is not None:
        best = (
            f", best {row.pairs.best_accuracy:.2f} at {row.pairs.best_threshold:.3f}, "
            f"average precision {row.pairs.average_precision:.2f}"
        )
    return f"{head}accuracy {row.accuracy:.2f}{interval}{best} · {row.protocol}"


def _whiten(args):
    """Fit a map and write it, alone or with its encoder, for another tool."""
    from whitelab import export
    from whitelab.scopes import fit_scope

    _check_early(args)
    if args.fit == "cross":
        raise ValueError("fit='cross' fits two maps, and an export holds one: use task, splits or a path")
    pairs, space, encoder, _ = _space(args)
    protocol = _protocol(args, pairs, encoder, args.layers)
    fitted = fit_scope(space, protocol.layers, args.whitening, args.k, args.fit, _corpus(args, encoder))
    (whitener,), record = fitted.whiteners, protocol.as_dict() | {"layers": list(fitted.layers)}
    if args.export == "npz":
        export.to_npz(args.out, whitener, record)
    elif args.export == "faiss":
        export.to_faiss(args.out, whitener, record)
    else:
        export.to_sentence_transformers(args.out, encoder, fitted.layers, args.pooling, whitener, record)
    result = {
        "out": args.out,
        "export": args.export,
        "rank": fitted.rank,
        "dim": whitener.dense.shape[1],
        "sentences": fitted.count,
        "protocol": record,
    }
    line = protocol.with_(layers=fitted.layers).line(fitted.count, fitted.rank)
    return result, [f"{args.export} written to {args.out} ({result['dim']} dimensions)", line]


def _geometry(args):
    from whitelab.profiles import profile

    _check_early(args)
    pairs, space, encoder, _ = _space(args)
    corpus = _corpus(args, encoder)
    records, lines = [], ["layer  mean cosine  participation ratio  alignment  uniformity  (raw -> whitened)"]
    for layer in range(space.n_layers):
        before = profile(space, (layer,), "none", None, args.positives, args.aggregate).as_dict()
        settings = (args.whitening, args.k, args.positives, args.aggregate, args.fit, corpus)
        after = profile(space, (layer,), *settings).as_dict()
        names = ("mean_cosine", "participation_ratio", "alignment", "uniformity")
        lines.append(f"{layer:5}  " + "  ".join(f"{_short(before[n])} -> {_short(after[n])}" for n in names))
        for record in (before, after):
            del record["layers"]
        records.append({"layer": layer} | before | {"whitened": after})
    protocol = _protocol(args, pairs, encoder, tuple(range(space.n_layers))).as_dict()
    return {"layers": records, "protocol": protocol | {"positives": args.positives, "layers": "each"}}, lines


def _short(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4g}"


def _train(args):
    """A result a step, as it is done, and a summary."""
    from whitelab.runs import RunError, find_run

    if args.resume:
        if args.out is None:
            raise RunError("--resume needs --out, the folder of the run")
        run = find_run(args.out)
        _check_resumed(args, run.config)
    else:
        run = _new_run(args)
    try:
        with contextlib.closing(run.follow(args.resume, args.device)) as steps:
            for record in steps:
                yield record.as_dict(), [_step_line(record)]
    except Exception:
        if not run.records():  # what failed before its first step leaves nothing behind
            run.remove()
        raise
    found = run.summary()
    lines = [
        f"{found.state} after step {found.step} of {found.config.steps}"
        + (f": {found.message}" if found.message else "")
    ]
    if found.best is not None:
        lines.append(
            f"best at step {found.best.step}: {found.best.spearman:.2f} (untrained: {_short(found.start.spearman)})"
        )
    lines.append(f"model: {found.model or run.folder / 'model'}")
    yield {"summary": found.as_dict() | {"folder": str(run.folder)}}, lines


def _given(args) -> dict:
    return {name: getattr(args, name) for name in _TRAIN if getattr(args, name) is not None}


def _check_resumed(args, config) -> None:
    """Raise RunError for an option that is not what the run was begun with."""
    from whitelab.objectives import canonical
    from whitelab.runs import RunError

    given = _given(args) | ({} if args.corpus is None else {"corpus": args.corpus})
    given |= {"objective": canonical(args.objective)} if args.objective else {}
    for name, value in given.items():
        if value != getattr(config, name):
            raise RunError(f"{name}={value!r} must be {getattr(config, name)!r}, with which the run was begun")


def _new_run(args):
    from whitelab.datasets import load
    from whitelab.runs import create
    from whitelab.scopes import scope_text
    from whitelab.training import TrainConfig

    if args.corpus is None:
        raise ValueError("--corpus must name a text file, one sentence a line")
    pairs = None if args.eval is None else load(args.eval, args.task, args.split)
    scored = "" if pairs is None else f"{pairs.source}, {pairs.split} ({pairs.n_pairs} pairs)"
    config = TrainConfig(corpus=args.corpus, evaluation=scored, **_given(args))
    return create(config, tuple(scope_text(args.corpus, args.corpus, None)), pairs, args.out)


def _step_line(record) -> str:
    parts = [f"step {record.step:5}"]
    for name in ("loss", "gradient_norm", "spearman", "alignment", "uniformity", "effective_rank"):
        value = getattr(record, name)
        parts += [] if value is None else [f"{name.replace('_', ' ')} {value:.4g}"]
    return "  ".join([*parts, f"{record.seconds:.2f} s"] + ([record.message] if record.message else []))


def _app(args):
    import subprocess

    app = Path(__file__).resolve().parents[1] / "app.py"
    command = [sys.executable, "-m", "streamlit", "run", str(app), "--server.port", str(args.port)]
    command += ["--server.address", args.address, "--server.headless", str(args.headless).lower()]
    # The settings and the page folder are found from the folder of app.py.
    subprocess.run(command, cwd=app.parent, check=False)
    return None, []


COMMANDS = {
    "models": ("list the models that can be used", _models_options, _models),
    "datasets": ("list the tasks a folder or file holds", _datasets_options, _datasets),
    "download": ("fetch a published benchmark, after its licence was shown", _download_options, _download),
    "embed": ("embed a task's sentences in every layer and keep them", _embed_options, _embed),
    "score": ("Spearman of one setting", _score_options, _score),
    "layers": ("Spearman of every pair of layers, or of every subset", _pairs_options, _layer_pairs),
    "kcurve": ("Spearman for every number of kept dimensions", _kcurve_options, _kcurve),
    "geometry": ("isotropy, alignment and uniformity of every layer", _geometry_options, _geometry),
    "compare": ("models, settings and tasks side by side, as in the papers' tables", _compare_options, _compare),
    "probe": ("classification beyond STS: neighbours, a linear probe, SentEval, a threshold", _probe_options, _probe),
    "whiten": ("fit a map and export it to another tool", _whiten_options, _whiten),
    "train": ("train an encoder without labels, a result a step", _train_options, _train),
    "app": ("open the laboratory in a browser", _app_options, _app),
}
