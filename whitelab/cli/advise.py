"""`advise`: what to do with the vectors, for a purpose, from the user's own data."""

import argparse
import contextlib
import math

from whitelab.base.wording import bare
from whitelab.cli.options import (
    aggregate_option,
    column_options,
    columns_option,
    layers_option,
    malformed_option,
    model_options,
    prompt_options,
    split_option,
    tokens_of_either,
    vectors_options,
)
from whitelab.cli.spaces import check_no_prompts, checked, given_parts, load_model, open_store, read_given
from whitelab.cli.writing import left_out, note, progress

_HEAD = "{}, 95 % interval; difference from the first row, 95 % interval, p corrected; bytes a vector; setting"


def add_options(parser: argparse.ArgumentParser) -> None:
    from whitelab.datasets import DEMO_SEARCH

    parser.add_argument(
        "--data",
        default="demo",
        help="pairs with scores, a search set with judgements, labelled texts (to classify or cluster) or a .txt of "
        f"sentences; 'demo' (the default) and '{DEMO_SEARCH}' are bundled",
    )
    parser.add_argument(
        "--for",
        dest="purpose",
        default="rank",
        choices=("rank", "threshold", "store", "classify", "cluster"),
        help="what the vectors are for (default: rank)",
    )
    parser.add_argument("--gold-from", type=float, help="to threshold: from which gold score on two texts are the same")
    parser.add_argument("--task", help="which task of the data, if there are several")
    split_option(parser)
    column_options(parser)
    columns_option(parser)
    malformed_option(parser)
    vectors_options(parser)
    model_options(parser, tokens_of_either())
    prompt_options(parser)
    layers_option(parser)
    parser.add_argument(
        "--fit",
        metavar="cross|vectors|demo|PATH|corpus:FOLDER",
        help="of pairs: to fit maps on other text than their halves, on all vectors given (--vectors), or on what "
        "`corpus embed` made (default: cross)",
    )
    aggregate_option(parser)


def run(args):
    from whitelab.advice import SERVED

    kind = _kind(args)
    if args.purpose not in SERVED[kind]:
        raise ValueError(f"--for {args.purpose} cannot be told from {kind}; --for {' or '.join(SERVED[kind])} can")
    if args.gold_from is not None and args.purpose != "threshold":
        raise ValueError(f"--gold-from goes with --for threshold, not with --for {args.purpose}")
    named = [f"--{name}" for name in ("text", "first", "second", "label") if getattr(args, name) is not None]
    if named and kind != "texts":
        raise ValueError(f"{named[0]} goes with labelled texts, not with {kind}: {_labelled()}")
    for name in ("fit", "columns"):
        if getattr(args, name) is not None and kind != "pairs":
            raise ValueError(f"--{name} goes with pairs, not with {kind}")
    if kind != "search":
        check_no_prompts(args)
    advice = {"pairs": _pairs, "search": _search, "texts": _texts, "sentences": _sentences}[kind](args)
    lines = [*advice.sentences]
    if advice.cosine:
        lines.append(f"{advice.cosine} For other rates: `calibrate`.")
    if advice.keeping:
        lines.append(advice.keeping)
    if advice.evidence:
        lines += ["", _HEAD.format(advice.evidence.metric), *(_line(option) for option in advice.evidence.options)]
        lines += ["", advice.evidence.line]
    return advice.as_dict(), lines


def _line(option) -> str:
    found = option.difference
    p = "-" if math.isnan(option.p_holm) else bare(option.p_words)  # the first row is not tested against itself
    stored = "" if str(option.code) == "float32" else f", {option.code.label}"
    return (
        f"{option.score:6.2f} ({option.low:6.2f} to {option.high:6.2f})  {found.estimate:+6.2f} ({found.low:+.2f} to "
        f"{found.high:+.2f})  {p:>7}  {option.size:5} bytes  {option.setting}{stored}"
    )


def _kind(args) -> str:
    """What is given; pairs where it is none of the rest, because their reader says best what is wrong."""
    from whitelab.advice import SERVED
    from whitelab.datasets import DEMO, DataError, all_published, retrieval_files
    from whitelab.encoding.precomputed import Unpaired

    data = args.data
    if args.vectors or args.gold:
        args.read = read_given(args, alone=True) if args.vectors else None
        return "sentences" if isinstance(args.read, Unpaired) else "pairs"
    if args.purpose in SERVED["texts"]:
        return "texts"
    if data == DEMO:
        return "pairs"
    with contextlib.suppress(DataError):
        retrieval_files(data)
        return "search"
    return "sentences" if data.lower().endswith(".txt") and not all_published(data) else "pairs"


def _labelled() -> str:
    from whitelab.advice import SERVED

    return f"a table of texts with labels goes with --for {' or '.join(SERVED['texts'])}"


def _setting(args):
    from whitelab.scoring.setting import Setting

    return Setting(**given_parts(args))


def _measuring(even: bool = False):
    # No time left of pairs and searches: one option takes hundredths of a second, the next half a minute.
    return progress("measuring", "%", even)


def _pairs(args):
    from whitelab.advice import advise_pairs
    from whitelab.cli.spaces import open_space
    from whitelab.datasets import DataError
    from whitelab.datasets.columns import UnclearColumns
    from whitelab.scoring.setting import OWN_SENTENCES

    chosen = _setting(args)
    if chosen.fit not in OWN_SENTENCES:
        chosen = chosen.with_(whitening="pca")
    chosen = checked(args, chosen)
    try:
        space, *_ = open_space(args, chosen, vectors=getattr(args, "read", None))
    except UnclearColumns as error:
        raise DataError(f"{error}; {_labelled()}, and --text and --label name its columns") from None
    return advise_pairs(space, chosen, args.purpose, args.gold_from, _measuring())


def _search(args):
    from whitelab.advice import advise_search
    from whitelab.cli.spaces import open_search

    chosen = _setting(args)
    space, _ = open_search(args, chosen.raw)
    return advise_search(space, chosen, args.purpose, _measuring())


def _texts(args):
    from whitelab.advice import advise_texts
    from whitelab.base.wording import cut_note
    from whitelab.datasets import ColumnNames, load_labelled
    from whitelab.probe import embed_texts

    columns = ColumnNames(args.text, args.label, args.first, args.second)
    data = load_labelled(args.data, args.task, columns=columns, keep_going=args.keep_going)
    left_out(data.problems)
    note(*data.notes)
    chosen = _setting(args)
    encoder = load_model(args, chosen)
    space, report = embed_texts(encoder, data, chosen.pooling, store=open_store(args), progress=progress())
    if report.truncated:
        note(cut_note(report.truncated, "text", encoder.max_length))
    return advise_texts(space, data, chosen, args.purpose, model=encoder.name, progress=_measuring(even=True))


def _sentences(args):
    import torch

    from whitelab.advice import advise_sentences
    from whitelab.datasets import load_text
    from whitelab.encoding.embed import embed
    from whitelab.encoding.embeddings import EVERY, LayerRows

    chosen = _setting(args)
    if args.vectors:
        checked(args, chosen)
        return advise_sentences(args.read.space.texts[EVERY], args.purpose)
    sentences = list(dict.fromkeys(load_text(args.data)))
    encoder = load_model(args, chosen)
    values, report = embed(encoder, sentences, chosen.pooling, store=open_store(args), progress=progress())
    note(*report.notes)
    return advise_sentences(LayerRows(values, torch.ones(len(sentences))), args.purpose)
