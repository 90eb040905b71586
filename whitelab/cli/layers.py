"""`layers`: every pair of layers, or every subset of `--size` layers."""

import argparse

from whitelab.base.progress import silent
from whitelab.cli.options import (
    WHOLE_OF_LAYERS,
    aggregate_option,
    space_options,
    task_names,
    whitening_options,
)
from whitelab.cli.spaces import (
    embed_task,
    for_sweeps,
    load_model,
    open_space,
    protocol_over,
    read_given,
    read_pairs,
    setting_of,
    with_fit_text,
)
from whitelab.cli.writing import joined, progress


def add_options(parser: argparse.ArgumentParser) -> None:
    space_options(parser)
    whitening_options(parser, "none", whole=WHOLE_OF_LAYERS)
    aggregate_option(parser)
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


def run(args):
    from whitelab.base.checks import check_int
    from whitelab.sweeps.layer_pairs import layer_pairs
    from whitelab.whitening import of_rows

    if args.top is not None:
        check_int(args.top, "top", 1)
    if args.size is not None:
        return _layer_subsets(args)
    if args.top is not None:
        raise ValueError(f"--top {args.top} needs --size, such as --size all")
    setting = setting_of(args)
    space, *_ = open_space(args, setting)
    space = for_sweeps(args, space, setting)
    pairs = layer_pairs(
        space, setting, progress("scoring", "pairs of layers") if of_rows(setting.whitening) else silent
    )
    cells = [{"layers": list(cell.layers), "spearman": cell.spearman, "rank": cell.rank} for cell in pairs.cells]
    best = pairs.best and {"layers": list(pairs.best.layers), "spearman": pairs.best.spearman}
    protocol = protocol_over(space, setting, "every pair")
    ranked = sorted((c for c in cells if c["spearman"] is not None), key=lambda c: -c["spearman"])
    lines = [f"{joined(dict.fromkeys(c['layers'])):8} {c['spearman']:.2f}" for c in ranked]
    return {"cells": cells, "best": best, "pairs": space.n_pairs, "protocol": protocol}, lines


def _layer_subsets(args):
    """Every subset of `--size` layers, or a declared search, on one task or on the average of several."""
    from whitelab.sweeps.layer_subsets import check_sizes, search_subsets

    setting = setting_of(args)
    top = 10 if args.top is None else args.top
    if args.vectors:
        encoder = read_given(args)
        check_sizes(args.size, encoder.n_layers)
        tasks, spaces = [encoder.pairs], {encoder.pairs.task: encoder.space}
    else:
        tasks = [read_pairs(args, task) for task in _tasks(args)]
        if len(tasks) > 1 and setting.fit == "splits":
            raise ValueError(f"fit='splits' must go with one task, got {', '.join(one.task for one in tasks)}")
        encoder = load_model(args, setting)
        check_sizes(args.size, encoder.n_layers)
        spaces = {pairs.task: embed_task(args, encoder, pairs, setting)[0] for pairs in tasks}
        spaces = {task: with_fit_text(args, encoder, space, setting) for task, space in spaces.items()}
    spaces = {task: for_sweeps(args, space, setting) for task, space in spaces.items()}
    found = search_subsets(spaces, setting, args.size, top=top, progress=progress("scoring", "subsets of layers"))
    result = found.as_dict()
    protocol = protocol_over(spaces[tasks[0].task], setting, found.strategy)
    if len(tasks) == 1:
        del result["tasks"]
    else:
        protocol |= {"task": list(spaces), "data": args.data, "average": "mean over tasks"}
    return result | {"protocol": protocol}, _subset_lines(found)


def _tasks(args) -> list[str | None]:
    """The tasks that `--task` names: one, several with commas, or all."""
    from whitelab.datasets import discover

    present = [task.name for task in discover(args.data)]
    if args.task is None or args.task in present:
        return [args.task]
    return list(dict.fromkeys(task_names(args.task, present)))


def _subset_lines(found) -> list[str]:
    over = f", averaged over {', '.join(found.tasks)}" if len(found.tasks) > 1 else ""
    lines = [f"scored {found.scored:,} subsets in {found.seconds:.2f} s{over}", found.strategy, *found.notes, ""]
    if found.best is None:
        return [*lines, "Spearman is not defined for any of them"]
    lines += ["layers  best   of that many layers"]
    lines += [f"{n:6}  {one.spearman:.2f}  {joined(one.layers)}" for n, one in found.ranking.best_by_size.items()]
    lines += ["", "place   score  layers"]
    lines += [f"{one.place:5}   {one.spearman:.2f}  {joined(one.layers)}" for one in found.ranking.top]
    if len(found.tasks) > 1:
        lines += ["", "task         best  layers; the average's best layers there"]
        for (name, own), there in zip(found.tasks.items(), found.best.tasks, strict=True):
            lines.append(f"{name:10}  {own.best.spearman:.2f}  {joined(own.best.layers)}; {there:.2f}")
    counts = ", ".join(f"{layer}: {count}" for layer, count in enumerate(found.ranking.needed))
    return [*lines, "", f"how often a layer is among the best {found.ranking.counted}: {counts}"]
