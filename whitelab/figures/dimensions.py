"""How many dimensions to keep and sentences to fit on: the score by either, and what a smaller k costs to search."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np
import plotly.graph_objects as go

from whitelab.base.wording import spaced
from whitelab.figures import heights
from whitelab.figures.drawing import Drawing
from whitelab.figures.marks import (
    NAMED,
    add_line,
    add_marks,
    level,
    outline,
    rank_rule,
    rule,
    stars,
    variant_line,
    whiskers,
)
from whitelab.figures.panels import Scale, finish, in_words, layer_heatmap, legend, say_nothing_is_there
from whitelab.figures.style import KEPT, MARK, SCORE, subset_stroke, variant_colour, variant_symbol

_COLUMNS = 64  # of a surface, at most, beside those that are named or chosen
_MARKS = {"knee": "diamond", "best": None, "chosen": "circle-open"}  # from the lowest to the uppermost


def k_curves(
    main: Sequence[float | None],
    subsets: Mapping[str, Sequence[float | None]],
    variant: str,
    label: str,
    marks: Mapping[str, int | None],
    rank: int,
    baseline: float | None = None,
    others: Sequence[tuple[str, str, str, Sequence[float | None]]] = (),
) -> go.Figure:
    """Spearman against the kept dimensions, with the raw score `baseline` and the rank as lines.

    `marks` hold the k that is `best`, that of the `knee` and the one `chosen`; what is undefined is not drawn.
    `others` are variant, label, dash and curve of what to compare with.
    """
    d, figure, hover = len(main), Drawing(), "k = %{x}: %{y:.2f}"
    ks = range(1, d + 1)
    for number, (name, values) in enumerate(subsets.items()):
        line = subset_stroke(number) | {"width": 1.2}
        add_line(figure, ks, values, name, line, hover, legendgroup="subsets", showlegend=False)
    if subsets:  # named beside the figure: a dozen names would take the room of the curves
        add_line(figure, [None], [None], "each subset", rule(width=1.2), "", legendgroup="subsets")
    for spec, name, dash, values in others:
        add_line(figure, ks, values, name, variant_line(spec, dash, 2), hover)
    add_line(figure, ks, main, label, variant_line(variant, width=3), hover)
    defined = {name: k for name in _MARKS if (k := marks.get(name)) and main[k - 1] is not None}
    for name, k in defined.items():
        words = {"name": f"{name}: k = {k}", "hover": f"{name} k = %{{x}}: %{{y:.2f}}", "legend": "legend3"}
        draw = stars if name == "best" else partial(add_marks, symbol=_MARKS[name])
        draw(figure, [(k, main[k - 1])], size=15, showlegend=True, **words)
    if baseline is not None:
        level(figure, baseline, "raw", rule(variant_colour("none"), "dash"))
    rank_rule(figure, rank, d)
    figure.update_xaxes(title=KEPT, range=[0, d + 1])
    figure.update_yaxes(title=SCORE)
    if baseline is None and all(score is None for curve in (main, *(one[-1] for one in others)) for score in curve):
        say_nothing_is_there(figure, "y")
    best, knee = defined.get("best"), defined.get("knee")
    words = [f"best {main[best - 1]:.2f} at k = {best}, knee at {knee}"] if best else ["no score defined"]
    alt = in_words("Spearman by kept dimensions", [*words, f"rank {rank} of {d}"])
    # Short names have a legend of their own: in one legend all columns are as wide as the longest name.
    short = {"xanchor": "left", "font": {"size": 11}, "tracegroupgap": 0}
    below = legend(y=-0.2, entrywidth=90, **short | {"yanchor": "top"})
    right = 10 if baseline is None else NAMED
    return finish(figure, alt, heights.TALL, right=right, legend2=short, legend3=below)


def k_columns(dim: int, extra: Iterable[int] = ()) -> list[int]:
    """Values of k for the columns of a surface: all of them while they are few, else close at first, then wider."""
    if dim <= _COLUMNS:
        return list(range(1, dim + 1))
    wider = np.unique(np.geomspace(1, dim, _COLUMNS).round().astype(int)).tolist()
    return sorted({*wider, *_named_ks(dim), *extra})


def _named_ks(dim: int) -> list[int]:
    """The k that an axis names: powers of four, and d."""
    return [4**i for i in range(8) if 4**i < 0.8 * dim] + [dim]


def k_surface(
    scores: Sequence[Sequence[float | None]],
    n_layers: int,
    best_k: Sequence[int | None],
    label: str,
    chosen: tuple[int, int] | None = None,
) -> go.Figure:
    """Spearman of every layer alone against the kept dimensions; the best k of each layer starred.

    `scores[layer][k - 1]` for the layers there are so far. Columns are `k_columns`, equally wide. Colours
    start at the lower quartile, so that the few directions that hold little meaning do not use up the scale.
    Every cell can be clicked and carries layer and k in `customdata`; that nearest to `chosen` is outlined.
    """
    dim = len(scores[0]) if scores else 1
    ks = k_columns(dim, [k for k in best_k if k])
    values = [[np.nan if row[k - 1] is None else row[k - 1] for k in ks] for row in scores]
    grid = np.array(values, dtype=float).reshape(len(scores), len(ks))
    known = grid[~np.isnan(grid)]
    best = {layer: k for layer, k in enumerate(best_k) if k}
    words = [", ".join(f"layer {layer} k = {k}" for layer, k in best.items()) or "no score defined"]
    figure = layer_heatmap(
        grid,
        ks,
        n_layers,
        Scale(limits=(float(np.quantile(known, 0.25)), float(known.max())) if len(known) else (0.0, 1.0), cut=True),
        f"{label}<br>layer %{{customdata[0]}}, k = %{{customdata[1]}}",
        in_words(f"{label}, Spearman of every layer by kept dimensions; best k", words),
        heights.surface(n_layers),
    )
    stars(figure, [(ks.index(k), layer) for layer, k in best.items()])
    if chosen and chosen[0] < len(scores):
        at = min(range(len(ks)), key=lambda i: abs(ks[i] - chosen[1]))
        outline(figure, (at - 0.5, at + 0.5), (chosen[0] - 0.5, chosen[0] + 0.5))
    named = _named_ks(dim)
    figure.update_xaxes(title=KEPT, tickangle=0, tickvals=[ks.index(k) for k in named], ticktext=list(map(str, named)))
    return figure.figure()


def fit_size_curves(
    curves: Sequence[tuple[str, str, Sequence[int], Sequence[float | None], Sequence[float | None]]],
    dim: int,
    baseline: float | None = None,
) -> go.Figure:
    """Spearman by the sentences that a map is fitted on, on a log scale; the cross-fitted side of each curve dashed.

    `curves` are variant, label, sentences, score and cross-fitted score. n = d is ruled in, and the raw `baseline`.
    """
    figure, words = Drawing(), []
    for spec, label, sizes, scores, crossed in curves:
        hover = "n = %{x:,}: %{y:.2f}"
        marker = {"size": 6, "color": variant_colour(spec), "symbol": variant_symbol(spec)}
        more = {"mode": "lines+markers", "marker": marker}
        add_line(figure, sizes, scores, label, variant_line(spec), hover, **more)
        if any(score is not None for score in crossed):
            add_line(figure, sizes, crossed, f"{label}, cross-fitted", variant_line(spec, "dot", 1.5), hover)
        known = [score for score in scores if score is not None]
        if known:
            words.append(f"{label} from {min(known):.2f} to {max(known):.2f}")
    figure.add_vline(x=dim, line=rule(dash="dot", width=1))
    figure.add_annotation(x=np.log10(dim), y=0, yref="paper", text="n = d", showarrow=False, xanchor="left", xshift=4)
    if baseline is not None:
        level(figure, baseline, "raw", rule(variant_colour("none"), "dash"))
    last = max((size for _, _, sizes, *_ in curves for size in sizes), default=dim)
    named = [dim * 2**i // 4 for i in range(2 + int(np.log2(max(last / dim, 1))) + 1)]
    names = {"tickvals": named, "ticktext": list(map(spaced, named))}
    figure.update_xaxes(title="n, sentences the map is fitted on", type="log", **names)
    figure.update_yaxes(title=SCORE)
    right = 10 if baseline is None else NAMED
    return finish(figure, in_words("Spearman by sentences fitted on", words), heights.TALL, right=right)


# Two panels over one another that share the x axis.
_PANELS = {
    "xaxis": {"anchor": "y", "matches": "x2", "showticklabels": False},
    "yaxis": {"anchor": "x", "domain": [0.58, 1.0]},
    "xaxis2": {"anchor": "y2"},
    "yaxis2": {"anchor": "x2", "domain": [0.0, 0.42]},
}


def search_costs(rows: Sequence[Mapping], variant: str, k: int, top: int) -> go.Figure:
    """Time and memory of an exact search as shares of those at d, above the recall, against the kept dimensions.

    `rows` ascend in k to d and have k, milliseconds, time_ratio and its _q1 and _q3, bytes, memory_ratio,
    recall, raw_recall. The two panels share the k axis; `k` is ruled in.
    """
    ks = [row["k"] for row in rows]

    def percent(name: str) -> list[float]:
        return [100 * row[name] for row in rows]

    figure = Drawing(_PANELS)
    spread = whiskers(percent("time_ratio"), percent("time_ratio_q1"), percent("time_ratio_q3"))
    aside = variant_line("none", "dot"), {"size": 9, "symbol": "square-open", "color": variant_colour("none")}
    ahead = variant_line(variant), {"size": 9, "symbol": "circle", "color": variant_colour(variant)}
    sizes, times = (
        [f"{row['bytes'] / 2**20:,.1f} MiB" for row in rows],
        [f"{row['milliseconds']:.3g} ms" for row in rows],
    )
    counts = [f"{top} neighbours"] * len(rows)
    for name, label, panel, (line, marker), amounts in (
        ("memory_ratio", "Memory", "", aside, sizes),
        ("time_ratio", "Time of one query", "", ahead, times),
        ("raw_recall", "Raw neighbours found", "2", aside, counts),
        ("recall", f"Neighbours at k = {ks[-1]} found", "2", ahead, counts),
    ):
        more = {"mode": "lines+markers", "marker": marker, "customdata": amounts, "cliponaxis": False}
        more |= {"legend": "legend3" if panel else "legend2", "xaxis": f"x{panel}", "yaxis": f"y{panel}"}
        more |= {"error_y": spread} if name == "time_ratio" else {}
        add_line(figure, ks, percent(name), label, line, "k = %{x}: %{y:.1f} % (%{customdata})", **more)
    for panel in ("", "2"):
        figure.add_vline(x=k, line=rule(MARK, "dash"), panel=panel)
    figure.update_xaxes(range=[0, 1.02 * ks[-1]])
    figure.update_xaxes("2", range=[0, 1.02 * ks[-1]], title=KEPT)
    figure.update_yaxes(range=[0, 105], title=f"Cost, % of k = {ks[-1]}")
    figure.update_yaxes("2", range=[0, 105], title="Recall (%)")
    near = min(rows, key=lambda row: abs(row["k"] - k))
    alt = (
        f"Cost of an exact search by kept dimensions: k = {near['k']} takes {near['time_ratio']:.0%} of the time and "
        f"{near['memory_ratio']:.0%} of the memory of k = {ks[-1]}, and finds {near['recall']:.0%} of the same {top} "
        f"neighbours and {near['raw_recall']:.0%} of those of the raw vectors"
    ).replace("%", " %")
    return finish(figure, alt, heights.TALL, legend3=legend(y=0.43))
