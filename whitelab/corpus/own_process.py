"""A corpus embedded in a process of its own, which stops when whoever began it is gone; what is done stays done."""

import contextlib
import json
import threading
from contextlib import AbstractContextManager
from pathlib import Path
from subprocess import Popen

from whitelab.base.own_process import begun_apart, serve_apart
from whitelab.corpus.embedding import embed_corpus

GRACE_SECONDS = 5.0  # a kill loses no more than the chunks in hand


def embedded_apart(source: str, folder: str | Path, **asked) -> AbstractContextManager[Popen]:
    """A process that does `embed_corpus` with these arguments; on leaving, it is asked to stop, then killed.

    How far it is stands in the folder (`status`). Raises ProcessFailed with the reason where it failed.
    """
    words = json.dumps(asked | {"source": source, "folder": str(folder)})
    return begun_apart(__name__, words, GRACE_SECONDS)


class _Stopped(Exception):
    pass


def _embedded(asked: str, stop: threading.Event) -> None:
    """Embed until the end or until asked to stop."""

    def progress(done: int, total: int) -> None:
        if stop.is_set():
            raise _Stopped

    with contextlib.suppress(_Stopped):
        embed_corpus(**json.loads(asked), progress=progress)


if __name__ == "__main__":
    serve_apart(_embedded)
