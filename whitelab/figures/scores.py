"""Scores of variants with their intervals, and the pairs behind them."""

import html
import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from whitelab.figures.dots import add_dot, finish_dots
from whitelab.figures.style import DIFFERENCE_SCALE, RULE, finish, is_number, variant_colour, variant_symbol


def score_bars(
    names: Sequence[str], labels: Sequence[str], scores: Sequence[float], half_widths: Sequence[float]
) -> go.Figure:
    """Spearman of each variant with its 95 % interval; the axis starts at 0 (or below, for negatives)."""
    figure = go.Figure(
        go.Bar(
            x=[label.replace(" ", "<br>") for label in labels],
            y=list(scores),
            marker_color=[variant_colour(name) for name in names],
            error_y={"type": "data", "array": list(half_widths), "color": RULE, "thickness": 1.5, "width": 4},
            text=[f"{score:.2f}" for score in scores],
            textposition="inside",
            insidetextanchor="start",
            insidetextfont={"color": "#FFFFFF", "size": 14},
            hovertemplate="%{x}<br>Spearman x 100: %{y:.2f}<extra></extra>",
        )
    )
    alt = "Spearman by variant: " + ", ".join(f"{a} {s:.2f}" for a, s in zip(labels, scores, strict=True))
    return finish(figure, alt, 340, yaxis_title="Spearman x 100", showlegend=False)


def score_dots(rows: Sequence[Mapping], labels: Mapping[str, str], raw: float | None) -> go.Figure:
    """Spearman of each variant as a dot on its 95 % interval, from 0 (or below); the raw score as a dashed line.

    `rows` have whitening, spearman, low and high, and `best` where the score is (or ties with) the highest.
    """
    known = {i: row for i, row in enumerate(rows) if is_number(row["spearman"])}
    figure, notes = go.Figure(), []
    if is_number(raw):
        figure.add_vline(x=raw, line={"color": variant_colour("none"), "dash": "dash", "width": 1.5})
    for place, row in known.items():
        value = f"<b>{row['spearman']:.2f}</b>" if row.get("best") else f"{row['spearman']:.2f}"
        hover = f"Spearman x 100: {row['spearman']:.2f}<br>95 %: {row['low']:.2f} to {row['high']:.2f}"
        left = is_number(raw) and row["spearman"] < raw
        notes.append(_dot(figure, place, row, labels, ("spearman", "low", "high"), value, hover, left))
    ends = [row["high"] if is_number(row["high"]) else row["spearman"] for row in known.values()]
    starts = [row["low"] if is_number(row["low"]) else row["spearman"] for row in known.values()]
    # Room on the right for the longest value.
    figure.update_xaxes(title="Spearman x 100", range=[1.05 * min([0.0, *starts]), 1.2 * max([1.0, *ends])])
    alt = "Spearman by variant with 95 % intervals: " + "; ".join(
        f"{labels[row['whitening']]} {row['spearman']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
        if is_number(row["low"])
        else f"{labels[row['whitening']]} {row['spearman']:.2f}"
        for row in known.values()
    )
    return _rows_of_dots(figure, rows, labels, notes, alt if known else "Spearman by variant: no score is defined")


def difference_dots(rows: Sequence[Mapping], labels: Mapping[str, str], baseline: str) -> go.Figure:
    """Each variant's difference from the baseline with its 95 % interval, on an axis centred on zero.

    `rows` have whitening, difference, difference_low, difference_high and settled: a dot is open where the
    difference could be chance.
    """
    known = {i: row for i, row in enumerate(rows) if is_number(row["difference"])}
    figure, notes = go.Figure(), []
    figure.add_vline(x=0, line={"color": RULE, "width": 1.5})
    for place, row in known.items():
        hover = (
            f"{row['difference']:+.2f} against {html.escape(baseline)}"
            f"<br>95 %: {row['difference_low']:+.2f} to {row['difference_high']:+.2f}"
        )
        value = f"{row['difference']:+.2f}" if row["difference"] else "0"
        names = ("difference", "difference_low", "difference_high")
        notes.append(_dot(figure, place, row, labels, names, value, hover, row["difference"] < 0))
    reach = [
        abs(row[name])
        for row in known.values()
        for name in ("difference_low", "difference_high")
        if is_number(row[name])
    ]
    reach = 1.6 * max([0.5, *reach])
    figure.update_xaxes(title=f"Difference from {html.escape(baseline)} (points)", range=[-reach, reach])
    alt = f"Differences from {baseline} with 95 % intervals: " + "; ".join(
        f"{labels[row['whitening']]} {row['difference']:+.2f} ({row['difference_low']:+.2f} to "
        f"{row['difference_high']:+.2f}{'' if row['settled'] else ', could be chance'})"
        for row in known.values()
    )
    return _rows_of_dots(
        figure, rows, labels, notes, alt if known else f"Differences from {baseline}: no score is defined"
    )


def _dot(
    figure, place: int, row: Mapping, labels: Mapping[str, str], names, value: str, hover: str, left: bool
) -> dict:
    """Draw the dot of a variant, its interval under the `names` of middle, low and high; returns the value's note."""
    spec = row["whitening"]
    symbol, colour = variant_symbol(spec).removesuffix("-open"), variant_colour(spec)
    hover = f"<b>{html.escape(labels[spec])}</b><br>{hover}"
    interval = tuple(row[name] for name in names)
    return add_dot(
        figure, place, interval, symbol, colour, value, hover, left, row.get("settled", True), name=labels[spec]
    )


def _in_lines(label: str) -> str:
    """A label in short lines, its parameters on lines of their own."""
    name, bracket, parameters = label.partition(" (")
    lines = textwrap.wrap(name, 19) + (textwrap.wrap(bracket.strip() + parameters, 24) if bracket else [])
    return "<br>".join(map(html.escape, lines))


def _rows_of_dots(
    figure: go.Figure, rows: Sequence[Mapping], labels: Mapping[str, str], notes: list[dict], alt: str
) -> go.Figure:
    names = [_in_lines(labels[row["whitening"]]) for row in rows]
    best = [row.get("best") for row in rows]
    mark = "best, tied" if sum(map(bool, best)) > 1 else "best"
    names = [f"<b>{name}</b><br>{mark}" if top else name for name, top in zip(names, best, strict=True)]
    return finish_dots(figure, names, notes, alt, 70 + 46 * len(rows))


def gold_scatter(
    gold: np.ndarray,
    cosines: np.ndarray,
    change: np.ndarray,
    hover: Sequence[str],
    lowest: float,
    words: str,
) -> go.Figure:
    """Cosine against gold, one dot a pair, coloured by how far its rank moved; the axis runs from `lowest` to 1.

    Colours end at the 98th percentile of the moves. `hover` is escaped; `words` say what the cosines are of.
    """
    order = np.argsort(np.abs(change), kind="stable")  # those that moved most on top
    reach = max(float(np.percentile(np.abs(change), 98)) if len(change) else 0.0, 1.0)
    figure = go.Figure(
        go.Scattergl(
            x=gold[order],
            y=cosines[order],
            mode="markers",
            text=[hover[i] for i in order],
            hovertemplate="%{text}<extra></extra>",
            marker={
                "size": 7,
                "opacity": 0.8,
                "color": change[order],
                "colorscale": DIFFERENCE_SCALE,
                "cmin": -reach,
                "cmax": reach,
                "colorbar": {
                    "title": {"text": "Ranks moved, up is positive", "side": "top"},
                    "orientation": "h",
                    "thickness": 10,
                    "y": -0.19,
                    "yanchor": "top",
                },
            },
        )
    )
    figure.update_xaxes(title="Gold similarity", zeroline=False)
    figure.update_yaxes(title="Cosine", range=[lowest, 1.03], zeroline=False)
    alt = f"Cosine against gold similarity of {len(gold)} pairs, {words}, coloured by how far each pair's rank moved"
    return finish(figure, alt, 480, margin={"l": 10, "r": 10, "t": 10, "b": 10})
