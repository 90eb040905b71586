"""The data page and what a visitor brings: used on every page, kept from everyone else."""

import csv as csv_module
import io
import json
from pathlib import Path

import numpy as np
import pytest
from judged import write_retrieval
from questions import QUESTIONS
from streamlit.testing.v1 import AppTest

import whitelab
from whitelab.base import upload_limits
from whitelab.datasets import open_sheet
from whitelab.encoding.precomputed import npz_bytes
from whitelab.statistics.geometry import word_counts
from whitelab.ui.sections import parcel
from whitelab.ui.sections.uploads import VECTORS
from whitelab.ui.sidebar.own_data import GONE, LABEL, TEXT_GONE

from .visiting import (
    DEMONSTRATION,
    SPACED,
    choose,
    code,
    data,
    deltas,
    downloads,
    failed,
    go_to,
    keys,
    knob,
    live,
    metrics,
    press,
    protocol,
    said,
    scored,
    start,
    table,
    tour,
    until,
    upload,
)

pytestmark = pytest.mark.model

ROWS = [(f"A cat sits on mat {i}.", f"The dog number {i} runs home.", f"{(i * 7) % 11 / 2}") for i in range(40)]
PAIRS = 60  # of the data in the bar, until another is used


def csv(rows=ROWS, names=("left", "right", "label"), mark=",") -> bytes:
    return "".join(mark.join(row) + "\n" for row in ([names] if names else []) + list(rows)).encode()


@pytest.fixture(scope="module")
def own(small, tmp_path_factory):
    """The pairs of `ROWS` and their embeddings, made by the package."""
    path = tmp_path_factory.mktemp("own") / "mine.csv"
    path.write_bytes(csv())
    pairs = open_sheet(path).pairs(0, 1, 2)
    return pairs, whitelab.embed_pairs(whitelab.load_encoder(small["model"]), pairs)[0]


@pytest.fixture
def at(small) -> AppTest:
    """The page, centring."""
    return until(start("data", **small, whitening="Centred"))


def with_pairs(at, data=None, name="mine.csv") -> AppTest:
    """The session uses an upload of pairs."""
    return press(upload(at, data or csv(), name), "use-file")


def with_vectors(at, own) -> AppTest:
    """The session uses the embeddings of the pairs, without a model."""
    return press(upload(at, npz_bytes(*own), "mine.npz", "vectors-files"), "use-vectors")


def boxes(at, role) -> AppTest:
    """The choice of a column."""
    return next(one for one in at.selectbox if one.key.startswith(f"{role}-"))


# What is loaded


def test_the_page_shows_the_data_it_finds_and_finds_pairs_by_their_words():
    at, pairs = until(start("data", model="static:bundled")), whitelab.load("demo")
    shown = metrics(at)
    assert shown["Pairs"] == "1\u202f440"
    assert shown["Different sentences"] == "2\u202f880"
    assert shown["Gold scores"] == "0 to 5"
    words = [int(row.split(",")[1]) for row in data(at)["lengths"].splitlines()[1:]]
    assert words == word_counts(pairs.sentences).tolist()  # those that Anisotropy holds vectors' lengths against
    subsets = next(one.value for one in at.dataframe if {"Subset", "Pairs"} <= set(one.value.columns))
    assert dict(zip(subsets["Subset"], subsets["Pairs"], strict=True)) == {
        name: int((pairs.subset == number).sum()) for number, name in enumerate(pairs.subset_names)
    }
    choose(at, find="GUITAR", order="highest gold")
    both = zip(pairs.first, pairs.second, pairs.gold, strict=True)
    wanted = sorted((gold for a, b, gold in both if "guitar" in f"{a}\n{b}".casefold()), reverse=True)
    assert list(table(at, "First sentence")["Gold"]) == wanted != []
    choose(at, find="no such words")
    assert len(table(at, "First sentence")) == 0
    assert said(at, "0 of 1\u202f440 pairs")


def test_on_a_phone_both_sentences_stand_beside_their_gold_score(small):
    pairs = next(one for one in until(start("data", **small)).dataframe if "Second sentence" in one.value.columns)
    widths = json.loads(pairs.proto.columns)
    first = list(pairs.value.columns)[:3]
    assert set(first) == {"Gold", "First sentence", "Second sentence"}
    assert sum(widths[name]["width"] for name in first) <= 356  # what a table has in a window of 390 pixels


def test_limits_and_who_sees_it_are_said_before_an_upload(at):
    assert said(at, upload_limits.of_table(), upload_limits.of_vectors().split(",")[0])
    assert sum("nobody else sees it" in one.value for one in at.caption) == 3
    sizes = {one.proto.label: one.proto.max_upload_size_mb for one in at.get("file_uploader")}
    assert sizes["File of pairs"] == upload_limits.TABLE_MB
    assert sizes["Vectors"] == upload_limits.VECTORS_MB


def test_whoever_has_vectors_is_told_where_they_go(at):
    assert said(at, "Vectors (`.npy`, `.npz`, `.safetensors`, or lists in Parquet)", f"under the tab *{VECTORS}*")


# Pairs


def test_an_upload_is_read_chosen_used_on_every_page_and_let_go_of(at, own):
    upload(at, csv())
    assert [boxes(at, role).value for role in ("first", "second", "score")] == ["left", "right", "label"]
    assert said(at, "**40 pairs** of 80 different sentences, no row rejected.")
    assert metrics(at)["Pairs"] == f"{PAIRS}"  # until it is used
    press(at, "use-file")
    assert metrics(at)["Pairs"] == "40"
    assert at.selectbox(key="data").value == "upload"
    assert at.query_params["data"] in (LABEL, [LABEL])
    assert said(at, "**mine.csv**, your upload: only this session sees it.")
    assert any(label.startswith("Embeddings .npz") for label in downloads(at))
    for _ in tour(at, SPACED):
        assert not at.error
        assert live(at) == scored(own[1], "L1:center")
        assert "mine.csv" in protocol(at)
        assert protocol(at).endswith("40 pairs")
        assert not said(at, DEMONSTRATION)
        assert "open_sheet('mine.csv', header=True).pairs('left', 'right', 'label')" in code(at)
    press(until(go_to(at, "data")), "forget")
    assert metrics(at)["Pairs"] == "1\u202f440"
    assert at.selectbox(key="data").options == ["Everyday pairs (bundled)", "Contrast set (bundled)"]
    assert LABEL not in str(at.query_params.get("data"))


def test_other_columns_than_the_recognised_ones_can_be_chosen(at):
    rows = [(a, b, gold, f"note {i % 3}", f"{i % 4}") for i, (a, b, gold) in enumerate(ROWS)]
    upload(at, csv(rows, ("left", "right", "label", "topic", "other")))
    assert said(at, "Which column is which is not clear")
    assert "use-file" not in keys(at)
    for role, column in (("first", "left"), ("second", "right"), ("score", "other"), ("subset", "topic")):
        boxes(at, role).set_value(column)
    at.run()
    assert said(at, "3 subsets")
    assert metrics(press(at, "use-file"))["Gold scores"] == "0 to 3"


def test_texts_with_a_label_are_sent_to_the_pages_that_read_them(at):
    upload(at, b"text,label\nHow far is it?,question\nClose the door.,order\nIt rains.,statement\n")
    assert said(at, "this table has 2 in all", "are read by the pages Probe and Advise")


def test_vectors_are_sent_to_the_tab_that_reads_them(at):
    import pandas as pd

    file = io.BytesIO()
    pd.DataFrame({"first": [[1.0, 2.0]] * 3, "second": [[2.0, 1.0]] * 3, "gold": [1, 2, 3]}).to_parquet(file)
    upload(at, file.getvalue(), "vectors.parquet")
    assert said(at, "this table has 1 in all", f"*{VECTORS}*")
    assert VECTORS in [one.label for one in at.tabs]
    file, pairs = io.BytesIO(), pd.DataFrame(ROWS, columns=("left", "right", "score"))
    pairs.assign(emb=[[1.0, 2.0]] * len(ROWS)).to_parquet(file)
    upload(at, file.getvalue(), "both.parquet")
    assert said(at, "Columns of lists are not read here: emb.", f"*{VECTORS}*")
    assert not said(upload(at, csv()), "Columns of lists")


def test_whether_the_first_line_holds_names_can_be_set(at):
    upload(at, csv(names=None))
    header = lambda: next(one for one in at.checkbox if one.key.startswith("header-"))  # noqa: E731
    assert header().value is False
    assert said(at, "**40 pairs**")
    header().check().run()
    assert boxes(at, "first").options[0] == ROWS[0][0]
    header().uncheck().run()
    assert said(at, "**40 pairs**")


def test_rejected_rows_are_listed_with_line_and_reason_before_and_after_they_are_left_out(at):
    upload(at, csv([*ROWS[:20], ("one", "two", "high"), ("three", "four", "nan"), ("five", "six"), *ROWS[20:]]))
    assert said(at, "**40 pairs** of 80 different sentences. **3 rows rejected**:")
    listed = table(at, "reason")
    assert list(listed["line"]) == [22, 23, 24]
    assert "score 'high' is not a number" in list(listed["reason"])
    assert not said(at, "malformed rows left out")  # their number stands over the list
    press(at, "use-file")
    assert any(one.label == "3 rows were rejected" for one in at.expander)
    assert not said(at, "malformed rows left out")
    assert any(one.label == "3 malformed rows were left out" for one in until(go_to(at, "overview")).expander)


def test_of_more_rejected_rows_than_are_in_sight_each_kind_is_counted_the_commonest_first(at):
    upload(at, csv([*ROWS[:20], ("", "two", "1"), *[("one", "two", f"<b>{i}</b>") for i in range(9)], *ROWS[20:]]))
    assert said(
        at,
        "- 9 rows, such as line 23: score '\\<b\\>0\\</b\\>' is not a number\n"
        "- 1 row, line 22: first sentence is empty",
    )
    assert list(table(at, "reason")["line"]) == [*range(22, 32)]


def test_rows_are_not_offered_to_be_left_out_where_none_would_be_left(small, tmp_path):
    (tmp_path / "labels.csv").write_text("sentence1,sentence2,score\na man,a dog,similar\na man,a cat,different\n")
    at = until(start("data", **small | {"data": str(tmp_path / "labels.csv")}), lambda at: at.error)
    assert failed(at, "2 rows cannot be read, and no row is left to keep: write scores as numbers, or give pairs with")
    assert not [one for one in at.checkbox if one.label == "Leave malformed rows out"]


def test_a_file_that_cannot_be_read_is_explained_and_the_page_lives_on(at):
    for name, content, message in (
        ("mine.csv", b"", "the file is empty"),
        ("mine.csv", "naïve,row,1\n".encode("latin-1"), "UTF"),
        ("mine.csv", b"sentence1,sentence2,score\n", "column names only"),
        ("mine.parquet", b"PAR1", "not a readable Parquet file"),
        ("mine.json", b"[1]", "No row of this file can be read"),
    ):
        assert failed(upload(at, content, name), message)
        assert "use-file" not in keys(at)
        assert metrics(at)["Pairs"] == f"{PAIRS}"


def test_a_file_that_is_gone_while_it_is_shown_is_explained_and_another_can_be_chosen(small, tmp_path):
    mine = tmp_path / "mine.csv"
    mine.write_bytes(Path(small["data"]).read_bytes())
    at = until(start("data", **small | {"data": str(mine)}))
    mine.unlink()
    at.run()
    assert not at.exception
    assert failed(at, "mine.csv")
    choose(at, data=small["data"])
    assert not at.error


def test_models_are_compared_on_an_upload_that_calls_itself_demo_and_is_not_taken_for_it(at, own):
    go_to(with_pairs(at, name="demo.csv"), "compare")
    assert not said(until(at), DEMONSTRATION)
    at.text_area[0].set_value("L2\nL1:pca").run()
    at.button(key="compare").click()
    until(at.run(), lambda at: "LaTeX" in downloads(at))
    assert f"{table(at, 'Setting')['demo'][0]:.2f}" == scored(own[1], "L2 aggregate=mean")


# Text


def test_pasted_pairs_are_used_like_a_file(at, own):
    at.text_area(key="pasted").set_value(csv(names=None, mark="\t").decode()).run()
    assert not at.button(key="use-paste").disabled
    assert live(press(at, "use-paste")) == scored(own[1], "L1:center")
    assert (at.button(key="use-paste").label, at.button(key="use-paste").disabled) == ("In use", True)
    press(at, "forget")
    assert (at.button(key="use-paste").label, at.button(key="use-paste").disabled) == ("Use this data", False)


@pytest.mark.parametrize(
    ("key", "turned", "line"), [("use-paste", "data", "{}\t{}\t{}\n"), ("use-text", "fit", "{}\n{}\n")]
)
def test_a_click_that_enters_another_text_does_not_use_the_one_before(at, key, turned, line):
    text = "".join(line.format(*row) for row in ROWS)
    at.text_area(key="pasted").set_value(text).run()
    at.text_area(key="pasted").set_value(text + line.format("Rain falls.", "A bus stops.", 0.5))
    press(at, key)
    assert at.session_state[turned] != "upload"
    press(at, key)
    assert at.session_state[turned] == "upload"


def test_pasted_sentences_are_no_data_but_a_text_to_fit_on(at):
    at.text_area(key="pasted").set_value("".join(f"{a}\n{b}\n" for a, b, _ in ROWS)).run()
    assert said(at, "**80 sentences**, 80 of them different, and no score", "they cannot be the data of a page")
    at.selectbox(key="whitening").set_value("pca")
    press(at, "use-text")
    assert at.selectbox(key="fit").value == "upload"
    assert said(at, "Fitted on pasted sentences, 80 sentences.", "fitted on 80 sentences")
    assert "fitted on the 80 sentences of pasted sentences" in protocol(until(go_to(at, "uniformity")))


def test_pasted_sentences_and_a_file_to_fit_on_take_each_others_place(at):
    at.text_area(key="pasted").set_value("".join(f"{a}\n{b}\n" for a, b, _ in ROWS)).run()
    choose(at, whitening="pca", fit="upload")
    for file in ("fit-file-0", "fit-file-1"):
        until(upload(at, b"Rain falls.\nA bus stops.\nHe reads.\n", "mine.txt", file))
        assert said(at, "fitted on 3 sentences")
        press(at, "use-text")
        assert said(at, "Fitted on pasted sentences, 80 sentences.", "fitted on 80 sentences")


def test_the_only_column_of_text_of_a_table_is_a_text_to_fit_on(at):
    choose(at, whitening="pca", fit="upload")
    table = b"Nr;Question;Weight\n" + b"".join(b"%d;Who reads book %d?;0,%d\n" % (i, i, i % 9) for i in range(1, 9))
    until(upload(at, table, "questions.csv", "fit-file-0"))
    assert said(at, "fitted on 8 sentences", "Fitted on questions.csv, 8 sentences of its column *Question*.")
    table = b"id,q,day\nx1,Who reads?,2024-01-02\nx2,,2024-01-03\nx3,Who sings?,2024-01-04\n"
    until(upload(at, table, "b.csv", "fit-file-0"))
    assert said(at, "Fitted on b.csv, 2 sentences of its column *q*, 1 row left out.")


def test_a_link_to_a_text_that_is_not_here_says_on_the_page_what_its_map_is_fitted_on(small):
    at = until(start(**small, fit="Uploaded text file"))
    for page in tour(at, ("data", "probe", "overview", "whitening")):
        wanted = [TEXT_GONE] * (page in ("overview", "whitening"))  # the others' numbers are of no map of the bar's
        assert [one.value for one in at.main.warning] == wanted, page
        assert "fitted on the task's" in protocol(at)
    assert not choose(at, whitening="none").main.warning  # of which there is no map
    until(upload(choose(at, whitening="pca"), b"Rain falls.\nA bus stops.\nHe reads.\n", "mine.txt", "fit-file-0"))
    assert TEXT_GONE not in [one.value for one in at.main.warning]
    assert "fitted on the 3 sentences of mine.txt" in protocol(at)
    at = until(start(**small, fit="/nowhere/text.txt"))
    assert "text.txt" in at.main.warning[0].value
    assert at.main.warning[0].value == at.sidebar.error[0].value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\nc\td\n", "holds 2 columns"),
        ("a\tb\tc\nd\te\tf", "No column is mostly numbers"),
        (
            "sentence1\tsentence2\tscore\na\tb\t95 %\nc\td\t40 %",
            "in words or percentages, write numbers in their place.",
        ),
    ],
)
def test_pasted_lines_that_are_no_pairs_are_explained(at, text, message):
    at.text_area(key="pasted").set_value(text).run()
    assert said(at, message) or failed(at, message)
    assert not keys(at) & {"use-paste", "use-text"}


# Vectors


def test_vectors_stand_for_a_model_on_every_page_and_are_fitted_on_their_own_only(small, own):
    at = until(start("data", **small, whitening="Centred", fit="All splits of the task"))
    with_vectors(at, own)
    assert at.selectbox(key="fit").value == "task"
    assert at.selectbox(key="fit").options == ["The task's sentences", "Cross-fitted halves"]
    for page in tour(at, SPACED):
        assert not at.error
        assert live(at) == scored(own[1], "L1:center")
        assert said(at, "stand for a model")
        assert not any(one.key in ("model", "pooling", "dtype") for one in (*at.selectbox, *at.get("button_group")))
        assert protocol(at).startswith("vectors of mine.npz")
        assert "as given" in protocol(at)
        assert "tokens" not in protocol(at)
        assert said(at, "vectors come without a model") is (page in ("compare", "probe", "retrieval"))


def test_maps_can_be_fitted_on_all_vectors_that_were_brought(small, own, tmp_path):
    arrays = dict(np.load(io.BytesIO(npz_bytes(*own))))
    rest = np.random.default_rng(2).standard_normal((*arrays["values"].shape[:1], 30, arrays["values"].shape[2]))
    arrays["values"] = np.concatenate([arrays["values"], rest.astype(np.float32)], axis=1)
    del arrays["sentences"]
    np.savez(tmp_path / "more.npz", **arrays)
    at = until(start("data", **small, whitening="Centred"))
    press(upload(at, (tmp_path / "more.npz").read_bytes(), "more.npz", "vectors-files"), "use-vectors")
    choose(at, fit="vectors")
    space = whitelab.read_vectors(tmp_path / "more.npz").space
    assert live(at) == scored(space, "given/L1:center fit=vectors")
    assert "fitted on all 110 vectors" in protocol(until(go_to(at, "whitening")))
    assert not at.exception


def test_arrays_of_one_layer_in_files_of_their_own_are_a_space(at, own):
    pairs, space = own
    files = []
    for name, array in (("first", space.values[2][space.first]), ("second", space.values[2][space.second])):
        out = io.BytesIO()
        np.save(out, array.numpy())
        files.append((f"{name}.npy", out.getvalue(), "application/octet-stream"))
    at.file_uploader(key="vectors-files").set_value(files)
    gold = "score\n" + "".join(f"{value}\n" for value in pairs.gold)
    upload(at, gold.encode(), "gold.csv", "gold-file")
    assert said(at, "**1 layer of 80 vectors**, d = 32, float32, for **40 pairs**, without text.")
    press(at, "use-vectors")
    assert at.get_by_key("layers").value == [0]
    assert live(at) == scored(space, "L2:center")
    assert len(at.get("plotly_chart")) == 1  # no sentences, no lengths


def test_of_vectors_alone_a_map_is_seen_and_taken_away(at, saved):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((400, 12)) * np.linspace(3, 0.2, 12) + 4
    out = io.BytesIO()
    np.save(out, x)
    upload(at, out.getvalue(), "mine.npy", "vectors-files")
    assert said(at, "**1 layer of 400 vectors**, d = 12, float64, without pairs.")
    until(at.get_by_key("alone-k-12").set_value(5).run())
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    raw = (np.square(unit.sum(0)).sum() - 400) / (400 * 399)
    with np.load(io.BytesIO(saved["take-npz"]()), allow_pickle=False) as file:
        z = (x - file["mean"]) @ file["matrix"]
    np.testing.assert_allclose(np.cov(z.T), np.eye(5), atol=1e-9)
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    mean = "Mean cosine of two vectors"
    assert float(metrics(at)[mean]) == pytest.approx((np.square(unit.sum(0)).sum() - 400) / (400 * 399), abs=6e-4)
    assert float(deltas(at)[mean].split()[1]) == pytest.approx(raw, abs=6e-4)
    assert 0.5 < float(metrics(at)["Isotropy of unseen vectors"]) < 1
    rows = {row["label"]: row for row in csv_module.DictReader(io.StringIO(data(at)["headlines"]))}
    assert rows[mean]["model"] == "vectors of mine.npy" != rows["Pairs"].get("model")
    assert "use-vectors" not in keys(at)
    assert live(at) is not None  # the bar keeps its own data
    assert not at.exception


def test_what_a_cosine_of_vectors_alone_means_is_found_once_for_every_download(at, saved, monkeypatch):
    drawn = []
    draw = parcel.random_cosines
    monkeypatch.setattr(parcel, "random_cosines", lambda *of: drawn.append(of) or draw(*of))
    out = io.BytesIO()
    np.save(out, np.random.default_rng(7).standard_normal((300, 6)) + 1)
    upload(at, out.getvalue(), "mine.npy", "vectors-files")
    first, second = (np.load(io.BytesIO(saved["take-npz"]())) for _ in range(2))
    assert len(drawn) == 1
    np.testing.assert_array_equal(first["percentile"], second["percentile"])


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (np.eye(4), "sets the very texts it was fitted on equally far apart"),
        (np.arange(9.0)[:, None], ""),
        (np.ones((1, 4)), "does not vary"),
        (np.ones((9, 4)), "does not vary"),
        (np.zeros((9, 4)), "does not vary"),
    ],
    ids=("few", "one number", "one", "equal", "zero"),
)
def test_few_or_equal_vectors_alone_end_in_words(at, x, words):
    out = io.BytesIO()
    np.save(out, x)
    upload(at, out.getvalue(), "mine.npy", "vectors-files")
    assert said(at, f"{len(x)} vector", "fitted on all vectors")
    assert [words in one.value for one in at.main.warning] == [True] * bool(words)
    assert metrics(at)["Mean cosine of two vectors"] != "nan"
    assert not at.exception


def test_a_variant_that_vectors_are_too_narrow_for_is_said(at):
    out = io.BytesIO()
    np.save(out, np.random.default_rng(0).standard_normal((50, 4)))
    upload(at, out.getvalue(), "mine.npy", "vectors-files")
    at.get_by_key("alone-map").set_value("group").run()
    assert any("groups" in one.value for one in at.main.info)
    assert not at.exception
    assert "Take it away" not in [one.value for one in at.header]


def test_the_code_prints_what_is_shown_of_vectors_alone(at, tmp_path, monkeypatch, capsys):
    x = np.random.default_rng(1).standard_normal((60, 6)) + 2
    np.save(tmp_path / "mine.npy", x)
    upload(at, (tmp_path / "mine.npy").read_bytes(), "mine.npy", "vectors-files")
    monkeypatch.chdir(tmp_path)
    lines = code(at)
    exec("import whitelab\n" + lines[lines.index("found = whitelab.read_either") :].partition("\n\n")[0], {})
    shown = metrics(at)["Directions that carry the variance"], deltas(at)["Mean cosine of two vectors"].split()[1]
    raw = capsys.readouterr().out.splitlines()[0].split(" ")
    assert (f"{float(raw[-8]):.1f}", f"{float(raw[-9]):.3f}") == shown


def test_gold_scores_alone_ask_for_their_vectors_and_either_in_the_others_box_is_told_its_own(at):
    out = io.BytesIO()
    np.save(out, np.ones((9, 4)))
    upload(at, out.getvalue(), "my vectors.npy", "gold-file")
    assert said(at, "bring the vectors they are of in the box *Vectors*")
    assert failed(
        upload(at, out.getvalue(), "my vectors.npy", "vectors-files"),
        "my vectors.npy: gold scores must have the shape [p], one for each pair, got [9, 4]; vectors go under Vectors",
    )
    upload(at, b"score\n1\n2\n", "gold.csv", "gold-file")
    out = io.BytesIO()
    np.save(out, np.ones(9))
    at.file_uploader(key="gold-file").set_value(None)
    assert failed(upload(at, out.getvalue(), "mine.npy", "vectors-files"), "[9] float64 are gold scores; needed beside")


def test_arrays_that_do_not_fit_are_explained(at):
    for name, arrays, message in (
        ("mine.npz", {"first": np.zeros((4, 3)), "second": np.zeros((4, 2)), "gold": np.zeros(4)}, "the shape of"),
        ("other.npz", {"first": np.array([{}])}, "only pickle could read"),
    ):
        out = io.BytesIO()
        np.savez(out, **arrays)
        assert failed(upload(at, out.getvalue(), name, "vectors-files"), message)
        assert "use-vectors" not in keys(at)


def test_the_model_its_layers_and_k_come_back_after_vectors(small, own):
    at = until(start("data", **small, layers=["0", "2"], k="10", pooling="[CLS]"))
    before = live(at)
    with_vectors(at, own)
    assert at.get_by_key("layers").value == [1]
    assert knob(at)["k"] == 32
    choose(at, k=7)
    choose(at, data=small["data"])
    assert at.get_by_key("layers").value == [0, 2]
    assert knob(at)["k"] == 10
    assert live(at) == before


# Nobody else's


def everything(at: AppTest) -> str:
    """All text of a page."""
    texts = [one.value for kind in (at.markdown, at.caption, at.info, at.error, at.code, at.title) for one in kind]
    texts += [one.value.to_csv() for one in at.dataframe]
    texts += [f"{one.label} {one.value} {one.options}" for one in at.selectbox]
    return "\n".join([*map(str, texts), *(one.proto.spec for one in at.get("plotly_chart"))])


def test_an_upload_never_reaches_another_session_and_its_link_says_whose_it_was(at, small):
    secret = "The heron waits by the water"
    rows = [(f"{secret} {i}.", b, gold) for i, (_, b, gold) in enumerate(ROWS)]
    with_pairs(at, csv(rows), "confidential.csv")
    assert secret in everything(at)
    other = until(start("data", **at.query_params))

    def knows_nothing(page):
        shown = everything(other)
        assert secret not in shown
        assert "confidential" not in shown
        assert [one.value for one in other.title] == [QUESTIONS[page]]
        assert not other.error

    for page in tour(other, ("data", "overview")):
        knows_nothing(page)
        assert other.selectbox(key="data").value == "demo"
    assert sum(one.value == GONE for one in other.info) == 1
    other.selectbox(key="data").set_value("nowhere")
    other.run()
    assert not any(one.value == GONE for one in choose(other, data=small["data"]).info)
    for page in tour(other):  # of few pairs, in which every page is quick
        knows_nothing(page)
    assert secret in everything(until(at.run()))


def test_the_same_file_in_two_sessions_is_two_things(at, small):
    with_pairs(at, csv([*ROWS, ("kept", "to myself", "not a score of yours")]), "first name.csv")
    other = with_pairs(until(start("data", **small, whitening="Centred")), name="second name.csv")
    assert live(at) == live(other)  # the same pairs
    shown = everything(until(go_to(other, "overview")))
    assert "first name" not in shown
    assert "malformed" not in shown


@pytest.mark.parametrize(("page", "key"), [("probe", "labelled"), ("retrieval", "searched-data")])
@pytest.mark.parametrize("of", ["overview", "its own page", "its own page, looked at before"])
def test_what_is_no_pairs_is_opened_on_the_page_that_reads_it_by_one_press(small, tmp_path, page, key, of):
    folder = tmp_path / "TREC" if page == "probe" else write_retrieval(tmp_path / "search")
    if page == "probe":
        folder.mkdir()
        lines = "".join(
            f"{kind}:what Is that a {word} ?\n" for kind in ("DESC", "NUM") for word in ("dog", "cat", "man")
        )
        for name in ("train_5500.label", "TREC_10.label"):
            (folder / name).write_text(lines)
    link = small | {"data": str(folder), "whitening": "ZCA whitening", "k": "3", "layers": "2"}
    if of == "its own page, looked at before":
        at = choose(until(start(page, **link | small)), lambda at: at.error, data=str(folder))
    else:
        at = start(of if of == "overview" else page, **link)
    until(at, lambda at: [one for one in at.button if one.key == "elsewhere"])
    press(at, "elsewhere")
    assert [one.value for one in at.title] == [QUESTIONS[page]]
    assert (at.selectbox(key="data").value, at.selectbox(key=key).value) == ("demo", str(folder))
    if of != "overview":  # what the address says is asked for once more there, and AppTest has no address of a session
        assert (at.selectbox(key="whitening").value, at.session_state["layers"]) == ("zca", [2])
        assert at.selectbox(key="model").value == small["model"]
    assert not at.error
