"""How well cosines tell matching pairs, and clusters tell classes, for many resamples at once."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from whitelab.statistics.linalg import exact


def average_precision(
    scores: Float[Tensor, "p"], positive: Bool[Tensor, "p"], counts: Float[Tensor, "p b"]
) -> Float[Tensor, "b"]:
    """Sum over thresholds of (R_t - R_(t-1)) P_t, precision P and recall R of the pairs that score at least t.

    Pair i counts as often as `counts[i]` says, one column a resample; equal scores share a threshold. Equal to
    scikit-learn's `average_precision_score` with these weights. NaN where no pair is positive.
    """
    values, order = scores.sort(descending=True)
    ends = torch.ones_like(values, dtype=torch.bool)
    ends[:-1] = values[1:] != values[:-1]
    counts = exact(counts)[order]
    found, seen = ((part.cumsum(0))[ends] for part in (counts * positive[order, None], counts))
    steps = found.diff(dim=0, prepend=torch.zeros_like(found[:1]))
    return (steps * found / seen.clamp_min(1e-300)).sum(0) / torch.where(found[-1] > 0, found[-1], torch.nan)


def v_measure(labels: Int[Tensor, "n"], clusters: Int[Tensor, "n"], counts: Float[Tensor, "n b"]) -> Float[Tensor, "b"]:
    """2 h c / (h + c) of homogeneity h and completeness c (Rosenberg and Hirschberg 2007), in [0, 1].

    With entropies that is 2 I(labels; clusters) / (H(labels) + H(clusters)); 1 where both are constant. Row i counts
    as often as `counts[i]` says, one column a resample. Equal to scikit-learn's `v_measure_score`.
    """
    _, labels = labels.unique(return_inverse=True)
    _, clusters = clusters.unique(return_inverse=True)
    shape = int(labels.max()) + 1, int(clusters.max()) + 1
    counts = exact(counts)
    cells = counts.new_zeros(shape[0] * shape[1], counts.shape[1]).index_add(0, labels * shape[1] + clusters, counts)
    joint = cells.view(*shape, -1) / counts.sum(0)
    both = _entropy(joint.flatten(0, 1))
    sides = _entropy(joint.sum(1)) + _entropy(joint.sum(0))
    return torch.where(sides > 0, 2 * (sides - both) / sides.clamp_min(1e-300), 1.0).clamp(0, 1)


def _entropy(p: Float[Tensor, "c b"]) -> Float[Tensor, "b"]:
    return -torch.special.xlogy(p, p).sum(0)
