"""Variants that weigh the eigen-directions of the covariance or of the correlation.

Each is first a list of directions, the most important first: `Directions.matrix [d, r]`, whose first k
columns (`Directions.kept`) are the variant with k up to a rotation, so that one projection serves every k
(`whitelab.sweeps.dimensions`). The fitted map then keeps the columns (PCA form), turns them back (ZCA form) or
makes them triangular (Cholesky form).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.base.checks import check_int
from whitelab.base.devices import at_once
from whitelab.base.parameters import Parameter
from whitelab.statistics import linalg
from whitelab.statistics.linalg import Eigen, exact
from whitelab.statistics.moments import Moments
from whitelab.whitening.maps import Whitener, of_moments

# Rows turned at once: a centred copy of all of them would cost more in fresh pages than the product.
_ROWS_PER_PART = 1024


@dataclass(frozen=True, eq=False)
class Directions:
    """`matrix [d, r]`: weighted directions in order; `axes [d, r]`: the orthonormal ones that turn them back.

    `variances [r]` of the data along the axes and the `weights [r]` that `matrix` gives them, where they are the first
    eigenvectors of the covariance. Where the weights change with k, `factors[i, k - 1]` is what direction i weighs at k
    in units of its weight in `matrix`, 1 at k = r, and `exponents[k - 1]` the exponent at k. The data span the first
    `spanned`, None for all; those after these have no order. `centred`: the mean is subtracted first.
    """

    matrix: Float[Tensor, "d r"]
    axes: Float[Tensor, "d r"]
    variances: Float[Tensor, "r"] | None = None
    weights: Float[Tensor, "r"] | None = None
    factors: Float[Tensor, "r r"] | None = None
    exponents: Float[Tensor, "r"] | None = None
    spanned: int | None = None
    centred: bool = True

    @classmethod
    def weighted(cls, eigen: Eigen, weights: Float[Tensor, "r"], spanned: int | None = None) -> "Directions":
        """Eigenvectors of the covariance, each times its weight."""
        return cls(eigen.vectors * weights, eigen.vectors, eigen.values, weights, spanned=spanned)

    @property
    def rank(self) -> int:
        """r."""
        return self.matrix.shape[1]

    def kept(self, k: int | None) -> int:
        """How many directions a k keeps: of those that the data do not span all or none."""
        return self.rank if k is None or k >= self.rank else min(k, k if self.spanned is None else self.spanned)

    def columns(self, k: int | None) -> Float[Tensor, "d m"]:
        """The PCA form of the first k."""
        return self._at(self.matrix, k)

    def _at(self, weighted: Float[Tensor, "n r"], k: int | None) -> Float[Tensor, "n m"]:
        kept = self.kept(k)
        if self.factors is None or kept == self.rank:
            return weighted[:, :kept]
        return weighted[:, :kept] * self.factors[:kept, kept - 1]

    def along(self, x: Float[Tensor, "n d"], mean: Float[Tensor, "d"], k: int | None = None) -> Float[Tensor, "n m"]:
        """The rows of `x` in the first k directions; `mean` is that of the fit."""
        return _projected(x, self.columns(k), mean if self.centred else None)

    def of_axes(self, turned: Float[Tensor, "n d"], k: int | None) -> Float[Tensor, "n m"]:
        """`along` of rows that are `turned` already, where there are `weights`."""
        weights = self._at(self.weights[None], k)
        return turned[:, : weights.shape[1]] * weights

    def square_of_axes(self, turned: Float[Tensor, "d d"], k: int | None) -> Float[Tensor, "m m"]:
        """`columns(k)`^T C `columns(k)` of a matrix C that is `turned` to all eigenvectors on both sides."""
        (weights,) = self._at(self.weights[None], k)
        return turned[: len(weights), : len(weights)] * weights * weights[:, None]

    def turned_back(self, k: int | None) -> Float[Tensor, "d d"]:
        """The ZCA form: each direction's coordinate is put back along its own axis."""
        return self.columns(k) @ self.axes[:, : self.kept(k)].T


def turned(x: Float[Tensor, "n d"], moments: Moments) -> Float[Tensor, "n d"]:
    """The centred rows of `x` along every eigenvector of the covariance, the strongest first."""
    return _projected(x, moments.eigen_all.vectors, moments.mean)


def _projected(
    x: Float[Tensor, "n d"], columns: Float[Tensor, "d m"], mean: Float[Tensor, "d"] | None
) -> Float[Tensor, "n m"]:
    count, z = at_once(x.device, _ROWS_PER_PART, 8 * x.shape[1]), columns.new_empty(len(x), columns.shape[1])
    for rows, into in zip(x.split(count), z.split(count), strict=True):
        torch.mm(exact(rows) if mean is None else exact(rows, copy=True).sub_(mean), columns, out=into)
    return z


def _whitener(
    name: str, moments: Moments, found: Directions, k: int | None, form: Callable = Directions.columns
) -> Whitener:
    """The map of the first k directions in a form of theirs. Raises ValueError for a `k` outside 1..d."""
    k = None if k is None else check_int(k, "k", 1, moments.dim, "d")
    return Whitener(name, moments.mean, form(found, k), found.kept(k), k, moments.count)


# -------------------------------------------------------------------------------------------- covariance


@of_moments
def fit_none(moments: Moments) -> Whitener:
    """Leave the embeddings as they are. Raises TypeError for what are no moments."""
    return identity(moments.mean)


def identity(like: Float[Tensor, "d"]) -> Whitener:
    """That of `none`, for which no moments have to be known: on the device of `like`."""
    return Whitener("none", torch.zeros_like(like, dtype=torch.float64), None, len(like), None, 0.0)


def center_directions(moments: Moments) -> Directions:
    """U: the principal directions unscaled, with those that the data do not span."""
    every = moments.eigen_all
    return Directions.weighted(every, torch.ones_like(every.values), moments.eigen.rank)


@of_moments
def fit_center(moments: Moments, k: int | None = None) -> Whitener:
    """Subtract the mean; with `k`, also keep only the top-k principal directions, unscaled.

    A `k` below d drops all that the data do not span; d keeps them, as no `k` does. Raises ValueError for a `k` outside
    1..d, TypeError for what are no moments.
    """
    if k is None:
        return Whitener("center", moments.mean, None, moments.dim, None, moments.count)
    return _whitener("center", moments, center_directions(moments), k)


def pca_directions(moments: Moments) -> Directions:
    """U Lambda^(-1/2): every kept principal direction scaled to variance 1."""
    return Directions.weighted(moments.eigen, moments.eigen.values.rsqrt())


@of_moments
def fit_pca(moments: Moments, k: int | None = None) -> Whitener:
    """W = Lambda^(-1/2) U^T, the top-k rows: whitening-k of Su et al. 2021 (Algorithm 1).

    Raises ValueError for a `k` outside 1..d, TypeError for what are no moments.
    """
    return _whitener("pca", moments, pca_directions(moments), k)


@of_moments
def fit_zca(moments: Moments, k: int | None = None) -> Whitener:
    """W = U Lambda^(-1/2) U^T: the whitening nearest to the centred data (Mahalanobis whitening).

    With `k` the sum runs over the top-k eigen-directions. "The first k coordinates" of a ZCA mean nothing.
    Raises ValueError for a `k` outside 1..d, TypeError for what are no moments.
    """
    return _whitener("zca", moments, pca_directions(moments), k, Directions.turned_back)


@of_moments
def fit_cholesky(moments: Moments, k: int | None = None) -> Whitener:
    """W = L^-1 with covariance = L L^T, as in W-MSE (Ermolov et al. 2021, section 3).

    Where the covariance is singular, or only the top-k eigen-directions are wanted, W is the lower
    trapezoidal factor with W^T W = the pseudo-inverse on the kept subspace.
    Raises ValueError for a `k` outside 1..d, TypeError for what are no moments.
    """
    inverse = linalg.trusted_cholesky(moments.covariance) if k is None or k == moments.dim else None
    if inverse is not None:
        return Whitener("cholesky", moments.mean, inverse.T, moments.dim, k, moments.count)
    return _whitener("cholesky", moments, pca_directions(moments), k, _triangular)


def _triangular(found: Directions, k: int | None) -> Float[Tensor, "d m"]:
    columns = found.columns(k)
    return linalg.lower_factor(columns.T).T if columns.shape[1] else columns


# ------------------------------------------------------------------------------------------- correlation


def correlation_directions(moments: Moments) -> Directions:
    """V^(-1/2) G Theta^(-1/2) with V = diag covariance and correlation = G Theta G^T (Kessy et al. 2018).

    The rank policy speaks once, on the covariance: the correlation is that of the kept subspace and the
    data are first projected on it, so that rank and cosines are those of the other whitenings even where
    dividing by tiny standard deviations would bring dropped directions back.
    """
    kept, (scale, correlation) = moments.eigen, moments.standardized
    matrix = (correlation.vectors * correlation.values.rsqrt()) * scale[:, None]
    if kept.rank < moments.dim:
        matrix = kept.vectors @ (kept.vectors.T @ matrix)
    return Directions(matrix, correlation.vectors)


@of_moments
def fit_pca_cor(moments: Moments, k: int | None = None) -> Whitener:
    """W = Theta^(-1/2) G^T V^(-1/2): standardise, then PCA-whiten (Kessy et al. 2018, Eq. 12 and 13).

    `k` keeps the top-k eigen-directions of the correlation, which are not those of the covariance.
    Raises ValueError for a `k` outside 1..d, TypeError for what are no moments.
    """
    return _whitener("pca_cor", moments, correlation_directions(moments), k)


@of_moments
def fit_zca_cor(moments: Moments, k: int | None = None) -> Whitener:
    """W = G Theta^(-1/2) G^T V^(-1/2): the whitening nearest to the standardised data (Kessy et al. 2018).

    `k` keeps the top-k eigen-directions of the correlation. Raises ValueError for a `k` outside 1..d, TypeError for
    what are no moments.
    """
    return _whitener("zca_cor", moments, correlation_directions(moments), k, Directions.turned_back)


# ------------------------------------------------------------------------------------- partial whitening


AUTO = "auto"

# What `soft`, `shrunk` and `iternorm` take, from a spec as from a caller.
GAMMA = Parameter(
    "gamma",
    "γ",
    0.5,
    0,
    2,
    "Exponent: 0 centres, 1 whitens, above 1 whitens too far; auto takes it from the spectrum at each k.",
    words=(AUTO,),
    noun="exponent",
)
ALPHA = Parameter("alpha", "α", 0.0, 0, 10, "Ridge, in units of the mean variance.", noun="ridge")
METHOD = Parameter(
    "method",
    "estimate",
    "ledoit-wolf",
    choices=("ledoit-wolf", "oas", "epsilon"),
    hint="How far to shrink: two estimates from the data, or a fixed epsilon.",
)
EPS = Parameter(
    "eps",
    "ε",
    0.01,
    0,
    1,
    "(1 - eps) covariance + eps I, W-MSE's; depends on the scale of the data.",
    when=("method", "epsilon"),
    noun="epsilon",
)
STEPS = Parameter("steps", "T", 5, 1, 30, "Newton-Schulz steps; more whiten further.")


def snr_exponents(values: Float[Tensor, "r"], size: int) -> Float[Tensor, "size"]:
    """gamma(k) for k = 1..size, 0 to 1: the mean over the top k of SNR_i / (1 + SNR_i), Wiener's gain.

    SNR_i = max(0, lambda_i - s) / s with the noise level s the mean of the weaker half of the `values`, variances of
    the kept directions, descending; beyond r it stays. It falls as k grows: 0 for a flat spectrum, near 1 for
    directions far above the noise, and free of the scale. The rule is this package's own, after Spectral Tempering
    (Li et al. 2026, arXiv 2603.19339), of which the abstract alone was read: there too the exponent follows the
    signal-to-noise of the k directions kept, but by local SNR and a knee.
    """
    noise = values[len(values) // 2 :].mean()
    gains = (1 - noise / values).clamp(min=0)
    means = gains.cumsum(0) / torch.arange(1, len(gains) + 1, dtype=gains.dtype, device=gains.device)
    return torch.cat([means, means[-1:].expand(max(0, size - len(means)))])[:size]


def soft_directions(moments: Moments, gamma: float | str, alpha: float) -> Directions:
    """U (Lambda + alpha m I)^(-gamma/2) with m = trace / d, the mean variance; gamma `auto` is `snr_exponents`."""
    gamma, alpha = GAMMA.check(gamma), ALPHA.check(alpha)
    every = moments.eigen_all
    ridge = alpha * every.values.mean()
    if gamma == AUTO:
        kept = every if ridge > 0 else moments.eigen
        exponents = snr_exponents(moments.eigen.values, kept.rank)
        logs = (kept.values + ridge).log()[:, None] * exponents / -2
        last = logs[:, -1:].exp().sum(1)  # of which rank 0 has none
        found = Directions.weighted(kept, last, moments.eigen.rank)
        return replace(found, factors=(logs - logs[:, -1:]).exp(), exponents=exponents)
    if gamma == 0:
        return center_directions(moments)
    kept = every if ridge > 0 else moments.eigen
    return Directions.weighted(kept, (kept.values + ridge).pow(-gamma / 2), moments.eigen.rank)


@of_moments
def fit_soft(moments: Moments, k: int | None = None, *, gamma: float | str = 0.5, alpha: float = 0.0) -> Whitener:
    """W = U (Lambda + alpha m I)^(-gamma/2) U^T, partial whitening; m = trace / d.

    `gamma` 0 is centring, 1 is ZCA whitening, `auto` is chosen by the spectrum (`snr_exponents`). `alpha` is a ridge
    in units of the mean variance, so the result does not depend on the scale of the data; with it no direction has to
    be dropped, and a `k` below d drops all that the data do not span. Raises ValueError for a `gamma` outside 0..2, an
    `alpha` outside 0..10 and a `k` outside 1..d, TypeError for what are no moments.
    """
    return _whitener("soft", moments, soft_directions(moments, gamma, alpha), k, Directions.turned_back)


def shrinkage(moments: Moments, method: str, eps: float = 0.0) -> float:
    """How far the covariance is drawn to its target, 0 to 1.

    `ledoit-wolf` (Ledoit and Wolf 2004) and `oas` (Chen et al. 2010) estimate it, as scikit-learn does;
    `epsilon` is W-MSE's fixed `eps`. Ledoit-Wolf needs `moments.quartic`.
    """
    if METHOD.check(method) == "epsilon":
        return EPS.check(eps)
    n, d = moments.count, moments.dim
    covariance = moments.scatter / n  # both papers divide by n
    trace, squares = float(covariance.diagonal().sum()), float(covariance.square().sum())
    if d == 1 or squares == 0:
        return 0.0
    if method == "oas":
        mean_square, square_mean = squares / d**2, (trace / d) ** 2
        below = (n + 1) * (mean_square - square_mean / d)
        return 1.0 if below <= 0 else min((mean_square + square_mean) / below, 1.0)
    if moments.quartic is None:
        raise ValueError("moments must hold quartic for ledoit-wolf, as those of Moments.of do")
    spread = squares - trace**2 / d  # d delta^2: squared distance of the covariance from its target
    noise = (moments.quartic / n - squares) / n  # d beta^2: its squared distance from the true one
    if spread <= 0 or noise <= 0:
        return 0.0
    return min(noise / spread, 1.0)


def shrunk_directions(moments: Moments, method: str, eps: float) -> Directions:
    """U (Lambda')^(-1/2) with Lambda' = (1 - rho) Lambda + rho t, t = 1 for `epsilon`, else trace / d."""
    rho = shrinkage(moments, method, eps)
    every = moments.eigen_all
    target = 1.0 if method == "epsilon" else float(every.values.mean())
    values = (1 - rho) * every.values + rho * target
    rank = linalg.kept_rank(values)
    kept = every.top(rank) if rank else moments.eigen
    return Directions.weighted(kept, values[: kept.rank].rsqrt(), moments.eigen.rank)


@of_moments
def fit_shrunk(moments: Moments, k: int | None = None, *, method: str = "ledoit-wolf", eps: float = 0.01) -> Whitener:
    """ZCA whitening of a shrunk covariance: (1 - rho) Sigma + rho t I.

    `method` `epsilon`: rho = eps, t = 1, as W-MSE's code regularises (Ermolov et al. 2021); this depends on
    the scale of the data. `ledoit-wolf` and `oas`: rho is estimated and t is the mean variance. A `k` below d keeps
    no direction that the data do not span. Raises ValueError for another `method`, an `eps` outside 0..1, a `k` outside
    1..d and, for `ledoit-wolf`, moments without `quartic`; TypeError for what are no moments.
    """
    return _whitener("shrunk", moments, shrunk_directions(moments, method, eps), k, Directions.turned_back)


def iternorm_directions(moments: Moments, steps: int) -> Directions:
    """U p_T(Lambda / trace) / sqrt(trace), with p_0 = 1 and p <- (3 p - p^3 lambda) / 2."""
    check_int(steps, "steps", STEPS.low, STEPS.high)
    every = moments.eigen_all
    trace = every.values.sum()
    if trace <= 0:
        return Directions.weighted(moments.eigen, moments.eigen.values)
    weights = newton_schulz(every.values / trace, steps)
    return Directions.weighted(every, weights / trace.sqrt(), moments.eigen.rank)


def newton_schulz(values: Float[Tensor, "d"], steps: int) -> Float[Tensor, "d"]:
    """p_T of shares of the trace, which nears their inverse square root: the largest first, by half as much again a
    step at most."""
    weights = torch.ones_like(values)
    for _ in range(steps):
        weights = (3 * weights - weights**3 * values) / 2
    return weights


@of_moments
def fit_iternorm(moments: Moments, k: int | None = None, *, steps: int = 5) -> Whitener:
    """ZCA whitening approached by `steps` Newton-Schulz steps: Huang et al. 2019 (IterNorm), Algorithm 1.

    P_0 = I, P <- (3 P - P^3 Sigma / trace) / 2, W = P_T / sqrt(trace). Every iterate is a polynomial of Sigma, so
    the recursion is run on the eigenvalues: the same map, free of the instability of the matrix form.
    Few steps whiten the large directions and spare the small ones. A `k` below d keeps no direction that the data do
    not span. Raises ValueError for `steps` outside 1..30 and a `k` outside 1..d, TypeError for what are no moments.
    """
    return _whitener("iternorm", moments, iternorm_directions(moments, steps), k, Directions.turned_back)
