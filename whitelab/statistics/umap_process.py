"""UMAP, here or in a process of its own.

Its compiled steps hold the interpreter's lock, and whatever else computes in many small steps waits for it at each:
beside a UMAP a server's pages took three times as long, and a live number that is there in 0.03 s up to 7 s.
"""

import re
import tempfile
import warnings
from pathlib import Path

import numpy as np

from whitelab.base.own_process import in_own_process
from whitelab.base.progress import Progress, silent

# Of every row: which rows are nearest, itself first, and their distances, each [n, t].
Neighbours = tuple[np.ndarray, np.ndarray]

_REPORT = "report"  # the file that says how far it is


def coordinates(x: np.ndarray, neighbours: Neighbours, dims: int, seed: int, progress: Progress) -> np.ndarray:
    """UMAP of the rows of `x [n, d]`, `[n, dims]`, from its `neighbours`; `progress` may raise to stop it."""
    import umap
    from tqdm import tqdm

    ticker = _Ticker(progress)
    reducer = umap.UMAP(
        n_components=dims,
        n_neighbors=neighbours[0].shape[1],
        metric="cosine",
        precomputed_knn=neighbours,
        random_state=seed,
        n_jobs=1,
        init="spectral" if len(x) > 50 else "random",
        tqdm_kwds={"disable": progress is silent, "file": ticker, "bar_format": "{n}/{total}"},
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "precomputed_knn")  # that no further rows can be placed, which nobody asks
        try:
            return np.ascontiguousarray(reducer.fit_transform(x), dtype=np.float64)
        finally:
            if ticker.stopped:  # in the midst of tqdm's writing, which then keeps the lock of all its bars
                tqdm.get_lock().release()


def coordinates_apart(x: np.ndarray, neighbours: Neighbours, dims: int, seed: int, progress: Progress) -> np.ndarray:
    """The same from a process of its own. Raises RuntimeError where that ended, out of memory, say."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / _REPORT

        def look() -> None:
            if report.exists():
                progress(*map(int, report.read_text("utf-8").split("/")))

        return in_own_process("UMAP", _reported, x, neighbours, dims, seed, report, meanwhile=look)


def _reported(x: np.ndarray, neighbours: Neighbours, dims: int, seed: int, report: Path) -> np.ndarray:
    """In the process: leave word of every step; where the folder for it is gone, nobody waits any more."""

    def leave_word(done: int, total: int) -> None:
        new = report.with_suffix(".new")
        new.write_text(f"{done}/{total}", "utf-8")
        new.replace(report)

    return coordinates(x, neighbours, dims, seed, leave_word)


class _Ticker:
    """The file UMAP's progress bar writes to: passes the numbers on, and an exception back to UMAP."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.stopped = False

    def write(self, text: str) -> None:
        numbers = re.search(r"(\d+)/(\d+)", text)
        if numbers and not self.stopped:
            try:
                self.progress(int(numbers[1]), int(numbers[2]))
            except BaseException:
                self.stopped = True
                raise

    def flush(self) -> None:
        """Nothing is buffered."""
