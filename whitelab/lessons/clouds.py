"""The two-dimensional clouds of the first lessons: what a hand does to them, and what the core measures then."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab import whitening
from whitelab.statistics import geometry
from whitelab.statistics.moments import Moments

State = tuple[float, ...]

_HALF = 20  # points; as many lie opposite, so that no turn or stretch moves the mean
_BINS = 20


def _round_points() -> Float[Tensor, "n 2"]:
    """Points whose mean is 0 and whose covariance is the identity, each with its opposite."""
    drawn = torch.randn(_HALF, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    both = torch.cat([drawn, -drawn])
    return whitening.fit_zca(Moments.of(both))(both)


_ROUND = _round_points()
_LEANING = _ROUND @ torch.tensor([[1.8, 0.9], [-0.25, 0.5]], dtype=torch.float64)


@dataclass(frozen=True)
class Kind:
    """What a hand can do: parts of a state with their names and limits, where they start, and what they make.

    `points` are those that `make` moves; the browser does the same while a hand drags.
    """

    names: tuple[str, ...]
    limits: tuple[tuple[float, float], ...]
    start: State
    points: Float[Tensor, "n 2"]
    make: Callable[[Tensor, State], Tensor]

    def check(self, state: State) -> State:
        """The state. Raises ValueError for one that cannot be."""
        if len(state) != len(self.names):
            raise ValueError(f"state={state} must have {len(self.names)} parts")
        for part, name, (low, high) in zip(state, self.names, self.limits, strict=True):
            if not low <= part <= high:
                raise ValueError(f"{name}={part} must lie between {low} and {high}")
        return state

    def words(self, state: State) -> str:
        """The state for people."""
        return ", ".join(f"{name} {part:.2f}" for name, part in zip(self.names, state, strict=True))


def _turned(points: Tensor, state: State) -> Tensor:
    angle, first, second = math.radians(state[0]), state[1], state[2]
    turn = torch.tensor([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]], dtype=torch.float64)
    return points @ turn * torch.tensor([first, second], dtype=torch.float64)


def _at(points: Tensor, state: State) -> Tensor:
    return points + torch.tensor(state, dtype=torch.float64)


def _stretched(points: Tensor, state: State) -> Tensor:
    return points * torch.tensor(state, dtype=torch.float64)


KINDS = {
    "mean": Kind(("right", "up"), ((-4.0, 4.0), (-4.0, 4.0)), (0.0, 0.0), _ROUND, _at),
    "axes": Kind(("wide", "high"), ((0.1, 4.0), (0.1, 4.0)), (1.0, 1.0), _ROUND, _stretched),
    "turn": Kind(
        ("turn in degrees", "stretch across", "stretch up"),
        ((-180.0, 180.0), (0.1, 4.0), (0.1, 4.0)),
        (0.0, 1.0, 1.0),
        _LEANING,
        _turned,
    ),
}


def placed(kind: str, state: State) -> Float[Tensor, "n 2"]:
    """The points of a cloud in this state. Raises ValueError for a state that cannot be."""
    return KINDS[kind].make(KINDS[kind].points, KINDS[kind].check(tuple(state)))


@dataclass(frozen=True)
class Measured:
    """What the core says of a cloud. `covariance` has the variance across, that upwards, and what they share."""

    mean_cosine: float
    participation_ratio: float
    covariance: tuple[float, float, float]
    histogram: tuple[int, ...]

    @property
    def from_identity(self) -> float:
        """How far the covariance is from the identity: its entry that is furthest off."""
        across, upwards, shared = self.covariance
        return max(abs(across - 1), abs(upwards - 1), abs(shared))


def measured(kind: str, state: State) -> Measured:
    """Measure a cloud: every pair of different points counts once."""
    points = placed(kind, state)
    covariance = Moments.of(points).covariance
    first, second = torch.triu_indices(len(points), len(points), 1)
    cosines = geometry.row_cosines(points, first, second)
    return Measured(
        geometry.mean_cosine(points),
        geometry.participation_ratio(covariance),
        (float(covariance[0, 0]), float(covariance[1, 1]), float(covariance[0, 1])),
        tuple(torch.histc(cosines, _BINS, -1, 1).int().tolist()),
    )


def ghosts() -> dict[str, Float[Tensor, "n 2"]]:
    """The leaning cloud under three whitenings, which differ by a turn or a reflection."""
    moments = Moments.of(_LEANING)
    return {name: whitening.fit(name, moments)(_LEANING) for name in ("pca", "zca", "cholesky")}
