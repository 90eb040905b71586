"""Cosines of rows: of pairs, of random pairs, on average."""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from whitelab.base.checks import (
    as_tensor,
    check_int,
    check_integers,
    check_matrix,
    check_shape,
    check_sides,
    check_weights,
)
from whitelab.base.devices import at_once
from whitelab.statistics.linalg import exact

# Cosines are rounded here, once, so that pairs whose cosines are equal in exact arithmetic (65 identical
# pairs of 459 in SMTeuroparl) stay tied whatever path computed them.
COSINE_DECIMALS = 12

CONE = 0.2  # mean cosine of random pairs from which on a space is called a cone here

_PAIRS_PER_PART = 64
_ROWS_PER_PART = 2048


def cosines_from(
    dot: Float[Tensor | np.ndarray, "..."],
    square_a: Float[Tensor | np.ndarray, "..."],
    square_b: Float[Tensor | np.ndarray, "..."],
) -> Float[Tensor, "..."]:
    """a.b / (|a| |b|), float64, rounded to 12 decimals; 0 where a vector is zero, NaN where one has NaN.

    Raises ValueError for several shapes.
    """
    dot, square_a, square_b = as_tensor(dot, "dot"), as_tensor(square_a, "square_a"), as_tensor(square_b, "square_b")
    if not dot.shape == square_a.shape == square_b.shape:
        shapes = ", ".join(str(list(one.shape)) for one in (dot, square_a, square_b))
        raise ValueError(f"dot, square_a and square_b must share a shape, got {shapes}")
    dot, square_a, square_b = exact(dot), exact(square_a), exact(square_b)
    norm = square_a.sqrt() * square_b.sqrt()  # one root each: their product under one root could overflow
    cosine = torch.where(norm == 0, torch.zeros_like(dot), dot / norm)
    return cosine.clamp_(-1, 1).round_(decimals=COSINE_DECIMALS)


def pair_cosines(a: Float[Tensor | np.ndarray, "p d"], b: Float[Tensor | np.ndarray, "p d"]) -> Float[Tensor, "p"]:
    """Cosine of row i of `a` with row i of `b`, float64, ties kept; 0 where a row is zero.

    Raises ValueError for two shapes.
    """
    a, b = map(exact, check_sides(a, b))
    dot = torch.linalg.vecdot
    return cosines_from(dot(a, b), dot(a, a), dot(b, b))


def row_cosines(
    z: Float[Tensor | np.ndarray, "n d"], first: Int[Tensor | np.ndarray, "p"], second: Int[Tensor | np.ndarray, "p"]
) -> Float[Tensor, "p"]:
    """`pair_cosines(z[first], z[second])`, with each row's length computed once and pairs in cache-sized parts.

    No gradient passes.
    """
    z = exact(check_shape(z, "z", "n d")).detach()
    first, second = check_integers(first, "first", "p"), check_integers(second, "second", "p")
    if first.shape != second.shape:
        raise ValueError(f"first and second must share the shape [p], got {list(first.shape)} and {list(second.shape)}")
    first, second = (rows + len(z) * (rows < 0) for rows in (first, second))
    count = at_once(z.device, _PAIRS_PER_PART, 3 * 8 * z.shape[1])
    dots, squares = z.new_empty(len(first)), torch.linalg.vector_norm(z, dim=-1).square_()
    # `z[a]` would ask all threads for a few rows, and wait for each where others hold the processors. Sums go into one
    # table: a small one for each part would lie in what the last part has freed, and the next take new memory.
    for a, b, into in zip(*(rows.split(count) for rows in (first, second, dots)), strict=True):
        torch.sum(z.index_select(0, a).mul_(z.index_select(0, b)), -1, out=into)
    return cosines_from(dots, squares[first], squares[second])


def normalize(x: Float[Tensor | np.ndarray, "n d"]) -> Float[Tensor, "n d"]:
    """Rows divided by their length, float64; a zero row stays zero."""
    x = exact(x)
    length = x.square().sum(-1, keepdim=True).sqrt()
    return x / torch.where(length > 0, length, 1.0)


def row_weights(weights, x: Tensor) -> Tensor:
    """How often every row of `x` counts, float64; once where no weights are given."""
    if weights is None:
        return torch.ones(x.shape[0], dtype=torch.float64, device=x.device)
    return check_weights(weights, x.shape[0]).to(x.device)


def mean_cosine(x, weights=None) -> float:
    """Mean cosine of two different random rows of `x [n, d]`: how narrow the cone is that they lie in.

    Row i counts as `weights[i]` equal rows, as one where None is given.
    No measure of isotropy: of rows about equally long centring alone brings it near 0, whatever the spectrum (Rudman
    and Eickhoff 2024).
    E_{i != j} cos(x_i, x_j) = (||sum_i u_i||^2 - sum_i ||u_i||^2) / (n (n - 1)), u = x / ||x||: the
    exact value over all pairs, no sampling. (Ethayarajh 2019 samples 1,000 pairs.) NaN for one row.
    """
    x = check_matrix(x)
    w = row_weights(weights, x)
    n = float(w.sum())
    if n <= 1:
        return float("nan")
    count = at_once(x.device, _ROWS_PER_PART, 3 * 8 * x.shape[1])
    total, own = w.new_zeros(x.shape[1]), w.new_zeros(())
    for rows, part in zip(x.split(count), w.split(count), strict=True):
        u = normalize(rows)
        total.addmv_(u.T, part)
        own += part @ u.square_().sum(-1)
    return float((total.square().sum() - own) / (n * (n - 1)))


def cosine_sample(x, weights=None, size: int = 20_000, seed: int = 0) -> Float[Tensor, "m"]:
    """Cosines of random pairs of different rows, each row drawn by its weight, for a histogram.

    Of `size` draws those that hit one row twice are left out; `mean_cosine` counts two occurrences of a row as a pair.
    Raises ValueError for a `seed` below 0.
    """
    seed = check_int(seed, "seed", 0)
    x = check_matrix(x)
    w = row_weights(weights, x).cpu()
    if x.shape[0] < 2:
        return torch.empty(0, dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    i = torch.multinomial(w, size, replacement=True, generator=generator)
    j = torch.multinomial(w, size, replacement=True, generator=generator)
    used, places = torch.stack([i[i != j], j[i != j]]).unique(return_inverse=True)
    u, (i, j) = normalize(x[used.to(x.device)]), places.to(x.device)
    return (u[i] * u[j]).sum(-1).clamp_(-1, 1)  # which rounding leaves by 1e-16, and a histogram's range with it
