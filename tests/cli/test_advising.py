"""`advise`: the library's advice for every kind of data, and what does not go together in one line."""

import pytest
from tiny import SENTENCES

from whitelab.advice import advise_pairs, advise_search
from whitelab.datasets import load_retrieval
from whitelab.retrieval.embedded import embed_retrieval, for_documents
from whitelab.scoring.setting import Setting

pytestmark = pytest.mark.usefixtures("few_candidates")


def test_the_document_is_the_librarys_advice_from_pairs_and_from_searches(document, model, options, space, place):
    encoder, _, embedded = space
    for purpose in ("rank", "threshold", "store"):
        found = advise_pairs(embedded, Setting((1,)), purpose)
        record = document("advise", *options, "--for", purpose, "--layers", "1")
        assert record["sentences"] == list(found.sentences)
        assert record["decided"] == (record["setting"] is not None) == found.decided
        for option, own in zip(record["options"], found.evidence.options, strict=True):
            assert (option["setting"], option["code"], option["bytes"]) == (str(own.setting), str(own.code), own.size)
            assert option["score"] == pytest.approx(own.score)
    search = embed_retrieval(for_documents(encoder), load_retrieval(place / "search"))[0]
    record = document("advise", *model, "--data", place / "search")
    assert record["sentences"] == list(advise_search(search, Setting()).sentences)
    assert (record["unit"], record["count"]) == ("queries", 5)


def test_each_line_of_the_table_has_the_test_that_the_answer_rests_on(document, run, options):
    rows = document("advise", *options)["options"]
    status, out, _ = run("advise", *options)
    table = out[out.index("bytes a vector; setting") :].splitlines()[1 : len(rows) + 1]
    assert status == 0
    for row, line in zip(rows, table, strict=True):
        first = row is rows[0]
        assert line.endswith(row["setting"]) or row["code"] != "float32"
        least = not first and row["p_value"] <= 2 / (row["resamples"] + 1)
        p = "-" if first else "< " * least + f"{max(row['p_holm'], 0.001 * least):.3f}"
        assert f")  {p:>7}  " in line


def test_labels_and_bare_sentences_are_data_too(document, model, place, tmp_path):
    for purpose, metric in (("classify", "Accuracy x 100"), ("cluster", "V-measure x 100")):
        record = document("advise", *model, "--data", place / "labels.tsv", "--for", purpose)
        assert record["metric"] == metric
        assert record["count"] == len(SENTENCES[::9])
    renamed = (place / "labels.tsv").read_text("utf-8").replace("text\tlabel", "words\tkind", 1)
    (tmp_path / "odd.tsv").write_text(renamed)
    named = ("--data", tmp_path / "odd.tsv", "--for", "cluster", "--text", "words", "--label", "kind")
    odd = document("advise", *model, *named)
    assert (odd["count"], odd["options"]) == (record["count"], record["options"])
    (tmp_path / "own.txt").write_text("\n".join(SENTENCES[:40]))
    record = document("advise", *model, "--data", tmp_path / "own.txt")
    assert record["decided"] is False
    assert record["sentences"][0].startswith("Sentences alone do not say what serves to rank")


def test_of_several_tables_one_must_be_named(document, run, model, place, tmp_path):
    for name in ("alpha", "zeta"):
        (tmp_path / f"{name}.tsv").write_text((place / "labels.tsv").read_text("utf-8"))
    words = ("advise", *model, "--data", tmp_path, "--for", "cluster")
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert "holds 2 tasks, choose one as `task`: alpha, zeta" in err
    assert "zeta" in document(*words, "--task", "zeta")["protocol"]["task"]


def test_what_does_not_go_together_is_one_line(run, model, options, place):
    (place / "own.txt").write_text("\n".join(SENTENCES[:40]))
    for words, message in (
        ([*options, "--gold-from", "2"], "--gold-from goes with --for threshold, not with --for rank"),
        ([*options, "--for", "threshold", "--gold-from", "9"], "--gold-from 9 must divide the gold scores"),
        (
            [*model, "--data", place / "search", "--for", "threshold"],
            "--for threshold cannot be told from search",
        ),
        ([*model, "--data", place / "search", "--fit", "cross"], "--fit goes with pairs, not with search"),
        (
            [*options, "--label", "score"],
            "not with pairs: a table of texts with labels goes with --for classify or cluster",
        ),
        (
            [*model, "--data", place / "labels.tsv"],
            "sentence1, sentence2 and score; a table of texts with labels goes with --for classify or cluster",
        ),
        ([*model, "--data", place / "own.txt", "--layers", "9"], "--layers 9 must lie between 0 and"),
    ):
        status, out, err = run("advise", *words)
        assert (status, out) == (2, "")
        assert message in err
        assert "Traceback" not in err
