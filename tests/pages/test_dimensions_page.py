"""The page of dimensions: every k of every layer, and what a smaller k buys."""

import base64
import json

import numpy as np
import pytest
from tiny import write_task

import whitelab
from whitelab.base.machine import processor
from whitelab.scoring.setting import Setting
from whitelab.sweeps.controls import CONTROLS, k_controls

from .visiting import alts, choose, code, deltas, knob, metrics, press, said, start, table, until, write_few

pytestmark = pytest.mark.model


def test_every_layer_has_its_best_k_and_knee_on_the_dimensions_page(small, space):
    at = until(start("dimensions", **small))
    curves = whitelab.k_curves(space, Setting.parse("L0:pca"), by_subset=False)
    rows = table(at, "Best k")
    assert list(rows["Layer"]) == list(range(4))
    assert list(rows["Best k"]) == [one.best_k for one in curves]
    assert list(rows["Knee"]) == [one.knee for one in curves]
    raw = [whitelab.score(space, Setting((layer,))).spearman for layer in range(4)]
    assert list(rows["Spearman, raw"]) == pytest.approx(raw)
    alt = next(alt for alt in alts(at) if "every layer by kept dimensions" in alt)
    assert f"layer 3 k = {curves[3].best_k}" in alt
    assert said(at, "PCA whitening, 4 layers at 32 values of k each: 128 settings.")
    unseen = whitelab.k_curve(space, Setting.parse("L1:pca fit=cross"))
    fitted = whitelab.k_curve(space, Setting.parse("L1:pca"))
    k, top = fitted.best_k, max(fitted.spearman)
    assert said(at, f"k = {k} scores {unseen.spearman[k - 1]:.2f} instead of {top:.2f}")


def test_memory_is_saved_down_to_the_rank(small, tmp_path):
    at = until(start("dimensions", **small | {"data": write_few(tmp_path / "few.tsv")}))
    label = "Memory saved"
    assert metrics(at)[label] == "56.2 %"  # fifteen sentences
    assert deltas(at)[label] == "14 of 32 numbers"
    at = choose(at, k=8)
    assert (metrics(at)[label], deltas(at)[label]) == ("75 %", "8 of 32 numbers")


@pytest.mark.parametrize(("variant", "saved"), [("center", "75 %"), ("zca", "0 %"), ("soft", "0 %")])
def test_memory_is_saved_by_maps_that_leave_fewer_numbers_and_of_others_that_is_said(variant, saved, small):
    at = until(start("dimensions", **small, whitening=variant, k="8"))
    assert metrics(at)["Memory saved"] == saved
    words = next(one.help for one in at.metric if one.label == "Memory saved")
    assert ("leaves a vector its 32 numbers at any k." in words) == (saved == "0 %")


def test_directions_that_the_sentences_do_not_span_are_said_to_come_all_at_once(small, tmp_path):
    at = until(start("dimensions", **small | {"data": write_few(tmp_path / "few.tsv"), "whitening": "shrunk"}))
    assert said(at, "The rank is 32 of 32. The sentences span 14 of these: from there the curve is flat, and k = 32")
    assert not said(until(start("dimensions", **small | {"whitening": "shrunk"})), "The sentences span")


def test_the_curve_is_held_against_columns_that_no_covariance_chose(small, space):
    at = until(choose(until(start("dimensions", **small)), controls_of_k=True))
    drawn = {trace["name"]: trace["y"] for trace in json.loads(at.get("plotly_chart")[0].proto.spec)["data"]}
    found = k_controls(space, Setting.parse("L1:pca"))
    for name in ("first", "random", "projection"):
        assert floats(drawn[CONTROLS[name]]) == pytest.approx(found[name].spearman)
    assert said(at, "Random coordinates and projections are the mean of 5 draws.")


def test_every_line_of_a_subset_is_named_beside_its_colour(small, tmp_path):
    query = small | {"data": str(write_task(tmp_path, subsets=3)), "task": "sts12"}
    at = until(start("dimensions", **query, lines="true"))
    drawn = json.loads(at.get("plotly_chart")[0].proto.spec)["data"]
    colours = {trace["name"]: trace["line"]["color"] for trace in drawn if trace.get("legendgroup") == "subsets"}
    (key,) = (one.proto.body for one in at.get("html") if "border-top" in one.proto.body)
    assert len(colours) == 4  # and that of them all, which is in the legend
    for name in colours.keys() - {"each subset"}:
        assert colours[name] in key.partition(f">{name}<")[0].rpartition("border-top")[2]
    assert not [one for one in choose(at, lines=False).get("html") if "border-top" in one.proto.body]


def floats(values) -> list[float]:
    """Numbers of a figure, as it packs them."""
    return values if isinstance(values, list) else np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])


def test_the_best_k_is_taken_at_a_click(small, space):
    at = until(start("dimensions", **small))
    best = whitelab.k_curve(space, Setting.parse("L1:pca")).best_k
    next(one for one in at.button if one.label == f"Take the best k, {best}").click()
    assert knob(until(at.run()))["k"] == best


def test_the_costs_of_a_search_are_measured_on_demand_stay_for_another_k_and_go_with_another_corpus(small, space):
    measured = lambda at: said(at, "Measured on")  # noqa: E731
    at = until(start("dimensions", **small, k="8"))
    assert len(at.get("plotly_chart")) == 2
    assert not measured(at)  # nothing runs unasked
    choose(at, search_corpus=10_000)
    press(at, "measure", measured)
    assert said(at, processor(1), f"10\u202f000 vectors: {space.n_sentences} are your sentences")
    assert said(at, "At k = 8", "of the memory of k = 32")
    assert "k = 8 takes" in alts(at)[2]
    assert "10000, top=10)" in code(at)
    assert said(choose(at, k=9), "(k = 9 was not measured.)")
    assert at.button(key="measure").label == "Measure again"
    press(at, "measure", lambda at: said(at, "At k = 9"))
    choose(at, search_corpus=space.n_sentences)
    assert not measured(at)
    assert at.button(key="measure").label == "Measure"
