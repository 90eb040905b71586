"""What a map is fitted on: folds that do not leak, other text, held-out isotropy."""

import gc
import weakref
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import reference
import torch

from tests.conftest import make_space
from whitelab.datasets import DataError
from whitelab.encoding.embeddings import LayerRows
from whitelab.scoring.fit_scopes import fit_scope, folds, halves, held_out_isotropy, scope_text
from whitelab.scoring.score import cosines, score
from whitelab.scoring.setting import Protocol
from whitelab.statistics.moments import Moments
from whitelab.sweeps.dimensions import k_curve
from whitelab.sweeps.layer_pairs import layer_pairs
from whitelab.sweeps.layer_profiles import profile, transformed

FITS = ("task", "cross", "other text")


@pytest.fixture
def sparse():
    """Pairs that fall into many groups: 90 pairs over 160 sentences."""
    return make_space(n=160, sizes=(50, 40), seed=5)


@pytest.fixture
def corpus():
    """Other sentences from the same model: another mean, another covariance, some counted twice."""
    other = make_space(n=100, sizes=(60,), seed=9)
    return LayerRows(other.values, 1 + (torch.arange(100) % 2).double())


def by_hand(space, corpus, fit, variant, k=None, layers=(1, 3)):
    """Cosines of every pair, each fold fitted and scored by the plain oracle."""
    x, first, second = reference.combined(space, layers), space.first.numpy(), space.second.numpy()
    rows = np.concatenate([x[first], x[second]])
    if fit == "other text":
        rows = reference.occurrences(reference.combined(corpus, layers), corpus.counts)
    if fit != "cross":
        z = reference.whiten(rows, x, variant, k)
        return reference.pair_cosines(z[first], z[second])
    late, found = halves(space).numpy(), np.empty(len(first))
    for scored in (late, ~late):
        seen = np.concatenate([x[first[~scored]], x[second[~scored]]])
        z = reference.whiten(seen, x, variant, k)
        found[scored] = reference.pair_cosines(z[first[scored]], z[second[scored]])
    return found


# Folds


def test_the_halves_share_no_sentence_and_are_of_equal_size(sparse):
    late = halves(sparse)
    sides = [set(torch.cat([sparse.first[rows], sparse.second[rows]]).tolist()) for rows in (late, ~late)]
    assert not sides[0] & sides[1]
    assert abs(int(late.sum()) - int((~late).sum())) <= 20
    assert torch.equal(late, halves(sparse))
    assert not torch.equal(late, halves(sparse, seed=1))


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


def test_a_scope_that_needs_a_corpus_says_so(sparse, corpus):
    with pytest.raises(ValueError, match="fit='splits' needs the embedded sentences of that text, got corpus=None"):
        folds(sparse, "splits")
    narrow = LayerRows(corpus.values[:, :, :5], corpus.counts)
    with pytest.raises(ValueError, match="corpus must have 4 layers of d=12 as the task, got 4 of 5"):
        folds(sparse, "nli.txt", narrow)


# Every result under every scope


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize(("variant", "k"), [("pca", None), ("pca", 5), ("zca_cor", None), ("center", None)])
def test_cosines_are_those_of_the_plain_path(sparse, corpus, fit, variant, k):
    found, fitted = cosines(sparse, (1, 3), variant, k, fit, corpus)
    np.testing.assert_allclose(found, by_hand(sparse, corpus, fit, variant, k), atol=1e-9)
    assert fitted.count == {"task": 180, "cross": 90 - abs(90 - 2 * int(halves(sparse).sum())), "other text": 150}[fit]


def test_the_scopes_differ(sparse, corpus):
    found = [cosines(sparse, (1, 3), "pca", None, fit, corpus)[0] for fit in FITS]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert (found[i] - found[j]).abs().max() > 0.05


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("variant", ["pca", "shrunk", "group:groups=3"])
def test_layer_pairs_are_scored_as_one_by_one(sparse, corpus, fit, variant):
    found = layer_pairs(sparse, variant, None, "mean", fit=fit, corpus=corpus)
    for cell in found.cells:
        protocol = written(dict.fromkeys(cell.layers), whitening=variant, aggregate="mean", fit=fit)
        one = score(sparse, protocol, corpus)
        assert cell.spearman == pytest.approx(one.spearman, abs=1e-6)
        assert cell.rank == one.rank


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("variant", ["pca", "pca_cor", "soft", "center"])
def test_the_k_curve_is_the_score_at_every_k(sparse, corpus, fit, variant):
    curve = k_curve(sparse, (1, 3), variant, fit=fit, corpus=corpus)
    for k in (1, 4, 12):
        one = score(sparse, written((1, 3), whitening=variant, k=k, fit=fit), corpus)
        assert curve.spearman[k - 1] == pytest.approx(one.spearman, abs=1e-6)


@pytest.mark.parametrize("fit", FITS)
def test_a_profile_measures_what_the_scope_transforms(sparse, corpus, fit):
    one = profile(sparse, (1, 3), "pca", fit=fit, corpus=corpus)
    assert one.spearman == pytest.approx(score(sparse, written((1, 3), whitening="pca", fit=fit), corpus).spearman)
    z, _ = transformed(sparse, (1, 3), "pca", None, fit, corpus)
    assert one.participation_ratio == pytest.approx(
        reference.participation_ratio(np.cov(reference.occurrences(z, sparse.counts).T))
    )


def test_folds_of_unequal_rank_are_joined():
    space = make_space(n=14, d=12, sizes=(7,), seed=3)
    space = replace(space, first=torch.arange(0, 14, 2), second=torch.arange(1, 14, 2))
    fitted = fit_scope(space, (1,), "pca", None, "cross")
    assert len({one.rank for one in fitted.whiteners}) == 2
    z = fitted.transform(space)
    assert z.shape[1] == max(one.rank for one in fitted.whiteners)
    np.testing.assert_allclose(
        fitted.cosines(space), reference.pair_cosines(z[space.first], z[space.second]), atol=1e-9
    )
    assert k_curve(space, (1,), fit="cross").rank == fitted.rank


def written(layers, **changes) -> Protocol:
    return Protocol("m", "d", "t", "test", "mean", tuple(layers), **changes)


# Held-out isotropy


def test_whitening_is_isotropic_where_it_was_fitted_and_less_so_elsewhere(sparse, corpus):
    x = sparse.moments((1,))
    z = fit_scope(sparse, (1,), "pca").transform(sparse)
    ratio = reference.participation_ratio(Moments.of(z, sparse.counts).covariance.numpy())
    assert (ratio - 1) / 11 == pytest.approx(1)
    found = {fit: held_out_isotropy(sparse, (1,), "pca", None, fit, corpus) for fit in FITS}
    assert all(0 < value < 0.95 for value in found.values())
    assert x.count == 180


def test_held_out_isotropy_is_the_isoscore_of_rows_the_map_has_not_seen(sparse, corpus):
    rows = reference.occurrences(reference.combined(corpus, (1, 3)), corpus.counts)
    z = reference.whiten(rows, reference.task_rows(sparse, (1, 3)), "pca", 5)
    expected = (reference.participation_ratio(np.cov(z.T)) - 1) / 4
    assert held_out_isotropy(sparse, (1, 3), "pca", 5, "other text", corpus) == pytest.approx(expected)


def test_more_sentences_make_the_held_out_sentences_rounder():
    few, many = (make_space(n=n, sizes=(n // 2,), seed=1) for n in (40, 2000))
    assert held_out_isotropy(few, (1,), "pca") < held_out_isotropy(many, (1,), "pca")


def test_one_direction_has_no_isotropy(sparse):
    assert np.isnan(held_out_isotropy(sparse, (1,), "pca", 1))
    alone = replace(sparse, values=sparse.values[:, :1], first=0 * sparse.first, second=0 * sparse.second)
    assert np.isnan(held_out_isotropy(alone, (1,), "pca"))


# The score that carries it


def test_a_score_says_what_it_was_fitted_on(sparse, corpus):
    task = score(sparse, written((1,), whitening="soft:gamma=.25"))
    assert task.as_dict()["held_out_isotropy"] == task.isotropy
    assert task.as_dict()["protocol"]["whitening"] == "soft:gamma=0.25,alpha=0"
    assert (
        f"fitted on the task's 180 sentence occurrences (rank 12, held-out isotropy {task.isotropy:.2f})" in task.line()
    )
    cross = score(sparse, written((1,), whitening="pca", fit="cross"))
    assert f"cross-fitted on halves of {cross.sentences} sentence occurrences" in cross.line()
    other = score(sparse, written((1,), whitening="pca", fit="nli.txt"), corpus)
    assert "fitted on the 150 sentences of nli.txt" in other.line()
    splits = score(sparse, written((1,), whitening="pca", fit="splits"), corpus)
    assert "fitted on the 150 sentence occurrences of all splits" in splits.line()
    assert score(sparse, written((1,))).isotropy is None


def test_moments_are_kept_for_the_last_few_combinations(sparse):
    assert sparse.moments((1,)) is sparse.moments([1])
    first = sparse.moments((0,))
    for layers in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (1,), (2,)):
        sparse.moments(layers)
    assert sparse.moments((0,)) is not first


# The text of a scope


def tables(folder, **files):
    for name, rows in files.items():
        lines = ["sentence1,sentence2,score", *(f"{a},{b},{gold}" for a, b, gold in rows)]
        (folder / f"{name}.csv").write_text("\n".join(lines))


def test_splits_are_every_split_of_the_task(tmp_path):
    for split in ("train", "dev", "test"):
        (tmp_path / f"stsb-en-{split}.csv").write_text(f'a {split} cat,a dog,1.0\na {split} cat,"a {split}, hen",2.0\n')
    found = scope_text("splits", str(tmp_path), "stsb")
    assert found == Counter(
        {"a dog": 3}
        | {f"a {s} cat": 2 for s in ("train", "dev", "test")}
        | {f"a {s}, hen": 1 for s in ("train", "dev", "test")}
    )


def test_a_text_file_is_one_sentence_a_line_even_with_commas(tmp_path):
    path = tmp_path / "nli.txt"
    path.write_text("A man, a plan, a canal.\n\nTwo dogs, three cats, one bird.\nA man, a plan, a canal.\n")
    assert scope_text(str(path), "demo", "demo") == Counter(
        {"A man, a plan, a canal.": 2, "Two dogs, three cats, one bird.": 1}
    )


def test_a_folder_stands_for_all_its_tasks(tmp_path):
    tables(tmp_path, one=[("a", "b", 1), ("c", "d", 2)], two=[("a", "e", 3)])
    assert scope_text(str(tmp_path), "demo", "demo") == Counter({"a": 2, "b": 1, "c": 1, "d": 1, "e": 1})


def test_the_demonstration_set_can_be_a_fit_corpus():
    assert scope_text("demo", "anything", "any").total() == 3000


def test_text_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(DataError, match="no such file or folder"):
        scope_text(str(tmp_path / "missing.txt"), "demo", "demo")


def test_the_halves_are_dealt_once_for_a_space_and_go_with_it():
    space = make_space()
    first = folds(space, "cross")
    assert folds(space, "cross") is first
    assert folds(make_space(seed=1), "cross") is not first
    kept = weakref.ref(space)
    del space, first
    gc.collect()
    assert kept() is None
