"""One decomposition serves every variant of an eigenbasis and every k, whoever asks."""

import pytest
import torch

from tests.conftest import make_space
from whitelab.encoding.embeddings import LayerRows
from whitelab.scoring.score import score
from whitelab.scoring.setting import Setting
from whitelab.statistics import linalg
from whitelab.sweeps.dimensions import k_curve, pair_curves, pairs_at
from whitelab.sweeps.layer_profiles import losses, shape
from whitelab.sweeps.layer_subsets import search_subsets
from whitelab.whitening import WHITENERS

OF_COVARIANCE = [name for name, entry in WHITENERS.items() if entry.takes_k and not name.endswith("_cor")]
OF_CORRELATION = ["pca_cor", "zca_cor"]
# Maps of a fit: the task's own, each half of the pairs or of the sentences, other text's.
SIDES = {"task": 3, "cross": 2, "other text": 1}


@pytest.fixture
def decompositions(monkeypatch):
    """Every decomposition made, by the size of its matrix."""
    made, decompose = [], linalg.eigen_all
    monkeypatch.setattr(linalg, "eigen_all", lambda matrix: made.append(len(matrix)) or decompose(matrix))
    return made


@pytest.fixture
def task():
    """Pairs that fall into two halves, carrying other text."""
    other = make_space(n=100, sizes=(60,), seed=9)
    return make_space(n=160, sizes=(50, 40), seed=5).with_text("other text", LayerRows(other.values, other.counts))


@pytest.mark.parametrize("fit", SIDES)
def test_scores_curves_and_isotropy_of_all_variants_and_k_share_a_decomposition(task, decompositions, fit):
    for variant in OF_COVARIANCE:
        for k in (None, 1, 5, 12):
            assert score(task, Setting((1, 3), variant, k, fit=fit)).isotropy is not None or k == 1
        k_curve(task, Setting((1, 3), variant, fit=fit))
    assert len(decompositions) == SIDES[fit]
    for variant in OF_CORRELATION:
        for k in (None, 5):
            score(task, Setting((1, 3), variant, k, fit=fit))
        k_curve(task, Setting((1, 3), variant, fit=fit))
    assert len(decompositions) == 2 * SIDES[fit]


def test_every_heatmap_at_every_k_shares_a_decomposition_for_each_cell(task, decompositions):
    for variant in OF_COVARIANCE:
        curves = pair_curves(task, Setting(whitening=variant))
        for k in (None, 1, 5, 12):
            pairs_at(curves, k)
    assert len(decompositions) == 10
    score(task, Setting((0, 2), "pca", 3), isotropy=False)
    shape(task, Setting((0, 2), "zca", 3))
    losses(task, Setting((0, 2), "zca", 3))
    assert len(decompositions) == 10


def test_nothing_is_decomposed_where_nothing_is_whitened(task, decompositions):
    score(task, Setting((1,)))
    search_subsets(task, Setting())
    assert decompositions == []


def test_a_profile_is_that_of_the_directions_kept(space):
    three, all_of_them = (shape(space, Setting((1,), "pca", k)) for k in (3, None))
    assert (three.k, three.rank, all_of_them.rank) == (3, 3, 12)
    assert three.participation_ratio == pytest.approx(3)
    lost = [losses(space, Setting((1,), "pca", k)).spearman for k in (3, None)]
    assert lost[0] == pytest.approx(score(space, Setting((1,), "pca", 3)).spearman) != pytest.approx(lost[1])
    torch.testing.assert_close(torch.tensor(three.eigenvalues), torch.tensor([1.0] * 3 + [0.0] * 9))
