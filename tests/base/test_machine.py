"""What the machine is said to have: the smallest of the limits that hold, and None where nothing is known."""

import itertools
import math

import pytest
import torch
from processes import run_python

from whitelab.base import machine
from whitelab.base.control_groups import MemoryLimit
from whitelab.base.machine import available_memory, is_device_full, is_out_of_memory, product_rate
from whitelab.cli.app import ARENAS, HOSTED


def test_memory_is_between_nothing_and_what_is_built_in():
    free, physical = available_memory(), machine._physical()
    assert free > 0
    assert physical is None or free <= physical


def test_meminfo_is_read_in_kibibytes(tmp_path):
    path = tmp_path / "meminfo"
    path.write_text("MemTotal:       100 kB\nMemAvailable:    64 kB\n")
    assert machine._meminfo(path) == 64 * 1024
    for text in ("", "MemTotal: 100 kB\n", "MemAvailable: many\n"):
        path.write_text(text)
        assert machine._meminfo(path) is None
    assert machine._meminfo(tmp_path / "nothing") is None


@pytest.mark.linux
def test_freed_pages_between_what_lives_on_go_back_to_the_system():
    run = run_python(
        "from pathlib import Path\n"
        "from whitelab.base.machine import give_back_memory\n"
        "def resident():\n"
        "    return int(Path('/proc/self/statm').read_text().split()[1]) >> 8\n"
        "before, kept = resident(), [bytearray(60_000) for _ in range(4_000)]\n"
        "kept = kept[::40]\n"
        "held = resident() - before\n"
        "give_back_memory()\n"
        "print(held, resident() - before)"
    )
    held, left = map(int, run.stdout.split())
    assert held > 150  # MiB, which nothing uses any more
    assert left < 0.2 * held


@pytest.mark.linux
@pytest.mark.parametrize("begun", ["run", "start"])
def test_freed_tables_are_taken_again_without_fresh_pages_in_whatever_thread(begun):
    run = run_python(
        "import resource, torch\n"
        "from threading import Thread\n"
        "from whitelab.base.machine import keep_freed_memory\n"
        "faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "for first in (int, keep_freed_memory):\n"
        "    first()\n"
        "    for n, d in ((2500, 400), (180_000, 50)):\n"  # 8 and 72 MB
        "        rows, map = torch.ones(n, d), torch.ones(d, d, dtype=torch.float64)\n"
        "        def tables():\n"
        "            for count in (10, 10):\n"
        "                before = faults()\n"
        "                for _ in range(count): (rows.double() - 1) @ map * 2\n"
        "            print(faults() - before)\n"
        "        work = Thread(target=tables)\n"
        f"        work.{begun}()\n"
        "        work.ident and work.join()",
        MALLOC_MMAP_THRESHOLD_="131072",  # where glibc begins; what it makes of that later is chance
        **({ARENAS: HOSTED[ARENAS]} if begun == "start" else {}),
    )
    *given_back, small, large = map(int, run.stdout.split())
    for kept, before in zip((small, large), given_back, strict=True):
        assert kept < 0.1 * before > 0


def test_the_smallest_limit_holds(monkeypatch):
    monkeypatch.setattr(machine, "_meminfo", lambda: 100)
    monkeypatch.setattr(machine, "memory_limits", lambda: [MemoryLimit(1000, 60), MemoryLimit(500, 40)])
    assert available_memory() == 40
    monkeypatch.setattr(machine, "memory_limits", list)
    assert available_memory() == 100
    monkeypatch.setattr(machine, "_meminfo", lambda: None)
    monkeypatch.setattr(machine, "_physical", lambda: 7)
    assert available_memory() == 7


def test_the_rate_is_the_processors_whoever_takes_it_away_meanwhile(monkeypatch):
    waited = itertools.count()  # a second before each look at the clock: that much others took
    monkeypatch.setattr(machine.time, "perf_counter", lambda: float(next(waited)))
    product_rate.cache_clear()
    assert product_rate("cpu", torch.float32) > 2 * torch.get_num_threads() * math.prod(machine.PRODUCT)
    product_rate.cache_clear()


def test_the_rate_is_measured_once_and_leaves_the_threads_alone(monkeypatch):
    monkeypatch.setattr(machine, "TIMED_SECONDS", 0.001)
    product_rate.cache_clear()
    threads = torch.get_num_threads()
    rate = product_rate("cpu", torch.float32)
    monkeypatch.setattr(machine, "_rate", lambda *args: pytest.fail("measured again"))
    assert product_rate("cpu", torch.float32) == rate > 0
    assert torch.get_num_threads() == threads
    product_rate.cache_clear()


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: you tried to ..."),
        RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 4 bytes."),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        OSError(12, "Cannot allocate memory"),
    ],
)
def test_every_way_of_saying_that_memory_ran_out_is_known_and_whose(error):
    assert is_out_of_memory(error)
    assert is_device_full(error) is ("CU" in str(error))


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("CUDA error: an illegal memory access was encountered"),
        RuntimeError("The size of tensor a (3) must match the size of tensor b (4)"),
        ValueError("out of memory.csv: no such file"),
        OSError(28, "No space left on device"),
    ],
)
def test_other_faults_are_none_of_memory(error):
    assert not is_out_of_memory(error)


def test_the_collector_passes_over_what_was_there_and_still_ends_what_comes():
    run = run_python(
        "import gc, weakref\n"
        "from whitelab.base.machine import collect_rarely\n"
        "class Ring:\n"
        "    def __init__(self): self.itself = self\n"
        "there = len(gc.get_objects())\n"
        "collect_rarely()\n"
        "left = len(gc.get_objects())\n"
        "dead, kept = weakref.ref(Ring()), []\n"
        "while dead() is not None and len(kept) < 10**7: kept.append([])\n"
        "print(there, left, dead() is None)"
    )
    there, left, ended = run.stdout.split()
    assert int(left) < 0.01 * int(there)
    assert ended == "True"
