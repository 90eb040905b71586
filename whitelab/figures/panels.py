"""The frame that all figures share: height, margins, legend, words, limits, colour bars, maps over layers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import plotly.graph_objects as go

from whitelab.figures.drawing import Drawing
from whitelab.figures.marks import add_line, click_cells, in_cells, variant_line, variant_marker, whiskers
from whitelab.figures.style import LAYER, SCORE, SCORE_SCALE, inks, is_number, variant_dashes

CLICKABLE = {"clickmode": "event+select", "dragmode": False}
BARE = {"showgrid": False, "zeroline": False}  # axes of maps and rows
TOOLBAR = 28  # pixels at the top of a figure, where plotly's buttons are as soon as a page is touched


def legend(**more) -> dict:
    """A legend in lines, at the left end of the axes."""
    return {"orientation": "h", "yanchor": "bottom", "x": 0, "title": {"text": ""}} | more


_SEPARATORS = ".\u202f"  # of decimals and, where a format has a comma, of thousands: as `spaced` writes them


def finish(figure: Drawing, *place, **layout) -> go.Figure:
    """The figure, complete, in its frame."""
    frame(figure, *place, **layout)
    return figure.figure()


def frame(figure: Drawing, alt: str, height: int, top: int = 30, right: int = 10, bottom: int = 10, **layout) -> None:
    """Give a drawing its height, its alternative text and the margins and legend of the house.

    Legends are numbered from the second, because the theme of the page colours the first unlike any other.
    """
    for trace in figure.traces:
        trace.setdefault("legend", "legend2")
    below = 0 if layout.get("dragmode") is False else TOOLBAR  # what can be clicked has no buttons
    # From the top of the figure down: where it has many lines, the axes make room for them.
    place = {"yref": "container", "y": 1 - below / height, "yanchor": "top"}
    legend2 = legend(**place) | layout.pop("legend2", {})
    margin = {"l": 10, "r": right, "t": top, "b": bottom}
    figure.update_layout(
        height=height, margin=margin, legend2=legend2, separators=_SEPARATORS, meta={"alt": alt}, **layout
    )
    for name, axis in figure.layout.items():
        if name.startswith(("xaxis", "yaxis")):
            axis["automargin"] = True


def in_words(title: str, parts: Iterable[str], nothing: str = "no score defined") -> str:
    """An alternative text: the title and its parts, or that there is nothing."""
    return f"{title}: {'; '.join(parts) or nothing}"


def say_nothing_is_there(figure: Drawing, axes: str = "", words: str = "no score is defined") -> None:
    """Where nothing is drawn, words in its place; numbers on these `axes` ("x", "y" or both) would measure nothing."""
    middle = {"xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5}
    figure.add_annotation(text=words, showarrow=False, font={"size": 14}, **middle)
    for axis, update in (("x", figure.update_xaxes), ("y", figure.update_yaxes)):
        if axis in axes:
            update(showticklabels=False, showgrid=False, zeroline=False)


def layer_step(n_layers: int) -> int:
    """Every how many layers an axis names one."""
    return 1 if n_layers <= 13 else 2


def reach(values: Iterable[float], least: float = 0.5) -> float:
    """How far an axis or scale centred on zero goes: at least `least`, so that hundredths stay small."""
    return max([least, *(abs(float(value)) for value in values if value == value)])


def bar_below(y: float, title: str = "") -> dict:
    """A colour bar along the bottom, its top at `y` of the plot's height, so that a phone's width is the plot's."""
    bar = {"orientation": "h", "thickness": 10, "y": y, "yanchor": "top"}
    return bar | ({"title": {"text": title, "side": "top"}} if title else {})


@dataclass(frozen=True)
class Scale:
    """A colour scale: what it measures, where it begins and ends, and whether values below its beginning share it."""

    title: str = SCORE
    limits: tuple[float | None, float | None] = (None, None)
    colours: Sequence = field(default_factory=lambda: SCORE_SCALE)
    cut: bool = False

    def bar(self) -> dict:
        """A colour bar along the top, as long as the map is wide, whatever the width of the page."""
        bar = {"title": {"text": self.title, "side": "top"}, "orientation": "h", "thickness": 10, "xpad": 0, "ypad": 4}
        bar |= {"x": 0.5, "xanchor": "center", "y": 1.0, "yanchor": "bottom", "len": 1.0}
        if self.cut:
            ticks = np.linspace(*self.limits, 4)
            bar |= {"tickvals": ticks, "ticktext": [f"{'≤ ' if i == 0 else ''}{t:.1f}" for i, t in enumerate(ticks)]}
        return bar


def symmetric(cells: Mapping[tuple[int, int], float | None], n_layers: int) -> np.ndarray:
    """Values of pairs of layers as a square, NaN where there is none."""
    grid = np.full((n_layers, n_layers), np.nan)
    for (i, j), value in cells.items():
        grid[i, j] = grid[j, i] = np.nan if value is None else value
    return grid


def layer_heatmap(
    grid: np.ndarray,
    columns: Sequence[int],
    n_layers: int,
    scale: Scale,
    hover: str,
    alt: str,
    height: int,
    digits: str = "",
) -> Drawing:
    """A map with a row for each layer, the first at the bottom, and a column for each of `columns`.

    Every cell can be clicked and carries its layer and column in `customdata`, which `hover` names. With
    `digits` its value is written in it. `grid` may hold fewer rows than there will be layers.
    """
    low, high = scale.limits
    heat = {"z": grid, "colorscale": scale.colours, "zmin": low, "zmax": high, "colorbar": scale.bar()}
    if digits:
        heat |= {"xgap": 1, "ygap": 1}
    figure = Drawing()
    figure.add("heatmap", **heat, hoverinfo="skip")
    if digits and not np.isnan(grid).all():
        rows, places = np.nonzero(~np.isnan(grid))
        values = grid[rows, places].tolist()
        low, high = (end(values) if limit is None else limit for end, limit in ((min, low), (max, high)))
        colours = inks(values, low, high, scale.colours)
        in_cells(figure, places.tolist(), rows.tolist(), [format(one, digits) for one in values], colours, n_layers)
    if len(grid) == n_layers and np.isnan(grid).all():
        say_nothing_is_there(figure)
    sign = "+" if "+" in digits else ""
    places = [(column, layer) for layer in range(len(grid)) for column in range(len(columns))]
    click_cells(
        figure,
        places,
        [(layer, columns[column]) for column, layer in places],
        [f"{grid[y, x]:{sign}.2f}" if not np.isnan(grid[y, x]) else "undefined" for x, y in places],
        f"{hover}<br>{scale.title}: %{{text}}",
        max(10, 300 / len(columns)),
    )
    # No square cells: on a narrow page the map would be half as high as its place.
    step = layer_step(n_layers)
    figure.update_xaxes(title="Layer", dtick=step, range=[-0.5, len(columns) - 0.5], **BARE)
    figure.update_yaxes(title="Layer", dtick=step, range=[-0.5, n_layers - 0.5], **BARE)
    frame(figure, alt, height, 0, right=18, bottom=0, showlegend=False, **CLICKABLE)
    return figure


def intervals_by_layer(
    figure: Drawing,
    curves: Mapping[str, Mapping[int, Mapping]],
    labels: Mapping[str, str],
    n_layers: int,
    name: str,
    digits: int,
    unit: str = "",
) -> list[str]:
    """Add a value with its 95 % interval against the layer, one line a variant, and say where each is best.

    `curves[spec][layer]` have `name`, low and high; layers may be missing, and values None.
    """
    dashes, words, form = variant_dashes(curves), [], f".{digits}f"
    hover = f"layer %{{customdata[0]}}: %{{y:{form}}}{unit}<br>95 %: "
    hover += f"%{{customdata[1]:{form}}} to %{{customdata[2]:{form}}}"
    for place, (spec, rows) in enumerate(curves.items()):
        layers = [layer for layer in sorted(rows) if is_number(rows[layer][name])]
        values, lows, highs = ([rows[layer][key] for layer in layers] for key in (name, "low", "high"))
        aside = 0.06 * (place - (len(curves) - 1) / 2)  # so that intervals stand beside each other
        add_line(
            figure,
            [layer + aside for layer in layers],
            values,
            labels[spec],
            variant_line(spec, dashes[spec]),
            hover,
            mode="lines+markers",
            marker=variant_marker(spec),
            error_y=whiskers(values, lows, highs),
            customdata=list(zip(layers, lows, highs, strict=True)),
        )
        if layers:
            best = max(layers, key=lambda layer, rows=rows: rows[layer][name])
            words.append(f"{labels[spec]} is best at layer {best} with {rows[best][name]:{form}}")
    figure.update_xaxes(title=LAYER, dtick=layer_step(n_layers), range=[-0.4, n_layers - 0.6], zeroline=False)
    return words
