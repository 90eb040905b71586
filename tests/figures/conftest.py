"""Figures are put together unchecked; here each that a test draws is one that plotly accepts."""

import pytest
from drawings import accepted

from whitelab.figures.drawing import Drawing


@pytest.fixture(autouse=True)
def checked(monkeypatch):
    drawn = Drawing.figure
    monkeypatch.setattr(Drawing, "figure", lambda drawing: accepted(drawn(drawing)))
