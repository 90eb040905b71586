"""`geometry`: every layer, raw and whitened."""

import argparse

from whitelab.cli.options import WHOLE_OF_LAYERS, aggregate_option, space_options, whitening_options
from whitelab.cli.spaces import for_sweeps, open_space, protocol_over, setting_of
from whitelab.cli.writing import note, progress, short


def add_options(parser: argparse.ArgumentParser) -> None:
    from whitelab.statistics.geometry import POSITIVES

    space_options(parser)
    whitening_options(parser, "pca", whole=WHOLE_OF_LAYERS)
    aggregate_option(parser)
    parser.add_argument(
        "--positives",
        choices=tuple(POSITIVES),
        help="pairs the alignment is over: above 4 or at least 4 of gold scores from 0 to 5, or the top fifth of any "
        "scale (default: gt4, and top where scores do not run from 0 to 5)",
    )


def run(args):
    from whitelab.statistics.geometry import POSITIVES, alignment_note, positives, usual_positives
    from whitelab.sweeps import layer_measures
    from whitelab.sweeps.layer_profiles import as_record, losses, shape

    setting = setting_of(args)
    space, pairs, source, _ = open_space(args, setting)
    rule = args.positives or usual_positives(space.gold)
    if said := alignment_note(space.gold, rule):
        note(said)
    space = for_sweeps(args, space, setting)
    sentences = pairs.sentences if getattr(source, "has_text", True) else None
    show = progress("measuring", "spaces")

    def measured(one, number: int) -> dict:
        record = as_record(shape(space, one), losses(space, one, rule))
        record |= layer_measures.as_record(layer_measures.measures(space, one))
        record |= layer_measures.norm_correlations(space, one, sentences)
        if show:
            show(number + 1, 2 * space.n_layers)
        return record

    records, lines = [], ["layer  mean cosine  participation ratio  alignment  uniformity  (raw -> whitened)"]
    unique = ["", "layer  IsoScore  partition isotropy  hub skewness  intrinsic dimension, each sentence once"]
    for layer in range(space.n_layers):
        here = setting.with_(layers=(layer,))
        before, after = (measured(one, 2 * layer + i) for i, one in enumerate((here.raw, here)))
        lines.append(_line(layer, before, after, "mean_cosine", "participation_ratio", "alignment", "uniformity"))
        unique.append(_line(layer, before, after, "iso_score", "partition_isotropy", "hub_skewness", "two_nn"))
        records.append({"layer": layer} | before | {"whitened": after})
    count = len(positives(space.gold, rule))
    lines.append(f"alignment over {count} positive pairs ({POSITIVES[rule]})")
    protocol = protocol_over(space, setting, "each") | {"positives": rule, "positive_pairs": count}
    return {"layers": records, "protocol": protocol}, lines + unique


def _line(layer: int, before: dict, after: dict, *names: str) -> str:
    return f"{layer:5}  " + "  ".join(f"{short(before[n])} -> {short(after[n])}" for n in names)
