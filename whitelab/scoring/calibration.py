"""What a cosine means under a setting: its percentile, a threshold with its errors, and the gold it stands for."""

import math
from dataclasses import asdict, dataclass, field

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.base.checks import check_int
from whitelab.base.records import without_nan
from whitelab.base.wording import spaced
from whitelab.encoding.embeddings import LayerEmbeddings, Origin, check_space
from whitelab.scoring.fit_scopes import Fitted, fit_scope, halves
from whitelab.scoring.paired import RESAMPLES
from whitelab.scoring.score import Score
from whitelab.scoring.setting import Protocol, Setting, check_is_setting
from whitelab.statistics.random_cosines import RandomCosines
from whitelab.statistics.significance import bootstrap_means, check_draws

MOST_ALIKE = 0.95  # pairs whose gold is at or above this quantile say where the ceiling is
RATE = 0.05  # false positives that are accepted unless one says otherwise


@dataclass(frozen=True)
class Threshold:
    """Pairs of gold `cut` or more are alike; a pair is called alike where its cosine is above `cosine`.

    That is the least cosine at which no more than `rate` of the pairs that are not alike are called so. `low` to `high`
    is its 95 % interval, `false_positives` the share there is, `recall` the share of alike pairs that are found, with
    its interval from so many `resamples`, `precision` the share of those called alike that are. NaN where there are no
    pairs of a kind.
    """

    cut: float
    rate: float
    cosine: float
    low: float
    high: float
    false_positives: float
    recall: float
    recall_low: float
    recall_high: float
    precision: float
    alike: int
    unlike: int
    resamples: int


@dataclass(frozen=True, eq=False)
class GoldScale:
    """The gold score a cosine stands for: isotonic regression, level beyond its first and last knot.

    `cosine` and `gold` are its knots, both rising. `error` is the root mean square error of pairs whose curve was
    fitted on the other half of the pairs, with its 95 % interval; `error_of_mean` that of answering with the other
    half's mean gold. NaN with a `reason` where the pairs have no two halves.
    """

    cosine: Float[np.ndarray, "m"]
    gold: Float[np.ndarray, "m"]
    error: float
    low: float
    high: float
    error_of_mean: float
    reason: str = ""
    resamples: int = RESAMPLES

    def __call__(self, cosine):
        """The gold score of a cosine, a number or an array of them."""
        found = np.interp(np.asarray(cosine, dtype=np.float64), self.cosine, self.gold)
        return float(found) if found.ndim == 0 else found


@dataclass(frozen=True, eq=False)
class Calibration:
    """What cosines mean under a setting.

    `random` are the cosines of random pairs of the task's different sentences. `ceiling` is the median cosine of the
    pairs whose gold is at or above its 95 % quantile, None where all gold scores are equal, as `threshold` and `gold`
    are.
    """

    protocol: Protocol
    fitted: int
    rank: int
    random: RandomCosines
    ceiling: float | None
    threshold: Threshold | None
    gold: GoldScale | None
    cosines: Float[Tensor, "p"] = field(repr=False)

    @property
    def setting(self) -> Setting:
        """What was chosen, with the layers by their numbers."""
        return self.protocol.setting

    def line(self) -> str:
        """How it was made, in one line."""
        how = "all" if self.random.exact else "drawn"
        return f"{self.protocol.line(self.fitted, self.rank)} · {spaced(self.random.pairs)} random pairs ({how})"

    def arrays(self) -> dict[str, np.ndarray]:
        """What an export carries: `cosine` and `percentile`, `among` which pairs, of gold `gold_cosine` and `gold`."""
        gold = {"gold_cosine": self.gold.cosine, "gold": self.gold.gold} if self.gold else {}
        return self.random.arrays(random_pairs(self.protocol.origin)) | gold

    def as_dict(self) -> dict:
        """The JSON document of `python -m whitelab calibrate`."""
        record = self.random.as_dict() | {"ceiling": self.ceiling}
        record["threshold"] = without_nan(asdict(self.threshold)) if self.threshold else None
        gold = None
        if self.gold:
            names = ("error", "low", "high", "resamples", "error_of_mean", "reason")
            gold = without_nan({name: getattr(self.gold, name) for name in names})
            gold |= {"cosine": self.gold.cosine.tolist(), "gold": self.gold.gold.tolist()}
        return record | {"gold": gold, "protocol": self.protocol.as_dict()}


def calibrate(
    space: LayerEmbeddings, setting: Setting, cut: float | None = None, rate: float = RATE, seed: int = 0
) -> Calibration:
    """What cosines mean under a setting: among random pairs always, against gold where it differs.

    `cut` is the gold score from which pairs count as alike (None: the middle of the gold scores there are), `rate`
    the share of the others that may be taken for alike. Under `cross` random pairs lie within a half, under the map
    of the other. Raises ValueError as `fit_scope`, for a rate outside 0 to 1, a cut that is no number, a negative seed,
    for a task of one sentence, and for a map that keeps no direction.
    """
    check_is_setting(setting)
    gold = check_space(space).gold.cpu()
    rate, cut = check_rate(rate, gold_middle(gold) if cut is None else cut)
    check_int(seed, "seed", 0)
    fitted = fit_scope(space, setting)
    cosines, known = fitted.cosines().cpu(), None
    ceiling = scale = None
    if bool((gold != gold[0]).any()):
        known = threshold(cosines, gold, cut, rate, seed=seed)
        ceiling = float(cosines[gold >= gold.quantile(MOST_ALIKE)].quantile(0.5))
        scale = gold_scale(space, cosines, seed)
    protocol = Protocol(fitted.setting, space.origin)
    return Calibration(
        protocol, fitted.count, fitted.rank, random_cosines(space, fitted, seed), ceiling, known, scale, cosines
    )


def tells_apart(space: LayerEmbeddings, made: Fitted | Score) -> bool:
    """Whether cosines under a map tell sentences apart, so that a calibration of them is worth it.

    They do not under one that keeps no direction, nor under one that is starved.
    """
    return made.rank > 0 and space.n_sentences > 1 and not made.starved


def random_pairs(data: Origin) -> str:
    """The pairs of a task among whose cosines one has its percentile, in words."""
    return f"random pairs of {data.task!r}"


def gold_middle(gold: Float[Tensor, "p"]) -> float:
    """The middle of the range of gold scores, from which pairs count as alike where nobody says."""
    return float(gold.min() + gold.max()) / 2


def random_cosines(space: LayerEmbeddings, fitted: Fitted, seed: int = 0) -> RandomCosines:
    """The cosines of random pairs of the task's different sentences under the maps of a setting."""
    if fitted.rank == 0:
        raise ValueError(
            f"whitening={fitted.setting.whitening!r} has no direction to keep: the {fitted.count} texts it was fitted "
            "on do not vary"
        )
    z = fitted.turned()
    return RandomCosines.of(*(z[fold.sentences] for fold in fitted.folds), seed=seed)


def threshold(
    cosines: Float[Tensor, "p"],
    gold: Float[Tensor, "p"],
    cut: float,
    rate: float = RATE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Threshold:
    """The cosine above which pairs are called alike, for a share of false positives of at most `rate`.

    Its interval is that of an order statistic (David and Nagaraja 2003, section 7.1): how many of the pairs that are
    not alike lie below the population's threshold is binomial, whatever their distribution; an end is -1 or 1 where
    they are too few to say. That of recall is of thresholds drawn so and, at each, of the share of alike pairs above it
    (Beta, Jeffreys' prior). Raises ValueError for a `rate` outside 0 to 1 and a `cut` that is no number.
    """
    rate, cut = check_rate(rate, cut)
    resamples, seed = check_draws(resamples, seed)
    from scipy.special import bdtr  # the binomial distribution; scipy.stats has the same and takes a second to import

    unlike, alike = (one.double().sort().values.numpy() for one in (cosines[gold < cut], cosines[gold >= cut]))
    sizes = len(alike), len(unlike)
    if not all(sizes):
        return Threshold(cut, rate, *[math.nan] * 8, *sizes, resamples)
    cosine = float(unlike[max(math.ceil((1 - rate) * len(unlike) - 1e-9), 1) - 1])  # of rounding; a count is whole
    wrong, right = int((unlike > cosine).sum()), int((alike > cosine).sum())
    ends = np.concatenate([[-1.0], unlike, [1.0]])  # between place i and the next lies what i pairs lie below
    below = np.searchsorted(bdtr(np.arange(len(ends) - 1), len(unlike), 1 - rate), (0.025, 0.975))
    low, high = ends[below + (0, 1)].tolist()
    draw = np.random.default_rng(seed)
    drawn = draw.binomial(len(unlike), 1 - rate, resamples)
    recalls = []
    for places, share in ((drawn + 1, 0.025), (drawn, 0.975)):
        found = len(alike) - np.searchsorted(alike, ends[places], side="right")
        recalls.append(float(np.quantile(draw.beta(found + 0.5, len(alike) - found + 0.5), share)))
    recall, precision = right / len(alike), right / (right + wrong) if right + wrong else math.nan
    recall_low, recall_high = min(recalls[0], recall), max(recalls[1], recall)
    shares = (wrong / len(unlike), recall, recall_low, recall_high, precision)
    return Threshold(cut, rate, cosine, low, high, *shares, *sizes, resamples)


def check_rate(rate: float, cut: float) -> tuple[float, float]:
    """Return both. Raises ValueError for a rate of false positives outside 0 to 1 and a cut that is no number."""
    if not 0 < rate < 1:
        raise ValueError(f"rate={rate!r} must lie between 0 and 1, both excluded")
    if not math.isfinite(cut):
        raise ValueError(f"cut={cut!r} must be a number")
    return float(rate), float(cut)


def gold_scale(space: LayerEmbeddings, cosines: Float[Tensor, "p"], seed: int = 0) -> GoldScale:
    """Isotonic regression of gold on the cosine (scikit-learn), its error from halves without a common sentence.

    Raises ValueError for a negative seed.
    """
    check_int(seed, "seed", 0)
    x, y = cosines.numpy(), space.gold.cpu().numpy().astype(np.float64)
    whole = _isotonic(x, y)
    knots = whole.X_thresholds_.copy(), whole.y_thresholds_.copy()
    try:
        late = halves(space, seed).cpu().numpy()
    except ValueError as error:
        return GoldScale(*knots, *[math.nan] * 4, str(error))
    errors = np.empty((2, len(x)))
    for side in (late, ~late):
        errors[0, side] = _isotonic(x[~side], y[~side]).predict(x[side]) - y[side]
        errors[1, side] = y[~side].mean() - y[side]
    drawn = bootstrap_means(torch.from_numpy(errors).square(), RESAMPLES, seed)
    error, mean = drawn.score.sqrt().tolist()
    return GoldScale(*knots, error, float(drawn.low[0].sqrt()), float(drawn.high[0].sqrt()), mean)


def _isotonic(x: Float[np.ndarray, "p"], y: Float[np.ndarray, "p"]):
    from sklearn.isotonic import IsotonicRegression

    return IsotonicRegression(out_of_bounds="clip").fit(x, y)
