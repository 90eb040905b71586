"""The queue of work that takes minutes and hours: one at a time, each in a process of its own, for all visitors and
apart from other jobs.

What such work has done lies on disk; the queue only knows whose turn it is. It is empty after the app is started
anew, and what ran then can be taken up again.
"""

import os
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress

import streamlit as st

from whitelab.ui.results.worker import Job, Jobs

SWITCH = "WHITELAB_TRAINING"  # environment: "off" keeps visitors from beginning any
LONGEST = 8  # that may wait or run at a time
_LOOK_SECONDS = 0.3


@st.cache_resource(show_spinner=False)
def queue() -> Jobs:
    """The queue of this process, whose worker waits for one process after another."""
    return Jobs(workers=1)  # each has the whole machine for its turn


def allowed() -> bool:
    """Whether the operator lets visitors begin such work, and remove what came of it."""
    return os.environ.get(SWITCH, "on").strip().lower() not in ("off", "no", "false", "0")


def full() -> bool:
    """Whether nothing more may be begun for now."""
    return len(queue().active()) >= LONGEST


def take_turn(
    key: str,
    title: str,
    begun: Callable[[], AbstractContextManager[subprocess.Popen]],
    far: Callable[[], tuple[int, int]] = lambda: (0, 0),
    unit: str = "",
) -> None:
    """Let a process wait for its turn; one of this key that is open already keeps its place.

    `begun` makes it, and stops it when a visitor has cancelled; `far` says how much is done, of how much. Nothing where
    the operator has turned such work off.
    """
    if not allowed():
        return
    if (job := queue().get(key)) is not None and job.finished:
        queue().forget(key)

    def work(progress) -> str:
        progress(*far())
        with begun() as process:
            while process.poll() is None:
                progress(*far())  # raises once a visitor has cancelled
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_LOOK_SECONDS)
        return title

    queue().submit(key, title, work, unit)


def before(job: Job) -> list[str]:
    """Titles of what has its turn before this."""
    return [one.title for one in queue().active() if one.number < job.number]
