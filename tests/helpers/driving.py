"""Starting the app as the README says, and reading what Chromium shows of it."""

import io
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Locator, Page, TimeoutError

from tests.helpers.processes import ROOT, free_port  # not `processes`: benchmarks.latency imports this too
from tests.helpers.questions import QUESTIONS

ARTEFACTS = ROOT / "artefacts"
PATIENCE = 180  # seconds for anything that computes; other work may share the machine
# Without a GPU Chromium draws WebGL in software, which it wants to be asked for.
FLAGS = [
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--enable-unsafe-swiftshader",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Nothing blinks or fades: without a GPU every frame of it is painted by the processor, while the app computes.
STILL_LIFE = """() => {
    const style = new CSSStyleSheet()
    style.replaceSync('*, *::before, *::after { animation: none !important; transition: none !important }')
    document.adoptedStyleSheets.push(style)
}"""
IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"
SIDEBAR = "[data-testid=stSidebar]"
LIVE = f"{SIDEBAR} .wl-value"  # the live score
K = 'input[type=range][aria-label="k, kept dimensions"]'
CHART = ".js-plotly-plot"
# Resolves once the script rests and nothing has changed on the page, its layout included, for so many milliseconds.
# Given a `patience`, too, once the page has come to its last part, shows no progress and has drawn its charts: asked at
# rest alone, as whoever asks while the page is drawn keeps it from that.
STILL = """([idle, pause, patience]) => new Promise((done, fail) => {
    let size = '', waiting
    if (patience) setTimeout(() => fail(Error('the page was never complete')), patience)
    const watch = new MutationObserver(() => wait())
    const wait = () => { clearTimeout(waiting); waiting = setTimeout(look, pause) }
    const whole = () => !document.querySelector('[data-testid=stProgress], [data-testid=stSkeleton]')
        && [...document.querySelectorAll('summary')].some(e => e.textContent.includes('Show the code'))
        && [...document.querySelectorAll('.js-plotly-plot')].every(g => g._fullData || !g.offsetParent)
    const look = () => {
        const now = [...document.querySelectorAll('[data-testid=stSidebar], [data-testid=stMain], .js-plotly-plot')]
            .map(e => { const r = e.getBoundingClientRect(); return [r.x, r.y, r.width, e.scrollHeight] }).join()
        if (now === size && document.querySelector(idle) && (!patience || whole())) { watch.disconnect(); done() }
        else { size = now; wait() }
    }
    watch.observe(document, { subtree: true, childList: true, attributes: true, characterData: true })
    look()
})"""
# Streamlit looks for its own address by asking below the page's path first; these answers are not the app's.
PROBES = re.compile(r"/_stcore/(health|host-config)$")


@dataclass
class Server:
    """A running app: its address, and what it has written."""

    url: str
    process: subprocess.Popen
    log: Path

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def serve(cache: Path, log: Path, app: str | Path = "app.py", port: int = 0, path: str = "") -> Server:
    """`python -m streamlit run app.py` in the repository root, with a store and runs of its own.

    On a free port where none is given, and below a `path` of the site.
    """
    port = port or free_port()
    command = [sys.executable, "-m", "streamlit", "run", str(app)]
    command += ["--server.port", str(port), "--server.headless", "true", "--server.baseUrlPath", path]
    places = {"WHITELAB_CACHE": str(cache), "WHITELAB_RUNS": str(log.with_suffix(".runs"))}
    return started(command, port, ROOT, os.environ | places, log, path)


def started(
    command: list[str], port: int, folder: Path, environment: dict[str, str], log: Path, path: str = ""
) -> Server:
    """The app that a command serves on `port` of this machine, called in a folder, once it answers."""
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT)
    server = Server(f"http://127.0.0.1:{port}/{path}".rstrip("/"), process, log)
    end = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(f"{server.url}/_stcore/health", timeout=2) as answer:
                if answer.read() == b"ok":  # and not what somebody else says on this port
                    return server
        except (urllib.error.URLError, OSError):
            pass
        if process.poll() is not None or time.monotonic() > end:
            server.stop()
            raise RuntimeError(f"the app did not start:\n{log.read_text()}")
        time.sleep(0.1)


@dataclass
class Visit:
    """A visitor at one page, with everything it complained about or asked for."""

    page: Page
    context: BrowserContext
    base: str
    errors: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    @classmethod
    def start(cls, browser: Browser, base: str, *args, **kwargs) -> "Visit":
        """A visitor in a browser context of their own."""
        secure = base.startswith("https:")  # with a certificate of the test's own
        context = browser.new_context(accept_downloads=True, reduced_motion="reduce", ignore_https_errors=secure)
        context.set_default_timeout(PATIENCE * 1000)
        context.add_init_script(f"({STILL_LIFE})()")
        visit = cls(context.new_page(), context, base)
        visit.page.on("console", visit._console)
        visit.page.on("pageerror", lambda error: visit.errors.append(f"page error: {error}"))
        visit.page.on("request", visit._request)
        return visit.anew(base, *args, **kwargs)

    def anew(self, base: str, scheme: str = "light", width: int = 1440, height: int = 1000) -> "Visit":
        """Another visitor at the same page: what it loads next takes half the work of a page in a new context."""
        self.base = base
        self.errors.clear()
        self.outside.clear()
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.emulate_media(color_scheme=scheme)
        return self

    def leave(self) -> None:
        """Leave nothing of this visit for the next: no session, no cookie, nothing stored."""
        if self.page.url.startswith(self.base):
            self.page.goto(f"{self.base}/_stcore/health")  # of the same site, so the browser keeps its process
            self.page.evaluate("() => { localStorage.clear(); sessionStorage.clear() }")
        self.context.clear_cookies()

    def _console(self, message) -> None:
        where = message.location.get("url", "")
        late = where.startswith("http") and not where.startswith(self.base)  # of the app that was visited before
        if message.type == "error" and not late and not PROBES.search(urlsplit(where).path):
            self.errors.append(f"{message.text} ({message.location.get('url', '')})")

    def _request(self, request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.hostname != "127.0.0.1":
            self.outside.append(request.url)

    def open(self, path: str, ready: bool = True) -> Page:
        self.page.goto(f"{self.base}/{path}")
        if ready:
            self.complete()
        return self.page

    def follow(self, name: str) -> None:
        """Go to another page by its link at the top; that costs less than half of loading it anew."""
        self.page.get_by_role("link", name=name.capitalize(), exact=True).first.click()
        self.page.get_by_role("heading", name=QUESTIONS[name]).wait_for()
        self.complete()

    def complete(self) -> None:
        """Wait until nothing runs, no progress shows, the page has reached its last part and its charts are drawn."""
        self.page.evaluate(STILL, [IDLE, 350, PATIENCE * 1000])
        self.note_tracebacks()

    def note_tracebacks(self) -> None:
        """Count what the page shows of an exception among the complaints."""
        if not self.page.is_closed():
            found = self.page.locator("[data-testid=stException]").all_inner_texts()
            self.errors += [f"exception on {self.page.url}: {text}" for text in found]

    def settle(self, pause: int = 350) -> None:
        """Wait until the script rests and the page has not changed for so many milliseconds."""
        self.page.evaluate(STILL, [IDLE, pause])

    def metrics(self) -> dict[str, str]:
        """Value of every metric on the screen by its label."""
        return {
            one.locator("[data-testid=stMetricLabel] p").inner_text(): value(one)
            for one in self.page.locator("[data-testid=stMetric]").all()
        }

    def live(self) -> str:
        """The live score in the bar at the left."""
        return self.page.locator(LIVE).inner_text()

    def await_live(self, wanted: str) -> None:
        """Wait until the live score reads `wanted`; says what it reads otherwise."""
        end = time.monotonic() + 60
        while self.live() != wanted:
            if time.monotonic() > end:
                raise AssertionError(f"the live score is {self.live()}, not {wanted}; {self.page.url}")
            self.page.wait_for_timeout(100)
        self.settle()

    def layers(self) -> list[int]:
        """The layers pressed in the bar."""
        pressed = self.page.locator(f'{SIDEBAR} [aria-label="Layers, averaged"] button[aria-pressed=true]')
        return [int(text) for text in pressed.all_inner_texts()]

    def k(self) -> int:
        return int(self.page.locator(K).input_value())

    def variant(self) -> str:
        """The name of the variant chosen in the bar."""
        box = self.page.locator(f"{SIDEBAR} [data-testid=stSelectbox]").filter(has_text="Variant")
        return box.locator("input").input_value()

    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.page.url).query)

    def choose(self, label: str, option: str) -> None:
        """Pick an option of a selectbox in the bar."""
        box = self.page.locator(f"{SIDEBAR} [data-testid=stSelectbox]").filter(has_text=label)
        line, field = self.page.get_by_role("option", name=option, exact=True), box.locator("input")
        pick(line, field, lambda: field.input_value() == option)

    def charts(self) -> list[Locator]:
        """Charts that are on the screen (not behind a tab)."""
        return [one for one in self.page.locator(CHART).all() if one.is_visible()]


def swipe(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    """A finger that touches the page, goes straight on in ten steps, and lets go."""
    finger = page.context.new_cdp_session(page)
    for step in range(11):
        x, y = (a + (b - a) * step / 10 for a, b in zip(start, end, strict=True))
        kind = "touchMove" if step else "touchStart"
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
    finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def pick(option: Locator, opener: Locator, chosen: Callable[[], bool]) -> None:
    """Click an option of a list that `opener` opens, as often as a run that ends meanwhile closes it.

    A click of which nothing is heard for so long may have been taken, and then there is no such option any more.
    """
    for _ in range(10):
        if chosen():
            return
        if not option.is_visible():
            opener.click()
        with suppress(TimeoutError):
            option.click(timeout=5000)
            return
    option.click()


def value(metric: Locator) -> str:
    return metric.locator("[data-testid=stMetricValue] p").inner_text()


def chart_of(page: Page, key: str) -> Locator:
    """The chart with this key, once it is drawn."""
    chart = page.locator(f".st-key-{key} {CHART}")
    chart.wait_for()
    page.wait_for_function(f"document.querySelector('.st-key-{key} {CHART}')?._fullData?.length > 0")
    return chart


def traces(chart: Locator) -> list[dict]:
    """Type, name and number of points of each trace of a chart."""
    return chart.evaluate(
        "g => g._fullData.map(t => ({type: t.type, name: t.name, points: (t.x || t.z || []).length}))"
    )


def drawn(chart: Locator) -> int:
    """Marks of a chart in the DOM that have an extent on the screen."""
    return chart.evaluate(
        """g => [...g.querySelectorAll(
            '.barlayer path, .scatterlayer .js-line, .scatterlayer .point, .heatmaplayer image')]
            .filter(e => { const r = e.getBoundingClientRect(); return r.width + r.height > 1 }).length"""
    )


def coloured(chart: Locator) -> float:
    """Share of a chart's pixels that are neither its background nor grey: what WebGL has painted."""
    chart.scroll_into_view_if_needed()
    pixels = np.asarray(Image.open(io.BytesIO(chart.screenshot())).convert("RGB")).astype(int)
    return float(np.mean(pixels.max(axis=2) - pixels.min(axis=2) > 40))


def cell(chart: Locator, i: int, j: int) -> tuple[float, float]:
    """Pixel of the middle of heatmap cell (row i, column j), on the screen."""
    chart.scroll_into_view_if_needed()
    x, y = chart.evaluate(
        """(g, [i, j]) => { const box = g.querySelector('.nsewdrag').getBoundingClientRect(), l = g._fullLayout;
            return [box.x + l.xaxis.d2p(j), box.y + l.yaxis.d2p(i)] }""",
        [i, j],
    )
    return x, y


def widest(visit: Visit) -> int:
    """Width of what the page wants to show; more than the window's means it scrolls sideways."""
    return visit.page.evaluate(
        "Math.max(document.documentElement.scrollWidth, document.querySelector('[data-testid=stMain]').scrollWidth)"
    )


def unnamed(page: Page) -> list[str]:
    """What a visitor could press, tick or fill in, but that a screen reader has no name for."""
    return page.evaluate(
        """() => [...document.querySelectorAll(
            'button, input, textarea, select, a[href], [role=button], [role=tab], [role=slider], [role=radio]')]
            .filter(e => { const r = e.getBoundingClientRect(); return r.width * r.height > 0 && e.type !== 'file' })
            // What a closed expander or a closed bar holds has a size, and cannot be reached.
            .filter(e => e.checkVisibility({ visibilityProperty: true }))
            .filter(e => !(e.getAttribute('aria-label') || e.title || e.innerText?.trim() || e.labels?.[0]?.innerText
                || e.querySelector('[aria-label], [alt]')
                || document.getElementById(e.getAttribute('aria-labelledby'))?.innerText))
            .map(e => e.outerHTML.slice(0, 200))"""
    )


def skipping(page: Page) -> list[str]:
    """Headings that lie more than a level below the one before, so that a screen reader tells of one that is not."""
    return page.evaluate(
        """() => [...document.querySelectorAll('h1, h2, h3, h4, h5, h6')].filter(e => e.checkVisibility())
            .filter((e, i, all) => e.tagName[1] - (all[i - 1]?.tagName[1] ?? 1) > 1)
            .map(e => `${e.tagName} ${e.innerText}`)"""
    )


def faint(page: Page) -> list[str]:
    """Text of the page whose contrast with what lies behind it is below WCAG AA, for controls that are off below 2."""
    return page.evaluate(
        """() => {
            const parse = text => (([r, g, b, a = 1]) => [r, g, b, a])(text.match(/[\\d.]+/g).map(Number))
            const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat(1)
            const linear = v => v > .04045 ? ((v + .055) / 1.055) ** 2.4 : v / 12.92
            const light = c => c.slice(0, 3).map(v => linear(v / 255))
                .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0)
            const opacity = e => e ? getComputedStyle(e).opacity * opacity(e.parentElement) : 1
            const behind = e => {
                const layers = []
                for (let one = e; one; one = one.parentElement)
                    layers.push(parse(getComputedStyle(one).backgroundColor))
                return layers.reverse().reduce((below, one) => over(one, below), [255, 255, 255, 1])
            }
            const found = new Set()
            for (const root of document.querySelectorAll('[data-testid=stMain], [data-testid=stSidebar]'))
                for (const e of root.querySelectorAll('p, li, label, h1, h2, h3, button, a, [data-tag]')) {
                    const box = e.getBoundingClientRect(), style = getComputedStyle(e)
                    if (!box.width || !e.innerText?.trim() || style.visibility === 'hidden') continue
                    if (parse(style.color)[3] * opacity(e) < 0.1) continue
                    const off = e.closest('[disabled], [aria-disabled=true], label:has(:disabled)')
                    if (e.closest('[data-testid^=stSlider], .js-plotly-plot')) continue
                    if (e.closest('[data-stale=true]')) continue  // pale while its successor is awaited
                    const back = behind(e), ink = parse(style.color)
                    const a = light(over([...ink.slice(0, 3), ink[3] * opacity(e)], back)), b = light(back)
                    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05)
                    if (ratio < (off ? 2 : parseFloat(style.fontSize) >= 24 ? 3 : 4.5))
                        found.add(`${ratio.toFixed(2)} ${e.tagName} ${e.innerText.trim().slice(0, 50)}`)
                }
            return [...found]
        }"""
    )


def cut_off(page: Page) -> list[str]:
    """Headline numbers, their labels and changes that end in dots because they lack room, and lines over pictures.

    And choices beside which there are others that their box does not show.
    """
    return page.evaluate(
        """() => [
            ...[...document.querySelectorAll('[data-testid=stMetric] p, [data-testid=stMetricDelta] *')]
                .filter(e => e.clientWidth && e.scrollWidth > e.clientWidth + 1),
            ...[...document.querySelectorAll('[data-testid=stMultiSelectTagsContainer]')]
                .filter(e => [...e.querySelectorAll('[data-tag]')]
                    .some(one => one.getBoundingClientRect().right > e.getBoundingClientRect().right)),
            ...[...document.querySelectorAll('[class*=st-key-line-]')]
                .filter(e => e.scrollHeight > e.clientHeight + 16),  // the margin below words counts as theirs
        ].map(e => e.innerText.slice(0, 80))"""
    )


def whole_page(visit: Visit, path: Path, width: int) -> None:
    """A picture of the page from its title to its last line."""
    page = visit.page
    if page.viewport_size["width"] != width:
        page.set_viewport_size({"width": width, "height": 1000})
        visit.settle(150)
    height = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    page.set_viewport_size({"width": width, "height": max(1000, min(int(height) + 20, 5000))})
    visit.settle(150)
    page.screenshot(path=path)
