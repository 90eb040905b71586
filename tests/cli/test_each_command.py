"""Every command: one document with --json, lines for people without it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from commandline import ANALYSES
from processes import ROOT, free_port, run_python

from whitelab.cli import COMMANDS
from whitelab.cli.app import HOSTED
from whitelab.encoding.embed import embed
from whitelab.encoding.encoders import load_encoder
from whitelab.statistics.moments import Moments
from whitelab.whitening import fit
from whitelab.whitening.export import from_npz

STREAMING = ("train", "images")  # a document a step: see test_runs.py and test_images.py


@pytest.fixture
def words(place, model, options, compared, tmp_path):
    """{command: the options it needs}."""
    return dict.fromkeys(ANALYSES, options) | {
        "models": [],
        "datasets": ["--data", place / "tasks"],
        "download": ["--list"],
        "compare": compared,
        "probe": [*model, "--data", place / "labels.tsv"],
        "retrieve": [*model, "--data", place / "search"],
        "advise": options,
        "corpus": ["embed", "--model", place / "model", "--text", place / "text.txt", "--out", tmp_path / "chunks"],
        "whiten": [*options, "--export", "npz", "--out", tmp_path / "map.npz"],
    }


# Every command in one process of its own; what each writes to standard output, libraries in C included, has a file.
# Wrong input comes first, while whatever libraries complain of when they are imported would still be seen.
CALLS = """
import json, os, sys
from whitelab.cli import main
def into(name, stream):
    os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), stream)
calls, error = json.load(open("calls.json")), os.dup(2)
into("wrong", 1), into("complaint", 2)
try:
    status = main(calls.pop("wrong"))
except SystemExit as stop:
    status = stop.code
assert status == 2, status
os.dup2(error, 2)
for name, argv in calls.items():
    into(name, 1)
    status = main([name, *argv])
    sys.stdout.flush()
    assert status == 0, name
"""


def test_json_is_one_document_on_stdout_in_a_real_process_and_wrong_input_one_line(place, words, tmp_path, subtests):
    calls = {name: [*map(str, words[name]), "--json"] for name in COMMANDS if name not in ("app", *STREAMING)}
    wrong = {"wrong": ["score", *map(str, words["score"]), "--layers", "99", "--json"]}
    (tmp_path / "calls.json").write_text(json.dumps(wrong | calls))
    run = run_python(
        f"import os; os.chdir({str(tmp_path)!r})\n{CALLS}", HF_HUB_CACHE=str(place / "no-cache"), PYTHONPATH=str(ROOT)
    )
    assert run.returncode == 0, run.stderr
    assert "Traceback" not in run.stderr
    assert (tmp_path / "wrong").read_text() == ""
    error = "error: --layers 99 must lie between 0 and 3, the last layer, or between -4 and -1"
    assert (tmp_path / "complaint").read_text().splitlines() == [f"python -m whitelab score: {error}"]
    for name in calls:
        with subtests.test(name):
            out = (tmp_path / name).read_text()
            assert isinstance(json.loads(out), dict)
            assert out.count("\n") == 1


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("app", "models", *STREAMING)])
def test_without_json_there_are_lines_for_people(command, words, run):
    status, out, _ = run(command, *words[command])
    assert status == 0
    assert out.strip()
    with pytest.raises(ValueError, match=r"Expecting|Extra data"):
        json.loads(out)


def test_models_names_the_bundled_one_first_then_the_trained_each_once(document, monkeypatch):
    monkeypatch.setattr("whitelab.encoding.checkpoints.trained_models", lambda: ("trained:mine",))
    models = document("models")["models"]
    assert [one["name"] for one in models[:2]] == ["bundled", "trained:mine"]
    assert all(isinstance(one["ready"], bool) for one in models)
    assert len({one["name"] for one in models}) == len(models)


def test_datasets_lists_tasks_splits_and_subsets(document, place):
    tasks = document("datasets", "--data", place / "tasks")["tasks"]
    assert [task["name"] for task in tasks] == ["sts12"]
    assert tasks[0]["splits"] == ["test"]
    assert tasks[0]["subsets"] == ["part0", "part1"]


def test_a_table_without_pairs_is_listed_as_none_and_refused_where_it_is_alone(document, run, place, tmp_path):
    for name in ("labels.tsv", "pairs.csv"):
        (tmp_path / name).write_bytes((place / name).read_bytes())
    labels, pairs = document("datasets", "--data", tmp_path)["tasks"]
    assert "two text columns and one number are needed" in labels["reason"]
    assert "reason" not in pairs
    alone = [run(command, "--data", tmp_path / "labels.tsv") for command in ("datasets", "score")]
    assert [one[0] for one in alone] == [2, 2]
    assert alone[0][2].partition("error: ")[2] == alone[1][2].partition("error: ")[2]


@pytest.fixture
def streamlit(monkeypatch):
    """The commands that would have started Streamlit, in this process's place or as a child."""
    started = []

    def replaced(path, command):
        started.append(command)
        raise SystemExit(0)

    def child(command, **more):
        started.append(command)
        return subprocess.CompletedProcess(command, 3)

    monkeypatch.setattr(os, "execv", replaced)
    monkeypatch.setattr(subprocess, "run", child)
    return started


@pytest.mark.parametrize(("system", "status"), [("posix", 0), ("nt", 3)])
def test_app_starts_streamlit_on_this_machine_only_and_ends_as_it_ends(system, status, streamlit, run, monkeypatch):
    monkeypatch.setattr("whitelab.cli.app.os", SimpleNamespace(name=system, execv=os.execv))
    port = str(free_port())
    assert run("app", "--port", port, "--headless")[0] == status
    (command,) = streamlit
    assert command[:5] == [sys.executable, "-P", "-m", "streamlit", "run"]
    assert Path(command[5]) == ROOT / "app.py"
    assert " ".join(command[6:]) == f"--server.port {port} --server.address 127.0.0.1 --server.headless true"


def test_a_hosted_app_allows_strangers_little_but_what_its_operator_has_said(streamlit, run, monkeypatch):
    for name in (*HOSTED, "WHITELAB_MEMORY_GIB"):
        monkeypatch.setenv(name, "")  # so that it is as before afterwards
        monkeypatch.delenv(name)
    monkeypatch.setenv("WHITELAB_MODELS", "bundled,google-bert/*")
    assert run("app", "--headless", "--port", free_port())[0] == 0
    assert "WHITELAB_TRAINING" not in os.environ
    assert run("app", "--headless", "--hosted", "--port", free_port())[0] == 0
    assert {name: os.environ[name] for name in HOSTED} == HOSTED | {"WHITELAB_MODELS": "bundled,google-bert/*"}
    assert float(os.environ["WHITELAB_MEMORY_GIB"]) > 0
    for name in HOSTED:
        monkeypatch.setenv(name, " , ")
    assert run("app", "--headless", "--hosted", "--port", free_port())[0] == 0
    assert {name: os.environ[name] for name in HOSTED} == HOSTED  # nothing said is nothing allowed


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("WHITELAB_TRAINING", "disabled", "WHITELAB_TRAINING='disabled' must be on or off"),
        ("WHITELAB_CACHE_GIB", "abc", "WHITELAB_CACHE_GIB='abc' must be a number of GiB"),
        ("WHITELAB_MEMORY_GIB", "abc", "WHITELAB_MEMORY_GIB='abc' must be a number of GiB"),
        ("WHITELAB_THREADS", "0", "WHITELAB_THREADS='0' must be a whole number, 1 or more"),
        ("WHITELAB_THREADS", "two", "WHITELAB_THREADS='two' must be a whole number, 1 or more"),
        ("--port", "99999", "--port 99999 must lie between 1 and 65535"),
        ("--port", "-5", "--port -5 must lie between 1 and 65535"),
        ("--address", "nowhere.invalid", "nothing can listen at --address nowhere.invalid --port"),
        ("--address", "192.0.2.1", "nothing can listen at --address 192.0.2.1 --port"),  # of documents, nobody's
    ],
)
def test_what_no_server_can_start_with_is_one_line(streamlit, run, monkeypatch, name, value, message):
    if name.startswith("WHITELAB"):
        monkeypatch.setenv(name, value)
    words = [name, value] if name.startswith("--") else []
    status, out, err = run("app", "--headless", "--port", free_port(), *words)
    assert (status, out, err.count("\n"), streamlit) == (2, "", 1, [])
    assert message in err


def test_a_map_fitted_on_a_corpus_is_that_of_its_texts_and_leaves_as_a_file(place, document, run, tmp_path):
    model, text, out = place / "model", place / "text.txt", tmp_path / "corpus"
    document("corpus", "embed", "--model", model, "--text", text, "--layers", "1", "--out", out)
    found = document("corpus", "fit", out, "--whitening", "pca", "--k", "5", "--out", tmp_path / "map.npz")
    texts = text.read_text().splitlines()
    vectors, _ = embed(load_encoder(str(model), device="cpu"), texts)
    wanted = fit("pca", Moments.of(vectors[1]), 5)
    assert (found["fitted"], found["distinct"], found["rank"]) == (len(texts), len(set(texts)), wanted.rank)
    written, _ = from_npz(tmp_path / "map.npz")
    assert torch.allclose(written.mean, wanted.mean, atol=1e-6)
    assert torch.allclose(written(vectors[1].double()).abs(), wanted(vectors[1].double()).abs(), atol=1e-3)
    status, _, err = run("corpus", "fit", tmp_path / "nothing")
    assert (status, "no such file or folder" in err) == (2, True)


def test_whatever_gives_intervals_says_once_where_pairs_or_queries_are_too_few_for_them(run, model, options, place):
    search, pairs = (*model, "--data", place / "search"), (*model, "--data", place / "few.csv")
    tasks = ("--models", model[1], *pairs[2:], "--settings", "L1;L2")
    for command in (
        ("retrieve", *search),
        ("calibrate", "--search", *search),
        ("bits", "--search", *search, "--codes", "float32"),
        ("calibrate", *pairs),
        ("bits", *pairs, "--codes", "float32"),
        ("compare", *tasks, "--intervals"),
    ):
        status, _, err = run(*command)
        assert (status, err.count("no interval here is to be trusted")) == (0, 1), (command, err)
    for command in (
        ("retrieve", *search, "--whitening", "pca", "--every-k"),
        ("score", *pairs),
        ("compare", *tasks),
        ("bits", *options, "--codes", "float32"),
    ):
        assert "to be trusted" not in run(*command)[2], command
