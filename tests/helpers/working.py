"""Work for a queue of jobs that goes on, yields or fails when a test says so."""

import threading
import time

PATIENCE = 10.0  # seconds after which a thread that should have ended counts as stuck


class Held:
    """Work that reports 3 of 10 and then stays until released, checking for cancel as it waits."""

    def __init__(self, result="result"):
        self.result, self.started, self.release, self.calls = result, threading.Event(), threading.Event(), 0

    def __call__(self, progress):
        self.calls += 1
        progress(3, 10)
        self.started.set()
        while not self.release.wait(0.01):
            progress(3, 10)
        return self.result

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.release.set()  # lets the worker go even where the test failed


class Steps:
    """Work that yields 1, 2, ... as it is let go on, `n` times."""

    def __init__(self, n=3):
        self.n, self.step, self.calls, self.closed = n, threading.Semaphore(0), 0, False

    def __call__(self, progress):
        self.calls += 1
        try:
            for i in range(1, self.n + 1):
                while not self.step.acquire(timeout=0.01):
                    progress(i - 1, self.n)
                yield i
        finally:
            self.closed = True

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for _ in range(self.n):
            self.step.release()


def failing(progress):
    raise ValueError("k=900 must lie between 1 and d=384\nsecond line")


def reach(job, value):
    deadline = time.monotonic() + PATIENCE
    while job.partial != value and time.monotonic() < deadline:
        time.sleep(0.005)
    assert job.partial == value
