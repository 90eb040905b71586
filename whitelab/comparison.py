"""Several scores on the same pairs: each with its interval, and against a baseline whether the difference is real."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from whitelab import whitening
from whitelab.checks import check_int
from whitelab.embeddings import LayerEmbeddings
from whitelab.evaluate import Protocol, Score
from whitelab.significance import Difference, WilliamsTest, bootstrap, williams

LEVEL = 0.05  # p below it, in every test there is, makes a difference real
RESAMPLES = 1000

VERDICTS = {
    "gain": "The gain is real",
    "loss": "The loss is real",
    "chance": "Could be chance",
    "unclear": "The tests disagree",
    "same": "The same",
    "undefined": "Undefined",
}


@dataclass(frozen=True)
class Standing:
    """A score, its 95 % bootstrap interval `low` to `high`, and its `difference` from the baseline's.

    `williams` is None where the score averages subsets, of which that test knows nothing. `verdict` is a key
    of `VERDICTS`. NaN where a score is not defined.
    """

    score: Score
    low: float
    high: float
    difference: Difference
    williams: WilliamsTest | None
    verdict: str

    @property
    def settled(self) -> bool:
        """Whether the score differs from the baseline's beyond doubt, or cannot differ at all."""
        return self.verdict in ("gain", "loss", "same")


def compare(
    space: LayerEmbeddings, scores: Sequence[Score], baseline: int = 0, resamples: int = RESAMPLES
) -> tuple[Standing, ...]:
    """Place `scores`, all of the pairs of `space`, against `scores[baseline]`.

    One bootstrap of all of them, so that every difference is taken within the same resamples. Scores that must
    be equal (`whitening.cosine_class`) share a row of it: their difference is 0, not its rounding. Raises
    ValueError for a `baseline` that is not there and for scores that are aggregated differently.
    """
    check_int(baseline, "baseline", 0, len(scores) - 1, "len(scores)-1")
    how = scores[0].protocol.aggregate
    if any(one.protocol.aggregate != how for one in scores):
        raise ValueError(f"scores must share one aggregate, got {', '.join(one.protocol.aggregate for one in scores)}")
    rows: dict[tuple, int] = {}
    place = [rows.setdefault(_law(one.protocol, space.dim), len(rows)) for one in scores]
    cosines = [scores[place.index(row)].cosines for row in range(len(rows))]
    drawn = bootstrap(torch.stack(cosines), space.gold, space.subset, space.n_subsets, how, resamples)
    ranked_at_once = how == "all" or space.n_subsets == 1
    found, base = [], place[baseline]
    for one, row in zip(scores, place, strict=True):
        difference = drawn.difference(row, base)
        test = williams(cosines[row], cosines[base], space.gold) if ranked_at_once else None
        verdict = "same" if row == base else judged(difference, test)
        low, high = float(drawn.low[row]), float(drawn.high[row])
        found.append(Standing(one, low, high, difference, test, verdict))
    return tuple(found)


def judged(difference: Difference, test: WilliamsTest | None) -> str:
    """The key of `VERDICTS`: a difference is real where every test that is defined calls it so.

    The bootstrap does where p < 0.05 and its interval excludes 0.
    """
    if math.isnan(difference.estimate):
        return "undefined"
    if difference.low == difference.high == difference.estimate == 0:
        return "same"
    votes = [difference.p_value < LEVEL and not difference.low <= 0 <= difference.high]
    if test is not None and not math.isnan(test.p_value):
        votes.append(test.p_value < LEVEL)
    if all(votes):
        return "gain" if difference.estimate > 0 else "loss"
    return "unclear" if any(votes) else "chance"


def _law(protocol: Protocol, dim: int) -> tuple:
    """What decides the cosines: two protocols with one law have the same."""
    of_whitening = whitening.cosine_class(protocol.whitening, protocol.k, dim)
    fit = "" if protocol.whitening == "none" else protocol.fit
    return of_whitening, fit, replace(protocol, whitening="none", k=None, fit="task")
