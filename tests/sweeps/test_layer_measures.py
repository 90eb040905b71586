"""Laws of the measures of layers: each is its registry entry on the unique sentences under the setting's map."""

import json
import math
from dataclasses import asdict, replace

import numpy as np
import pytest
import reference
import torch
from progressing import progressed

from tests.conftest import make_space
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.setting import Setting
from whitelab.statistics import geometry
from whitelab.sweeps.layer_measures import as_record, layer_measures, layer_similarity, measures
from whitelab.sweeps.layer_profiles import losses, transformed
from whitelab.whitening import WHITENERS

UNIQUE = [name for name, metric in geometry.METRICS.items() if metric.unique]


@pytest.mark.parametrize("variant", ["none", "center", "pca", "zca"])
def test_every_measure_is_that_of_the_registry_over_unique_sentences(space, variant):
    setting = Setting((1,), variant)
    found, z = measures(space, setting), transformed(space, setting)
    assert found.values == pytest.approx(geometry.measured(geometry.Rows(z)), abs=1e-9)
    assert list(as_record(found)) == list(found.values) == UNIQUE


def test_a_sentence_that_occurs_more_often_counts_once(space):
    again = replace(space, first=space.first[:1].repeat(80), second=torch.arange(80) % 60)
    assert again.counts.tolist() != space.counts.tolist()
    assert measures(again, Setting((1,))) == measures(space, Setting((1,)))
    unused = replace(space, values=torch.cat([space.values, torch.ones(4, 5, 12)], 1))
    assert measures(unused, Setting((1,))) == measures(space, Setting((1,)))


def test_iso_score_counts_the_directions_a_map_keeps(layernorm):
    pca, zca = (measures(layernorm, Setting((2,), name)) for name in ("pca", "zca"))
    z = transformed(layernorm, Setting((2,), "pca")).numpy()
    assert pca.values["iso_score"] == pytest.approx(reference.iso_score(z), abs=1e-9)
    assert zca.values["iso_score"] == pytest.approx(pca.values["iso_score"], abs=1e-9)
    assert zca.values["rogue_share_1"] != pytest.approx(pca.values["rogue_share_1"])  # which a rotation changes


def test_two_maps_that_keep_other_directions_are_no_rounder_than_round():
    space = make_space(n=400)
    for setting in (Setting((1,), "pca", 3, fit="cross"), Setting((1,), "center", 2, fit="cross")):
        assert 0 < measures(space, setting).values["iso_score"] <= 1


def test_every_layer_under_every_setting_in_turn_with_progress(space):
    settings = [Setting(), Setting(whitening="pca", k=5)]
    found = layer_measures(space, settings)
    assert [(one.layers, one.whitening, one.k) for one in found] == [
        ((layer,), *last) for layer in range(4) for last in (("none", None), ("pca", 5))
    ]
    assert found[3] == measures(space, settings[1].with_(layers=(1,)))
    seen = progressed(lambda progress: layer_measures(space, settings, progress))
    assert seen[-1] == (800, 800)
    assert seen == sorted(seen)


@pytest.mark.parametrize("n", [2, 3, 11, 12, 25])
def test_few_sentences_and_no_directions_have_what_they_can(n):
    space = make_space(n=n, sizes=(n,), seed=1)
    for variant in sorted(set(WHITENERS) - {"group", "shuffled_group"}):
        found = measures(space, Setting((1,), variant))
        json.dumps(as_record(found), allow_nan=False)
        if n <= geometry.TOP or not math.isnan(found.values["iso_score"]):  # on a line all cosines are 1 or -1
            assert math.isnan(found.values["hub_skewness"]) is (n <= geometry.TOP), variant
    zero = replace(space, values=torch.zeros(4, n, 12))
    json.dumps(as_record(measures(zero, Setting((1,), "pca"))), allow_nan=False)


def test_rounding_is_not_measured():
    """Whitening every direction of n <= d sentences leaves them at one distance: none is near, none is a hub."""
    space = make_space(n=20, d=40, sizes=(10,), seed=1)
    space = replace(space, first=torch.arange(0, 20, 2), second=torch.arange(1, 20, 2))
    raw, white = (measures(space, Setting((1,), variant)) for variant in ("none", "pca"))
    for name in ("hub_skewness", "largest_hub", "never_neighbour", "two_nn"):
        assert not math.isnan(raw.values[name])
        assert math.isnan(white.values[name]), name


def test_forms_that_differ_by_a_rotation_measure_alike_under_two_maps(space):
    settings = [Setting((1,), variant, 7, fit="cross") for variant in ("pca", "zca", "cholesky")]
    wanted, *others = (measures(space, one).values | asdict(losses(space, one)) for one in settings)
    similar, *alike = (layer_similarity(space, one) for one in settings)
    for found, matrix in zip(others, alike, strict=True):
        for name, value in wanted.items():
            if name != "whitening" and not name.startswith("rogue"):
                assert found[name] == pytest.approx(value, abs=1e-6, nan_ok=True), name
        np.testing.assert_allclose(matrix, similar, atol=1e-9)


# CKA


@pytest.mark.parametrize("setting", [Setting(), Setting(whitening="pca"), Setting(whitening="soft", k=5)])
def test_similarity_is_the_cka_of_every_two_layers_under_the_map(layernorm, setting):
    found = layer_similarity(layernorm, setting)
    rows = [transformed(layernorm, setting.with_(layers=(i,))).numpy() for i in range(4)]
    expected = [[reference.linear_cka(a, b) for b in rows] for a in rows]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    np.testing.assert_allclose(np.diag(found), 1, atol=1e-12)


def test_similarity_of_two_models_is_over_the_same_sentences(space):
    other = replace(make_space(d=7, layers=2, seed=3), first=space.first, second=space.second)
    seen = []
    found = layer_similarity(space, Setting(whitening="pca", k=10), other, lambda *done: seen.append(done))
    assert found.shape == (4, 2)
    assert seen == [(i, 8) for i in range(1, 9)]
    one = fit_scope(space, Setting((3,), "pca", 10)).turned()
    white = transformed(other, Setting((1,), "pca"))
    assert found[3, 1] == pytest.approx(reference.linear_cka(one.numpy(), white.numpy()))
    np.testing.assert_allclose(layer_similarity(space, Setting(), space), layer_similarity(space, Setting()))
    flat = replace(space, values=torch.ones(4, 60, 12))
    assert np.isnan(layer_similarity(flat, Setting(whitening="pca"))).all()
    starved = make_space(n=10, d=12, sizes=(30,))
    assert np.isnan(layer_similarity(starved, Setting(whitening="zca"))).all()
    with pytest.raises(ValueError, match="other must hold the same n=60 sentences, got 8"):
        layer_similarity(space, Setting(), make_space(n=8, sizes=(8,)))
