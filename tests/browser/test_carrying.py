"""What is brought and taken away: other data and models, downloads, uploads, training runs."""

import random
import re
from urllib.parse import urlencode
from zipfile import ZipFile

import numpy as np
import pytest
from driving import ARTEFACTS, CHART, SIDEBAR, drawn, traces, whole_page, widest
from questions import QUESTIONS
from sentence_transformers import SentenceTransformer
from tiny import SENTENCES, build_model, write_pairs

import whitelab
from whitelab.datasets import open_sheet
from whitelab.encoding.embeddings import embed_pairs
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.setting import Setting
from whitelab.whitening.export import from_npz

pytestmark = pytest.mark.browser


# Long work


def test_embedding_can_be_cancelled_and_started_again(app, visit, tmp_path):
    words = sorted({word for text in whitelab.load("demo").sentences for word in text.split()})
    rng = random.Random(0)
    path = tmp_path / "long.tsv"
    rows = [(" ".join(rng.choices(words, k=40)), " ".join(rng.choices(words, k=40)), i % 6) for i in range(90)]
    path.write_text("sentence1\tsentence2\tscore\n" + "".join(f"{a}\t{b}\t{gold}\n" for a, b, gold in rows))
    shown = visit(app)
    page = shown.open(f"?data={path}&k=50", ready=False)
    page.get_by_text("Embedding 180 sentences of long").wait_for()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("Embedding 180 sentences of long was cancelled.").wait_for()
    page.get_by_role("button", name="Start again").click()
    shown.complete()
    assert page.get_by_text("90 pairs").last.is_visible()
    assert -100 <= float(shown.live()) <= 100


def fitted(demo, text):
    return fit_scope(demo, Setting.parse(text)).whiteners[0]


def test_the_npz_and_the_model_of_the_whitening_page_give_the_vectors_of_the_package(app, visit, demo, tmp_path):
    page = visit(app).open("whitening?k=64")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download .npz").click()
    assert waiting.value.suggested_filename == "all-MiniLM-L6-v2-mean-layers-1-pca-k64-demo.npz"
    waiting.value.save_as(tmp_path / "map.npz")
    whitener, protocol = from_npz(tmp_path / "map.npz")
    wanted = fitted(demo, "L1:pca@64")
    x = demo.combine((1,))[:5]
    assert np.allclose(whitener(x), wanted(x))
    assert (protocol["whitening"], protocol["k"], protocol["fitted"]) == ("pca", 64, 2880)

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
    page.get_by_text("1 row rejected").wait_for()
    page.get_by_role("button", name="Use this data").click()
    page.get_by_text("your upload: only this session sees it.").wait_for()
    shown.complete()
    pairs = open_sheet(path).pairs("left", "right", "label")
    space, report = embed_pairs(whitelab.load_encoder("bundled"), pairs, store=whitelab.Store(cache))
    assert report.encoded == 0
    wanted = whitelab.score(space, Setting.parse("L1:center")).spearman
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


def test_a_deep_link_may_be_a_servers_first_request_and_a_run_survives_a_reload_and_its_model_becomes_the_workspaces(
    launch, visit, scored, tmp_path
):
    model, pairs = build_model(tmp_path / "model"), write_pairs(tmp_path / "pairs.csv")
    with pairs.open("a") as file:  # alignment is measured on pairs above 4
        file.writelines(f"{text},{text},5\n" for text in SENTENCES[:5])
    (tmp_path / "corpus.txt").write_text("".join(f"{text}\n" for text in SENTENCES), "utf-8")
    server = launch()
    shown, other = visit(server), visit(server)
    where = {"start": model, "scored": pairs, "corpus": tmp_path / "corpus.txt", "steps": 4, "batch": 16, "every": 2}
    page = shown.open("training?" + urlencode(where), ready=False)
    other.open("data?layers=3&k=50&whitening=ZCA+whitening")  # asked before the first has been answered
    assert other.page.locator("h1").inner_text() == QUESTIONS["data"]
    assert other.page.get_by_role("dialog").count() == page.get_by_role("dialog").count() == 0
    assert (other.layers(), other.k(), other.variant()) == ([3], 50, "ZCA whitening")
    assert other.live() == scored(layers=(3,), k=50)  # ZCA scores as PCA does
    other.follow("uniformity")
    assert other.layers() == [3]
    shown.complete()
    assert page.locator("h1").inner_text() == QUESTIONS["training"]

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
    page.reload()  # a link that names the run
    shown.complete()
    for chosen in ("", "simcse-1"):
        table = page.get_by_test_id("stDataFrame").first
        table.scroll_into_view_if_needed()
        table.click(position={"x": 16, "y": 52})  # a row's box, painted
        page.wait_for_function(f"new URLSearchParams(location.search).get('runs') === '{chosen}'")
        assert page.get_by_test_id("stException").count() == 0
        page.get_by_text("And under the bar's setting?").wait_for(state="visible" if chosen else "hidden")
    page.get_by_role("button", name="Use this model").click()
    page.wait_for_function("new URLSearchParams(location.search).get('model') === 'trained:simcse-1'")
    shown.complete()
    assert shown.layers() == [3]
