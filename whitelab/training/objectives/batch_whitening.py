"""Whitening of a batch as a step of the network: the statistics are the batch's own, and gradients pass through them.

Where the eigenvalues of a covariance repeat, its eigenvectors are not determined and their derivative has
1 / (a - b) in it, which is what makes a naive backward pass end in NaN. No such quotient is formed here:

- ZCA needs no eigenvectors. Sigma^(-1/2) is a smooth function of Sigma; its derivative solves a Sylvester equation,
  which in the eigenbasis is a product with the divided differences of f(l) = l^(-1/2) (Loewner's form),

      (f(a) - f(b)) / (a - b) = - 1 / (sqrt(a) sqrt(b) (sqrt(a) + sqrt(b))),

  and the right side is exact for a = b too.
- PCA is ZCA, turned into the eigenbasis: W = U^T Sigma^(-1/2). The first factor's derivative does have 1 / (a - b) in
  it, which is damped to x / (x^2 + delta^2), x = a - b, delta = 1e-4 (a + b): bounded, 0 for a = b, and off by
  (delta / x)^2 where eigenvalues are apart. A loss of cosines or distances within the batch does not see the
  turn, so its gradient is exact also where eigenvalues repeat.
- Cholesky's factor is smooth in Sigma and is differentiated by torch.

Everything is computed in float64, where autocast does not reach and TF32 plays no part.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from whitelab.base.checks import check_batch, check_choice, check_int, check_permutation
from whitelab.statistics import linalg

METHODS = ("pca", "zca", "cholesky", "group", "shuffled_group", "standardize")

# Eigenvalues closer than this part of their sum count as repeated in PCA's backward pass: far below the gaps of a
# covariance that has some hundred directions, and float64 keeps twelve digits of 1 / delta.
DAMPING = 1e-4


class SingularBatch(ValueError):
    """The batch has no covariance that can be inverted: too few rows, or a representation that has collapsed."""


class RunningMoments(nn.Module):
    """Mean and covariance over the batches so far, by exponential forgetting; state that a checkpoint saves.

    mu_n = beta mu_{n-1} + (1 - beta) m_n, Sigma_n = beta Sigma_{n-1} + (1 - beta) S_n: WhitenedCSE (Zhuo et al.
    2023), Eq. 13, which counts batches from 0, so that its xbar_{n-1} is the newest. It gives neither beta nor a
    start. Sigma_0 is the identity, as in the released code, which registers such buffers and never uses them: with
    beta above 0 every Sigma_n has an inverse, also where a batch has fewer rows than dimensions (as in Table 3, whose
    batches of 64 are whitened in 768), and beta^n of it is left after n batches. The mean needs no inverse: the first
    is the first batch's (the released buffer starts at 0), so that rows are centred from the first step on.
    """

    def __init__(self, dim: int, beta: float = 0.9):
        super().__init__()
        check_int(dim, "dim", 1)
        if not 0 <= beta < 1:
            raise ValueError(f"beta={beta} must lie between 0 and 1, below 1")
        self.beta = beta
        self.register_buffer("mean", torch.zeros(dim, dtype=torch.float64))
        self.register_buffer("covariance", torch.eye(dim, dtype=torch.float64))
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    def update(self, x: Float[Tensor, "n d"], ddof: int) -> tuple[Float[Tensor, "d"], Float[Tensor, "d d"]]:
        """Take in a batch; the new estimates, differentiable in this batch and constant in those before."""
        if x.shape[1] != self.mean.shape[0]:
            raise ValueError(f"x must have the d={self.mean.shape[0]} columns of the running moments, got {x.shape[1]}")
        keep = self.beta
        mean = x.mean(dim=0)
        covariance = (x - mean).T @ (x - mean) / (len(x) - ddof)
        # Clones, because the buffers change below and these enter the graph.
        mean = keep * self.mean.clone() + (1 - keep) * mean if self.batches else mean
        covariance = keep * self.covariance.clone() + (1 - keep) * covariance
        self.mean.copy_(mean.detach())
        self.covariance.copy_(covariance.detach())
        self.batches += 1
        return mean, covariance

    def _apply(self, fn, recurse=True):
        # MPS has no float64: the moments stay on the CPU, where `linalg.exact` takes the batches too.
        return self if fn(torch.empty(0)).device.type == "mps" else super()._apply(fn, recurse)


def whiten(
    x: Float[Tensor, "n d"],
    method: str = "zca",
    *,
    groups: int = 1,
    eps: float = 0.0,
    ddof: int = 1,
    detach: bool = False,
    generator: torch.Generator | None = None,
    permutation: Int[Tensor, "d"] | None = None,
    running: RunningMoments | None = None,
) -> Float[Tensor, "n d"]:
    """Rows z = W (x - mean) with W^T W = ((1 - eps) Sigma + eps I)^-1, differentiable in `x` through mean and W.

    `pca`: W = Lambda^(-1/2) U^T, `zca`: U Lambda^(-1/2) U^T, `cholesky`: L^-1 with Sigma = L L^T (W-MSE, appendix
    B). `group`: ZCA inside each of `groups` blocks of consecutive coordinates (WhitenedCSE, Eq. 5; where `groups`
    does not divide d, the first blocks are one larger). `shuffled_group`: of coordinates in the order
    `permutation`, or drawn from `generator`, and put back in their own (Eq. 6). `standardize`: d groups.

    Sigma has n - ddof in its denominator: 1 is W-MSE's, 0 WhitenedCSE's released code (its paper does not say).
    `running` replaces the batch's moments by estimates over batches (Eq. 13), which any n has. With `detach` W is a
    constant and gradients pass through x - mean only, as in WhitenedCSE's released code; its paper does not mention it.

    With eps = 0 and no `running` the covariance of z is the identity, for groups that of each group. Directions
    without variance (the rank policy of `linalg`, measured against the largest eigenvalue of any group) become 0;
    Cholesky refuses them. Raises SingularBatch where n <= d (for groups: their size) without eps and `running`, and
    where nothing varies; ValueError for arguments out of range.
    """
    check_choice(method, "method", METHODS)
    x = check_batch(x, rows=2)
    dim = x.shape[1]
    kind, groups = _kind(method, check_int(groups, "groups", 1, dim, "d"), dim)
    wide = linalg.exact(x)
    order = _order(method, dim, generator, permutation).to(wide.device)
    parts = _parts(order, groups)
    rank = len(x) - 1
    if running is None:
        centred, covariance = linalg.from_mean(wide), None
    else:
        mean, covariance = running.update(wide, ddof)
        centred, rank = wide - mean, dim if running.beta else rank
    check_rank(rank, max(part.shape[1] for part in parts), len(x), eps)
    blocks = [centred[:, part].transpose(0, 1) for part in parts]
    if covariance is None:
        covariances = [block.mT @ block / (len(x) - ddof) for block in blocks]
    else:
        covariances = [covariance[part[:, :, None], part[:, None, :]] for part in parts]
    maps = inverse_roots(covariances, kind, eps)
    if detach:
        maps = [one.detach() for one in maps]
    white = [(block @ one.mT).transpose(0, 1).flatten(1) for block, one in zip(blocks, maps, strict=True)]
    return torch.cat(white, dim=1)[:, order.argsort()].to(x.device, x.dtype)


def whiten_slices(x: Float[Tensor, "s n d"], method: str = "cholesky", *, eps: float = 0.0) -> Float[Tensor, "s n d"]:
    """`whiten` of every slice x[i] by itself, all at once: methods `pca`, `zca`, `cholesky` and `standardize`."""
    check_choice(method, "method", ("pca", "zca", "cholesky", "standardize"))
    slices, n, dim = x.shape
    wide = linalg.exact(check_batch(x.flatten(0, 1), rows=2)).unflatten(0, (slices, n))
    if method == "standardize":  # every coordinate a slice of its own
        wide = wide.permute(0, 2, 1).reshape(slices * dim, n, 1)
    check_rank(n - 1, wide.shape[2], n, eps)
    centred = linalg.from_mean(wide)
    (maps,) = inverse_roots([centred.mT @ centred / (n - 1)], _kind(method, 1, dim)[0], eps)
    white = centred @ maps.mT
    if method == "standardize":
        white = white.reshape(slices, dim, n).permute(0, 2, 1)
    return white.to(x.device, x.dtype)


def check_rank(rank: int, dim: int, n: int, eps: float) -> None:
    """Raise SingularBatch where a covariance of at most `rank` cannot be that of `dim` dimensions."""
    if not 0 <= eps <= 1:
        raise ValueError(f"eps={eps} must lie between 0 and 1")
    if eps == 0 and rank < dim:
        raise SingularBatch(
            f"n={n} rows must be more than the d={dim} dimensions whitened together (their covariance has "
            f"rank {rank} at most): take n={n + dim - rank} or more, or eps above 0"
        )


def inverse_roots(covariances: list[Tensor], kind: str, eps: float) -> list[Tensor]:
    """W [g, c, c] for each Sigma [g, c, c] in the list, differentiable: W^T W = ((1 - eps) Sigma + eps I)^-1.

    `kind` is `pca`, `zca` or `cholesky`. The rank policy measures all of them against their largest eigenvalue.
    """
    if eps:
        covariances = [
            (1 - eps) * one + eps * torch.eye(one.shape[-1], dtype=one.dtype, device=one.device) for one in covariances
        ]
    if kind == "cholesky":
        return [_inverse_cholesky(one) for one in covariances]
    found = [torch.linalg.eigh(one.detach()) for one in covariances]
    largest = max(float(values.max()) for values, _ in found)
    if largest <= torch.finfo(torch.float64).tiny:
        raise SingularBatch("x does not vary: all rows are equal, the representation has collapsed")
    function = _InverseRoot if kind == "zca" else _AxesInverseRoot
    floor = linalg.RANK_TOLERANCE * largest
    return [function.apply(one, *eigen, floor) for one, eigen in zip(covariances, found, strict=True)]


def _inverse_cholesky(covariances: Float[Tensor, "g c c"]) -> Float[Tensor, "g c c"]:
    _, inverses, certain = linalg.trusted_choleskys(covariances)
    if not certain.all():
        raise SingularBatch(
            f"the covariance of x is singular: the d={covariances.shape[-1]} dimensions do not vary by themselves, the "
            "representation has collapsed or lies in a hyperplane; zca drops such directions, eps above 0 fills them"
        )
    return inverses


class _InverseRoot(torch.autograd.Function):
    """Sigma -> U f(Lambda) U^T, f(l) = l^(-1/2), or 0 below the floor."""

    @staticmethod
    def forward(ctx, covariance, values, vectors, floor):
        roots = _roots(values, floor)
        ctx.save_for_backward(values, vectors, roots)
        return (vectors * roots[..., None, :]) @ vectors.mT

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        values, vectors, roots = ctx.saved_tensors
        turned = vectors.mT @ ((gradient + gradient.mT) / 2) @ vectors
        return vectors @ (_differences(values, roots) * turned) @ vectors.mT, None, None, None


class _AxesInverseRoot(torch.autograd.Function):
    """Sigma -> f(Lambda) U^T, axes by descending variance, each with its largest coordinate positive."""

    @staticmethod
    def forward(ctx, covariance, values, vectors, floor):
        values, vectors = values.flip(-1), vectors.flip(-1)
        largest = vectors.abs().argmax(dim=-2, keepdim=True)
        vectors = vectors * vectors.gather(-2, largest).sign()
        roots = _roots(values, floor)
        ctx.save_for_backward(values, vectors, roots)
        return roots[..., :, None] * vectors.mT

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        # dW U = (K + T) o (U^T dSigma U): K of ZCA, T_ji = f_i / (l_j - l_i) of the turn dU^T, damped.
        values, vectors, roots = ctx.saved_tensors
        gap = values[..., :, None] - values[..., None, :]
        delta = DAMPING * (values[..., :, None] + values[..., None, :])
        damped = gap / (gap.square() + delta.square()).clamp_min(torch.finfo(gap.dtype).tiny)
        inner = (_differences(values, roots) + damped * roots[..., None, :]) * (gradient @ vectors)
        return vectors @ ((inner + inner.mT) / 2) @ vectors.mT, None, None, None


def _roots(values: Float[Tensor, "g c"], floor: float) -> Float[Tensor, "g c"]:
    """l^(-1/2), or 0 for a direction the rank policy drops."""
    kept = values >= floor
    return torch.where(kept, torch.where(kept, values, 1.0).rsqrt(), 0.0)


def _differences(values: Float[Tensor, "g c"], roots: Float[Tensor, "g c"]) -> Float[Tensor, "g c c"]:
    """(f(a) - f(b)) / (a - b) for all pairs of eigenvalues; -f(a) f(b) / (1/f(a) + 1/f(b)) where both are kept.

    Between a kept a and a dropped b, where f(b) = 0, it is f(a) / (a - b), whose denominator is about a; between
    two dropped ones it is 0.
    """
    first, second = roots[..., :, None], roots[..., None, :]
    both = -(first * second).square() / (first + second).clamp_min(torch.finfo(roots.dtype).tiny)
    one = (first > 0) != (second > 0)
    gap = values[..., :, None] - values[..., None, :]
    return torch.where(one, (first - second) / torch.where(one, gap, 1.0), both)


def _kind(method: str, groups: int, dim: int) -> tuple[str, int]:
    """Which root, of how many blocks."""
    if method in ("group", "shuffled_group"):
        return "zca", groups
    return ("zca", dim) if method == "standardize" else (method, 1)


def _order(method: str, dim: int, generator: torch.Generator | None, permutation: Tensor | None) -> Tensor:
    """The order coordinates are grouped in."""
    if method != "shuffled_group":
        return torch.arange(dim)
    if permutation is None:
        return torch.randperm(dim, generator=generator)
    return check_permutation(permutation, dim)


def _parts(order: Int[Tensor, "d"], groups: int) -> list[Tensor]:
    """`order` cut into `groups` blocks, those of one size together: coordinates [g, c]."""
    size, larger = divmod(len(order), groups)
    cut = larger * (size + 1)
    parts = [order[:cut].view(larger, size + 1), order[cut:].view(groups - larger, size)]
    return [part for part in parts if part.numel()]
