"""HSIC, of which linear CKA is made: how alike two spaces of the same sentences are, whatever their axes."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.statistics.linalg import exact

_ROWS_PER_PART = 8192
_NOTHING = 1e-9  # of HSIC as it stands: what is left of it without its bias is rounding


def hsic(x: Float[Tensor, "n d"], y: Float[Tensor, "n e"]) -> float:
    """The unbiased estimate of HSIC under linear kernels (Song et al. 2012, Eq. 4), float64. NaN below 4 rows.

    Of centred rows it is (||Y^T X||_F^2 - n / (n - 2) sum_i |x_i|^2 |y_i|^2 + ||X||_F^2 ||Y||_F^2 / ((n - 1)(n - 2)))
    / (n (n - 3)): without the diagonals of the kernels, in which a row is as near to itself as its length allows.
    """
    n = len(x)
    if n < 4:
        return math.nan
    cross = torch.zeros(x.shape[1], y.shape[1], dtype=torch.float64, device=x.device)
    means, lengths = [_mean(side) for side in (x, y)], []
    for start in range(0, n, _ROWS_PER_PART):
        rows = [_apart(side, start).sub_(mean) for side, mean in zip((x, y), means, strict=True)]
        cross.addmm_(rows[0].T, rows[1])
        lengths.append(torch.stack([one.square().sum(1) for one in rows]))
    whole, (of_x, of_y) = cross.square().sum(), torch.cat(lengths, 1)
    found = whole - n / (n - 2) * (of_x @ of_y) + of_x.sum() * of_y.sum() / ((n - 1) * (n - 2))
    return float(torch.where(found.abs() > _NOTHING * whole, found, 0.0)) / (n * (n - 3))


def _mean(x: Float[Tensor, "n d"]) -> Float[Tensor, "d"]:
    """The mean row, measured from the first, so that columns which do not vary are exactly zero."""
    parts = (_apart(x, start).sum(0) for start in range(0, len(x), _ROWS_PER_PART))
    return sum(parts, torch.zeros(x.shape[1], dtype=torch.float64, device=x.device)) / len(x)


def _apart(x: Float[Tensor, "n d"], start: int) -> Float[Tensor, "p d"]:
    """Some rows, measured from the first of all."""
    return exact(x[start : start + _ROWS_PER_PART]) - exact(x[0])
