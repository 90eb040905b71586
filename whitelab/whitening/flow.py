"""BERT-flow: an invertible map that is trained to send rows to a standard normal (Li et al. 2020).

The map alone, as functions of its parameters; `flow_training` makes them.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.whitening.maps import RowMap

FACTOR = 3.0  # Glow learns log scales divided by it, which lets them move faster
_ROWS = 8192  # rows mapped at once

Parameters = Mapping[str, Tensor]


def widths(dim: int, levels: int) -> list[int]:
    """Coordinates that each level works on: half of them, the larger where d is odd, go on to the next."""
    found = [dim]
    while len(found) < levels and found[-1] > 1:
        found.append(-(-found[-1] // 2))
    return found


def steps(dim: int, levels: int, depth: int) -> Iterator[tuple[str, int]]:
    """The name of every step of the flow, in order, and the coordinates it works on."""
    for level, width in enumerate(widths(dim, levels)):
        for step in range(depth):
            yield f"{level}.{step}", width


def forward(
    parameters: Parameters, x: Float[Tensor, "n d"], levels: int, depth: int
) -> tuple[Float[Tensor, "n d"], Float[Tensor, ""]]:
    """z and log |det dz/dx|, the same for every row.

    A step is actnorm, (x + b) exp(s), then the order of the coordinates reversed, then an additive coupling: the first
    half stays, the second is shifted by a network of the first. Only actnorm changes volumes. After a level the second
    half of the coordinates is done, and the first goes on.
    """
    done, log_det, sizes = [], x.new_zeros(()), widths(x.shape[1], levels)
    for level, width in enumerate(sizes):
        for step in range(depth):
            name = f"{level}.{step}"
            x, log_scale = actnorm(parameters, f"{name}.actnorm", x)
            log_det = log_det + log_scale
            x = x.flip(1)
            kept = -(-width // 2)
            x = torch.cat([x[:, :kept], x[:, kept:] + shift(parameters, name, x[:, :kept])], dim=1)
        if level + 1 < len(sizes):
            done.append(x[:, sizes[level + 1] :])
            x = x[:, : sizes[level + 1]]
    return torch.cat([*done, x], dim=1), log_det


def inverse(parameters: Parameters, z: Float[Tensor, "n d"], levels: int, depth: int) -> Float[Tensor, "n d"]:
    """The rows that `forward` sends to `z`."""
    sizes = widths(z.shape[1], levels)
    x, end = z[:, z.shape[1] - sizes[-1] :], z.shape[1] - sizes[-1]
    for level in reversed(range(len(sizes))):
        if level + 1 < len(sizes):
            start = end - (sizes[level] - sizes[level + 1])
            x, end = torch.cat([x, z[:, start:end]], dim=1), start
        for step in reversed(range(depth)):
            name, kept = f"{level}.{step}", -(-sizes[level] // 2)
            x = torch.cat([x[:, :kept], x[:, kept:] - shift(parameters, name, x[:, :kept])], dim=1)
            x = x.flip(1)
            scale = torch.exp(-FACTOR * parameters[f"{name}.actnorm.log_scale"])
            x = x * scale - parameters[f"{name}.actnorm.bias"]
    return x


def actnorm(parameters: Parameters, name: str, x: Tensor) -> tuple[Tensor, Tensor]:
    """(x + b) exp(s), and the sum of s."""
    log_scale = FACTOR * parameters[f"{name}.log_scale"]
    return (x + parameters[f"{name}.bias"]) * log_scale.exp(), log_scale.sum()


def shift(parameters: Parameters, name: str, x: Float[Tensor, "n a"]) -> Float[Tensor, "n b"]:
    """What a coupling adds: two hidden layers, each normalised before its ReLU, and a layer that starts at 0."""
    for layer in ("first", "second"):
        x, _ = actnorm(parameters, f"{name}.{layer}", x @ parameters[f"{name}.{layer}.weight"])
        x = x.relu()
    x = x @ parameters[f"{name}.last.weight"] + parameters[f"{name}.last.bias"]
    return x * (FACTOR * parameters[f"{name}.last.log_scale"]).exp()


def bits(z: Float[Tensor, "n d"], log_det: Tensor) -> Float[Tensor, ""]:
    """Negative log-likelihood of the rows in bits a dimension (Li et al. 2020, Eq. 4; the unit is that of Glow)."""
    squares = z.square().sum(1).mean() / 2
    return (squares - log_det) / (math.log(2) * z.shape[1]) + math.log2(2 * math.pi) / 2


@dataclass(frozen=True, eq=False)
class FlowMap(RowMap):
    """The trained flow: `tensors` are its parameters, `facts` its dim, levels and depth, and what it cost."""

    kind: ClassVar[str] = "flow"

    @property
    def dim(self) -> int:
        """d."""
        return int(self.facts["dim"])

    @property
    def shape(self) -> tuple[int, int]:
        """Levels, and steps in each."""
        return int(self.facts["levels"]), int(self.facts["depth"])

    def _mapped(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        parameters = self._on(x)
        parts = [forward(parameters, part, *self.shape)[0] for part in x.split(_ROWS)]
        return torch.cat(parts) if parts else x

    def inverse(self, z: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """The rows that the map sends to `z`."""
        return inverse(self._on(z), z.to(torch.float64), *self.shape)

    def bits(self, x: Float[Tensor, "n d"]) -> float:
        """Negative log-likelihood of the rows of `x` in bits a dimension."""
        return float(bits(*forward(self._on(x), x.to(torch.float64), *self.shape)))

    def _on(self, x: Tensor) -> dict[str, Tensor]:
        return {name: one.to(x.device) for name, one in self.tensors.items()}
