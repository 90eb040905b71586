"""The law of progress: long work says how far it is, and ends with what its callback raises."""

import pytest


def progressed(work):
    """What `work(progress)` reports, (done, total) after (done, total), once it was seen to end at what this raises."""

    def stop(done, total):
        raise InterruptedError("stopped")

    with pytest.raises(InterruptedError, match="stopped"):
        work(stop)
    seen = []
    work(lambda done, total: seen.append((done, total)))
    return seen
