"""What a classifier finds in frozen embeddings: accuracy by layer, confusions, cosines by label."""

import html
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from whitelab.figures import heights
from whitelab.figures.drawing import Drawing
from whitelab.figures.marks import add_line, add_shares, in_cells, rule
from whitelab.figures.panels import BARE, finish, in_words, intervals_by_layer
from whitelab.figures.style import MARK, RULE, SCORE_SCALE, inks, is_number


def accuracy_by_layer(
    curves: Mapping[str, Mapping[int, Mapping]], labels: Mapping[str, str], n_layers: int, baseline: float | None
) -> go.Figure:
    """Accuracy against the layer number with 95 % intervals, one line a variant, from 0 to 100.

    `curves[spec][layer]` have accuracy, low and high; layers may be missing. The dotted line is the accuracy of
    always saying the most frequent class.
    """
    figure = Drawing()
    if is_number(baseline):
        figure.add_hline(y=baseline, line=rule(dash="dot"))
    words = intervals_by_layer(figure, curves, labels, n_layers, "accuracy", 2, " %")
    figure.update_yaxes(title="Accuracy (%)", range=[0, 102])
    return finish(figure, in_words("Accuracy by layer", words, "no score yet"), heights.CURVES)


def _ticks(classes: Sequence[str]) -> list[str]:
    """The names of classes, long ones without their middle, those that are then alike with their places beside them."""
    cut = [name if len(name) <= 18 else f"{name[:8].rstrip()}...{name[-7:].lstrip()}" for name in classes]
    return [f"{name} ({place})" if cut.count(name) > 1 else name for place, name in enumerate(cut, 1)]


def confusion(table: Sequence[Sequence[int]], classes: Sequence[str], words: str) -> go.Figure:
    """How many rows of each class (down) were taken for each class (across), coloured by their share of the row."""
    counts = np.asarray(table, dtype=float)
    names = [html.escape(name) for name in classes]
    short = [html.escape(name) for name in _ticks(classes)]
    shares, figure = 100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1), Drawing()
    figure.add(
        "heatmap",
        z=shares,
        x=names,
        y=names,
        zmin=0,
        zmax=100,
        colorscale=SCORE_SCALE,
        showscale=False,
        text=[[f"{value:.0f}" for value in row] for row in counts],
        hovertemplate="%{y} taken for %{x}: %{text} (%{z:.1f} %)<extra></extra>",
    )
    if len(classes) <= 12:
        across, down = names * len(names), [name for name in names for _ in names]
        text = [f"{value:.0f}" for value in counts.flat]
        in_cells(figure, across, down, text, inks(shares.flatten().tolist(), 0, 100, SCORE_SCALE), len(names))
    upright = {"autotickangles": [0, 90]}  # where there is no room side by side: names tilted by 30 degrees touch
    # A class is a name whatever it looks like: Plotly would lay out 101 and 2024-01-02 along a scale.
    named = {"type": "category", "tickvals": names, "ticktext": short}
    figure.update_xaxes(title="Taken for", constrain="domain", **named, **upright, **BARE)
    figure.update_yaxes(title="Class", autorange="reversed", constrain="domain", **named, **BARE)
    right = int(np.trace(counts))
    alt = f"Confusion matrix of {words}: {right} of {int(counts.sum())} rows on the diagonal"
    return finish(figure, alt, heights.CURVES, 10)


MATCH_COLOURS = "#B8479A", "#C77C11"  # pairs that do not match, and those that do: ends of the gold scale


def cosines_by_label(
    cosines: np.ndarray, matches: np.ndarray, names: tuple[str, str], fixed: float, best: float, words: str
) -> go.Figure:
    """Distribution of the cosines of pairs by their label, with the fixed and the best threshold, on [-1, 1].

    `names` are those of the class that does not match and of the one that does.
    """
    figure = Drawing()
    for side, name, colour in zip((False, True), names, MATCH_COLOURS, strict=True):
        line = {"color": colour, "dash": "solid" if side else "dash"}
        add_shares(figure, cosines[matches == side], 80, name, line, "its pairs")
    thresholds = (fixed, RULE, "dash", f"fixed {fixed:g}"), (best, MARK, "solid", f"best {best:.2f}")
    for value, colour, dash, name in thresholds:  # named in the legend: beside each other there is no room
        figure.add_vline(x=value, line=rule(colour, dash, 2))
        add_line(figure, [None], [None], name, rule(colour, dash, 2), "")
    figure.update_xaxes(title="Cosine of the pair", range=[-1.01, 1.01])
    figure.update_yaxes(title="Share of the class (%)", rangemode="tozero")
    alt = f"Cosines of pairs by label, {words}: fixed threshold {fixed:g}, best threshold {best:.3f}"
    return finish(figure, alt, heights.CURVES)
