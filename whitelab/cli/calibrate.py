"""`calibrate`: what a cosine means under a setting, beside what the same cosine means raw."""

import argparse
from functools import partial

from whitelab.cli.options import (
    SEARCHED_FIT,
    layers_option,
    search_options,
    space_options,
    whitening_options,
)
from whitelab.cli.spaces import open_either, setting_of_either
from whitelab.cli.writing import number, progress


def add_options(parser: argparse.ArgumentParser) -> None:
    from whitelab.scoring.calibration import RATE

    space_options(parser, searched=True)
    layers_option(parser)
    whitening_options(parser, "none", fit=SEARCHED_FIT)
    search_options(parser, "cosines of queries with documents, and grades in place of gold")
    parser.add_argument("--cut", type=float, help="the gold score from which pairs are alike (default: the middle)")
    parser.add_argument("--rate", type=float, default=RATE, help=f"false positives accepted (default: {RATE})")
    parser.add_argument(
        "--cosine", type=float, nargs="+", default=[0.5, 0.7, 0.9], help="cosines to explain (default: 0.5 0.7 0.9)"
    )


def run(args):
    from whitelab.scoring.calibration import calibrate, check_rate

    check_rate(args.rate, 0.0 if args.cut is None else args.cut)
    if any(not -1 <= one <= 1 for one in args.cosine):
        raise ValueError(f"--cosine {' '.join(map(str, args.cosine))} must lie between -1 and 1")
    setting = setting_of_either(args)
    check = partial(_check_grades if args.search else _check_gold, args.cut)
    space = open_either(args, setting, check=check)
    if args.search:
        return _searched(args, space, setting)
    raw, found = (calibrate(space, one, args.cut, args.rate) for one in (setting.raw, setting))
    means = [_meant(one, found, raw, gold=found.gold and found.gold(one)) for one in args.cosine]
    lines = [f"random pairs  {_spread(found.random)}"]
    if found.ceiling is not None:
        lines.append(f"pairs most alike  median {found.ceiling:.3f}")
    lines.append("cosine  percentile  gold  percentile raw")
    for one in means:
        lines.append(f"{one['cosine']:6g}  {one['percentile']:10.3f}  {number(one['gold']):>4}  {one['raw']:14.3f}")
    if (cut := found.threshold) is not None:
        lines.append(
            f"alike (gold {cut.cut:g} or more) above {cut.cosine:.4f} (95 %: {cut.low:.4f} to {cut.high:.4f}): "
            f"{100 * cut.false_positives:.1f} % false positives, {100 * cut.recall:.1f} % of {cut.alike} found "
            f"({100 * cut.recall_low:.1f} to {100 * cut.recall_high:.1f}), raw {100 * raw.threshold.recall:.1f} %"
        )
        gold = found.gold
        lines.append(
            gold.reason
            or f"gold from the cosine, cross-fitted: off by {gold.error:.3f} ({gold.low:.3f} to {gold.high:.3f}), "
            f"raw {raw.gold.error:.3f}, their mean {gold.error_of_mean:.3f}"
        )
    return _recorded(found, means, raw), [*lines, found.line()]


def _searched(args, space, setting) -> tuple[dict, list[str]]:
    """Of a retrieval set: cosines of queries with documents, and the judgements in place of gold."""
    from whitelab.retrieval.calibration import calibrate_search

    given = args.cut, args.rate
    raw, found = (
        calibrate_search(space, one, *given, progress=progress("ranking", "queries")) for one in (setting.raw, setting)
    )
    means = [_meant(one, found, raw) for one in args.cosine]
    cut, before = found.threshold, raw.threshold
    lines = [
        f"all queries with all documents  {_spread(found.random)}",
        f"with those judged relevant  median {found.relevant:.3f}",
        "cosine  percentile  percentile raw",
        *(f"{one['cosine']:6g}  {one['percentile']:10.3f}  {one['raw']:14.3f}" for one in means),
        f"relevant (grade {cut.cut:g} or more) from {cut.cosine:.4f} on (95 %: {cut.low:.4f} to {cut.high:.4f}): "
        f"{100 * cut.false_positives:.2g} % false positives, {100 * cut.recall:.1f} % of {cut.alike} found "
        f"({100 * cut.recall_low:.1f} to {100 * cut.recall_high:.1f}), raw {100 * before.recall:.1f} %; of those above "
        f"it {100 * cut.precision:.1f} % were judged relevant",
    ]
    return _recorded(found, means, raw), [*lines, found.line()]


def _spread(random) -> str:
    from whitelab.base.wording import spaced
    from whitelab.statistics.random_cosines import FLOOR, TOP

    return (
        f"{FLOOR} %: {random.floor:.3f}, half: {random.median:.3f}, {TOP} %: {random.top:.3f} "
        f"({spaced(random.pairs)} pairs, percentiles within {random.error:.2g})"
    )


def _check_gold(cut: float | None, pairs) -> None:
    if pairs.gold.min() < pairs.gold.max():  # equal scores have no threshold
        _check_cut(cut, int((pairs.gold >= (cut or 0.0)).sum()), pairs.n_pairs, "gold scores")


def _check_grades(cut: float | None, data) -> None:
    relevant = data.grade[data.grade > 0]
    _check_cut(cut, int((relevant >= (cut or 0.0)).sum()), len(data.queries) * len(data.documents), "grades")


def _check_cut(cut: float | None, reach: int, of: int, name: str) -> None:
    """Raise ValueError for a cut with pairs on one side alone."""
    if cut is not None and not 0 < reach < of:
        raise ValueError(f"--cut {cut:g} must divide the {name}: {reach} reach it, {of - reach} do not")


def _meant(cosine: float, found, raw, **gold) -> dict:
    """What one cosine means under the setting, its gold where there is one, and its percentile raw."""
    now, before = found.random.percentile(cosine), raw.random.percentile(cosine)
    return {"cosine": cosine, "percentile": now, **gold, "raw": before}


def _recorded(found, means, raw) -> dict:
    setting = {"setting": str(found.protocol.setting)}
    return setting | found.as_dict() | {"cosines": means, "raw": _brief(raw)}


def _brief(raw) -> dict:
    """The record of raw vectors without knots and protocol."""
    record = raw.as_dict()
    record.pop("protocol")
    if record.get("gold"):
        record["gold"] = {key: value for key, value in record["gold"].items() if key not in ("cosine", "gold")}
    return record
