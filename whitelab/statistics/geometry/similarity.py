"""Linear CKA: how alike two spaces of the same sentences are, whatever their axes and scale."""

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.base.checks import check_matrix
from whitelab.statistics.linalg import exact

_ROWS_PER_PART = 8192


def linear_cka(x, y) -> float:
    """||Y^T X||_F^2 / (||X^T X||_F ||Y^T Y||_F) of the centred columns, 0 to 1 (Kornblith et al. 2019, section 3).

    Rows of `x [n, d]` and `y [n, e]` are the same sentences. The same under any rotation and any scale of either; not
    under whitening, which is no rotation. Needs d e numbers beside its arguments, never n^2. NaN where a side does not
    vary. Raises ValueError for other shapes and for numbers that are not finite.
    """
    x, y = check_matrix(x), check_matrix(y, "y")
    if len(x) != len(y):
        raise ValueError(f"y must have n={len(x)} rows, one for each of x, got {len(y)}")
    one, other, both = (cross_square(a, b) for a, b in ((x, x), (y, y), (x, y)))
    return float("nan") if one * other <= 0 else both / (one * other) ** 0.5


def cross_square(x: Float[Tensor, "n d"], y: Float[Tensor, "n e"]) -> float:
    """||Y^T X||_F^2 of the centred columns, float64."""
    total = torch.zeros(x.shape[1], y.shape[1], dtype=torch.float64, device=x.device)
    sums = [torch.zeros(side.shape[1], dtype=torch.float64, device=x.device) for side in (x, y)]
    for start in range(0, len(x), _ROWS_PER_PART):
        # Measured from the first row, so that columns which do not vary are exactly zero.
        parts = [exact(side[start : start + _ROWS_PER_PART]) - exact(side[0]) for side in (x, y)]
        total.addmm_(parts[0].T, parts[1])
        for one, part in zip(sums, parts, strict=True):
            one += part.sum(0)
    total.addr_(*sums, alpha=-1 / len(x))
    return float(total.square().sum())
