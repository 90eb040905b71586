"""How many dimensions are worth keeping: the score for every k at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from whitelab import whitening
from whitelab.base.devices import at_once, threads_on
from whitelab.base.progress import Progress, silent
from whitelab.base.threads import side_by_side
from whitelab.encoding.embeddings import LayerEmbeddings, check_space
from whitelab.scoring.fit_scopes import Fold, along, folds
from whitelab.scoring.score import percent
from whitelab.scoring.setting import Setting, check_is_setting
from whitelab.statistics import correlation, geometry
from whitelab.statistics.moments import Moments
from whitelab.sweeps.layer_moments import LayerMoments, every_pair
from whitelab.sweeps.layer_pairs import LayerCell, LayerPairs

KNEE = 0.5  # points below the best that a knee may be

# Values of k ranked together; bounds the memory of the sort at this many columns of p pairs.
_COLUMNS_PER_CHUNK = 128

# Pairs whose running sums are taken at once: 0.2 MB a table at 768 dimensions. All at once took five times as long.
_PAIRS_PER_PART = 32
_TABLES = 9  # of a part alive at once: two sides, products, sums, cosines


@dataclass(frozen=True)
class KCurve:
    """Spearman x 100 for k = 1..d (`spearman[k - 1]`), of the whole task and of each subset.

    `ranks[k - 1]` directions are kept. Where these do not grow the curve is flat: no direction is left to keep, or the
    data span none of them, so that only k = d has them. `explained[k - 1]` is the share of the variance in the top k.
    """

    spearman: tuple[float | None, ...]
    subsets: dict[str, tuple[float | None, ...]]
    explained: tuple[float, ...]
    ranks: tuple[int, ...]
    dim: int
    setting: Setting

    @property
    def k(self) -> tuple[int, ...]:
        """1..d."""
        return tuple(range(1, self.dim + 1))

    @property
    def rank(self) -> int:
        """Directions kept at k = d."""
        return self.ranks[-1]

    @property
    def best_k(self) -> int | None:
        """The smallest k with the highest score; None when no score is defined."""
        return _first_best(self.spearman)

    @property
    def knee(self) -> int | None:
        """The smallest k within `KNEE` points of the best: beyond it, dimensions buy little."""
        if self.best_k is None:
            return None
        top = self.spearman[self.best_k - 1]
        return next(k for k, s in zip(self.k, self.spearman, strict=True) if s is not None and s >= top - KNEE)


def _first_best(scores: Sequence[float | None]) -> int | None:
    scored = [(s, -k) for k, s in enumerate(scores, start=1) if s is not None]
    return -max(scored)[1] if scored else None


def k_curve(space: LayerEmbeddings, setting: Setting, by_subset: bool = True) -> KCurve:
    """Score a setting at every k; its own k does not count. Forms of one eigenbasis share one curve; `center` is PCA.

    In the eigenbasis the dot products of every k are running sums, so all curves cost one projection and
    one batched ranking. Equal to `score.score` at each k. Raises ValueError where k has no meaning.
    """
    setting = check_is_setting(setting).with_(k=None).on(space)
    scope = folds(space, setting.fit)
    return _curve(space, setting, scope, [fold.rows.moments(setting.layers) for fold in scope], by_subset)


def k_curves(
    space: LayerEmbeddings,
    setting: Setting,
    layer_sets: Sequence[Sequence[int]] | None = None,
    by_subset: bool = True,
    progress: Progress = silent,
) -> list[KCurve]:
    """One `k_curve` for each set of layers in place of the setting's own; by default for each layer alone.

    More sets than there are pairs of layers share the scatter between layers, which is then summed once.
    """
    check_is_setting(setting)
    if layer_sets is None:
        layer_sets = [(layer,) for layer in range(check_space(space).n_layers)]
    settings = [setting.with_(k=None, layers=tuple(layers)).on(space) for layers in layer_sets]
    scope, curves = folds(space, setting.fit), []
    many = len(settings) > space.n_layers * (space.n_layers + 1) // 2
    shared = many and not whitening.needs_rows(setting.whitening)
    sources = [LayerMoments.of(fold.rows).average if shared else fold.rows.moments for fold in scope]
    for here in settings:
        curves.append(_curve(space, here, scope, [source(here.layers) for source in sources], by_subset))
        progress(len(curves), len(settings))
    return curves


def pair_curves(space: LayerEmbeddings, setting: Setting, progress: Progress = silent) -> dict[tuple[int, int], KCurve]:
    """The k-curve of every cell i <= j of `layer_pairs`, so that a heatmap at any k is read off: `pairs_at`."""
    check_is_setting(setting)
    pairs = every_pair(check_space(space).n_layers)
    layer_sets = [tuple(dict.fromkeys(layers)) for layers in pairs]
    return dict(zip(pairs, k_curves(space, setting, layer_sets, by_subset=False, progress=progress), strict=True))


def pairs_at(curves: Mapping[tuple[int, int], KCurve], k: int | None) -> LayerPairs:
    """The heatmap of `pair_curves` at one k; None for all directions, which for `center` is k = d.

    Centring alone also keeps what has no variance in the sentences it is fitted on, and a curve does not.
    """
    cells = tuple(
        LayerCell(layers, curve.spearman[(k or curve.dim) - 1], curve.ranks[(k or curve.dim) - 1])
        for layers, curve in curves.items()
    )
    first = next(iter(curves.values()))
    k = first.dim if k is None and first.setting.whitening == "center" else k
    return LayerPairs(cells, first.setting.with_(k=k))


def _curve(
    space: LayerEmbeddings, setting: Setting, scope: Sequence[Fold], moments: Sequence[Moments], by_subset: bool
) -> KCurve:
    bases = [whitening.directions(setting.whitening, part) for part in moments]
    cosines = cosines_by_k(space, setting, scope, moments, bases)
    how = setting.aggregate
    curve = scores_by_k(cosines, lambda x: space.judged.spearman(x, how))
    subsets = {}
    if by_subset and space.n_subsets > 1:
        for number, name in enumerate(space.subset_names):
            rows = (space.subset == number).nonzero()[:, 0]
            gold = space.gold[rows]
            subsets[name] = scores_by_k(cosines[:, rows], lambda x, gold=gold: correlation.spearman(x, gold))
    return KCurve(
        spearman=_to_d(curve, space.dim),
        subsets={name: _to_d(values, space.dim) for name, values in subsets.items()},
        explained=_explained(moments[0], bases[0]),
        ranks=tuple(min(basis.kept(k) for basis in bases) for k in range(1, space.dim + 1)),
        dim=space.dim,
        setting=setting,
    )


def cosines_by_k(
    space: LayerEmbeddings,
    setting: Setting,
    scope: Sequence[Fold],
    moments: Sequence[Moments],
    bases: Sequence[whitening.Directions],
) -> Float[Tensor, "r p"]:
    """The cosine of every pair at k = 1, 2, ..., r, with what the basis of the fold that scores it keeps.

    r is the largest rank of a fold; above its own rank a fold's cosines stay as they are.
    """
    cosines = moments[0].mean.new_zeros(max(basis.rank for basis in bases), space.n_pairs)
    for number, (fold, part, basis) in enumerate(zip(scope, moments, bases, strict=True)):
        z = along(space, setting, number, part, basis)
        rows = cumulative_cosines(z, space.first[fold.pairs], space.second[fold.pairs], basis.factors)
        last = max(basis.rank - 1, 0)
        spanned = basis.kept(last)
        cosines[:spanned, fold.pairs] = rows[:spanned]
        if spanned:
            cosines[spanned:last, fold.pairs] = rows[spanned - 1 : spanned]
        cosines[last:, fold.pairs] = rows[last:]
    return cosines


def cumulative_cosines(
    z: Float[Tensor, "n r"],
    first: Int[Tensor, "p"],
    second: Int[Tensor, "p"],
    factors: Float[Tensor, "r r"] | None = None,
) -> Float[Tensor, "r p"]:
    """Cosine of every pair of rows in the first 1, 2, ..., r coordinates, at k times `factors[:k, k - 1]`."""
    found = torch.empty(z.shape[1], len(first), dtype=z.dtype, device=z.device)
    rows, threads = at_once(z.device, _PAIRS_PER_PART, _TABLES * 8 * z.shape[1]), threads_on(z.device)
    weights = None if factors is None else factors.square().triu()

    def part(start: int) -> None:
        columns = slice(start, start + rows)
        a, b = z[first[columns]], z[second[columns]]
        products = [x * y for x, y in ((a, b), (a, a), (b, b))]
        sums = [one.cumsum(1) if weights is None else one @ weights for one in products]
        found[:, columns] = geometry.cosines_from(*sums).T

    for _ in side_by_side(part, range(0, len(first), rows), threads):
        pass
    return found


def _explained(moments: Moments, basis: whitening.Directions) -> tuple[float, ...]:
    """Share of the variance along the first 1, 2, ..., d axes."""
    variances = basis.variances
    if variances is None:
        variances = ((moments.covariance @ basis.axes) * basis.axes).sum(0)
    shares = (variances.cumsum(0) / moments.covariance.diagonal().sum()).tolist() if basis.rank else []
    return tuple(shares + [1.0] * (moments.dim - basis.rank))


def scores_by_k(cosines: Float[Tensor, "r p"], score) -> list[float]:
    """`score` of each row, some columns of pairs at a time."""
    chunks = cosines.split(_COLUMNS_PER_CHUNK)
    parts = list(side_by_side(score, chunks, threads_on(cosines.device))) if len(cosines) else []
    return torch.cat(parts).tolist() if parts else []


def _to_d(scores: list[float], dim: int) -> tuple[float | None, ...]:
    """x 100, None for NaN, and the value at the rank repeated up to d."""
    values = [percent(s) for s in scores] or [None]
    return tuple(values + [values[-1]] * (dim - len(values)))
