"""When training has failed: embeddings that no longer tell sentences apart, and numbers that are none."""

import math
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from whitelab import geometry, linalg

# Collapsed when so small a part of the start's spread is left, or hardly more than one direction. What was measured
# is written beside `collapse`.
SPREAD_LEFT = 0.02
RANK_LEFT = 1.5

# Fewer sentences than this have few directions whatever an encoder does.
_ROWS = 8


@dataclass(frozen=True)
class Shape:
    """How far apart a batch's embeddings are: `spread` = 1 - mean cosine of two sentences, and their effective rank."""

    spread: float
    rank: float

    @classmethod
    def of(cls, h: Float[Tensor, "b d"]) -> "Shape":
        """In float64; the spectrum is that of the smaller of x^T x and x x^T, which differ by zeros alone."""
        x = linalg.exact(h.detach())
        centred = x - x.mean(dim=0)
        gram = centred.T @ centred if x.shape[0] > x.shape[1] else centred @ centred.T
        return cls(1 - geometry.mean_cosine(x), geometry.effective_rank(linalg.eigenvalues(gram)))


def collapse(first: Shape, now: Shape, rows: int) -> str:
    """Why `now` is collapsed beside the `first` step's shape, in one sentence; empty where it is not.

    Measured against the start, because an encoder may begin in a narrow cone: the [CLS] states of all-MiniLM-L6-v2's
    third block have a mean cosine of 0.9999987, and training opens it.
    """
    if rows < _ROWS:
        return ""
    if now.spread < SPREAD_LEFT * first.spread:
        return (
            f"the embeddings collapsed: two sentences of a batch have a mean cosine of {1 - now.spread:.6f}, and "
            f"{100 * now.spread / first.spread:.1g} % of the start's spread is left; nothing in the objective keeps "
            f"them apart, or the rate is too high"
        )
    if now.rank < RANK_LEFT < first.rank:
        return (
            f"the embeddings collapsed onto a line: their effective rank fell from {first.rank:.1f} to {now.rank:.2f}; "
            f"lower the rate or choose an objective that spreads them"
        )
    return ""


def divergence(loss: float, norm: float) -> str:
    """Why a step cannot be taken, in one sentence; empty where it can."""
    for name, value in (("loss", loss), ("gradient's length", norm)):
        if not math.isfinite(value):
            return (
                f"the {name} is {value}: the step was not taken; lower the rate, raise the warm-up, or choose "
                f"precision='float32'"
            )
    return ""


def failed(error: Exception) -> str:
    """What it means that the objective found nothing to invert."""
    return (
        f"the objective's whitening failed ({' '.join(str(error).split())}): the head's outputs have fewer directions "
        f"than it inverts; take larger batches, a smaller embedding or a lower rate"
    )
