"""Regressions solved together are those that are solved alone, to the minimum of each."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from whitelab.probe import regression
from whitelab.probe.regression import margins


def rows(classes: int, n: int = 300, d: int = 20):
    """Rows far from the origin whose directions are of very different sizes, and a class that the first ones decide."""
    rng = np.random.default_rng(classes)
    x = rng.standard_normal((n, d)) * np.geomspace(1, 0.01, d)
    y = (x[:, :classes] + 0.3 * rng.standard_normal((n, classes))).argmax(axis=1)
    return (x + 3).astype(np.float32), y, rng.random((4, n)) < 0.8


@pytest.mark.parametrize("widest", [4096, 1], ids=["classes together", "classes apart"])
@pytest.mark.parametrize("classes", [2, 3, 6])
def test_regressions_solved_together_are_scikit_learns_solved_alone(classes, widest, monkeypatch):
    monkeypatch.setattr(regression, "_WIDEST", widest)
    x, y, seen = rows(classes)
    grid = (0.25, 4.0, 32.0)
    found, names = margins(x, y, seen, grid)
    assert names.tolist() == list(range(classes))
    for i, c in enumerate(grid):
        for fold, learnt in enumerate(seen):
            alone = LogisticRegression(C=c, solver="newton-cholesky").fit(x[learnt].astype(float), y[learnt])
            wanted = alone.predict_log_proba(x.astype(float))
            own = found[i, :, :, fold].log_softmax(dim=1).numpy()
            assert np.abs(own - wanted).max() < 0.02
            assert (own.argmax(axis=1) != alone.predict(x)).sum() <= 1  # on the border


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("scale", [1e-3, 1e4])
def test_rows_of_any_size_and_of_fewer_directions_than_columns_find_their_minimum(classes, scale):
    x, y, seen = rows(classes, n=60)
    unit = np.concatenate([x, x, 2 * x, x[:, :3]], axis=1)
    x = scale * unit
    found, _ = margins(x, y, seen, (1.0,))
    for fold, learnt in enumerate(seen):
        # The same minimum in a scale in which Newton's steps reach it, as L-BFGS does not where rows are that long.
        alone = LogisticRegression(C=scale**2, solver="newton-cholesky", tol=1e-12, max_iter=1000)
        wanted = alone.fit(unit[learnt].astype(float), y[learnt]).predict(unit)
        said = found[0, :, :, fold].argmax(dim=1).numpy()
        assert np.mean(said[learnt] == y[learnt]) >= np.mean(wanted[learnt] == y[learnt]) - 0.03
        assert np.mean(said == wanted) > 0.9  # without a penalty that counts, rows not seen lie on the border
    with pytest.raises(ValueError, match="x must be finite"):
        margins(x * np.nan, y, seen, (1.0,))


@pytest.mark.parametrize("apart", [0.35, 3.0], ids=["in noise", "with room"])
def test_of_long_rows_that_can_be_told_apart_the_answers_are_scikit_learns(apart):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 6, 500)
        x = 300 * (rng.standard_normal((500, 48)) + apart * rng.standard_normal((6, 48))[y])
        learnt = np.arange(500) < 250
        found, _ = margins(x, y, learnt[None], (32.0,))
        centred = x - x[learnt].mean(axis=0)
        alone = LogisticRegression(C=32, solver="newton-cholesky", tol=1e-9, max_iter=500)
        wanted = alone.fit(centred[learnt], y[learnt]).predict(centred)
        assert np.mean(found[0, :, :, 0].argmax(dim=1).numpy() == wanted) >= 0.98


@pytest.mark.parametrize("classes", [2, 4])
def test_a_regression_hangs_on_no_row_that_is_not_seen(classes):
    x, y, seen = rows(classes)
    seen[:, -40:] = False
    found, _ = margins(x, y, seen, (1.0, 2.0))
    other, answers = x.copy(), y.copy()
    other[-40:] += 5
    answers[-40:] = 0
    again, _ = margins(other, answers, seen, (1.0, 2.0))
    assert (found[:, :-40] == again[:, :-40]).all()
    assert (found[:, -40:] != again[:, -40:]).any()


def test_rows_that_can_be_told_apart_and_rows_of_one_class():
    x = np.concatenate([np.eye(6), -np.eye(6)]).astype(np.float32)
    y = np.repeat([3, 8], 6)
    found, names = margins(x, y, np.ones((1, 12), bool), (1.0, 1e6))
    assert names.tolist() == [3, 8]
    assert (names[found[..., 0].argmax(dim=2).numpy()] == y).all()
    assert found[1, :, 1].abs().min() > found[0, :, 1].abs().max()  # the weaker penalty says it louder
    with pytest.raises(ValueError, match="labels must hold at least two classes, got one"):
        margins(x, y, np.arange(12)[None] < 6, (1.0,))
