"""Logistic regressions on the same rows, solved together: the folds are columns of one product.

    minimise over w, b:  C sum_i log-loss(w x_i + b, y_i) + |w|^2 / 2

over the rows i that a fold sees; binomial for two classes, multinomial for more, as scikit-learn's LogisticRegression.
L-BFGS (Liu and Nocedal 1989) goes from each C to the next, from the Hessian of the folds' mean, which all folds share:
they have most of their rows in common.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import softplus

from whitelab.base.checks import check_positive

_STEPS = 500  # at most, for each C
_RENEWED = 20  # steps after which the shared Hessian is taken anew; as many shape the next step
_TOLERANCE = 1e-6  # of the loss: what another step would gain
_WIDEST = 4096  # classes x (d + 1) whose Hessian is taken as one
_SHORTEST = 2.0**-20  # of a step: below it float32 tells no two losses apart


def margins(
    x: Float[np.ndarray, "n d"],
    y: Int[np.ndarray, "n"],
    seen: Bool[np.ndarray, "f n"],
    grid: Sequence[float],
    device: torch.device | str = "cpu",
) -> tuple[Float[Tensor, "g n c f"], Int[np.ndarray, "c"]]:
    """What regressions say of every row, and the classes: the one whose margin is largest is the answer.

    Fold f learns from the rows of `seen[f]`, once with each C of the `grid`, which ascends. Raises ValueError where
    all rows that are seen are of one class, and for a C that is not a number above 0.
    """
    for c in grid:
        check_positive(c, "c")
    there = seen.any(axis=0)
    classes = np.unique(y[there])
    if len(classes) < 2:
        raise ValueError("labels must hold at least two classes, got one")
    x = torch.as_tensor(x, dtype=torch.float32, device=device)
    x = x - x[torch.as_tensor(there, device=device)].mean(dim=0)  # the intercepts take it up
    own = y[:, None] == (classes[1:] if len(classes) == 2 else classes)
    folds = _Folds(
        rows=torch.cat([x, torch.ones_like(x[:, :1])], dim=1),
        target=torch.as_tensor(own, device=device),
        seen=torch.as_tensor(seen.T, dtype=torch.float32, device=device),
    )
    w, found = x.new_zeros(x.shape[1] + 1, own.shape[1], len(seen)), []
    for c in grid:
        w, z = _minimum(folds, c, w)
        found.append(torch.cat([torch.zeros_like(z), z], dim=1) if len(classes) == 2 else z)
    return torch.stack(found), classes


@dataclass(frozen=True)
class _Folds:
    """Weights w are [d + 1, c, f], the last row being intercepts; scores z = rows w are [n, c, f]."""

    rows: Float[Tensor, "n width"]  # one wider than the vectors
    target: Bool[Tensor, "n c"]  # c = 1 for two classes
    seen: Float[Tensor, "n f"]

    def scores(self, w: Tensor) -> Tensor:
        return torch.einsum("nd,dcf->ncf", self.rows, w)

    def doubt(self, z: Tensor) -> Float[Tensor, "n f"]:
        """Log odds that a row is not of its class: of one that is hardly in doubt they keep the digits that the
        difference of two large numbers, or of 1 and a probability, would lose."""
        own = self.target[..., None]
        if z.shape[1] == 1:
            return torch.where(own, -z, z)[:, 0]
        return z.masked_fill(own, -torch.inf).logsumexp(dim=1) - z.masked_fill(~own, 0).sum(dim=1)

    def log_loss(self, z: Tensor) -> Float[Tensor, "f"]:
        return (self.seen * softplus(self.doubt(z))).sum(dim=0)

    def gradient(self, c: float, w: Tensor, z: Tensor) -> Tensor:
        error = torch.where(self.target[..., None], -self.doubt(z).sigmoid()[:, None], _likely(z)) * self.seen[:, None]
        found = c * torch.einsum("nd,ncf->dcf", self.rows, error)
        found[:-1] += w[:-1]
        return found

    def hessian(self, c: float, z: Tensor) -> list[Tensor]:
        """Cholesky factors of the folds' mean Hessian, of as many classes at once as its size allows."""
        likely, unlikely, factors = _likely(z), _unlikely(z), []
        width = self.rows.shape[1]
        ridge = torch.ones(width, device=z.device)
        ridge[-1] = 1e-5 * c * len(z)  # where no row is in doubt, and as all intercepts may rise together
        at_once = max(1, _WIDEST // width)
        for group, rest in zip(likely.split(at_once, dim=1), unlikely.split(at_once, dim=1), strict=True):
            size = group.shape[1]
            found = torch.empty(size, width, size, width, device=z.device)
            for i in range(size):
                for j in range(i + 1):
                    beside = rest[:, i] if i == j else -group[:, j]
                    weight = (group[:, i] * beside * self.seen).mean(dim=1, keepdim=True)
                    found[i, :, j] = found[j, :, i] = c * (self.rows * weight).T @ self.rows
            factors.append(_factor(found.flatten(0, 1).flatten(1) + torch.diag(ridge.repeat(size))))
        return factors


def _factor(matrix: Float[Tensor, "d d"]) -> Float[Tensor, "d d"]:
    """A Cholesky factor, of a little more where float32 has lost the ridge below large squares."""
    largest = matrix.diagonal().max()
    for more in (0.0, *(10.0**power for power in range(-6, 1))):
        factor, trouble = torch.linalg.cholesky_ex(matrix + torch.diag((more * largest).expand(len(matrix))))
        if not trouble:
            return factor
    raise ValueError("x must be finite, got NaN or infinity")


def _likely(z: Tensor) -> Tensor:
    return z.sigmoid() if z.shape[1] == 1 else z.softmax(dim=1)


def _unlikely(z: Tensor) -> Tensor:
    """1 less `_likely`, a sum of the others, as 1 - p is 0 where p rounds to 1 and a Hessian of such is indefinite."""
    if z.shape[1] == 1:
        return (-z).sigmoid()
    likely = _likely(z)
    before, after = (torch.zeros_like(likely) for _ in range(2))
    before[:, 1:] = likely.cumsum(dim=1)[:, :-1]
    after[:, :-1] = likely.flip(1).cumsum(dim=1).flip(1)[:, 1:]
    return before + after


def _dot(a: Tensor, b: Tensor) -> Float[Tensor, "f"]:
    return (a * b).sum(dim=(0, 1))


def _minimum(folds: _Folds, c: float, w: Tensor) -> tuple[Tensor, Tensor]:
    """Weights and scores at the minimum, from `w` on."""
    z = folds.scores(w)
    gradient, steps, changes = folds.gradient(c, w, z), [], []
    for step in range(_STEPS):
        if step % _RENEWED == 0:
            factors = folds.hessian(c, z)
        direction = -_inverse_hessian(gradient, factors, steps, changes)
        ahead, slope = folds.scores(direction), _dot(gradient, direction)
        length, loss = _length(folds, c, w, z, direction, ahead, slope)
        if (-slope <= _TOLERANCE * loss).logical_or(length == 0).all():
            break
        w, z = w + length * direction, z + length * ahead
        before, gradient = gradient, folds.gradient(c, w, z)
        steps, changes = [*steps, length * direction][-_RENEWED:], [*changes, gradient - before][-_RENEWED:]
    return w, z


def _inverse_hessian(gradient: Tensor, factors: list[Tensor], steps: list[Tensor], changes: list[Tensor]) -> Tensor:
    """The estimate of L-BFGS times the gradient: two loops over the last steps, the shared Hessian between them."""
    turned, weights = gradient, []
    for step, change in zip(reversed(steps), reversed(changes), strict=True):
        inner = _dot(step, change)
        rho = torch.where(inner > 0, 1 / inner, 0)  # not of a fold that has arrived
        weights.append((rho, rho * _dot(step, turned)))
        turned = turned - weights[-1][1] * change
    columns = turned.transpose(0, 1).flatten(0, 1).split([len(one) for one in factors])
    solved = torch.cat([torch.cholesky_solve(part, one) for part, one in zip(columns, factors, strict=True)])
    turned = solved.unflatten(0, (turned.shape[1], -1)).transpose(0, 1)
    for step, change, (rho, alpha) in zip(steps, changes, reversed(weights), strict=True):
        turned = turned + (alpha - rho * _dot(change, turned)) * step
    return turned


def _length(folds: _Folds, c: float, w, z, direction, ahead, slope) -> tuple[Float[Tensor, "f"], Float[Tensor, "f"]]:
    """The longest of 1, 1/2, 1/4.. that lowers each loss as it must (Armijo), 0 where none does, and the losses now."""
    here, there = w[:-1], direction[:-1]
    square, mixed, own = _dot(here, here) / 2, _dot(here, there), _dot(there, there) / 2
    now = c * folds.log_loss(z) + square
    length = torch.ones_like(slope)
    while True:
        loss = c * folds.log_loss(z + length * ahead) + square + length * mixed + length * length * own
        high = loss > now + 1e-4 * length * slope + 1e-6 * now  # the last: a sum in float32
        if not high.any():
            return length, now
        length = torch.where(high, torch.where(length > _SHORTEST, length / 2, 0), length)
