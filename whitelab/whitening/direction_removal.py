"""Variants that whiten nothing and take directions away."""

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.base.checks import check_int
from whitelab.statistics import linalg
from whitelab.statistics.moments import Moments
from whitelab.whitening.maps import Whitener, of_moments


@of_moments
def fit_all_but_the_top(moments: Moments, *, directions: int = 3) -> Whitener:
    """Subtract the mean and the projection on the first `directions` principal directions.

    Mu and Viswanath 2018, Algorithm 1; they advise about d / 100 of them. 0 is centring. Of rows that span no more
    directions than that nothing is left: the map is 0. Raises ValueError for `directions` outside 0..d - 1, TypeError
    for what are no moments.
    """
    check_int(directions, "directions", 0, moments.dim - 1, "d-1")
    if directions and not moments.eigen.rank:
        return _nothing("all_but_the_top", moments, moments.mean)
    return _without("all_but_the_top", moments, moments.mean, moments.eigen.vectors[:, :directions])


@of_moments
def fit_common_component(moments: Moments) -> Whitener:
    """Subtract the projection on the first singular direction of the data, which is NOT centred first.

    Arora et al. 2017 (SIF), Algorithm 1. Where all rows are zero there is nothing to subtract; of rows along one line
    nothing is left: the map is 0. Raises TypeError for what are no moments.
    """
    second = moments.scatter + moments.count * torch.outer(moments.mean, moments.mean)
    return _without("common_component", moments, torch.zeros_like(moments.mean), linalg.eigen(second).top(1).vectors)


@of_moments
def fit_r2(moments: Moments) -> Whitener:
    """Subtract the projection on the mean direction of the rows at unit length; nothing is centred or scaled.

    Ren et al. 2025 (arXiv 2511.11041), R2: e - (e . m) m with m the mean of the unit vectors e, itself at unit length.
    It is applied to rows of any length, whose cosines are those of the unit vectors. Where the unit vectors cancel
    there is nothing to subtract; of rows along one line nothing is left: the map is 0. Raises ValueError for moments
    without `unit`, TypeError for what are none.
    """
    if moments.unit is None:
        raise ValueError("moments must hold unit for r2, as those of Moments.of do")
    length = float(moments.unit.norm())
    mean = moments.unit / length if length > linalg.RANK_TOLERANCE * moments.count else torch.zeros_like(moments.unit)
    return _without("r2", moments, torch.zeros_like(mean), mean[:, None])


def _without(name: str, moments: Moments, mean: Float[Tensor, "d"], top: Float[Tensor, "d m"]) -> Whitener:
    """Subtract the mean, then the projection on the columns of `top`, which are orthonormal or 0.

    Where what that leaves of the rows it is fitted on may be rounding, whose cosines say nothing, the map is 0.
    """
    centre = moments.mean - mean
    squares = moments.scatter + moments.count * torch.outer(centre, centre)
    total = squares.diagonal().sum()
    if total - ((squares @ top) * top).sum() < linalg.RANK_TOLERANCE * total:
        return _nothing(name, moments, mean)
    eye = torch.eye(moments.dim, dtype=top.dtype, device=top.device)
    return Whitener(name, mean, eye - top @ top.T, moments.dim - top.shape[1], None, moments.count)


def _nothing(name: str, moments: Moments, mean: Float[Tensor, "d"]) -> Whitener:
    """The map that is 0."""
    return Whitener(name, mean, torch.zeros_like(moments.scatter), 0, None, moments.count)
