"""Figures as SVG, where kaleido (an extra) and a Chrome or Chromium are installed; elsewhere none are made."""

import asyncio
import shutil
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import plotly.graph_objects as go

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
SECONDS = 60  # for all figures of a page
_one = threading.Lock()  # a browser takes a few hundred MB


def browser() -> str | None:
    """The path of a browser that draws, None where there is none or kaleido is not installed."""
    return next(filter(None, map(shutil.which, BROWSERS)), None) if find_spec("kaleido") else None


def svgs(figures: Mapping[str, go.Figure]) -> dict[str, bytes]:
    """Every figure as SVG, by its key; empty where nothing can draw them or it takes longer than `SECONDS`."""
    path = browser()
    if path is None or not figures:
        return {}
    with _one, ThreadPoolExecutor(1) as pool:  # the caller's thread may have an event loop of its own
        try:
            return pool.submit(lambda: asyncio.run(asyncio.wait_for(_drawn(figures, path), SECONDS))).result()
        except Exception:  # a browser fails in many ways; the figures are in the .zip as HTML
            return {}


async def _drawn(figures: Mapping[str, go.Figure], path: str) -> dict[str, bytes]:
    import kaleido

    async with kaleido.Kaleido(n=1, timeout=SECONDS, path=path) as artist:
        return {key: await artist.calc_fig(figure, opts={"format": "svg"}) for key, figure in figures.items()}
