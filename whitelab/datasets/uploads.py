"""A file in memory, brought by a visitor, and what it may hold: the readers take it where they take a path."""

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from whitelab.base import upload_limits
from whitelab.datasets.pairs import DataError


@dataclass(frozen=True)
class Upload:
    """A file in memory, which the readers take where they take a path; within the limits of `base.upload_limits`.

    Not `bounded`: it was unpacked from a file of this machine, for which there are no limits on rows.
    """

    name: str
    data: bytes = field(repr=False)
    bounded: bool = True

    def __str__(self) -> str:
        return self.name

    @property
    def suffix(self) -> str:
        """What the name ends in, with the dot."""
        return Path(self.name).suffix

    @property
    def suffixes(self) -> list[str]:
        """All of its extensions, each with its dot."""
        return Path(self.name).suffixes

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return Path(self.name).stem

    def open(self, mode: str = "rb") -> io.BytesIO:
        """The bytes as a file."""
        return io.BytesIO(self.data)


File = Path | Upload


def check_row_count(path: File, rows: int) -> None:
    """Refuse an upload of too many rows."""
    if isinstance(path, Upload) and path.bounded and rows > upload_limits.ROWS:
        raise DataError(f"{path}: {rows} rows, at most {upload_limits.ROWS} are read from an upload")


def check_columns(path: File, columns: int) -> None:
    """Refuse an upload of too many columns."""
    if isinstance(path, Upload) and columns > upload_limits.COLUMNS:
        raise DataError(f"{path}: {columns} columns, at most {upload_limits.COLUMNS} are read from an upload")


@dataclass
class Budget:
    """What a file has unpacked to so far: an upload has bounds for all its arrays together, other files have none."""

    file: File
    taken: int = 0

    def take(self, where: str, size: int, shape: Sequence[int]) -> None:
        """Note `size` bytes that are about to be allocated; DataError where an upload then holds too many."""
        before, most = self.taken, 4 * upload_limits.NUMBERS
        self.taken += size
        if isinstance(self.file, Upload) and self.taken > most:
            others = f", {before >> 20} MB stand before it" if before >> 20 else ""
            raise DataError(
                f"{where}: {list(shape)} takes {size >> 20} MB unpacked{others}, at most {most >> 20} MB are read from "
                "an upload"
            )


def working_type(dtype: np.dtype, ndim: int) -> np.dtype:
    """The type in which an array of numbers is worked with, one of few and in the machine's byte order."""
    if dtype.kind == "f":
        return np.dtype(np.float32 if dtype.itemsize <= 4 else np.float64)
    if dtype.kind in "iu":
        return np.dtype(np.float32 if dtype.itemsize <= 2 and ndim > 1 else np.int64)
    return dtype
