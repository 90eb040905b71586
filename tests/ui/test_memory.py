"""What all visitors' results share: a budget of bytes, the least recently used goes first, equal requests once."""

import gc
import threading
import weakref
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from torch._subclasses.fake_tensor import FakeTensorMode

from tests.conftest import make_space
from whitelab import figures
from whitelab.base.budget import budget, total_memory
from whitelab.base.control_groups import MemoryLimit
from whitelab.ui.results.memory import MEASURED_SECONDS, OVERHEAD, Memory
from whitelab.ui.results.sizes import SAMPLED, size_of
from whitelab.ui.results.worker import Jobs

PATIENCE = 30.0
KINDS = ("embeddings", "result", "job")
keys = st.tuples(st.sampled_from(KINDS), st.integers(0, 5))


@dataclass(frozen=True, eq=False)
class Block:
    """A value that can be watched, of so many bytes."""

    array: np.ndarray


class Claims:
    """Takes nothing and says that it takes `nbytes`; no weak reference to it, so that it is gone when it made way."""

    __slots__ = ("nbytes",)

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


class Used(RuleBasedStateMachine):
    """Beside a memory a plain list of what was used, oldest first, and what each entry takes."""

    MOST = 20 * OVERHEAD

    def __init__(self):
        super().__init__()
        self.memory, self.used, self.made = Memory(self.MOST), [], 0

    def total(self) -> int:
        return sum(size for _, size in self.used)

    @rule(key=keys, size=st.integers(0, 8 * OVERHEAD))
    def ask(self, key, size):
        calls = []

        def make():
            calls.append(1)
            return Claims(size)

        value = self.memory.made(key, make)
        known = next((entry for entry in self.used if entry[0] == key), None)
        assert len(calls) == (known is None)  # only what made way is made anew
        if known is not None:
            self.used.remove(known)
        self.used.append((key, OVERHEAD + value.nbytes))
        while self.total() > self.MOST:
            last = {kind: next((k for k, _ in reversed(self.used) if k[0] == kind), None) for kind in KINDS}
            old = next((entry for entry in self.used if entry[0] != last[entry[0][0]]), None)
            if old is None:
                break
            self.used.remove(old)

    @precondition(lambda self: self.used)
    @rule(data=st.data())
    def remove(self, data):
        entry = data.draw(st.sampled_from(self.used))
        self.memory.remove(entry[0])
        self.used.remove(entry)

    @invariant()
    def no_more_than_the_budget_but_for_the_last_of_each_kind(self):
        assert self.memory.total == self.total()
        last = {kind: size for (kind, _), size in self.used}
        assert self.memory.total <= max(self.MOST, sum(last.values()))


TestTheLeastRecentlyUsedMakeWay = Used.TestCase
TestTheLeastRecentlyUsedMakeWay.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)


def test_what_is_refused_is_raised_and_kept_by_nobody():
    memory, tries = Memory(10**6), []

    def refusing():
        tries.append(1)
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            memory.made(("result", "a"), refusing)
    assert len(tries) == 2
    assert memory.total == 0


def test_equal_requests_at_once_are_one_call_and_others_do_not_wait_for_it():
    memory, begun, go_on, calls, got = Memory(0), threading.Event(), threading.Event(), [], []

    def slow():
        calls.append(1)
        begun.set()
        assert go_on.wait(PATIENCE)
        return Claims(5)

    threads = [threading.Thread(target=lambda: got.append(memory.made(("result", "slow"), slow))) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert begun.wait(PATIENCE)
    assert memory.made(("result", "other"), lambda: 7) == 7
    go_on.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(calls) == 1
    assert len(got) == 8
    assert len(set(map(id, got))) == 1


def test_who_waits_for_a_call_that_fails_tries_itself():
    memory, begun, go_on, calls, got = Memory(10**6), threading.Event(), threading.Event(), [], []

    def fails_once():
        calls.append(1)
        if len(calls) == 1:
            begun.set()
            assert go_on.wait(PATIENCE)
            raise ValueError("the first")
        return 3

    def ask():
        try:
            got.append(memory.made(("result", "a"), fails_once))
        except ValueError as error:
            got.append(str(error))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    threads[0].start()
    assert begun.wait(PATIENCE)
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(map(str, got)) == ["3", "the first"]


def test_what_someone_still_holds_is_found_again_though_it_made_way_and_is_gone_with_the_last_who_does():
    memory = Memory(1)
    held = memory.put(("embeddings", "a"), Block(np.zeros(100)))
    memory.put(("embeddings", "b"), Block(np.zeros(100)))
    assert memory.get(("embeddings", "a")) is held
    memory.put(("embeddings", "b"), Block(np.zeros(100)))
    gone = weakref.ref(held)
    del held
    gc.collect()
    assert gone() is None
    assert memory.get(("embeddings", "a")) is None


def test_embeddings_count_what_is_derived_of_them():
    now = [0.0]
    space, memory = make_space(), Memory(10**9, clock=lambda: now[0])
    memory.put(("embeddings", "a"), space, grows=True)
    before = memory.total
    space.moments((1,)).eigen_all  # noqa: B018
    now[0] += MEASURED_SECONDS
    assert memory.get(("embeddings", "a")) is space
    assert memory.total >= before + 8 * 2 * space.dim**2


def test_jobs_embeddings_and_results_share_one_budget():
    memory = Memory(12 * OVERHEAD)
    queue = Jobs(memory=memory)
    for name in ("a", "b"):
        assert queue.submit(name, "A", lambda progress: Claims(4 * OVERHEAD)).join(PATIENCE)
        queue.submit("after", "B", lambda progress: None).join(PATIENCE)  # the first is put away by now
        queue.forget("after")
    assert queue.get("a")
    assert queue.get("b")
    memory.put(("embeddings", "x"), Claims(4 * OVERHEAD))
    assert queue.get("a") is None  # used before b
    assert queue.get("b")
    assert memory.total <= memory.most


# sizes


def test_arrays_are_counted_once_and_whole_wherever_they_lie():
    array, tensor = np.zeros(100_000), torch.zeros(70, 500)
    least = 800_000 + 140_000
    found = size_of({"a": [array, (array[3:5], "text")], "b": Block(array.reshape(10, -1)), "c": (tensor, tensor[2:3])})
    assert least <= found < least + 5000
    assert least <= size_of([array[:1], tensor[0]]) < least + 5000  # a part keeps the whole alive
    assert size_of(make_space()) >= 4 * 60 * 12 * 4


def test_a_tensor_without_memory_of_its_own_counts_what_it_stands_for():
    with FakeTensorMode():
        fake = torch.zeros(30, 40)
    assert 4800 <= size_of([fake]) < 5500
    assert size_of(torch.nn.Linear(30, 40)) == 4 * 31 * 40


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 5 * SAMPLED), st.integers(1, 50))
def test_long_texts_are_judged_by_a_sample(count, length):
    texts = [f"{i:06d}" + length * "x" for i in range(count)]
    true = texts.__sizeof__() + sum(map(len, texts)) + 49 * count
    assert true * 0.95 < size_of(texts) < true * 1.05 + 100


def test_figures_are_counted_by_their_arrays():
    values = np.random.default_rng(0).normal(size=50_000)
    figure = figures.spectrum({"none": tuple(values)}, {"none": "raw"})
    assert size_of(figure) > 8 * 50_000


# the budget


def test_the_budget_is_a_quarter_of_the_machine_or_of_what_a_limit_leaves_it_unless_it_is_said(monkeypatch):
    monkeypatch.delenv("WHITELAB_MEMORY_GIB", raising=False)
    assert budget() == total_memory() // 4
    monkeypatch.setenv("WHITELAB_MEMORY_GIB", "0.5")
    assert budget() == 2**29
    monkeypatch.setattr("whitelab.base.budget.memory_limits", list)
    assert total_memory() > 2**20
    monkeypatch.setattr("whitelab.base.budget.memory_limits", lambda: [MemoryLimit(2**20, 0), MemoryLimit(2**30, 0)])
    assert total_memory() == 2**20


@pytest.mark.parametrize("value", ["much", "-1", "nan", "inf"])
def test_a_budget_that_is_no_number_is_refused(value, monkeypatch):
    monkeypatch.setenv("WHITELAB_MEMORY_GIB", value)
    with pytest.raises(ValueError, match=f"WHITELAB_MEMORY_GIB='{value}' must be a number of GiB, 0 or more"):
        budget()
