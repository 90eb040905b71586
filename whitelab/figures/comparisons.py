"""Models, protocols and papers side by side: steps between protocols, rows against each other, printed numbers."""

import html
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from whitelab.figures import heights
from whitelab.figures.dots import Interval, add_dot, finish_dots
from whitelab.figures.drawing import Drawing
from whitelab.figures.marks import add_line, add_marks, printed_mark, rule, stars
from whitelab.figures.panels import (
    BARE,
    Scale,
    finish,
    in_words,
    layer_heatmap,
    reach,
    symmetric,
)
from whitelab.figures.style import (
    DIFFERENCE_ENDS,
    DIFFERENCE_SCALE,
    KEPT,
    RULE,
    SCORE,
    is_number,
    signed,
    subset_stroke,
    wrapped,
)

_BELOW, _ABOVE = DIFFERENCE_ENDS


def walk_steps(start: tuple[str, float], end: tuple[str, float], steps: Sequence[tuple[str, str, float]]) -> go.Figure:
    """A waterfall from one score to another: each step a bar from the score before to the score after it.

    `start` and `end` are a name and a score; `steps` a name, what changed in words, and the change. Ends are
    marks, not bars from 0, so that the axis may begin near them; it spans at least two points.
    """
    figure, levels, last = Drawing(), [start[1]], len(steps) + 1
    rows, notes = [], [(0, start[1], f"<b>{start[1]:.2f}</b>"), (last, end[1], f"<b>{end[1]:.2f}</b>")]
    for number, (name, words, change) in enumerate(steps, 1):
        before, after = levels[-1], levels[-1] + change
        rows.append(f"{wrapped(name, 24, None)}<br><span style='font-size:11px'>{wrapped(words, 28, None)}</span>")
        notes.append((number, max(before, after), signed(change)))
        levels.append(after)
        hover = f"<b>{html.escape(name)}</b><br>{html.escape(words)}<br>{before:.2f} to {after:.2f}<extra></extra>"
        bar = {"x": [after - before], "base": [before], "y": [number], "orientation": "h", "width": 0.5}
        figure.add("bar", **bar, marker={"color": _ABOVE if change >= 0 else _BELOW}, hovertemplate=hover)
    for number, at in enumerate(levels):  # the level that the next step starts from
        figure.add_shape(type="line", x0=at, x1=at, y0=number, y1=number + 1, line=rule(dash="dot", width=1))
    ends = [(start[1], 0), (end[1], last)]
    add_marks(figure, ends, "diamond", f"{SCORE}: %{{x:.2f}}", marker={"color": RULE})
    low, high = min(levels), max(levels)
    span, middle = max(high - low, 2.0), (low + high) / 2
    rows = [f"<b>{wrapped(start[0], 24, None)}</b>", *rows, f"<b>{wrapped(end[0], 24, None)}</b>"]
    figure.update_xaxes(title=SCORE, range=[middle - 0.56 * span, middle + 0.85 * span], zeroline=False)
    figure.update_yaxes(tickvals=list(range(len(rows))), ticktext=rows, range=[last + 0.6, -0.6], **BARE)
    for row, x, text in notes:
        side = {"xanchor": "left", "xshift": 9, "font": {"size": 13}}
        figure.add_annotation(x=x, y=row, text=text, showarrow=False, **side)
    changes = [f"{name} ({words}) {signed(change)}" for name, words, change in steps]
    alt = in_words(f"From {start[0]}, {start[1]:.2f}, to {end[0]}, {end[1]:.2f}", changes, "nothing differs")
    return finish(figure, alt, heights.dots(len(rows), 48, 110), 10, showlegend=False, bargap=0.4)


def _with_ends(row: Mapping) -> str:
    text = f"{row['difference']:+.2f}"
    low, high = row["difference_low"], row["difference_high"]
    if is_number(low) and is_number(high):
        text += f" ({low:+.2f} to {high:+.2f})"
    return text


def row_differences(rows: Sequence[Mapping], a: str, b: str) -> go.Figure:
    """Row a less row b on every task and on average, with 95 % intervals; a dot is open where it could be chance.

    `rows` have label, difference, difference_low, difference_high and settled.
    """
    known = {place: row for place, row in enumerate(rows) if is_number(row["difference"])}
    ends = ("difference", "difference_low", "difference_high")
    figure = Drawing()
    figure.add_vline(x=0, line=rule())
    for place, row in known.items():
        left = row["difference"] < 0
        dot = Interval(*(row[name] for name in ends), row["settled"])
        hover = f"<b>{html.escape(row['label'])}</b><br>{_with_ends(row)}"
        add_dot(figure, place, dot, ("circle", _BELOW if left else _ABOVE), signed(row["difference"]), hover, left)
    span = 1.35 * reach([row[name] for row in known.values() for name in ends if is_number(row[name])])
    figure.update_xaxes(title=f"{html.escape(a)} less {html.escape(b)} (points)", range=[-span, span])
    parts = [
        f"{row['label']} {_with_ends(row)}{'' if row['settled'] else ', could be chance'}" for row in known.values()
    ]
    names = [html.escape(row["label"]) for row in rows]
    return finish_dots(figure, names, in_words(f"{a} less {b} with 95 % intervals", parts), 38, 90)


def difference_heatmap(cells: Mapping[tuple[int, int], float], n_layers: int) -> go.Figure:
    """Ours less the printed score for every pair of layers, symmetric, on a diverging scale centred on zero.

    Its ends are at least half a point from zero, so that hundredths stay pale.
    """
    grid = symmetric(cells, n_layers)
    known = grid[~np.isnan(grid)]
    span = reach(known)
    words = [f"from {known.min():+.2f} to {known.max():+.2f}, {np.mean(known):+.2f} on average"] if len(known) else []
    return layer_heatmap(
        grid,
        range(n_layers),
        n_layers,
        Scale("Ours less printed (points)", (-span, span), DIFFERENCE_SCALE),
        "layers %{customdata[0]} and %{customdata[1]}",
        in_words("Ours less the printed score of every pair of layers", words, "none"),
        heights.PAIRS,
        "+.1f",
    ).figure()


def task_curves(
    curves: Mapping[str, Sequence[float | None]],
    best: Mapping[str, int | None],
    printed: Sequence[tuple[str, int, float]] = (),
) -> go.Figure:
    """Spearman against the kept dimensions, one line a task, its optimum starred and named in the legend.

    `printed` are task, k and score of a paper, drawn as open diamonds in the task's colour.
    """
    figure, words = Drawing(), []
    strokes = {task: subset_stroke(i) for i, task in enumerate(curves)}
    for task, values in curves.items():
        k, line, hover = best.get(task), strokes[task] | {"width": 2.5}, "k = %{x}: %{y:.2f}"
        label = task + (f", k = {k}" if k else "")
        add_line(figure, range(1, len(values) + 1), values, label, line, hover, legendgroup=task)
        if k:
            stars(figure, [(k, values[k - 1])], f"{html.escape(task)}, best<br>{hover}", legendgroup=task)
            words.append(f"{task} best {values[k - 1]:.2f} at k = {k}")
    for task, k, value in printed:
        colour = strokes[task]["color"] if task in strokes else RULE
        printed_mark(figure, k, value, f"{task}, k = {k}", colour, legendgroup=task)
    d = max((len(values) for values in curves.values()), default=1)
    known = sorted(value for values in curves.values() for value in values if value is not None)
    known += [value for *_, value in printed]
    title = SCORE
    if known:
        # The first few directions score far below the rest and would take most of the axis.
        low, high = min(float(np.quantile(known, 0.02)), *(v for *_, v in printed), max(known)), max(known)
        pad = 0.06 * max(high - low, 2.0)
        figure.update_yaxes(range=[low - pad, high + 2 * pad])
        if min(known) < low - pad:
            title += f" (axis cut, lowest is {min(known):.0f})"
    figure.update_xaxes(title=KEPT, range=[0, d + 1])
    figure.update_yaxes(title=title)
    alt = in_words("Spearman by kept dimensions", words, "no score")
    return finish(figure, alt, heights.PLANE, legend2={"font": {"size": 12}})
