"""A score is the plain one, nothing of a test row decides it, and chance stays chance."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from labelled_texts import RAW, WHITE, halved, make_rows, make_texts, matched, with_y
from progressing import progressed
from reference import nearest, whiten, wilson
from scipy.stats import binom

from whitelab import whitening
from whitelab.encoding.embeddings import LayerRows
from whitelab.probe import CLASSIFIERS, How, ProbeScore, features, probe, scoring, turns
from whitelab.probe.classifiers import GRID, TEST_GRID, linear
from whitelab.scoring.setting import Setting
from whitelab.statistics.moments import Moments


@pytest.mark.parametrize("classifier", ["knn", "linear", "senteval"])
@pytest.mark.parametrize("split", [(), halved()], ids=["folds", "split"])
def test_labels_that_mean_nothing_give_chance(classifier, split):
    """Where the choice of C saw a test fold, many tries of 2 classes would beat chance; here they do not."""
    rights, total = 0, 0
    for seed in range(6):
        data = make_texts(90, 2, split, seed=seed)
        space = make_rows(make_texts(90, 2, split, seed=99), d=30, seed=seed)  # vectors of other labels
        found = probe(space, data, Setting.parse("L2"), How(classifier, folds=3))
        rights += int(found.hits.sum())
        total += found.scored
    low, high = binom.interval(0.9999, total, 0.5)
    assert low <= rights <= high
    data = make_texts(90, 2, split)  # and labels that mean something do not
    assert probe(make_rows(data), data, Setting.parse("L2"), How(classifier, folds=3)).low > 60


@pytest.mark.parametrize("classifier", ["knn", "linear", "senteval"])
def test_a_prediction_does_not_hang_on_the_other_test_rows(classifier):
    data = make_texts(split=halved())
    space = make_rows(data, signal=0.7)
    found = probe(space, data, WHITE, How(classifier, folds=3))
    values = space.values.clone()
    changed = data.rows("test")[5:]
    values[:, data.first_index[changed]] += 30
    after = probe(LayerRows(values, space.counts), data, WHITE, How(classifier, folds=3))
    assert (found.hits[:5] == after.hits[:5]).all()
    assert (found.hits != after.hits).any()


@pytest.mark.parametrize("classifier", CLASSIFIERS)
@pytest.mark.parametrize("split", [(), halved(45), ("train", "dev", "test") * 15], ids=["folds", "split", "dev"])
def test_an_option_is_used_where_it_decides_anything(classifier, split):
    data = make_texts(45, 2, split, pairs=classifier == "threshold")
    space, how = make_rows(data), How(classifier, folds=3)
    line = probe(space, data, RAW, how).protocol
    others = {"neighbours": 3, "metric": "cosine", "folds": 4, "standardize": True, "threshold": 0.9}
    for name, value in others.items():
        assert (probe(space, data, RAW, replace(how, **{name: value})).protocol != line) == how.uses(name, data)


def test_the_choice_of_c_sees_no_test_row(monkeypatch):
    data = make_texts(60, 2)
    space, seen = make_rows(data), []
    real = scoring.best_c

    def watched(x, y, splits, grid, device):
        seen.append({tuple(row) for row in np.round(x, 9)})
        return real(x, y, splits, grid, device)

    monkeypatch.setattr(scoring, "best_c", watched)
    probe(space, data, RAW, How("senteval", folds=5))
    x = np.round(features(space.combine((1,)), data), 9)
    for rows, turn in zip(seen, turns(data, 5), strict=True):
        assert rows == {tuple(x[i]) for i in turn.train}
        assert not rows & {tuple(x[i]) for i in turn.test}


def test_standardizing_uses_the_training_rows(monkeypatch):
    data = make_texts(split=halved())
    space, seen = make_rows(data), {}
    monkeypatch.setattr(scoring, "linear", lambda x, y, test, **more: seen.update(x=x, test=test) or linear(x, y, test))
    probe(space, data, RAW, How("linear", standardize=True))
    assert np.allclose(seen["x"].mean(axis=0), 0)
    assert np.allclose(seen["x"].std(axis=0), 1)
    assert np.abs(seen["test"].mean(axis=0)).max() > 1e-3


@pytest.mark.parametrize("setting", ["L1", "L2:pca", "L1+L2:zca@4", "L2:soft:gamma=0.5"])
def test_a_score_is_the_plain_one(setting):
    data, setting = make_texts(split=halved()), Setting.parse(setting)
    space = make_rows(data, signal=0.8)
    train, test = data.rows("train"), data.rows("test")
    x = space.values.double().numpy()[list(setting.layers)].mean(axis=0)[data.first_index]
    z = whiten(x[train], x, setting.whitening, setting.k)
    expected = nearest(z[train], data.y[train], z[test], 5)
    found = probe(space, data, setting, How("knn"))
    assert found.accuracy == pytest.approx(100 * np.mean(expected == data.y[test]))
    assert (found.hits == (expected == data.y[test])).all()
    assert (found.low, found.high) == pytest.approx([100 * p for p in wilson(int(found.hits.sum()), 30)])
    assert np.array(found.confusion).sum() == found.scored == 30
    assert np.trace(found.confusion) == found.hits.sum()
    assert found.train == 60


def test_folds_average_their_accuracies():
    data = make_texts(50, 2)
    space = make_rows(data, signal=0.6)
    x = features(space.combine((1,)), data)
    expected = [
        np.mean(linear(x[turn.train], data.y[turn.train], x[turn.test]) == data.y[turn.test]) for turn in turns(data, 7)
    ]
    assert probe(space, data, RAW, How("linear", folds=7)).accuracy == pytest.approx(100 * np.mean(expected))


def test_every_fold_has_a_map_of_its_own():
    data = make_texts(60, 2)
    space = make_rows(data, signal=0.6)
    x = space.combine((1,)).numpy()[data.first_index]
    right = []
    for turn in turns(data, 5):
        z = whiten(x[turn.train], x, "pca")
        right.append(np.mean(nearest(z[turn.train], data.y[turn.train], z[turn.test], 5) == data.y[turn.test]))
    found = probe(space, data, WHITE, How("knn", folds=5))
    assert found.accuracy == pytest.approx(100 * np.mean(right))
    assert found.fitted == 48


@pytest.mark.parametrize(
    ("spec", "fit", "maps", "products"),
    [("L1:pca", "train", 5, 5), ("L1:pca", "all", 1, 1), ("L1:pca", "other", 1, 1), ("L1", "train", 1, 0)]
    + [("L1:prefix", "train", 1, 0), ("L1:prefix", "other", 1, 0)],
)
def test_a_map_that_no_fold_decides_is_fitted_once_and_fitting_nothing_reads_no_covariance(
    spec, fit, maps, products, monkeypatch
):
    data, counts = make_texts(50, 2), Counter()
    space, other = make_rows(data), make_rows(make_texts(40), seed=9)

    def counted(home, name):
        plain = getattr(home, name)
        monkeypatch.setattr(home, name, lambda *args, **more: counts.update([name]) or plain(*args, **more))

    counted(whitening, "fit")
    counted(Moments, "of")
    found = probe(space, data, Setting.parse(spec), How("knn", fit, folds=5), corpus=other)
    assert (counts["fit"], counts["of"]) == (maps, products)
    assert (found.rank, found.scored) == (space.dim, 50)
    assert found.fitted == ({"train": 40, "all": 50, "other": 40}[fit] if spec == "L1:pca" else 0)
    assert ("fitted" in found.protocol) == (spec == "L1:pca")


def test_the_baseline_says_the_most_frequent_training_class():
    split = ["train"] * 6 + ["test"] * 4
    data = with_y(make_texts(10, 2, split), [0, 0, 0, 0, 1, 1, 1, 1, 1, 0])
    assert probe(make_rows(data), data, RAW, How("knn")).baseline == 25.0


def test_pairs_are_classified_on_difference_and_product():
    data = make_texts(40, 2, pairs=True)
    z = torch.randn(40, 5, dtype=torch.float64)
    u, v = z.numpy()[data.first_index], z.numpy()[data.second_index]
    assert np.array_equal(features(z, data), np.hstack([abs(u - v), u * v]))
    found = probe(make_rows(data), data, RAW, How("senteval", folds=3))
    assert found.f1 is not None


def test_the_chosen_c_of_every_fold_is_in_the_record(monkeypatch):
    chosen = iter([0.25, 2.0, 0.5])
    monkeypatch.setattr(scoring, "best_c", lambda *given: next(chosen))
    data = make_texts()
    found = probe(make_rows(data), data, RAW, How("senteval", folds=3))
    assert found.as_dict()["c"] == list(found.c) == [0.25, 2.0, 0.5]
    assert "c" not in probe(make_rows(data), data, RAW, How("linear", folds=3)).as_dict()


def test_senteval_on_splits_chooses_with_dev_rows_where_there_are_some(monkeypatch):
    seen = []
    monkeypatch.setattr(scoring, "best_c", lambda x, y, splits, grid, device: seen.append((len(splits), grid)) or 1.0)
    for split in (["train"] * 40 + ["dev"] * 20 + ["test"] * 30, ["train"] * 60 + ["test"] * 30, ()):
        data = make_texts(90, 3, split)
        probe(make_rows(data), data, RAW, How("senteval", folds=4))
    assert seen == [(1, GRID), (4, TEST_GRID), *[(4, GRID)] * 4]


def test_a_whitening_that_had_too_few_texts_says_so():
    data = make_texts(12, 2, ["train"] * 6 + ["test"] * 6)
    space = make_rows(data, d=20)
    assert probe(space, data, WHITE, How("knn")).starved
    assert not probe(space, data, RAW, How("knn")).starved
    assert not ProbeScore("m", WHITE, "made", "knn", None, reason="no rows").starved
    assert not probe(space, data, Setting.parse("L1:pca@3"), How("knn")).starved
    twice = make_texts(16, 2, ["train"] * 10 + ["test"] * 6)
    vectors = make_rows(twice, d=20)
    vectors.values[:, twice.first_index[6:10]] = vectors.values[:, twice.first_index[:4]]
    assert probe(vectors, twice, WHITE, How("knn")).starved  # of ten texts six differ


def test_wrong_settings_for_the_data_are_refused():
    data = make_texts(split=halved())
    space = make_rows(data)
    with pytest.raises(ValueError, match=r"layers=\[7\] must lie between 0 and 2"):
        probe(space, data, Setting.parse("L7"))
    with pytest.raises(ValueError, match=r"layers=\[-9\] must lie between 0 and 2"):  # as it was typed
        probe(space, data, Setting.parse("L-9"))
    with pytest.raises(ValueError, match="k=9 must lie between 1 and d=8"):
        probe(space, data, Setting.parse("L1:pca@9"))
    with pytest.raises(ValueError, match="classifier='threshold' needs pairs of texts, and made has single texts"):
        probe(space, data, RAW, How("threshold"))
    with pytest.raises(ValueError, match="fit='other' needs the embedded sentences of that text"):
        probe(space, data, WHITE, How(fit="other"))
    with pytest.raises(ValueError, match="space must hold the 30 texts of made, got 90"):
        probe(space, make_texts(30), RAW)
    pairs, space = matched()
    with pytest.raises(ValueError, match="the scored pairs must hold both classes"):
        probe(space, with_y(pairs, np.ones(60, dtype=int)), RAW, How("threshold"))


@pytest.mark.parametrize("whitening", ["none", "center", "pca", "zca", "clusters"])
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_texts_of_one_vector_are_refused(classifier, whitening):
    data, space = matched() if classifier == "threshold" else (make_texts(), make_rows(make_texts()))
    level = LayerRows(torch.ones_like(space.values), space.counts)
    with pytest.raises(ValueError, match=r"layers=\[1\] give every text the same vector, so there is nothing to learn"):
        probe(level, data, Setting((1,), whitening), How(classifier))


def test_other_text_is_what_the_map_is_fitted_on():
    data = make_texts(split=halved())
    space, other = make_rows(data), make_rows(make_texts(50), seed=9)
    found = probe(space, data, WHITE, How("knn", fit="/a/other.txt"), corpus=other)
    assert found.fitted == 50
    assert found.protocol.endswith("whitening fitted on other.txt")


def test_protocols_say_how_a_score_was_made():
    data = make_texts(split=halved())
    space = make_rows(data)
    whole = probe(space, data, WHITE, How("knn")).protocol
    for part in ("5 nearest neighbours, euclidean", "test split", "whitening fitted on the training texts"):
        assert part in whole
    folded = probe(make_rows(make_texts()), make_texts(), WHITE, How("senteval", folds=3)).protocol
    assert "best in 3 inner folds of each training part · mean of 3 stratified folds" in folded
    assert folded.endswith("whitening fitted on each fold's training texts")
    few = make_texts(62, 3)
    few = with_y(few, np.where(np.arange(62) < 5, 2, few.y % 2))  # five rows of a class: four where one is left out
    score = probe(make_rows(few), few, RAW, How("senteval", folds=10))
    assert "best in 4 inner folds (10 need as many different rows of every class)" in score.protocol
    assert "mean of 5 stratified folds (10 need as many different rows of every class)" in score.protocol
    assert score.as_dict()["folds"] == 5
    assert probe(space, data, WHITE, How("knn")).as_dict()["folds"] == 1


@pytest.mark.parametrize(
    ("split", "rare", "where"),
    [((), [0, 1], "in the training part of each fold"), (halved(30), [1], "of the training split")],
    ids=["folds", "split"],
)
def test_a_class_too_rare_to_choose_c_with_is_counted_where_c_is_chosen(split, rare, where):
    data = with_y(make_texts(30, 2, split), np.isin(np.arange(30), rare))
    space = make_rows(data)
    with pytest.raises(ValueError, match=f"2 different rows of each class {where}, got 1 of 'b'; leave"):
        probe(space, data, RAW, How("senteval"))
    probe(space, data, RAW, How("linear"))


def test_progress_ends_with_its_total_and_can_stop_the_work():
    data, how = make_texts(60, 2), How("senteval", folds=3)
    seen = progressed(lambda progress: probe(make_rows(data), data, RAW, how, progress=progress))
    assert seen == [(1, 3), (2, 3), (3, 3)]
