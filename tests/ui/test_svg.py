"""Figures as SVG: all of a page by one browser where there is one, and none where there is not or it fails."""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import plotly.graph_objects as go
import pytest

from whitelab.ui.frame import svg

FIGURES = {"curve": go.Figure(go.Scatter(x=[1, 2], y=[3, 4])), "map": go.Figure()}


@pytest.fixture
def artist(monkeypatch):
    """Stands for kaleido: draws a figure as its JSON, counts browsers, fails where it is told to."""
    seen = SimpleNamespace(opened=[], fails=False)

    class Kaleido:
        def __init__(self, **options):
            seen.opened.append(options["path"])

        async def __aenter__(self):
            return self

        async def __aexit__(self, *error):
            return None

        async def calc_fig(self, figure, opts):
            if seen.fails:
                raise RuntimeError("the browser has gone")
            assert opts == {"format": "svg"}
            return figure.to_json().encode()

    monkeypatch.setitem(sys.modules, "kaleido", SimpleNamespace(Kaleido=Kaleido, __spec__="there"))
    monkeypatch.setattr(svg.shutil, "which", lambda name: f"/bin/{name}" if name == "google-chrome" else None)
    return seen


def test_one_browser_draws_all_figures_also_inside_an_event_loop(artist):
    wanted = {key: figure.to_json().encode() for key, figure in FIGURES.items()}
    assert svg.svgs(FIGURES) == wanted
    assert artist.opened == ["/bin/google-chrome"]

    async def inside():
        return svg.svgs(FIGURES)

    with ThreadPoolExecutor(1) as pool:  # this thread may have a loop already, that of the browser tests
        assert pool.submit(asyncio.run, inside()).result() == wanted


def test_none_are_made_where_there_is_no_browser_no_kaleido_or_it_fails(artist, monkeypatch):
    artist.fails = True
    assert svg.svgs(FIGURES) == {}
    assert svg.svgs({}) == {}
    artist.fails = False
    monkeypatch.setattr(svg.shutil, "which", lambda name: None)
    assert svg.svgs(FIGURES) == {}
    monkeypatch.undo()
    monkeypatch.setattr(svg, "find_spec", lambda name: None)
    assert svg.svgs(FIGURES) == {}
