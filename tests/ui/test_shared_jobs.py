"""What several visitors share: a job goes, or stays, as those who asked for it do."""

import threading
from dataclasses import dataclass

import numpy as np
import pytest
import streamlit as st
import torch

from whitelab.encoding.embeddings import LayerRows
from whitelab.ui.results import jobs as waiting
from whitelab.ui.results.worker import BYTES_KEPT, LARGE_KEPT, Jobs, array_bytes
from whitelab.ui.sections import take_away

PATIENCE = 60.0


@pytest.fixture
def queue(monkeypatch):
    """The queue of all visitors, empty."""
    found = Jobs()
    monkeypatch.setattr(waiting, "jobs", lambda: found)
    return found


@pytest.fixture
def be(monkeypatch):
    """Act as a visitor by name, each with a session of their own."""
    sessions = {}

    def turned(who):
        monkeypatch.setattr(waiting, "visitor", lambda: who)
        monkeypatch.setattr(st, "session_state", sessions.setdefault(who, {}))
        return who

    return turned


@pytest.fixture
def open_work():
    """Work that goes on until it is cancelled or the test is over."""
    over = threading.Event()

    def work(progress):
        while not over.wait(0.01):
            progress(0, 1)
        return "folder"

    yield work
    over.set()


def ask(queue, who, key, work):
    """Press the button as a visitor does, and look at the job."""
    take_away._ask(key)
    job = queue.submit(key, "Writing the model folder", work)
    job.watch(who)
    return job


def test_asking_for_another_model_folder_leaves_the_one_another_visitor_waits_for(queue, be, open_work):
    job = ask(queue, be("anna"), "a", open_work)
    assert ask(queue, be("ben"), "a", open_work) is job
    ask(queue, be("anna"), "b", open_work)
    assert not job.cancelling
    assert queue.get("a") is job
    ask(queue, be("ben"), "b", open_work)  # now nobody waits for it
    assert job.join(PATIENCE)
    assert (job.state, queue.get("a")) == ("cancelled", None)


def test_a_finished_model_folder_goes_with_the_last_visitor_who_asked_for_it(queue, be):
    done = lambda progress: "folder"  # noqa: E731
    job = ask(queue, be("anna"), "a", done)
    assert job.join(PATIENCE)
    ask(queue, be("ben"), "a", done)
    ask(queue, be("anna"), "b", done)
    assert queue.get("a") is job
    ask(queue, be("ben"), "b", done)
    assert queue.get("a") is None


# What is kept


@dataclass(frozen=True)
class Claims:
    """A result that says how much memory it takes, and takes none."""

    nbytes: int


def finish(queue, key, result):
    """A finished job of this result."""
    assert queue.submit(key, key, lambda progress: result).join(PATIENCE)


def test_large_results_make_way_for_each_other_and_never_for_small_ones():
    queue = Jobs()
    finish(queue, "small", 1)
    sizes = {f"{i}": BYTES_KEPT // 20 for i in range(60)}
    for key, size in sizes.items():
        finish(queue, key, [Claims(size)])
    finish(queue, "last", 1)
    kept = [key for key in sizes if queue.get(key)]
    assert kept == list(sizes)[-20:]
    assert queue.get("small") is not None


def test_the_large_results_used_last_stay_whatever_they_take():
    queue = Jobs()
    for i in range(LARGE_KEPT + 3):
        finish(queue, f"{i}", Claims(2 * BYTES_KEPT))
        assert queue.get("0") is not None  # used every time, so never the oldest
    finish(queue, "last", 1)
    assert [i for i in range(LARGE_KEPT + 3) if queue.get(f"{i}")] == [0, *range(4, LARGE_KEPT + 3)]


def test_a_results_arrays_are_counted_once_wherever_they_lie():
    array, tensor = np.zeros(100), torch.zeros(7, 5)
    space = LayerRows(tensor[None], torch.ones(7, dtype=torch.float64))
    assert array_bytes({"a": [array, (array, "text")], "b": space}) == 800 + 7 * 5 * 4 + 7 * 8
    assert array_bytes(None) == array_bytes("text") == array_bytes(3.0) == 0
