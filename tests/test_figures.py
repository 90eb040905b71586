"""The figures as data: what is drawn, in which colours, with which words. Nothing is rendered."""

import json
import math

import numpy as np
import plotly.graph_objects as go
import pytest

from whitelab import figures
from whitelab.whitening import WHITENERS

LABELS = {name: one.label for name, one in WHITENERS.items()}
NAUGHTY = '<img src=x onerror="alert(1)"> a & b'
LIGHT, DARK = "#FFFFFF", "#11161D"


def all_figures() -> dict[str, go.Figure]:
    """One figure of each kind, all variants in it where it takes several."""
    rng = np.random.default_rng(0)
    names = list(WHITENERS)
    rows = [
        {
            "layer": layer,
            "whitening": name,
            "alignment": 0.2 + 0.1 * layer,
            "uniformity": -2.0 - i,
            "spearman": 50.0 + i,
        }
        for i, name in enumerate(names)
        for layer in range(3)
    ]
    curve = [40.0 + k for k in range(8)]
    return {
        "score_bars": figures.score_bars(names, [LABELS[n] for n in names], [50.0 + i for i in range(15)], [1.0] * 15),
        "by_layer": figures.by_layer({n: [0.5, 0.4, 0.3] for n in names}, LABELS, "Mean cosine"),
        "cosine_histogram": figures.cosine_histogram({n: rng.uniform(-1, 1, 50) for n in names}, LABELS),
        "spectrum": figures.spectrum({n: [3.0, 2.0, 1.0] for n in names}, LABELS),
        "projection": figures.projection(rng.normal(size=(4, 2)), list("abcd"), [0.0, 1.0, 2.0, 3.0], "gold", "PCA"),
        "plane": figures.plane(rows, LABELS, -3.9, 1),
        "pair_heatmap": figures.pair_heatmap(cells(3), 3, (0, 2), (1, 2)),
        "k_curves": figures.k_curves(curve, {"a": curve}, "pca", "PCA whitening", 5, 8, 3, 8, 39.0),
        "search_costs": figures.search_costs(costs(), "pca", 4, 10),
        "size_curves": figures.size_curves({name: sizes(50.0 + i) for i, name in enumerate(names)}, LABELS, 4),
        "layer_counts": figures.layer_counts([3, 9, 0], 10),
        "subset_ranking": figures.subset_ranking(ranking(), 4, (1, 3)),
        "k_surface": figures.k_surface(surface(), 3, [2, 5, None], "PCA whitening", (1, 3)),
        "score_dots": figures.score_dots(standings(names), LABELS, 51.0),
        "difference_dots": figures.difference_dots(standings(names), LABELS, "raw"),
        "covariance_image": figures.covariance_image(np.eye(4), 2, 0.5, "PCA whitening"),
        "gold_scatter": scattered(-3.0, 0.0, 2.0),
        "walk_steps": figures.walk_steps(("A", 70.0), ("B", 72.0), [("Pooling", "cls -> mean", 2.0)]),
        "row_differences": figures.row_differences([duel("a", 1.0), duel("b", math.nan)], "A", "B"),
        "difference_heatmap": figures.difference_heatmap({(0, 1): 0.01, (1, 1): -0.2}, 2),
        "task_curves": figures.task_curves({"a": curve, "b": [None] * 8}, {"a": 8, "b": None}, [("a", 4, 43.0)]),
        "setting_plane": figures.setting_plane([spot(name, i) for i, name in enumerate(names)], -3.9),
        "accuracy_by_layer": figures.accuracy_by_layer({n: accuracies() for n in names}, LABELS, 3, 20.0),
        "gold_histogram": figures.gold_histogram(np.array([0.0, 2.5, 2.5, 5.0])),
        "length_histogram": figures.length_histogram(np.array([3, 3, 7, 12])),
        "confusion": figures.confusion([[3, 1], [0, 4]], ["a", "b"], "an example"),
        "cosines_by_label": figures.cosines_by_label(
            np.array([-1.0, 0.2, 0.8, 1.0]), np.array([False, False, True, True]), ("no", "yes"), 0.5, 0.4, "raw"
        ),
    }


def accuracies() -> dict[int, dict]:
    """Layers 0 and 2 of three, with unequal whiskers; layer 1 has no score."""
    return {
        2: {"accuracy": 90.0, "low": 80.0, "high": 95.0},
        0: {"accuracy": 50.0, "low": 40.0, "high": 60.0},
        1: {"accuracy": None, "low": None, "high": None},
    }


def duel(label: str, difference: float) -> dict:
    """A row of a chart of differences."""
    ends = {"low": difference - 0.5, "high": difference + 0.7}
    return {"label": label, "difference": difference, "settled": True} | ends


def spot(name: str, number: int) -> dict:
    """A setting in the plane of the two losses; every third belongs to another model."""
    losses = {"alignment": 0.2 + 0.1 * number, "uniformity": -3.5 + 0.2 * number, "spearman": 50.0}
    return {"model": f"m{number % 3}", "setting": f"L1:{name}", "label": name, "whitening": name} | losses


def sizes(top: float) -> dict[int, tuple[tuple[int, ...], float]]:
    """The best of 1 to 3 layers; two layers are best."""
    return {1: ((3,), top - 4), 2: ((0, 3), top), 3: ((0, 1, 3), top - 1)}


def ranking() -> list[tuple[tuple[int, ...], float, int]]:
    return [((0, 3), 80.0, 1), ((3,), 79.5, 2), ((1, 3), 79.5, 2), ((0, 1, 2), 70.0, 4)]


def surface() -> list[list[float | None]]:
    """Three layers at k = 1..6; the last has no score."""
    return [[10.0, 60.0, 59.0, 58.0, 57.0, 56.0], [1.0, 20.0, 30.0, 40.0, 50.0, 45.0], [None] * 6]


def costs() -> list[dict]:
    """Search costs of k = 2, 4, 8, time a little above the share of memory."""
    return [
        {
            "k": k,
            "milliseconds": 0.5 * k,
            "time_ratio": min(k / 8 + 0.02, 1.0),
            "time_ratio_q1": min(k / 8 + 0.01, 1.0),
            "time_ratio_q3": min(k / 8 + 0.05, 1.0),
            "bytes": k * 2**20,
            "memory_ratio": k / 8,
            "recall": k / 8,
            "raw_recall": 0.4,
        }
        for k in (2, 4, 8)
    ]


def scattered(*change) -> go.Figure:
    """Three pairs whose ranks moved so far."""
    gold, cosines = np.array([0.0, 5.0, 3.0]), np.array([0.1, 0.9, 0.5])
    return figures.gold_scatter(gold, cosines, np.array(change), ["a", "b", "c"], -0.1, "raw")


def standings(names) -> list[dict]:
    """Rows of the dot charts: scores from 50 up, differences from -1 up, every second one settled."""
    return [
        {
            "whitening": name,
            "spearman": 50.0 + i,
            "low": 48.5 + i,
            "high": 51.0 + i,
            "difference": i - 1.0,
            "difference_low": i - 1.75,
            "difference_high": i - 0.5,
            "settled": i % 2 == 0,
            "best": i == len(names) - 1,
        }
        for i, name in enumerate(names)
    ]


def cells(n: int) -> dict[tuple[int, int], float]:
    return {(i, j): 10.0 * i + j for i in range(n) for j in range(i, n)}


def squares(figure: go.Figure) -> go.Scatter:
    """The transparent squares over a heatmap, which are what a click meets."""
    return next(trace for trace in figure.data if isinstance(trace, go.Scatter) and trace.customdata is not None)


def named(figure: go.Figure, name: str):
    return next(trace for trace in figure.data if trace.name == name)


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    """WCAG contrast ratio."""
    high, low = sorted((luminance(one), luminance(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


# What every figure has


@pytest.mark.parametrize("kind", all_figures())
def test_a_figure_says_in_words_what_it_shows_and_reserves_its_height(kind):
    figure = all_figures()[kind]
    assert isinstance(figure, go.Figure)
    assert len(figure.layout.meta["alt"]) > 20
    assert figure.layout.height >= 300
    assert "nan" not in figure.layout.meta["alt"].lower()


@pytest.mark.parametrize("kind", all_figures())
def test_background_and_text_colours_are_left_to_the_theme(kind):
    layout = all_figures()[kind].layout
    assert layout.paper_bgcolor is None
    assert layout.plot_bgcolor is None
    assert layout.font.color is None


@pytest.mark.parametrize(
    ("kind", "x", "y"),
    [
        ("score_bars", None, "Spearman x 100"),
        ("by_layer", "Layer (0 = embedding layer)", "Mean cosine"),
        ("cosine_histogram", "Cosine of two random sentences", "Share of pairs (%)"),
        ("spectrum", "Principal direction, largest first", "Share of variance (%)"),
        ("projection", "PCA 1", "PCA 2"),
        ("pair_heatmap", "Layer", "Layer"),
        ("k_curves", "k, kept dimensions", "Spearman x 100"),
        ("size_curves", "Number of layers averaged", "Best Spearman x 100"),
        ("layer_counts", "Layer", "Among the best 10 subsets"),
        ("subset_ranking", "Layer", "Place"),
        ("k_surface", "k, kept dimensions", "Layer"),
        ("score_dots", "Spearman x 100", None),
        ("difference_dots", "Difference from raw (points)", None),
        ("covariance_image", "Coordinate", "Coordinate"),
        ("gold_scatter", "Gold similarity", "Cosine"),
        ("walk_steps", "Spearman x 100", None),
        ("row_differences", "A less B (points)", None),
        ("difference_heatmap", "Layer", "Layer"),
        ("task_curves", "k, kept dimensions", "Spearman x 100"),
        ("accuracy_by_layer", "Layer (0 = embedding layer)", "Accuracy (%)"),
        ("gold_histogram", "Gold similarity", "Pairs"),
        ("length_histogram", "Words, as spaces part them", "Sentences"),
        ("confusion", "Taken for", "Class"),
        ("cosines_by_label", "Cosine of the pair", "Share of the class (%)"),
    ],
)
def test_axes_carry_their_quantity_and_unit(kind, x, y):
    layout = all_figures()[kind].layout
    assert layout.xaxis.title.text == x
    assert layout.yaxis.title.text == y


@pytest.mark.parametrize("kind", ["plane", "setting_plane"])
def test_the_plane_says_which_direction_is_better_on_both_axes(kind):
    layout = all_figures()[kind].layout
    assert "lower" in layout.xaxis.title.text
    assert "lower" in layout.yaxis.title.text


def test_a_variant_has_one_colour_in_every_figure():
    drawn = all_figures()
    bars = dict(zip(WHITENERS, drawn["score_bars"].data[0].marker.color, strict=True))
    assert bars == figures.VARIANT_COLOURS
    for kind in ("by_layer", "cosine_histogram", "spectrum", "plane"):
        lines = {name: named(drawn[kind], label).line.color for name, label in LABELS.items()}
        assert lines == figures.VARIANT_COLOURS, kind
    lines = {name: named(drawn["accuracy_by_layer"], label).line.color for name, label in LABELS.items()}
    assert lines == figures.VARIANT_COLOURS
    lines = {name: named(drawn["size_curves"], label).line.color for name, label in LABELS.items()}
    assert lines == figures.VARIANT_COLOURS
    assert named(drawn["k_curves"], "PCA whitening").line.color == figures.VARIANT_COLOURS["pca"]


def test_parameters_change_the_dash_and_not_the_colour():
    specs = ("soft:gamma=0.5,alpha=0", "pca", "soft:gamma=1,alpha=0")
    labels = {spec: spec for spec in specs}
    figure = figures.by_layer({spec: [0.5, 0.4] for spec in specs}, labels, "Mean cosine")
    first, pca, second = (named(figure, spec).line for spec in specs)
    assert first.color == second.color == figures.VARIANT_COLOURS["soft"] != pca.color
    assert (first.dash, pca.dash, second.dash) == ("solid", "solid", "dash")


def test_every_registered_variant_has_a_colour_and_a_symbol_of_its_own():
    assert set(figures.VARIANT_COLOURS) == set(figures.VARIANT_SYMBOLS) == set(WHITENERS)
    assert len(set(figures.VARIANT_COLOURS.values())) == len(set(figures.VARIANT_SYMBOLS.values())) == len(WHITENERS)


@pytest.mark.parametrize("background", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("name", figures.VARIANT_COLOURS)
def test_variant_colours_stand_out_from_both_backgrounds(name, background):
    assert contrast(figures.VARIANT_COLOURS[name], background) >= 3


@pytest.mark.parametrize("background", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("colour", [figures.MARK, figures.RULE, *figures.MATCH_COLOURS])
def test_marks_and_rules_stand_out_from_both_backgrounds(colour, background):
    assert contrast(colour, background) >= 3


# Hover text


def test_sentences_are_escaped_wrapped_and_cut():
    shown = figures.wrapped(NAUGHTY)
    assert "<img" not in shown
    assert "&lt;img" in shown
    assert "&amp;" in shown
    long = figures.wrapped("word " * 400)
    assert long.count("<br>") == 3
    assert long.endswith(" ...")
    assert figures.wrapped("") == ""


def test_an_entity_is_not_cut_in_two_by_the_wrap():
    shown = figures.wrapped("&" * 200, width=10, lines=3)
    assert shown.replace("&amp;", "").replace("<br>", "").strip(" .") == ""


def test_a_projection_shows_the_escaped_sentence_and_its_gold_or_subset():
    points = np.arange(6.0).reshape(3, 2)
    texts = [NAUGHTY, "b", "c"]
    gold = figures.projection(points, texts, [0.0, 2.5, 5.0], "gold", "PCA").data[0]
    assert "&lt;img" in gold.text[0]
    assert "<img" not in gold.text[0]
    assert "gold: 2.50" in gold.text[1]
    subset = figures.projection(points, texts, ["<b>x", "y", "y"], "subset", "PCA")
    assert all("<b>x" not in text for trace in subset.data for text in trace.text)


def test_the_subsets_of_a_curve_are_escaped_in_its_hover():
    figure = figures.k_curves([1.0, 2.0], {NAUGHTY: [1.0, 2.0]}, "pca", "PCA", 1, 2, 1, 2)
    assert "<img" not in figure.data[0].hovertemplate


# Bars


def test_bars_stand_for_the_scores_and_whiskers_for_the_intervals():
    figure = figures.score_bars(["none", "pca"], ["raw", "PCA whitening"], [50.126, 61.0], [2.0, 1.5])
    bar = figure.data[0]
    assert list(bar.y) == [50.126, 61.0]
    assert list(bar.text) == ["50.13", "61.00"]
    assert list(bar.error_y.array) == [2.0, 1.5]
    assert "raw 50.13" in figure.layout.meta["alt"]


def test_bars_grow_from_zero():
    axis = figures.score_bars(["none"], ["raw"], [80.0], [1.0]).layout.yaxis
    assert axis.range is None or axis.range[0] <= 0


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


# Projection


@pytest.mark.parametrize(("dims", "kind"), [(2, "scattergl"), (3, "scatter3d")])
def test_a_projection_draws_every_sentence_once(dims, kind):
    points = np.arange(5.0 * dims).reshape(5, dims)
    by_gold = figures.projection(points, list("abcde"), [0.0, 1.0, 2.0, 3.0, 4.0], "gold", "PCA")
    by_subset = figures.projection(points, list("abcde"), ["s", "t", "s", "t", "t"], "subset", "PCA")
    assert [trace.type for trace in by_gold.data] == [kind]
    assert by_gold.data[0].showlegend is False
    assert {trace.name: len(trace.x) for trace in by_subset.data} == {"s": 2, "t": 3}
    assert all(trace.showlegend for trace in by_subset.data)


def test_one_sentence_and_no_sentence_can_be_projected():
    assert len(figures.projection(np.zeros((1, 2)), ["a"], [3.0], "gold", "PCA").data[0].x) == 1
    empty = figures.projection(np.zeros((0, 2)), [], [], "gold", "PCA")
    assert sum(len(trace.x) for trace in empty.data) == 0


# Plane


def test_the_plane_has_one_path_a_variant_and_one_colour_scale():
    figure = all_figures()["plane"]
    assert {trace.name for trace in figure.data} == set(LABELS.values())
    assert sum(bool(trace.marker.showscale) for trace in figure.data) == 1
    assert {trace.marker.cmin for trace in figure.data} == {50.0}
    assert {trace.marker.cmax for trace in figure.data} == {64.0}
    assert list(figure.data[0].text) == ["0", "1", "2"]


def test_the_plane_draws_the_isotropic_floor():
    assert [shape.x0 for shape in all_figures()["plane"].layout.shapes] == [-3.9]


def test_the_plane_outlines_the_chosen_layer():
    assert list(all_figures()["plane"].data[0].marker.line.color).count(figures.MARK) == 1


def test_the_plane_leaves_out_what_is_not_defined():
    rows = [
        {"layer": 0, "whitening": "none", "alignment": math.nan, "uniformity": -1.0, "spearman": 1.0},
        {"layer": 1, "whitening": "none", "alignment": 0.5, "uniformity": -2.0, "spearman": math.nan},
    ]
    figure = figures.plane(rows, LABELS, -3.9)
    assert list(figure.data[0].y) == [0.5]
    assert len(figures.plane([], LABELS, -3.9).data) == 0


# Heatmap


def test_a_heatmap_is_symmetric_and_stars_the_best_pair_on_both_sides():
    figure = figures.pair_heatmap(cells(4), 4, (1, 3))
    heat, stars = figure.data[0], figure.data[-1]
    grid = np.array(heat.z, dtype=float)
    assert np.array_equal(grid, grid.T)
    assert grid[1, 3] == 13
    assert {(round(y), x) for x, y in zip(stars.x, stars.y, strict=True)} == {(1, 3), (3, 1)}
    assert {tuple(pair) for pair in stars.customdata} == {(1, 3), (3, 1)}
    assert len(figures.pair_heatmap(cells(4), 4, None).data) == len(figure.data) - 1


def test_a_click_meets_a_square_that_carries_the_layers_of_the_cell_below_it():
    figure = figures.pair_heatmap(cells(3), 3, None)
    marks = squares(figure)
    assert [tuple(pair) for pair in marks.customdata] == [(i, j) for i in range(3) for j in range(3)]
    grid = figure.data[0].z
    for x, y, pair, text in zip(marks.x, marks.y, marks.customdata, marks.text, strict=True):
        assert (y, x) == tuple(pair)
        assert text == f"{grid[y][x]:.2f}"
    assert marks.marker.color == "rgba(0,0,0,0)"
    assert figure.layout.clickmode == "event+select"


@pytest.mark.parametrize(
    ("selected", "outlined"),
    [((), set()), ((2,), {(2, 2)}), ((0, 2), {(0, 2), (2, 0)}), ((0, 1, 2), set())],
)
def test_the_workspace_layers_are_outlined_where_they_are_a_cell(selected, outlined):
    shapes = figures.pair_heatmap(cells(3), 3, None, selected).layout.shapes
    assert {(shape.y0 + 0.5, shape.x0 + 0.5) for shape in shapes} == outlined


def test_an_undefined_cell_is_blank_and_says_so():
    undefined = dict.fromkeys(cells(2), None)
    figure = figures.pair_heatmap(undefined, 2, None)
    assert [list(row) for row in figure.data[0].text] == [["", ""], ["", ""]]
    assert set(squares(figure).text) == {"undefined"}
    assert "no score defined" in figure.layout.meta["alt"]


def test_two_heatmaps_can_share_a_scale():
    heat = figures.pair_heatmap(cells(2), 2, None, (), (0.0, 90.0)).data[0]
    assert (heat.zmin, heat.zmax) == (0.0, 90.0)


# Curve over k


def test_the_k_curve_marks_best_knee_and_chosen_k():
    curve = [10.0, 30.0, 29.8, 20.0]
    figure = figures.k_curves(curve, {}, "zca", "ZCA whitening", 4, 2, 2, 4)
    marks = {trace.name: (trace.x[0], trace.y[0]) for trace in figure.data if trace.mode == "markers"}
    assert marks == {"knee: k = 2": (2, 30.0), "best: k = 2": (2, 30.0), "chosen: k = 4": (4, 20.0)}
    assert list(named(figure, "ZCA whitening").x) == [1, 2, 3, 4]


def test_the_raw_score_and_the_rank_are_ruled_in():
    shapes = figures.k_curves([1.0] * 6, {}, "pca", "PCA", 1, 1, 1, 4, 0.5).layout.shapes
    assert {(shape.x0, shape.y0) for shape in shapes} >= {(0, 0.5), (4, 0)}
    assert len(figures.k_curves([1.0] * 6, {}, "pca", "PCA", 1, 1, 1, 6).layout.shapes) == 0


def test_an_undefined_curve_is_drawn_without_marks():
    figure = figures.k_curves([None, None], {"a": [None, None]}, "pca", "PCA", 1, None, None, 2)
    assert all(trace.mode == "lines" for trace in figure.data)
    assert "no score defined" in figure.layout.meta["alt"]


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
    assert figure.layout.xaxis2.title.text == "k, kept dimensions"
    assert figure.layout.yaxis.title.text == "Cost, % of k = 8"
    assert figure.layout.yaxis2.title.text == "Recall (%)"
    assert figure.layout.yaxis.range[0] == figure.layout.yaxis2.range[0] == figure.layout.xaxis2.range[0] == 0


def test_search_costs_show_the_spread_of_the_time_and_the_amounts_behind_the_shares():
    figure = all_figures()["search_costs"]
    time, memory = named(figure, "Time of one query"), named(figure, "Memory")
    assert list(time.error_y.array) == pytest.approx([3, 3, 0])
    assert list(time.error_y.arrayminus) == pytest.approx([1, 1, 0])
    assert list(time.customdata) == ["1 ms", "2 ms", "4 ms"]
    assert list(memory.customdata) == ["2.0 MiB", "4.0 MiB", "8.0 MiB"]
    assert time.line.color == figures.VARIANT_COLOURS["pca"]


def test_each_panel_of_the_search_costs_has_its_own_legend_and_rules_the_chosen_k_in():
    figure = all_figures()["search_costs"]
    assert {trace.yaxis: trace.legend for trace in figure.data} == {"y": "legend2", "y2": "legend3"}
    assert [(shape.x0, shape.x1) for shape in figure.layout.shapes] == [(4, 4), (4, 4)]


def test_search_costs_are_said_in_words_for_the_nearest_measured_k():
    alt = figures.search_costs(costs(), "zca", 5, 10).layout.meta["alt"]
    assert "k = 4 takes 52 % of the time and 50 % of the memory of k = 8" in alt
    assert "50 % of the same 10 neighbours and 40 % of those of the raw vectors" in alt


# Layer subsets


def test_a_size_curve_stars_the_best_size_and_its_points_carry_their_layers():
    figure = figures.size_curves({"none": sizes(80.0), "pca": sizes(70.0)}, LABELS, 4)
    raw, white = named(figure, LABELS["none"]), named(figure, LABELS["pca"])
    assert (list(raw.x), list(raw.y)) == ([1, 2, 3], [76.0, 80.0, 79.0])
    assert [list(layers) for layers in raw.customdata] == [[3], [0, 3], [0, 1, 3]]
    stars = [(list(t.x), list(t.y)) for t in figure.data if t.marker.symbol == "star"]
    assert stars == [([2], [80.0]), ([2], [70.0])]
    assert white.line.color != raw.line.color
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


def test_layer_counts_grow_from_zero_to_all_in_the_colours_of_the_layers():
    figure = figures.layer_counts([3, 9, 0], 10)
    assert list(figure.data[0].y) == [3, 9, 0]
    assert list(figure.data[0].marker.color) == [figures.layer_colour(layer, 3) for layer in range(3)]
    assert figure.layout.yaxis.range[0] == 0
    assert figure.layout.yaxis.range[1] >= 10
    assert "layer 1 in 9" in figure.layout.meta["alt"]


def test_a_ranking_has_a_dot_for_every_layer_a_subset_holds():
    figure = figures.subset_ranking(ranking(), 4)
    dots = figure.data[1]
    held = {row: {x for x, y in zip(dots.x, dots.y, strict=True) if y == row} for row in range(4)}
    assert held == {row: set(layers) for row, (layers, _, _) in enumerate(ranking())}
    assert list(dots.marker.color) == [figures.layer_colour(layer, 4) for layer in dots.x]
    assert list(figure.data[2].text) == ["80.00", "79.50", "79.50", "70.00"]


def test_a_ranking_shows_ties_as_ties():
    assert list(figures.subset_ranking(ranking(), 4).layout.yaxis.ticktext) == ["1", "2 =", "2 =", "4"]


def test_a_click_anywhere_on_a_line_of_the_ranking_meets_its_layers():
    figure = figures.subset_ranking(ranking(), 4)
    marks = squares(figure)
    for row, (layers, _, _) in enumerate(ranking()):
        found = [tuple(d) for d, y in zip(marks.customdata, marks.y, strict=True) if y == row]
        assert found == [layers] * 5  # four layers and the score
    assert marks.marker.color == "rgba(0,0,0,0)"
    assert all(trace.hoverinfo == "skip" for trace in figure.data if trace is not marks)
    assert figure.layout.clickmode == "event+select"


@pytest.mark.parametrize(("selected", "rows"), [((3, 1), [2]), ((3,), [1]), ((2,), []), ((), [])])
def test_the_workspace_layers_are_outlined_in_the_ranking(selected, rows):
    shapes = figures.subset_ranking(ranking(), 4, selected).layout.shapes
    assert [round(shape.y0 + 0.48) for shape in shapes if shape.type == "rect"] == rows


def test_a_ranking_keeps_its_height_while_it_fills():
    one, ten = (figures.subset_ranking(ranking()[:1] * n, 4, lines=10).layout for n in (1, 10))
    assert one.height == ten.height
    assert one.yaxis.range == ten.yaxis.range
    assert "no score defined" in figures.subset_ranking([], 4).layout.meta["alt"]


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


# On a narrow page


def test_colour_bars_lie_along_the_top_where_they_are_as_long_as_the_map():
    for kind in ("pair_heatmap", "k_surface"):
        figure = all_figures()[kind]
        assert figure.data[0].colorbar.orientation == "h"
        assert figure.data[0].colorbar.len == 1
        assert figure.layout.yaxis.scaleanchor is None  # the map fills its place at any width


def test_the_marks_of_a_k_curve_have_a_legend_of_their_own():
    figure = all_figures()["k_curves"]
    assert {trace.legend for trace in figure.data if trace.mode == "markers"} == {"legend3"}
    assert {trace.legend for trace in figure.data if trace.mode == "lines"} == {"legend2"}


# Scores with intervals


def test_dots_stand_for_the_scores_and_asymmetric_whiskers_for_the_intervals():
    figure = figures.score_dots(standings(["none", "pca"]), LABELS, 50.0)
    raw, pca = figure.data
    assert (list(raw.x), list(raw.y), list(pca.x), list(pca.y)) == ([50], [0], [51], [1])
    assert (list(pca.error_x.array), list(pca.error_x.arrayminus)) == ([1], [1.5])
    assert list(figure.layout.yaxis.ticktext) == ["Raw", "<b>PCA whitening</b><br>best"]
    assert [note.text for note in figure.layout.annotations] == ["50.00", "<b>51.00</b>"]
    assert "PCA whitening 51.00 (49.50 to 52.00)" in figure.layout.meta["alt"]


def test_the_axis_of_scores_starts_at_zero_or_below_and_raw_is_ruled_in():
    rows = standings(["none", "pca"])
    figure = figures.score_dots(rows, LABELS, 50.0)
    assert figure.layout.xaxis.range[0] == 0
    assert [(shape.x0, shape.x1, shape.line.dash) for shape in figure.layout.shapes] == [(50, 50, "dash")]
    rows[0] |= {"spearman": -3.0, "low": -8.0, "high": 1.0}
    assert figures.score_dots(rows, LABELS, -3.0).layout.xaxis.range[0] < -8


def test_equal_best_scores_are_shown_as_tied():
    rows = [row | {"best": True} for row in standings(["pca", "zca"])]
    names = figures.score_dots(rows, LABELS, None).layout.yaxis.ticktext
    assert [name.endswith("best, tied") for name in names] == [True, True]


def test_parameters_stand_on_a_line_of_their_own():
    labels = {"soft": "Soft whitening (γ = 0.25, α = 0)", "pca": "<b> & more"}
    names = figures.difference_dots([row | {"best": False} for row in standings(["soft", "pca"])], labels, "raw")
    assert list(names.layout.yaxis.ticktext) == ["Soft whitening<br>(γ = 0.25, α = 0)", "&lt;b&gt; &amp; more"]


def test_differences_lie_on_an_axis_centred_on_zero_and_open_dots_could_be_chance():
    figure = figures.difference_dots(standings(["pca", "zca", "soft"]), LABELS, "raw")
    low, high = figure.layout.xaxis.range
    assert low == -high < -2.5
    assert [shape.x0 for shape in figure.layout.shapes] == [0]
    assert [trace.marker.symbol.endswith("-open") for trace in figure.data] == [False, True, False]
    assert "ZCA whitening +0.00 (-0.75 to +0.50, could be chance)" in figure.layout.meta["alt"]


def test_values_stand_on_the_side_of_the_rule_that_is_free():
    notes = figures.difference_dots(standings(["pca", "zca", "soft"]), LABELS, "raw").layout.annotations
    assert [(note.x, note.xanchor) for note in notes] == [(-1.75, "right"), (0.5, "left"), (1.5, "left")]


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


def test_a_label_is_escaped_in_hover():
    rows = standings(["none"])
    figure = figures.difference_dots(rows, {"none": "Raw"}, NAUGHTY)
    assert "<img" not in figure.data[0].hovertemplate
    assert "<img" not in figure.layout.xaxis.title.text


# Covariance and pairs


def test_a_covariance_is_an_image_on_a_scale_centred_on_zero():
    image = figures.covariance_image(np.eye(3), 4, 0.25, "PCA whitening")
    heat = image.data[0]
    assert (heat.zmin, heat.zmax) == (-0.25, 0.25)
    assert np.array_equal(np.array(heat.z), np.eye(3))
    assert list(heat.x) == list(heat.y) == [2.5, 6.5, 10.5]  # the middle of coordinates 1 to 4, and so on
    assert image.layout.yaxis.autorange == "reversed"
    assert heat.colorscale[1][1].endswith(",0)")  # nothing at zero, on any background


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


def test_figures_become_json_without_nan():
    for kind, figure in all_figures().items():
        document = json.loads(figure.to_json())
        assert document["data"], kind
        assert "NaN" not in figure.to_json(), kind


def test_layer_colours_run_along_one_scale():
    colours = [figures.layer_colour(layer, 7) for layer in range(7)]
    assert len(set(colours)) == 7
    assert figures.layer_colour(0, 1) == colours[0]


# Protocols, rows and papers side by side


STEPS = [("Pooling", "cls -> mean", 2.0), ("Layers", NAUGHTY, -0.5), ("Text", "a -> b", 0.0)]


def test_every_step_begins_where_the_one_before_it_ended():
    figure = figures.walk_steps(("A", 70.0), ("B", 71.5), STEPS)
    bars = [trace for trace in figure.data if isinstance(trace, go.Bar)]
    ends = [(bar.base[0], bar.base[0] + bar.x[0]) for bar in bars]
    assert ends == [(70.0, 72.0), (72.0, 71.5), (71.5, 71.5)]
    (marks,) = [trace for trace in figure.data if isinstance(trace, go.Scatter)]
    assert list(marks.x) == [70.0, 71.5]
    assert [bar.marker.color for bar in bars[:2]] == [figures.DIFFERENCE_ENDS[1], figures.DIFFERENCE_ENDS[0]]
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


def test_printed_sizes_stand_beside_the_curve():
    figure = figures.size_curves({"none": sizes(50.0)}, LABELS, 4, {2: ((1, 3), 60.0)})
    (printed,) = [trace for trace in figure.data if trace.marker.symbol == "diamond-open"]
    assert (printed.x[0], printed.y[0], list(printed.customdata[0])) == (2, 60.0, [1, 3])
    assert figure.layout.yaxis.range[1] > 60.0


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


# Probes


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


def test_a_confusion_matrix_shows_counts_and_colours_shares():
    trace = figures.confusion([[3, 1], [0, 0]], ["<b>", "b"], "an example").data[0]
    assert [list(row) for row in trace.text] == [["3", "1"], ["0", "0"]]
    assert trace.z.tolist() == [[75, 25], [0, 0]]
    assert trace.x[0] == "&lt;b&gt;"


def test_cosines_by_label_hold_every_pair_once_and_both_thresholds():
    figure = all_figures()["cosines_by_label"]
    assert [sum(trace.y) for trace in figure.data] == [pytest.approx(100), pytest.approx(100)]
    assert sorted(shape.x0 for shape in figure.layout.shapes) == [0.4, 0.5]
    assert [note.text for note in figure.layout.annotations] == ["fixed 0.5", "best 0.40"]
    empty = figures.cosines_by_label(np.array([0.5]), np.array([True]), ("no", "yes"), 0.5, 0.5, "raw")
    assert sum(empty.data[0].y) == 0


# Gold scores and lengths


@pytest.mark.parametrize("gold", [[0.0, 2.5, 2.5, 5.0], [3.0, 3.0], [4.5], list(np.linspace(-3, 900, 77))], ids=len)
def test_every_pair_is_in_one_bar_of_the_gold_histogram(gold):
    (bars,) = figures.gold_histogram(np.array(gold)).data
    assert sum(bars.y) == len(gold)
    assert len(bars.x) == (len(set(gold)) if len(set(gold)) <= 30 else 25)
    assert bars.width > 0
    assert bars.marker.colorscale[0][1] == figures.GOLD_SCALE[0][1]


@pytest.mark.parametrize("lengths", [[1], [0, 0], [3, 3, 7, 12], [1, 2000, 500]], ids=str)
def test_every_sentence_is_in_one_bar_of_the_length_histogram(lengths):
    (bars,) = figures.length_histogram(np.array(lengths)).data
    assert sum(bars.y) == len(lengths)
    assert len(bars.x) <= 61
    assert sum(bars.y[: len(bars.y) // 2 + 1]) >= 1
