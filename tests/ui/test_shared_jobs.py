"""What several visitors share: a job goes, or stays, as those who asked for it do."""

import threading

import pytest
import streamlit as st

from whitelab.ui.results import jobs as waiting
from whitelab.ui.results.worker import Jobs
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
