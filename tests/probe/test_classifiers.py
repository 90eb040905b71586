"""Classifiers, thresholds and intervals equal their plain oracles."""

import numpy as np
import pytest
from reference import most_often_right, nearest, wilson
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score

from whitelab.probe.classifiers import GRID, TEST_GRID, accuracy, best_c, best_threshold, knn, linear, mcnemar
from whitelab.probe.classifiers import wilson as interval


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


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_of_equally_far_rows_the_first_are_nearest_whatever_rounding_says(metric):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((50, 300))
    train, labels = np.repeat(rows, 8, axis=0), np.tile([1, 1, 1, 0, 0, 0, 0, 0], 50)
    turned = np.linalg.qr(rng.standard_normal((300, 300)))[0]  # the same distances but for rounding
    for q in (np.eye(300), turned):
        assert (knn(train @ q, labels, (rows + 0.01) @ q, 5, metric) == 1).all()
    assert (knn(train[::-1], labels[::-1], rows, 5, metric) == 0).all()


def test_neighbours_do_not_depend_on_where_the_rows_lie_or_on_a_row_that_is_far_from_all():
    rng = np.random.default_rng(1)
    train, test, labels = rng.standard_normal((300, 8)), rng.standard_normal((80, 8)), rng.integers(0, 4, 300)
    wanted = knn(train, labels, test)
    assert (knn(train + 1e6, labels, test + 1e6) == wanted).all()
    far = np.concatenate([train, 1e8 * train[:1]])
    assert (knn(far, np.append(labels, 3), test) == wanted).all()


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


def test_rows_that_are_no_numbers_and_a_penalty_that_is_none_are_refused():
    hole = np.array([[1.0, 2.0], [np.nan, 1.0]])
    for train, test, name in ((hole, np.eye(2), "train"), (np.eye(2), hole, "test")):
        with pytest.raises(ValueError, match=f"{name} must hold finite numbers, row 1 has NaN"):
            knn(train, np.array([0, 1]), test, 1)
    for c in (-1.0, 0.0, np.inf, np.nan):
        with pytest.raises(ValueError, match=f"c={c!r} must be a number above 0"):
            linear(np.eye(2), np.array([0, 1]), np.eye(2), c)


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


def test_halves_of_an_accuracy_are_exact():
    for n in (160, 800, 1600):
        for right in range(n + 1):
            found = accuracy(np.arange(n) < right)
            assert found * n == 100 * right
