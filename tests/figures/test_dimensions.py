"""Kept dimensions as data: curves over k, every k of every layer, and what a search costs."""

import numpy as np
import pytest
from drawings import NAUGHTY, all_figures, costs, k_marks, named, squares, surface

from whitelab import figures

# Curve over k


def test_the_k_curve_marks_best_knee_and_chosen_k():
    curve = [10.0, 30.0, 29.8, 20.0]
    figure = figures.k_curves(curve, {}, "zca", "ZCA whitening", k_marks(4, 2, 2), 4)
    marks = {trace.name: (trace.x[0], trace.y[0]) for trace in figure.data if trace.mode == "markers"}
    assert marks == {"knee: k = 2": (2, 30.0), "best: k = 2": (2, 30.0), "chosen: k = 4": (4, 20.0)}
    assert list(named(figure, "ZCA whitening").x) == [1, 2, 3, 4]


def test_the_raw_score_and_the_rank_are_ruled_in():
    layout = figures.k_curves([1.0] * 6, {}, "pca", "PCA", k_marks(1, 1, 1), 4, 0.5).layout
    assert {(shape.x0, shape.y0) for shape in layout.shapes} >= {(0, 0.5), (4, 0)}
    raw, rank = layout.annotations
    assert (raw.text, raw.y, raw.xref, raw.x, raw.xanchor) == ("raw<br>0.50", 0.5, "paper", 1, "left")  # outside
    assert (rank.text, rank.x, rank.xanchor) == ("rank 4", 4, "right")  # on the wider side
    assert len(figures.k_curves([1.0] * 6, {}, "pca", "PCA", k_marks(1, 1, 1), 6).layout.shapes) == 0


def test_an_undefined_curve_is_drawn_without_marks():
    figure = figures.k_curves([None, None], {"a": [None, None]}, "pca", "PCA", k_marks(1, None, None), 2)
    assert all(trace.mode == "lines" for trace in figure.data)
    assert "no score defined" in figure.layout.meta["alt"]


def test_many_subsets_are_one_name_in_the_legend():
    curves = {name: [1.0, 2.0] for name in "abc"}
    lines = figures.k_curves([1.0, 2.0], curves, "pca", "PCA", k_marks(1, 2, 1), 2).data
    shown = [trace.name for trace in lines if trace.mode == "lines" and trace.showlegend is not False]
    assert shown == ["each subset", "PCA"]
    assert {trace.legendgroup for trace in lines if trace.name in (*curves, "each subset")} == {"subsets"}  # one switch
    assert {trace.line.width for trace in lines if trace.legendgroup == "subsets"} == {1.2}  # the legend shows the line


def test_the_subsets_of_a_curve_are_escaped_in_its_hover():
    figure = figures.k_curves([1.0, 2.0], {NAUGHTY: [1.0, 2.0]}, "pca", "PCA", k_marks(1, 2, 1), 2)
    assert "<img" not in figure.data[0].hovertemplate


# Search costs


def test_cost_and_recall_are_shares_in_two_panels_on_one_axis_of_k():
    figure = all_figures()["search_costs"]
    shares = {trace.name: (trace.yaxis, list(trace.y)) for trace in figure.data}
    assert shares == {
        "Memory": ("y", [25, 50, 100]),
        "Time of one query": ("y", [27, 52, 100]),
        "Raw neighbours found": ("y2", [40, 40, 40]),
        "Neighbours at k = 8 found": ("y2", [25, 50, 100]),
    }
    assert all(list(trace.x) == [2, 4, 8] for trace in figure.data)
    assert figure.layout.xaxis.matches == "x2"
    assert figure.layout.yaxis.range[0] == figure.layout.yaxis2.range[0] == figure.layout.xaxis2.range[0] == 0


def test_search_costs_show_the_spread_of_the_time_and_the_amounts_behind_the_shares():
    figure = all_figures()["search_costs"]
    time, memory = named(figure, "Time of one query"), named(figure, "Memory")
    assert list(time.error_y.array) == pytest.approx([3, 3, 0])
    assert list(time.error_y.arrayminus) == pytest.approx([1, 1, 0])
    assert list(time.customdata) == ["1 ms", "2 ms", "4 ms"]
    assert list(memory.customdata) == ["2.0 MiB", "4.0 MiB", "8.0 MiB"]


def test_the_chosen_k_is_ruled_into_both_panels_of_the_search_costs():
    assert [(shape.x0, shape.x1) for shape in all_figures()["search_costs"].layout.shapes] == [(4, 4), (4, 4)]


def test_search_costs_are_said_in_words_for_the_nearest_measured_k():
    alt = figures.search_costs(costs(), "zca", 5, 10).layout.meta["alt"]
    assert "k = 4 takes 52 % of the time and 50 % of the memory of k = 8" in alt
    assert "50 % of the same 10 neighbours and 40 % of those of the raw vectors" in alt


# Every k of every layer


def test_a_surface_holds_the_score_of_every_layer_at_every_column():
    figure = figures.k_surface(surface(), 3, [2, 5, None], "PCA whitening")
    grid = np.array(figure.data[0].z, dtype=float)
    assert grid.shape == (3, 6)
    assert grid[0].tolist() == surface()[0]
    assert np.isnan(grid[2]).all()
    stars = figure.data[-1]
    assert [(x + 1, y) for x, y in zip(stars.x, stars.y, strict=True)] == [(2, 0), (5, 1)]
    assert "layer 0 k = 2, layer 1 k = 5" in figure.layout.meta["alt"]


def test_a_click_on_the_surface_meets_its_layer_and_k():
    figure = figures.k_surface(surface(), 3, [2, 5, None], "PCA whitening")
    marks = squares(figure)
    assert {tuple(d) for d in marks.customdata} == {(layer, k) for layer in range(3) for k in range(1, 7)}
    for (layer, k), x, y, text in zip(marks.customdata, marks.x, marks.y, marks.text, strict=True):
        assert (x, y) == (k - 1, layer)
        value = surface()[layer][k - 1]
        assert text == ("undefined" if value is None else f"{value:.2f}")


def test_columns_are_few_hold_both_ends_every_small_k_and_what_must_be_there():
    assert figures.k_columns(6) == [1, 2, 3, 4, 5, 6]
    ks = figures.k_columns(768, [333])
    assert ks == sorted(set(ks))
    assert {1, 2, 3, 4, 333, 768} <= set(ks)
    assert len(ks) < 80
    assert max(later / earlier for earlier, later in zip(ks[8:], ks[9:], strict=False)) < 1.2


def test_the_stars_of_a_wide_surface_stand_on_the_column_of_their_own_k():
    best = [333, 17]
    figure = figures.k_surface([list(np.linspace(1, 80, 768))] * 2, 2, best, "PCA")
    ks = [d[1] for d in squares(figure).customdata[: len(figure.data[0].z[0])]]
    assert [ks[x] for x in figure.data[-1].x] == best
    named_ks = dict(zip(figure.layout.xaxis.tickvals, figure.layout.xaxis.ticktext, strict=True))
    assert all(ks[at] == int(text) for at, text in named_ks.items())


def test_the_scale_of_a_surface_says_where_it_is_cut():
    bar = figures.k_surface(surface(), 3, [2, 5, None], "PCA").data[0]
    known = [value for row in surface() for value in row if value is not None]
    assert bar.zmin == pytest.approx(np.quantile(known, 0.25))
    assert bar.zmax == 60
    assert bar.colorbar.ticktext[0].startswith("≤")
    assert not bar.colorbar.ticktext[-1].startswith("≤")


def test_the_chosen_layer_and_k_are_outlined_on_the_surface():
    (box,) = figures.k_surface(surface(), 3, [2, 5, None], "PCA", (1, 3)).layout.shapes
    assert (box.x0 + 0.5, box.y0 + 0.5) == (2, 1)
    assert len(figures.k_surface(surface(), 3, [2, 5, None], "PCA").layout.shapes) == 0


def test_a_surface_keeps_its_size_while_layers_arrive():
    whole, part = (figures.k_surface(surface()[:n], 3, [2, 5, None][:n], "PCA", (2, 3)) for n in (3, 1))
    assert whole.layout.height == part.layout.height
    assert whole.layout.yaxis.range == part.layout.yaxis.range
    assert len(part.layout.shapes) == 0
    assert len(figures.k_surface([], 3, [], "PCA").data) == 3
