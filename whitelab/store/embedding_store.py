"""Content-addressed disk cache of sentence embeddings; knows no models.

    root / one folder per StoreKey / manifest.json            the key, for people; its mtime is the last use
                                     index.sqlite             sentence hash -> (shard, row, sum of its marks)
                                     <checksum>.safetensors   vectors

Embeddings can always be computed again: whatever looks wrong is set aside, never repaired, never believed.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import sqlite3
import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

import numpy as np
from safetensors import SafetensorError

from whitelab.base.budget import gib_in
from whitelab.base.user_folders import expanded, user_folder
from whitelab.store.aside import write_aside
from whitelab.store.shards import FORMAT, ShardFolder, count, hashes_of

DEFAULT_CAP = 20 * 2**30  # bytes
MANIFEST = "manifest.json"
POOLINGS = ("mean", "cls", "last", "wk")  # words a folder's name may begin with
FOLDER_NAME = re.compile(rf"({'|'.join(POOLINGS)})-\d+-\w+-\d+x\d+-[0-9a-f]{{32}}")


class StoreError(Exception):
    """The store cannot be used (disk full, no permission, locked); the caller can go on without it."""


class MissingEmbedding(StoreError, KeyError):
    """A sentence was read that is not stored; ask `Space.missing` first."""

    __str__ = Exception.__str__  # KeyError would show the message in quotes


@dataclass(frozen=True)
class StoreKey:
    """Everything that decides a stored vector: equal keys share a folder, different keys never do.

    `weights`, `config` and `tokenizer` are hex digests, `dtype` is that of the computation (stored vectors are always
    float32), `num_layers` counts layer 0. `model` is a readable name for listings and decides nothing.
    """

    weights: str
    config: str
    tokenizer: str
    pooling: str
    max_length: int
    dtype: str
    num_layers: int
    dim: int
    model: str = field(compare=False)

    def __post_init__(self) -> None:
        # These end up in a folder name, so nothing but the known words and numbers may pass.
        for name, allowed in {
            "pooling": POOLINGS,
            "dtype": ("float32", "bfloat16", "float16"),
        }.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name}={getattr(self, name)!r} must be one of {', '.join(allowed)}")
        for name in ("max_length", "num_layers", "dim"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)!r} must be a whole number of at least 1")

    @property
    def digest(self) -> str:
        """Hex digest of every field except `model`."""
        deciding = asdict(self) | {"model": None, "format": FORMAT}
        return blake2b(json.dumps(deciding, sort_keys=True).encode(), digest_size=16).hexdigest()

    @property
    def folder(self) -> str:
        """Folder name: a readable prefix, then the digest."""
        return f"{self.pooling}-{self.max_length}-{self.dtype}-{self.num_layers}x{self.dim}-{self.digest}"


@dataclass(frozen=True)
class SpaceInfo:
    """One line of the listing: what a folder of the store holds, and when it was last used."""

    model: str
    folder: str
    sentences: int
    bytes: int
    last_used: datetime


class Store:
    """The folders of all models under one root, brought below a size cap by `evict`.

    `root=None` is $WHITELAB_CACHE, else the user's cache folder. The default cap is 20 GiB or
    $WHITELAB_CACHE_GIB; `cap_bytes=None` is no cap. Nothing is touched on disk before `space` is called.
    """

    def __init__(self, root: Path | str | None = None, cap_bytes: int | None = DEFAULT_CAP):
        self.root = default_root() if root is None else expanded(root).absolute()
        self.cap_bytes = cap_from_environment() if cap_bytes == DEFAULT_CAP else cap_bytes

    def space(self, key: StoreKey) -> Space:
        """The folder of this key, created if need be; it counts as used now."""
        return Space(self.root, key)

    def spaces(self) -> list[SpaceInfo]:
        """Every folder in the store, most recently used first."""
        found = []
        with plain_errors(self.root):
            for folder in self.root.iterdir() if self.root.exists() else ():
                if FOLDER_NAME.fullmatch(folder.name):
                    with suppress(FileNotFoundError):  # another process evicted it just now
                        found.append(describe(folder))
        return sorted(found, key=lambda info: info.last_used, reverse=True)

    def evict(self, keep: Space | Collection[Space] | None = None) -> list[str]:
        """Remove least recently used folders until the store is within its cap; return their names.

        What is in `keep` is never removed, even when it alone is larger than the cap, and what else lies under the
        root neither.
        """
        kept = {space.folder.name for space in ([keep] if isinstance(keep, Space) else keep or ())}
        listing = self.spaces()
        excess = sum(info.bytes for info in listing) - (math.inf if self.cap_bytes is None else self.cap_bytes)
        gone = []
        for info in reversed(listing):
            if excess > 0 and info.folder not in kept:
                self._remove(info.folder)
                excess -= info.bytes
                gone.append(info.folder)
        return gone

    def _remove(self, folder: str) -> None:
        with plain_errors(self.root):
            with suppress(FileNotFoundError):
                # Renamed first, so that another process sees either the whole folder or none of it.
                os.replace(self.root / folder, self.root / f".{folder}.{uuid.uuid4().hex}.evicted")
            for leftover in self.root.glob(".*.evicted"):
                shutil.rmtree(leftover, ignore_errors=True)


class Space:
    """The embeddings of one StoreKey; may be shared between threads, and its folder between processes."""

    def __init__(self, root: Path, key: StoreKey):
        self.key = key
        self.folder = root / key.folder
        self._files = ShardFolder(self.folder, key.digest)
        with self._used():
            self._files.tidy()

    @property
    def damaged(self) -> list[str]:
        """Names of the files set aside since this space was opened; their sentences are missing again."""
        return self._files.damaged

    def missing(self, sentences: Sequence[str]) -> list[int]:
        """First position of every unique sentence that is not stored intact, in order."""
        hashes = hashes_of(sentences)
        with self._used():
            stored = self._files.stored(hashes)
        first: dict[bytes, int] = {}
        for i, h in enumerate(hashes):
            first.setdefault(h, i)
        return [i for h, i in first.items() if h not in stored]

    def marked(self, sentences: Sequence[str], mark: int) -> list[int]:
        """Positions of the sentences with this mark (`shards.CUT`, `shards.UNKNOWN`), as far as they are stored."""
        hashes = hashes_of(sentences)
        with self._used():
            found = self._files.marked(hashes, mark)
        return [i for i, h in enumerate(hashes) if h in found]

    def write(self, sentences: Sequence[str], values: np.ndarray, marks: Mapping[int, int] | None = None) -> None:
        """Store float32 values [n, l, d] as one shard; a sentence stored already keeps the vector it has.

        `marks` are the sums of marks (`shards.CUT`, `shards.UNKNOWN`) at the positions of those that have some.

        Raises ValueError for a wrong shape or dtype and for nan or inf, StoreError if the disk refuses.
        """
        hashes = hashes_of(sentences)
        shape = (len(hashes), self.key.num_layers, self.key.dim)
        if values.shape != shape or values.dtype != np.float32:
            raise ValueError(f"values={values.dtype} {values.shape} must be float32 {shape} (n, l, d)")
        finite = np.isfinite(values).all(axis=2)
        if not finite.all():
            row, layer = np.argwhere(~finite)[0]
            raise ValueError(f"values must be finite: nan or inf in layer {layer} of {sentences[row][:80]!r}")
        fresh = self.missing(sentences)
        if fresh:
            rows = slice(None) if len(fresh) == len(values) else fresh
            layers = [np.ascontiguousarray(values[rows, layer]) for layer in range(self.key.num_layers)]
            with self._used():
                self._files.add([hashes[i] for i in fresh], layers, [(marks or {}).get(i, 0) for i in fresh])

    def read(self, sentences: Sequence[str], layers: Sequence[int] | None = None) -> np.ndarray:
        """Read-only float32 [l, n, d] in the order asked for; `layers=None` is all of them.

        Raises MissingEmbedding if a sentence is not stored, or no longer intact.
        """
        hashes = hashes_of(sentences)
        chosen = list(range(self.key.num_layers) if layers is None else layers)
        if any(not 0 <= layer < self.key.num_layers for layer in chosen):
            raise ValueError(f"layers={chosen} must lie between 0 and {self.key.num_layers - 1}")
        out = np.empty((len(chosen), len(hashes), self.key.dim), dtype=np.float32)
        with self._used():
            absent = self._files.gather(hashes, chosen, out)
        if absent:
            first = repr(sentences[absent[0]][:80])
            raise MissingEmbedding(f"{len(absent)} of {len(hashes)} sentences are not stored, first {first}")
        out.flags.writeable = False
        return out

    @contextmanager
    def _used(self) -> Iterator[None]:
        """Note the time of use; make anew a folder that another process may have evicted."""
        with plain_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            manifest = self.folder / MANIFEST
            if not manifest.exists():
                text = json.dumps({"format": FORMAT, **asdict(self.key)}, indent=2)
                write_aside(manifest, text.encode())
            os.utime(manifest, ns=(time.time_ns(), time.time_ns()))  # finer than the kernel's own stamp
            yield


def describe(folder: Path) -> SpaceInfo:
    """What a folder holds; a damaged manifest or index costs the name or the count, not the listing."""
    model = folder.name
    with suppress(OSError, ValueError, KeyError, TypeError):
        model = str(json.loads((folder / MANIFEST).read_bytes())["model"])
    stats = {}
    for path in folder.iterdir():
        with suppress(FileNotFoundError):  # SQLite's side files come and go with its users
            stats[path.name] = path.stat()
    used = stats[MANIFEST].st_mtime if MANIFEST in stats else 0.0
    size = sum(stat.st_size for stat in stats.values())
    return SpaceInfo(model, folder.name, count(folder), size, datetime.fromtimestamp(used, UTC))


@contextmanager
def plain_errors(where: Path) -> Iterator[None]:
    """Turn what the disk, SQLite or safetensors refuse into a StoreError that says where and why."""
    try:
        yield
    except (OSError, sqlite3.Error, SafetensorError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise StoreError(f"the embedding store at {where} cannot be used: {reason}") from problem


def default_root() -> Path:
    """$WHITELAB_CACHE, or "whitelab" in this user's cache folder."""
    try:
        given = os.environ.get("WHITELAB_CACHE")
        return expanded(given).absolute() if given else user_folder("cache")
    except ValueError as problem:  # no home folder
        raise StoreError(f"WHITELAB_CACHE must name a folder for the embedding store: {problem}") from problem


def cap_from_environment() -> int:
    """The size cap in bytes: $WHITELAB_CACHE_GIB, or the default."""
    given = gib_in("WHITELAB_CACHE_GIB")
    return DEFAULT_CAP if given is None else given
