"""The plane of the two losses, of layers and of settings, as data, and where its labels stand."""

import math

import numpy as np
import pytest
from drawings import DARK, LABELS, LIGHT, all_figures, contrast, named, spot

from whitelab import figures
from whitelab.figures.planes import label_sides
from whitelab.whitening import WHITENERS


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


@pytest.mark.parametrize("background", [LIGHT, DARK], ids=["light", "dark"])
def test_arrows_stand_out_from_both_backgrounds(background):
    arrows = [trace for trace in all_figures()["plane"].data if not trace.name]
    assert len(arrows) == len(LABELS) - 1  # one a variant
    assert {trace.opacity for trace in arrows} == {None}
    assert min(contrast(trace.line.color, background) for trace in arrows) >= 3


def test_points_of_the_plane_are_numbered_by_layer_and_once_where_variants_coincide():
    rows = steps() + [row | {"whitening": "zca"} for row in steps() if row["whitening"] == "pca"]
    figure = figures.plane(rows, LABELS, -3.9)
    numbers = {trace.name: list(trace.text) for trace in figure.data if trace.name}
    assert numbers == {"Raw": ["0", "1"], "PCA whitening": ["0", "1"], "ZCA whitening": ["", ""]}


def test_labels_cover_neither_each_other_nor_points():
    points = np.random.default_rng(0).normal(size=(60, 2)) ** 3
    points -= points.min(axis=0)
    sides = label_sides([tuple(point) for point in points.tolist()], range(60), tuple(points.max(axis=0).tolist()))
    pixels = points / points.max(axis=0) * (280, 300)
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


def test_no_number_stands_on_the_head_of_an_arrow():
    spots = (0, "none", 0.5, -1.0), (0, "pca", 0.5, -3.0), (1, "pca", 0.53, -3.0)  # one above the arrow's end
    whitened = named(figures.plane(rows_of(spots), LABELS, -3.9), "PCA whitening")
    assert (whitened.text, whitened.textposition[0]) == (("0", "1"), "middle left")


def test_no_number_touches_another_point_on_a_plot_as_low_as_a_legend_and_two_titles_leave_it():
    spots = (0, "none", 0.7, -1.0), (1, "none", 0.75, -1.0)  # 20 pixels apart, where 300 are left of 520
    assert named(figures.plane(rows_of(spots), LABELS, -3.9), "Raw").textposition == ("middle right", "top center")


def steps():
    """Two layers, raw and whitened."""
    return rows_of([(0, "none", 0.1, -1.0), (1, "none", 0.2, -1.5), (0, "pca", 0.5, -3.0), (1, "pca", 0.6, -3.5)])


def rows_of(spots):
    """Rows of the plane from layers, whitenings, alignments and uniformities."""
    names = ("layer", "whitening", "alignment", "uniformity")
    return [dict(zip(names, place, strict=True)) | {"spearman": 50.0} for place in spots]


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


def test_a_setting_has_the_hue_of_its_variant_and_the_symbol_of_its_model():
    rows = [spot(name, i) for i, name in enumerate(WHITENERS)]
    figure = figures.setting_plane([*rows, spot("pca", 1) | {"alignment": math.nan}], -3.9)
    hues = {row["setting"]: figures.VARIANT_COLOURS[row["whitening"]] for row in rows}
    drawn = {}
    for trace in figure.data:
        drawn |= {data[0]: colour for data, colour in zip(trace.customdata, trace.marker.color, strict=True)}
    assert drawn == hues
    assert len({trace.marker.symbol for trace in figure.data}) == len({row["model"] for row in rows})
    low, high = figure.layout.xaxis.range
    assert low < -3.9 < high


def test_no_name_of_a_setting_is_struck_through_by_the_floor():
    at_floor = [spot("pca", 1) | {"uniformity": -3.9, "alignment": high, "label": "L1+L-1 pca"} for high in (0.3, 0.9)]
    trace = figures.setting_plane([*at_floor, spot("none", 2)], -3.9).data[0]
    assert trace.text[:2] == ("L1+L-1 pca", "L1+L-1 pca")
    assert trace.textposition[:2] == ("middle right", "middle right")
