"""`python -m benchmarks.latency`: from an input event to the repainted live number, in a real Chromium.

Needs Chromium and the tools of the tests (requirements-dev.txt). The browser's own clock counts, from the event
the visitor makes to the second frame after the number has changed. The floor is an app with
one slider, one number and one figure, served and watched the same way; each move is followed by one of its own, so
that whatever disturbs the machine disturbs both.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter
from urllib.parse import urlencode

import numpy as np
from playwright.sync_api import sync_playwright

from benchmarks.harness import README, Table, Timings, figures, machine, publish
from tests.helpers.driving import FLAGS, SIDEBAR, K, Visit, serve
from whitelab.whitening import WHITENERS

# Milliseconds for which a visitor looks at what is about to be clicked: in this time the app finds its number ahead.
LOOK = 1500

# As little as an app of this kind can do: a slider decides a number in the bar and a figure on the page.
FLOOR = """import plotly.graph_objects as go
import streamlit as st

with st.sidebar:
    place = st.container()
    k = st.slider("k, kept dimensions", 1, 384, 300)
    place.metric("Number", f"{k / 7:.2f}", border=True)
st.plotly_chart(go.Figure(go.Bar(x=list("abcdef"), y=[k * i for i in range(6)])))
"""

# Streamlit may take the number away before it brings the new one, so an empty metric is no answer.
WATCH = """([bar, patience]) => {
    const read = () => {
        const metric = document.querySelector(`${bar} .wl-figure, ${bar} [data-testid=stMetric]`)
        return metric ? metric.innerText.trim() : ''
    }
    const before = read()
    let start = null
    for (const kind of ['pointerdown', 'keydown'])
        addEventListener(kind, event => { start = event.timeStamp }, {capture: true, once: true})
    window.repainted = new Promise(resolve => {
        const watch = new MutationObserver(() => {
            const now = read()
            if (start === null || now === '' || now === before) return
            watch.disconnect()
            requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - start)))
        })
        watch.observe(document.body, {subtree: true, childList: true, characterData: true})
        setTimeout(() => { watch.disconnect(); resolve(-1) }, patience)
    })
}"""


def timed(visit: Visit, move: Callable[[], None], needed: bool = True) -> float:
    """Milliseconds from the input event of `move` to the repainted number; -1 where it stayed and need not move."""
    visit.page.evaluate(WATCH, [SIDEBAR, 30000 if needed else 2000])
    move()
    found = visit.page.evaluate("window.repainted")
    if found < 0 and needed:
        raise RuntimeError(f"the live number did not change within 30 s at {visit.page.url}")
    visit.settle()
    return found


def k_moves(visit: Visit, count: int) -> Iterator[float]:
    """The slider, one step at a time by keyboard; every k is new. A step to the same number is no answer."""
    slider = visit.page.locator(K)
    for _ in range(count):
        slider.focus()
        while (answer := timed(visit, lambda: visit.page.keyboard.press("ArrowLeft"), needed=False)) < 0:
            pass
        yield answer


def layer_moves(visit: Visit, count: int) -> Iterator[float]:
    """One layer more or less, in the order of a Gray code: every combination is new."""
    buttons = visit.page.locator(f'{SIDEBAR} [aria-label="Layers, averaged"] button')
    for number in range(1, count + 1):
        button = buttons.nth((number & -number).bit_length() - 1)
        button.hover()
        visit.page.wait_for_timeout(LOOK)
        yield timed(visit, lambda button=button: button.click())


def variant_moves(visit: Visit, count: int) -> Iterator[float]:
    """Variants whose scores differ, in turn; k moves on, untimed, so that no setting comes twice."""
    names = [WHITENERS[name].label for name in ("center", "pca", "soft", "pca_cor")]
    box = visit.page.locator(f"{SIDEBAR} [data-testid=stSelectbox]").filter(has_text="Variant").locator("input")
    for number in range(count):
        visit.page.locator(K).focus()
        visit.page.keyboard.press("ArrowLeft")
        visit.page.wait_for_timeout(500)
        visit.complete()
        box.click()
        option = visit.page.get_by_role("option", name=names[number % len(names)], exact=True)
        option.wait_for()
        visit.page.wait_for_timeout(LOOK)
        yield timed(visit, option.click)


# name -> (the moves, where they start, what they change)
MOVES = {
    "k": (k_moves, {"k": "300", "layers": ["1", "6"]}, "one step of the k slider"),
    "layers": (layer_moves, {"layers": ["5"]}, "one layer more or less"),
    "variant": (variant_moves, {"k": "100", "layers": ["1", "6"]}, "another variant"),
}


def measure(url: str, floor_url: str, browser, data: dict[str, str], count: int) -> list[tuple[str, ...]]:
    """A row for each kind of move: milliseconds, those of the floor, and their ratio move by move."""
    rows = []
    for moves, start, what in MOVES.values():
        visit, floor = Visit.start(browser, url), Visit.start(browser, floor_url)
        visit.open("?" + urlencode(data | start, doseq=True))
        floor.open("", ready=False).locator(K).wait_for()
        floor.settle()
        pairs = tuple(zip(moves(visit, count), k_moves(floor, count), strict=True))
        for one in (visit, floor):
            one.context.close()
        times = Timings(dict(zip(("app", "floor"), zip(*pairs, strict=True), strict=True)))
        (median, slow), least = np.percentile(times.seconds["app"], (50, 95)), np.median(times.seconds["floor"])
        ratio = times.ratio("app", "floor").text()
        rows.append((what, *(f"{figures(value)} ms" for value in (median, slow, least)), ratio, str(len(pairs))))
    return rows


def opened(folder: Path, browser, data: dict[str, str], then: Callable[[str], object]) -> tuple[float, object]:
    """Start the app; seconds until its first page is complete, and what `then(url)` gives."""
    start = perf_counter()
    server = serve(folder / "store", folder / "server.log")
    try:
        visit = Visit.start(browser, server.url)
        visit.open("?" + urlencode(data))
        ready = perf_counter() - start
        visit.context.close()
        return ready, then(server.url)
    finally:
        server.stop()


def main(argv: Sequence[str] | None = None) -> int:
    """Start the app on a store of its own, make the moves, print and publish the table."""
    found = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__)
    found.add_argument("--data", default="demo", help="data folder (default: demo)")
    found.add_argument("--task", default="", help="task of the folder")
    found.add_argument("--moves", type=int, default=30, help="moves of each kind (default: 30)")
    found.add_argument("--readme", type=Path, default=README, help="file to write to")
    args = found.parse_args(argv)
    data = {"data": args.data} | ({"task": args.task} if args.task else {})
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        print("Chromium is missing: install it with `apt-get install chromium`", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        opened(Path(folder), browser, data, lambda url: None)  # embeds the sentences
        script = Path(folder) / "floor.py"
        script.write_text(FLOOR, "utf-8")
        floor = serve(Path(folder) / "store", Path(folder) / "floor.log", script)
        try:
            ready, rows = opened(
                Path(folder), browser, data, lambda url: measure(url, floor.url, browser, data, args.moves)
            )
        finally:
            floor.stop()
        browser.close()
    name = "the demonstration set" if args.data == "demo" else " ".join([Path(args.data).name, args.task]).strip()
    table = Table(
        f"From an input event to the repainted number, bundled model, {name}",
        ("", "median", "95th percentile", "floor, median", "ratio, median [quartiles]", "moves"),
        tuple(rows),
        (
            "The floor is one step of the slider of a bare Streamlit app with one number and one figure; ratios are "
            "taken move by move.",
            f"Layers and variants are reached for, looked at for {LOOK / 1000} s and clicked. Meanwhile the "
            "app finds their numbers ahead, and the browser paints them at the click; k is known for every step.",
            f"From the start of the process to the finished overview, with a warm store: {figures(ready)} s.",
        ),
    )
    print(table.markdown())
    publish("latency" if args.data == "demo" else "latency on other data", [table], machine(), args.readme)
    return 0


if __name__ == "__main__":
    sys.exit(main())
