"""The marks that figures share: lines, stars, whiskers, rules, outlines, and what a click meets."""

import html
from collections.abc import Iterable, Sequence

import numpy as np

from whitelab.figures.drawing import Drawing
from whitelab.figures.style import MARK, RULE, is_number, variant_colour, variant_symbol

Number = int | float
Point = tuple[Number, Number]

NAMED = 64  # pixels at the right of a figure whose levels are named
STEADY = {"selected": {"marker": {"opacity": 1}}, "unselected": {"marker": {"opacity": 1}}}  # whatever is clicked
UNSEEN = {"selected": {"marker": {"opacity": 0}}, "unselected": {"marker": {"opacity": 0}}}


def add_line(figure: Drawing, x: Iterable, y: Iterable, label: str, line: dict, hover: str, **more) -> None:
    """A line with its name in the legend and at the head of its hover text."""
    name = html.escape(label)
    hover = f"{name}<br>{hover}<extra></extra>"
    x, y = (values if isinstance(values, np.ndarray) else list(values) for values in (x, y))
    figure.add_scatter(x=x, y=y, name=name, line=line, hovertemplate=hover, **{"mode": "lines"} | more)


def variant_line(spec: str, dash: str = "solid", width: Number = 2.5) -> dict:
    """The line of a variant: its hue, and a dash that tells its parameters apart."""
    return {"color": variant_colour(spec), "width": width, "dash": dash}


def variant_marker(spec: str) -> dict:
    """The marker on the line of a variant."""
    return {"size": 9, "symbol": variant_symbol(spec), "opacity": 1}


def add_shares(figure: Drawing, values: np.ndarray, bins: int, label: str, line: dict, of: str) -> None:
    """The outline of a histogram of cosines on the whole of [-1, 1], in percent of what it is `of`."""
    # A cosine of parallel vectors may be 1 up to rounding, which a histogram would leave out.
    counts, edges = np.histogram(np.clip(values, -1, 1), bins=np.linspace(-1, 1, bins + 1))
    share = 100 * counts / max(counts.sum(), 1)
    hover = f"cosine %{{x:.2f}}: %{{y:.1f}} % of {of}"
    line = {"width": 2, "shape": "hvh"} | line
    add_line(figure, (edges[:-1] + edges[1:]) / 2, share, label, line, hover, fill="tozeroy")


def add_marks(
    figure: Drawing, points: Sequence[Point], symbol: str, hover: str = "", size: Number = 13, **more
) -> None:
    """Marks at points, open ones drawn thickly; without `hover` the pointer passes over them."""
    marker = {"symbol": symbol, "size": size, "color": MARK, "opacity": 1} | more.pop("marker", {})
    if symbol.endswith("-open"):
        marker = {"line": {"width": 2.5, "color": marker["color"]}} | marker
    figure.add_scatter(
        x=[x for x, _ in points],
        y=[y for _, y in points],
        mode="markers",
        marker=marker,
        **{"showlegend": False, "cliponaxis": False}
        | ({"hovertemplate": f"{hover}<extra></extra>"} if hover else {"hoverinfo": "skip"})
        | STEADY
        | more,
    )


def stars(figure: Drawing, points: Sequence[Point], hover: str = "", size: Number = 15, **more) -> None:
    """The best value, or several that tie, marked."""
    add_marks(figure, points, "star", hover, size, marker={"line": {"color": "#FFFFFF", "width": 1}}, **more)


def printed_mark(figure: Drawing, x: Number, y: float, words: str, colour: str = MARK, **more) -> None:
    """A number that a paper prints, as an open diamond."""
    hover = f"printed, {html.escape(words)}: {y:.2f}"
    add_marks(figure, [(x, y)], "diamond-open", hover, name="printed", marker={"color": colour}, **more)


def click_cells(
    figure: Drawing,
    places: Sequence[Point],
    carried: Sequence[Sequence],
    text: Sequence[str],
    hover: str,
    size: Number,
) -> None:
    """Invisible squares that hover and clicks meet, each with what it carries in `customdata`.

    Plotly reports no clicks on the cells of a heatmap.
    """
    figure.add_scatter(
        x=[x for x, _ in places],
        y=[y for _, y in places],
        mode="markers",
        customdata=carried,
        text=text,
        marker={"symbol": "square", "size": size, "color": "rgba(0,0,0,0)"},
        hovertemplate=f"{hover}<extra></extra>",
        showlegend=False,
        **UNSEEN,
    )


def in_cells(figure: Drawing, x: Sequence, y: Sequence, text: Sequence[str], inks: Sequence[str], across: int) -> None:
    """Numbers in the cells of a map of `across` columns, each in its ink: Plotly's greys are faint on mid colours."""
    font = {"size": 12 if across <= 13 else 8, "color": inks}
    figure.add_scatter(x=x, y=y, mode="text", text=text, textfont=font, hoverinfo="skip", showlegend=False)


def outline(figure: Drawing, x: Point, y: Point, width: Number = 3) -> None:
    """A frame around what is selected."""
    figure.add_shape(type="rect", x0=x[0], x1=x[1], y0=y[0], y1=y[1], line={"color": MARK, "width": width})


def whiskers(values: Sequence[Number], lows: Sequence[Number | None], highs: Sequence[Number | None], **more) -> dict:
    """Error bars from the lows to the highs; none where an end is missing."""
    ends = [
        (v, a, b) if is_number(a) and is_number(b) else (v, v, v) for v, a, b in zip(values, lows, highs, strict=True)
    ]
    above, below = [max(0.0, high - v) for v, _, high in ends], [max(0.0, v - low) for v, low, _ in ends]
    return {
        "type": "data",
        "symmetric": False,
        "array": above,
        "arrayminus": below,
        "thickness": 1.5,
        "width": 4,
    } | more


def half_whiskers(scores: Sequence[Number], widths: Sequence[Number], **more) -> dict:
    """Error bars of half an interval to either side, as far as a score x 100 can lie."""
    ends = list(zip(scores, widths, strict=True))
    return whiskers(scores, [max(-100.0, s - w) for s, w in ends], [min(100.0, s + w) for s, w in ends], **more)


def rule(colour: str = RULE, dash: str = "solid", width: Number = 1.5) -> dict:
    """The stroke of a reference line."""
    return {"color": colour, "dash": dash, "width": width}


def level(figure: Drawing, value: float, name: str, line: dict, digits: int = 2) -> None:
    """A level ruled across the figure, named in the margin at its right, where no line or mark can be."""
    figure.add_hline(y=value, line=line)
    if not name:
        return
    beside = {"x": 1, "xref": "paper", "xanchor": "left", "xshift": 11, "yanchor": "middle", "align": "left"}
    figure.add_annotation(y=value, text=f"{name}<br>{value:.{digits}f}", showarrow=False, font={"size": 12}, **beside)


def upright(figure: Drawing, place: Number, name: str, line: dict, left: bool = False) -> None:
    """A place on the x axis ruled across the figure, named at its foot, on its right or its `left`."""
    figure.add_vline(x=place, line=line)
    side = {"xanchor": "right", "xshift": -4} if left else {"xanchor": "left", "xshift": 4}
    figure.add_annotation(x=place, y=0, yref="paper", yanchor="bottom", text=name, showarrow=False, **side)


def rank_rule(figure: Drawing, rank: int, dim: int) -> None:
    """The rank ruled into an axis of kept dimensions, where it is not all of them."""
    if rank < dim:
        upright(figure, rank, f"rank {rank}", rule(dash="dot", width=1), left=2 * rank > dim)


def share_axis(figure: Drawing) -> None:
    """The axis of shares of the variance, a tick each power of ten, written out: a raised exponent is set larger."""
    top = 2  # 100 %, as the power of ten that a logarithmic axis takes: also where nothing or one point is drawn
    figure.update_yaxes(title="Share of variance (%)", type="log", dtick=1, tickformat="~g", maxallowed=top)
