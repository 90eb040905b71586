"""Rows of dots on their intervals: one row a thing compared, its value beside it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from whitelab.figures import heights
from whitelab.figures.drawing import Drawing
from whitelab.figures.marks import whiskers
from whitelab.figures.panels import BARE, finish
from whitelab.figures.style import is_number


@dataclass(frozen=True)
class Interval:
    """A value, where its interval begins and ends, and whether it is `settled` or could be chance."""

    middle: float
    low: float | None
    high: float | None
    settled: bool = True


def add_dot(
    figure: Drawing, place: int, interval: Interval, look: tuple[str, str], value: str, hover: str, left: bool
) -> None:
    """Draw a dot in row `place` with its whiskers, open unless it is settled, and its value beside it.

    `look` is its symbol and colour. The value stands at the end of the interval, on the `left` or the right.
    """
    symbol, colour = look
    middle, low, high = interval.middle, interval.low, interval.high
    around = is_number(low) and is_number(high)
    shown = symbol if interval.settled else f"{symbol}-open"
    figure.add_scatter(
        x=[middle],
        y=[place],
        mode="markers",
        marker={"symbol": shown, "size": 13, "color": colour, "line": {"width": 2, "color": colour}},
        error_x=whiskers([middle], [low], [high], color=colour, thickness=2.5, width=6) if around else None,
        hovertemplate=f"{hover}<extra></extra>",
    )
    end = (low if left else high) if around else middle
    side = {"xanchor": "right", "xshift": -10} if left else {"xanchor": "left", "xshift": 10}
    figure.add_annotation(x=end, y=place, text=value, showarrow=False, font={"size": 13}, **side)


def axis_around(ends: Iterable[float | None], left: float, right: float | None = None) -> list[float] | None:
    """The range of an axis from the first of `ends` to the last, with these shares of it beside them for values.

    None where no end is a number.
    """
    known = [float(end) for end in ends if is_number(end)]
    if not known:
        return None
    low, high = min(known), max(known)
    span = max(high - low, 1.0)
    return [low - left * span, high + (left if right is None else right) * span]


def finish_dots(figure: Drawing, rows: Sequence[str], alt: str, row: int = 46, around: int = 70) -> go.Figure:
    """The figure with the names of its `rows` from the top down, each `row` pixels high."""
    names = {"tickvals": list(range(len(rows))), "ticktext": list(rows)}
    figure.update_yaxes(**names, range=[len(rows) - 0.5, -0.5], **BARE)
    return finish(figure, alt, heights.dots(len(rows), row, around), 10, right=20, showlegend=False)
