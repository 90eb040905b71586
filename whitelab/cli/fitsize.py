"""`fitsize`: the score by the number of sentences a map is fitted on, for the setting's, a shrunk and a soft map."""

import argparse

from whitelab.cli.options import (
    FIT_OF_ROWS,
    aggregate_option,
    layers_option,
    space_options,
    whitening_options,
)
from whitelab.cli.spaces import for_sweeps, open_space, setting_of
from whitelab.cli.writing import number, progress


def add_options(parser: argparse.ArgumentParser) -> None:
    space_options(parser)
    layers_option(parser)
    whitening_options(parser, "pca", fit=FIT_OF_ROWS)
    aggregate_option(parser)
    parser.add_argument("--seed", type=int, default=0, help="draws the sentences (default: 0)")


def run(args):
    from whitelab.base.checks import check_int
    from whitelab.scoring.score import score
    from whitelab.scoring.setting import Protocol
    from whitelab.sweeps.fit_size import fit_sizes, with_shrunk

    check_int(args.seed, "seed", 0)
    setting = setting_of(args)
    settings = with_shrunk(setting)
    space, *_ = open_space(args, setting, settings)
    space = for_sweeps(args, space, *settings)
    *_, points = fit_sizes(space, settings, seed=args.seed, progress=progress("fitting", "sizes"))
    curves, names = [], []
    for one in settings:
        own = [point for point in points if point.setting.whitening == one.on(space).whitening]
        names.append(own[0].setting.whitening)
        curves.append(
            {
                "setting": str(own[0].setting),
                "fitted": [point.sentences for point in own],
                "spearman": [point.score for point in own],
                "cross_fitted": [point.cross_fitted for point in own],
                "held_out_isotropy": [point.isotropy for point in own],
                "held_out": [point.unseen for point in own],
                "rank": [point.rank for point in own],
            }
        )
    raw = score(space, setting.raw, isotropy=False).spearman
    result = {"dim": space.dim, "raw": raw, "seed": args.seed, "curves": curves}
    lines = ["sentences  n / d  " + "  ".join(f"{name[:25]:>25}" for name in names)]
    for row, size in enumerate(curves[0]["fitted"]):
        cells = (f"{number(curve['spearman'][row]):>13} ({number(curve['cross_fitted'][row]):>9})" for curve in curves)
        lines.append(f"{size:9}  {size / space.dim:5.2f}  {'  '.join(cells)}")
    crossed = (
        "undefined where half of the sentences are fewer"
        if setting.fit in ("task", "cross")
        else "undefined of maps that are not fitted on these sentences alone"
    )
    lines.append(f"in brackets: cross-fitted, {crossed}; each sentence counts once; raw {number(raw)}, d {space.dim}")
    return result | {"protocol": Protocol(setting.on(space), space.origin).as_dict()}, lines
