"""Whole runs: by model, task and setting, with averages and published numbers."""

import json
import math
from dataclasses import replace

import pytest
from labelled_texts import RAW
from tiny import SENTENCES, build_model

from whitelab.datasets import load_labelled
from whitelab.encoding.encoders import load_encoder
from whitelab.probe import How, ProbeScore, averages, embed_texts, probe, probes, with_published
from whitelab.scoring.setting import Setting


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probe")
    build_model(folder / "model")
    return str(folder / "model")


@pytest.fixture(scope="module")
def animals(tmp_path_factory):
    """Sentences of the tiny world, labelled by whether the dog or the cat is in them."""
    path = tmp_path_factory.mktemp("data") / "animals.tsv"
    lines = [f"{text}\t{'pet' if 'dog' in text or 'cat' in text else 'other'}" for text in SENTENCES[::4]]
    path.write_text("text\tlabel\n" + "\n".join(lines) + "\n")
    return load_labelled(path)


def test_a_run_gives_what_probe_gives(model, animals):
    found = list(probes([model], [animals], "L1;cls/L-1:pca@4", How("knn")))
    encoder = load_encoder(model)
    for score in found:
        space, report = embed_texts(encoder, animals, score.setting.pooling)
        own = probe(space, animals, score.setting, How("knn"), model=encoder.name)
        assert score == replace(own, truncated=report.truncated, max_length=encoder.max_length)
    (short,) = probes([model], [animals], "L1", How("knn"), max_length=5)
    assert (score.truncated, short.max_length) == (0, 5)
    assert short.truncated == len(encoder.cut_to(5).tokenize(animals.sentences)[1]) > 0
    assert [str(one.setting) for one in found] == ["mean/L1", "cls/L-1:pca@4"]


def test_one_name_is_no_list_of_models(animals):
    with pytest.raises(ValueError, match="models='bundled' must be a list of names"):
        list(probes("bundled", [animals], "L1"))


def test_tasks_may_come_one_by_one(model, animals):
    found = [list(probes([model, model], tasks, "L1", How("knn"))) for tasks in ([animals], iter([animals]))]
    assert len(found[0]) == 2
    assert found[0] == found[1]


def test_what_goes_wrong_is_said_in_its_row_and_the_rest_goes_on(model, animals):
    found = list(probes([model, "/nowhere"], [animals], "L1;L99;L1:pca", How("knn", fit="/nothing.txt")))
    assert found[0].accuracy is not None
    assert "layers=[99] must lie between 0 and" in found[1].reason
    assert "no such file" in found[2].reason
    assert all(one.accuracy is None and one.reason for one in found[3:])
    assert len(found) == 6


def test_records_are_json_ready(model, animals):
    (score,) = probes([model], [animals], "L1:pca", How("linear", folds=3))
    record = json.loads(json.dumps(score.as_dict(), allow_nan=False))
    assert record["setting"] == "mean/L1:pca"
    assert {"model", "task", "classifier", "accuracy", "low", "high", "protocol_line", "confusion"} <= set(record)
    assert record["low"] < record["accuracy"] <= record["high"]


def test_the_average_is_over_all_tasks_or_says_what_is_missing():
    scores = [ProbeScore("m", RAW, task, "senteval", value) for task, value in (("MR", 80.0), ("CR", 70.0))]
    (mean,) = averages(scores)
    assert (mean.task, mean.accuracy) == ("avg", 75.0)
    (mean,) = averages([*scores, ProbeScore("m", RAW, "TREC", "senteval", None, reason="x")])
    assert (mean.accuracy, mean.reason) == (None, "no score for TREC")


def test_a_published_number_stands_beside_what_it_is_of(animals):
    data = replace(animals, task="TREC", layout="senteval")
    score = ProbeScore("google-bert/bert-base-uncased", Setting.parse("L-1"), "TREC", "senteval", 90.0)
    found = with_published(score, 13, data, How("senteval"))
    assert found.published.value == 92.80
    assert "Table 2" in found.published.place
    assert with_published(score, 13, data, How("knn")).published is None
    white = replace(score, setting=Setting.parse("L-1:pca"))
    assert with_published(white, 13, data, How("senteval")).published is None


@pytest.mark.model
def test_the_bundled_example_shows_that_layers_differ():
    """How something is said is read best in the middle of the model, what it is about at its end."""
    act, domain = (
        {
            score.setting.layers[0]: score.accuracy
            for score in probes(["bundled"], [load_labelled("demo", task)], "L*", How("linear"))
        }
        for task in ("act", "domain")
    )
    assert max(act, key=act.get) in (2, 3, 4, 5)
    assert act[6] < act[4] - 5
    assert max(domain, key=domain.get) == 6
    assert all(math.isfinite(value) for value in (*act.values(), *domain.values()))


def test_rows_that_say_more_than_the_probe_asks_for_are_refused():
    for row in ("L1:pca fit=cross", "L1 aggregate=mean"):
        with pytest.raises(ValueError, match=f"setting='mean/{row}' must leave fit and aggregate out"):
            next(probes(["bundled"], [], row))
