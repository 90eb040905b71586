"""Laws of the projections: PCA is the SVD, UMAP repeats for a seed and can be stopped."""

import io
import threading

import numpy as np
import pytest
import torch
from torch.testing import assert_close
from tqdm import tqdm

from whitelab.base import own_process
from whitelab.statistics.projection import project


def rows(n=60, d=8, seed=0):
    centres = np.repeat(np.random.default_rng(9).standard_normal((3, d)) * 4, n // 3, axis=0)
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((n, d)) + centres)


@pytest.mark.parametrize("dims", [2, 3])
def test_pca_is_the_svd_up_to_sign(dims):
    x = rows()
    u, s, _ = np.linalg.svd(x.numpy() - x.numpy().mean(axis=0), full_matrices=False)
    expected = torch.from_numpy(u[:, :dims] * s[:dims])
    found = project(x, dims=dims)
    assert_close(found, expected * (expected * found).sum(0).sign())
    assert torch.equal(found, project(x, dims=dims))


def test_directions_that_are_missing_are_0():
    line = torch.outer(torch.arange(5.0), torch.tensor([3.0, 4.0]))
    found = project(line, dims=3)
    assert_close(found[:, 0].abs(), torch.tensor([10.0, 5.0, 0.0, 5.0, 10.0]).double())
    assert found[:, 1:].abs().max() == 0
    assert project(torch.ones(1, 4)).tolist() == [[0.0, 0.0]]
    assert project(rows(d=1), dims=3).shape == (60, 3)


def test_umap_repeats_for_a_seed_reports_and_stops():
    x = rows()
    seen = []
    before = x.clone()
    first = project(x, "umap", seed=1, progress=lambda done, total: seen.append((done, total)))
    assert first.shape == (60, 2)
    assert first.dtype == torch.float64
    assert first.isfinite().all()
    assert torch.equal(first, project(x, "umap", seed=1))
    assert torch.equal(x, before)
    steps = [done for done, _ in seen]
    assert steps == sorted(steps)
    assert steps[0] < steps[-1] == seen[-1][1]
    assert all(0 <= done <= total for done, total in seen)

    calls = []

    def stop(done, total):
        calls.append(done)
        raise InterruptedError("stopped")

    with pytest.raises(InterruptedError, match="stopped"):
        project(x, "umap", seed=1, progress=stop)
    assert max(calls) < seen[-1][1]
    other = threading.Thread(target=lambda: list(tqdm(range(3), file=io.StringIO())), daemon=True)
    other.start()
    other.join(20)
    assert not other.is_alive()  # nobody else's bar waits for the one that was stopped


def test_umap_starts_from_the_graph_of_its_own_search_through_all_pairs(monkeypatch):
    import umap

    x, graphs = rows(), []
    fit = umap.UMAP.fit_transform

    def remembered(self, *args):
        found = fit(self, *args)
        graphs.append(self.graph_.toarray())
        return found

    monkeypatch.setattr(umap.UMAP, "fit_transform", remembered)
    project(x, "umap", neighbors=7)
    unit = x.numpy() / np.linalg.norm(x.numpy(), axis=1, keepdims=True)
    distances = 1 - unit @ unit.T
    np.fill_diagonal(distances, 0)
    nearest = np.argsort(distances, axis=1)[:, :7]
    wanted, *_ = umap.umap_.fuzzy_simplicial_set(
        unit,
        7,
        np.random.RandomState(0),
        "cosine",
        knn_indices=nearest,
        knn_dists=np.take_along_axis(distances, nearest, axis=1).astype(np.float32),
    )
    np.testing.assert_allclose(graphs[0], wanted.toarray(), atol=1e-5)
    assert (graphs[0] > 0).sum() < len(x) ** 2 / 2


def test_umap_leaves_torch_its_threads(monkeypatch):
    import umap

    usual, fit = torch.get_num_threads(), umap.UMAP.fit_transform

    def as_at_first(self, *args):
        torch.set_num_threads(usual + 1)  # as numba does once in a process, when it starts threads of its own
        return fit(self, *args)

    monkeypatch.setattr(umap.UMAP, "fit_transform", as_at_first)
    try:
        project(rows(), "umap")
        assert torch.get_num_threads() == usual
    finally:
        torch.set_num_threads(usual)


def test_umap_apart_is_umap_here_in_another_process_which_outlives_a_stop():
    x, seen = rows(), []
    found = project(x, "umap", seed=1, progress=lambda done, total: seen.append((done, total)), apart=True)
    assert torch.equal(found, project(x, "umap", seed=1))
    assert all(0 <= done <= total for done, total in seen)

    def stop(done, total):
        raise InterruptedError("stopped")

    (worker,) = own_process._executor("UMAP")._processes.values()
    with pytest.raises(InterruptedError, match="stopped"):
        project(rows(n=3000), "umap", seed=1, progress=stop, apart=True)
    assert torch.equal(found, project(x, "umap", seed=1, apart=True))
    assert list(own_process._executor("UMAP")._processes) == [worker.pid]


def test_umap_of_very_few_rows_is_refused():
    with pytest.raises(ValueError, match="method='umap' needs at least 5 sentences, got 4; use method='pca'"):
        project(rows()[:4], "umap")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "tsne"}, "method='tsne' must be one of pca, umap"),
        ({"dims": 4}, "dims=4 must lie between 2 and 3"),
        ({"dims": 1}, "dims=1 must lie between 2 and 3"),
        ({"method": "umap", "seed": -1}, "seed=-1 must lie between 0 and"),
    ],
)
def test_settings_that_do_not_exist_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        project(rows(), **settings)


def test_numbers_that_are_none_are_refused():
    x = rows()
    x[3, 1] = float("inf")
    for method in ("pca", "umap"):
        with pytest.raises(ValueError, match="x must hold finite numbers, row 3"):
            project(x, method)
