"""Count, mean and scatter of a set of sentence embeddings: what every whitening is fitted from.

Moments accumulate, merge and shrink; the map fitted from them (`whitelab.whitening`) is frozen. Sums
are float64 whatever the input: in float32 the mean alone can be wrong by tens of standard deviations
along a null direction of the covariance.

`merge` keeps them up to date: exact, and with one row the recursion of Su et al. 2021, Eq. 10-11.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.base.checks import check_int, check_is, check_matrix, check_weights
from whitelab.base.devices import at_once, is_on
from whitelab.base.lazy import cached_property
from whitelab.statistics import linalg
from whitelab.statistics.linalg import Eigen, exact

# Rows taken to float64 at once: 12 MB at 768 dimensions, which the allocator reuses. Larger tables cost more in
# fresh pages, smaller ones in merging.
BATCH_ROWS = 2048
_TABLES = 2  # of a batch in float64 alive at once


@dataclass(frozen=True, eq=False)
class Moments:
    """`count` rows (each as often as it counts), `mean [d]`, `scatter [d, d]` = sum y y^T with y = x - mean.

    `cubic [d]` = sum ||y||^2 y and `quartic` = sum ||y||^4 are what the Ledoit-Wolf estimate needs beyond
    that (cubic only so that quartic can be merged), `unit [d]` = sum x / ||x|| is what the removal of the mean
    direction of unit vectors needs (a row of zeros adds nothing); None where they were not kept.
    """

    count: float
    mean: Float[Tensor, "d"]
    scatter: Float[Tensor, "d d"]
    cubic: Float[Tensor, "d"] | None = None
    quartic: float | None = None
    unit: Float[Tensor, "d"] | None = None

    @classmethod
    def of(cls, x, weights=None, batch_rows: int | None = None) -> "Moments":
        """Moments of the rows of `x [n, d]`; `weights [n]` are counts: a row of weight w stands for w equal rows.

        Works through `batch_rows` rows at a time, as many as suit the device, so beside `x` it needs d^2 plus one
        batch. Raises ValueError for NaN, infinity, a wrong shape, weights that are no counts or no row at a time.
        """
        x = check_matrix(x)
        if batch_rows is not None:
            check_int(batch_rows, "batch_rows", 1)
        else:
            batch_rows = at_once(x.device, BATCH_ROWS, _TABLES * 8 * x.shape[1])
        weights = None if weights is None else check_weights(weights, x.shape[0]).to(x.device)
        parts = (
            _of_batch(x[i : i + batch_rows], None if weights is None else weights[i : i + batch_rows])
            for i in range(0, x.shape[0], batch_rows)
        )
        return cls.merged(parts)

    def to(self, device: str | torch.device) -> "Moments":
        """The same on `device`; these, with their decomposition, where they are there."""
        if is_on(self.mean, device):
            return self
        sums = {name: getattr(self, name) for name in ("mean", "scatter", "cubic", "unit")}
        return replace(self, **{name: one.to(device) for name, one in sums.items() if one is not None})

    @classmethod
    def merged(cls, parts: Iterable["Moments"]) -> "Moments":
        """Moments of the union of disjoint parts. Raises ValueError when there is none."""
        total = None
        for part in parts:
            total = part if total is None else total.merge(part)
        if total is None:
            raise ValueError("parts must hold at least one Moments, got none")
        return total

    def merge(self, other: "Moments") -> "Moments":
        """Moments of both sets together (Chan, Golub and LeVeque 1983, the pairwise update).

        Raises ValueError for another d, TypeError for what are no moments.
        """
        check_moments(other, "other")
        if self.dim != other.dim:
            raise ValueError(f"other must have d={self.dim} dimensions, got {other.dim}")
        count = self.count + other.count
        if count == 0:
            return self
        step = other.mean - self.mean
        mean = self.mean + step * (other.count / count)
        scatter = torch.addr(self.scatter + other.scatter, step, step, alpha=self.count * other.count / count)
        cubic, quartic = None, None
        if self.quartic is not None and other.quartic is not None:
            (cubic, quartic), (more_cubic, more_quartic) = self._higher_about(mean), other._higher_about(mean)
            cubic, quartic = cubic + more_cubic, quartic + more_quartic
        unit = None if self.unit is None or other.unit is None else self.unit + other.unit
        return Moments(count, mean, scatter, cubic, quartic, unit)

    def _higher_about(self, point: Float[Tensor, "d"]) -> tuple[Float[Tensor, "d"], float]:
        """`cubic` and `quartic` of the same rows measured from `point` instead of their mean."""
        step = point - self.mean
        square, turned, spread = step @ step, self.scatter @ step, self.scatter.diagonal().sum()
        cubic = self.cubic - (spread + self.count * square) * step - 2 * turned
        quartic = 4 * (step @ turned) + self.count * square**2 - 4 * (self.cubic @ step) + 2 * square * spread
        return cubic, self.quartic + float(quartic)

    @property
    def dim(self) -> int:
        """d, the number of dimensions."""
        return self.mean.shape[0]

    @cached_property
    def covariance(self) -> Float[Tensor, "d d"]:
        """scatter / (count - 1), as `numpy.cov` (the zero matrix for a single row)."""
        return self.scatter / max(self.count - 1.0, 1.0)

    @cached_property
    def eigen_all(self) -> Eigen:
        """Every eigen-direction of the covariance, kept once computed."""
        return linalg.eigen_all(self.covariance)

    @cached_property
    def eigen(self) -> Eigen:
        """The eigen-directions of the covariance that the rank policy keeps."""
        return self.eigen_all.top(linalg.kept_rank(self.eigen_all.values))

    @cached_property
    def standardized(self) -> tuple[Float[Tensor, "d"], Eigen]:
        """1 / deviation of each coordinate (0 where there is none), and the eigen-directions of the correlation.

        Both of the kept subspace alone, so that the rank is that of the covariance.
        """
        kept = self.eigen
        covariance = (kept.vectors * kept.values) @ kept.vectors.T
        variance = covariance.diagonal().clamp_min(0)
        scale = torch.where(variance >= linalg.RANK_TOLERANCE * variance.max(), variance.rsqrt(), 0.0)
        return scale, (linalg.eigen(covariance * scale[:, None] * scale) if kept.rank else kept).top(kept.rank)


def check_moments(moments, name: str = "moments") -> Moments:
    """Return `moments` if they are. Raises TypeError for all else, such as rows."""
    return check_is(moments, name, Moments, "Moments.of(x) makes of rows x")


def _of_batch(x: Tensor, weights: Tensor | None) -> Moments:
    # Measured from a row, so that rows which are all equal have a scatter of exactly zero. One table in float64,
    # changed in place, because fresh pages for every step cost as much as the product.
    origin = exact(x[0]) if weights is None else linalg.first_counted(x, weights)
    y = exact(x, copy=True)
    inverse = torch.linalg.vector_norm(y, dim=1).reciprocal()
    inverse[inverse.isinf()] = 0.0
    unit = (inverse if weights is None else inverse * exact(weights)) @ y
    y -= origin
    if weights is None:
        count, weights = float(len(y)), 1.0
        mean = y.mean(dim=0)
    else:
        weights = exact(weights)
        count = float(weights.sum())
        if count == 0:
            zero = torch.zeros_like(origin)
            return Moments(0.0, zero, torch.outer(zero, zero), zero, 0.0, zero)
        mean = (weights @ y) / count
    y -= mean
    square = torch.linalg.vecdot(y, y)
    weighted = weights * square
    cubic, quartic = weighted @ y, float(weighted @ square)
    if not isinstance(weights, float):
        y *= weights.sqrt()[:, None]
    return Moments(count, origin + mean, linalg.gram(y), cubic, quartic, unit)
