"""How many dimensions are worth keeping: the score for every k at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from whitelab import whitening
from whitelab.base.checks import check_layers
from whitelab.base.threads import side_by_side
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows
from whitelab.scoring.fit_scopes import Fold, folds
from whitelab.statistics import correlation, geometry
from whitelab.statistics.moments import Moments
from whitelab.sweeps.layer_pairs import LayerMoments

# Values of k ranked together; bounds the memory of the sort at this many columns of p pairs.
_COLUMNS_PER_CHUNK = 128

# Pairs whose running sums are taken at once: 0.2 MB a table at 768 dimensions. All at once took five times as long.
_PAIRS_PER_PART = 32


@dataclass(frozen=True)
class KCurve:
    """Spearman x 100 for k = 1..d (`spearman[k - 1]`), of the whole task and of each subset.

    Above `rank` the curve is flat: there is no further direction to keep. `explained[k - 1]` is the share
    of the variance in the top k directions.
    """

    spearman: tuple[float | None, ...]
    subsets: dict[str, tuple[float | None, ...]]
    explained: tuple[float, ...]
    rank: int
    dim: int
    layers: tuple[int, ...]
    whitening: str
    aggregate: str

    @property
    def k(self) -> tuple[int, ...]:
        """1..d."""
        return tuple(range(1, self.dim + 1))

    @property
    def best_k(self) -> int | None:
        """The smallest k with the highest score; None when no score is defined."""
        return _first_best(self.spearman)

    @property
    def knee(self) -> int | None:
        """The smallest k within 0.5 points of the best: beyond it, dimensions buy little."""
        if self.best_k is None:
            return None
        top = self.spearman[self.best_k - 1]
        return next(k for k, s in zip(self.k, self.spearman, strict=True) if s is not None and s >= top - 0.5)


def _first_best(scores: Sequence[float | None]) -> int | None:
    scored = [(s, -k) for k, s in enumerate(scores, start=1) if s is not None]
    return -max(scored)[1] if scored else None


def k_curve(
    space: LayerEmbeddings,
    layers: Sequence[int],
    variant: str = "pca",
    how: str = "all",
    by_subset: bool = True,
    fit: str = "task",
    corpus: LayerRows | None = None,
) -> KCurve:
    """Score `variant` for every k. Forms of one eigenbasis share one curve; `center` is plain PCA.

    In the eigenbasis the dot products of every k are running sums, so all curves cost one projection and
    one batched ranking. Equal to `score.score` at each k. Raises ValueError where k has no meaning.
    """
    variant = str(whitening.parse(variant, space.dim))
    found = folds(space, fit, corpus)
    return _curve(space, layers, found, [fold.rows.moments(layers) for fold in found], variant, how, by_subset)


def k_curves(
    space: LayerEmbeddings,
    layer_sets: Sequence[Sequence[int]] | None = None,
    variant: str = "pca",
    how: str = "all",
    progress: Callable[[int, int], None] | None = None,
    by_subset: bool = True,
    fit: str = "task",
    corpus: LayerRows | None = None,
) -> list[KCurve]:
    """One `k_curve` for each set of layers; by default for each layer alone.

    More sets than there are pairs of layers share the scatter between layers, which is then summed once.
    """
    variant = str(whitening.parse(variant, space.dim))
    if layer_sets is None:
        layer_sets = [(layer,) for layer in range(space.n_layers)]
    sets, found, curves = [check_layers(layers, space.n_layers) for layers in layer_sets], folds(space, fit, corpus), []
    shared = len(sets) > space.n_layers * (space.n_layers + 1) // 2 and not whitening.needs_rows(variant)
    sources = [LayerMoments.of(fold.rows).average if shared else fold.rows.moments for fold in found]
    for layers in sets:
        moments = [source(layers) for source in sources]
        curves.append(_curve(space, layers, found, moments, variant, how, by_subset))
        if progress:
            progress(len(curves), len(sets))
    return curves


def _curve(
    space: LayerEmbeddings,
    layers: Sequence[int],
    found: Sequence[Fold],
    moments: Sequence[Moments],
    variant: str,
    how: str,
    by_subset: bool,
) -> KCurve:
    x, bases = space.combine(layers), [whitening.directions(variant, one) for one in moments]
    cosines = torch.zeros(max(basis.rank for basis in bases), space.n_pairs, dtype=torch.float64)
    for fold, one, basis in zip(found, moments, bases, strict=True):
        z = (x - one.mean) @ basis.matrix
        part = _cumulative_cosines(z, space.first[fold.pairs], space.second[fold.pairs])
        cosines[: basis.rank, fold.pairs] = part
        cosines[basis.rank :, fold.pairs] = part[-1:]
    curve = _by_chunk(cosines, lambda x: correlation.aggregate(x, space.gold, space.subset, space.n_subsets, how))
    subsets = {}
    if by_subset and space.n_subsets > 1:
        for number, name in enumerate(space.subset_names):
            rows = (space.subset == number).nonzero()[:, 0]
            gold = space.gold[rows]
            subsets[name] = _by_chunk(cosines[:, rows], lambda x, gold=gold: correlation.spearman(x, gold))
    return KCurve(
        spearman=_to_d(curve, space.dim),
        subsets={name: _to_d(values, space.dim) for name, values in subsets.items()},
        explained=_explained(moments[0], bases[0]),
        rank=min(basis.rank for basis in bases),
        dim=space.dim,
        layers=tuple(layers),
        whitening=variant,
        aggregate=how,
    )


def _cumulative_cosines(
    z: Float[Tensor, "n r"], first: Int[Tensor, "p"], second: Int[Tensor, "p"]
) -> Float[Tensor, "r p"]:
    """Cosine of every pair of rows in the first 1, 2, ..., r coordinates."""
    found = torch.empty(z.shape[1], len(first), dtype=z.dtype)

    def part(start: int) -> None:
        columns = slice(start, start + _PAIRS_PER_PART)
        a, b = z[first[columns]], z[second[columns]]
        sums = [(x * y).cumsum(1) for x, y in ((a, b), (a, a), (b, b))]
        found[:, columns] = geometry.cosines_from(*sums).T

    for _ in side_by_side(part, range(0, len(first), _PAIRS_PER_PART)):
        pass
    return found


def _explained(moments: Moments, basis: whitening.Directions) -> tuple[float, ...]:
    """Share of the variance along the first 1, 2, ..., d axes."""
    along = basis.variances
    if along is None:
        along = ((moments.covariance @ basis.axes) * basis.axes).sum(0)
    shares = (along.cumsum(0) / moments.covariance.diagonal().sum()).tolist() if basis.rank else []
    return tuple(shares + [1.0] * (moments.dim - basis.rank))


def _by_chunk(cosines: Float[Tensor, "r p"], score) -> list[float]:
    parts = list(side_by_side(score, cosines.split(_COLUMNS_PER_CHUNK))) if len(cosines) else []
    return torch.cat(parts).tolist() if parts else []


def _to_d(scores: list[float], dim: int) -> tuple[float | None, ...]:
    """x 100, None for NaN, and the value at the rank repeated up to d."""
    values = [None if s != s else 100 * s for s in scores] or [None]
    return tuple(values + [values[-1]] * (dim - len(values)))
