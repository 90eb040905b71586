"""`geometry`: every layer, raw and whitened."""

import argparse

from whitelab.cli.options import aggregate_option, space_options, vectors_options, whitening_options
from whitelab.cli.spaces import check_early, embed_corpus, open_task, protocol_over
from whitelab.cli.writing import short


def add_options(parser: argparse.ArgumentParser) -> None:
    from whitelab.statistics.geometry import POSITIVES

    space_options(parser)
    vectors_options(parser)
    whitening_options(parser, "pca")
    aggregate_option(parser)
    parser.add_argument("--positives", default="gt4", choices=tuple(POSITIVES), help="pairs the alignment is over")


def run(args):
    from whitelab.sweeps.layer_profiles import profile

    check_early(args)
    pairs, space, encoder, _ = open_task(args)
    corpus = embed_corpus(args, encoder)
    records, lines = [], ["layer  mean cosine  participation ratio  alignment  uniformity  (raw -> whitened)"]
    for layer in range(space.n_layers):
        before = profile(space, (layer,), "none", None, args.positives, args.aggregate).as_dict()
        settings = (args.whitening, args.k, args.positives, args.aggregate, args.fit, corpus)
        after = profile(space, (layer,), *settings).as_dict()
        names = ("mean_cosine", "participation_ratio", "alignment", "uniformity")
        lines.append(f"{layer:5}  " + "  ".join(f"{short(before[n])} -> {short(after[n])}" for n in names))
        for record in (before, after):
            del record["layers"]
        records.append({"layer": layer} | before | {"whitened": after})
    protocol = protocol_over(args, pairs, encoder, "each") | {"positives": args.positives}
    return {"layers": records, "protocol": protocol}, lines
