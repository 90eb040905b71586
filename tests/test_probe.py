"""Laws of the probes: classifiers equal plain oracles, nothing of a test row decides its score, chance stays chance."""

import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from reference import most_often_right, nearest, whiten, wilson
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from tiny import SENTENCES, build_model

from whitelab import classifiers, whitening
from whitelab import probe as module
from whitelab.classifiers import GRID, TEST_GRID, best_c, best_threshold, knn, linear, mcnemar
from whitelab.classifiers import wilson as interval
from whitelab.compare import Setting, parse_settings
from whitelab.datasets import LabelledTexts, load_labelled
from whitelab.embeddings import LayerRows
from whitelab.encoders import load_encoder
from whitelab.moments import Moments
from whitelab.probe import (
    How,
    ProbeScore,
    averages,
    embed_texts,
    features,
    fit_map,
    probe,
    probes,
    turns,
    usual,
)

RAW, WHITE = Setting.parse("L1"), Setting.parse("L1:pca")


def make_texts(n=90, classes=3, split=(), seed=0, layout="table", pairs=False) -> LabelledTexts:
    """Rows named by their number, in random order; a pair is a text and the one after it."""
    y = np.random.default_rng(seed).permutation(np.arange(n) % classes)
    first = tuple(f"text {'x ' * (i % 4)}{i}" for i in range(n))
    return LabelledTexts(
        task="made",
        first=first,
        second=first[1:] + first[:1] if pairs else None,
        y=y,
        classes=tuple("abcdef"[:classes]),
        split=tuple(split) or ("",) * n,
        positive=1 if pairs else None,
        layout=layout,
    )


def make_rows(data: LabelledTexts, d=8, signal=1.5, seed=1) -> LayerRows:
    """Three layers whose first coordinates tell the class of the text, more of them in each layer."""
    rng = np.random.default_rng(seed)
    s = len(data.sentences)
    y = np.zeros(s, dtype=int)
    y[data.first_index] = data.y
    values = []
    for layer in range(3):
        x = rng.standard_normal((s, d)) * np.logspace(0, -1, d) + 2
        x[np.arange(s), y] += layer * signal
        values.append(x)
    return LayerRows(torch.tensor(np.stack(values), dtype=torch.float32), torch.ones(s, dtype=torch.float64))


def halved(n=90) -> list[str]:
    return ["train" if i % 3 else "test" for i in range(n)]


def with_y(data: LabelledTexts, y) -> LabelledTexts:
    return replace(data, y=np.asarray(y))


# ------------------------------------------------------------------------------------------------ classifiers


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("k", [1, 4, 5])
def test_neighbours_are_those_of_the_plain_oracle(k, metric):
    rng = np.random.default_rng(k)
    train, test = rng.standard_normal((60, 5)) + 1, rng.standard_normal((40, 5)) + 1
    labels = rng.integers(0, 4, 60)
    assert (knn(train, labels, test, k, metric) == nearest(train, labels, test, k, metric)).all()


def test_equally_frequent_neighbours_give_the_smallest_label():
    train = np.array([[0.0], [1.0], [2.0], [3.0]])
    labels = np.array([3, 3, 1, 1])
    assert knn(train, labels, np.array([[0.1]]), 4).tolist() == [1]
    assert knn(train, labels, np.array([[0.1]]), 3).tolist() == [3]  # no tie: the majority


def test_the_metric_matters():
    train, labels = np.array([[1.0, 0.0], [10.0, 10.0]]), np.array([0, 1])
    test = np.array([[1.0, 1.0]])
    assert knn(train, labels, test, 1, "euclidean").tolist() == [0]
    assert knn(train, labels, test, 1, "cosine").tolist() == [1]


def test_more_neighbours_than_rows_are_refused():
    with pytest.raises(ValueError, match=r"k=5 must lie between 1 and n=2"):
        knn(np.eye(2), np.array([0, 1]), np.eye(2))
    with pytest.raises(ValueError, match="metric='l1' must be one of euclidean, cosine"):
        knn(np.eye(2), np.array([0, 1]), np.eye(2), 1, "l1")
    with pytest.raises(ValueError, match="labels must hold at least two classes"):
        linear(np.eye(2), np.array([0, 0]), np.eye(2))


def test_the_regression_has_found_its_minimum():
    """At the minimum of sum log-loss + |w|^2 / (2 C) the gradient is zero."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((80, 4)), rng.integers(0, 3, 80)
    model = classifiers._regression(2.0).fit(x, y)
    error = model.predict_proba(x) - np.eye(3)[y]
    assert np.abs(error.T @ x + model.coef_ / 2.0).max() < 0.02
    assert np.abs(error.sum(axis=0)).max() < 0.02
    assert (linear(x, y, x, 2.0) == model.predict(x)).all()


def test_the_best_c_is_that_of_plain_cross_validation():
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((120, 12)), rng.integers(0, 2, 120)
    x[:, 0] += y
    folds = StratifiedKFold(5, shuffle=True, random_state=1)
    means = [
        round(100 * cross_val_score(LogisticRegression(C=c, max_iter=1000), x, y, cv=folds).mean(), 2) for c in GRID
    ]
    assert best_c(x, y, list(folds.split(x, y)), GRID) == GRID[int(np.argmax(means))]
    assert len(set(means)) > 1


def test_the_grids_are_sentevals():
    assert GRID == (0.25, 0.5, 1, 2, 4, 8)
    assert TEST_GRID == (0.5, 1, 2, 4, 8, 16, 32)


@pytest.mark.parametrize(("right", "rows"), [(0, 10), (7, 10), (10, 10), (430, 1000)])
def test_the_interval_is_wilsons(right, rows):
    assert np.allclose(interval(right, rows), [100 * end for end in wilson(right, rows)])


def test_mcnemar_is_a_fair_coin_on_the_rows_that_differ():
    one = np.array([True] * 8 + [False] * 2 + [True] * 5)
    other = np.array([False] * 8 + [True] * 2 + [True] * 5)
    assert mcnemar(one, other) == pytest.approx(2 * binom.cdf(2, 10, 0.5))
    assert mcnemar(one, one) == 1.0
    with pytest.raises(ValueError, match="other must hold the same n=15 rows, got 3"):
        mcnemar(one, other[:3])


@pytest.mark.parametrize("seed", range(5))
def test_the_best_threshold_is_right_as_often_as_any(seed):
    rng = np.random.default_rng(seed)
    cosines = np.round(rng.uniform(-1, 1, 40), 1)  # with ties
    matches = rng.uniform(-1, 1, 40) < cosines
    found = best_threshold(cosines, matches)
    assert np.mean((cosines >= found) == matches) == pytest.approx(most_often_right(cosines, matches))


def test_thresholds_that_say_one_thing_only_are_found():
    cosines = np.array([0.1, 0.2, 0.3])
    assert (cosines >= best_threshold(cosines, np.array([True] * 3))).all()
    assert not (cosines >= best_threshold(cosines, np.array([False] * 3))).any()


# ------------------------------------------------------------------------------------------------ turns


def test_a_test_split_is_one_turn_and_dev_is_kept_apart():
    data = make_texts(12, 2, ["train"] * 6 + ["dev"] * 2 + ["test"] * 4)
    (turn,) = turns(data)
    assert (len(turn.train), len(turn.dev), len(turn.test)) == (6, 2, 4)
    (turn,) = turns(make_texts(12, 2, ["train"] * 6 + ["dev"] * 6))  # for want of a test split
    assert (len(turn.dev), turn.test.tolist()) == (0, list(range(6, 12)))
    with pytest.raises(ValueError, match="rows of the split test need rows of the split train"):
        turns(make_texts(4, 2, ["test"] * 4))


def test_folds_score_every_row_once_and_never_learn_from_it():
    data = make_texts()
    found = turns(data, 10)
    assert sorted(np.concatenate([turn.test for turn in found])) == list(range(90))
    for turn in found:
        assert not set(turn.train) & set(turn.test)
        assert np.bincount(data.y[turn.test]).tolist() == [3, 3, 3]  # stratified


def test_folds_of_senteval_are_those_of_its_sorted_rows():
    data = make_texts(60, 2, layout="senteval")
    order = sorted(range(60), key=lambda i: (len(data.first[i].split()), data.y[i]))
    folds = StratifiedKFold(10, shuffle=True, random_state=1111).split(order, data.y[order])
    for turn, (_, test) in zip(turns(data, 10), folds, strict=True):
        assert turn.test.tolist() == [order[i] for i in test]
    plain = turns(make_texts(60, 2), 10)
    assert any(a.test.tolist() != b.test.tolist() for a, b in zip(turns(data, 10), plain, strict=True))


def test_few_rows_make_fewer_folds_and_one_row_none():
    data = make_texts(8, 2)
    assert len(turns(data, 10)) == 4
    with pytest.raises(ValueError, match="two classes of at least 2 rows each, got sizes 1, 7"):
        turns(with_y(data, [0] + [1] * 7))


# ------------------------------------------------------------------------------------------------ no leaks


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
        total += found.rows
    low, high = binom.interval(0.9999, total, 0.5)
    assert low <= rights <= high
    data = make_texts(90, 2, split)  # and labels that mean something do not
    assert probe(make_rows(data), data, Setting.parse("L2"), How(classifier, folds=3)).low > 60


@pytest.mark.parametrize("spec", ["pca", "zca", "soft:gamma=0.5", "standardize"])
def test_the_map_of_the_training_texts_does_not_see_the_test_texts(spec):
    data = make_texts(split=halved())
    setting = Setting.parse(f"L1:{spec}")
    (turn,) = turns(data)
    x = make_rows(data).combine((1,))
    other = x.clone()
    other[data.first_index[turn.test]] = torch.randn(len(turn.test), x.shape[1], dtype=torch.float64) * 50
    before, after = (fit_map(one, data, turn.train, setting, How()) for one in (x, other))
    assert torch.equal(before.mean, after.mean)
    assert torch.equal(before.dense, after.dense)
    before, after = (fit_map(one, data, turn.train, setting, How(fit="all")) for one in (x, other))
    assert not torch.allclose(before.mean, after.mean)


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


def test_the_choice_of_c_sees_no_test_row(monkeypatch):
    data = make_texts(60, 2)
    space, seen = make_rows(data), []
    real = module.best_c

    def watched(x, y, splits, grid, tick=None):
        seen.append({tuple(row) for row in np.round(x, 9)})
        return real(x, y, splits, grid, tick)

    monkeypatch.setattr(module, "best_c", watched)
    probe(space, data, RAW, How("senteval", folds=5))
    x = np.round(features(space.combine((1,)), data), 9)
    for rows, turn in zip(seen, turns(data, 5), strict=True):
        assert rows == {tuple(x[i]) for i in turn.train}
        assert not rows & {tuple(x[i]) for i in turn.test}


def test_standardizing_uses_the_training_rows(monkeypatch):
    data = make_texts(split=halved())
    space, seen = make_rows(data), {}
    monkeypatch.setattr(module, "linear", lambda x, y, test, c=1.0: seen.update(x=x, test=test) or linear(x, y, test))
    probe(space, data, RAW, How("linear", standardize=True))
    assert np.allclose(seen["x"].mean(axis=0), 0)
    assert np.allclose(seen["x"].std(axis=0), 1)
    assert np.abs(seen["test"].mean(axis=0)).max() > 1e-3


# ------------------------------------------------------------------------------------------------ scores


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
    assert np.array(found.confusion).sum() == found.rows == 30
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
    [("L1:pca", "train", 5, 5), ("L1:pca", "all", 1, 1), ("L1:pca", "other", 1, 1), ("L1", "train", 1, 0)],
)
def test_a_map_that_no_fold_decides_is_fitted_once_and_none_reads_no_covariance(spec, fit, maps, products, monkeypatch):
    data, counts = make_texts(50, 2), Counter()
    space, other = make_rows(data), make_rows(make_texts(40), seed=9)

    def counted(home, name):
        plain = getattr(home, name)
        monkeypatch.setattr(home, name, lambda *args, **more: counts.update([name]) or plain(*args, **more))

    counted(whitening, "fit")
    counted(Moments, "of")
    found = probe(space, data, Setting.parse(spec), How("knn", fit, folds=5), corpus=other)
    assert (counts["fit"], counts["of"]) == (maps, products)
    assert (found.rank, found.rows) == (space.dim, 50)
    assert found.fitted == (0 if spec == "L1" else {"train": 40, "all": 50, "other": 40}[fit])


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


def test_senteval_on_splits_chooses_with_dev_rows_where_there_are_some(monkeypatch):
    seen = []
    monkeypatch.setattr(module, "best_c", lambda x, y, splits, grid, tick=None: seen.append((len(splits), grid)) or 1.0)
    for split in (["train"] * 40 + ["dev"] * 20 + ["test"] * 30, ["train"] * 60 + ["test"] * 30, ()):
        data = make_texts(90, 3, split)
        probe(make_rows(data), data, RAW, How("senteval", folds=4))
    assert seen == [(1, GRID), (4, TEST_GRID), *[(4, GRID)] * 4]


def test_a_whitening_that_had_too_few_texts_says_so():
    data = make_texts(12, 2, ["train"] * 6 + ["test"] * 6)
    space = make_rows(data, d=20)
    assert probe(space, data, WHITE, How("knn")).starved
    assert not probe(space, data, RAW, How("knn")).starved
    assert not probe(space, data, Setting.parse("L1:pca@3"), How("knn")).starved


# ------------------------------------------------------------------------------------------------ thresholds


def matched(n=60, split=()):
    """Pairs whose cosines say something of their label."""
    data = make_texts(n, 2, split, pairs=True)
    space = make_rows(data, d=6, signal=0.0)
    values = space.values.clone()
    second, first = data.second_index[data.y == 1], data.first_index[data.y == 1]
    values[:, second] = 0.6 * values[:, first] + 0.4 * values[:, second]
    return data, LayerRows(values, space.counts)


@pytest.mark.parametrize("setting", [RAW, WHITE])
def test_pair_measures_are_those_of_the_plain_cosines(setting):
    data, space = matched()
    found = probe(space, data, setting, How("threshold"))
    x = space.values[1].double().numpy()
    rows = np.concatenate([data.first_index, data.second_index])
    z = whiten(x[rows], x, setting.whitening)
    u, v = z[data.first_index], z[data.second_index]
    cosines = (u * v).sum(1) / np.linalg.norm(u, axis=1) / np.linalg.norm(v, axis=1)
    assert np.allclose(found.cosines, cosines, atol=1e-9)
    yes = data.y == 1
    assert found.accuracy == pytest.approx(100 * np.mean((cosines >= 0.5) == yes))
    assert found.pairs.best_accuracy == pytest.approx(100 * most_often_right(cosines, yes))
    assert found.pairs.average_precision == pytest.approx(100 * average_precision_score(yes, cosines))
    assert found.f1 == pytest.approx(100 * f1_score(yes, cosines >= 0.5))
    best = max(f1_score(yes, cosines >= t) for t in cosines)
    assert found.pairs.best_f1 == pytest.approx(100 * best)
    assert found.pairs.chosen_on == "the scored pairs"


def test_a_threshold_is_chosen_on_training_pairs_where_there_are_some():
    data, space = matched(60, ["train"] * 40 + ["test"] * 20)
    found = probe(space, data, WHITE, How("threshold"))
    assert (found.rows, found.train, found.fitted) == (20, 40, 80)
    assert found.pairs.chosen_on == "the training pairs"
    flipped = with_y(data, [*data.y[:40], *(1 - data.y[40:])])  # the labels of the test rows decide nothing
    assert probe(space, flipped, WHITE, How("threshold")).pairs.best_threshold == found.pairs.best_threshold


def test_the_fixed_threshold_is_what_was_asked_for():
    data, space = matched()
    found = probe(space, data, RAW, How("threshold", threshold=0.9))
    assert found.accuracy == pytest.approx(100 * np.mean((found.cosines >= 0.9) == found.matches))
    assert "match where cosine >= 0.9" in found.protocol


def test_swapping_what_says_yes_swaps_what_is_matched():
    data, space = matched()
    one = probe(space, data, RAW, How("threshold"))
    other = probe(space, replace(data, positive=0), RAW, How("threshold"))
    assert one.accuracy + other.accuracy == pytest.approx(100)


# ------------------------------------------------------------------------------------------------ words and errors


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: How("svm"), "classifier='svm' must be one of knn, linear, senteval, threshold"),
        (lambda: How(neighbours=0), "neighbours=0 must be a whole number of at least 1"),
        (lambda: How(folds=1), "folds=1 must be a whole number of at least 2"),
        (lambda: How(threshold=2.0), "threshold=2.0 must lie between -1 and 1"),
        (lambda: How(fit=""), "fit='' must be train, all, or name other text"),
        (lambda: parse_settings(" ; ", 3), "settings=' ; ' must hold at least one setting"),
        (lambda: parse_settings("L*:nothing", 3), "nothing"),
    ],
)
def test_wrong_words_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_wrong_settings_for_the_data_are_refused():
    data = make_texts(split=halved())
    space = make_rows(data)
    with pytest.raises(ValueError, match=r"layers=\[7\] must lie between 0 and 2"):
        probe(space, data, Setting.parse("L7"))
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


def test_other_text_is_what_the_map_is_fitted_on():
    data = make_texts(split=halved())
    space, other = make_rows(data), make_rows(make_texts(50), seed=9)
    found = probe(space, data, WHITE, How("knn", fit="other.txt"), corpus=other)
    assert found.fitted == 50
    assert found.protocol.endswith("whitening fitted on other.txt")


def test_a_star_stands_for_every_layer():
    assert [str(one) for one in parse_settings("cls/L*:pca@2; L-1", 3)] == [
        "cls/L0:pca@2",
        "cls/L1:pca@2",
        "cls/L2:pca@2",
        "mean/L-1",
    ]


def test_the_usual_classifier_is_the_papers():
    assert usual(make_texts(layout="senteval")) == "senteval"
    assert usual(make_texts(n=9, classes=2, pairs=True)) == "threshold"
    assert usual(make_texts()) == "linear"
    assert How("linear").on(make_texts(layout="senteval")) == "senteval"


def test_protocols_say_how_a_score_was_made():
    data = make_texts(split=halved())
    space = make_rows(data)
    assert probe(space, data, WHITE, How("knn")).protocol == (
        "5 nearest neighbours, euclidean, majority, ties to the smallest label · test split · features as they come · "
        "whitening fitted on the training texts"
    )
    folded = probe(make_rows(make_texts()), make_texts(), WHITE, How("senteval", folds=3)).protocol
    assert "best in 3 inner folds of each training part · mean of 3 stratified folds" in folded
    assert folded.endswith("whitening fitted on each fold's training texts")


def test_progress_ends_with_its_total_and_can_stop_the_work():
    data, seen = make_texts(60, 2), []
    probe(make_rows(data), data, RAW, How("senteval", folds=3), progress=lambda *step: seen.append(step))
    assert [total for _, total in seen] == [9] * 9
    assert [done for done, _ in seen] == list(range(1, 10))

    def stop(done, total):
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        probe(make_rows(data), data, RAW, How("knn"), progress=stop)


# ------------------------------------------------------------------------------------------------ whole runs


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probe")
    build_model(folder / "model")
    return str(folder / "model")


@pytest.fixture(scope="module")
def animals(tmp_path_factory):
    """Sentences of the tiny world, labelled by whether the dog or the cat is in them."""
    path = tmp_path_factory.mktemp("data") / "animals.tsv"
    lines = [f"{text}\t{'pet' if 'dog' in text or 'cat' in text else 'other'}" for text in SENTENCES[::4]]
    path.write_text("text\tlabel\n" + "\n".join(lines) + "\n")
    return load_labelled(path)


def test_a_run_gives_what_probe_gives(model, animals):
    found = list(probes([model], [animals], "L1;cls/L-1:pca@4", How("knn")))
    encoder = load_encoder(model)
    for score in found:
        space = embed_texts(encoder, animals, score.setting.pooling)
        assert score == probe(space, animals, score.setting, How("knn"), model=encoder.name)
    assert [str(one.setting) for one in found] == ["mean/L1", "cls/L-1:pca@4"]


def test_what_goes_wrong_is_said_in_its_row_and_the_rest_goes_on(model, animals):
    found = list(probes([model, "/nowhere"], [animals], "L1;L99;L1:pca", How("knn", fit="/nothing.txt")))
    assert found[0].accuracy is not None
    assert "layers=[99] must lie between 0 and" in found[1].reason
    assert "no such file" in found[2].reason
    assert all(one.accuracy is None and one.reason for one in found[3:])
    assert len(found) == 6


def test_records_are_json_ready(model, animals):
    (score,) = probes([model], [animals], "L1:pca", How("linear", folds=3))
    record = json.loads(json.dumps(score.as_dict(), allow_nan=False))
    assert record["setting"] == "mean/L1:pca"
    assert {"model", "task", "classifier", "accuracy", "low", "high", "protocol", "confusion"} <= set(record)
    assert record["low"] < record["accuracy"] <= record["high"]


def test_the_average_is_over_all_tasks_or_says_what_is_missing():
    scores = [ProbeScore("m", RAW, task, "senteval", value) for task, value in (("MR", 80.0), ("CR", 70.0))]
    (mean,) = averages(scores)
    assert (mean.task, mean.accuracy) == ("avg", 75.0)
    (mean,) = averages([*scores, ProbeScore("m", RAW, "TREC", "senteval", None, reason="x")])
    assert (mean.accuracy, mean.reason) == (None, "no score for TREC")


def test_a_published_number_stands_beside_what_it_is_of(animals):
    data = replace(animals, task="TREC", layout="senteval")
    score = ProbeScore("google-bert/bert-base-uncased", Setting.parse("L-1"), "TREC", "senteval", 90.0)
    found = module.with_published(score, 13, data, How("senteval"))
    assert found.published.value == 92.80
    assert "Table 2" in found.published.place
    assert module.with_published(score, 13, data, How("knn")).published is None
    white = replace(score, setting=Setting.parse("L-1:pca"))
    assert module.with_published(white, 13, data, How("senteval")).published is None


@pytest.mark.model
def test_the_bundled_example_shows_that_layers_differ():
    """How something is said is read best in the middle of the model, what it is about at its end."""
    act, domain = (
        {
            score.setting.layers[0]: score.accuracy
            for score in probes(["bundled"], [load_labelled("demo", task)], "L*", How("linear"))
        }
        for task in ("act", "domain")
    )
    assert max(act, key=act.get) in (2, 3, 4, 5)
    assert act[6] < act[4] - 5
    assert max(domain, key=domain.get) == 6
    assert all(math.isfinite(value) for value in (*act.values(), *domain.values()))
