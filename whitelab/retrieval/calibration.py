"""What the cosine of a query with a document means: its percentile, and a threshold with its errors.

Every query is held against every document but itself, so nothing is drawn. A document is relevant where it was judged
so and not where nobody judged it, as the metrics have it; precision at a threshold is then a lower bound.
"""

import math
from dataclasses import asdict, dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.base.progress import Progress, silent
from whitelab.base.records import without_nan
from whitelab.base.wording import spaced
from whitelab.retrieval import ranking
from whitelab.retrieval.embedded import RetrievalSpace, check_retrieval_space
from whitelab.retrieval.relevance import RetrievalProtocol, protocol_of
from whitelab.scoring.calibration import RATE, Threshold, check_rate
from whitelab.scoring.fit_scopes import Fitted, fit_scope
from whitelab.scoring.paired import RESAMPLES
from whitelab.scoring.setting import Setting, check_is_setting
from whitelab.statistics.random_cosines import BINS, RandomCosines, bin_of
from whitelab.statistics.significance import check_draws, interval

STEPS = 2**13  # equal steps from -1 to 1 among which a threshold is sought: 0.00025 of a cosine
_COSINES = 2**23  # held at once
_CELLS = 2**24  # resamples x steps


@dataclass(frozen=True, eq=False)
class SearchCalibration:
    """What cosines of queries with documents mean under a setting.

    `random` are those of every query with every document, among which the relevant ones are few. `relevant` is the
    median cosine of a query with a document relevant to it.
    """

    protocol: RetrievalProtocol
    random: RandomCosines
    relevant: float
    threshold: Threshold

    @property
    def setting(self) -> Setting:
        """What was chosen, with the layers by their numbers."""
        return self.protocol.setting

    def line(self) -> str:
        """How it was made, in one line."""
        return f"{self.protocol.line()} · {spaced(self.random.pairs)} pairs of a query and a document (all)"

    def arrays(self) -> dict[str, Float[np.ndarray, "m"]]:
        """What an export carries: `cosine` and `percentile`."""
        return dict(zip(("cosine", "percentile"), self.random.table(), strict=True))

    def as_dict(self) -> dict:
        """A JSON-ready record."""
        found = {"relevant": self.relevant, "threshold": asdict(self.threshold)}
        return self.random.as_dict() | without_nan(found) | {"protocol": self.protocol.as_dict()}


def calibrate_search(
    space: RetrievalSpace,
    setting: Setting,
    grade: float | None = None,
    rate: float = RATE,
    resamples: int = RESAMPLES,
    seed: int = 0,
    progress: Progress = silent,
) -> SearchCalibration:
    """The percentile of a cosine among all queries with all documents, and the threshold for a false-positive rate.

    A document is relevant from `grade` on (None: above 0). The threshold is the least of `STEPS` cosines above which
    no more than `rate` of the pairs that are not relevant lie. Its interval and that of recall are percentiles over
    queries drawn with replacement, because the documents of one query are not independent of each other.
    `progress(done, total)` counts queries and may raise to cancel. Raises ValueError as `retrieve` and for a rate
    outside 0 to 1.
    """
    check_is_setting(setting)
    grade = float(check_retrieval_space(space).relevant.grade.min()) if grade is None else grade
    rate, grade = check_rate(rate, grade)
    resamples, seed = check_draws(resamples, seed)
    setting = space.on(setting)
    fitted = fit_scope(space.space, setting)
    counts, alike, unlike, own = _counted(space, fitted, grade, progress)
    return SearchCalibration(
        protocol_of(space, setting, fitted.count, fitted.rank),
        RandomCosines(counts, True),
        float(own.quantile(0.5)) if len(own) else math.nan,
        _threshold(alike, unlike, (grade, rate), resamples, seed),
    )


def _counted(
    space: RetrievalSpace, fitted: Fitted, grade: float, progress: Progress
) -> tuple[Float[np.ndarray, "b"], Float[Tensor, "q s"], Float[Tensor, "q s"], Float[Tensor, "j"]]:
    """All cosines in `BINS`; those of each query with documents that are relevant, and that are not, in `STEPS`; and
    the relevant ones themselves."""
    n, total = len(space.documents), len(space.queries)
    wanted = space.relevant.grade >= grade
    query, document = space.relevant.query[wanted], space.document[wanted]
    counts, own = np.zeros(BINS), torch.empty(len(query), dtype=torch.float64)
    alike, whole = torch.zeros(total, STEPS), torch.zeros(total, STEPS)
    for start in range(0, total, step := max(1, _COSINES // n)):
        found = ranking.cosines(space, fitted, slice(start, start + step))
        places = bin_of(found)
        counts += torch.bincount(places.flatten(), minlength=BINS).numpy()
        rows = torch.arange(len(found))[:, None] * STEPS + places // (BINS // STEPS)
        whole[start : start + step] = torch.bincount(rows.flatten(), minlength=len(found) * STEPS).view(-1, STEPS)
        itself = space.own[start : start + step]
        those = (itself >= 0).nonzero()[:, 0]
        at = places[those, itself[those]]
        counts -= torch.bincount(at, minlength=BINS).numpy()
        whole[start + those, at // (BINS // STEPS)] -= 1
        here = ((query >= start) & (query < start + step)).nonzero()[:, 0]
        own[here] = found[query[here] - start, document[here]]
        steps = places[query[here] - start, document[here]] // (BINS // STEPS)
        alike.index_put_((query[here], steps), torch.ones(len(here)), accumulate=True)
        progress(min(start + step, total), total)
    return counts, alike, whole.sub_(alike), own


def _threshold(
    alike: Float[Tensor, "q s"], unlike: Float[Tensor, "q s"], wanted: tuple[float, float], resamples: int, seed: int
) -> Threshold:
    """The threshold for a grade and a rate, and what it does, with intervals over queries.

    `alike` and `unlike` become their running sums.
    """
    rate, sums = wanted[1], (alike.cumsum_(1), unlike.cumsum_(1))
    whole = _errors(*sums, torch.ones(1, len(alike)), rate)
    generator, found = torch.Generator().manual_seed(seed), []
    for done in range(0, resamples, step := max(1, _CELLS // STEPS)):
        drawn = torch.randint(len(alike), (min(step, resamples - done), len(alike)), generator=generator)
        counts = torch.zeros(len(drawn), len(alike)).scatter_add_(1, drawn, torch.ones(drawn.shape))
        found.append(_errors(*sums, counts, rate))
    (low, high), (recall_low, recall_high) = (interval(torch.cat(found, 1)[row]) for row in (0, 2))
    cosine, false_positives, recall, precision = whole[:, 0].tolist()
    sizes = tuple(int(one[:, -1].sum(dtype=torch.float64)) for one in sums)
    ends = (cosine, low, high, false_positives, recall, recall_low, recall_high)
    return Threshold(*wanted, *ends, precision, *sizes, resamples)


def _errors(
    alike: Float[Tensor, "q s"], unlike: Float[Tensor, "q s"], counts: Float[Tensor, "b q"], rate: float
) -> Float[Tensor, "4 b"]:
    """Threshold, false positives, recall and precision where queries count `counts` times.

    `alike` and `unlike` are running sums over the steps of each query's documents.
    """
    below = counts @ unlike
    total, every = below[:, -1:].double(), (counts @ alike[:, -1:]).double()
    least = ((1 - rate) * total - 1e-6).ceil()  # counts are whole
    place = torch.searchsorted(below, least.to(below.dtype)).clamp_(max=STEPS - 1)
    wrong = total - below.gather(1, place)
    right = every - (counts * alike[:, place[:, 0]].T).sum(1, keepdim=True)
    cosine = (place + 1) * (2 / STEPS) - 1
    found = torch.cat([cosine, wrong / total, right / every, right / (right + wrong)], dim=1).T
    found[:, (total * every)[:, 0] == 0] = torch.nan
    return found
