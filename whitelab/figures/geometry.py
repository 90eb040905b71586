"""The shape of a space: cosines, spectra, covariances, projections, alignment against uniformity."""

import html
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from whitelab.base.wording import spaced
from whitelab.figures import heights
from whitelab.figures.drawing import Drawing
from whitelab.figures.marks import (
    add_line,
    add_shares,
    label_sides,
    loss_plane,
    share_axis,
    variant_line,
    variant_marker,
)
from whitelab.figures.panels import BARE, Scale, bar_below, finish, in_words, layer_heatmap, layer_step
from whitelab.figures.style import (
    DIFFERENCE_IMAGE,
    GOLD_SCALE,
    LAYER,
    MARK,
    SCORE,
    SCORE_SCALE,
    SUBSET_COLOURS,
    bare_dashes,
    is_number,
    variant_colour,
    variant_dashes,
    variant_symbol,
    wrapped,
)


def by_layer(
    curves: Mapping[str, Sequence[float]],
    labels: Mapping[str, str],
    title: str,
    height: int = heights.CURVES,
) -> go.Figure:
    """A measure against the layer number, one line a variant."""
    figure, dashes = Drawing(), variant_dashes(curves)
    for spec, values in curves.items():
        line, marker = variant_line(spec, dashes[spec]), variant_marker(spec)
        more = {"mode": "lines+markers", "marker": marker, "cliponaxis": False}  # whole at zero
        add_line(figure, range(len(values)), values, labels[spec], line, "layer %{x}: %{y:.4g}", **more)
    first = next(iter(curves.values()), [])
    figure.update_xaxes(title=LAYER, dtick=layer_step(len(first)))
    figure.update_yaxes(title=title, rangemode="tozero")
    parts = [
        f"{labels[spec]} from {values[0]:.3g} at layer 0 to {values[-1]:.3g} at layer {len(values) - 1}"
        for spec, values in curves.items()
        if len(values)
    ]
    return finish(figure, in_words(f"{title} by layer", parts, "nothing measured"), height)


def similarity(cka: np.ndarray, label: str, against: str | None = None) -> go.Figure:
    """CKA of every two layers, on a scale from 0 to 1; `label` says under which variant.

    `against` names the model of the columns where that is another than the rows'.
    """
    (n_layers, n_columns), ends, words = cka.shape, float(cka[-1, -1] if against else cka[0, -1]), []
    if is_number(ends):
        words.append(f"{label}, {'last layers' if against else 'first and last layer'} {ends:.2f}")
    near = [] if against else [float(cka[i, i + 1]) for i in range(n_layers - 1)]
    near = [value for value in near if is_number(value)]
    words += [f"layers next to each other {min(near):.2f} to {max(near):.2f}"] if near else []
    what = f"every layer with those of {against}" if against else "every two layers"
    alt = in_words(f"Similarity of {what}", words, "nothing defined")
    hover = "layers %{customdata[0]} and %{customdata[1]}"
    scale = Scale("CKA", (0.0, 1.0))
    figure = layer_heatmap(cka, range(n_columns), n_layers, scale, hover, alt, heights.PAIRS, ".2f")
    if against:
        figure.update_xaxes(title=f"Layer of {html.escape(against)}", dtick=layer_step(n_columns))
    return figure.figure()


def cosine_histogram(samples: Mapping[str, np.ndarray], labels: Mapping[str, str]) -> go.Figure:
    """Distribution of the cosine of random sentence pairs, one outline a variant, on the whole of [-1, 1]."""
    figure, dashes = Drawing(), bare_dashes(samples)
    for spec, values in samples.items():
        line = {"color": variant_colour(spec), "dash": dashes[spec]}
        add_shares(figure, values, 100, labels[spec], line, "pairs")
    figure.update_xaxes(title="Cosine of two random sentences", range=[-1, 1])
    figure.update_yaxes(title="Share of pairs (%)", rangemode="tozero")
    means = [f"{labels[spec]} mean {np.mean(values):.3f}" for spec, values in samples.items() if len(values)]
    return finish(figure, in_words("Histogram of cosines of random pairs", means, "no pair"), heights.CURVES)


def spectrum(values: Mapping[str, Sequence[float]], labels: Mapping[str, str]) -> go.Figure:
    """Eigenvalues of the covariance as shares of the total variance, largest first, on a log axis."""
    figure, dashes, parts = Drawing(), bare_dashes(values), []
    for spec, eigenvalues in values.items():
        share = 100 * np.asarray(eigenvalues) / max(float(np.sum(eigenvalues)), 1e-300)
        kept = share > 1e-9 * share.max() if len(share) else share > 0
        hover = "direction %{x}: %{y:.3g} % of the variance"
        places = np.arange(1, len(share) + 1)[kept]
        add_line(figure, places, share[kept], labels[spec], variant_line(spec, dashes[spec]), hover)
        words = f"{share[0]:.3g} % along the first of {len(places)} directions" if len(places) else "no variance"
        parts.append(f"{labels[spec]} {words}")
    figure.update_xaxes(title="Principal direction, largest first")
    share_axis(figure)
    return finish(figure, in_words("Eigenvalue spectrum of the covariance", parts, "no variant"), heights.CURVES)


def covariance_image(values: np.ndarray, block: int, limit: float, words: str) -> go.Figure:
    """A covariance matrix (or its means of blocks) as an image, on a diverging scale from -limit to limit.

    `words` say in the alternative text what it is of.
    """
    size = len(values)
    places = np.arange(size) * block + (block - 1) / 2 + 1
    bar = bar_below(-0.17) | {"exponentformat": "power", "nticks": 5}
    figure = Drawing()
    figure.add(
        "heatmap",
        z=np.asarray(values, dtype=np.float32),
        x=places,
        y=places,
        colorscale=DIFFERENCE_IMAGE,
        zmin=-limit,
        zmax=limit,
        colorbar=bar,
        hovertemplate="coordinates %{y:.0f} and %{x:.0f}: %{z:.3g}<extra></extra>",
    )
    square = {"autorange": "reversed", "scaleanchor": "x", "constraintoward": "bottom"}
    figure.update_xaxes(title="Coordinate", constrain="domain", **BARE)
    figure.update_yaxes(title="Coordinate", constrain="domain", **BARE, **square)
    alt = f"Covariance matrix of {words}, {size * block} coordinates, colours from {-limit:.2g} to {limit:.2g}"
    return finish(figure, alt, heights.TALL, 10)


def projection(
    points: np.ndarray,
    sentences: Sequence[str],
    colour: Sequence[float] | Sequence[str],
    colour_title: str,
    method: str,
) -> go.Figure:
    """A 2-D or 3-D scatter of sentences; numbers colour along the gold scale, words by category."""
    points, figure = np.asarray(points), Drawing()
    hover = [
        f"{wrapped(text)}<br><i>{html.escape(colour_title)}: {_shown(value)}</i>"
        for text, value in zip(sentences, colour, strict=True)
    ]
    numeric = len(colour) > 0 and isinstance(colour[0], (int, float, np.floating))
    for name, rows, marker in _groups(colour, colour_title, numeric):
        trace = {
            "name": html.escape(name),
            "mode": "markers",
            "text": [hover[i] for i in rows],
            "hovertemplate": "%{text}<extra></extra>",
            "showlegend": not numeric,
        }
        x, y, *z = points[rows].T
        if z:
            figure.add("scatter3d", x=x, y=y, z=z[0], marker=marker | {"size": 2.5}, **trace)
        else:
            figure.add("scattergl", x=x, y=y, marker=marker | {"size": 5, "opacity": 0.75}, **trace)
    axis = {"showticklabels": False, "zeroline": False}
    titles = [f"{method} {number}" for number in (1, 2, 3)]
    figure.update_xaxes(title=titles[0], **axis)
    figure.update_yaxes(title=titles[1], **axis)
    space = {f"{name}axis": {"title": {"text": title}} | axis for name, title in zip("xyz", titles, strict=True)}
    figure.update_layout(scene=space | {"aspectmode": "cube"})
    alt = f"{method} projection of {spaced(len(points))} sentences, coloured by {colour_title}"
    return finish(figure, alt, heights.PROJECTION, legend2={"itemsizing": "constant"})


def _groups(colour: Sequence, title: str, numeric: bool) -> list[tuple[str, list[int], dict]]:
    """The name, rows and marker of each trace: one on the gold scale, or one a category."""
    if numeric:
        ends = {"cmin": float(np.min(colour)), "cmax": float(np.max(colour))}
        bar = {"title": {"text": title}, "thickness": 12}
        marker = {"color": list(colour), "colorscale": GOLD_SCALE, "colorbar": bar} | ends
        return [(title, list(range(len(colour))), marker)]
    return [
        (
            str(name),
            [i for i, value in enumerate(colour) if value == name],
            {"color": SUBSET_COLOURS[number % len(SUBSET_COLOURS)]},
        )
        for number, name in enumerate(sorted(set(colour)))
    ]


def _shown(value: float | str) -> str:
    return html.escape(value) if isinstance(value, str) else f"{value:.2f}"


_RAYS = 40  # of a cone, so that its points are seen


def cone(points: np.ndarray, mean: tuple[float, float], sentences: Sequence[str], spec: str, label: str) -> go.Figure:
    """Sentences in a plane through the origin, with lines from there to some of them, and the mean vector as an arrow.

    The origin is in the picture and both axes have one scale, so that angles are what they look like in the plane.
    """
    points, figure = np.asarray(points), Drawing()
    few = points[np.linspace(0, len(points) - 1, min(_RAYS, len(points))).astype(int)]
    x, y = (np.stack([np.zeros(len(few)), few[:, axis], np.full(len(few), np.nan)], axis=1).ravel() for axis in (0, 1))
    line = {"color": variant_colour(spec), "width": 1}
    figure.add_scatter(x=x, y=y, mode="lines", line=line, opacity=0.35, hoverinfo="skip")
    figure.add(
        "scattergl",
        x=points[:, 0],
        y=points[:, 1],
        mode="markers",
        marker={"size": 4, "opacity": 0.5, "color": variant_colour(spec)},
        text=[wrapped(text) for text in sentences],
        hovertemplate="%{text}<extra></extra>",
    )
    figure.add(
        "scattergl",  # as the points are, whose canvas lies over every scatter
        x=[0],
        y=[0],
        mode="markers",
        marker={"symbol": "cross-thin", "size": 14, "line": {"width": 2.5, "color": MARK}},
        hovertemplate="origin<extra></extra>",
    )
    if np.hypot(*mean) > 1e-6 * np.abs(points).max():
        ends = {"x": mean[0], "y": mean[1], "ax": 0, "ay": 0, "xref": "x", "yref": "y", "axref": "x", "ayref": "y"}
        figure.add_annotation(**ends, text="", arrowhead=2, arrowwidth=3, arrowcolor=MARK)
    axis = {"showticklabels": False, "zeroline": False, "showgrid": False}
    figure.update_xaxes(title="along the raw mean vector", **axis)
    figure.update_yaxes(title="across it", scaleanchor="x", **axis)
    alt = f"{label}: {spaced(len(points))} sentences, the origin and the mean vector"
    return finish(figure, alt, heights.LOW, showlegend=False)


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
    paths = {row["whitening"]: [] for row in known}
    for row in known:
        paths[row["whitening"]].append(row)
    figure, sides = Drawing(), _numbered(known, apart, floor, selected)
    loss_plane(figure, floor)
    if not known and not apart:  # no pair is positive: numbers on the axes would measure nothing
        middle = {"xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5}
        figure.add_annotation(text="nothing to draw: alignment is not defined", showarrow=False, **middle)
        figure.update_xaxes(showticklabels=False, showgrid=False, zeroline=False)
        figure.update_yaxes(showticklabels=False, showgrid=False, zeroline=False)
    for spec in paths:
        pairs = [(raw[row["layer"]], row) for row in paths[spec] if row["layer"] in raw and spec != "none"]
        _add_arrows(figure, pairs, spec)
    for number, (spec, path) in enumerate(paths.items()):
        bar = {"showscale": number == 0, "colorbar": bar_below(-0.16, SCORE)}
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
    return finish(figure, in_words(title, parts, "nothing defined"), heights.PLANE)


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
    rows = [*rows, *averages]
    layers += [row["layer"] for row in averages]
    points += [(row["uniformity"], row["alignment"]) for row in averages]
    x, y = [floor, *(x for x, _ in points)], [y for _, y in points]
    span = max(x) - min(x), max(y, default=0.0)
    letters = [max(len(str(layer)), 2) for layer in layers]
    sides = label_sides(points, order, span, letters, ruled=[floor])
    return {(rows[i]["whitening"], layers[i]): side for i, side in sides.items()}


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
        opacity=0.45,
        hoverinfo="skip",
        legendgroup=spec,
        showlegend=False,
    )
