"""How many sentences a map needs: the score by the sentences it is fitted on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from whitelab.base.checks import check_int
from whitelab.base.progress import Progress, silent
from whitelab.base.records import without_nan
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows, check_space
from whitelab.scoring.fit_scopes import Fitted, Fold, folds
from whitelab.scoring.held_out import isotropy_between, unseen_by
from whitelab.scoring.score import Score, percent, score
from whitelab.scoring.setting import TOKENS, Setting, check_is_setting, check_settings
from whitelab.sweeps.fitted_maps import fits_anew_for

WORDS_ARE_NOT_DRAWN = (
    f"fit={TOKENS!r} weighs words by their frequency, of which a sample that counts each once has none: there are no "
    "sentences to draw"
)
# Sizes of a curve, in sentences per dimension: close where a covariance becomes whole, then wider.
PER_DIMENSION = (0.25, 0.5, 0.75, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)


@dataclass(frozen=True)
class FitSize:
    """A setting with its map fitted on `sentences` unique sentences drawn at random.

    `score` is over all pairs (x 100), `cross_fitted` over halves whose maps saw that many sentences of the other half
    only, `isotropy` the IsoScore of the `unseen` sentences not drawn, of which few keep it low; each None where it
    cannot be had.
    """

    setting: Setting
    sentences: int
    score: float | None
    cross_fitted: float | None
    isotropy: float | None
    unseen: int
    rank: int


def sample_counts(rows: LayerEmbeddings | LayerRows, sentences: int, seed: int = 0) -> Float[Tensor, "n"]:
    """1 for each of `sentences` unique sentences drawn at random, 0 for the others; a larger sample holds a smaller.

    Raises ValueError for more sentences than there are, and for a negative seed.
    """
    here = rows.counts.device
    return _drawn(torch.arange(rows.n_sentences, device=here), rows.n_sentences, sentences, seed)


def _drawn(among: Int[Tensor, "m"], n: int, sentences: int, seed: int) -> Float[Tensor, "n"]:
    check_int(sentences, "sentences", 1, len(among), "n")
    generator = torch.Generator().manual_seed(check_int(seed, "seed", 0))
    order = torch.randperm(len(among), generator=generator).to(among.device)
    counts = torch.zeros(n, dtype=torch.float64, device=among.device)
    counts[among[order[:sentences]]] = 1.0
    return counts


def sentence_scores(
    space: LayerEmbeddings, settings: Sequence[Setting], sizes: Sequence[int], seed: int = 0
) -> tuple[tuple[Score, ...], ...]:
    """The scores of each setting, on all pairs, with its map fitted on a random sample of each size.

    All settings see the same samples; another `seed` draws others. Raises ValueError for sizes the task does not have.
    """
    settings, columns = check_settings(settings), []
    for size in sizes:
        name = f"{size} sentences"
        sampled = check_space(space).with_text(name, LayerRows(space.values, sample_counts(space, size, seed)))
        columns.append([score(sampled, setting.with_(fit=name), isotropy=False) for setting in settings])
    return tuple(zip(*columns, strict=True))


def usual_sizes(space: LayerEmbeddings, fit: str = "task") -> tuple[int, ...]:
    """From d / 4 to all the sentences of a fit scope, on a scale that is close around n = d.

    Raises ValueError for a corpus, whose moments alone are there, and for words.
    """
    whole = _rows(space, fit).n_sentences
    return tuple(sorted({round(f * space.dim) for f in PER_DIMENSION if 2 <= f * space.dim < whole} | {whole}))


def with_shrunk(setting: Setting) -> tuple[Setting, ...]:
    """A setting beside the two that fill the dip of full whitening: a shrunk and a soft map."""
    check_is_setting(setting)
    return tuple(dict.fromkeys((setting, *(setting.with_(whitening=name) for name in ("shrunk", "soft")))))


@fits_anew_for("every size")
def fit_sizes(
    space: LayerEmbeddings,
    settings: Sequence[Setting],
    sizes: Sequence[int] | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> Iterator[tuple[FitSize, ...]]:
    """Each setting at each of the `sizes`, smallest first; those known so far grow by one size each time.

    All settings see the same samples of the fit scope they share, in which each sentence counts once, and a larger
    sample holds a smaller. Near n = d the smallest variances are estimated far too small, and full whitening blows
    them up: the dip that shrinkage fills. `fit="cross"` is `task`: cross-fitted scores stand beside it. Raises
    ValueError for sizes that the scope does not have, for settings of several scopes, for a negative seed, for words
    (`tokens`) and for a corpus.
    """
    settings = check_settings(settings)
    settings = [setting.with_(fit="task") if setting.fit == "cross" else setting for setting in settings]
    fit = settings[0].fit
    if any(setting.fit != fit for setting in settings):
        raise ValueError(f"settings must share one fit scope, got {', '.join(dict.fromkeys(s.fit for s in settings))}")
    if sizes is None:
        sizes = usual_sizes(space, fit)
    points: tuple[FitSize, ...] = ()
    for number, size in enumerate(sorted(sizes), 1):
        sample = _sample(space, fit, size, seed)
        points += tuple(_fit_size(space, setting.on(space), sample, size) for setting in settings)
        yield points
        progress(number, len(sizes))


def _rows(space: LayerEmbeddings, fit: str) -> LayerEmbeddings | LayerRows:
    if fit == TOKENS:
        raise ValueError(WORDS_ARE_NOT_DRAWN)
    (fold,) = folds(space, fit)
    return fold.rows if fold.has_rows else fold.rows.values  # raises: a sample is drawn from rows


@dataclass(frozen=True, eq=False)
class _Sample:
    """Sentences drawn once for all settings, whose moments are then shared: those of a whole fit and of both halves."""

    drawn: LayerRows
    unseen: LayerEmbeddings | LayerRows
    halves: tuple[Fold, ...] | None


def _sample(space: LayerEmbeddings, fit: str, size: int, seed: int) -> _Sample:
    rows = _rows(space, fit)
    counts = sample_counts(rows, size, seed)
    drawn = LayerRows(rows.values, counts)
    if rows is not space:
        return _Sample(drawn, unseen_by(drawn, space), None)
    return _Sample(drawn, LayerRows(space.values, space.counts * (1 - counts)), _halves(space, size, seed))


def _halves(space: LayerEmbeddings, size: int, seed: int) -> tuple[Fold, ...] | None:
    """Cross-fitting with `size` sentences of each side; None where there are too few."""
    try:
        both = folds(space, "cross")
    except ValueError:
        return None
    sampled = []
    for fold in both:
        there = (fold.rows.counts > 0).nonzero()[:, 0]
        if len(there) < size:
            return None
        counts = _drawn(there, space.n_sentences, size, seed)
        sampled.append(Fold(LayerRows(space.values, counts), fold.pairs, fold.sentences))
    return tuple(sampled)


def _fit_size(space: LayerEmbeddings, setting: Setting, sample: _Sample, size: int) -> FitSize:
    name = f"{size} sentences"
    now = score(space.with_text(name, sample.drawn), setting.with_(fit=name), isotropy=False)
    isotropy = crossed = None
    if setting.whitening != "none" and sample.unseen.counts.sum() > 1:
        isotropy = without_nan(isotropy_between(sample.drawn, sample.unseen, setting))
    if sample.halves:
        cosines = Fitted(space, setting, sample.halves).cosines()
        value = space.judged.spearman(cosines, setting.aggregate)
        crossed = percent(float(value))
    unseen = int((sample.unseen.counts > 0).sum())
    return FitSize(setting, size, now.spearman, crossed, isotropy, unseen, now.rank)
