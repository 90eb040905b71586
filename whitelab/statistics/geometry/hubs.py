"""Hubs: rows that are among the nearest neighbours of far more rows than others are, and what takes them away."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from whitelab.base.checks import check_choice, check_int, check_integers, check_matrix
from whitelab.base.progress import Progress, silent
from whitelab.statistics.geometry.cosines import normalize
from whitelab.statistics.geometry.neighbours import in_blocks, nearest, nearest_rows
from whitelab.statistics.linalg import gram

TOP = 10  # neighbours of a row, as Radovanovic et al. 2010 count them

REMEDIES = {"none": "Cosine", "csls": "CSLS", "mutual_proximity": "Mutual proximity"}


@dataclass(frozen=True, eq=False)
class Hubness:
    """N_k of every row: on how many rows' lists of k nearest neighbours it is. Their mean is k, whatever the data.

    `skewness` is m_3 / m_2^1.5 of the counts (as `scipy.stats.skew`; Radovanovic et al. 2010), 0 where all are
    equal; `largest` the highest count, `never` the share of rows on no list.
    """

    counts: Int[Tensor, "n"]
    skewness: float
    largest: int
    never: float


def hubness(lists: Int[Tensor | np.ndarray, "n t"]) -> Hubness:
    """The hubs of lists of neighbours, such as `nearest` makes. Raises ValueError for rows that are not there."""
    lists = check_integers(lists, "lists", "n t")
    if not lists.numel():
        raise ValueError(f"lists must name at least one neighbour, got {list(lists.shape)}")
    low, high = torch.stack(lists.aminmax()).tolist()
    if low < 0 or high >= len(lists):
        raise ValueError(f"lists must name rows from 0 to n-1={len(lists) - 1}, got {low if low < 0 else high}")
    counts = torch.bincount(lists.flatten(), minlength=lists.shape[0])
    centred = counts.double() - counts.double().mean()
    spread = float(centred.square().mean())
    skewness = float(centred.pow(3).mean()) / spread**1.5 if spread > 0 else 0.0
    return Hubness(counts, skewness, int(counts.max()), float((counts == 0).double().mean()))


def remedied(x: Float[Tensor, "n d"], remedy: str, top: int = TOP, progress: Progress = silent) -> Int[Tensor, "n t"]:
    """The `top` nearest rows of every row, itself left out, under a remedy against hubs (`REMEDIES`).

    csls: 2 cos(x, y) - r(x) - r(y), r the mean cosine of a row with its `top` nearest (Conneau et al. 2018, sec. 2.3).
    mutual_proximity: P(X > d(x, y)) P(Y > d(x, y)) with d = 1 - cos, X and Y the distances of all other rows to x and
    to y, taken as independent Gaussians (Schnitzer et al. 2012, section 3); products are compared as sums of logs.
    Scores all n^2 pairs in float64, in blocks; `progress(done, total)` may raise to cancel. Raises ValueError for
    another remedy and for a `top` that is not within 1..n - 1.
    """
    check_choice(remedy, "remedy", REMEDIES)
    u = normalize(check_matrix(x))
    check_int(top, "top", 1, len(u) - 1, "n-1")
    if remedy == "none":
        return nearest(u, top)
    score = _csls(u, top) if remedy == "csls" else _mutual_proximity(u)
    done = 0

    def counted(rows: Int[Tensor, "b"]) -> Float[Tensor, "b n"]:
        nonlocal done
        done += len(rows)
        progress(done, len(u))
        return score(rows)

    return in_blocks(len(u), counted, top)


def _csls(u: Float[Tensor, "n d"], top: int) -> Callable[[Tensor], Tensor]:
    near = nearest_rows(u, {"cosine": top})["cosine"].values.mean(1)
    return lambda rows: 2 * (u[rows] @ u.T) - near  # r(x) is the same for a whole row


def _mutual_proximity(u: Float[Tensor, "n d"]) -> Callable[[Tensor], Tensor]:
    n, own = len(u), u.square().sum(1)
    mean = (u @ u.sum(0) - own) / (n - 1)
    square = ((u @ gram(u) * u).sum(1) - own.square()) / (n - 1)
    spread = (square - mean.square()).clamp_min(0).sqrt().clamp_min(1e-12)

    def score(rows: Int[Tensor, "b"]) -> Float[Tensor, "b n"]:
        cosines = u[rows] @ u.T
        sides = (cosines - mean[rows, None]) / spread[rows, None], (cosines - mean) / spread
        return sum(torch.special.log_ndtr(side) for side in sides)

    return score
