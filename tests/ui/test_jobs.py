"""What the visitor sees of long work: a panel with progress and cancel, pictures that grow, and failures in words."""

import pytest
from streamlit.testing.v1 import AppTest
from working import PATIENCE, failing, reach

from whitelab.ui.results import jobs as shown_jobs
from whitelab.ui.results import worker
from whitelab.ui.results.jobs import UNHURRIED, jobs, pace

# the view


def page(work):
    import streamlit as st

    from whitelab.ui.results.jobs import jobs, wait

    st.title("Page")
    result = wait(jobs().submit("a", "Embedding demo", work[0], unit="sentences"), key="embed")
    if result is None:
        st.stop()
    st.metric("Result", str(result))


WORK = []


@pytest.fixture
def open_page():
    jobs.clear()
    WORK[:] = [None]

    def opened(work):
        WORK[0] = work
        return AppTest.from_function(page, args=(WORK,), default_timeout=PATIENCE).run()

    yield opened
    for job in jobs().active():
        job.cancel()
    jobs.clear()


def buttons(at):
    return [button.label for button in at.button]


def test_quick_work_shows_its_result_in_the_first_run_without_a_panel(open_page):
    at = open_page(lambda progress: 42)
    assert at.metric[0].value == "42"
    assert buttons(at) == []
    assert not at.exception


def test_open_work_shows_title_progress_and_cancel_and_then_its_result(open_page, held):
    at = open_page(held)
    assert at.markdown[0].value == "**Embedding demo**"
    assert at.caption[0].value == "3 of 10 sentences"
    assert at.get("progress")[0].value == 30
    assert buttons(at) == ["Cancel"]
    assert len(at.metric) == 0
    held.release.set()
    assert jobs().get("a").join(PATIENCE)
    at.run()
    assert at.metric[0].value == "result"
    assert buttons(at) == []


def test_a_second_visitor_and_a_reload_meet_the_job_that_is_running(open_page, held):
    open_page(held)
    job = jobs().get("a")
    again = AppTest.from_function(page, args=(WORK,), default_timeout=PATIENCE).run()
    assert again.caption[0].value == "3 of 10 sentences"
    assert jobs().get("a") is job
    assert held.calls == 1


def test_queued_work_names_what_it_waits_for(open_page, held, monkeypatch):
    monkeypatch.setattr(worker, "LONG_SECONDS", 3600.0)
    jobs().submit("first", "UMAP of demo", held)
    assert held.started.wait(PATIENCE)
    jobs().submit("left", "What nobody waits for", held)
    at = open_page(lambda progress: 1)
    assert at.caption[0].value == r"waiting for\: UMAP of demo"  # in Markdown


def test_cancel_says_so_and_start_again_starts_anew(open_page, held):
    at = open_page(held)
    at.button[0].click().run()
    assert jobs().get("a").join(PATIENCE)
    at.run()
    assert at.info[0].value == "Embedding demo was cancelled."
    assert buttons(at) == ["Start again"]
    at.run()
    assert buttons(at) == ["Start again"]  # a rerun alone restarts nothing
    assert held.calls == 1
    WORK[0] = lambda progress: 5
    at.button[0].click().run()
    assert at.metric[0].value == "5"


def test_a_failure_is_one_sentence_without_traceback_and_can_be_tried_again(open_page):
    at = open_page(failing)
    assert at.error[0].value == "Embedding demo failed: k=900 must lie between 1 and d=384"
    assert not at.exception
    assert buttons(at) == ["Try again"]
    WORK[0] = lambda progress: 5
    at.run()
    assert buttons(at) == ["Try again"]
    at.button[0].click().run()
    assert at.metric[0].value == "5"


def test_who_opens_the_page_after_a_shown_failure_gets_a_new_try(open_page):
    open_page(failing)
    again = open_page(lambda progress: 5)
    assert again.metric[0].value == "5"


def test_a_failure_that_repeats_is_shown_and_not_retried_forever(open_page):
    open_page(failing)
    again = open_page(failing)
    assert buttons(again) == ["Try again"]


def test_one_visitor_cannot_cancel_what_another_waits_for(open_page, held):
    at = open_page(held)
    jobs().get("a").watch("another visitor")
    at.button[0].click().run()
    assert jobs().get("a").state == "running"
    assert at.info[0].value.startswith("Embedding demo goes on for another visitor.")
    at.button[0].click().run()
    assert buttons(at) == ["Cancel"]
    held.release.set()
    assert jobs().get("a").join(PATIENCE)
    assert at.run().metric[0].value == "result"


def test_a_job_that_ends_for_who_stopped_waiting_is_not_said_to_be_cancelled(open_page, held, monkeypatch):
    def just_before(job, key):
        held.release.set()
        assert job.join(PATIENCE)
        return ending(job, key)

    at, ending = open_page(held), shown_jobs.ending
    jobs().get("a").watch("another visitor")
    monkeypatch.setattr(shown_jobs, "ending", just_before)
    at.button[0].click().run()
    assert [one.value.partition(".")[0] for one in at.info] == ["Embedding demo goes on for another visitor"]
    assert at.run().metric[0].value == "result"


@pytest.mark.parametrize("opened", ["open_page", "open_growing"])
def test_work_that_ends_between_two_looks_at_it_is_done_and_not_cancelled(request, opened, held, monkeypatch):
    def too_soon(job, *asked):
        held.release.set()
        assert job.join(PATIENCE)
        return False

    monkeypatch.setattr(shown_jobs, "arrived", too_soon)
    at = request.getfixturevalue(opened)(held)
    assert at.metric[0].value == "result"
    assert not at.info
    assert len(at.markdown) == 0 or last_line(at) == "end of the page: result"


# a picture that grows


def growing_page(work, settings):
    import streamlit as st

    from whitelab.ui.results.jobs import claim, follow, jobs

    st.title("Page")
    claim("map", settings[0])
    job = jobs().submit(settings[0], "Scoring", work[0], unit="cells")
    found = follow(
        job,
        lambda value: st.metric("Drawn", str(value)),
        key="map",
        of=settings[1],
        caption=lambda value: f"{value} found",
        room=200,
    )
    st.markdown(f"end of the page: {found}")


SETTINGS = []


@pytest.fixture
def open_growing(open_page):
    def opened(work, key="a", of="data"):
        WORK[0], SETTINGS[:] = work, [key, of]
        return AppTest.from_function(growing_page, args=(WORK, SETTINGS), default_timeout=PATIENCE).run()

    return opened


def drawn(at):
    return [metric.value for metric in at.metric]


def last_line(at):
    return at.markdown[-1].value


def test_the_more_jobs_wait_the_less_often_an_open_one_is_looked_at(open_page, held):
    open_page(held)
    assert pace(0.4) == 0.4
    paces = []
    for number in range(40):
        jobs().submit(f"later {number}", "Later", held).watch("ben")
        paces.append(pace(0.4))
    assert paces == sorted(paces)
    assert 0.4 < paces[0] < paces[-1] == 0.4 * UNHURRIED


def test_a_picture_is_drawn_as_ended_only_where_the_page_has_its_result(open_growing, held, monkeypatch):
    seen, has_left = [], shown_jobs.has_left

    def just_before(job, key):  # which is asked when the result was just looked for in vain, last by the picture
        seen.append(job)
        if len(seen) == 3:
            held.release.set()
            assert job.join(PATIENCE)
        return has_left(job, key)

    monkeypatch.setattr(shown_jobs, "has_left", just_before)
    at = open_growing(held)
    ended = [one.value for one in at.caption] == ["result found"]
    assert ended == (last_line(at) == "end of the page: result")
    assert ended or at.get("progress")


def test_partial_results_are_drawn_with_progress_and_the_rest_of_the_page_stays(open_growing, steps):
    at = open_growing(steps)
    assert (drawn(at), last_line(at), buttons(at)) == ([], "end of the page: None", ["Cancel"])
    steps.step.release()
    reach(jobs().get("a"), 1)
    at.run()
    assert (drawn(at), last_line(at)) == (["1"], "end of the page: None")
    assert len(at.get("progress")) == 1
    steps.step.release(2)
    assert jobs().get("a").join(PATIENCE)
    at.run()
    assert (drawn(at), last_line(at), buttons(at)) == (["3"], "end of the page: 3", [])
    assert [caption.value for caption in at.caption] == ["3 found"]
    assert len(at.get("progress")) == 0


def test_the_last_picture_stays_until_the_next_request_has_something_to_show(open_growing, steps):
    at = open_growing(lambda progress: 42)
    assert drawn(at) == ["42"]
    WORK[0], SETTINGS[0] = steps, "b"
    at.run()
    assert (drawn(at), last_line(at)) == (["42"], "end of the page: None")
    steps.step.release()
    reach(jobs().get("b"), 1)
    assert drawn(at.run()) == ["1"]


def test_the_last_picture_does_not_stay_for_a_request_that_is_cancelled_or_fails(open_growing, steps):
    at = open_growing(lambda progress: 42)
    WORK[0], SETTINGS[0] = steps, "b"
    at.run()
    at.button[0].click().run()
    assert jobs().get("b").join(PATIENCE)
    assert drawn(at.run()) == []
    WORK[0] = lambda progress: 42
    at.button[0].click().run()
    assert drawn(at) == ["42"]
    WORK[0], SETTINGS[0] = failing, "c"
    assert drawn(at.run()) == []


def test_nor_for_one_that_goes_on_for_another_visitor(open_growing, steps):
    at = open_growing(lambda progress: 42)
    WORK[0], SETTINGS[0] = steps, "b"
    assert drawn(at.run()) == ["42"]
    jobs().get("b").watch("another visitor")
    at.button[0].click().run()
    assert (drawn(at), buttons(at)) == ([], ["Wait again"])


@pytest.mark.parametrize(("of", "then"), [("data", "other data"), ("", "")])
def test_a_picture_of_something_else_does_not_stay(open_growing, steps, of, then):
    at = open_growing(lambda progress: 42, of=of)  # nothing said: a picture is of its job alone
    WORK[0], SETTINGS[:] = steps, ["b", then]
    assert drawn(at.run()) == []


def test_a_newer_request_of_the_page_cancels_the_older(open_growing, steps):
    at = open_growing(steps)
    old = jobs().get("a")
    WORK[0], SETTINGS[0] = lambda progress: 5, "b"
    at.run()
    assert old.join(PATIENCE)
    assert old.state == "cancelled"
    assert jobs().get("b").join(PATIENCE)
    assert drawn(at.run()) == ["5"]
    assert jobs().get("a") is None


def test_a_cancelled_picture_says_so_keeps_what_it_had_and_starts_again(open_growing, steps):
    at = open_growing(steps)
    steps.step.release()
    reach(jobs().get("a"), 1)
    at.run()
    at.button[0].click().run()
    assert jobs().get("a").join(PATIENCE)
    at.run()
    assert (drawn(at), buttons(at), last_line(at)) == (["1"], ["Start again"], "end of the page: None")
    assert at.info[0].value == "Scoring was cancelled."
    WORK[0] = lambda progress: 5
    at.button[0].click().run()
    assert drawn(at) == ["5"]


def test_a_picture_that_fails_says_why_and_the_page_goes_on(open_growing):
    at = open_growing(failing)
    assert at.error[0].value == "Scoring failed: k=900 must lie between 1 and d=384"
    assert (last_line(at), buttons(at)) == ("end of the page: None", ["Try again"])


def test_a_second_visitor_sees_the_same_growing_picture(open_growing, steps):
    first = open_growing(steps)
    steps.step.release()
    reach(jobs().get("a"), 1)
    second = open_growing(steps)
    assert drawn(second) == drawn(first.run()) == ["1"]
    assert steps.calls == 1
