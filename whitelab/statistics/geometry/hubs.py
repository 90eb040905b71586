"""Hubs: rows that are among the nearest neighbours of far more rows than others are."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from whitelab.base.checks import check_int, check_matrix
from whitelab.statistics.geometry.cosines import normalize

TOP = 10  # neighbours of a row, as Radovanovic et al. 2010 count them

_ROWS_PER_PART = 512


def nearest(x: Float[Tensor, "n d"], top: int = TOP) -> Int[Tensor, "n t"]:
    """The `top` rows nearest to every row by cosine, itself left out, nearest first."""
    u = normalize(check_matrix(x))
    n = u.shape[0]
    check_int(top, "top", 1, n - 1, "n-1")
    parts = []
    for start in range(0, n, _ROWS_PER_PART):
        cosines = u[start : start + _ROWS_PER_PART] @ u.T
        rows = torch.arange(cosines.shape[0])
        cosines[rows, start + rows] = -torch.inf
        parts.append(cosines.topk(top, dim=1).indices)
    return torch.cat(parts)


def neighbour_counts(x: Float[Tensor, "n d"], top: int = TOP) -> Int[Tensor, "n"]:
    """N_k of every row: on how many rows' lists of `top` nearest neighbours it is (Radovanovic et al. 2010, section 2).

    Their mean is `top`, whatever the data; a row far above it is a hub.
    """
    return torch.bincount(nearest(x, top).flatten(), minlength=x.shape[0])
