"""How many sentences a map needs: the score by the sentences it is fitted on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.base.checks import check_int
from whitelab.base.progress import Progress
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows
from whitelab.scoring.fit_scopes import Fitted, Fold, folds, isotropy_between
from whitelab.scoring.score import Score, percent, score
from whitelab.scoring.setting import Setting
from whitelab.statistics import correlation

# Sizes of a curve, in sentences per dimension: close where a covariance becomes whole, then wider.
PER_DIMENSION = (0.25, 0.5, 0.75, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)


@dataclass(frozen=True)
class FitSize:
    """A setting with its map fitted on `sentences` unique sentences drawn at random.

    `score` is over all pairs (x 100), `cross_fitted` over halves whose maps saw that many sentences of the other half
    only, `isotropy` the IsoScore of the sentences not drawn; each None where it cannot be had.
    """

    setting: Setting
    sentences: int
    score: float | None
    cross_fitted: float | None
    isotropy: float | None
    rank: int


def sample_counts(space: LayerEmbeddings | LayerRows, sentences: int, seed: int = 0) -> Float[Tensor, "n"]:
    """1 for each of `sentences` unique sentences drawn at random, 0 for the others; a larger sample holds a smaller."""
    check_int(sentences, "sentences", 1, space.n_sentences, "n")
    order = torch.randperm(space.n_sentences, generator=torch.Generator().manual_seed(seed))
    counts = torch.zeros(space.n_sentences, dtype=torch.float64)
    counts[order[:sentences]] = 1.0
    return counts


def sentence_scores(
    space: LayerEmbeddings,
    settings: Sequence[Setting],
    sizes: Sequence[int],
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[tuple[Score, ...], ...]:
    """The scores of each setting, on all pairs, with its map fitted on a random sample of each size.

    All settings see the same samples. Raises ValueError for sizes the task does not have.
    """
    columns = []
    for size in sizes:
        name = f"{size} sentences"
        sampled = space.with_text(name, LayerRows(space.values, sample_counts(space, size, seed)))
        columns.append([score(sampled, setting.with_(fit=name), isotropy=False) for setting in settings])
        if progress:
            progress(len(columns), len(sizes))
    return tuple(zip(*columns, strict=True))


def usual_sizes(space: LayerEmbeddings, fit: str = "task") -> tuple[int, ...]:
    """From d / 4 to all the sentences of a fit scope, on a scale that is close around n = d."""
    whole = _rows(space, fit).n_sentences
    return tuple(sorted({round(f * space.dim) for f in PER_DIMENSION if 2 <= f * space.dim < whole} | {whole}))


def fit_sizes(
    space: LayerEmbeddings,
    settings: Sequence[Setting],
    sizes: Sequence[int] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Iterator[tuple[FitSize, ...]]:
    """Each setting at each of the `sizes`, smallest first; those known so far grow by one size each time.

    All settings see the same samples of their fit scope, in which each sentence counts once, and a larger sample holds
    a smaller. Near n = d the smallest variances are estimated far too small, and full whitening blows them up: the dip
    that shrinkage fills. `fit="cross"` is `task`: cross-fitted scores stand beside it. Raises ValueError for sizes that
    the scope does not have.
    """
    settings = [setting.with_(fit="task") if setting.fit == "cross" else setting for setting in settings]
    scopes = {setting.fit: _rows(space, setting.fit) for setting in settings}
    if sizes is None:
        sizes = usual_sizes(space, settings[0].fit)
    points: tuple[FitSize, ...] = ()
    for number, size in enumerate(sorted(sizes), 1):
        for setting in settings:
            rows = scopes[setting.fit]
            counts = sample_counts(rows, size, seed)
            points += (_fit_size(space, setting.on(space), rows, counts, size, seed),)
        yield points
        if progress:
            progress(number, len(sizes))


def _rows(space: LayerEmbeddings, fit: str) -> LayerEmbeddings | LayerRows:
    (fold,) = folds(space, fit)
    return fold.rows


def _fit_size(space, setting: Setting, rows, counts: Tensor, size: int, seed: int) -> FitSize:
    name = f"{size} sentences"
    drawn = LayerRows(rows.values, counts)
    now = score(space.with_text(name, drawn), setting.with_(fit=name), isotropy=False)
    unseen = space if rows is not space else LayerRows(space.values, space.counts * (1 - counts))
    isotropy = None
    if setting.whitening != "none" and unseen.counts.sum() > 1:
        value = isotropy_between(drawn, unseen, setting)
        isotropy = value if value == value else None
    crossed = _cross_fitted(space, setting, size, seed) if rows is space else None
    return FitSize(setting, size, now.spearman, crossed, isotropy, now.rank)


def _cross_fitted(space: LayerEmbeddings, setting: Setting, size: int, seed: int) -> float | None:
    """Spearman x 100 with each half of the pairs under a map of `size` sentences of the other; None for too few."""
    try:
        both = folds(space, "cross")
    except ValueError:
        return None
    sampled = []
    for fold in both:
        there = (fold.rows.counts > 0).nonzero()[:, 0]
        if len(there) < size:
            return None
        order = torch.randperm(len(there), generator=torch.Generator().manual_seed(seed))
        counts = torch.zeros(space.n_sentences, dtype=torch.float64)
        counts[there[order[:size]]] = 1.0
        sampled.append(Fold(LayerRows(space.values, counts), fold.pairs, fold.sentences))
    cosines = Fitted(space, setting, tuple(sampled)).cosines()
    value = correlation.aggregate(cosines, space.gold, space.subset, space.n_subsets, setting.aggregate)
    return percent(float(value))
