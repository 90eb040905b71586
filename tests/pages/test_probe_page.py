"""The page of probes: accuracies of the package, on the bundled examples and on a file of one's own."""

import pytest

import whitelab
from whitelab.encoding.embeddings import LayerRows
from whitelab.probe import How, embed_texts, probe
from whitelab.scoring.setting import parse_settings

from .visiting import metrics, start, until

pytestmark = [pytest.mark.model, pytest.mark.usefixtures("demo")]


def probed(task: str, how: How, settings: str, corpus=None) -> list[str]:
    """Accuracies as the page writes them, from the package."""
    data = whitelab.load_labelled("demo", task)
    space = embed_texts(whitelab.load_encoder("bundled"), data, store=whitelab.Store())
    return [f"{probe(space, data, one, how, corpus=corpus).accuracy:.2f}" for one in parse_settings(settings)]


def test_the_probe_page_shows_the_accuracies_of_the_package(demo):
    at = until(start("probe"))
    corpus = LayerRows(demo.values, demo.counts)
    raw, white = probed("act", How("knn", fit="the demo sentences"), "L1+L6;L1+L6:pca", corpus)
    shown = metrics(at)
    assert (shown["Accuracy, raw"], shown["Accuracy, PCA whitening"]) == (raw, white)
    assert shown["Most frequent class"] == "20.00"
    assert raw != white


def test_the_probe_page_follows_classifier_labels_and_layers(demo):
    at = until(start("probe", layers="6", **{"labelled-task": "Domains"}))
    at.get_by_key("classifier-demo").set_value("linear").run()
    until(at)
    (raw,) = probed("domain", How("linear"), "L6")
    assert metrics(at)["Accuracy, raw"] == raw


def test_pairs_show_their_cosines_at_the_fixed_and_the_best_threshold():
    at = until(start("probe", layers="6", **{"labelled-task": "Related pairs"}))
    raw, white = probed("related", How("threshold"), "L6;L6:pca")
    assert metrics(at)["Accuracy, raw"] == raw
    assert metrics(at)["Accuracy, PCA whitening"] == white
    assert [one.value for one in at.subheader][-1] == "Where would the threshold have to be?"
    assert sum("best threshold on the scored pairs" in one.value for one in at.caption) == 2


def test_a_file_of_ones_own_is_probed_and_its_errors_are_said(tmp_path):
    path = tmp_path / "own.tsv"
    rows = [
        f"{'A cat sits' if i % 2 else 'The bus leaves'} at number {i}.\t{'pet' if i % 2 else 'bus'}" for i in range(40)
    ]
    path.write_text("text\tlabel\n" + "\n".join(rows) + "\n")
    at = until(start("probe", labelled=str(path)))
    assert metrics(at)["Accuracy, raw"] == "100.00"
    assert metrics(at)["Most frequent class"] == "50.00"
    path.write_text("text\tlabel\n" + "\n".join(rows) + "\n\tpet\n")
    at = until(start("probe", labelled=str(path)), lambda at: at.checkbox)
    assert "1 row cannot be read" in at.error[0].value
    at.get_by_key("labelled-keep").check().run()
    assert metrics(until(at))["Accuracy, raw"] == "100.00"
    at = until(start("probe", labelled=str(tmp_path / "nothing.tsv")), lambda at: at.error)
    assert "no such file or folder" in at.error[0].value


def test_a_map_of_too_few_texts_is_warned_of():
    at = until(start("probe"))
    assert not any("equal distances" in one.value for one in at.warning)
    fit = next(one for one in at.selectbox if one.label == "Whitening fitted on")
    fit.set_value("train").run()
    assert any("equal distances" in one.value for one in until(at).warning)
