"""Laws of the places on this machine: a home folder that is not there is one line everywhere, never a traceback."""

import os
import sys
from pathlib import Path

import pytest
import torch

from whitelab.base.user_folders import expanded, name_of, user_folder
from whitelab.cli import main
from whitelab.datasets import DataError, data_name, discover, discover_labelled, fetch
from whitelab.datasets.layouts import file_at
from whitelab.encoding.checkpoints import find_model, on_disk, runs_root, version
from whitelab.encoding.names import ModelError, allowed, shown_name
from whitelab.scoring.fit_text import scope_text
from whitelab.scoring.setting import scope_name
from whitelab.statistics.moments import Moments
from whitelab.store.embedding_store import StoreError, default_root
from whitelab.training import TrainConfig, runs
from whitelab.training.runs import RunError
from whitelab.whitening import fit
from whitelab.whitening.export import ExportError, to_npz

NOBODY = "~nobody-there/x"


def test_a_model_in_the_home_folder_of_nobody_is_missing_like_any_other():
    with pytest.raises(ModelError, match=r"model='~nobody-there/x' must be a folder with config.json"):
        find_model(NOBODY)
    assert (version(NOBODY), shown_name(NOBODY), on_disk(NOBODY), allowed(NOBODY)) == ("", "x", True, True)


def test_a_pattern_of_the_operator_in_the_home_folder_of_nobody_allows_nothing(tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    monkeypatch.setenv("WHITELAB_MODELS", "~nobody-there/*")
    assert not allowed(str(tmp_path / "model"))
    monkeypatch.setenv("WHITELAB_MODELS", f"~nobody-there/*,{tmp_path}/*")
    assert allowed(str(tmp_path / "model"))


def test_data_in_the_home_folder_of_nobody_is_refused_in_one_line():
    for read in (discover, discover_labelled, lambda path: scope_text(path, "demo", None)):
        for path in (NOBODY, f"{NOBODY}.txt"):
            with pytest.raises(DataError, match=r"^~nobody-there/x(\.txt)?: cannot be opened \(.+\)$"):
                read(path)
    with pytest.raises(DataError, match="~nobody-there/x: cannot be opened"):
        fetch("senteval", NOBODY, accept_licence=True)


def test_runs_and_exports_in_the_home_folder_of_nobody_are_refused_in_one_line():
    with pytest.raises(RunError, match=r"run='~nobody-there/x' must be a folder: ~nobody-there/x: cannot be opened"):
        runs.find_run(NOBODY)
    with pytest.raises(RunError, match=r"out='~nobody-there/x' must be a folder"):
        runs.create(TrainConfig(), ["one"], folder=NOBODY)
    with pytest.raises(ExportError, match=r"out='~nobody-there/x' must lie in a folder that exists"):
        to_npz(NOBODY, fit("none", Moments.of(torch.eye(3))), {})


@pytest.mark.parametrize("option", ["--model", "--fit", "--data"])
def test_a_command_says_it_in_one_line(option, capsys):
    assert main(["score", option, NOBODY]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "~nobody-there/x" in said.err
    assert "Traceback" not in said.err


def test_a_file_is_found_where_it_is_and_nowhere_else(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("one\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert file_at(str(tmp_path / "a.txt")) == file_at("~/a.txt") == tmp_path / "a.txt"
    assert [file_at(path) for path in (tmp_path, "~", NOBODY, "x" * 5000, "a\0b", "")] == [None] * 6


@pytest.mark.parametrize(
    ("path", "name"),
    {
        "/home/who/clients/acme/notes.txt": "notes.txt",
        "~/clients/acme/notes.txt": "notes.txt",
        "~nobody-there/acme/notes.txt": "notes.txt",
        "../acme/notes.txt": "notes.txt",
        "acme/notes.txt": "notes.txt",
        "acme/notes.txt, without what is scored": "notes.txt, without what is scored",
        "acme/./": "acme",
        "~": "home",
        "..": "home",
        "work/..": "folder",
        ".": "folder",
        "link": "link",
        "link/..": "folder",
        "/": "",
    }.items(),
    ids=str,
)
def test_of_a_path_its_name_leaves_the_machine_by_whatever_way_it_is_told(path, name, tmp_path, monkeypatch):
    (tmp_path / "home" / "folder" / "work").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "home" / "folder")
    Path("link").symlink_to(Path("work"))
    config = TrainConfig(model=f"random:{path}:1", corpus=path, evaluation=path).without_paths()
    assert [name_of(path), data_name(path), scope_name(path), config["corpus"], config["evaluation"]] == [name] * 5
    assert scope_name(f"corpus:{path}") == f"corpus:{name}"


@pytest.mark.parametrize(
    "words",
    ["", "demo", "demo, sts12", "upload ab12cd", "an uploaded text", "x" * 5000, r"C:\a.txt", "a\0b", " a.txt "],
)
def test_words_that_are_no_path_leave_the_machine_as_they_are(words, tmp_path, monkeypatch):
    assert name_of(words) == words
    monkeypatch.setattr(os, "getcwd", lambda: os.stat(tmp_path / "gone"))  # a folder that somebody removed
    assert name_of(words) == words


@pytest.mark.parametrize(
    ("system", "variable", "cache", "data"),
    [
        ("linux", "XDG_{}_HOME", ".cache", ".local/share"),
        ("darwin", "XDG_{}_HOME", "Library/Caches", "Library/Application Support"),
        ("win32", "LOCALAPPDATA", "AppData/Local", "AppData/Local"),
    ],
)
def test_the_users_folders_are_those_of_the_system_unless_a_variable_says_where(
    system, variable, cache, data, tmp_path, monkeypatch
):
    monkeypatch.setattr(sys, "platform", system)
    for kind in ("CACHE", "DATA"):
        monkeypatch.delenv(variable.format(kind), raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_folder("cache") == tmp_path / cache / "whitelab"
    assert user_folder("data") == tmp_path / data / "whitelab"
    monkeypatch.setenv(variable.format("DATA"), "relative")
    assert user_folder("data") == tmp_path / data / "whitelab"
    monkeypatch.setenv(variable.format("DATA"), str(tmp_path / "here"))
    assert user_folder("data") == tmp_path / "here" / "whitelab"


def test_a_user_without_a_home_folder_is_told_which_variable_names_one(monkeypatch):
    def homeless(path):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", homeless)
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "LOCALAPPDATA", "WHITELAB_CACHE", "WHITELAB_RUNS"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="~: cannot be opened"):
        expanded("~")
    with pytest.raises(StoreError, match="WHITELAB_CACHE must name a folder for the embedding store: .*home"):
        default_root()
    with pytest.raises(ModelError, match="WHITELAB_RUNS must name a folder for training runs: .*home"):
        runs_root()
