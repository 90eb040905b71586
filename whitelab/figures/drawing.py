"""A figure in the making."""

from copy import deepcopy
from typing import Any

import plotly.graph_objects as go

_BELOW = "below"  # grid and traces: a rule above these strikes through the text they write


class Drawing:
    """Traces and layout as plain dictionaries, which become a plotly figure once they are complete.

    Where a `go.Figure` is put together part by part, plotly checks and copies what is there at each part, and fifty
    parts take 25 ms of which a reader sees nothing. Here nothing is checked (that every figure is valid is a law of
    the tests), so names are plotly's own, nested, without its shorthands (`marker={"color": ...}`). What is None
    is left out.
    """

    def __init__(self, layout: dict[str, Any] | None = None) -> None:
        self.traces: list[dict[str, Any]] = []
        self.layout: dict[str, Any] = {"xaxis": {}, "yaxis": {}} | deepcopy(layout or {})

    def add(self, kind: str, **properties) -> None:
        """Add a trace: a `scatter`, a `bar`, a `heatmap`, ..."""
        self.traces.append({"type": kind} | _given(properties))

    def add_scatter(self, **properties) -> None:
        self.add("scatter", **properties)

    def add_shape(self, **properties) -> None:
        self.layout.setdefault("shapes", []).append(properties)

    def add_annotation(self, **properties) -> None:
        self.layout.setdefault("annotations", []).append(properties)

    def add_vline(self, x: float | int, line: dict, panel: str = "") -> None:
        """A rule at a place on the x axis, across the `panel` ("2" is the second of two)."""
        self._span("x", x, x, panel, type="line", line=line, layer=_BELOW)

    def add_hline(self, y: float | int, line: dict) -> None:
        self._span("y", y, y, "", type="line", line=line, layer=_BELOW)

    def add_vrect(self, x0: float | int, x1: float | int, line: dict) -> None:
        self._span("x", x0, x1, "", type="rect", line=line)

    def _span(self, axis: str, start: float | int, end: float | int, panel: str, **shape) -> None:
        (other,) = {"x", "y"} - {axis}
        ends = {f"{axis}0": start, f"{axis}1": end, f"{other}0": 0, f"{other}1": 1}
        across = {f"{axis}ref": f"{axis}{panel}", f"{other}ref": f"{other}{panel} domain"}
        self.add_shape(**ends, **across, **shape)

    def update_xaxes(self, panel: str = "", **properties) -> None:
        """Change the x axis of a `panel`, its title given as text."""
        self._axis(f"xaxis{panel}", properties)

    def update_yaxes(self, panel: str = "", **properties) -> None:
        self._axis(f"yaxis{panel}", properties)

    def _axis(self, name: str, properties: dict) -> None:
        if "title" in properties:
            properties["title"] = {"text": properties["title"]}
        self.layout.setdefault(name, {}).update(_given(properties))

    def update_layout(self, **properties) -> None:
        self.layout.update(_given(properties))

    def figure(self) -> go.Figure:
        """What has been drawn, as plotly's figure."""
        return go.Figure({"data": self.traces, "layout": self.layout}, _validate=False)


def _given(properties: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in properties.items() if value is not None}
