"""`similarity`: how alike the layers are, or the layers of two models on the same sentences, by linear CKA."""

import argparse

from whitelab.base.records import without_nan
from whitelab.cli.options import WHOLE_OF_LAYERS, space_options, whitening_options
from whitelab.cli.spaces import embed_task, for_sweeps, load_model, open_space, protocol_over, setting_of, with_fit_text
from whitelab.cli.writing import number, progress


def add_options(parser: argparse.ArgumentParser) -> None:
    space_options(parser)
    whitening_options(parser, "none", whole=WHOLE_OF_LAYERS)
    parser.add_argument("--against", metavar="MODEL", help="compare with the layers of another model instead")


def run(args):
    from whitelab.sweeps.layer_measures import layer_similarity

    setting = setting_of(args)
    if args.against and args.vectors:
        raise ValueError(f"--against {args.against} does not go with --vectors, which stand for the data and the model")
    named = argparse.Namespace(**vars(args) | {"model": args.against, "num_layers": None})
    encoder = load_model(named, setting) if args.against else None  # before minutes of embedding
    space, pairs, *_ = open_space(args, setting)
    other = None
    if args.against:
        other = with_fit_text(named, encoder, embed_task(named, encoder, pairs, setting)[0], setting)
    space, other = (one and for_sweeps(args, one, setting) for one in (space, other))
    found = layer_similarity(space, setting, other, progress("comparing", "pairs of layers"))
    cka = without_nan(found.tolist())
    result = {"layers": list(range(space.n_layers)), "cka": cka}
    if other is not None:
        result["against"] = {"model": other.origin.model, "layers": list(range(other.n_layers))}
    columns = range(found.shape[1])
    lines = ["layer  " + "  ".join(f"{layer:5}" for layer in columns)]
    lines += [f"{i:5}  " + "  ".join(f"{number(value, 'z.3f'):>5}" for value in row) for i, row in enumerate(cka)]
    return result | {"protocol": protocol_over(space, setting, "every pair")}, lines
