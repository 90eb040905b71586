"""Options that several commands share, and how their values are read."""

import argparse
from functools import partial

from whitelab.cli.writing import COLUMN


def json_option(parser: argparse.ArgumentParser, printed: str = "one JSON document on stdout") -> None:
    parser.add_argument("--json", action="store_true", help=f"print {printed}")


def source_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", default="demo", help="folder, file, 'demo' (bundled) or a downloaded source")


def data_options(parser: argparse.ArgumentParser) -> None:
    source_option(parser)
    parser.add_argument("--task", help="which task of the data, such as stsb, sickr, sts12 (if there are several)")
    split_option(parser)
    columns_option(parser)
    malformed_option(parser)


def columns_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--columns",
        nargs="+",
        metavar=COLUMN,
        help="of a table of pairs: the columns of the first sentence, the second, the score and maybe the subset, "
        "where names and content do not say it",
    )


def split_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--split", help="train, dev, test or all, where the data has splits (default: test)")


def malformed_option(parser: argparse.ArgumentParser) -> None:
    words = {"action": "store_true", "help": "report malformed rows and keep the rest"}
    parser.add_argument("--skip-malformed", dest="keep_going", **words)


def vectors_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--vectors",
        nargs="+",
        metavar="FILE",
        help="score vectors made elsewhere instead of a model's: .npy, .npz, .safetensors or Parquet with arrays "
        "first, second [p, d] and gold [p], or values [n, d] with row numbers first and second [p]; of several "
        "layers [l, p, d] or [l, n, d], layers first; values alone, to fit a map on or to advise",
    )
    parser.add_argument("--gold", metavar="FILE", help="for --vectors: scores, and row numbers or sentences if need be")


def space_options(parser: argparse.ArgumentParser, searched: bool = False) -> None:
    """Pairs and a model, or their vectors; `searched` where a retrieval set may take the place of pairs."""
    from whitelab.encoding.encoders import MAX_LENGTH

    data_options(parser)
    model_options(parser, tokens_of_either() if searched else str(MAX_LENGTH))
    vectors_options(parser)


def tokens_of_either() -> str:
    """How many tokens are read where there are pairs or a retrieval set."""
    from whitelab.encoding.encoders import MAX_LENGTH
    from whitelab.retrieval.embedded import DOCUMENT_TOKENS

    return f"{MAX_LENGTH}, of a search {DOCUMENT_TOKENS}"


def model_options(parser: argparse.ArgumentParser, tokens: str) -> None:
    """The model, how it computes, where its embeddings are kept; it reads so many `tokens` unless told otherwise."""
    from whitelab.encoding.pooling import POOLING_LABELS

    parser.add_argument(
        "--model",
        default="bundled",
        help="'bundled', a local folder or a Hugging Face name; NAME:3 for its first 3 blocks, random:NAME or "
        "random@7:NAME for random weights, static:NAME or sif:NAME for its word embeddings alone, output:NAME for what "
        "its own sentence-transformers modules (dense layers, length 1) make of its last layer",
    )
    bin_option(parser)
    depth_option(parser)
    parser.add_argument(
        "--pooling",
        choices=tuple(POOLING_LABELS),
        help="cls in models that see both ways, last in decoders, wk for SBERT-WK (each layer with those before it); "
        "unit_ before it brings each layer's vector to length 1 before layers are averaged and a map is fitted "
        "(default: mean)",
    )
    parser.add_argument(
        "--max-length", type=int, help=f"in tokens, special ones included (default: {tokens}, or the model's limit)"
    )
    dtype_option(parser)
    device_option(parser)
    store_options(parser)
    json_option(parser)


def prompt_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--query-prompt", default="", metavar="TEXT", help="put before every query, such as 'query: '")
    parser.add_argument("--document-prompt", default="", metavar="TEXT", help="put before every document")
    parser.add_argument("--prompts", action="store_true", help="those of the model's config_sentence_transformers.json")


def bin_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allow-bin", action="store_true", help="also take pickled weights (pytorch_model.bin), read without code"
    )


def depth_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--num-layers", type=int, help="keep only the first N transformer blocks")


def dtype_option(parser: argparse.ArgumentParser) -> None:
    from whitelab.base.devices import DTYPES

    parser.add_argument(
        "--dtype", default="float32", choices=tuple(DTYPES), help="type to compute in (default: float32)"
    )


def device_option(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    from whitelab.base.devices import DEVICES

    usual = default or "the best there is"
    parser.add_argument("--device", default=default, choices=DEVICES, help=f"default: {usual}")


def store_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cache", help="folder of the embedding store (default: the user's cache folder)")
    parser.add_argument("--no-store", action="store_true", help="neither read nor keep embeddings on disk")


def aggregate_option(parser: argparse.ArgumentParser) -> None:
    from whitelab.statistics.correlation import AGGREGATES

    parser.add_argument("--aggregate", choices=AGGREGATES, help="how subsets become one score (default: all)")


_OWN = "the task's sentences, all its splits, each half of the pairs for the other, "
_WORDS = "its words by frequency (static: and sif: models), "
_OTHER = "all vectors given, in a pair or not (--vectors), 'demo' (bundled), a text file, file or folder of pairs"
FIT = (
    "task|splits|cross|tokens|vectors|demo|PATH|corpus:FOLDER",
    f"{_OWN}{_WORDS}{_OTHER}, or corpus:FOLDER, what `corpus embed` made (default: task)",
)
FIT_OF_ROWS = ("task|splits|cross|vectors|demo|PATH", f"{_OWN}{_OTHER} (default: task)")


# The fullest setting that a command takes: one that goes through all layers, or all k, is told none.
WHOLE = "mean/L1+L-1:pca@256 aggregate=mean fit=cross"
WHOLE_OF_LAYERS = WHOLE.replace("L1+", "")


def whitening_options(
    parser: argparse.ArgumentParser,
    default: str,
    with_k: bool = True,
    fit: tuple[str, str] = FIT,
    whole: str = WHOLE,
) -> None:
    """The variant, its k, and what it is fitted on: `fit` names the scopes there are and says what they mean, `whole`
    is a setting with all that the command takes."""
    variant_options(parser, default, with_k)
    parser.add_argument("--fit", metavar=fit[0], help=f"what the variant is fitted on: {fit[1]}")
    parser.add_argument(
        "--setting",
        metavar="TEXT",
        help="pooling, layers, whitening, k, aggregate and fit as one text in place of their options, such as "
        f"'mean/L-1:pca fit=demo', or with all that this command takes '{whole}'",
    )
    parser.set_defaults(whitening=None, usual_whitening=default)


def variant_options(
    parser: argparse.ArgumentParser, default: str, with_k: bool = True, of_moments: bool = False
) -> None:
    """The variant and its k; `of_moments` leaves out variants that are fitted to rows."""
    from whitelab.whitening import WHITENERS

    names = [name for name, one in WHITENERS.items() if not (of_moments and one.of_rows)]
    parser.add_argument(
        "--whitening",
        default=default,
        type=_spec_of_moments if of_moments else partial(_spec, with_k=with_k),
        metavar="NAME[:param=value,...]",
        help=f"{', '.join(names)}; such as soft:gamma=0.5 or group:groups=8 (default: {default})",
    )
    if with_k:
        shorter = ", ".join(name for name in names if WHITENERS[name].narrows)
        words = f"keep the top-k eigen-directions; vectors get shorter under {shorter} only"
        parser.add_argument("--k", type=int, help=words)


def _spec(text: str, with_k: bool = True) -> str:
    from whitelab.whitening import canonical

    try:
        return canonical(text)
    except ValueError as error:
        hint = "; its k goes in --k" if "@" in text and with_k else ""
        raise argparse.ArgumentTypeError(str(error).removeprefix("whitening=") + hint) from None


def _spec_of_moments(text: str) -> str:
    from whitelab.whitening import of_rows

    if of_rows(spec := _spec(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is fitted to rows: of a corpus moments are kept")
    return spec


def layers_option(parser: argparse.ArgumentParser, usual: str = "the last") -> None:
    help = f"layers to average, such as 1,6; -1 is the last (default: {usual})"
    parser.add_argument("--layers", type=_layers, help=help)


def _layers(text: str) -> tuple[int, ...]:
    from whitelab.scoring.setting import layer_numbers

    try:
        return layer_numbers(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be layer numbers with commas, such as 1,6") from None


def layers_or_each(text: str) -> str | tuple[int, ...]:
    return text if text == "each" else _layers(text)


def column_options(parser: argparse.ArgumentParser) -> None:
    """Which columns of a labelled table hold what."""
    for name, what in (("text", "the text"), ("first", "the first text of a pair"), ("second", "the second text")):
        parser.add_argument(f"--{name}", metavar=COLUMN, help=f"column of {what}, where its name does not say it")
    parser.add_argument("--label", metavar=COLUMN, help="column of the label")


def names(text: str) -> list[str]:
    """What stands between the commas."""
    return [name.strip() for name in text.split(",")]


def model_names(text: str) -> list[str]:
    """`names` without empty ones, each once."""
    return list(dict.fromkeys(filter(None, names(text))))


def task_names(text: str, present: list[str]) -> list[str]:
    """`names`, each once, or for 'all' those that are `present`."""
    return present if text == "all" else list(dict.fromkeys(names(text)))


_SEARCHED = "; with --search corpus, queries, both or other text (default: task, or corpus)"
SEARCHED_FIT = FIT[0], f"as for score{_SEARCHED}"
SEARCHED_FIT_OF_ROWS = FIT[0].removesuffix("|corpus:FOLDER"), f"as for score, but for a corpus{_SEARCHED}"


def search_options(parser: argparse.ArgumentParser, instead: str) -> None:
    """Take a retrieval set in place of pairs, which gives what `instead` says."""
    parser.add_argument(
        "--search",
        action="store_true",
        help=f"--data is a retrieval set, as for retrieve (default: the bundled demo-search): {instead}",
    )
    prompt_options(parser)
