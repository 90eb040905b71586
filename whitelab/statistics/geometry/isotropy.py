"""How many directions share the variance, and the measures of isotropy that pages offer."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.base.checks import check_int
from whitelab.statistics.geometry.cosines import mean_cosine
from whitelab.statistics.linalg import eigenvalues, exact, kept_rank


def participation_ratio(matrix: Float[Tensor, "d d"]) -> float:
    """(sum lambda)^2 / sum lambda^2 of a covariance: how many directions share the variance, 1 to d.

    From traces, no eigenvalues needed. (PR - 1) / (d - 1) is IsoScore (Rudman et al. 2022), so the two
    are one measure. White data of n rows gives about d n / (d + n), not d. NaN for a zero matrix.
    """
    matrix = exact(matrix)
    squares = float(matrix.square().sum())
    return float(matrix.diagonal().sum()) ** 2 / squares if squares > 0 else float("nan")


def block_means(matrix: Float[Tensor, "d d"], size: int) -> tuple[Float[Tensor, "s s"], int]:
    """A square matrix reduced to at most `size` x `size` means of blocks b x b, and b.

    Where b does not divide d the last blocks are smaller.
    """
    check_int(size, "size", 1)
    d = matrix.shape[0]
    block = max(1, -(-d // size))
    part = torch.arange(d) // block
    member = torch.zeros(int(part[-1]) + 1 if d else 0, d, dtype=torch.float64)
    member[part, torch.arange(d)] = 1.0
    mean = member / member.sum(1, keepdim=True)
    return mean @ exact(matrix) @ mean.T, block


def effective_rank(values: Float[Tensor, "d"]) -> float:
    """exp of the entropy of the singular values of the centred data (Roy and Vetterli 2007).

    From `linalg.eigenvalues` of the covariance.

    The p_i are sqrt(lambda_i) / sum_j sqrt(lambda_j) of the covariance; some codes use lambda_i.
    """
    root = values[: kept_rank(values)].sqrt()
    if root.sum() <= 0:
        return float("nan")
    p = root / root.sum()
    return float(torch.special.entr(p).sum().exp())


def top_share(values: Float[Tensor, "d"]) -> float:
    """lambda_1 / sum lambda, from descending eigenvalues: the first direction's share of the variance."""
    return float(values[0] / values.sum()) if values.sum() > 0 else float("nan")


@dataclass(frozen=True)
class Metric:
    """A measure of one layer: `of(x, weights, covariance)`; `ideal` is its value for an isotropic space."""

    label: str
    of: Callable[[Tensor, Tensor | None, Tensor], float]
    hint: str
    ideal: str


METRICS: dict[str, Metric] = {
    "mean_cosine": Metric(
        "Mean cosine",
        lambda x, w, cov: mean_cosine(x, w),
        "Average cosine of two random sentences. 0 is isotropic, near 1 is a narrow cone.",
        "0",
    ),
    "participation_ratio": Metric(
        "Participation ratio",
        lambda x, w, cov: participation_ratio(cov),
        "How many directions share the variance, from 1 to d.",
        "d",
    ),
    "effective_rank": Metric(
        "Effective rank",
        lambda x, w, cov: effective_rank(eigenvalues(cov)),
        "exp of the entropy of the singular values, from 1 to d.",
        "d",
    ),
    "top_share": Metric(
        "Top direction's share",
        lambda x, w, cov: top_share(eigenvalues(cov)),
        "Part of the variance along the first principal direction.",
        "1/d",
    ),
}
