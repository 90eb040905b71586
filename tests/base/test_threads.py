"""Laws of working side by side: the same results in the same order, one torch thread each, nothing left behind."""

import threading

import pytest
import threadpoolctl
import torch
from threadpoolctl import ThreadpoolController

from whitelab.base.threads import _shares, one_blas_thread, one_thread, share, side_by_side


@pytest.fixture(params=[1, 3])
def threads(request, monkeypatch):
    """As many threads as torch may use; it had another number before."""
    before = torch.get_num_threads()
    monkeypatch.setattr(_shares, "whole", request.param)
    monkeypatch.setattr(_shares, "most", request.param)
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("count", [0, 1, 2, 20])
def test_results_come_in_the_order_of_the_items(threads, count):
    slow_first = threading.Event()

    def work(i):
        if i == 0 and count > 1 and threads > 1:
            assert slow_first.wait(20)  # the first ends after the second has begun
        slow_first.set()
        return i * i

    assert list(side_by_side(work, range(count))) == [i * i for i in range(count)]


def test_as_many_run_at_once_as_torch_has_threads_each_with_one(threads):
    together = threading.Barrier(threads, timeout=20)

    def work(_):
        together.wait()  # breaks unless so many are under way at once
        return torch.get_num_threads()

    assert list(side_by_side(work, range(2 * threads))) == [1] * 2 * threads


def test_torch_has_its_threads_again_here_and_in_threads_yet_to_come(threads):
    with one_thread():
        assert torch.get_num_threads() == 1
    assert list(side_by_side(one_thread()(int), [1, 2, 3])) == [1, 2, 3]
    found = []
    later = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    later.start()
    later.join()
    assert [torch.get_num_threads(), *found] == [threads, threads]


def test_what_is_made_in_inference_mode_is_written_into_by_all(threads):
    with torch.inference_mode():
        found = torch.zeros(6)
        assert list(side_by_side(lambda i: found[i].fill_(i) is not None, range(6))) == [True] * 6
    assert found.tolist() == list(range(6))
    assert list(side_by_side(lambda _: torch.is_inference_mode_enabled(), range(6))) == [False] * 6


def test_a_single_item_has_every_thread(threads):
    assert list(side_by_side(lambda _: torch.get_num_threads(), [0])) == [threads]


@pytest.mark.parametrize("threads", [3], indirect=True)
def test_where_the_system_has_no_more_threads_it_is_said_and_none_is_left_waiting(threads, monkeypatch):
    before, begin = set(threading.enumerate()), threading.Thread.start

    def start(thread):
        if set(threading.enumerate()) - before:
            raise RuntimeError("can't start new thread")
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(RuntimeError, match="new thread"):
        list(side_by_side(int, [1, 2, 3]))
    assert set(threading.enumerate()) <= before
    assert torch.get_num_threads() == threads


def test_an_error_is_raised_in_its_turn_and_what_has_not_begun_never_does(threads):
    begun, before = [], set(threading.enumerate())

    def work(i):
        begun.append(i)
        if i == 2:
            raise ValueError("two is wrong")
        return i

    results = side_by_side(work, range(100))
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ValueError, match="two is wrong"):
        next(results)
    assert len(begun) <= 4 * threads + 3
    assert set(threading.enumerate()) <= before


def test_closing_stops_the_work(threads):
    begun, before = [], set(threading.enumerate())
    results = side_by_side(begun.append, range(100))
    next(results)
    results.close()
    assert len(begun) <= 4 * threads
    assert set(threading.enumerate()) <= before


# Beside others


def of_blas():
    """How many threads numpy's BLAS has."""
    (found,) = {one["num_threads"] for one in ThreadpoolController().select(user_api="blas").info()}
    return found


def test_numpy_has_its_threads_again_once_the_last_of_those_who_overlap_is_done():
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert of_blas() == 1
        second.__exit__(None, None, None)
        assert of_blas() == 2


def test_a_limit_that_cannot_be_set_leaves_numpy_its_threads_and_those_who_ask_later_too(monkeypatch):
    def refused(*_):
        raise OSError("no such library")

    with ThreadpoolController().limit(limits=2, user_api="blas"):
        with monkeypatch.context() as patch:
            patch.setattr(threadpoolctl, "threadpool_limits", refused)
            with pytest.raises(OSError, match="no such library"), one_blas_thread():
                pass
        with one_blas_thread():
            assert of_blas() == 1
        assert of_blas() == 2


def test_whoever_is_alone_has_every_thread_and_several_share_them(threads):
    met, found = threading.Barrier(2, timeout=20), []

    def work():
        with share():
            met.wait()  # both are inside
            with share():  # and count once
                found.append(torch.get_num_threads())
            met.wait()

    with share():
        assert torch.get_num_threads() == threads
    others = [threading.Thread(target=work) for _ in range(2)]
    for one in others:
        one.start()
    for one in others:
        one.join()
    assert sorted(found) == [1, threads]  # who came first keeps what it has
    with share():
        assert torch.get_num_threads() == threads


def test_an_operation_takes_no_more_threads_than_its_operator_allows_and_pieces_side_by_side_still_all(
    threads, monkeypatch
):
    monkeypatch.setattr(_shares, "most", 1)
    together = threading.Barrier(threads, timeout=20)
    with share():
        assert torch.get_num_threads() == 1
        list(side_by_side(lambda _: together.wait(), range(2 * threads)))
    assert torch.get_num_threads() == threads


def test_a_thread_that_first_asks_while_others_share_has_every_thread_once_it_is_alone(threads):
    inside, asked, alone = threading.Event(), threading.Event(), threading.Event()
    found = []

    def other():
        with share():
            inside.set()
            asked.wait(20)

    def late():
        torch.get_num_threads()
        asked.set()
        alone.wait(20)
        for _ in range(2):
            with share():
                found.append(torch.get_num_threads())

    with share():
        beside = threading.Thread(target=other)
        beside.start()
        inside.wait(20)
        later = threading.Thread(target=late)
        later.start()
        asked.wait(20)
    beside.join()
    alone.set()  # both shares are over
    later.join()
    assert found == [threads, threads]


def test_what_works_side_by_side_in_a_share_uses_the_whole(threads):
    together = threading.Barrier(threads, timeout=20)
    inside, left = threading.Event(), threading.Event()

    def other():
        with share():
            inside.set()
            left.wait(20)

    beside = threading.Thread(target=other)
    beside.start()
    inside.wait(20)
    with share():
        assert torch.get_num_threads() == max(1, threads // 2)
        list(side_by_side(lambda _: together.wait(), range(2 * threads)))
    left.set()
    beside.join()
    assert torch.get_num_threads() == threads
