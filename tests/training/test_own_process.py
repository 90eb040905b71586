"""Laws of a run in a process of its own: it ends by itself or on request, and what it learned stays."""

import subprocess
import sys
import time

import pytest
from processes import ROOT
from tiny import SENTENCES, build_place, untimed

from whitelab.datasets import load
from whitelab.training import TrainConfig, own_process, runs
from whitelab.training.own_process import trained_apart
from whitelab.training.runs import CANCELLED, DIED, FINISHED, RUNNING, WAITING, RunError, create

PATIENCE = 120


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return build_place(tmp_path_factory.mktemp("apart"))


@pytest.fixture
def make(place, tmp_path):
    """A run of so many steps that waits."""

    def made(steps, **changes):
        settings = {"model": str(place / "model"), "batch": 16, "eval_every": 2, "save_every": 2} | changes
        config = TrainConfig(steps=steps, **settings)
        return create(config, SENTENCES, load(place / "pairs.csv"), tmp_path / f"run-{steps}")

    return made


def until(true):
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_run_apart_gives_the_records_of_a_run_here(make, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as here: the last bit of a sum depends on how many share it
    here, there = make(4), make(5)
    twin = create(here.config, *here.data(), tmp_path / "twin")
    with trained_apart(twin) as process:
        until(lambda: process.poll() is not None)
    assert process.returncode == 0
    assert twin.state() == FINISHED
    assert there.state() == WAITING  # nothing else was trained
    assert untimed(twin.records()) == untimed(here.follow())


def test_leaving_stops_the_run_with_a_checkpoint_from_which_it_goes_on(make):
    run = make(100_000, save_every=100_000)
    with trained_apart(run) as process:
        until(lambda: len(run.records()) > 2)
        assert run.state() == RUNNING
    assert process.poll() == 0
    assert run.state() == CANCELLED
    reached = run.records()[-1].step
    assert run.checkpoint == reached
    with trained_apart(run):
        until(lambda: run.records()[-1].step > reached)
    assert run.state() == CANCELLED
    steps = [record.step for record in run.records()]
    assert steps == list(range(len(steps)))


def test_a_run_that_does_not_stop_in_time_is_killed_and_only_dies(make):
    run = make(100_000)
    with trained_apart(run, grace=0.0):
        until(lambda: len(run.records()) > 4)
    assert run.state() == DIED
    assert run.summary().resumable


def test_the_run_stops_when_the_process_that_waits_is_gone(make):
    run = make(100_000)
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom whitelab.training.own_process import trained_apart\n"
        "from whitelab.training.runs import Run\nwith trained_apart(Run(Path(sys.argv[1]))):\n    time.sleep(1000)\n"
    )
    waiting = subprocess.Popen([sys.executable, "-c", script, str(run.folder)], cwd=ROOT)
    try:
        until(lambda: len(run.records()) > 2)
    finally:
        waiting.kill()
        waiting.wait()
    until(lambda: run.state() != RUNNING)
    assert run.state() == CANCELLED


def test_a_run_that_fails_says_so_on_disk(make, tmp_path):
    run = make(4, model=str(tmp_path / "nothing"))
    with trained_apart(run) as process:
        until(lambda: process.poll() is not None)
    assert process.returncode == 1
    assert run.state() == runs.FAILED
    assert "must be a folder" in run.summary().message


def test_a_process_that_cannot_begin_says_why(make, monkeypatch):
    monkeypatch.setattr(own_process, "__name__", "whitelab.nowhere")
    run = make(4)
    with (
        pytest.raises(RunError, match="could not be trained: .*No module named whitelab.nowhere"),
        trained_apart(run) as one,
    ):
        until(lambda: one.poll() is not None)
    assert run.state() == WAITING
