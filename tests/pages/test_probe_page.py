"""The page of probes: accuracies of the package, on the bundled examples and on files of one's own."""

import json
import re
import shutil
import tempfile

import pytest
from streamlit.testing.v1 import AppTest

import whitelab
from whitelab.base import upload_limits
from whitelab.encoding.embeddings import LayerRows
from whitelab.probe import How, embed_texts, probe
from whitelab.scoring.setting import parse_settings

from .visiting import choose, failed, go_to, judged, metrics, said, start, table, until, upload, write_scored

pytestmark = pytest.mark.model


@pytest.fixture
def probed(small):
    """Accuracies as the page writes them, from the package."""

    def found(task: str, how: How, settings: str, corpus=None) -> list[str]:
        data = whitelab.load_labelled("demo", task)
        texts, _ = embed_texts(whitelab.load_encoder(small["model"]), data)
        return [f"{probe(texts, data, one, how, corpus=corpus).accuracy:.2f}" for one in parse_settings(settings)]

    return found


def accuracies(at) -> list[str]:
    return [value for label, value in metrics(at).items() if label.startswith("Accuracy, ")]


def test_accuracies_follow_labels_classifier_fit_and_layers(small, space, probed):
    at = until(start("probe", **small))
    assert metrics(at)["Most frequent class"] == "20.00"
    fit = next(one for one in at.selectbox if one.label == "Whitening fitted on").key
    choose(at, **{fit: "workspace"})
    corpus = LayerRows(space.values, space.counts)
    assert accuracies(at) == probed("act", How("knn", fit="the pairs sentences"), "L1;L1:pca", corpus)
    choose(at, **{fit: "train"})
    assert accuracies(at) == probed("act", How("knn"), "L1;L1:pca")
    assert judged(at, "Accuracy, PCA whitening") != said(at, "No proof of a gap")
    choose(choose(at, layers=[3]), classifier_demo="linear")
    assert accuracies(at) == probed("act", How("linear"), "L3;L3:pca")
    assert judged(at, "Accuracy, PCA whitening") != said(at, "No proof of a gap")
    choose(choose(at, labelled_task="domain"), classifier_demo="knn")
    assert accuracies(at) == probed("domain", How("knn"), "L3;L3:pca")
    assert accuracies(choose(at, k=5)) == probed("domain", How("knn"), "L3;L3:pca@5")
    assert "Accuracy, PCA whitening, k = 5" in metrics(at)


def test_what_is_to_be_known_of_the_model_is_said_once_and_of_the_bars_pairs_beside_the_live_score(place, tmp_path):
    shutil.copytree(place / "model", tmp_path / "model")
    listed = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Dense", "2_Dense")]
    modules = [{"type": f"x.{kind}", "path": path} for kind, path in listed]
    (tmp_path / "model" / "modules.json").write_text(json.dumps(modules))
    pairs = write_scored(tmp_path / "pairs.tsv", [1, 2, 3, 4])
    with open(pairs, "a", encoding="utf-8") as file:
        file.write("☃☃\t☃☃☃\t5\n")
    texts = tmp_path / "own.tsv"
    rows = [f"{('a man plays', 'water')[i % 2]} {i}.\t{('pet', 'bus')[i % 2]}\n" for i in range(23)]
    texts.write_text("text\tlabel\n" + "".join([*rows, "☃☃\tbus\n"]))
    at = until(start("probe", model=str(tmp_path / "model"), data=pairs, labelled=str(texts)))
    notes = [one.value.replace("\\", "") for one in at.caption if one.value.startswith("Note")]
    assert [note.startswith("Note: ") for note in notes if "has modules after its layers" in note] == [True]
    ours, theirs = (note for note in notes if "of mostly unknown words" in note)
    assert ours.startswith("Note: 1 sentence of mostly")
    assert theirs.startswith("Note on the bar's pairs: 2 sentences of mostly")
    go_to(at, "overview")  # whose numbers are of the pairs
    assert said(until(at), "Note: 2 sentences of mostly unknown words")
    assert not said(at, "Note on ")
    go_to(at, "training")  # which closes as every page does
    assert said(until(at), "Note on the bar's pairs: 2 sentences of mostly unknown words", "ends with the live score.")


def test_pairs_show_their_cosines_at_the_fixed_and_the_best_threshold(small, probed):
    at = until(start("probe", **small | {"layers": "3", "labelled-task": "Related pairs"}))
    assert accuracies(at) == probed("related", How("threshold"), "L3;L3:pca")
    assert [one.value for one in at.header][-1] == "Where would the threshold have to be?"
    captions = [one.value for one in at.caption if "best threshold on the scored pairs" in one.value]
    raw, white = (float(re.search(r"([\d.]+) % at ", one)[1]) for one in captions)
    (gap,) = re.findall(
        r"at the best threshold of each on the scored pairs, the gap is (\S+) points", "".join(at.markdown.values)
    )
    assert float(gap) == pytest.approx(white - raw, abs=0.011)
    assert said(at, f"{white:.2f} against {raw:.2f}")
    assert not said(until(choose(at, labelled_task="act")), "best threshold of each")


def test_a_file_of_ones_own_is_probed_and_its_errors_are_said(small, tmp_path):
    path = tmp_path / "own.tsv"
    both = (("a man plays", "pet"), ("water", "bus"))
    rows = [f"{both[i % 2][0]} {i}.\t{both[i % 2][1]}\n" for i in range(38)]
    rows += ["water " * 200 + "\tbus\n", "☃☃\tpet\n"]
    path.write_text("text\tlabel\n" + "".join(rows))
    at = until(start("probe", **small, labelled=str(path)))
    shown = metrics(at)
    assert shown["Most frequent class"] == "50.00"
    assert said(at, "Note: 1 text was cut to 128 tokens.")
    assert said(at, "Note: 1 sentence of mostly unknown words")
    path.write_text("text\tlabel\n" + "".join(rows) + "\tpet\n")
    at = until(start("probe", **small, labelled=str(path)), lambda at: at.checkbox)
    assert failed(at, "1 row cannot be read")
    assert accuracies(choose(at, labelled_keep=True))[0] == shown["Accuracy, raw"]
    path.write_text("left\tright\tgrade\n" + "".join(f"a man {i}\twater {i}\t{i % 2}\n" for i in range(24)))
    at = until(start("probe", **small, labelled=str(path)), lambda at: at.error)
    assert failed(at, "'left' (text)")
    assert failed(at, "under Columns: Text, First of a pair, Second of a pair, Label")
    assert not failed(at, "--")
    at = until(start("probe", **small, labelled=str(tmp_path / "nothing.tsv")), lambda at: at.error)
    assert failed(at, "no such file or folder")


def test_what_the_map_is_fitted_on_is_said_where_it_is_not_the_sets_or_the_bars_text(small, tmp_path):
    few, bars = "texts are too few to fit 32 dimensions on", "The other text that the bar's map is fitted on is not"
    at = until(start("probe", **small))
    assert not said(at, few)
    fit = next(one for one in at.selectbox if one.label == "Whitening fitted on").key
    assert not said(choose(at, **{fit: "workspace"}), bars)
    path = tmp_path / "few.tsv"
    path.write_text("text\tlabel\n" + "".join(f"text {i}\t{'ab'[i % 2]}\n" for i in range(24)))
    at = until(start("probe", **small, labelled=str(path), fit="demo"))
    assert said(at, f"24 {few}, so the map is first fitted on the sentences of pairs")
    assert said(at, bars)
    choose(at, probe_fit_few="train")
    assert not said(at, few)
    assert not said(at, bars)


def test_a_map_of_too_few_texts_is_warned_of(small, tmp_path):
    path = tmp_path / "few.tsv"
    path.write_text("text\tlabel\n" + "".join(f"text {i}\t{'ab'[i % 2]}\n" for i in range(24)))
    at = until(start("probe", **small, labelled=str(path)))
    fit = next(one for one in at.selectbox if one.label == "Whitening fitted on").key
    assert not said(choose(at, **{fit: "workspace"}), "different vectors span only")
    assert said(choose(at, **{fit: "train"}), "different vectors span only")


def test_what_cannot_be_probed_is_said_and_nothing_is_drawn_of_it(small, tmp_path):
    path = tmp_path / "lonely.tsv"
    path.write_text("text\tlabel\n" + "".join(f"text {i}\t{'ab'[i == 0]}\n" for i in range(24)))
    at = until(start("probe", **small, labelled=str(path)))
    assert failed(at, "needs 2 different rows of each class")
    assert not at.get("plotly_chart")
    assert "What is taken for what?" not in [one.value for one in at.header]


def test_settings_are_typed_in_the_pooling_that_the_texts_have(small):
    at = until(start("probe", **small, more="true"))
    settings = table(choose(at, probe_settings="L1\nL2:pca"), "Accuracy")["Setting"].tolist()
    assert settings == ["mean/L1", "mean/L2:pca"]
    settings = table(choose(at, probe_settings="L*:pca"), "Accuracy")["Setting"].tolist()
    assert settings == [f"mean/L{layer}:pca" for layer in range(4)]
    assert failed(choose(at, probe_settings="L1\ncls/L1"), "must be in the bar's pooling, mean")
    assert until(start("probe", **small)).text_area(key="probe-settings")  # there folded, too, to keep what was typed


# An upload of labelled texts


def page():
    import streamlit as st

    from whitelab.ui.sections import labelled_texts

    found = labelled_texts.choose()
    if found is not None:
        st.text(f"{found.task} {found.source} {found.n_rows} rows")


def test_an_upload_is_read_from_memory_under_its_own_name_and_limits(monkeypatch):
    monkeypatch.setattr(tempfile, "TemporaryDirectory", None)
    at = AppTest.from_function(page, default_timeout=30)
    at.query_params["labelled"] = "Uploaded file"
    at.run()
    upload(at, b"text\tlabel\none\ta\ntwo\tb\n", "own.tsv", "labelled-file")
    assert [one.value for one in at.text] == ["own own.tsv 2 rows"]
    upload(at, b"text\tlabel\none\ta\ntwo\n", "own.tsv", "labelled-file")
    assert at.dataframe[0].value["file"].tolist() == ["own.tsv"]
    monkeypatch.setattr(upload_limits, "COLUMNS", 1)
    upload(at, b"text\tlabel\none\ta\ntwo\tb\n", "own.tsv", "labelled-file")
    assert failed(at, "own.tsv: 2 columns, at most 1 are read from an upload")


@pytest.mark.parametrize("how", ["on another visit", "while the box is empty, as it is before another file"])
def test_an_upload_is_there_until_it_is_let_go_of(how):
    at = AppTest.from_function(page, default_timeout=30)
    at.query_params["labelled"] = "Uploaded file"
    at.run()
    upload(at, b"text\tlabel\none\ta\ntwo\tb\n", "own.tsv", "labelled-file")
    if how == "on another visit":
        away_and_back(at)
    else:
        at.file_uploader(key="labelled-file").set_value(None).run()
    assert [one.value for one in at.text] == ["own own.tsv 2 rows"]
    assert said(at, "You brought **own.tsv**")
    at.button(key="forget-labelled-file").click().run()
    assert said(at, "Choose a file")
    away_and_back(at)
    assert said(at, "Choose a file")


def away_and_back(at):
    at.selectbox(key="labelled").set_value("demo").run()
    at.selectbox(key="labelled").set_value("upload").run()


# A link


def test_a_link_says_which_labels_are_probed_and_what_the_whitening_is_fitted_on(small, probed):
    at = until(start("probe", **small, **{"probe-fit": "All texts", "labelled-task": "domain"}))
    assert accuracies(at) == probed("domain", How("knn", fit="all"), "L1;L1:pca")


def test_a_link_says_which_columns_are_read_and_that_malformed_rows_are_left_out(small, tmp_path):
    rows = [f"a man plays {i}\t{'ab'[i % 2]}\t{'xxxy'[i % 4]}\n" for i in range(80)]
    (tmp_path / "two.tsv").write_text("text\tlabel\tother\n" + "".join(rows) + "\ta\tx\n")
    link = {"labelled": str(tmp_path / "two.tsv"), "column-label": "other", "labelled-keep": "true"}
    assert metrics(until(start("probe", **small, **link)))["Most frequent class"] == "75.00"


def test_of_three_labels_of_pairs_the_one_that_says_yes_is_held_against_all_others(small, tmp_path):
    path, labels = tmp_path / "nli.tsv", ("entailment", "neutral", "contradiction")
    rows = [f"a man plays {i}\tsomeone plays {i}\t{labels[i % 3]}\n" for i in range(60)]
    path.write_text("sentence1\tsentence2\tlabel\n" + "".join(rows))
    at = until(start("probe", **small, labelled=str(path)), lambda at: at.error)
    assert failed(at, "name the one that says yes")
    choose(at, column_positive="entailment")
    drawn = [
        trace
        for one in at.get("plotly_chart")
        if "by label" in one.proto.alt
        for trace in json.loads(one.proto.spec)["data"]
        if "fill" in trace  # the others name the thresholds
    ]
    assert {trace["name"] for trace in drawn} == {"entailment", "not entailment"}
