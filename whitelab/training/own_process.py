"""A run trained in a process of its own, so that whoever waits for it stays responsive and outlives its failures.

    with trained_apart(run) as process:
        while process.poll() is None:
            time.sleep(0.5)  # run.records() grows meanwhile

The process trains until the run's end, or until its standard input is closed: on leaving the block, and when the
process that opened it is gone. It then writes a checkpoint, so that the run can be resumed. It yields to other work
where the processor is short.
"""

import contextlib
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

from whitelab.base.own_process import GRACE_SECONDS, ProcessFailed, begun_apart, is_orphaned, serve_apart
from whitelab.training.runs import Abandoned, Run, RunError


@contextlib.contextmanager
def trained_apart(run: Run, grace: float = GRACE_SECONDS) -> Iterator[subprocess.Popen]:
    """A process that trains `run`, from its last checkpoint where there is one; on leaving, it is asked to stop.

    One that does not within `grace` seconds is killed, and goes on from its last checkpoint later; where evaluations
    take long there is one before each (`train`). Raises RunError where it ended without saying why in the run.
    """
    before = run.state()
    try:
        with begun_apart(__name__, str(run.folder), grace) as process:
            yield process
    except ProcessFailed as error:
        if run.state() == before:
            raise RunError(f"run={run.name!r} could not be trained: {error}") from None


def _trained(folder: str, stop: threading.Event) -> None:
    """Train the run in `folder` until its end or until asked to stop."""
    run = Run(Path(folder))
    with contextlib.closing(run.follow(resume=True)) as steps:
        for record in steps:
            if stop.is_set() and not record.stop and record.step < run.config.steps:
                if is_orphaned():
                    with contextlib.suppress(StopIteration):
                        steps.throw(Abandoned())
                break


if __name__ == "__main__":
    serve_apart(_trained)
