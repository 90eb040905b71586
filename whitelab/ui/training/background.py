"""Training runs and their turns in the queue of long work: what lies on disk, and the job that waits for it."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from whitelab.base.lazy import cached_property
from whitelab.training import StepRecord
from whitelab.training.own_process import trained_apart
from whitelab.training.runs import NOT_STARTED, RUNNING, WAITING, Run, RunError, Summary, runs
from whitelab.ui.results import long_runs
from whitelab.ui.results.study import remembered
from whitelab.ui.results.worker import Job, is_open

ENDING = "ending"  # that of one whose end is on record, while its process clears up
PROBLEM = "training-problem"  # session_state: why what this visitor clicked could not be done


def job_of(run: Run) -> Job | None:
    """The job that trains, or has trained, this run since the app was started."""
    return long_runs.queue().get(str(run.folder))


def submit(run: Run) -> None:
    """Let a run wait for its turn; one that is open already keeps its place."""
    long_runs.take_turn(str(run.folder), run.name, lambda: trained_apart(run))


def submit_all(waiting: Iterable[Run]) -> None:
    """Let runs wait for their turns in this order, as many as there is room for."""
    for run in waiting:
        submit(run)


def cancel(run: Run) -> None:
    """Stop a run after the step in hand, or take it out of the queue."""
    if (job := job_of(run)) is not None:
        job.cancel()


@dataclass(frozen=True, eq=False)
class Entry:
    """A run as it is now: what lies on disk, and the job that waits for it.

    `ended` is when it ended (`Run.ended_at`), None while it has not.
    """

    run: Run
    summary: Summary
    job: Job | None
    ended: int | None

    @property
    def name(self) -> str:
        """The run's name."""
        return self.summary.name

    @cached_property
    def records(self) -> tuple[StepRecord, ...]:
        """Its steps, read for those that are drawn only."""
        return self.run.records() if self.ended is None else _records(str(self.run.folder), self.ended)

    @cached_property
    def pairs_fingerprint(self) -> str:
        """That of the pairs it is scored on; empty without pairs."""
        return _pairs_fingerprint(str(self.run.folder), self.summary.created)

    @property
    def begun(self) -> bool:
        """Whether there is a step on record, the start among them."""
        return self.summary.step > 0 or self.summary.start is not None

    @property
    def unscored(self) -> bool:
        """Whether it is trained without pairs to be scored on, as its start on record shows."""
        return bool(self.records) and self.records[0].uniformity is None

    @property
    def open(self) -> bool:
        """Whether it is trained now or waits for its turn, here or in another process."""
        return self.summary.state == RUNNING or is_open(self.job)

    @property
    def state(self) -> str:
        """The run's state, as far as its turn in the queue does not say more."""
        if not is_open(self.job):
            return NOT_STARTED if self.summary.state == WAITING else self.summary.state
        if turn := long_runs.turn(self.job):
            return turn
        if self.summary.state == RUNNING and self.begun:
            return RUNNING
        over = self.summary.state not in (RUNNING, WAITING) and not self.summary.resumable
        return ENDING if over else "starting"

    @property
    def message(self) -> str:
        """Why it ended before its last step, if it did."""
        if not self.summary.message and self.job is not None and self.job.state == "failed":
            return self.job.message
        return self.summary.message


def entries() -> list[Entry]:
    """All runs on disk, the newest first."""
    found = []
    for run in runs():
        with suppress(RunError, OSError):  # removed by another visitor while this list is made
            stamp = run.ended_at
            summary = run.summary() if stamp is None else _summary(str(run.folder), stamp)
            found.append(Entry(run, summary, job_of(run), stamp))
    return found


@remembered()
def _summary(folder: str, stamp: int) -> Summary:
    """An ended run in one line, read once for all visitors."""
    return Run(Path(folder)).summary()


@remembered()
def _pairs_fingerprint(folder: str, created: str) -> str:
    """That of a run's pairs, read once for all visitors; `created` tells runs apart that had the folder in turn."""
    return Run(Path(folder)).pairs_fingerprint


@remembered()
def _records(folder: str, stamp: int) -> tuple[StepRecord, ...]:
    """The steps of an ended run, read once for all visitors."""
    return Run(Path(folder)).records()
