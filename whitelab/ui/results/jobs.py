"""Long work off the script thread: the queue shared by all visitors, and the view that waits for a job.

A page writes

    job = jobs().submit("embed/bundled/stsb", "Embedding stsb", work, unit="sentences")
    embeddings = wait(job, key="embed")
    if embeddings is None:
        st.stop()

on every run. The key decides what the work is: a reload, a second tab or another visitor that submits the
same key meets the same job. `work(progress)` runs in a plain thread: it must not draw with Streamlit, and it
must return something other than None.

Work that yields its results as they come is drawn by `follow` instead, which keeps the last picture until there
is a new one. What a newer request makes pointless is given up by `claim`.
"""

from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from whitelab.base.wording import plain
from whitelab.encoding.embeddings import NotMeasuredError
from whitelab.ui.results.memory import memory
from whitelab.ui.results.worker import Job, Jobs, Unasked

QUICK_SECONDS = 0.3  # work that ends this soon is returned in the run that submitted it, without a panel
FIRST_SECONDS = 1.0  # the same for what a page shows nothing without: a panel would only come and go
POLL_SECONDS = 0.4  # how often an open panel looks at its job
STREAM_SECONDS = 0.8  # how often a picture that grows is drawn again
UNHURRIED = 5  # times as long at most, where many jobs wait
STRIP = 50  # pixels of the line over such a picture; it grows with its words, see widgets/look.py
AGREED = "agreed"  # session_state: keys of costly jobs this visitor said yes to
REDRAW = "redraw"  # session_state: what was clicked concerns the whole page


@st.cache_resource(show_spinner=False)
def jobs() -> Jobs:
    """The queue of this process, shared by every visitor."""
    return Jobs(memory=memory())


def turn_page() -> None:
    """The page is drawn anew: what this visitor waited for and does not ask for again lets others go first."""
    st.session_state.pop(REDRAW, None)
    jobs().turn(visitor())


def wait(job: Job, *, key: str, height: int | None = None, quick: float = QUICK_SECONDS) -> Any | None:
    """The result of a job, or None after drawing how far it is where the result will be.

    While the job is open: a panel with title, progress, time left and Cancel, which reruns the whole app once
    the job has ended. After a failure: one sentence and Try again. `height` reserves that many pixels, so
    that the page does not jump; `quick` seconds after submission the panel is drawn. Call it from the page itself,
    not from inside a fragment.
    """
    who = visitor()
    if not arrived(job, key, who, quick) and not job.finished and not has_left(job, key):
        st.fragment(panel, run_every=pace(POLL_SECONDS))(job, key, height, who)
        return None
    if job.state == "done":  # it may be since it was waited for
        return job.result
    draw, text, again = ending(job, key)
    notice(job, key, height, draw, text, again)
    return None


def arrived(job: Job, key: str, who: str, quick: float = QUICK_SECONDS) -> bool:
    """Whether the result is there, at the latest after `quick` seconds. Reruns the app for a new try if one is due."""
    if not has_left(job, key):
        job.watch(who)
    if job.join(quick - job.age) and job.state == "done":
        return True
    if job.finished and job.shown and st.session_state.get(f"{key}-seen") != job.number:
        # Seen by another visitor, or by this one before a reload: opening the page anew is a new try.
        jobs().forget(job.key)
        st.rerun()
    return False


def has_left(job: Job, key: str) -> bool:
    """Whether this visitor stopped waiting for a job that goes on for another."""
    return st.session_state.get(f"{key}-left") == job.number


def ending(job: Job, key: str) -> tuple[Callable[[str], Any], str, str]:
    """How to say why there is no result, and the label of the button that asks for it again."""
    if job.state not in ("failed", "cancelled"):
        return st.info, f"{job.title} goes on for another visitor. You stopped waiting for it.", "Wait again"
    job.shown = True
    st.session_state[f"{key}-seen"] = job.number
    if isinstance(job.error, NotMeasuredError):
        words = f"{job.title} would need other layers than those of the corpus that maps are fitted on."
        return st.info, words, "Fit on the task's sentences"
    if job.state == "failed":
        return st.error, f"{job.title} failed: {job.message}", "Try again"
    if isinstance(job.error, Unasked):
        return st.info, str(job.error), "Start"
    return st.info, f"{job.title} was cancelled.", "Start again"


def pace(seconds: float) -> float:
    """`seconds`, and longer the more jobs wait: whoever looks holds up the work that is waited for."""
    return seconds * min(1 + jobs().waiting / 4, UNHURRIED)


def panel(job: Job, key: str, height: int | None, who: str) -> None:
    """The open job, a fragment that draws itself again and again until it reruns the app at the job's end."""
    if job.finished or has_left(job, key):
        st.rerun()
    job.watch(who)
    with st.container(border=True, height=height or "content", key=f"{key}-panel"):
        st.markdown(f"**{plain(job.title)}**")
        st.progress(min(job.done / job.total, 1.0) if job.total else 0.0)
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.caption(plain(standing(job)))
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
    if isinstance(job.error, Unasked):
        st.session_state.setdefault(AGREED, set()).add(job.key)
    if isinstance(job.error, NotMeasuredError):
        st.session_state["fit"] = "task"
    # Another visitor may have asked first; their new job is not ours to drop.
    if job.state in ("failed", "cancelled") and jobs().get(job.key) is job:
        jobs().forget(job.key)


def standing(job: Job) -> str:
    """The job's message; while it is queued, what it waits for."""
    before = jobs().before(job)
    return f"waiting for: {before}" if job.state == "queued" and before else job.message


def claim(place: str, job_key: str, drop: bool = False) -> None:
    """Let this visitor's `place` show the job `job_key`: the one it showed before makes way, see `Jobs.claim`."""
    jobs().claim((visitor(), place), job_key, drop)


def known(job: Job, key: str, of: str) -> Any | None:
    """The best there is to draw: the job's result, else its latest partial one, else the last drawn here.

    `of` says what a picture is of (the data, say), so that one of something else is not shown in the meantime.
    """
    if job.state == "done":
        return job.result
    if job.partial is not None:
        return job.partial
    what, value = st.session_state.get(f"{key}-last", (None, None))
    return value if what == of else None


def follow(
    job: Job, draw: Callable[[Any], None], *, key: str, caption: Callable[[Any], str], room: int, of: str = ""
) -> Any | None:
    """The result of a job, None while there is none, with a picture of what is `known` either way.

    The picture of another job stays until there is a new one only where both are `of` the same, which names the data
    and the model as well, and only while the job is waited for.

    Over the picture stands a line, higher only where its words need it: `caption(result)`, or how far the job is with
    Cancel, or why it ended. While the job is open, line and picture draw themselves again at a `pace`. `room` pixels
    are kept free where there is nothing to draw yet. Where a click inside `draw` concerns the rest of the page, its
    callback calls `redraw`.
    """
    who, of = visitor(), of or job.key
    settled = arrived(job, key, who) or job.finished or has_left(job, key)
    there = settled and job.state == "done"  # asked once: what is drawn and what is returned are of one moment
    if there:
        st.session_state[f"{key}-last"] = of, job.result
    if settled:
        with st.container():  # as a fragment has one, so that both put their parts in the same places
            picture(job, draw, key, of, caption, room, there=there)
    else:
        st.fragment(growing, run_every=pace(STREAM_SECONDS))(job, draw, key, of, caption, room, who)
    return job.result if there else None


def growing(job: Job, draw, key: str, of: str, caption, room: int, who: str) -> None:
    """The picture of an open job, a fragment that draws itself again and again.

    It reruns the app at the job's end, and after a click that concerns the page.
    """
    if job.finished or has_left(job, key) or st.session_state.pop(REDRAW, False):
        st.rerun()
    job.watch(who)
    picture(job, draw, key, of, caption, room, who=who)


def picture(job: Job, draw, key: str, of: str, caption, room: int, *, there: bool = False, who: str = "") -> None:
    """The line over the picture, and the picture: of a job that gives no result, only what it found itself.

    Its result is `there`, or `who` waits for it, or it was given up.
    """
    given_up = not there and not who
    if given_up:
        say, text, again = ending(job, key)
        notice(job, key, None, say, text, again)
    else:
        with st.container(height=STRIP, border=False, key=f"line-{key}"):
            if there:
                st.caption(caption(job.result))
            else:
                moving(job, key, who)
    found = job.partial if given_up else known(job, key, of)
    if found is None:
        st.container(height=room, border=False, key=f"{key}-room")
    else:
        draw(found)


def moving(job: Job, key: str, who: str) -> None:
    """How far an open job is, in one line with Cancel."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(min(job.done / job.total, 1.0) if job.total else 0.0, standing(job))
        asked = {"on_click": stop_waiting, "args": (job, key, who), "disabled": job.cancelling}
        st.button("Cancel", key=f"{key}-cancel", **asked)


def redraw() -> None:
    """Let the click at hand rerun the whole page, also from inside a fragment that looks for it."""
    st.session_state[REDRAW] = True


def visitor() -> str:
    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context else "nobody"
