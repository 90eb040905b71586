"""Laws of the k-curve: running sums equal the plain path at every k, and so does a heatmap read off the curves."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import reference
import torch
from progressing import progressed

from tests.conftest import make_space
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.scoring.setting import Setting
from whitelab.statistics.correlation import AGGREGATES
from whitelab.sweeps import dimensions
from whitelab.sweeps.dimensions import KCurve, k_curve, k_curves, pair_curves, pairs_at
from whitelab.sweeps.layer_pairs import layer_pairs
from whitelab.whitening import WHITENERS

TAKES_K = [name for name, variant in WHITENERS.items() if variant.takes_k]


PCA = Setting((1,), "pca")


def none_or(score):
    """What a curve says where the oracle says `score`: nothing of cosines that are all 1."""
    return None if score != score else pytest.approx(score, abs=1e-9)


@pytest.mark.parametrize("variant", [*TAKES_K, "soft:gamma=auto"])
@pytest.mark.parametrize("layers", [(2,), (0, 3)])
def test_the_curve_is_the_plain_path_at_every_k(any_space, variant, layers):
    curve = k_curve(any_space, Setting(layers, variant))
    first, second, gold, subset = (
        part.numpy() for part in (any_space.first, any_space.second, any_space.gold, any_space.subset)
    )
    assert curve.k == tuple(range(1, 13))
    for k, score in zip(curve.k, curve.spearman, strict=True):
        z = reference.transformed(any_space, layers, variant, k)
        cosines = reference.pair_cosines(z[first], z[second])
        assert score == none_or(100 * reference.spearman(cosines, gold))
        for number, name in enumerate(any_space.subset_names if any_space.n_subsets > 1 else ()):
            own = 100 * reference.spearman(cosines[subset == number], gold[subset == number])
            assert curve.subsets[name][k - 1] == none_or(own)


@pytest.mark.parametrize("how", AGGREGATES)
@pytest.mark.parametrize("variant", ["pca", "center"])
def test_the_curve_is_the_plain_path_under_every_aggregate(space, variant, how):
    for k, score in enumerate(k_curve(space, Setting((1, 2), variant, aggregate=how)).spearman, start=1):
        assert score == pytest.approx(reference.score(space, (1, 2), variant, k, how), abs=1e-9)


def test_the_k_of_the_setting_does_not_count(space):
    assert k_curve(space, Setting((1,), "pca", 3)) == k_curve(space, PCA)


def test_whitening_variants_share_a_curve_and_center_has_another(space):
    curves = {name: k_curve(space, Setting((1,), name)).spearman for name in TAKES_K}
    assert curves["pca"] == curves["zca"] == curves["cholesky"]
    assert curves["center"] != curves["pca"]


def test_above_the_rank_the_curve_is_flat(thin, space):
    curve = k_curve(thin, PCA)
    assert curve.rank == 7
    assert set(curve.spearman[6:]) == {curve.spearman[6]}
    assert set(curve.explained[7:]) == {1.0}
    full = k_curve(space, PCA)
    assert full.rank == 12
    assert len(set(full.spearman[6:])) > 1
    shrunk = k_curve(thin, Setting((1,), "shrunk"))
    assert shrunk.ranks == (1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 7, 12)
    assert set(shrunk.spearman[6:11]) == {shrunk.spearman[6]}


def test_the_end_of_the_curve_is_the_score_without_k(any_space):
    for variant in TAKES_K:
        expected = reference.score(any_space, (1,), variant)
        assert k_curve(any_space, Setting((1,), variant)).spearman[-1] == pytest.approx(expected, abs=1e-9)


def test_the_explained_share_grows_to_1(any_space):
    curve = k_curve(any_space, PCA)
    _, variance, _ = reference.directions(reference.task_rows(any_space, (1,)))
    expected = np.cumsum(variance) / variance.sum()
    np.testing.assert_allclose(curve.explained[: curve.rank], expected, rtol=1e-9)
    np.testing.assert_allclose(curve.explained[curve.rank :], 1.0)


@pytest.mark.parametrize("chunk", [1, 5, 12])
def test_the_chunk_size_changes_nothing(space, monkeypatch, chunk):
    whole = k_curve(space, PCA)
    monkeypatch.setattr(dimensions, "_COLUMNS_PER_CHUNK", chunk)
    assert k_curve(space, PCA) == whole


def test_subsets_can_be_left_out_and_are_with_a_single_one(space, thin):
    assert k_curve(space, PCA, by_subset=False).subsets == {}
    assert k_curve(thin, PCA).subsets == {}
    assert set(k_curve(space, PCA).subsets) == set(space.subset_names)


def curve_of(*scores):
    ks = tuple(range(1, len(scores) + 1))
    return KCurve(scores, {}, (1.0,) * len(scores), ks, len(scores), Setting((0,), "pca"))


def test_the_best_k_is_the_smallest_of_equals_and_the_knee_is_within_half_a_point():
    curve = curve_of(10.0, None, 59.4, 59.6, 60.0, 60.0, 58.0)
    assert (curve.best_k, curve.knee) == (5, 4)
    assert curve_of(60.0, 60.5).knee == 1
    assert (curve_of(None, None).best_k, curve_of(None, None).knee) == (None, None)


@pytest.mark.parametrize("name", ["none", "standardize", "ica"])
def test_a_variant_without_k_has_no_curve(space, name):
    with pytest.raises(
        ValueError, match=f"has no meaning for whitening='{name}'|whitening='{name}' must be one of none, center"
    ):
        k_curve(space, Setting((1,), name))


def test_undefined_scores_are_none(space):
    flat = replace(space, gold=torch.ones_like(space.gold))
    assert set(k_curve(flat, PCA).spearman) == {None}
    repeated = replace(space, values=space.values[:, :1].expand(4, 60, 12))
    assert set(k_curve(repeated, PCA).spearman) == {None}
    zero = k_curve(replace(space, values=torch.zeros(4, 60, 12)), PCA)
    assert (zero.rank, set(zero.spearman), zero.best_k) == (0, {None}, None)
    assert zero.subsets["part 0"] == (None,) * 12
    kept = k_curve(replace(space, values=torch.zeros(4, 60, 12)), Setting((1,), "soft:gamma=0"))
    assert (kept.ranks, set(kept.spearman)) == ((0,) * 11 + (12,), {None})


def test_few_distinct_sentences_have_a_curve_up_to_the_last_direction_but_one(distinct):
    curve = k_curve(distinct, PCA)
    assert curve.rank == 35
    assert set(curve.spearman[34:]) == {None}
    assert None not in curve.spearman[:34]
    for values in curve.subsets.values():
        assert set(values[34:]) == {None}
        assert None not in values[:34]
    assert curve.best_k <= 34
    assert None not in k_curve(distinct, Setting((1,), "center")).spearman


def test_one_dimension_has_a_curve_of_one(space):
    curve = k_curve(replace(space, values=space.values[:, :, :1]), PCA)
    assert (curve.k, curve.rank, curve.best_k) == ((1,), 1, 1)


def test_awkward_input_is_refused(space):
    values = space.values.clone()
    values[1, 7, 2] = float("nan")
    with pytest.raises(ValueError, match="x must hold finite numbers, row 7"):
        k_curve(replace(space, values=values), PCA)
    with pytest.raises(ValueError, match=r"layers=\[9\] must lie between 0 and 3"):
        k_curve(space, PCA.with_(layers=(9,)))


def test_arguments_are_left_alone(space):
    before = space.values.clone()
    k_curve(space, PCA)
    assert torch.equal(space.values, before)


def test_every_layer_has_its_curve_unless_sets_are_named(any_space):
    for variant in ("pca", "center"):
        setting = Setting(whitening=variant)
        assert k_curves(any_space, setting) == [k_curve(any_space, setting.with_(layers=(i,))) for i in range(4)]
    sets, setting = [(2,), (0, 3), (1, 2, 3)], Setting(whitening="zca", aggregate="mean")
    curves = k_curves(any_space, setting, sets, by_subset=False)
    assert curves == [k_curve(any_space, setting.with_(layers=layers), by_subset=False) for layers in sets]
    assert [curve.setting.layers for curve in curves] == sets
    assert k_curves(any_space, PCA, []) == []


def test_many_sets_share_their_moments_and_find_the_same(space, layernorm, monkeypatch):
    sets = [layers for size in (1, 2, 3, 4) for layers in combinations(range(4), size)]
    for task in (space, layernorm):
        expected = [k_curve(task, PCA.with_(layers=layers)) for layers in sets]
        with monkeypatch.context() as patch:
            patch.setattr(LayerEmbeddings, "moments", None)  # a shared scatter needs no moments of its own
            curves = k_curves(task, PCA, sets)
        for curve, plain_curve in zip(curves, expected, strict=True):
            assert (curve.setting, curve.rank) == (plain_curve.setting, plain_curve.rank)
            assert curve.spearman == pytest.approx(plain_curve.spearman, abs=1e-9)
            assert curve.explained == pytest.approx(plain_curve.explained, abs=1e-9)
            for name, scores in curve.subsets.items():
                assert scores == pytest.approx(plain_curve.subsets[name], abs=1e-9)


def test_progress_counts_the_curves_and_can_stop_them(space):
    assert progressed(lambda progress: k_curves(space, PCA, progress=progress)) == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_curves_that_do_not_exist_are_refused_before_the_first(space):
    with pytest.raises(ValueError, match="k has no meaning for whitening='none'"):
        k_curves(space, Setting())
    with pytest.raises(ValueError, match=r"layers=\[4\] must lie between 0 and 3"):
        k_curves(space, PCA, [(0,), (4,)], progress=lambda done, total: pytest.fail("a curve was made"))


@pytest.mark.parametrize("variant", TAKES_K)
def test_a_heatmap_read_off_the_curves_is_that_of_the_maps_at_that_k(any_space, variant):
    curves = pair_curves(any_space, Setting(whitening=variant))
    cases = [(curves, Setting(whitening=variant, k=k)) for k in (1, 9, None)]
    if any_space.n_pairs >= 20:  # enough to be halved
        halves = Setting(whitening=variant, k=7, fit="cross")
        cases.append((pair_curves(any_space, halves.with_(k=None)), halves))
    for curves, maps in cases:
        heatmap = pairs_at(curves, maps.k)
        # Without k, centring also keeps what has no variance, which no curve does.
        expected = layer_pairs(any_space, maps.with_(k=12) if variant == "center" and maps.k is None else maps)
        assert heatmap.setting == expected.setting
        for cell, other in zip(heatmap.cells, expected.cells, strict=True):
            assert cell.layers == other.layers
            assert cell.spearman == pytest.approx(other.spearman, abs=1e-6)
            assert cell.rank == other.rank


def test_curves_are_the_same_in_inference_mode_whose_threads_write_into_its_tensors():
    usual, threads = make_space(), torch.get_num_threads()
    setting = Setting.parse("L1+L2:pca")
    try:
        torch.set_num_threads(2)
        with torch.inference_mode():
            here = make_space()
            found = k_curve(here, setting), k_curves(here, setting), pair_curves(here, setting)
    finally:
        torch.set_num_threads(threads)
    assert found == (k_curve(usual, setting), k_curves(usual, setting), pair_curves(usual, setting))
