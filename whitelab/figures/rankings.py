"""How well documents are ranked: a metric by layer, by the kept dimensions, and query by query."""

from collections.abc import Iterable, Mapping, Sequence

import plotly.graph_objects as go

from whitelab.base.wording import spaced
from whitelab.figures import heights
from whitelab.figures.drawing import Drawing
from whitelab.figures.marks import (
    NAMED,
    add_line,
    add_marks,
    level,
    rank_rule,
    rule,
    stars,
    variant_line,
)
from whitelab.figures.panels import finish, in_words, intervals_by_layer
from whitelab.figures.style import DIFFERENCE_ENDS, KEPT, RULE, is_number, variant_colour


def metric_by_layer(
    curves: Mapping[str, Mapping[int, Mapping]], labels: Mapping[str, str], n_layers: int, metric: str
) -> go.Figure:
    """A metric of 0 to 1 against the layer number with 95 % intervals, one line a variant.

    `curves[spec][layer]` have mean, low and high; layers may be missing. `metric` is its name.
    """
    figure = Drawing()
    words = intervals_by_layer(figure, curves, labels, n_layers, "mean", 4)
    _stand(figure, metric, [row["high"] for rows in curves.values() for row in rows.values()])
    return finish(figure, in_words(f"{metric} by layer", words, "no score yet"), heights.CURVES)


def metric_by_k(
    means: Sequence[float],
    rank: int,
    variant: tuple[str, str],
    marks: Mapping[str, int],
    raw: float | None,
    metric: str,
) -> go.Figure:
    """A metric of 0 to 1 against the kept dimensions: `means[k - 1]`, with raw, where known, and the rank as lines.

    `variant` is its spec and label; `marks` hold the `best` k and the one `chosen`.
    """
    d, (spec, label) = len(means), variant
    figure = Drawing()
    add_line(figure, range(1, d + 1), means, label, variant_line(spec, width=3), "k = %{x}: %{y:.4f}")
    known = "" if raw is None else f", raw {raw:.4f}"
    if raw is not None:
        level(figure, raw, "raw", rule(variant_colour("none"), "dash"), 4)
    best, chosen = marks["best"], marks["chosen"]
    named = {"showlegend": True, "size": 15}
    add_marks(
        figure,
        [(chosen, means[chosen - 1])],
        "circle-open",
        "chosen k = %{x}: %{y:.4f}",
        name=f"chosen: k = {chosen}",
        **named,
    )
    stars(figure, [(best, means[best - 1])], "best k = %{x}: %{y:.4f}", name=f"best: k = {best}", **named)
    rank_rule(figure, rank, d)
    figure.update_xaxes(title=KEPT, range=[0, d + 1])
    _stand(figure, metric, [*means, raw])
    words = [f"best {means[best - 1]:.4f} at k = {best}{known}, rank {rank} of {d}"]
    return finish(figure, in_words(f"{metric} by kept dimensions", words), heights.CURVES, right=NAMED)


def _stand(figure: Drawing, metric: str, values: Iterable[float | None]) -> None:
    """Let the axis of a metric of 0 to 1 stand on 0 and end a little above all `values`: a hard search scores low."""
    top = max(filter(is_number, values), default=0) or 1
    figure.update_yaxes(title=metric, range=[0, min(1.02, 1.1 * top)])


def query_differences(changes: Sequence[float], hover: Sequence[str], metric: str) -> go.Figure:
    """The change of a metric of every query as a bar, those that rose first; `hover` is escaped.

    The axis runs from -1 to 1, all that a metric of 0 to 1 can change by.
    """
    order = sorted(range(len(changes)), key=lambda i: -changes[i])
    values = [changes[i] for i in order]
    colours = [DIFFERENCE_ENDS[value > 0] if value else RULE for value in values]
    figure = Drawing()
    figure.add(
        "bar",
        x=list(range(1, len(values) + 1)),
        y=values,
        marker={"color": colours, "line": {"width": 0}},
        customdata=[hover[i] for i in order],
        hovertemplate="%{customdata}<extra></extra>",
    )
    figure.add_hline(y=0, line=rule(width=1))
    figure.update_xaxes(title="Queries, those that gained first", rangemode="tozero")
    figure.update_yaxes(title=f"Change of {metric}", range=[-1.05, 1.05])
    gained, lost = sum(value > 0 for value in values), sum(value < 0 for value in values)
    alt = f"Change of {metric} query by query: {spaced(gained)} of {spaced(len(values))} gained and {spaced(lost)} lost"
    return finish(figure, alt, heights.LOW, showlegend=False, bargap=0.1)
