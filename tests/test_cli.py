"""The command line's contract: one JSON document on stdout, one line on stderr and exit 2 for wrong input."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import faiss
import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from tiny import DIM, SENTENCES, build_model, write_pairs, write_task

import whitelab
from whitelab.cli import COMMANDS, main
from whitelab.correlation import AGGREGATES
from whitelab.datasets import load, load_labelled
from whitelab.encoders import BATCH_BYTES, DTYPES, load_encoder
from whitelab.evaluate import Protocol, embed_pairs, score
from whitelab.export import from_npz
from whitelab.geometry import POSITIVES
from whitelab.pooling import POOLINGS
from whitelab.probe import How, probes
from whitelab.scopes import fit_scope
from whitelab.whitening import WHITENERS

ROOT = Path(__file__).resolve().parents[1]
ANALYSES = ("embed", "score", "layers", "kcurve", "geometry")
STREAMING = ("train",)  # a document a step: see test_runs.py


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a tiny model, a table of pairs, a task with subset files, and a store."""
    root = tmp_path_factory.mktemp("cli")
    build_model(root / "model")
    write_pairs(root / "pairs.csv")
    write_task(root / "tasks")
    lines = [f"{text}\t{'pet' if 'dog' in text or 'cat' in text else 'other'}" for text in SENTENCES[::9]]
    (root / "labels.tsv").write_text("text\tlabel\n" + "\n".join(lines) + "\n")
    (root / "malformed.csv").write_text("sentence1,sentence2,score\na man,a dog,3\nwater,the cat,many\nx,y,1\n")
    (root / "constant.csv").write_text("sentence1,sentence2,score\na man,a dog,3\nwater,the cat,3\na singer,water,3\n")
    (root / "one.csv").write_text("sentence1,sentence2,score\na man,a dog,3\n")
    (root / "few.csv").write_text("sentence1,sentence2,score\na man,a dog,3\nwater,the cat,1\na singer,the dog,5\n")
    (root / "empty.csv").write_text("")
    return root


@pytest.fixture
def options(place):
    return [
        "--model",
        str(place / "model"),
        "--data",
        str(place / "pairs.csv"),
        "--cache",
        str(place / "store"),
    ]


@pytest.fixture
def run(capsys):
    """Run a command in this process: (exit status, stdout, stderr)."""

    def run(*argv):
        try:
            status = main([str(word) for word in argv])
        except SystemExit as stop:
            status = stop.code
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def document(run):
    """The one JSON document a command prints; nothing else may be on stdout."""

    def document(*argv):
        status, out, err = run(*argv, "--json")
        assert status == 0, err
        assert out.count("\n") == 1
        return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))

    return document


@pytest.fixture(scope="module")
def space(place):
    encoder = load_encoder(str(place / "model"), device=None)
    pairs = load(place / "pairs.csv")
    return encoder, pairs, embed_pairs(encoder, pairs)[0]


def fresh_process(*argv, **environment):
    return subprocess.run(
        [sys.executable, *map(str, argv)],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


# ------------------------------------------------------------------------------------------ each subcommand


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("app", *STREAMING)])
def test_json_is_one_document_on_stdout_in_a_real_process(command, place, options):
    argv = {"models": [], "datasets": ["--data", place / "tasks"], "download": ["--list"]}.get(command, options)
    if command == "compare":
        argv = ["--models", place / "model", "--data", place / "tasks", "--cache", place / "store"]
    if command == "probe":
        argv = ["--model", place / "model", "--data", place / "labels.tsv", "--cache", place / "store"]
    if command == "whiten":
        argv = [*argv, "--export", "npz", "--out", place / "process.npz"]
    run = fresh_process("-m", "whitelab", command, *argv, "--json", HF_HUB_CACHE=str(place / "no-cache"))
    assert run.returncode == 0, run.stderr
    assert isinstance(json.loads(run.stdout), dict)
    assert run.stdout.count("\n") == 1
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("app", "models", *STREAMING)])
def test_without_json_there_are_lines_for_people(command, place, options, run):
    argv = {"datasets": ["--data", place / "tasks"], "download": ["--list"]}.get(command, options)
    if command == "compare":
        argv = ["--models", place / "model", "--data", place / "tasks", "--cache", place / "store"]
    if command == "probe":
        argv = ["--model", place / "model", "--data", place / "labels.tsv", "--cache", place / "store"]
    if command == "whiten":
        argv = [*argv, "--export", "npz", "--out", place / "lines.npz"]
    status, out, _ = run(command, *argv)
    assert status == 0
    assert out.strip()
    with pytest.raises(ValueError, match=r"Expecting|Extra data"):
        json.loads(out)


def test_models_names_the_bundled_one_first(document):
    models = document("models")["models"]
    assert models[0]["name"] == "bundled"
    assert all(isinstance(one["ready"], bool) for one in models)
    assert len({one["name"] for one in models}) == len(models)


def test_datasets_lists_tasks_splits_and_subsets(document, place):
    tasks = document("datasets", "--data", place / "tasks")["tasks"]
    assert [task["name"] for task in tasks] == ["sts12"]
    assert tasks[0]["splits"] == ["test"]
    assert tasks[0]["subsets"] == ["part0", "part1"]


def test_embed_reports_what_was_encoded_and_the_second_run_encodes_nothing(document, place, tmp_path):
    argv = ["embed", "--model", place / "model", "--data", place / "pairs.csv", "--cache", tmp_path / "store"]
    first, second = document(*argv), document(*argv)
    assert (first["layers"], first["dim"]) == (4, DIM)
    assert (first["encoded"], first["reused"]) == (first["sentences"], 0)
    assert (second["encoded"], second["reused"]) == (0, first["sentences"])


def test_embed_writes_every_layer_and_the_sentences_to_a_file(document, options, place, tmp_path, space):
    out = tmp_path / "embeddings.npz"
    record = document("embed", *options, "--out", out)
    with np.load(out, allow_pickle=False) as file:
        assert file["values"].shape == (record["layers"], record["sentences"], record["dim"])
        assert tuple(file["sentences"]) == space[1].sentences
        np.testing.assert_allclose(file["values"], space[2].values.numpy(), atol=1e-5)


def test_no_store_keeps_nothing(document, place, tmp_path, monkeypatch):
    monkeypatch.setenv("WHITELAB_CACHE", str(tmp_path / "store"))
    argv = ["embed", "--model", place / "model", "--data", place / "pairs.csv", "--no-store"]
    assert document(*argv)["reused"] == document(*argv)["reused"] == 0
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("whitening", [*WHITENERS, "soft:gamma=0.25", "shuffled_group:groups=4,seed=3"])
@pytest.mark.parametrize("layers", ["3", "1,3"])
def test_score_equals_the_library(document, options, space, whitening, layers):
    encoder, pairs, embeddings = space
    record = document("score", *options, "--layers", layers, "--whitening", whitening)
    numbers = tuple(map(int, layers.split(",")))
    protocol = Protocol(
        model=encoder.name,
        data=pairs.source,
        task=pairs.task,
        split=pairs.split,
        pooling="mean",
        layers=numbers,
        whitening=whitening,
    )
    expected = score(embeddings, protocol)
    assert record["spearman"] == pytest.approx(expected.spearman, abs=1e-3)
    assert record["pairs"] == 60
    assert record["rank"] == expected.rank
    assert record["protocol"] == json.loads(json.dumps(protocol.as_dict()))
    assert set(record) >= {"spearman", "pairs", "subsets", "rank", "protocol"}


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
    assert record["undefined"].startswith("Spearman is not defined")


def test_whitening_too_few_sentences_is_null_with_a_reason_and_fewer_dimensions_are_scored(document, options, place):
    argv = [*options, "--data", place / "few.csv", "--layers", "2"]
    record = document("score", *argv, "--whitening", "pca")
    assert record["spearman"] is None
    assert record["undefined"] == "Spearman is not defined: all cosines are -0.2"
    assert {cell["spearman"] for cell in document("layers", *argv[:-2], "--whitening", "pca")["cells"]} == {None}
    curve = document("kcurve", *argv)["spearman"]
    assert set(curve[4:]) == {None}
    assert None not in curve[:4]
    kept = document("score", *argv, "--whitening", "pca", "--k", 3)
    assert kept["spearman"] == curve[2]
    assert "undefined" not in kept


@pytest.mark.parametrize("file", ["constant.csv", "one.csv"])
@pytest.mark.parametrize("command", ["layers", "kcurve", "geometry"])
def test_undefined_scores_do_not_stop_the_other_commands(document, options, place, file, command):
    assert document(command, *options, "--data", place / file)


@pytest.mark.parametrize("whitening", ["none", "pca"])
def test_layers_has_every_pair_and_best_is_the_highest(document, options, whitening):
    record = document("layers", *options, "--whitening", whitening)
    assert [cell["layers"] for cell in record["cells"]] == [[i, j] for i in range(4) for j in range(i, 4)]
    top = max(record["cells"], key=lambda cell: cell["spearman"])
    assert record["best"]["spearman"] == top["spearman"]
    assert record["best"]["layers"] == top["layers"]
    for cell in record["cells"][1::4]:
        names = ",".join(map(str, dict.fromkeys(cell["layers"])))
        alone = document("score", *options, "--layers", names, "--whitening", whitening)
        assert cell["spearman"] == pytest.approx(alone["spearman"], abs=1e-6)


def test_without_size_the_layers_command_is_the_pairs(document, options):
    assert set(document("layers", *options)) == {"cells", "best", "pairs", "protocol"}


def test_every_size_scores_every_subset_and_the_best_is_its_own_score(document, options):
    record = document("layers", *options, "--size", "all", "--top", "20")
    assert (record["scored"], record["exact"], len(record["top"])) == (15, True, 15)
    assert record["strategy"] == record["protocol"]["layers"] == "every subset of 1 to 4 layers"
    assert record["seconds"] > 0
    assert list(record["best_by_size"]) == ["1", "2", "3", "4"]
    assert "tasks" not in record
    for size, best in record["best_by_size"].items():
        assert len(best["layers"]) == int(size)
        alone = document("score", *options, "--layers", ",".join(map(str, best["layers"])))
        assert best["spearman"] == pytest.approx(alone["spearman"], abs=1e-6)
        same = [one["spearman"] for one in record["top"] if len(one["layers"]) == int(size)]
        assert best["spearman"] == max(same)
    scores = [one["spearman"] for one in record["top"]]
    assert scores == sorted(scores, reverse=True)
    assert record["layer_counts"] == [sum(layer in one["layers"] for one in record["top"]) for layer in range(4)]


@pytest.mark.parametrize(
    ("size", "sizes", "scored"), [("1", [1], 4), ("2", [2], 6), ("1-3", [1, 2, 3], 14), ("1,3-4", [1, 3, 4], 9)]
)
def test_sizes_are_a_number_a_range_or_a_list(document, options, size, sizes, scored):
    record = document("layers", *options, "--size", size, "--whitening", "pca", "--k", "5")
    assert [int(one) for one in record["best_by_size"]] == sizes
    assert record["scored"] == scored
    assert (record["whitening"], record["k"], record["protocol"]["k"]) == ("pca", 5, 5)


def test_top_bounds_the_list_and_not_the_search(document, options):
    few, many = (document("layers", *options, "--size", "all", "--top", top) for top in (2, 9))
    assert few["top"] == many["top"][:2]
    assert few["scored"] == many["scored"]


@pytest.fixture
def three_tasks(place, options):
    root = place / "three"
    if not root.exists():
        root.mkdir()
        for i, name in enumerate(("a", "b", "c")):
            write_pairs(root / f"{name}.csv", 30, 30 * i)
    return [*options, "--data", root]


@pytest.mark.parametrize(("named", "names"), [("all", ["a", "b", "c"]), ("c,a", ["c", "a"])])
def test_several_tasks_are_averaged_and_each_has_its_own_ranking(document, three_tasks, named, names):
    record = document("layers", *three_tasks, "--task", named, "--size", "1-2")
    assert list(record["tasks"]) == record["protocol"]["task"] == names
    own = {name: document("layers", *three_tasks, "--task", name, "--size", "1-2", "--top", 99) for name in names}
    for one in record["top"]:
        scores = {n: next(s["spearman"] for s in own[n]["top"] if s["layers"] == one["layers"]) for n in names}
        assert one["tasks"] == pytest.approx(scores, abs=1e-9)
        assert one["spearman"] == pytest.approx(sum(scores.values()) / len(names), abs=1e-8)
    for name in names:
        assert record["tasks"][name]["best_by_size"] == own[name]["best_by_size"]
    assert len({one["best_by_size"]["1"]["spearman"] for one in own.values()}) == len(names)


def test_the_search_is_readable_without_json(run, three_tasks):
    status, out, _ = run("layers", *three_tasks, "--task", "all", "--size", "all", "--top", "3")
    assert status == 0
    assert "scored 15 subsets in" in out
    assert "averaged over a, b, c" in out
    assert "every subset of 1 to 4 layers" in out
    assert "0+1+2+3" in out


def test_kcurve_of_each_layer_is_one_curve_a_layer(document, run, options):
    record = document("kcurve", *options, "--layers", "each")
    assert [one["layers"] for one in record["curves"]] == [[0], [1], [2], [3]]
    for one in record["curves"]:
        alone = document("kcurve", *options, "--layers", one["layers"][0])
        assert one == {"layers": one["layers"]} | {name: alone[name] for name in one if name != "layers"}
    assert (record["protocol"]["layers"], record["protocol"]["k"]) == ("each", "every k")
    status, out, _ = run("kcurve", *options, "--layers", "each")
    assert status == 0
    assert len(out.splitlines()) == 5


@pytest.mark.parametrize("file", ["constant.csv", "one.csv"])
def test_undefined_scores_do_not_stop_the_searches(document, run, options, place, file):
    argv = [*options, "--data", place / file]
    record = document("layers", *argv, "--size", "all")
    assert (record["scored"], record["top"], record["best_by_size"]) == (15, [], {})
    assert "not defined" in run("layers", *argv, "--size", "all")[1]
    curves = document("kcurve", *argv, "--layers", "each")["curves"]
    assert {one["best_k"] for one in curves} == {None}
    assert "undefined" in run("kcurve", *argv, "--layers", "each")[1]


def test_kcurve_has_a_score_for_every_k(document, options):
    record = document("kcurve", *options, "--layers", "2")
    assert record["k"] == list(range(1, DIM + 1))
    assert len(record["spearman"]) == DIM
    best = record["spearman"][record["best_k"] - 1]
    assert best == max(record["spearman"])
    for k in (1, 7, DIM):
        alone = document("score", *options, "--layers", "2", "--whitening", "pca", "--k", k)
        assert record["spearman"][k - 1] == pytest.approx(alone["spearman"], abs=1e-6)


def test_kcurve_has_a_curve_for_each_subset(document, options, place):
    record = document("kcurve", *options, "--data", place / "tasks", "--aggregate", "mean")
    assert {name: len(curve) for name, curve in record["subsets"].items()} == {"part0": DIM, "part1": DIM}


def test_geometry_has_every_layer_raw_and_whitened(document, options):
    record = document("geometry", *options)
    assert [one["layer"] for one in record["layers"]] == [0, 1, 2, 3]
    for one in record["layers"]:
        for measures in (one, one["whitened"]):
            assert set(measures) >= {"mean_cosine", "participation_ratio", "alignment", "uniformity"}
            assert all(isinstance(measures[name], float) for name in ("mean_cosine", "participation_ratio"))
        assert one["whitening"] == "none"
        assert one["whitened"]["whitening"] == "pca"
        # A whitened space uses every direction it keeps equally: its participation ratio is its rank.
        assert one["whitened"]["participation_ratio"] == pytest.approx(one["whitened"]["rank"], abs=1e-6)
        assert one["participation_ratio"] < one["whitened"]["participation_ratio"] - 1


def test_malformed_rows_are_refused_or_left_out_and_listed(run, document, options, place):
    argv = ["score", *options, "--data", place / "malformed.csv"]
    status, out, err = run(*argv)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert "malformed.csv" in err
    status, out, err = run(*argv, "--skip-malformed", "--json")
    assert status == 0
    assert json.loads(out)["pairs"] == 2
    assert "left out:" in err


def test_a_cut_sentence_is_noted_on_stderr(run, options):
    status, out, err = run("embed", *options, "--max-length", "4", "--json")
    assert status == 0
    assert json.loads(out)["truncated"] > 0
    assert "sentences were cut to 4 tokens" in err


def test_a_store_that_cannot_be_written_costs_a_note(run, options, place, tmp_path):
    (tmp_path / "file").write_text("")
    status, out, err = run("score", *options, "--cache", tmp_path / "file" / "store", "--json")
    assert status == 0
    assert json.loads(out)["pairs"] == 60
    assert "note: embeddings are not kept on disk" in err


def test_app_starts_streamlit_on_this_machine_only(monkeypatch):
    started = []
    monkeypatch.setattr(subprocess, "run", lambda command, **more: started.append((command, more)))
    assert main(["app", "--port", "8765", "--headless"]) == 0
    ((command, more),) = started
    assert command[:4] == [sys.executable, "-m", "streamlit", "run"]
    assert Path(command[4]) == ROOT / "app.py"
    assert " ".join(command[5:]) == "--server.port 8765 --server.address 127.0.0.1 --server.headless true"
    assert more["cwd"] == ROOT


# ---------------------------------------------------------------------------------------------- wrong input

WRONG = {
    "no command": ([], "the following arguments are required: COMMAND"),
    "unknown command": (["teach"], "invalid choice: 'teach'"),
    "unknown option": (["score", "--colour", "red"], "unrecognized arguments: --colour red"),
    "option without value": (["score", "--layers"], "--layers: expected one argument"),
    "layers in words": (
        ["score", "--layers", "first,last"],
        "must be layer numbers with commas, such as 1,6",
    ),
    "layers empty": (["score", "--layers", ""], "must be layer numbers with commas"),
    "layer too high": (["score", "--layers", "1,9"], "layers=[1, 9] must lie between 0 and 3 for this model"),
    "layer below zero": (["score", "--layers=-1"], "layers=[-1] must lie between 0 and 3"),
    "layer twice": (["score", "--layers", "1,1"], "must not name a layer twice"),
    "unknown whitening": (["score", "--whitening", "bleach"], "'bleach' must be one of none, center"),
    "unknown pooling": (["score", "--pooling", "max"], "invalid choice: 'max'"),
    "unknown aggregate": (["score", "--aggregate", "sum"], "invalid choice: 'sum'"),
    "k zero": (["score", "--whitening", "pca", "--k", "0"], "k=0 must"),
    "k above d": (["score", "--whitening", "pca", "--k", "900"], "k=900 must lie between 1 and d=32"),
    "k without meaning": (["score", "--whitening", "standardize", "--k", "3"], "k="),
    "k without whitening": (["score", "--k", "3"], "k="),
    "k in words": (["score", "--whitening", "pca", "--k", "many"], "invalid int value: 'many'"),
    "k for layers": (["layers", "--whitening", "pca", "--k", "33"], "k=33 must lie between 1 and d=32"),
    "k for geometry": (["geometry", "--k", "33"], "k=33 must lie between 1 and d=32"),
    "curve of no k": (["kcurve", "--whitening", "none"], "k=1 has no meaning for whitening='none'"),
    "layer too high for a curve": (["kcurve", "--layers", "4"], "layers=[4] must lie between 0 and 3"),
    "size in words": (["layers", "--size", "some"], "'some' must be all, a number of layers, or several such as 1-3"),
    "size backwards": (["layers", "--size", "3-1"], "'3-1' must be all, a number of layers"),
    "size with two ends": (["layers", "--size", "1-2-3"], "'1-2-3' must be all, a number of layers"),
    "size above the layers": (["layers", "--size", "1-5"], "size=5 must lie between 1 and l=4"),
    "size zero": (["layers", "--size", "0"], "size=0 must lie between 1 and l=4"),
    "top of nothing": (["layers", "--size", "all", "--top", "0"], "top=0 must be"),
    "top of the pairs": (["layers", "--top", "3"], "--top 3 needs --size, such as --size all"),
    "several tasks without size": (["layers", "--data", "{place}/tasks", "--task", "all"], "no task 'all'"),
    "a task that is not there": (
        ["layers", "--data", "{place}/tasks", "--task", "sts12,sts99", "--size", "1"],
        "no task 'sts99'",
    ),
    "no such data": (["score", "--data", "/no/such/folder"], "/no/such/folder"),
    "no such task": (["score", "--data", "{place}/tasks", "--task", "sts99"], "no task 'sts99'"),
    "no such split": (["score", "--data", "{place}/tasks", "--split", "dev"], "no split 'dev'"),
    "empty file": (["score", "--data", "{place}/empty.csv"], "empty.csv"),
    "no such model": (["score", "--model", "/no/such/model"], "must be a folder with config.json"),
    "an impossible name": (
        ["score", "--model", "a/b/c"],
        "must be 'bundled', a local folder or a Hugging Face name",
    ),
    "no blocks": (["score", "--num-layers", "0"], "num_layers=0 must lie between 1 and the model's blocks=3"),
    "too many blocks": (["embed", "--num-layers", "9"], "num_layers=9 must lie between 1 and"),
    "too short": (["embed", "--max-length", "2"], "max_length=2 must be a whole number of at least 3"),
    "too long": (
        ["embed", "--max-length", "5000"],
        "max_length=5000 must lie between 3 and the model's limit=160",
    ),
    "unknown type": (["embed", "--dtype", "int8"], "invalid choice: 'int8'"),
    "slow type": (["embed", "--dtype", "float16", "--device", "cpu"], "dtype='float16' must be one of"),
    "no such folder to write to": (["embed", "--out", "/no/such/folder/out.npz"], "/no/such/folder"),
    "unknown positives": (["geometry", "--positives", "gt9"], "invalid choice: 'gt9'"),
    "port in words": (["app", "--port", "http"], "invalid int value: 'http'"),
    "datasets of nothing": (["datasets", "--data", "/no/such/folder"], "/no/such/folder"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_input_exits_2_with_one_clear_line(run, options, place, kind):
    words, message = WRONG[kind]
    words = [word.format(place=place) for word in words]
    argv = [words[0], *options, *words[1:]] if words and words[0] in ANALYSES else words
    status, out, err = run(*argv)
    assert status == 2
    assert out == ""
    assert err.count("\n") == 1
    assert message in err
    assert err.startswith("python -m whitelab")


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_a_device_this_machine_lacks_is_wrong_input(run, options, device):
    if {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available}[device]():
        pytest.skip(f"this machine has {device}")
    status, out, err = run("score", *options, "--device", device)
    assert (status, out, err.count("\n")) == (2, "", 1)


def test_wrong_input_has_no_traceback_in_a_real_process(options):
    run = fresh_process("-m", "whitelab", "score", *options, "--layers", "99", "--json")
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr.strip().splitlines() == [
        "python -m whitelab score: error: layers=[99] must lie between 0 and 3 for this model"
    ]


def test_a_mistake_of_the_program_is_not_taken_for_wrong_input(monkeypatch):
    def broken(args):
        raise ZeroDivisionError

    monkeypatch.setitem(COMMANDS, "models", (*COMMANDS["models"][:2], broken))
    with pytest.raises(ZeroDivisionError):
        main(["models"])


# ---------------------------------------------------------------------------------------- light and honest help

HEAVY = ["torch", "numpy", "streamlit", "transformers", "pandas", "plotly", "huggingface_hub", "safetensors"]
LOADED = """
import sys
try:
    {code}
except SystemExit:
    pass
print("loaded", *sorted({heavy} & set(sys.modules)))
"""


@pytest.mark.parametrize(
    "code",
    [
        "import whitelab",
        "from whitelab.cli import main; main(['--help'])",
        "from whitelab.cli import main; main([])",
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(code):
    run = fresh_process("-c", LOADED.format(code=code, heavy=set(HEAVY)))
    assert run.stdout.splitlines()[-1] == "loaded"


def test_the_check_above_can_fail():
    run = fresh_process("-c", LOADED.format(code="import whitelab.evaluate", heavy=set(HEAVY)))
    assert {"torch", "numpy"} <= set(run.stdout.split())


def test_help_answers_in_half_a_second():
    times = []
    for _ in range(5):
        start = time.perf_counter()
        run = fresh_process("-m", "whitelab", "--help")
        times.append(time.perf_counter() - start)
        assert run.returncode == 0
    assert min(times) < 0.5
    assert all(name in run.stdout for name in COMMANDS)


def test_every_public_name_exists_and_an_unknown_one_is_an_attribute_error():
    assert all(hasattr(whitelab, name) for name in whitelab.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        whitelab.nothing  # noqa: B018


OFFERED = {
    "--whitening": WHITENERS,
    "--pooling": POOLINGS,
    "--aggregate": AGGREGATES,
    "--dtype": DTYPES,
    "--device": BATCH_BYTES,
    "--positives": POSITIVES,
}


@pytest.mark.parametrize("command", ANALYSES)
def test_the_choices_offered_are_the_registries(run, command):
    status, out, _ = run(command, "--help")
    assert status == 0
    for option, registry in OFFERED.items():
        if option in out:
            offered = ", ".join(registry) if option == "--whitening" else f"{option} {{{','.join(registry)}}}"
            assert offered in " ".join(out.split())


def test_each_registry_is_offered_somewhere(run):
    text = "".join(run(command, "--help")[1] for command in ANALYSES)
    assert all(option in text for option in OFFERED)


# Fit scopes


@pytest.mark.parametrize("command", [name for name in ANALYSES if name != "embed"])
@pytest.mark.parametrize("fit", ["task", "splits", "cross", "TEXT"])
def test_every_analysis_takes_every_fit_scope(document, options, tmp_path, command, fit):
    if fit == "TEXT":
        path = tmp_path / "other.txt"
        path.write_text("".join(f"Sentence number {i} about thing {i % 7}, and more.\n" for i in range(90)))
        fit = str(path)
    record = document(command, *options, "--whitening", "pca", "--fit", fit)
    assert record["protocol"]["fit"] == fit
    assert record["protocol"]["whitening"] == "pca"


def test_the_scope_changes_the_score_and_what_is_said_about_it(document, options, tmp_path):
    path = tmp_path / "other.txt"
    path.write_text("".join(f"Sentence number {i} about thing {i % 7}, and more.\n" for i in range(90)))
    fits = ("task", "cross", str(path))
    found = {fit: document("score", *options, "--whitening", "pca", "--k", "4", "--fit", fit) for fit in fits}
    assert len({one["spearman"] for one in found.values()}) == 3
    assert found[str(path)]["sentences"] == 90
    assert found["cross"]["sentences"] < found["task"]["sentences"]
    assert all(0 < one["held_out_isotropy"] < 1 for one in found.values())


def test_a_fit_text_that_is_not_there_is_refused_before_encoding(run, options):
    status, out, err = run("score", *options, "--whitening", "pca", "--fit", "nowhere.txt")
    assert (status, out) == (2, "")
    assert err.strip().endswith("nowhere.txt: no such file or folder; give a file or folder, or 'demo'")


# Exports


@pytest.mark.parametrize("whitening", ["pca", "soft:gamma=0.25"])
def test_an_exported_npz_is_the_map_of_the_score(document, options, space, tmp_path, whitening):
    encoder, _, embeddings = space
    out = tmp_path / "map.npz"
    settings = ("--layers", "1,3", "--whitening", whitening, "--k", "5", "--export", "npz", "--out", str(out))
    record = document("whiten", *options, *settings)
    whitener, protocol = from_npz(out)
    assert protocol == record["protocol"]
    assert (record["out"], record["rank"], record["dim"]) == (str(out), 5, whitener.dense.shape[1])
    expected = fit_scope(embeddings, (1, 3), whitening, 5)
    assert record["sentences"] == expected.count
    x = embeddings.combine((1, 3))
    np.testing.assert_allclose(whitener(x), expected.whiteners[0](x), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(whitener(x[:1]), whitener(x)[:1], rtol=1e-12, atol=1e-12)


def test_an_exported_transform_is_read_by_faiss(document, options, space, tmp_path):
    embeddings, out = space[2], tmp_path / "map.faiss"
    document("whiten", *options, "--layers", "3", "--whitening", "zca", "--export", "faiss", "--out", str(out))
    x = embeddings.combine((3,))
    expected = fit_scope(embeddings, (3,), "zca").transform(embeddings).numpy()
    found = faiss.read_VectorTransform(str(out)).apply(x.numpy().astype(np.float32))
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())


def test_an_exported_model_is_loaded_by_sentence_transformers(document, options, space, tmp_path):
    encoder, pairs, embeddings = space
    out = tmp_path / "model"
    settings = ("--layers", "1,3", "--k", "4", "--export", "sentence-transformers", "--out", str(out))
    record = document("whiten", *options, *settings)
    assert record["protocol"]["whitening"] == "pca"
    found = SentenceTransformer(str(out), device="cpu").encode(list(pairs.sentences), show_progress_bar=False)
    expected = fit_scope(embeddings, (1, 3), "pca", 4).transform(embeddings).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--fit", "cross", "--export", "npz", "--out", "x.npz"), "fit='cross' fits two maps, and an export holds one"),
        (("--export", "onnx", "--out", "x"), "invalid choice: 'onnx'"),
        (("--export", "npz"), "the following arguments are required: --out"),
        (("--export", "npz", "--out", "no/such/folder/x.npz"), "no/such/folder"),
    ],
)
def test_an_export_that_cannot_be_is_refused(run, options, more, words):
    status, out, err = run("whiten", *options, *more)
    assert (status, out) == (2, "")
    assert words in err
    assert len(err.strip().splitlines()) == 1


# Comparisons


def test_a_comparison_is_the_scores_one_by_one(document, place):
    options = ("--models", place / "model", "--data", place / "tasks", "--cache", place / "store")
    record = document("compare", *options, "--settings", "L1;L1+L3:pca", "--protocol", "simcse")
    assert {row["setting"] for row in record["rows"]} == {"mean/L1", "mean/L1+L3:pca"}
    for row in record["rows"]:
        layers = ",".join(map(str, row["protocol"]["layers"]))
        settings = ("--layers", layers, "--whitening", row["protocol"]["whitening"], "--aggregate", "all")
        data = ("--model", place / "model", "--data", place / "tasks", "--task", row["task"])
        one = document("score", *data, *settings, "--cache", place / "store")
        assert row["spearman"] == pytest.approx(one["spearman"])


@pytest.mark.parametrize(
    ("form", "start"), [("--csv", "model,setting"), ("--latex", r"\begin{tabular}"), ("--markdown", "| model")]
)
def test_a_comparison_is_written_as_a_table(run, place, form, start):
    options = ("--models", place / "model", "--data", place / "tasks", "--cache", place / "store")
    status, out, err = run("compare", *options, form)
    assert status == 0
    assert out.startswith(start)
    assert out.count("mean/L") == 4
    assert "table" not in err


def test_intervals_are_added_to_rows_on_demand(document, place):
    options = (
        "--models",
        place / "model",
        "--data",
        place / "tasks",
        "--cache",
        place / "store",
        "--settings",
        "L1;L2",
    )
    plain, more = document("compare", *options)["rows"], document("compare", *options, "--intervals")["rows"]
    assert [{**row, "low": 0, "high": 0} for row in plain] == [{**row, "low": 0, "high": 0} for row in more]
    assert all(row["low"] < row["spearman"] < row["high"] for row in more)
    assert not any("low" in row for row in plain)


def test_a_walk_between_presets_adds_up(document, run, place):
    options = ("compare", "--models", place / "model", "--data", place / "tasks", "--cache", place / "store")
    record = document(*options, "--presets", "whiteningbert,simcse")
    (walk,) = record["walks"]
    assert (walk["task"], walk["from"], walk["to"]) == ("sts12", "whiteningbert", "simcse")
    assert sum(step["change"] for step in walk["steps"]) == pytest.approx(walk["difference"])
    assert walk["difference"] == pytest.approx(walk["end"] - walk["start"])
    assert [step["field"] for step in walk["steps"]] == [
        f for f in record["differences"] if f not in ("fit", "decimals")
    ]
    assert record["differences"]["pooling"] == ["mean", "cls"]
    assert "split" in record["same"]
    rows = document(*options, "--settings", "cls/L-1", "--protocol", "simcse")["rows"]
    assert rows[0]["spearman"] == pytest.approx(walk["end"])
    status, out, _ = run(*options, "--presets", "whiteningbert,simcse", "--settings", "L2")
    assert status == 0
    assert "Pooling" not in out
    assert "Subsets of a task" in out


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--presets", "mteb"), "presets='mteb' must be two protocols"),
        (("--presets", "mteb,simcse", "--settings", "L1;L2"), "with one setting"),
        (("--presets", "mteb,su"), "protocol='su' must be one of whiteningbert"),
        (("--presets", "mteb,bert-whitening-corpus"), "corpus=None must name the text to fit on"),
        (("--protocol", "bert-whitening-corpus"), "corpus=None must name the text to fit on"),
    ],
)
def test_a_walk_that_cannot_be_taken_is_refused(run, place, more, words):
    status, out, err = run("compare", "--models", place / "model", "--data", place / "tasks", *more)
    assert (status, out) == (2, "")
    assert words in err


def test_tasks_that_are_not_there_are_refused(run, place):
    status, out, err = run("compare", "--models", place / "model", "--data", place / "tasks", "--tasks", "sts99")
    assert (status, out) == (2, "")
    assert "tasks='sts99' must be among sts12" in err


# Vectors made elsewhere


@pytest.fixture(scope="module")
def embedded(place):
    """What `embed --out` writes of the pairs."""
    out = place / "embedded.npz"
    argv = [
        "embed",
        "--model",
        place / "model",
        "--data",
        place / "pairs.csv",
        "--cache",
        place / "store",
        "--out",
        out,
    ]
    assert main([str(word) for word in argv]) == 0
    return out


VECTOR_RUNS = {
    "score": ["--layers", "1,3", "--whitening", "zca"],
    "layers": ["--whitening", "pca", "--k", "5"],
    "layers --size": ["--size", "all"],
    "kcurve": ["--layers", "each"],
    "geometry": [],
}


@pytest.mark.parametrize("command", VECTOR_RUNS)
@pytest.mark.parametrize("fit", ["task", "cross"])
def test_vectors_that_embed_has_written_give_what_the_model_gives(document, options, embedded, command, fit):
    argv = [command.split()[0], *VECTOR_RUNS[command], "--fit", fit]
    with_model, without = document(*argv, *options), document(*argv, "--vectors", embedded)
    for record in (with_model, without):
        protocol = record.pop("protocol")
        record.pop("seconds", None)
    assert json.loads(json.dumps(without), parse_float=lambda x: round(float(x), 6)) == json.loads(
        json.dumps(with_model), parse_float=lambda x: round(float(x), 6)
    )
    assert (protocol["model"], protocol["pooling"]) == ("vectors of embedded.npz", "given")
    assert protocol["max_length"] is None


def test_gold_may_lie_in_a_file_of_its_own(document, options, embedded, tmp_path):
    with np.load(embedded) as file:
        np.save(tmp_path / "v.npy", file["values"])
        rows = [*zip(file["first"].tolist(), file["second"].tolist(), file["gold"].tolist(), strict=True)]
    (tmp_path / "gold.csv").write_text("first,second,score\n" + "".join(f"{a},{b},{g}\n" for a, b, g in rows))
    found = document("score", "--vectors", tmp_path / "v.npy", "--gold", tmp_path / "gold.csv")
    assert found["spearman"] == pytest.approx(document("score", *options)["spearman"], abs=1e-6)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--vectors", "nowhere.npz"], "nowhere.npz: no such file"),
        (["--vectors", "EMBEDDED", "--model", "bert"], "--model bert does not go with --vectors"),
        (["--vectors", "EMBEDDED", "--num-layers", "2"], "--num-layers 2 does not go with --vectors"),
        (["--vectors", "EMBEDDED", "--fit", "splits"], "fit='splits' needs a model to embed that text"),
        (["--vectors", "EMBEDDED", "--gold", "EMBEDDED"], "is given twice"),
        (["--vectors", "EMBEDDED", "--layers", "4"], "layers=[4] must lie between 0 and 3"),
        (["--gold", "gold.csv"], "--gold gold.csv needs --vectors"),
    ],
)
def test_vectors_that_cannot_be_scored_are_refused_in_one_line(run, embedded, argv, message):
    status, out, err = run("score", *[embedded if word == "EMBEDDED" else word for word in argv])
    assert (status, out) == (2, "")
    assert message in err
    assert err.rstrip("\n").count("\n") == 0


# Probes


def test_probe_rows_are_the_librarys(document, place):
    options = ("--model", place / "model", "--cache", place / "store", "--settings", "L1;L1+L-1:pca@8")
    record = document("probe", "--data", place / "labels.tsv", "--classifier", "knn", "--k", "3", *options)
    data = load_labelled(place / "labels.tsv")
    settings = "L1;L1+L-1:pca@8"
    expected = list(probes([str(place / "model")], [data], settings, How("knn", neighbours=3)))
    assert record["rows"] == json.loads(json.dumps([one.as_dict() for one in expected]))
    assert {"model", "setting", "task", "classifier", "accuracy", "low", "high", "protocol"} <= set(record["rows"][0])


def test_probe_takes_named_columns_of_texts_and_pairs(document, place, tmp_path):
    path = tmp_path / "odd.csv"
    rows = [
        f"{a},{b},{i % 2},{'test' if i % 3 else 'train'}"
        for i, (a, b) in enumerate(zip(SENTENCES[:60], SENTENCES[60:120], strict=True))
    ]
    path.write_text("ours,theirs,verdict,half\n" + "\n".join(rows) + "\n")
    options = ("--data", path, "--model", place / "model", "--cache", place / "store", "--settings", "L1")
    pairs = ("--first", "ours", "--second", "theirs", "--label", "verdict", "--split-column", "half")
    (one,) = document("probe", *options, *pairs, "--threshold", "0.9")["rows"]
    assert (one["classifier"], one["rows"], one["train"], one["threshold"]) == ("threshold", 40, 20, 0.9)
    assert {"best_accuracy", "best_threshold", "average_precision", "best_f1", "chosen_on"} <= set(one)
    (one,) = document("probe", *options, "--text", "ours", "--label", "verdict", "--split-column", "half")["rows"]
    assert (one["classifier"], one["rows"], one["train"]) == ("linear", 40, 20)


def test_probe_runs_sentevals_tasks_and_their_average(document, place, tmp_path):
    for folder, name in (("MR", "rt-polarity"), ("CR", "custrev")):
        (tmp_path / "downstream" / folder).mkdir(parents=True)
        for end, rows in (("pos", SENTENCES[:20]), ("neg", SENTENCES[100:120])):
            (tmp_path / "downstream" / folder / f"{name}.{end}").write_text("\n".join(rows) + "\n")
    options = ("--model", place / "model", "--cache", place / "store", "--settings", "L1", "--folds", "3")
    rows = document("probe", "--data", tmp_path, *options)["rows"]
    assert [row["task"] for row in rows] == ["MR", "CR", "avg"]
    assert rows[2]["accuracy"] == pytest.approx((rows[0]["accuracy"] + rows[1]["accuracy"]) / 2)
    assert "best in 3 inner folds" in rows[0]["protocol"]
    (one,) = document("probe", "--data", tmp_path, "--task", "mr", *options, "--classifier", "linear")["rows"]
    assert one["accuracy"] == rows[0]["accuracy"]  # linear is SentEval's regression there


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--task", "MR"), "holds no task 'MR'; it holds: labels"),
        (("--settings", "six"), "must look like L6"),
        (("--settings", "L9"), "layers=[9] must lie between 0 and 3"),
        (("--classifier", "threshold"), "needs pairs of texts"),
        (("--label", "lable"), "no column named 'lable'"),
        (("--folds", "1"), "folds=1"),
        (("--fit", "/nothing.txt"), "no such file"),
        (("--positive", "maybe"), "positive='maybe' must be one of the classes other, pet"),
    ],
)
def test_a_probe_that_cannot_be_is_refused(run, place, more, words):
    options = ("--data", place / "labels.tsv", "--model", place / "model", "--cache", place / "store")
    status, out, err = run("probe", *options, *more)
    assert (status, out) == (2, "")
    assert words in err.strip().splitlines()[-1]
