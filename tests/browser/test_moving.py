"""What moves a page: the knobs of the bar, clicks in charts, links, searches that grow and can be cancelled."""

import re
from urllib.parse import parse_qs

import pytest
from driving import ARTEFACTS, CHART, SIDEBAR, K, cell, chart_of, traces
from questions import QUESTIONS

import whitelab
from whitelab.scoring.setting import Setting

pytestmark = pytest.mark.browser

PCA = "PCA whitening"


def test_the_pages_are_reached_by_the_links_at_the_top(app, visit):
    shown = visit(app)
    page = shown.open("?layers=2&layers=3&k=100")
    for name in ("anisotropy", "whitening", "layers", "dimensions", "uniformity"):
        page.get_by_role("link", name=name.capitalize(), exact=True).first.click()
        page.get_by_role("heading", name=QUESTIONS[name]).wait_for()
        shown.complete()
        assert shown.query() == {"layers": ["2", "3"], "k": ["100"]}


# Knobs


def test_the_k_slider_moves_by_keyboard_and_everything_follows(app, visit, scored):
    shown = visit(app)
    page = shown.open("dimensions?k=193")
    shown.await_live(scored(k=193))
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
    names = [trace["name"] for trace in traces(shown.charts()[0])]
    assert "chosen: k = 192" in names
    slider.focus()
    page.keyboard.press("Home")
    shown.await_live(scored(k=1))
    assert shown.metrics()["Memory saved"] == "100 %"


def test_one_line_for_each_subset_on_demand(app, visit, demo):
    shown = visit(app)
    page = shown.open("dimensions")
    before = len(traces(shown.charts()[0]))
    page.get_by_text("One line for each subset").click()
    page.wait_for_function(f"document.querySelector('{CHART}')?._fullData?.length > {before}")
    assert len(traces(shown.charts()[0])) == before + demo.n_subsets


def test_a_click_on_a_cell_takes_its_layers_into_the_workspace(app, visit, demo, scored):
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
    page.wait_for_timeout(700)  # sooner, the next click would be the second of a double click
    page.mouse.click(*cell(shown.charts()[0], 5, 5))
    shown.await_live(scored(layers=(5,)))
    assert shown.layers() == [5]


# Searches over layers


def test_a_click_on_a_line_of_the_ranking_takes_its_layers(app, visit, demo, scored):
    shown = visit(app)
    page = shown.open("layers")
    found = whitelab.search_subsets(demo, Setting())
    row, wanted = next((i, one.layers) for i, one in enumerate(found.ranking.top) if len(one.layers) == 3)
    page.mouse.click(*cell(chart_of(page, "subset-ranking"), row, 2))
    shown.await_live(scored(layers=wanted))
    shown.complete()
    assert shown.layers() == list(wanted)


def test_a_click_on_the_size_curve_takes_the_best_of_that_size(app, visit, demo, scored):
    shown = visit(app)
    page = shown.open("layers")
    best = whitelab.search_subsets(demo, Setting()).ranking.best_by_size[5]
    page.mouse.click(*cell(chart_of(page, "size-curve"), best.spearman, 5))
    shown.await_live(scored(layers=best.layers))
    assert shown.layers() == list(best.layers)


def test_a_whitened_search_grows_before_the_eyes_and_can_be_replaced_by_another(app, visit, demo):
    shown = visit(app)
    page = shown.open("layers?k=77")
    total = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    page.get_by_text("The workspace's variant", exact=True).click()
    line = page.locator(".st-key-subsets-line")
    line.get_by_text(re.compile(r"\d+ of \d+ subsets")).wait_for()
    names = "document.querySelector('.st-key-size-curve .js-plotly-plot')?._fullData?.map(t => t.name)"
    page.wait_for_function(f"{names}?.includes('PCA whitening, k = 77')")
    page.screenshot(path=ARTEFACTS / "layers-searching-light-1440.png")
    assert abs(page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight") - total) < 60  # no jump
    shown.choose("Variant", "Cholesky whitening")
    page.wait_for_function(f"{names}?.includes('Cholesky whitening, k = 77')")
    shown.complete()
    line.get_by_text("subsets", exact=False).wait_for()
    found = whitelab.search_subsets(demo, Setting((0,), "cholesky", 77))
    assert line.inner_text().startswith(f"{found.scored} subsets scored in")
    assert shown.metrics()["Best subset, Cholesky whitening, k = 77"] == " + ".join(map(str, found.best.layers))


def test_a_search_can_be_cancelled_and_started_again(app, visit):
    shown = visit(app)
    page = shown.open("layers?k=55")
    page.get_by_text("The workspace's variant", exact=True).click()
    page.locator(".st-key-subsets-line").get_by_role("button", name="Cancel").click()
    page.get_by_text("Scoring subsets of layers was cancelled.").wait_for()
    page.get_by_role("button", name="Start again").click()
    page.locator(".st-key-subsets-line").get_by_text("scored in").wait_for()


def test_a_click_on_the_surface_takes_layer_and_k(app, visit, scored):
    shown = visit(app)
    page = shown.open("dimensions")
    chart = chart_of(page, "k-surface")
    column, k = chart.evaluate("g => { const i = 40; return [i, g._fullData[1].customdata[i][1]] }")
    page.mouse.click(*cell(chart, 4, column))
    shown.await_live(scored(layers=(4,), k=k))
    assert (shown.layers(), shown.k()) == ([4], k)


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


@pytest.mark.parametrize(
    "link", ["whitening?layers=3&k=50&whitening=ZCA+whitening", "data?layers=5&k=30", "training?layers=2&layers=4&k=70"]
)
def test_a_deep_link_may_be_the_first_request_of_a_server(link, launch, visit, scored):
    server, (name, query) = launch(), link.split("?")
    shown, asked = [visit(server), visit(server)], parse_qs(query)
    for one in shown:  # the second asks before the first has been answered
        one.open(link, ready=False)
    for one in shown:
        one.complete()
        assert one.page.locator("h1").inner_text() == QUESTIONS[name]
        assert one.page.get_by_role("link", name="Dimensions", exact=True).first.is_visible()
        assert one.page.get_by_role("dialog").count() == 0
        layers, k, variant = tuple(map(int, asked["layers"])), int(asked["k"][0]), asked.get("whitening", [PCA])[0]
        assert (tuple(one.layers()), one.k(), one.variant()) == (layers, k, variant)
        assert one.live() == scored(layers=layers, k=k)  # ZCA scores as PCA does
    shown[0].page.get_by_role("link", name="Uniformity", exact=True).first.click()
    shown[0].page.get_by_role("heading", name=QUESTIONS["uniformity"]).wait_for()
    shown[0].complete()
    assert shown[0].layers() == shown[1].layers()


def test_a_reload_keeps_the_workspace(app, visit, scored):
    shown = visit(app)
    page = shown.open("layers?layers=4&k=200")
    shown.await_live(scored(layers=(4,), k=200))
    page.reload()
    shown.complete()
    assert (shown.live(), shown.k(), shown.layers()) == (scored(layers=(4,), k=200), 200, [4])


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
