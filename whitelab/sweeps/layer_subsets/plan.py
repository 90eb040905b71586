"""Which subsets are tried, and in which order."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from whitelab.base.checks import check_int
from whitelab.base.wording import quantity

# A search is exhaustive up to so many subsets: 20 layers without whitening, 13 where a Cholesky factor a subset
# suffices, 10 where each takes an eigendecomposition. For more, sizes are complete from one layer up while they fit
# (with a factorisation at least up to triples), and larger ones extend the best of the size below.
MAX_EXACT = {"sums": 2**20, "factor": 2**13, "eigen": 2**10}
BEAM = {"sums": 1024, "factor": 8, "eigen": 8}
_ALWAYS = 3


@dataclass(frozen=True)
class Plan:
    """Sizes to go through, in order: those in `complete` with every subset, the others by beam."""

    n_layers: int
    sizes: tuple[int, ...]
    walk: tuple[int, ...]
    complete: frozenset[int]
    beam: int

    @classmethod
    def of(cls, n_layers: int, sizes: tuple[int, ...], max_exact: int, beam: int) -> "Plan":
        """Everything if it is at most `max_exact` subsets, else as far up from size 1 as that goes."""
        if sum(math.comb(n_layers, size) for size in sizes) <= max_exact:
            return cls(n_layers, sizes, sizes, frozenset(sizes), beam)
        last, counted = 1, n_layers
        while last < n_layers and counted + math.comb(n_layers, last + 1) <= max_exact:
            last += 1
            counted += math.comb(n_layers, last)
        start = min(last, sizes[0])
        return cls(n_layers, sizes, tuple(range(start, sizes[-1] + 1)), frozenset(range(start, last + 1)), beam)

    def most(self, size: int) -> int:
        """How many candidates of `size` there can be."""
        every = math.comb(self.n_layers, size)
        below = min(self.beam, math.comb(self.n_layers, size - 1))
        return every if size in self.complete else min(every, below * (self.n_layers - size + 1))

    @property
    def strategy(self) -> str:
        """How subsets are chosen, in one sentence."""
        beams = [size for size in self.walk if size not in self.complete]
        if not beams:
            return f"every subset of {_span(self.sizes)}"
        return (
            f"every subset of {_span(sorted(self.complete))}; of {_span(beams)}, "
            f"each of the best {self.beam} of one layer less with each layer added"
        )


def _span(sizes: Sequence[int]) -> str:
    first, last = sizes[0], sizes[-1]
    if first == last:
        return quantity(first, "layer")
    if len(sizes) == last - first + 1:
        return f"{first} to {last} layers"
    return f"{', '.join(map(str, sizes))} layers"


def limits(n_layers: int, cost: str, max_exact: int | None, beam: int | None) -> tuple[int, int]:
    """How many subsets may all be scored, and the width of the beam beyond; checked, or the usual ones for None.

    `cost` says what a subset takes: `sums` of products taken once, a `factor` or an `eigen` decomposition.
    """
    triples = sum(math.comb(n_layers, size) for size in range(1, _ALWAYS + 1))
    return (
        check_int(max(MAX_EXACT[cost], triples) if max_exact is None else max_exact, "max_exact", 1),
        check_int(BEAM[cost] if beam is None else beam, "beam", 1),
    )


def check_sizes(size: str | int | Sequence[int], n_layers: int) -> tuple[int, ...]:
    """Return the numbers of layers asked for, ascending, each within `1..n_layers`."""
    if size == "all":
        return tuple(range(1, n_layers + 1))
    if isinstance(size, str):
        raise ValueError(f"size={size!r} must be 'all', a number of layers or a range of them")
    sizes = tuple(size) if isinstance(size, Sequence) else (size,)
    if not sizes:
        raise ValueError(f"size={size!r} must hold at least one number of layers")
    return tuple(sorted({check_int(one, "size", 1, n_layers, "l") for one in sizes}))


def extended(subsets: Iterable[tuple[int, ...]], n_layers: int) -> list[tuple[int, ...]]:
    """Every subset that is one of `subsets` and one layer more, in lexical order."""
    return sorted({tuple(sorted((*one, i))) for one in subsets for i in range(n_layers) if i not in one})


def as_masks(subsets: Sequence[tuple[int, ...]], n_layers: int) -> Bool[Tensor, "c l"]:
    """True where a subset holds a layer; all of one size."""
    masks = torch.zeros(len(subsets), n_layers, dtype=torch.bool)
    return masks.scatter_(1, torch.tensor(subsets), True)


def as_layers(mask: Bool[Tensor, "l"]) -> tuple[int, ...]:
    """The layers a subset holds."""
    return tuple(mask.nonzero()[:, 0].tolist())
