"""Laws of a run in a process of its own: it ends on request, and what it learned stays.

That one ends by itself with the records of a run here is held by the page (pages/test_training_page.py), that it ends
with whoever began it by base/test_own_process.py.
"""

import os
import subprocess
import sys

import pytest
from processes import ROOT, until
from tiny import SENTENCES

from whitelab.training import TrainConfig, own_process, runs
from whitelab.training.own_process import trained_apart
from whitelab.training.runs import CANCELLED, DIED, RUNNING, WAITING, RunError, create


@pytest.fixture
def make(place, pairs, tmp_path):
    """A run of so many steps that waits."""

    def made(steps, **changes):
        settings = {"model": str(place / "model"), "batch": 16, "eval_every": 2, "save_every": 2} | changes
        config = TrainConfig(steps=steps, **settings)
        return create(config, SENTENCES, pairs, tmp_path / f"run-{steps}")

    return made


def test_leaving_stops_the_run_with_a_checkpoint_from_which_it_goes_on_and_killed_in_the_end_it_only_dies(make):
    run, other = make(100_000, save_every=100_000), make(5)
    with trained_apart(run) as process:
        until(lambda: len(run.records()) > 2)
        assert run.state() == RUNNING
    assert process.poll() == 0
    assert run.state() == CANCELLED
    reached = run.records()[-1].step
    assert run.checkpoint == reached
    with trained_apart(run, grace=0.0):  # no time to stop in
        until(lambda: run.records()[-1].step > reached)
    assert run.state() == DIED
    assert run.summary().resumable
    steps = [record.step for record in run.records()]
    assert steps == list(range(len(steps)))
    assert other.state() == WAITING  # nothing else was trained


@pytest.mark.skipif(os.name != "posix", reason="only POSIX tells a process that its parent is gone")
def test_a_run_whose_program_was_killed_says_that_and_not_that_it_was_cancelled(make):
    run = make(100_000)
    lines = "import sys, time\nfrom pathlib import Path\nfrom whitelab.training.own_process import trained_apart\n"
    lines += "from whitelab.training.runs import Run\nwith trained_apart(Run(Path(sys.argv[1]))): time.sleep(1000)\n"
    program = subprocess.Popen([sys.executable, "-c", lines, str(run.folder)], cwd=ROOT)
    try:
        until(lambda: len(run.records()) > 2)
    finally:
        program.kill()
        program.wait()
    until(lambda: run.state() != RUNNING)
    reached, found = run.records()[-1].step, run.summary()
    assert (found.state, found.resumable) == (DIED, True)
    assert found.message == f"the program that began it ended at step {reached}; it can be resumed from step {reached}"


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
