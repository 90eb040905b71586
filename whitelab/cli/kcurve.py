"""`kcurve`: Spearman for every number of kept dimensions."""

import argparse
from dataclasses import asdict

from whitelab.cli.options import (
    WHOLE,
    aggregate_option,
    layers_or_each,
    space_options,
    whitening_options,
)
from whitelab.cli.spaces import for_sweeps, open_space, protocol_over, setting_of
from whitelab.cli.writing import short, shown_ks


def add_options(parser: argparse.ArgumentParser) -> None:
    space_options(parser)
    parser.add_argument(
        "--layers",
        type=layers_or_each,
        help="layers to average, such as 1,6, or each: one curve a layer (default: the last)",
    )
    whitening_options(parser, "pca", with_k=False, whole=WHOLE.replace("@256", ""))
    aggregate_option(parser)
    parser.add_argument(
        "--controls",
        action="store_true",
        help="also the first k coordinates, k random ones, a random projection and PCA without scaling, at every k",
    )


def run(args):
    from whitelab.scoring.setting import Protocol
    from whitelab.sweeps.controls import k_controls
    from whitelab.sweeps.dimensions import k_curve
    from whitelab.whitening import check_takes_k

    setting = setting_of(args)
    check_takes_k(setting.whitening)
    if args.layers == "each":
        if args.controls:
            raise ValueError("--controls does not go with --layers each; name the layers of one curve")
        return _each_curve(args, setting)
    space, *_ = open_space(args, setting)
    space = for_sweeps(args, space, setting)
    curve = k_curve(space, setting)
    result = _record(curve) | {
        "subsets": {name: list(values) for name, values in curve.subsets.items()},
        "protocol": Protocol(curve.setting, space.origin).as_dict() | {"k": "every k"},
    }
    if args.controls:
        result["controls"] = controls = {name: asdict(one) for name, one in k_controls(space, setting).items()}
    shown = shown_ks(space.dim)
    lines = [f"k = {k:5}  {curve.spearman[k - 1]:.2f}" for k in shown if curve.spearman[k - 1] is not None]
    if curve.best_k:
        lines.append(f"best k {curve.best_k}, within 0.5 points from k = {curve.knee}, rank {curve.rank}")
    if args.controls:
        lines += _control_lines(controls, shown)
    return result, lines


def _control_lines(controls, shown) -> list[str]:
    """The controls side by side: means of their draws."""
    from whitelab.sweeps.controls import CONTROLS

    lines = ["", "controls: " + "; ".join(CONTROLS[name] for name in controls)]
    return lines + [
        f"k = {k:5}  " + "  ".join(short(one["spearman"][k - 1]) for one in controls.values()) for k in shown
    ]


def _each_curve(args, setting):
    """One curve over k for each layer alone."""
    from whitelab.sweeps.dimensions import k_curves

    space, *_ = open_space(args, setting)
    space = for_sweeps(args, space, setting)
    curves = k_curves(space, setting, by_subset=False)
    records = [{"layer": curve.setting.layers[0]} | _record(curve) for curve in curves]
    lines = ["layer  best k  score at best k  knee  score at d  rank"]
    for one in curves:
        if one.best_k:
            best, whole = one.spearman[one.best_k - 1], short(one.spearman[-1])
            lines.append(
                f"{one.setting.layers[0]:5}  {one.best_k:6}  {best:15.2f}  {one.knee:4}  {whole:>10}  {one.rank:4}"
            )
        else:
            lines.append(f"{one.setting.layers[0]:5}  undefined")
    return {"curves": records, "protocol": protocol_over(space, setting, "each") | {"k": "every k"}}, lines


def _record(curve) -> dict:
    return {
        "k": list(curve.k),
        "spearman": list(curve.spearman),
        "best_k": curve.best_k,
        "knee": curve.knee,
        "rank": curve.rank,
    }
