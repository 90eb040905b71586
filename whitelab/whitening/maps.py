"""The fitted map itself."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.statistics.linalg import exact


@dataclass(frozen=True, eq=False)
class Whitener:
    """z = (x - mean) matrix, a fitted map.

    `matrix` is `[d, m]`, or `[d]` when it only scales the coordinates, or None when it is the identity.
    `name` is the variant with its parameters, `rank` counts the directions the map keeps, `k` is what was
    asked for, `count` the rows (with repetitions) it was fitted on.
    """

    name: str
    mean: Float[Tensor, "d"]
    matrix: Float[Tensor, "d m"] | Float[Tensor, "d"] | None
    rank: int
    k: int | None
    count: float

    def __call__(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n m"]:
        """The map of every row of `x`, in float64."""
        if x.shape[-1] != self.mean.shape[0]:
            raise ValueError(f"x must have d={self.mean.shape[0]} columns, got {x.shape[-1]}")
        centred = exact(x) - self.mean
        if self.matrix is None:
            return centred
        return centred * self.matrix if self.matrix.ndim == 1 else centred @ self.matrix

    @property
    def dense(self) -> Float[Tensor, "d m"]:
        """The matrix written out, whatever form it is kept in."""
        if self.matrix is None:
            return torch.eye(self.mean.shape[0], dtype=self.mean.dtype, device=self.mean.device)
        return torch.diag(self.matrix) if self.matrix.ndim == 1 else self.matrix
