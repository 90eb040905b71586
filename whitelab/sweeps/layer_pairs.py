"""Which layers to average: the score of every pair of layers, a layer with itself among them."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab import whitening
from whitelab.base.checks import check_matrix
from whitelab.base.devices import threads_on
from whitelab.base.progress import Progress, silent
from whitelab.base.threads import side_by_side
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows
from whitelab.scoring.fit_scopes import Fold, along, folds, map_of, weighs_directions
from whitelab.scoring.score import SCORE_DECIMALS, percent
from whitelab.scoring.setting import Setting, check_is_setting
from whitelab.statistics import geometry, linalg
from whitelab.sweeps.fitted_maps import fits_anew_for
from whitelab.sweeps.layer_moments import centred_sums, every_pair, layer_means, pair_grams, whitened_cosines


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
        """The cell with the highest score, of equals the first; None when no score is defined."""
        return next(iter(self.equals), None)

    @property
    def equals(self) -> tuple[LayerCell, ...]:
        """The cells with the highest score, more than one where they tie; none when no score is defined."""
        cells = {cell.layers: cell for cell in self.cells}
        return tuple(cells[layers] for layers in highest({layers: one.spearman for layers, one in cells.items()}))

    def __getitem__(self, layers: tuple[int, int]) -> LayerCell:
        wanted = tuple(sorted(layers))
        for cell in self.cells:
            if cell.layers == wanted:
                return cell
        raise KeyError(f"layers={layers} must be two of the layers scored")


def highest(scores: Mapping[tuple[int, int], float | None]) -> list[tuple[int, int]]:
    """The pairs of layers with the highest score, more than one where they tie; none when no score is defined.

    Of equals a layer alone comes before two, then the lower layers, as in a ranking of subsets.
    """
    rounded = {pair: round(score, SCORE_DECIMALS) for pair, score in scores.items() if score is not None}
    top = max(rounded.values(), default=None)
    return sorted((pair for pair, one in rounded.items() if one == top), key=lambda pair: len(set(pair)))


@fits_anew_for(lambda space: f"{len(every_pair(space.n_layers))} pairs of layers")
def layer_pairs(space: LayerEmbeddings, setting: Setting, progress: Progress = silent) -> LayerPairs:
    """Score every unordered pair of layers (WhiteningBERT Figure 1) under a setting, whose own layers do not count.

    Without whitening from each pair's Gram matrices between layers; with it from one factorisation a cell,
    cells side by side. Equal to `score.score` cell by cell. At every k at once: `dimensions.pair_curves`.
    """
    setting = check_is_setting(setting).with_(layers=(0,)).on(space)
    for layer in space.values:
        check_matrix(layer, "space.values")
    pairs, how = every_pair(space.n_layers), setting.aggregate
    if setting.whitening == "none":
        cosines, ranks = _raw_cosines(space, pairs), [space.dim] * len(pairs)
        scores = space.judged.spearman(cosines, how).tolist()
        progress(len(pairs), len(pairs))
    else:
        scope = folds(space, setting.fit)
        full = whitening.cosine_class(setting.whitening, setting.k, space.dim) == "whitening"
        means = [layer_means(fold.rows) if full and fold.has_rows else None for fold in scope]

        def cell(layers: tuple[int, int]) -> tuple[float, int]:
            row, ranks = torch.empty(space.n_pairs, dtype=torch.float64, device=space.values.device), []
            for number, (fold, origins) in enumerate(zip(scope, means, strict=True)):
                here = setting.with_(layers=tuple(sorted(set(layers))))
                row[fold.pairs], rank = _cell_cosines(space, fold, number, origins, here)
                ranks.append(rank)
            return float(space.judged.spearman(row, how)), min(ranks)

        scored = []
        for result in side_by_side(cell, pairs, threads_on(space.values.device)):
            scored.append(result)
            progress(len(scored), len(pairs))
        scores, ranks = zip(*scored, strict=True)
    cells = tuple(LayerCell(ij, percent(s), rank) for ij, s, rank in zip(pairs, scores, ranks, strict=True))
    return LayerPairs(cells, setting)


def _raw_cosines(space: LayerEmbeddings, numbers: list[tuple[int, int]]) -> Float[Tensor, "c p"]:
    ab, aa, bb = pair_grams(space)
    rows = []
    for i, j in numbers:
        dot, square_a, square_b = (g[i, i] + g[i, j] + g[j, i] + g[j, j] for g in (ab, aa, bb))
        rows.append(geometry.cosines_from(dot, square_a, square_b))
    return torch.stack(rows)


def _factor_of_sum(
    rows: LayerEmbeddings | LayerRows, means: Float[Tensor, "l d"], layers: tuple[int, ...]
) -> linalg.Factor | None:
    """That of the scatter of the sum of `layers`, without eigenvalues; None where it is not certain."""
    scatter, roots = means.new_zeros(rows.dim, rows.dim), rows.counts.sqrt()
    for where, part in centred_sums(rows.values, layers, means[list(layers)].sum(0)):
        scatter += linalg.gram(part.mul_(roots[where, None]))
    return linalg.factor(scatter)


def _cell_cosines(
    space: LayerEmbeddings, fold: Fold, number: int, means: Float[Tensor, "l d"] | None, setting: Setting
) -> tuple[Float[Tensor, "q"], int]:
    """The cosines of the fold's pairs in one cell, and the rank; `means` of the layers where the whitening is full."""
    layers, first, second = setting.layers, space.first[fold.pairs], space.second[fold.pairs]
    found = None if means is None else _factor_of_sum(fold.rows, means, layers)
    if found is not None:
        return whitened_cosines(space, fold, found, layers, means[list(layers)].sum(0)), found.rank
    if whitening.of_rows(setting.whitening):
        fitted = map_of(fold.rows, setting)
        return geometry.row_cosines(fitted(space.combine(layers)), first, second), fitted.rank
    if not fold.has_rows or len(every_pair(space.n_layers)) <= fold.rows.moments_kept:
        moments = fold.rows.moments(layers)  # whose decomposition serves another variant and another k
    else:
        moments = fold.rows.moments_of(fold.rows.combine(layers))
    if weighs_directions(setting):
        basis = whitening.directions(setting.whitening, moments)
        z = along(space, setting, number, moments, basis)
        return geometry.row_cosines(z, first, second), z.shape[1]
    fitted = whitening.fit(setting.whitening, moments, setting.k)
    return geometry.row_cosines(fitted(space.combine(layers)), first, second), fitted.rank
