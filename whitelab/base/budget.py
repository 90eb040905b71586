"""How much memory the app may keep results in. Imports nothing heavy: the command line asks before the app starts."""

import math
import os

from whitelab.base.control_groups import memory_limits

VARIABLE = "WHITELAB_MEMORY_GIB"
SHARE = 4  # without a word of the operator's, one part in so many of the machine's memory
UNKNOWN = 4 * 2**30  # bytes of a machine that does not say


def budget() -> int:
    """Bytes: $WHITELAB_MEMORY_GIB, a quarter of the machine's memory where it is unset. Raises ValueError."""
    given = gib_in(VARIABLE)
    return total_memory() // SHARE if given is None else given


def gib_in(variable: str) -> int | None:
    """Bytes, of GiB in a variable of the environment; None where it is unset. Raises ValueError."""
    text = os.environ.get(variable, "").strip()
    if not text:
        return None
    try:
        gib = float(text)
    except ValueError:
        gib = math.nan
    if not (math.isfinite(gib) and gib >= 0):
        raise ValueError(f"{variable}={text!r} must be a number of GiB, 0 or more")
    return int(gib * 2**30)


def total_memory() -> int:
    """Bytes of memory that the machine has, or the container or service where that is less."""
    found = [limit.most for limit in memory_limits()]
    try:
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):  # no such thing on Windows, where the start may take a moment longer
        from whitelab.base.machine import available_memory

        found.append(available_memory() or UNKNOWN)
    return min(found)
