"""The shape of a space: measures by layer, cosines, spectra, covariances, projections."""

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
    bare_dashes,
    is_number,
    subset_marker,
    variant_colour,
    variant_dashes,
    wrapped,
)

BINS = 100  # of a histogram of cosines, from -1 to 1


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
    alone = {"range": [-0.5, 0.5]} if len(first) == 1 else {}
    figure.update_xaxes(title=LAYER, dtick=layer_step(len(first)), **alone)
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


def cosine_histogram(samples: Mapping[str, np.ndarray], labels: Mapping[str, str], of: str = "sentences") -> go.Figure:
    """Distribution of the cosine of random pairs `of` rows, one outline a variant, on the whole of [-1, 1]."""
    figure, dashes = Drawing(), bare_dashes(samples)
    for spec, values in samples.items():
        line = {"color": variant_colour(spec), "dash": dashes[spec]}
        add_shares(figure, values, BINS, labels[spec], line, "pairs")
    figure.update_xaxes(title=f"Cosine of two random {of}", range=[-1, 1])
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
    figure.update_xaxes(title="Direction, largest first")
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
            subset_marker(number),
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
    figure.update_xaxes(title="along the raw mean", **axis)
    figure.update_yaxes(title="across it", scaleanchor="x", **axis)
    alt = f"The cone of vectors, {label}: {spaced(len(points))} sentences, the origin and the mean vector"
    return finish(figure, alt, heights.LOW, showlegend=False)
