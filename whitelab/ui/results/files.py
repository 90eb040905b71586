"""Files on this machine, as caches know them."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def file_stamp(files: Iterable[str | Path]) -> float:
    """When the youngest of the files that are there was changed; 0 where there are none."""
    times = [0.0]
    for file in files:
        with suppress(FileNotFoundError):  # gone since it was listed, which whoever reads it says
            times.append(Path(file).stat().st_mtime)
    return max(times)
