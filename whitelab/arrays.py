"""Files of numbers -> named arrays: .npy, .npz, .safetensors, Parquet, and tables of numbers.

Nothing is ever unpickled, and an upload's sizes are read from its headers before anything is allocated.
"""

import math
import zipfile
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path

import numpy as np

from whitelab import limits
from whitelab.datasets import DataError, Upload, open_sheet
from whitelab.datasets.layouts import existing_path
from whitelab.datasets.tables import File, as_number, holds_scalars

ARRAYS = (".npy", ".npz", ".safetensors", ".parquet")
TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json")


@dataclass(frozen=True, eq=False)
class Named:
    """An array of numbers or of str with its name in its file; the name is "" where the format has none."""

    file: str
    name: str
    values: np.ndarray

    def __str__(self) -> str:
        return f"{self.file}: {self.name}" if self.name else self.file

    @property
    def is_text(self) -> bool:
        """Whether it holds str."""
        return self.values.dtype.kind in "UO"

    @property
    def found(self) -> str:
        """Shape and type for messages: `[100, 384] float32`."""
        return f"{list(self.values.shape)} {'text' if self.is_text else self.values.dtype}"


def read_arrays(file: str | Path | Upload) -> list[Named]:
    """Every array of a file; of a table, its columns. A lone .npy bears its file's stem.

    Numbers are int64, float32 or float64 (float16, bfloat16 and small integers become float32, which holds them
    exactly). DataError for Python objects, dates, complex numbers and structures, a file that is cut short or
    damaged, and an upload over the limits.
    """
    file = file if isinstance(file, Upload) else existing_path(file)
    suffix = file.suffix.lower()
    if isinstance(file, Path) and not file.is_file():
        raise DataError(f"{file}: not a file; give one of {', '.join((*ARRAYS, *TABLES))}")
    if isinstance(file, Upload) and len(file.data) > limits.VECTORS_MB << 20:
        raise DataError(f"{file}: {len(file.data) >> 20} MB, at most {limits.VECTORS_MB} MB are read from an upload")
    if suffix in TABLES:
        found = _table(file)
    elif suffix in ARRAYS:
        read = {".npy": _npy_file, ".npz": _npz, ".safetensors": _safetensors, ".parquet": _parquet}[suffix]
        try:
            found = read(file)
        except DataError:
            raise
        except (ValueError, OSError, EOFError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:120]
            raise DataError(f"{file}: not a readable {suffix} file ({reason})") from None
    else:
        raise DataError(f"{file}: files of this kind are not read; use {', '.join((*ARRAYS, *TABLES))}")
    return [Named(str(file), name, _numbers(f"{file}: {name}", values)) for name, values in found]


# -------------------------------------------------------------------------------------------- NumPy's formats


def _npy_file(file: File) -> list[tuple[str, np.ndarray]]:
    with file.open("rb") as stream:
        size = len(file.data) if isinstance(file, Upload) else file.stat().st_size
        return [(file.stem, _npy(file, str(file), stream, size))]


def _npz(file: File) -> list[tuple[str, np.ndarray]]:
    found = []
    with file.open("rb") as raw, zipfile.ZipFile(raw) as packed:
        for member in packed.infolist():
            if member.filename.endswith(".npy"):
                name = member.filename.removesuffix(".npy")
                with packed.open(member) as stream:
                    found.append((name, _npy(file, f"{file}: {name}", stream, member.file_size)))
    return found


def _npy(file: File, where: str, stream: BufferedIOBase, size: int) -> np.ndarray:
    """One array in the .npy format, `size` bytes long. Its header is checked before anything is allocated."""
    version = np.lib.format.read_magic(stream)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:  # 3.0 is for structures with names in other scripts
        raise DataError(f"{where}: version {version[0]}.{version[1]} of the format is not read; save a plain array")
    shape, fortran, dtype = readers[version](stream)
    if dtype.hasobject:
        raise DataError(
            f"{where}: holds Python objects, which only pickle could read, and pickle can run code; save numbers, "
            "for example np.asarray(x, dtype=np.float32), and text as str, np.array(texts, dtype=str)"
        )
    if dtype.names or dtype.subdtype or dtype.kind not in "fiuU":
        raise DataError(f"{where}: must hold real numbers or text, got {dtype}")
    wanted = math.prod(shape) * dtype.itemsize
    _check_bytes(file, where, wanted, list(shape))
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


def _safetensors(file: File) -> list[tuple[str, np.ndarray]]:
    from safetensors import SafetensorError
    from safetensors.torch import load

    with file.open("rb") as stream:
        try:
            found = load(stream.read())
        except SafetensorError as error:
            raise ValueError(str(error)) from None
    arrays = []
    for name, tensor in sorted(found.items()):
        if tensor.is_complex():
            raise DataError(f"{file}: {name}: must hold real numbers, got {tensor.dtype}")
        plain = tensor.float() if tensor.is_floating_point() and tensor.element_size() < 4 else tensor
        _check_bytes(file, f"{file}: {name}", plain.numel() * plain.element_size(), list(plain.shape))
        arrays.append((name, plain.numpy()))
    return arrays


def _parquet(file: File) -> list[tuple[str, np.ndarray]]:
    """Columns of numbers and text as [rows], columns of lists of numbers as [rows, d]."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with file.open("rb") as raw, pq.ParquetFile(raw) as parquet:
        described = parquet.metadata
        if isinstance(file, Upload) and described.num_rows > limits.ROWS:
            raise DataError(f"{file}: {described.num_rows} rows, at most {limits.ROWS} are read from an upload")
        groups = [described.row_group(i) for i in range(described.num_row_groups)]
        leaves = [group.column(j) for group in groups for j in range(group.num_columns)]
        numbers = sum(leaf.num_values for leaf in leaves if leaf.physical_type != "BYTE_ARRAY")
        _check_bytes(file, str(file), 4 * numbers, [numbers])
        nested = {field.name for field in parquet.schema_arrow if _is_list(pa, field.type)}
        table = parquet.read(columns=sorted(nested)) if nested else None
        plain = any(holds_scalars(pa, field) for field in parquet.schema_arrow)
    found = [] if table is None else [(name, _lists(pa, file, name, table[name])) for name in table.column_names]
    return found + (_table(file) if plain else [])


def _is_list(pa, kind) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _lists(pa, file: File, name: str, column) -> np.ndarray:
    import pyarrow.compute as pc

    where, kind = f"{file}: {name}", column.type.value_type
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
        raise DataError(f"{where}: must hold lists of numbers, got {column.type}")
    sizes = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    if not len(sizes) or np.isnan(sizes.astype(float)).any() or column.null_count:
        missing = [i for i, one in enumerate(column) if not one.is_valid][:1]
        raise DataError(f"{where}: " + (f"row {missing[0] + 1} is missing" if missing else "no rows"))
    wrong = np.flatnonzero(sizes != sizes[0])
    if len(wrong):
        raise DataError(
            f"{where}: every row must be as long as the first, {int(sizes[0])} numbers, row {wrong[0] + 1} has "
            f"{int(sizes[wrong[0]])}"
        )
    flat = pc.list_flatten(column)
    if flat.null_count:
        raise DataError(f"{where}: a number is missing in one of its lists")
    return flat.to_numpy().reshape(len(sizes), int(sizes[0]))


def _table(file: File) -> list[tuple[str, np.ndarray]]:
    """The columns of a table: numbers where every cell is one, else text."""
    sheet = open_sheet(file)
    body = sheet.table.rows[1:] if sheet.header else sheet.table.rows
    width = len(sheet.names)
    ragged = [(line, f"{len(row)} columns where {width} are expected") for line, row in body if len(row) != width]
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


# ---------------------------------------------------------------------------------------------------- checks


def _check_bytes(file: File, where: str, size: int, shape: list[int]) -> None:
    if isinstance(file, Upload) and size > 4 * limits.NUMBERS:
        raise DataError(
            f"{where}: {shape} takes {size >> 20} MB unpacked, at most {4 * limits.NUMBERS >> 20} MB are read from "
            "an upload"
        )


def _numbers(where: str, values: np.ndarray) -> np.ndarray:
    """The array in the machine's byte order and in one of the few types that are worked with."""
    kind, size = values.dtype.kind, values.dtype.itemsize
    if kind in "UO":
        return values
    if kind not in "fiu":
        raise DataError(f"{where}: must hold real numbers or text, got {values.dtype}")
    if kind == "f":
        return np.ascontiguousarray(values, np.float32 if size <= 4 else np.float64)
    if size <= 2 and values.ndim > 1:
        return np.ascontiguousarray(values, np.float32)
    return np.ascontiguousarray(values, np.int64)
