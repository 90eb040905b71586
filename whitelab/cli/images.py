"""`images`: an encoder of small images trained without labels, and what classifiers make of its features."""

import argparse

from whitelab.cli.options import json_option
from whitelab.cli.writing import say, step_line


def add_options(parser: argparse.ArgumentParser) -> None:
    from whitelab.images.run import ALIASES, BATCH, RATE
    from whitelab.training.objectives import OBJECTIVES

    parser.add_argument(
        "--objective",
        default="w-mse",
        help=f"with parameters, such as w-mse:positives=4; {', '.join((*ALIASES, *OBJECTIVES))} (default: w-mse)",
    )
    parser.add_argument(
        "--data",
        default="digits",
        help="'digits' (1,797 images of 8 x 8, bundled) or a folder with a subfolder of images of one size a class",
    )
    parser.add_argument("--steps", type=int, default=500, help="how many (default: 500)")
    parser.add_argument("--seed", type=int, default=0, help="decides weights, order and views (default: 0)")
    parser.add_argument("--batch", type=int, default=BATCH, help=f"images a batch at most (default: {BATCH})")
    parser.add_argument("--lr", type=float, default=RATE, help=f"rate of Adam, after the warm-up (default: {RATE:g})")
    parser.add_argument("--every", type=int, default=25, help="steps between two records (default: 25)")
    json_option(parser, "one JSON document a record, and the accuracies at the end")


def run(args):
    """A record every few steps, and the accuracies beside those of the untrained encoder and of the pixels."""
    from whitelab.base.checks import check_int
    from whitelab.datasets.images import load_images
    from whitelab.images.run import ImageRun, accuracies_of, pixels, split

    check_int(args.every, "every", 1)
    data = load_images(args.data)
    for problem in data.problems:
        say(f"left out: {problem}")
    one = ImageRun(data, args.objective, args.steps, args.seed, args.batch, args.lr)
    untrained, record = one.accuracies(), None
    for record in one.records(args.every):
        yield record.as_dict(), [step_line(record, ("loss", "spread", "effective_rank"), 1)]
    found, raw = one.accuracies(), accuracies_of(pixels(data), data)
    train, test = split(data)
    result = {
        **_accuracies(found),
        "untrained": _accuracies(untrained),
        "pixels": _accuracies(raw),
        "objective": one.spec,
        "data": data.name,
        "images": {"trained": len(train), "held_out": len(test), "classes": len(data.classes)},
        "steps": record.step - bool(record.message),
        "batch": one.batch,
        "seed": args.seed,
        "seconds": record.seconds,
    } | ({"message": record.message} if record.message else {})
    lines = [f"{len(test)} of {len(train) + len(test)} images of {data.name} held out, {one.spec}"]
    lines += [
        f"{name:10}  linear {each.linear_accuracy:6.2f}  5-nn {each.knn_accuracy:6.2f}"
        if each
        else f"{name:10}  its features hold NaN or infinity"
        for name, each in (("trained", found), ("untrained", untrained), ("pixels", raw))
    ]
    yield result, lines


def _accuracies(found) -> dict:
    """Those of `found`, None where features could not be judged."""
    return {name: getattr(found, name, None) for name in ("linear_accuracy", "knn_accuracy")}
