"""Moments and sums of layers, from which those of any average of them follow."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.base.devices import at_once, threads_on
from whitelab.base.threads import side_by_side
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows, MeasuredRows
from whitelab.scoring.fit_scopes import Fold
from whitelab.statistics import geometry, linalg
from whitelab.statistics.linalg import exact
from whitelab.statistics.moments import Moments

# Pairs multiplied at once. At 13 layers of 768 dimensions a chunk is 20 MB, which the allocator reuses; larger
# ones cost more in fresh pages than in arithmetic (2048 took three times as long).
_PAIRS_PER_CHUNK = 256


def every_pair(n_layers: int) -> list[tuple[int, int]]:
    """Every cell i <= j, row by row."""
    return [(i, j) for i in range(n_layers) for j in range(i, n_layers)]


def pair_grams(
    space: LayerEmbeddings, means: Float[Tensor, "l d"] | None = None
) -> tuple[Float[Tensor, "l l p"], Float[Tensor, "l l p"], Float[Tensor, "l l p"]]:
    """Gram matrices between layers of every pair: a.b, a.a and b.b, float64, after subtracting `means`.

    The cosine of any average of layers is a ratio of sums of their entries.
    """
    chunks = []
    count = at_once(space.values.device, _PAIRS_PER_CHUNK, 8 * space.n_layers * (4 * space.dim + 3 * space.n_layers))
    for i in range(0, space.n_pairs, count):
        rows = slice(i, i + count)
        a, b = (exact(space.values[:, side[rows]].transpose(0, 1)) for side in (space.first, space.second))
        if means is not None:
            a, b = a - means, b - means
        chunks.append(torch.stack([a @ b.mT, a @ a.mT, b @ b.mT]))
    ab, aa, bb = torch.cat(chunks, dim=1).permute(0, 2, 3, 1)
    return ab, aa, bb


@dataclass(frozen=True, eq=False)
class LayerMoments:
    """Mean of every layer, `means [l, d]`, and `scatters [g, d, d]`, what each pair i <= j adds to a sum's scatter.

    A layer's own scatter, or that between two layers and its transpose; pairs in the order of `every_pair`.
    """

    count: float
    means: Float[Tensor, "l d"]
    scatters: Float[Tensor, "g d d"]

    @classmethod
    def of(cls, space: LayerEmbeddings | LayerRows | MeasuredRows) -> "LayerMoments":
        """Over every sentence occurrence, in float64.

        Raises ValueError for a corpus that does not keep every layer apart.
        """
        if isinstance(space, MeasuredRows):
            known, layers = space.between_layers(), space.n_layers
            blocks = known.scatter.view(layers, space.dim, layers, space.dim).transpose(1, 2)
            return cls._of(known.count, known.mean.view(layers, space.dim), lambda i, j: blocks[i, j])
        weights, count = space.counts, float(space.counts.sum())
        roots = weights.sqrt()[:, None]
        rows = torch.empty(space.values.shape, dtype=torch.float64, device=weights.device)
        means = torch.empty_like(rows[:, 0])
        for layer, y in enumerate(rows):
            y.copy_(space.values[layer])
            origin = linalg.first_counted(y, weights)  # as in Moments: equal rows have no scatter at all
            y -= origin
            mean = (weights @ y) / count
            means[layer] = origin + mean
            y -= mean
            y *= roots
        return cls._of(count, means, lambda i, j: linalg.gram(rows[i]) if i == j else rows[i].T @ rows[j])

    @classmethod
    def _of(cls, count: float, means: Float[Tensor, "l d"], block: Callable[[int, int], Tensor]) -> "LayerMoments":
        pairs = every_pair(len(means))
        scatters = means.new_empty(len(pairs), means.shape[1], means.shape[1])

        def put(at: int) -> None:
            i, j = pairs[at]
            here = block(i, j)
            scatters[at] = here
            if i != j:
                scatters[at] += here.mT

        for _ in side_by_side(put, range(len(pairs)), threads_on(means.device)):
            pass
        return cls(count, means, scatters)

    def averages(self, subsets: Sequence[Sequence[int]]) -> list[Moments]:
        """Moments of the average of each of `subsets`, all scatters as one matrix product."""
        of = torch.zeros(len(subsets), len(self.means), dtype=self.means.dtype)
        for row, layers in zip(of, subsets, strict=True):
            row[list(layers)] = 1 / len(layers)
        i, j = torch.tensor(every_pair(len(self.means))).T
        of, weights = of.to(self.means.device), (of[:, i] * of[:, j]).to(self.means.device)
        scatters = (weights @ self.scatters.flatten(1)).view(-1, *self.scatters.shape[1:])
        return [Moments(self.count, *one) for one in zip(of @ self.means, scatters, strict=True)]

    def average(self, layers: Sequence[int]) -> Moments:
        """Moments of the average of `layers`."""
        return self.averages([layers])[0]


# Rows summed at once: 6 MB at 768 dimensions, so that what is done with them finds them in a cache.
_ROWS_PER_PART = 1024


def centred_sums(
    values: Float[Tensor, "l n d"], layers: Sequence[int], mean: Float[Tensor, "d"]
) -> Iterator[tuple[slice, Float[Tensor, "r d"]]]:
    """The sum of `layers` less `mean`, float64, some rows at a time: which they are, and a table of their own."""
    count = at_once(values.device, _ROWS_PER_PART, 8 * values.shape[2])
    for i in range(0, values.shape[1], count):
        rows = slice(i, i + count)
        part = exact(values[layers[0], rows], copy=True)
        for layer in layers[1:]:
            part += values[layer, rows]
        yield rows, part.sub_(mean)


def whitened_cosines(
    space: LayerEmbeddings, fold: Fold, found: linalg.Factor, layers: Sequence[int], mean: Float[Tensor, "d"]
) -> Float[Tensor, "q"]:
    """Cosines of the fold's pairs after a full whitening, all of which have the same; `mean` is that of the sum."""
    z = torch.empty(space.values.shape[1:], dtype=mean.dtype, device=mean.device)
    for rows, part in centred_sums(space.values, layers, mean):
        found.whiten(part, out=z[rows])
    return geometry.row_cosines(z, space.first[fold.pairs], space.second[fold.pairs])


def layer_means(rows: LayerEmbeddings | LayerRows) -> Float[Tensor, "l d"]:
    """Mean of every layer over every sentence occurrence, float64, from one of them as in `Moments`."""
    weights = rows.counts / rows.counts.sum()
    origins = linalg.first_counted(rows.values, weights)
    return torch.stack([o + weights @ (exact(x) - o) for x, o in zip(rows.values, origins, strict=True)])
