"""When training has failed: embeddings that no longer tell sentences apart, and numbers that are none."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from whitelab.statistics import geometry, linalg

# Collapsed when so small a part of the first step's spread is left, or hardly more than one direction. Far below what
# training that goes well comes to: in 100 steps from all-MiniLM-L6-v2's third layer the spread of the embeddings stayed
# above 80 % of the start's under every objective, that of the head's outputs above 40 %, plain MSE among them.
SPREAD_LEFT = 0.02
RANK_LEFT = 1.5

# What is watched: what a run is for, and what its loss sees.
EMBEDDINGS, OUTPUTS = "embeddings", "head's outputs"

# Fewer sentences than this have few directions whatever an encoder does.
_ROWS = 8

# GradScaler passes over a step whose gradient is not finite and halves its factor, 65 536 at first. One that is too
# large is found within a few such steps; after twenty in a row it was never the factor.
SKIPS = 20


@dataclass(frozen=True)
class BatchShape:
    """How far apart a batch's embeddings are: `spread` = 1 - mean cosine of two sentences, and their effective rank."""

    spread: float
    rank: float

    @classmethod
    def of(cls, h: Float[Tensor, "b d"], at_least: bool = False) -> "BatchShape":
        """In float64; the spectrum is that of the smaller of x^T x and x x^T, which differ by zeros alone.

        With `at_least` a rank that is above `RANK_LEFT` beyond doubt may be any lower one above it: the participation
        ratio of the variances, at most the effective rank, needs no eigenvalues.
        """
        x = linalg.exact(h.detach())
        centred = x - x.mean(dim=0)
        gram = centred.T @ centred if x.shape[0] > x.shape[1] else centred @ centred.T
        rank = geometry.participation_ratio(gram) if at_least else 0.0
        if not rank >= RANK_LEFT:
            rank = geometry.effective_rank(linalg.eigenvalues(gram))
        return cls(1 - geometry.mean_cosine(x), rank)


def collapse(first: Mapping[str, BatchShape], now: Mapping[str, BatchShape], rows: int) -> str:
    """Why what is watched is collapsed beside the `first` step's, in one sentence; empty where it is not.

    Measured against the start, because an encoder may begin in a narrow cone: the [CLS] states of all-MiniLM-L6-v2's
    third block have a mean cosine of 0.9999987, and training opens it.
    """
    for name, shape in now.items() if rows >= _ROWS else ():
        if shape.spread < SPREAD_LEFT * first[name].spread:
            return (
                f"the {name} collapsed: two sentences of a batch have a mean cosine of {1 - shape.spread:.6f}, and "
                f"{100 * shape.spread / first[name].spread:.1g} % of the start's spread is left; nothing in the "
                f"objective keeps them apart, or the rate is too high"
            )
        if shape.rank < RANK_LEFT < first[name].rank:
            return (
                f"the {name} collapsed onto a line: their effective rank fell from {first[name].rank:.1f} to "
                f"{shape.rank:.2f}; lower the rate or choose an objective that spreads them"
            )
    return ""


def divergence(loss: float, norm: float) -> str:
    """Why a step cannot be taken, in one sentence; empty where it can."""
    for name, value in (("loss", loss), ("gradient's length", norm)):
        if not math.isfinite(value):
            return f"the {name} is {value}: the step was not taken"
    return ""


def skips(count: int) -> str:
    """Why `count` steps in a row that were passed over are too many, in one sentence; empty where they are not."""
    if count < SKIPS:
        return ""
    return f"the gradient was no number in {count} steps in a row, none of which was taken"


def overflow() -> str:
    """What it means that a sentence's embedding is no number after a step."""
    return "the embeddings hold NaN or infinity after this step"


def remedied(problem: str, precision: str) -> str:
    """A `problem` of numbers that are none, and what may help; empty where there is none."""
    other = "" if precision == "float32" else ", or choose precision='float32'"
    return f"{problem}; lower the rate or raise the warm-up{other}" if problem else ""


def failed(error: Exception) -> str:
    """What it means that the objective found nothing to invert."""
    return (
        f"the objective's whitening failed ({' '.join(str(error).split())}): the head's outputs have fewer directions "
        f"than it inverts; take larger batches, a smaller embedding or a lower rate"
    )
