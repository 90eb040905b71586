"""How many dimensions to keep: the score by k, and what a smaller k costs to search."""

import html
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from whitelab.figures.style import MARK, RULE, SCORE_SCALE, SUBSET_COLOURS, finish, flat_bar, legend, variant_colour


def k_curves(
    main: Sequence[float | None],
    subsets: Mapping[str, Sequence[float | None]],
    variant: str,
    label: str,
    k: int,
    best_k: int | None,
    knee: int | None,
    rank: int,
    baseline: float | None = None,
    other: tuple[str, str, Sequence[float | None]] | None = None,
) -> go.Figure:
    """Spearman against the kept dimensions, with best k, knee, the chosen k and the raw score as a line."""
    d = len(main)
    ks = list(range(1, d + 1))
    figure = go.Figure()
    for number, (name, values) in enumerate(subsets.items()):
        figure.add_scatter(
            x=ks,
            y=list(values),
            name=name,
            mode="lines",
            line={"width": 1.2, "color": SUBSET_COLOURS[number % len(SUBSET_COLOURS)]},
            opacity=0.85,
            hovertemplate=f"{html.escape(name)}<br>k = %{{x}}: %{{y:.2f}}<extra></extra>",
        )
    if other:
        name, other_label, values = other
        figure.add_scatter(
            x=ks,
            y=list(values),
            name=other_label,
            mode="lines",
            line={"color": variant_colour(name), "width": 2, "dash": "dot"},
            hovertemplate=f"{other_label}<br>k = %{{x}}: %{{y:.2f}}<extra></extra>",
        )
    figure.add_scatter(
        x=ks,
        y=list(main),
        name=label,
        mode="lines",
        line={"color": variant_colour(variant), "width": 3},
        hovertemplate=f"{label}<br>k = %{{x}}: %{{y:.2f}}<extra></extra>",
    )
    marks = [("knee", knee, "diamond"), ("best", best_k, "star"), ("chosen", k, "circle-open")]
    for name, at, symbol in marks:
        if at is not None and main[at - 1] is not None:
            figure.add_scatter(
                x=[at],
                y=[main[at - 1]],
                name=f"{name}: k = {at}",
                mode="markers",
                cliponaxis=False,
                legend="legend3",
                marker={
                    "symbol": symbol,
                    "size": 15,
                    "color": MARK,
                    "line": {"width": 3 if name == "chosen" else 0, "color": MARK},
                },
                hovertemplate=f"{name} k = %{{x}}: %{{y:.2f}}<extra></extra>",
            )
    if baseline is not None:
        figure.add_hline(
            y=baseline,
            line={"color": variant_colour("none"), "dash": "dash", "width": 1.5},
            annotation={"text": f"raw {baseline:.2f}", "xanchor": "right"},
        )
    if rank < d:
        figure.add_vline(x=rank, line={"color": RULE, "dash": "dot", "width": 1})
    figure.update_xaxes(title="k, kept dimensions", range=[0, d + 1])
    figure.update_yaxes(title="Spearman x 100")
    # Short names have a legend of their own: in one legend all columns are as wide as the longest name.
    short = {"xanchor": "left", "font": {"size": 11}}
    figure.update_traces(legend="legend2", selector=lambda trace: trace.legend != "legend3")
    top = f"best {main[best_k - 1]:.2f} at k = {best_k}, knee at {knee}" if best_k else "no score defined"
    alt = f"Spearman by kept dimensions: {top}; rank {rank} of {d}"
    below = legend(-0.2, yanchor="top", entrywidth=90, **short)
    return finish(figure, alt, 480, legend2=legend(**short), legend3=below)


def k_columns(dim: int, extra: Iterable[int] = (), most: int = 64) -> list[int]:
    """Values of k for the columns of a surface: all of them while they are few, else close at first, then wider."""
    if dim <= most:
        return list(range(1, dim + 1))
    wider = np.unique(np.geomspace(1, dim, most).round().astype(int)).tolist()
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
    Invisible squares over the cells carry layer and k in `customdata`; the cell nearest to `chosen` is
    outlined.
    """
    dim = len(scores[0]) if scores else 1
    ks = k_columns(dim, [k for k in best_k if k])
    place = {k: i for i, k in enumerate(ks)}
    grid = np.full((n_layers, len(ks)), np.nan)
    for layer, row in enumerate(scores):
        grid[layer] = [np.nan if row[k - 1] is None else row[k - 1] for k in ks]
    known = grid[~np.isnan(grid)]
    low, high = (float(np.quantile(known, 0.25)), float(known.max())) if len(known) else (0.0, 1.0)
    ticks = np.linspace(low, high, 4)
    figure = go.Figure(
        go.Heatmap(
            z=grid,
            colorscale=SCORE_SCALE,
            zmin=low,
            zmax=high,
            colorbar=flat_bar("Spearman x 100")
            | {"tickvals": ticks, "ticktext": [f"{'≤ ' if i == 0 else ''}{t:.1f}" for i, t in enumerate(ticks)]},
            hoverinfo="skip",
        )
    )
    cells = [(layer, i) for layer in range(len(scores)) for i in range(len(ks))]
    figure.add_scatter(
        x=[i for _, i in cells],
        y=[layer for layer, _ in cells],
        mode="markers",
        customdata=[(layer, ks[i]) for layer, i in cells],
        text=["undefined" if np.isnan(grid[cell]) else f"{grid[cell]:.2f}" for cell in cells],
        marker={"symbol": "square", "size": 10, "color": "rgba(0,0,0,0)"},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        hovertemplate=f"{label}<br>layer %{{customdata[0]}}, k = %{{customdata[1]}}"
        "<br>Spearman x 100: %{text}<extra></extra>",
        showlegend=False,
    )
    stars = [(place[k], layer) for layer, k in enumerate(best_k) if k]
    figure.add_scatter(
        x=[i for i, _ in stars],
        y=[layer for _, layer in stars],
        mode="markers",
        marker={"symbol": "star", "size": 13, "color": MARK, "line": {"color": "#FFFFFF", "width": 1}},
        hoverinfo="skip",
        cliponaxis=False,
        showlegend=False,
    )
    if chosen and chosen[0] < len(scores):
        at = min(range(len(ks)), key=lambda i: abs(ks[i] - chosen[1]))
        box = {"x0": at - 0.5, "x1": at + 0.5, "y0": chosen[0] - 0.5, "y1": chosen[0] + 0.5}
        figure.add_shape(type="rect", line={"color": MARK, "width": 3}, **box)
    where = [place[k] for k in _named_ks(dim)]
    figure.update_xaxes(
        title="k, kept dimensions",
        tickangle=0,
        tickvals=where,
        ticktext=[str(ks[i]) for i in where],
        range=[-0.5, len(ks) - 0.5],
        showgrid=False,
        zeroline=False,
    )
    figure.update_yaxes(
        title="Layer", dtick=1 if n_layers <= 13 else 2, range=[-0.5, n_layers - 0.5], showgrid=False, zeroline=False
    )
    best = ", ".join(f"layer {layer} k = {k}" for layer, k in enumerate(best_k) if k) or "no score defined"
    alt = f"{label}, Spearman of every layer by kept dimensions; best k: {best}"
    height = 130 + 26 * max(n_layers, 9)
    return finish(figure, alt, height, clickmode="event+select", dragmode=False, showlegend=False)


def search_costs(rows: Sequence[Mapping], variant: str, k: int, top: int) -> go.Figure:
    """Time and memory of an exact search as shares of those at d, above the recall, against the kept dimensions.

    `rows` ascend in k to d and have k, milliseconds, time_ratio and its _q1 and _q3, bytes, memory_ratio,
    recall, raw_recall. The two panels share the k axis; `k` is ruled in.
    """
    ks = [row["k"] for row in rows]
    hue, grey = variant_colour(variant), variant_colour("none")
    percent = {
        name: [100 * row[name] for row in rows] for name in ("time_ratio", "memory_ratio", "recall", "raw_recall")
    }
    spread = {
        "type": "data",
        "symmetric": False,
        "array": [100 * (row["time_ratio_q3"] - row["time_ratio"]) for row in rows],
        "arrayminus": [100 * (row["time_ratio"] - row["time_ratio_q1"]) for row in rows],
        "thickness": 1.5,
        "width": 4,
    }
    lines = (
        ("memory_ratio", "Memory", 1, grey, "dot", "square-open", [f"{row['bytes'] / 2**20:,.1f} MiB" for row in rows]),
        (
            "time_ratio",
            "Time of one query",
            1,
            hue,
            "solid",
            "circle",
            [f"{row['milliseconds']:.3g} ms" for row in rows],
        ),
        ("raw_recall", "Raw neighbours found", 2, grey, "dot", "square-open", [f"{top} neighbours"] * len(rows)),
        ("recall", f"Neighbours at k = {ks[-1]} found", 2, hue, "solid", "circle", [f"{top} neighbours"] * len(rows)),
    )
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.16)
    for name, label, panel, colour, dash, symbol, hover in lines:
        figure.add_scatter(
            x=ks,
            y=percent[name],
            name=label,
            mode="lines+markers",
            line={"color": colour, "width": 2.5, "dash": dash},
            marker={"size": 9, "symbol": symbol, "color": colour},
            error_y=spread if name == "time_ratio" else None,
            customdata=hover,
            hovertemplate=f"{label}<br>k = %{{x}}: %{{y:.1f}} % (%{{customdata}})<extra></extra>",
            cliponaxis=False,
            legend=f"legend{panel + 1}",  # the theme of the page colours the first legend unlike any other
            row=panel,
            col=1,
        )
    for panel in (1, 2):
        figure.add_vline(x=k, line={"color": MARK, "dash": "dash", "width": 1.5}, row=panel, col=1)
    figure.update_xaxes(range=[0, 1.02 * ks[-1]])
    figure.update_xaxes(title="k, kept dimensions", row=2, col=1)
    figure.update_yaxes(range=[0, 105])
    figure.update_yaxes(title=f"Cost, % of k = {ks[-1]}", row=1, col=1)
    figure.update_yaxes(title="Recall (%)", row=2, col=1)
    near = min(rows, key=lambda row: abs(row["k"] - k))
    share = {name: f"{100 * near[name]:.0f} %" for name in percent}
    alt = (
        f"Cost of an exact search by kept dimensions: k = {near['k']} takes {share['time_ratio']} of the time and "
        f"{share['memory_ratio']} of the memory of k = {ks[-1]}, and finds {share['recall']} of the same {top} "
        f"neighbours and {share['raw_recall']} of those of the raw vectors"
    )
    return finish(figure, alt, 480, legend2=legend(1.01), legend3=legend(0.43))
