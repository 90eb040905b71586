"""What a map is fitted on: folds that do not leak, other text, held-out isotropy."""

import gc
import json
import math
import weakref
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import reference
import torch

from tests.conftest import OF_MOMENTS, make_space, rotation
from whitelab import whitening
from whitelab.datasets import DataError, MalformedRows, load
from whitelab.encoding.embeddings import LayerRows
from whitelab.scoring.fit_scopes import (
    at_hand,
    fit_ahead,
    fit_scope,
    folds,
    halves,
    held_out_isotropy,
    isotropy_between,
)
from whitelab.scoring.fit_text import scope_name, scope_text, with_fit_text
from whitelab.scoring.score import score
from whitelab.scoring.setting import Setting
from whitelab.statistics.moments import Moments
from whitelab.sweeps.dimensions import k_curve
from whitelab.sweeps.layer_pairs import layer_pairs
from whitelab.sweeps.layer_profiles import losses, shape, transformed
from whitelab.sweeps.layer_subsets import search_subsets
from whitelab.whitening import WHITENERS

FITS = ("task", "cross", "other text")


@pytest.fixture
def corpus():
    """Other sentences from the same model: another mean, another covariance, some counted twice."""
    other = make_space(n=100, sizes=(60,), seed=9)
    return LayerRows(other.values, 1 + (torch.arange(100) % 2).double())


@pytest.fixture
def sparse(corpus):
    """Pairs that fall into many groups: 90 pairs over 160 sentences, carrying the other text."""
    return make_space(n=160, sizes=(50, 40), seed=5).with_text("other text", corpus).with_text("splits", corpus)


def test_a_scope_leaves_the_machine_without_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for fit, name in (("task", "task"), ("demo", "demo"), ("/a/b.txt", "b.txt"), ("corpus:/a/b/", "corpus:b")):
        assert scope_name(fit) == name
    assert scope_name("corpus:.") == f"corpus:{tmp_path.name}"


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


# Held-out isotropy


def test_whitening_is_isotropic_where_it_was_fitted_and_less_so_elsewhere(sparse):
    setting = Setting((1,), "pca")
    z = fit_scope(sparse, setting).transform()
    ratio = reference.participation_ratio(Moments.of(z, sparse.counts).covariance.numpy())
    assert (ratio - 1) / 11 == pytest.approx(1)
    assert all(0 < held_out_isotropy(sparse, setting.with_(fit=fit)) < 0.95 for fit in FITS)
    assert sparse.moments((1,)).count == 180


@pytest.mark.parametrize("k", [None, 2, 5])
@pytest.mark.parametrize("variant", OF_MOMENTS)
def test_held_out_isotropy_is_the_isoscore_of_rows_the_map_has_not_seen(sparse, corpus, variant, k):
    if variant == "none" or k and not WHITENERS[variant].takes_k:
        return
    rows = reference.occurrences(reference.combined(corpus, (1, 3)), corpus.counts)
    z = reference.whiten(rows, reference.task_rows(sparse, (1, 3)), variant, k)
    setting = Setting((1, 3), variant, k, fit="other text")
    rank = fit_scope(sparse, setting).rank
    expected = (reference.participation_ratio(np.cov(z.T)) - 1) / (rank - 1)
    assert held_out_isotropy(sparse, setting) == pytest.approx(expected)


@pytest.mark.parametrize(("f", "m"), [(1600, 600), (400, 600), (400, 8000)])
def test_of_white_data_few_rows_of_either_kind_keep_isotropy_low_by_the_moments_of_an_f_matrix(f, m):
    seen, unseen = (
        LayerRows(torch.from_numpy(np.random.default_rng(n).standard_normal((1, n, 200))), torch.ones(n).double())
        for n in (f, m)
    )
    y, z = 200 / f, 200 / m
    wanted = (1 - y) / (1 + z - y * z)
    assert isotropy_between(seen, unseen, Setting((0,), "pca")) == pytest.approx(wanted, rel=0.03)


def test_held_out_isotropy_is_the_same_whatever_was_asked_before(sparse, corpus):
    asked = [
        Setting(layers, variant, k, fit=fit)
        for fit in ("task", "cross", "other text")
        for variant, k in (("pca", None), ("zca", 5), ("soft", 2), ("shrunk", 5), ("center", 5))
        for layers in ((1, 3), (1,))
    ]

    def fresh():
        return make_space(n=160, sizes=(50, 40), seed=5).with_text("other text", corpus)

    found = [held_out_isotropy(sparse, setting) for setting in asked]
    assert found == pytest.approx([held_out_isotropy(fresh(), setting) for setting in asked])
    assert len({round(one, 9) for one in found}) == len(found)


def test_sentences_of_the_task_that_a_text_holds_are_not_held_out(sparse, corpus):
    setting = Setting((1, 3), "pca", fit="both")
    n = sparse.n_sentences
    for held in (n // 2, n - 1, n):
        values = torch.cat([corpus.values, sparse.values[:, :held]], dim=1)
        text = LayerRows(values, torch.ones(values.shape[1], dtype=torch.float64))
        found = held_out_isotropy(sparse.with_text("both", text), setting)
        rest = LayerRows(sparse.values[:, held:], sparse.counts[held:])
        wanted = isotropy_between(text, rest, setting) if held < n - 1 else math.nan
        assert found == pytest.approx(wanted, nan_ok=True)


OF_ROWS = ("clusters:m=2,directions=1", "flow:epochs=2")


@pytest.mark.parametrize("variant", OF_ROWS)
def test_held_out_isotropy_of_a_map_of_rows_is_that_of_other_rows_under_it(sparse, corpus, variant):
    for fit, (seen, unseen) in {"other text": (corpus, sparse), "task": sparse.parted}.items():
        ways = [(seen, unseen)] if fit == "other text" else [(seen, unseen), (unseen, seen)]
        expected = []
        for a, b in ways:
            fitted = whitening.fit_to_rows(variant, a.combine((1, 3)), a.counts)
            z = reference.occurrences(fitted(b.combine((1, 3))), b.counts)
            expected.append((reference.participation_ratio(np.cov(z.T)) - 1) / (fitted.rank - 1))
        assert held_out_isotropy(sparse, Setting((1, 3), variant, fit=fit)) == pytest.approx(np.mean(expected))


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


@pytest.mark.parametrize("variant", ["center", "pca", "soft:gamma=0"])
def test_of_too_few_sentences_held_out_isotropy_counts_the_directions_of_the_map(thin, variant):
    """Where a half spans fewer directions than there are: centring alone keeps all of them."""
    expected = []
    for seen, unseen in (thin.parted, thin.parted[::-1]):
        fitted = whitening.fit(variant, seen.moments((1,)))
        z = reference.occurrences(fitted(thin.combine((1,))), unseen.counts)
        expected.append((reference.participation_ratio(np.cov(z.T)) - 1) / (fitted.rank - 1))
    assert held_out_isotropy(thin, Setting((1,), variant)) == pytest.approx(np.mean(expected))


def test_more_sentences_make_the_held_out_sentences_rounder():
    few, many = (make_space(n=n, sizes=(n // 2,), seed=1) for n in (40, 2000))
    assert held_out_isotropy(few, Setting((1,), "pca")) < held_out_isotropy(many, Setting((1,), "pca"))


def test_one_direction_has_no_isotropy(sparse):
    assert np.isnan(held_out_isotropy(sparse, Setting((1,), "pca", 1)))
    alone = replace(sparse, values=sparse.values[:, :1], first=0 * sparse.first, second=0 * sparse.second)
    assert np.isnan(held_out_isotropy(alone, Setting((1,), "pca")))


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


NLI = [("A cat sits.", "An animal sits.", "entailment"), ("A cat sits.", "A dog runs.", "contradiction")]
TRIPLET = ("A cat sits.", "An animal sits.", "A dog runs.")


@pytest.mark.parametrize(
    ("name", "names", "rows", "expected"),
    [
        ("nli.csv", ("premise", "hypothesis", "label"), NLI, [row[:2] for row in NLI]),
        ("nli.jsonl", ("premise", "hypothesis", "label"), NLI, [row[:2] for row in NLI]),
        ("snli.tsv", ("gold_label", "sentence1", "sentence2"), [row[::-1] for row in NLI], [row[:2] for row in NLI]),
        ("triplets.csv", ("anchor", "positive", "negative"), [TRIPLET], [TRIPLET]),
        ("pairs.tsv", ("anchor", "positive"), [TRIPLET[:2]], [TRIPLET[:2]]),
        ("texts.csv", ("text",), [row[:1] for row in NLI], [row[:1] for row in NLI]),
        ("labelled.csv", ("label", "sentence"), [row[1:][::-1] for row in NLI], [row[1:2] for row in NLI]),
        ("numbered.jsonl", ("id", "text"), [("1", "A cat sits.")], [("A cat sits.",)]),
    ],
)
def test_text_needs_no_gold_scores(tmp_path, name, names, rows, expected):
    path, between = tmp_path / name, "\t" if name.endswith(".tsv") else ","
    lines = [between.join(row) for row in (names, *rows)]
    if name.endswith(".jsonl"):
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
    path.write_text("\n".join(lines))
    for data in (path, tmp_path):  # a file, and the folder of it
        assert scope_text(str(data), "", None) == Counter(text for row in expected for text in row)
    assert scope_text("splits", str(tmp_path), path.stem) == Counter(text for row in expected for text in row)
    with pytest.raises(DataError):
        load(path)


@pytest.mark.parametrize("name", ["score", "closeness"])
def test_where_there_are_gold_scores_a_row_without_one_is_malformed(tmp_path, name):
    (tmp_path / "some.csv").write_text(f"sentence1,sentence2,{name}\na,b,1\nc,d,none\ne,f,2\n")
    with pytest.raises(MalformedRows, match=r"some.csv:3: score 'none' is not a number"):
        scope_text(str(tmp_path), "", None)
    assert scope_text(str(tmp_path), "", None, keep_going=True) == Counter("abef")


def test_a_row_of_text_that_lacks_one_is_malformed(tmp_path):
    (tmp_path / "nli.csv").write_text("premise,hypothesis,label\na,b,neutral\n,d,neutral\n")
    with pytest.raises(MalformedRows, match=r"nli.csv:3: premise is empty"):
        scope_text(str(tmp_path), "", None)
    assert scope_text(str(tmp_path), "", None, keep_going=True) == Counter("ab")
    (tmp_path / "nli.csv").write_text("premise,hypothesis,label\n")
    with pytest.raises(DataError, match="column names only"):
        scope_text(str(tmp_path), "", None)


def test_the_demonstration_set_can_be_a_fit_corpus():
    assert scope_text("demo", "anything", "any").total() == 2880


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


def test_a_space_takes_up_the_text_that_its_setting_fits_on(tmp_path):
    path, space, asked = tmp_path / "nli.txt", make_space(), []
    path.write_text("A man.\nTwo dogs.\nA man.\n")

    def embedded(sentences):
        asked.append(sentences)
        return space.values[:, : len(sentences)]

    for fit in ("task", "cross"):
        assert with_fit_text(space, Setting(whitening="pca", fit=fit), embedded) is space
    carrying = with_fit_text(space, Setting(whitening="pca", fit=str(path)), embedded)
    assert asked == [("A man.", "Two dogs.")]
    assert carrying.texts[str(path)].counts.tolist() == [2, 1]


def test_words_are_refused_where_sentences_are_not_means_of_them(space):
    with pytest.raises(
        ValueError, match="fit='tokens' needs sentences that are means of word vectors.*static: or sif:.*not.*length 1"
    ):
        score(space, Setting((1,), "pca", fit="tokens"))
