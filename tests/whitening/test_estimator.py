"""Laws of the scikit-learn transformer: it is the fitted map, in batches too, and comes back by its inverse."""

import pickle
import warnings

import numpy as np
import pytest
import reference
import torch
from processes import run_python
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.conftest import OF_MOMENTS, SMALL
from whitelab import WHITENERS, Moments, WhiteningTransformer, fit
from whitelab.whitening import fit_to_rows

INVERTIBLE = ["none", "center", "standardize", "pca", "zca", "cholesky"]


def rows(n=80, d=6, rank=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, rank)) * np.linspace(0.5, 3, rank) @ rng.standard_normal((rank, d)) + 5


# What every way through `fit` and `transform` takes: a map of nothing, of moments, of any rank, of rows, of k.
CHECKED = [
    *(WhiteningTransformer(name) for name in ("none", "pca", "shrunk", "flow")),
    WhiteningTransformer("pca", k=1),
]


@parametrize_with_checks(CHECKED)
def test_every_check_of_scikit_learn_passes(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # without it one of them skips itself
    check(estimator)


CHECKS = """
from sklearn.utils.estimator_checks import check_estimator
from whitelab import WhiteningTransformer
found = check_estimator(WhiteningTransformer(), on_skip=None, on_fail=None)
print(len(found), *(one["check_name"] for one in found if one["status"] != "passed"))
"""


def test_no_check_of_scikit_learn_is_skipped():
    """One of them looks at nothing unless SciPy was told before it was loaded."""
    run = run_python(CHECKS, SCIPY_ARRAY_API="1")
    count, *failed = run.stdout.split()
    assert failed == [], run.stderr
    assert int(count) > 40


@pytest.mark.parametrize("name", [SMALL.get(name, name) for name in OF_MOMENTS])
def test_it_is_the_fitted_map(name):
    x = rows()
    found, expected = WhiteningTransformer(name).fit(x), fit(name, Moments.of(x))
    z = found.transform(x)
    np.testing.assert_array_equal(z, expected(torch.from_numpy(x)).numpy())
    np.testing.assert_allclose((x - found.mean_) @ found.matrix_, z, atol=1e-10)
    assert (found.rank_, found.n_samples_seen_, found.n_features_in_) == (expected.rank, 80, 6)
    assert found.moments_.count == 80
    assert list(found.get_feature_names_out()) == [f"whiteningtransformer{i}" for i in range(z.shape[1])]


@pytest.mark.parametrize("name", ["clusters:m=2,directions=1", "flow:epochs=3"])
def test_a_map_of_rows_is_fitted_to_all_of_them_and_has_no_matrix(name):
    x = rows()
    found, expected = WhiteningTransformer(name).fit(x), fit_to_rows(name, torch.from_numpy(x))
    np.testing.assert_array_equal(found.transform(x), expected(torch.from_numpy(x)).numpy())
    assert (found.rank_, found.n_samples_seen_) == (expected.rank, 80)
    assert not hasattr(found, "partial_fit")
    assert not hasattr(found, "inverse_transform")
    with pytest.raises(ValueError, match="is no affine map, and it has no matrix"):
        found.matrix_  # noqa: B018


def test_k_keeps_the_top_directions():
    x = rows()
    expected = reference.whiten(x, x, "pca", 2)
    z = WhiteningTransformer("pca", k=2).fit_transform(x)
    np.testing.assert_allclose(z * np.sign((z * expected).sum(0)), expected, atol=1e-9)


@pytest.mark.parametrize("name", INVERTIBLE)
@pytest.mark.parametrize("steps", [1, 7, 80])
def test_batches_give_the_map_of_all_rows_together(name, steps):
    x = rows()
    found = WhiteningTransformer(name)
    for part in np.array_split(x, steps):
        assert found.partial_fit(part) is found
    whole = WhiteningTransformer(name).fit(x)
    np.testing.assert_allclose(found.transform(x), whole.transform(x), atol=1e-9)
    assert found.n_samples_seen_ == 80
    if name != "none":
        only_last = WhiteningTransformer(name).fit(np.array_split(x, 7)[-1])
        assert np.abs(only_last.transform(x) - whole.transform(x)).max() > 0.1


def test_fit_forgets_and_partial_fit_goes_on_after_it():
    x, other = rows(), rows(seed=1)
    found = WhiteningTransformer().partial_fit(other).fit(x[:50])
    np.testing.assert_array_equal(found.transform(x), WhiteningTransformer().fit(x[:50]).transform(x))
    np.testing.assert_allclose(found.partial_fit(x[50:]).mean_, x.mean(0))


def test_the_map_is_that_of_the_fit_whatever_the_settings_say_later():
    x = rows()
    found = WhiteningTransformer("pca").partial_fit(x[:40]).partial_fit(x[40:]).set_params(k=2)
    assert found.transform(x).shape == (80, 6)
    assert found.fit(x).transform(x).shape == (80, 2)


@pytest.mark.parametrize("name", INVERTIBLE)
@pytest.mark.parametrize("offset", [0, 1e6])
def test_the_inverse_undoes_a_map_of_full_rank(name, offset):
    x = rows() + offset
    found = WhiteningTransformer(name).fit(x)
    np.testing.assert_allclose(found.inverse_transform(found.transform(x)), x, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("name", ["pca", "zca", "cholesky", "center"])
@pytest.mark.parametrize(("rank", "k"), [(6, 3), (4, None), (4, 2)])
def test_the_inverse_is_the_projection_on_the_kept_subspace(name, rank, k):
    x = rows(rank=rank)
    found = WhiteningTransformer(name, k=k).fit(x)
    mean, _, axes = reference.directions(x)
    expected = mean + (x - mean) @ axes[:k].T @ axes[:k]
    back = found.inverse_transform(found.transform(x))
    np.testing.assert_allclose(back, expected, atol=1e-8)
    np.testing.assert_allclose(found.transform(back), found.transform(x), atol=1e-8)
    assert (np.abs(back - x).max() > 0.1) == (k is not None)


def test_a_constant_column_comes_back_as_it_was():
    x = rows()
    x[:, 2] = 7
    found = WhiteningTransformer("standardize").fit(x)
    assert np.abs(found.transform(x)[:, 2]).max() == 0
    np.testing.assert_allclose(found.inverse_transform(found.transform(x)), x)


def test_one_row_is_that_row_of_the_batch():
    x = rows()
    found = WhiteningTransformer().fit(x)
    np.testing.assert_allclose(found.transform(x[3:4]), found.transform(x)[3:4], rtol=1e-12, atol=1e-12)


def test_float32_rows_give_float64_results():
    x = rows().astype(np.float32)
    found = WhiteningTransformer().fit(x)
    z = found.transform(x)
    assert z.dtype == found.mean_.dtype == found.matrix_.dtype == found.inverse_transform(z).dtype == np.float64
    np.testing.assert_allclose(np.cov(z.T), np.eye(6), atol=1e-10)


def test_rows_are_never_written_to_and_may_be_read_only_or_backwards():
    x = rows()
    before = x.copy()
    x.flags.writeable = False
    found = WhiteningTransformer().fit(x)
    np.testing.assert_allclose(found.transform(x[::-1])[::-1], found.transform(x), atol=1e-12)
    np.testing.assert_array_equal(x, before)


def test_it_clones_pickles_and_stands_in_a_pipeline():
    x = rows()
    found = WhiteningTransformer("zca", k=3).fit(x)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found)).transform(x), found.transform(x))
    assert clone(found).get_params() == {"variant": "zca", "k": 3}
    z = make_pipeline(WhiteningTransformer(), Normalizer()).fit_transform(x)
    np.testing.assert_allclose(np.linalg.norm(z, axis=1), 1)


@pytest.mark.parametrize(
    "variant", [*(name for name, one in WHITENERS.items() if one.whitens), "standardize", "soft", "all_but_the_top"]
)
def test_rows_that_do_not_vary_are_refused_when_there_is_something_to_learn(variant):
    message = rf"variant='{variant}' has no direction to keep: the 1 row\(s\) it was fitted on do not vary"
    found = WhiteningTransformer(variant).partial_fit(rows()[:1])
    with pytest.raises(ValueError, match=message):
        found.transform(rows())
    with pytest.raises(ValueError, match=message):
        found.inverse_transform(rows())
    assert found.partial_fit(rows()).transform(rows()).shape == (80, 6)


def test_a_flow_of_rows_that_do_not_vary_is_refused():
    with pytest.raises(ValueError, match=r"variant='flow' has no direction to keep: the 3 row\(s\)"):
        WhiteningTransformer("flow").fit(np.ones((3, 6))).transform(rows())


def test_what_only_moves_rows_takes_any():
    assert WhiteningTransformer("center").fit(np.ones((3, 2))).transform([[2.0, 1.0]]).tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"variant": "helloworld"}, "helloworld"),
        ({"k": 7}, "k=7 must lie between 1 and d=6"),
        ({"k": 0}, "k=0 must lie between 1 and d=6"),
        ({"variant": "standardize", "k": 2}, "k=2 has no meaning"),
    ],
)
def test_settings_that_cannot_be_are_refused_with_the_first_rows(settings, message):
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=message):
            getattr(WhiteningTransformer(**settings), method)(rows())


def test_rows_of_another_width_are_refused():
    found = WhiteningTransformer(k=2).fit(rows())
    with pytest.raises(ValueError, match="X must have m=2 columns, got 6"):
        found.inverse_transform(rows())
    with pytest.raises(ValueError, match="expecting 6 features"):
        found.partial_fit(rows(d=5))


def test_rows_that_the_map_sets_equally_far_apart_are_warned_of():
    x = np.random.default_rng(0).standard_normal((9, 12))
    with pytest.warns(UserWarning, match="9 different vectors span only 8 of 12 dimensions"):
        WhiteningTransformer("pca").fit(x)
    for again in (x[[0, *range(9)]], np.repeat(x, 3, axis=0)):
        with pytest.warns(UserWarning, match="9 different vectors span only 8 of 12 dimensions"):
            WhiteningTransformer("pca").fit(again)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WhiteningTransformer("pca", 7).fit(x)
        WhiteningTransformer("center").fit(x)
        WhiteningTransformer("pca").fit(x.T).partial_fit(x.T[:2])


@pytest.mark.parametrize("name", ["whitener_", "mean_", "matrix_", "rank_"])
def test_what_is_fitted_is_not_there_before(name):
    assert not hasattr(WhiteningTransformer(), name)
    with pytest.raises(NotFittedError):
        getattr(WhiteningTransformer(), name)


@pytest.mark.parametrize("name", ["mean_", "matrix_"])
@pytest.mark.parametrize("variant", ["pca", "cholesky"])
def test_who_changes_what_was_fitted_in_place_changes_no_map(name, variant):
    x = np.random.default_rng(0).standard_normal((40, 5))
    found = WhiteningTransformer(variant).fit(x)
    before = found.transform(x)
    getattr(found, name)[:] = 7
    np.testing.assert_array_equal(found.transform(x), before)
