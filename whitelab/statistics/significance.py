"""Whether the difference between two scores on the same pairs, or queries, is real, and which pairs make it.

Two variants are scored on the same pairs, so their scores rise and fall together from sample to sample and
their difference varies much less than either. Both tests here are of that paired difference.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from whitelab.base.checks import check_choice, check_int, check_integers, check_shape
from whitelab.base.progress import Progress, silent
from whitelab.base.records import without_nan
from whitelab.statistics import correlation
from whitelab.statistics.linalg import exact

# Pairs x resamples ranked together; bounds the memory at a few arrays of 2 MB.
_CELLS_PER_CHUNK = 2**18
_TAILS = torch.tensor([0.025, 0.975], dtype=torch.float64)  # all intervals are of 95 %
FEW = 20  # items below which drawing them again says too little of others
_FEW_OF_MEANS = 50  # below it intervals of a difference of means are too short: `bootstrap_means`
_UNSCORED = 0.1  # share of resamples without a score above which those that have one are another kind of sample
NO_INTERVAL = (
    "more than a tenth of the resamples have no score, as the pairs, or those of one subset whose score is averaged, "
    "are too few or too alike"
)


def few_note(count: int, items: str, means: bool = False) -> str:
    """What to say of intervals of `means`, or correlations, over so many `items` ("pairs"); empty where nothing is."""
    if count < FEW:
        return f"so few {items} ({count}) tell settings apart by chance alone; no interval here is to be trusted"
    if means and count < _FEW_OF_MEANS:
        return (
            f"over so few {items} ({count}) intervals of differences are a little too short: settings that are equally "
            "good seem to differ in up to 10 of 100 cases, where 5 are meant"
        )
    return ""


@dataclass(frozen=True)
class Difference:
    """Score i minus score j (of Spearman x 100 in points), its interval and two-sided bootstrap p-value."""

    estimate: float
    low: float
    high: float
    p_value: float

    def as_dict(self, name: str = "difference") -> dict:
        """A flat JSON-ready record: the estimate under its `name`, and the ends of its interval."""
        return without_nan({name: self.estimate, f"{name}_low": self.low, f"{name}_high": self.high})


def least_p(resamples: int) -> float:
    """The least p-value that so many resamples can show (`Bootstrap.difference`)."""
    return 2 / (resamples + 1)


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Score of every row, its 95 % percentile interval, and its score in every resample (`samples`).

    Scores are Spearman x 100, or of `bootstrap_means` what the values are. Column b of `samples` is one and the same
    resample for every row. NaN where a score is not defined; so is an interval where that holds for more than a tenth
    of the resamples.
    """

    score: Float[Tensor, "v"]
    low: Float[Tensor, "v"]
    high: Float[Tensor, "v"]
    samples: Float[Tensor, "v b"]

    @classmethod
    def of(cls, score: Float[Tensor, "v"], samples: Float[Tensor, "v b"]) -> "Bootstrap":
        """With the middle 95 % of every row's samples as its interval, those left out that are not defined."""
        intervals = torch.tensor([interval(row) for row in samples], dtype=torch.float64).reshape(-1, 2)
        intervals[samples.isnan().double().mean(-1) > _UNSCORED] = math.nan
        return cls(score, *intervals.T, samples)

    @property
    def resamples(self) -> int:
        """How many samples the intervals come from."""
        return self.samples.shape[1]

    def take(self, rows: Sequence[int]) -> "Bootstrap":
        """The rows of these numbers, one of them as often as it is named."""
        at = list(rows)
        return Bootstrap(*(getattr(self, name)[at] for name in ("score", "low", "high", "samples")))

    def difference(self, i: int, j: int) -> Difference:
        """Row i against row j, from their differences d within the resamples.

        p = 2 min(1 + #{d <= 0}, 1 + #{d >= 0}) / (b + 1), at most 1 and never 0: b resamples cannot show
        less than 2 / (b + 1). All NaN where either score is not defined, all but the estimate where either has no
        interval.
        """
        for name, row in (("i", i), ("j", j)):
            check_int(row, name, 0, len(self.score) - 1)
        estimate = float(self.score[i] - self.score[j])
        if self.low[[i, j]].isnan().any():
            return Difference(estimate, math.nan, math.nan, math.nan)
        d = self.samples[i] - self.samples[j]
        d = d[~d.isnan()]
        tail = 1 + min(int((d <= 0).sum()), int((d >= 0).sum()))
        return Difference(estimate, *interval(d), min(1.0, 2 * tail / (len(d) + 1)))


def average_bootstrap(parts: Sequence[Bootstrap]) -> Bootstrap:
    """The plain mean of several tasks' scores, row by row, from pairs drawn within each task.

    Sample b of the mean is the mean of the parts' samples b, so differences between rows stay paired. The parts
    must be of different pairs or drawn from different seeds, or their samples would rise and fall together.
    Raises ValueError for parts that differ in rows or resamples, and for none.
    """
    shapes = {tuple(one.samples.shape) for one in parts}
    if len(shapes) != 1:
        raise ValueError(f"parts must be at least one, all of the same rows and resamples, got {sorted(shapes)}")
    score, samples = (torch.stack([getattr(one, name) for one in parts]).mean(0) for name in ("score", "samples"))
    return Bootstrap.of(score, samples)


def bootstrap(
    cosines: Float[Tensor | np.ndarray, "v p"],
    gold: Float[Tensor | np.ndarray, "p"],
    subset: Int[Tensor | np.ndarray, "p"],
    n_subsets: int,
    how: str = "all",
    resamples: int = 1000,
    seed: int | None = None,
    progress: Progress = silent,
) -> Bootstrap:
    """Percentile intervals of the score of every row, from pairs drawn with replacement.

    Efron and Tibshirani 1993, section 13.3. Pairs are drawn within their own subset for `mean` and `wmean`
    and from all of them for `all`. Equal to `correlation.aggregate` on the pairs drawn; resamples in which a row has no
    score, such as one of cosines that span less than 1e-9, are left out of its interval, which is none where they are
    more than a tenth: of a subset of two pairs half the resamples hold one of them twice, and all others score 1 or -1.
    The same `seed` gives the same resamples; None is one that the gold scores decide, so that a score has one interval
    wherever it is asked for, and other pairs other resamples.
    Raises ValueError for lengths that differ, an unknown `how` and resamples or seed out of range, TypeError for
    subsets that are no integers.
    """
    check_choice(how, "how", correlation.AGGREGATES)
    check_int(n_subsets, "n_subsets", 1)
    cosines, gold = check_shape(cosines, "cosines", "v p").detach(), check_shape(gold, "gold", "p").detach()
    subset = check_integers(subset, "subset", "p").long()  # of fewer bits they would index nothing
    _check_lengths(cosines.shape[-1], "cosines", gold=gold, subset=subset)
    if subset.numel() and not 0 <= int(subset.min()) <= int(subset.max()) < n_subsets:
        raise ValueError(f"subset must hold numbers from 0 to {n_subsets - 1}, got {subset.unique().tolist()}")
    # Resamples rank some thousand pairs many times over: on the CPU, wherever the cosines were made.
    cosines, gold, subset = exact(cosines).cpu(), exact(gold).cpu(), subset.cpu()
    seed = crc32(gold.numpy().tobytes()) if seed is None else seed
    check_draws(resamples, seed)
    if how == "all":
        subset, n_subsets = torch.zeros_like(subset), 1
    score = 100 * correlation.aggregate(cosines, gold, subset, n_subsets, how)
    samples = torch.full((len(cosines), resamples), torch.nan, dtype=torch.float64)
    scored = (~score.isnan()).nonzero()[:, 0]
    if len(scored):
        drawn = drawn_counts(subset, n_subsets, resamples, seed, progress)
        samples[scored] = 100 * _resampled(cosines[scored], gold, subset, n_subsets, how, drawn)
    return Bootstrap.of(score, samples)


def bootstrap_means(
    values: Float[Tensor, "v q"], resamples: int = 1000, seed: int = 0, progress: Progress = silent
) -> Bootstrap:
    """Percentile intervals of the mean of every row, from columns (queries, say) drawn with replacement.

    As Smucker et al. 2007 compare two searches. Over few columns the p-value of a difference is too small: where two
    rows are equally good it is below 0.05 in 5 to 9 of 100 draws over 20 columns, 4 to 10 over 40, 5 to 8 over 50, 5 to
    7 over 100 and 5 to 6 over 225. The most, up to 50 columns, where four in five are ties; 10,000 draws each of normal
    and of bounded values with and without ties. Raises ValueError as `bootstrap_counts`.
    """
    values = exact(check_shape(values, "values", "v q")).detach()
    count = values.shape[1]
    return bootstrap_counts(count, lambda counts: values @ counts / count, resamples, seed, progress=progress)


def bootstrap_counts(
    count: int,
    scores: Callable[[Float[Tensor, "q b"]], Float[Tensor, "v b"]],
    resamples: int = 1000,
    seed: int = 0,
    progress: Progress = silent,
) -> Bootstrap:
    """Percentile intervals of `scores`, which say how every row fares where item i of q is there `counts[i]` times.

    Efron and Tibshirani 1993, section 13.3, from items drawn with replacement, for all rows alike, so that their
    differences are paired. The same `seed` gives the same resamples. Raises ValueError for no item at all, and for
    resamples or seed out of range.
    """
    check_draws(resamples, seed)
    check_int(count, "q", 1)
    everything, parts = torch.zeros(count, dtype=torch.int64), []
    for counts in drawn_counts(everything, 1, resamples, seed, progress):
        parts.append(scores(counts.T))
    whole = scores(torch.ones(count, 1, dtype=torch.float64))[:, 0]
    return Bootstrap.of(whole, torch.cat(parts, dim=-1))


def halved(score: Float[Tensor, "v"], halves: Float[Tensor, "v h"], resamples: int = 1000, seed: int = 0) -> Bootstrap:
    """Intervals of scores of what is fitted to the very items (clusters, say), from the scores of random halves of
    these, everything fitted anew in each.

    Items drawn again under one fit leave out how far the next would differ. The variance of scores over subsets of m
    of n items, times m / (n - m), here 1, is that of the score of all (the delete-d jackknife, Shao and Wu 1989). A
    sample is the score and that deviation times Student's t of h - 1 degrees of freedom, drawn for all rows alike, so
    that differences are paired. Raises ValueError for one half, and for resamples or seed out of range.
    """
    check_draws(resamples, seed)
    check_int(halves.shape[1], "h", 2)
    generator, h = torch.Generator().manual_seed(seed), halves.shape[1]
    normal = torch.randn(h, resamples, generator=generator, dtype=torch.float64)
    squares = torch.randn(h - 1, resamples, generator=generator, dtype=torch.float64).square().sum(0)
    apart = halves - halves.mean(1, keepdim=True)
    return Bootstrap.of(score, score[:, None] + apart @ (normal / squares.sqrt()))


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values of several tests together (Holm 1979): rejecting those of at most p, the probability that any true null
    is among them is at most p.

    The i-th smallest of m is multiplied by m - i + 1, never below one before it, and at most 1; NaN stays and does not
    count.
    """
    known = sorted((value, place) for place, value in enumerate(p_values) if not math.isnan(value))
    adjusted, highest = list(p_values), 0.0
    for i, (value, place) in enumerate(known):
        highest = max(highest, min(1.0, (len(known) - i) * value))
        adjusted[place] = highest
    return adjusted


def drawn_counts(
    subset: Int[Tensor, "p"], n_subsets: int, resamples: int, seed: int, progress: Progress = silent
) -> Iterator[Float[Tensor, "b p"]]:
    """How often every pair is there in resamples drawn with replacement, some resamples at a time.

    Place i of a resample is filled from the subset of pair i. The same `seed` gives the same resamples.
    """
    pairs, generator = len(subset), torch.Generator().manual_seed(seed)
    sizes = torch.bincount(subset, minlength=n_subsets)
    members, start, size = subset.argsort(stable=True), (sizes.cumsum(0) - sizes)[subset], sizes[subset]
    one = torch.ones(1, 1, dtype=torch.float64)
    for done in range(0, resamples, step := max(1, _CELLS_PER_CHUNK // pairs)):
        part = torch.rand(min(step, resamples - done), pairs, generator=generator, dtype=torch.float64)
        index = part.mul_(size).long()
        if n_subsets > 1:
            index = members[index.add_(start)]
        yield torch.zeros_like(part).scatter_add_(1, index, one.expand_as(part))
        progress(done + len(part), resamples)


def _resampled(
    cosines: Float[Tensor, "v p"],
    gold: Float[Tensor, "p"],
    subset: Int[Tensor, "p"],
    n_subsets: int,
    how: str,
    drawn: Iterable[Float[Tensor, "b p"]],
) -> Float[Tensor, "v b"]:
    """Score of every row in every resample of `drawn`, a chunk of them at a time."""
    groups = [_Group.of(cosines, gold, (subset == number).nonzero()[:, 0]) for number in range(n_subsets)]
    weights, parts = correlation.weights(subset, n_subsets, how), []
    for chunk in drawn:
        counts = chunk.T.contiguous()
        parts.append((torch.stack([one.scores(counts) for one in groups], dim=-1) * weights).sum(-1))
    return torch.cat(parts, dim=-1)


@dataclass(frozen=True, eq=False)
class _Ties:
    """Values sorted once: their `order`, where every run of equal ones `ends`, and each value's `run`."""

    order: Int[Tensor, "m"]
    ends: Int[Tensor, "g"]
    run: Int[Tensor, "m"]

    @classmethod
    def of(cls, x: Float[Tensor, "m"]) -> "_Ties":
        _, run, sizes = torch.unique(x, return_inverse=True, return_counts=True)
        return cls(run.argsort(), sizes.cumsum(0) - 1, run)

    def ranks(self, counts: Float[Tensor, "m b"]) -> Float[Tensor, "m b"]:
        """Average rank of every value among `counts` copies of each, less the mean rank."""
        return self._of_runs(counts[self.order])[0][self.run]

    def products(
        self, counts: Float[Tensor, "m b"], weighted: Float[Tensor, "m b"]
    ) -> tuple[Float[Tensor, "b"], Float[Tensor, "b"]]:
        """The sums over values of `counts` x rank^2 and of `weighted` x rank, without putting ranks in their places."""
        ranks, copies = self._of_runs(counts[self.order])
        if len(ranks) == len(weighted):  # no two values are equal
            weighted = weighted[self.order]
        else:
            weighted = torch.zeros_like(ranks).index_add_(0, self.run, weighted)
        return copies.mul_(ranks).mul_(ranks).sum(0), weighted.mul_(ranks).sum(0)

    def _of_runs(self, copies: Float[Tensor, "m b"]) -> tuple[Float[Tensor, "g b"], Float[Tensor, "g b"]]:
        """Rank, less the mean rank, and copies of every run of equal values, whose `copies` are given in their order.

        A run of n copies whose last one has the rank r shares the rank r - (n - 1) / 2. Nothing is sorted.
        """
        last = copies.cumsum(0)
        if len(self.ends) < len(self.order):
            last = last[self.ends]
            copies = last.diff(dim=0, prepend=torch.zeros_like(last[:1]))
        return last.sub_(copies, alpha=0.5).sub_(len(self.order) / 2), copies


@dataclass(frozen=True, eq=False)
class _Group:
    """The pairs of one subset (`rows`), their cosines under every variant and their order.

    `apart` says of a variant that no two of its cosines differ by rounding only.
    """

    rows: Int[Tensor, "m"]
    cosines: Float[Tensor, "v p"]
    gold: _Ties
    variants: tuple[_Ties, ...]
    apart: tuple[bool, ...]

    @classmethod
    def of(cls, cosines: Float[Tensor, "v p"], gold: Float[Tensor, "p"], rows: Int[Tensor, "m"]) -> "_Group":
        steps = [x[rows].unique().diff() for x in cosines]
        apart = tuple(bool((one >= correlation.CONSTANT_WITHIN).all()) for one in steps)
        return cls(rows, cosines, _Ties.of(gold[rows]), tuple(_Ties.of(x[rows]) for x in cosines), apart)

    def scores(self, counts: Float[Tensor, "p b"]) -> Float[Tensor, "v b"]:
        """Spearman's rho of every variant in every resample; every pair counts as often as it was drawn."""
        counts = counts if len(self.rows) == len(counts) else counts[self.rows]
        gold = self.gold.ranks(counts)
        weighted = counts * gold
        spread = (weighted * gold).sum(0)
        found = []
        for x, ties, apart in zip(self.cosines, self.variants, self.apart, strict=True):
            square, product = ties.products(counts, weighted)
            norm = (square * spread).sqrt()
            defined = norm > 0 if apart else (norm > 0) & ~_is_constant(x[self.rows], counts)
            found.append(torch.where(defined, product / norm, torch.nan).clamp(-1, 1))
        return torch.stack(found)


def _is_constant(x: Float[Tensor, "m"], counts: Float[Tensor, "m b"]) -> Bool[Tensor, "b"]:
    """Whether the values that a resample has are one value up to rounding."""
    there = counts > 0
    most, least = (torch.where(there, x[:, None], edge) for edge in (-torch.inf, torch.inf))
    return most.amax(0) - least.amin(0) < correlation.CONSTANT_WITHIN


def interval(samples: Float[Tensor, "b"]) -> tuple[float, float]:
    """The middle 95 % of the samples that are numbers; NaN where none is."""
    low, high = torch.nanquantile(samples, _TAILS).tolist()
    return low, high


def check_draws(resamples: int, seed: int) -> tuple[int, int]:
    """Return how many resamples are drawn and their seed. Raises ValueError for what cannot be."""
    return check_int(resamples, "resamples", 1), check_int(seed, "seed", 0)


def _check_lengths(p: int, like: str, **given: Tensor) -> None:
    for name, values in given.items():
        if values.shape[0] != p:
            raise ValueError(f"{name} must have p={p} values as {like} has, got {values.shape[0]}")


@dataclass(frozen=True)
class WilliamsTest:
    """Williams' t with its degrees of freedom and two-sided p-value; NaN with a `reason` where not defined.

    `r_a` and `r_b` are the Spearman correlations with gold (-1 to 1), `r_ab` the one between the two rows.
    """

    t: float
    df: int
    p_value: float
    r_a: float
    r_b: float
    r_ab: float
    reason: str = ""


def williams(
    cosines_a: Float[Tensor | np.ndarray, "p"],
    cosines_b: Float[Tensor | np.ndarray, "p"],
    gold: Float[Tensor | np.ndarray, "p"],
) -> WilliamsTest:
    """Test r_a = r_b, two Spearman correlations with the same gold scores (Williams 1959).

    Not defined for fewer than 4 pairs, a constant row (cosines that span less than 1e-9), NaN, or two rows that rank
    all pairs alike or in reverse.
    Derived for Pearson's r of normal data. With ranks p is a little too small: where two maps are equally good it is
    below 0.05 in 6 to 7 of 100 draws for correlations of 0.6, 7 to 8 for 0.8 and 7 to 9 for 0.9 (4,000 draws each of
    normal data, of 30, 100 and 1,379 pairs, r_ab from 0.3 to 0.99). Raises ValueError for lengths that differ.
    """
    a, b = check_shape(cosines_a, "cosines_a", "p"), check_shape(cosines_b, "cosines_b", "p")
    gold = check_shape(gold, "gold", "p")
    p = gold.shape[0]
    _check_lengths(p, "gold", cosines_a=a, cosines_b=b)
    a, b, gold = exact(a), exact(b), exact(gold)
    r_a, r_b, r_ab = (float(correlation.spearman(x, y)) for x, y in ((a, gold), (b, gold), (a, b)))
    reason = _not_testable(a, b, gold)
    if reason:
        undefined = f"Williams' test is not defined: {reason}"
        return WilliamsTest(math.nan, p - 3, math.nan, r_a, r_b, r_ab, undefined)
    t = williams_t(r_a, r_b, r_ab, p)
    from scipy.special import stdtr  # Student's t; scipy.stats has the same and takes a second to import

    return WilliamsTest(t, p - 3, float(2 * stdtr(p - 3, -abs(t))), r_a, r_b, r_ab)


def williams_t(r_a: float, r_b: float, r_ab: float, p: int) -> float:
    """t = (r_a - r_b) sqrt((p - 1) (1 + r_ab) / (2 |R| (p - 1) / (p - 3) + r^2 (1 - r_ab)^3)).

    |R| = 1 - r_a^2 - r_b^2 - r_ab^2 + 2 r_a r_b r_ab is the determinant of the three correlations and
    r = (r_a + r_b) / 2. Steiger 1980, Eq. 7.
    """
    # Rounding can push the determinant of a singular matrix below zero.
    determinant = max(0.0, 1 - r_a**2 - r_b**2 - r_ab**2 + 2 * r_a * r_b * r_ab)
    variance = 2 * determinant * (p - 1) / (p - 3) + ((r_a + r_b) / 2) ** 2 * (1 - r_ab) ** 3
    if variance == 0:
        return math.copysign(math.inf, r_a - r_b)
    return (r_a - r_b) * math.sqrt((p - 1) * (1 + r_ab) / variance)


def williams_bounds(r_b: float, r_ab: float, p: int, level: float = 0.05) -> tuple[float, float]:
    """The r_a below and above r_b up to which Williams' test cannot tell them apart at `level`, given r_ab.

    Looked for among the r_a that there can be beside r_b and r_ab, whose determinant (`williams_t`) is not negative. -1
    or 1 where none of them on that side differs enough; both for fewer than 4 pairs.
    """
    if p < 4:
        return -1.0, 1.0
    from scipy.special import stdtrit

    wanted = float(stdtrit(p - 3, 1 - level / 2))
    reach = math.sqrt((1 - r_b**2) * (1 - r_ab**2))

    def bound(side: int) -> float:
        near, far = r_b, r_b * r_ab + side * reach
        if (far - near) * side <= 0 or abs(williams_t(far, r_b, r_ab, p)) <= wanted:
            return float(side)
        for _ in range(50):  # halves, to the last bit of a float between -1 and 1
            middle = (near + far) / 2
            near, far = (near, middle) if abs(williams_t(middle, r_b, r_ab, p)) > wanted else (middle, far)
        return near

    return bound(-1), bound(1)


def _not_testable(a: Float[Tensor, "p"], b: Float[Tensor, "p"], gold: Float[Tensor, "p"]) -> str:
    """Why two rows cannot be compared, or nothing."""
    if len(gold) < 4:
        return f"it needs at least 4 pairs, got {len(gold)}"
    named = {"cosines_a": a, "cosines_b": b, "gold": gold}
    for name, values in named.items():
        if bool(values.isnan().any()):
            return f"{name} has NaN"
        if bool((values == values[0]).all() if name == "gold" else correlation.is_constant(values)):
            return f"{name} is constant"
    ranks_a, ranks_b = correlation.average_ranks(a), correlation.average_ranks(b)
    if torch.equal(ranks_a, ranks_b):
        return "cosines_a and cosines_b rank all pairs alike"
    if torch.equal(ranks_a, len(gold) + 1 - ranks_b):
        return "cosines_a and cosines_b rank all pairs in reverse"
    return ""


@dataclass(frozen=True)
class Move:
    """A pair's number, its ranks (average ranks, 1 = lowest), and `change` = after - before.

    `nearer` is by how much the rank after is closer to the gold rank than the one before: below 0 where it is farther,
    0 where the pair moved past its gold rank to as far on the other side.
    """

    pair: int
    before: float
    after: float
    gold: float
    change: float
    nearer: float


def moved(
    before: Float[Tensor | np.ndarray, "p"],
    after: Float[Tensor | np.ndarray, "p"],
    gold: Float[Tensor | np.ndarray, "p"],
    top: int = 10,
) -> tuple[Move, ...]:
    """The `top` pairs whose rank moved most, furthest first, lower numbers first among equals.

    Pairs that kept their rank are left out; values that span less than 1e-9 are one tie. Raises ValueError for lengths
    that differ, values that are NaN and `top` < 1.
    """
    check_int(top, "top", 1)
    before, after = exact(check_shape(before, "before", "p")), exact(check_shape(after, "after", "p"))
    gold = exact(check_shape(gold, "gold", "p"))
    _check_lengths(gold.shape[0], "gold", before=before, after=after)
    rows = [_ranks(values, name) for name, values in (("before", before), ("after", after))]
    ranks = torch.stack([*rows, _ranks(gold, "gold")])
    change = ranks[1] - ranks[0]
    order = change.abs().argsort(descending=True, stable=True)[:top]
    return tuple(
        Move(pair, old, new, wanted, new - old, abs(old - wanted) - abs(new - wanted))
        for pair, (old, new, wanted) in zip(order.tolist(), ranks[:, order].T.tolist(), strict=True)
        if new != old
    )


def _ranks(values: Float[Tensor, "p"], name: str) -> Float[Tensor, "p"]:
    """Average ranks; a row that is constant but for rounding is one tie."""
    if bool(values.isnan().any()):
        raise ValueError(f"{name} must hold numbers, pair {int(values.isnan().nonzero()[0])} has NaN")
    return correlation.average_ranks(torch.zeros_like(values) if correlation.is_constant(values) else values)
