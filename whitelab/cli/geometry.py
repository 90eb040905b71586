"""`geometry`: every layer, raw and whitened."""

import argparse

from whitelab.cli.options import aggregate_option, space_options, vectors_options, whitening_options
from whitelab.cli.spaces import open_space, protocol_over, setting_of
from whitelab.cli.writing import short


def add_options(parser: argparse.ArgumentParser) -> None:
    from whitelab.statistics.geometry import POSITIVES

    space_options(parser)
    vectors_options(parser)
    whitening_options(parser, "pca")
    aggregate_option(parser)
    parser.add_argument("--positives", default="gt4", choices=tuple(POSITIVES), help="pairs the alignment is over")


def run(args):
    from whitelab.sweeps.layer_profiles import as_record, losses, shape

    setting = setting_of(args)
    space, *_ = open_space(args, setting)
    records, lines = [], ["layer  mean cosine  participation ratio  alignment  uniformity  (raw -> whitened)"]
    for layer in range(space.n_layers):
        here = setting.with_(layers=(layer,))
        before, after = (as_record(shape(space, one), losses(space, one, args.positives)) for one in (here.raw, here))
        names = ("mean_cosine", "participation_ratio", "alignment", "uniformity")
        lines.append(f"{layer:5}  " + "  ".join(f"{short(before[n])} -> {short(after[n])}" for n in names))
        records.append({"layer": layer} | before | {"whitened": after})
    protocol = protocol_over(space, setting, "each") | {"positives": args.positives}
    return {"layers": records, "protocol": protocol}, lines
