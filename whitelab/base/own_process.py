"""Work in a process of its own, for what would keep the threads of this one from computing.

Short work goes to a process that stays and waits for the next (`in_own_process`); work of minutes and hours has a
process for itself, which stops when it is asked to and when whoever began it is gone (`begun_apart`).
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, wait
from pathlib import Path
from typing import TypeVar

from whitelab.base.wording import first_line

Result = TypeVar("Result")

GRACE_SECONDS = 60.0  # what a process that was asked to stop has to finish the step in hand and to keep it
_PRIORITY = 5  # as `nice` counts: a third of what others get
_IDLE_SECONDS = 600
_LOOK_SECONDS = 0.1
_PARENT = os.getppid()  # of this process, as it was begun


class ProcessFailed(RuntimeError):
    """A process that `begun_apart` made ended with an error; the message is the last line of its complaints."""


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
    made = ProcessPoolExecutor(max_workers=1, timeout=_IDLE_SECONDS, initializer=_yield_to_others)
    return _executors.setdefault(name, made)


@contextlib.contextmanager
def begun_apart(module: str, asked: str, grace: float = GRACE_SECONDS) -> Iterator[subprocess.Popen]:
    """A process that runs `module` with one argument, as `python -m` does; on leaving, it is asked to stop.

    That is the end of its standard input, which `asked_to_stop` looks for; one that has not ended after `grace` seconds
    is killed. Raises ProcessFailed where it failed by itself.
    """
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, asked],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
            env=os.environ | {"PYTHONPATH": python_path(), "PYTHONUNBUFFERED": "1"},
            # A Ctrl-C in the terminal is for the process that waits, which then closes the input.
            start_new_session=os.name == "posix",
            creationflags=getattr(subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0)
            | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
            | getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        try:
            yield process
        finally:
            killed = _stop(process, grace)
        if process.returncode and not killed:
            complaints.seek(0)
            lines = complaints.read().decode(errors="replace").split("\n")
            last = next((line for line in reversed(lines) if line.strip()), f"exit status {process.returncode}")
            raise ProcessFailed(last.strip())


def asked_to_stop() -> threading.Event:
    """In a process that `begun_apart` made: set once whoever began it has asked it to stop, or is gone."""
    _yield_to_others()
    stop = threading.Event()

    def listen() -> None:
        os.read(0, 1)  # not through sys.stdin, whose lock a thread that waits would hold at the interpreter's end
        stop.set()

    threading.Thread(target=listen, daemon=True).start()
    return stop


def is_orphaned() -> bool:
    """Whether whoever began this process is gone, as far as the system tells (Windows does not)."""
    return os.getppid() != _PARENT


def serve_apart(work: Callable[[str, threading.Event], None]) -> None:
    """In a module that `begun_apart` runs: `work(asked, stop)`, and one line of complaint where that fails."""
    stop = asked_to_stop()
    try:
        work(sys.argv[1], stop)
    except Exception as error:
        sys.exit(first_line(error))


def python_path() -> str:
    """PYTHONPATH for a child that is to find this package: first the folder that it was loaded from."""
    here = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))


def _yield_to_others() -> None:
    if os.name == "posix":
        os.nice(_PRIORITY)


def _stop(process: subprocess.Popen, grace: float) -> bool:
    """End it; whether it had to be killed."""
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(grace)
        return False
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True
