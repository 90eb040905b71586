"""Several scores on the same pairs: each with its interval, and against a baseline whether the difference is real."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab import whitening
from whitelab.base.checks import check_int, check_is, check_several
from whitelab.base.progress import Progress, silent
from whitelab.encoding.embeddings import LayerEmbeddings, check_space
from whitelab.scoring.fit_scopes import fitted_vectors
from whitelab.scoring.score import Score, percent
from whitelab.scoring.setting import Protocol
from whitelab.statistics.correlation import Judged, ranked_at_once, spearman
from whitelab.statistics.significance import (
    Bootstrap,
    Difference,
    WilliamsTest,
    bootstrap,
    williams,
    williams_bounds,
)

LEVEL = 0.05  # p below it, in every test there is, makes a difference real
_GIVES = "score(space, setting) gives"
RESAMPLES = 1000
_ROUNDING = 1e-6  # by which cosines that must be equal may differ

VERDICTS = {
    "gain": "The gain is real",
    "loss": "The loss is real",
    "chance": "Could be chance",
    "unclear": "The tests disagree",
    "same": "The same",
    "starved": "No verdict",
    "undefined": "Undefined",
}


@dataclass(frozen=True)
class Standing:
    """A score, its 95 % bootstrap interval `low` to `high`, and its `difference` from the baseline's.

    `williams` is None where the score averages subsets, of which that test knows nothing. `verdict` is a key
    of `VERDICTS`, `starved` where one of the maps keeps as many directions as there are texts, so that its score says
    nothing about meaning. NaN where a score is not defined.
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
        return settled(self.verdict)


@dataclass(frozen=True, eq=False)
class Paired:
    """`scores` of the same pairs, resampled together: score i is row `rows[i]` of `drawn` and of `cosines`."""

    scores: tuple[Score, ...]
    rows: tuple[int, ...]
    drawn: Bootstrap
    cosines: Float[Tensor, "v p"]
    gold: Float[Tensor, "p"]
    ranked_at_once: bool

    def against(self, baseline: int = 0) -> tuple[Standing, ...]:
        """Every score against `scores[baseline]`. Raises ValueError for a `baseline` that is not there."""
        return tuple(self.standing(i, baseline) for i in range(len(self.scores)))

    def standing(self, i: int, baseline: int = 0) -> Standing:
        """`scores[i]` against `scores[baseline]`. Raises ValueError for one that is not there."""
        for name, number in (("i", i), ("baseline", baseline)):
            check_int(number, name, 0, len(self.scores) - 1, "len(scores)-1")
        row, base = self.rows[i], self.rows[baseline]
        difference = self.drawn.difference(row, base)
        test = williams(self.cosines[row], self.cosines[base], self.gold) if self.ranked_at_once else None
        verdict = "same" if row == base else verdict_of(difference, test)
        verdict = unless_starved(verdict, self.scores[i].starved or self.scores[baseline].starved)
        low, high = float(self.drawn.low[row]), float(self.drawn.high[row])
        return Standing(self.scores[i], low, high, difference, test, verdict)


def paired(
    space: LayerEmbeddings | Judged, scores: Sequence[Score], resamples: int = RESAMPLES, progress: Progress = silent
) -> Paired:
    """Resample `scores`, all of the pairs of `space`, together: one bootstrap, so every difference is a paired one.

    Scores that must be equal (`whitening.cosine_class`) share a row of it: their difference is 0, not its rounding.
    Raises ValueError for scores that are aggregated differently, for one of other pairs or other gold scores and for
    none, TypeError as `check_space` and for what is no Score.
    """
    if not isinstance(space, Judged):
        check_space(space)
    how = check_several(scores, "scores", Score, _GIVES)[0].setting.aggregate
    if any(one.setting.aggregate != how for one in scores):
        raise ValueError(f"scores must share one aggregate, got {', '.join(one.setting.aggregate for one in scores)}")
    against = (space.judged if isinstance(space, LayerEmbeddings) else space).cpu()
    for place, one in enumerate(scores):
        _check_is_of(against, one, f"scores[{place}]")
    firsts: list[Score] = []  # of every row
    rows = tuple(_row_of(one, firsts) for one in scores)
    cosines = torch.stack([one.cosines for one in firsts])
    drawn = bootstrap(cosines, against.gold, against.subset, against.n_subsets, how, resamples, progress=progress)
    return Paired(tuple(scores), rows, drawn, cosines, against.gold, ranked_at_once(space.n_subsets, how))


@dataclass(frozen=True)
class Doubt:
    """What stands against the difference of a score x 100 from a baseline's, for scores about the one it was made of.

    Those between `low` and `high`, both excluded, may differ by chance. The map says nothing where it keeps `starving`
    directions or more; None where it never does so.
    """

    low: float
    high: float
    starving: int | None

    def verdict(self, spearman: float | None, directions: int) -> str:
        """`starved` or `chance`, keys of `VERDICTS`, for a score whose map keeps so many; empty where neither holds."""
        if spearman is None:
            return ""
        if self.starving is not None and directions >= self.starving:
            return "starved"
        return "chance" if self.low < spearman < self.high else ""


def doubt(space: LayerEmbeddings, score: Score, baseline: Score) -> Doubt | None:
    """Up to which scores Williams' test cannot tell one from the baseline's, if both rank the pairs as alike as these.

    So `score` itself may differ by chance where that test gives p >= `LEVEL`, and about tells of scores nearby. It
    tells of none where subsets are averaged, where there are fewer than 4 pairs, and where both rank all pairs alike.
    None where a score is not defined.
    """
    check_space(space)
    check_is(score, "score", Score, _GIVES)
    check_is(baseline, "baseline", Score, _GIVES)
    if score.spearman is None or baseline.spearman is None:
        return None
    spec = score.setting.whitening
    few = whitening.starving(spec, fitted_vectors(space, score.setting)) if whitening.whitens(spec) else None
    if space.n_pairs < 4 or not ranked_at_once(space.n_subsets, score.setting.aggregate):
        return Doubt(0.0, 0.0, few)
    alike = float(spearman(score.cosines, baseline.cosines))
    if alike == 1:
        return Doubt(0.0, 0.0, few)
    low, high = williams_bounds(baseline.spearman / 100, alike, space.n_pairs, LEVEL)
    return Doubt(-math.inf if low == -1 else 100 * low, math.inf if high == 1 else 100 * high, few)


def verdict_of(difference: Difference, test: WilliamsTest | None) -> str:
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


def unless_starved(verdict: str, starved: bool) -> str:
    """The verdict, where one of the maps compared is `starved` none of a difference."""
    return "starved" if starved and verdict not in ("same", "undefined") else verdict


def settled(verdict: str) -> bool:
    """Whether what a verdict (`verdict_of`) is of is there beyond doubt, or cannot be there at all."""
    return verdict in ("gain", "loss", "same")


def _check_is_of(judged: Judged, score: Score, name: str) -> None:
    """Raise ValueError where these pairs and their gold scores give its cosines another score."""
    there = percent(float(judged.spearman(score.cosines, score.setting.aggregate)))
    if there is None or score.spearman is None:
        same = there is score.spearman
    else:
        same = math.isclose(there, score.spearman, rel_tol=0, abs_tol=_ROUNDING)
    if not same:
        raise ValueError(f"{name} must be of the pairs and the gold of space: it is {score.spearman}, {there} there")


def _row_of(score: Score, firsts: list[Score]) -> int:
    """The row that a score shares, or a new one. Its law is not enough: models may hide behind one name."""
    for row, first in enumerate(firsts):
        alike = _law(first.protocol, first.dim) == _law(score.protocol, score.dim)
        if alike and torch.allclose(first.cosines, score.cosines, rtol=0, atol=_ROUNDING, equal_nan=True):
            return row
    firsts.append(score)
    return len(firsts) - 1


def _law(protocol: Protocol, dim: int) -> tuple:
    """What decides the cosines: two protocols with one law have the same."""
    setting = protocol.setting
    fit = setting.fit if setting.fits else ""
    return whitening.cosine_class(setting.whitening, setting.k, dim), fit, setting.raw, protocol.origin
