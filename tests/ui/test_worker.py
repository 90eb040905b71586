"""The queue behind the pages: one job a key, cancel, progress, failure, partial results, bounded memory."""

import gc
import threading
import time
import weakref

import pytest
from working import PATIENCE, failing, reach

from whitelab.datasets import DataError
from whitelab.encoding.names import ModelError
from whitelab.ui.results import worker
from whitelab.ui.results.worker import (
    FINISHED_KEPT,
    LEFT_KEPT,
    SLOTS_KEPT,
    WATCH_SECONDS,
    Job,
    JobCancelled,
    Jobs,
    time_left,
)


class Clock:
    """Time that moves only when told to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


# the queue


def test_a_job_returns_what_its_work_returned():
    job = Jobs().submit("a", "A", lambda progress: 42)
    assert job.join(PATIENCE)
    assert (job.state, job.result, job.error) == ("done", 42, None)


def test_a_second_submitter_of_a_key_gets_the_same_job_while_it_runs_and_after(held):
    queue = Jobs()
    first = queue.submit("a", "A", held)
    assert held.started.wait(PATIENCE)
    assert queue.submit("a", "A", held) is first
    held.release.set()
    assert first.join(PATIENCE)
    assert queue.submit("a", "A", held) is first
    assert held.calls == 1
    assert queue.submit("b", "B", lambda progress: 1) is not first


def test_many_threads_submitting_one_key_start_its_work_once(held):
    queue, got = Jobs(), []
    threads = [threading.Thread(target=lambda: got.append(queue.submit("a", "A", held))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    held.release.set()
    assert got[0].join(PATIENCE)
    assert len({id(job) for job in got}) == 1
    assert held.calls == 1


def test_jobs_run_one_after_another_in_the_order_of_submission(held):
    queue, order = Jobs(), []
    first = queue.submit("a", "A", held)
    assert held.started.wait(PATIENCE)
    others = [queue.submit(name, name, lambda progress, name=name: order.append(name)) for name in "cb"]
    assert [job.key for job in queue.active()] == ["a", "c", "b"]
    assert [job.state for job in queue.active()] == ["running", "queued", "queued"]
    held.release.set()
    assert all(job.join(PATIENCE) for job in [first, *others])
    assert order == ["c", "b"]
    assert queue.active() == []


@pytest.fixture
def behind(held, monkeypatch):
    """Jobs by these names behind one that is held, and a function that lets it go and says how the others then ran."""
    monkeypatch.setattr(worker, "LONG_SECONDS", 3600.0)

    def queued(queue, *names):
        queue.submit("held", "Held", held)
        assert held.started.wait(PATIENCE)
        order = []
        jobs = [queue.submit(name, name, lambda progress, name=name: order.append(name)) for name in names]

        def ran():
            shown = [job.key for job in queue.active()][1:]
            held.release.set()
            assert all(job.join(PATIENCE) for job in jobs)
            assert order == shown
            return order

        return *jobs, ran

    return queued


def test_what_nobody_waits_for_any_more_lets_others_go_first_and_is_still_done(behind):
    queue = Jobs()
    left, shared, kept, ran = behind(queue, "left", "shared", "kept")
    for who, watched in {"anna": (left, shared), "ben": (shared, kept)}.items():
        for job in watched:
            job.watch(who)
    assert queue.waiting == 3
    queue.turn("anna")  # to a page that asks for none of them
    assert queue.waiting == 2
    assert ran() == ["shared", "kept", "left"]


def test_who_asks_again_after_turning_waits_as_before(behind):
    queue = Jobs()
    first, second, ran = behind(queue, "first", "second")
    for job in (first, second):
        job.watch("anna")
    queue.turn("anna")
    for job in (second, first):
        job.watch("anna")
    assert ran() == ["first", "second"]


def test_who_closed_the_page_lets_others_go_first(behind):
    clock = Clock()
    queue = Jobs(clock=clock)
    closed, still_open, ran = behind(queue, "closed", "still open")
    closed.watch("anna")
    clock.now += WATCH_SECONDS + 1
    still_open.watch("ben")
    assert ran() == ["still open", "closed"]


def test_what_nobody_waits_for_does_not_pile_up(behind):
    queue, names = Jobs(), [str(number) for number in range(LEFT_KEPT + 10)]
    *jobs, _ = behind(queue, "awaited")
    jobs[0].watch("anna")
    left = [queue.submit(name, name, lambda progress: 1) for name in names]
    assert [job.key for job in queue.active()][1:] == ["awaited", *names[10:]]
    assert {job.state for job in left[:10]} == {"cancelled"}
    assert queue.submit(names[0], "Anew", lambda progress: 1) is not left[0]


def test_a_long_job_does_not_hold_up_the_next_and_at_most_three_are_under_way(monkeypatch):
    monkeypatch.setattr(worker, "LONG_SECONDS", 0.05)
    queue, release, started = Jobs(), threading.Event(), threading.Semaphore(0)

    def work(progress):
        started.release()
        return release.wait(PATIENCE)

    jobs = [queue.submit(str(number), "Long", work) for number in range(4)]
    for _ in range(worker.WORKERS):
        assert started.acquire(timeout=PATIENCE)
    assert not started.acquire(timeout=0.2)
    assert [job.state for job in jobs] == ["running"] * 3 + ["queued"]
    release.set()
    assert all(job.join(PATIENCE) for job in jobs)


def test_a_running_job_stops_at_its_next_report_once_cancelled(held):
    job = Jobs().submit("a", "A", held)
    assert held.started.wait(PATIENCE)
    job.cancel()
    assert job.join(PATIENCE)
    assert (job.state, job.result, job.error) == ("cancelled", None, None)
    with pytest.raises(JobCancelled, match="A was cancelled"):
        job.progress(4, 10)


def test_a_queued_job_is_cancelled_at_once_and_its_work_never_runs(held):
    queue, ran = Jobs(), []
    queue.submit("a", "A", held)
    assert held.started.wait(PATIENCE)
    job = queue.submit("b", "B", ran.append)
    job.cancel()
    assert job.state == "cancelled"
    held.release.set()
    assert queue.submit("c", "C", lambda progress: 1).join(PATIENCE)
    assert ran == []


def test_work_that_ends_without_noticing_the_cancel_keeps_its_result():
    queue, started, release = Jobs(), threading.Event(), threading.Event()
    job = queue.submit("a", "A", lambda progress: (started.set(), release.wait(PATIENCE), 7)[-1])
    assert started.wait(PATIENCE)
    job.cancel()
    assert job.message == "cancelling, after the step in hand"
    release.set()
    assert job.join(PATIENCE)
    assert (job.state, job.result) == ("done", 7)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("first line\nsecond line"), "first line"),
        (KeyError(), "KeyError"),
        (MemoryError(), "there was not enough memory."),
        (SystemExit("left"), "left"),
    ],
)
def test_a_failure_is_kept_as_one_sentence_and_the_worker_goes_on(error, message):
    queue = Jobs()

    def work(progress):
        raise error

    job = queue.submit("a", "A", work)
    assert job.join(PATIENCE)
    assert (job.state, job.error, job.message) == ("failed", error, message)
    after = queue.submit("b", "B", lambda progress: 1)
    assert after.join(PATIENCE)
    assert after.state == "done"


@pytest.mark.parametrize(("error", "traced"), [(ModelError, False), (DataError, False), (ValueError, True)])
def test_what_cannot_be_had_is_logged_in_a_line_and_a_fault_with_its_traceback(error, traced, caplog):
    def work(progress):
        raise error("model=':1' must be a folder")

    with caplog.at_level("WARNING", worker.__name__):
        assert Jobs().submit("a", "Loading", work).join(PATIENCE)
    assert ("Traceback" in caplog.text) == traced
    assert "Loading failed" in caplog.text
    assert "model=':1' must be a folder" in caplog.text


def test_a_failed_job_keeps_its_key_until_forgotten_and_then_the_work_is_done_anew():
    queue = Jobs()
    failed = queue.submit("a", "A", failing)
    assert failed.join(PATIENCE)
    assert queue.submit("a", "A", lambda progress: 1) is failed
    queue.forget("a")
    again = queue.submit("a", "A", lambda progress: 1)
    assert again.join(PATIENCE)
    assert again.result == 1


def test_forgetting_a_running_job_cancels_it(held):
    queue = Jobs()
    job = queue.submit("a", "A", held)
    assert held.started.wait(PATIENCE)
    queue.forget("a")
    assert job.join(PATIENCE)
    assert job.state == "cancelled"
    assert queue.get("a") is None
    queue.forget("never submitted")


def test_only_the_last_used_finished_jobs_are_kept():
    most = 20
    queue = Jobs(kept=most)
    for index in range(most + 5):
        assert queue.submit(f"{index}", "A", lambda progress: 1).join(PATIENCE)
        assert queue.get("0") is not None  # used every time, so never the oldest
    assert queue.submit("last", "A", lambda progress: 1).join(PATIENCE)
    queue.submit("flush", "A", lambda progress: 1).join(PATIENCE)
    kept = [index for index in range(most + 5) if queue.get(f"{index}")]
    assert len(kept) <= most
    assert kept[0] == 0
    assert 1 not in kept
    assert Jobs()._kept == FINISHED_KEPT  # so many would take seconds here


def test_how_many_finished_jobs_are_kept_drops_no_open_one(held):
    queue = Jobs(kept=2)
    queue.submit("held", "H", held)
    for index in range(9):
        queue.submit(f"{index}", "A", lambda progress: 1)
    assert len(queue.active()) == 10


@pytest.mark.parametrize("ending", ["done", "failed"])
def test_a_job_out_of_the_registry_leaves_nothing_in_memory(ending):
    class Large:
        pass

    queue, alive = Jobs(), []

    def work(progress):
        array = Large()
        alive.append(weakref.ref(array))
        if ending == "failed":
            raise ValueError("after the array was made")
        return array

    assert queue.submit("a", "A", work).join(PATIENCE)
    if ending == "done":
        assert alive[0]() is not None
        queue.forget("a")
    deadline = time.monotonic() + PATIENCE
    while alive[0]() is not None and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    assert alive[0]() is None


def test_a_finished_job_lets_go_of_its_work_and_what_that_closed_over():
    class Large:
        pass

    large = Large()
    alive = weakref.ref(large)
    job = Jobs().submit("a", "A", lambda progress, large=large: 1)
    assert job.join(PATIENCE)
    del large
    gc.collect()
    assert alive() is None


# progress and time left


def ticking_job():
    clock = Clock()
    job = Job("a", "A", lambda progress: None, "sentences", clock)
    job.state = "running"
    return job, clock


def test_time_left_is_unknown_before_a_rate_is_known():
    job, clock = ticking_job()
    assert job.message == "starting"
    job.progress(1000, 2000)
    assert job.seconds_left is None
    assert job.message == "1\u202f000 of 2\u202f000 sentences"


def test_what_is_counted_in_parts_that_nobody_knows_is_said_in_percent():
    job = Job("key", "Title", lambda progress: None, "%", Clock())
    job.state = "running"
    job.progress(400, 1400)
    assert job.message == "28 %"


def test_a_steady_rate_gives_the_exact_time_left():
    job, clock = ticking_job()
    for done in range(0, 1250, 50):
        job.progress(done, 2551)
        clock.now += 0.5
    assert job.seconds_left == pytest.approx((2551 - 1200) / 100)
    assert job.message == "1\u202f200 of 2\u202f551 sentences, about 14 s left"


def test_what_was_there_at_the_first_report_does_not_count_as_speed():
    job, clock = ticking_job()
    clock.now += 1.0
    job.progress(900, 1000)  # resumed: 900 were in the store
    clock.now += 1.0
    job.progress(910, 1000)
    assert job.seconds_left == pytest.approx(9.0)


def test_a_change_of_rate_is_followed_smoothly():
    job, clock = ticking_job()
    done = 0
    for rate, steps in [(100, 20), (10, 4)]:
        for _ in range(steps):
            job.progress(done, 100_000)
            clock.now += 0.5
            done += rate // 2
    rate = (100_000 - job.done) / job.seconds_left
    assert 10 < rate < 100
    for _ in range(100):
        job.progress(done, 100_000)
        clock.now += 0.5
        done += 5
    assert (100_000 - job.done) / job.seconds_left == pytest.approx(10, rel=0.01)


def test_steps_that_take_turns_at_being_slow_and_quick_count_for_what_they_take_together():
    job, clock = ticking_job()
    said = []
    for done in range(100):
        job.progress(done, 100)
        clock.now += 0.5 if done % 2 else 9.5
        if done > 12:
            said.append(job.seconds_left / (100 - done))
    assert 3 < min(said) < 5 < max(said) < 7


@pytest.mark.parametrize("total", [10, 500])
def test_a_new_stage_measures_its_rate_afresh_whether_or_not_its_total_is_new(total):
    job, clock = ticking_job()
    job.progress(0, 10)
    clock.now += 1.0
    job.progress(10, 10)
    assert job.seconds_left == 0.0
    job.progress(0, total)
    assert job.seconds_left is None
    clock.now += 1.0
    job.progress(total // 10, total)
    assert job.seconds_left == pytest.approx(9.0)


def test_counts_and_times_read_well():
    assert [time_left(s) for s in (0.0, 13.2, 89.0, 200.0, 7200.0)] == [
        "about 1 s left",
        "about 14 s left",
        "about 89 s left",
        "about 3 min left",
        "about 2.0 h left",
    ]


# several visitors


def test_leaving_cancels_only_when_nobody_else_waits():
    job, clock = ticking_job()
    job.watch("anna")
    job.watch("ben")
    assert not job.leave("anna")
    job.progress(1, 10)  # not cancelled
    assert job.leave("ben")
    with pytest.raises(JobCancelled):
        job.progress(2, 10)


def test_a_visitor_who_closed_the_page_no_longer_counts_as_waiting():
    job, clock = ticking_job()
    job.watch("anna")
    clock.now += WATCH_SECONDS + 1
    job.watch("ben")
    assert job.leave("ben")


# work that yields


def test_what_work_yields_is_seen_as_it_comes_and_the_last_is_the_result(steps):
    job = Jobs().submit("a", "A", steps)
    assert job.partial is None
    for value in (1, 2):
        steps.step.release()
        reach(job, value)
        assert (job.state, job.result) == ("running", None)
    steps.step.release()
    assert job.join(PATIENCE)
    assert (job.state, job.result) == ("done", 3)


def test_a_list_is_a_result_and_not_a_row_of_partial_ones():
    job = Jobs().submit("a", "A", lambda progress: [1, 2])
    assert job.join(PATIENCE)
    assert (job.result, job.partial) == ([1, 2], None)


def test_a_cancelled_generator_is_closed_and_what_it_had_found_stays(steps):
    job = Jobs().submit("a", "A", steps)
    steps.step.release()
    reach(job, 1)
    job.cancel()
    assert job.join(PATIENCE)
    assert (job.state, job.result, job.partial, steps.closed) == ("cancelled", None, 1, True)


def test_a_generator_that_never_reports_progress_stops_at_its_next_value():
    seen, job = [], None

    def work(progress):
        for i in range(5):
            seen.append(i)
            yield i
            job.cancel()

    job = Job("a", "A", work, "", time.monotonic)
    job.run()
    assert job.state == "cancelled"
    assert seen == [0, 1]


def test_a_generator_may_fail():
    def work(progress):
        yield 1
        raise ValueError("then it broke")

    job = Jobs().submit("a", "A", work)
    assert job.join(PATIENCE)
    assert (job.state, job.partial, job.message) == ("failed", 1, "then it broke")


# one request a place


SLOT = ("anna", "map")


def test_a_newer_request_of_a_slot_cancels_the_older_which_can_then_be_asked_for_anew(held):
    queue = Jobs()
    queue.claim(SLOT, "k=1")
    old = queue.submit("k=1", "A", held)
    old.watch("anna")
    assert held.started.wait(PATIENCE)
    queue.claim(SLOT, "k=2")
    assert old.join(PATIENCE)
    assert old.state == "cancelled"
    queue.claim(SLOT, "k=1")
    again = queue.submit("k=1", "A", lambda progress: 7)
    assert again is not old
    assert again.join(PATIENCE)
    assert again.result == 7


def test_asking_again_for_the_same_leaves_the_job_alone(held):
    queue = Jobs()
    for _ in range(3):
        queue.claim(SLOT, "a")
        job = queue.submit("a", "A", held)
    held.release.set()
    assert job.join(PATIENCE)
    assert (job.state, held.calls) == ("done", 1)


def test_a_finished_job_stays_when_its_slot_moves_on():
    queue = Jobs()
    queue.claim(SLOT, "a")
    assert queue.submit("a", "A", lambda progress: 1).join(PATIENCE)
    queue.claim(SLOT, "b")
    assert queue.get("a").result == 1


def test_what_another_visitor_waits_for_goes_on_when_a_slot_moves_on(held):
    queue = Jobs()
    for who in ("anna", "ben"):
        queue.claim((who, "map"), "a")
        job = queue.submit("a", "A", held)
        job.watch(who)
    queue.claim(SLOT, "b")
    assert not job.cancelling
    assert queue.get("a") is job
    queue.claim(("ben", "map"), "b")
    assert job.join(PATIENCE)
    assert job.state == "cancelled"


def test_other_slots_and_other_visitors_keep_their_jobs(held):
    queue = Jobs()
    queue.claim(SLOT, "a")
    job = queue.submit("a", "A", held)
    queue.claim(("anna", "curve"), "b")
    queue.claim(("ben", "map"), "c")
    assert not job.cancelling
    queue.claim(("anna", "curve"), "a")
    queue.claim(SLOT, "d")  # the curve still shows it
    assert not job.cancelling


def test_slots_and_visitors_do_not_pile_up():
    queue = Jobs()
    for i in range(SLOTS_KEPT + 50):
        queue.turn(f"{i}")
        queue.claim((f"{i}", "map"), f"{i}")
    assert len(queue._slots) == len(queue._turned) == SLOTS_KEPT
