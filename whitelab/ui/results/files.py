"""Files on this machine, as caches know them."""

from collections.abc import Iterable
from pathlib import Path


def file_stamp(files: Iterable[str | Path]) -> float:
    """When the youngest of the files was changed; 0 where there are none."""
    return max((Path(file).stat().st_mtime for file in files), default=0.0)
