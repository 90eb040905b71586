"""Long work off the script thread: the queue shared by all visitors, and the view that waits for a job.

A page writes

    job = jobs().submit("embed/bundled/stsb", "Embedding stsb", work, unit="sentences")
    embeddings = wait(job, key="embed")
    if embeddings is None:
        st.stop()

on every run. The key decides what the work is: a reload, a second tab or another visitor that submits the
same key meets the same job. `work(progress)` runs in a plain thread: it must not draw with Streamlit, and it
must return something other than None.
"""

from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from whitelab.ui.worker import Job, JobCancelled, Jobs

__all__ = ["Job", "JobCancelled", "Jobs", "jobs", "wait"]

QUICK_SECONDS = 0.3  # work that ends this soon is returned in the run that submitted it, without a panel
POLL_SECONDS = 0.4  # how often an open panel looks at its job


@st.cache_resource(show_spinner=False)
def jobs() -> Jobs:
    """The queue of this process, shared by every visitor."""
    return Jobs()


def wait(job: Job, *, key: str, height: int | None = None) -> Any | None:
    """The result of a job, or None after drawing how far it is where the result will be.

    While the job is open: a panel with title, progress, time left and Cancel, which reruns the whole app once
    the job has ended. After a failure: one sentence and Try again. `height` reserves that many pixels, so
    that the page does not jump. Call it from the page itself, not from inside a fragment.
    """
    who = visitor()
    left, seen = f"{key}-left", f"{key}-seen"
    if job.join(QUICK_SECONDS - job.age) and job.state == "done":
        return job.result
    if not job.finished:
        if st.session_state.get(left) == job.number:
            text = f"{job.title} goes on for another visitor. You stopped waiting for it."
            notice(job, key, height, st.info, text, "Wait again")
            return None
        job.watch(who)
        panel(job, key, height, who)
        return None
    if job.shown and st.session_state.get(seen) != job.number:
        # Seen by another visitor, or by this one before a reload: opening the page anew is a new try.
        jobs().forget(job.key)
        st.rerun()
    job.shown = True
    st.session_state[seen] = job.number
    if job.state == "failed":
        notice(job, key, height, st.error, f"{job.title} failed: {job.message}", "Try again")
    else:
        notice(job, key, height, st.info, f"{job.title} was cancelled.", "Start again")
    return None


@st.fragment(run_every=POLL_SECONDS)
def panel(job: Job, key: str, height: int | None, who: str) -> None:
    """The open job; draws itself again every POLL_SECONDS until it reruns the app at the job's end."""
    if job.finished or st.session_state.get(f"{key}-left") == job.number:
        st.rerun()
    job.watch(who)
    with st.container(border=True, height=height or "content", key=f"{key}-panel"):
        st.markdown(f"**{job.title}**")
        st.progress(min(job.done / job.total, 1.0) if job.total else 0.0)
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.caption(standing(job))
            st.button(
                "Cancel",
                key=f"{key}-cancel",
                on_click=stop_waiting,
                args=(job, key, who),
                disabled=job.cancelling,
            )


def notice(job: Job, key: str, height: int | None, draw: Callable[[str], Any], text: str, again: str) -> None:
    """Why there is no result, with the button that asks for it again."""
    with st.container(height=height or "content", key=f"{key}-notice"):
        draw(text)
        st.button(again, key=f"{key}-again", on_click=ask_again, args=(job, key))


def stop_waiting(job: Job, key: str, who: str) -> None:
    """Cancel the job, or only this visitor's waiting while someone else waits too."""
    if not job.leave(who):
        st.session_state[f"{key}-left"] = job.number


def ask_again(job: Job, key: str) -> None:
    """Make way for a new job of this key, which the page submits in the run that follows."""
    st.session_state.pop(f"{key}-left", None)
    # Another visitor may have asked first; their new job is not ours to drop.
    if job.state in ("failed", "cancelled") and jobs().get(job.key) is job:
        jobs().forget(job.key)


def standing(job: Job) -> str:
    """The job's message; while it is queued, what it waits for."""
    before = [other.title for other in jobs().active() if other.number < job.number]
    return f"waiting for: {', '.join(before)}" if job.state == "queued" and before else job.message


def visitor() -> str:
    context = get_script_run_ctx()
    return context.session_id if context else "nobody"
