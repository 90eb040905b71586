"""The unit of work: a chunk of texts, named by the digest of its texts and of everything that decides a vector.

Wherever an engine puts it, in whatever order, a chunk that is there whole is done. Texts are one Parquet file,
`texts/NAME.parquet`, vectors another, `NAME.parquet`, with the moments (float64, of every occurrence) beside them,
written first: the vectors are what says it is done.
"""

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor

from whitelab.base.threads import one_thread
from whitelab.datasets.pairs import DataError
from whitelab.encoding.embed import embed
from whitelab.encoding.encoders import Encoder
from whitelab.statistics.moments import Moments
from whitelab.store.aside import write_aside
from whitelab.store.shards import hashes_of

CHUNK_TEXTS = 4096  # some ten seconds of one core, lost at most by a kill
FORMAT = 2
TEXTS = "texts"
STORED = ("float32", "float16")
_ARRAYS = ("mean", "scatter", "cubic", "unit")


@dataclass(frozen=True)
class Recipe:
    """Everything that decides a vector beside its text: `encoder` is the digest of a `StoreKey`.

    `layers` are averaged, or where `apart` written one after another. `threads` is what torch counts with while a
    chunk is encoded, and `device` where: another of either gives other bits. `dtype` is that of the file.
    """

    encoder: str
    pooling: str
    layers: tuple[int, ...]
    apart: bool = False
    dtype: str = "float32"
    device: str = "cpu"
    threads: int = 1

    @classmethod
    def of(
        cls, encoder: Encoder, layers: Sequence[int], pooling: str = "mean", apart: bool = False, dtype: str = "float32"
    ) -> "Recipe":
        """The recipe of a loaded model. Raises ValueError for layers or a pooling it does not have."""
        encoder.check_pooling(pooling)
        numbers = sorted({layer + encoder.n_layers if layer < 0 else layer for layer in layers})
        if not numbers or not 0 <= numbers[0] <= numbers[-1] < encoder.n_layers:
            raise ValueError(f"layers={list(layers)} must lie between 0 and {encoder.n_layers - 1}, the last layer")
        key = encoder.key(pooling).digest
        return cls(key, pooling, tuple(map(int, numbers)), apart and len(numbers) > 1, dtype, encoder.device)

    @property
    def digest(self) -> str:
        """Hex digest of every field."""
        return blake2b(json.dumps(asdict(self) | {"format": FORMAT}).encode(), digest_size=16).hexdigest()

    def name(self, texts: str) -> str:
        """What the vectors of a chunk are called whose texts are called `texts`."""
        return blake2b(f"{texts} {self.digest}".encode(), digest_size=16).hexdigest()


class Chunk(NamedTuple):
    """Texts that are encoded together, and their ids."""

    ids: tuple[str, ...]
    texts: tuple[str, ...]

    @property
    def name(self) -> str:
        """Hex digest of ids and texts."""
        return blake2b(b"".join(hashes_of([*self.ids, *self.texts])), digest_size=16).hexdigest()


def chunks_of(pairs: Iterable[tuple[str, str]], size: int = CHUNK_TEXTS) -> Iterator[Chunk]:
    """(id, text) pairs in chunks of `size`, holding one of them at a time."""
    pairs = iter(pairs)
    while part := list(islice(pairs, size)):
        yield Chunk(*zip(*part, strict=True))


def write_texts(folder: Path, chunk: Chunk) -> str:
    """The chunk's name, under which its texts are in the folder; what is there whole is not written again."""
    name = chunk.name
    path = folder / TEXTS / f"{name}.parquet"
    if not is_complete(path, name):
        _write_table(path, {"id": pa.array(chunk.ids), "text": pa.array(chunk.texts)}, {"chunk": name})
    return name


def read_texts_of(folder: Path, name: str) -> Chunk:
    """The texts of a chunk. Raises DataError where the file is not whole."""
    try:
        table = pq.read_table(folder / TEXTS / f"{name}.parquet", page_checksum_verification=True)
        return Chunk(*(tuple(table[column].to_pylist()) for column in ("id", "text")))
    except (OSError, pa.ArrowInvalid, KeyError) as problem:
        raise DataError(f"{TEXTS}/{name}.parquet: not whole ({problem}); remove it and run embed again") from None


class Done(NamedTuple):
    """What a chunk that is there whole says of itself: bytes of the moments beside it (0: there are none), how many of
    its texts were cut to what the model reads, and of how many half of the tokens or more were unknown to it.

    Those that an older version wrote count none of either.
    """

    moments: int
    cut: int = 0
    unknown: int = 0


def is_done(folder: Path, name: str) -> bool:
    """Whether the chunk's vectors are there and end as they should, and its moments where they are kept beside them."""
    return done_of(folder, name) is not None


def done_of(folder: Path, name: str) -> Done | None:
    """What a chunk that is done (`is_done`) says of itself; None of one that is not."""
    path = folder / f"{name}.parquet"
    try:
        state = path.stat()
        done = _done_said(path, name, state.st_size, state.st_mtime_ns)
        return done if done and done.moments in (0, _size(folder / f"{name}.npz")) else None
    except OSError:
        return None


@lru_cache(maxsize=2**17)
def _done_said(path: Path, name: str, size: int, mtime_ns: int) -> Done | None:
    """What a file says that ends as it should and is the chunk of that name; None where it is not.

    Kept while the file is as large and as old, so that to look again at a hundred thousand chunks opens none of them.
    """
    if not is_complete(path, name):
        return None
    said = pq.read_metadata(path).metadata
    return Done(int(said[b"moments"]), int(said.get(b"cut", 0)), int(said.get(b"unknown", 0)))


def _moments_size(folder: Path, name: str) -> int:
    """Bytes of the file of moments beside a chunk, as the chunk says; 0: there is none."""
    return int((pq.read_metadata(folder / f"{name}.parquet").metadata or {})[b"moments"])


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else -1


def is_complete(path: Path, name: str) -> bool:
    """Whether a Parquet file ends as it should, and is the chunk of that name."""
    try:
        return pq.read_metadata(path).metadata.get(b"chunk") == name.encode()
    except (OSError, pa.ArrowInvalid, AttributeError):
        return False


@torch.inference_mode()
def encode_chunk(folder: Path, texts: str, recipe: Recipe, encoder: Encoder) -> int:
    """Write the moments and vectors of a chunk of texts; how many were encoded, each distinct one once."""
    chunk, name = read_texts_of(folder, texts), recipe.name(texts)
    distinct = {text: row for row, text in enumerate(dict.fromkeys(chunk.texts))}
    rows = torch.tensor([distinct[text] for text in chunk.texts])
    with one_thread():
        values, report = embed(encoder, list(distinct), recipe.pooling)
        layers = values[list(recipe.layers)]
        vectors = layers.transpose(0, 1).flatten(1) if recipe.apart else layers.mean(0)
        vectors = vectors.to(getattr(torch, recipe.dtype))
        moments = _moments_of(vectors, rows) if _are_beside(vectors.shape[1], len(rows)) else None
    size = write_moments(folder / f"{name}.npz", moments) if moments is not None else 0
    hashes = pa.array(hashes_of(chunk.texts), pa.binary(16))
    columns = {"id": pa.array(chunk.ids, pa.string()), "hash": hashes, "vector": listed(vectors[rows].numpy())}
    often = torch.bincount(rows)
    noted = {kind: str(int(often[list(getattr(report, kind))].sum())) for kind in ("cut", "unknown")}
    record = {"chunk": name, "recipe": recipe.digest, "moments": str(size), **noted}
    _write_table(folder / f"{name}.parquet", columns, record)
    return len(distinct)


def _are_beside(dim: int, rows: int) -> bool:
    """Whether moments are kept: not where they take more than what they are taken of (d above some 2,000)."""
    return 8 * dim**2 <= 4 * dim * max(rows, CHUNK_TEXTS)


def _moments_of(vectors: Tensor, rows: Tensor) -> Moments:
    return Moments.of(vectors.float(), torch.bincount(rows, minlength=len(vectors)).to(torch.float64))


def write_moments(path: Path, moments: Moments) -> int:
    """Write moments as arrays of an .npz, without pickles; its bytes."""
    data = io.BytesIO()
    arrays = {key: getattr(moments, key).numpy() for key in _ARRAYS}
    np.savez(data, count=moments.count, quartic=moments.quartic, **arrays)
    write_aside(path, data.getvalue())
    return data.tell()


def listed(vectors: np.ndarray) -> pa.Array:
    """`[n, d]` as a column of lists of one length."""
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(vectors).reshape(-1)), vectors.shape[1])


def vectors_in(column: pa.ChunkedArray) -> np.ndarray:
    """`[n, d]` of a column of lists of one length."""
    flat = column.combine_chunks()
    return flat.flatten().to_numpy(zero_copy_only=False).reshape(len(column), flat.type.list_size)


def _write_table(path: Path, columns: dict[str, pa.Array | pa.ChunkedArray], record: dict[str, str]) -> None:
    data = io.BytesIO()
    table = pa.table(columns).replace_schema_metadata(record)
    floats = "vector" in columns and columns["vector"].type.value_type.bit_width > 8
    packed = "none" if floats else "zstd"  # floats hardly shrink, and would cost as much as whitening
    # Parquet has no number of one byte and spends four on each, but a place in a dictionary of 256 takes one.
    places = [] if floats else ["vector.list.element"]
    how = {"compression": packed, "use_dictionary": places, "write_page_checksum": True}
    pq.write_table(table, data, row_group_size=1024, **how)
    write_aside(path, data.getvalue())


def write_vectors(path: Path, ids: pa.ChunkedArray, vectors: np.ndarray, record: dict[str, str]) -> None:
    """A Parquet file of ids and vectors, whole or absent; its schema carries `record`."""
    _write_table(path, {"id": ids, "vector": listed(vectors)}, record)


def read_chunk(folder: Path, name: str, columns: Sequence[str] = ("id", "vector")) -> pa.Table:
    """The table of a chunk. Raises DataError where it is not whole."""
    try:
        path = folder / f"{name}.parquet"
        return pq.read_table(path, columns=list(columns), page_checksum_verification=True)
    except (OSError, pa.ArrowInvalid) as problem:
        raise _not_whole(name, problem) from None


def rows_of(folder: Path, name: str) -> int:
    """How many vectors the file of a chunk says it has. Raises DataError where it does not end as it should."""
    try:
        return pq.read_metadata(folder / f"{name}.parquet").num_rows
    except (OSError, pa.ArrowInvalid) as problem:
        raise _not_whole(name, problem) from None


def _not_whole(name: str, problem: Exception) -> DataError:
    return DataError(f"{name}.parquet: not whole ({problem}); remove it and run the step that writes it again")


def read_moments(folder: Path, name: str) -> Moments:
    """The moments of a chunk, from beside its vectors, or of these where they are not kept or their file is damaged.

    Raises DataError where the vectors are not whole.
    """
    with suppress(Exception):  # a broken zip raises whatever its bytes lead to
        if _moments_size(folder, name):
            with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
                # Copied to where torch aligns: products of the same numbers at another alignment have other last bits.
                arrays = {key: torch.tensor(file[key]) for key in _ARRAYS}
                return Moments(float(file["count"]), quartic=float(file["quartic"]), **arrays)
    table = read_chunk(folder, name, ("hash", "vector"))
    first, rows = np.unique(np.array(table["hash"].to_pylist()), return_index=True, return_inverse=True)[1:]
    order = np.argsort(first)  # in the order of encoding
    vectors = torch.tensor(vectors_in(table["vector"])[first[order]])
    return _moments_of(vectors, torch.from_numpy(np.argsort(order)[rows]))


def merged_moments(folder: Path, names: Iterable[str]) -> Moments:
    """Moments of all chunks, merged in the order of their names, so that the same chunks give the same bits."""
    with one_thread():
        return Moments.merged(read_moments(folder, name) for name in sorted(names))
