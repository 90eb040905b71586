"""The score by the number of sentences a map is fitted on."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import whitelab
from tests.conftest import make_space
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows
from whitelab.scoring.fit_scopes import folds
from whitelab.scoring.setting import Setting
from whitelab.sweeps.fit_size import fit_sizes, sample_counts, sentence_scores, usual_sizes


def test_a_larger_sample_holds_a_smaller_and_each_has_its_size(space):
    few, many = sample_counts(space, 10), sample_counts(space, 30)
    assert (few.sum(), many.sum()) == (10, 30)
    assert bool((many >= few).all())
    assert not torch.equal(few, sample_counts(space, 10, seed=1))


def test_every_score_is_that_of_a_map_fitted_on_the_sample(space):
    setting = Setting.parse("L1:pca")
    ((few, many), (shrunk, _)) = sentence_scores(space, [setting, setting.with_(whitening="shrunk")], [20, 40])
    x = space.combine((1,))
    white = whitelab.fit("pca", whitelab.Moments.of(x[sample_counts(space, 20) > 0]))(x)
    rho = whitelab.spearman(whitelab.pair_cosines(white[space.first], white[space.second]), space.gold)
    assert few.spearman == pytest.approx(100 * float(rho))
    assert (few.fitted, many.fitted) == (20, 40)
    assert shrunk.spearman != few.spearman


@pytest.mark.parametrize("spec", ["pca", "shrunk", "soft"])
@pytest.mark.parametrize("sentences", [48, 96])
def test_a_map_of_few_sentences_sets_pairs_of_one_that_it_saw_and_one_that_it_did_not_apart(spec, sentences):
    """Why a cross-fitted score, of whose pairs it saw none, may be the higher one."""
    spread, generator = torch.linspace(2, 0.2, 64), torch.Generator().manual_seed(0)
    first, noise = (torch.randn(400, 64, generator=generator) * spread for _ in range(2))
    white = whitelab.fit(spec, whitelab.Moments.of(first[:sentences]))
    cosines = torch.cosine_similarity(white(first), white(first + noise / 2))
    assert cosines[:sentences].mean() < cosines[sentences:].mean() - 0.02


def test_a_sample_of_more_sentences_than_there_are_is_refused(space):
    with pytest.raises(ValueError, match="sentences=61 must lie between 1 and n=60"):
        sentence_scores(space, [Setting.parse("L1:pca")], [61])


def test_a_sample_of_a_negative_seed_is_refused(space):
    for sampled in (lambda: sample_counts(space, 9, -1), lambda: next(fit_sizes(space, [Setting()], [9], -1))):
        with pytest.raises(ValueError, match="seed=-1 must be a whole number of at least 0"):
            sampled()


def unique(n=88, d=6):
    """Pairs in which no sentence comes twice, on vectors a little correlated with their gold."""
    space = make_space(n=n, d=d, layers=2, sizes=(n // 2,))
    first, second = torch.arange(n // 2), torch.arange(n // 2, n)
    return replace(space, first=first, second=second)


def test_a_curve_ends_at_the_whole_fit_and_its_cross_fitted_side_at_cross_fitting():
    space = unique()
    settings = [Setting.parse(text) for text in ("L1:pca", "L1:shrunk@3", "L1:group:groups=2")]
    half = min(int((fold.rows.counts > 0).sum()) for fold in folds(space, "cross"))
    *_, points = fit_sizes(space, settings, [10, half, 88])
    assert [point.sentences for point in points] == [10] * 3 + [half] * 3 + [88] * 3
    assert [point.unseen for point in points] == [78] * 3 + [88 - half] * 3 + [0] * 3
    for setting, crossed, whole in zip(settings, points[3:6], points[6:], strict=True):
        assert whole.score == pytest.approx(whitelab.score(space, setting).spearman)
        assert (whole.cross_fitted, whole.isotropy) == (None, None)  # nothing is left over
        assert crossed.cross_fitted == pytest.approx(whitelab.score(space, setting.with_(fit="cross")).spearman)
        assert crossed.cross_fitted != pytest.approx(crossed.score)
        assert 0 < crossed.isotropy < 1


def test_a_map_fitted_on_part_of_other_text_is_measured_on_the_task():
    space, other = unique(), make_space(n=50, d=6, layers=2, seed=7)
    carrying = space.with_text("news", LayerRows(other.values, torch.ones(50, dtype=torch.float64)))
    setting = Setting.parse("L1:pca fit=news")
    assert usual_sizes(carrying, "news")[-1] == 50
    *_, (few, whole) = fit_sizes(carrying, [setting], [8, 50])
    score = whitelab.score(carrying, setting)
    assert (whole.score, whole.isotropy, whole.cross_fitted) == (score.spearman, score.isotropy, None)
    assert few.isotropy < whole.isotropy


def test_full_whitening_dips_where_there_is_a_sentence_a_dimension_and_shrinkage_fills_the_dip():
    rng = np.random.default_rng(0)
    n, d = 400, 40
    meaning, noise = rng.standard_normal((n // 2, d)), rng.standard_normal((n, d))
    scale = np.linspace(1, 0.2, d)
    values = np.concatenate([meaning, meaning]) * scale + 0.4 * noise
    gold = torch.rand(n // 2, generator=torch.Generator().manual_seed(0)).double()
    values[n // 2 :] += (1 - gold.numpy())[:, None] * 4 * rng.standard_normal((n // 2, d)) * scale
    first = torch.arange(n // 2)
    space = LayerEmbeddings(
        torch.from_numpy(values[None].astype(np.float32)),
        first,
        first + n // 2,
        gold,
        torch.zeros_like(first),
        ("all",),
    )
    settings = [Setting((0,), "pca"), Setting((0,), "shrunk")]
    *_, points = fit_sizes(space, settings, [20, 40, 400])
    full, shrunk = ({p.sentences: p.score for p in points if p.setting.whitening.startswith(n)} for n in ("pca", "shr"))
    assert full[40] < min(full[20], full[400])
    assert min(shrunk.values()) > full[40]


def test_sizes_that_do_not_exist_and_several_scopes_are_refused(space):
    with pytest.raises(ValueError, match="fit='tokens' weighs words by their frequency"):
        next(fit_sizes(space, [Setting((1,), "pca", fit="tokens")]))
    with pytest.raises(ValueError, match="share one fit scope, got task, news"):
        next(fit_sizes(space, [Setting.parse("L1:pca"), Setting.parse("L1:pca fit=news")]))
    with pytest.raises(ValueError, match="sentences=61"):
        next(fit_sizes(space, [Setting.parse("L1:pca")], [61]))
