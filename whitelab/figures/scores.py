"""Scores of variants with their intervals, and the pairs behind them."""

import html
import re
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from whitelab.base.wording import spaced
from whitelab.figures import heights
from whitelab.figures.dots import Interval, add_dot, axis_around, finish_dots
from whitelab.figures.drawing import Drawing
from whitelab.figures.marks import NAMED, half_whiskers, rule
from whitelab.figures.panels import BARE, bar_below, finish, in_words, reach, say_nothing_is_there
from whitelab.figures.style import DIFFERENCE_SCALE, SCORE, is_number, signed, variant_colour, variant_symbol, wrapped


def score_bars(
    names: Sequence[str], labels: Sequence[str], scores: Sequence[float], half_widths: Sequence[float]
) -> go.Figure:
    """Spearman of each variant, a bar a row, with its 95 % interval; the axis starts at 0 (or below, for negatives).

    Whiskers are dark with a pale rim: they cross bars of any hue, grey too, and a light or a dark page. Numbers stand
    in the margin, on the page's own ground, where no whisker reaches.
    """
    names_beside = [_in_lines(label) for label in labels]
    dark, rim = (
        half_whiskers(scores, half_widths, **look)
        for look in (
            {"color": "#1B2430", "thickness": 2, "width": 7},
            {"color": "#FFFFFF", "thickness": 5, "width": 9},
        )
    )
    figure = Drawing()
    figure.add(
        "bar",
        x=list(scores),
        y=names_beside,
        orientation="h",
        marker={"color": [variant_colour(name) for name in names]},
        error_x=rim,
        hovertemplate=f"%{{y}}<br>{SCORE}: %{{x:.2f}}<extra></extra>",
    )
    unseen = {"mode": "markers", "marker": {"size": 1, "opacity": 0}, "hoverinfo": "skip"}
    figure.add_scatter(x=list(scores), y=names_beside, error_x=dark, **unseen)
    margin = {"x": 1, "xref": "paper", "xanchor": "left", "xshift": 8, "font": {"size": 13}, "showarrow": False}
    for name, score in zip(names_beside, scores, strict=True):
        figure.add_annotation(y=name, text=f"{score:.2f}", **margin)
    alt = in_words("Spearman by variant", [", ".join(f"{a} {s:.2f}" for a, s in zip(labels, scores, strict=True))])
    figure.update_xaxes(title=SCORE)
    figure.update_yaxes(autorange="reversed", **BARE)
    return finish(figure, alt, heights.LOW, right=NAMED, showlegend=False)


def score_dots(rows: Sequence[Mapping], labels: Mapping[str, str], raw: float | None) -> go.Figure:
    """Spearman of each variant as a dot on its 95 % interval; the raw score as a dashed line.

    `rows` have whitening, spearman, low and high, and `best` where the score is (or ties with) the highest.
    """
    known = {i: row for i, row in enumerate(rows) if is_number(row["spearman"])}
    figure, parts = Drawing(), []
    if is_number(raw):
        figure.add_vline(x=raw, line=rule(variant_colour("none"), "dash"))
    for place, row in known.items():
        interval = Interval(row["spearman"], row["low"], row["high"], row.get("settled", True))
        hover, left = f"{SCORE}: {interval.middle:.2f}", is_number(raw) and interval.middle < raw
        parts.append(_add_row(figure, place, row, labels[row["whitening"]], interval, hover, left))
    ends = [row[name] for row in known.values() for name in ("spearman", "low", "high")]
    figure.update_xaxes(title=SCORE, range=axis_around([*ends, raw], 0.4))
    if not known:
        say_nothing_is_there(figure, "x")
    title = "Spearman by variant with 95 % intervals" if known else "Spearman by variant"
    return finish_dots(figure, _names(rows, labels), in_words(title, parts, "no score is defined"))


def option_dots(rows: Sequence[Mapping], measure: str, baseline: float) -> go.Figure:
    """A score of each option as a dot on its 95 % interval, the baseline's as a dashed line.

    `rows` have label, whitening, score, low, high, settled, and best where the option is advised: its value is bold.
    """
    figure, parts = Drawing(), []
    figure.add_vline(x=baseline, line=rule(variant_colour("none"), "dash"))
    for place, row in enumerate(rows):
        interval = Interval(row["score"], row["low"], row["high"], row["settled"])
        parts.append(_add_row(figure, place, row, row["label"], interval, f"{row['score']:.2f}", False))
    ends = [row[name] for row in rows for name in ("low", "high")]
    figure.update_xaxes(title=measure, range=axis_around(ends, 0.15, 0.3))
    names = [wrapped(_unbroken(row["label"]), 26, None) for row in rows]
    return finish_dots(figure, names, in_words(f"{measure} of the options", parts, "no option has a score"))


def difference_dots(rows: Sequence[Mapping], labels: Mapping[str, str], baseline: str) -> go.Figure:
    """Each variant's difference from the baseline with its 95 % interval, on an axis centred on zero.

    `rows` have whitening, difference, difference_low, difference_high and settled: a dot is open where the
    difference could be chance.
    """
    known = {i: row for i, row in enumerate(rows) if is_number(row["difference"])}
    figure, parts = Drawing(), []
    if known:
        figure.add_vline(x=0, line=rule())
    for place, row in known.items():
        interval = Interval(row["difference"], row["difference_low"], row["difference_high"], row["settled"])
        hover, left = f"{interval.middle:+.2f} against {html.escape(baseline)}", interval.middle < 0
        parts.append(_add_row(figure, place, row, labels[row["whitening"]], interval, hover, left, "+"))
    ends = [row[f"difference{end}"] for row in known.values() for end in ("", "_low", "_high")]
    span = 1.6 * reach(end for end in ends if is_number(end))
    figure.update_xaxes(title=f"Difference from {html.escape(baseline)} (points)", range=[-span, span])
    if not known:
        say_nothing_is_there(figure, "x", "no difference is defined")
    title = f"Differences from {baseline}" + (" with 95 % intervals" if known else "")
    return finish_dots(figure, _names(rows, labels), in_words(title, parts, "no score is defined"))


def _add_row(
    figure: Drawing, place: int, row: Mapping, label: str, interval: Interval, hover: str, left: bool, sign: str = ""
) -> str:
    """Draw the dot of a variant in its hue and with its symbol; it in words. Of a difference `sign` is "+"."""
    middle, low, high = interval.middle, interval.low, interval.high
    within = f"{low:{sign}.2f} to {high:{sign}.2f}" if is_number(low) and is_number(high) else ""
    value = signed(middle) if sign else f"<b>{middle:.2f}</b>" if row.get("best") else f"{middle:.2f}"
    hover = f"<b>{html.escape(label)}</b><br>{hover}" + (f"<br>95 %: {within}" if within else "")
    look = variant_symbol(row["whitening"]), variant_colour(row["whitening"])
    add_dot(figure, place, interval, look, value, hover, left)
    beside = ", ".join(filter(None, (within, "could be chance" if sign and not interval.settled else "")))
    return f"{label} {middle:{sign}.2f}" + (f" ({beside})" if beside else "")


def _unbroken(label: str) -> str:
    """A label whose `k = 100` and `layers 1 + 6` stay in one line."""
    return re.sub("(?<==) | (?==)|(?<=[+]) | (?=[+])|(?<=layer) |(?<=layers) ", "\u00a0", label)


def _in_lines(label: str) -> str:
    """A label in short lines, its parameters on lines of their own."""
    name, bracket, parameters = _unbroken(label).partition(" (")
    return wrapped(name, 19, None) + (f"<br>{wrapped(bracket.strip() + parameters, 26, None)}" if bracket else "")


def _names(rows: Sequence[Mapping], labels: Mapping[str, str]) -> list[str]:
    """What stands beside each row: its label, and whether it is best."""
    mark = "best, tied" if sum(bool(row.get("best")) for row in rows) > 1 else "best"
    names = [_in_lines(labels[row["whitening"]]) for row in rows]
    # A row has room for two lines.
    beside = [" · " if "<br>" in name else "<br>" for name in names]
    ends = [f"{by}{mark}" if row.get("best") else "" for by, row in zip(beside, rows, strict=True)]
    return [f"<b>{name}</b>{end}" if end else name for name, end in zip(names, ends, strict=True)]


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
    span = reach([np.percentile(np.abs(change), 98)] if len(change) else [], 1.0)
    bar = bar_below(-0.19, "Ranks moved, up is positive")
    colours = {"color": change[order], "colorscale": DIFFERENCE_SCALE, "cmin": -span, "cmax": span, "colorbar": bar}
    figure = Drawing()
    figure.add(
        "scattergl",
        x=gold[order],
        y=cosines[order],
        mode="markers",
        text=[hover[i] for i in order],
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
        marker={"size": 7, "opacity": 0.8} | colours,
    )
    figure.update_xaxes(title="Gold similarity", zeroline=False)
    figure.update_yaxes(title="Cosine", range=[lowest, 1.03], zeroline=False)
    shown = f"Cosine against gold similarity of {spaced(len(gold))} pairs, {words}"
    alt = f"{shown}, coloured by how far each pair's rank moved"
    return finish(figure, alt, heights.TALL, 10)
