"""`probe`: the rows of the library."""

import json

import pytest
from tiny import SENTENCES

from whitelab.datasets import load_labelled
from whitelab.probe import How, probes


def test_probe_rows_are_the_librarys(document, place, model):
    settings = "L1;L1+L-1:pca@8"
    options = (*model, "--settings", settings, "--classifier", "knn", "--k", "3")
    record = document("probe", "--data", place / "labels.tsv", *options)
    data = load_labelled(place / "labels.tsv")
    expected = list(probes([str(place / "model")], [data], settings, How("knn", neighbours=3)))
    assert record["rows"] == json.loads(json.dumps([one.as_dict() for one in expected]))
    assert {"model", "setting", "task", "classifier", "accuracy", "low", "high", "protocol_line"} <= set(
        record["rows"][0]
    )


def test_texts_that_are_longer_than_the_model_reads_are_told(few_candidates, run, place, model):
    options = (*model, "--data", place / "labels.tsv", "--settings", "L1;L1:pca@4", "--classifier", "knn")
    for command in (("probe", *options), ("advise", *options[:-4], "--for", "cluster")):
        for length, told in ((5, True), (60, False)):
            status, _, err = run(*command, "--max-length", length, "--no-store")
            assert status == 0
            assert err.count("texts were cut to 5 tokens") == told


def test_probe_takes_named_columns_of_texts_and_pairs(document, model, tmp_path):
    path = tmp_path / "odd.csv"
    rows = [
        f"{a},{b},{i % 2},{'test' if i % 3 else 'train'}"
        for i, (a, b) in enumerate(zip(SENTENCES[:60], SENTENCES[60:120], strict=True))
    ]
    path.write_text("ours,theirs,verdict,half\n" + "\n".join(rows) + "\n")
    options = ("--data", path, *model, "--settings", "L1")
    pairs = ("--first", "ours", "--second", "theirs", "--label", "verdict", "--split-column", "half")
    (one,) = document("probe", *options, *pairs, "--threshold", "0.9")["rows"]
    assert (one["classifier"], one["scored"], one["train"], one["threshold"]) == ("threshold", 40, 20, 0.9)
    assert {"best_accuracy", "best_threshold", "average_precision", "best_f1", "chosen_on"} <= set(one)
    (one,) = document("probe", *options, "--text", "ours", "--label", "verdict", "--split-column", "half")["rows"]
    assert (one["classifier"], one["scored"], one["train"]) == ("linear", 40, 20)


def test_probe_runs_sentevals_tasks_and_their_average(run, document, model, tmp_path):
    for folder, name in (("MR", "rt-polarity"), ("CR", "custrev")):
        (tmp_path / "downstream" / folder).mkdir(parents=True)
        for end, rows in (("pos", SENTENCES[:20]), ("neg", SENTENCES[100:120])):
            (tmp_path / "downstream" / folder / f"{name}.{end}").write_text("\n".join(rows) + "\n")
    options = (*model, "--settings", "L1", "--folds", "2")
    rows = document("probe", "--data", tmp_path, *options)["rows"]
    assert [row["task"] for row in rows] == ["MR", "CR", "avg"]
    assert rows[2]["accuracy"] == pytest.approx((rows[0]["accuracy"] + rows[1]["accuracy"]) / 2)
    assert "best in 2 inner folds" in rows[0]["protocol_line"]
    assert [len(row.get("c", ())) for row in rows] == [2, 2, 0]
    chosen = " or ".join(f"{c:g}" for c in sorted(set(rows[0]["c"])))
    assert f", C {chosen} · SentEval" in run("probe", "--data", tmp_path, "--task", "MR", *options)[1]
    (one,) = document("probe", "--data", tmp_path, "--task", "mr", *options, "--classifier", "linear")["rows"]
    assert one["accuracy"] == rows[0]["accuracy"]  # linear is SentEval's regression there


def test_why_a_model_cannot_be_loaded_is_said_once(run, place, model, compared):
    words = "--model /no/such must be a folder"
    status, out, err = run("probe", "--data", place / "labels.tsv", "--model", "/no/such")
    assert (status, out, err.count("\n"), err.count(words)) == (2, "", 1, 1)
    both = f"/no/such,{model[1]}"
    status, out, err = run("probe", "--data", place / "labels.tsv", *model, "--model", both, "--settings", "L1;L2")
    assert (status, out.count(words), err.count(words)) == (0, 1, 1)
    assert f"/no/such · mean/L1, mean/L2 · labels: {words}" in out
    assert err.index(words) < err.index("accuracy")
    words = "--models /no/such must be a folder"
    status, out, err = run("compare", *compared, "--models", both, "--settings", "L1;L2")
    assert (status, err.count(words)) == (0, 1)
    status, out, err = run("compare", *compared, "--models", "/no/such", "--settings", "L1;L2")
    assert (status, out, err.count("\n"), err.count(words)) == (2, "", 1, 1)


def test_why_a_row_has_no_score_is_said_in_the_options_that_were_given(run, document, place, model):
    argv = ["probe", "--data", place / "labels.tsv", *model, "--model", f"{model[1]},{model[1]}:1", "--settings", "L1"]
    words = f"--num-layers 2 must not differ from the blocks in --model {model[1]}:1"
    status, out, err = run(*argv, "--num-layers", 2)
    assert (status, out.count(words), err.count(words)) == (0, 1, 1)
    rows = document(*argv, "--num-layers", 2)["rows"]
    assert [row.get("reason", "") for row in rows] == ["", words]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--task", "MR"), "holds no task 'MR'; it holds: labels"),
        (("--settings", "six"), "must look like L6"),
        (("--settings", "L9"), "layers=[9] must lie between 0 and 3"),
        (("--classifier", "threshold"), "needs pairs of texts"),
        (("--label", "lable"), "no column named 'lable'"),
        (("--folds", "1"), "--folds 1"),
        (("--k", "0"), "error: --k 0 must be a whole number of at least 1"),
        (("--k", "5"), "--k goes with --classifier knn; directions to keep stand in --settings"),
        (("--metric", "euclidean"), "--metric goes with --classifier knn"),
        (("--threshold", "0.5"), "--threshold goes with --classifier threshold"),
        (("--fit", "/nothing.txt"), "no such file"),
        (("--positive", "maybe"), "no class named 'maybe'; classes found: 'other', 'pet'; name the one that"),
    ],
)
def test_a_probe_that_cannot_be_is_refused(run, place, model, more, words):
    status, out, err = run("probe", *model, "--data", place / "labels.tsv", *more)
    assert (status, out) == (2, "")
    assert words in err.strip().splitlines()[-1]
