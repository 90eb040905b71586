"""The data page and what a visitor brings: used on every page, kept from everyone else."""

import io

import numpy as np
import pytest
from questions import QUESTIONS
from streamlit.testing.v1 import AppTest

import whitelab
from whitelab.base import upload_limits
from whitelab.datasets import open_sheet
from whitelab.encoding.embeddings import embed_pairs
from whitelab.encoding.precomputed import npz_bytes
from whitelab.ui.sidebar.own_data import GONE, LABEL

from .visiting import go_to, has_downloads, live, metrics, said, scored, start, until

pytestmark = [pytest.mark.model, pytest.mark.usefixtures("demo")]

PAGES = [page for page in QUESTIONS if page != "training"]  # which has data of its own

ROWS = [(f"A cat sits on mat {i}.", f"The dog number {i} runs home.", f"{(i * 7) % 11 / 2}") for i in range(40)]


def table(rows=ROWS, names=("left", "right", "label"), mark=",") -> bytes:
    return "".join(mark.join(row) + "\n" for row in ([names] if names else []) + list(rows)).encode()


@pytest.fixture(scope="module")
def own(own_store, tmp_path_factory):
    """The pairs of `ROWS` and their embeddings, made by the package."""
    path = tmp_path_factory.mktemp("own") / "mine.csv"
    path.write_bytes(table())
    pairs = open_sheet(path).pairs(0, 1, 2)
    return pairs, embed_pairs(whitelab.load_encoder("bundled"), pairs, store=whitelab.Store())[0]


def data_page(**query) -> AppTest:
    """The page, centring: the few sentences here span less than all dimensions, so whitening has no score."""
    return until(start("data", **{"whitening": "Centred"} | query))


def centred(space, **changes) -> str:
    found = scored(space, **{"whitening": "center"} | changes)
    assert found != "undefined"
    return found


def upload(at: AppTest, data: bytes, name="mine.csv", key="pairs-file") -> AppTest:
    at.file_uploader(key=key).set_value((name, data, "application/octet-stream"))
    return at.run()


def press(at: AppTest, key: str) -> AppTest:
    at.button(key=key).click()
    return until(at.run())


def with_pairs(data: bytes | None = None, **query) -> AppTest:
    """A session that uses an upload of pairs."""
    return press(upload(data_page(**query), data or table()), "use-file")


def with_vectors(own, **query) -> AppTest:
    """A session that uses the embeddings of the pairs, without a model."""
    at = upload(data_page(**query), npz_bytes(*own), "mine.npz", "vectors-files")
    return press(at, "use-vectors")


# What is loaded


def test_the_page_shows_the_data_it_finds():
    at = data_page()
    pairs = whitelab.load("demo")
    shown = metrics(at)
    assert shown["Pairs"] == "1\u202f500"
    assert shown["Different sentences"] == "3\u202f000"
    assert shown["Gold scores"] == "0 to 5"
    subsets = next(one.value for one in at.dataframe if "Subset" in one.value.columns and "Pairs" in one.value.columns)
    assert dict(zip(subsets["Subset"], subsets["Pairs"], strict=True)) == {
        name: int((pairs.subset == number).sum()) for number, name in enumerate(pairs.subset_names)
    }


def found(at: AppTest):
    return next(one.value for one in at.dataframe if "First sentence" in one.value.columns)


def test_pairs_are_found_by_their_words_and_ordered_by_gold():
    at = data_page()
    at.text_input(key="find").set_value("GUITAR").run()
    at.get_by_key("order").set_value("highest gold")
    until(at.run())
    pairs, listed = whitelab.load("demo"), found(at)
    both = zip(pairs.first, pairs.second, pairs.gold, strict=True)
    wanted = sorted((gold for a, b, gold in both if "guitar" in f"{a}\n{b}".casefold()), reverse=True)
    assert list(listed["Gold"]) == wanted
    assert wanted
    at.text_input(key="find").set_value("no such words").run()
    assert len(found(at)) == 0
    assert said(at, "0 of 1\u202f500 pairs")


# Pairs


def test_an_upload_is_read_chosen_and_used(own):
    at = upload(data_page(), table())
    assert [
        at.selectbox(key=one.key).value for one in at.selectbox if one.key.startswith(("first-", "second-", "score-"))
    ] == [
        "left",
        "right",
        "label",
    ]
    assert said(at, "**40 pairs** of 80 different sentences, no row rejected.")
    assert metrics(at)["Pairs"] == "1\u202f500"  # until it is used
    press(at, "use-file")
    assert metrics(at)["Pairs"] == "40"
    assert at.selectbox(key="data").value == "upload"
    assert at.query_params["data"] in (LABEL, [LABEL])
    assert live(at) == centred(own[1])
    assert said(at, "**mine.csv**, your upload: only this session sees it.")


def test_other_columns_than_the_recognised_ones_can_be_chosen():
    rows = [(a, b, gold, f"note {i % 3}", f"{i % 4}") for i, (a, b, gold) in enumerate(ROWS)]
    at = upload(data_page(), table(rows, ("left", "right", "label", "topic", "other")))
    assert said(at, "Which column is which is not clear")
    assert not any(one.key == "use-file" for one in at.button)
    for role, column in (("first", "left"), ("second", "right"), ("score", "other"), ("subset", "topic")):
        next(one for one in at.selectbox if one.key.startswith(f"{role}-")).set_value(column)
    at.run()
    assert said(at, "3 subsets")
    press(at, "use-file")
    assert metrics(at)["Gold scores"] == "0 to 3"


def test_whether_the_first_line_holds_names_can_be_set():
    at = upload(data_page(), table(names=None))
    box = next(one for one in at.checkbox if one.key.startswith("header-"))
    assert box.value is False
    assert said(at, "**40 pairs**")
    box.check().run()
    assert next(one for one in at.selectbox if one.key.startswith("first-")).options[0] == ROWS[0][0]
    next(one for one in at.checkbox if one.key.startswith("header-")).uncheck().run()
    assert said(at, "**40 pairs**")


def test_rejected_rows_are_listed_with_line_and_reason_before_and_after_they_are_left_out():
    data = table([*ROWS[:20], ("one", "two", "high"), ("three", "four", "nan"), ("five", "six"), *ROWS[20:]])
    at = upload(data_page(), data)
    assert said(at, "**40 pairs** of 80 different sentences. **3 rows rejected**:")
    listed = next(one.value for one in at.dataframe if "reason" in one.value.columns)
    assert list(listed["line"]) == [22, 23, 24]
    assert "score 'high' is not a number" in list(listed["reason"])
    press(at, "use-file")
    assert any(one.label == "3 rows were rejected" for one in at.expander)
    go_to(at, "overview")
    until(at)
    assert any(one.label == "3 malformed rows were left out" for one in at.expander)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("mine.csv", b"", "the file is empty"),
        ("mine.csv", "naïve,row,1\n".encode("latin-1"), "UTF"),
        ("mine.csv", b"sentence1,sentence2,score\n", "column names only"),
        ("mine.parquet", b"PAR1", "not a readable Parquet file"),
        ("mine.json", b"[1]", "No row of this file can be read"),
    ],
)
def test_a_file_that_cannot_be_read_is_explained_and_the_page_lives_on(name, data, message):
    at = upload(data_page(), data, name)
    assert any(message in one.value for one in at.error)
    assert not at.exception
    assert not any(one.key == "use-file" for one in at.button)
    assert metrics(at)["Pairs"] == "1\u202f500"


def test_limits_and_who_sees_it_are_said_before_an_upload():
    at = data_page()
    assert said(at, upload_limits.of_table())
    assert said(at, upload_limits.of_vectors().split(",")[0])
    assert sum("nobody else sees it" in one.value for one in at.caption) == 3
    sizes = {one.proto.label: one.proto.max_upload_size_mb for one in at.get("file_uploader")}
    assert sizes["File of pairs"] == upload_limits.TABLE_MB
    assert sizes["Vectors"] == upload_limits.VECTORS_MB


@pytest.mark.parametrize("page", [page for page in PAGES if page != "data"])
def test_an_upload_of_pairs_is_the_data_of_every_page(page, own):
    at = with_pairs()
    go_to(at, page)
    until(at)
    assert not at.error
    assert live(at) == centred(own[1])
    assert any("mine.csv" in one.value and one.value.endswith("40 pairs") for one in at.caption)
    assert not said(at, "Demonstration set written for this project")
    assert "open_sheet('mine.csv', header=True).pairs('left', 'right', 'label')" in at.code[-1].value


def test_the_code_of_a_page_reads_the_upload(own, tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.csv").write_bytes(table())
    monkeypatch.chdir(tmp_path)
    at = with_pairs()
    go_to(at, "overview")
    exec(compile(until(at).code[-1].value, "overview", "exec"), {})
    scores = dict(line.split() for line in capsys.readouterr().out.splitlines())
    assert f"{float(scores['center']):.2f}" == live(at)


def test_models_are_compared_on_an_upload(own):
    at = with_pairs()
    go_to(at, "compare")
    until(at)
    at.text_area[0].set_value("L6\nL1+L6:pca").run()
    at.button(key="compare").click()
    until(at.run(), has_downloads)
    cells = next(one.value for one in at.dataframe if "Setting" in one.value.columns)
    mean = {"aggregate": "mean"}
    assert f"{cells['mine'][0]:.2f}" == scored(own[1], layers=(6,), whitening="none", **mean)


def test_an_upload_may_call_itself_demo_and_is_not_taken_for_it():
    at = upload(data_page(), table(), "demo.csv")
    press(at, "use-file")
    assert not said(at, "Demonstration set written for this project")


def test_letting_go_brings_the_demonstration_set_back():
    at = press(with_pairs(), "forget")
    assert metrics(at)["Pairs"] == "1\u202f500"
    assert at.selectbox(key="data").options == ["Demonstration set (bundled)"]
    assert LABEL not in str(at.query_params.get("data"))


# Text


def test_pasted_pairs_are_used_like_a_file(own):
    at = data_page()
    at.text_area(key="pasted").set_value(table(names=None, mark="\t").decode()).run()
    press(at, "use-paste")
    assert live(at) == centred(own[1])


def test_pasted_sentences_are_no_data_but_a_text_to_fit_on():
    at = data_page()
    at.text_area(key="pasted").set_value("".join(f"{a}\n{b}\n" for a, b, _ in ROWS)).run()
    assert said(at, "**80 sentences**, 80 of them different, and no score")
    assert said(at, "they cannot be the data of a page")
    at.selectbox(key="whitening").set_value("pca")
    press(at, "use-text")
    assert at.selectbox(key="fit").value == "upload"
    assert said(at, "Fitted on pasted sentences, 80 sentences.")
    assert any("fitted on 80 sentences" in one.value for one in at.caption)
    go_to(at, "uniformity")
    until(at)
    assert any("fitted on the 80 sentences of pasted sentences" in one.value for one in at.caption)


@pytest.mark.parametrize(
    ("text", "message"), [("a\tb\nc\td\n", "holds 2 columns"), ("a\tb\tc\nd\te\tf", "Which column")]
)
def test_pasted_lines_that_are_no_pairs_are_explained(text, message):
    at = data_page()
    at.text_area(key="pasted").set_value(text).run()
    assert any(message in one.value for one in (*at.error, *at.info))
    assert not any(one.key in ("use-paste", "use-text") for one in at.button)


# Vectors


@pytest.mark.parametrize("page", PAGES)
def test_vectors_stand_for_a_model_on_every_page(page, own):
    at = with_vectors(own)
    if page != "data":
        go_to(at, page)
        until(at)
    assert not at.error
    assert live(at) == centred(own[1])
    assert said(at, "stand for a model")
    assert not any(one.key in ("model", "pooling", "dtype") for one in (*at.selectbox, *at.get("button_group")))
    line = next(one.value for one in at.caption if one.value.startswith("vectors of mine.npz"))
    assert "as given" in line
    assert "tokens" not in line
    if page == "compare":
        assert said(at, "Another model would have to embed the sentences")


def test_the_code_of_a_page_reads_the_vectors(own, tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.npz").write_bytes(npz_bytes(*own))
    monkeypatch.chdir(tmp_path)
    at = with_vectors(own)
    for page in PAGES:
        if page != "data":
            go_to(at, page)
        exec(compile(until(at).code[-1].value, page, "exec"), {})
        assert capsys.readouterr().out.strip()


def test_arrays_of_one_layer_in_files_of_their_own_are_a_space(own):
    pairs, space = own
    at = data_page()
    files = []
    for name, array in (("first", space.values[6][space.first]), ("second", space.values[6][space.second])):
        out = io.BytesIO()
        np.save(out, array.numpy())
        files.append((f"{name}.npy", out.getvalue(), "application/octet-stream"))
    at.file_uploader(key="vectors-files").set_value(files)
    gold = "score\n" + "".join(f"{value}\n" for value in pairs.gold)
    upload(at, gold.encode(), "gold.csv", "gold-file")
    assert said(at, "**1 layer of 80 vectors**, d = 384, float32, for **40 pairs**, without text.")
    press(at, "use-vectors")
    assert at.get_by_key("layers").value == [0]
    assert live(at) == centred(space, layers=(6,))
    assert len(at.get("plotly_chart")) == 1  # no sentences, no lengths


def test_arrays_that_do_not_fit_are_explained(own):
    out = io.BytesIO()
    np.savez(out, first=np.zeros((4, 3)), second=np.zeros((4, 2)), gold=np.zeros(4))
    at = upload(data_page(), out.getvalue(), "mine.npz", "vectors-files")
    assert any("must have the shape of" in one.value for one in at.error)
    out = io.BytesIO()
    np.savez(out, first=np.array([{}]))
    at = upload(at, out.getvalue(), "other.npz", "vectors-files")
    assert any("only pickle could read" in one.value for one in at.error)
    assert not any(one.key == "use-vectors" for one in at.button)


def test_the_model_its_layers_and_k_come_back_after_vectors(own):
    at = data_page(layers=["2", "3"], k="100", pooling="[CLS]")
    before = live(at)
    upload(at, npz_bytes(*own), "mine.npz", "vectors-files")
    press(at, "use-vectors")
    assert at.get_by_key("layers").value == [1, 6]
    assert at.slider(key="k").value == 384
    at.slider(key="k").set_value(7)
    until(at.run())
    at.selectbox(key="data").set_value("demo")
    until(at.run())
    assert at.get_by_key("layers").value == [2, 3]
    assert at.slider(key="k").value == 100
    assert live(at) == before


def test_vectors_are_fitted_on_their_own_only(own):
    at = with_vectors(own, fit="All splits of the task")
    assert at.selectbox(key="fit").value == "task"
    assert at.selectbox(key="fit").options == ["The task's sentences", "Cross-fitted halves"]


def test_the_embeddings_of_a_space_are_offered(own):
    at = with_pairs()
    assert any(one.proto.label.startswith("Embeddings .npz") for one in at.get("download_button"))


# Nobody else's


def everything(at: AppTest) -> str:
    """All text of a page."""
    texts = [one.value for kind in (at.markdown, at.caption, at.info, at.error, at.code, at.title) for one in kind]
    texts += [one.value.to_csv() for one in at.dataframe]
    texts += [f"{one.label} {one.value} {one.options}" for one in at.selectbox]
    return "\n".join([*map(str, texts), *(one.proto.spec for one in at.get("plotly_chart"))])


def test_an_upload_never_reaches_another_session(own):
    secret = "The heron waits by the water"
    rows = [(f"{secret} {i}.", b, gold) for i, (_, b, gold) in enumerate(ROWS)]
    one = upload(data_page(), table(rows), "confidential.csv")
    press(one, "use-file")
    assert secret in everything(one)
    link = dict(one.query_params)
    other = until(start("data", **link))
    for page in PAGES:
        if page != "data":
            go_to(other, page)
        shown = everything(until(other))
        assert secret not in shown
        assert "confidential" not in shown
    assert secret in everything(until(one.run()))


def test_the_link_to_an_upload_says_whose_it_was_and_shows_the_default():
    link = dict(with_pairs().query_params)
    for page in PAGES:
        at = until(start(page, **link))
        assert [one.value for one in at.title] == [QUESTIONS[page]]
        assert sum(one.value == GONE for one in at.info) == 1
        assert not at.error
        assert at.selectbox(key="data").value == "demo"
    at.selectbox(key="data").set_value("nowhere")
    at.run()
    at.selectbox(key="data").set_value("demo")
    until(at.run())
    assert not any(one.value == GONE for one in at.info)


def test_the_same_file_in_two_sessions_is_two_things():
    data = table([*ROWS, ("kept", "to myself", "not a score of yours")])
    one = upload(data_page(), data, "first name.csv")
    press(one, "use-file")
    other = upload(data_page(), table(), "second name.csv")
    press(other, "use-file")
    assert live(one) == live(other)  # the same pairs
    go_to(other, "overview")
    shown = everything(until(other))
    assert "first name" not in shown
    assert "malformed" not in shown
