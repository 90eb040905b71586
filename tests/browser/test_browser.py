"""The app as a user meets it: started as the README says, in a real browser, and read off the screen."""

import csv
import random
import re
from urllib.parse import urlencode
from zipfile import ZipFile

import numpy as np
import pytest
from questions import QUESTIONS
from sentence_transformers import SentenceTransformer
from tiny import SENTENCES, build_model, write_pairs

import whitelab
from whitelab.datasets import open_sheet
from whitelab.encoding.embeddings import embed_pairs
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.setting import Protocol
from whitelab.sweeps import layer_profiles
from whitelab.sweeps import layer_subsets as subsets
from whitelab.whitening.export import from_npz

from .driving import ARTEFACTS, CHART, SIDEBAR, K, cell, coloured, drawn, traces, whole_page, widest

pytestmark = pytest.mark.browser

PATHS = {name: "" if name == "overview" else name for name in QUESTIONS}
# On the screen at first.
CHARTS = {
    "overview": 2,
    "data": 2,
    "anisotropy": 2,
    "whitening": 4,
    "layers": 5,
    "dimensions": 2,
    "uniformity": 1,
    "compare": 0,
    "probe": 3,
    "training": 0,
}


# What is on the screen


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_page_asks_its_question_and_paints_its_charts_in_light_and_dark(name, width, app, visit):
    shown = visit(app, "light", width)
    page = shown.open(PATHS[name])
    for scheme, background in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(17, 22, 29)")):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(
            f"getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor === '{background}'"
        )
        whole_page(shown, ARTEFACTS / f"{name}-{scheme}-{width}.png", width)
        assert page.locator("h1").inner_text() == QUESTIONS[name]
        assert page.locator("[data-testid=stException]").count() == 0
        assert page.locator("[data-testid=stAlertContentError]").count() == 0
        assert len(shown.charts()) == CHARTS[name]
        for chart in shown.charts():
            assert all(trace["points"] for trace in traces(chart)), traces(chart)
            assert drawn(chart) > 0
            box = chart.bounding_box()
            assert box["width"] > 0.5 * min(width, 600)
            assert 0 <= box["x"] <= box["x"] + box["width"] <= width
        assert widest(shown) <= width, "the page scrolls sideways"
        assert page.get_by_text("Demonstration set written for this project").last.is_visible()
    for figure in page.locator("[data-testid=stPlotlyChart]").all():
        assert len(figure.get_attribute("aria-label")) > 20


def test_the_pages_are_reached_by_the_links_at_the_top(app, visit):
    shown = visit(app)
    page = shown.open("?layers=2&layers=3&k=100")
    for name in ("anisotropy", "whitening", "layers", "dimensions", "uniformity"):
        page.get_by_role("link", name=name.capitalize(), exact=True).first.click()
        page.get_by_role("heading", name=QUESTIONS[name]).wait_for()
        shown.complete()
        assert shown.query() == {"layers": ["2", "3"], "k": ["100"]}


# Numbers on the screen are the package's numbers


def test_the_overview_shows_the_scores_of_the_package(app, visit, scored):
    metrics = visit(app)
    metrics.open("")
    shown = metrics.metrics()
    assert shown["Spearman, raw"] == scored(whitening="none")
    assert shown["Spearman, PCA whitening"] == shown["Spearman x 100, live"] == scored()
    bars = metrics.charts()[0].evaluate("g => g._fullData[0].text.map(t => t)")
    names = ("none", "center", "standardize", "pca", "zca", "cholesky")
    assert list(bars) == [scored(whitening=name) for name in names]


def test_the_anisotropy_page_shows_the_measures_of_the_package(app, visit, demo):
    shown = visit(app)
    shown.open("anisotropy?layers=6")
    metrics, raw, white = shown.metrics(), *(layer_profiles.profile(demo, (6,), name) for name in ("none", "pca"))
    assert metrics["Mean cosine, raw"] == f"{raw.mean_cosine:.3f}"
    assert metrics["Participation ratio, raw"] == f"{raw.participation_ratio:.1f}"
    assert metrics["Participation ratio, PCA"] == f"{white.participation_ratio:.1f}"
    drawn_raw = shown.charts()[0].evaluate("g => Array.from(g._fullData.find(t => t.name === 'Raw').y)")
    wanted = [one.mean_cosine for one in layer_profiles.layer_profiles(demo, ("none",))]
    assert drawn_raw == pytest.approx(wanted, abs=1e-9)


def test_the_uniformity_page_shows_the_losses_of_the_package(app, visit, demo):
    shown = visit(app)
    shown.open("uniformity?layers=6")
    raw, metrics = layer_profiles.profile(demo, (6,), "none"), shown.metrics()
    assert metrics["Alignment, raw"] == f"{raw.alignment:.3f}"
    assert metrics["Uniformity, raw"] == f"{raw.uniformity:.3f}"


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


def test_best_k_on_the_screen_is_the_best_of_the_curve(app, visit, demo):
    shown = visit(app)
    shown.open("dimensions")
    curve = whitelab.k_curve(demo, (1, 6), "pca", "all")
    metrics = shown.metrics()
    assert metrics["Best k"] == str(curve.best_k)
    assert metrics["Knee"] == str(curve.knee)
    painted = shown.charts()[0].evaluate("g => Array.from(g._fullData.find(t => t.name === 'PCA whitening').y)")
    assert painted == pytest.approx(curve.spearman, abs=1e-9)


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
    value = whitelab.layer_pairs(demo, "pca")[2, 4].spearman
    assert shown.live() == f"{value:.2f}"
    grid = shown.charts()[1].evaluate("g => g._fullData[0].z.map(row => Array.from(row))")
    assert f"{grid[2][4]:.2f}" == f"{grid[4][2]:.2f}" == shown.live()
    page.wait_for_timeout(700)  # sooner, the next click would be the second of a double click
    page.mouse.click(*cell(shown.charts()[0], 5, 5))
    shown.await_live(scored(layers=(5,)))
    assert shown.layers() == [5]


def test_every_heatmap_cell_is_labelled_with_its_score(app, visit, demo):
    shown = visit(app)
    shown.open("layers")
    labels = shown.charts()[0].locator(".heatmap-label").all_text_contents()
    found = whitelab.layer_pairs(demo, "none")
    wanted = [f"{found[i, j].spearman:.1f}" for i in range(7) for j in range(7)]
    assert sorted(labels) == sorted(wanted)


# Searches over layers


def chart_of(page, key):
    """The chart with this key, once it is drawn."""
    chart = page.locator(f".st-key-{key} {CHART}")
    chart.wait_for()
    page.wait_for_function(f"document.querySelector('.st-key-{key} {CHART}')?._fullData?.length > 0")
    return chart


def test_a_click_on_a_line_of_the_ranking_takes_its_layers(app, visit, demo, scored):
    shown = visit(app)
    page = shown.open("layers")
    found = subsets.search(demo)
    row, wanted = next((i, one.layers) for i, one in enumerate(found.ranking.top) if len(one.layers) == 3)
    page.mouse.click(*cell(chart_of(page, "subset-ranking"), row, 2))
    shown.await_live(scored(layers=wanted))
    shown.complete()
    assert shown.layers() == list(wanted)


def test_a_click_on_the_size_curve_takes_the_best_of_that_size(app, visit, demo, scored):
    shown = visit(app)
    page = shown.open("layers")
    best = subsets.search(demo).ranking.best_by_size[5]
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
    found = subsets.search(demo, variant="cholesky", k=77)
    assert line.inner_text().startswith(f"{found.scored} subsets scored in")
    assert shown.metrics()["Best subset, Cholesky whitening"] == " + ".join(map(str, found.best.layers))


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


@pytest.mark.parametrize("width", [1440, 390])
def test_colour_bars_are_as_long_as_their_maps(app, visit, width):
    shown = visit(app, "light", width)
    for path, key in (("layers", "pairs-none"), ("dimensions", "k-surface")):
        chart = chart_of(shown.open(path), key)
        map_, bar = (
            chart.evaluate(f"g => g.querySelector('{part}').getBoundingClientRect().width")
            for part in (".nsewdrag", ".cboutline")
        )
        assert map_ > 0.6 * min(width, 500)
        assert abs(bar - map_) < 8


# The address


def test_a_copied_link_reopens_the_same_view_as_the_first_request_of_a_fresh_server(app, launch, visit, scored):
    first = visit(app)
    page = first.open("dimensions?layers=2&layers=3&k=60")
    first.choose("Variant", "ZCA whitening")
    page.locator(SIDEBAR).get_by_text("[CLS]", exact=True).click()
    page.get_by_text("cls pooling").last.wait_for()
    first.complete()
    link, shown = page.url.removeprefix(app), (first.live(), first.k(), first.layers(), first.metrics())
    second = visit(launch())
    second.open(link.removeprefix("/"))
    assert (second.live(), second.k(), second.layers(), second.metrics()) == shown
    assert second.page.locator("h1").inner_text() == QUESTIONS["dimensions"]
    assert second.page.get_by_text("cls pooling").last.is_visible()
    assert (
        second.page.locator(f"{SIDEBAR} [data-testid=stSelectbox]")
        .filter(has_text="Variant")
        .get_by_text("ZCA whitening")
        .count()
        or "ZCA whitening" in second.page.locator("[data-testid=stPlotlyChart]").first.inner_text()
    )
    assert shown[0] != scored(layers=(2, 3), k=60)  # mean pooling would show another number


def test_a_reload_keeps_the_workspace(app, visit, scored):
    shown = visit(app)
    page = shown.open("layers?layers=4&k=200")
    shown.await_live(scored(layers=(4,), k=200))
    page.reload()
    shown.complete()
    assert (shown.live(), shown.k(), shown.layers()) == (scored(layers=(4,), k=200), 200, [4])


# Long work


def test_embedding_can_be_cancelled_and_started_again(app, visit, tmp_path):
    words = sorted({word for text in whitelab.load("demo").sentences for word in text.split()})
    rng = random.Random(0)
    path = tmp_path / "long.tsv"
    rows = [(" ".join(rng.choices(words, k=40)), " ".join(rng.choices(words, k=40)), i % 6) for i in range(150)]
    path.write_text("sentence1\tsentence2\tscore\n" + "".join(f"{a}\t{b}\t{gold}\n" for a, b, gold in rows))
    shown = visit(app)
    page = shown.open(f"?data={path}&k=50", ready=False)
    page.get_by_text("Embedding 300 sentences of long").wait_for()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("Embedding 300 sentences of long was cancelled.").wait_for()
    page.get_by_role("button", name="Start again").click()
    shown.complete()
    assert page.get_by_text("150 pairs").last.is_visible()
    assert -100 <= float(shown.live()) <= 100


def test_a_wrong_model_name_is_explained_and_the_app_goes_on(app, visit, scored, tmp_path):
    shown = visit(app)
    page = shown.open(f"?model={tmp_path}/nothing", ready=False)
    alert = page.locator("[data-testid=stAlert]").filter(has_text="must be a folder")
    alert.first.wait_for()
    assert str(tmp_path) in alert.first.inner_text()
    page.screenshot(path=ARTEFACTS / "wrong-model-light-1440.png")
    page.get_by_role("link", name="Layers", exact=True).first.click()
    page.get_by_role("heading", name=QUESTIONS["layers"]).wait_for()
    shown.choose("Model", "all-MiniLM-L6-v2 (bundled)")
    shown.complete()
    assert shown.live() == scored()


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


def test_the_data_of_a_chart_can_be_downloaded(app, visit, demo, tmp_path):
    page = visit(app).open("dimensions")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Data (CSV)").first.click()
    assert waiting.value.suggested_filename == "whitelab-k-curve.csv"
    waiting.value.save_as(tmp_path / "curve.csv")
    with (tmp_path / "curve.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["k", "spearman", "explained", *demo.subset_names]
    curve = whitelab.k_curve(demo, (1, 6), "pca", "all")
    assert [int(row["k"]) for row in rows] == list(range(1, demo.dim + 1))
    assert [float(row["spearman"]) for row in rows] == pytest.approx(curve.spearman)


# The whitening page


def test_the_whitening_page_draws_scores_and_differences_of_the_package(app, visit, demo):
    shown = visit(app)
    shown.open("whitening?layers=6")
    specs = ("none", "center", "pca", "zca", "soft")
    scores = [whitelab.score(demo, Protocol("m", "d", "demo", "test", "mean", (6,), whitening=spec)) for spec in specs]
    found = whitelab.paired(demo, scores).against(0)
    points = "g => g._fullData.map(t => [t.x[0], t.x[0] - t.error_x.arrayminus[0], t.x[0] + t.error_x.array[0]])"
    left, right = shown.charts()[:2]
    assert left.evaluate(points) == [pytest.approx((one.score.spearman, one.low, one.high)) for one in found]
    wanted = [(one.difference.estimate, one.difference.low, one.difference.high) for one in found]
    assert right.evaluate(points) == [pytest.approx(one) for one in wanted]


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


def fitted(demo, spec="pca", k=None):
    return fit_scope(demo, (1, 6), spec, k).whiteners[0]


def test_the_npz_and_the_model_of_the_whitening_page_give_the_vectors_of_the_package(app, visit, demo, tmp_path):
    page = visit(app).open("whitening?k=64")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download .npz").click()
    assert waiting.value.suggested_filename == "all-MiniLM-L6-v2-layers-1-6-pca-k64.npz"
    waiting.value.save_as(tmp_path / "map.npz")
    whitener, protocol = from_npz(tmp_path / "map.npz")
    wanted = fitted(demo, k=64)
    x = demo.combine((1, 6))[:5]
    assert np.allclose(whitener(x), wanted(x))
    assert (protocol["whitening"], protocol["k"], protocol["sentences"]) == ("pca", 64, 3000)

    page.get_by_text("sentence-transformers", exact=True).click()
    page.get_by_role("button", name="Make the model folder").click()
    button = page.get_by_role("button", name="Download .zip")
    button.wait_for()
    with page.expect_download() as waiting:
        button.click()
    waiting.value.save_as(tmp_path / "model.zip")
    with ZipFile(tmp_path / "model.zip") as packed:
        packed.extractall(tmp_path)
    (folder,) = (one for one in tmp_path.iterdir() if one.is_dir())
    vectors = SentenceTransformer(str(folder), device="cpu").encode(list(whitelab.load("demo").sentences[:5]))
    assert np.allclose(vectors, wanted(x), atol=1e-4)
    assert not any(b"/tmp" in one.read_bytes() for one in folder.rglob("*.*") if one.suffix in (".json", ".md"))


# One's own data

VERBS = ("stands", "waits", "sleeps", "walks", "turns", "calls", "rests", "hunts", "bathes", "nests", "drinks", "hides")


def test_an_upload_is_used_here_and_is_gone_for_everyone_else(app, visit, cache, tmp_path):
    path = tmp_path / "mine.csv"
    rows = [(f"The heron {word} by the water.", f"A bird {word} on the shore.", i % 6) for i, word in enumerate(VERBS)]
    path.write_text("left,right,label\n" + "".join(f"{a},{b},{gold}\n" for a, b, gold in rows) + "one,two,high\n")
    shown = visit(app)
    page = shown.open("data?whitening=Centred")
    with page.expect_file_chooser() as waiting:
        page.locator(".st-key-pairs-file button", has_text="Upload").click()
    waiting.value.set_files(path)
    page.get_by_text("1 rows rejected").wait_for()
    page.get_by_role("button", name="Use this data").click()
    page.get_by_text("your upload: only this session sees it.").wait_for()
    shown.complete()
    pairs = open_sheet(path).pairs("left", "right", "label")
    space, report = embed_pairs(whitelab.load_encoder("bundled"), pairs, store=whitelab.Store(cache))
    assert report.encoded == 0
    wanted = whitelab.score(space, Protocol("m", "d", "t", "all", "mean", (1, 6), whitening="center")).spearman
    shown.await_live(f"{wanted:.2f}")
    page.screenshot(path=ARTEFACTS / "upload-light-1440.png", full_page=True)
    page.get_by_role("link", name="Uniformity", exact=True).first.click()
    page.get_by_role("heading", name=QUESTIONS["uniformity"]).wait_for()
    shown.complete()
    assert shown.live() == f"{wanted:.2f}"
    other = visit(app)
    there = other.open(page.url.removeprefix(f"{app}/"))
    there.get_by_text("uploaded in someone else's session").wait_for()
    assert "data" not in other.query()
    assert "heron" not in there.content()
    assert other.live() != shown.live()


def test_the_embeddings_of_a_space_come_back_as_vectors_without_a_model(app, visit, tmp_path, scored):
    shown = visit(app)
    page = shown.open("data")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Embeddings .npz").click()
    waiting.value.save_as(tmp_path / "mine.npz")
    page.get_by_role("tab", name="Vectors without a model").click()
    with page.expect_file_chooser() as waiting:
        page.locator(".st-key-vectors-files button", has_text="Upload").click()
    waiting.value.set_files(tmp_path / "mine.npz")
    page.get_by_role("button", name="Use these vectors").click()
    page.locator(SIDEBAR).get_by_text("stand for a model").wait_for()
    shown.complete()
    shown.await_live(scored())


# Training


def test_a_run_survives_a_reload_and_its_model_becomes_the_workspaces(launch, visit, tmp_path):
    model, pairs = build_model(tmp_path / "model"), write_pairs(tmp_path / "pairs.csv")
    with pairs.open("a") as file:  # alignment is measured on pairs above 4
        file.writelines(f"{text},{text},5\n" for text in SENTENCES[:5])
    (tmp_path / "corpus.txt").write_text("".join(f"{text}\n" for text in SENTENCES), "utf-8")
    shown = visit(launch())
    where = {"start": model, "scored": pairs, "corpus": tmp_path / "corpus.txt", "steps": 4, "batch": 16, "every": 2}
    page = shown.open("training?" + urlencode(where))
    page.get_by_role("button", name="Start this run").click()
    page.get_by_text(re.compile("^simcse-1: ")).wait_for()
    page.reload()
    page.get_by_text("finished after step 4 of 4").wait_for()
    shown.complete()
    spearman, path = (page.locator(f".st-key-training-{name} {CHART}") for name in ("spearman", "plane"))
    full = f"[...document.querySelectorAll('{CHART}')].every(g => g._fullData?.every(t => t.x.length))"
    page.wait_for_function(full)  # they were drawn while there was nothing to show, and are filled one by one
    assert len(shown.charts()) == 5
    assert [(one["name"], one["points"]) for one in traces(spearman)] == [("simcse-1, seed 0", 3)]
    assert [(one["name"], one["points"]) for one in traces(path)] == [("simcse-1, seed 0", 3)]
    assert all(drawn(chart) > 0 for chart in shown.charts())
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 1000})
        shown.settle()
        whole_page(shown, ARTEFACTS / f"training-run-{width}.png", width)
        assert widest(shown) <= width
    page.set_viewport_size({"width": 1440, "height": 1000})
    page.get_by_role("button", name="Use this model").click()
    page.wait_for_function("new URLSearchParams(location.search).get('model') === 'trained:simcse-1'")
    shown.complete()
    assert shown.layers() == [3]
