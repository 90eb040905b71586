"""What the data are: gold scores and lengths."""

import numpy as np
import plotly.graph_objects as go

from whitelab.base.wording import spaced
from whitelab.figures import heights
from whitelab.figures.drawing import Drawing
from whitelab.figures.panels import finish
from whitelab.figures.style import GOLD_SCALE, RULE, VARIANT_COLOURS


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
    marker = {"color": x, "colorscale": GOLD_SCALE, "line": {"color": RULE, "width": 0.5}}
    spread = f"from {values.min():g} to {values.max():g}, mean {values.mean():.2f}"
    alt = f"Histogram of {spaced(len(values))} gold scores {spread}"
    return _histogram(x, counts, width, words, marker, ("Gold similarity", "Pairs"), alt)


def length_histogram(values: np.ndarray) -> go.Figure:
    """How many sentences have so many words; those beyond twice the 99th percentile are in the last bar."""
    end = min(values.max(), 2 * np.percentile(values, 99, method="lower"))
    step, beyond = max(1, int(np.ceil((end + 1) / 60))), int((values > end).sum())
    counts, edges = np.histogram(np.minimum(values, end), bins=np.arange(0, end + 1 + step, step) - 0.5)
    low = (edges[:-1] + 0.5).astype(int)
    words = [f"{a} words" if step == 1 else f"{a} to {a + step - 1} words" for a in low]
    titles = "Words: letters and digits in a row", "Sentences"
    if beyond:
        words[-1] = f"{low[-1]} words or more"
        titles = f"{titles[0]}<br>The last bar: also {beyond} with more than {end}", titles[1]
    spread = f"median {np.median(values):g} words, at most {values.max()}"
    alt = f"Histogram of the lengths of {spaced(len(values))} sentences: {spread}"
    marker = {"color": VARIANT_COLOURS["center"]}
    figure = _histogram(low + (step - 1) / 2, counts, 0.9 * step, words, marker, titles, alt)
    return figure.update_xaxes(rangemode="tozero")


def _histogram(x, counts, width: float, words: list[str], marker: dict, titles: tuple[str, str], alt: str) -> go.Figure:
    """Bars with the words of each in its hover text; `titles` say what is counted along x and in y."""
    figure, hover = Drawing(), f"%{{customdata}}: %{{y}} {titles[1].lower()}<extra></extra>"
    figure.add("bar", x=x, y=counts, width=width, marker=marker, customdata=words, hovertemplate=hover)
    figure.update_xaxes(title=titles[0])
    figure.update_yaxes(title=titles[1], rangemode="tozero", dtick=1 if max(counts) < 5 else None)  # whole ones
    return finish(figure, alt, heights.LOW, showlegend=False)
