"""A folder that one process at a time writes: it holds `lock`, which the system gives back when that process is killed,
and says in `owner.json` who it is.
"""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from whitelab.store.aside import write_aside

_LOCK, _OWNER = "lock", "owner.json"

# Whoever looks takes the lock for a moment to see whether it is free; work that begins just then waits for it, and so,
# for as long as such a glance takes, does another who looks.
_LOCK_SECONDS = 2.0
_GLANCE_SECONDS = 0.02  # a page waits this long for every folder that is held; a glance takes far less


class HeldElsewhere(Exception):
    """Another process writes the folder; the message says which, in words."""


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold an existing folder. Raises HeldElsewhere, and OSError where nothing can be written."""
    lock = FileLock(folder / _LOCK, timeout=_LOCK_SECONDS, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        raise HeldElsewhere(owner(folder)) from None
    try:
        who = {"process": os.getpid(), "host": socket.gethostname(), "since": now()}
        write_aside(folder / _OWNER, json.dumps(who).encode())
        yield
    finally:
        (folder / _OWNER).unlink(missing_ok=True)
        lock.release()


def is_held(folder: Path) -> bool | None:
    """Whether somebody works there: the lock is taken, and its holder has said who it is.

    None where that cannot be told: the holder has left a name, in a folder in which we may only read.
    """
    if not (folder / _OWNER).is_file():
        return False
    free = is_free(folder)
    return None if free is None else not free


def is_free(folder: Path) -> bool | None:
    """Whether the lock could be had; None in a folder in which we may only read."""
    if not (folder / _LOCK).exists():
        return True
    lock = FileLock(folder / _LOCK, timeout=_GLANCE_SECONDS, thread_local=False)
    try:
        lock.acquire(poll_interval=_GLANCE_SECONDS / 10)
    except Timeout:
        return False
    except OSError:
        return None
    lock.release()
    return True


def owner(folder: Path) -> str:
    """Who holds it, in words; what a killed process left is no owner, which `is_held` tells."""
    try:
        who = json.loads((folder / _OWNER).read_bytes())
        return f"process {who['process']} on {who['host']} since {who['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def now() -> str:
    """The time in UTC, as ISO 8601 to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
