"""Laws of the layer pairs: the fast paths equal the plain path a cell, with the rank of the score."""

from dataclasses import replace

import pytest
import reference
import torch
from progressing import progressed

from tests.conftest import OF_MOMENTS
from whitelab.scoring.score import score
from whitelab.scoring.setting import Setting
from whitelab.statistics.correlation import AGGREGATES
from whitelab.sweeps.layer_pairs import LayerCell, LayerPairs, highest, layer_pairs
from whitelab.whitening import WHITENERS

RAW, PCA = Setting(), Setting(whitening="pca")
SETTINGS = [(name, k) for name, variant in OF_MOMENTS.items() for k in ((None, 5) if variant.takes_k else (None,))]


def plain(space, cell, setting):
    layers = tuple(sorted(set(cell.layers)))
    return reference.score(space, layers, setting.whitening, setting.k, setting.aggregate)


@pytest.mark.parametrize(("variant", "k"), SETTINGS)
def test_every_cell_is_the_plain_path_and_has_the_rank_of_its_score(any_space, variant, k):
    setting = Setting(whitening=variant, k=k)
    heatmap = layer_pairs(any_space, setting)
    assert [cell.layers for cell in heatmap.cells] == [(i, j) for i in range(4) for j in range(i, 4)]
    for cell in heatmap.cells:
        assert cell.spearman == pytest.approx(plain(any_space, cell, setting), abs=1e-9)
        layers = tuple(sorted(set(cell.layers)))
        assert cell.rank == score(any_space, setting.with_(layers=layers), isotropy=False).rank


def test_cells_differ_unless_sentences_are_too_few_to_tell_layers_apart(space, thin):
    assert len({round(cell.spearman, 6) for cell in layer_pairs(space, PCA).cells}) == 10
    assert len({round(cell.spearman, 6) for cell in layer_pairs(thin, RAW).cells}) > 1
    # n <= d independent sentences become the same simplex whatever the layer was.
    assert len({round(cell.spearman, 6) for cell in layer_pairs(thin, PCA).cells}) == 1


@pytest.mark.parametrize("how", AGGREGATES)
@pytest.mark.parametrize("variant", ["none", "zca"])
def test_every_aggregate_is_the_plain_path(space, variant, how):
    setting = Setting(whitening=variant, aggregate=how)
    for cell in layer_pairs(space, setting).cells:
        assert cell.spearman == pytest.approx(plain(space, cell, setting), abs=1e-9)


def test_whitening_does_change_the_cells(space):
    raw, white = layer_pairs(space, RAW), layer_pairs(space, PCA)
    assert all(a.spearman != pytest.approx(b.spearman) for a, b in zip(raw.cells, white.cells, strict=True))


def test_the_best_cell_has_the_highest_score_and_cells_are_found_in_either_order(space):
    found = layer_pairs(space, RAW)
    assert found.best.spearman == max(cell.spearman for cell in found.cells)
    assert found[3, 1] is found[1, 3]
    assert found[3, 1].layers == (1, 3)


def test_of_equals_a_layer_alone_is_best_as_among_subsets():
    scores = {(0, 0): 50.0, (0, 1): 70.0, (1, 1): 70.0 - 1e-12}  # which is one score, rounded otherwise
    found = LayerPairs(tuple(LayerCell(layers, score, 2) for layers, score in scores.items()), RAW)
    assert found.best.layers == (1, 1)
    assert [cell.layers for cell in found.equals] == [(1, 1), (0, 1)] == highest(scores)


def test_without_a_defined_score_there_is_no_best(space):
    found = layer_pairs(replace(space, gold=torch.ones_like(space.gold)), PCA)
    assert {cell.spearman for cell in found.cells} == {None}
    assert found.best is None
    assert LayerPairs((), RAW).best is None


def test_few_distinct_sentences_have_no_whitened_score_and_have_a_raw_one(distinct):
    assert {cell.spearman for cell in layer_pairs(distinct, PCA).cells} == {None}
    assert layer_pairs(distinct, Setting(whitening="zca", k=35, aggregate="mean")).best is None
    assert all(cell.spearman is not None for cell in layer_pairs(distinct, RAW).cells)
    assert all(cell.spearman is not None for cell in layer_pairs(distinct, PCA.with_(k=20)).cells)


def test_progress_counts_the_cells_and_can_stop_the_work(space):
    assert progressed(lambda progress: layer_pairs(space, PCA, progress)) == [(i, 10) for i in range(1, 11)]


def test_a_k_the_space_does_not_have_is_refused(space):
    with pytest.raises(ValueError, match="k=13 must lie between 1 and d=12"):
        layer_pairs(space, PCA.with_(k=13))


@pytest.mark.parametrize("fit", ["task", "cross"])
@pytest.mark.parametrize("variant", ["clusters:m=2,directions=1", "flow"])
def test_a_cell_of_a_variant_of_rows_is_its_score(space, variant, fit):
    found = layer_pairs(space, Setting(whitening=variant, fit=fit))
    for layers in ((0, 0), (1, 3)):
        expected = score(space, Setting(tuple(sorted(set(layers))), variant, fit=fit), isotropy=False)
        assert (found[layers].spearman, found[layers].rank) == (expected.spearman, expected.rank)


@pytest.mark.parametrize("variant", ["none", "pca"])
def test_numbers_that_are_none_are_refused_as_by_score(space, variant):
    values = space.values.clone()
    values[1, 7, 2] = float("nan")
    with pytest.raises(ValueError, match="must hold finite numbers, row 7"):
        layer_pairs(replace(space, values=values), Setting(whitening=variant))


@pytest.mark.parametrize("variant", WHITENERS)
def test_one_sentence_over_and_over_has_no_score(space, variant):
    repeated = replace(space, values=space.values[:, :1].expand(4, 60, 12))
    assert {cell.spearman for cell in layer_pairs(repeated, Setting(whitening=variant)).cells} == {None}


def test_arguments_are_left_alone(space):
    before = space.values.clone()
    for variant in WHITENERS:
        layer_pairs(space, Setting(whitening=variant))
    assert torch.equal(space.values, before)
