"""What pages show: question, charts and the package's numbers, in light and dark, on wide and narrow screens."""

import pytest
from driving import ARTEFACTS, CHART, chart_of, coloured, cut_off, drawn, faint, traces, unnamed, whole_page, widest
from questions import QUESTIONS

import whitelab
from whitelab.scoring.setting import Setting
from whitelab.sweeps import layer_profiles

pytestmark = pytest.mark.browser

PATHS = {name: "" if name == "overview" else name for name in QUESTIONS}
ON_DEMAND = ("compare", "training")  # nothing to draw before a button is pressed
PAPER = {"light": "rgb(255, 255, 255)", "dark": "rgb(17, 22, 29)"}


# What is on the screen


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_page_asks_its_question_and_paints_its_charts_in_light_and_dark(name, app, visit):
    shown = visit(app)
    page = shown.open(PATHS[name])
    for width, scheme in ((1440, "light"), (1440, "dark"), (390, "dark"), (390, "light")):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(
            f"getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor === '{PAPER[scheme]}'"
        )
        whole_page(shown, ARTEFACTS / f"{name}-{scheme}-{width}.png", width)
        assert page.locator("h1").inner_text() == QUESTIONS[name]
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
        assert faint(page) == []
        assert page.get_by_text("Demonstration set written for this project").last.is_visible()
    for figure in page.locator("[data-testid=stPlotlyChart]").all():
        assert len(figure.get_attribute("aria-label")) > 20


@pytest.mark.parametrize("width", [1280, 768])
def test_no_headline_is_cut_where_the_room_is_less_and_the_setting_longer(width, app, visit):
    shown = visit(app, "light", width)
    for name in ("", "anisotropy", "whitening", "layers", "dimensions", "uniformity"):
        page = shown.open(f"{name}?layers=1&k=100&fit=cross&aggregate=mean&whitening=soft")
        assert cut_off(page) == [], name
        assert widest(shown) <= width


def test_every_control_of_the_bar_is_reached_by_keyboard(app, visit):
    page = visit(app).open("")
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        name = page.evaluate(
            "(e => e.getAttribute('aria-label') || e.labels?.[0]?.innerText || e.innerText)(document.activeElement)"
        )
        reached |= {name.split(".")[0]} if name else set()
    wanted = {"k, kept dimensions", "Anisotropy", "Mean", "0"}
    assert wanted <= reached, reached
    assert any("Variant" in name for name in reached), reached


# Numbers on the screen are the package's numbers


def test_the_overview_shows_the_scores_of_the_package(app, visit, scored):
    shown = visit(app)
    shown.open("")
    metrics = shown.metrics()
    assert metrics["Spearman, raw"] == scored(whitening="none")
    assert metrics["Spearman, PCA whitening"] == shown.live() == scored()
    bars = chart_of(shown.page, "scores").evaluate("g => g._fullData[0].text.map(t => t)")
    names = ("none", "center", "standardize", "pca", "zca", "cholesky")
    assert list(bars) == [scored(whitening=name) for name in names]


def test_the_anisotropy_page_shows_the_measures_of_the_package(app, visit, demo):
    shown = visit(app)
    shown.open("anisotropy?layers=6")
    metrics, raw, white = (
        shown.metrics(),
        *(layer_profiles.shape(demo, Setting.parse(text)) for text in ("L6", "L6:pca")),
    )
    assert metrics["Mean cosine, Raw"] == f"{raw.mean_cosine:.3f}"
    assert metrics["Participation ratio, Raw"] == f"{raw.participation_ratio:.1f}"
    assert metrics["Participation ratio, PCA whitening"] == f"{white.participation_ratio:.1f}"
    drawn_raw = shown.charts()[0].evaluate("g => Array.from(g._fullData.find(t => t.name === 'Raw').y)")
    wanted = [one.mean_cosine for one in layer_profiles.layer_shapes(demo, (Setting(),))]
    assert drawn_raw == pytest.approx(wanted, abs=1e-9)


def test_the_uniformity_page_shows_the_losses_of_the_package(app, visit, demo):
    shown = visit(app)
    shown.open("uniformity?layers=6")
    raw, metrics = layer_profiles.losses(demo, Setting((6,))), shown.metrics()
    assert metrics["Alignment, Raw"] == f"{raw.alignment:.3f}"
    assert metrics["Uniformity, Raw"] == f"{raw.uniformity:.3f}"


def test_best_k_on_the_screen_is_the_best_of_the_curve(app, visit, demo):
    shown = visit(app)
    shown.open("dimensions")
    curve = whitelab.k_curve(demo, Setting.parse("L1:pca"))
    metrics = shown.metrics()
    assert metrics["Best k"] == str(curve.best_k)
    assert metrics["Knee"] == str(curve.knee)
    painted = shown.charts()[0].evaluate("g => Array.from(g._fullData.find(t => t.name === 'PCA whitening').y)")
    assert painted == pytest.approx(curve.spearman, abs=1e-9)


def test_every_heatmap_cell_is_labelled_with_its_score(app, visit, demo):
    shown = visit(app)
    shown.open("layers")
    labels = shown.charts()[0].locator(".heatmap-label").all_text_contents()
    found = whitelab.layer_pairs(demo, Setting())
    wanted = [f"{found[i, j].spearman:.1f}" for i in range(7) for j in range(7)]
    assert sorted(labels) == sorted(wanted)


def test_the_whitening_page_draws_scores_and_differences_of_the_package(app, visit, demo):
    shown = visit(app)
    shown.open("whitening?layers=6")
    specs = ("none", "center", "pca", "zca", "soft")
    scores = [whitelab.score(demo, Setting((6,), spec)) for spec in specs]
    found = whitelab.paired(demo, scores).against(0)
    points = "g => g._fullData.map(t => [t.x[0], t.x[0] - t.error_x.arrayminus[0], t.x[0] + t.error_x.array[0]])"
    left, right = shown.charts()[:2]
    assert left.evaluate(points) == [pytest.approx((one.score.spearman, one.low, one.high)) for one in found]
    wanted = [(one.difference.estimate, one.difference.low, one.difference.high) for one in found]
    assert right.evaluate(points) == [pytest.approx(one) for one in wanted]


# Projection and download


@pytest.mark.parametrize(("dims", "kind"), [(2, "scattergl"), (3, "scatter3d")])
def test_the_pca_projection_is_painted(dims, kind, app, visit, demo):
    shown = visit(app)
    page = shown.open("anisotropy" + ("?dims=3" if dims == 3 else ""))
    page.get_by_role("tab", name="Projection").click()
    chart = page.locator(f".st-key-projection-chart {CHART}")
    chart.wait_for()
    page.wait_for_function(f"document.querySelector('.st-key-projection-chart {CHART}')?._fullData?.length > 0")
    page.wait_for_timeout(1500)
    assert traces(chart) == [{"type": kind, "name": "gold", "points": demo.values.shape[1]}]
    share = coloured(chart)
    chart.screenshot(path=ARTEFACTS / f"projection-pca-{dims}d.png")
    assert share > 0.02, f"only {100 * share:.2f} % of the chart is coloured"


def test_the_umap_projection_is_painted_by_subset(app, visit, demo):
    shown = visit(app)
    page = shown.open("anisotropy?method=UMAP&colour=subset")
    page.get_by_role("tab", name="Projection").click()
    chart = page.locator(f".st-key-projection-chart {CHART}")
    chart.wait_for()
    page.wait_for_timeout(1500)
    assert len(traces(chart)) == demo.n_subsets
    assert sum(trace["points"] for trace in traces(chart)) == demo.values.shape[1]
    chart.screenshot(path=ARTEFACTS / "projection-umap-2d.png")
    assert coloured(chart) > 0.02


def test_the_pairs_are_painted_before_and_after_and_named_when_pointed_at(app, visit, demo):
    shown = visit(app)
    page = shown.open("whitening")
    page.get_by_role("tab", name="Gold and cosine").click()
    page.wait_for_function("document.querySelectorAll('.st-key-scatter-1 .js-plotly-plot').length > 0")
    shown.complete()
    page.wait_for_timeout(1500)
    for number in (0, 1):
        chart = page.locator(f".st-key-scatter-{number} {CHART}")
        assert [trace["points"] for trace in traces(chart)] == [demo.n_pairs]
        assert coloured(chart) > 0.01
    texts = page.locator(f".st-key-scatter-1 {CHART}").evaluate("g => g._fullData[0].text.slice(0, 3)")
    assert all("gold" in text and "rank" in text for text in texts)
