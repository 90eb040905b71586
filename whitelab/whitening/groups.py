"""Variants that work on blocks of coordinates: one coordinate each, or groups of them."""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from whitelab.base.checks import check_int, check_permutation
from whitelab.statistics import linalg
from whitelab.statistics.moments import Moments
from whitelab.whitening.maps import Whitener, of_moments


@of_moments
def fit_standardize(moments: Moments) -> Whitener:
    """Subtract the mean and divide each coordinate by its standard deviation, V^(-1/2).

    A coordinate that the rank policy calls constant becomes 0. Raises TypeError for what are no moments.
    """
    variance = moments.covariance.diagonal()
    kept = (variance >= linalg.RANK_TOLERANCE * variance.max()) & (variance > 0)
    scale = torch.where(kept, variance.clamp_min(torch.finfo(variance.dtype).tiny).rsqrt(), 0.0)
    return Whitener("standardize", moments.mean, scale, int(kept.sum()), None, moments.count)


@of_moments
def fit_group(moments: Moments, *, groups: int = 8) -> Whitener:
    """ZCA whitening of each of `groups` blocks of consecutive coordinates; between blocks nothing changes.

    WhitenedCSE (Zhuo et al. 2023), Eq. 4. One group is ZCA whitening, d groups are standardising. Where
    `groups` does not divide d, the first d mod `groups` blocks are one coordinate larger. Raises ValueError for
    `groups` outside 1..d, TypeError for what are no moments.
    """
    check_int(groups, "groups", 1, moments.dim, "d")
    order = torch.arange(moments.dim, device=moments.mean.device)
    matrix, rank = _blocks(moments.covariance, order, groups)
    return Whitener("group", moments.mean, matrix, rank, None, moments.count)


@of_moments
def fit_shuffled_group(
    moments: Moments, *, groups: int = 8, seed: int = 0, permutation: Int[Tensor | np.ndarray, "d"] | None = None
) -> Whitener:
    """Group whitening of shuffled coordinates, put back in their order: WhitenedCSE, Eq. 5 and 6.

    The permutation is drawn from `seed`, or given. With the identity it is `fit_group`. Raises as `fit_group`, and
    ValueError for a `seed` below 0 and for what is no permutation of 0..d - 1.
    """
    check_int(groups, "groups", 1, moments.dim, "d")
    seed = check_int(seed, "seed", 0)
    if permutation is None:
        permutation = torch.randperm(moments.dim, generator=torch.Generator().manual_seed(seed))
    permutation = check_permutation(permutation, moments.dim)
    matrix, rank = _blocks(moments.covariance, permutation.to(moments.mean.device), groups)
    return Whitener("shuffled_group", moments.mean, matrix, rank, None, moments.count)


def _blocks(covariance: Float[Tensor, "d d"], order: Int[Tensor, "d"], groups: int) -> tuple[Float[Tensor, "d d"], int]:
    """The inverse square root of each block of the covariance, and how many directions are kept.

    All blocks are measured against the largest eigenvalue of any, so that a dead coordinate stays dead in
    whichever block it lies.
    """
    parts = torch.tensor_split(order, groups)
    found = [linalg.eigen_all(covariance[part][:, part]) for part in parts]
    largest = max(float(one.values[0]) for one in found)
    matrix, rank = torch.zeros_like(covariance), 0
    for part, every in zip(parts, found, strict=True):
        kept = every.top(linalg.kept_rank(every.values, largest))
        matrix[part[:, None], part] = (kept.vectors * kept.values.rsqrt()) @ kept.vectors.T
        rank += kept.rank
    return matrix, rank
