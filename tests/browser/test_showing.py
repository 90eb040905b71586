"""What pages show: question, charts and the package's numbers, in light and dark, on wide and narrow screens."""

import csv
import time
from itertools import pairwise
from urllib.parse import urlencode

import pytest
from drawings import LABELS, all_figures, contrast
from driving import (
    ARTEFACTS,
    CHART,
    IDLE,
    STILL,
    chart_of,
    coloured,
    cut_off,
    drawn,
    faint,
    skipping,
    traces,
    unnamed,
    whole_page,
    widest,
)
from questions import ON_DEMAND, QUESTIONS

import whitelab
from whitelab.scoring.setting import Setting
from whitelab.sweeps import layer_profiles
from whitelab.ui.frame.page_zip import _alone
from whitelab.ui.widgets.chart import Shown

pytestmark = pytest.mark.browser

# What is opened, and the pages that are walked to from there by the links at the top.
LAST = ("anisotropy", "whitening", "uniformity")  # looked at in the last layer, the others in the first
WALKS = {
    "": [name for name in QUESTIONS if name not in (*LAST, "compare", "training")],
    f"{LAST[0]}?layers=6": LAST,
    "compare?models=bundled": ["compare"],  # a second model would be embedded first
    "training": ["training"],  # whose link the row at the top has no room for
}
PAPER = {"light": "rgb(255, 255, 255)", "dark": "rgb(17, 22, 29)"}


# Numbers on the screen are the package's numbers


def overview(shown, demo, scored):
    """The scores of every variant."""
    metrics = shown.metrics()
    assert metrics["Spearman, raw"] == scored(whitening="none")
    assert metrics["Spearman, PCA whitening"] == shown.live() == scored()
    numbers = chart_of(shown.page, "scores").evaluate("g => g._fullLayout.annotations.map(one => one.text)")
    names = ("none", "center", "standardize", "pca", "zca", "cholesky")
    assert numbers == [scored(whitening=name) for name in names]


def anisotropy(shown, demo, scored):
    """The measures of the layer, and the curve over all layers."""
    metrics, raw, white = (
        shown.metrics(),
        *(layer_profiles.shape(demo, Setting.parse(text)) for text in ("L6", "L6:pca")),
    )
    assert metrics["Mean cosine, raw"] == f"{raw.mean_cosine:.3f}"
    assert metrics["Participation ratio, raw"] == f"{raw.participation_ratio:.1f}"
    assert metrics["Participation ratio, PCA whitening"] == f"{white.participation_ratio:.1f}"
    drawn_raw = shown.charts()[0].evaluate("g => Array.from(g._fullData.find(t => t.name === 'Raw').y)")
    wanted = [one.mean_cosine for one in layer_profiles.layer_shapes(demo, (Setting(),))]
    assert drawn_raw == pytest.approx(wanted, abs=1e-9)


def uniformity(shown, demo, scored):
    """The two losses of the layer."""
    raw, metrics = layer_profiles.losses(demo, Setting((6,))), shown.metrics()
    assert metrics["Alignment, raw"] == f"{raw.alignment:.3f}"
    assert metrics["Uniformity, raw"] == f"{raw.uniformity:.3f}"


def dimensions(shown, demo, scored):
    """The score for every k, and the best of them."""
    curve = whitelab.k_curve(demo, Setting.parse("L1:pca"))
    metrics = shown.metrics()
    assert metrics["Best k"] == str(curve.best_k)
    assert metrics["Knee"] == str(curve.knee)
    painted = shown.charts()[0].evaluate("g => Array.from(g._fullData.find(t => t.name === 'PCA whitening').y)")
    assert painted == pytest.approx(curve.spearman, abs=1e-9)


def layers(shown, demo, scored):
    """The score in every cell."""
    labels = shown.charts()[0].locator(".textpoint").all_text_contents()
    found = whitelab.layer_pairs(demo, Setting())
    wanted = [f"{found[i, j].spearman:.1f}" for i in range(7) for j in range(7)]
    assert sorted(labels) == sorted(wanted)


def whitening(shown, demo, scored):
    """Scores and differences with their intervals."""
    specs = ("none", "center", "pca", "zca", "soft")
    scores = [whitelab.score(demo, Setting((6,), spec)) for spec in specs]
    found = whitelab.paired(demo, scores).against(0)
    points = "g => g._fullData.map(t => [t.x[0], t.x[0] - t.error_x.arrayminus[0], t.x[0] + t.error_x.array[0]])"
    left, right = shown.charts()[:2]
    assert left.evaluate(points) == [pytest.approx((one.score.spearman, one.low, one.high)) for one in found]
    wanted = [(one.difference.estimate, one.difference.low, one.difference.high) for one in found]
    assert right.evaluate(points) == [pytest.approx(one) for one in wanted]


NUMBERS = {one.__name__: one for one in (overview, anisotropy, uniformity, dimensions, layers, whitening)}


# What is on the screen


def test_every_page_shows_the_packages_numbers_and_paints_its_charts_in_light_and_dark(
    app, visit, demo, scored, subtests
):
    shown, seen = visit(app), []
    for path, names in WALKS.items():
        for name in names:
            shown.page.set_viewport_size({"width": 1440, "height": 1000})
            shown.page.emulate_media(color_scheme="light")
            shown.open(path) if name == names[0] else shown.follow(name)
            with subtests.test(name):
                if name in NUMBERS:
                    NUMBERS[name](shown, demo, scored)
                in_every_light_and_width(shown, name)
            seen.append(name)
    assert sorted(seen) == sorted(QUESTIONS)


def paint(page, scheme):
    """Light or dark, once the page has it."""
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function(
        f"getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor === '{PAPER[scheme]}'"
    )


def in_every_light_and_width(shown, name):
    """The page asks its question, draws its charts, and hides, cuts and fades nothing."""
    page = shown.page
    for width, scheme in ((1440, "light"), (390, "dark")):  # room knows no scheme
        paint(page, scheme)
        whole_page(shown, ARTEFACTS / f"{name}-{scheme}-{width}.jpg", width)
        assert page.locator("h1").inner_text() == QUESTIONS[name]
        assert page.title() == f"{name.capitalize()} · whitelab"
        assert page.locator("[data-testid=stAlertContentError]").count() == 0
        assert bool(shown.charts()) == (name not in ON_DEMAND)
        for chart in shown.charts():
            assert all(trace["points"] for trace in traces(chart)), traces(chart)
            assert drawn(chart) > 0
            box = chart.bounding_box()
            assert box["width"] > 0.5 * min(width, 600)
            assert 0 <= box["x"] <= box["x"] + box["width"] <= width
        assert widest(shown) <= width, "the page scrolls sideways"
        assert cut_off(page) == []
        assert unnamed(page) == []
        assert skipping(page) == []
        assert faint(page) == []
        if width == 1440:  # where the bar is open, whose dark colours the narrow window would not show
            paint(page, "dark")
            assert faint(page) == []
        assert page.get_by_text("Demonstration set written for this project").last.is_visible()
    for figure in page.locator("[data-testid=stPlotlyChart]").all():
        assert len(figure.get_attribute("aria-label")) > 20


def test_the_links_at_the_top_keep_a_long_setting_and_no_headline_is_cut_where_the_room_is_less(app, visit, tmp_path):
    every = whitelab.load("demo")  # whose sentences are encoded; so many pairs span more than k directions
    rows = list(zip(every.first, every.second, every.gold, strict=True))[::4]
    with (tmp_path / "pairs.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("sentence1", "sentence2", "score"), *rows])
    setting = {"layers": ["2"], "k": ["100"], "fit": ["Cross-fitted halves"], "aggregate": ["mean"]}
    setting |= {"whitening": ["Soft whitening"], "data": [str(tmp_path / "pairs.csv")]}
    shown = visit(app, "light", 1280)
    page = shown.open("?" + urlencode(setting, doseq=True))
    for name in ("overview", "anisotropy", "whitening", "layers", "dimensions", "uniformity"):
        page.set_viewport_size({"width": 1280, "height": 1000})
        shown.follow(name)
        assert shown.query() == setting
        for width in (1280, 768):
            page.set_viewport_size({"width": width, "height": 1000})
            shown.settle(150)
            assert cut_off(page) == [], (name, width)
            assert widest(shown) <= width, (name, width)
            assert page.evaluate(MARKED) == (width == 1280 or "more"), (name, width)


def test_on_a_phone_a_box_shows_all_that_is_chosen_in_it(app, visit):
    shown = visit(app, "light", 390)
    shown.open("whitening")
    assert shown.page.locator("[data-tag]").count() > 3
    assert cut_off(shown.page) == []


def test_three_headline_numbers_are_equally_wide_where_a_window_is_narrow(app, visit):
    numbers = visit(app, "light", 768).open("advise").get_by_test_id("stMetric")
    widths = numbers.evaluate_all("all => all.map(one => Math.round(one.getBoundingClientRect().width))")
    assert len(widths) == 3
    assert len(set(widths)) == 1


# True where every page has its name in the bar, and else what stands for those that fold, if it is marked.
MARKED = """() => {
    const bar = document.querySelector("[data-testid=stTopNav]"), folded = bar.querySelector("[inert] [aria-current]")
    const more = bar.querySelector(".rc-overflow-item-rest:not([inert]) button")
    if (!more) return true
    return folded && getComputedStyle(more).backgroundColor === "rgba(0, 0, 0, 0)" ? "not marked" : "more"
}"""


COVERED = """() => {
    const boxes = selector => [...document.querySelectorAll(selector)].map(one => [one, one.getBoundingClientRect()])
    const meet = (a, b) => a.width && a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
    const bars = boxes("[data-testid=stElementToolbar], .modebar")
    return boxes("[data-testid=stMain] :is(p, button, .main-svg)").filter(([words, own]) => own.width
        && bars.some(([bar, box]) => !bar.contains(words) && meet(box, own))).map(([words]) => words.textContent)
}"""


def test_on_a_phone_no_tool_bar_covers_words_or_a_chart(app, phone):
    phone.goto(f"{app}/whitening")
    phone.get_by_text("Show the code").wait_for(state="attached")
    phone.get_by_test_id("stElementToolbar").nth(2).wait_for(state="attached")
    phone.wait_for_selector(".js-plotly-plot .draglayer", state="attached")
    phone.evaluate(STILL, [IDLE, 350])
    assert phone.evaluate(COVERED) == []


# What the links to the pages were called, from the first moment.
LISTED = """window.listed = new Set()
new MutationObserver(() => {
    for (const link of document.querySelectorAll("[data-testid=stSidebarNavLink]")) window.listed.add(link.innerText)
}).observe(document, { childList: true, subtree: true })"""


def test_before_the_first_run_has_begun_the_bar_lists_no_files(app, tab):
    tab.set_viewport_size({"width": 1440, "height": 900})
    tab.add_init_script(LISTED)
    tab.goto(f"{app}/lessons")
    tab.get_by_role("link", name="Dimensions").wait_for()
    assert tab.evaluate("[...listed]") == []  # they stand at the top


def test_the_first_visitor_after_a_start_reads_why_there_is_no_page_yet(launch, tab):
    tab.goto(launch())
    words = tab.get_by_text("whitelab is loading PyTorch")
    words.wait_for()
    tab.get_by_role("heading", name=QUESTIONS["overview"]).wait_for()
    words.wait_for(state="detached")


# Nothing hears of the room on paper, as when a browser prints.
DEAF = """window.ResizeObserver = class extends ResizeObserver {
    constructor(hear) { super((...seen) => matchMedia("print").matches || hear(...seen)) }
}"""


@pytest.mark.parametrize("width", [1440, 390])
def test_on_paper_charts_are_laid_out_as_in_the_window_and_made_to_fit_and_words_fill_it(app, tab, width):
    tab.set_viewport_size({"width": width, "height": 1000})
    tab.add_init_script(DEAF)
    tab.goto(app)
    tab.get_by_text("Show the code").wait_for(state="attached")
    tab.wait_for_selector(".js-plotly-plot .draglayer", state="attached")
    tab.evaluate(STILL, [IDLE, 350])
    widths = "all => all.map(one => one._fullLayout.width)"
    before = tab.locator(CHART).evaluate_all(widths)
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")  # as the browser does before it prints
    tab.emulate_media(media="print")
    for paper in (718, 1047, 484):  # A4, lying and A5, within their margins
        tab.set_viewport_size({"width": paper, "height": 1000})
        tab.evaluate(STILL, [IDLE, 350])
        assert tab.locator(CHART).evaluate_all(widths) == before
        edges = tab.locator(f"{CHART} .nsewdrag").evaluate_all(  # of what is plotted, which may stand out of its chart
            "all => all.map(one => one.getBoundingClientRect().right)"
        )
        assert min(paper, width) / 2 < max(edges) <= paper
        assert tab.get_by_test_id("stMainBlockContainer").bounding_box()["width"] == pytest.approx(paper, abs=2)


# Where a sheet may not end, of each heading and of the caption below it; and what is there to be pressed or opened.
KEPT = """() => [...document.querySelectorAll("[data-testid=stMain] :is(h2, h3)")].flatMap(heading => {
    const one = heading.closest("[data-testid=stElementContainer]"), next = one.nextElementSibling
    const words = next?.querySelector("[data-testid=stCaptionContainer]") ? [next] : []
    return [one, ...words].map(each => [each.textContent, getComputedStyle(each).breakAfter])
})"""
PRESSED = "[data-testid=stMain] :is([data-testid$=Button], [data-testid=stTooltipIcon], summary, .modebar):visible"


def test_on_paper_nothing_is_to_be_pressed_and_a_heading_and_its_caption_stay_with_what_they_are_of(app, visit):
    page = visit(app).open("")
    assert page.locator(PRESSED).count() > 9
    page.emulate_media(media="print")
    assert page.locator(PRESSED).count() == 0
    kept = page.evaluate(KEPT)
    assert any(text.startswith("Each layer alone") for text, _ in kept)
    assert {after for _, after in kept} == {"avoid"}
    heights = page.get_by_test_id("stMetric").evaluate_all("all => all.map(one => getComputedStyle(one).minHeight)")
    assert set(heights) == {"0px"}
    page.emulate_media(media="screen")


def test_on_paper_the_sentences_of_an_open_list_stand(app, visit):
    page = visit(app).open("anisotropy?space=Neighbours&inspect=man")
    page.get_by_text("sentences have that").click()
    found = page.locator("[class*=st-key-inspect-] button:visible")
    found.first.wait_for()
    listed = found.all_inner_texts()
    page.emulate_media(media="print")
    assert found.all_inner_texts() == listed
    page.emulate_media(media="screen")


# What is dark on the page: boxes as wide as a chart, what charts stand on, their words and lines, by their lightness.
DARK = """() => {
    const light = colour => (([r, g, b, a = 1]) => a ? (r + g + b) / 765 : 1)(colour.match(/[\\d.]+/g).map(Number))
    const of = (selector, what) => [...document.querySelectorAll(selector)]
        .filter(one => one.getBoundingClientRect().width).map(one => light(getComputedStyle(one)[what]))
    return { boxes: of("body, [data-testid=stMain], [data-testid=stMain] div, .main-svg", "backgroundColor"),
        words: of(".js-plotly-plot :is(.xtick, .ytick, .xtitle, .ytitle, .legend) text", "fill"),
        lines: of(".js-plotly-plot .gridlayer path", "stroke") }
}"""


def test_on_paper_the_dark_theme_has_the_inks_of_the_light_one(app, visit):
    page = visit(app, "dark").open("dimensions")  # of boxes, tables and charts
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    before = page.evaluate(DARK)
    assert min(before["boxes"]) < 0.1
    assert min(before["words"]) > 0.8
    page.emulate_media(media="print")
    found = page.evaluate(DARK)
    assert min(found["boxes"]) > 0.9
    assert max(found["words"]) < 0.45
    assert min(found["lines"]) > 0.85
    assert faint(page) == []
    page.emulate_media(media="screen")
    assert page.evaluate(DARK) == before


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_choice_has_all_of_its_border_and_an_empty_one_is_seen(scheme, app, visit):
    page = visit(app, scheme).open("anisotropy?lesson=1&step=3", ready=False)
    ring = page.get_by_test_id("stRadioOption").first.locator("> div > div").first
    colour = ring.evaluate("e => getComputedStyle(e).borderTopColor")
    assert contrast(as_hex(colour), as_hex(PAPER[scheme])) >= 3
    beside = page.locator("[role=radio][aria-checked=true] + [role=radio]").first
    edges = beside.evaluate("e => [getComputedStyle(e).borderLeftColor, getComputedStyle(e).borderTopColor]")
    assert edges[0] == edges[1]


def as_hex(colour: str) -> str:
    """`rgb(27, 100, 159)` -> `#1B649F`."""
    return "#{:02X}{:02X}{:02X}".format(*map(int, colour[4:-1].split(",")))


RING = "[data-testid=stTopNavLink], [data-testid=stPageLink-NavLink], [data-testid=stCheckbox] label"  # that show it


def test_every_control_of_the_bar_is_reached_by_keyboard_and_links_and_switches_that_are_have_a_ring(app, visit):
    page = visit(app).open("")
    reached, rings = set(), set()
    ring = f"""(e => e ? [[e.dataset.testid ?? e.tagName, getComputedStyle(e).outlineStyle].join()] : [])(
        document.activeElement.matches('a, input') && document.activeElement.closest('{RING}'))"""
    for _ in range(60):
        page.keyboard.press("Tab")
        name = page.evaluate(
            "(e => e.getAttribute('aria-label') || e.labels?.[0]?.innerText || e.innerText)(document.activeElement)"
        )
        reached |= {name.split(".")[0]} if name else set()
        rings.update(page.evaluate(ring))
    page.get_by_test_id("stPageLink-NavLink").first.focus()
    rings.update(page.evaluate(ring))
    wanted = {"k, kept dimensions", "Anisotropy", "Mean", "0"}
    assert wanted <= reached, reached
    assert any("Variant" in name for name in reached), reached
    assert rings == {"stTopNavLink,solid", "stPageLink-NavLink,solid", "LABEL,solid"}


def test_no_key_reaches_a_control_of_the_bar_while_it_is_closed(app, visit):
    page = visit(app, width=768).open("")
    places = []
    for _ in range(30):
        page.keyboard.press("Tab")
        places.append(page.evaluate("document.activeElement.getBoundingClientRect().right"))
    assert min(places) > 0
    assert len({*places}) > 5


# A figure that leaves its page


def test_the_titles_of_the_plane_stand_apart_however_many_names_its_legend_has(chromium):
    whole = _alone(Shown(all_figures()["plane"], None, {"model": "bundled"})).to_html(include_plotlyjs=True)
    assert len(LABELS) > 12
    titles = ".xtitle, .colorbar text[class$=title], .gtitle"
    for width in (700, 390):
        page = chromium.new_page(viewport={"width": width, "height": 900})
        page.set_content(whole)
        page.wait_for_selector(".gtitle")
        boxes = page.locator(titles).evaluate_all("all => all.map(one => one.getBoundingClientRect().toJSON())")
        edges = sorted((box["top"], box["bottom"]) for box in boxes)
        assert len(edges) == 3
        assert all(above[1] <= below[0] for above, below in pairwise(edges)), (width, edges)
        page.close()


# What WebGL paints


def until_coloured(chart, share):
    """Wait until so much of a chart is painted."""
    end = time.monotonic() + 60
    while (found := coloured(chart)) <= share:
        assert time.monotonic() < end, f"only {100 * found:.2f} % of the chart is coloured"


@pytest.mark.parametrize(("dims", "kind"), [(2, "scattergl"), (3, "scatter3d")])
def test_the_pca_projection_is_painted(dims, kind, app, visit, demo):
    page = visit(app).open(f"anisotropy?dims={dims}")
    page.get_by_role("tab", name="Projection").click()
    chart = chart_of(page, "projection-chart")
    until_coloured(chart, 0.02)
    assert traces(chart) == [{"type": kind, "name": "gold", "points": demo.n_sentences}]
    chart.screenshot(path=ARTEFACTS / f"projection-pca-{dims}d.png")


def test_the_pairs_are_painted_before_and_after_and_named_when_pointed_at(app, visit, demo):
    shown = visit(app)
    page = shown.open("whitening")
    page.get_by_role("tab", name="Gold and cosine").click()
    for number in (0, 1):
        chart = chart_of(page, f"scatter-{number}")
        assert [trace["points"] for trace in traces(chart)] == [demo.n_pairs]
        until_coloured(chart, 0.01)
    texts = chart.evaluate("g => g._fullData[0].text.slice(0, 3)")
    assert all("gold" in text and "rank" in text for text in texts)
