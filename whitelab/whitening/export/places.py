"""Where an export may be written: under its own name it is whole or absent.

It is written aside and renamed. What an earlier export left there is replaced; what somebody else put there is not.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from whitelab.base.user_folders import expanded
from whitelab.base.wording import first_line


class ExportError(ValueError):
    """A map that cannot be written in this form or to this place; the message says why and what to do."""


def check_place(path: str | Path) -> Path:
    """The absolute path, where it has a name and lies in a folder that exists; raises ExportError otherwise."""
    if not str(path):
        raise ExportError("out='' must name a file or folder")
    try:
        path = expanded(path).resolve()
    except ValueError as error:
        raise ExportError(f"out={str(path)!r} must lie in a folder that exists: {error}") from None
    if not path.parent.is_dir():
        raise ExportError(f"out={str(path)!r} must lie in a folder that exists; there is no {path.parent}")
    return path


def target(path: str | Path, ours: Callable[[Path], bool]) -> Path:
    """`check_place`, where there is nothing, or something that is `ours` to replace."""
    path = check_place(path)
    if path.exists() and not ours(path):
        raise ExportError(
            f"out={str(path)!r} exists and is not an earlier export of this kind: choose another name or remove it"
        )
    return path


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise ExportError where the disk refuses what is written to `path`."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or first_line(error)
        raise ExportError(f"out={str(path)!r} could not be written: {reason}") from None
