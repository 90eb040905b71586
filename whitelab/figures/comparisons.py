"""Models, protocols and papers side by side: steps between protocols, rows against each other, printed numbers."""

import html
import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from whitelab.figures.dots import add_dot, finish_dots
from whitelab.figures.style import (
    DIFFERENCE_ENDS,
    DIFFERENCE_SCALE,
    MARK,
    RULE,
    SUBSET_COLOURS,
    finish,
    flat_bar,
    is_number,
    legend,
    variant_colour,
)

_BELOW, _ABOVE = DIFFERENCE_ENDS
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "hexagon", "pentagon")


def _wrapped(text: str, width: int = 24) -> str:
    return "<br>".join(html.escape(line) for line in textwrap.wrap(text, width))


def walk_steps(start: tuple[str, float], end: tuple[str, float], steps: Sequence[tuple[str, str, float]]) -> go.Figure:
    """A waterfall from one score to another: each step a bar from the score before to the score after it.

    `start` and `end` are a name and a score; `steps` a name, what changed in words, and the change. Ends are
    marks, not bars from 0, so that the axis may begin near them; it spans at least two points.
    """
    figure, levels = go.Figure(), [start[1]]
    for _, _, change in steps:
        levels.append(levels[-1] + change)
    rows = [f"<b>{_wrapped(start[0])}</b>"]
    for number, ((name, words, change), before, after) in enumerate(
        zip(steps, levels[:-1], levels[1:], strict=True), 1
    ):
        rows.append(f"{_wrapped(name)}<br><span style='font-size:11px'>{_wrapped(words, 28)}</span>")
        figure.add_bar(
            x=[after - before],
            base=[before],
            y=[number],
            orientation="h",
            width=0.5,
            marker={"color": _ABOVE if change >= 0 else _BELOW},
            hovertemplate=f"<b>{html.escape(name)}</b><br>{html.escape(words)}"
            f"<br>{before:.2f} to {after:.2f}<extra></extra>",
        )
    rows.append(f"<b>{_wrapped(end[0])}</b>")
    last = len(rows) - 1
    for number, at in enumerate(levels):  # the level that the next step starts from
        figure.add_shape(
            type="line", x0=at, x1=at, y0=number, y1=number + 1, line={"color": RULE, "width": 1, "dash": "dot"}
        )
    figure.add_scatter(
        x=[start[1], end[1]],
        y=[0, last],
        mode="markers",
        marker={"symbol": "diamond", "size": 13, "color": RULE},
        hovertemplate="Spearman x 100: %{x:.2f}<extra></extra>",
    )
    low, high = min(levels), max(levels)
    reach = max(high - low, 2.0)
    middle = (low + high) / 2
    notes = [(0, start[1], f"<b>{start[1]:.2f}</b>"), (last, end[1], f"<b>{end[1]:.2f}</b>")]
    notes += [(n, max(levels[n - 1 : n + 1]), _signed(step[2])) for n, step in enumerate(steps, 1)]
    figure.update_xaxes(title="Spearman x 100", range=[middle - 0.56 * reach, middle + 0.85 * reach], zeroline=False)
    figure.update_yaxes(
        tickvals=list(range(len(rows))), ticktext=rows, range=[last + 0.6, -0.6], showgrid=False, zeroline=False
    )
    alt = f"From {start[0]}, {start[1]:.2f}, to {end[0]}, {end[1]:.2f}: " + (
        "; ".join(f"{name} ({words}) {_signed(change)}" for name, words, change in steps) or "nothing differs"
    )
    annotations = [
        {"x": x, "y": y, "text": text, "showarrow": False, "xanchor": "left", "xshift": 9, "font": {"size": 13}}
        for y, x, text in notes
    ]
    margin = {"l": 10, "r": 10, "t": 10, "b": 10}
    height = max(300, 110 + 48 * len(rows))
    return finish(figure, alt, height, showlegend=False, margin=margin, annotations=annotations, bargap=0.4)


def _signed(value: float) -> str:
    shown = round(value, 2) + 0.0
    return f"{shown:+.2f}" if shown else "0"


def _with_ends(row: Mapping) -> str:
    text = f"{row['difference']:+.2f}"
    if is_number(row["low"]) and is_number(row["high"]):
        text += f" ({row['low']:+.2f} to {row['high']:+.2f})"
    return text


def row_differences(rows: Sequence[Mapping], a: str, b: str) -> go.Figure:
    """Row a less row b on every task and on average, with 95 % intervals; a dot is open where it could be chance.

    `rows` have label, difference, low, high and settled.
    """
    known = {place: row for place, row in enumerate(rows) if is_number(row["difference"])}
    figure, notes = go.Figure(), []
    figure.add_vline(x=0, line={"color": RULE, "width": 1.5})
    for place, row in known.items():
        interval, left = (row["difference"], row["low"], row["high"]), row["difference"] < 0
        hover = f"<b>{html.escape(row['label'])}</b><br>{_with_ends(row)}"
        value, colour = _signed(row["difference"]), _BELOW if left else _ABOVE
        notes.append(add_dot(figure, place, interval, "circle", colour, value, hover, left, row["settled"]))
    ends = [abs(row[name]) for row in known.values() for name in ("difference", "low", "high") if is_number(row[name])]
    reach = 1.35 * max([0.5, *ends])
    figure.update_xaxes(title=f"{html.escape(a)} less {html.escape(b)} (points)", range=[-reach, reach])
    alt = f"{a} less {b} with 95 % intervals: " + "; ".join(
        f"{row['label']} {_with_ends(row)}{'' if row['settled'] else ', could be chance'}" for row in known.values()
    )
    return finish_dots(figure, [html.escape(row["label"]) for row in rows], notes, alt, 90 + 38 * len(rows))


def difference_heatmap(cells: Mapping[tuple[int, int], float], n_layers: int) -> go.Figure:
    """Ours less the printed score for every pair of layers, symmetric, on a diverging scale centred on zero.

    Its ends are at least half a point from zero, so that hundredths stay pale.
    """
    grid = np.full((n_layers, n_layers), np.nan)
    for (i, j), value in cells.items():
        grid[i, j] = grid[j, i] = value
    known = grid[~np.isnan(grid)]
    reach = max(0.5, float(np.abs(known).max())) if len(known) else 0.5
    figure = go.Figure(
        go.Heatmap(
            z=grid,
            text=[["" if np.isnan(value) else f"{value:+.1f}" for value in row] for row in grid],
            texttemplate="%{text}",
            textfont={"size": 12 if n_layers <= 13 else 8},
            colorscale=DIFFERENCE_SCALE,
            zmin=-reach,
            zmax=reach,
            colorbar=flat_bar("Ours less printed (points)"),
            hovertemplate="layers %{y} and %{x}<br>ours less printed: %{z:+.2f}<extra></extra>",
            xgap=1,
            ygap=1,
        )
    )
    edges = [-0.5, n_layers - 0.5]
    figure.update_xaxes(title="Layer", dtick=1, range=edges, showgrid=False, zeroline=False)
    figure.update_yaxes(title="Layer", dtick=1, range=edges, showgrid=False, zeroline=False)
    alt = "Ours less the printed score of every pair of layers: " + (
        f"from {known.min():+.2f} to {known.max():+.2f}, {np.mean(known):+.2f} on average" if len(known) else "none"
    )
    return finish(figure, alt, 500, margin={"l": 10, "r": 10, "t": 0, "b": 0}, showlegend=False)


def task_curves(
    curves: Mapping[str, Sequence[float | None]],
    best: Mapping[str, int | None],
    printed: Sequence[tuple[str, int, float]] = (),
) -> go.Figure:
    """Spearman against the kept dimensions, one line a task, its optimum starred and named in the legend.

    `printed` are task, k and score of a paper, drawn as open diamonds in the task's colour.
    """
    figure = go.Figure()
    hues = {task: SUBSET_COLOURS[i % len(SUBSET_COLOURS)] for i, task in enumerate(curves)}
    for task, values in curves.items():
        figure.add_scatter(
            x=list(range(1, len(values) + 1)),
            y=list(values),
            name=html.escape(task) + (f", k = {best[task]}" if best.get(task) else ""),
            mode="lines",
            line={"color": hues[task], "width": 2.5},
            legendgroup=task,
            hovertemplate=f"{html.escape(task)}<br>k = %{{x}}: %{{y:.2f}}<extra></extra>",
            legend="legend2",  # the theme of the page colours the first legend unlike any other
        )
        if best.get(task):
            k = best[task]
            figure.add_scatter(
                x=[k],
                y=[values[k - 1]],
                mode="markers",
                marker={"symbol": "star", "size": 14, "color": MARK, "line": {"width": 1, "color": "#FFFFFF"}},
                legendgroup=task,
                hovertemplate=f"{html.escape(task)}, best<br>k = {k}: %{{y:.2f}}<extra></extra>",
                showlegend=False,
                cliponaxis=False,
            )
    for task, k, value in printed:
        figure.add_scatter(
            x=[k],
            y=[value],
            mode="markers",
            marker={"symbol": "diamond-open", "size": 12, "color": hues.get(task, RULE), "line": {"width": 2}},
            legendgroup=task,
            hovertemplate=f"printed, {html.escape(task)}<br>k = {k}: {value:.2f}<extra></extra>",
            showlegend=False,
            cliponaxis=False,
        )
    d = max((len(values) for values in curves.values()), default=1)
    known = sorted(value for values in curves.values() for value in values if value is not None)
    known += [value for *_, value in printed]
    if known:
        # The first few directions score far below the rest and would take most of the axis.
        low, high = min(float(np.quantile(known, 0.02)), *(v for *_, v in printed), max(known)), max(known)
        pad = 0.06 * max(high - low, 2.0)
        figure.update_yaxes(range=[low - pad, high + 2 * pad])
    figure.update_xaxes(title="k, kept dimensions", range=[0, d + 1])
    figure.update_yaxes(title="Spearman x 100")
    alt = "Spearman by kept dimensions: " + (
        "; ".join(f"{task} best {curves[task][k - 1]:.2f} at k = {k}" for task, k in best.items() if k) or "no score"
    )
    return finish(figure, alt, 520, legend2=legend(font={"size": 12}))


def setting_plane(rows: Sequence[Mapping], floor: float) -> go.Figure:
    """Alignment against uniformity, one point a setting: hue of its variant, symbol of its model.

    `rows` have model, setting, its short `label`, whitening, alignment, uniformity and spearman. Lower is better
    on both axes.
    """
    known = [row for row in rows if is_number(row["alignment"]) and is_number(row["uniformity"])]
    models = list(dict.fromkeys(row["model"] for row in known))
    reach = [floor, *(row["uniformity"] for row in known)]
    low, high = min(reach), max(reach)
    middle, pad = (low + high) / 2, 0.12 * max(high - low, 0.5)
    figure = go.Figure()
    figure.add_vline(x=floor, line={"color": RULE, "dash": "dash", "width": 1.5})
    figure.add_annotation(
        x=floor, y=0, yref="paper", text="isotropic floor", showarrow=False, xanchor="left", yanchor="bottom", xshift=4
    )
    for number, model in enumerate(models):
        own = [row for row in known if row["model"] == model]
        figure.add_scatter(
            x=[row["uniformity"] for row in own],
            y=[row["alignment"] for row in own],
            name=html.escape(model),
            mode="markers+text",
            text=[html.escape(row["label"]) for row in own],
            textposition=["middle right" if row["uniformity"] < middle else "middle left" for row in own],
            textfont={"size": 12},
            marker={
                "size": 14,
                "symbol": _SYMBOLS[number % len(_SYMBOLS)],
                "color": [variant_colour(row["whitening"]) for row in own],
                "line": {"width": 1, "color": RULE},
            },
            customdata=[
                [html.escape(row["setting"]), f"{s:.2f}" if is_number(s := row["spearman"]) else "undefined"]
                for row in own
            ],
            hovertemplate=f"{html.escape(model)}, %{{customdata[0]}}<br>uniformity %{{x:.3f}}<br>alignment %{{y:.3f}}"
            "<br>Spearman x 100: %{customdata[1]}<extra></extra>",
            legend="legend2",
            cliponaxis=False,
        )
    title = "Uniformity loss (lower: more spread out)"
    figure.update_xaxes(title=title, range=[low - pad, high + pad], zeroline=False)
    figure.update_yaxes(title="Alignment loss (lower: similar pairs closer)", rangemode="tozero")
    alt = f"Alignment and uniformity of {len(known)} settings of {len(models)} models; floor {floor:.3f}: " + "; ".join(
        f"{row['setting']} {row['uniformity']:.2f} and {row['alignment']:.2f}" for row in known[:8]
    )
    return finish(figure, alt, 520, legend2=legend(font={"size": 12}), showlegend=len(models) > 1)
