"""Which layers to average: pairs of layers, and subsets of them."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from whitelab.figures.style import (
    MARK,
    RULE,
    SCORE_SCALE,
    finish,
    flat_bar,
    joined,
    layer_colour,
    legend,
    variant_colour,
    variant_dashes,
    variant_symbol,
)


def pair_heatmap(
    cells: Mapping[tuple[int, int], float | None],
    n_layers: int,
    best: tuple[int, int] | None,
    selected: tuple[int, ...] = (),
    scale: tuple[float, float] | None = None,
) -> go.Figure:
    """Spearman of every layer pair, symmetric; best cell starred, selected cell outlined.

    Plotly reports no clicks on heatmap cells, so invisible squares lie over them, each with its layers in
    `customdata`.
    """
    grid = np.full((n_layers, n_layers), np.nan)
    for (i, j), value in cells.items():
        grid[i, j] = grid[j, i] = np.nan if value is None else value
    numbers = [(i, j) for i in range(n_layers) for j in range(n_layers)]
    size = 300 / n_layers
    text = [["" if np.isnan(value) else f"{value:.1f}" for value in row] for row in grid]
    figure = go.Figure(
        go.Heatmap(
            z=grid,
            text=text,
            texttemplate="%{text}",
            textfont={"size": 12 if n_layers <= 13 else 8},
            colorscale=SCORE_SCALE,
            zmin=scale[0] if scale else None,
            zmax=scale[1] if scale else None,
            colorbar=flat_bar("Spearman x 100"),
            hoverinfo="skip",
            xgap=1,
            ygap=1,
        )
    )
    figure.add_scatter(
        x=[j for i, j in numbers],
        y=[i for i, j in numbers],
        mode="markers",
        customdata=numbers,
        text=[f"{grid[i, j]:.2f}" if not np.isnan(grid[i, j]) else "undefined" for i, j in numbers],
        marker={"symbol": "square", "size": size, "color": "rgba(0,0,0,0)"},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        hovertemplate="layers %{customdata[0]} and %{customdata[1]}<br>Spearman x 100: %{text}<extra></extra>",
        showlegend=False,
    )
    if best:
        stars = list(dict.fromkeys((best, best[::-1])))
        figure.add_scatter(
            x=[j for i, j in stars],
            y=[i + 0.34 for i, j in stars],
            mode="markers",
            customdata=stars,
            marker={"symbol": "star", "size": 9, "color": MARK},
            hoverinfo="skip",
            showlegend=False,
        )
    if 1 <= len(selected) <= 2:
        i, j = selected[0], selected[-1]
        for row, column in {(i, j), (j, i)}:
            figure.add_shape(
                type="rect",
                x0=column - 0.5,
                x1=column + 0.5,
                y0=row - 0.5,
                y1=row + 0.5,
                line={"color": MARK, "width": 3},
            )
    edges = [-0.5, n_layers - 0.5]
    # No square cells: on a narrow page the map would be half as high as its place.
    figure.update_xaxes(title="Layer", dtick=1, range=edges, showgrid=False, zeroline=False)
    figure.update_yaxes(title="Layer", dtick=1, range=edges, showgrid=False, zeroline=False)
    shown = f"best {best[0]} and {best[1]} with {cells[best]:.2f}" if best else "no score defined"
    return finish(
        figure,
        f"Spearman of every pair of layers: {shown}",
        500,
        margin={"l": 10, "r": 10, "t": 0, "b": 0},
        clickmode="event+select",
        dragmode=False,
        showlegend=False,
    )


def size_curves(
    best: Mapping[str, Mapping[int, tuple[Sequence[int], float]]],
    labels: Mapping[str, str],
    n_layers: int,
    printed: Mapping[int, tuple[Sequence[int], float]] | None = None,
) -> go.Figure:
    """The best score by number of layers, one line a variant, its highest point starred.

    `best` holds for each variant and size the layers and their Spearman. Points carry their layers in
    `customdata`. `printed` holds the same of a paper, drawn as open diamonds.
    """
    figure, dashes = go.Figure(), variant_dashes(best)
    for spec, sizes in best.items():
        found = sorted(sizes.items())
        top = max((score for _, (_, score) in found), default=None)
        figure.add_scatter(
            x=[size for size, _ in found],
            y=[score for _, (_, score) in found],
            name=labels[spec],
            mode="lines+markers",
            line={"color": variant_colour(spec), "width": 2.5, "dash": dashes[spec]},
            marker={"size": 9, "symbol": variant_symbol(spec), "opacity": 1},
            selected={"marker": {"opacity": 1}},
            unselected={"marker": {"opacity": 1}},
            cliponaxis=False,
            customdata=[list(layers) for _, (layers, _) in found],
            text=[joined(layers) for _, (layers, _) in found],
            hovertemplate=f"{labels[spec]}<br>layers %{{text}}<br>Spearman x 100: %{{y:.2f}}<extra></extra>",
            legend="legend2",  # the theme of the page colours the first legend unlike any other
            showlegend=True,
        )
        tops = [size for size, (_, score) in found if score == top]
        figure.add_scatter(
            x=tops,
            y=[top] * len(tops),
            mode="markers",
            marker={"symbol": "star", "size": 15, "color": MARK, "opacity": 1},
            cliponaxis=False,
            hoverinfo="skip",
            showlegend=False,
        )
    for size, (layers, score) in (printed or {}).items():
        figure.add_scatter(
            x=[size],
            y=[score],
            name="printed",
            mode="markers",
            marker={"symbol": "diamond-open", "size": 14, "color": MARK, "line": {"width": 2}},
            customdata=[list(layers)],
            hovertemplate=f"printed, layers {joined(layers)}<br>Spearman x 100: {score:.2f}<extra></extra>",
            cliponaxis=False,
            legend="legend2",
            showlegend=size == min(printed),
        )
    scores = [score for sizes in (*best.values(), printed or {}) for _, score in sizes.values()]
    low, high = (min(scores), max(scores)) if scores else (0.0, 1.0)
    pad = max(0.08 * (high - low), 1 - (high - low) / 2, 0.1)  # differences of hundredths must not fill the picture
    figure.update_xaxes(title="Number of layers averaged", range=[0.6, n_layers + 0.4], dtick=1 if n_layers < 20 else 2)
    figure.update_yaxes(title="Best Spearman x 100", range=[low - pad, high + pad])
    alt = "Best Spearman by number of layers: " + "; ".join(
        f"{labels[spec]} at most {score:.2f} with layers {joined(layers)}"
        for spec, sizes in best.items()
        for layers, score in sorted(sizes.values(), key=lambda one: -one[1])[:1]
    )
    alt = alt if scores else "Best Spearman by number of layers: no score defined"
    return finish(figure, alt, 340, legend2=legend(), clickmode="event+select", dragmode=False)


def layer_counts(counts: Sequence[int], among: int) -> go.Figure:
    """How many of the best `among` subsets hold each layer, coloured along the layers' scale."""
    layers = list(range(len(counts)))
    figure = go.Figure(
        go.Bar(
            x=layers,
            y=list(counts),
            marker={
                "color": [layer_colour(layer, len(counts)) for layer in layers],
                "line": {"color": RULE, "width": 1},
            },
            hovertemplate=f"layer %{{x}}: in %{{y}} of the best {among}<extra></extra>",
        )
    )
    figure.update_xaxes(title="Layer", dtick=1 if len(counts) < 20 else 2)
    figure.update_yaxes(title=f"Among the best {among} subsets", range=[0, max(1.04 * among, 1)])
    often = sorted(layers, key=lambda layer: -counts[layer])[:3]
    alt = f"How often each layer is among the best {among} subsets: " + ", ".join(
        f"layer {layer} in {counts[layer]}" for layer in often
    )
    return finish(figure, alt, 340, showlegend=False)


def subset_ranking(
    rows: Sequence[tuple[Sequence[int], float, int]], n_layers: int, selected: Sequence[int] = (), lines: int = 10
) -> go.Figure:
    """The best subsets, one line each: its place, a dot for every layer it holds, its Spearman.

    `rows` are layers, score and place, best first; equals share a place and carry "=". The line of `selected`
    is outlined. A click anywhere on a line meets a mark with its layers in `customdata`. There is room for at
    least `lines`, so that a ranking that fills up keeps its height.
    """
    places = Counter(place for _, _, place in rows)
    names = [f"{place}{' =' if places[place] > 1 else ''}" for _, _, place in rows]
    cells = [(layer, row) for row in range(len(rows)) for layer in range(n_layers)]
    held = [(layer, row) for row, (layers, _, _) in enumerate(rows) for layer in layers]
    dot = 13 if n_layers <= 13 else 9
    figure = go.Figure()
    for row, (layers, _, _) in enumerate(rows):
        if len(layers) > 1:
            figure.add_shape(
                type="line", x0=min(layers), x1=max(layers), y0=row, y1=row, line={"color": RULE, "width": 1}
            )
    plain = {"mode": "markers", "hoverinfo": "skip", "showlegend": False}
    figure.add_scatter(
        x=[layer for layer, _ in cells],
        y=[row for _, row in cells],
        marker={"size": 4, "color": RULE, "opacity": 0.5},
        **plain,
    )
    figure.add_scatter(
        x=[layer for layer, _ in held],
        y=[row for _, row in held],
        marker={
            "size": dot,
            "color": [layer_colour(layer, n_layers) for layer, _ in held],
            "line": {"color": RULE, "width": 1},
        },
        **plain,
    )
    right = n_layers - 0.1 + 0.08 * n_layers
    figure.add_scatter(
        x=[right] * len(rows),
        y=list(range(len(rows))),
        mode="text",
        text=[f"{score:.2f}" for _, score, _ in rows],
        hoverinfo="skip",
        showlegend=False,
    )
    spots = [(x, row) for row in range(len(rows)) for x in (*range(n_layers), right)]
    figure.add_scatter(
        x=[x for x, _ in spots],
        y=[row for _, row in spots],
        mode="markers",
        marker={"symbol": "square", "size": 22, "color": "rgba(0,0,0,0)"},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        customdata=[list(rows[row][0]) for _, row in spots],
        text=[
            f"Place {names[row]}: layers {joined(rows[row][0])}<br>Spearman x 100: {rows[row][1]:.2f}"
            for _, row in spots
        ],
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
    )
    for row, (layers, _, _) in enumerate(rows):
        if tuple(layers) == tuple(sorted(selected)):
            figure.add_shape(
                type="rect",
                x0=-0.6,
                x1=right + 0.07 * n_layers,
                y0=row - 0.48,
                y1=row + 0.48,
                line={"color": MARK, "width": 2},
            )
    step = 1 if n_layers <= 13 else 2
    figure.update_xaxes(
        title="Layer",
        side="top",
        tickvals=[*range(0, n_layers, step), right],
        ticktext=[*map(str, range(0, n_layers, step)), "Spearman"],
        range=[-0.7, right + 0.08 * n_layers],
        showgrid=False,
        zeroline=False,
    )
    figure.update_yaxes(
        title="Place",
        tickvals=list(range(len(rows))),
        ticktext=names,
        range=[max(len(rows), lines) - 0.5, -0.5],
        showgrid=False,
        zeroline=False,
    )
    shown = "; ".join(f"{joined(layers)} with {score:.2f}" for layers, score, _ in rows[:3]) or "no score defined"
    height = 70 + 26 * max(len(rows), lines, 8)
    margin = {"l": 10, "r": 10, "t": 10, "b": 10}
    more = {"margin": margin, "clickmode": "event+select", "dragmode": False, "hovermode": "closest"}
    return finish(figure, f"The best subsets of layers: {shown}", height, showlegend=False, **more)
