"""Files of numbers -> named arrays: .npy, .npz, .safetensors, Parquet, and tables of numbers.

Nothing is ever unpickled, and an upload's sizes are read from its headers and summed up before anything is allocated.
"""

import io
import json
import math
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path

import numpy as np

from whitelab.base import upload_limits
from whitelab.datasets import DataError, Upload, open_sheet, parquet
from whitelab.datasets.columns import wrong_width
from whitelab.datasets.layouts import existing_path
from whitelab.datasets.tables import as_number
from whitelab.datasets.uploads import Budget, File, working_type

ARRAYS = (".npy", ".npz", ".safetensors", ".parquet")
TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json")

# Text in an .npz: NumPy makes every cell as wide as the longest. Where that would take more bytes than this, the UTF-8
# bytes of all entries are kept in one array and where each of them ends in another.
PADDED_BYTES = 16 << 20
BYTES, ENDS = ".utf8", ".ends"
STR_BYTES = 64  # what a short str takes in memory

SMALL = ("I8", "U8", "I16", "U16")  # integers, as safetensors calls them, that float32 holds exactly
NPY_HEADER = 10_000  # bytes; NumPy itself reads no longer one, but looks only after reading it
SAFETENSORS_HEADER = 1 << 20  # bytes, some ten thousand arrays; its JSON takes many times that in memory


@dataclass(frozen=True, eq=False)
class Named:
    """An array of numbers or of str with its name in its file; the name is "" where the format has none."""

    file: str
    name: str
    values: np.ndarray

    def __str__(self) -> str:
        return f"{self.file}: {self.name}" if self.name and self.name != Path(self.file).stem else self.file

    @property
    def is_text(self) -> bool:
        """Whether it holds str."""
        return self.values.dtype.kind in "UO"

    @property
    def found(self) -> str:
        """Shape and type for messages: `[100, 384] float32`."""
        return f"{list(self.values.shape)} {'text' if self.is_text else self.values.dtype}"


def text_arrays(name: str, texts: Sequence[str]) -> dict[str, np.ndarray]:
    """Text for an .npz, as arrays that `read_arrays` reads back as one of the name `name`.

    An array of str, or, where its padding would be large (`PADDED_BYTES`), `name.utf8` (uint8, all entries in a row)
    and `name.ends` (int64, where each ends).
    """
    if 4 * len(texts) * max(map(len, texts), default=0) <= PADDED_BYTES:
        return {name: np.array(texts, np.str_)}
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum([len(one) for one in encoded], dtype=np.int64)
    return {name + BYTES: np.frombuffer(b"".join(encoded), np.uint8), name + ENDS: ends}


def read_arrays(file: str | Path | Upload) -> list[Named]:
    """Every array of a file; of a table, its columns. A lone .npy bears its file's stem.

    Numbers are int64, float32 or float64 (float16, bfloat16 and small integers become float32, which holds them
    exactly). DataError for Python objects, dates, complex numbers and structures, a file that is cut short or
    damaged, and an upload over the limits, which hold for all its arrays together.
    """
    file = file if isinstance(file, Upload) else existing_path(file)
    suffix = file.suffix.lower()
    if isinstance(file, Path) and not file.is_file():
        raise DataError(f"{file}: not a file; give one of {', '.join((*ARRAYS, *TABLES))}")
    if isinstance(file, Upload) and len(file.data) > upload_limits.VECTORS_MB << 20:
        raise DataError(
            f"{file}: {len(file.data) >> 20} MB, at most {upload_limits.VECTORS_MB} MB are read from an upload"
        )
    if suffix in TABLES:
        found = _table(file)
    elif suffix in ARRAYS:
        read = {".npy": _npy_file, ".npz": _npz, ".safetensors": _safetensors, ".parquet": _parquet}[suffix]
        try:
            found = read(file, Budget(file))
        except DataError:
            raise
        except (ValueError, OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
            reason = " ".join(str(error).split())[:120]
            raise DataError(f"{file}: not a readable {suffix} file ({reason})") from None
    else:
        raise DataError(f"{file}: files of this kind are not read; use {', '.join((*ARRAYS, *TABLES))}")
    return [Named(str(file), name, _numbers(f"{file}: {name}", values)) for name, values in found]


# -------------------------------------------------------------------------------------------- NumPy's formats


def _npy_file(file: File, budget: Budget) -> list[tuple[str, np.ndarray]]:
    with file.open("rb") as stream:
        size = len(file.data) if isinstance(file, Upload) else file.stat().st_size
        return [(file.stem, _npy(budget, str(file), stream, size))]


def _npz(file: File, budget: Budget) -> list[tuple[str, np.ndarray]]:
    """The arrays, with the text that `text_arrays` took apart put together."""
    found = []
    with file.open("rb") as raw, zipfile.ZipFile(raw) as packed:
        members = {one: one.filename.removesuffix(".npy") for one in packed.infolist() if one.filename[-4:] == ".npy"}
        names = set(members.values())
        texts = {name.removesuffix(BYTES) for name in names if name.endswith(BYTES)}
        texts = {name for name in texts if name + ENDS in names}
        for member, name in members.items():
            with packed.open(member) as stream:
                text = name.removesuffix(BYTES) in texts and name.endswith(BYTES)
                found.append((name, _npy(budget, f"{file}: {name}", stream, member.file_size, text)))
    parts = dict(found)
    taken = {name + end for name in texts for end in (BYTES, ENDS)}
    return [(name, values) for name, values in found if name not in taken] + [
        (name, _text(f"{file}: {name}", parts[name + BYTES], parts[name + ENDS], budget)) for name in sorted(texts)
    ]


def _text(where: str, data: np.ndarray, ends: np.ndarray, budget: Budget) -> np.ndarray:
    if data.dtype != np.uint8 or data.ndim != 1 or ends.dtype.kind not in "iu" or ends.ndim != 1:
        raise DataError(f"{where}: must be text as uint8 {BYTES} [bytes] and whole {ENDS} [n]")
    ends = ends.astype(np.int64)
    starts = np.concatenate([[0], ends[:-1]])[: len(ends)]
    if (ends < starts).any() or ends[-1:].sum() != len(data):
        raise DataError(f"{where}: its {ENDS} must rise to the {len(data)} bytes of its {BYTES}")
    budget.take(where, STR_BYTES * len(ends), ends.shape)
    raw = data.tobytes()
    try:
        parts = [raw[a:b].decode("utf-8", "surrogatepass") for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: must hold UTF-8 ({error.reason})") from None
    return np.array(parts, object)


def _npy(budget: Budget, where: str, stream: BufferedIOBase, size: int, text: bool = False) -> np.ndarray:
    """One array in the .npy format, `size` bytes long. Its header is checked before anything is allocated.

    `text`: it holds the bytes of text, which never become numbers.
    """
    version = np.lib.format.read_magic(stream)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:  # 3.0 is for structures with names in other scripts
        raise DataError(f"{where}: version {version[0]}.{version[1]} of the format is not read; save a plain array")
    width = 2 * version[0]  # of the header's length
    if (length := int.from_bytes(_whole(stream, width), "little")) > NPY_HEADER:
        raise DataError(f"{where}: its header of {length} bytes is not read, at most {NPY_HEADER} are")
    stream.seek(-width, io.SEEK_CUR)
    try:
        shape, fortran, dtype = readers[version](stream)
    except Exception as error:  # NumPy evaluates it as Python, and raises a dozen kinds of errors where it is none
        raise ValueError(f"its header is none: {error}") from None
    if dtype.hasobject:
        raise DataError(
            f"{where}: holds Python objects, which only pickle could read, and pickle can run code; save numbers, "
            "for example np.asarray(x, dtype=np.float32), and text as str, np.array(texts, dtype=str)"
        )
    if dtype.names or dtype.subdtype or dtype.kind not in "fiuU":
        raise DataError(f"{where}: must hold real numbers or text, got {dtype}")
    wanted = math.prod(shape) * dtype.itemsize
    taken = dtype if text else working_type(dtype, len(shape))
    budget.take(where, math.prod(shape) * max(taken.itemsize, dtype.itemsize), shape)
    if wanted != size - stream.tell():
        raise DataError(f"{where}: {list(shape)} {dtype} takes {wanted} bytes, {size - stream.tell()} follow")
    values = np.frombuffer(bytearray(_whole(stream, wanted)), dtype)  # writable, which torch wants
    return values.reshape(shape[::-1]).T if fortran else values.reshape(shape)


def _whole(stream: BufferedIOBase, size: int) -> bytes:
    found = stream.read(size)
    if len(found) != size:
        raise ValueError(f"it ends after {len(found)} of {size} bytes")
    return found


# ------------------------------------------------------------------------------------------------ the others


def _safetensors(file: File, budget: Budget) -> list[tuple[str, np.ndarray]]:
    from safetensors import SafetensorError
    from safetensors.torch import load

    with file.open("rb") as stream:
        data = stream.read()
    if isinstance(file, Upload):
        _take_safetensors(data, budget)
    try:
        found = load(data)
    except SafetensorError as error:
        raise ValueError(str(error)) from None
    arrays = []
    for name, tensor in sorted(found.items()):
        if tensor.is_complex():
            raise DataError(f"{file}: {name}: must hold real numbers, got {tensor.dtype}")
        plain = tensor.float() if tensor.is_floating_point() and tensor.element_size() < 4 else tensor
        arrays.append((name, plain.numpy()))
    return arrays


def _take_safetensors(data: bytes, budget: Budget) -> None:
    """Count what the header promises: its length in 8 bytes, then JSON {name: {dtype, shape}}. Damage is for `load`."""
    length = int.from_bytes(data[:8], "little")
    if length > SAFETENSORS_HEADER:
        raise DataError(f"{budget.file}: its header of {length} bytes is not read, at most {SAFETENSORS_HEADER} are")
    try:
        header = json.loads(data[8 : 8 + length])
        arrays = [(name, one["dtype"], one["shape"]) for name, one in header.items() if name != "__metadata__"]
        sizes = [(name, math.prod(map(int, shape)), kind, shape) for name, kind, shape in arrays]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return
    for name, count, kind, shape in sizes:
        # F16, BF16 and F8_E4M3 become float32; of integers only rows of small ones do.
        narrow = str(kind).startswith(("F32", "F16", "BF16", "F8")) or (kind in SMALL and len(shape) > 1)
        budget.take(f"{budget.file}: {name}", count * (4 if narrow else 8), shape)


def _parquet(file: File, budget: Budget) -> list[tuple[str, np.ndarray]]:
    """Columns of numbers and text as [rows], columns of lists of numbers as [rows, d]."""
    lists, others = parquet.lists(file)
    return lists + (_table(file) if others else [])


def _table(file: File) -> list[tuple[str, np.ndarray]]:
    """The columns of a table: numbers where every cell is one, else text."""
    sheet = open_sheet(file)
    body = sheet.table.rows[1:] if sheet.header else sheet.table.rows
    width = len(sheet.names)
    ragged = [(line, wrong_width(len(row), width)) for line, row in body if len(row) != width]
    spoiled = [(one.line, one.reason) for one in sheet.table.problems] + ragged
    if spoiled:
        line, reason = min(spoiled)
        raise DataError(f"{file}:{line}: {reason}; rows belong to vectors, so none can be left out")
    columns = zip(*(row for _, row in body), strict=True)
    return [(name, _column(cells)) for name, cells in zip(sheet.names, columns, strict=True)]


def _column(cells: tuple) -> np.ndarray:
    numbers = [as_number(cell) for cell in cells]
    if None not in numbers:
        return np.array(numbers, np.float64)
    # Objects, so that one long sentence does not make every cell as wide. They never come from a file as such.
    return np.array(["" if cell is None else str(cell) for cell in cells], object)


# ------------------------------------------------------------------------------------------------ types


def _numbers(where: str, values: np.ndarray) -> np.ndarray:
    kind = values.dtype.kind
    if kind in "UO":
        return values
    if kind not in "fiu":
        raise DataError(f"{where}: must hold real numbers or text, got {values.dtype}")
    return np.ascontiguousarray(values, working_type(values.dtype, values.ndim))
