"""What a map is fitted on: folds that do not leak, other text."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
import reference
import torch

from tests.conftest import OF_MOMENTS, make_space, rotation
from whitelab import whitening
from whitelab.encoding.embeddings import LayerRows
from whitelab.scoring.fit_scopes import at_hand, fit_ahead, fit_scope, folds, halves
from whitelab.scoring.score import score
from whitelab.scoring.setting import Setting
from whitelab.sweeps.dimensions import k_curve
from whitelab.sweeps.layer_pairs import layer_pairs
from whitelab.sweeps.layer_profiles import losses, shape, transformed
from whitelab.sweeps.layer_subsets import search_subsets
from whitelab.whitening import WHITENERS

FITS = ("task", "cross", "other text")
OF_ROWS = ("clusters:m=2,directions=1", "flow:epochs=2")


@pytest.mark.parametrize("name", OF_MOMENTS)
def test_a_vector_has_as_many_numbers_as_is_said_before_the_map_is_made(name):
    for space in (make_space(), make_space(n=6, sizes=(5,))):  # the second varies along 5 directions at most
        for k in (None, 3) if WHITENERS[name].takes_k else (None,):
            fitted = fit_scope(space, Setting((1, 3), name, k))
            assert fitted.columns == fitted.whiteners[0].columns, (name, k)


def by_hand(space, corpus, fit, variant, k=None, layers=(1, 3)):
    """Cosines of every pair, each fold fitted and scored by the plain oracle."""
    x, first, second = reference.combined(space, layers), space.first.numpy(), space.second.numpy()
    rows = np.concatenate([x[first], x[second]])
    if fit == "other text":
        rows = reference.occurrences(reference.combined(corpus, layers), corpus.counts)
    if fit != "cross":
        z = reference.whiten(rows, x, variant, k)
        return reference.pair_cosines(z[first], z[second])
    late, cosines = halves(space).numpy(), np.empty(len(first))
    for scored in (late, ~late):
        seen = np.concatenate([x[first[~scored]], x[second[~scored]]])
        z = reference.whiten(seen, x, variant, k)
        cosines[scored] = reference.pair_cosines(z[first[scored]], z[second[scored]])
    return cosines


# Folds


def test_the_halves_share_no_sentence_and_are_of_equal_size(sparse):
    late = halves(sparse)
    sides = [set(torch.cat([sparse.first[rows], sparse.second[rows]]).tolist()) for rows in (late, ~late)]
    assert not sides[0] & sides[1]
    assert abs(int(late.sum()) - int((~late).sum())) <= 20
    assert torch.equal(late, halves(sparse))
    assert not torch.equal(late, halves(sparse, seed=1))
    with pytest.raises(ValueError, match="seed=-1 must be a whole number of at least 0"):
        halves(sparse, seed=-1)


def test_a_random_halving_of_pairs_would_share_sentences(sparse):
    random = torch.from_numpy(np.random.default_rng(0).random(sparse.n_pairs) < 0.5)
    sides = [set(torch.cat([sparse.first[rows], sparse.second[rows]]).tolist()) for rows in (random, ~random)]
    assert sides[0] & sides[1]


def test_every_pair_is_scored_once_by_a_map_that_has_not_seen_it(sparse):
    found = folds(sparse, "cross")
    assert sorted(torch.cat([fold.pairs for fold in found]).tolist()) == list(range(sparse.n_pairs))
    for fold in found:
        assert fold.rows.counts[sparse.first[fold.pairs]].sum() == 0
        assert fold.rows.counts[sparse.second[fold.pairs]].sum() == 0
        assert fold.rows.counts.sum() == 2 * (sparse.n_pairs - len(fold.pairs))


def test_pairs_that_all_hang_together_cannot_be_halved(sparse):
    star = replace(sparse, first=torch.zeros_like(sparse.first))
    with pytest.raises(ValueError, match="fit='cross' needs pairs that fall into two halves"):
        folds(star, "cross")


def test_a_scope_whose_text_the_space_does_not_carry_says_so(sparse):
    with pytest.raises(ValueError, match="fit='nli.txt' needs .* that text; the space carries other text, splits"):
        folds(sparse, "nli.txt")
    with pytest.raises(ValueError, match="fit='splits' needs .* that text; the space carries none"):
        folds(make_space(), "splits")


# Every result under every scope


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("k", [None, 1, 5, 12])
@pytest.mark.parametrize("variant", WHITENERS)
def test_cosines_are_those_of_the_fitted_maps(sparse, fit, variant, k):
    """The k first weighted directions against the maps themselves, whatever rotation they end with."""
    if k and not WHITENERS[variant].takes_k:
        return
    fitted = fit_scope(sparse, Setting((1, 3), variant, k, fit=fit))
    x = sparse.combine((1, 3))
    cosines, ranks = torch.full((sparse.n_pairs,), torch.nan, dtype=torch.float64), []
    for fold in folds(sparse, fit):
        whitener = whitening.fit_to_rows(variant, fold.rows.combine((1, 3)), fold.rows.counts, k)
        z = whitener(x).numpy()
        cosines[fold.pairs] = torch.from_numpy(
            reference.pair_cosines(z[sparse.first[fold.pairs]], z[sparse.second[fold.pairs]])
        )
        ranks.append(whitener.rank)
    torch.testing.assert_close(fitted.cosines(), cosines, atol=1e-9, rtol=0)
    assert fitted.rank == min(ranks)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize(("variant", "k"), [("pca", None), ("pca", 5), ("zca_cor", None), ("center", None)])
def test_cosines_are_those_of_the_plain_path(sparse, corpus, fit, variant, k):
    fitted = fit_scope(sparse, Setting((1, 3), variant, k, fit=fit))
    np.testing.assert_allclose(fitted.cosines(), by_hand(sparse, corpus, fit, variant, k), atol=1e-9)
    assert fitted.count == {"task": 180, "cross": 90 - abs(90 - 2 * int(halves(sparse).sum())), "other text": 150}[fit]


def test_the_scopes_differ(sparse):
    cosines = [fit_scope(sparse, Setting((1, 3), "pca", fit=fit)).cosines() for fit in FITS]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert (cosines[i] - cosines[j]).abs().max() > 0.05


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("variant", ["pca", "shrunk", "group:groups=3"])
def test_layer_pairs_are_scored_as_one_by_one(sparse, fit, variant):
    setting = Setting(whitening=variant, aggregate="mean", fit=fit)
    for cell in layer_pairs(sparse, setting).cells:
        alone = score(sparse, setting.with_(layers=tuple(dict.fromkeys(cell.layers))))
        assert cell.spearman == pytest.approx(alone.spearman, abs=1e-6)
        assert cell.rank == alone.rank


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("variant", ["pca", "pca_cor", "soft", "center"])
def test_the_k_curve_is_the_score_of_the_plain_path_at_every_k(sparse, corpus, fit, variant):
    curve = k_curve(sparse, Setting((1, 3), variant, fit=fit))
    for k in (1, 4, 12):
        assert curve.spearman[k - 1] == pytest.approx(
            100 * reference.spearman(by_hand(sparse, corpus, fit, variant, k), sparse.gold), abs=1e-6
        )


@pytest.mark.parametrize("fit", ["cross", "other text"])
@pytest.mark.parametrize("variant", ["shrunk", "iternorm", "soft:gamma=0", "soft:gamma=auto,alpha=0.1"])
def test_of_directions_that_no_fitted_text_spans_a_k_keeps_all_or_none(fit, variant):
    few = make_space(n=24, d=20, layers=2, sizes=(14,), seed=4)
    few = few.with_text("other text", LayerRows(few.values[:, :9] + 1, torch.ones(9).double()))
    turn = rotation(20)
    text = LayerRows(few.texts["other text"].values.double() @ turn, torch.ones(9).double())
    turned = replace(few, values=few.values.double() @ turn, texts={}).with_text("other text", text)
    setting = Setting((0, 1), variant, fit=fit)
    ranks = [basis.rank for basis in fit_scope(few, setting.with_(whitening="pca")).bases]
    assert max(ranks) < 16
    at_rank, curve = score(few, setting.with_(k=max(ranks)), isotropy=True), k_curve(few, setting)
    for k in (16, 19):
        here = setting.with_(k=k)
        found, alike = (score(one, here, isotropy=True) for one in (few, turned))
        assert found.rank == alike.rank == min(ranks)
        torch.testing.assert_close(fit_scope(few, here).cosines(), fit_scope(turned, here).cosines())
        for one in (found, alike):
            assert (one.spearman, one.isotropy) == pytest.approx((at_rank.spearman, at_rank.isotropy), abs=1e-6)
        assert (curve.spearman[k - 1], curve.ranks[k - 1]) == (pytest.approx(found.spearman), found.rank)
        cell = layer_pairs(few, here)[0, 1]
        assert (cell.spearman, cell.rank) == (pytest.approx(found.spearman), found.rank)
        (entry,) = (one for one in search_subsets(few, here, 2).ranking.top if one.layers == (0, 1))
        assert entry.spearman == pytest.approx(found.spearman)
    whole = score(few, setting.with_(k=20))
    assert (curve.spearman[19], curve.ranks[19]) == (pytest.approx(whole.spearman), 20)
    assert whole.spearman != pytest.approx(at_rank.spearman)


@pytest.mark.parametrize("fit", FITS)
def test_a_profile_measures_what_the_scope_transforms(sparse, fit):
    setting = Setting((1, 3), "pca", fit=fit)
    assert losses(sparse, setting).spearman == pytest.approx(score(sparse, setting).spearman)
    # Two maps are compared in the coordinates of the embeddings.
    z = transformed(sparse, setting.with_(whitening="zca") if fit == "cross" else setting)
    assert shape(sparse, setting).participation_ratio == pytest.approx(
        reference.participation_ratio(np.cov(reference.occurrences(z, sparse.counts).T))
    )


def test_folds_of_unequal_rank_are_joined():
    space = make_space(n=14, d=12, sizes=(7,), seed=3)
    space = replace(space, first=torch.arange(0, 14, 2), second=torch.arange(1, 14, 2))
    setting = Setting((1,), "pca", fit="cross")
    fitted = fit_scope(space, setting)
    ranks = {whitener.rank for whitener in fitted.whiteners}
    assert len(ranks) == 2
    assert fitted.rank == min(ranks)
    z = fitted.transform()
    assert z.shape[1] == max(ranks)
    np.testing.assert_allclose(fitted.cosines(), reference.pair_cosines(z[space.first], z[space.second]), atol=1e-9)
    assert k_curve(space, setting).rank == fitted.rank


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("variant", OF_ROWS)
def test_what_is_fitted_ahead_is_fitted_once(sparse, monkeypatch, fit, variant):
    setting, told = Setting((1, 3), variant, fit=fit), []
    assert not at_hand(sparse, [setting])
    maps = fit_ahead(sparse, [setting, Setting(whitening="pca")], progress=lambda *now: told.append(now))
    assert len(maps) == {"task": 3, "cross": 2, "other text": 1}[fit]
    assert told[-1] == (100 * len(maps), 100 * len(maps))
    assert told == sorted(told)
    monkeypatch.setattr(whitening, "fit_to_rows", None)
    assert at_hand(sparse, [setting])
    assert score(sparse, setting).spearman is not None
    assert not at_hand(sparse, [setting.with_(layers=(1,))])
    assert at_hand(sparse, [Setting(whitening="pca")])


# The score that carries it


def test_a_score_says_what_it_was_fitted_on(sparse):
    task = score(sparse, Setting((1,), "soft:gamma=.25"))
    assert task.as_dict()["held_out_isotropy"] == task.isotropy
    assert task.as_dict()["protocol"]["whitening"] == "soft:gamma=0.25,alpha=0"
    assert (
        f"fitted on the task's 180 sentence occurrences (rank 12, held-out isotropy {task.isotropy:.2f})" in task.line()
    )
    cross = score(sparse, Setting((1,), "pca", fit="cross"))
    assert f"cross-fitted on halves of {cross.fitted} sentence occurrences" in cross.line()
    other = score(sparse, Setting((1,), "pca", fit="other text"))
    assert "fitted on the 150 sentences of other text" in other.line()
    splits = score(sparse, Setting((1,), "pca", fit="splits"))
    assert "fitted on the 150 sentence occurrences of all splits" in splits.line()
    assert score(sparse, Setting((1,))).isotropy is None
    without = score(sparse, Setting((1,), "pca"), isotropy=False)
    assert without == replace(score(sparse, Setting((1,), "pca")), isotropy=None)


def test_the_halves_are_dealt_once_for_a_space_and_go_with_it():
    space = make_space()
    first = folds(space, "cross")
    assert folds(space, "cross") is first
    assert folds(make_space(seed=1), "cross") is not first
    kept = weakref.ref(space)
    del space, first
    gc.collect()
    assert kept() is None


def test_words_are_refused_where_sentences_are_not_means_of_them(space):
    with pytest.raises(
        ValueError, match="fit='tokens' needs sentences that are means of word vectors.*static: or sif:.*not.*length 1"
    ):
        score(space, Setting((1,), "pca", fit="tokens"))
