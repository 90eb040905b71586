"""Ranks with ties, Spearman's correlation for many settings at once, and its average over subsets."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from whitelab.base.checks import check_choice, check_real, check_shape, widened

AGGREGATES = ("all", "mean", "wmean")
AGGREGATE_LABELS = {
    "all": "all: one Spearman over every pair",
    "mean": "mean: average of the subsets' Spearman",
    "wmean": "wmean: average weighted by pairs",
}

# Cosines that span less than this are one cosine and rounding. Whitening every direction of n <= d distinct
# sentences makes each cosine -1 / (n - 1), and what rounding leaves was at most 7e-12 (all-MiniLM-L6-v2,
# n = 8 to 384); ranking it would print noise as a score. Cosines that say anything span far more. Not a part of the
# largest of them: of cosines that are 0 but for rounding none is small beside the others.
CONSTANT_WITHIN = 1e-9


def average_ranks(x: Float[Tensor, "... p"]) -> Float[Tensor, "... p"]:
    """Ranks 1..p along the last axis, float64; equal values share the mean of their ranks."""
    x = widened(x).contiguous()
    values = x.sort(dim=-1).values
    below, within = (torch.searchsorted(values, x, right=right) for right in (False, True))
    return (below + within + 1).to(torch.float64) / 2


def is_constant(x: Float[Tensor, "... p"]) -> Bool[Tensor, "..."]:
    """Whether the values of a row are one value up to rounding: max - min < 1e-9. True where p = 0."""
    if x.shape[-1] == 0:
        return torch.ones(x.shape[:-1], dtype=torch.bool, device=x.device)
    return x.amax(-1) - x.amin(-1) < CONSTANT_WITHIN


def spearman(x: Float[Tensor | np.ndarray, "... p"], gold: Float[Tensor | np.ndarray, "q"]) -> Float[Tensor, "..."]:
    """Spearman's rho of every row of `x` with `gold`: the Pearson correlation of average ranks.

    Equal to `scipy.stats.spearmanr` (ties included) but for rows of `x` that span less than 1e-9: these are cosines
    that differ by rounding alone (`is_constant`), so numbers of a much smaller scale than 1 are to be multiplied first,
    which changes no rank. NaN where a side is constant, holds NaN, or p < 2: the correlation is not defined there.
    `gold` is constant when all its values are equal. Raises ValueError for another number of values than `gold` has.
    """
    x, gold = widened(check_real(x)), check_real(check_shape(gold, "gold", "p"), "gold")
    if x.shape[-1:] != gold.shape:
        raise ValueError(f"x must have p={gold.shape[0]} values a row, got {list(x.shape)}")
    b = average_ranks(gold) - (gold.shape[0] + 1) / 2
    product, square = rank_products(x, b)
    norm = (square * b.square().sum()).sqrt()
    defined = (norm > 0) & ~is_constant(x) & ~torch.isnan(x).any(-1) & ~torch.isnan(gold).any()
    return torch.where(defined, product / norm, torch.nan).clamp(-1, 1)


def rank_products(
    x: Float[Tensor, "... p"], b: Float[Tensor, "p"]
) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
    """a . b and a . a for the centred average ranks a of every row of `x`, without forming the ranks.

    With `b` brought into the order of a row the ranks are 1..p, and a . a = (p^3 - p) / 12. What is left is to
    give each run of t equal values its mean rank, which takes (t^3 - t) / 12 from a . a (Kendall 1945). Exact:
    every sum is of quarters of whole numbers.
    """
    p = b.shape[0]
    rows = x.reshape(math.prod(x.shape[:-1]), p)
    order = _order(rows)
    values, sorted_b = rows.gather(-1, order), b.to(torch.float64)[order]
    place = torch.arange(p, dtype=torch.float64, device=x.device) - (p - 1) / 2
    product, square = sorted_b @ place, torch.full_like(sorted_b[:, :1].sum(-1), (p**3 - p) / 12)
    row, start, run, member = _ties(values)
    size = torch.bincount(run, minlength=len(row)).to(torch.float64)
    shift = (start + (size - 1) / 2)[run] - member  # from a tied value's own place to the mean of its run
    product.index_add_(0, row[run], shift * sorted_b[row[run], member])
    square.index_add_(0, row, (size - size**3) / 12)
    return product.view(x.shape[:-1]), square.view(x.shape[:-1])


def _order(x: Float[Tensor, "r p"]) -> Int[Tensor, "r p"]:
    # Measured at p = 1379: numpy's argsort on one core takes half the time of torch's on two.
    if x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64):
        return torch.from_numpy(np.argsort(x.detach().numpy(), axis=-1))
    return torch.argsort(x, dim=-1)


def _ties(
    values: Float[Tensor, "r p"],
) -> tuple[Int[Tensor, "g"], Int[Tensor, "g"], Int[Tensor, "m"], Int[Tensor, "m"]]:
    """Runs of equal values in sorted rows: each run's row and first place; each member's run and place."""
    again_row, again = (values[:, 1:] == values[:, :-1]).nonzero(as_tuple=True)  # equal to the value before it
    first = torch.ones_like(again, dtype=torch.bool)
    first[1:] = (again_row[1:] != again_row[:-1]) | (again[1:] != again[:-1] + 1)
    run = first.cumsum(0) - 1
    row, start = again_row[first], again[first]
    return row, start, torch.cat([torch.arange(len(row), device=run.device), run]), torch.cat([start, again + 1])


def spearman_by_subset(
    x: Float[Tensor, "... p"], gold: Float[Tensor, "p"], subset: Int[Tensor, "p"], n_subsets: int
) -> Float[Tensor, "... s"]:
    """Spearman's rho within each subset; `subset` holds the subset's number of every pair."""
    columns = []
    for number in range(n_subsets):
        rows = (subset == number).nonzero()[:, 0]
        columns.append(spearman(x[..., rows], gold[rows]))
    return torch.stack(columns, dim=-1)


def weights(subset: Int[Tensor, "p"], n_subsets: int, how: str) -> Float[Tensor, "s"]:
    """The share of every subset's score in the average: equal, or its share of the pairs under `wmean`."""
    sizes = torch.bincount(subset, minlength=n_subsets).to(torch.float64)
    return sizes / sizes.sum() if how == "wmean" else torch.full_like(sizes, 1 / n_subsets)


def aggregate(
    x: Float[Tensor, "... p"],
    gold: Float[Tensor, "p"],
    subset: Int[Tensor, "p"],
    n_subsets: int,
    how: str = "all",
) -> Float[Tensor, "..."]:
    """One score a setting: `all` pairs at once, `mean` over subsets, or `wmean` weighted by pairs.

    The three differ by several points on STS-12..16 (SimCSE reports `all`, Su et al. `wmean`,
    WhiteningBERT `mean`). With one subset they agree. NaN if any subset's own score is undefined.
    """
    check_choice(how, "aggregate", AGGREGATES)
    if ranked_at_once(n_subsets, how):
        return spearman(x, gold)
    return (spearman_by_subset(x, gold, subset, n_subsets) * weights(subset, n_subsets, how)).sum(-1)


def ranked_at_once(n_subsets: int, how: str) -> bool:
    """Whether all pairs are ranked together, so that the score is one correlation."""
    return how == "all" or n_subsets == 1


@dataclass(frozen=True, eq=False)
class Judged:
    """What scores of a task are held against: the gold scores of its pairs, and the subset of each."""

    gold: Float[Tensor, "p"]
    subset: Int[Tensor, "p"]
    n_subsets: int

    def spearman(self, x: Float[Tensor, "... p"], how: str = "all") -> Float[Tensor, "..."]:
        """`aggregate` of `x` against these."""
        return aggregate(x, self.gold, self.subset, self.n_subsets, how)

    def cpu(self) -> "Judged":
        """The same on the CPU, where resampling a few thousand pairs is quicker than launching it."""
        return Judged(self.gold.cpu(), self.subset.cpu(), self.n_subsets)


def half_width(rho: float, pairs: int | Sequence[int], how: str = "mean") -> float:
    """Half the width of the 95 % interval of a Spearman correlation, or of a mean of several.

    Bonett and Wright (2000): Fisher's z has the variance (1 + rho^2 / 2) / (p - 3). Several subsets,
    given by their sizes, are treated as independent with the same rho, averaged plainly (`mean`) or
    weighted by size (`wmean`). NaN below 4 pairs.
    """
    sizes = [pairs] if isinstance(pairs, int) else list(pairs)
    if math.isnan(rho) or min(sizes) < 4:
        return math.nan
    weights = sizes if how == "wmean" else [1] * len(sizes)
    parts = (w**2 * (1 + rho**2 / 2) / (p - 3) for w, p in zip(weights, sizes, strict=True))
    variance = sum(parts) / sum(weights) ** 2
    z, step = math.atanh(max(min(rho, 1 - 1e-12), -1 + 1e-12)), 1.959963984540054 * math.sqrt(variance)
    return (math.tanh(z + step) - math.tanh(z - step)) / 2
