"""Curves over layers, histograms, spectra, projections, the plane of the two losses and covariances, as data."""

import math

import numpy as np
import pytest
from drawings import LABELS, NAUGHTY, all_figures, named, written

from whitelab import figures
from whitelab.figures.marks import label_sides

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
    values = np.array([-1.0, -0.999, 0.0, 0.5, 1.0])
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


# Plane


def test_the_plane_has_one_path_a_variant_and_one_colour_scale():
    paths = [trace for trace in all_figures()["plane"].data if trace.name]
    assert [trace.name for trace in paths] == list(LABELS.values())
    assert sum(bool(trace.marker.showscale) for trace in paths) == 1
    assert {(trace.marker.cmin, trace.marker.cmax) for trace in paths} == {(50.0, 49.0 + len(paths))}


def test_an_arrow_leads_from_every_raw_layer_to_the_same_layer_of_a_variant():
    figure = figures.plane(steps(), LABELS, -3.9)
    (arrows,) = [trace for trace in figure.data if not trace.name]
    assert list(arrows.x) == [-1.0, -3.0, None, -1.5, -3.5, None]
    assert list(arrows.y) == [0.1, 0.5, None, 0.2, 0.6, None]
    without_raw = [row for row in steps() if row["whitening"] != "none"]
    assert all(trace.name for trace in figures.plane(without_raw, LABELS, -3.9).data)


def test_points_of_the_plane_are_numbered_by_layer_and_once_where_variants_coincide():
    rows = steps() + [row | {"whitening": "zca"} for row in steps() if row["whitening"] == "pca"]
    figure = figures.plane(rows, LABELS, -3.9)
    numbers = {trace.name: list(trace.text) for trace in figure.data if trace.name}
    assert numbers == {"Raw": ["0", "1"], "PCA whitening": ["0", "1"], "ZCA whitening": ["", ""]}


def test_labels_cover_neither_each_other_nor_points():
    points = np.random.default_rng(0).normal(size=(60, 2)) ** 3
    points -= points.min(axis=0)
    sides = label_sides([tuple(point) for point in points.tolist()], range(60), tuple(points.max(axis=0).tolist()))
    pixels = points / points.max(axis=0) * (300, 400)
    shift = {"top center": (0, 15), "middle right": (15, 0), "middle left": (-15, 0), "bottom center": (0, -15)}
    centres = {i: pixels[i] + shift[side] for i, side in sides.items()}
    assert 10 < len(sides) < 60
    for i, centre in centres.items():
        assert all((np.abs(centre - other) >= (16, 13)).any() for j, other in centres.items() if i != j)
        assert (np.abs(pixels - centre) >= 6).any(axis=1).all()


def test_long_labels_take_the_room_of_their_letters():
    points = [(0.0, 0.0), (60.0, 0.0), (300.0, 400.0)]
    assert set(label_sides(points, range(3), (300, 400)).values()) == {"top center"}
    long = label_sides(points, range(3), (300, 400), [10, 10, 10])  # 80 pixels, where the points are 60 apart
    assert [long[i] for i in range(3)] == ["top center", "middle right", "top center"]


def test_labels_stay_within_the_axes_and_off_the_uprights():
    ends, free = ((0, 0), (300, 400)), label_sides([(150, 20)], [0], (300, 400), [4])
    assert free == {0: "top center"}
    for point, ruled, side in [
        ((150, 20), [150], "middle right"),  # the upright goes through the point
        ((150, 20), [170], "top center"),
        ((290, 20), [290], "middle left"),
        ((290, 390), [], "middle left"),
        ((150, 390), [], "middle right"),
        ((10, 2), [10], None),
        ((290, 390), [285], None),  # between a label to the left and its point, which it meets on a wider plot
    ]:
        assert label_sides([point], [0], (300, 400), [4], within=ends, ruled=ruled).get(0) == side


def steps():
    """Two layers, raw and whitened."""
    rows = (0, "none", 0.1, -1.0), (1, "none", 0.2, -1.5), (0, "pca", 0.5, -3.0), (1, "pca", 0.6, -3.5)
    names = ("layer", "whitening", "alignment", "uniformity")
    return [dict(zip(names, row, strict=True)) | {"spearman": 50.0} for row in rows]


@pytest.mark.parametrize("kind", ["plane", "setting_plane"])
def test_the_plane_says_which_direction_is_better_on_both_axes(kind):
    layout = all_figures()[kind].layout
    assert "lower" in layout.xaxis.title.text
    assert "lower" in layout.yaxis.title.text


def test_the_plane_draws_the_isotropic_floor():
    assert [shape.x0 for shape in all_figures()["plane"].layout.shapes] == [-3.9]


def test_the_plane_outlines_the_chosen_layer():
    assert list(named(all_figures()["plane"], "Raw").marker.line.color).count(figures.MARK) == 1


def test_layers_that_are_averaged_have_a_point_of_their_own_in_the_colours_of_all():
    average = [{"layer": "0 + 2", "whitening": "none", "alignment": 0.1, "uniformity": -2.5, "spearman": 99.0}]
    undefined = average[0] | {"whitening": "pca", "alignment": None}
    figure = figures.plane(steps(), LABELS, -3.9, None, [*average, undefined])
    assert len(figure.data) == len(figures.plane(steps(), LABELS, -3.9).data) + 1
    (point,) = (trace for trace in figure.data if trace.text == ("0 + 2",))
    assert (point.x, point.y, point.marker.line.color) == ((-2.5,), (0.1,), figures.MARK)
    ends = {(trace.marker.cmin, trace.marker.cmax) for trace in figure.data if trace.marker.cmax is not None}
    assert ends == {(point.marker.cmin, 99.0)}


def test_the_names_of_averaged_layers_stand_on_a_side_without_a_point():
    above = {"layer": 9, "whitening": "none", "alignment": 0.62, "uniformity": -3.5, "spearman": 50.0}
    average = {"layer": "0 + 2", "whitening": "pca", "alignment": 0.6, "uniformity": -3.5, "spearman": 50.0}
    apart = [row for row in steps() if row["alignment"] < 0.6]
    planes = [figures.plane(rows, LABELS, -3.9, None, [average]) for rows in (apart, [*apart, above])]
    sides = [trace.textposition for plane in planes for trace in plane.data if trace.text == ("0 + 2",)]
    assert sides == ["top center", "middle right"]


def test_the_plane_leaves_out_what_is_not_defined():
    rows = [
        {"layer": 0, "whitening": "none", "alignment": math.nan, "uniformity": -1.0, "spearman": 1.0},
        {"layer": 1, "whitening": "none", "alignment": 0.5, "uniformity": -2.0, "spearman": math.nan},
    ]
    figure = figures.plane(rows, LABELS, -3.9)
    assert list(figure.data[0].y) == [0.5]
    assert "Raw, layer 1, -2.00 and 0.50" in figure.layout.meta["alt"]
    empty = figures.plane([row | {"alignment": None} for row in rows], LABELS, -3.9)
    assert len(empty.data) == 0
    assert any("not defined" in note.text for note in empty.layout.annotations)
    assert empty.layout.xaxis.showticklabels is empty.layout.yaxis.showticklabels is False


# Covariance


def test_a_covariance_is_an_image_on_a_scale_centred_on_zero():
    image = figures.covariance_image(np.eye(3), 4, 0.25, "PCA whitening")
    heat = image.data[0]
    assert (heat.zmin, heat.zmax) == (-0.25, 0.25)
    assert np.array_equal(np.array(heat.z), np.eye(3))
    assert list(heat.x) == list(heat.y) == [2.5, 6.5, 10.5]  # the middle of coordinates 1 to 4, and so on
