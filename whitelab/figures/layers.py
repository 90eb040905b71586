"""Which layers to average: pairs of layers, and subsets of them."""

from collections import Counter
from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from whitelab.base.wording import layer_names, quantity
from whitelab.figures import heights
from whitelab.figures.drawing import Drawing
from whitelab.figures.marks import (
    STEADY,
    add_line,
    click_cells,
    outline,
    printed_mark,
    rule,
    stars,
    variant_line,
    variant_marker,
)
from whitelab.figures.panels import (
    BARE,
    CLICKABLE,
    Scale,
    finish,
    in_words,
    layer_heatmap,
    layer_step,
    reach,
    symmetric,
)
from whitelab.figures.style import DIFFERENCE_SCALE, RULE, SCORE, layer_colour, variant_dashes

_EDGE = {"color": RULE, "width": 2}  # the first layers are nearly as dark as a dark page, the last as light as a light


def pair_heatmap(
    cells: Mapping[tuple[int, int], float | None],
    n_layers: int,
    best: Sequence[tuple[int, int]],
    selected: tuple[int, ...] = (),
    scale: tuple[float, float] | None = None,
    gain: bool = False,
) -> go.Figure:
    """Spearman of every layer pair, symmetric; `best`, more than one where they tie, starred, selected cell outlined.

    Every cell can be clicked and carries its layers in `customdata`. With `gain` the cells are differences, coloured
    from loss to gain around 0.
    """
    words = []
    if best:
        (i, j), *tied = best
        more = f", and {len(tied)} more tie with it" if tied else ""
        words = [f"best {i} and {j} with {cells[i, j]:{'+' if gain else ''}.2f}{more}"]
    colours = Scale(limits=scale or (None, None))
    if gain:
        far = reach(value for value in cells.values() if value is not None)
        colours = Scale("Points gained over raw", (-far, far), DIFFERENCE_SCALE)
    figure = layer_heatmap(
        symmetric(cells, n_layers),
        range(n_layers),
        n_layers,
        colours,
        "layers %{customdata[0]} and %{customdata[1]}",
        in_words(f"{'Gain' if gain else 'Spearman'} of every pair of layers", words),
        heights.PAIRS,
        "+.1f" if gain else ".1f",
    )
    if best:
        pairs = list(dict.fromkeys(place for pair in best for place in (pair, pair[::-1])))
        stars(figure, [(j, i + 0.34) for i, j in pairs], size=11, customdata=pairs)
    if 1 <= len(selected) <= 2:
        i, j = selected[0], selected[-1]
        for row, column in {(i, j), (j, i)}:
            outline(figure, (column - 0.5, column + 0.5), (row - 0.5, row + 0.5))
    return figure.figure()


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
    figure, dashes, words = Drawing(), variant_dashes(best), []
    for spec, sizes in best.items():
        ascending = sorted(sizes)
        layers, scores = [sizes[n][0] for n in ascending], [sizes[n][1] for n in ascending]
        add_line(
            figure,
            ascending,
            scores,
            labels[spec],
            variant_line(spec, dashes[spec]),
            f"layers %{{text}}<br>{SCORE}: %{{y:.2f}}",
            mode="lines+markers",
            marker=variant_marker(spec),
            customdata=[list(subset) for subset in layers],
            text=[layer_names(subset) for subset in layers],
            cliponaxis=False,
            showlegend=True,
            **STEADY,
        )
        top = max(scores, default=None)
        stars(figure, [(n, top) for n, score in zip(ascending, scores, strict=True) if score == top])
        if scores:
            words.append(f"{labels[spec]} at most {top:.2f} with layers {layer_names(layers[scores.index(top)])}")
    for size, (subset, score) in (printed or {}).items():
        more = {"customdata": [list(subset)], "showlegend": size == min(printed)}
        printed_mark(figure, size, score, f"layers {layer_names(subset)}", **more)
    scores = [score for sizes in (*best.values(), printed or {}) for _, score in sizes.values()]
    low, high = (min(scores), max(scores)) if scores else (0.0, 1.0)
    pad = max(0.08 * (high - low), 1 - (high - low) / 2, 0.1)  # differences of hundredths must not fill the picture
    step = layer_step(n_layers)
    figure.update_xaxes(title="Number of layers averaged", range=[0.6, n_layers + 0.4], dtick=step)
    figure.update_yaxes(title=f"Best {SCORE}", range=[low - pad, high + pad])
    return finish(figure, in_words("Best Spearman by number of layers", words), heights.LOW, **CLICKABLE)


def layer_counts(counts: Sequence[int], among: int) -> go.Figure:
    """How many of the best `among` subsets hold each layer, coloured along the layers' scale."""
    layers = list(range(len(counts)))
    colours = [layer_colour(layer, len(counts)) for layer in layers]
    figure = Drawing()
    figure.add(
        "bar",
        x=layers,
        y=list(counts),
        marker={"color": colours, "line": _EDGE},
        hovertemplate=f"layer %{{x}}: in %{{y}} of the best {among}<extra></extra>",
    )
    figure.update_xaxes(title="Layer", dtick=layer_step(len(counts)))
    figure.update_yaxes(title=f"Among the best {quantity(among, 'subset')}", range=[0, max(1.04 * among, 1)])
    often = sorted(layers, key=lambda layer: -counts[layer])[:3]
    words = [", ".join(f"layer {layer} in {counts[layer]}" for layer in often)]
    alt = in_words(f"How often each layer is among the best {quantity(among, 'subset')}", words)
    return finish(figure, alt, heights.LOW, showlegend=False)


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
    right = n_layers - 0.1 + 0.08 * n_layers  # where the scores stand
    figure = Drawing()
    _add_subsets(figure, [layers for layers, _, _ in rows], n_layers)
    scores = [f"{score:.2f}" for _, score, _ in rows]
    plain = {"hoverinfo": "skip", "showlegend": False}
    figure.add_scatter(x=[right] * len(rows), y=list(range(len(rows))), mode="text", text=scores, **plain)
    words = [
        f"Place {name}: layers {layer_names(layers)}<br>{SCORE}: {score:.2f}"
        for name, (layers, score, _) in zip(names, rows, strict=True)
    ]
    spots = [(x, row) for row in range(len(rows)) for x in (*range(n_layers), right)]
    carried = [list(rows[row][0]) for _, row in spots]
    click_cells(figure, spots, carried, [words[row] for _, row in spots], "%{text}", 22)
    for row, (layers, _, _) in enumerate(rows):
        if tuple(layers) == tuple(sorted(selected)):
            outline(figure, (-0.6, right + 0.07 * n_layers), (row - 0.48, row + 0.48), 2)
    ticks = list(range(0, n_layers, layer_step(n_layers)))
    figure.update_xaxes(title="Layer", side="top", range=[-0.7, right + 0.08 * n_layers], **BARE)
    figure.update_xaxes(tickvals=[*ticks, right], ticktext=[*map(str, ticks), "Spearman"])
    figure.update_yaxes(title="Place", range=[max(len(rows), lines) - 0.5, -0.5], **BARE)
    figure.update_yaxes(tickvals=list(range(len(rows))), ticktext=names)
    alt = in_words("The best subsets of layers", [f"{layer_names(layers)} with {s:.2f}" for layers, s, _ in rows[:3]])
    height = heights.ranking(max(len(rows), lines))
    return finish(figure, alt, height, 10, showlegend=False, hovermode="closest", **CLICKABLE)


def _add_subsets(figure: Drawing, subsets: Sequence[Sequence[int]], n_layers: int) -> None:
    """A line of small dots for each subset, large ones for the layers in it, joined by a rule."""
    plain = {"mode": "markers", "hoverinfo": "skip", "showlegend": False}
    for row, layers in enumerate(subsets):
        if len(layers) > 1:
            figure.add_shape(type="line", x0=min(layers), x1=max(layers), y0=row, y1=row, line=rule(width=1))
    every = [(layer, row) for row in range(len(subsets)) for layer in range(n_layers)]
    inside = [(layer, row) for row, layers in enumerate(subsets) for layer in layers]
    large = {"size": 13 if n_layers <= 13 else 9, "line": _EDGE}
    large["color"] = [layer_colour(layer, n_layers) for layer, _ in inside]
    for points, marker in ((every, {"size": 4, "color": RULE, "opacity": 0.5}), (inside, large)):
        figure.add_scatter(x=[x for x, _ in points], y=[y for _, y in points], marker=marker, **plain)
