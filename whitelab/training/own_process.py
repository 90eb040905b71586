"""A run trained in a process of its own, so that whoever waits for it stays responsive and outlives its failures.

    with trained_apart(run) as process:
        while process.poll() is None:
            time.sleep(0.5)  # run.records() grows meanwhile

The process trains until the run's end, or until its standard input is closed: on leaving the block, and when the
process that opened it is gone. It then writes a checkpoint, so that the run can be resumed. It yields to other work
where the processor is short.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from whitelab.training.runs import Run, RunError

# How long a process that was asked to stop has to finish the step in hand and to write its checkpoint.
GRACE_SECONDS = 60.0
_PRIORITY = 5  # as `nice` counts: a third of what others get


@contextlib.contextmanager
def trained_apart(run: Run, grace: float = GRACE_SECONDS) -> Iterator[subprocess.Popen]:
    """A process that trains `run`, from its last checkpoint where there is one; on leaving, it is asked to stop.

    One that does not within `grace` seconds is killed, and goes on from its last checkpoint later; where evaluations
    take long there is one before each (`train`). Raises RunError where it ended without saying why in the run.
    """
    before = run.state()
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, str(run.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
            env=os.environ | {"PYTHONPATH": _path(), "PYTHONUNBUFFERED": "1"},
            # A Ctrl-C in the terminal is for the process that waits, which then closes the input.
            start_new_session=os.name == "posix",
            creationflags=getattr(subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0)
            | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
            | getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        try:
            yield process
        finally:
            _stop(process, grace)
        if process.returncode and run.state() == before:
            complaints.seek(0)
            lines = complaints.read().decode(errors="replace").split("\n")
            last = next((line for line in reversed(lines) if line.strip()), f"exit status {process.returncode}")
            raise RunError(f"run={run.name!r} could not be trained: {last.strip()}")


def _path() -> str:
    """PYTHONPATH with the folder this package was loaded from."""
    here = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))


def _stop(process: subprocess.Popen, grace: float) -> None:
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main(folder: str) -> int:
    """Train the run in `folder` until its end or the end of standard input; 1 where it failed."""
    if os.name == "posix":
        os.nice(_PRIORITY)
    leave = threading.Event()
    threading.Thread(target=_listen, args=(leave,), daemon=True).start()
    run = Run(Path(folder))
    try:
        with contextlib.closing(run.follow(resume=True)) as steps:
            for record in steps:
                if leave.is_set() and not record.stop and record.step < run.config.steps:
                    break
    except Exception as error:
        print(" ".join(str(error).split()) or type(error).__name__, file=sys.stderr)
        return 1
    return 0


def _listen(leave: threading.Event) -> None:
    os.read(0, 1)  # not through sys.stdin, whose lock a thread that waits would hold at the interpreter's end
    leave.set()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
