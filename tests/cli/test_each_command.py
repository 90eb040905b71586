"""Every command: one document with --json, lines for people without it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from commandline import ANALYSES
from processes import ROOT, fresh_process

from whitelab.cli import COMMANDS, main

STREAMING = ("train",)  # a document a step: see test_runs.py


@pytest.fixture
def words(place, model, options, compared, tmp_path):
    """{command: the options it needs}."""
    return dict.fromkeys(ANALYSES, options) | {
        "models": [],
        "datasets": ["--data", place / "tasks"],
        "download": ["--list"],
        "compare": compared,
        "probe": [*model, "--data", place / "labels.tsv"],
        "whiten": [*options, "--export", "npz", "--out", tmp_path / "map.npz"],
    }


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("app", *STREAMING)])
def test_json_is_one_document_on_stdout_in_a_real_process(command, place, words):
    argv = ("-m", "whitelab", command, *words[command], "--json")
    run = fresh_process(*argv, HF_HUB_CACHE=str(place / "no-cache"))
    assert run.returncode == 0, run.stderr
    assert isinstance(json.loads(run.stdout), dict)
    assert run.stdout.count("\n") == 1
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("app", "models", *STREAMING)])
def test_without_json_there_are_lines_for_people(command, words, run):
    status, out, _ = run(command, *words[command])
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


def test_app_starts_streamlit_on_this_machine_only(monkeypatch):
    started = []
    monkeypatch.setattr(subprocess, "run", lambda command, **more: started.append((command, more)))
    assert main(["app", "--port", "8765", "--headless"]) == 0
    ((command, more),) = started
    assert command[:4] == [sys.executable, "-m", "streamlit", "run"]
    assert Path(command[4]) == ROOT / "app.py"
    assert " ".join(command[5:]) == "--server.port 8765 --server.address 127.0.0.1 --server.headless true"
    assert more["cwd"] == ROOT
