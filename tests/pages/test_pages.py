"""Every page opened without a browser, on the bundled model: what it shows, remembers and survives."""

import re

import numpy as np
import pytest
from questions import QUESTIONS

import whitelab
from whitelab.encoding.checkpoints import BUNDLED_NAME
from whitelab.encoding.embeddings import embed_pairs

from .visiting import (
    DEMONSTRATION,
    LIVE,
    ON_DEMAND,
    ROOT,
    forget_everything,
    go_to,
    live,
    metrics,
    scored,
    start,
    until,
    write_scored,
)

pytestmark = [pytest.mark.model, pytest.mark.usefixtures("demo")]


# Every page


@pytest.mark.parametrize("page", QUESTIONS)
def test_a_page_asks_its_question_and_answers_with_numbers(page, demo):
    at = until(start(page))
    assert [title.value for title in at.title] == [QUESTIONS[page]]
    assert not at.error
    shown = metrics(at)
    assert len(shown) >= (1 if page in ON_DEMAND else 3)
    for label, value in shown.items():
        leading = re.match(r"[-+]?\d+(\.\d+)?", value)
        assert leading, f"{label}: {value}"
        assert np.isfinite(float(leading[0]))
    assert shown[LIVE] == scored(demo)
    captions = [caption.value for caption in at.caption]
    said = (
        f"{BUNDLED_NAME}, 3 blocks, last layer, mean pooling"
        if page == "training"
        else f"{BUNDLED_NAME} · layers 1 + 6"
    )
    assert any(text.startswith(said) and re.search("1\u202f?500 pairs", text) for text in captions), "\n".join(captions)
    assert sum(text.startswith(DEMONSTRATION) for text in captions) == 2  # beside the live score and under the protocol
    assert at.code[-1].value.startswith("import whitelab")


@pytest.mark.parametrize("page", [page for page in QUESTIONS if page not in ON_DEMAND])
def test_every_chart_of_a_page_has_alternative_text(page):
    charts = until(start(page)).get("plotly_chart")
    assert charts
    assert all(len(chart.proto.alt) > 20 for chart in charts)


@pytest.mark.parametrize("page", QUESTIONS)
def test_the_code_a_page_shows_runs(page, monkeypatch, capsys):
    few = {"steps": "1", "batch": "8"} if page == "training" else {}
    code = until(start(page, **few)).code[-1].value
    exec(compile(code, page, "exec"), {})
    assert capsys.readouterr().out.strip()


def test_every_page_of_the_app_is_tested():
    assert {file.stem for file in (ROOT / "views").glob("*.py")} == set(QUESTIONS)


# The address


def test_the_workspace_in_the_address_is_restored(demo):
    at = until(start("overview", layers=["2", "3"], k="100", whitening="ZCA whitening", aggregate="mean"))
    assert at.get_by_key("layers").value == [2, 3]
    assert at.slider(key="k").value == 100
    assert at.selectbox(key="whitening").value == "zca"
    assert live(at) == scored(demo, layers=(2, 3), k=100, whitening="zca", aggregate="mean")
    go_to(at, "dimensions")
    until(at)
    assert at.slider(key="k").value == 100
    assert metrics(at)["Spearman at k = 100"] == live(at)


def test_pooling_in_the_address_is_restored():
    at = until(start(pooling="[CLS]", layers="6"))
    pairs = whitelab.load("demo")
    space, report = embed_pairs(whitelab.load_encoder("bundled"), pairs, "cls", store=whitelab.Store())
    assert report.encoded == 0  # both poolings come from one pass
    assert live(at) == scored(space, pooling="cls", layers=(6,))


@pytest.mark.parametrize(
    "query",
    [
        {"k": "9999"},
        {"k": "abc"},
        {"layers": "99"},
        {"layers": "x"},
        {"layers": ""},
        {"pooling": ""},
        {"pooling": "max"},
        {"whitening": "magic"},
        {"task": "nothing"},
        {"aggregate": ""},
    ],
    ids=str,
)
def test_nonsense_in_the_address_falls_back_to_something_valid(query):
    at = until(start(**query))
    assert not at.error
    assert float(live(at)) > 0


# Knobs


def test_k_moves_the_live_score_and_the_memory(demo):
    at = until(start("dimensions"))
    at.slider(key="k").set_value(96)
    until(at.run())
    assert live(at) == metrics(at)["Spearman at k = 96"] == scored(demo, k=96)
    assert metrics(at)["Memory saved"] == "75 %"


@pytest.mark.parametrize("name", ["none", "center", "standardize", "cholesky"])
def test_a_variant_without_k_disables_the_slider(name, demo):
    takes_k = whitelab.WHITENERS[name].takes_k
    at = until(start(k="50"))
    at.selectbox(key="whitening").set_value(name)
    until(at.run())
    assert at.slider(key="k").disabled is not takes_k
    assert live(at) == scored(demo, whitening=name, k=50 if takes_k else None)


@pytest.mark.parametrize("page", QUESTIONS)
@pytest.mark.parametrize("name", ["none", "center", "standardize", "cholesky"])
def test_every_page_takes_every_variant_at_a_small_k(page, name):
    at = start(page, k="50", layers="6")
    at.selectbox(key="whitening").set_value(name)
    until(at.run())
    assert not at.error


def test_no_layer_at_all_falls_back_to_the_last(demo):
    at = until(start())
    at.get_by_key("layers").set_value([])
    until(at.run())
    assert live(at) == scored(demo, layers=(6,))


def test_a_knob_keeps_its_value_while_another_variant_is_chosen():
    at = until(start())
    at.sidebar.selectbox(key="whitening").set_value("soft").run()
    at.sidebar.slider(key="soft-gamma").set_value(0.25).run()
    at.sidebar.selectbox(key="whitening").set_value("pca").run()
    assert not [one for one in at.sidebar.slider if one.key == "soft-gamma"]
    at.sidebar.selectbox(key="whitening").set_value("soft").run()
    assert at.sidebar.slider(key="soft-gamma").value == 0.25


# Nothing twice


def test_nothing_is_encoded_twice(forward_calls):
    until(start("probe"))  # brings texts of its own, which the demonstration set does not hold
    forget_everything()
    forward_calls.clear()
    at = start("overview", layers="6")
    for page in QUESTIONS:
        until(go_to(at, page))
    at.slider(key="k").set_value(77)
    until(at.run())
    assert forward_calls == []


def test_new_sentences_are_encoded_and_only_they(tmp_path, forward_calls, monkeypatch):
    monkeypatch.setenv("WHITELAB_CACHE", str(tmp_path / "store"))
    forget_everything()
    write_scored(tmp_path / "first.tsv", [0, 1, 2, 3])
    write_scored(tmp_path / "second.tsv", [0, 1, 2, 3, 4])
    until(start(data=str(tmp_path / "first.tsv")))
    assert sum(forward_calls) == 8
    until(start(data=str(tmp_path / "second.tsv")))
    assert sum(forward_calls) == 10


# What cannot be had


def test_a_model_that_does_not_exist_is_explained_and_leaves_the_app_usable(tmp_path):
    missing = str(tmp_path / "no-such-model")
    at = until(start(model=missing), lambda at: at.error)
    assert missing in at.error[0].value
    assert "must be a folder" in at.error[0].value
    for page in QUESTIONS:
        go_to(at, page)
        assert [title.value for title in at.title] == [QUESTIONS[page]]
        assert not at.exception
        assert at.info or page == "training"  # what to do next; training needs no workspace
    at.selectbox(key="model").set_value("bundled")
    until(at.run())
    assert not at.error


def test_data_that_is_not_there_is_explained_and_can_be_changed_back(tmp_path):
    missing = str(tmp_path / "absent.tsv")
    at = until(start("dimensions", data=missing), lambda at: at.error)
    assert missing in at.error[0].value
    at.selectbox(key="data").set_value("demo")
    until(at.run())
    assert not at.error


def test_malformed_rows_are_listed_and_left_out_only_on_request(tmp_path):
    path = tmp_path / "broken.tsv"
    write_scored(path, [0, 1, "not a number", 3, 4])
    at = until(start(data=str(path)), lambda at: at.error and at.dataframe and len(at.checkbox) > 0)
    assert "1 row" in at.error[0].value
    listed = at.dataframe[0].value
    assert list(listed["line"]) == [4]
    assert "not a number" in listed["reason"][0]
    assert LIVE not in metrics(at)
    at.checkbox(key="keep").check()
    until(at.run())
    assert not at.error
    pairs = whitelab.load(path, keep_going=True)
    space, _ = embed_pairs(whitelab.load_encoder("bundled"), pairs, store=whitelab.Store())
    assert live(at) == scored(space)
    assert any("malformed rows left out: 1, rows kept: 4" in caption.value for caption in at.caption)


@pytest.mark.parametrize("page", QUESTIONS)
@pytest.mark.parametrize("golds", [[3, 3, 3, 3], [4.5]], ids=["constant gold", "one pair"])
def test_data_without_a_score_say_so_on_every_page(page, golds, tmp_path):
    at = until(start(page, data=write_scored(tmp_path / "flat.tsv", golds)))
    assert live(at) == "undefined"
    assert not at.error
    assert not any("nan" in value.lower() for value in metrics(at).values())
    assert not any("nan" in (one.delta or "").lower() for one in at.metric)


@pytest.mark.parametrize("page", [page for page in QUESTIONS if page != "training"])  # which has scores of its own
def test_fewer_sentences_than_dimensions_show_the_rank_and_no_nan(page, tmp_path):
    path = write_scored(tmp_path / "small.tsv", np.linspace(0, 5, 12))
    at = until(start(page, data=path, layers="3", k="5"))
    space, _ = embed_pairs(whitelab.load_encoder("bundled"), whitelab.load(path), store=whitelab.Store())
    assert live(at) == scored(space, layers=(3,), k=5)
    assert not any("nan" in f"{one.value} {one.delta}".lower() for one in at.metric)
    at.slider(key="k").set_value(384)
    until(at.run())
    assert any("(rank 23, " in caption.value for caption in at.caption)
    assert live(at) == "undefined"
    assert not any("nan" in f"{one.value} {one.delta}".lower() for one in at.metric)


def test_whitening_as_many_directions_as_the_sentences_span_is_said_to_mean_nothing(tmp_path):
    # Every two of n distinct sentences then have the cosine -1 / (n - 1): there is nothing to rank.
    path = write_scored(tmp_path / "small.tsv", np.linspace(0, 5, 12))
    at = until(start(data=path, layers="3"))
    assert any("span only 23 of 384 dimensions" in warning.value for warning in at.warning)
    assert live(at) == "undefined"
    fewer = until(start(data=path, layers="3", k="5"))
    assert not any("span only" in warning.value for warning in fewer.warning)
    assert live(fewer) != "undefined"
