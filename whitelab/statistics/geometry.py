"""Measures of the shape of an embedding space: how narrow, how spread, how many dimensions in use.

Rows may carry weights: a row of weight w counts as w equal rows, so a measure over every sentence
occurrence costs no more than one over the unique sentences. Results are plain floats in float64.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from whitelab.base.checks import check_choice, check_int, check_matrix, check_weights
from whitelab.statistics.linalg import eigenvalues, exact, kept_rank

# Cosines are rounded here, once, so that pairs whose cosines are equal in exact arithmetic (65 identical
# pairs of 459 in SMTeuroparl) stay tied whatever path computed them.
COSINE_DECIMALS = 12

# Sentence pairs that count as "positive" in the alignment loss. SimCSE's footnote 3 says gold above 4;
# code in circulation uses at least 4, which gives another number (0.33 against 0.25 on STS-B).
POSITIVES = {"gt4": "gold > 4", "ge4": "gold >= 4"}

_ROWS_PER_BLOCK = 1024
_PAIRS_PER_PART = 64


def cosines_from(
    dot: Float[Tensor, "..."], square_a: Float[Tensor, "..."], square_b: Float[Tensor, "..."]
) -> Float[Tensor, "..."]:
    """a.b / (|a| |b|), rounded to 12 decimals; 0 where a vector is zero, NaN where one has NaN."""
    norm = square_a.sqrt() * square_b.sqrt()  # one root each: their product under one root could overflow
    cosine = torch.where(norm == 0, torch.zeros_like(dot), dot / norm)
    return cosine.clamp_(-1, 1).round_(decimals=COSINE_DECIMALS)


def pair_cosines(a: Float[Tensor, "p d"], b: Float[Tensor, "p d"]) -> Float[Tensor, "p"]:
    """Cosine of row i of `a` with row i of `b`, float64, ties kept; 0 where a row is zero."""
    a, b = exact(a), exact(b)
    dot = torch.linalg.vecdot
    return cosines_from(dot(a, b), dot(a, a), dot(b, b))


def row_cosines(z: Float[Tensor, "n d"], first: Int[Tensor, "p"], second: Int[Tensor, "p"]) -> Float[Tensor, "p"]:
    """`pair_cosines(z[first], z[second])`, with each row's length computed once and pairs in cache-sized parts."""
    z = exact(z)
    sides = (rows.split(_PAIRS_PER_PART) for rows in (first, second))
    parts = [(z[a] * z[b]).sum(-1) for a, b in zip(*sides, strict=True)]
    dots, squares = (torch.cat(parts) if parts else z.new_zeros(0)), torch.linalg.vector_norm(z, dim=-1).square_()
    return cosines_from(dots, squares[first], squares[second])


def normalize(x: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
    """Rows divided by their length, float64; a zero row stays zero."""
    x = exact(x)
    length = x.square().sum(-1, keepdim=True).sqrt()
    return x / torch.where(length > 0, length, 1.0)


def _weights(weights, x: Tensor) -> Tensor:
    if weights is None:
        return torch.ones(x.shape[0], dtype=torch.float64, device=x.device)
    return check_weights(weights, x.shape[0]).to(x.device)


def mean_cosine(x, weights=None) -> float:
    """Mean cosine of two different random rows, the usual measure of anisotropy (0 = isotropic).

    E_{i != j} cos(x_i, x_j) = (||sum_i u_i||^2 - sum_i ||u_i||^2) / (n (n - 1)), u = x / ||x||: the
    exact value over all pairs, no sampling. (Ethayarajh 2019 samples 1,000 pairs.) NaN for one row.
    """
    u = normalize(check_matrix(x))
    w = _weights(weights, u)
    n = float(w.sum())
    if n <= 1:
        return float("nan")
    total = (w @ u).square().sum() - w @ u.square().sum(-1)
    return float(total / (n * (n - 1)))


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


def alignment(a, b, alpha: float = 2.0) -> float:
    """Mean ||u_a - u_b||^alpha over positive pairs, rows brought to unit length first (0 is best).

    Wang and Isola 2020; WhitenedCSE Eq. 9 with alpha = 2. NaN when there is no positive pair.
    """
    a, b = torch.as_tensor(a), torch.as_tensor(b)
    if a.shape != b.shape or a.ndim != 2:
        raise ValueError(f"a and b must share the shape [p, d], got {list(a.shape)} and {list(b.shape)}")
    if a.shape[0] == 0:
        return float("nan")
    distance = (normalize(check_matrix(a, "a")) - normalize(check_matrix(b, "b"))).square().sum(-1)
    return float(distance.pow(alpha / 2).mean())


def uniformity(x, weights=None, t: float = 2.0) -> float:
    """log of the mean of exp(-t ||u_i - u_j||^2) over distinct rows i < j (lower is more uniform).

    Wang and Isola 2020; WhitenedCSE Eq. 10 with t = 2; rows are brought to unit length first. Computed
    from blocks of the Gram matrix, never [n, n] at once. NaN for one row.
    """
    u = normalize(check_matrix(x))
    w = _weights(weights, u)
    n = float(w.sum())
    if n <= 1:
        return float("nan")
    square = u.square().sum(-1)
    total = torch.zeros((), dtype=torch.float64, device=u.device)
    for i in range(0, u.shape[0], _ROWS_PER_BLOCK):
        block = slice(i, i + _ROWS_PER_BLOCK)
        distance = square[block, None] + square[i:] - 2 * (u[block] @ u[i:].T)
        kernel = torch.exp(-t * distance.clamp_min_(0))
        width = kernel.shape[0]
        total += w[block] @ kernel[:, :width] @ w[block] + 2 * (w[block] @ kernel[:, width:] @ w[i + width :])
    return float(((total - w.sum()) / (n * (n - 1))).log())


def uniformity_floor(dim: int, t: float = 2.0) -> float:
    """Uniformity of the uniform distribution on the unit sphere of R^dim, the lowest reachable in the limit.

    log E exp(-2t (1 - s)) over the cosine s of two random directions = log 0F1(; d/2; t^2) - 2t, for
    which d = 2 gives log I_0(2t) - 2t (Wang and Isola 2020, Prop. 4.1.2). A finite set of n points can lie
    below it by about 1 / n.
    """
    from scipy.special import hyp0f1

    return float(torch.tensor(float(hyp0f1(dim / 2, t * t)), dtype=torch.float64).log()) - 2 * t


def positives(gold: Float[Tensor, "p"], rule: str = "gt4") -> Int[Tensor, "m"]:
    """Positions of the positive pairs under a rule of `POSITIVES`."""
    check_choice(rule, "positives", POSITIVES)
    chosen = gold > 4 if rule == "gt4" else gold >= 4
    return chosen.nonzero()[:, 0]


def cosine_sample(x: Float[Tensor, "n d"], weights=None, size: int = 20_000, seed: int = 0) -> Float[Tensor, "m"]:
    """Cosines of `size` random pairs of different rows, for a histogram (the mean has a closed form)."""
    u = normalize(x)
    w = _weights(weights, u).cpu()
    if u.shape[0] < 2:
        return torch.empty(0, dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    i = torch.multinomial(w, size, replacement=True, generator=generator)
    j = torch.multinomial(w, size, replacement=True, generator=generator)
    i, j = i[i != j].to(u.device), j[i != j].to(u.device)
    return (u[i] * u[j]).sum(-1)


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
