"""Parquet -> plain columns. Whatever a visitor names is read in a process of its own, which may die of it.

Arrow's C++ throws where nothing catches on some damaged files (a repetition level that is none, beside a list), and
that ends the process, for every visitor of a server. So an upload, and in a server (`apart`) any file by its path,
goes to a child with bounds on memory and time, and comes back as JSON and plain arrays. A command reads where it is.
"""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from whitelab.base import upload_limits
from whitelab.base.own_process import python_path
from whitelab.datasets.offered import check_link
from whitelab.datasets.pairs import DataError
from whitelab.datasets.uploads import Budget, File, Upload, check_columns, check_row_count, working_type

SECONDS = 60  # of processor time, for the largest upload some two
MEMORY_GIB = 4  # of addresses, a tenth of which an upload at its limits takes
PATH_SECONDS, PATH_MEMORY_GIB = 600, 32  # the same for a file of the machine itself, whose rows are not limited
apart = False  # set by the app: whether files are read apart that are no uploads
Columns = tuple[list[str], list[list], list[str]]  # names, cells; names of columns of lists


def cells(file: File) -> Columns:
    """The columns of text and numbers, as Python values; None where a cell is empty. Those of lists by name alone.

    DataError for a file that cannot be read, that holds two such columns of one name, or an upload over the limits.
    """
    if not (apart or isinstance(file, Upload)):
        return _cells(file)
    answer, _ = _read_apart("cells", file)
    return answer["names"], answer["columns"], answer["lists"]


def lists(file: File) -> tuple[list[tuple[str, np.ndarray]], bool]:
    """The columns of lists of numbers, each [rows, d], and whether there are columns of text and numbers as well.

    DataError as `cells` has it, and for lists of other things or of several lengths.
    """
    if not (apart or isinstance(file, Upload)):
        return _lists(file)
    answer, arrays = _read_apart("lists", file)
    return [(name, np.load(arrays, allow_pickle=False)) for name in answer["names"]], answer["others"]


# ---------------------------------------------------------------------------------------------- what is read


def _cells(file: File) -> Columns:
    import pyarrow as pa

    with _refused(file):
        # Columns of lists or bytes can be large and hold no sentence or score; pandas' index is no data.
        with _opened(file) as parquet:
            wanted = [field.name for field in parquet.schema_arrow if _holds_scalars(pa, field)]
            nested = [field.name for field in parquet.schema_arrow if _is_list(pa, field.type)]
            if repeated := next((name for name in wanted if wanted.count(name) > 1), None):
                raise DataError(f"{file}: two columns are named {repeated!r}; rename one")
            check_row_count(file, parquet.metadata.num_rows)
            check_columns(file, len(wanted))
        # What repeats is kept once for as long as its size is not known: a few bytes can unpack to any number.
        with _opened(file, read_dictionary=wanted if isinstance(file, Upload) else None) as parquet:
            table = parquet.read(columns=wanted)
        _check_text(file, table)
    try:
        return table.column_names, [column.to_pylist() for column in table.columns], nested
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: a text column holds bytes that are not UTF-8 ({error.reason})") from None


def _lists(file: File) -> tuple[list[tuple[str, np.ndarray]], bool]:
    import pyarrow as pa

    with _refused(file), _opened(file) as parquet:
        check_row_count(file, parquet.metadata.num_rows)
        nested = {field.name: field.type for field in parquet.schema_arrow if _is_list(pa, field.type)}
        for name, kind in nested.items():
            if not (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)):
                raise DataError(f"{file}: {name}: must hold lists of numbers, got {kind}")
        _check_size(file, parquet.metadata, nested)
        table = parquet.read(columns=sorted(nested)) if nested else None
        others = any(_holds_scalars(pa, field) for field in parquet.schema_arrow)
    return [(name, _rows(f"{file}: {name}", table[name])) for name in sorted(nested)], others


@contextlib.contextmanager
def _refused(file: File):
    """Arrow's complaints as DataError."""
    import pyarrow as pa

    check_link(file)
    try:
        with file.open("rb") as raw:
            empty = not raw.read(1)
        if empty:
            raise DataError(f"{file}: the file is empty")
        yield
    except DataError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{file}: not a readable Parquet file ({reason[:120]})") from None


@contextlib.contextmanager
def _opened(file: File, **options):
    import pyarrow.parquet as pq

    with file.open("rb") as raw, pq.ParquetFile(raw, **options) as parquet:
        yield parquet


def _holds_scalars(pa, field) -> bool:
    """Whether a column is text or numbers, and no index of pandas."""
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    types = pa.types
    text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return (text or number or types.is_boolean(kind)) and not field.name.startswith("__index_level_")


def _is_list(pa, kind) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _check_text(file: File, table) -> None:
    """Refuse an upload whose text would unpack to more than a file may hold."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not isinstance(file, Upload):
        return
    size = 0
    for column in table.columns:
        for chunk in column.chunks:
            if pa.types.is_dictionary(chunk.type) and not pa.types.is_primitive(chunk.type.value_type):
                size += pc.sum(pc.take(pc.binary_length(chunk.dictionary), chunk.indices)).as_py() or 0
    if size > upload_limits.TABLE_MB << 20:
        raise DataError(f"{file}: its text takes {size >> 20} MB, at most {upload_limits.TABLE_MB} MB are read")


def _check_size(file: File, described, nested: dict) -> None:
    """Refuse an upload whose footer promises more numbers than a file may hold; `nested`: {column: type of lists}."""
    budget, counts = Budget(file), Counter()
    groups = [described.row_group(i) for i in range(described.num_row_groups)]
    for leaf in (group.column(j) for group in groups for j in range(group.num_columns)):
        path = leaf.path_in_schema
        name = next((name for name in nested if path == name or path.startswith(f"{name}.")), "")
        counts[name] += leaf.num_values if name or leaf.physical_type != "BYTE_ARRAY" else 0
    for name, numbers in counts.items():
        size = working_type(np.dtype(nested[name].value_type.to_pandas_dtype()), 2).itemsize if name else 4
        budget.take(f"{file}: {name}" if name else str(file), size * numbers, [numbers])


def _rows(where: str, column) -> np.ndarray:
    """A column of lists as [rows, d]."""
    import pyarrow.compute as pc

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


# ------------------------------------------------------------------------------------------- where it is read


def _read_apart(what: str, file: File) -> tuple[dict, io.BytesIO]:
    """What a child of this process makes of `file`: its answer, and the stream of arrays behind it."""
    ours = not isinstance(file, Upload)
    asked = {"what": what, "name": str(file) if ours else file.name, "ours": ours}
    asked["limits"] = {name: getattr(upload_limits, name) for name in _LIMITS}
    seconds = 2 * (PATH_SECONDS if ours else SECONDS)
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", __name__],
            input=json.dumps(asked).encode() + b"\n" + (b"" if ours else file.data),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": python_path()},
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise DataError(f"{file}: not read within {seconds} seconds") from None
    answered, _, arrays = done.stdout.partition(b"\n")
    if done.returncode or not answered:
        died = signal.Signals(-done.returncode).name if done.returncode < 0 else f"exit status {done.returncode}"
        raise DataError(f"{file}: not a readable Parquet file (its reader ended with {died})")
    answer = json.loads(answered)
    if "refused" in answer:
        raise DataError(answer["refused"])
    return answer, io.BytesIO(arrays)


_LIMITS = ("TABLE_MB", "ROWS", "COLUMNS", "NUMBERS")


def main() -> None:
    """Read the upload on standard input, or the file it names, and answer on standard output."""
    asked = json.loads(sys.stdin.buffer.readline())
    for name, value in asked["limits"].items():
        setattr(upload_limits, name, value)
    file = Path(asked["name"]) if asked["ours"] else Upload(asked["name"], sys.stdin.buffer.read())
    gib, seconds = (PATH_MEMORY_GIB, PATH_SECONDS) if asked["ours"] else (MEMORY_GIB, SECONDS)
    if os.name == "posix":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (gib << 30,) * 2)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    arrays = []
    try:
        if asked["what"] == "cells":
            answer = dict(zip(("names", "columns", "lists"), _cells(file), strict=True))
        else:
            arrays, others = _lists(file)
            answer = {"names": [name for name, _ in arrays], "others": others}
    except DataError as error:
        answer = {"refused": str(error)}
    except MemoryError:
        answer = {"refused": f"{file}: takes more memory than the {gib} GiB it is read in"}
    sys.stdout.buffer.write(json.dumps(answer, default=str).encode() + b"\n")
    for _, values in arrays:
        whole = io.BytesIO()  # NumPy asks a file where it stands, and a pipe cannot say
        np.save(whole, values, allow_pickle=False)
        sys.stdout.buffer.write(whole.getbuffer())


if __name__ == "__main__":
    main()
