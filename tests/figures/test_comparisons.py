"""Protocols, rows and papers side by side, as data: steps that add up, and differences centred on zero."""

import json
import math

import numpy as np
import plotly.graph_objects as go
import pytest
from drawings import NAUGHTY, duel, spot

from whitelab import figures

STEPS = [("Pooling", "cls -> mean", 2.0), ("Layers", NAUGHTY, -0.5), ("Text", "a -> b", 0.0)]


def test_every_step_begins_where_the_one_before_it_ended():
    figure = figures.walk_steps(("A", 70.0), ("B", 71.5), STEPS)
    bars = [trace for trace in figure.data if isinstance(trace, go.Bar)]
    ends = [(bar.base[0], bar.base[0] + bar.x[0]) for bar in bars]
    assert ends == [(70.0, 72.0), (72.0, 71.5), (71.5, 71.5)]
    (marks,) = [trace for trace in figure.data if isinstance(trace, go.Scatter)]
    assert list(marks.x) == [70.0, 71.5]
    assert [note.text for note in figure.layout.annotations] == ["<b>70.00</b>", "<b>71.50</b>", "+2.00", "-0.50", "0"]
    assert "Pooling (cls -> mean) +2.00" in figure.layout.meta["alt"]


def test_steps_of_hundredths_do_not_fill_the_picture():
    figure = figures.walk_steps(("A", 70.0), ("B", 70.02), [("Text", "a -> b", 0.02)])
    low, high = figure.layout.xaxis.range
    assert high - low >= 2


def test_text_of_others_is_escaped_in_steps_rows_and_settings():
    drawn = [
        figures.walk_steps((NAUGHTY, 1.0), ("B", 0.5), STEPS),
        figures.row_differences([duel(NAUGHTY, 1.0)], NAUGHTY, "B"),
        figures.setting_plane([spot("pca", 1) | {"model": NAUGHTY, "setting": NAUGHTY, "label": NAUGHTY}], -3.9),
        figures.task_curves({NAUGHTY: [1.0, 2.0]}, {NAUGHTY: 2}, [(NAUGHTY, 1, 1.0)]),
    ]
    for figure in drawn:
        record = figure.to_dict()
        del record["layout"]["meta"]  # plain text
        for trace in record["data"]:
            trace.pop("legendgroup", None)  # a key
        assert "<img" not in json.dumps(record, default=list)


def test_a_row_that_could_be_chance_has_an_open_dot_and_one_without_a_score_has_none():
    rows = [duel("a", 1.0), duel("b", -1.0) | {"settled": False}, duel("c", math.nan)]
    figure = figures.row_differences(rows, "A", "B")
    assert [trace.marker.symbol for trace in figure.data] == ["circle", "circle-open"]
    assert list(figure.layout.yaxis.ticktext) == ["a", "b", "c"]
    first = figure.data[0]
    assert (first.x[0] + first.error_x.array[0], first.x[0] - first.error_x.arrayminus[0]) == (1.7, 0.5)
    low, high = figure.layout.xaxis.range
    assert low == -high
    assert "b -1.00 (-1.50 to -0.30), could be chance" in figure.layout.meta["alt"]


def test_differences_from_print_are_centred_on_zero_and_hundredths_stay_pale():
    figure = figures.difference_heatmap({(0, 0): 0.01, (0, 1): -0.02}, 2)
    heat = figure.data[0]
    assert (heat.zmin, heat.zmax) == (-0.5, 0.5)
    assert np.array_equal(heat.z, [[0.01, -0.02], [-0.02, np.nan]], equal_nan=True)
    assert figures.difference_heatmap({(0, 0): 3.0}, 1).data[0].zmax == 3.0


def test_printed_numbers_stand_at_their_k_in_the_hue_of_their_task():
    figure = figures.task_curves({"a": [1.0, 5.0, 4.0], "b": [2.0, 1.0, 3.0]}, {"a": 2, "b": 3}, [("b", 1, 9.0)])
    line = next(trace for trace in figure.data if (trace.name or "").startswith("b"))
    assert line.name == "b, k = 3"
    stars = [(trace.x[0], trace.y[0]) for trace in figure.data if trace.marker.symbol == "star"]
    assert stars == [(2, 5.0), (3, 3.0)]
    (printed,) = [trace for trace in figure.data if trace.marker.symbol == "diamond-open"]
    assert (printed.x[0], printed.y[0], printed.marker.color) == (1, 9.0, line.line.color)
    assert figure.layout.yaxis.range[1] > 9.0


@pytest.mark.parametrize(("first", "said"), [(60.0, False), (4.0, True)])
def test_an_axis_that_cuts_the_first_directions_says_how_far_down_they_go(first, said):
    axis = figures.task_curves({"one": [first, *[60.0 + k / 50 for k in range(99)]]}, {"one": 100}).layout.yaxis
    assert (axis.range[0] > first) is said
    assert ("lowest is 4" in axis.title.text) is said
