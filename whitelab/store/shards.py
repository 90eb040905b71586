"""The files of one folder of the embedding store: shards of vectors, and the SQLite index of their rows.

A shard is a safetensors file with tensors "0".."L-1" [rows, d], "hash" [rows, 16] and "cut" [rows], the sum of a
sentence's marks: `CUT` and `UNKNOWN`. It is named after the checksum of its bytes and carries the hashes of its
sentences, so it can prove itself intact, and the index can be rebuilt from shards alone. The disk's and SQLite's own
errors pass through to the caller.
"""

from __future__ import annotations

import errno
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import TypeVar

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

from whitelab.base.groups import grouped
from whitelab.store.aside import remove_abandoned, write_aside

CUT, UNKNOWN = 1, 2  # marks of a sentence: longer than the model reads; mostly tokens its tokenizer does not know
INDEX = "index.sqlite"
FORMAT = 2  # part of every key and index: a new layout starts anew and never misreads an old one
SHARD_NAME = re.compile(r"[0-9a-f]{32}\.safetensors")
BUSY_SECONDS = 30.0  # how long one process waits for another's index transaction
LOOKUP_CHUNK = 10_000  # SQLite takes at most 32,766 parameters in one statement
SCHEMA = (
    "CREATE TABLE IF NOT EXISTS shards (checksum BLOB PRIMARY KEY, bytes INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS sentences"
    " (hash BLOB PRIMARY KEY, shard BLOB NOT NULL, row INTEGER NOT NULL, cut INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS cuts ON sentences (hash) WHERE cut",
)

# Shards whose checksum this process has compared, with the (size, mtime) they had then.
_verified: dict[Path, tuple[int, int]] = {}

T = TypeVar("T")


class ShardFolder:
    """The shards of one key (`owner`, its digest) in an existing folder, behind their index.

    May be used by several threads and processes at once. `damaged` names the files set aside so far.
    """

    def __init__(self, folder: Path, owner: str):
        self.folder = folder
        self.owner = owner
        self.damaged: list[str] = []

    def stored(self, hashes: list[bytes]) -> set[bytes]:
        """Which of the hashes are stored in shards that are intact."""
        return set(self._with_index(lambda index: self._places(index, hashes)))

    def marked(self, hashes: list[bytes], mark: int) -> set[bytes]:
        """Those of the hashes that are of sentences with this mark."""
        return self._with_index(lambda index: find_marked(index, hashes, mark))

    def add(self, hashes: list[bytes], layers: list[np.ndarray], marks: list[int]) -> None:
        """Write one shard of float32 layers [rows, d] for unique hashes, then register it."""
        checksum, size = save_shard(self.folder, self.owner, hashes, layers, marks)

        def register(index: sqlite3.Connection) -> None:
            with transaction(index):
                insert(index, checksum, size, hashes, marks)

        self._with_index(register)

    def gather(self, hashes: list[bytes], layers: Sequence[int], out: np.ndarray) -> list[int]:
        """Fill out [l, n, d] with the vectors of `hashes`; return the positions of those not stored.

        If there are any of these, `out` is left as it is.
        """

        def copy(index: sqlite3.Connection) -> list[int]:
            places = self._places(index, hashes)
            absent = [i for i, h in enumerate(hashes) if h not in places]
            if absent:
                return absent
            for shard, at in grouped((places[h][0], i) for i, h in enumerate(hashes)).items():
                wanted = [hashes[i] for i in at]
                copy_rows(self._path(shard), wanted, [places[h][1] for h in wanted], layers, out, at)
            return []

        return self._with_index(copy)

    def tidy(self) -> None:
        """Remove what crashed writers left behind."""

        def sweep(index: sqlite3.Connection) -> None:
            registered = {checksum.hex() for (checksum,) in index.execute("SELECT checksum FROM shards")}
            remove_abandoned(self.folder, lambda path: SHARD_NAME.fullmatch(path.name) and path.stem not in registered)

        self._with_index(sweep)

    def _places(self, index: sqlite3.Connection, hashes: list[bytes]) -> dict[bytes, tuple[bytes, int]]:
        """(shard, row) of every stored hash; shards found damaged on the way are set aside and forgotten."""
        places = locate(index, hashes)
        bad = {shard for shard in {shard for shard, _ in places.values()} if not self._intact(index, shard)}
        for shard in bad:
            self._set_aside(self._path(shard))
            forget(index, shard)
        return {h: place for h, place in places.items() if place[0] not in bad}

    def _intact(self, index: sqlite3.Connection, shard: bytes) -> bool:
        path = self._path(shard)
        size = index.execute("SELECT bytes FROM shards WHERE checksum = ?", (shard,)).fetchone()
        try:
            return size == (path.stat().st_size,) and verify(path)
        except OSError as problem:
            if problem.errno in (errno.ENOENT, errno.EIO):  # gone, or a bad sector
                return False
            raise  # permissions, too many open files: not the shard's fault

    def _set_aside(self, path: Path) -> None:
        try:
            os.replace(path, path.with_name(f"{path.name}.damaged"))
        except FileNotFoundError:
            if not (self.folder / INDEX).exists():
                return  # the folder is gone as a whole: another process has evicted it
        self.damaged.append(path.name)

    def _path(self, checksum: bytes) -> Path:
        return self.folder / f"{checksum.hex()}.safetensors"

    def _with_index(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """work(index); a broken index is set aside and rebuilt from the shards, and work runs once more."""
        path = self.folder / INDEX
        opened = inode(path)
        try:
            return self._once(path, work)
        except sqlite3.Error as problem:
            # A neighbour that replaces the file under us makes SQLite fail in many ways; trying again helps.
            if inode(path) == opened:
                if not index_is_broken(problem):
                    raise
                self._set_aside(path)
                for suffix in ("-wal", "-shm"):
                    path.with_name(path.name + suffix).unlink(missing_ok=True)
        return self._once(path, work)

    def _once(self, path: Path, work: Callable[[sqlite3.Connection], T]) -> T:
        # A connection per call: nothing to share between threads or to carry over a fork.
        with closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as index:
            with suppress(sqlite3.OperationalError):  # another process is switching the same file just now
                index.execute("PRAGMA journal_mode = WAL")
            index.execute("PRAGMA synchronous = NORMAL")  # a registration lost to a power cut costs one shard
            if index.execute("PRAGMA user_version").fetchone() != (FORMAT,):
                self._fill(index)
            return work(index)

    def _fill(self, index: sqlite3.Connection) -> None:
        """Make the tables of a new index and enter every intact shard that lies in the folder."""
        found = []
        for path in sorted(p for p in self.folder.iterdir() if SHARD_NAME.fullmatch(p.name)):
            with suppress(FileNotFoundError):  # swept or set aside by a neighbour
                if verify(path):
                    found.append((bytes.fromhex(path.stem), path.stat().st_size, *read_rows(path, self.owner)))
                else:
                    self._set_aside(path)
        with transaction(index):
            if index.execute("PRAGMA user_version").fetchone() != (FORMAT,):
                for statement in SCHEMA:
                    index.execute(statement)
                for shard in found:
                    insert(index, *shard)
                index.execute(f"PRAGMA user_version = {FORMAT}")


def inode(path: Path) -> int | None:
    """What tells a file from another one that took its place; None if there is no file."""
    with suppress(FileNotFoundError):
        return path.stat().st_ino
    return None


def hashes_of(sentences: Sequence[str]) -> list[bytes]:
    """16-byte hash of each sentence's UTF-8 text; lone surrogates are hashed as they are."""
    if isinstance(sentences, str):
        raise TypeError(f"sentences={sentences[:80]!r} must be a sequence of strings, not one string")
    return [blake2b(s.encode("utf-8", "surrogatepass"), digest_size=16).digest() for s in sentences]


def save_shard(
    folder: Path, owner: str, hashes: list[bytes], layers: list[np.ndarray], marks: list[int]
) -> tuple[bytes, int]:
    """Write float32 layers [rows, d] as a shard of the key `owner`; return its checksum and size in bytes."""
    tensors = {str(layer): values for layer, values in enumerate(layers)}
    tensors["hash"] = np.frombuffer(b"".join(hashes), dtype=np.uint8).reshape(-1, 16)
    tensors["cut"] = np.array(marks, dtype=np.uint8)
    data = save(tensors, metadata={"key": owner})
    checksum = blake2b(data, digest_size=16).digest()
    write_aside(folder / f"{checksum.hex()}.safetensors", data)
    return checksum, len(data)


def verify(path: Path) -> bool:
    """Whether a shard's bytes give the checksum in its name; read once, then only if the file has changed."""
    found = path.stat()
    mark = (found.st_size, found.st_mtime_ns)
    if _verified.get(path) == mark:
        return True
    with path.open("rb") as file:
        intact = file_digest(file, lambda: blake2b(digest_size=16)).hexdigest() == path.stem
    if intact:
        _verified[path] = mark
    return intact


def read_rows(path: Path, owner: str) -> tuple[list[bytes], list[int]]:
    """An intact shard's hashes, and each sentence's marks; none if it was copied from another key's folder."""
    with safe_open(path, framework="numpy") as file:
        if (file.metadata() or {}).get("key") != owner:
            return [], []
        return [row.tobytes() for row in file.get_tensor("hash")], file.get_tensor("cut").tolist()


def copy_rows(
    path: Path, hashes: list[bytes], rows: list[int], layers: Sequence[int], out: np.ndarray, at: list[int]
) -> None:
    """Copy a shard's rows into out[:, at], where out is [l, n, d], touching only the layers asked for.

    Raises sqlite3.DatabaseError if the rows do not hold the sentences of `hashes`.
    """
    low, high = min(rows), max(rows) + 1  # one sentence of a large shard should not cost the whole layer
    offsets = np.asarray(rows) - low
    with safe_open(path, framework="numpy") as file:
        held = file.get_slice("hash")[low:high]
        if len(held) != high - low or held[offsets].tobytes() != b"".join(hashes):
            raise sqlite3.DatabaseError("the index points at another sentence's row")
        for i, layer in enumerate(layers):
            out[i, at] = file.get_slice(str(layer))[low:high][offsets]


@contextmanager
def transaction(index: sqlite3.Connection) -> Iterator[None]:
    index.execute("BEGIN IMMEDIATE")
    try:
        yield
        index.execute("COMMIT")
    finally:
        if index.in_transaction:
            index.rollback()


def index_is_broken(problem: sqlite3.Error) -> bool:
    """Whether the file is at fault (not a database, malformed, other tables) and not the disk or a lock."""
    code = getattr(problem, "sqlite_errorcode", None)  # none: raised by this module or by a value that cannot be
    return code is None or code & 0xFF in (
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
    )


def locate(index: sqlite3.Connection, hashes: Iterable[bytes]) -> dict[bytes, tuple[bytes, int]]:
    """(shard, row) of every hash the index knows."""
    unique = list(dict.fromkeys(hashes))
    places = {}
    for start in range(0, len(unique), LOOKUP_CHUNK):
        chunk = unique[start : start + LOOKUP_CHUNK]
        marks = ",".join("?" * len(chunk))
        found = index.execute(f"SELECT hash, shard, row FROM sentences WHERE hash IN ({marks})", chunk)
        places.update((h, (shard, row)) for h, shard, row in found)
    return places


def find_marked(index: sqlite3.Connection, hashes: Iterable[bytes], mark: int) -> set[bytes]:
    """Those of the hashes that the index knows with this mark."""
    found = index.execute("SELECT hash FROM sentences WHERE cut AND cut & ?", (mark,))
    return {h for (h,) in found}.intersection(hashes)


def insert(index: sqlite3.Connection, checksum: bytes, size: int, hashes: list[bytes], marks: list[int]) -> None:
    """Enter a shard; a sentence that has a row keeps it, and a shard that adds none is not entered."""
    if len(locate(index, hashes)) == len(hashes):
        return  # stored meanwhile by others: the file stays an orphan, to be swept
    index.execute("INSERT OR REPLACE INTO shards VALUES (?, ?)", (checksum, size))
    rows = ((h, checksum, row, one) for row, (h, one) in enumerate(zip(hashes, marks, strict=True)))
    index.executemany("INSERT OR IGNORE INTO sentences VALUES (?, ?, ?, ?)", rows)


def forget(index: sqlite3.Connection, checksum: bytes) -> None:
    """Remove a shard and its rows from the index."""
    with transaction(index):
        index.execute("DELETE FROM sentences WHERE shard = ?", (checksum,))
        index.execute("DELETE FROM shards WHERE checksum = ?", (checksum,))


def count(folder: Path) -> int:
    """How many sentences a folder's index knows; 0 if there is none or it cannot be read."""
    address = f"{(folder / INDEX).as_uri()}?mode=rw"  # a plain connection would create the file
    with suppress(sqlite3.Error), closing(sqlite3.connect(address, uri=True)) as index:
        return index.execute("SELECT COUNT(*) FROM sentences").fetchone()[0]
    return 0
