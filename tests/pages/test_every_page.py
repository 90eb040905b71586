"""Every page opened without a browser: what it shows, remembers and survives."""

import csv
import io
import json
import re

import numpy as np
import pytest
import streamlit as st
from processes import ROOT
from questions import ON_DEMAND, QUESTIONS
from tiny import write_reversed

import whitelab
from whitelab.encoding.names import BUNDLED_NAME
from whitelab.statistics.geometry import uniformity_floor

from .visiting import (
    DEMONSTRATION,
    ROOM,
    SPACED,
    alts,
    choose,
    code,
    data,
    failed,
    forget_everything,
    go_to,
    knob,
    live,
    metrics,
    protocol,
    said,
    scored,
    start,
    table_widths,
    tour,
    until,
    write_few,
    write_scored,
)

pytestmark = pytest.mark.model


# Pages whose numbers are of other data than the bar's pairs, and those that give intervals over the pairs.
OTHERS = ("probe", "retrieval", "corpus")
WITH_INTERVALS = ("overview", "whitening", "anisotropy", "layers", "dimensions", "compare")


def times(at, text: str) -> int:
    """How often the page says this, in notes, warnings, explanations or its words."""
    kinds = (at.caption, at.warning, at.info, at.markdown)
    return sum(text in one.value.replace("\\", "") for kind in kinds for one in kind)


def no_nan(at) -> bool:
    return not any("nan" in f"{one.value} {one.delta}".lower() for one in at.metric)


# The demonstration set; under the bundled model the browser sees it


def test_every_page_asks_its_question_and_answers_with_numbers_and_charts_that_are_put_in_words(small, subtests):
    encoder = whitelab.load_encoder(small["model"])
    at, score = start(model=small["model"]), scored(whitelab.embed_pairs(encoder, whitelab.load("demo"))[0])
    for page in tour(at):
        with subtests.test(page):
            assert [title.value for title in at.title] == [QUESTIONS[page]]
            assert not at.error
            shown = metrics(at)
            assert len(shown) >= 3 or page in ON_DEMAND  # or a table
            for label, value in shown.items():
                leading = re.match(r"[-+]?\d+(\.\d+)?", value)
                assert leading, f"{label}: {value}"
                assert np.isfinite(float(leading[0]))
            assert live(at) == score
            assert bool(alts(at)) is (page not in ON_DEMAND)
            assert all(len(alt) > 20 for alt in alts(at))
            cameras = [json.loads(one.proto.config)["toImageButtonOptions"] for one in at.get("plotly_chart")]
            assert len({one["filename"] for one in cameras}) == len(cameras)  # a picture says by its name which it is
            captions = [caption.value.replace("\\", "") for caption in at.caption]  # as Markdown shows them
            own = f"To be trained: {BUNDLED_NAME}, 3 blocks, last layer"
            for begins in (f"Live score: {encoder.name} · layer 1", *[own] * (page == "training")):
                assert any(text.startswith(begins) and re.search("1\u202f?440 pairs", text) for text in captions), (
                    captions
                )
            # At the score, and in each line of what was scored on it: a page may have results of other pairs too.
            assert sum(text.endswith(DEMONSTRATION) for text in captions) == 2 + (page == "training")
            assert code(at).startswith("import whitelab")


def test_every_page_of_the_app_is_tested():
    assert {file.stem for file in (ROOT / "pages").glob("*.py")} == {
        *QUESTIONS,
        "lessons",
    }  # which have a file of their own


def test_nothing_is_encoded_twice(small, forward_calls, new_store):
    def visit():
        at = start(**small | {"layers": "3"})
        for _ in tour(at):
            pass
        return at

    visit()
    assert forward_calls
    forget_everything()
    forward_calls.clear()
    choose(until(go_to(visit(), "overview")), k=7)
    assert forward_calls == []


def test_every_table_fits_beside_the_bar_and_has_a_name_and_results_go_by_their_pages_and_hold_its_headlines(
    small, subtests, monkeypatch
):
    names, real = [], st.download_button

    def button(label, *given, file_name, **how):
        names.append(file_name)
        return real(label, *given, file_name=file_name, **how)

    monkeypatch.setattr(st, "download_button", button)
    at = start(**small)
    for page in tour(at):
        with subtests.test(page):
            assert max(table_widths(at), default=0) <= ROOM
            tables = [one.proto.alt for one in at.dataframe]
            assert all(tables)
            assert len(set(tables)) == len(tables)
            if page in SPACED and page not in ON_DEMAND:
                assert f"whitelab-{page}.zip" in names
                rows = csv.DictReader(io.StringIO(data(at)["headlines"]))
                assert {row["label"]: row["value"] for row in rows} == metrics(at)


# The address


def test_the_workspace_in_the_address_is_restored_on_every_page_and_all_data_of_a_page_of_the_space_says_which_it_is_of(
    small, subtests
):
    knobs = {"layers": ["1", "2"], "k": "10", "whitening": "ZCA whitening", "aggregate": "mean", "pooling": "[CLS]"}
    own = whitelab.embed_pairs(whitelab.load_encoder(small["model"]), whitelab.load(small["data"]), "cls")[0]
    wanted = {"model": "model", "page_setting": "cls/L1+L2:zca@10 aggregate=mean"}
    of_pairs = wanted | {"task": "pairs", "split": "all"}
    others = {"compare": {}, "advise": {"model": "model"}, "data": {"task": "pairs", "split": "all"}}
    others |= {"probe": {"model": "model", "page_setting": "cls/L1+L2:zca@10 fit=train"}}
    others |= {"retrieval": {"model": "model", "page_setting": "cls/L1+L2:zca@10 fit=corpus"}}
    at = start(**small | knobs)
    for page in tour(at):
        with subtests.test(page):
            assert at.get_by_key("layers").value == [1, 2]
            assert knob(at)["k"] == 10
            assert at.selectbox(key="whitening").value == "zca"
            assert live(at) == scored(own, wanted["page_setting"])
            if page in SPACED and page != "corpus":
                for key, text in data(at).items():
                    raw = {"page_setting": "cls/L1+L2 aggregate=mean"} if key == "raw-pairs" else {}
                    for row in csv.DictReader(io.StringIO(text)):
                        assert (others.get(page, of_pairs) | raw).items() <= row.items(), key


def test_sbert_wk_is_a_pooling_like_any_other(small):
    own = whitelab.embed_pairs(whitelab.load_encoder(small["model"]), whitelab.load(small["data"]), "wk")[0]
    knobs = {"layers": "2", "pooling": "SBERT-WK", "whitening": "ZCA whitening", "k": "10"}
    at = until(start(**small | knobs))
    assert at.get_by_key("pooling").value == "wk"
    assert live(at) == scored(own, "wk/L2:zca@10")
    assert not at.error
    assert any("wk pooling" in one.value for one in at.caption)


@pytest.mark.parametrize(
    "address",
    [
        {"k": "9999", "layers": "99", "pooling": "", "whitening": "magic", "task": "nothing", "aggregate": ""},
        {"k": "abc", "layers": "x", "pooling": "max"},
        {"layers": ""},
    ],
)
def test_nonsense_in_the_address_falls_back_to_something_valid(address, small):
    at = until(start(**small | address))
    assert not at.error
    assert float(live(at))


# Knobs


def test_every_page_takes_every_kind_of_variant_and_the_score_is_the_packages(small, space):
    at = start(**small | {"k": "10", "layers": "2"})
    for name in ("none", "standardize", "soft"):  # what a visitor brings is seen centred on every page
        takes_k = whitelab.WHITENERS[name].takes_k
        choose(until(go_to(at, "overview")), whitening=name)
        for _ in tour(at):
            assert not at.error
            assert bool(knob(at)["fixed"]) is not takes_k
            assert live(at) == scored(space, f"L2:{name}" + "@10" * takes_k)


def test_k_moves_the_live_score_the_headline_and_the_memory(small, space):
    at = choose(until(start("dimensions", **small)), k=8)
    assert live(at) == metrics(at)["Spearman at k = 8"] == scored(space, "L1:pca@8")
    assert metrics(at)["Memory saved"] == "75 %"


@pytest.mark.parametrize(("whitening", "compared"), [("Raw", False), ("Centred", True)])
def test_only_raw_itself_is_not_held_against_raw(small, whitening, compared):
    at = until(start(**small, whitening=whitening))
    assert (knob(at)["raw"] is not None) is compared


def test_the_last_layer_taken_out_stays(small, space):
    at = choose(choose(until(start(**small)), layers=[2]), layers=[])
    assert live(at) == scored(space, "L2:pca")
    assert at.get_by_key("layers").value == [2]


def test_an_explanation_offers_a_k_that_one_click_takes(small, tmp_path):
    at = until(start(**small | {"data": write_few(tmp_path / "few.tsv")}))
    offered = next((one for one in at.button if one.key == "offered-k"), None)
    assert offered, "so few sentences should bear fewer directions"
    k = int(offered.label.removeprefix("Use k = "))
    offered.click()
    assert knob(until(at.run()))["k"] == k


# What cannot be had


def test_a_model_that_does_not_exist_is_explained_and_leaves_the_app_usable(small):
    at = until(start(**small | {"model": "/no/such-model"}), lambda at: at.error)
    assert failed(at, "/no/such-model")
    assert failed(at, "must be a folder")
    for page in QUESTIONS:
        go_to(at, page)
        assert [title.value for title in at.title] == [QUESTIONS[page]]
        assert not at.exception
        # What is wrong, on the page too: on a phone the bar is closed. Training needs no workspace.
        assert said(at, "must be a folder", "Change it in the bar.") or page == "training"
    assert not choose(at, model=small["model"]).error


def test_data_that_is_not_there_is_explained_and_can_be_changed_back(small):
    at = until(start("dimensions", **small | {"data": "/absent.tsv"}), lambda at: at.error)
    assert failed(at, "/absent.tsv")
    assert not choose(at, data=small["data"]).error


def test_malformed_rows_are_listed_and_left_out_only_on_request(small, tmp_path):
    path = write_scored(tmp_path / "broken.tsv", [0, 1, "not a number", 3, 4])
    query = small | {"data": path, "whitening": "Centred"}
    at = until(start(**query), lambda at: at.error and at.dataframe and len(at.checkbox) > 0)
    assert failed(at, "1 row")
    listed = at.dataframe[0].value
    assert list(listed["line"]) == [4]
    assert "not a number" in listed["reason"][0]
    assert knob(at)["words"] == "no score"  # and not the dots of what is being computed
    at.checkbox(key="keep").check()
    assert not until(at.run()).error
    pairs = whitelab.load(path, keep_going=True)
    assert live(at) == scored(whitelab.embed_pairs(whitelab.load_encoder(small["model"]), pairs)[0], "L1:center")
    assert said(at, "malformed rows left out: 1, rows kept: 4")
    assert live(until(start(**query, keep="true"))) == live(at)  # as whoever is sent the link sees it


@pytest.mark.parametrize("golds", [[3, 3, 3, 3], [4.5]], ids=["constant gold", "one pair"])
def test_data_without_a_score_say_so_on_every_page(golds, small, tmp_path):
    at = start(**small | {"data": write_scored(tmp_path / "flat.tsv", golds)})
    for _ in tour(at):
        assert live(at) == "undefined"
        assert not at.error
        assert no_nan(at)
    assert said(choose(until(go_to(at, "advise")), purpose="threshold"), "These pairs cannot decide.")


def test_pairs_that_all_hang_together_are_said_to_have_no_halves(small, tmp_path):
    data = tmp_path / "hub.tsv"
    data.write_text("sentence1\tsentence2\tscore\n" + "".join(f"A cat.\tDog {i} runs.\t{i}\n" for i in range(60)))
    why = "Cross-fitting is not possible here"
    at = until(start(**small | {"data": str(data), "fit": "cross"}), lambda at: failed(at, why))
    for page in QUESTIONS:
        go_to(at, page)
        assert not at.exception
        assert failed(at, why) or said(at, why)
        assert knob(at)["words"] == "no score"
    assert float(live(choose(at, fit="task")))


def test_vectors_of_length_1_are_said_to_be_no_means_of_words(small):
    at = until(start(**small | {"model": f"sif:{small['model']}", "layers": "0", "fit": "tokens"}))
    assert "fit=tokens" in code(at)
    assert "fit=tokens" not in code(choose(at, unit=True))
    assert failed(at, "Vectors of length 1 are no means of words.")
    assert "fit=tokens" in code(choose(at, unit=False))


def test_pairs_scored_by_how_far_apart_they_are_are_said_to_be_and_nothing_is_advised_of_them(small, tmp_path):
    at = until(start(**small | {"data": str(write_reversed(tmp_path / "reversed.csv"))}))
    assert said(at, "If these are distances, turn them round")
    assert said(until(go_to(at, "advise")), "No advice from these pairs yet.")
    assert not said(until(start(**small)), "distances")


def test_fewer_sentences_than_dimensions_are_said_to_mean_nothing_and_a_small_k_does_mean_something(small, tmp_path):
    # Every two of n distinct sentences, whitened, have the cosine -1 / (n - 1): there is nothing to rank.
    data = write_scored(tmp_path / "few.tsv", np.linspace(0, 5, 12))
    own = whitelab.embed_pairs(whitelab.load_encoder(small["model"]), whitelab.load(data))[0]
    at = start(**small | {"data": data, "layers": "3"})
    for page in tour(at, SPACED):
        assert live(at) == "undefined"
        assert "(rank 23, " in protocol(at)
        assert times(at, "span only 23") == (page not in ("data", *OTHERS)), page
        assert times(at, "Spearman is not defined") <= 1, page
        assert times(at, "so few pairs (12) tell settings apart by chance alone") == (page in WITH_INTERVALS), page
        assert no_nan(at)
    until(go_to(at, "probe"))
    fit = next(one for one in at.selectbox if one.label == "Whitening fitted on").key
    assert times(choose(at, **{fit: "workspace"}), "span only 23 of 32 dimensions") == 1
    choose(until(go_to(at, "overview")), k=5)
    for _ in tour(at, SPACED):
        assert live(at) == scored(own, "L3:pca@5") != "undefined"
        assert not said(at, "span only")
        assert no_nan(at)


def test_similar_pairs_are_the_top_fifth_where_scores_do_not_run_to_5(small, tmp_path):
    golds = [i / 20 for i in range(20)]
    at = until(start("uniformity", **small | {"data": write_scored(tmp_path / "own.tsv", golds)}))
    assert "'top'" in code(at)
    assert metrics(at)["Alignment, raw"] != "undefined"
    assert not said(at, "lignment is not defined")
    at = until(choose(at, positives="gt4"))
    assert said(at, "the top fifth ('top') goes with any scale")
    write_scored(tmp_path / "other.tsv", [i / 4 for i in range(21)])
    for name, rule in (("own", "gt4"), ("other", "gt4"), ("own", "top")):  # another scale brings its usual rule along
        at = until(choose(at, data=str(tmp_path / f"{name}.tsv")))
        assert f"'{rule}'" in code(at)
    assert not said(at, "lignment is not defined")


def test_the_floor_of_uniformity_is_that_of_the_dimensions_kept(small):
    at = until(start("uniformity", **small))
    for k in (32, 5):
        assert said(choose(at, k=k), f"The floor for {k} dimensions is {uniformity_floor(k):.3f}, ")


def test_the_plane_says_what_its_lines_are_and_its_arrows_where_it_has_some(small):
    at = until(start("uniformity", **small))
    assert said(at, "Lines lead from layer to layer, thin arrows from raw to a variant.")
    assert said(choose(at, paths=["center", "pca"]), "Lines lead from layer to layer. ")


# A model of one's own


def test_a_local_model_goes_by_the_name_of_its_encoder_and_no_path_of_this_machine(small, place):
    at = until(start("whitening", **small))
    assert protocol(at).startswith(f"{whitelab.load_encoder(small['model']).name} · layer 1 ")
    shown = [one.value for kind in (at.caption, at.markdown, at.metric) for one in kind]
    assert not [text for text in shown if str(place) in text.replace(small["data"], "")]
    assert any("model-mean-layers-1-pca-pairs.npz" in one.value for one in at.code)


def test_it_is_said_where_a_model_cuts_sentences(small, tmp_path):
    longest = whitelab.load_encoder(small["model"]).max_length
    data = write_scored(tmp_path / "long.tsv", [1, 2, 3], "a man " * longest)
    at = until(start(**small | {"data": data, "whitening": "Centred"}))
    assert protocol(at).split(" · ")[-2] == f"at most {longest} tokens"
    assert said(at, f"Note: 3 sentences were cut to {longest} tokens.")


def test_a_change_against_raw_stands_beside_every_score_that_moved(small, space):
    at = until(start(**small))
    raw, white = (float(scored(space, text)) for text in ("L1", "L1:pca"))
    assert knob(at)["score"] - knob(at)["raw"] == pytest.approx(white - raw, abs=0.011)
