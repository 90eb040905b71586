"""What the operator of a server lets visitors read: `WHITELAB_DATA`, sources and absolute folders with commas between.

Unset or empty it allows everything. What is not there and what is not offered are refused in the same words.
"""

import os
from contextlib import suppress
from pathlib import Path

from whitelab.base.installation import shipped
from whitelab.base.user_folders import expanded
from whitelab.datasets.pairs import DataError
from whitelab.datasets.sources import SOURCES, data_root
from whitelab.datasets.uploads import File, Upload


def is_offered(data: str | Path) -> bool:
    """Whether a source, or a path that is there and after `..` and links lies in an offered folder, may be read."""
    offered = _offered()
    return not offered or (str(data) in SOURCES and str(data) in offered) or _lies_in(data, offered)


def is_limited() -> bool:
    """Whether there is anything that visitors may not read."""
    return bool(_offered())


def check_offered(data: str | Path) -> None:
    """Raise DataError for what `is_offered` denies."""
    if not is_offered(data):
        raise _refused(data)


def check_link(file: File) -> None:
    """Raise DataError for a file of a folder that is a link out of everything that may be read."""
    offered = _offered()
    if offered and not isinstance(file, Upload) and not _lies_in(file, [*offered, shipped("data"), data_root()]):
        raise _refused(file)


def _refused(what: str | Path) -> DataError:
    return DataError(f"{what or '(empty path)'}: not among the data that this server offers (WHITELAB_DATA)")


def _offered() -> list[str]:
    return [one.strip() for one in os.environ.get("WHITELAB_DATA", "").split(",") if one.strip()]


def _lies_in(data: str | Path, folders) -> bool:
    with suppress(OSError, ValueError, RuntimeError):
        path = expanded(data).resolve(strict=True)
        return any(path.is_relative_to(Path(one).resolve()) for one in folders if Path(one).is_absolute())
    return False
