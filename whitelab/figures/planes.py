"""The plane of the two losses, alignment against uniformity: paths of layers, and settings of models."""

import html
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from whitelab.base.groups import grouped
from whitelab.figures import heights
from whitelab.figures.drawing import Drawing
from whitelab.figures.marks import Number, Point, add_line, rule, upright, variant_line
from whitelab.figures.panels import bar_below, finish, in_words, say_nothing_is_there
from whitelab.figures.style import MARK, RULE, SCORE, SCORE_SCALE, is_number, variant_colour, variant_symbol

_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "hexagon", "pentagon", "x")


def loss_plane(figure: Drawing, floor: float | None = None) -> None:
    """The axes of alignment against uniformity, with the isotropic floor."""
    if floor is not None:
        upright(figure, floor, "isotropic floor", rule(dash="dash"))
    figure.update_xaxes(title="Uniformity loss (lower: more spread out)")
    figure.update_yaxes(title="Alignment loss (lower: similar pairs closer)", rangemode="tozero")


# Where a label's middle lies from its point: in halves of its width, and in pixels.
_SIDES = {"top center": (0, 0, 15), "middle right": (1, 7, 0), "middle left": (-1, -7, 0), "bottom center": (0, 0, -15)}
_LETTER = np.array([8.0, 13.0])  # pixels
_PLOT = (280, 300)  # pixels: in a window of 390, below a legend of four lines, as well as on a projector
_HEAD = 12  # pixels from a point to the middle of the arrow's head at it


def label_sides(
    points: Sequence[Point],
    order: Iterable[int],
    span: Point,
    letters: Sequence[int] | None = None,
    within: tuple[Point, Point] = ((-np.inf, -np.inf), (np.inf, np.inf)),
    ruled: Sequence[Number] = (),
) -> dict[int, str]:
    """The side of each point on which its label, of so many letters (two), covers no other label and no other point.

    Nor does it leave the corners `within` which it must lie, or meet the uprights `ruled` at places on the x axis.
    Points without such a side have none, and those left out of `order`; the first in it choose first. Measured
    on a plot of a phone whose axes `span` so much, so that on a wider one there is more room, not less.
    """
    scale = _PLOT / np.maximum(span, 1e-12)
    places = np.array(points, dtype=float).reshape(-1, 2) * scale
    low, high = np.array(within, dtype=float) * scale
    rules = np.array(ruled, dtype=float) * scale[0]
    sizes = np.array([[count, 1] for count in (letters or [2] * len(places))]).reshape(-1, 2) * _LETTER
    sides, taken, centres = {}, [], np.empty((0, 2))
    for i in order:
        for side, (halves, right, up) in _SIDES.items():
            centre = places[i] + (halves * sizes[i, 0] / 2 + right, up)
            near = (np.abs(places - centre) < sizes[i] / 2 + 5).all(axis=1).any()
            near |= (centre - sizes[i] / 2 < low).any() or (centre + sizes[i] / 2 > high).any()
            ends = centre[0] + sizes[i, 0] / 2 * np.array([-1, 1])
            if halves:  # on a wider plot it lies nearer to its point: all between them is to be free
                ends = np.sort([places[i, 0] + 3 * halves, centre[0] + halves * sizes[i, 0] / 2])
            near |= ((rules > ends[0]) & (rules < ends[1])).any()
            if not near and not (np.abs(centres - centre) < (sizes[taken] + sizes[i]) / 2).all(axis=1).any():
                sides[i], centres = side, np.vstack([centres, centre])
                taken.append(i)
                break
    return sides


_OF_A_LAYER = (
    f"layer %{{customdata[0]}}<br>uniformity %{{x:.3f}}<br>alignment %{{y:.3f}}<br>{SCORE}: %{{customdata[1]:.2f}}"
)


def plane(
    rows: Sequence[Mapping],
    labels: Mapping[str, str],
    floor: float,
    selected: int | None = None,
    average: Sequence[Mapping] = (),
) -> go.Figure:
    """Alignment against uniformity: one path of layers a variant, the Spearman score as colour.

    `rows` have layer, whitening, alignment, uniformity, spearman. Lower is better on both axes. A thin arrow leads
    from each layer without a map to the same layer with one. Points have their layer's number where there is room,
    the `selected` layer and the ends of the paths first. `average` are rows of layers that are averaged, whose names
    stand for the number.
    """
    known, apart = ([row for row in some if is_number(row["alignment"])] for some in (rows, average))
    scores = [row["spearman"] for row in (*known, *apart) if is_number(row["spearman"])]
    low, high = (min(scores), max(scores)) if scores else (0.0, 1.0)
    raw = {row["layer"]: row for row in known if row["whitening"] == "none"}
    paths = grouped((row["whitening"], row) for row in known)
    figure, sides = Drawing(), _numbered(known, apart, floor, selected)
    loss_plane(figure, floor)
    if not known and not apart:
        say_nothing_is_there(figure, "xy", "nothing to draw: alignment is not defined")
    for spec in paths:
        pairs = [(raw[row["layer"]], row) for row in paths[spec] if row["layer"] in raw and spec != "none"]
        _add_arrows(figure, pairs, spec)
    for number, (spec, path) in enumerate(paths.items()):
        bar = {"showscale": number == 0, "colorbar": bar_below(-0.22, SCORE)}
        scale = {"colorscale": SCORE_SCALE, "cmin": low, "cmax": high} | bar
        edge = {
            "color": [MARK if row["layer"] == selected else variant_colour(spec) for row in path],
            "width": [3 if row["layer"] == selected else 1.5 for row in path],
        }
        shown = [sides.get((spec, row["layer"])) for row in path]
        marker = {"size": 13, "symbol": variant_symbol(spec), "line": edge} | scale
        add_line(
            figure,
            [row["uniformity"] for row in path],
            [row["alignment"] for row in path],
            labels[spec],
            variant_line(spec, width=1.5),
            _OF_A_LAYER,
            mode="lines+markers+text",
            text=[str(row["layer"]) if side else "" for row, side in zip(path, shown, strict=True)],
            textposition=[side or "top center" for side in shown],
            marker=marker | {"color": [row["spearman"] for row in path]},
            customdata=[[row["layer"], row["spearman"]] for row in path],
            legendgroup=spec,
        )
    for row in apart:
        side = sides.get((row["whitening"], row["layer"]), "top center")
        _add_average(figure, row, side, {"colorscale": SCORE_SCALE, "cmin": low, "cmax": high})
    title = f"Uniformity and alignment of {len(known)} layers and variants, floor {floor:.3f}"
    ends = [(labels[spec], path[-1]) for spec, path in paths.items()]
    parts = [f"{name}, layer {r['layer']}, {r['uniformity']:.2f} and {r['alignment']:.2f}" for name, r in ends]
    return finish(figure, in_words(title, parts, "nothing defined"), heights.plane(len(paths)))


def _add_average(figure: Drawing, row: Mapping, side: str, scale: dict) -> None:
    """The outlined point of layers that are averaged, their names on a `side` of it."""
    marker = {"size": 13, "symbol": variant_symbol(row["whitening"]), "line": {"color": MARK, "width": 3}}
    figure.add_scatter(
        x=[row["uniformity"]],
        y=[row["alignment"]],
        mode="markers+text",
        text=[row["layer"]],
        textposition=side,
        cliponaxis=False,
        marker=marker | scale | {"color": [row["spearman"]]},
        customdata=[[row["layer"], row["spearman"]]],
        hovertemplate=_OF_A_LAYER.replace("layer", "layers", 1) + "<extra></extra>",
        legendgroup=row["whitening"],
        showlegend=False,
    )


def _numbered(
    rows: Sequence[Mapping], averages: Sequence[Mapping], floor: float, selected: int | None
) -> dict[tuple[str, int | str], str]:
    """The side of each point on which its layer's number stands, or the names of an average's, by variant and layer."""
    points = [(row["uniformity"], row["alignment"]) for row in rows]
    layers = [row["layer"] for row in rows]
    ends = {selected: 0} | dict.fromkeys((min(layers, default=0), max(layers, default=0)), 1)
    # The path without a map before the others: their layers are found along the arrows.
    order = sorted(range(len(rows)), key=lambda i: (ends.get(layers[i], 2), rows[i]["whitening"] != "none"))
    # Whitenings that differ by a rotation share their points, and one number serves them all.
    once = {(layers[i], *np.round(points[i], 3)): i for i in reversed(order)}
    order = [*range(len(rows), len(rows) + len(averages)), *(i for i in order if i in once.values())]
    named = [*rows, *averages]
    layers += [row["layer"] for row in averages]
    points += [(row["uniformity"], row["alignment"]) for row in averages]
    x, y = [floor, *(x for x, _ in points)], [y for _, y in points]
    span = max(x) - min(x), max(y, default=0.0)
    heads = _heads(rows, span)
    letters = [*(max(len(str(layer)), 2) for layer in layers), *([2] * len(heads))]
    sides = label_sides([*points, *heads], order, span, letters, ruled=[floor])
    return {(named[i]["whitening"], layers[i]): side for i, side in sides.items()}


def _heads(rows: Sequence[Mapping], span: Point) -> list[Point]:
    """Where the arrows from the raw points of layers have their heads, beside the points of variants."""
    at = {(row["whitening"], row["layer"]): np.array([row["uniformity"], row["alignment"]]) for row in rows}
    ways = [(end, at["none", i] - end) for (spec, i), end in at.items() if spec != "none" and ("none", i) in at]
    scale = _PLOT / np.maximum(span, 1e-12)
    return [tuple(end + way * _HEAD / max(np.hypot(*(way * scale)), _HEAD)) for end, way in ways]


def _add_arrows(figure: Drawing, pairs: Sequence[tuple[Mapping, Mapping]], spec: str) -> None:
    """Thin arrows from the raw point of each layer to its point with a variant."""
    if not pairs:
        return
    x = [value for before, after in pairs for value in (before["uniformity"], after["uniformity"], None)]
    y = [value for before, after in pairs for value in (before["alignment"], after["alignment"], None)]
    head = {"symbol": "arrow", "angleref": "previous", "size": [0, 9, 0] * len(pairs), "standoff": 7}
    figure.add_scatter(
        x=x,
        y=y,
        mode="lines+markers",
        line={"color": variant_colour(spec), "width": 1},
        marker=head | {"color": variant_colour(spec), "opacity": 1},
        hoverinfo="skip",
        legendgroup=spec,
        showlegend=False,
    )


def setting_plane(rows: Sequence[Mapping], floor: float) -> go.Figure:
    """Alignment against uniformity, one point a setting: hue of its variant, symbol of its model.

    `rows` have model, setting, its short `label`, whitening, alignment, uniformity and spearman. Lower is better
    on both axes. Labels stand where there is room for them.
    """
    known = [row for row in rows if is_number(row["alignment"]) and is_number(row["uniformity"])]
    models = list(dict.fromkeys(row["model"] for row in known))
    ends = [floor, *(row["uniformity"] for row in known)]
    low, high = min(ends), max(ends)
    pad = 0.12 * max(high - low, 0.5)
    tops = [row["alignment"] for row in known]
    sides = label_sides(
        [(row["uniformity"], row["alignment"]) for row in known],
        range(len(known)),
        (high - low + 2 * pad, max(tops, default=0.0) or 1.0),
        [len(row["label"]) for row in known],
        ((low - pad, 0), (high + pad, np.inf)),
        [floor],
    )
    figure = Drawing()
    loss_plane(figure, floor)
    for number, model in enumerate(models):
        own, shown = zip(*((row, sides.get(i)) for i, row in enumerate(known) if row["model"] == model), strict=True)
        scores = [f"{row['spearman']:.2f}" if is_number(row["spearman"]) else "undefined" for row in own]
        marker = {"size": 14, "symbol": _SYMBOLS[number % len(_SYMBOLS)], "line": {"width": 1, "color": RULE}}
        figure.add_scatter(
            x=[row["uniformity"] for row in own],
            y=[row["alignment"] for row in own],
            name=html.escape(model),
            mode="markers+text",
            text=[html.escape(row["label"]) if side else "" for row, side in zip(own, shown, strict=True)],
            textposition=[side or "top center" for side in shown],
            textfont={"size": 12},
            marker=marker | {"color": [variant_colour(row["whitening"]) for row in own]},
            customdata=[[html.escape(row["setting"]), score] for row, score in zip(own, scores, strict=True)],
            hovertemplate=f"{html.escape(model)}, %{{customdata[0]}}<br>uniformity %{{x:.3f}}<br>alignment %{{y:.3f}}"
            f"<br>{SCORE}: %{{customdata[1]}}<extra></extra>",
            cliponaxis=False,
        )
    figure.update_xaxes(range=[low - pad, high + pad], zeroline=False)
    title = f"Alignment and uniformity of {len(known)} settings of {len(models)} models; floor {floor:.3f}"
    alt = in_words(title, [f"{r['setting']} {r['uniformity']:.2f} and {r['alignment']:.2f}" for r in known[:8]], "none")
    return finish(figure, alt, heights.PLANE, legend2={"font": {"size": 12}}, showlegend=len(models) > 1)
