"""Work in a process of its own, for what would keep the threads of this one from computing."""

import os
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, wait
from typing import TypeVar

Result = TypeVar("Result")

_PRIORITY = 5  # as `nice` counts: a third of what others get
_IDLE_SECONDS = 600
_LOOK_SECONDS = 0.1


def in_own_process(name: str, work: Callable[..., Result], *given, meanwhile: Callable[[], None] = bool) -> Result:
    """`work(*given)` from the process called `name`, which comes after others and ends when it has long been idle.

    It does one piece of work after another. `meanwhile()` is called until there is a result, and may raise to wait no
    longer. What `work` raises is raised here, and RuntimeError where the process ended, out of memory, say.
    """
    try:
        made = _executor(name).submit(work, *given)
        while not wait([made], _LOOK_SECONDS).done:
            meanwhile()
        return made.result()
    except BrokenExecutor:
        _executors.pop(name, None)
        raise RuntimeError(f"the process of {name} ended before it was done: is there enough memory?") from None


_executors: dict = {}  # by the name of what they serve


def _executor(name: str):
    if name in _executors:
        return _executors[name]
    # Workers of joblib's do not run the main script again, which inside a server is a page.
    from joblib.externals.loky import ProcessPoolExecutor

    # Without a process until it is given work, so that one of two made at once may be dropped.
    made = ProcessPoolExecutor(max_workers=1, timeout=_IDLE_SECONDS, initializer=os.nice, initargs=(_PRIORITY,))
    return _executors.setdefault(name, made)
