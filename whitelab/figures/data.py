"""What the data are: gold scores and lengths."""

import numpy as np
import plotly.graph_objects as go

from whitelab.figures.style import GOLD_SCALE, RULE, VARIANT_COLOURS, finish


def gold_histogram(gold: np.ndarray) -> go.Figure:
    """How many pairs have each gold score, or lie in each of 25 steps, in the colours of the gold scale."""
    values = gold.astype(float)
    levels = np.unique(values)
    if len(levels) <= 30:
        x, counts = levels, np.array([int((values == level).sum()) for level in levels])
        width = 0.8 * (np.diff(levels).min() if len(levels) > 1 else 1.0)
        words = [f"gold {level:g}" for level in levels]
    else:
        counts, edges = np.histogram(values, bins=25)
        x, width = (edges[:-1] + edges[1:]) / 2, edges[1] - edges[0]
        words = [f"gold {low:.3g} to {high:.3g}" for low, high in zip(edges[:-1], edges[1:], strict=True)]
    figure = go.Figure(
        go.Bar(
            x=x,
            y=counts,
            width=width,
            marker={"color": x, "colorscale": GOLD_SCALE, "line": {"color": RULE, "width": 0.5}},
            customdata=words,
            hovertemplate="%{customdata}: %{y} pairs<extra></extra>",
        )
    )
    figure.update_xaxes(title="Gold similarity")
    figure.update_yaxes(title="Pairs", rangemode="tozero")
    alt = f"Histogram of {len(values)} gold scores from {values.min():g} to {values.max():g}, mean {values.mean():.2f}"
    return finish(figure, alt, 340, showlegend=False)


def length_histogram(values: np.ndarray) -> go.Figure:
    """How many sentences have so many words."""
    step = max(1, int(np.ceil((values.max() + 1) / 60)))
    counts, edges = np.histogram(values, bins=np.arange(0, values.max() + 1 + step, step) - 0.5)
    low = (edges[:-1] + 0.5).astype(int)
    figure = go.Figure(
        go.Bar(
            x=low + (step - 1) / 2,
            y=counts,
            width=0.9 * step,
            marker={"color": VARIANT_COLOURS["center"]},
            customdata=[f"{a} words" if step == 1 else f"{a} to {a + step - 1} words" for a in low],
            hovertemplate="%{customdata}: %{y} sentences<extra></extra>",
        )
    )
    figure.update_xaxes(title="Words, as spaces part them", rangemode="tozero")
    figure.update_yaxes(title="Sentences", rangemode="tozero")
    words = f"median {np.median(values):g} words, at most {values.max()}"
    alt = f"Histogram of the lengths of {len(values)} sentences: {words}"
    return finish(figure, alt, 340, showlegend=False)
