"""Laws of the search costs: recall is brute force, memory is k/d, the synthetic rows have the task's moments."""

import json
from dataclasses import replace

import faiss
import numpy as np
import pytest
import reference
import torch

from whitelab import whitening
from whitelab.base.machine import processor
from whitelab.base.progress import silent
from whitelab.retrieval import search_cost
from whitelab.retrieval.search_cost import MAX_BYTES, SearchPlan, default_ks, search_costs, unit_rows, without_self
from whitelab.scoring.setting import Setting
from whitelab.statistics.moments import Moments
from whitelab.whitening import WHITENERS, whitens

TAKES_K = [name for name, variant in WHITENERS.items() if variant.takes_k]


def measured(space, variant="pca", layers=(0, 3), corpus=None, progress=silent, **more):
    """Few rounds, and no synthetic rows unless asked for: recall is the same for any number of rounds."""
    plan = {"ks": (3, 6, 12), "top": 5, "queries": 60, "rounds": 2, "corpus": corpus or space.n_sentences} | more
    return search_costs(space, Setting(layers, variant), SearchPlan(**plan), progress)


def by_k(found, name):
    return {row.k: getattr(row, name) for row in found.rows}


def drawn(space, layers, variant, corpus, seed=0):
    """The rows of a corpus, raw and through the variant."""
    moments = space.moments(layers)
    fitted = search_cost._nested(variant, moments, whitening.directions(variant, moments))
    chunks = search_cost.filled_corpus(space, layers, moments, fitted, corpus, np.random.default_rng(seed))
    raw, z = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
    return raw, z, fitted


# Recall


@pytest.mark.parametrize("variant", TAKES_K)
def test_recall_is_that_of_brute_force(any_space, variant):
    found = measured(any_space, variant)
    raw = reference.combined(any_space, (0, 3))
    spaces = {k: reference.transformed(any_space, (0, 3), variant, k) for k in (3, 6, 12)}
    for row in found.rows:
        assert row.recall == pytest.approx(reference.recall(spaces[12], spaces[row.k], 5), abs=1e-9)
        if not (whitens(variant) and row.k >= any_space.n_sentences - 1):  # where all whitened cosines tie
            assert row.raw_recall == pytest.approx(reference.recall(raw, spaces[row.k], 5), abs=1e-9)


@pytest.mark.parametrize("variant", ["pca", "center"])
def test_recall_among_synthetic_rows_is_that_of_brute_force(space, variant):
    # The queries are drawn before the rows, so the generator is brought to the same place.
    found = measured(space, variant, corpus=500, queries=60)
    rng = np.random.default_rng(0)
    rng.permutation(space.n_sentences)
    moments = space.moments((0, 3))
    fitted = search_cost._nested(variant, moments, whitening.directions(variant, moments))
    parts = search_cost.filled_corpus(space, (0, 3), moments, fitted, 500, rng)
    raw, z = (np.concatenate(part) for part in zip(*parts, strict=True))
    own = slice(0, space.n_sentences)
    for row in found.rows:
        for name, true in (("recall", z), ("raw_recall", raw)):
            cosines, best = reference.neighbours(true, 5)
            _, ids = reference.neighbours(z[:, : row.k], 5)
            last = np.take_along_axis(cosines, best[:, -1:], axis=1)
            hits = np.take_along_axis(cosines, ids, axis=1) >= last - 1e-6
            assert getattr(row, name) == pytest.approx(hits[own].mean(), abs=1e-9)


@pytest.mark.parametrize("variant", TAKES_K)
def test_all_dimensions_find_all_their_own_neighbours_and_fewer_do_not(any_space, variant):
    found = measured(any_space, variant)
    assert found.rows[-1].k == 12
    assert found.rows[-1].recall == 1.0
    assert found.rows[0].recall < 1.0
    # The neighbours of another space, but for all coordinates, which are the raw vectors.
    assert (found.rows[-1].raw_recall < 1.0) == (variant != "prefix")


def test_a_k_above_the_rank_loses_nothing(thin):
    found = measured(thin, ks=(3, 7, 9), layers=(1,), top=2)
    assert found.rank == 7
    assert by_k(found, "dim") == {3: 3, 7: 7, 9: 7, 12: 7}
    assert found.rows[1].recall == found.rows[2].recall == 1.0
    found = measured(thin, "shrunk", ks=(3, 7, 9), layers=(1,), top=2)
    assert (found.rank, by_k(found, "dim")) == (12, {3: 3, 7: 7, 9: 7, 12: 12})
    assert found.rows[1].recall == found.rows[2].recall


def test_whitening_variants_cost_and_find_the_same(space):
    found = [measured(space, name) for name in ("pca", "zca", "cholesky", "center")]
    recalls = [(by_k(one, "recall"), by_k(one, "raw_recall"), by_k(one, "bytes")) for one in found]
    assert recalls[0] == recalls[1] == recalls[2]
    assert recalls[0] != recalls[3]


def test_a_tie_with_the_last_neighbour_counts():
    index = faiss.IndexFlatIP(2)
    rows = np.array([[1, 0], [0.8, 0.6], [0.8, 0.6], [0.6, 0.8], [0, 1]], dtype=np.float32)
    index.add(rows)
    own = np.array([0])
    assert search_cost.recall(index, own, np.array([[1]]), np.array([[2]])) == 1.0
    assert search_cost.recall(index, own, np.array([[1]]), np.array([[3]])) == 0.0
    assert search_cost.recall(index, own, np.array([[1, 2]]), np.array([[2, 3]])) == 0.5


def test_repeated_vectors_are_found_in_every_space(space):
    # Four sentences share each vector; any three of a sentence's equals are as good as any others.
    values = space.values[:, :15].repeat(1, 4, 1)
    found = measured(replace(space, values=values), top=3)
    assert set(by_k(found, "recall").values()) == {1.0}
    assert set(by_k(found, "raw_recall").values()) == {1.0}


def test_a_query_is_not_its_own_neighbour():
    ids = np.array([[7, 1, 2], [1, 7, 2], [1, 2, 7], [1, 2, 3]])
    own = np.array([7, 7, 7, 7])
    assert without_self(ids, own).tolist() == [[1, 2], [1, 2], [1, 2], [1, 2]]


def test_unit_rows_have_length_1_and_zero_stays_zero():
    x = np.array([[3, 4, 9], [0, 0, 9]], dtype=np.float32)
    assert unit_rows(x[:, :2]).tolist() == [[np.float32(0.6), np.float32(0.8)], [0, 0]]
    assert unit_rows(x[:, :2]).flags.c_contiguous


# Memory and time


@pytest.mark.parametrize("corpus", [60, 333])
def test_memory_is_k_over_d_of_float32(space, corpus):
    found = measured(space, corpus=corpus)
    assert by_k(found, "bytes") == {3: corpus * 12, 6: corpus * 24, 12: corpus * 48}
    assert [found.memory_ratio(row) for row in found.rows] == [0.25, 0.5, 1.0]


def test_at_reduced_rank_only_the_kept_columns_are_stored(layernorm):
    found = measured(layernorm, layers=(1,))
    assert (found.rank, found.rows[-1].bytes) == (11, 60 * 11 * 4)
    assert found.memory_ratio(found.rows[0]) == 3 / 11


def test_times_are_positive_with_their_quartiles_around_them_and_d_is_the_measure(space):
    found = measured(space, corpus=2000, rounds=9)
    for row in found.rows:
        low, high = row.milliseconds_quartiles
        assert 0 < low <= row.milliseconds <= high
        low, high = row.time_ratio_quartiles
        assert 0 < low <= row.time_ratio <= high
        assert row.queries_per_second > 0
    assert found.rows[-1].time_ratio == 1
    assert found.rows[-1].time_ratio_quartiles == (1, 1)


def test_the_machine_is_named(space):
    assert measured(space, threads=2).machine == f"{processor(2)}, faiss {faiss.__version__}"


@pytest.mark.parametrize("stop_at", [None, 1, 5])
def test_faiss_is_left_as_it_was_also_when_stopped(space, stop_at):
    before, threshold = faiss.omp_get_max_threads(), faiss.cvar.distance_compute_blas_threshold
    seen = []

    def progress(done, total):
        seen.append(faiss.omp_get_max_threads())
        if done == stop_at:
            raise InterruptedError("stopped")

    faiss.omp_set_num_threads(3)
    try:
        if stop_at:
            with pytest.raises(InterruptedError, match="stopped"):
                measured(space, threads=2, progress=progress)
        else:
            measured(space, threads=2, progress=progress)
        assert faiss.omp_get_max_threads() == 3
        assert faiss.cvar.distance_compute_blas_threshold == threshold
    finally:
        faiss.omp_set_num_threads(before)
    assert set(seen) == {2}
    assert stop_at is None or len(seen) == stop_at


def test_progress_runs_to_its_total(space):
    seen = []
    measured(space, corpus=9000, progress=lambda done, total: seen.append((done, total)))
    total = seen[-1][1]
    assert seen == [(done, total) for done in range(1, total + 1)]


# The synthetic rows


@pytest.mark.parametrize("variant", TAKES_K)
def test_synthetic_rows_have_the_mean_and_covariance_of_the_task(any_space, variant):
    n = any_space.n_sentences
    rows = reference.task_rows(any_space, (0, 3))
    raw, _, _ = drawn(any_space, (0, 3), variant, 40_000)
    assert len(raw) == 40_000
    mean, covariance = rows.mean(axis=0), np.cov(rows.T)
    scale = np.sqrt(np.diag(covariance).max())
    assert np.abs(raw[n:].mean(axis=0) - mean).max() < 0.03 * scale
    assert np.abs(np.cov(raw[n:].T) - covariance).max() < 0.05 * scale**2
    # Unlike those of a Gaussian with the same variances and no correlation.
    assert np.abs(np.diag(np.diag(covariance)) - covariance).max() > 0.1 * scale**2


@pytest.mark.parametrize("variant", TAKES_K)
def test_a_synthetic_row_is_what_the_map_makes_of_its_raw_row(any_space, variant):
    raw, z, fitted = drawn(any_space, (1, 2), variant, 300)
    expected = fitted(torch.from_numpy(raw)).numpy()
    np.testing.assert_allclose(z, expected, atol=1e-3)
    at_3 = whitening.fit(variant, any_space.moments((1, 2)), 3)(torch.from_numpy(raw)).numpy()
    np.testing.assert_allclose(z[:, :3] @ z[:, :3].T, at_3 @ at_3.T, atol=1e-2)


def test_synthetic_rows_are_white_after_whitening_and_not_before(space):
    raw, z, _ = drawn(space, (1,), "pca", 40_000)
    white = Moments.of(torch.from_numpy(z[space.n_sentences :])).covariance
    assert np.abs(white.numpy() - np.eye(12)).max() < 0.05
    assert np.abs(np.cov(raw.T) - np.eye(12)).max() > 0.5


def test_the_corpus_starts_with_the_sentences(space):
    raw, z, _ = drawn(space, (0, 3), "pca", 100)
    np.testing.assert_allclose(raw[:60], reference.combined(space, (0, 3)), rtol=1e-6)
    np.testing.assert_allclose(
        np.abs(z[:60]), np.abs(reference.transformed(space, (0, 3), "pca")), rtol=1e-4, atol=1e-5
    )


def test_the_chunk_size_changes_nothing(space, monkeypatch):
    whole = drawn(space, (1,), "center", 1000)
    recalls = by_k(measured(space, corpus=1000), "recall")
    monkeypatch.setattr(search_cost, "_CHUNK_ROWS", 37)
    monkeypatch.setattr(search_cost, "_BATCH_QUERIES", 7)
    for a, b in zip(whole[:2], drawn(space, (1,), "center", 1000)[:2], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    assert by_k(measured(space, corpus=1000), "recall") == recalls


def test_equal_seeds_repeat_and_others_differ(space):
    first, again, other = (by_k(measured(space, corpus=500, seed=seed), "raw_recall") for seed in (1, 1, 2))
    assert first == again != other


# Arguments


def test_the_default_ks_halve_d_and_hold_the_chosen_k():
    assert default_ks(384) == (24, 48, 96, 192, 384)
    assert default_ks(384, 128) == (24, 48, 96, 128, 192, 384)
    assert default_ks(384, 96) == default_ks(384)
    assert default_ks(3) == (1, 3)
    assert default_ks(1) == (1,)
    with pytest.raises(ValueError, match="k=400 must lie between 1 and d=384"):
        default_ks(384, 400)


def test_d_is_always_measured_and_ks_are_sorted(space):
    assert tuple(by_k(measured(space, ks=(6, 3, 6)), "k")) == (3, 6, 12)
    assert tuple(by_k(measured(space, ks=None), "k")) == (1, 3, 6, 12)


def test_the_nearest_measured_k_is_found(space):
    found = measured(space)
    assert [found.nearest(k).k for k in (1, 4, 5, 6, 9, 10, 12)] == [3, 3, 6, 6, 6, 12, 12]


def test_a_record_is_json_with_flat_rows(space):
    record = json.loads(json.dumps(measured(space).as_dict()))
    assert record["machine"].endswith(faiss.__version__)
    assert record["setting"] == "mean/L0+L3:pca"
    assert {"k", "bytes", "memory_ratio", "milliseconds", "milliseconds_q1", "time_ratio_q3", "recall"} <= set(
        record["rows"][0]
    )


def test_more_queries_than_sentences_are_all_sentences(space):
    assert measured(space, queries=1000).queries == 60
    assert measured(space, queries=10).queries == 10


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"corpus": 59}, "corpus=59 must be at least n=60, the task's sentences"),
        ({"corpus": 100_000_000}, r"corpus=100000000 needs 12\.3 GiB for d=12 and 3 values of k, more than 4 GiB"),
        ({"corpus": -1}, "corpus=-1 must be a whole number of at least 1"),
        ({"top": 60}, "top=60 must lie between 1 and corpus - 1=59"),
        ({"seed": -1}, "seed=-1 must be a whole number of at least 0"),
        ({"top": 0}, "top=0 must lie between 1 and corpus - 1=59"),
        ({"ks": (0,)}, "k=0 must lie between 1 and d=12"),
        ({"ks": (13,)}, "k=13 must lie between 1 and d=12"),
        ({"queries": 0}, "queries=0 must be a whole number of at least 1"),
        ({"rounds": 0}, "rounds=0 must be a whole number of at least 1"),
        ({"threads": 0}, "threads=0 must be a whole number of at least 1"),
        ({"layers": (9,)}, r"layers=\[9\] must lie between 0 and 3"),
        ({"variant": "none"}, "k has no meaning for whitening='none'"),
        ({"variant": "standardize"}, "k has no meaning for whitening='standardize'"),
    ],
    ids=str,
)
def test_awkward_arguments_are_refused(space, plan, message):
    with pytest.raises(ValueError, match=message):
        measured(space, **plan)


def test_the_largest_corpus_is_that_of_the_limit(space, monkeypatch):
    needed = search_cost.bytes_needed(12, 100, (3, 6, 12))
    assert needed == 100 * 4 * (3 + 6 + 12 + 12) < MAX_BYTES
    monkeypatch.setattr(search_cost, "MAX_BYTES", needed)
    assert measured(space, corpus=100).corpus == 100
    with pytest.raises(ValueError, match="corpus=101 needs"):
        measured(space, corpus=101)


def test_sentences_that_are_all_alike_cannot_be_searched(space):
    with pytest.raises(ValueError, match=r"layers=\[1\] give every sentence the same vector"):
        measured(replace(space, values=torch.ones(4, 60, 12)), layers=(1,))


def test_arguments_are_left_alone(space):
    before = space.values.clone()
    measured(space)
    assert torch.equal(space.values, before)
