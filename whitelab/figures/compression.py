"""What bits and cosines are worth: the score against bytes a vector, and the scale that a space gives its cosines."""

import html
from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from whitelab.base.wording import spaced
from whitelab.figures import heights
from whitelab.figures.drawing import Drawing
from whitelab.figures.marks import NAMED, STEADY, add_line, add_marks, level, rule, variant_line, whiskers
from whitelab.figures.panels import CLICKABLE, finish, in_words
from whitelab.figures.style import MARK, RULE, bare_dashes, variant_colour

ROTATION_SYMBOLS = {"none": "circle", "random": "diamond", "itq": "square", "opq": "cross"}


def bits_frontier(
    rows: Sequence[Mapping], labels: Mapping[str, str], metric: str, chosen: int | None = None, digits: int = 2
) -> go.Figure:
    """A score against the bytes a vector takes, on a logarithmic axis: hue of the variant, symbol of the rotation.

    `rows` have whitening, code (its name), rotation, bytes, score, low, high and on_frontier; the first is float32 raw,
    whose level is ruled in. Those on the frontier have their 95 % interval and are joined. A click on a mark carries
    its number in `customdata`.
    """
    figure, form = Drawing(), f".{digits}f"
    specs = list(dict.fromkeys(row["whitening"] for row in rows))
    best = sorted((row["bytes"], row["score"]) for row in rows if row["on_frontier"])
    figure.add_scatter(
        x=[x for x, _ in best],
        y=[y for _, y in best],
        mode="lines",
        line={"color": RULE, "width": 2, "shape": "hv"},
        name="best for its bytes",
        hoverinfo="skip",
    )
    for number, spec in enumerate(specs):
        own = [(place, row) for place, row in enumerate(rows) if row["whitening"] == spec]
        values = [row["score"] for _, row in own]
        ends = [(row["low"], row["high"]) if row["on_frontier"] else (None, None) for _, row in own]
        # Codes of the same size stand beside each other.
        aside = [1 + 0.07 * (number - (len(specs) - 1) / 2) for _ in own]
        figure.add_scatter(
            x=[row["bytes"] * step for (_, row), step in zip(own, aside, strict=True)],
            y=values,
            mode="markers",
            name=html.escape(labels[spec]),
            marker={
                "color": variant_colour(spec),
                "symbol": [ROTATION_SYMBOLS[row["rotation"]] for _, row in own],
                "size": 11,
                "line": {"width": 1, "color": "#FFFFFF"},
            },
            error_y=whiskers(values, *zip(*ends, strict=True)),
            customdata=[
                [place, html.escape(row["code"]), spaced(row["bytes"]), f"{row['low']:{form}} to {row['high']:{form}}"]
                for place, row in own
            ],
            hovertemplate=f"{html.escape(labels[spec])}, %{{customdata[1]}}<br>%{{customdata[2]}} bytes: "
            f"%{{y:{form}}}<br>95 %: %{{customdata[3]}}<extra></extra>",
            **STEADY,
        )
        if chosen is not None and chosen in (place for place, _ in own):
            at = next(i for i, (place, _) in enumerate(own) if place == chosen)
            ring = [(own[at][1]["bytes"] * aside[at], values[at])]
            add_marks(figure, ring, "circle-open", size=20, marker={"color": MARK}, hoverinfo="skip")
    level(figure, rows[0]["score"], "raw", rule(variant_colour("none"), "dash"), digits)
    ticks = _ticks(rows)
    figure.update_xaxes(title="Bytes a vector", type="log", tickvals=ticks, ticktext=list(map(spaced, ticks)))
    figure.update_yaxes(title=metric)
    words = [
        f"{spaced(row['bytes'])} bytes {row['score']:{form}} by {row['code']}" for row in rows if row["on_frontier"]
    ]
    return finish(figure, in_words(f"{metric} by bytes a vector", words), heights.TALL, right=NAMED, **CLICKABLE)


def _ticks(rows: Sequence[Mapping]) -> list[int]:
    """Sizes far enough apart to be written: those of raw vectors, and others where none of these is near."""
    ticks: list[int] = []
    for row in sorted(rows, key=lambda row: (row["whitening"] != rows[0]["whitening"], row["bytes"])):
        if all(max(row["bytes"], tick) > 1.25 * min(row["bytes"], tick) for tick in ticks):
            ticks.append(row["bytes"])
    return ticks


def cosine_scale(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], labels: Mapping[str, str], cosine: float, value: str
) -> go.Figure:
    """What a cosine means, a line a variant: `curves[spec]` are rising cosines and their values, called `value`.

    The chosen `cosine` is ruled in.
    """
    figure, dashes, words = Drawing(), bare_dashes(curves), []
    hover = f"cosine %{{x:.3f}}: {html.escape(value)} %{{y:.2f}}"
    for spec, (x, y) in curves.items():
        add_line(figure, x, y, labels[spec], variant_line(spec, dashes[spec]), hover)
        words.append(f"{labels[spec]} from {min(y):.2f} to {max(y):.2f}")
    figure.add_vline(x=cosine, line=rule(MARK, "dash"))
    figure.update_xaxes(title="Cosine", range=[-1.02, 1.02], zeroline=False)
    figure.update_yaxes(title=value)
    return finish(figure, in_words(f"{value} by cosine", words), heights.CURVES)
