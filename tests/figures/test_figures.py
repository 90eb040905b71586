"""What every figure has: words, a height, named axes, one colour a variant, and nothing of others unescaped."""

import json
import re

import numpy as np
import plotly.graph_objects as go
import pytest
from drawings import DARK, LABELS, LIGHT, NAUGHTY, accepted, all_figures, coded, contrast, linear, named

from whitelab import figures
from whitelab.base.wording import spaced
from whitelab.figures.drawing import Drawing
from whitelab.figures.style import SUBSET_COLOURS
from whitelab.ui.sections.lesson_strip import PRESENTED
from whitelab.whitening import WHITENERS


@pytest.mark.parametrize("kind", all_figures())
def test_a_figure_says_in_words_what_it_shows_and_reserves_its_height(kind):
    figure = all_figures()[kind]
    assert isinstance(figure, go.Figure)
    assert len(figure.layout.meta["alt"]) > 20
    assert " " in figure.layout.meta["alt"].partition(": ")[0]  # the caption of a figure that leaves its page
    assert figure.layout.height >= 300
    assert "nan" not in figure.layout.meta["alt"].lower()


@pytest.mark.parametrize("kind", all_figures())
def test_plotly_accepts_every_figure_as_it_is(kind):
    accepted(all_figures()[kind])


def test_a_drawing_leaves_the_layout_it_begins_with_to_others():
    shared = {"xaxis2": {"anchor": "y2"}}
    Drawing(shared).update_xaxes("2", title="k")
    assert shared == {"xaxis2": {"anchor": "y2"}}


@pytest.mark.parametrize("kind", all_figures())
def test_thousands_are_set_apart_as_they_are_in_words(kind):
    assert all_figures()[kind].layout.separators == "." + spaced(1000)[1]


def test_large_counts_on_an_axis_are_read_in_thousands():
    sizes = figures.fit_size_curves([("pca", "PCA", [384, 12_288], [40.0, 41.0], [None, None])], 384)
    rows = [row | {"bytes": 1024 * row["bytes"]} for row in coded()]
    for figure, count in ((sizes, 12_288), (figures.bits_frontier(rows, LABELS, "nDCG@10", 0, 4), 65_536)):
        assert spaced(count) in figure.layout.xaxis.ticktext
        assert figure.layout.xaxis.tickvals[figure.layout.xaxis.ticktext.index(spaced(count))] == count


@pytest.mark.parametrize("kind", all_figures())
def test_background_and_text_colours_are_left_to_the_theme(kind):
    layout = all_figures()[kind].layout
    assert layout.paper_bgcolor is None
    assert layout.plot_bgcolor is None
    assert layout.font.color is None


ROWS = {
    "score_bars": "yaxis",
    "score_dots": "yaxis",
    "option_dots": "yaxis",
    "difference_dots": "yaxis",
    "walk_steps": "yaxis",
    "row_differences": "yaxis",
}


@pytest.mark.parametrize("kind", all_figures())
def test_an_axis_says_its_quantity_unless_it_names_rows(kind):
    layout = all_figures()[kind].layout
    for name in ("xaxis", "yaxis"):
        shared = kind == "search_costs" and name == "xaxis"  # the lower panel has the title of both
        assert bool(layout[name].title.text) != (ROWS.get(kind) == name or shared)


def test_a_variant_has_one_colour_in_every_figure():
    drawn = all_figures()
    bars = dict(zip(WHITENERS, drawn["score_bars"].data[0].marker.color, strict=True))
    assert bars == figures.VARIANT_COLOURS
    for kind in ("by_layer", "cosine_histogram", "spectrum", "plane", "accuracy_by_layer", "size_curves"):
        lines = {name: named(drawn[kind], label).line.color for name, label in LABELS.items()}
        assert lines == figures.VARIANT_COLOURS, kind
    assert named(drawn["k_curves"], "PCA whitening").line.color == figures.VARIANT_COLOURS["pca"]


def test_parameters_change_the_dash_and_not_the_colour():
    specs = ("soft:gamma=0.5,alpha=0", "pca", "soft:gamma=1,alpha=0")
    labels = {spec: spec for spec in specs}
    figure = figures.by_layer({spec: [0.5, 0.4] for spec in specs}, labels, "Mean cosine")
    first, pca, second = (named(figure, spec).line for spec in specs)
    assert first.color == second.color == figures.VARIANT_COLOURS["soft"] != pca.color
    assert (first.dash, pca.dash, second.dash) == ("solid", "solid", "dash")


@pytest.mark.parametrize("kind", ["by_layer", "cosine_histogram", "spectrum", "cosine_scale", "accuracy_by_layer"])
def test_variants_side_by_side_differ_by_more_than_their_hue(kind):
    """To one man in twelve some of the hues are one: #2E86D1 and #A06FE0 are."""
    lines = [trace for trace in all_figures()[kind].data if trace.name and "lines" in trace.mode][:6]
    looks = {(line.line.dash, line.marker.symbol if "markers" in line.mode else "") for line in lines}
    assert len(looks) == len(lines) > 1


def test_every_registered_variant_has_a_colour_and_a_symbol_of_its_own():
    assert set(figures.VARIANT_COLOURS) == set(figures.VARIANT_SYMBOLS) == set(WHITENERS)
    assert len(set(figures.VARIANT_COLOURS.values())) == len(set(figures.VARIANT_SYMBOLS.values())) == len(WHITENERS)
    assert not any(symbol.endswith("-open") for symbol in figures.VARIANT_SYMBOLS.values())  # open: could be chance


@pytest.mark.parametrize("background", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("name", figures.VARIANT_COLOURS)
def test_variant_colours_stand_out_from_both_backgrounds(name, background):
    assert contrast(figures.VARIANT_COLOURS[name], background) >= 3


@pytest.mark.parametrize("background", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("colour", [figures.MARK, figures.RULE, *figures.MATCH_COLOURS])
def test_marks_and_rules_stand_out_from_both_backgrounds(colour, background):
    assert contrast(colour, background) >= 3


@pytest.mark.parametrize("background", [LIGHT, DARK], ids=["light", "dark"])
def test_lines_of_subsets_stand_out_from_both_backgrounds(background):
    curves = {f"subset {i}": [40.0 + k for k in range(8)] for i in range(12)}
    figure = figures.k_curves(curves["subset 0"], curves, "pca", "PCA", {}, 8)
    lines = [trace for trace in figure.data if trace.name in curves]
    assert len({line.line.color for line in lines}) == len(curves)
    assert {line.line.dash for line in lines} == {"solid"}
    assert min(contrast(line.line.color, background) for line in lines) >= 3
    assert all(line.opacity is None for line in lines)


def test_no_two_of_three_dozen_subsets_look_alike():
    curves = {f"subset {i}": [40.0 + k for k in range(8)] for i in range(36)}
    for figure in (
        figures.k_curves(curves["subset 0"], curves, "pca", "PCA", {}, 8),
        figures.task_curves(curves, {}),
    ):
        lines = [trace.line for trace in figure.data if trace.name in curves]
        assert len({(line.color, line.dash) for line in lines}) == len(curves)
    for dims in (2, 3):
        points = figures.projection(np.zeros((36, dims)), ["text"] * 36, list(curves), "subset", "PCA").data
        assert len({(trace.marker.color, trace.marker.symbol) for trace in points}) == len(curves)


# What is left of linear red, green and blue without the cones for green (Machado et al. 2009, severity 1).
NO_GREEN = np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]])


@pytest.mark.parametrize("sight", [np.eye(3), NO_GREEN], ids=["all cones", "none for green"])
def test_no_two_colours_of_subsets_are_one(sight):
    seen = lab([sight @ linear(colour) for colour in SUBSET_COLOURS])
    apart = np.linalg.norm(seen[:, None] - seen, axis=-1)[~np.eye(len(seen), dtype=bool)]
    assert apart.min() > 15


def lab(colours) -> np.ndarray:
    """CIE Lab of linear red, green and blue, white D65."""
    to_xyz = np.array(
        [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.119192, 0.9503041]]
    )
    xyz = np.clip(colours, 0, 1) @ to_xyz.T / to_xyz.sum(axis=1)
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)


# On a narrow page


def test_no_rule_across_a_figure_strikes_through_what_its_traces_write():
    rules = [
        shape
        for figure in all_figures().values()
        for shape in figure.layout.shapes
        if shape.type == "line" and "domain" in f"{shape.xref} {shape.yref}"
    ]
    assert rules
    assert {shape.layer for shape in rules} == {"below"}


@pytest.mark.parametrize("kind", ["by_layer", "plane", "k_curves", "task_curves", "accuracy_by_layer", "search_costs"])
def test_a_legend_begins_below_the_buttons_of_plotly(kind):
    layout = all_figures()[kind].layout
    top = layout.legend2
    assert (top.yref, top.yanchor) == ("container", "top")
    assert (1 - top.y) * layout.height >= 28 - 1e-9
    assert {trace.legend for trace in all_figures()[kind].data} <= {"legend2", "legend3"}


@pytest.mark.parametrize("kind", all_figures())
def test_words_of_a_size_of_their_own_grow_with_the_type_for_a_projector(kind):
    for size in re.findall(r'"(?:text|tick)?font": {[^{}]*"size": (\d+)', json.dumps(all_figures()[kind].to_dict())):
        assert f'"font-size: {size}px"] {{ font-size: {int(size) / 16}rem' in PRESENTED


def test_figures_become_json_without_nan():
    for kind, figure in all_figures().items():
        document = json.loads(figure.to_json())
        assert document["data"], kind
        assert "NaN" not in figure.to_json(), kind


def test_layer_colours_run_along_one_scale():
    colours = [figures.layer_colour(layer, 7) for layer in range(7)]
    assert len(set(colours)) == 7
    assert figures.layer_colour(0, 1) == colours[0]


@pytest.mark.parametrize("kind", all_figures())
def test_what_is_drawn_after_points_on_a_canvas_lies_on_that_canvas(kind):
    """A browser lays the canvas of `scattergl` over every `scatter`."""
    types = [trace.type for trace in all_figures()[kind].data]
    assert not any(one == "scatter" and "scattergl" in types[:i] for i, one in enumerate(types))


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


def test_a_figure_without_a_score_says_so_and_measures_nothing_on_its_axes():
    none = dict.fromkeys(("spearman", "low", "high", "difference", "difference_low", "difference_high"))
    rows = [none | {"whitening": spec, "settled": False} for spec in ("none", "pca")]
    ends = dict.fromkeys(f"{end}{half}" for end in ("raw", "whitened", "cut") for half in ("", "_half_width_95"))
    names = {"raw": "Raw", "whitened": "PCA whitening", "cut": "cut"}
    empty = {
        "xaxis": [figures.score_dots(rows, LABELS, None), figures.difference_dots(rows, LABELS, "raw")],
        "yaxis": [
            figures.layer_dumbbells([ends | {"layer": layer} for layer in range(3)], names, "pca", 3),
            figures.k_curves([None, None], {}, "pca", "PCA", {}, 2, None, [("none", "Raw", "dot", [None, None])]),
        ],
    }
    for axis, of_axis in empty.items():
        for figure in of_axis:
            assert any(note.text.endswith(" is defined") for note in figure.layout.annotations)
            assert figure.layout[axis].showticklabels is False
    known = figures.k_curves([None, None], {}, "pca", "PCA", {}, 2, 50.0)  # raw alone has a score
    assert not any(note.text.endswith(" is defined") for note in known.layout.annotations)
