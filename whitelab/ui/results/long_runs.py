"""The queue of work that takes minutes and hours: one at a time, each in a process of its own, for all visitors and
apart from other jobs.

What such work has done lies on disk; the queue only knows whose turn it is. It is empty after the app is started
anew, and what ran then can be taken up again.
"""

import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress

import streamlit as st

from whitelab.base.switches import TRAINING, switched_on
from whitelab.ui.results.worker import Job, Jobs, is_open

LONGEST = 8  # that may wait or run at a time
FULL = f"{LONGEST} runs and corpora wait already. Begin another when one has ended."
_LOOK_SECONDS = 0.3


@st.cache_resource(show_spinner=False)
def queue() -> Jobs:
    """The queue of this process, whose worker waits for one process after another."""
    return Jobs(workers=1)  # each has the whole machine for its turn


def allowed() -> bool:
    """Whether the operator lets visitors begin such work, and remove what came of it."""
    return switched_on(TRAINING)


def full() -> bool:
    """Whether nothing more may be begun for now."""
    return len(queue().active()) >= LONGEST


def take_turn(
    key: str,
    title: str,
    process: Callable[[], AbstractContextManager[subprocess.Popen]],
) -> None:
    """Let a process wait for its turn; one of this key that is open already keeps its place.

    `process` makes it, and stops it when a visitor has cancelled. Nothing where the operator has turned such work off,
    and where too many wait.
    """
    if not allowed() or full():
        return
    queue().forget_finished(key)

    def work(progress) -> str:
        progress(0, 0)
        with process() as running:
            while running.poll() is None:
                progress(0, 0)  # raises once a visitor has cancelled
                with suppress(subprocess.TimeoutExpired):
                    running.wait(_LOOK_SECONDS)
        return title

    queue().submit(key, title, work)


def turn(job: Job | None) -> str:
    """What work does in the queue, `waiting` or `stopping`; empty where it is under way, or has ended."""
    if not is_open(job):
        return ""
    return "stopping" if job.cancelling else "waiting" if job.state == "queued" else ""


def waits_for(job: Job) -> str:
    """` for simcse-1, a corpus`: whose turn comes before; empty where it is the next."""
    before = queue().before(job)
    return f" for {before}" if before else ""
