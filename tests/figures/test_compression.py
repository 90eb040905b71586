"""Bits and cosines as data: the frontier with its intervals and numbers to click on, the scale with its rule."""

import pytest
from drawings import LABELS, coded, named

from whitelab import figures


def test_every_code_is_a_mark_that_carries_its_number_and_the_frontier_is_joined():
    rows = coded()
    figure = figures.bits_frontier(rows, LABELS, "nDCG@10", 2, 4)
    marks = [trace for trace in figure.data if trace.customdata is not None]
    assert sorted(one[0] for trace in marks for one in trace.customdata) == list(range(len(rows)))
    assert list(named(figure, "best for its bytes").x) == [2, 64]
    raw = named(figure, LABELS["none"])
    assert list(raw.error_y.array) == pytest.approx([0.1, 0.11])
    assert list(named(figure, LABELS["pca"]).error_y.array) == [0.0]  # not on the frontier
    assert list(raw.marker.symbol) == ["circle", "square"]
    assert [shape.y0 for shape in figure.layout.shapes if shape.y0 == shape.y1] == [rows[0]["score"]]
    assert "64 bytes 0.5000 by float32" in figure.layout.meta["alt"]


def test_a_scale_is_a_line_a_variant_with_the_cosine_ruled_in():
    figure = figures.cosine_scale({"none": ([0.0, 1.0], [0.0, 5.0])}, LABELS, 0.7, "Gold")
    assert list(named(figure, LABELS["none"]).y) == [0.0, 5.0]
    assert [shape.x0 for shape in figure.layout.shapes] == [0.7]


def test_the_sizes_that_are_written_are_those_of_raw_vectors_where_others_lie_beside_them():
    raw, mapped = coded()[0], next(row for row in coded() if row["whitening"] == "pca")
    sizes = [(raw, 1536), (raw, 48), (mapped, 1532), (mapped, 383)]  # PCA's map of 384 dimensions keeps 383
    figure = figures.bits_frontier([row | {"bytes": size} for row, size in sizes], LABELS, "nDCG@10", 0, 4)
    assert sorted(figure.layout.xaxis.tickvals) == [48, 383, 1536]
