"""What moves a page: the knobs of the bar, clicks in charts, links, searches that grow and can be cancelled."""

import csv
import re
from urllib.parse import urlencode

import pytest
from driving import ARTEFACTS, CHART, IDLE, SIDEBAR, STILL, K, cell, chart_of, swipe, traces
from questions import QUESTIONS
from tiny import build_model, write_pairs

import whitelab
from whitelab.scoring.setting import Setting

pytestmark = pytest.mark.browser


# Knobs and clicks


def test_the_dimensions_page_gives_its_data_and_follows_keys_a_switch_and_a_click(app, visit, demo, scored, tmp_path):
    shown = visit(app)
    page = shown.open("dimensions?k=193")
    shown.await_live(scored(k=193))
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Data (CSV)").first.click()
    assert waiting.value.suggested_filename == "whitelab-k-curve.csv"
    waiting.value.save_as(tmp_path / "curve.csv")
    with (tmp_path / "curve.csv").open() as file:
        rows = list(csv.DictReader(file))
    made = {"model": demo.origin.model, "task": "demo", "split": "all", "page_setting": "mean/L1:pca@193"}
    lines = ["k", "spearman", "explained", *demo.subset_names, "cross_fitted", "whitening", "center"]
    assert list(rows[0]) == [*lines, *made]
    assert all(made.items() <= row.items() for row in rows)
    curve = whitelab.k_curve(demo, Setting.parse("L1:pca"))
    assert [int(row["k"]) for row in rows] == list(range(1, demo.dim + 1))
    assert [float(row["spearman"]) for row in rows] == pytest.approx(curve.spearman)
    rival = whitelab.k_curve(demo, Setting.parse("L1:center"))
    assert [float(row["center"]) for row in rows] == pytest.approx(rival.spearman)

    slider = page.locator(K)
    slider.focus()
    page.keyboard.press("ArrowLeft")
    page.get_by_text("Spearman at k = 192", exact=True).wait_for()
    shown.await_live(scored(k=192))
    assert shown.k() == 192
    metrics = shown.metrics()
    assert metrics["Spearman at k = 192"] == shown.live()
    assert metrics["Memory saved"] == "50 %"
    assert shown.query()["k"] == ["192"]
    curves = shown.charts()[0]
    before = [trace["name"] for trace in traces(curves)]
    assert "chosen: k = 192" in before

    page.get_by_text("One line for each subset").click()
    page.wait_for_function(f"document.querySelector('{CHART}')?._fullData?.length > {len(before)}")
    assert len(traces(curves)) == len(before) + demo.n_subsets + 1  # their name in the legend

    slider.focus()
    page.keyboard.press("Home")
    shown.await_live(scored(k=1))
    assert shown.metrics()["Memory saved"] == "99.7 %"

    surface = chart_of(page, "k-surface")
    column, k = surface.evaluate("g => { const i = 40; return [i, g._fullData[1].customdata[i][1]] }")
    page.mouse.click(*cell(surface, 4, column))
    shown.await_live(scored(layers=(4,), k=k))
    assert (shown.layers(), shown.k()) == ([4], k)


def test_a_click_in_any_chart_of_the_layers_page_takes_its_layers_into_the_workspace(app, visit, demo, scored):
    shown = visit(app)
    page = shown.open("layers")
    whitened = shown.charts()[1]
    page.mouse.click(*cell(whitened, 2, 4))
    shown.await_live(scored(layers=(2, 4)))
    shown.complete()
    assert shown.layers() == [2, 4]
    assert sorted(shown.query()["layers"]) == ["2", "4"]
    value = whitelab.layer_pairs(demo, Setting.parse("L0:pca"))[2, 4].spearman
    assert shown.live() == f"{value:.2f}"
    grid = shown.charts()[1].evaluate("g => g._fullData[0].z.map(row => Array.from(row))")
    assert f"{grid[2][4]:.2f}" == f"{grid[4][2]:.2f}" == shown.live()
    found = whitelab.search_subsets(demo, Setting())
    row, listed = next((i, one.layers) for i, one in enumerate(found.ranking.top) if len(one.layers) == 3)
    best = found.ranking.best_by_size[5]
    for chart, place, wanted in (
        (shown.charts()[0], (5, 5), (5,)),
        (chart_of(page, "subset-ranking"), (row, 2), listed),
        (chart_of(page, "size-curve"), (best.spearman, 5), best.layers),
    ):
        page.mouse.click(*cell(chart, *place))
        shown.await_live(scored(layers=wanted))
        assert shown.layers() == list(wanted)


def test_a_finger_that_swipes_over_a_chart_scrolls_the_page_and_a_tap_is_a_click(app, phone):
    phone.goto(f"{app}/layers")
    phone.wait_for_selector(".js-plotly-plot .draglayer", state="attached")
    phone.evaluate(STILL, [IDLE, 350])
    scrolled = "() => document.querySelector('[data-testid=stMain]').scrollTop"
    for chart in phone.locator(".js-plotly-plot").all()[:2]:
        chart.scroll_into_view_if_needed()
        box = chart.bounding_box()
        before, x, y = phone.evaluate(scrolled), box["x"] + box["width"] / 2, box["y"] + 0.7 * box["height"]
        swipe(phone, (x, y), (x, y - 120))
        phone.wait_for_timeout(400)
        assert phone.evaluate(scrolled) > before + 60
    heatmap = phone.locator(".js-plotly-plot").nth(1)
    heatmap.scroll_into_view_if_needed()
    phone.wait_for_timeout(400)
    phone.touchscreen.tap(*cell(heatmap, 2, 4))
    phone.wait_for_url(re.compile(r"layers=2&layers=4|layers=4&layers=2"))


def test_on_a_phone_every_page_is_in_the_bar_and_choosing_one_shows_it(app, phone):
    phone.goto(f"{app}/overview?layers=2")  # as a hand may type it; Streamlit knows the first page by no name
    phone.get_by_text(QUESTIONS["overview"]).wait_for()
    assert phone.get_by_role("dialog").count() == 0
    phone.get_by_text("Show the code").wait_for(state="attached")  # all of it is there, the knobs in the bar too
    phone.wait_for_function("window.whitelabBar")  # which a first visit has up to some seconds later
    for name, question in list(QUESTIONS.items())[-1:0:-6]:
        phone.get_by_test_id("stExpandSidebarButton").tap()
        phone.get_by_test_id("stSidebarNavLink").filter(has_text=re.compile(f"^{name}$", re.IGNORECASE)).tap()
        phone.get_by_text(question).wait_for()
        phone.locator("[data-testid=stSidebar][data-collapsed=true]").wait_for(state="attached")
        phone.wait_for_url(re.compile("layers=2"))


@pytest.mark.parametrize("width", [390, 768])
def test_who_opens_the_bar_by_keyboard_stands_at_its_beginning_and_who_closes_it_where_it_opens(app, visit, width):
    page = visit(app, width=width, height=844).open("")
    page.wait_for_function("window.whitelabBar")
    opens = page.get_by_test_id("stExpandSidebarButton")
    opens.focus()
    for _ in range(2):
        page.keyboard.press("Enter")
        page.wait_for_function("document.activeElement.dataset.testid === 'stSidebarContent'")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.ariaLabel") == "Collapse sidebar"
        page.keyboard.press("Enter")
        page.wait_for_function("document.activeElement.dataset.testid === 'stExpandSidebarButton'")
    if width == 390:
        page.keyboard.press("Enter")
        page.get_by_test_id("stSidebarNavLink").filter(has_text="Layers").focus()
        page.keyboard.press("Enter")
        page.get_by_text(QUESTIONS["layers"]).wait_for()
        page.wait_for_function("document.activeElement.dataset.testid === 'stExpandSidebarButton'")


# Searches over layers


def test_a_whitened_search_grows_before_the_eyes_and_can_be_replaced_cancelled_and_started_again(app, visit, demo):
    shown = visit(app)
    page = shown.open("layers?k=77")
    total = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    page.get_by_text("The bar's variant", exact=True).click()
    line = page.locator(".st-key-line-subsets")
    line.get_by_text(re.compile(r"\d+ of \d+ subsets")).wait_for()
    names = "document.querySelector('.st-key-size-curve .js-plotly-plot')?._fullData?.map(t => t.name)"
    page.wait_for_function(f"{names}?.includes('PCA whitening, k = 77')")
    page.screenshot(path=ARTEFACTS / "layers-searching-light-1440.png")
    assert abs(page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight") - total) < 60  # no jump
    shown.choose("Variant", "Cholesky whitening")
    page.wait_for_function(f"{names}?.includes('Cholesky whitening, k = 77')")
    line.get_by_role("button", name="Cancel").click()
    page.get_by_text("Scoring subsets of layers was cancelled.").wait_for()
    page.get_by_role("button", name="Start again").click()
    line.get_by_text("scored in").wait_for()
    shown.complete()
    assert re.match(r"\d+ subsets scored in", line.inner_text())
    best = tuple(map(int, shown.metrics()["Best subset, Cholesky whitening, k = 77"].split(" + ")))
    of_sizes = "g => Array.from(g._fullData.find(t => t.name === 'Cholesky whitening, k = 77').y)"
    top = max(chart_of(page, "size-curve").evaluate(of_sizes))
    assert top == pytest.approx(whitelab.score(demo, Setting(best, "cholesky", 77)).spearman)


# The address


def test_a_copied_link_reopens_the_same_view(app, visit, scored):
    first = visit(app)
    page = first.open("dimensions?layers=2&layers=3&k=60")
    first.choose("Variant", "ZCA whitening")
    page.locator(SIDEBAR).get_by_text("[CLS]", exact=True).click()
    page.get_by_text("cls pooling").last.wait_for()
    first.complete()
    link, shown = page.url.removeprefix(app), (first.live(), first.k(), first.layers(), first.metrics())
    second = visit(app)
    second.open(link.removeprefix("/"))
    assert (second.live(), second.k(), second.layers(), second.metrics()) == shown
    assert second.page.get_by_text("cls pooling").last.is_visible()
    assert second.variant() == "ZCA whitening"
    assert shown[0] != scored(layers=(2, 3), k=60)  # mean pooling would show another number


def test_a_link_spelled_by_hand_stands_in_the_address_as_the_app_writes_it(app, visit, scored):
    shown = visit(app)
    page = shown.open("uniformity?layers=-1,2&whitening=soft&pooling=cls&positives=ge4&k=77")
    page.wait_for_function("() => /whitening=Soft/.test(location.search) && /gold/.test(location.search)")
    seen = shown.live(), shown.layers(), shown.variant(), shown.query()
    assert seen[3]["layers"] == ["2", "6"]
    assert seen[3]["pooling"] == ["[CLS]"]
    page.reload()
    shown.complete()
    assert (shown.live(), shown.layers(), shown.variant(), shown.query()) == seen
    assert seen[0] != scored(layers=(2, 6), whitening="soft", k=77)  # mean pooling would show another number


def test_going_back_from_a_link_spelled_by_hand_goes_to_where_one_came_from(app, visit):
    shown, before = visit(app), f"{app}/_stcore/health"
    shown.open("uniformity")  # whose model is loaded from here on
    shown.page.goto(before)
    slow = shown.context.new_cdp_session(shown.page)
    slow.send("Emulation.setCPUThrottlingRate", {"rate": 6})  # the app is heard of sooner than its page is drawn
    page = shown.open("uniformity?layers=-1,2&whitening=soft&pooling=cls&positives=ge4")
    slow.send("Emulation.setCPUThrottlingRate", {"rate": 1})
    page.wait_for_function("() => window.whitelabSteps")  # which may come after all that is seen
    page.go_back()
    page.wait_for_url(before)


# Goes back as soon as Streamlit has put a link in its own words, mostly before the page can know of it: where the page
# was first, that took no step.
HASTY = """let left = false
for (const way of ["pushState", "replaceState"]) {
    const put = history[way]
    history[way] = function (...step) {
        if (left && !window.whitelabSteps) return
        put.apply(this, step)
        if (left || new URL(step[2], location.href).search) return
        left = true
        history.back()
    }
}"""


# Puts a link in other words before the page is drawn: without a step, as the app does, and with two, as Streamlit does.
REWORDED = """if (navigation.activation.navigationType === "push") addEventListener("DOMContentLoaded", () => {
    history.replaceState(history.state, "", location.href + "&once")
    for (const more of ["&twice", "&thrice"]) history.pushState(history.state, "", location.href + more)
})"""


@pytest.mark.parametrize("denied", [False, True], ids=["", "nothing can be stored"])
def test_back_and_forward_go_over_the_steps_in_which_a_link_was_put_in_other_words(app, stranger, denied):
    page, before, end = stranger(), f"{app}/_stcore/health", re.compile("&twice&thrice$")
    page.goto(before)
    if denied:
        page.add_init_script("Object.defineProperty(window, 'sessionStorage', {get() { throw new Error('denied') }})")
    page.add_init_script(REWORDED)
    page.goto(f"{app}/uniformity?layers=2")
    page.wait_for_function("() => window.whitelabSteps")
    page.go_back()
    page.wait_for_url(before)
    if not denied:
        for go in (page.go_forward, page.reload):
            go()
            page.wait_for_function("() => window.whitelabSteps")
            page.wait_for_url(end)
        page.get_by_role("link", name="Layers", exact=True).first.click()
        page.wait_for_url(re.compile("/layers"))
        page.go_back()
        page.wait_for_url(end)
        page.go_back()
        page.wait_for_url(before)


@pytest.mark.parametrize("anew", ["reloads", "comes back"])
def test_who_goes_back_and_reloads_or_comes_back_is_where_one_was(app, visit, anew):
    shown = visit(app)
    page = shown.open("whitening?layers=2")
    for name in ("dimensions", "layers"):
        shown.follow(name)
    page.go_back()
    page.wait_for_url(re.compile("/dimensions"))
    shown.complete()
    if anew == "reloads":
        page.reload()
    else:
        page.goto(f"{app}/_stcore/health")
        page.go_back()
    page.wait_for_function("() => window.whitelabSteps")
    shown.complete()
    assert page.url.startswith(f"{app}/dimensions")
    page.go_back()
    page.wait_for_url(re.compile("/whitening"))


def test_the_only_layer_stays_where_it_is_taken_out_and_that_is_no_step(app, visit):
    shown = visit(app)
    page = shown.open("whitening?layers=6")
    shown.follow("dimensions")
    page.get_by_test_id("stSidebar").get_by_role("button", name="6", exact=True).click()
    page.wait_for_timeout(1500)  # Streamlit has put the address twice
    shown.complete()
    assert (shown.layers(), shown.query()["layers"]) == ([6], ["6"])
    page.go_back()
    page.get_by_role("heading", name=QUESTIONS["whitening"]).wait_for()
    shown.complete()
    assert (shown.layers(), shown.query()["layers"]) == ([6], ["6"])


def test_open_code_stays_open_while_it_takes_in_what_was_asked_for(app, visit):
    shown = visit(app)
    page = shown.open("whitening?k=1")
    code = page.locator("details", has=page.get_by_text("Show the code", exact=True))
    code.locator("summary").click()
    code.get_by_text("whitelab.score").first.wait_for()
    page.get_by_role("button", name="Store in fewer bits").click()
    code.get_by_text("whitelab.frontier").first.wait_for()


def test_who_goes_back_before_the_page_is_drawn_is_taken_on_to_where_one_came_from(app, stranger):
    page, before = stranger(), f"{app}/_stcore/health"
    page.goto(before)
    page.add_init_script(HASTY)
    page.goto(f"{app}/uniformity?layers=-1,2&whitening=soft", wait_until="commit")
    page.wait_for_url(before)


def test_going_back_with_a_k_of_ones_own_goes_to_the_page_before(app, visit):
    shown = visit(app)
    page = shown.open("whitening?k=70")
    for name in ("Dimensions", "Layers"):
        page.get_by_role("link", name=name, exact=True).first.click()
        page.get_by_role("heading", name=QUESTIONS[name.lower()]).wait_for()
        shown.complete()
        assert (shown.k(), shown.query()["k"]) == (70, ["70"])
    page.locator(K).press("ArrowRight")
    page.wait_for_function("() => /k=71/.test(location.search)")
    for name in ("dimensions", "whitening"):
        page.go_back()
        page.get_by_role("heading", name=QUESTIONS[name]).wait_for()
        shown.complete()
        assert (shown.k(), shown.query()["k"]) == (71, ["71"])


def test_a_reload_keeps_the_workspace(app, visit, tmp_path):
    model, pairs = str(build_model(tmp_path / "model")), write_pairs(tmp_path / "pairs.csv")  # which stand on no list
    space, _ = whitelab.embed_pairs(whitelab.load_encoder(model), whitelab.load(pairs))
    shown, wanted = visit(app), f"{whitelab.score(space, Setting.parse('L2:pca@20')).spearman:.2f}"
    page = shown.open("layers?" + urlencode({"model": model, "data": pairs, "layers": 2, "k": 20}))
    shown.await_live(wanted)
    page.reload()
    shown.complete()
    assert (shown.live(), shown.k(), shown.layers()) == (wanted, 20, [2])


def test_a_link_clicked_before_the_address_was_read_keeps_what_it_said(app, visit, tmp_path):
    shown, model = visit(app), f"{tmp_path}/nothing"
    slow = shown.context.new_cdp_session(shown.page)
    slow.send("Emulation.setCPUThrottlingRate", {"rate": 6})
    page = shown.open(f"?model={model}", ready=False)
    page.locator("[data-testid=stAlert]").filter(has_text="must be a folder").first.wait_for()
    page.get_by_role("link", name="Layers", exact=True).first.click()
    slow.send("Emulation.setCPUThrottlingRate", {"rate": 1})
    page.get_by_role("heading", name=QUESTIONS["layers"]).wait_for()
    shown.settle()
    box = page.locator(f"{SIDEBAR} [data-testid=stSelectbox]").filter(has_text="Model").locator("input")
    assert box.input_value() == model
    assert shown.query()["model"] == [model]
