"""Every layer raw and under a variant: a dumbbell a layer."""

import html
from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from whitelab.figures import heights
from whitelab.figures.drawing import Drawing
from whitelab.figures.marks import STEADY, half_whiskers
from whitelab.figures.panels import CLICKABLE, finish, in_words, say_nothing_is_there
from whitelab.figures.style import LAYER, MARK, RULE, SCORE, is_number, signed, variant_colour, variant_symbol

ENDS = {"raw": ("none", ""), "whitened": (None, ""), "cut": (None, "-open")}  # name -> its variant, how it is filled


def layer_dumbbells(
    rows: Sequence[Mapping],
    names: Mapping[str, str],
    whitening: str,
    n_layers: int,
    selected: Sequence[int] = (),
) -> go.Figure:
    """Spearman of each layer raw and whitened, joined by a line, with 95 % intervals; the `selected` are framed.

    `rows` have layer, and spearman and half width of `raw`, `whitened` and `cut` (to a third of the directions, where
    that is another setting), as `raw`, `raw_half_width_95` and so on. `names` are those of the three. A click on a
    layer carries it in `customdata`.
    """
    figure, parts, changes = Drawing(), [], {}
    for row in rows:
        ends = [row[end] for end in ("raw", "whitened") if is_number(row[end])]
        if len(ends) == 2:
            colour = variant_colour(whitening) if ends[1] >= ends[0] else RULE
            figure.add_scatter(
                x=[row["layer"]] * 2, y=ends, mode="lines", line={"color": colour, "width": 5}, opacity=0.55,
                hoverinfo="skip", showlegend=False,
            )  # fmt: skip
            changes[row["layer"]] = f"<b>{signed(ends[1] - ends[0])}</b>"
            cut = f", {names['cut']} {row['cut']:.2f}" if is_number(row["cut"]) else ""
            parts.append(f"layer {row['layer']} {ends[0]:.2f} to {ends[1]:.2f}{cut}")
    _add_ends(figure, rows, names, whitening)
    for layer in selected:
        figure.add_vrect(x0=layer - 0.42, x1=layer + 0.42, line={"color": MARK, "width": 2})
    across = {"range": [-0.6, n_layers - 0.4], "zeroline": False}
    figure.update_xaxes(title=LAYER, dtick=1, **across)
    # The changes are the names of an axis, which turn upright where they would run into each other. It needs a trace.
    figure.add_scatter(x=list(changes), y=[None] * len(changes), xaxis="x2", hoverinfo="skip", showlegend=False)
    named = {"tickvals": list(changes), "ticktext": list(changes.values()), "tickfont": {"size": 13}}
    upright = {"autotickangles": [0, -90], "side": "top", "overlaying": "x", "showgrid": False}
    figure.update_xaxes("2", **across, **named, **upright)
    figure.update_yaxes(title=SCORE, **_reach(rows))
    if not any(is_number(row[end]) for row in rows for end in ENDS):
        say_nothing_is_there(figure, "y")
    alt = in_words(f"Spearman of every layer, raw and with {names['whitened']}", parts)
    return finish(figure, alt, heights.TALL, 78, **CLICKABLE)


def _add_ends(figure: Drawing, rows: Sequence[Mapping], names: Mapping[str, str], whitening: str) -> None:
    """The marks of every layer with their intervals, those of one kind a trace."""
    for end, (variant, filled) in ENDS.items():
        known = [row for row in rows if is_number(row[end])]
        if not known:
            continue
        look = variant or whitening
        values, half = [row[end] for row in known], [row[f"{end}_half_width_95"] or 0.0 for row in known]
        colour = variant_colour(look)
        figure.add_scatter(
            x=[row["layer"] for row in known],
            y=values,
            customdata=[[row["layer"]] for row in known],
            mode="markers",
            name=html.escape(names[end]),
            marker={"symbol": variant_symbol(look) + filled, "size": 13, "color": colour, "line": {"width": 2}},
            error_y=half_whiskers(values, half, color=colour) | ({"visible": False} if end == "cut" else {}),
            hovertemplate=f"{html.escape(names[end])}, layer %{{x}}<br>{SCORE}: %{{y:.2f}}<extra></extra>",
            **STEADY,
        )


def _reach(rows: Sequence[Mapping]) -> dict[str, list[float]]:
    """The range of an axis that holds every mark with its interval; none where nothing is known."""
    everything = [
        max(-100.0, min(100.0, row[end] + side * (0.0 if end == "cut" else row[f"{end}_half_width_95"] or 0.0)))
        for row in rows
        for end in ENDS
        for side in (-1, 1)
        if is_number(row[end])
    ]
    if not everything:
        return {}
    low, high = min(everything), max(everything)
    room = max(high - low, 5) * 0.08
    return {"range": [low - room, high + room]}
