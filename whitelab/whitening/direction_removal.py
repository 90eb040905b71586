"""Variants that whiten nothing and take directions away."""

import torch

from whitelab.base.checks import check_int
from whitelab.statistics import linalg
from whitelab.statistics.moments import Moments
from whitelab.whitening.maps import Whitener


def fit_all_but_the_top(moments: Moments, *, directions: int = 3) -> Whitener:
    """Subtract the mean and the projection on the first `directions` principal directions.

    Mu and Viswanath 2018, Algorithm 1; they advise about d / 100 of them. 0 is centring.
    """
    check_int(directions, "directions", 0, moments.dim - 1, "d-1")
    top = moments.eigen.vectors[:, :directions]
    eye = torch.eye(moments.dim, dtype=top.dtype, device=top.device)
    rank = moments.dim - top.shape[1]
    return Whitener("all_but_the_top", moments.mean, eye - top @ top.T, rank, None, moments.count)


def fit_common_component(moments: Moments) -> Whitener:
    """Subtract the projection on the first singular direction of the data, which is NOT centred first.

    Arora et al. 2017 (SIF), Algorithm 1. Where all rows are zero there is nothing to subtract.
    """
    second = moments.scatter + moments.count * torch.outer(moments.mean, moments.mean)
    top = linalg.eigen(second).top(1).vectors
    eye = torch.eye(moments.dim, dtype=top.dtype, device=top.device)
    zero = torch.zeros_like(moments.mean)
    rank = moments.dim - top.shape[1]
    return Whitener("common_component", zero, eye - top @ top.T, rank, None, moments.count)


def fit_r2(moments: Moments) -> Whitener:
    """Subtract the projection on the mean direction of the rows at unit length; nothing is centred or scaled.

    Ren et al. 2025 (arXiv 2511.11041), R2: e - (e . m) m with m the mean of the unit vectors e, itself at unit length.
    It is applied to rows of any length, whose cosines are those of the unit vectors. Raises ValueError for moments
    without `unit`; where the unit vectors cancel there is nothing to subtract.
    """
    if moments.unit is None:
        raise ValueError("moments must hold unit for r2, as those of Moments.of do")
    length = float(moments.unit.norm())
    mean = moments.unit / length if length > linalg.RANK_TOLERANCE * moments.count else torch.zeros_like(moments.unit)
    eye = torch.eye(moments.dim, dtype=mean.dtype, device=mean.device)
    return Whitener("r2", torch.zeros_like(mean), eye - torch.outer(mean, mean), moments.dim - 1, None, moments.count)
