"""Scores as bars and dots with their intervals, and every pair against its gold score. Nothing is rendered."""

import math

import numpy as np
import pytest
from drawings import DARK, LABELS, LIGHT, NAUGHTY, contrast, scattered, standings

from whitelab import figures

# Bars


def test_bars_stand_for_the_scores_and_whiskers_for_the_intervals():
    names = ["raw", "PCA whitening", "ZCA whitening"]
    figure = figures.score_bars(["none", "pca", "zca"], names, [50.126, 61.0, 99.0], [2.0, 1.5, 9.0])
    bar = figure.data[0]
    assert list(bar.x) == [50.126, 61.0, 99.0]
    assert list(bar.error_x.array) == pytest.approx([2.0, 1.5, 1.0])  # no score lies above 100
    assert list(bar.error_x.arrayminus) == pytest.approx([2.0, 1.5, 9.0])
    assert "raw 50.13" in figure.layout.meta["alt"]


def test_the_number_of_a_bar_stands_beside_it_where_no_whisker_or_hue_is():
    figure = figures.score_bars(["none", "pca"], ["raw", "PCA whitening"], [50.126, 61.0], [2.0, 60.0])
    notes, bar = figure.layout.annotations, figure.data[0]
    assert [(note.y, note.text) for note in notes] == list(zip(bar.y, ["50.13", "61.00"], strict=True))
    assert {(note.xref, note.x, note.xanchor) for note in notes} == {("paper", 1, "left")}
    assert bar.text is None


@pytest.mark.parametrize("behind", [LIGHT, DARK, *figures.VARIANT_COLOURS.values()])
def test_whiskers_stand_out_from_every_bar_and_page(behind):
    rim, line = figures.score_bars(["none"], ["raw"], [50.0], [2.0]).data
    assert list(rim.error_x.array) == list(line.error_x.array) == pytest.approx([2.0])
    assert rim.error_x.thickness > line.error_x.thickness
    assert max(contrast(trace.error_x.color, behind) for trace in (rim, line)) >= 3


def test_bars_grow_from_zero():
    axis = figures.score_bars(["none"], ["raw"], [80.0], [1.0]).layout.xaxis
    assert axis.range is None or axis.range[0] <= 0


# Scores with intervals


def test_dots_stand_for_the_scores_and_asymmetric_whiskers_for_the_intervals():
    figure = figures.score_dots(standings(["none", "pca"]), LABELS, 50.0)
    raw, pca = figure.data
    assert (list(raw.x), list(raw.y), list(pca.x), list(pca.y)) == ([50], [0], [51], [1])
    assert (list(pca.error_x.array), list(pca.error_x.arrayminus)) == ([1], [1.5])
    assert list(figure.layout.yaxis.ticktext) == ["Raw", "<b>PCA whitening</b><br>best"]
    assert [note.text for note in figure.layout.annotations] == ["50.00", "<b>51.00</b>"]
    assert "PCA whitening 51.00 (49.50 to 52.00)" in figure.layout.meta["alt"]


def test_the_axis_of_scores_is_theirs_with_room_for_values_and_raw_is_ruled_in():
    rows = standings(["none", "pca"])  # 48.5 to 52
    figure = figures.score_dots(rows, LABELS, 50.0)
    assert list(figure.layout.xaxis.range) == pytest.approx([48.5 - 1.4, 52 + 1.4])
    assert [shape.x0 for shape in figure.layout.shapes] == [50]
    assert figures.score_dots(rows, LABELS, -3.0).layout.xaxis.range[0] < -3
    assert figures.score_dots([rows[0] | {"low": math.nan, "high": math.nan}], LABELS, 50.0).layout.xaxis.range[1] < 51


def test_a_value_stands_on_the_side_of_raw_that_its_score_is_on():
    rows = standings(["none", "pca"])
    for score, side in ((40.0, "right"), (60.0, "left")):  # of the value, that is at the interval's end
        rows[1] |= {"spearman": score, "low": score - 5, "high": score + 5}
        assert figures.score_dots(rows, LABELS, 50.0).layout.annotations[1].xanchor == side


def test_equal_best_scores_are_shown_as_tied():
    rows = [row | {"best": True} for row in standings(["pca", "zca"])]
    names = figures.score_dots(rows, LABELS, None).layout.yaxis.ticktext
    assert [name.endswith("best, tied") for name in names] == [True, True]


def test_differences_lie_on_an_axis_centred_on_zero_and_open_dots_could_be_chance():
    figure = figures.difference_dots(standings(["pca", "zca", "soft"]), LABELS, "raw")
    low, high = figure.layout.xaxis.range
    assert low == -high < -2.5
    assert [shape.x0 for shape in figure.layout.shapes] == [0]
    assert [trace.marker.symbol.endswith("-open") for trace in figure.data] == [False, True, False]
    assert "ZCA whitening +0.00 (-0.75 to +0.50, could be chance)" in figure.layout.meta["alt"]


@pytest.mark.parametrize("missing", [None, math.nan])
def test_scores_that_are_not_defined_keep_their_row_and_draw_nothing(missing):
    rows = standings(["none", "pca"])
    rows[1] |= dict.fromkeys(("spearman", "low", "high", "difference", "difference_low", "difference_high"), missing)
    for figure in (figures.score_dots(rows, LABELS, 50.0), figures.difference_dots(rows, LABELS, "raw")):
        assert len(figure.data) == 1
        assert len(figure.layout.yaxis.ticktext) == 2
    rows[0] = rows[1]
    assert "no score is defined" in figures.score_dots(rows, LABELS, missing).layout.meta["alt"]
    assert "no score is defined" in figures.difference_dots(rows, LABELS, "raw").layout.meta["alt"]


@pytest.mark.parametrize("missing", [None, math.nan])
def test_a_score_without_an_interval_is_a_dot_alone(missing):
    rows = standings(["none", "pca"])
    rows[1] |= dict.fromkeys(("low", "high", "difference_low", "difference_high"), missing)
    for figure in (figures.score_dots(rows, LABELS, 50.0), figures.difference_dots(rows, LABELS, "raw")):
        dot = figure.data[1]
        assert dot.error_x.array is None
        assert "95 %" not in dot.hovertemplate
        assert "nan" not in figure.layout.meta["alt"]


def test_a_label_is_escaped_in_hover():
    rows = standings(["none"])
    figure = figures.difference_dots(rows, {"none": "Raw"}, NAUGHTY)
    assert "<img" not in figure.data[0].hovertemplate
    assert "<img" not in figure.layout.xaxis.title.text


# Pairs


def test_a_scatter_of_gold_shows_every_pair_with_its_own_text_and_the_furthest_on_top():
    trace = scattered(-300.0, 0.0, 200.0).data[0]
    assert list(zip(trace.x, trace.y, trace.text, trace.marker.color, strict=True)) == [
        (5, 0.9, "b", 0),
        (3, 0.5, "c", 200),
        (0, 0.1, "a", -300),
    ]
    assert trace.marker.cmin == -trace.marker.cmax
    assert 200 < trace.marker.cmax <= 300


def test_two_scatters_share_the_axis_they_are_given():
    assert tuple(scattered(0.0, 0.0, 0.0).layout.yaxis.range) == (-0.1, 1.03)
    nothing = np.empty(0)
    assert figures.gold_scatter(nothing, nothing, nothing, [], 0.0, "raw").data[0].x.size == 0
