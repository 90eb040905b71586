"""Which layers to average: the score of every subset of the layers, or a declared search among them.

Without whitening the cosine of an average of layers is three quadratic forms in the 0/1 vector of the layers
chosen, so every subset costs one row of a matrix product and one ranking. With whitening each subset has a
covariance, summed from blocks, and needs a factorisation of its own.

`plan` says which subsets, `scorers` what each scores, `ranking` in which order, `searching` goes through them.
"""

from whitelab.sweeps.layer_subsets.plan import Plan, as_layers, as_masks, check_sizes, extended
from whitelab.sweeps.layer_subsets.ranking import counted_among
from whitelab.sweeps.layer_subsets.results import LayerSubset, Ranking, SubsetSearch
from whitelab.sweeps.layer_subsets.scorers import CHUNK_BYTES, FittedScorer, LinearScorer, check_device
from whitelab.sweeps.layer_subsets.searching import search_subsets, stream

__all__ = [
    "CHUNK_BYTES",
    "FittedScorer",
    "LayerSubset",
    "LinearScorer",
    "Plan",
    "Ranking",
    "SubsetSearch",
    "as_layers",
    "as_masks",
    "check_device",
    "check_sizes",
    "counted_among",
    "extended",
    "search_subsets",
    "stream",
]
