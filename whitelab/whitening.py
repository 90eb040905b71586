"""Moments -> a frozen, callable map that centres, scales or whitens.

Whitening makes the covariance the identity. Every W with W^T W = covariance^-1 does (Kessy, Lewin and
Strimmer 2018), and they differ by a rotation only, so at full rank PCA, ZCA and Cholesky give the same
cosine for every pair of sentences. Null directions are dropped by the rank policy of `whitelab.linalg`:
the result is then the pseudo-inverse map of the kept subspace.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab import linalg
from whitelab.checks import check_choice, check_int
from whitelab.linalg import exact
from whitelab.moments import Moments


@dataclass(frozen=True, eq=False)
class Whitener:
    """z = (x - mean) matrix, a fitted map.

    `matrix` is `[d, m]`, or `[d]` when it only scales the coordinates, or None when it is the identity.
    `rank` counts the directions the map keeps, `k` is what was asked for, `count` the rows (with
    repetitions) it was fitted on.
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
        """`matrix` written out, so that z = (x - mean) dense for every variant."""
        if self.matrix is None:
            return torch.eye(self.mean.shape[0], dtype=self.mean.dtype, device=self.mean.device)
        return torch.diag(self.matrix) if self.matrix.ndim == 1 else self.matrix


def fit_none(moments: Moments, k: int | None = None) -> Whitener:
    """Leave the embeddings as they are."""
    zero = torch.zeros_like(moments.mean)
    return Whitener("none", zero, None, moments.dim, None, moments.count)


def fit_center(moments: Moments, k: int | None = None) -> Whitener:
    """Subtract the mean; with `k`, also keep only the top-k principal directions, unscaled."""
    if k is None:
        return Whitener("center", moments.mean, None, moments.dim, None, moments.count)
    top = linalg.eigen(moments.covariance).top(k)
    return Whitener("center", moments.mean, top.vectors, top.rank, k, moments.count)


def fit_standardize(moments: Moments, k: int | None = None) -> Whitener:
    """Subtract the mean and divide each coordinate by its standard deviation, V^(-1/2).

    A coordinate that the rank policy calls constant becomes 0.
    """
    variance = moments.covariance.diagonal()
    kept = variance >= linalg.RANK_TOLERANCE * variance.max()
    kept &= variance > 0
    scale = torch.where(kept, variance.clamp_min(torch.finfo(variance.dtype).tiny).rsqrt(), 0.0)
    return Whitener("standardize", moments.mean, scale, int(kept.sum()), None, moments.count)


def fit_pca(moments: Moments, k: int | None = None) -> Whitener:
    """W = Lambda^(-1/2) U^T, the top-k rows: whitening-k of Su et al. 2021 (Algorithm 1)."""
    top = linalg.eigen(moments.covariance).top(k)
    return Whitener("pca", moments.mean, top.vectors * top.values.rsqrt(), top.rank, k, moments.count)


def fit_zca(moments: Moments, k: int | None = None) -> Whitener:
    """W = U Lambda^(-1/2) U^T: the whitening nearest to the centred data (Mahalanobis whitening).

    With `k` the sum runs over the top-k eigen-directions. "The first k coordinates" of a ZCA mean nothing.
    """
    top = linalg.eigen(moments.covariance).top(k)
    matrix = (top.vectors * top.values.rsqrt()) @ top.vectors.T
    return Whitener("zca", moments.mean, matrix, top.rank, k, moments.count)


def fit_cholesky(moments: Moments, k: int | None = None) -> Whitener:
    """W = L^-1 with covariance = L L^T, as in W-MSE (Ermolov et al. 2021, section 3).

    Where the covariance is singular, or only the top-k eigen-directions are wanted, W is the lower
    trapezoidal factor with W^T W = the pseudo-inverse on the kept subspace.
    """
    inverse = linalg.trusted_cholesky(moments.covariance) if k is None or k == moments.dim else None
    if inverse is not None:
        return Whitener("cholesky", moments.mean, inverse.T, moments.dim, k, moments.count)
    top = linalg.eigen(moments.covariance).top(k)
    matrix = linalg.lower_factor((top.vectors * top.values.rsqrt()).T).T if top.rank else top.vectors
    return Whitener("cholesky", moments.mean, matrix, top.rank, k, moments.count)


@dataclass(frozen=True)
class Variant:
    """One entry of `WHITENERS`: how to fit it and what to tell a user about it."""

    fit: Callable[[Moments, int | None], Whitener]
    label: str
    formula: str
    source: str
    hint: str
    takes_k: bool
    whitens: bool


WHITENERS: dict[str, Variant] = {
    "none": Variant(
        fit_none, "Raw", r"z = x", "", "The embeddings as the model gives them.", takes_k=False, whitens=False
    ),
    "center": Variant(
        fit_center,
        "Centred",
        r"z = x - \mu",
        "Baseline",
        "Subtracts the mean. This alone explains most of the gain in uniformity.",
        takes_k=True,
        whitens=False,
    ),
    "standardize": Variant(
        fit_standardize,
        "Standardised",
        r"z = V^{-1/2}(x - \mu),\quad V = \operatorname{diag}\Sigma",
        "Timkey and van Schijndel 2021",
        "Gives each coordinate mean 0 and variance 1; correlations stay.",
        takes_k=False,
        whitens=False,
    ),
    "pca": Variant(
        fit_pca,
        "PCA whitening",
        r"z = \Lambda_k^{-1/2}U_k^\top(x - \mu),\quad \Sigma = U\Lambda U^\top",
        "Su et al. 2021, Algorithm 1; Huang et al. 2021, section 3.3",
        "Rotates to the principal directions and scales each to variance 1.",
        takes_k=True,
        whitens=True,
    ),
    "zca": Variant(
        fit_zca,
        "ZCA whitening",
        r"z = U_k\Lambda_k^{-1/2}U_k^\top(x - \mu)",
        "Kessy et al. 2018; Zhuo et al. 2023",
        "The whitening that moves the data least: PCA whitening rotated back.",
        takes_k=True,
        whitens=True,
    ),
    "cholesky": Variant(
        fit_cholesky,
        "Cholesky whitening",
        r"z = L^{-1}(x - \mu),\quad \Sigma = LL^\top",
        "Ermolov et al. 2021, section 3",
        "A triangular whitening: each coordinate is freed from those before it.",
        takes_k=True,
        whitens=True,
    ),
}


def check_k(k: int | None, name: str, dim: int) -> int | None:
    """Return `k` if variant `name` can keep that many of `dim` directions."""
    if k is None:
        return None
    if not WHITENERS[name].takes_k:
        takers = ", ".join(key for key, variant in WHITENERS.items() if variant.takes_k)
        raise ValueError(f"k={k} has no meaning for whitening={name!r}; k is taken by {takers}")
    return check_int(k, "k", 1, dim, "d")


def fit(name: str, moments: Moments, k: int | None = None) -> Whitener:
    """Fit the variant `name` of `WHITENERS` to `moments`, keeping the top-k eigen-directions.

    `k` None keeps all; a `k` above the rank keeps the rank. Raises ValueError for an unknown name, for
    `k` outside 1..d, and for `k` where it has no meaning.
    """
    check_choice(name, "whitening", WHITENERS)
    return WHITENERS[name].fit(moments, check_k(k, name, moments.dim))
