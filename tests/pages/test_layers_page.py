"""The page of layers: every pair, every subset, and their averages over tasks, as the package finds them."""

import csv
import io
import json
import re
import time
from functools import wraps

import pytest
from streamlit.testing.v1 import AppTest
from tiny import build_model, write_pairs

import whitelab
from whitelab.scoring.setting import Setting
from whitelab.ui.results.shelf import shelf
from whitelab.ui.sections import layer_maps

from .visiting import (
    PATIENCE,
    alts,
    choose,
    data,
    deltas,
    live,
    metrics,
    press,
    said,
    scored,
    start,
    table,
    until,
    write_few,
)

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """A folder of two tasks."""
    root = tmp_path_factory.mktemp("tasks")
    for i, name in enumerate(("one", "two")):
        write_pairs(root / f"{name}.csv", start=60 * i)
    return root


def test_no_pair_is_best_where_all_sentences_are_equally_far_apart(small, tmp_path):
    at = until(start("layers", **small | {"data": write_few(tmp_path / "few.tsv")}))
    assert metrics(at)["Best one or two, PCA whitening"] == "none"
    assert metrics(at)["Best one or two, raw"] != "none"
    raw, whitened = (alt for alt in alts(at) if "pair" in alt and "layer" in alt)
    assert "best" in raw
    assert "best" not in whitened
    assert not any("best" in alt for alt in alts(until(choose(at, **{"right-map": "Gain over raw"}))) if "Gain" in alt)
    at = until(choose(at, k=2))
    assert metrics(at)["Best one or two, PCA whitening, k = 2"] != "none"


def test_the_maps_keep_the_workspaces_k_and_name_the_best_pair(small, space):
    at = until(start("layers", **small, k="10"))
    for k in (10, 20):
        raw, best = (whitelab.layer_pairs(space, Setting.parse(text)).best.spearman for text in ("L0", f"L0:pca@{k}"))
        assert deltas(at)["Best one or two, raw"] == f"Spearman {raw:.2f}"
        assert deltas(at)[f"Best one or two, PCA whitening, k = {k}"] == f"Spearman {best:.2f}"
        assert said(at, f"Every pair of layers, the top {k} dimensions.")
        choose(at, k=20)
    raw, whitened = (whitelab.layer_pairs(space, Setting.parse(text)).cells for text in ("L0", "L0:pca@20"))
    gain = max(b.spearman - a.spearman for a, b in zip(raw, whitened, strict=True))
    choose(at, right_map="Gain over raw")
    assert f"with {gain:+.2f}" in next(alt for alt in alts(at) if alt.startswith("Gain of every pair"))
    for row, before, after in zip(csv.DictReader(io.StringIO(data(at)["whitened-pairs"])), raw, whitened, strict=True):
        kept = {name: float(row[name]) for name in ("raw", "spearman", "gain")}  # the scores stay, under their names
        after, before = after.spearman, before.spearman
        assert kept == pytest.approx({"raw": before, "spearman": after, "gain": after - before})
    rows = csv.DictReader(io.StringIO(data(choose(at, whitening="zca"))["whitened-pairs"]))
    assert {(row["whitening"], row["k"]) for row in rows} == {("zca", "20")}  # though PCA's scores are the same


@pytest.mark.parametrize("seconds", [0.05, 0.2, 0.4])
def test_both_maps_share_one_scale_however_soon_they_come(space, monkeypatch, seconds):
    """Both before the page is drawn, the second while the first is, both after it; and no other part runs it again."""

    def page(space):
        from whitelab.scoring.setting import Setting
        from whitelab.ui.sections import layer_maps

        layer_maps.draw(space, Setting.parse("L1:pca"))

    @wraps(layer_maps.layer_pairs)
    def slowly(*args, **options):
        time.sleep(seconds)
        return whitelab.layer_pairs(*args, **options)

    monkeypatch.setattr(layer_maps, "layer_pairs", slowly)
    at = AppTest.from_function(page, args=(shelf().call(space, "one scale"),), default_timeout=PATIENCE).run()
    at = until(at, lambda at: len(alts(at)) == 2 and not at.get("progress"))
    maps = [one.proto.spec for one in at.get("plotly_chart") if one.proto.alt.startswith("Spearman of every pair")]
    drawn = [json.loads(spec)["data"][0] for spec in maps]
    rows = [row for place in ("raw-pairs", "whitened-pairs") for row in csv.DictReader(io.StringIO(data(at)[place]))]
    scores = [float(row["spearman"]) for row in rows]
    assert [(one.get("zmin"), one.get("zmax")) for one in drawn] == [pytest.approx((min(scores), max(scores)))] * 2


def test_every_subset_is_searched_raw_at_first_and_the_best_can_be_taken(small, space):
    at = until(start("layers", **small))
    assert [one.key for one in at.toggle] == ["unit"]  # of the bar: one task has no average
    found = whitelab.search_subsets(space, Setting.parse("L0"))
    assert found.scored == 15
    assert deltas(at)["Best subset, raw"] == f"Spearman {found.best.spearman:.2f}"
    assert said(at, "**15 subsets** scored in **", "Scored: every subset of 1 to 4 layers.")
    assert f"Raw at most {found.best.spearman:.2f}" in next(alt for alt in alts(at) if alt.startswith("Best Spearman"))
    press(at, "take-best")
    assert at.get_by_key("layers").value == list(found.best.layers)
    assert live(at) == scored(space, f"{'+'.join(f'L{layer}' for layer in found.best.layers)}:pca")


def test_the_data_of_a_search_has_every_subset_and_says_among_how_many_the_best_are(small, tmp_path):
    at = until(start("layers", **small | {"model": str(build_model(tmp_path / "deep", layers=6))}))
    rows, counts = (list(csv.DictReader(io.StringIO(data(at)[key]))) for key in ("subset-ranking", "layer-counts"))
    assert len({row["layers"] for row in rows}) == len(rows) == 2**7 - 1
    assert {row["subsets_scored"] for row in rows} == {"127"}
    assert [float(row["spearman"]) for row in rows] == sorted((float(row["spearman"]) for row in rows), reverse=True)
    best = [row["layers"] for row in rows[: int(counts[0]["best_counted"])]]
    held = [sum(row["layer"] in re.findall(r"\d+", layers) for layers in best) for row in counts]
    assert held == [int(row["among_the_best"]) for row in counts]


def test_the_whitened_search_stands_beside_the_raw_one(small, space):
    at = until(start("layers", **small, k="10", searched="The bar's variant"))
    found = whitelab.search_subsets(space, Setting.parse("L0:pca@10"))
    assert deltas(at)["Best subset, PCA whitening, k = 10"] == f"Spearman {found.best.spearman:.2f}"
    assert said(at, f"**{found.scored} subsets**", f"Scored: {found.strategy}.")
    curve = next(alt for alt in alts(at) if alt.startswith("Best Spearman"))
    assert "Raw at most" in curve
    assert f"PCA whitening, k = 10 at most {found.best.spearman:.2f}" in curve


def test_several_tasks_are_averaged_on_request(small, tasks):
    at = until(start("layers", **small | {"data": str(tasks)}))
    single = deltas(at)["Best subset, raw"]
    choose(at, average=True)
    encoder = whitelab.load_encoder(small["model"])
    spaces = {name: whitelab.embed_pairs(encoder, whitelab.load(tasks, name))[0] for name in ("one", "two")}
    found = whitelab.search_subsets(spaces, Setting.parse("L0"))
    assert deltas(at)["Best subset, raw"] == f"Spearman {found.best.spearman:.2f}, mean of 2 tasks"
    assert single != f"Spearman {found.best.spearman:.2f}"
    assert said(at, "the plain mean over the tasks", "**15 subsets x 2 tasks**")
    own = table(at, "best layers")
    assert list(own["task"]) == ["one", "two"]
    assert list(own["Spearman x 100"]) == pytest.approx([found.tasks[n].best.spearman for n in ("one", "two")])


def test_an_average_is_not_offered_where_each_task_would_need_a_text_of_its_own(small, tasks):
    query = small | {"data": str(tasks), "fit": "All splits of the task"}
    assert not until(start("layers", **query)).toggle(key="average").disabled
    white = until(start("layers", **query, searched="The bar's variant"))
    assert white.toggle(key="average").disabled
