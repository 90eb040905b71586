"""The fitted map itself: what every map has, and the affine one."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from hashlib import blake2b
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.base.checks import as_tensor
from whitelab.statistics.linalg import exact
from whitelab.statistics.moments import check_moments


def of_moments(fit: Callable) -> Callable:
    """A `fit(moments, ...)` that checks them."""

    @wraps(fit)
    def checked(moments, *args, **options):
        return fit(check_moments(moments), *args, **options)

    return checked


class Map:
    """A fitted map of rows, called with `x [n, d]`.

    `name` is the variant with its parameters, `rank` counts the directions the map keeps, `k` is what was
    asked for, `count` the rows (with repetitions) it was fitted on, 0 where nothing was.
    """

    name: str
    rank: int
    k: int | None
    count: float

    @property
    def dim(self) -> int:
        """d, the columns it takes."""
        raise NotImplementedError

    @property
    def columns(self) -> int:
        """m, the columns it gives: d unless it says otherwise."""
        return self.dim

    @property
    def parts(self) -> dict[str, Tensor]:
        """The tensors it consists of, by name, always in one order."""
        raise NotImplementedError

    @property
    def digest(self) -> str:
        """Hex digest of its `parts` in float64, in which it computes: one number of another value is another digest."""
        numbers = (exact(one).cpu().contiguous().numpy().tobytes() for one in self.parts.values())
        return blake2b(b"".join(numbers), digest_size=16).hexdigest()

    def __call__(self, x) -> Float[Tensor, "n m"]:
        """The map of every row of `x [n, d]`, a tensor or an array, in float64. Raises ValueError for another d."""
        x = as_tensor(x)
        if x.shape[-1] != self.dim:
            raise ValueError(f"x must have d={self.dim} columns, got {x.shape[-1]}")
        return self._mapped(exact(x))

    def _mapped(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n m"]:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Whitener(Map):
    """z = (x - mean) matrix, an affine map.

    `matrix` is `[d, m]`, or `[d]` when it only scales the coordinates, or None when it is the identity. `mean` is a
    copy, so that no map shares it with the moments it is of.
    """

    name: str
    mean: Float[Tensor, "d"] = field(repr=False)
    matrix: Float[Tensor, "d m"] | Float[Tensor, "d"] | None = field(repr=False)
    rank: int
    k: int | None
    count: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", self.mean.clone())

    @property
    def dim(self) -> int:
        """d, the columns it takes."""
        return self.mean.shape[0]

    @property
    def columns(self) -> int:
        """m, the columns it gives."""
        return self.matrix.shape[1] if self.matrix is not None and self.matrix.ndim == 2 else self.dim

    @property
    def parts(self) -> dict[str, Tensor]:
        """`mean` and `matrix`, this written out."""
        return {"mean": self.mean, "matrix": self.dense}

    def _mapped(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n m"]:
        centred = x - self.mean
        if self.matrix is None:
            return centred
        return centred * self.matrix if self.matrix.ndim == 1 else centred @ self.matrix

    @property
    def dense(self) -> Float[Tensor, "d m"]:
        """The matrix written out, whatever form it is kept in."""
        if self.matrix is None:
            return torch.eye(self.mean.shape[0], dtype=self.mean.dtype, device=self.mean.device)
        return torch.diag(self.matrix) if self.matrix.ndim == 1 else self.matrix


@dataclass(frozen=True, eq=False)
class RowMap(Map):
    """A map fitted to rows, which no mean and matrix say: `tensors` is all there is to it, `facts` what shapes it.

    `kind` names the subclass in a file.
    """

    kind: ClassVar[str]
    name: str
    rank: int
    count: float
    tensors: dict[str, Tensor] = field(repr=False)
    facts: dict[str, int | float] = field(default_factory=dict)
    k: None = None

    @property
    def parts(self) -> dict[str, Tensor]:
        """`tensors`, sorted."""
        return dict(sorted(self.tensors.items()))

    @property
    def cost(self) -> dict[str, int | float]:
        """What the fit took: `seconds`, and of a training also `steps` and `parameters`."""
        return {name: self.facts[name] for name in ("seconds", "steps", "parameters") if name in self.facts}


def affine(fitted: Map, why: str) -> Whitener:
    """Return `fitted` where it is a mean and a matrix. Raises ValueError for any other map: `why` needs them."""
    if not isinstance(fitted, Whitener):
        raise ValueError(f"whitening={fitted.name!r} is no affine map, and {why}")
    return fitted
