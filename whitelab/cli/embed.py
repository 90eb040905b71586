"""`embed`: a task's sentences in every layer."""

import argparse

from whitelab.cli.options import data_options, model_options
from whitelab.cli.spaces import given_parts, open_space


def add_options(parser: argparse.ArgumentParser) -> None:
    from whitelab.encoding.encoders import MAX_LENGTH

    data_options(parser)
    model_options(parser, str(MAX_LENGTH))
    parser.add_argument("--out", help="also write every layer with its pairs to this .npz, which --vectors reads")


def run(args):
    from whitelab.scoring.setting import Setting

    if args.out:
        from whitelab.encoding.precomputed import is_written, write_npz
        from whitelab.store.aside import file_aside
        from whitelab.whitening.export import target

        out = target(args.out, is_written)
        if out.suffix != ".npz":
            raise ValueError(f"out={args.out!r} must be the name of an .npz file")
    setting = Setting(**given_parts(args))
    space, pairs, encoder, report = open_space(args, setting)
    if args.out:
        with file_aside(out) as file:
            write_npz(file, pairs, space)
    result = {
        "model": encoder.name,
        "task": pairs.task,
        "pooling": setting.pooling,
        "device": encoder.device,
        "dtype": encoder.dtype,
        "n_layers": space.n_layers,
        "sentences": space.n_sentences,
        "dim": space.dim,
        "encoded": report.encoded,
        "reused": report.reused,
        "truncated": report.truncated,
        "seconds": report.seconds,
        "out": args.out,
    }
    return result, [f"{name:10} {value}" for name, value in result.items() if value is not None]
