"""`probe`: classification beyond STS, raw against whitened."""

import argparse

from whitelab.cli.options import (
    bin_option,
    column_options,
    depth_option,
    dtype_option,
    json_option,
    malformed_option,
    model_names,
    store_options,
    task_names,
)
from whitelab.cli.spaces import open_store
from whitelab.cli.writing import COLUMN, RowLog, left_out, note

# Options that some classifiers have no use for -> the field of `How` that each is, and what it goes with.
_OF_SOME = {
    "k": ("neighbours", "--classifier knn; directions to keep stand in --settings, such as L6:pca@64"),
    "metric": ("metric", "--classifier knn"),
    "folds": ("folds", "cross-validation, and no task here is scored by it"),
    "standardize": ("standardize", "a classifier that learns, not with a threshold"),
    "threshold": ("threshold", "--classifier threshold"),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    from whitelab.probe import CLASSIFIERS, DEFAULT
    from whitelab.probe.classifiers import METRICS

    parser.add_argument(
        "--data", default="demo", help="a table, a folder of tables or in SentEval's layout, or 'demo' (the default)"
    )
    parser.add_argument("--task", default="all", help="'all', or names separated by commas, such as MR,TREC")
    parser.add_argument("--test", metavar="FILE", help="a second table that holds the test rows")
    column_options(parser)
    parser.add_argument("--split-column", metavar=COLUMN, help="column that says train, dev or test")
    parser.add_argument(
        "--positive", metavar="CLASS", help="of pairs, the class that says that they match (RTE on the hub: 0)"
    )
    malformed_option(parser)
    parser.add_argument("--model", default="bundled", help="names or folders, separated by commas (default: bundled)")
    bin_option(parser)
    depth_option(parser)
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
        metavar="train|all|demo|PATH",
        help="what the whitening is fitted on: the training texts, all texts, 'demo' (bundled) or other text "
        "(default: train)",
    )
    parser.add_argument("--k", type=int, help="neighbours of knn (default: 5)")
    parser.add_argument("--metric", choices=METRICS, help="distance of knn (default: euclidean)")
    parser.add_argument(
        "--folds",
        type=int,
        help="of cross-validation (default: 10); fewer where a class has fewer different rows, as the result says",
    )
    parser.add_argument("--standardize", action="store_true", default=None, help="features to mean 0 and variance 1")
    parser.add_argument("--threshold", type=float, help="a pair matches from this cosine on (default: 0.5)")
    parser.add_argument("--max-length", type=int, help="in tokens, special ones included")
    dtype_option(parser)
    store_options(parser)
    json_option(parser)


def run(args):
    """Classification beyond STS, raw against whitened."""
    from whitelab.base.wording import cut_note
    from whitelab.probe import FITS, probes
    from whitelab.scoring.fit_text import scope_text
    from whitelab.whitening import too_few

    tasks = _labelled(args)
    hows = _hows(args, tasks)
    if args.fit not in FITS:
        scope_text(args.fit, "", None)  # refused before a model is loaded
    options = {name: getattr(args, name) for name in ("dtype", "max_length", "num_layers", "allow_bin")}
    log, cut = RowLog(_probe_line), {}
    for row in probes(model_names(args.model), tasks, args.settings, hows, store=open_store(args), **options):
        log.take(row)
        if row.starved:
            note(too_few(row.setting.whitening, row.rank, row.dim))
        if row.truncated:
            cut[f"{row.model} · {row.task}: {cut_note(row.truncated, 'text', row.max_length)}"] = None
    log.check()
    note(*cut)
    return {"rows": [row.as_dict() for row in log.rows]}, log.lines()


def _hows(args, tasks) -> list:
    """How each task is classified. Raises ValueError for an option that decides nothing on any of them."""
    from whitelab.base.checks import check_int
    from whitelab.probe import How, usual

    if args.k is not None:
        check_int(args.k, "k", 1)
    given = {name: one for name, one in _OF_SOME.items() if getattr(args, name) is not None}
    fields = {field: getattr(args, name) for name, (field, _) in given.items()}
    hows = [How(args.classifier or usual(one), fit=args.fit, **fields) for one in tasks]
    for name, (field, what) in given.items():
        if not any(how.uses(field, one) for how, one in zip(hows, tasks, strict=True)):
            raise ValueError(f"--{name} goes with {what}")
    return hows


def _labelled(args) -> list:
    """The tasks that `--task` names, read."""
    from whitelab.datasets import ColumnNames, discover_labelled, load_labelled

    columns = ColumnNames(args.text, args.label, args.first, args.second, args.split_column)
    present = [task.name for task in discover_labelled(args.data)]
    options = {"columns": columns, "test": args.test, "positive": args.positive, "keep_going": args.keep_going}
    found = [load_labelled(args.data, name, **options) for name in task_names(args.task, present)]
    for one in found:
        left_out(one.problems)
        for text in one.notes:
            note(f"{one.task}: {text}")
    return found


def _probe_line(row) -> str:
    head = f"{row.model} · {row.setting} · {row.task}: "
    if row.accuracy is None:
        return head + row.reason
    interval = "" if row.low is None else f" ({row.low:.2f} to {row.high:.2f}, baseline {row.baseline:.2f})"
    best = f", C {' or '.join(f'{c:g}' for c in sorted(set(row.c)))}" if row.c else ""
    if row.pairs is not None:
        best = (
            f", best {row.pairs.best_accuracy:.2f} at {row.pairs.best_threshold:.3f}, "
            f"average precision {row.pairs.average_precision:.2f}"
        )
    return f"{head}accuracy {row.accuracy:.2f}{interval}{best} · {row.protocol}"
