"""Symmetric eigendecompositions and THE rank policy; every numerical decision of the package is here.

A post-LayerNorm layer lies exactly in a hyperplane, so the covariance of a single layer is singular
and its smallest "eigenvalue" is rounding noise. Dividing by its square root would blow that noise up
to unit variance and into every cosine. Whoever needs an inverse of a covariance therefore asks
`eigen` or `factor` (which drop such directions) or `trusted_cholesky` (which refuses where there may be some).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from whitelab.base.checks import as_tensor, check_real, check_shape
from whitelab.base.devices import in_one_launch

# A direction counts as present when its eigenvalue is at least this part of the largest one. Rounding
# in float64 moments of float32 data leaves null directions near 1e-15 and real ones of pretrained
# encoders above 1e-7 (measured on all-MiniLM-L6-v2); 1e-10 stands clear of both.
RANK_TOLERANCE = 1e-10

# Two texts of the same tokens have vectors that differ by rounding, 1e-7 of their length, which float32 leaves.
ROW_TOLERANCE = 1e-5


@dataclass(frozen=True, eq=False)
class Eigen:
    """The kept part of S = U diag(values) U^T: `values [r]` descending, `vectors [d, r]`, `dim` = d."""

    values: Float[Tensor, "r"]
    vectors: Float[Tensor, "d r"]
    dim: int

    @property
    def rank(self) -> int:
        """Number of kept directions."""
        return self.values.shape[0]

    def top(self, k: int | None) -> "Eigen":
        """The first `k` directions (all of them when `k` is None or above the rank)."""
        if k is None or k >= self.rank:
            return self
        return Eigen(self.values[:k], self.vectors[:, :k], self.dim)


def exact(x: Tensor | np.ndarray, copy: bool = False) -> Tensor:
    """`x` as a tensor in float64, on its own device, or on the CPU where the device has no float64 (MPS).

    With `copy` never `x` itself, so that it may be written into. Raises TypeError for what holds no numbers, ValueError
    for complex ones.
    """
    x = check_real(x)
    if x.device.type == "mps":
        x = x.cpu()
    return x.to(torch.float64, copy=copy)


def first_counted(x: Float[Tensor, "*s n d"], weights: Float[Tensor, "n"]) -> Float[Tensor, "*s d"]:
    """The first row whose weight is not 0, in float64, which others are measured from: where all that count are equal,
    nothing is left of them, however far away a row lies that does not.
    """
    row = (weights > 0).to(torch.uint8).argmax(0, keepdim=True)  # of several largest the first
    return exact(x.index_select(-2, row).squeeze(-2))


def from_mean(x: Float[Tensor, "*s n d"]) -> Float[Tensor, "*s n d"]:
    """Rows less their mean, in float64: exactly zero where all are equal, whose mean is one of them up to rounding."""
    x = exact(x) - exact(x[..., :1, :])
    return x.sub_(x.mean(-2, keepdim=True))


# Products with a triangular result or factor are halved down to this many columns: below, a block that is half zeros
# or half known takes less time than the parts of it. A GPU does more at once, because launching the parts costs.
LEAF = 128


def _is_leaf(rows: int, columns: Float[Tensor, "n d"]) -> bool:
    """Whether `rows` rows are multiplied with a table [d, d] of such columns at once."""
    dim = columns.shape[1]
    return dim <= LEAF or in_one_launch(columns.device, rows * dim**2)


def gram(x: Float[Tensor, "n d"]) -> Float[Tensor, "d d"]:
    """x^T x, exactly symmetric: what lies below the diagonal is mirrored, which saves up to half of the product."""
    dim = x.shape[1]
    if _is_leaf(len(x), x):
        square = x.T @ x  # which not every processor multiplies out symmetrically
        return square.triu() + square.triu(1).T
    half, found = dim // 2, x.new_empty(dim, dim)
    found[:half, :half], found[half:, half:] = gram(x[:, :half]), gram(x[:, half:])
    torch.mm(x[:, :half].T, x[:, half:], out=found[:half, half:])
    found[half:, :half] = found[:half, half:].T
    return found


def inverse_lower(lower: Float[Tensor, "d d"]) -> Float[Tensor, "d d"]:
    """L^-1 of a lower triangular matrix."""
    dim = len(lower)
    if _is_leaf(dim, lower):
        return torch.linalg.solve_triangular(lower, torch.eye(dim).to(lower), upper=False)
    half, found = dim // 2, torch.zeros_like(lower)
    found[:half, :half], found[half:, half:] = inverse_lower(lower[:half, :half]), inverse_lower(lower[half:, half:])
    found[half:, :half] = found[half:, half:] @ (lower[half:, :half] @ found[:half, :half]).neg_()
    return found


def times_lower(
    x: Float[Tensor, "n d"], lower: Float[Tensor, "d d"], out: Float[Tensor, "n d"] | None = None
) -> Float[Tensor, "n d"]:
    """x W^T with a lower triangular W, without the products with its zeros; written to `out`, which is not `x`."""
    dim, out = len(lower), torch.empty_like(x) if out is None else out
    if _is_leaf(len(x), lower):
        return torch.mm(x, lower.T, out=out)
    half = dim // 2
    times_lower(x[:, :half], lower[:half, :half], out[:, :half])
    times_lower(x[:, half:], lower[half:, half:], out[:, half:])
    out[:, half:].addmm_(x[:, :half], lower[half:, :half].T)
    return out


def eigenvalues(matrix: Float[Tensor, "d d"]) -> Float[Tensor, "d"]:
    """All eigenvalues of a symmetric positive semi-definite matrix, descending, negatives set to 0.

    Raises ValueError where LAPACK fails on it, which finite numbers do not bring about.
    """
    with _finite():
        return torch.linalg.eigvalsh(exact(matrix)).flip(0).clamp_min(0)


@contextmanager
def _finite() -> Iterator[None]:
    """Say in words what LAPACK fails on: it is not asked for beforehand, which would make a GPU wait."""
    try:
        yield
    except torch.linalg.LinAlgError:
        raise ValueError("matrix must hold finite numbers, as the covariance of finite rows does") from None


def check_eigenvalues(values) -> Float[Tensor, "d"]:
    """The eigenvalues of a covariance, in any order, as float64 on the CPU, descending, rounded ones below 0 set to 0.

    Rounding is up to d machine epsilons of their own type, or `RANK_TOLERANCE`, times the largest. Raises TypeError for
    what holds no numbers, ValueError for another shape than [d] and for values further below 0.
    """
    values = check_shape(values, "values", "d")
    epsilon = torch.finfo(values.dtype).eps if values.is_floating_point() else 0.0
    values = exact(values.cpu()).sort(descending=True).values  # d numbers, fetched once from a GPU
    if bool((values < -max(RANK_TOLERANCE, len(values) * epsilon) * values[:1]).any()):
        raise ValueError(f"values must be eigenvalues of a covariance, none below 0, got {float(values.min()):g}")
    return values.clamp_min(0)


def kept_rank(values: Float[Tensor, "d"], largest: float | None = None) -> int:
    """How many of the descending `values` the rank policy keeps (0 when all are zero).

    `largest` is what they are measured against: the first of them, or that of a whole they are part of.
    """
    least = RANK_TOLERANCE * (values[:1] if largest is None else largest)
    return int(((values > 0) & (values >= least)).sum())  # one number for a GPU to wait for


def distinct_rows(x: Float[Tensor | np.ndarray, "n d"], most: int, rows: Int[Tensor, "m"] | None = None) -> int:
    """How many of the `rows` (None: of all) differ, `most` standing for all above.

    Two are one where they are nearer to each other than `ROW_TOLERANCE` of the rows' root mean square length, as the
    vectors of two texts are whose tokens are the same.
    """
    found, x = 0, as_tensor(x)
    rows = torch.arange(len(x), device=x.device) if rows is None else rows
    for part in (rows[: 2 * most], rows):  # so many different ones are among the first, or seldom at all
        y = exact(x[part])
        line = torch.randn(x.shape[1], generator=torch.Generator().manual_seed(0), dtype=y.dtype).to(y.device)
        ordered = y[(y @ line).argsort()]  # equal rows lie side by side along any line
        apart = ROW_TOLERANCE * y.square().sum(1).mean().sqrt()
        found = min(len(y), 1) + int(((ordered[1:] - ordered[:-1]).norm(dim=1) > apart).sum())
        if found >= most or len(part) == len(rows):
            break
    return min(found, most)


def eigen(matrix: Float[Tensor, "d d"]) -> Eigen:
    """Eigendecomposition of a symmetric positive semi-definite matrix without its null directions."""
    every = eigen_all(matrix)
    return every.top(kept_rank(every.values))


def eigen_all(matrix: Float[Tensor, "d d"]) -> Eigen:
    """Eigendecomposition with the null directions, their values set to 0 where rounding made them negative.

    For maps that divide by nothing that vanishes. The sign of each eigenvector is fixed so that its
    largest coordinate is positive: the result does not depend on the linear algebra library. Raises ValueError as
    `eigenvalues`: one number that is not finite among others may give NaN instead.
    """
    with _finite():
        values, vectors = torch.linalg.eigh(exact(matrix))
    values, vectors = values.flip(0).clamp_min(0), vectors.flip(1)
    largest = vectors.abs().argmax(dim=0)
    signs = vectors[largest, torch.arange(vectors.shape[1], device=vectors.device)].sign()
    return Eigen(values, vectors * signs, matrix.shape[0])


def trusted_cholesky(matrix: Float[Tensor, "d d"]) -> Float[Tensor, "d d"] | None:
    """L^-1 with matrix = L L^T, or None when full rank under the policy is not certain.

    Rows z = L^-1 (x - mean) then have identity covariance.
    """
    _, inverse, certain = trusted_choleskys(exact(matrix)[None])
    return inverse[0] if certain.item() else None


def trusted_choleskys(
    matrices: Float[Tensor, "b d d"],
) -> tuple[Float[Tensor, "b d d"], Float[Tensor, "b d d"], Bool[Tensor, "b"]]:
    """L and L^-1 of every matrix = L L^T, and whether full rank under the policy is certain.

    The certificate costs no eigenvalues: a floor of the smallest, and the trace, which is at least the largest;
    when their ratio passes the tolerance, so does the true one. Where it does not, L and L^-1 mean nothing.
    """
    factors, failed = torch.linalg.cholesky_ex(matrices)
    positive = (failed == 0) & torch.isfinite(factors.diagonal(dim1=-2, dim2=-1)).all(-1)
    eye = torch.eye(matrices.shape[-1], dtype=matrices.dtype, device=matrices.device)
    if not positive.all():
        factors = torch.where(positive[:, None, None], factors, eye)
    inverses = torch.linalg.solve_triangular(factors, eye, upper=False)
    trace = matrices.diagonal(dim1=-2, dim2=-1).sum(-1)
    return factors, inverses, positive & (_floor(inverses) >= RANK_TOLERANCE * trace)


def _floor(inverses: Float[Tensor, "*b d d"]) -> Float[Tensor, "*b"]:
    """1 / ||L^-1||_F^2, at most the smallest eigenvalue of L L^T."""
    return 1 / torch.linalg.vector_norm(inverses, dim=(-2, -1)).square()


# Null directions `factor` looks for: one of LayerNorm's hyperplane, the others of dead gains.
_NULL_SOUGHT = 8
_NULL_STEPS = 3  # of inverse iteration


@dataclass(frozen=True, eq=False)
class Factor:
    """S^-1 = W^T W on the directions that the rank policy keeps; `inverse` is W, `null [d, r]` what it drops.

    W is L^-1 with L L^T = S + t N N^T and orthonormal columns N = `null`, so it stands for S where N is projected out.
    """

    inverse: Float[Tensor, "d d"]
    null: Float[Tensor, "d r"]

    @property
    def rank(self) -> int:
        """Number of kept directions."""
        return self.null.shape[0] - self.null.shape[1]

    def whiten(self, y: Float[Tensor, "n d"], out: Float[Tensor, "n d"] | None = None) -> Float[Tensor, "n d"]:
        """W y of every row without its part in `null`: dot products are those after any full whitening."""
        if self.null.shape[1]:
            y = y - (y @ self.null) @ self.null.T
        return times_lower(y, self.inverse, out)


def factor(matrix: Float[Tensor, "d d"]) -> Factor | None:
    """A Cholesky factor of a positive semi-definite matrix on its kept directions, or None when it is not certain.

    A fifth of the cost of an eigendecomposition. Where the matrix itself has no certain factor, its null
    directions are found by subspace iteration and lifted to the mean eigenvalue t. What is then certain is the
    rank `eigen` finds: r directions have eigenvalues below the threshold by their Rayleigh quotients, and the
    other d - r are above it because the lifted matrix is (Courant and Fischer).
    """
    matrix = exact(matrix)
    inverse = _certain_inverse(matrix)
    return _lifted_factor(matrix) if inverse is None else Factor(inverse, matrix.new_zeros(len(matrix), 0))


def _lifted_factor(matrix: Float[Tensor, "d d"]) -> Factor | None:
    """`factor` of a matrix that has no certain one itself."""
    null = _null_directions(matrix)
    if null is None:
        return None
    inverse = _certain_inverse(torch.addmm(matrix, null, null.T, alpha=float(matrix.diagonal().mean())))
    return None if inverse is None else Factor(inverse, null)


def factors(matrices: Float[Tensor, "b d d"]) -> list[Factor | None]:
    """`factor` of every matrix: on a GPU together, as far as they are certain as they are."""
    if matrices.device.type == "cpu":
        return [factor(one) for one in matrices]
    matrices = exact(matrices)
    _, inverses, certain = trusted_choleskys(matrices)
    none = matrices.new_zeros(matrices.shape[-1], 0)
    return [
        Factor(inverse, none) if is_certain else _lifted_factor(one)
        for one, inverse, is_certain in zip(matrices, inverses, certain.tolist(), strict=True)
    ]


def _certain_inverse(matrix: Float[Tensor, "d d"]) -> Float[Tensor, "d d"] | None:
    """L^-1 when `trusted_choleskys` would trust it, which is not asked where a pivot answers."""
    lower, failed = torch.linalg.cholesky_ex(matrix)
    least = RANK_TOLERANCE * float(matrix.diagonal().sum())
    if failed.item() or not float(lower.diagonal().min()) ** 2 >= least:  # the smallest eigenvalue is below any pivot
        return None
    inverse = inverse_lower(lower)
    return inverse if float(_floor(inverse)) >= least else None


def _null_directions(matrix: Float[Tensor, "d d"]) -> Float[Tensor, "d r"] | None:
    """An orthonormal basis of what the policy drops, or None when nothing or too much of it is found."""
    dim, trace = len(matrix), float(matrix.diagonal().sum())
    # Far below the threshold, far above rounding: one step takes what is above 1e-7 down by seven digits.
    shifted = matrix + 1e-14 * trace * torch.eye(dim, dtype=matrix.dtype, device=matrix.device)
    lower, failed = torch.linalg.cholesky_ex(shifted)
    if failed.item() or not trace > 0 or dim <= _NULL_SOUGHT:
        return None
    basis = torch.randn(dim, _NULL_SOUGHT, dtype=matrix.dtype, generator=torch.Generator().manual_seed(0))
    basis = basis.to(matrix.device)
    for _ in range(_NULL_STEPS):
        basis = torch.linalg.qr(torch.cholesky_solve(basis, lower)).Q
    values, turn = torch.linalg.eigh(basis.T @ (matrix @ basis))
    count = int((values < RANK_TOLERANCE * matrix.diagonal().max()).sum())  # the largest entry is below lambda_max
    return basis @ turn[:, :count] if 0 < count < _NULL_SOUGHT else None


def lower_factor(root: Float[Tensor, "r d"]) -> Float[Tensor, "r d"]:
    """The lower trapezoidal W with W^T W = root^T root and a positive diagonal.

    For r = d this is the inverse Cholesky factor L^-1 of (root^T root)^-1 = L L^T; for r < d it is the
    one triangular map with the same pseudo-inverse, from the QL decomposition root = Q W.
    """
    rank, dim = root.shape
    lower = torch.linalg.qr(root.flip(1), mode="r").R.flip(0, 1)
    diagonal = lower[torch.arange(rank), torch.arange(dim - rank, dim)]
    return lower * torch.where(diagonal < 0, -1.0, 1.0).to(lower.dtype)[:, None]
