"""Probes as data: accuracies with their intervals, confusions, and the cosines of labelled pairs."""

import numpy as np
import pytest
from drawings import LABELS, accuracies, all_figures, named

from whitelab import figures


def test_accuracies_stand_on_their_intervals_from_zero_to_a_hundred():
    figure = figures.accuracy_by_layer({"none": accuracies(), "pca": {}}, LABELS, 3, 20.0)
    raw = named(figure, LABELS["none"])
    assert [row[0] for row in raw.customdata] == [0, 2]  # the layer without a score is left out
    assert list(raw.y) == [50.0, 90.0]
    assert list(raw.error_y.array) == [10.0, 5.0]
    assert list(raw.error_y.arrayminus) == [10.0, 10.0]
    assert figure.layout.yaxis.range[0] == 0
    assert figure.layout.shapes[0].y0 == 20.0
    assert f"{LABELS['none']} is best at layer 2 with 90.00" in figure.layout.meta["alt"]


def test_names_below_a_confusion_matrix_lie_flat_or_stand_upright():
    classes = ["complaint", "promise"]  # tilted by 30 degrees, as plotly would, such names touch on a phone
    assert set(figures.confusion([[3, 1], [0, 0]], classes, "an example").layout.xaxis.autotickangles) == {0, 90}


@pytest.mark.parametrize("classes", [("10", "101"), ("01", "1.5"), ("2024-01-02", "2024-03-05"), ("0,4", "1")])
def test_classes_are_names_though_they_look_like_numbers_or_dates(classes):
    figure = figures.confusion([[3, 1], [0, 0]], classes, "an example")
    assert {axis.type for axis in (figure.layout.xaxis, figure.layout.yaxis)} == {"category"}
    assert (figure.data[0].x, figure.layout.xaxis.ticktext) == (classes, classes)


@pytest.mark.parametrize("begins", ["customer service by ", "customer_service_by_"])
@pytest.mark.parametrize("ends", [("phone", "email"), ("a phone or by email", "an email or by email")])
def test_classes_that_begin_or_end_alike_are_not_one_and_are_called_apart(begins, ends):
    classes = tuple(begins + end for end in ends)
    figure = figures.confusion([[3, 1], [0, 2]], classes, "an example")
    assert figure.data[0].x == figure.data[0].y == figure.layout.xaxis.tickvals == classes
    assert figure.layout.xaxis.ticktext == figure.layout.yaxis.ticktext
    assert len({*figure.layout.xaxis.ticktext}) == 2
    assert all(len(tick) <= 22 for tick in figure.layout.xaxis.ticktext)


def test_a_confusion_matrix_shows_counts_and_colours_shares():
    trace = figures.confusion([[3, 1], [0, 0]], ["<b>", "b"], "an example").data[0]
    assert [list(row) for row in trace.text] == [["3", "1"], ["0", "0"]]
    assert trace.z.tolist() == [[75, 25], [0, 0]]
    assert trace.x[0] == "&lt;b&gt;"


def test_cosines_by_label_hold_every_pair_once_and_both_thresholds():
    figure = all_figures()["cosines_by_label"]
    assert [sum(trace.y) for trace in figure.data[:2]] == [pytest.approx(100), pytest.approx(100)]
    assert sorted(shape.x0 for shape in figure.layout.shapes) == [0.4, 0.5]
    assert [trace.name for trace in figure.data[2:]] == ["fixed 0.5", "best 0.40"]
    assert not figure.layout.annotations  # two of them meet on a phone, wherever they stand
    empty = figures.cosines_by_label(np.array([0.5]), np.array([True]), ("no", "yes"), 0.5, 0.5, "raw")
    assert sum(empty.data[0].y) == 0
