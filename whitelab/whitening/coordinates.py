"""Variants that keep coordinates as the model numbers them."""

import torch

from whitelab.base.checks import check_int
from whitelab.statistics.moments import Moments
from whitelab.whitening.maps import Whitener, of_moments
from whitelab.whitening.spectral import Directions


def prefix_directions(moments: Moments) -> Directions:
    """The coordinates in their order, neither scaled nor centred."""
    axes = torch.eye(moments.dim, dtype=moments.mean.dtype, device=moments.mean.device)
    return Directions(axes, axes, centred=False)


@of_moments
def fit_prefix(moments: Moments, k: int | None = None) -> Whitener:
    """The first k coordinates, for models whose prefixes were trained to serve (Kusupati et al. 2022).

    Nothing is learned from `moments`. A cosine needs no second normalisation; other uses of the vectors may.
    """
    k = None if k is None else check_int(k, "k", 1, moments.dim, "d")
    matrix = None if k is None or k == moments.dim else prefix_directions(moments).columns(k)
    return Whitener("prefix", torch.zeros_like(moments.mean), matrix, k or moments.dim, k, 0.0)
