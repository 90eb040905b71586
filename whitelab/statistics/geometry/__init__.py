"""Measures of the shape of an embedding space: how narrow, how spread, how many dimensions in use.

Rows may carry weights: a row of weight w counts as w equal rows, so a measure over every sentence
occurrence costs no more than one over the unique sentences. Results are plain floats in float64.
"""

from whitelab.statistics.geometry.cosines import (
    COSINE_DECIMALS,
    cosine_sample,
    cosines_from,
    mean_cosine,
    normalize,
    pair_cosines,
    row_cosines,
)
from whitelab.statistics.geometry.hubs import TOP, nearest, neighbour_counts
from whitelab.statistics.geometry.isotropy import (
    METRICS,
    Metric,
    block_means,
    effective_rank,
    participation_ratio,
    top_share,
)
from whitelab.statistics.geometry.losses import POSITIVES, alignment, positives, uniformity, uniformity_floor

__all__ = [
    "COSINE_DECIMALS",
    "METRICS",
    "Metric",
    "POSITIVES",
    "TOP",
    "alignment",
    "block_means",
    "cosine_sample",
    "cosines_from",
    "effective_rank",
    "mean_cosine",
    "nearest",
    "neighbour_counts",
    "normalize",
    "pair_cosines",
    "participation_ratio",
    "positives",
    "row_cosines",
    "top_share",
    "uniformity",
    "uniformity_floor",
]
