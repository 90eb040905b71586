"""The queue of long jobs and its worker threads. Knows no Streamlit, so it can be tested without a browser."""

import contextlib
import inspect
import itertools
import logging
import math
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Mapping
from typing import Any

from whitelab.base.machine import give_back_memory
from whitelab.base.progress import Progress
from whitelab.base.wording import counted, duration, first_line
from whitelab.datasets import DataError
from whitelab.encoding.names import ModelError
from whitelab.ui.results.memory import Memory
from whitelab.ui.results.sizes import size_of

Work = Callable[[Progress], Any]  # a plain function, or a generator whose last value is the result
Slot = tuple[str, str]  # a visitor, and a place on a page that shows one job at a time

WATCH_SECONDS = 8.0  # a visitor whose panel looked this recently still waits for the result
SMOOTHING_SECONDS = 4.0  # time constant of the rate behind "about 14 s left"
_STEP_KEPT = 0.5  # of what is known at a step, at least: the next may be as quick again as this one was slow
SAMPLE_SECONDS = 0.25  # reports closer together than this make one sample of the rate
FINISHED_KEPT = 1000  # finished jobs; nearly all results are small, and pages ask for them at every rerun
KIND = "job"
REFUSED = (DataError, ModelError)  # what a visitor asked for cannot be had: said on the page, no fault to look for
LONG_SECONDS = 1.0  # a job that has run for so long no longer holds up the next
IDLE_SECONDS = 5.0  # after which a worker gives back what its jobs have freed
WORKERS = 3  # jobs under way at once, all but the last of them long ones
LEFT_KEPT = 50  # jobs in the queue for which nobody waits; they hold what they were asked of, the oldest go first
SLOTS_KEPT = 1000  # visitors leave without a word; the slots claimed longest ago go first

_log = logging.getLogger(__name__)
_numbers = itertools.count(1)


class JobCancelled(Exception):
    """Raised inside the work, by its progress callback, once cancel was asked."""


class Unasked(JobCancelled):
    """Raised by work that wants a visitor's consent first: it says what it will cost."""


class Job:
    """One piece of long work: its state, how far it is, and in the end its result or error.

    `state` is "queued", "running", "done", "failed" or "cancelled"; the last three are final. `partial` is the
    latest value that work written as a generator has yielded; it stays where the work fails or is cancelled.
    `seconds_left` follows a smoothed rate of the reported progress and is None until that is known.
    """

    def __init__(self, key: str, title: str, work: Work, unit: str, clock: Callable[[], float]) -> None:
        self.key, self.title, self.unit = key, title, unit
        self.number = next(_numbers)  # tells two jobs of the same key apart
        self.state = "queued"
        self.done = self.total = 0
        self.seconds_left: float | None = None
        self.partial: Any = None
        self.result: Any = None
        self.error: BaseException | None = None
        self.shown = False  # whether any visitor was shown how it failed or was cancelled
        self._submitted = clock()
        self.started: float | None = None
        self._work: Work | None = work
        self._clock = clock
        self._lock = threading.Lock()
        self._finished = threading.Event()
        self._cancel_asked = False
        self._sample: tuple[float, int] | None = None  # time and count of the last sample of the rate
        self._lately = (0.0, 0.0)  # units, and the seconds they took, the older the less they weigh
        self._watchers: dict[str, float] = {}

    @property
    def finished(self) -> bool:
        return self._finished.is_set()

    @property
    def cancelling(self) -> bool:
        return self._cancel_asked and not self.finished

    @property
    def age(self) -> float:
        """Seconds since it was submitted."""
        return self._clock() - self._submitted

    @property
    def message(self) -> str:
        """One line for the reader: where the job stands, or why it ended."""
        if self.state == "failed":
            return describe(self.error)
        if self.state != "running":
            return {"queued": "waiting to start"}.get(self.state, self.state)
        if self._cancel_asked:
            return "cancelling, after the step in hand"
        if not self.total:
            return "starting"
        so_far = counted(self.done, self.total, self.unit)
        return so_far if self.seconds_left is None else f"{so_far}, {time_left(self.seconds_left)}"

    def join(self, seconds: float) -> bool:
        """Wait at most so long for the end; whether it has come."""
        return self._finished.wait(max(seconds, 0.0))

    def cancel(self) -> None:
        """Ask the work to stop: at once while queued, at its next progress report while running."""
        with self._lock:
            self._cancel_asked = True
            if self.state == "queued":
                self._end("cancelled")

    def watch(self, who: str) -> None:
        """Note that this visitor waits for the result now."""
        with self._lock:
            self._watchers[who] = self._clock()

    def awaited(self, turned: Mapping[str, float] | None = None) -> bool:
        """Whether anyone has looked lately, and since the moment that `turned` has for who looked."""
        recent, turned = self._clock() - WATCH_SECONDS, turned or {}
        with self._lock:
            return any(seen >= max(recent, turned.get(who, recent)) for who, seen in self._watchers.items())

    def leave(self, who: str) -> bool:
        """Cancel on behalf of one visitor; False if it goes on because someone else waits for it."""
        with self._lock:
            self._watchers.pop(who, None)
        if self.awaited():
            return False
        self.cancel()
        return True

    def progress(self, done: int, total: int) -> None:
        """The callback given to the work: `done` of `total`. Raises JobCancelled once cancel was asked."""
        if self._cancel_asked:
            raise JobCancelled(f"{self.title} was cancelled")
        with self._lock:
            now = self._clock()
            if self._sample is None or total != self.total or done < self.done:
                # The first report may count what was already there, and a new total is a new stage.
                self._sample, self._lately = (now, done), (0.0, 0.0)
            elif now - self._sample[0] >= SAMPLE_SECONDS and done > self._sample[1]:
                seconds, units = now - self._sample[0], done - self._sample[1]
                weight = max(math.exp(-seconds / SMOOTHING_SECONDS), _STEP_KEPT)
                self._lately = weight * self._lately[0] + units, weight * self._lately[1] + seconds
                self._sample = (now, done)
            self.done, self.total = done, total
            units, seconds = self._lately
            self.seconds_left = max(total - done, 0) * seconds / units if units else None

    def run(self) -> None:
        """Do the work in the calling thread; never raises."""
        with self._lock:
            if self.state != "queued":
                return
            self.state, self.started = "running", self._clock()
        try:
            result = self._work(self.progress)
            if inspect.isgenerator(result):
                result = self._last(result)
        except JobCancelled as error:
            with self._lock:
                self.error = without_frames(error) if isinstance(error, Unasked) else None
                self._end("cancelled")
        except BaseException as error:
            # As text: a log handler that keeps the exception would keep the frames and their arrays.
            if isinstance(error, REFUSED):
                _log.warning("%s failed: %s", self.title, first_line(error))
            else:
                _log.error("%s failed\n%s", self.title, traceback.format_exc())
            with self._lock:
                self.error = without_frames(error)
                self._end("failed")
        else:
            with self._lock:
                self.result = result
                self._end("done")

    def _last(self, values: Generator) -> Any:
        """The last of the values, each shown as `partial` when it comes."""
        with contextlib.closing(values):
            for value in values:
                self.partial = value
                if self._cancel_asked:
                    raise JobCancelled(f"{self.title} was cancelled")
        return self.partial

    def _end(self, state: str) -> None:
        self._work = None  # its closure may hold large arrays
        self.seconds_left = None
        self.state = state
        self._finished.set()


class Jobs:
    """A queue whose jobs run one after another, but for long ones, beside which the next begins.

    A job that nobody waits for any more lets those go first that somebody waits for, see `turn`.
    At most `workers` are under way at once and `kept` finished ones stay; the least recently used go first. Their
    results take part of a `memory`, where there is one, and those it has no room for go earlier.
    """

    def __init__(
        self,
        kept: int = FINISHED_KEPT,
        clock: Callable[[], float] = time.monotonic,
        workers: int = WORKERS,
        memory: Memory | None = None,
    ) -> None:
        self._kept, self._clock, self._most, self._memory = kept, clock, workers, memory
        self._jobs: dict[str, Job] = {}  # in order of use
        self._slots: dict[Slot, str] = {}  # the key each slot shows
        self._turned: dict[str, float] = {}  # when each visitor's page was last begun anew
        self._lock = threading.Lock()
        self._queue: deque[Job] = deque()
        self._running: list[Job] = []
        self._workers = 0
        self._turn = threading.Condition(self._lock)

    def submit(self, key: str, title: str, work: Work, unit: str = "") -> Job:
        """The job of this key, started if there is none.

        A failed or cancelled job also keeps its key until `forget`: a page submits on every run, and the
        rerun that shows the error must not start the work again.
        """
        with self._lock:
            job = self._touch(key)
            if job is None:
                job = self._jobs[key] = Job(key, title, work, unit, self._clock)
                self._prune()
                self._queue.append(job)
                self._drop_left()
                if self._workers < min(self._most, len(self._running) + len(self._queue)):
                    self._workers += 1
                    threading.Thread(target=self._serve, name="whitelab-jobs", daemon=True).start()
                self._turn.notify_all()
            return job

    def claim(self, slot: Slot, key: str, drop: bool = False) -> None:
        """Let a visitor's slot show the job `key`, submitted next; the open job it showed before makes way.

        That one is cancelled and forgotten, so that it can be asked for anew, unless another visitor waits for
        it. Claiming the same key again changes nothing. With `drop` a finished one is forgotten too, unless another
        slot shows it: for results that are large and of no use to anyone else.
        """
        with self._lock:
            before = self._slots.pop(slot, None)
            self._slots[slot] = key
            if len(self._slots) > SLOTS_KEPT:
                del self._slots[next(iter(self._slots))]
            if before == key:
                return
            wanted = {held for (who, _), held in self._slots.items() if who == slot[0]}
            old = self._jobs.get(before) if before not in wanted else None
            if old is None:
                return
            if (drop and before not in self._slots.values()) if old.finished else old.leave(slot[0]):
                self._forgotten(before)

    def turn(self, who: str) -> None:
        """A visitor's page is drawn anew: what it waited for before counts only once it is watched again."""
        with self._lock:
            self._turned.pop(who, None)
            self._turned[who] = self._clock()
            if len(self._turned) > SLOTS_KEPT:
                del self._turned[next(iter(self._turned))]

    def get(self, key: str) -> Job | None:
        with self._lock:
            return self._touch(key)

    @property
    def waiting(self) -> int:
        """Jobs that have not begun and that somebody waits for."""
        with self._lock:
            return sum(job.awaited(self._turned) for job in self._queue)

    def active(self) -> list[Job]:
        """Queued and running jobs, in the order in which they run."""
        with self._lock:
            open_jobs = sorted((job for job in self._jobs.values() if not job.finished), key=lambda job: job.number)
            return sorted(open_jobs, key=self._behind)

    def before(self, job: Job) -> str:
        """The titles of the jobs that run before this one; empty where it is the next."""
        return ", ".join(other.title for other in itertools.takewhile(lambda other: other is not job, self.active()))

    def is_open(self, key: str) -> bool:
        """Whether there is a job of this key and it waits or runs."""
        return is_open(self.get(key))

    def _behind(self, job: Job) -> bool:
        """Whether a job lets others go first: nobody waits for it any more."""
        return job.state == "queued" and not job.awaited(self._turned)

    def forget(self, key: str) -> None:
        """Drop the job of this key, cancelling it if it is open, so that the key can be submitted anew."""
        with self._lock:
            job = self._forgotten(key)
        if job is not None and not job.finished:
            job.cancel()

    def forget_finished(self, key: str) -> None:
        """Drop the job of this key where it has ended, so that the key can be submitted anew."""
        with self._lock:
            if key in self._jobs and self._jobs[key].finished:
                self._forgotten(key)

    def _forgotten(self, key: str) -> Job | None:
        if self._memory is not None:
            self._memory.remove((KIND, key))
        return self._jobs.pop(key, None)

    def _keep(self, job: Job) -> None:
        """Let the memory decide how long a result stays. Not to be called under the lock, which `drop` takes."""

        def drop() -> None:
            with self._lock:
                if self._jobs.get(job.key) is job:
                    del self._jobs[job.key]

        if self._memory is not None and job.state == "done" and self._jobs.get(job.key) is job:
            self._memory.put((KIND, job.key), job, size=size_of(job.result), drop=drop)

    def _touch(self, key: str) -> Job | None:
        job = self._jobs.pop(key, None)
        if job is not None:
            self._jobs[key] = job
            if self._memory is not None:
                self._memory.touch((KIND, key))
        return job

    def _prune(self) -> None:
        if len(self._jobs) <= self._kept:
            return
        finished = [key for key, job in self._jobs.items() if job.finished]
        for key in finished[: max(len(finished) - self._kept, 0)]:
            self._forgotten(key)

    def _drop_left(self) -> None:
        left = [job for job in self._queue if self._behind(job)]
        for job in left[: max(len(left) - LEFT_KEPT, 0)]:
            self._forgotten(job.key)
            job.cancel()

    def _serve(self) -> None:
        worked = False
        while True:  # no name for the job here: an idle worker must not keep its result alive
            worked = self._serve_one(IDLE_SECONDS if worked else None)
            if not worked:
                give_back_memory()

    def _serve_one(self, patience: float | None) -> bool:
        """Do the next job; False where none has come within `patience` seconds."""
        with self._turn:
            while not self._queue or (pause := self._until_all_are_long()) > 0:
                if not self._turn.wait(pause if self._queue else patience) and not self._queue:
                    return False
            job = min(self._queue, key=self._behind)
            self._queue.remove(job)
            self._running.append(job)
        job.run()
        self._keep(job)
        with self._turn:
            self._running.remove(job)
            self._prune()
            self._turn.notify_all()
        return True

    def _until_all_are_long(self) -> float:
        """Seconds until every job under way has run long enough for another to begin beside it."""
        begun = [self._clock() if job.started is None else job.started for job in self._running]
        return max((LONG_SECONDS - (self._clock() - start) for start in begun), default=0.0)


def is_open(job: Job | None) -> bool:
    """Whether there is a job and it waits or runs."""
    return job is not None and not job.finished


def describe(error: BaseException | None) -> str:
    """An error as one sentence for the screen: its first line, or its kind where it has no text."""
    if isinstance(error, MemoryError):
        return "there was not enough memory."
    return first_line(error)


def without_frames(error: BaseException) -> BaseException:
    """The error without its tracebacks, whose frames would keep the work's arrays alive."""
    link: BaseException | None = error
    while link is not None:
        link.__traceback__ = None
        link = link.__cause__ or link.__context__
    return error


def time_left(seconds: float) -> str:
    """About how long it takes yet, never too little by rounding a second."""
    return f"about {duration(math.ceil(seconds))} left"
