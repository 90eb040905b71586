"""UMAP, here or in a process of its own.

Its compiled steps hold the interpreter's lock, and whatever else computes in many small steps waits for it at each:
beside a UMAP a server's pages took three times as long, and a live number that is there in 0.03 s up to 7 s. The
process comes after others (`nice`), serves one UMAP after another, and ends when it has had nothing to do for a while.
"""

import os
import re
import tempfile
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, wait
from functools import cache
from pathlib import Path

import numpy as np

from whitelab.base.progress import Progress

_PRIORITY = 5  # as `nice` counts: a third of what others get
_IDLE_SECONDS = 600
_LOOK_SECONDS = 0.1
_REPORT = "report"  # the file that says how far it is


def coordinates(x: np.ndarray, dims: int, neighbors: int, seed: int, progress: Progress | None) -> np.ndarray:
    """UMAP of the rows of `x [n, d]`, `[n, dims]`; `progress` may raise to stop it."""
    import umap

    reducer = umap.UMAP(
        n_components=dims,
        n_neighbors=min(neighbors, len(x) - 1),
        metric="cosine",
        random_state=seed,
        n_jobs=1,
        init="spectral" if len(x) > 50 else "random",
        tqdm_kwds={"disable": progress is None, "file": _Ticker(progress), "bar_format": "{n}/{total}"},
    )
    return np.ascontiguousarray(reducer.fit_transform(x), dtype=np.float64)


def coordinates_apart(x: np.ndarray, dims: int, neighbors: int, seed: int, progress: Progress | None) -> np.ndarray:
    """The same from the process of its own. Raises RuntimeError where that ended, out of memory, say."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / _REPORT
        try:
            made = _executor().submit(_reported, x, dims, neighbors, seed, report)
            while not wait([made], _LOOK_SECONDS).done:
                if progress and report.exists():
                    progress(*map(int, report.read_text("utf-8").split("/")))
            return made.result()
        except BrokenExecutor:
            _executor.cache_clear()
            raise RuntimeError("the process of UMAP ended before it was done: is there enough memory?") from None


def _reported(x: np.ndarray, dims: int, neighbors: int, seed: int, report: Path) -> np.ndarray:
    """In the process: leave word of every step; where the folder for it is gone, nobody waits any more."""

    def leave_word(done: int, total: int) -> None:
        new = report.with_suffix(".new")
        new.write_text(f"{done}/{total}", "utf-8")
        new.replace(report)

    return coordinates(x, dims, neighbors, seed, leave_word)


@cache
def _executor():
    # Workers of joblib's do not run the main script again, which inside a server is a page.
    from joblib.externals.loky import ProcessPoolExecutor

    return ProcessPoolExecutor(max_workers=1, timeout=_IDLE_SECONDS, initializer=os.nice, initargs=(_PRIORITY,))


class _Ticker:
    """The file UMAP's progress bar writes to: passes the numbers on, and an exception back to UMAP."""

    def __init__(self, progress: Callable[[int, int], None] | None) -> None:
        self.progress = progress

    def write(self, text: str) -> None:
        numbers = re.search(r"(\d+)/(\d+)", text)
        if self.progress and numbers:
            self.progress(int(numbers[1]), int(numbers[2]))

    def flush(self) -> None:
        """Nothing is buffered."""
