"""The shape of a space: cosines, spectra, covariances, projections, alignment against uniformity."""

import html
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from whitelab.figures.style import (
    DIFFERENCE_IMAGE,
    GOLD_SCALE,
    MARK,
    RULE,
    SCORE_SCALE,
    SUBSET_COLOURS,
    WHITENING,
    finish,
    variant_colour,
    variant_dashes,
    variant_symbol,
    wrapped,
)


def by_layer(
    curves: Mapping[str, Sequence[float]], labels: Mapping[str, str], title: str, log: bool = False
) -> go.Figure:
    """A measure against the layer number, one line a variant."""
    figure, dashes = go.Figure(), variant_dashes(curves)
    for name, values in curves.items():
        figure.add_scatter(
            x=list(range(len(values))),
            y=list(values),
            name=labels[name],
            mode="lines+markers",
            line={"color": variant_colour(name), "width": 2.5, "dash": dashes[name]},
            marker={"size": 9, "symbol": variant_symbol(name)},
            hovertemplate=f"{labels[name]}<br>layer %{{x}}: %{{y:.4g}}<extra></extra>",
        )
    first = next(iter(curves.values()), [])
    figure.update_xaxes(title="Layer (0 = embedding layer)", dtick=max(1, len(first) // 13))
    figure.update_yaxes(title=title, type="log" if log else "linear")
    if not log:
        figure.update_yaxes(rangemode="tozero")
    alt = f"{title} by layer: " + "; ".join(
        f"{labels[name]} from {values[0]:.3g} at layer 0 to {values[-1]:.3g} at layer {len(values) - 1}"
        for name, values in curves.items()
        if len(values)
    )
    return finish(figure, alt, 380)


def cosine_histogram(samples: Mapping[str, np.ndarray], labels: Mapping[str, str]) -> go.Figure:
    """Distribution of the cosine of random sentence pairs, one outline a variant, on the whole of [-1, 1]."""
    edges = np.linspace(-1, 1, 101)
    figure = go.Figure()
    for name, values in samples.items():
        counts, _ = np.histogram(values, bins=edges)
        share = 100 * counts / max(counts.sum(), 1)
        figure.add_scatter(
            x=(edges[:-1] + edges[1:]) / 2,
            y=share,
            name=labels[name],
            mode="lines",
            line={"color": variant_colour(name), "width": 2, "shape": "hvh"},
            fill="tozeroy",
            hovertemplate=f"{labels[name]}<br>cosine %{{x:.2f}}: %{{y:.1f}} % of pairs<extra></extra>",
        )
    means = "; ".join(f"{labels[n]} mean {np.mean(v):.3f}" for n, v in samples.items() if len(v))
    figure.update_xaxes(title="Cosine of two random sentences", range=[-1, 1])
    figure.update_yaxes(title="Share of pairs (%)", rangemode="tozero")
    return finish(figure, f"Histogram of cosines of random pairs: {means}", 380)


def spectrum(values: Mapping[str, Sequence[float]], labels: Mapping[str, str]) -> go.Figure:
    """Eigenvalues of the covariance as shares of the total variance, largest first, on a log axis."""
    figure, dashes = go.Figure(), variant_dashes(values)
    for name, eigenvalues in values.items():
        share = 100 * np.asarray(eigenvalues) / max(float(np.sum(eigenvalues)), 1e-300)
        kept = share > 1e-9 * share.max() if len(share) else share > 0
        figure.add_scatter(
            x=np.arange(1, len(share) + 1)[kept],
            y=share[kept],
            name=labels[name],
            mode="lines",
            line={"color": variant_colour(name), "width": 2.5, "dash": dashes[name]},
            hovertemplate=f"{labels[name]}<br>direction %{{x}}: %{{y:.3g}} % of the variance<extra></extra>",
        )
    figure.update_xaxes(title="Principal direction, largest first")
    figure.update_yaxes(title="Share of variance (%)", type="log", dtick=1, exponentformat="power")
    return finish(figure, "Eigenvalue spectrum of the covariance before and after the variant", 380)


def covariance_image(values: np.ndarray, block: int, limit: float, words: str) -> go.Figure:
    """A covariance matrix (or its means of blocks) as an image, on a diverging scale from -limit to limit.

    `words` say in the alternative text what it is of.
    """
    size = len(values)
    places = np.arange(size) * block + (block - 1) / 2 + 1
    figure = go.Figure(
        go.Heatmap(
            z=np.asarray(values, dtype=np.float32),
            x=places,
            y=places,
            colorscale=DIFFERENCE_IMAGE,
            zmin=-limit,
            zmax=limit,
            colorbar={
                "thickness": 10,
                "exponentformat": "power",
                "orientation": "h",
                "y": -0.17,
                "yanchor": "top",
                "nticks": 5,
            },
            hovertemplate="coordinates %{y:.0f} and %{x:.0f}: %{z:.3g}<extra></extra>",
        )
    )
    figure.update_xaxes(title="Coordinate", showgrid=False, zeroline=False, constrain="domain")
    figure.update_yaxes(
        title="Coordinate",
        showgrid=False,
        zeroline=False,
        autorange="reversed",
        scaleanchor="x",
        constrain="domain",
        constraintoward="bottom",
    )
    alt = f"Covariance matrix of {words}, {size * block} coordinates, colours from {-limit:.2g} to {limit:.2g}"
    return finish(figure, alt, 480, margin={"l": 10, "r": 10, "t": 10, "b": 10})


def projection(
    points: np.ndarray,
    sentences: Sequence[str],
    colour: Sequence[float] | Sequence[str],
    colour_title: str,
    method: str,
) -> go.Figure:
    """A 2-D or 3-D scatter of sentences; numbers colour along the gold scale, words by category."""
    points = np.asarray(points)
    flat = points.shape[1] == 2
    numeric = len(colour) > 0 and isinstance(colour[0], (int, float, np.floating))
    texts = [wrapped(text) for text in sentences]
    groups: list[tuple[str, np.ndarray, dict]] = []
    if numeric:
        marker = {
            "color": list(colour),
            "colorscale": GOLD_SCALE,
            "colorbar": {"title": colour_title, "thickness": 12},
            "cmin": float(np.min(colour)),
            "cmax": float(np.max(colour)),
        }
        groups.append((colour_title, np.arange(len(points)), marker))
    else:
        for number, name in enumerate(sorted(set(colour))):
            rows = np.array([i for i, value in enumerate(colour) if value == name])
            groups.append((str(name), rows, {"color": SUBSET_COLOURS[number % len(SUBSET_COLOURS)]}))
    figure = go.Figure()
    for name, rows, marker in groups:
        hover = [f"{texts[i]}<br><i>{html.escape(colour_title)}: {_shown(colour[i])}</i>" for i in rows]
        shared = {
            "name": name,
            "mode": "markers",
            "text": hover,
            "hovertemplate": "%{text}<extra></extra>",
            "showlegend": not numeric,
        }
        x, y = points[rows, 0], points[rows, 1]
        if flat:
            figure.add_scattergl(x=x, y=y, marker=marker | {"size": 5, "opacity": 0.75}, **shared)
        else:
            figure.add_scatter3d(x=x, y=y, z=points[rows, 2], marker=marker | {"size": 2.5}, **shared)
    axis = {"showticklabels": False, "zeroline": False}
    figure.update_xaxes(title=f"{method} 1", **axis)
    figure.update_yaxes(title=f"{method} 2", **axis)
    figure.update_scenes(
        xaxis={"title": f"{method} 1"} | axis,
        yaxis={"title": f"{method} 2"} | axis,
        zaxis={"title": f"{method} 3"} | axis,
        aspectmode="cube",
    )
    alt = f"{method} projection of {len(points)} sentences, coloured by {colour_title}"
    return finish(figure, alt, 560, legend={"itemsizing": "constant", "title_text": ""})


def _shown(value: float | str) -> str:
    return html.escape(value) if isinstance(value, str) else f"{value:.2f}"


def plane(rows: Sequence[Mapping], labels: Mapping[str, str], floor: float, selected: int | None = None) -> go.Figure:
    """Alignment against uniformity: one path of layers a variant, the Spearman score as colour.

    `rows` have layer, whitening, alignment, uniformity, spearman. Lower is better on both axes.
    """
    known = [row for row in rows if row["alignment"] == row["alignment"]]
    scores = [row["spearman"] for row in known if row["spearman"] == row["spearman"]]
    low, high = (min(scores), max(scores)) if scores else (0.0, 1.0)
    figure = go.Figure()
    figure.add_vline(x=floor, line={"color": RULE, "dash": "dash", "width": 1.5})
    figure.add_annotation(
        x=floor,
        y=0,
        yref="paper",
        text="isotropic floor",
        showarrow=False,
        xanchor="left",
        yanchor="bottom",
        xshift=4,
    )
    for number, name in enumerate(dict.fromkeys(row["whitening"] for row in known)):
        path = [row for row in known if row["whitening"] == name]
        figure.add_scatter(
            x=[row["uniformity"] for row in path],
            y=[row["alignment"] for row in path],
            name=labels[name],
            mode="lines+markers+text",
            text=[str(row["layer"]) for row in path],
            textposition="middle right" if name in WHITENING else "top center",
            line={"color": variant_colour(name), "width": 1.5},
            marker={
                "size": 13,
                "symbol": variant_symbol(name).removesuffix("-open"),
                "color": [row["spearman"] for row in path],
                "colorscale": SCORE_SCALE,
                "cmin": low,
                "cmax": high,
                "showscale": number == 0,
                "colorbar": {"title": "Spearman<br>x 100", "thickness": 12},
                "line": {
                    "color": [MARK if row["layer"] == selected else variant_colour(name) for row in path],
                    "width": [3 if row["layer"] == selected else 1.5 for row in path],
                },
            },
            customdata=[[row["layer"], row["spearman"]] for row in path],
            hovertemplate=(
                f"{labels[name]}, layer %{{customdata[0]}}<br>uniformity %{{x:.3f}}<br>alignment %{{y:.3f}}"
                "<br>Spearman x 100: %{customdata[1]:.2f}<extra></extra>"
            ),
        )
    figure.update_xaxes(title="Uniformity loss (lower: more spread out)")
    figure.update_yaxes(title="Alignment loss (lower: similar pairs closer)", rangemode="tozero")
    alt = f"Alignment and uniformity of {len(known)} layer and variant combinations; floor {floor:.3f}"
    return finish(figure, alt, 520)
