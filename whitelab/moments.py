"""Count, mean and scatter of a set of sentence embeddings: what every whitening is fitted from.

Moments accumulate, merge and shrink; the map fitted from them (`whitelab.whitening`) is frozen. Sums
are float64 whatever the input: in float32 the mean alone can be wrong by tens of standard deviations
along a null direction of the covariance.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.checks import check_matrix, check_weights
from whitelab.linalg import exact

BATCH_ROWS = 8192


@dataclass(frozen=True, eq=False)
class Moments:
    """`count` rows (or their total weight), `mean [d]`, `scatter [d, d]` = sum (x - mean)(x - mean)^T."""

    count: float
    mean: Float[Tensor, "d"]
    scatter: Float[Tensor, "d d"]

    @classmethod
    def of(cls, x, weights=None, batch_rows: int = BATCH_ROWS) -> "Moments":
        """Moments of the rows of `x [n, d]`; a row of weight w counts as w equal rows.

        Works through `batch_rows` rows at a time, so beside `x` it needs d^2 plus one batch. Raises
        ValueError for NaN, infinity, a wrong shape or negative weights.
        """
        x = check_matrix(x)
        weights = None if weights is None else check_weights(weights, x.shape[0]).to(x.device)
        parts = (
            _of_batch(x[i : i + batch_rows], None if weights is None else weights[i : i + batch_rows])
            for i in range(0, x.shape[0], batch_rows)
        )
        return cls.merged(parts)

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
        """Moments of both sets together (Chan, Golub and LeVeque 1983, the pairwise update)."""
        if self.dim != other.dim:
            raise ValueError(f"other must have d={self.dim} dimensions, got {other.dim}")
        count = self.count + other.count
        if count == 0:
            return self
        step = other.mean - self.mean
        mean = self.mean + step * (other.count / count)
        between = torch.outer(step, step) * (self.count * other.count / count)
        return Moments(count, mean, self.scatter + other.scatter + between)

    @property
    def dim(self) -> int:
        """d, the number of dimensions."""
        return self.mean.shape[0]

    @property
    def covariance(self) -> Float[Tensor, "d d"]:
        """scatter / (count - 1), as `numpy.cov` (the zero matrix for a single row)."""
        return self.scatter / max(self.count - 1.0, 1.0)


def _of_batch(x: Tensor, weights: Tensor | None) -> Moments:
    # Measured from the first row, so that rows which are all equal have a scatter of exactly zero.
    origin = exact(x[0])
    x = exact(x) - origin
    if weights is None:
        mean = x.mean(dim=0)
        centred = x - mean
        return Moments(float(x.shape[0]), origin + mean, centred.T @ centred)
    weights = exact(weights)
    count = float(weights.sum())
    if count == 0:
        zero = torch.zeros(x.shape[1], dtype=x.dtype, device=x.device)
        return Moments(0.0, zero, torch.outer(zero, zero))
    mean = (weights @ x) / count
    centred = x - mean
    return Moments(count, origin + mean, centred.T @ (centred * weights[:, None]))
