"""`compare`: models, settings and tasks side by side, or the walk from one preset to another."""

import argparse
import re
from functools import partial
from pathlib import Path

from whitelab.cli.options import bin_option, dtype_option, model_names, names, source_option, store_options, task_names
from whitelab.cli.spaces import open_store, say_if_few
from whitelab.cli.writing import RowLog, left_out, note, number, say


def add_options(parser: argparse.ArgumentParser) -> None:
    from whitelab.compare import PRESETS

    parser.add_argument("--models", default="bundled", help="names or folders, separated by commas (default: bundled)")
    source_option(parser)
    parser.add_argument("--tasks", default="all", help="'all', or names separated by commas")
    parser.add_argument(
        "--settings",
        help="'table1', or settings such as 'cls/L-1;L1+L6:pca@256'; L* is each layer (default: the preset's own)",
    )
    parser.add_argument(
        "--preset",
        "--protocol",
        choices=tuple(PRESETS),
        help="the paper or benchmark that decides everything but the settings (default: whiteningbert)",
    )
    parser.add_argument("--corpus", help="what bert-whitening-corpus fits on: a text file, pairs, a folder or 'demo'")
    parser.add_argument(
        "--presets",
        metavar="A,B",
        help="walk from one preset to another instead, changing one choice at a time; --settings may name one "
        "setting for both (default: each preset's own)",
    )
    parser.add_argument("--intervals", action="store_true", help="add 95 %% intervals, from resampled pairs")
    parser.add_argument(
        "--mteb", metavar="PATH", help="a result file of MTEB, or a folder of them, whose scores follow as rows"
    )
    parser.add_argument(
        "--mteb-out",
        metavar="DIR",
        help="also write every score in MTEB's layout, DIR/MODEL/SETTING/TASK.json, "
        "under a preset that scores all pairs of a task together, as MTEB does",
    )
    parser.add_argument("--skip-malformed", dest="keep_going", action="store_true", help="leave malformed rows out")
    bin_option(parser)
    dtype_option(parser)
    store_options(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON document on stdout")
    form.add_argument("--csv", dest="form", action="store_const", const="csv", help="print a table as CSV")
    form.add_argument("--latex", dest="form", action="store_const", const="latex", help="print a LaTeX table")
    form.add_argument("--markdown", dest="form", action="store_const", const="markdown", help="the default")


def run(args):
    from whitelab.compare import (
        PRESETS,
        Grid,
        compare,
        mteb_rows,
        pivot,
        read_mteb,
        resample,
        settings_for,
        starved_note,
        tried,
        write_mteb,
        written,
    )
    from whitelab.encoding.checkpoints import find_model, on_disk

    if args.presets is not None:
        return _walk(args)
    args.preset = args.preset or "whiteningbert"
    _check_rows(args)
    tasks, models = _compared(args)
    if "L*" in (args.settings or ""):
        found = (tried(partial(find_model, model, allow_bin=args.allow_bin)) for model in models if not on_disk(model))
        note(*(why for why in found if isinstance(why, str)))
    settings, starred = settings_for(models, args.settings or PRESETS[args.preset].settings)
    lacking = _say_what_lacks([args.preset], args.data, tasks)
    published = read_mteb(args.mteb) if args.mteb else ()  # before minutes of embedding
    shared = args.preset, args.dtype, args.keep_going, args.corpus
    bins = models if args.allow_bin else ()
    grid = Grid(models, args.data, tasks, settings, *shared, allow_bin=bins, starred=starred)
    log = RowLog(lambda cell: f"{cell.model} · {cell.setting} · {cell.task}: {cell.reason or number(cell.spearman)}")
    for cell in compare(grid, store=open_store(args)):
        log.take(cell)
    log.check("nothing could be scored: ")
    cells = log.rows
    drawn = resample(cells) if args.intervals else None
    if drawn:
        say_if_few(min(cell.score.pairs for cell in cells if cell.score), "pairs")
    rows = [drawn.record(cell) if drawn else cell.as_dict() for cell in cells]
    whole = {cell.row: str(cell.protocol.setting) for cell in cells if cell.protocol}
    for row, cell in zip(rows, cells, strict=True):  # with what the preset decides: `score` gives the same number
        row["setting"] = whole.get(cell.row, row["setting"])
    record, given = {"rows": rows}, mteb_rows(published, pivot(cells)[0])
    if args.mteb:
        record["mteb"] = [{"model": model, "row": row, "spearman": scores} for model, row, scores in given]
        if not given:
            say(f"--mteb {args.mteb} has no test score of {', '.join(tasks)}")
    _say_of_data(cells)
    if starved := starved_note(cells):
        note(starved)
    if args.mteb_out:
        record["written"] = [str(path) for path in write_mteb(cells, args.mteb_out)]
        say(f"{len(record['written'])} results written below {args.mteb_out}")
    form = args.form or "markdown"
    return record, [written(cells, form, args.preset, args.corpus, drawn, given, lacking, args.data).rstrip("\n")]


def _check_rows(args) -> None:
    """Refuse what does not go with rows of scores, before anything is read."""
    from whitelab.compare import PRESETS, check_mteb_aggregate

    _check_corpus(args, [args.preset])
    if args.mteb_out:
        check_mteb_aggregate(PRESETS[args.preset].aggregate)
    if args.mteb_out and any(path.is_file() for path in (Path(args.mteb_out), *Path(args.mteb_out).parents)):
        raise ValueError(f"--mteb-out {args.mteb_out} must be a folder, and a file is there")
    if re.search(r"\b(fit|aggregate)=", args.settings or ""):  # also where they are named as they are usually
        raise ValueError(f"setting={args.settings!r} must leave fit and aggregate to the preset {args.preset}")


def _check_corpus(args, presets: list[str]) -> None:
    from whitelab.compare import PRESETS
    from whitelab.compare.presets import CORPUS

    if args.corpus is not None and not any(PRESETS[name].fit == CORPUS for name in presets if name in PRESETS):
        raise ValueError(f"--corpus goes with the preset bert-whitening-corpus, not with {' and '.join(presets)}")


def _say_what_lacks(presets: list[str], data: str, tasks: list[str]) -> tuple[str, ...]:
    from whitelab.compare import lacking_splits

    lacking = lacking_splits(presets, data, tasks)
    note(*lacking)
    return lacking


def _say_of_data(rows) -> None:
    """What was left out, and what there is to know of the rest."""
    from whitelab.compare import notes_of

    left_out(dict.fromkeys(problem for row in rows for problem in row.problems))
    note(*notes_of(rows))


def _compared(args) -> tuple[list[str], list[str]]:
    """The tasks and models that the options name."""
    from whitelab.datasets import discover

    present = [task.name for task in discover(args.data)]
    tasks = task_names(args.tasks, present)
    if missing := [name for name in tasks if name not in present]:
        raise ValueError(f"tasks={','.join(missing)!r} must be among {', '.join(present)}")
    return tasks, model_names(args.models)


def _walk(args):
    """From one preset to another, for each model."""
    from whitelab.compare import decisions, differences, walks, worded
    from whitelab.encoding.encoders import load_encoder
    from whitelab.scoring.setting import parse_settings

    given = [name for name in ("preset", "intervals", "mteb", "mteb_out") if vars(args)[name]]
    if given or args.form:
        wrong = (given or [args.form])[0].replace("_", "-")
        raise ValueError(f"--{wrong} goes with rows of scores, not with the walk of --presets")
    presets = names(args.presets)
    settings = parse_settings(args.settings) if args.settings else [None]
    if len(presets) != 2 or len(set(presets)) != 2:
        raise ValueError(f"presets={args.presets!r} must be two different presets, such as whiteningbert,mteb")
    if len(settings) != 1:
        raise ValueError(f"settings={args.settings!r} must be one setting for both presets, got {len(settings)}")
    (a, b), (setting,) = presets, settings
    differ = differences(a, b, setting, args.data)
    changed = {field: [worded(field, one) for one in pair] for field, pair in differ.items()}
    _check_corpus(args, presets)
    tasks, models = _compared(args)
    _say_what_lacks(presets, args.data, tasks)
    options = {"setting": setting, "corpus": args.corpus, "store": open_store(args), "keep_going": args.keep_going}
    found, lines = [], []
    for model in models:
        encoder = load_encoder(model, dtype=args.dtype, allow_bin=args.allow_bin)
        for one in walks(encoder, args.data, tasks, a, b, **options):
            found.append(one)
            lines += [*_steps(one), ""]
    if all(value is None for one in found for value in (one.start, *(step.spearman for step in one.steps))):
        raise ValueError(f"nothing could be scored: {'; '.join(dict.fromkeys(one.gap for one in found))}")
    _say_of_data(found)
    same = [field for field in decisions(a, setting) if field not in changed]
    return {"walks": [one.as_dict() for one in found], "differences": changed, "same": same}, lines[:-1]


def _steps(one) -> list[str]:
    from whitelab.compare import FIELDS, idle_words, worded

    def shown(value: float | None, sign: str = "") -> str:
        return number(value, f"{sign}z.2f")

    head = f"{one.model} · {one.task}: {one.a} {shown(one.start)}, {one.b} {shown(one.end)}"
    rows = [
        f"  {shown(step.change, '+'):>9}  {shown(step.spearman):>9}  {FIELDS[step.field]}: "
        f"{worded(step.field, step.before)} -> {worded(step.field, step.after)}"
        for step in one.steps
    ]
    last = one.gap or idle_words(one.idle)
    return [f"{head} ({shown(one.difference, '+')})", *rows, *[f"  {last}"] * bool(last)]
