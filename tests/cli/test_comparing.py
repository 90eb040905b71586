"""`compare`: the scores one by one, tables, intervals, walks."""

import json

import pytest
from tiny import SENTENCES


def test_a_comparison_is_the_scores_one_by_one(document, place, model, compared):
    record = document("compare", *compared, "--settings", "L1;L1+L3:pca", "--preset", "simcse")
    assert {row["setting"] for row in record["rows"]} == {"mean/L1", "mean/L1+L3:pca"}
    for row in record["rows"]:
        layers = ",".join(map(str, row["protocol"]["layers"]))
        settings = ("--layers", layers, "--whitening", row["protocol"]["whitening"], "--aggregate", "all")
        one = document("score", *model, "--data", place / "tasks", "--task", row["task"], *settings)
        assert row["spearman"] == pytest.approx(one["spearman"])


def test_a_row_says_its_own_models_layers(document, place, compared):
    models = (place / "model", f"{place / 'model'}:1")
    words = [*compared[: compared.index("--models")], "--models", ",".join(map(str, models)), "--settings", "L-1"]
    rows = document("compare", *words)["rows"]
    assert {(row["model"], row["setting"].split()[0]) for row in rows} == {
        ("model", "mean/L3"),
        ("model[:1]", "mean/L1"),
    }


def test_what_was_cut_of_whom_is_said_as_score_says_it(run, place, model, tmp_path):
    long = " ".join(["the dog"] * 100)
    data = tmp_path / "long.csv"
    data.write_text(f"sentence1,sentence2,score\na man,{long},3\nwater,the cat,1\na singer,the dog,5\n")
    where = ("--data", data, "--cache", tmp_path / "store")
    _, _, one = run("score", "--model", place / "model", *where, "--layers", "1")
    (said,) = [line for line in one.splitlines() if "was cut" in line]
    for _ in range(2):  # the second time the vectors are only read
        _, out, err = run("compare", "--models", place / "model", *where, "--settings", "L1;L2", "--json")
        (line,) = [line for line in err.splitlines() if "was cut" in line]
        assert line.endswith(f"model · long: {said.partition(': ')[2]}")
        assert [row["notes"] for row in json.loads(out)["rows"]] == [[said.partition(": ")[2]]] * 2
    walk = ("--settings", "L1", "--presets", "whiteningbert,simcse", "--json")
    _, out, err = run("compare", "--models", place / "model", *where, *walk)
    both = [f"1 sentence was cut to {length} tokens" for length in (128, 160)]  # whiteningbert's length, the model's
    assert [one["notes"] for one in json.loads(out)["walks"]] == [both]
    assert err.splitlines() == [f"note: model · long: {one}" for one in both]


def test_what_there_is_to_know_of_the_pairs_is_said_once(run, place, tmp_path):
    rows = [f"{SENTENCES[i]},{SENTENCES[i + 20]},{5 - i % 6}" for i in range(8)]
    data = tmp_path / "twice.csv"
    data.write_text("\n".join(["sentence1,sentence2,score", *rows, "lost,,1", *rows]) + "\n")
    models = f"{place / 'model'},{place / 'model'}:1"
    options = ("--models", models, "--data", data, "--skip-malformed", "--no-store", "--json")
    for more in (("--settings", "L0;L1"), ("--settings", "L1", "--presets", "whiteningbert,simcse")):
        _, out, err = run("compare", *options, *more)
        said = [line for line in err.splitlines() if line.startswith(("note: ", "left out: "))]
        assert [line.startswith("left out: ") and "twice.csv:10" in line for line in said] == [True, False, False]
        assert "model, model[:1] · twice: malformed rows left out: 1, rows kept: 16" in said[1]
        assert "model, model[:1] · twice: 8 of 16 pairs repeat another" in said[2]
        record = json.loads(out)
        assert all(len(one["notes"]) == 2 for one in record.get("rows") or record["walks"])
        assert {one["pairs"] for one in record.get("rows", ())} <= {16}


@pytest.mark.parametrize(
    ("form", "start"), [("--csv", "model,setting"), ("--latex", r"\begin{tabular}"), ("--markdown", "| model")]
)
def test_a_comparison_is_written_as_a_table(run, compared, form, start):
    status, out, err = run("compare", *compared, form)
    assert status == 0
    assert out.startswith(start)
    assert out.count("mean/L") == 4
    assert "table" not in err


def test_a_star_among_settings_is_each_layer(document, compared):
    record = document("compare", *compared, "--settings", "L*;L*:pca")
    assert [one["setting"] for one in record["rows"]] == [
        f"mean/L{layer}{whitening} aggregate=mean" for whitening in ("", ":pca") for layer in range(4)
    ]


def test_intervals_are_added_to_rows_on_demand(document, compared):
    argv = ("compare", *compared, "--settings", "L1;L2")
    plain, more = document(*argv)["rows"], document(*argv, "--intervals")["rows"]
    assert plain == [{name: row[name] for name in plain[0]} for row in more]
    assert all(row["low"] < row["spearman"] < row["high"] for row in more)
    assert not any("low" in row for row in plain)


def test_a_walk_between_presets_adds_up(document, run, compared):
    record = document("compare", *compared, "--presets", "whiteningbert,simcse")
    (walk,) = record["walks"]
    assert (walk["task"], walk["from"], walk["to"]) == ("sts12", "whiteningbert", "simcse")
    assert sum(step["change"] for step in walk["steps"]) == pytest.approx(walk["difference"])
    assert walk["difference"] == pytest.approx(walk["end"] - walk["start"])
    assert walk["idle"] == ["fit", "decimals"]
    assert [step["field"] for step in walk["steps"]] == [f for f in record["differences"] if f not in walk["idle"]]
    assert record["differences"]["pooling"] == ["mean", "cls"]
    assert "split" in record["same"]
    rows = document("compare", *compared, "--settings", "cls/L-1", "--protocol", "simcse")["rows"]
    assert rows[0]["spearman"] == pytest.approx(walk["end"])
    status, out, _ = run("compare", *compared, "--presets", "whiteningbert,simcse", "--settings", "L2")
    assert status == 0
    assert "Pooling" not in out
    assert "Without a step of its own: rounding before the average (concerns an average over tasks)." in out
    assert "Subsets of a task" in out


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--presets", "mteb"), "--presets mteb must be two different presets"),
        (("--presets", "mteb,mteb"), "--presets mteb,mteb must be two different presets"),
        (("--presets", "mteb,simcse", "--settings", "L99"), "nothing could be scored: layers=[99] must lie between 0"),
        (("--presets", "mteb,simcse", "--csv"), "--csv goes with rows of scores"),
        (("--presets", "mteb,simcse", "--preset", "mteb"), "--preset goes with rows of scores"),
        (("--presets", "mteb,simcse", "--corpus", "demo"), "--corpus goes with the preset bert-whitening-corpus"),
        (("--corpus", "demo"), "--corpus goes with the preset bert-whitening-corpus, not with whiteningbert"),
        (("--mteb-out", __file__, "--preset", "mteb"), "must be a folder, and a file is there"),
        (("--mteb-out", "results"), "one Spearman over all its pairs: choose the preset simcse or mteb"),
        (("--presets", "mteb,simcse", "--settings", "L1;L2"), "--settings 'L1;L2' must be one setting"),
        (("--presets", "mteb,su"), "--presets su must be one of whiteningbert"),
        (("--presets", "mteb,bert-whitening-corpus"), "--corpus must name the text to fit on"),
        (("--preset", "bert-whitening-corpus"), "--corpus must name the text to fit on"),
    ],
)
def test_a_walk_or_a_table_that_cannot_be_made_as_asked_is_refused(run, compared, more, words):
    status, out, err = run("compare", *compared, *more)
    assert (status, out) == (2, "")
    assert words in err


def test_tasks_that_are_not_there_are_refused(run, compared):
    status, out, err = run("compare", *compared, "--tasks", "sts99")
    assert (status, out) == (2, "")
    assert "--tasks sts99 must be among sts12" in err


def test_a_layer_that_no_model_has_is_an_error_only_where_nothing_else_is_scored(run, compared):
    status, out, err = run("compare", *compared, "--settings", "L99")
    assert (status, out) == (2, "")
    assert "nothing could be scored: layers=[99] must lie between" in err
    status, out, err = run("compare", *compared, "--settings", "L99;L1")
    assert (status, "layers=[99] must lie between" in err, "mean/L99 | - |" in out) == (0, True, True)


def test_results_leave_and_arrive_in_mtebs_layout(document, run, compared, tmp_path):
    out = tmp_path / "results"
    left = document("compare", *compared, "--settings", "L1", "--preset", "mteb", "--mteb-out", str(out))
    assert len(left["written"]) == sum(row["task"] != "avg" for row in left["rows"])
    arrived = document("compare", *compared, "--settings", "L1", "--preset", "mteb", "--mteb", str(out))["mteb"]
    scores = {row["task"]: row["spearman"] for row in left["rows"]}
    assert [one["spearman"] for one in arrived] == [pytest.approx(scores)]
    for more, words in (
        (("--mteb", str(tmp_path / "absent")), "no such file or folder of MTEB results"),
        (("--presets", "mteb,simcse", "--mteb", str(out)), "not with the walk"),
    ):
        status, text, err = run("compare", *compared, *more)
        assert (status, text) == (2, "")
        assert words in err
