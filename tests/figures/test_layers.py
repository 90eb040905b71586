"""Pairs and subsets of layers as data: maps that can be clicked, best sizes, rankings."""

import numpy as np
import plotly.graph_objects as go
import pytest
from drawings import LABELS, cells, contrast, named, ranking, sizes, squares, written
from plotly.colors import sample_colorscale

from whitelab import figures

# Heatmap


def test_a_heatmap_is_symmetric_and_stars_the_best_pair_on_both_sides():
    figure = figures.pair_heatmap(cells(4), 4, [(1, 3)])
    heat, stars = figure.data[0], figure.data[-1]
    grid = np.array(heat.z, dtype=float)
    assert np.array_equal(grid, grid.T)
    assert grid[1, 3] == 13
    assert {(round(y), x) for x, y in zip(stars.x, stars.y, strict=True)} == {(1, 3), (3, 1)}
    assert {tuple(pair) for pair in stars.customdata} == {(1, 3), (3, 1)}
    assert len(figures.pair_heatmap(cells(4), 4, []).data) == len(figure.data) - 1


def test_every_pair_that_ties_with_the_best_has_a_star():
    figure = figures.pair_heatmap(cells(4), 4, [(0, 0), (1, 3), (2, 3)])
    assert "best 0 and 0 with 0.00, and 2 more tie with it" in figure.layout.meta["alt"]
    assert {tuple(pair) for pair in figure.data[-1].customdata} == {(0, 0), (1, 3), (3, 1), (2, 3), (3, 2)}


def test_a_click_meets_a_square_that_carries_the_layers_of_the_cell_below_it():
    figure = figures.pair_heatmap(cells(3), 3, [])
    marks = squares(figure)
    assert [tuple(pair) for pair in marks.customdata] == [(i, j) for i in range(3) for j in range(3)]
    grid = figure.data[0].z
    for x, y, pair, text in zip(marks.x, marks.y, marks.customdata, marks.text, strict=True):
        assert (y, x) == tuple(pair)
        assert text == f"{grid[y][x]:.2f}"


@pytest.mark.parametrize(
    ("selected", "outlined"),
    [((), set()), ((2,), {(2, 2)}), ((0, 2), {(0, 2), (2, 0)}), ((0, 1, 2), set())],
)
def test_the_workspace_layers_are_outlined_where_they_are_a_cell(selected, outlined):
    shapes = figures.pair_heatmap(cells(3), 3, [], selected).layout.shapes
    assert {(shape.y0 + 0.5, shape.x0 + 0.5) for shape in shapes} == outlined


def test_an_undefined_cell_is_blank_and_says_so():
    undefined = dict.fromkeys(cells(2), None)
    figure = figures.pair_heatmap(undefined, 2, [])
    assert not written(figure)
    assert set(squares(figure).text) == {"undefined"}
    assert "no score defined" in figure.layout.meta["alt"]
    assert [note.text for note in figure.layout.annotations] == ["no score is defined"]  # an empty map says it is
    assert not figures.pair_heatmap(undefined | {(0, 0): 1.0}, 2, []).layout.annotations


@pytest.mark.parametrize("drawn", [figures.pair_heatmap, figures.difference_heatmap])
def test_every_number_is_written_in_its_cell_and_can_be_read_on_its_colour(drawn):
    values = {(i, j): 3.0 * i - 2.9 * j for i in range(9) for j in range(i, 9)}
    figure = drawn(values, 9, *[[]] * (drawn is figures.pair_heatmap))
    heat, numbers = figure.data[0], written(figure)
    assert {(y, x): float(text) for y, x, text, _ in numbers} == pytest.approx(
        {(y, x): round(heat.z[y][x], 2) for y in range(9) for x in range(9)}, abs=0.051
    )
    low, high = (np.min(heat.z), np.max(heat.z)) if heat.zmin is None else (heat.zmin, heat.zmax)
    scale = [list(stop) for stop in heat.colorscale]
    for y, x, _, ink in numbers:
        at = min(max((heat.z[y][x] - low) / (high - low), 0), 1)
        (paper,) = sample_colorscale(scale, [at])
        behind = "#" + "".join(f"{round(float(part)):02X}" for part in paper[4:-1].split(","))
        assert contrast(ink, behind) >= 4.5


def test_two_heatmaps_can_share_a_scale():
    heat = figures.pair_heatmap(cells(2), 2, [], (), (0.0, 90.0)).data[0]
    assert (heat.zmin, heat.zmax) == (0.0, 90.0)


@pytest.mark.parametrize(
    "drawn", [figures.difference_heatmap, lambda cells, n: figures.pair_heatmap(cells, n, [], gain=True)]
)
def test_differences_of_hundredths_stay_pale(drawn):
    heat = drawn({(0, 0): 0.01, (0, 1): -0.02, (1, 1): 0.0}, 2).data[0]
    assert (heat.zmin, heat.zmax) == (-0.5, 0.5)


# Layer subsets


def test_a_size_curve_stars_the_best_size_and_its_points_carry_their_layers():
    figure = figures.size_curves({"none": sizes(80.0), "pca": sizes(70.0)}, LABELS, 4)
    raw = named(figure, LABELS["none"])
    assert (list(raw.x), list(raw.y)) == ([1, 2, 3], [76.0, 80.0, 79.0])
    assert [list(layers) for layers in raw.customdata] == [[3], [0, 3], [0, 1, 3]]
    stars = [(list(t.x), list(t.y)) for t in figure.data if t.marker.symbol == "star"]
    assert stars == [([2], [80.0]), ([2], [70.0])]
    assert "Raw at most 80.00 with layers 0 + 3" in figure.layout.meta["alt"]


def test_a_size_curve_has_room_for_every_size_from_the_start_and_does_not_blow_up_small_differences():
    figure = figures.size_curves({"none": {1: ((3,), 80.0), 2: ((0, 3), 80.01)}}, LABELS, 12)
    assert figure.layout.xaxis.range[1] > 12
    low, high = figure.layout.yaxis.range
    assert high - low >= 2
    assert low < 80.0 < 80.01 < high


@pytest.mark.parametrize("best", [{}, {"none": {}}])
def test_a_size_curve_without_a_score_is_empty(best):
    figure = figures.size_curves(best, LABELS, 4)
    assert sum(len(trace.x) for trace in figure.data) == 0
    assert "no score defined" in figure.layout.meta["alt"]


def test_printed_sizes_stand_beside_the_curve():
    figure = figures.size_curves({"none": sizes(50.0)}, LABELS, 4, {2: ((1, 3), 60.0)})
    (printed,) = [trace for trace in figure.data if trace.marker.symbol == "diamond-open"]
    assert (printed.x[0], printed.y[0], list(printed.customdata[0])) == (2, 60.0, [1, 3])
    assert figure.layout.yaxis.range[1] > 60.0


def test_layer_counts_grow_from_zero_to_all():
    figure = figures.layer_counts([3, 9, 0], 10)
    assert list(figure.data[0].y) == [3, 9, 0]
    assert figure.layout.yaxis.range[0] == 0
    assert figure.layout.yaxis.range[1] >= 10
    assert "layer 1 in 9" in figure.layout.meta["alt"]


def test_a_ranking_has_a_dot_for_every_layer_a_subset_holds():
    figure = figures.subset_ranking(ranking(), 4)
    dots = figure.data[1]
    layers_of = {row: {x for x, y in zip(dots.x, dots.y, strict=True) if y == row} for row in range(4)}
    assert layers_of == {row: set(layers) for row, (layers, _, _) in enumerate(ranking())}
    assert list(figure.data[2].text) == ["80.00", "79.50", "79.50", "70.00"]


@pytest.mark.parametrize("figure", [figures.subset_ranking(ranking(), 4), figures.layer_counts([1, 0, 3, 2], 3)])
def test_what_has_the_colour_of_a_layer_has_an_edge_to_be_seen_on_any_page(figure):
    marks = [trace.marker for trace in figure.data if isinstance(trace.marker.color, tuple | list)]
    assert {(mark.line.color, mark.line.width >= 2) for mark in marks} == {(figures.RULE, True)}


def test_a_ranking_shows_ties_as_ties():
    assert list(figures.subset_ranking(ranking(), 4).layout.yaxis.ticktext) == ["1", "2 =", "2 =", "4"]


def test_a_click_anywhere_on_a_line_of_the_ranking_meets_its_layers():
    figure = figures.subset_ranking(ranking(), 4)
    marks = squares(figure)
    for row, (layers, _, _) in enumerate(ranking()):
        carried = [tuple(d) for d, y in zip(marks.customdata, marks.y, strict=True) if y == row]
        assert carried == [layers] * 5  # four layers and the score
    assert figure.layout.clickmode == "event+select"  # without it a click selects nothing


@pytest.mark.parametrize(("selected", "rows"), [((3, 1), [2]), ((3,), [1]), ((2,), []), ((), [])])
def test_the_workspace_layers_are_outlined_in_the_ranking(selected, rows):
    shapes = figures.subset_ranking(ranking(), 4, selected).layout.shapes
    assert [round(shape.y0 + 0.48) for shape in shapes if shape.type == "rect"] == rows


def test_a_ranking_keeps_its_height_while_it_fills():
    short, full = (figures.subset_ranking(ranking()[:1] * n, 4, lines=10).layout for n in (1, 10))
    assert short.height == full.height
    assert short.yaxis.range == full.yaxis.range
    assert "no score defined" in figures.subset_ranking([], 4).layout.meta["alt"]


def dumbbells(half_width=20.0):
    rows = [
        {"layer": i, "raw": 60.0 + i, "whitened": 62.0, "cut": 61.0}
        | {"raw_half_width_95": half_width + i, "whitened_half_width_95": 9.0, "cut_half_width_95": 90.0}
        for i in range(3)
    ]
    names = {"raw": "Raw", "whitened": "PCA whitening", "cut": "cut to k = 4"}
    return figures.layer_dumbbells(rows, names, "pca", 3)


def test_whiskers_of_layers_are_drawn_whole_and_a_cut_has_none():
    low, high = dumbbells().layout.yaxis.range
    assert 30 < low < 40
    assert 84 < high < 95


def test_the_axis_of_layers_ends_where_a_correlation_does_however_wide_an_interval():
    low, high = dumbbells(half_width=250.0).layout.yaxis.range
    assert -120 < low < -100
    assert 100 < high < 120


def test_the_changes_of_layers_stand_over_them_and_turn_where_they_have_no_room():
    figure = dumbbells()
    below, above = go.Figure(figure.to_dict()).layout.xaxis, figure.layout.xaxis2  # which is valid
    assert (above.side, above.range) == ("top", below.range)
    assert dict(zip(above.tickvals, above.ticktext, strict=True)) == {
        0: "<b>+2.00</b>",
        1: "<b>+1.00</b>",
        2: "<b>0</b>",
    }
    assert above.autotickangles == (0, -90)
