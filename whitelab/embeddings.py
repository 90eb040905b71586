"""LayerEmbeddings: one pooled vector for each layer and each unique sentence of a task."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from whitelab.checks import check_layers
from whitelab.linalg import exact
from whitelab.moments import Moments


@dataclass(frozen=True, eq=False)
class LayerEmbeddings:
    """Embeddings of one task, with the map from its pairs to rows.

    `values [l, n, d]`: layer 0 is the embedding layer, 1..L the transformer blocks; rows are the unique
    sentences. Pair i is rows `first[i]` and `second[i]`, with `gold[i]` and the number `subset[i]` of its
    subset. `counts [n]` says how often each sentence occurs in both columns together.
    """

    values: Float[Tensor, "l n d"]
    first: Int[Tensor, "p"]
    second: Int[Tensor, "p"]
    gold: Float[Tensor, "p"]
    subset: Int[Tensor, "p"]
    subset_names: tuple[str, ...]

    @property
    def n_layers(self) -> int:
        """Layers held, the embedding layer among them: numbers 0..n_layers - 1."""
        return self.values.shape[0]

    @property
    def n_sentences(self) -> int:
        """n, unique sentences."""
        return self.values.shape[1]

    @property
    def n_pairs(self) -> int:
        """p."""
        return self.first.shape[0]

    @property
    def dim(self) -> int:
        """d."""
        return self.values.shape[2]

    @property
    def n_subsets(self) -> int:
        """Number of subsets, at least 1."""
        return len(self.subset_names)

    @cached_property
    def counts(self) -> Float[Tensor, "n"]:
        """Occurrences of each sentence over both columns, the weights of a fit on the task's sentences."""
        rows = torch.cat([self.first, self.second])
        return torch.bincount(rows, minlength=self.n_sentences).to(torch.float64)

    def combine(self, layers: Sequence[int]) -> Float[Tensor, "n d"]:
        """The mean of the given layers, float64 (WhiteningBERT, section 3.2). Pooling commutes with it."""
        layers = check_layers(layers, self.n_layers)
        total = exact(self.values[layers[0]])
        for layer in layers[1:]:
            total = total + exact(self.values[layer])
        return total / len(layers)

    def moments(self, layers: Sequence[int]) -> Moments:
        """Moments over every sentence occurrence of both columns, duplicates kept (protocols A6)."""
        return Moments.of(self.combine(layers), self.counts)

    def with_only(self, subset: int) -> "LayerEmbeddings":
        """The same embeddings with the pairs of one subset."""
        rows = (self.subset == subset).nonzero()[:, 0]
        return LayerEmbeddings(
            self.values,
            self.first[rows],
            self.second[rows],
            self.gold[rows],
            torch.zeros_like(self.subset[rows]),
            (self.subset_names[subset],),
        )

    def to(self, device: str | torch.device) -> "LayerEmbeddings":
        """The same embeddings on `device`."""
        moved = (x.to(device) for x in (self.values, self.first, self.second, self.gold, self.subset))
        return LayerEmbeddings(*moved, self.subset_names)
