"""Measures of the shape of an embedding space: how narrow, how spread, how many dimensions in use.

Where rows may carry weights these are counts: a row of weight w, a whole number, stands for w equal rows, so a measure
over every sentence occurrence costs no more than one over the unique sentences. The others are over the rows as they
are, the unique sentences of a task: `METRICS` says which, with formula, range, source and what each cannot see. Results
are plain floats in float64.
"""

from whitelab.statistics.geometry.clusters import CLUSTERS, Clusters, clusters
from whitelab.statistics.geometry.cosines import (
    CONE,
    COSINE_DECIMALS,
    cosine_sample,
    cosines_from,
    mean_cosine,
    normalize,
    pair_cosines,
    row_cosines,
)
from whitelab.statistics.geometry.hubs import REMEDIES, TOP, Hubness, hubness, remedied
from whitelab.statistics.geometry.intrinsic import NEIGHBOURS, mle_dimension, two_nn
from whitelab.statistics.geometry.isotropy import (
    block_means,
    cosine_contributions,
    effective_rank,
    iso_score,
    participation_ratio,
    partition_isotropy,
    rogue_share,
    stable_rank,
    standardized,
    top_share,
)
from whitelab.statistics.geometry.losses import (
    POSITIVES,
    alignment,
    alignment_note,
    positives,
    uniformity,
    uniformity_floor,
    usual_positives,
)
from whitelab.statistics.geometry.measures import METRICS, Metric, Rows, measured
from whitelab.statistics.geometry.neighbours import Nearest, nearest, nearest_rows
from whitelab.statistics.geometry.norms import norm_correlation, norms, word_counts, word_frequencies
from whitelab.statistics.geometry.similarity import hsic

__all__ = [
    "CLUSTERS",
    "CONE",
    "COSINE_DECIMALS",
    "Clusters",
    "Hubness",
    "METRICS",
    "Metric",
    "NEIGHBOURS",
    "Nearest",
    "POSITIVES",
    "REMEDIES",
    "Rows",
    "TOP",
    "alignment",
    "alignment_note",
    "block_means",
    "clusters",
    "cosine_contributions",
    "cosine_sample",
    "cosines_from",
    "effective_rank",
    "hubness",
    "iso_score",
    "hsic",
    "mean_cosine",
    "measured",
    "mle_dimension",
    "nearest",
    "nearest_rows",
    "norm_correlation",
    "normalize",
    "norms",
    "pair_cosines",
    "participation_ratio",
    "partition_isotropy",
    "positives",
    "remedied",
    "rogue_share",
    "row_cosines",
    "stable_rank",
    "standardized",
    "top_share",
    "two_nn",
    "uniformity",
    "uniformity_floor",
    "usual_positives",
    "word_counts",
    "word_frequencies",
]
