"""`whiten`: a map for another tool."""

import argparse

from whitelab.cli.options import layers_option, space_options, whitening_options
from whitelab.cli.spaces import open_space, setting_of

EXPORTS = ("sentence-transformers", "faiss", "npz")


def add_options(parser: argparse.ArgumentParser) -> None:
    space_options(parser)
    layers_option(parser)
    whitening_options(parser, "pca")
    parser.add_argument(
        "--export",
        required=True,
        choices=EXPORTS,
        help="a model folder for sentence-transformers, a faiss.LinearTransform, or mean and matrix for NumPy",
    )
    parser.add_argument("--out", required=True, help="folder or file to write; an earlier export is replaced")


def run(args):
    """Fit a map and write it, alone or with its encoder, for another tool."""
    from whitelab.base.installation import need
    from whitelab.scoring.fit_scopes import fit_scope
    from whitelab.scoring.setting import Protocol
    from whitelab.whitening import export

    setting = setting_of(args)
    if args.export == "faiss":
        need("faiss")  # before minutes of embedding
    if setting.fit == "cross":
        raise ValueError("fit='cross' fits two maps, and an export holds one: use task, splits or a path")
    space, _, encoder, _ = open_space(args, setting)
    fitted = fit_scope(space, setting)
    protocol, (whitener,) = Protocol(fitted.setting, space.origin), fitted.whiteners
    record = protocol.as_dict()
    if args.export == "npz":
        export.to_npz(args.out, whitener, record)
    elif args.export == "faiss":
        export.to_faiss(args.out, whitener, record)
    else:
        export.to_sentence_transformers(args.out, encoder, fitted.setting.layers, setting.pooling, whitener, record)
    result = {
        "out": args.out,
        "export": args.export,
        "rank": fitted.rank,
        "dim": whitener.dense.shape[1],
        "sentences": fitted.count,
        "protocol": record,
    }
    line = protocol.line(fitted.count, fitted.rank)
    return result, [f"{args.export} written to {args.out} ({result['dim']} dimensions)", line]
