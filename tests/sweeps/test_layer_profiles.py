"""Laws of the profiles: every measure equals its oracle on the sentences as they occur."""

import json
import math
from dataclasses import asdict, replace
from functools import partial
from itertools import cycle

import numpy as np
import pytest
import reference
import torch
from progressing import progressed
from torch import Tensor
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.conftest import AT_ONE_DIMENSION, OF_MOMENTS, make_space
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.scoring.fit_scopes import fit_scope, folds
from whitelab.scoring.setting import Setting
from whitelab.statistics import geometry
from whitelab.statistics.random_cosines import RandomCosines
from whitelab.sweeps.layer_profiles import (
    as_record,
    cosine_sample,
    covariance,
    layer_losses,
    layer_shapes,
    losses,
    shape,
)
from whitelab.whitening import WHITENERS

SETTINGS = [(name, k) for name, variant in OF_MOMENTS.items() for k in ((None, 5) if variant.takes_k else (None,))]


def assert_same(found, expected):
    """Equal but for rounding; a spectrum may end in zeros, whose roots show in the effective rank."""
    found, expected = asdict(found), asdict(expected)
    spectra = [np.array(one.pop("eigenvalues", ())) for one in (found, expected)]
    longest = max(map(len, spectra))
    padded = [np.pad(s, (0, longest - len(s))) for s in spectra]
    np.testing.assert_allclose(*padded, atol=1e-8)
    for name, value in expected.items():
        if isinstance(value, float):
            assert found[name] == pytest.approx(value, abs=1e-5, nan_ok=True), name
        else:
            assert found[name] == value, name


@pytest.mark.parametrize(
    ("variant", "k", "rule"),
    [(*one, rule) for one, rule in zip(SETTINGS, cycle(geometry.POSITIVES), strict=False)],
)
def test_every_measure_equals_its_oracle(any_space, variant, k, rule):
    setting = Setting((1,), variant, k)
    found, lost = shape(any_space, setting), losses(any_space, setting, rule)
    first, second, gold = (t.numpy() for t in (any_space.first, any_space.second, any_space.gold))
    z = reference.transformed(any_space, (1,), variant, k)
    occurring = reference.occurrences(z, any_space.counts)
    values = np.linalg.eigvalsh(np.cov(occurring.T))[::-1]
    chosen = gold > 4 if rule == "gt4" else gold >= 4
    assert found.mean_cosine == pytest.approx(reference.mean_cosine(occurring), abs=1e-9)
    assert lost.uniformity == pytest.approx(reference.uniformity(occurring), abs=1e-9)
    assert lost.alignment == pytest.approx(reference.alignment(z[first[chosen]], z[second[chosen]]), abs=1e-9)
    assert found.participation_ratio == pytest.approx(reference.participation_ratio(np.cov(occurring.T)))
    assert found.effective_rank == pytest.approx(reference.effective_rank(occurring), rel=1e-4)
    assert found.top_share == pytest.approx(values[0] / values.sum())
    assert lost.spearman == pytest.approx(reference.score(any_space, (1,), variant, k), abs=1e-9)
    assert lost.positives == chosen.sum()
    size = min(len(values), len(found.eigenvalues))
    np.testing.assert_allclose(found.eigenvalues[:size], values[:size], atol=1e-8)


@pytest.mark.parametrize(
    ("every", "alone"),
    [(layer_shapes, shape), (partial(layer_losses, positives="ge4"), partial(losses, positives="ge4"))],
)
def test_every_layer_under_every_variant_equals_its_own_measures(any_space, every, alone):
    settings = [Setting(whitening=variant) for variant in WHITENERS]
    settings += [Setting(whitening=variant, k=5) for variant, entry in WHITENERS.items() if entry.takes_k]
    measured = every(any_space, settings)
    assert [(one.layers, one.whitening, one.k) for one in measured] == [
        ((i,), setting.whitening, setting.k) for i in range(4) for setting in settings
    ]
    for one in measured:
        assert_same(one, alone(any_space, Setting(one.layers, one.whitening, one.k)))


@pytest.mark.parametrize("fit", ["task", "cross"])
def test_what_a_sweep_shows_of_a_setting_does_not_depend_on_the_others(space, fit):
    settings = [Setting(whitening=name, fit=fit) for name in ("pca", "pca_cor", "zca", "zca_cor", "cholesky")]
    for order in (settings, settings[::-1]):
        for sweep, measure in ((layer_shapes, shape), (layer_losses, losses)):
            for found in sweep(space, order):
                assert_same(found, measure(space, Setting(found.layers, found.whitening, found.k, fit=fit)))


def test_measures_of_layers_and_of_variants_differ(space):
    measured = layer_losses(space, [Setting(whitening=variant) for variant in ("none", "center", "pca")])
    assert len({round(one.uniformity, 6) for one in measured}) == len(measured)


# Of two maps, the form in which both halves are in the coordinates of the embeddings.
TURNED_BACK = {"pca": "zca", "cholesky": "zca", "pca_cor": "zca_cor"}


@pytest.mark.parametrize("fit", ["task", "cross"])
@pytest.mark.parametrize(("variant", "k"), SETTINGS)
def test_a_spectrum_read_off_the_decomposition_is_that_of_the_mapped_sentences(variant, k, fit):
    space, setting = make_space(n=160, sizes=(50, 40), seed=5), Setting((1,), variant, k, fit=fit)
    if (variant, fit) == ("center", "cross") and k:
        parts = zip(fit_scope(space, setting).whiteners, folds(space, "cross"), strict=True)
        z = torch.zeros(160, 12, dtype=torch.float64)
        for whitener, fold in parts:  # each half along its own directions, in the coordinates of the embeddings
            z[fold.sentences] = (whitener(space.combine((1,))) @ whitener.dense.T)[fold.sentences]
        matrix = torch.from_numpy(np.cov(reference.occurrences(z.numpy(), space.counts).T))
    else:
        form = TURNED_BACK.get(variant, variant) if fit == "cross" else variant
        matrix = covariance(space, setting.with_(whitening=form))
    values = torch.linalg.eigvalsh(matrix).flip(0)
    found = torch.tensor(shape(space, setting).eigenvalues, dtype=torch.float64)
    size = min(len(values), len(found))
    assert_close(found[:size], values[:size], atol=1e-8, rtol=1e-6)


def test_a_whitened_layer_is_isotropic_and_a_raw_one_is_not(space):
    raw, white = shape(space, Setting((1,))), shape(space, Setting((1,), "zca"))
    assert white.participation_ratio == pytest.approx(12)
    assert white.top_share == pytest.approx(1 / 12)
    np.testing.assert_allclose(white.eigenvalues, 1, atol=1e-8)
    assert raw.participation_ratio < 11
    assert abs(white.mean_cosine) < 0.05 < raw.mean_cosine


def test_a_record_becomes_json_without_nan(space):
    none_positive = replace(space, gold=torch.ones_like(space.gold))
    record = as_record(shape(none_positive, Setting((1,))), losses(none_positive, Setting((1,))))
    assert (record["alignment"], record["spearman"], record["positives"]) == (None, None, 0)
    assert "eigenvalues" not in record
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_a_space_without_directions_has_no_measures(space):
    zero = replace(space, values=torch.zeros(4, 60, 12))
    for variant in WHITENERS:
        found, lost = shape(zero, Setting((1,), variant)), losses(zero, Setting((1,), variant))
        assert math.isnan(found.mean_cosine)
        assert math.isnan(found.participation_ratio)
        assert all(map(math.isnan, (lost.alignment, lost.uniformity, lost.spearman)))
        assert len(cosine_sample(zero, Setting((1,), variant))) == 0
        json.dumps(as_record(found, lost), allow_nan=False)


def test_one_dimension_is_measured(space):
    for variant in set(WHITENERS) - {"common_component", "r2"}:  # which leave nothing of one dimension
        one = replace(space, values=space.values[:, :, :1])
        setting = Setting((1,), AT_ONE_DIMENSION.get(variant, variant))
        assert shape(one, setting).participation_ratio == pytest.approx(1)
        assert not math.isnan(losses(one, setting).uniformity)


def test_progress_counts_layers_and_variants_and_can_stop_the_work(space):
    settings = [Setting(whitening="pca"), Setting(whitening="zca")]
    assert progressed(lambda progress: layer_shapes(space, settings, progress)) == [(i, 8) for i in range(1, 9)]


def test_positives_that_do_not_exist_are_refused(space):
    with pytest.raises(ValueError, match="positives='gt3' must be one of gt4, ge4, top"):
        losses(space, Setting((1,)), positives="gt3")


def test_arguments_are_left_alone(space):
    before = space.values.clone()
    for every in (layer_shapes, layer_losses):
        every(space, [Setting(whitening=variant) for variant in WHITENERS])
    assert torch.equal(space.values, before)


@pytest.mark.parametrize("k", [None, 4])
def test_the_covariance_is_that_of_every_occurrence_and_the_identity_after_whitening(layernorm, k):
    rows = torch.cat([layernorm.first, layernorm.second])
    raw = layernorm.combine((2,))[rows]
    assert_close(covariance(layernorm, Setting((2,))), torch.cov(raw.T))
    white = covariance(layernorm, Setting((2,), "pca", k))
    assert_close(white, torch.eye(k or layernorm.dim - 1, dtype=torch.float64))
    assert not torch.allclose(covariance(layernorm, Setting((2,), "pca", k, fit="cross")), white, atol=0.05)


class Tables(TorchDispatchMode):
    """Counts the tensors of `least` bytes and more that are made inside, views of others left out."""

    def __init__(self, least: int) -> None:
        super().__init__()
        self.least, self.made = least, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        known = {one.untyped_storage().data_ptr() for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)}
        for one in tree_leaves(found):
            if isinstance(one, Tensor) and one.untyped_storage().data_ptr() not in known:
                self.made += one.untyped_storage().nbytes() >= self.least
        return found


@pytest.mark.parametrize("whitening", ["none", "pca", "zca"])
def test_of_a_layer_of_many_sentences_there_is_one_table_beside_it(whitening, monkeypatch):
    monkeypatch.setattr("whitelab.scoring.fit_scopes._TURNED_BYTES", 0)  # a table that large is not kept
    n, d = 60_000, 8
    x = torch.randn(1, n, d, generator=torch.Generator().manual_seed(0)) + 1
    none = torch.zeros(0, dtype=torch.int64)
    space = LayerEmbeddings(x, none, none, none.double(), none, ("all",))
    setting = Setting((0,), whitening)
    with Tables(n * d * 4) as tables:
        shape(space, setting)
    assert tables.made == 1  # the sentences under the map, in float64
    with Tables(n * d * 8) as tables:
        cosine_sample(space, setting)
        z = fit_scope(space, setting).turned()
        RandomCosines.of(z, all_pairs=1, sampled=1000)
    assert tables.made == 2  # the sentences under the map, twice asked for


@pytest.mark.parametrize("fit", ["task", "cross"])
@pytest.mark.parametrize("k", [None, 1, 2, 5])
@pytest.mark.parametrize("variant", ["pca", "prefix"])
def test_vectors_lie_along_no_more_directions_than_their_setting_has_and_in_halves_along_more_than_k(fit, k, variant):
    space, setting = make_space(n=200, sizes=(120, 80)), Setting((1,), variant, k, fit=fit)
    found, most = shape(space, setting), setting.directions(space.dim)
    assert most == min(12, (k or 12) * (1 + (fit == "cross" and variant == "pca")))
    assert found.participation_ratio <= most + 1e-9
    assert losses(space, setting).uniformity >= geometry.uniformity_floor(most) - 0.1  # of the sentences fitted on
    assert sum(one > 1e-9 for one in found.eigenvalues) == most
