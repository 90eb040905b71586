"""Rows of dots on their intervals: one row a thing compared, its value beside it."""

from collections.abc import Sequence

import plotly.graph_objects as go

from whitelab.figures.style import finish, is_number

Interval = tuple[float, float | None, float | None]  # a value, and where its interval begins and ends


def add_dot(
    figure: go.Figure,
    place: int,
    interval: Interval,
    symbol: str,
    colour: str,
    value: str,
    hover: str,
    left: bool,
    settled: bool = True,
    name: str | None = None,
) -> dict:
    """Draw a dot in row `place` with its whiskers, open unless `settled`; returns the note of its value.

    The note stands at the end of the interval, on the `left` or the right.
    """
    middle, low, high = interval
    whiskers = is_number(low) and is_number(high)
    figure.add_scatter(
        x=[middle],
        y=[place],
        name=name,
        mode="markers",
        marker={
            "symbol": symbol if settled else f"{symbol}-open",
            "size": 13,
            "color": colour,
            "line": {"width": 2, "color": colour},
        },
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [max(0.0, high - middle) if whiskers else 0],
            "arrayminus": [max(0.0, middle - low) if whiskers else 0],
            "color": colour,
            "thickness": 2.5,
            "width": 6,
        },
        hovertemplate=f"{hover}<extra></extra>",
    )
    return {
        "x": middle if not whiskers else low if left else high,
        "y": place,
        "text": value,
        "showarrow": False,
        "xanchor": "right" if left else "left",
        "xshift": -10 if left else 10,
        "font": {"size": 13},
    }


def finish_dots(figure: go.Figure, rows: Sequence[str], notes: Sequence[dict], alt: str, height: int) -> go.Figure:
    """The figure with the names of its `rows` from the top down and the notes of its dots."""
    figure.update_yaxes(
        tickvals=list(range(len(rows))),
        ticktext=list(rows),
        range=[len(rows) - 0.5, -0.5],
        showgrid=False,
        zeroline=False,
    )
    margin = {"l": 10, "r": 20, "t": 10, "b": 10}
    return finish(figure, alt, max(300, height), showlegend=False, margin=margin, annotations=list(notes))
