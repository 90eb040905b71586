"""`score`: Spearman of one setting."""

import argparse

from whitelab.cli.options import aggregate_option, layers_option, space_options, whitening_options
from whitelab.cli.spaces import fit_ahead, open_space, setting_of
from whitelab.cli.writing import number


def add_options(parser: argparse.ArgumentParser) -> None:
    space_options(parser)
    layers_option(parser)
    whitening_options(parser, "none")
    aggregate_option(parser)


def run(args):
    from whitelab.scoring.score import score

    setting = setting_of(args)
    space, *_ = open_space(args, setting)
    cost = fit_ahead(space, [setting])
    result = score(space, setting)
    lines = [f"Spearman x 100  {number(result.spearman)}  ({result.pairs} pairs, rank {result.rank} of {result.dim})"]
    if result.reason:
        lines.append(result.reason)
    if len(result.subsets) > 1:
        for name, subset in result.subsets.items():
            lines.append(f"  {name:24} {number(subset.spearman):>9}  {subset.pairs} pairs")
    lines.append(result.line())
    return {"setting": str(result.protocol.setting)} | result.as_dict() | cost, lines
