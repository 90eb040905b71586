"""How many directions share the variance, and how evenly the rows point along them."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.base.checks import check_int, check_matrix, check_shape
from whitelab.statistics.geometry.cosines import normalize
from whitelab.statistics.linalg import check_eigenvalues, eigen, exact, from_mean, gram, kept_rank


def participation_ratio(matrix: Float[Tensor | np.ndarray, "d d"]) -> float:
    """(sum lambda)^2 / sum lambda^2 of a covariance: how many directions share the variance, 1 to d.

    From traces, no eigenvalues needed. White data of n rows gives about d n / (d + n), not d. NaN for a zero matrix.
    Raises ValueError for a matrix that is not square, as rows are not.
    """
    matrix = exact(check_shape(matrix, "matrix", "d d"))
    squares = float(matrix.square().sum())
    return float(matrix.diagonal().sum()) ** 2 / squares if squares > 0 else float("nan")


def block_means(matrix: Float[Tensor | np.ndarray, "d d"], size: int) -> tuple[Float[Tensor, "s s"], int]:
    """A square matrix reduced to at most `size` x `size` means of blocks b x b, and b.

    Where b does not divide d the last blocks are smaller.
    """
    check_int(size, "size", 1)
    matrix = exact(check_shape(matrix, "matrix", "d d"))
    d = matrix.shape[0]
    block = max(1, -(-d // size))
    place = torch.arange(d, device=matrix.device)
    member = torch.zeros(-(-d // block), d, dtype=torch.float64, device=matrix.device)
    member[place // block, place] = 1.0
    mean = member / member.sum(1, keepdim=True)
    return mean @ matrix @ mean.T, block


def effective_rank(values: Float[Tensor | np.ndarray, "d"]) -> float:
    """exp of the entropy of the singular values of the centred data (Roy and Vetterli 2007).

    From the covariance's eigenvalues in any order: p_i = sqrt(lambda_i) / sum_j sqrt(lambda_j); some codes use
    lambda_i. NaN where all are 0. Raises as `linalg.check_eigenvalues`.
    """
    values = check_eigenvalues(values)
    root = values[: kept_rank(values)].sqrt()
    if root.sum() <= 0:
        return float("nan")
    p = root / root.sum()
    return float(torch.special.entr(p).sum().exp())


def top_share(values: Float[Tensor | np.ndarray, "d"]) -> float:
    """lambda_1 / sum lambda of the covariance's eigenvalues in any order: the first direction's share of the variance.

    NaN where all are 0. Raises as `linalg.check_eigenvalues`.
    """
    values = check_eigenvalues(values)
    return float(values[0] / values.sum()) if values.sum() > 0 else float("nan")


def stable_rank(values: Float[Tensor | np.ndarray, "d"]) -> float:
    """sum lambda / lambda_1 = ||Y||_F^2 / ||Y||_2^2 of the centred rows Y (Rudelson and Vershynin 2007, section 1).

    From the covariance's eigenvalues in any order: 1 to d, and never above the rank. NaN where all are 0. Raises as
    `linalg.check_eigenvalues`.
    """
    values = check_eigenvalues(values)
    return float(values.sum() / values[0]) if values.sum() > 0 else float("nan")


def iso_score(matrix: Float[Tensor | np.ndarray, "d d"], directions: int | None = None) -> float:
    """IsoScore of rows with this covariance: 0 for a line, 1 for a round one (Rudman et al. 2022, Algorithm 1).

    Its steps (the variances along the principal axes, brought to the length sqrt(d); their distance from (1, ..., 1)
    as the isotropy defect; its rescaling) come to (PR - 1) / (d - 1) with PR the `participation_ratio`. `directions`
    stands for d where null directions are counted out. NaN where d < 2 or the matrix is zero.
    """
    matrix = check_shape(matrix, "matrix", "d d")
    count = matrix.shape[0] if directions is None else directions
    return (participation_ratio(matrix) - 1) / (count - 1) if count > 1 else float("nan")


def partition_isotropy(x, centred: bool = False) -> float:
    """min_c Z(c) / max_c Z(c), Z(c) = sum_i exp(c . u_i), 0 to 1 (Mu and Viswanath 2018, section 2).

    u_i are the rows at unit length, `centred` before that if asked for. c runs over the unit eigenvectors of
    sum_i u_i u_i^T, as there in place of the whole sphere. -c is an eigenvector whenever c is, so both count: the
    number then hangs on no library's choice of signs, which for a narrow cone moves it by a power of two. Directions
    that the rank policy drops do not count: no row points along them, and columns of zeros would add some. NaN where no
    row has a length.
    """
    x = exact(check_matrix(x))
    u = normalize(from_mean(x) if centred else x)
    kept = eigen(gram(u))
    if kept.rank == 0:
        return float("nan")
    along = u @ kept.vectors
    powers = along.exp_()  # exp(-a) is 1 / exp(a), and a is within 1 of 0
    sums = torch.cat([powers.sum(0), powers.reciprocal_().sum(0)])
    return float(sums.min() / sums.max())


def cosine_contributions(x) -> Float[Tensor, "d"]:
    """What each coordinate adds to the mean cosine of two different rows; their sum is that mean.

    (s_k^2 - sum_i u_ik^2) / (n (n - 1)), s = sum_i u_i, u_i the rows at unit length: over all ordered pairs i != j
    what Timkey and van Schijndel 2021 sample. NaN for one row.
    """
    u = normalize(check_matrix(x))
    n = len(u)
    if n < 2:
        return u.new_full((u.shape[1],), float("nan"))
    return (u.sum(0).square() - u.square().sum(0)) / (n * (n - 1))


def rogue_share(contributions: Float[Tensor | np.ndarray, "d"], top: int = 1) -> float:
    """The `top` coordinates' share of the mean cosine: the largest of its `cosine_contributions` over their sum.

    Timkey and van Schijndel 2021. Near 1: a few "rogue" coordinates make the cone. Where the mean cosine
    is near 0 (after centring, say) the share is one of next to nothing and may lie far outside 0..1; NaN where
    it is 0 or NaN. Raises ValueError for a `top` that is not within 1..d.
    """
    contributions = exact(check_shape(contributions, "contributions", "d"))
    check_int(top, "top", 1, len(contributions), "d")
    total = float(contributions.sum())
    return float((contributions / total).topk(top).values.sum()) if total and total == total else float("nan")


def standardized(x) -> Float[Tensor, "n d"]:
    """Rows with mean 0 and variance 1 in every coordinate: against rogue ones (Timkey and van Schijndel 2021).

    A coordinate that does not vary becomes 0.
    """
    centred = from_mean(check_matrix(x))
    spread = centred.square().mean(0).sqrt()
    return centred / torch.where(spread > 0, spread, 1.0)
