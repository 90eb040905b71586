"""THE device policy: which there are, where statistics are computed, in how large parts, and with how many threads.

A space knows its device, that of its `values`. Maps, cosines, scores and sweeps are computed there, in float64, and
what they make is allocated there; a score, a curve and a figure leave it as plain numbers. On a CPU parts are as small
as its caches ask for. On a GPU every launch costs, so parts are as large as its free memory allows, and one thread
launches them.

Embeddings come home from the encoder, and are asked for on the GPU where there is enough to do: sweeps of commands
(`cli.spaces.for_sweeps`), scores and sweeps of pages (`ui.results.placed`). What memory does not hold there is computed
on the CPU, in smaller parts before where a sweep has parts. What is small stays on the CPU: resampling the pairs of a
score that is known, single scores of commands, lessons, verdicts. So do searches, probes, codes, tables of many models
and maps that are fitted to rows.
"""

import torch
from torch import Tensor

from whitelab.base.machine import available_memory, is_device_full, product_rate, within_memory
from whitelab.base.wording import quantity

DEVICES = ("cpu", "cuda", "mps")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
PART_BYTES = 2**30  # of a part on a GPU, where a quarter of what is free is not less
IN_ONE_LAUNCH = 3 * 10**9  # multiplications of float64 that a GPU is given at once


def available_devices() -> tuple[str, ...]:
    """The devices torch can use here, `cpu` always among them."""
    has = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    return tuple(name for name in DEVICES if has[name])


def choose_device() -> str:
    """`cuda` or `mps` when there is one, else `cpu`."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def device_name(device: str) -> str:
    """What to show: the GPU's name, or the number of processor threads."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    return "Apple GPU" if device == "mps" else f"CPU, {quantity(torch.get_num_threads(), 'thread')}"


def dtypes_for(device: str) -> tuple[str, ...]:
    """The compute types that make sense on `device`, the default (float32) first.

    What is emulated is not offered: float16 on a CPU, about a hundred times slower; bfloat16 on GPUs before Ampere.
    """
    if device == "cpu":
        return ("float32", "bfloat16")
    if device == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False):
        return ("float32", "bfloat16", "float16")
    return ("float32", "float16")


def at_once(device: torch.device, on_cpu: int, bytes_each: int) -> int:
    """How many rows of `bytes_each` bytes, tables beside them counted, to work on at once: `on_cpu` of them there."""
    if device.type == "cpu":
        return on_cpu
    free = available_memory(str(device))
    most = PART_BYTES if free is None else min(PART_BYTES, free // 4)
    return max(on_cpu, most // max(1, bytes_each))


def in_one_launch(device: torch.device, products: int) -> bool:
    """Whether so many multiplications (and additions) take a GPU no longer than launching them in parts.

    To halve a product is a dozen launches of 10 us, in which 50 TFLOP/s are three billion of them, and saves a quarter
    of them at best.
    """
    return device.type != "cpu" and products <= IN_ONE_LAUNCH


def threads_on(device: torch.device) -> int | None:
    """Threads to compute with side by side: None, as many as there are, on a CPU; one on a GPU."""
    return None if device.type == "cpu" else 1


def own_precision(device: str | torch.device) -> torch.autocast:
    """Arithmetic in the type of its numbers, as a context: autocast, which a caller may have on in this thread, would
    round what is float32 to three digits or fewer. It does not reach float64."""
    return torch.autocast(torch.device(device).type, enabled=False)


def for_statistics(device: str) -> str:
    """`device` where it multiplies float64 faster than the CPU (measured once a process), else `cpu`.

    Consumer GPUs do so at 1/64 of their float32 rate; MPS has no float64. One that is too full to be measured may be
    asked again.
    """
    if not device.startswith("cuda"):
        return "cpu"
    rate = within_memory(lambda: product_rate(device, torch.float64), is_device_full)
    return device if rate and rate > product_rate("cpu", torch.float64) else "cpu"


def is_on(x: Tensor, device: str | torch.device) -> bool:
    """Whether a tensor is on `device`; one without a number is any of its kind."""
    wanted = torch.device(device)
    return x.device == wanted or wanted.index is None and x.device.type == wanted.type


def to_host(x: Tensor) -> Tensor:
    """`x` on the CPU: from a CUDA device into pages that stay where they are, which torch keeps for the next.

    An H100 wrote 54 GB/s into a table of such pages that was there, and 1.3 into fresh pages of another kind, with the
    processors busy.
    """
    if x.device.type != "cuda":
        return x.cpu()
    found = x.to("cpu", non_blocking=True)
    torch.cuda.current_stream(x.device).synchronize()
    return found
