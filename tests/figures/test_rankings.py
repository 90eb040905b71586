"""Rankings as data: intervals by layer, the curve over k with its marks, and every query once."""

import pytest
from drawings import LABELS, named

from whitelab import figures


def test_a_metric_by_layer_stands_on_its_intervals_from_zero():
    rows = {0: {"mean": 0.3, "low": 0.2, "high": 0.35}, 2: {"mean": 0.5, "low": 0.45, "high": 0.6}}
    figure = figures.metric_by_layer({"none": rows, "pca": {}}, LABELS, 3, "nDCG@10")
    raw = named(figure, LABELS["none"])
    assert [row[0] for row in raw.customdata] == [0, 2]
    assert list(raw.error_y.array) == pytest.approx([0.05, 0.1])
    assert list(raw.error_y.arrayminus) == pytest.approx([0.1, 0.05])
    assert list(figure.layout.yaxis.range) == pytest.approx([0, 0.66])
    assert f"{LABELS['none']} is best at layer 2 with 0.5000" in figure.layout.meta["alt"]


def test_a_metric_by_k_marks_the_best_and_the_chosen_k_and_rules_raw():
    figure = figures.metric_by_k([0.1, 0.4, 0.3, 0.3], 3, ("pca", "PCA"), {"best": 2, "chosen": 4}, 0.25, "MRR@10")
    assert list(named(figure, "PCA").y) == [0.1, 0.4, 0.3, 0.3]
    assert list(named(figure, "best: k = 2").x) == [2]
    assert list(named(figure, "chosen: k = 4").y) == [0.3]
    assert [shape.y0 for shape in figure.layout.shapes if shape.y0 == shape.y1] == [0.25]
    assert list(figure.layout.yaxis.range) == pytest.approx([0, 0.44])
    assert figure.layout.meta["alt"] == "MRR@10 by kept dimensions: best 0.4000 at k = 2, raw 0.2500, rank 3 of 4"


@pytest.mark.parametrize(("means", "top"), [([0.97, 0.95], 1.02), ([0.0, 0.0], 1.02)])
def test_the_axis_of_a_metric_ends_where_the_metric_does(means, top):
    figure = figures.metric_by_k(means, 2, ("pca", "PCA"), {"best": 1, "chosen": 2}, None, "MRR@10")
    assert list(figure.layout.yaxis.range) == [0, top]


def test_every_query_is_a_bar_and_those_that_gained_come_first():
    figure = figures.query_differences([-0.5, 0.25, 0.0], ["a", "b", "c"], "nDCG@10")
    (bars,) = figure.data
    assert list(bars.y) == [0.25, 0.0, -0.5]
    assert list(bars.customdata) == ["b", "c", "a"]
    assert len(set(bars.marker.color)) == 3
    assert figure.layout.meta["alt"] == "Change of nDCG@10 query by query: 1 of 3 gained and 1 lost"
