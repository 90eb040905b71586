"""Files and folders written aside and renamed: under its own name each is whole or absent, whenever a writer is killed.

What killed writers left goes later, once it is too old to be a living one's. The disk's own errors pass through to the
caller.
"""

from __future__ import annotations

import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter
from pathlib import Path

TEMPORARY_NAME = re.compile(r"[0-9a-f]{32}\.tmp")  # of `write_aside`
ASIDE_NAME = re.compile(r"\.[0-9a-f]{32}\.tmp")  # of `folder_aside`
ASIDE_PARTS = ("new", "old")  # in it, under its own name, the folder to come, and the one that it replaces
STALE_SECONDS = 3600.0  # a temporary or unregistered file this old belongs to no living writer


@contextmanager
def file_aside(path: Path) -> Iterator[BufferedWriter]:
    """A new file beside `path` that takes its place when all went well, and is gone otherwise. An OSError names it."""
    temporary = path.with_name(f"{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_aside(path: Path, data: bytes) -> None:
    """Write a file so that under its own name it is whole or absent."""
    with file_aside(path) as file:
        file.write(data)


def is_aside(path: Path) -> bool:
    """Whether a killed writer of a file or a folder left it, or a living one is about to write it."""
    return bool(TEMPORARY_NAME.fullmatch(path.name) or ASIDE_NAME.fullmatch(path.name))


def remove_abandoned(folder: Path, also: Callable[[Path], object] = lambda path: False) -> None:
    """Remove what killed writers of `write_aside` left in `folder`, and files that are `also` to go.

    Only what is too old to be a living writer's.
    """
    for path in folder.iterdir():
        if TEMPORARY_NAME.fullmatch(path.name) or also(path):
            with suppress(FileNotFoundError):  # swept by a neighbour
                if _is_stale(path):
                    path.unlink()


def _is_stale(path: Path) -> bool:
    """Whether nothing in it changed for so long that it belongs to no living writer."""
    return time.time() - max(one.lstat().st_mtime for one in (path, *path.rglob("*"))) > STALE_SECONDS


@contextmanager
def folder_aside(folder: Path) -> Iterator[Path]:
    """A new folder beside `folder` that takes its place when all went well, and is gone otherwise.

    What killed writers of a folder of this name left there, which is old by now, goes first; what another user left
    there may stay.
    """
    home = folder.with_name(f".{uuid.uuid4().hex}.tmp")
    new, old = (home / part / folder.name for part in ASIDE_PARTS)
    for killed in _asides(folder.parent):
        with suppress(FileNotFoundError, PermissionError):  # swept by a neighbour, or another user's
            if any((killed / part / folder.name).exists() for part in ASIDE_PARTS) and _is_stale(killed):
                _undo(killed)
    try:
        for path in (old.parent, new):
            path.mkdir(parents=True)
        yield new
        if folder.exists():
            os.replace(folder, old)
        os.replace(new, folder)
    finally:
        _undo(home)


def remove_folder(folder: Path) -> None:
    """Remove a folder so that under its own name it is whole or gone; a kill leaves what `recover_folders` removes.

    Raises OSError where it cannot be moved.
    """
    home = folder.with_name(f".{uuid.uuid4().hex}.tmp")
    gone = home / ASIDE_PARTS[0] / folder.name  # not where a folder is put back from
    gone.parent.mkdir(parents=True)
    try:
        os.replace(folder, gone)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def recover_folders(parent: Path) -> None:
    """Undo what a killed `folder_aside` left in `parent`, where nobody may write meanwhile.

    A folder that was moved away for one that never came is put back; all else goes.
    """
    for home in _asides(parent):
        _undo(home)


def _asides(parent: Path) -> list[Path]:
    return [path for path in parent.glob(".*.tmp") if ASIDE_NAME.fullmatch(path.name)]


def _undo(home: Path) -> None:
    """Put back a folder that was moved away and has no successor, and remove the rest of an aside."""
    for old in home.glob("old/*"):
        if not (folder := home.with_name(old.name)).exists():
            os.replace(old, folder)
    shutil.rmtree(home, ignore_errors=True)


def let_read(folder: Path) -> None:
    """Let whoever may read a model folder's config.json read its weights; safetensors lets nobody but the owner."""
    for weights in folder.rglob("*.safetensors"):
        shutil.copymode(folder / "config.json", weights)
