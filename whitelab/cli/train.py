"""`train`: an encoder without labels, a result a step."""

import argparse
import contextlib
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from whitelab.cli.options import columns_option, device_option, json_option, split_option
from whitelab.cli.writing import note, say, short, step_line

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
    "dropout": "of the encoder, in training alone (default: the model's own)",
    "positives": "pairs the alignment is over: gt4, ge4 or top; top where scores do not run from 0 to 5",
    "eval_every": "steps between two scores, 0 for the start and the end only",
    "save_every": "steps between two checkpoints",
}

# What a line says of a step.
_SHOWN = ("loss", "gradient_norm", "spearman", "alignment", "uniformity", "effective_rank")

# Options that say what a run is scored on; one that is resumed has its pairs in its folder.
_PAIRS = ("eval", "task", "split", "columns")


def add_options(parser: argparse.ArgumentParser) -> None:
    from dataclasses import fields
    from typing import get_args

    from whitelab.training import TrainConfig
    from whitelab.training.objectives import OBJECTIVES

    kinds = {field.name: (field.type, field.default) for field in fields(TrainConfig)}
    for name, text in _TRAIN.items():
        kind, default = kinds[name]
        shown = f"; one of {', '.join(OBJECTIVES)}" if name == "objective" else ""
        shown += "" if default is None else f" (default: {default})"
        kind = next(one for one in (int, float, str) if one in (kind, *get_args(kind)))
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, help=text + shown)
    parser.add_argument(
        "--corpus",
        metavar="PATH",
        help="text file, one sentence a line; or a table of pairs, triplets or texts, whose labels stay unused",
    )
    parser.add_argument(
        "--eval", metavar="PATH", help="folder, file or 'demo' to score on (default: nothing is scored)"
    )
    parser.add_argument("--task", help="which task of --eval")
    split_option(parser)
    columns_option(parser)
    parser.add_argument("--out", metavar="DIR", help="folder of the run (default: a new one, listed by `models`)")
    parser.add_argument(
        "--resume", action="store_true", help="go on with the run in --out, or of that name, from its last checkpoint"
    )
    device_option(parser)
    json_option(parser, "one JSON document a step, and one at the end")


def run(args):
    """A result a step, as it is done, and a summary."""
    from whitelab.training.config import OPTIMISTIC
    from whitelab.training.runs import RunError, find_run

    if args.resume:
        if args.out is None:
            raise RunError("--resume needs --out, the folder or the name of the run")
        run = find_run(args.out)
        _check_resumed(args, run)
    else:
        run = _new_run(args)
    args.run = run  # of which an interruption says what it leaves
    try:
        with _asked_to_stop() as stop, contextlib.closing(run.follow(args.resume, args.device)) as steps:
            for record in steps:
                yield record.as_dict(), [step_line(record, _SHOWN, 2)]
                if record.note:
                    note(record.note)
                if stop.is_set() and not record.stop and record.step < run.config.steps:
                    break
    except Exception:
        if not args.resume and not run.records():  # what failed before its first step leaves nothing behind
            run.remove()
        raise
    found = run.summary()
    lines = [
        f"{found.state} after step {found.step} of {found.config.steps}"
        + (f": {found.message}" if found.message else "")
    ]
    if found.best is not None:
        lines.append(
            f"best at step {found.best.step}: {found.best.spearman:.2f} (the start: {short(found.start.spearman)})"
        )
        lines.append(
            f"scored on {run.config.without_paths()['evaluation'] or 'pairs given in Python'}: raw vectors of the last "
            f"layer, {run.config.pooling} pooling, aggregate all. {OPTIMISTIC}"
        )
    lines.append(f"model: {found.model or run.folder / 'model'}")
    yield {"summary": found.as_dict() | {"folder": str(run.folder)}}, lines
    if stop.is_set() and found.resumable:
        raise KeyboardInterrupt


@contextlib.contextmanager
def _asked_to_stop() -> Iterator[threading.Event]:
    """An event that a first Ctrl-C sets, so that a step can be ended; a second interrupts as usual."""
    stop, usual = threading.Event(), signal.getsignal(signal.SIGINT)

    def first(*_) -> None:
        signal.signal(signal.SIGINT, usual)
        stop.set()
        say("it ends after this step, with a checkpoint; Ctrl-C again ends it at once")

    if usual is signal.default_int_handler:  # and not ignored, as in the background
        signal.signal(signal.SIGINT, first)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, usual)


def _given(args) -> dict:
    return {name: getattr(args, name) for name in _TRAIN if getattr(args, name) is not None}


def _pairs(args):
    """The pairs of --eval; None without it."""
    from whitelab.cli.spaces import of_split
    from whitelab.datasets import load

    read = partial(load, args.eval, args.task, columns=args.columns or ())
    return None if args.eval is None else of_split(args.split, read)


def _check_resumed(args, run) -> None:
    """Raise RunError for an option that is not what the run was begun with."""
    from whitelab.training.objectives import canonical
    from whitelab.training.runs import RunError

    config, given = run.config, [name for name in _PAIRS if getattr(args, name) is not None]
    if given and not _are_of(args, run):
        begun = f"scored on {config.evaluation}" if config.evaluation else "scored on nothing"
        raise RunError(
            f"--{given[0]} must name the pairs with which the run was begun, as they were then ({begun}); it keeps "
            "them: leave it out"
        )
    given = _given(args) | ({} if args.corpus is None else {"corpus": args.corpus})
    given |= {"objective": canonical(args.objective)} if args.objective else {}
    for name, value in given.items():
        if value != getattr(config, name):
            raise RunError(f"{name}={value!r} must be {getattr(config, name)!r}, with which the run was begun")


def _are_of(args, run) -> bool:
    """Whether the pairs that are named are there, and those of the run."""
    from whitelab.datasets import DataError

    with contextlib.suppress(DataError):
        return args.eval is not None and _pairs(args).fingerprint == run.pairs_fingerprint
    return False


def _new_run(args):
    from whitelab.base.wording import quantity
    from whitelab.datasets import tabs_note
    from whitelab.scoring.fit_text import scope_text
    from whitelab.statistics.geometry import usual_positives
    from whitelab.training import TrainConfig
    from whitelab.training.runs import create, repeat_note, runs

    config = TrainConfig(**_given(args))  # refused before a file is looked at
    if args.eval is None:
        for name in ("task", "split", "columns", "eval_every", "positives"):
            if getattr(args, name):  # 0 is never
                raise ValueError(f"--{name.replace('_', '-')} goes with --eval, the pairs that are scored")
    if args.corpus is None:
        raise ValueError("--corpus must name a text file, one sentence a line")
    pairs = _pairs(args)
    scored = "" if pairs is None else f"{pairs.source}, {pairs.split} ({quantity(pairs.n_pairs, 'pair')})"
    config = replace(config, corpus=args.corpus, evaluation=scored)
    if pairs is not None and args.positives is None:
        config = replace(config, positives=usual_positives(pairs.gold))
    sentences = tuple(scope_text(args.corpus, args.corpus, None))
    note(*filter(None, [tabs_note(sentences)]), *(pairs.notes if pairs else ()))
    if pairs and (shared := len({*sentences} & {*pairs.sentences})):
        note(f"{quantity(shared, 'sentence is', 'sentences are')} trained on and scored too, without their labels")
    if same := next((one for one in runs() if one.repeats(config, sentences, pairs)), None):
        note(f"{repeat_note(same.name, same.state())}; another --seed makes another run")
    return create(config, sentences, pairs, args.out)
