"""`kcurve`: Spearman for every number of kept dimensions."""

import argparse

from whitelab.cli.options import aggregate_option, layer_numbers, space_options, vectors_options, whitening_options
from whitelab.cli.spaces import check_early, embed_corpus, open_task, protocol_of, protocol_over
from whitelab.cli.writing import short


def add_options(parser: argparse.ArgumentParser) -> None:
    space_options(parser)
    vectors_options(parser)
    parser.add_argument(
        "--layers",
        type=lambda text: text if text == "each" else layer_numbers(text),
        help="layers to average, such as 1,6, or each: one curve a layer (default: the last)",
    )
    whitening_options(parser, "pca", with_k=False)
    aggregate_option(parser)


def run(args):
    from whitelab.sweeps.dimensions import k_curve

    check_early(args)
    if args.layers == "each":
        return _each_curve(args)
    pairs, space, encoder, _ = open_task(args)
    protocol = protocol_of(args, pairs, encoder, args.layers)
    corpus = embed_corpus(args, encoder)
    curve = k_curve(space, protocol.layers, args.whitening, args.aggregate, fit=args.fit, corpus=corpus)
    result = _record(curve) | {
        "subsets": {name: list(values) for name, values in curve.subsets.items()},
        "protocol": protocol.as_dict() | {"k": "every k"},
    }
    shown = [k for k in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 768, 1024, space.dim) if k <= space.dim]
    lines = [
        f"k = {k:5}  {curve.spearman[k - 1]:.2f}" for k in dict.fromkeys(shown) if curve.spearman[k - 1] is not None
    ]
    if curve.best_k:
        lines.append(f"best k {curve.best_k}, within 0.5 points from k = {curve.knee}, rank {curve.rank}")
    return result, lines


def _each_curve(args):
    """One curve over k for each layer alone."""
    from whitelab.sweeps.dimensions import k_curves

    pairs, space, encoder, _ = open_task(args)
    corpus = embed_corpus(args, encoder)
    settings = {"by_subset": False, "fit": args.fit, "corpus": corpus}
    curves = k_curves(space, None, args.whitening, args.aggregate, **settings)
    records = [{"layers": list(one.layers)} | _record(one) for one in curves]
    lines = ["layer  best k  score at best k  knee  score at d  rank"]
    for one in curves:
        if one.best_k:
            best, whole = one.spearman[one.best_k - 1], short(one.spearman[-1])
            lines.append(f"{one.layers[0]:5}  {one.best_k:6}  {best:15.2f}  {one.knee:4}  {whole:>10}  {one.rank:4}")
        else:
            lines.append(f"{one.layers[0]:5}  undefined")
    return {"curves": records, "protocol": protocol_over(args, pairs, encoder, "each") | {"k": "every k"}}, lines


def _record(curve) -> dict:
    return {
        "k": list(curve.k),
        "spearman": list(curve.spearman),
        "best_k": curve.best_k,
        "knee": curve.knee,
        "rank": curve.rank,
    }
