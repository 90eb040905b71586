"""Curves over layers, histograms, spectra, projections and covariances, as data."""

import math

import numpy as np
import pytest
from drawings import LABELS, NAUGHTY, written

from whitelab import figures

# Lines


def test_a_layer_curve_runs_from_layer_zero():
    figure = figures.by_layer({"none": [0.9, 0.8, 0.7]}, LABELS, "Mean cosine")
    assert list(figure.data[0].x) == [0, 1, 2]
    assert list(figure.data[0].y) == [0.9, 0.8, 0.7]
    assert "0.9 at layer 0 to 0.7 at layer 2" in figure.layout.meta["alt"]


def test_a_linear_layer_axis_includes_zero():
    assert figures.by_layer({"none": [0.9, 0.8]}, LABELS, "x").layout.yaxis.rangemode == "tozero"


def test_layer_curves_take_nan_none_and_nothing():
    broken = figures.by_layer({"none": [math.nan, 0.8], "pca": []}, LABELS, "x")
    assert len(broken.data) == 2
    assert len(figures.by_layer({}, LABELS, "x").data) == 0


def test_a_histogram_holds_every_cosine_once():
    values = np.array([-1.0, -0.999, 0.0, 0.5, np.nextafter(1, 2)])  # 1 up to rounding
    trace = figures.cosine_histogram({"none": values}, LABELS).data[0]
    assert sum(trace.y) == pytest.approx(100)
    assert len(trace.x) == 100
    assert trace.y[0] == pytest.approx(40)
    assert trace.y[-1] == pytest.approx(20)


def test_an_empty_sample_gives_a_flat_histogram():
    trace = figures.cosine_histogram({"none": np.array([])}, LABELS).data[0]
    assert set(trace.y) == {0}


def test_spectra_are_shares_of_the_variance_in_order():
    trace = figures.spectrum({"none": [3.0, 1.0, 0.0]}, LABELS).data[0]
    assert list(trace.x) == [1, 2]  # a zero has no place on a log axis
    assert list(trace.y) == pytest.approx([75, 25])


@pytest.mark.parametrize("eigenvalues", [[], [0.0, 0.0]], ids=["none", "zeros"])
def test_a_spectrum_without_variance_is_empty(eigenvalues):
    assert len(figures.spectrum({"none": eigenvalues}, LABELS).data[0].x) == 0


@pytest.mark.parametrize("eigenvalues", [[], [1.0], [0.6, 0.4]], ids=len)
def test_no_axis_of_shares_goes_beyond_the_whole(eigenvalues):
    """Left alone, that of one direction ends at 1,000 %, and that of none at 10,000."""
    run = {"name": "a", "objective": "simcse", "seed": 0, "steps": 1, "stop": ""}
    trained = figures.training_spectrum([run | {"records": [{"step": 0, "spectrum": eigenvalues}]}])
    for figure in (figures.spectrum({"none": eigenvalues}, LABELS), trained):
        assert 10**figure.layout.yaxis.maxallowed == 100


# Similarity


def test_similarity_is_drawn_from_0_to_1_with_every_value_written():
    figure = figures.similarity(np.array([[1.0, 0.25], [0.25, 1.0]]), "Raw")
    heat = figure.data[0]
    assert (heat.zmin, heat.zmax) == (0, 1)
    assert {(y, x): text for y, x, text, _ in written(figure)} == {
        (0, 0): "1.00",
        (0, 1): "0.25",
        (1, 0): "0.25",
        (1, 1): "1.00",
    }
    assert "first and last layer 0.25" in figure.layout.meta["alt"]
    undefined = figures.similarity(np.full((2, 2), math.nan), "Raw")
    assert "nothing defined" in undefined.layout.meta["alt"]
    two = figures.similarity(np.array([[0.5, 0.25, 0.125]]), "Raw", "<b>other")
    assert two.layout.meta["alt"].endswith("Raw, last layers 0.12")
    assert two.layout.xaxis.title.text == "Layer of &lt;b&gt;other"


# Projection


@pytest.mark.parametrize(("dims", "kind"), [(2, "scattergl"), (3, "scatter3d")])
def test_a_projection_draws_every_sentence_once(dims, kind):
    points = np.arange(5.0 * dims).reshape(5, dims)
    by_gold = figures.projection(points, list("abcde"), [0.0, 1.0, 2.0, 3.0, 4.0], "gold", "PCA")
    by_subset = figures.projection(points, list("abcde"), ["s", "t", "s", "t", "t"], "subset", "PCA")
    assert [trace.type for trace in by_gold.data] == [kind]
    assert {trace.name: len(trace.x) for trace in by_subset.data} == {"s": 2, "t": 3}


def test_one_sentence_and_no_sentence_can_be_projected():
    assert len(figures.projection(np.zeros((1, 2)), ["a"], [3.0], "gold", "PCA").data[0].x) == 1
    empty = figures.projection(np.zeros((0, 2)), [], [], "gold", "PCA")
    assert sum(len(trace.x) for trace in empty.data) == 0


def test_a_projection_shows_the_escaped_sentence_and_its_gold_or_subset():
    points = np.arange(6.0).reshape(3, 2)
    texts = [NAUGHTY, "b", "c"]
    gold = figures.projection(points, texts, [0.0, 2.5, 5.0], "gold", "PCA").data[0]
    assert "&lt;img" in gold.text[0]
    assert "<img" not in gold.text[0]
    assert "gold: 2.50" in gold.text[1]
    subset = figures.projection(points, texts, ["<b>x", "y", "y"], "subset", "PCA")
    texts = [text for trace in subset.data for text in trace.text]
    assert len(texts) == 3
    assert sum("&lt;b&gt;x" in text for text in texts) == 1
    assert not any("<b>x" in text for text in texts)


# Covariance


def test_a_covariance_is_an_image_on_a_scale_centred_on_zero():
    image = figures.covariance_image(np.eye(3), 4, 0.25, "PCA whitening")
    heat = image.data[0]
    assert (heat.zmin, heat.zmax) == (-0.25, 0.25)
    assert np.array_equal(np.array(heat.z), np.eye(3))
    assert list(heat.x) == list(heat.y) == [2.5, 6.5, 10.5]  # the middle of coordinates 1 to 4, and so on
