"""Results -> plotly figures. Pure functions that know neither torch nor Streamlit.

Colour carries meaning and never changes it: each variant has one hue on every page, layers run along one
sequential scale, gold similarity along another. Backgrounds and text colours are left to the theme of the
page. `layout.meta["alt"]` holds the text for people who cannot see the picture.
"""

import html
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.colors import qualitative, sample_colorscale
from plotly.subplots import make_subplots

VARIANT_COLOURS = {
    "none": "#8A8A8A",
    "center": "#7393B5",
    "standardize": "#4C6A8A",
    "pca": "#2E86D1",
    "zca": "#E0702A",
    "cholesky": "#12A078",
    "pca_cor": "#1D6FA8",
    "zca_cor": "#B5561B",
    "soft": "#B0609C",
    "shrunk": "#0E8C9B",
    "iternorm": "#8F7A1E",
    "group": "#8258C9",
    "shuffled_group": "#A06FE0",
    "all_but_the_top": "#C94F4F",
    "common_component": "#A8506F",
}
VARIANT_SYMBOLS = {
    "none": "circle",
    "center": "circle-open",
    "standardize": "square",
    "pca": "diamond",
    "zca": "triangle-up",
    "cholesky": "triangle-down",
    "pca_cor": "diamond-open",
    "zca_cor": "triangle-up-open",
    "soft": "cross",
    "shrunk": "x",
    "iternorm": "pentagon",
    "group": "hexagon",
    "shuffled_group": "hexagon-open",
    "all_but_the_top": "star-square",
    "common_component": "star-diamond",
}
WHITENING = ("pca", "zca", "cholesky", "pca_cor", "zca_cor")  # whose points coincide
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
LAYER_SCALE = "Viridis"
GOLD_SCALE = [[0.0, "#3B1C6B"], [0.35, "#9B2C7A"], [0.7, "#EE7B51"], [1.0, "#FCC83F"]]
SCORE_SCALE = "Cividis"
DIFFERENCE_ENDS = "#D9601A", "#2B7BC4"  # below and above zero
DIFFERENCE_SCALE = [[0.0, DIFFERENCE_ENDS[0]], [0.5, "#9AA3AE"], [1.0, DIFFERENCE_ENDS[1]]]
# The same with nothing at zero, so that the background of the page shows through in an image.
DIFFERENCE_IMAGE = [[0.0, DIFFERENCE_ENDS[0]], [0.5, "rgba(154,163,174,0)"], [1.0, DIFFERENCE_ENDS[1]]]
MARK = "#D6336C"  # what is selected or best
RULE = "#888888"  # reference lines, readable on light and on dark
_SUBSET_COLOURS = qualitative.Safe


def layer_colour(layer: int, n_layers: int) -> str:
    """The colour of one layer on the sequential scale (without its palest end)."""
    return sample_colorscale(LAYER_SCALE, [0.9 * layer / max(n_layers - 1, 1)])[0]


def variant_colour(spec: str) -> str:
    """The hue of a variant, whatever its parameters."""
    return VARIANT_COLOURS[spec.partition(":")[0]]


def variant_symbol(spec: str) -> str:
    """The marker of a variant, whatever its parameters."""
    return VARIANT_SYMBOLS[spec.partition(":")[0]]


def variant_dashes(specs: Iterable[str]) -> dict[str, str]:
    """Dashes that tell apart specs of one variant, which share its hue."""
    seen, found = Counter(), {}
    for spec in specs:
        name = spec.partition(":")[0]
        found[spec] = _DASHES[seen[name] % len(_DASHES)]
        seen[name] += 1
    return found


def wrapped(sentence: str, width: int = 56, lines: int = 4) -> str:
    """A sentence for a hover label: escaped, in lines, cut when very long."""
    rows = textwrap.wrap(sentence, width) or [""]
    shown = [html.escape(row) for row in rows[:lines]]
    return "<br>".join(shown) + (" ..." if len(rows) > lines else "")


def _finish(figure: go.Figure, alt: str, height: int, **layout) -> go.Figure:
    margin = {"l": 10, "r": 10, "t": 30, "b": 10}
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "title_text": ""}
    settings = {"height": height, "margin": margin, "legend": legend, "meta": {"alt": alt}} | layout
    figure.update_layout(**settings)
    figure.update_xaxes(automargin=True)
    figure.update_yaxes(automargin=True)
    return figure


def score_bars(
    names: Sequence[str], labels: Sequence[str], scores: Sequence[float], half_widths: Sequence[float]
) -> go.Figure:
    """Spearman of each variant with its 95 % interval; the axis starts at 0 (or below, for negatives)."""
    figure = go.Figure(
        go.Bar(
            x=[label.replace(" ", "<br>") for label in labels],
            y=list(scores),
            marker_color=[variant_colour(name) for name in names],
            error_y={"type": "data", "array": list(half_widths), "color": RULE, "thickness": 1.5, "width": 4},
            text=[f"{score:.2f}" for score in scores],
            textposition="inside",
            insidetextanchor="start",
            insidetextfont={"color": "#FFFFFF", "size": 14},
            hovertemplate="%{x}<br>Spearman x 100: %{y:.2f}<extra></extra>",
        )
    )
    alt = "Spearman by variant: " + ", ".join(f"{a} {s:.2f}" for a, s in zip(labels, scores, strict=True))
    return _finish(figure, alt, 340, yaxis_title="Spearman x 100", showlegend=False)


def score_dots(rows: Sequence[Mapping], labels: Mapping[str, str], raw: float | None) -> go.Figure:
    """Spearman of each variant as a dot on its 95 % interval, from 0 (or below); the raw score as a dashed line.

    `rows` have whitening, spearman, low and high, and `best` where the score is (or ties with) the highest.
    """
    known = {i: row for i, row in enumerate(rows) if _is_number(row["spearman"])}
    figure, notes = go.Figure(), []
    if _is_number(raw):
        figure.add_vline(x=raw, line={"color": variant_colour("none"), "dash": "dash", "width": 1.5})
    for place, row in known.items():
        value = f"<b>{row['spearman']:.2f}</b>" if row.get("best") else f"{row['spearman']:.2f}"
        hover = f"Spearman x 100: {row['spearman']:.2f}<br>95 %: {row['low']:.2f} to {row['high']:.2f}"
        left = _is_number(raw) and row["spearman"] < raw
        notes.append(_dot(figure, place, row, labels, ("spearman", "low", "high"), value, hover, left))
    ends = [row["high"] if _is_number(row["high"]) else row["spearman"] for row in known.values()]
    starts = [row["low"] if _is_number(row["low"]) else row["spearman"] for row in known.values()]
    # Room on the right for the longest value.
    figure.update_xaxes(title="Spearman x 100", range=[1.05 * min([0.0, *starts]), 1.2 * max([1.0, *ends])])
    alt = "Spearman by variant with 95 % intervals: " + "; ".join(
        f"{labels[row['whitening']]} {row['spearman']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
        if _is_number(row["low"])
        else f"{labels[row['whitening']]} {row['spearman']:.2f}"
        for row in known.values()
    )
    return _rows_of_dots(figure, rows, labels, notes, alt if known else "Spearman by variant: no score is defined")


def difference_dots(rows: Sequence[Mapping], labels: Mapping[str, str], baseline: str) -> go.Figure:
    """Each variant's difference from the baseline with its 95 % interval, on an axis centred on zero.

    `rows` have whitening, difference, difference_low, difference_high and settled: a dot is open where the
    difference could be chance.
    """
    known = {i: row for i, row in enumerate(rows) if _is_number(row["difference"])}
    figure, notes = go.Figure(), []
    figure.add_vline(x=0, line={"color": RULE, "width": 1.5})
    for place, row in known.items():
        hover = (
            f"{row['difference']:+.2f} against {html.escape(baseline)}"
            f"<br>95 %: {row['difference_low']:+.2f} to {row['difference_high']:+.2f}"
        )
        value = f"{row['difference']:+.2f}" if row["difference"] else "0"
        names = ("difference", "difference_low", "difference_high")
        notes.append(_dot(figure, place, row, labels, names, value, hover, row["difference"] < 0))
    reach = [
        abs(row[name])
        for row in known.values()
        for name in ("difference_low", "difference_high")
        if _is_number(row[name])
    ]
    reach = 1.6 * max([0.5, *reach])
    figure.update_xaxes(title=f"Difference from {html.escape(baseline)} (points)", range=[-reach, reach])
    alt = f"Differences from {baseline} with 95 % intervals: " + "; ".join(
        f"{labels[row['whitening']]} {row['difference']:+.2f} ({row['difference_low']:+.2f} to "
        f"{row['difference_high']:+.2f}{'' if row['settled'] else ', could be chance'})"
        for row in known.values()
    )
    return _rows_of_dots(
        figure, rows, labels, notes, alt if known else f"Differences from {baseline}: no score is defined"
    )


def _is_number(value: float | None) -> bool:
    return value is not None and value == value


def _dot(
    figure: go.Figure,
    place: int,
    row: Mapping,
    labels: Mapping[str, str],
    names: tuple[str, str, str],
    value: str,
    hover: str,
    left: bool,
) -> dict:
    """Draw a dot with its whiskers; returns the note of its value, on the side away from the rule."""
    spec = row["whitening"]
    middle, low, high = (row[name] for name in names)
    whiskers = _is_number(low) and _is_number(high)
    symbol, colour = variant_symbol(spec).removesuffix("-open"), variant_colour(spec)
    if not row.get("settled", True):
        symbol += "-open"
    figure.add_scatter(
        x=[middle],
        y=[place],
        name=labels[spec],
        mode="markers",
        marker={"symbol": symbol, "size": 13, "color": colour, "line": {"width": 2, "color": colour}},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [max(0.0, high - middle) if whiskers else 0],
            "arrayminus": [max(0.0, middle - low) if whiskers else 0],
            "color": colour,
            "thickness": 2.5,
            "width": 6,
        },
        hovertemplate=f"<b>{html.escape(labels[spec])}</b><br>{hover}<extra></extra>",
    )
    return {
        "x": middle if not whiskers else low if left else high,
        "y": place,
        "text": value,
        "showarrow": False,
        "xanchor": "right" if left else "left",
        "xshift": -10 if left else 10,
        "font": {"size": 13},
    }


def _in_lines(label: str) -> str:
    """A label in short lines, its parameters on lines of their own."""
    name, bracket, parameters = label.partition(" (")
    lines = textwrap.wrap(name, 19) + (textwrap.wrap(bracket.strip() + parameters, 24) if bracket else [])
    return "<br>".join(map(html.escape, lines))


def _rows_of_dots(
    figure: go.Figure, rows: Sequence[Mapping], labels: Mapping[str, str], notes: list[dict], alt: str
) -> go.Figure:
    names = [_in_lines(labels[row["whitening"]]) for row in rows]
    best = [row.get("best") for row in rows]
    mark = "best, tied" if sum(map(bool, best)) > 1 else "best"
    names = [f"<b>{name}</b><br>{mark}" if top else name for name, top in zip(names, best, strict=True)]
    figure.update_yaxes(
        tickvals=list(range(len(rows))),
        ticktext=names,
        range=[len(rows) - 0.5, -0.5],
        showgrid=False,
        zeroline=False,
    )
    height = max(300, 70 + 46 * len(rows))
    margin = {"l": 10, "r": 20, "t": 10, "b": 10}
    return _finish(figure, alt, height, showlegend=False, margin=margin, annotations=notes)


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
    return _finish(figure, alt, 480, margin={"l": 10, "r": 10, "t": 10, "b": 10})


def gold_scatter(
    gold: np.ndarray,
    cosines: np.ndarray,
    change: np.ndarray,
    hover: Sequence[str],
    lowest: float,
    words: str,
) -> go.Figure:
    """Cosine against gold, one dot a pair, coloured by how far its rank moved; the axis runs from `lowest` to 1.

    Colours end at the 98th percentile of the moves. `hover` is escaped; `words` say what the cosines are of.
    """
    order = np.argsort(np.abs(change), kind="stable")  # those that moved most on top
    reach = max(float(np.percentile(np.abs(change), 98)) if len(change) else 0.0, 1.0)
    figure = go.Figure(
        go.Scattergl(
            x=gold[order],
            y=cosines[order],
            mode="markers",
            text=[hover[i] for i in order],
            hovertemplate="%{text}<extra></extra>",
            marker={
                "size": 7,
                "opacity": 0.8,
                "color": change[order],
                "colorscale": DIFFERENCE_SCALE,
                "cmin": -reach,
                "cmax": reach,
                "colorbar": {
                    "title": {"text": "Ranks moved, up is positive", "side": "top"},
                    "orientation": "h",
                    "thickness": 10,
                    "y": -0.19,
                    "yanchor": "top",
                },
            },
        )
    )
    figure.update_xaxes(title="Gold similarity", zeroline=False)
    figure.update_yaxes(title="Cosine", range=[lowest, 1.03], zeroline=False)
    alt = f"Cosine against gold similarity of {len(gold)} pairs, {words}, coloured by how far each pair's rank moved"
    return _finish(figure, alt, 480, margin={"l": 10, "r": 10, "t": 10, "b": 10})


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
    return _finish(figure, alt, 380)


def accuracy_by_layer(
    curves: Mapping[str, Mapping[int, Mapping]], labels: Mapping[str, str], n_layers: int, baseline: float | None
) -> go.Figure:
    """Accuracy against the layer number with 95 % intervals, one line a variant, from 0 to 100.

    `curves[spec][layer]` have accuracy, low and high; layers may be missing. The dotted line is the accuracy of
    always saying the most frequent class.
    """
    figure, dashes, words = go.Figure(), variant_dashes(curves), []
    if _is_number(baseline):
        figure.add_hline(y=baseline, line={"color": RULE, "dash": "dot", "width": 1.5})
    for place, (name, rows) in enumerate(curves.items()):
        layers = [layer for layer in sorted(rows) if _is_number(rows[layer]["accuracy"])]
        values = [rows[layer]["accuracy"] for layer in layers]
        # A little aside, so that intervals stand beside each other.
        aside = 0.06 * (place - (len(curves) - 1) / 2)
        figure.add_scatter(
            x=[layer + aside for layer in layers],
            y=values,
            name=labels[name],
            mode="lines+markers",
            line={"color": variant_colour(name), "width": 2.5, "dash": dashes[name]},
            marker={"size": 9, "symbol": variant_symbol(name)},
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [rows[layer]["high"] - rows[layer]["accuracy"] for layer in layers],
                "arrayminus": [rows[layer]["accuracy"] - rows[layer]["low"] for layer in layers],
                "thickness": 1.5,
                "width": 4,
            },
            customdata=[[layer, rows[layer]["low"], rows[layer]["high"]] for layer in layers],
            hovertemplate=f"{labels[name]}<br>layer %{{customdata[0]}}: %{{y:.2f}} %"
            "<br>95 %: %{customdata[1]:.2f} to %{customdata[2]:.2f}<extra></extra>",
        )
        if layers:
            best = max(layers, key=lambda layer: rows[layer]["accuracy"])
            words.append(f"{labels[name]} is best at layer {best} with {rows[best]['accuracy']:.2f}")
    figure.update_xaxes(
        title="Layer (0 = embedding layer)", dtick=max(1, n_layers // 13), range=[-0.4, n_layers - 0.6], zeroline=False
    )
    figure.update_yaxes(title="Accuracy (%)", range=[0, 102])
    return _finish(figure, "Accuracy by layer: " + ("; ".join(words) or "no score yet"), 400)


def confusion(table: Sequence[Sequence[int]], classes: Sequence[str], words: str) -> go.Figure:
    """How many rows of each class (down) were taken for each class (across), coloured by their share of the row."""
    counts = np.asarray(table, dtype=float)
    share = 100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    names = [html.escape(textwrap.shorten(name, 18, placeholder="...")) for name in classes]
    few = len(classes) <= 12
    figure = go.Figure(
        go.Heatmap(
            z=share,
            x=names,
            y=names,
            zmin=0,
            zmax=100,
            colorscale=SCORE_SCALE,
            showscale=False,
            text=[[f"{value:.0f}" for value in row] for row in counts],
            texttemplate="%{text}" if few else None,
            hovertemplate="%{y} taken for %{x}: %{text} (%{z:.1f} %)<extra></extra>",
        )
    )
    figure.update_xaxes(title="Taken for", showgrid=False, zeroline=False, constrain="domain")
    figure.update_yaxes(title="Class", showgrid=False, zeroline=False, autorange="reversed", constrain="domain")
    right = int(np.trace(counts))
    alt = f"Confusion matrix of {words}: {right} of {int(counts.sum())} rows on the diagonal"
    return _finish(figure, alt, 400, margin={"l": 10, "r": 10, "t": 10, "b": 10})


MATCH_COLOURS = "#B8479A", "#C77C11"  # pairs that do not match, and those that do: ends of the gold scale


def cosines_by_label(
    cosines: np.ndarray, matches: np.ndarray, names: tuple[str, str], fixed: float, best: float, words: str
) -> go.Figure:
    """Distribution of the cosines of pairs by their label, with the fixed and the best threshold, on [-1, 1].

    `names` are those of the class that does not match and of the one that does.
    """
    edges = np.linspace(-1, 1, 81)
    figure = go.Figure()
    for side, name, colour in zip((False, True), names, MATCH_COLOURS, strict=True):
        counts, _ = np.histogram(cosines[matches == side], bins=edges)
        figure.add_scatter(
            x=(edges[:-1] + edges[1:]) / 2,
            y=100 * counts / max(counts.sum(), 1),
            name=html.escape(name),
            mode="lines",
            line={"color": colour, "width": 2, "shape": "hvh", "dash": "solid" if side else "dash"},
            fill="tozeroy",
            hovertemplate=f"{html.escape(name)}<br>cosine %{{x:.2f}}: %{{y:.1f}} % of its pairs<extra></extra>",
        )
    for value, colour, dash, text, shift in (
        (fixed, RULE, "dash", f"fixed {fixed:g}", 0),
        (best, MARK, "solid", f"best {best:.2f}", 16),
    ):
        figure.add_vline(x=value, line={"color": colour, "dash": dash, "width": 2})
        figure.add_annotation(
            x=value,
            y=1,
            yref="paper",
            text=text,
            showarrow=False,
            font={"color": colour, "size": 13},
            xanchor="right" if value > 0.6 else "left",
            yanchor="top",
            xshift=-6 if value > 0.6 else 6,
            yshift=-shift,
        )
    figure.update_xaxes(title="Cosine of the pair", range=[-1.01, 1.01])
    figure.update_yaxes(title="Share of the class (%)", rangemode="tozero")
    alt = f"Cosines of pairs by label, {words}: fixed threshold {fixed:g}, best threshold {best:.3f}"
    return _finish(figure, alt, 400)


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
    return _finish(figure, f"Histogram of cosines of random pairs: {means}", 380)


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
    return _finish(figure, "Eigenvalue spectrum of the covariance before and after the variant", 380)


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
            groups.append((str(name), rows, {"color": _SUBSET_COLOURS[number % len(_SUBSET_COLOURS)]}))
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
    return _finish(figure, alt, 560, legend={"itemsizing": "constant", "title_text": ""})


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
    return _finish(figure, alt, 520)


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
            colorbar=_flat_bar("Spearman x 100"),
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
    return _finish(
        figure,
        f"Spearman of every pair of layers: {shown}",
        500,
        margin={"l": 10, "r": 10, "t": 0, "b": 0},
        clickmode="event+select",
        dragmode=False,
        showlegend=False,
    )


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
            line={"width": 1.2, "color": _SUBSET_COLOURS[number % len(_SUBSET_COLOURS)]},
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
    legend = {"orientation": "h", "x": 0, "xanchor": "left", "title_text": "", "font": {"size": 11}}
    figure.update_traces(legend="legend2", selector=lambda trace: trace.legend != "legend3")
    top = f"best {main[best_k - 1]:.2f} at k = {best_k}, knee at {knee}" if best_k else "no score defined"
    alt = f"Spearman by kept dimensions: {top}; rank {rank} of {d}"
    legends = {
        "legend2": legend | {"y": 1.02, "yanchor": "bottom"},
        "legend3": legend | {"y": -0.2, "yanchor": "top", "entrywidth": 90},
    }
    return _finish(figure, alt, 480, **legends)


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
    legend = {"orientation": "h", "yanchor": "bottom", "x": 0, "title_text": ""}
    return _finish(figure, alt, 480, legend2=legend | {"y": 1.01}, legend3=legend | {"y": 0.43})


# ------------------------------------------------------------------------------------ layer subsets, and layer by k


def size_curves(
    best: Mapping[str, Mapping[int, tuple[Sequence[int], float]]], labels: Mapping[str, str], n_layers: int
) -> go.Figure:
    """The best score by number of layers, one line a variant, its highest point starred.

    `best` holds for each variant and size the layers and their Spearman. Points carry their layers in
    `customdata`.
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
            text=[_sum(layers) for _, (layers, _) in found],
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
    scores = [score for sizes in best.values() for _, score in sizes.values()]
    low, high = (min(scores), max(scores)) if scores else (0.0, 1.0)
    pad = max(0.08 * (high - low), 1 - (high - low) / 2, 0.1)  # differences of hundredths must not fill the picture
    figure.update_xaxes(title="Number of layers averaged", range=[0.6, n_layers + 0.4], dtick=1 if n_layers < 20 else 2)
    figure.update_yaxes(title="Best Spearman x 100", range=[low - pad, high + pad])
    alt = "Best Spearman by number of layers: " + "; ".join(
        f"{labels[spec]} at most {score:.2f} with layers {_sum(layers)}"
        for spec, sizes in best.items()
        for layers, score in sorted(sizes.values(), key=lambda one: -one[1])[:1]
    )
    alt = alt if scores else "Best Spearman by number of layers: no score defined"
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "title_text": ""}
    return _finish(figure, alt, 340, legend2=legend, clickmode="event+select", dragmode=False)


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
    return _finish(figure, alt, 340, showlegend=False)


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
            f"Place {names[row]}: layers {_sum(rows[row][0])}<br>Spearman x 100: {rows[row][1]:.2f}" for _, row in spots
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
    shown = "; ".join(f"{_sum(layers)} with {score:.2f}" for layers, score, _ in rows[:3]) or "no score defined"
    height = 70 + 26 * max(len(rows), lines, 8)
    margin = {"l": 10, "r": 10, "t": 10, "b": 10}
    more = {"margin": margin, "clickmode": "event+select", "dragmode": False, "hovermode": "closest"}
    return _finish(figure, f"The best subsets of layers: {shown}", height, showlegend=False, **more)


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
            colorbar=_flat_bar("Spearman x 100")
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
    return _finish(figure, alt, height, clickmode="event+select", dragmode=False, showlegend=False)


def _flat_bar(title: str) -> dict:
    """A colour bar along the top, as long as the map is wide, whatever the width of the page."""
    return {
        "title": {"text": title, "side": "top"},
        "orientation": "h",
        "thickness": 10,
        "xpad": 0,
        "ypad": 4,
        "x": 0.5,
        "xanchor": "center",
        "y": 1.0,
        "yanchor": "bottom",
        "len": 1.0,
    }


def _sum(layers: Sequence[int]) -> str:
    return " + ".join(map(str, layers))


def gold_histogram(gold: np.ndarray) -> go.Figure:
    """How many pairs have each gold score, or lie in each of 25 steps, in the colours of the gold scale."""
    values = gold.astype(float)
    levels = np.unique(values)
    if len(levels) <= 30:
        x, counts = levels, np.array([int((values == level).sum()) for level in levels])
        width = 0.8 * (np.diff(levels).min() if len(levels) > 1 else 1.0)
        words = [f"gold {level:g}" for level in levels]
    else:
        counts, edges = np.histogram(values, bins=25)
        x, width = (edges[:-1] + edges[1:]) / 2, edges[1] - edges[0]
        words = [f"gold {low:.3g} to {high:.3g}" for low, high in zip(edges[:-1], edges[1:], strict=True)]
    figure = go.Figure(
        go.Bar(
            x=x,
            y=counts,
            width=width,
            marker={"color": x, "colorscale": GOLD_SCALE, "line": {"color": RULE, "width": 0.5}},
            customdata=words,
            hovertemplate="%{customdata}: %{y} pairs<extra></extra>",
        )
    )
    figure.update_xaxes(title="Gold similarity")
    figure.update_yaxes(title="Pairs", rangemode="tozero")
    alt = f"Histogram of {len(values)} gold scores from {values.min():g} to {values.max():g}, mean {values.mean():.2f}"
    return _finish(figure, alt, 340, showlegend=False)


def length_histogram(values: np.ndarray) -> go.Figure:
    """How many sentences have so many words."""
    step = max(1, int(np.ceil((values.max() + 1) / 60)))
    counts, edges = np.histogram(values, bins=np.arange(0, values.max() + 1 + step, step) - 0.5)
    low = (edges[:-1] + 0.5).astype(int)
    figure = go.Figure(
        go.Bar(
            x=low + (step - 1) / 2,
            y=counts,
            width=0.9 * step,
            marker={"color": VARIANT_COLOURS["center"]},
            customdata=[f"{a} words" if step == 1 else f"{a} to {a + step - 1} words" for a in low],
            hovertemplate="%{customdata}: %{y} sentences<extra></extra>",
        )
    )
    figure.update_xaxes(title="Words, as spaces part them", rangemode="tozero")
    figure.update_yaxes(title="Sentences", rangemode="tozero")
    words = f"median {np.median(values):g} words, at most {values.max()}"
    alt = f"Histogram of the lengths of {len(values)} sentences: {words}"
    return _finish(figure, alt, 340, showlegend=False)
