"""Laws of moments and sums of layers: those of the average, and dot products, however they are cut."""

from dataclasses import replace

import pytest
import reference
import torch
from torch.testing import assert_close

from whitelab.sweeps import layer_moments
from whitelab.sweeps.layer_moments import LayerMoments, layer_means, pair_grams


@pytest.mark.parametrize("chunk", [1, 7, 80])
def test_grams_are_dot_products_whatever_the_chunk(space, monkeypatch, chunk):
    monkeypatch.setattr(layer_moments, "_PAIRS_PER_CHUNK", chunk)
    ab, aa, bb = pair_grams(space)
    a, b = (space.values[:, rows].double() for rows in (space.first, space.second))
    for i, j in ((0, 0), (1, 3), (3, 1)):
        assert_close(ab[i, j], (a[i] * b[j]).sum(-1))
        assert_close(aa[i, j], (a[i] * a[j]).sum(-1))
        assert_close(bb[i, j], (b[i] * b[j]).sum(-1))


def test_grams_can_be_taken_about_the_means(space):
    means = torch.arange(48.0, dtype=torch.float64).view(4, 12) / 10
    moved = replace(space, values=space.values.double() - means[:, None])
    for found, expected in zip(pair_grams(space, means), pair_grams(moved), strict=True):
        assert_close(found, expected)


@pytest.mark.parametrize("layers", [(2,), (0, 3), (0, 1, 2, 3)])
def test_moments_from_blocks_equal_those_of_the_average(any_space, layers):
    found, expected = LayerMoments.of(any_space).average(layers), any_space.moments(layers)
    assert found.count == expected.count
    assert_close(found.mean, expected.mean)
    assert_close(found.scatter, expected.scatter, atol=1e-9, rtol=1e-9)
    rows = torch.from_numpy(reference.task_rows(any_space, layers))
    assert_close(found.covariance, rows.T.cov(), atol=1e-9, rtol=1e-9)


def test_the_means_are_those_of_every_occurrence(any_space):
    for layer, mean in enumerate(layer_means(any_space)):
        assert_close(mean, torch.from_numpy(reference.task_rows(any_space, (layer,)).mean(axis=0)))
