"""How many dimensions are worth keeping: the score for every k at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab import correlation, geometry, linalg, whitening
from whitelab.checks import check_choice, check_layers
from whitelab.embeddings import LayerEmbeddings
from whitelab.layers import LayerMoments
from whitelab.moments import Moments

# Values of k ranked together; bounds the memory of the sort at this many columns of p pairs.
_COLUMNS_PER_CHUNK = 128


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
) -> KCurve:
    """Score `variant` for every k. Whitening variants share one curve; `center` is plain PCA.

    In the eigenbasis the dot products of every k are running sums, so all curves cost one projection and
    one batched ranking. Equal to `evaluate.score` at each k. Raises ValueError where k has no meaning.
    """
    check_choice(variant, "whitening", [name for name, one in whitening.WHITENERS.items() if one.takes_k])
    return _curve(space, layers, space.moments(layers), variant, how, by_subset)


def k_curves(
    space: LayerEmbeddings,
    layer_sets: Sequence[Sequence[int]] | None = None,
    variant: str = "pca",
    how: str = "all",
    progress: Callable[[int, int], None] | None = None,
    by_subset: bool = True,
) -> list[KCurve]:
    """One `k_curve` for each set of layers; by default for each layer alone.

    More sets than there are pairs of layers share the scatter between layers, which is then summed once.
    """
    check_choice(variant, "whitening", [name for name, one in whitening.WHITENERS.items() if one.takes_k])
    if layer_sets is None:
        layer_sets = [(layer,) for layer in range(space.n_layers)]
    sets = [check_layers(layers, space.n_layers) for layers in layer_sets]
    shared = len(sets) > space.n_layers * (space.n_layers + 1) // 2
    moments_of = LayerMoments.of(space).average if shared else space.moments
    curves = []
    for layers in sets:
        curves.append(_curve(space, layers, moments_of(layers), variant, how, by_subset))
        if progress:
            progress(len(curves), len(sets))
    return curves


def _curve(
    space: LayerEmbeddings, layers: Sequence[int], moments: Moments, variant: str, how: str, by_subset: bool
) -> KCurve:
    kept = linalg.eigen(moments.covariance)
    scale = kept.values.rsqrt() if whitening.WHITENERS[variant].whitens else torch.ones_like(kept.values)
    z = (space.combine(layers) - moments.mean) @ (kept.vectors * scale)
    cosines = _cumulative_cosines(z[space.first], z[space.second])
    curve = _by_chunk(cosines, lambda x: correlation.aggregate(x, space.gold, space.subset, space.n_subsets, how))
    subsets = {}
    if by_subset and space.n_subsets > 1:
        for number, name in enumerate(space.subset_names):
            rows = (space.subset == number).nonzero()[:, 0]
            gold = space.gold[rows]
            subsets[name] = _by_chunk(cosines[:, rows], lambda x, gold=gold: correlation.spearman(x, gold))
    total = moments.covariance.diagonal().sum()
    explained = (kept.values.cumsum(0) / total).tolist() if kept.rank else []
    return KCurve(
        spearman=_to_d(curve, space.dim),
        subsets={name: _to_d(values, space.dim) for name, values in subsets.items()},
        explained=tuple(explained + [1.0] * (space.dim - kept.rank)),
        rank=kept.rank,
        dim=space.dim,
        layers=tuple(layers),
        whitening=variant,
        aggregate=how,
    )


def _cumulative_cosines(a: Float[Tensor, "p r"], b: Float[Tensor, "p r"]) -> Float[Tensor, "r p"]:
    """Cosine of every pair in the first 1, 2, ..., r coordinates."""
    dot, square_a, square_b = ((x * y).T.contiguous().cumsum(0) for x, y in ((a, b), (a, a), (b, b)))
    return geometry.cosines_from(dot, square_a, square_b)


def _by_chunk(cosines: Float[Tensor, "r p"], score) -> list[float]:
    parts = [score(cosines[i : i + _COLUMNS_PER_CHUNK]) for i in range(0, len(cosines), _COLUMNS_PER_CHUNK)]
    return torch.cat(parts).tolist() if parts else []


def _to_d(scores: list[float], dim: int) -> tuple[float | None, ...]:
    """x 100, None for NaN, and the value at the rank repeated up to d."""
    values = [None if s != s else 100 * s for s in scores] or [None]
    return tuple(values + [values[-1]] * (dim - len(values)))
