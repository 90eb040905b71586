"""`python -m tests.helpers.pictures`: the README's film and stills, taken of the app as it is, into docs/.

The film: the number follows the hand that moves k, a layer's pill says what it would change and the bars follow, and a
prediction meets its answer. A still of each page goes into docs/pages/.
"""

import io
import re
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from tests.helpers.driving import FLAGS, SIDEBAR, K, Visit, serve
from tests.helpers.processes import ROOT
from tests.helpers.questions import QUESTIONS

FILM, STILLS = ROOT / "docs" / "film.gif", ROOT / "docs" / "pages"
SIZE = {"width": 1240, "height": 840}
COLOURS = 96
# Screenshots show no pointer, and a hand is what the film is about.
POINTER = """() => {
    const dot = document.createElement('div')
    dot.style = 'position:fixed;z-index:999999;width:18px;height:18px;border-radius:50%;pointer-events:none;' +
        'background:rgba(214,51,108,.55);border:2px solid #fff;transform:translate(-50%,-50%);left:-50px'
    document.body.append(dot)
    addEventListener('mousemove', e => { dot.style.left = e.clientX + 'px'; dot.style.top = e.clientY + 'px' }, true)
}"""


class Film:
    """Frames of a page, each with how long it is shown."""

    def __init__(self, visit: Visit) -> None:
        self.page, self.frames, self.times = visit.page, [], []

    def take(self, milliseconds: int) -> None:
        """One frame of what the page shows now."""
        picture = Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")
        self.frames.append(picture.quantize(COLOURS, dither=Image.Dither.NONE))
        self.times.append(milliseconds)

    def move(self, start: tuple[float, float], end: tuple[float, float], frames: int, each: int = 60) -> None:
        """The pointer from one place to another, filmed."""
        for i in range(1, frames + 1):
            self.page.mouse.move(*(a + (b - a) * i / frames for a, b in zip(start, end, strict=True)))
            self.take(each)

    def write(self, path: Path) -> None:
        """The frames as one animated file that repeats."""
        first, *others = self.frames
        first.save(path, save_all=True, append_images=others, duration=self.times, loop=0, optimize=True)


def middle(locator) -> tuple[float, float]:
    """Pixel in the middle of an element."""
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def film(visit: Visit) -> Film:
    """The three scenes."""
    page, shot = visit.open(""), Film(visit)
    page.evaluate(POINTER)
    page.mouse.move(800, 500)
    page.mouse.wheel(0, 300)  # headlines and bars both in sight; the bar at the left stays
    page.wait_for_timeout(500)
    slider = page.locator(K)
    box = slider.bounding_box()
    height = box["y"] + box["height"] / 2
    at = [(box["x"] + share * box["width"], height) for share in (0.985, 0.18)]
    page.mouse.move(*at[0])
    shot.take(900)
    page.mouse.down()
    shot.move(*at, frames=16)
    page.mouse.up()
    visit.settle()
    shot.take(1200)
    pill = page.locator(f'{SIDEBAR} [aria-label="Layers, averaged"] button').nth(5)
    shot.move(at[1], middle(pill), frames=5)
    page.wait_for_selector("[data-gain]")
    shot.take(1500)
    page.mouse.click(*middle(pill))
    shot.take(700)
    visit.settle()
    shot.take(1500)
    page.goto(f"{visit.base}/?lesson=4&step=1")
    field = page.locator(".st-key-lesson input[type=number]")
    field.wait_for()
    visit.settle()
    page.evaluate(POINTER)
    shot.take(2200)
    field.click()
    for character in "62":
        page.keyboard.type(character)
        shot.take(250)
    page.get_by_role("button", name="Predict", exact=True).click()
    page.locator(".st-key-lesson").get_by_text(re.compile("^(Right|Not as measured)")).first.wait_for()
    visit.settle()
    shot.take(4000)
    return shot


def main() -> None:
    """Serve the app, film it, and take a still of every page."""
    STILLS.mkdir(parents=True, exist_ok=True)
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        server = serve(Path(folder) / "store", Path(folder) / "server.log")
        try:
            Visit.start(browser, server.url).open("")  # embeds the sentences
            shot = film(Visit.start(browser, server.url, **SIZE))
            shot.write(FILM)
            for name in (*QUESTIONS, "lessons"):
                visit = Visit.start(browser, server.url, width=1280, height=900)
                visit.open("" if name == "overview" else name, ready=name != "lessons")
                visit.page.wait_for_timeout(4000)
                picture = Image.open(io.BytesIO(visit.page.screenshot())).convert("RGB")
                picture.quantize(COLOURS, dither=Image.Dither.NONE).save(STILLS / f"{name}.png", optimize=True)
                visit.context.close()
        finally:
            server.stop()
            browser.close()
    print(f"{len(shot.frames)} frames, {FILM.stat().st_size / 1e6:.2f} MB; {len(QUESTIONS)} stills in {STILLS}")


if __name__ == "__main__":
    main()
