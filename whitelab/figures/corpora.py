"""How a corpus settles while it is embedded."""

from collections.abc import Sequence

import plotly.graph_objects as go

from whitelab.base.wording import spaced
from whitelab.figures import heights
from whitelab.figures.drawing import Drawing
from whitelab.figures.marks import add_line, level, rule, variant_line
from whitelab.figures.panels import finish, in_words
from whitelab.figures.style import variant_colour


def settling_curve(sentences: Sequence[int], isotropy: Sequence[float], whitening: str, label: str) -> go.Figure:
    """Isotropy of unseen sentences against the sentences a map was fitted on, on a log axis; 1 is round."""
    figure = Drawing()
    hover = "fitted on %{x:,} sentences: %{y:.3f}"
    add_line(figure, sentences, isotropy, label, variant_line(whitening), hover, mode="lines+markers")
    level(figure, 1.0, "round", rule(variant_colour("none"), "dash"))
    figure.update_xaxes(title="Sentences it was fitted on", type="log", tickvals=list(sentences), tickformat=",")
    figure.update_yaxes(title="Isotropy of the next ones", range=[0, 1.06])
    words = [f"{isotropy[-1]:.3f} after {spaced(sentences[-1])} sentences"] if sentences else []
    return finish(figure, in_words("Isotropy of unseen sentences", words, "no chunk yet"), heights.CURVES, right=60)
