"""`score`: Spearman of one setting."""

import argparse

from whitelab.cli.options import aggregate_option, layers_option, space_options, vectors_options, whitening_options
from whitelab.cli.spaces import check_early, embed_corpus, open_task, protocol_of
from whitelab.cli.writing import number


def add_options(parser: argparse.ArgumentParser) -> None:
    space_options(parser)
    vectors_options(parser)
    layers_option(parser)
    whitening_options(parser, "none")
    aggregate_option(parser)


def run(args):
    from whitelab.scoring.score import score

    check_early(args)
    pairs, space, encoder, _ = open_task(args)
    protocol = protocol_of(args, pairs, encoder, args.layers)
    found = score(space, protocol, embed_corpus(args, encoder))
    lines = [f"Spearman x 100  {number(found.spearman)}  ({found.pairs} pairs, rank {found.rank} of {found.dim})"]
    if found.reason:
        lines.append(found.reason)
    if len(found.subsets) > 1:
        for name, one in found.subsets.items():
            lines.append(f"  {name:24} {number(one.spearman):>9}  {one.pairs} pairs")
    lines.append(found.line())
    return found.as_dict(), lines
