"""The advise page: the package's advice for a purpose, said with its evidence, and taken into the bar by one click."""

import csv
import io
from dataclasses import asdict, replace
from functools import wraps
from zipfile import ZipFile

import pytest
import torch
from judged import QUERIES, write_retrieval

import whitelab
from whitelab.ui.sections import advising as section

from .visiting import alts, choose, forget_everything, press, said, start, until

pytestmark = [pytest.mark.model, pytest.mark.usefixtures("few_candidates")]


@pytest.fixture
def leaving(saved, monkeypatch):
    """The files of "This page's results": tables as rows, the rest as text."""

    def files():
        with ZipFile(io.BytesIO(saved["page-zip"]())) as packed:
            texts = {name: packed.read(name).decode() for name in packed.namelist()}
        return {
            name: list(csv.DictReader(io.StringIO(text))) if name.endswith(".csv") else text
            for name, text in texts.items()
        }

    monkeypatch.setattr("whitelab.ui.frame.page_zip.svgs", lambda figures: {})  # which ask for a browser
    return files


def test_each_purpose_has_the_librarys_answer_from_the_data_it_is_judged_by(small, space):
    at = until(start("advise", **small))
    setting = whitelab.Setting.parse("L1:pca")

    def shows(advice):
        assert all(said(at, sentence) for sentence in advice.sentences)
        if advice.evidence:
            assert any(alt.startswith(f"{advice.evidence.metric} of the options") for alt in alts(at))

    for purpose in ("rank", "threshold", "store"):
        until(choose(at, purpose=purpose))
        middle = float(space.gold.min() + space.gold.max()) / 2 if purpose == "threshold" else None
        shows(whitelab.advise_pairs(space, setting, purpose, middle))
    until(choose(at, purpose="classify"))
    assert any(alt.startswith("Accuracy x 100 of the options") for alt in alts(at))
    until(choose(choose(at, purpose="rank"), **{"judged-pairs-search-sentences": "sentences"}))
    assert said(at, "Paste four different sentences or more.")
    lines = [f"a man buys {i} apples" for i in range(8)]
    until(choose(at, **{"advice-sentences": "\n".join([*lines, lines[0]])}))
    values, _ = whitelab.embed(whitelab.load_encoder(small["model"]), lines)
    rows = whitelab.LayerRows(values, torch.ones(8))
    shows(whitelab.advise_sentences(rows, "rank"))
    until(choose(at, purpose="threshold"))
    until(choose(at, purpose="rank"))
    until(choose(at, **{"judged-pairs-search-sentences": "sentences"}))
    shows(whitelab.advise_sentences(rows, "rank"))  # of what was pasted before


def test_it_is_said_whether_what_the_bar_holds_was_tried(small):
    at = until(start("advise", **small, k=5))
    assert said(at, "the bar's layers among them, not its PCA whitening, k = 5.")
    at = until(start("advise", **small, whitening="Soft whitening"))
    assert said(at, "the bar's setting among them.")


def test_the_cosine_that_calls_two_texts_the_same_is_in_what_leaves_the_page(small, space, leaving):
    until(start("advise", **small, purpose="threshold"))
    advice = whitelab.advise_pairs(space, whitelab.Setting.parse("L1:pca"), "threshold")
    cut, files = advice.threshold, leaving()
    assert files["answer.txt"] == advice.text
    (row,) = (row for row in files["data/options.csv"] if row["threshold_cosine"])
    assert row["setting"] == str(advice.setting or advice.evidence.baseline.setting)
    assert {name: float(row[f"threshold_{name}"]) for name in asdict(cut)} == asdict(cut)
    (card,) = (row for row in files["data/headlines.csv"] if row["value"] == f"{cut.cosine:.4f}")
    assert card["note"] == f"95 %: {cut.low:.4f} to {cut.high:.4f}"
    assert card["more"] == f"finds {100 * cut.recall:.1f} % of the pairs of gold {cut.cut:g} or more"


def test_the_files_of_an_answer_name_what_judged_it(small, leaving, tmp_path):
    texts = tmp_path / "labelled.tsv"
    texts.write_text("text\tlabel\n" + "".join(f"a man buys {i} apples\t{'ab'[i % 2]}\n" for i in range(40)))
    folder = write_retrieval(tmp_path / "mine")
    searched = {"judged-pairs-search-sentences": "search", "searched-data": str(folder)}
    judges = (
        ({"purpose": "threshold"}, "pairs", "all", "60 pairs"),
        ({"purpose": "rank"} | searched, "mine", "test", "2 queries"),
        ({"purpose": "classify", "labelled": str(texts)}, "labelled", "", "40 texts"),
    )
    for query, task, split, judge in judges:
        until(start("advise", **small, **query))
        files = leaving()
        for name in ("options", "headlines"):
            found = {(row["task"], row.get("split", ""), row["judged_by"]) for row in files[f"data/{name}.csv"]}
            assert found == {(task, split, judge)}
        assert f"task {task} " in files["figures/options.html"]
        assert f"judged by {judge}" in files["figures/options.html"]


def test_labelled_texts_are_told_of_as_they_are_on_the_page_of_probes(small, tmp_path):
    rows = [f"a man buys {i} apples\t{'pet' if i % 2 else 'bus'}\n" for i in range(10)] * 2
    (tmp_path / "twice.tsv").write_text("text\tlabel\n" + "".join(rows))
    for page in ("advise", "probe"):
        at = until(start(page, **small, purpose="classify", labelled=str(tmp_path / "twice.tsv")))
        assert said(at, "10 of 20 rows repeat another's text")


def test_a_search_set_is_told_of_as_it_is_on_the_page_of_retrieval(small, tmp_path):
    folder = write_retrieval(tmp_path / "mine", queries=QUERIES | {"q3": "who cooks"})
    for page in ("advise", "retrieval"):
        judged = {"judged-pairs-search-sentences": "search", "searched-data": str(folder)}
        assert said(until(start(page, **small, purpose="rank", **judged)), "Note: 1 query left out")


@pytest.mark.parametrize("advised", ["L2:soft:gamma=0.5@3", "L0+L1:soft"])
def test_what_is_advised_is_what_the_bar_then_holds_whatever_was_moved_before(small, advised, monkeypatch):
    forget_everything()
    wanted = whitelab.Setting.parse(advised)
    real = section.advise_pairs

    @wraps(real)
    def advised_pairs(*given, **options):
        return replace(real(*given, **options), setting=wanted)

    monkeypatch.setattr(section, "advise_pairs", advised_pairs)
    at = until(start("advise", **small, whitening="Soft whitening"))
    choose(at, k=5, soft_gamma=0.9)
    press(at, "use-advice")
    assert at.session_state["workspace"].setting == wanted
    button = at.button(key="use-advice")
    assert (button.label, button.disabled) == ("The bar has it", True)
