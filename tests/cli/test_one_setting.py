"""`score`: the number of the library, or null with a reason."""

import json

import pytest
from tiny import write_reversed

from whitelab.scoring.score import score
from whitelab.scoring.setting import Setting
from whitelab.statistics.correlation import AGGREGATES
from whitelab.whitening import WHITENERS

VARIANTS = [*WHITENERS, "soft:gamma=0.25", "shuffled_group:groups=4,seed=3"]


# Two layers for every variant; one alone is read by the same words, whatever the variant.
@pytest.mark.parametrize(("whitening", "layers"), [*((name, "1,3") for name in VARIANTS), ("none", "3"), ("pca", "3")])
def test_score_equals_the_library(document, options, space, whitening, layers):
    encoder, pairs, embeddings = space
    record = document("score", *options, "--layers", layers, "--whitening", whitening)
    expected = score(embeddings, Setting(tuple(map(int, layers.split(","))), whitening))
    assert record["spearman"] == pytest.approx(expected.spearman, abs=1e-3)
    assert record["pairs"] == 60
    assert record["rank"] == expected.rank
    assert record["protocol"] == json.loads(json.dumps(expected.protocol.as_dict()))
    named = {name: record["protocol"][name] for name in ("model", "data", "task", "split", "pooling")}
    assert named == dict(zip(named, (encoder.name, pairs.source, pairs.task, pairs.split, "mean"), strict=True))
    assert set(record) >= {"spearman", "pairs", "subsets", "rank", "protocol"}


def test_pairs_scored_by_how_far_apart_they_are_are_said_to_be(run, place, tmp_path):
    where = ("--model", place / "model", "--data", write_reversed(tmp_path / "reversed.csv"))
    for command in ("score", "kcurve", "advise", "compare"):
        _, _, err = run(command, *(("--models", *where[1:]) if command == "compare" else where))
        assert "If these are distances, turn them round" in err
    _, _, err = run("score", "--model", place / "model", "--data", place / "pairs.csv")
    assert "distances" not in err


def test_a_table_with_columns_of_other_names_scores_as_under_known_ones(document, run, model, place, options, tmp_path):
    header, _, body = (place / "pairs.csv").read_text("utf-8").partition("\n")
    assert header == "sentence1,sentence2,score"
    lines = [f"{i % 7},{line}" for i, line in enumerate(body.splitlines())]  # beside which two columns may be scores
    odd = tmp_path / "pairs.csv"
    odd.write_text("\n".join(["spread,premise text,the other,mean mark", *lines]) + "\n", "utf-8")
    words = ("score", *model, "--data", odd)
    status, _, err = run(*words)
    assert status == 2
    assert "or say which they are: `load(columns=...)`, `score --columns`" in err
    named, known = document(*words, "--columns", "premise text", "the other", "mean mark"), document("score", *options)
    assert named["protocol"].pop("data") == "pairs.csv (premise text, the other, mean mark)"
    assert known["protocol"].pop("data") == "pairs.csv"
    assert named == known


def test_score_takes_k_and_says_so(document, options):
    record = document("score", *options, "--layers", "1", "--whitening", "pca", "--k", "5")
    assert record["rank"] == record["protocol"]["k"] == 5
    assert record["spearman"] != document("score", *options, "--layers", "1", "--whitening", "pca")["spearman"]


def test_score_uses_the_last_layer_unless_told(document, options):
    assert document("score", *options)["protocol"]["layers"] == [3]


def test_layers_are_named_in_any_order(document, options):
    one, two = (document("score", *options, "--layers", layers) for layers in ("1,3", "3,1"))
    assert one == two


def test_the_two_poolings_and_a_shorter_model_score_differently(document, options):
    records = [document("score", *options, *more) for more in ([], ["--pooling", "cls"], ["--num-layers", "2"])]
    assert len({record["spearman"] for record in records}) == 3
    assert records[2]["protocol"]["layers"] == [2]
    assert records[2]["protocol"]["model"] == "model[:2]"


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_subset_files_give_subset_scores_and_aggregates(document, options, place, aggregate):
    argv = [*options, "--data", place / "tasks", "--task", "sts12", "--aggregate", aggregate]
    record = document("score", *argv)
    assert {name: one["pairs"] for name, one in record["subsets"].items()} == {"part0": 40, "part1": 40}
    assert record["pairs"] == 80
    assert record["protocol"]["aggregate"] == aggregate
    if aggregate != "all":
        mean = sum(one["spearman"] for one in record["subsets"].values()) / 2
        assert record["spearman"] == pytest.approx(mean, abs=1e-9)


@pytest.mark.parametrize("file", ["constant.csv", "one.csv"])
def test_an_undefined_score_is_null_with_a_reason(document, options, place, file):
    record = document("score", *options, "--data", place / file)
    assert record["spearman"] is None
    assert record["reason"].startswith("Spearman is not defined")


def test_whitening_too_few_sentences_is_null_with_a_reason_and_fewer_dimensions_are_scored(document, options, place):
    argv = [*options, "--data", place / "few.csv", "--layers", "2"]
    record = document("score", *argv, "--whitening", "pca")
    assert record["spearman"] is None
    assert record["reason"] == "Spearman is not defined: all cosines are -0.2"
    assert {cell["spearman"] for cell in document("layers", *argv[:-2], "--whitening", "pca")["cells"]} == {None}
    curve = document("kcurve", *argv)["spearman"]
    assert set(curve[4:]) == {None}
    assert None not in curve[:4]
    kept = document("score", *argv, "--whitening", "pca", "--k", 3)
    assert kept["spearman"] == curve[2]
    assert "undefined" not in kept


@pytest.mark.parametrize("command", ["score", "similarity", "geometry", "whiten"])
def test_whitening_too_few_sentences_is_said_wherever_it_is_done(run, options, place, tmp_path, command):
    argv = [command, *options, "--data", place / "few.csv"]
    argv += ["--export", "npz", "--out", tmp_path / "map.npz"] if command == "whiten" else []
    said = {k: run(*argv, "--whitening", "pca", *k)[2] for k in ((), ("--k", 3))}
    assert {k: "equally far apart" in err for k, err in said.items()} == {(): True, ("--k", 3): False}
    assert "equally far apart" not in run(*argv, "--whitening", "center")[2]
