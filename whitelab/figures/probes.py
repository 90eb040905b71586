"""What a classifier finds in frozen embeddings: accuracy by layer, confusions, cosines by label."""

import html
import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from whitelab.figures.style import (
    MARK,
    RULE,
    SCORE_SCALE,
    finish,
    is_number,
    variant_colour,
    variant_dashes,
    variant_symbol,
)


def accuracy_by_layer(
    curves: Mapping[str, Mapping[int, Mapping]], labels: Mapping[str, str], n_layers: int, baseline: float | None
) -> go.Figure:
    """Accuracy against the layer number with 95 % intervals, one line a variant, from 0 to 100.

    `curves[spec][layer]` have accuracy, low and high; layers may be missing. The dotted line is the accuracy of
    always saying the most frequent class.
    """
    figure, dashes, words = go.Figure(), variant_dashes(curves), []
    if is_number(baseline):
        figure.add_hline(y=baseline, line={"color": RULE, "dash": "dot", "width": 1.5})
    for place, (name, rows) in enumerate(curves.items()):
        layers = [layer for layer in sorted(rows) if is_number(rows[layer]["accuracy"])]
        values = [rows[layer]["accuracy"] for layer in layers]
        # A little aside, so that intervals stand beside each other.
        aside = 0.06 * (place - (len(curves) - 1) / 2)
        figure.add_scatter(
            x=[layer + aside for layer in layers],
            y=values,
            name=labels[name],
            mode="lines+markers",
            line={"color": variant_colour(name), "width": 2.5, "dash": dashes[name]},
            marker={"size": 9, "symbol": variant_symbol(name)},
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [rows[layer]["high"] - rows[layer]["accuracy"] for layer in layers],
                "arrayminus": [rows[layer]["accuracy"] - rows[layer]["low"] for layer in layers],
                "thickness": 1.5,
                "width": 4,
            },
            customdata=[[layer, rows[layer]["low"], rows[layer]["high"]] for layer in layers],
            hovertemplate=f"{labels[name]}<br>layer %{{customdata[0]}}: %{{y:.2f}} %"
            "<br>95 %: %{customdata[1]:.2f} to %{customdata[2]:.2f}<extra></extra>",
        )
        if layers:
            best = max(layers, key=lambda layer: rows[layer]["accuracy"])
            words.append(f"{labels[name]} is best at layer {best} with {rows[best]['accuracy']:.2f}")
    figure.update_xaxes(
        title="Layer (0 = embedding layer)", dtick=max(1, n_layers // 13), range=[-0.4, n_layers - 0.6], zeroline=False
    )
    figure.update_yaxes(title="Accuracy (%)", range=[0, 102])
    return finish(figure, "Accuracy by layer: " + ("; ".join(words) or "no score yet"), 400)


def confusion(table: Sequence[Sequence[int]], classes: Sequence[str], words: str) -> go.Figure:
    """How many rows of each class (down) were taken for each class (across), coloured by their share of the row."""
    counts = np.asarray(table, dtype=float)
    share = 100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    names = [html.escape(textwrap.shorten(name, 18, placeholder="...")) for name in classes]
    few = len(classes) <= 12
    figure = go.Figure(
        go.Heatmap(
            z=share,
            x=names,
            y=names,
            zmin=0,
            zmax=100,
            colorscale=SCORE_SCALE,
            showscale=False,
            text=[[f"{value:.0f}" for value in row] for row in counts],
            texttemplate="%{text}" if few else None,
            hovertemplate="%{y} taken for %{x}: %{text} (%{z:.1f} %)<extra></extra>",
        )
    )
    figure.update_xaxes(title="Taken for", showgrid=False, zeroline=False, constrain="domain")
    figure.update_yaxes(title="Class", showgrid=False, zeroline=False, autorange="reversed", constrain="domain")
    right = int(np.trace(counts))
    alt = f"Confusion matrix of {words}: {right} of {int(counts.sum())} rows on the diagonal"
    return finish(figure, alt, 400, margin={"l": 10, "r": 10, "t": 10, "b": 10})


MATCH_COLOURS = "#B8479A", "#C77C11"  # pairs that do not match, and those that do: ends of the gold scale


def cosines_by_label(
    cosines: np.ndarray, matches: np.ndarray, names: tuple[str, str], fixed: float, best: float, words: str
) -> go.Figure:
    """Distribution of the cosines of pairs by their label, with the fixed and the best threshold, on [-1, 1].

    `names` are those of the class that does not match and of the one that does.
    """
    edges = np.linspace(-1, 1, 81)
    figure = go.Figure()
    for side, name, colour in zip((False, True), names, MATCH_COLOURS, strict=True):
        counts, _ = np.histogram(cosines[matches == side], bins=edges)
        figure.add_scatter(
            x=(edges[:-1] + edges[1:]) / 2,
            y=100 * counts / max(counts.sum(), 1),
            name=html.escape(name),
            mode="lines",
            line={"color": colour, "width": 2, "shape": "hvh", "dash": "solid" if side else "dash"},
            fill="tozeroy",
            hovertemplate=f"{html.escape(name)}<br>cosine %{{x:.2f}}: %{{y:.1f}} % of its pairs<extra></extra>",
        )
    for value, colour, dash, text, shift in (
        (fixed, RULE, "dash", f"fixed {fixed:g}", 0),
        (best, MARK, "solid", f"best {best:.2f}", 16),
    ):
        figure.add_vline(x=value, line={"color": colour, "dash": dash, "width": 2})
        figure.add_annotation(
            x=value,
            y=1,
            yref="paper",
            text=text,
            showarrow=False,
            font={"color": colour, "size": 13},
            xanchor="right" if value > 0.6 else "left",
            yanchor="top",
            xshift=-6 if value > 0.6 else 6,
            yshift=-shift,
        )
    figure.update_xaxes(title="Cosine of the pair", range=[-1.01, 1.01])
    figure.update_yaxes(title="Share of the class (%)", rangemode="tozero")
    alt = f"Cosines of pairs by label, {words}: fixed threshold {fixed:g}, best threshold {best:.3f}"
    return finish(figure, alt, 400)
