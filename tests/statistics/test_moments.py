"""Laws of the moments: they are those of NumPy, however the rows were split, weighted or shifted."""

import gc
import weakref

import jaxtyping
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from whitelab.statistics.moments import Moments


def rows(n=50, d=5, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((n, d)) * np.arange(1, d + 1) + 3)


def assert_same(a, b):
    assert a.count == pytest.approx(b.count)
    assert_close(a.mean, b.mean)
    assert_close(a.scatter, b.scatter)


def test_moments_are_numpys():
    x = rows()
    found = Moments.of(x)
    assert (found.count, found.dim) == (50.0, 5)
    np.testing.assert_allclose(found.mean, x.numpy().mean(axis=0))
    np.testing.assert_allclose(found.covariance, np.cov(x.numpy().T))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 49), max_size=6), st.integers(0, 20))
def test_merged_moments_equal_those_of_the_whole(cuts, seed):
    x = rows(seed=seed)
    edges = [0, *sorted(set(cuts)), 50]
    parts = [Moments.of(x[a:b]) for a, b in zip(edges, edges[1:], strict=False)]
    assert_same(Moments.merged(parts), Moments.of(x))
    assert_same(Moments.merged(reversed(parts)), Moments.of(x))


@pytest.mark.parametrize("batch_rows", [1, 7, 50, 1000])
def test_the_batch_size_changes_nothing(batch_rows):
    weights = torch.arange(50) % 4
    assert_same(Moments.of(rows(), batch_rows=batch_rows), Moments.of(rows()))
    assert_same(Moments.of(rows(), weights, batch_rows), Moments.of(rows(), weights))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=8, max_size=8).filter(any))
def test_a_weight_is_a_number_of_repetitions(weights):
    x = rows(8)
    repeated = x.repeat_interleave(torch.tensor(weights), dim=0)
    assert_same(Moments.of(x, weights, batch_rows=3), Moments.of(repeated))


def test_weights_do_matter():
    assert not torch.allclose(Moments.of(rows(8), range(1, 9)).mean, Moments.of(rows(8)).mean)


def test_a_huge_mean_in_float32_does_not_lose_the_scatter():
    steps = torch.from_numpy(np.random.default_rng(1).integers(-8, 9, (4000, 3))).to(torch.float32)
    shifted = steps + 1e6
    assert torch.equal(shifted - 1e6, steps)
    assert_close(Moments.of(shifted).covariance, Moments.of(steps).covariance)
    naive = shifted.T @ shifted / len(steps) - torch.outer(shifted.mean(0), shifted.mean(0))
    assert not torch.allclose(naive.double(), Moments.of(steps).covariance, rtol=0.5)


def test_a_single_row_has_no_scatter():
    found = Moments.of([[1.0, 2.0]])
    assert found.mean.tolist() == [1.0, 2.0]
    assert found.covariance.tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("n", [2, 3, 7, 100])
def test_one_row_repeated_has_no_scatter(n):
    row = torch.tensor([[0.1, -1.7, 3.3, 1e5]], dtype=torch.float64)
    assert Moments.of(row.expand(n, 4)).covariance.abs().max() <= 1e-20


def test_a_row_of_weight_zero_is_not_there_wherever_it_lies():
    x = rows().to(torch.float32)
    far = torch.full((1, 5), 1e12, dtype=torch.float32)
    weights = torch.arange(1.0, 51)
    without = Moments.of(x, weights)
    beside = Moments.of(torch.cat([far, x]), torch.cat([torch.zeros(1), weights]))
    assert_close(beside.scatter, without.scatter, rtol=1e-12, atol=0)
    assert_close(beside.mean, without.mean, rtol=1e-12, atol=0)
    assert not Moments.of(torch.cat([far, x[:1].expand(7, 5)]), [0] + [3] * 7).scatter.any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int64])
def test_every_input_type_gives_float64(dtype):
    x = (100 * rows()).round().clamp(-500, 500).to(dtype)
    assert_same(Moments.of(x), Moments.of(x.double()))
    assert Moments.of(x).scatter.dtype == torch.float64


def test_rows_of_a_network_that_is_training_are_rows():
    x = torch.randn(20, 140, requires_grad=True)
    assert torch.equal(Moments.of(x).scatter, Moments.of(x.detach()).scatter)


def test_values_whose_squares_overflow_float16_are_fine():
    assert Moments.of(torch.tensor([[60000.0], [-60000.0]]).half()).covariance.isfinite().all()


@pytest.mark.parametrize("batch_rows", [0, -1])
def test_no_row_at_a_time_is_refused(batch_rows):
    with pytest.raises(ValueError, match=f"batch_rows={batch_rows} must be a whole number of at least 1"):
        Moments.of(rows(), batch_rows=batch_rows)


def test_nothing_to_merge_is_refused():
    with pytest.raises(ValueError, match="parts must hold at least one Moments, got none"):
        Moments.merged([])


def test_moments_of_other_dimensions_are_refused():
    with pytest.raises(ValueError, match="other must have d=5 dimensions, got 4"):
        Moments.of(rows()).merge(Moments.of(rows(d=4)))


def test_rows_are_no_moments_to_take_in(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # a user runs without the annotations' checks
    with pytest.raises(TypeError, match="other must be Moments, such as .* got Tensor"):
        Moments.of(rows()).merge(rows())


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_numbers_that_are_none_are_refused(bad):
    x = rows()
    x[7, 2] = bad
    with pytest.raises(ValueError, match="x must hold finite numbers, row 7"):
        Moments.of(x)


def test_arguments_are_left_alone():
    x, weights = rows(), torch.ones(50, dtype=torch.float64)
    before = x.clone(), weights.clone()
    part = Moments.of(x, weights, batch_rows=7)
    mean, scatter = part.mean.clone(), part.scatter.clone()
    part.merge(Moments.of(x))
    assert torch.equal(x, before[0])
    assert torch.equal(weights, before[1])
    assert torch.equal(part.mean, mean)
    assert torch.equal(part.scatter, scatter)


# One vector at a time, a moving estimate, higher moments


def test_the_papers_recursion_is_exact_with_the_old_and_the_new_mean_and_not_with_one_of_them():
    """Su et al. 2021, Eq. 10-11, written out; the covariance there is divided by n."""
    x = np.random.default_rng(1).standard_normal((30, 4)) + 5

    def recursion(pair):
        mean, sigma = x[0], np.zeros((4, 4))
        for n, row in enumerate(x[1:], start=1):
            new = n / (n + 1) * mean + row / (n + 1)
            left, right = pair(row - mean, row - new)
            sigma = n / (n + 1) * sigma + np.outer(left, right) / (n + 1)
            mean = new
        return sigma

    expected = np.cov(x.T, bias=True)
    np.testing.assert_allclose(recursion(lambda old, new: (old, new)), expected)
    assert np.abs(recursion(lambda old, new: (new, new)) - expected).max() > 1e-3
    moments = Moments.merged(Moments.of(row[None]) for row in x)
    np.testing.assert_allclose(moments.scatter / 30, expected)


def test_higher_moments_merge_and_are_those_of_the_rows():
    x = np.random.default_rng(3).standard_normal((50, 6)) ** 3 + 10
    weights = np.arange(50) % 3
    parts = [Moments.of(torch.from_numpy(x[i : i + 13]), weights[i : i + 13]) for i in range(0, 50, 13)]
    merged = Moments.merged(parts)
    rows = np.repeat(x, weights, axis=0)
    y = rows - rows.mean(0)
    square = (y**2).sum(1)
    np.testing.assert_allclose(merged.cubic, (square[:, None] * y).sum(0), rtol=1e-7)
    assert merged.quartic == pytest.approx((square**2).sum())
    bare = Moments(merged.count, merged.mean, merged.scatter)
    assert merged.merge(bare).quartic is None


def test_a_stream_of_batches_is_fitted_without_holding_the_rows():
    """A generator is enough: no batch outlives its turn."""
    alive = []

    def batches():
        for seed in range(6):
            batch = torch.randn(100, 5, generator=torch.Generator().manual_seed(seed))
            alive.append(weakref.ref(batch))
            yield Moments.of(batch)

    found = Moments.merged(batches())
    gc.collect()
    assert found.count == 600
    assert all(one() is None for one in alive)
