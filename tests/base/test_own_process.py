"""Laws of work in a process of its own: it is kept, it comes after others, and its end is its own."""

import os
import signal

import pytest

from whitelab.base.own_process import in_own_process


@pytest.fixture
def worker():
    """The process of a kind of work that no other test has."""
    return in_own_process("one kind", os.getpid)


def test_a_kind_of_work_keeps_its_process_which_yields_to_others(worker):
    assert worker != os.getpid()
    assert in_own_process("one kind", os.getpid) == worker
    assert os.getpriority(os.PRIO_PROCESS, worker) == os.getpriority(os.PRIO_PROCESS, 0) + 5


def test_what_the_work_raises_is_raised_here_and_the_process_stays(worker):
    with pytest.raises(ValueError, match="invalid literal"):
        in_own_process("one kind", int, "x")
    assert in_own_process("one kind", os.getpid) == worker


def test_a_process_that_ends_is_said_in_one_line_replaced_and_no_other_ends_with_it(worker):
    other = in_own_process("another", os.getpid)
    os.kill(worker, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="the process of one kind ended"):
        in_own_process("one kind", os.getpid)
    assert in_own_process("another", os.getpid) == other != worker
    assert in_own_process("one kind", os.getpid) != worker
