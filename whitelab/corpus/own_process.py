"""A corpus embedded in a process of its own, which stops when whoever began it is gone; what is done stays done."""

import json
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from subprocess import Popen

from whitelab.base.own_process import asked_to_stop, begun_apart
from whitelab.base.wording import first_line
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


def main(asked: str) -> int:
    """Embed until the end or until asked to stop; 1 where it failed."""
    stop = asked_to_stop()

    def progress(done: int, total: int) -> None:
        if stop.is_set():
            raise _Stopped

    try:
        embed_corpus(**json.loads(asked), progress=progress)
    except _Stopped:
        return 0
    except Exception as error:
        print(first_line(error), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
