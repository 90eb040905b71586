"""Laws of the clusters that each lose a mean and directions of their own."""

import numpy as np
import pytest
import row_maps
import torch
from sklearn.cluster import KMeans
from threadpoolctl import ThreadpoolController
from torch.testing import assert_close

from whitelab.statistics.moments import Moments
from whitelab.whitening import agreements, fit, fit_to_rows


def blobs(sizes=(60, 50, 40), d=6, seed=0, apart=40.0):
    """Rows in clouds far from each other, so that k-means can only find them, and the cloud of each."""
    rng = np.random.default_rng(seed)
    centres = apart * rng.standard_normal((len(sizes), d)) + 5
    labels = np.repeat(np.arange(len(sizes)), sizes)
    x = centres[labels] + rng.standard_normal((len(labels), d)) @ rng.standard_normal((d, d))
    return torch.from_numpy(x), labels


@pytest.mark.parametrize(("sizes", "d"), [((60, 50, 40), 6), ((12, 9), 30)])
def test_each_cluster_loses_its_own_mean_and_directions(sizes, d):
    x, labels = blobs(sizes, d)
    new = x + 0.3 * torch.randn(x.shape, generator=torch.Generator().manual_seed(1), dtype=x.dtype)
    fitted = fit_to_rows(f"clusters:m={len(sizes)},directions=2", x)
    for rows in (x, new):
        assert_close(fitted(rows), torch.from_numpy(row_maps.clusters(x, rows, labels, 2)))
    assert (fitted.rank, fitted.count, fitted.columns) == (d - 2, len(x), d)
    whole = fit("all_but_the_top:directions=2", Moments.of(x))(x)
    assert (fitted(x) - whole).abs().max() > 1


@pytest.mark.parametrize("n", [90, 7, 3])  # of the last, 3 directions leave nothing: both maps are 0
@pytest.mark.parametrize("directions", [0, 1, 3])
def test_one_cluster_is_all_but_the_top(n, directions):
    x = torch.randn(n, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 3
    fitted = fit_to_rows(f"clusters:m=1,directions={directions}", x)
    expected = fit(f"all_but_the_top:directions={directions}", Moments.of(x))
    assert_close(fitted(x), expected(x))
    assert fitted.rank == expected.rank
    if n == 90:
        assert (fit_to_rows(f"clusters:m=2,directions={directions}", x)(x) - expected(x)).abs().max() > 0.1


def test_it_is_said_that_one_cluster_agrees_with_all_but_the_top():
    pair = [("clusters:m=1,directions=3", None), ("all_but_the_top:directions=3", None), ("clusters:m=2", None)]
    (agreement,) = agreements(pair, 20)
    assert agreement.specs == ("clusters:m=1,directions=3", "all_but_the_top:directions=3")
    (agreement,) = agreements([("clusters:m=1,directions=0", None), ("center", None)], 20)
    assert "centring" in next(iter(agreement.because.values()))


def test_a_row_that_counts_twice_is_two_rows():
    x, _ = blobs()
    counts = torch.ones(len(x), dtype=torch.float64)
    counts[::3] = 4
    weighted = fit_to_rows("clusters:m=3,directions=2", x, counts)
    repeated = fit_to_rows("clusters:m=3,directions=2", x.repeat_interleave(counts.long(), 0))
    assert_close(weighted(x), repeated(x))
    assert weighted.count == repeated.count == counts.sum()
    assert (weighted(x) - fit_to_rows("clusters:m=3,directions=2", x)(x)).abs().max() > 1e-3


def test_rows_of_a_network_that_is_training_are_rows():
    x = torch.randn(60, 5, dtype=torch.float64)
    assert_close(fit_to_rows("clusters:m=2", x.clone().requires_grad_())(x), fit_to_rows("clusters:m=2", x)(x))


def test_a_row_that_counts_nothing_is_not_there():
    x, labels = blobs()
    counts = torch.from_numpy((labels != 1).astype(float))
    found = fit_to_rows("clusters:m=2,directions=2", x, counts)
    assert_close(found(x), fit_to_rows("clusters:m=2,directions=2", x[labels != 1])(x))


def test_a_cluster_of_too_few_rows_is_dissolved_into_the_nearest():
    x, labels = blobs((60, 5, 50))
    found = fit_to_rows("clusters:m=3,directions=2", x)
    assert found.facts["clusters"] == 2
    copied = x.repeat_interleave(torch.where(torch.from_numpy(labels) == 1, 9, 1), 0)  # 45 rows, 5 of them different
    assert fit_to_rows("clusters:m=3,directions=2", copied).facts["clusters"] == 2
    kept = fit_to_rows("clusters:m=2,directions=2", x)
    sizes = torch.bincount(found.nearest(x))
    assert sizes.sum() == 115
    assert sizes.min() >= 6  # 2 directions + 2
    assert kept.facts["clusters"] == 2
    enough = fit_to_rows("clusters:m=3,directions=1", x)
    assert enough.facts["clusters"] == 3
    assert_close(enough(x), torch.from_numpy(row_maps.clusters(x, x, labels, 1)))


def test_k_means_has_numpy_on_one_thread_by_our_limit_and_not_only_by_its_own(monkeypatch):
    """scikit-learn's own limit, set while another fit has one, would be taken for usual."""
    seen, real = [], KMeans.fit

    def fitted(self, *given, **how):
        seen.extend(one["num_threads"] for one in ThreadpoolController().select(user_api="blas").info())
        return real(self, *given, **how)

    monkeypatch.setattr(KMeans, "fit", fitted)
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        fit_to_rows("clusters:m=2,directions=1", torch.randn(50, 5, dtype=torch.float64))
    assert set(seen) == {1}


@pytest.mark.parametrize("n", [1, 2, 3])
def test_fewer_rows_than_clusters_are_fitted_all_the_same(n):
    x = torch.randn(n, 5, dtype=torch.float64)
    assert fit_to_rows("clusters", x)(x).isfinite().all()


def test_equal_seeds_give_equal_maps_and_others_need_not():
    x = torch.randn(300, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    first, again, other = (fit_to_rows(f"clusters:m=9,directions=1,seed={seed}", x)(x) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)


def test_moments_and_k_and_counts_that_cannot_be_are_refused():
    x, _ = blobs()
    with pytest.raises(ValueError, match="whitening='clusters' is fitted to rows, which moments do not hold"):
        fit("clusters", Moments.of(x))
    with pytest.raises(ValueError, match="k=2 has no meaning for whitening='clusters'"):
        fit_to_rows("clusters", x, k=2)
    with pytest.raises(ValueError, match="weights must be finite, not negative, and not all zero"):
        fit_to_rows("clusters", x, torch.zeros(150))
    with pytest.raises(ValueError, match="x must have d=6 columns, got 5"):
        fit_to_rows("clusters", x)(x[:, :5])
