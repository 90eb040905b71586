"""`bits`: the score against the bytes a vector takes, by quantiser and rotation, raw and under settings."""

import argparse

from whitelab.cli.options import (
    SEARCHED_FIT_OF_ROWS,
    aggregate_option,
    layers_option,
    names,
    search_options,
    space_options,
    whitening_options,
)
from whitelab.cli.spaces import open_either, setting_of_either
from whitelab.cli.writing import note, number, progress


def add_options(parser: argparse.ArgumentParser) -> None:
    space_options(parser, searched=True)
    layers_option(parser)
    whitening_options(parser, "pca", fit=SEARCHED_FIT_OF_ROWS)
    aggregate_option(parser)
    search_options(parser, "nDCG@10 in place of Spearman")
    parser.add_argument("--beside", default="", metavar="NAMES", help="further variants, such as zca,cholesky")
    parser.add_argument(
        "--codes",
        default="all",
        metavar="CODES",
        help="such as int8,binary+itq: float32, float16, int8, pq4, binary, hamming or pq8, +random, +itq or +opq "
        "(default: all)",
    )
    parser.add_argument("--corpus", type=int, metavar="N", help="also time searches among N vectors, of pairs")
    parser.add_argument("--seed", type=int, default=0, help="draws rotations and training rows (default: 0)")


def run(args):
    from whitelab.base.checks import check_int
    from whitelab.retrieval.compression import CODES, Code
    from whitelab.retrieval.frontier import frontier

    codes = CODES if args.codes == "all" else tuple(map(Code.parse, names(args.codes)))
    if args.search and args.corpus is not None:
        raise ValueError("--corpus goes with pairs, whose sentences are searched among, not with --search")
    check_int(args.seed, "seed", 0)
    setting = setting_of_either(args)
    raw = setting.with_(whitening="none")
    beside = [setting.with_(whitening=name) for name in names(args.beside) if name]
    searches = None if args.corpus is None else _Searches(args, setting, codes)
    space = open_either(args, setting, beside, searches and searches.check)
    timed = searches and searches.timed(space)
    *_, found = frontier(space, (raw, setting, *beside), codes, seed=args.seed, progress=progress("coding", "blocks"))
    for text in found.left_out:
        note(f"left out: {text}")
    form = f"z.{found.digits}f"
    best = set(map(id, found.best()))
    lines = [f"bytes  {found.metric:>14}  {'95 %':>18}  against float32 raw"]
    for one in sorted(found.points, key=lambda point: -point.bytes):
        moved = one.difference
        lines.append(
            f"{one.bytes:5}{'*' if id(one) in best else ' '} {number(one.score, form):>14}  "
            f"{number(one.low, form):>8} to {number(one.high, form):>7}  {moved.estimate:+z.4f} ({moved.low:+z.4f} to "
            f"{moved.high:+z.4f})  {one.setting.whitening}, {one.code.label}"
        )
    # Raw comes first, and the setting asked for before those beside it.
    asked = next((one for one in found.points if one.setting.whitening != "none"), found.points[0])
    lines += ["*: no other scores more with as few bytes", asked.setting_line()]
    record = found.as_dict() | {"seed": args.seed, "protocol": asked.protocol.as_dict()}
    if timed:
        record["search"] = timed.as_dict()
        lines += ["", *_search_lines(timed)]
    return record, lines


class _Searches:
    """Searches among `--corpus` vectors under the setting, by the codes that faiss has an index for."""

    def __init__(self, args, setting, codes) -> None:
        """Raises ValueError for what faiss cannot search."""
        from whitelab.retrieval.coded_search import check_searched
        from whitelab.retrieval.search_cost import SearchPlan

        self.setting, self.codes = setting, [code for code in codes if code.quantizer != "binary"]
        self.plan = SearchPlan(corpus=args.corpus, seed=args.seed)
        check_searched(setting, self.codes)

    def check(self, pairs) -> None:
        """Raise ValueError for a corpus that does not go with the pairs."""
        self.plan.check(len(pairs.sentences))

    def timed(self, space):
        """What they take."""
        from whitelab.retrieval.coded_search import coded_searches

        return coded_searches(space, self.setting, self.codes, self.plan, progress("searching", "steps"))


def _search_lines(timed) -> list[str]:
    lines = [f"{timed.corpus} vectors: ms a query (x float32), queries a second in batches, neighbours found"]
    for row in timed.rows:
        lines.append(
            f"{row.milliseconds:9.3f} ({row.time_ratio:.2f})  {row.queries_per_second:9.0f}  {100 * row.recall:5.1f} %"
            f"  {row.bytes / 2**20:8.1f} MiB  {row.code.label}"
        )
    return [*lines, timed.machine]
