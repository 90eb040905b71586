"""Archives into folders: tar, tar.gz and zip, wholly or not at all, within limits.

An archive was made by somebody else, so its names, kinds and sizes are claims to be checked. Members are copied
one by one as plain files; owners, permissions and times are left behind.
"""

from __future__ import annotations

import gzip
import re
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedIOBase
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from whitelab.datasets.pairs import DataError
from whitelab.datasets.uploads import File, Upload

CHUNK = 1 << 20  # bytes copied at once
SMALL = 1 << 20  # bytes that any archive may unpack to, whatever its own size


class ArchiveError(DataError):
    """An archive that is broken, or holds what no data set needs; nothing of it was kept."""


@dataclass(frozen=True)
class Limits:
    """At most `files` members, `single` bytes in one, `total` bytes in all, and `ratio` bytes for one packed byte."""

    files: int = 20_000
    single: int = 1 << 30
    total: int = 4 << 30
    ratio: float = 200.0


@dataclass(frozen=True)
class Member:
    """One entry: its name as written, whether it is a plain file or a folder, and how to read it."""

    name: str
    plain: bool
    folder: bool
    open: Callable[[], BinaryIO]


def unpack(
    archive: Path,
    folder: Path,
    limits: Limits | None = None,
    wanted: Callable[[str], bool] = lambda name: True,
    tick: Callable[[], None] = lambda: None,
) -> tuple[Path, ...]:
    """The plain files of `archive` under `folder`, which must not exist yet; their paths there.

    They are written beside it and moved when all are there, so `folder` is whole or absent. Only members whose
    name (with / between folders) is `wanted` are written and judged; `tick` is called for every member and may
    raise to stop. Raises ArchiveError for an absolute name or one that leaves the folder, a link, a device, two
    members of one name, encryption, a damaged archive, and more than `limits` allow; OSError where the disk fails.
    """
    limits = limits or Limits()
    folder.parent.mkdir(parents=True, exist_ok=True)
    if folder.exists():
        raise ArchiveError(f"folder={folder} must not exist before {archive.name} is unpacked into it")
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        with _plainly(archive):
            written = list(_copied(archive, aside, limits, wanted, tick))
        aside.chmod(0o755)  # mkdtemp closes it to others
        aside.rename(folder)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return tuple(folder.joinpath(*parts) for parts in written)


def unpacked(
    archive: File, limits: Limits | None = None, wanted: Callable[[str], bool] = lambda name: True
) -> dict[str, bytes]:
    """The plain files of `archive` by name, in memory and nowhere else. Judges and raises as `unpack` does."""
    found = {}
    with _plainly(archive):
        for parts, chunks in _contents(archive, limits or Limits(), wanted):
            name = "/".join(parts)
            if name in found:
                raise FileExistsError(name)
            found[name] = b"".join(chunks)
    return found


def member_names(archive: File, limits: Limits | None = None) -> tuple[str, ...]:
    """The names of the plain files in `archive`, as `unpack` asks about them; nothing is unpacked or judged.

    Raises ArchiveError for a damaged archive, or one of more members than `limits` allow.
    """
    limits = limits or Limits()
    with _plainly(archive):
        names = [
            None if one.folder else _tidy(one.name) for one in islice(_members(archive, limits.total), limits.files + 1)
        ]
    if len(names) > limits.files:
        raise ArchiveError(f"{archive.name}: more than {limits.files} members")
    return tuple(name for name in names if name)


def _copied(archive: Path, root: Path, limits: Limits, wanted, tick) -> Iterator[tuple[str, ...]]:
    """The parts of each name, once its file is written."""
    for parts, chunks in _contents(archive, limits, wanted, tick):
        target = root.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            for chunk in chunks:
                file.write(chunk)
        yield parts


def _contents(
    archive: File, limits: Limits, wanted, tick=lambda: None
) -> Iterator[tuple[tuple[str, ...], Iterator[bytes]]]:
    """The parts of each wanted name and what its file holds, in pieces that are to be read before the next name."""
    size = len(archive.data) if isinstance(archive, Upload) else archive.stat().st_size
    budget = int(min(limits.total, SMALL + limits.ratio * size))
    spent = 0

    def chunks(member: Member) -> Iterator[bytes]:
        nonlocal spent
        with member.open() as packed:
            size = 0
            while chunk := packed.read(CHUNK):
                size, spent = size + len(chunk), spent + len(chunk)
                if size > limits.single:
                    raise ArchiveError(f"{archive.name}: {member.name!r} is larger than {limits.single} bytes")
                _within(archive, spent, budget)
                yield chunk

    for count, member in enumerate(_members(archive, budget), start=1):
        tick()
        if count > limits.files:
            raise ArchiveError(f"{archive.name}: more than {limits.files} members")
        if not member.folder and wanted(_tidy(member.name)):
            yield _safe(archive, member), chunks(member)


def _tidy(name: str) -> str:
    return "/".join(PurePosixPath(name).parts)


def _safe(archive: File, member: Member) -> tuple[str, ...]:
    """The parts of a member's name, none of which leads out of the folder."""
    name, parts = member.name, PurePosixPath(member.name).parts
    # A backslash and a drive letter are harmless here, but not where the same archive is unpacked on Windows.
    if not parts or name.startswith("/") or ".." in parts or "\\" in name or re.match(r"[A-Za-z]:", name):
        raise ArchiveError(f"{archive.name}: the name {name!r} leads out of the folder")
    if "\0" in name or any(len(part.encode("utf-8", "surrogateescape")) > 255 for part in parts):
        raise ArchiveError(f"{archive.name}: {name[:40]!r} is no name for a file")
    if not member.plain:
        raise ArchiveError(f"{archive.name}: {name!r} is a link, a device or encrypted, not a plain file")
    return parts


def _within(archive: File, size: int, budget: int) -> None:
    if size > budget:
        raise ArchiveError(f"{archive.name}: unpacks to more than {budget} bytes")


def _members(archive: File, budget: int) -> Iterator[Member]:
    with archive.open("rb") as file:
        magic = file.read(2)
        file.seek(0)
        if magic == b"PK":
            yield from _zipped(file)
        elif magic == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=file) as plain:
                yield from _tarred(_Bounded(plain, archive, budget))
        else:
            yield from _tarred(file)


def _zipped(file: BufferedIOBase) -> Iterator[Member]:
    with zipfile.ZipFile(file) as packed:
        for info in packed.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            plain = kind in (0, stat.S_IFREG) and not info.flag_bits & 1  # bit 0: encrypted
            folder = info.filename.endswith("/")  # `is_dir` of Python 3.11 fails where there is no name
            yield Member(info.filename, plain, folder, lambda info=info: packed.open(info))


def _tarred(file) -> Iterator[Member]:
    with tarfile.open(fileobj=file, mode="r:") as packed:
        for info in packed:
            plain = info.isreg() and not info.issparse()
            yield Member(info.name, plain, info.isdir(), lambda info=info: packed.extractfile(info))


class _Bounded:
    """A file that is decompressed no further than `budget`, neither for what is copied nor for what is skipped."""

    def __init__(self, file: gzip.GzipFile, archive: File, budget: int) -> None:
        self._file, self._archive, self._budget = file, archive, budget

    def read(self, size: int = -1) -> bytes:
        left = self._budget - self._file.tell() + 1
        data = self._file.read(left if size < 0 else min(size, left))
        _within(self._archive, self._file.tell(), self._budget)
        return data

    def seek(self, position: int, whence: int = 0) -> int:
        if whence == 0:
            _within(self._archive, position, self._budget)
        return self._file.seek(position, whence)

    def tell(self) -> int:
        return self._file.tell()


@contextmanager
def _plainly(archive: File) -> Iterator[None]:
    """The libraries' many words for a bad archive as ArchiveError."""
    try:
        yield
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        raise ArchiveError(f"{archive.name}: two of its members share a name") from None
    except (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ArchiveError(f"{archive.name}: not a readable tar, tar.gz or zip archive ({error})") from None
    except NotImplementedError as error:  # a compression that zipfile does not know
        raise ArchiveError(f"{archive.name}: cannot be unpacked ({error})") from None
