"""Sentence vectors without a transformer: weighted means of word embeddings.

Arora et al. 2017, A Simple but Tough-to-Beat Baseline for Sentence Embeddings, Algorithm 1; its second step,
which takes the common component away, is the whitening variant `common_component`.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

SIF_A = 1e-3  # the paper's a


def sif_weights(ids: Sequence[Sequence[int]], rows: int) -> Float[Tensor, "v"]:
    """The weight a / (a + p(w)) of every token id below `rows`, p(w) its share of all tokens of `ids`.

    Arora et al. 2017, Algorithm 1, line 2. A token that does not occur has p = 0 and weight 1. The paper takes p
    from a large corpus, which is not at hand here.
    """
    tokens = torch.tensor([i for row in ids for i in row], dtype=torch.int64)
    counts = torch.bincount(tokens, minlength=rows).to(torch.float64)
    return SIF_A / (SIF_A + counts / max(len(tokens), 1))


def word_rows(
    matrix: Float[Tensor, "v d"], ids: Sequence[Sequence[int]], weights: Float[Tensor, "v"] | None = None
) -> tuple[Float[Tensor, "u d"], Float[Tensor, "u"]]:
    """The vector of each token that occurs in `ids`, float32, times its weight, and how often it occurs there.

    With these counts their mean and covariance are those of Zipfian whitening (Yokoi et al. 2024): the sums over words
    of p(w) w and p(w) (w - mu)(w - mu)^T, here with p from `ids` in place of a large corpus.
    """
    used, counts = torch.tensor([i for row in ids for i in row], dtype=torch.int64).unique(return_counts=True)
    rows = matrix[used].to(torch.float64)
    if weights is not None:
        rows = rows * weights[used, None]
    return rows.to(torch.float32), counts.to(torch.float64)


def weighted_means(
    matrix: Float[Tensor, "v d"], ids: Sequence[Sequence[int]], weights: Float[Tensor, "v"] | None = None
) -> Float[Tensor, "n d"]:
    """Row i is sum_t weights[t] matrix[t] / |ids[i]| over the tokens of `ids[i]`, float32, summed in float64.

    Without `weights` the plain mean. The divisor is the number of tokens, not the sum of weights (Arora et al.
    2017, Algorithm 1, line 2). A row without tokens is the zero vector.
    """
    lengths = torch.tensor([len(row) for row in ids])
    if not int(lengths.sum()):
        return torch.zeros(len(ids), matrix.shape[1])
    tokens = torch.tensor([i for row in ids for i in row])
    used, places = tokens.unique(return_inverse=True)  # in float64 the whole matrix would be large
    table = matrix[used].to(torch.float64)
    if weights is not None:
        table *= weights[used, None]
    starts = lengths.cumsum(0) - lengths
    means = torch.nn.functional.embedding_bag(places, table, starts, mode="mean")
    return means.to(torch.float32)
