"""Laws of the search for neighbours: float32 finds, float64 decides, and nothing nearer is ever missed."""

import numpy as np
import pytest
import reference
import torch
from progressing import progressed
from torch.testing import assert_close

from whitelab.statistics.geometry import nearest, nearest_rows, neighbours

TOPS = {"cosine": 10, "euclidean": 20}


@pytest.fixture
def tiles(monkeypatch):
    """The search in tiles, with spare groups few and tiles that do not divide the rows, on a few hundred rows."""
    monkeypatch.setattr(neighbours, "_SMALL", 0)
    monkeypatch.setattr(neighbours, "_GROUP", 4)
    monkeypatch.setattr(neighbours, "_TILE", 64)
    monkeypatch.setattr(neighbours, "_ROWS", 100)
    monkeypatch.setattr(neighbours, "_ROWS_IN_FULL", 50)


@pytest.fixture
def searched_in_full(monkeypatch):
    """How many rows float64 had to score against all others."""
    rows, real = [], neighbours._Score.in_full

    def counted(self, top, doubt=None):
        rows.append(len(self.table) if doubt is None else len(doubt))
        return real(self, top, doubt)

    monkeypatch.setattr(neighbours._Score, "in_full", counted)
    return rows


def cone(n=333, d=24, seed=0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed)).double() * torch.logspace(0, -1, d) + 0.5


@pytest.mark.parametrize("n", [256, 333, 250])
def test_neighbours_in_tiles_are_those_of_a_plain_search(n, tiles, searched_in_full):
    x = cone(n)
    found = nearest_rows(x, TOPS)
    assert searched_in_full == []
    cosines = reference.unit(x) @ reference.unit(x).T
    lists = reference.lists(cosines, 10)
    assert found["cosine"].rows.tolist() == lists.tolist()
    assert_close(found["cosine"].values, torch.from_numpy(np.take_along_axis(cosines, lists, 1)))
    near = reference.distances(x, 20)
    assert_close(found["euclidean"].values, torch.from_numpy(near))
    rows = found["euclidean"].rows
    assert_close((x[:, None] - x[rows]).norm(dim=2), torch.from_numpy(near))
    assert all(i not in row for i, row in enumerate(rows.tolist()))
    assert nearest(x).tolist() == lists.tolist()


def test_autocast_changes_no_neighbour(tiles):
    expected = nearest_rows(cone(), TOPS)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = nearest_rows(cone(), TOPS)
    for metric in TOPS:
        assert torch.equal(found[metric].rows, expected[metric].rows)
        assert torch.equal(found[metric].values, expected[metric].values)


def test_rows_that_float32_cannot_tell_apart_are_told_apart(tiles, searched_in_full):
    x = cone(300)
    x[:150] = x[0] + 1e-6 * torch.randn(150, 24, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found = nearest_rows(x, TOPS)
    assert 0 < sum(searched_in_full) < 2 * 300
    assert_close(found["euclidean"].values, torch.from_numpy(reference.distances(x, 20)), rtol=1e-4, atol=1e-12)
    cosines = -np.sort(-(reference.unit(x) @ reference.unit(x).T), axis=1)[:, 1:11]
    assert_close(found["cosine"].values, torch.from_numpy(cosines))


def test_rows_of_a_network_that_is_training_have_neighbours():
    x = torch.randn(20, 3)
    assert torch.equal(nearest(x.clone().requires_grad_()), nearest(x))


def test_doubles_zeros_and_one_point_have_neighbours(tiles):
    x = cone(300)
    x[7], x[100] = x[200], 0
    found = nearest_rows(x, TOPS)
    assert found["euclidean"].values[7, 0] == 0
    assert found["euclidean"].rows[7, 0] == 200
    assert (found["cosine"].values[100] == 0).all()
    same = nearest_rows(torch.ones(200, 3), TOPS)
    assert (same["euclidean"].values == 0).all()
    assert_close(same["cosine"].values, torch.ones(200, 10, dtype=torch.float64))


def test_lengths_far_apart_are_left_to_float64(tiles, searched_in_full):
    x = cone(300)
    x[5] *= 1e-30
    assert_close(nearest_rows(x, TOPS)["euclidean"].values, torch.from_numpy(reference.distances(x, 20)))
    assert searched_in_full == [300, 300]


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_scale_changes_no_neighbour(scale, tiles):
    one, other = nearest_rows(cone(), TOPS), nearest_rows(scale * cone(), TOPS)
    for metric in TOPS:
        assert torch.equal(one[metric].rows, other[metric].rows)


def test_progress_counts_tiles_and_can_stop_the_search(tiles):
    assert progressed(lambda progress: nearest_rows(cone(), TOPS, progress)) == [(i, 21) for i in range(1, 22)]


def test_what_cannot_be_searched_is_refused():
    with pytest.raises(ValueError, match="metric='manhattan' must be one of cosine, euclidean"):
        nearest_rows(cone(), {"manhattan": 3})
    with pytest.raises(ValueError, match="top=20 must lie between 1 and n-1=4"):
        nearest_rows(cone()[:5], {"euclidean": 20})
    with pytest.raises(ValueError, match="x must hold finite numbers, row 1"):
        nearest_rows(torch.tensor([[1.0, 2.0], [float("nan"), 1.0]]), {"cosine": 1})
