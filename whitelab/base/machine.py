"""What this machine has: memory that is free, and how fast it multiplies matrices."""

import ctypes
import gc
import os
import platform
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import torch

from whitelab.base.control_groups import memory_limits
from whitelab.base.threads import single_threads
from whitelab.base.wording import quantity

# Rows, inner and outer size of the product that is timed: about a batch through one layer of a base model.
PRODUCT = (512, 768, 3072)
TIMED_SECONDS = 0.05
GIB = 2**30
COLLECTED_AFTER = 10_000, 20, 20  # objects, young collections, older ones
REUSED = 2**28  # bytes of freed memory that stay with a process that asks for it
Result = TypeVar("Result")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, of the system or of a device.

    For the system's memory torch has no class of its own: "can't allocate memory", on Windows "not enough memory".
    An illegal memory access is another fault.
    """
    if isinstance(error, MemoryError) or is_device_full(error):
        return True
    return _says(error, "allocate memory", "not enough memory")


def is_device_full(error: BaseException) -> bool:
    """Whether an error says that the memory of a device ran out, not the system's."""
    return isinstance(error, torch.OutOfMemoryError) or _says(error, "out of memory", "alloc_failed")


def _says(error: BaseException, *words: str) -> bool:
    said = "" if isinstance(error, MemoryError | ValueError) else str(error).lower()  # a wrong value is no machine's
    return any(one in said for one in words)


def within_memory(
    work: Callable[[], Result], ran_out: Callable[[BaseException], bool] = is_out_of_memory
) -> Result | None:
    """`work()`, or None where memory `ran_out`: by then the error is gone, whose traceback held what was taken."""
    try:
        return work()
    except (MemoryError, RuntimeError) as error:
        if not ran_out(error):
            raise
    return None


def give_back_memory() -> None:
    """Give pages that nothing uses back to the system, where the C library is asked for it (glibc).

    Batches of many sizes leave gaps between what lives on, of which a process would keep several hundred megabytes.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def keep_freed_memory() -> None:
    """Keep what is freed for the next table, up to `REUSED` bytes of it, where the C library is asked for it (glibc).

    Tables of some megabytes would go back to the system at once, and fresh pages cost up to three times what is
    computed in them. From arenas of threads' own those above 64 MB go back all the same, so that a server is begun with
    one for all (`MALLOC_ARENA_MAX`, which is read when a process begins).
    """
    trim_threshold, mmap_threshold = -1, -3  # of malloc.h
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL("libc.so.6")
        library.mallopt(trim_threshold, REUSED)
        if not library.mallopt(mmap_threshold, REUSED):
            library.mallopt(mmap_threshold, 2**25)  # an older glibc takes no more


def collect_rarely() -> None:
    """Let Python's collector pass over what is there now, modules above all, and come less often for what is new.

    No thread of the process goes on meanwhile: with fifty visitors on two cores a full pass took 0.45 s, now 0.08.
    """
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()
        gc.set_threshold(*COLLECTED_AFTER)


def available_memory(device: str = "cpu") -> int | None:
    """Bytes that are free on `device`; None where the system does not say.

    On Linux what the kernel calls available, or less where a container or a service has a limit; elsewhere what is
    physically there. On a GPU (`cuda`, `cuda:1`) blocks that torch keeps for its next tensors count as free.
    """
    if device.startswith("cuda"):
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + kept
    free = _meminfo()
    found = [one.left for one in memory_limits()] + ([] if free is None else [free])
    return min(found) if found else _physical()


def _meminfo(path: Path = Path("/proc/meminfo")) -> int | None:
    try:
        lines = dict(line.split(":", 1) for line in path.read_text("utf-8").splitlines() if ":" in line)
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError, IndexError):
        return None


def _physical() -> int | None:
    if sys.platform == "win32":
        return _windows()
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _windows() -> int | None:
    class Status(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ulong), ("load", ctypes.c_ulong)] + [
            (name, ctypes.c_ulonglong) for name in ("total", "free", "a", "b", "c", "d", "e")
        ]

    status = Status(length=ctypes.sizeof(Status))
    done = ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))
    return int(status.free) if done else None


@lru_cache(maxsize=16)
def product_rate(device: str = "cpu", dtype: torch.dtype = torch.float32) -> float:
    """Multiply-adds a second of matrix products on `device`, all threads together; measured once a process.

    On a CPU each thread multiplies alone, as it does while sentences are encoded, and its own time is what counts: a
    moment in which others take the cores would stay in every estimate.
    """
    if device != "cpu":
        return _rate(device, dtype)
    with single_threads(1) as pool:
        return torch.get_num_threads() * pool.submit(_rate, device, dtype).result()


def _rate(device: str, dtype: torch.dtype) -> float:
    rows, inner, outer = PRODUCT
    a = torch.ones(rows, inner, device=device, dtype=dtype)
    b = torch.ones(inner, outer, device=device, dtype=dtype)
    clock = time.thread_time if device == "cpu" else time.perf_counter
    a @ b  # the first product finds nothing in place
    _wait(device)
    done, start = 0, clock()
    while (taken := clock() - start) < TIMED_SECONDS:
        a @ b
        _wait(device)
        done += 1
    return done * rows * inner * outer / taken


def _wait(device: str) -> None:
    if device != "cpu":
        getattr(torch, device.partition(":")[0]).synchronize()


def processor(threads: int) -> str:
    """`processor_name`, and its cores in use."""
    return f"{processor_name()}, {quantity(threads, 'thread')} of {os.cpu_count() or 1} cores"


def processor_name() -> str:
    """The processor as its maker names it, its architecture where the system does not tell."""
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "unknown processor"
