"""Which layers to average: the score of every pair of layers, a layer with itself among them."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab import whitening
from whitelab.base.checks import check_matrix
from whitelab.base.progress import Progress
from whitelab.base.threads import side_by_side
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows
from whitelab.scoring.fit_scopes import Fold, folds
from whitelab.scoring.setting import Setting
from whitelab.statistics import correlation, geometry, linalg
from whitelab.statistics.linalg import exact
from whitelab.statistics.moments import Moments

# Pairs multiplied at once. At 13 layers of 768 dimensions a chunk is 20 MB, which the allocator reuses; larger
# ones cost more in fresh pages than in arithmetic (2048 took three times as long).
_PAIRS_PER_CHUNK = 256


@dataclass(frozen=True)
class LayerCell:
    """Spearman x 100 of the average of two layers (i = j: the layer alone), and the rank of the map."""

    layers: tuple[int, int]
    spearman: float | None
    rank: int


@dataclass(frozen=True)
class LayerPairs:
    """Every cell i <= j, in order, under one setting, whose own layers do not count."""

    cells: tuple[LayerCell, ...]
    setting: Setting

    @property
    def best(self) -> LayerCell | None:
        """The cell with the highest score (the first of equals); None when no score is defined."""
        scored = [cell for cell in self.cells if cell.spearman is not None]
        return max(scored, key=lambda cell: cell.spearman) if scored else None

    def __getitem__(self, layers: tuple[int, int]) -> LayerCell:
        wanted = tuple(sorted(layers))
        for cell in self.cells:
            if cell.layers == wanted:
                return cell
        raise KeyError(f"layers={layers} must be two of the layers scored")


def every_pair(n_layers: int) -> list[tuple[int, int]]:
    """Every cell i <= j, row by row."""
    return [(i, j) for i in range(n_layers) for j in range(i, n_layers)]


def layer_pairs(space: LayerEmbeddings, setting: Setting, progress: Progress | None = None) -> LayerPairs:
    """Score every unordered pair of layers (WhiteningBERT Figure 1) under a setting, whose own layers do not count.

    Without whitening from each pair's Gram matrices between layers; with it from one factorisation a cell,
    cells side by side. Equal to `score.score` cell by cell. At every k at once: `dimensions.pair_curves`.
    """
    setting = setting.with_(layers=(0,)).on(space)
    for layer in space.values:
        check_matrix(layer, "space.values")
    pairs, how = every_pair(space.n_layers), setting.aggregate
    if setting.whitening == "none":
        cosines, ranks = _raw_cosines(space, pairs), [space.dim] * len(pairs)
        scores = correlation.aggregate(cosines, space.gold, space.subset, space.n_subsets, how).tolist()
        if progress:
            progress(len(pairs), len(pairs))
    else:
        scope = folds(space, setting.fit)
        full = whitening.cosine_class(setting.whitening, setting.k, space.dim) == "whitening"
        centred = [_Centred.of(fold.rows) if full else None for fold in scope]

        def cell(layers: tuple[int, int]) -> tuple[float, int]:
            row, ranks = torch.empty(space.n_pairs, dtype=torch.float64), []
            for fold, rows in zip(scope, centred, strict=True):
                here = setting.with_(layers=tuple(sorted(set(layers))))
                row[fold.pairs], rank = _cell_cosines(space, fold, rows, here)
                ranks.append(rank)
            return float(correlation.aggregate(row, space.gold, space.subset, space.n_subsets, how)), min(ranks)

        scored = []
        for result in side_by_side(cell, pairs):
            scored.append(result)
            if progress:
                progress(len(scored), len(pairs))
        scores, ranks = zip(*scored, strict=True)
    cells = tuple(
        LayerCell(ij, None if s != s else 100 * s, rank) for ij, s, rank in zip(pairs, scores, ranks, strict=True)
    )
    return LayerPairs(cells, setting)


def pair_grams(
    space: LayerEmbeddings, means: Float[Tensor, "l d"] | None = None
) -> tuple[Float[Tensor, "l l p"], Float[Tensor, "l l p"], Float[Tensor, "l l p"]]:
    """Gram matrices between layers of every pair: a.b, a.a and b.b, float64, after subtracting `means`.

    The cosine of any average of layers is a ratio of sums of their entries.
    """
    chunks = []
    for i in range(0, space.n_pairs, _PAIRS_PER_CHUNK):
        rows = slice(i, i + _PAIRS_PER_CHUNK)
        a, b = (exact(space.values[:, side[rows]].transpose(0, 1)) for side in (space.first, space.second))
        if means is not None:
            a, b = a - means, b - means
        chunks.append(torch.stack([a @ b.mT, a @ a.mT, b @ b.mT]))
    ab, aa, bb = torch.cat(chunks, dim=1).permute(0, 2, 3, 1)
    return ab, aa, bb


def _raw_cosines(space: LayerEmbeddings, numbers: list[tuple[int, int]]) -> Float[Tensor, "c p"]:
    ab, aa, bb = pair_grams(space)
    rows = []
    for i, j in numbers:
        dot, square_a, square_b = (g[i, i] + g[i, j] + g[j, i] + g[j, j] for g in (ab, aa, bb))
        rows.append(geometry.cosines_from(dot, square_a, square_b))
    return torch.stack(rows)


@dataclass(frozen=True, eq=False)
class LayerMoments:
    """Mean of every layer, `means [l, d]`, and the scatter between layers i <= j, `blocks[i, j] [d, d]`."""

    count: float
    means: Float[Tensor, "l d"]
    blocks: dict[tuple[int, int], Tensor]

    @classmethod
    def of(cls, space: LayerEmbeddings | LayerRows) -> "LayerMoments":
        """Over every sentence occurrence, in float64; only blocks i <= j are multiplied out."""
        weights, count = space.counts, float(space.counts.sum())
        roots = weights.sqrt()[:, None]
        rows = torch.empty(space.values.shape, dtype=torch.float64, device=weights.device)
        means = torch.empty_like(rows[:, 0])
        for layer, y in enumerate(rows):
            y.copy_(space.values[layer])
            origin = y[0].clone()  # as in Moments: equal rows have no scatter at all
            y -= origin
            mean = (weights @ y) / count
            means[layer] = origin + mean
            y -= mean
            y *= roots
        numbers = [(i, j) for i in range(len(rows)) for j in range(i, len(rows))]
        threads = None if rows.device.type == "cpu" else 1
        blocks = side_by_side(lambda ij: _scatter(rows, *ij), numbers, threads)
        return cls(count, means, dict(zip(numbers, blocks, strict=True)))

    def average(self, layers: tuple[int, ...]) -> Moments:
        """Moments of the average of `layers`, in ascending order."""
        scatter = torch.zeros_like(self.blocks[0, 0])
        for at, i in enumerate(layers):
            scatter += self.blocks[i, i]
            for j in layers[at + 1 :]:
                scatter += self.blocks[i, j]
                scatter += self.blocks[i, j].T
        return Moments(self.count, self.means[list(layers)].mean(dim=0), scatter.div_(len(layers) ** 2))


def _scatter(rows: Float[Tensor, "l n d"], i: int, j: int) -> Float[Tensor, "d d"]:
    return linalg.gram(rows[i]) if i == j else rows[i].T @ rows[j]


# Rows centred at once: 0.8 MB at 768 dimensions, so that the steps on them find them in the cache.
_ROWS_PER_PART = 128


@dataclass(frozen=True, eq=False)
class _Centred:
    """A fit scope's layers about their means, to sum any of them: `means [l, d]`, `roots [n]` of the counts."""

    rows: LayerEmbeddings | LayerRows
    means: Float[Tensor, "l d"]
    roots: Float[Tensor, "n"]

    @classmethod
    def of(cls, rows: LayerEmbeddings | LayerRows) -> "_Centred":
        return cls(rows, layer_means(rows), rows.counts.sqrt())

    def sum(self, layers: tuple[int, ...]) -> Float[Tensor, "n d"]:
        """The sum of the centred `layers`, each row times its root: its Gram matrix is their scatter."""
        mean, values = self.means[list(layers)].sum(0), self.rows.values
        found = torch.empty(values.shape[1:], dtype=mean.dtype, device=mean.device)
        for i in range(0, len(found), _ROWS_PER_PART):
            part = found[i : i + _ROWS_PER_PART]
            part.copy_(values[layers[0], i : i + _ROWS_PER_PART])
            for layer in layers[1:]:
                part += values[layer, i : i + _ROWS_PER_PART]
            part -= mean
            part *= self.roots[i : i + _ROWS_PER_PART, None]
        return found


def layer_means(rows: LayerEmbeddings | LayerRows) -> Float[Tensor, "l d"]:
    """Mean of every layer over every sentence occurrence, float64, from the first row as in `Moments`."""
    weights = rows.counts / rows.counts.sum()
    origins = exact(rows.values[:, 0])
    return torch.stack([o + weights @ (exact(x) - o) for x, o in zip(rows.values, origins, strict=True)])


def _whitened_cosines(
    space: LayerEmbeddings, fold: Fold, centred: _Centred, layers: tuple[int, ...]
) -> tuple[Float[Tensor, "q"], int] | None:
    """Cosines after a full whitening, which every form of it shares, without eigenvalues; None where uncertain."""
    y = centred.sum(layers)
    found = linalg.factor(linalg.gram(y))
    if found is None:
        return None
    if fold.rows is not space:  # else y serves: neither the scale of a row nor that of the map changes a cosine
        y = exact(space.values[list(layers)]).sum(0).sub_(centred.means[list(layers)].sum(0))
    return geometry.row_cosines(found.whiten(y), space.first[fold.pairs], space.second[fold.pairs]), found.rank


def _cell_cosines(
    space: LayerEmbeddings, fold: Fold, centred: _Centred | None, setting: Setting
) -> tuple[Float[Tensor, "q"], int]:
    layers = setting.layers
    whitened = None if centred is None else _whitened_cosines(space, fold, centred, layers)
    if whitened is not None:
        return whitened
    x = space.combine(layers)
    moments = fold.rows.moments_of(x if fold.rows is space else fold.rows.combine(layers))
    fitted = whitening.fit(setting.whitening, moments, setting.k)
    return geometry.row_cosines(fitted(x), space.first[fold.pairs], space.second[fold.pairs]), fitted.rank
