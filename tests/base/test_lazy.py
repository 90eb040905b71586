"""Attributes computed at the first look, by whichever thread looks first."""

import pickle
import threading

import pytest
from working import PATIENCE

from whitelab.base.lazy import cached_property


class Slow:
    """Computes `value` once it may, and counts how often."""

    def __init__(self):
        self.calls, self.may, self.begun = 0, threading.Event(), threading.Event()

    @cached_property
    def value(self):
        """What is computed."""
        self.calls += 1
        self.begun.set()
        assert self.may.wait(PATIENCE)
        return object()


class Failing:
    """Fails at the first look."""

    calls = 0

    @cached_property
    def value(self):
        """What is computed at the second look."""
        self.calls += 1
        if self.calls == 1:
            raise ValueError("not yet")
        return 7


def test_threads_that_look_at_one_object_compute_once_and_at_another_do_not_wait():
    busy, free, seen = Slow(), Slow(), []
    free.may.set()
    threads = [threading.Thread(target=lambda: seen.append(busy.value)) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert busy.begun.wait(PATIENCE)
    assert free.value is free.value
    busy.may.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert (busy.calls, len(seen), len(set(map(id, seen)))) == (1, 4, 1)


def test_a_failure_is_not_kept_and_what_was_computed_can_be_pickled():
    one = Failing()
    with pytest.raises(ValueError, match="not yet"):
        _ = one.value
    assert (one.value, one.value, one.calls) == (7, 7, 2)
    assert pickle.loads(pickle.dumps(one)).value == 7
