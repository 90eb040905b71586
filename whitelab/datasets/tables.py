"""Files into rows of cells: delimited text, JSON lines, Parquet.

Nothing here knows which column is which. Lines end at a line feed only, so that other separators Unicode has
(U+2028, U+0085 ...) stay inside the sentence they occur in.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import math
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .pairs import DataError, Problem

DELIMITERS = {".csv": ",", ".tsv": "\t"}
JSON_LINES = (".jsonl", ".ndjson")
SUFFIXES = (".csv", ".tsv", ".txt", *JSON_LINES, *(f"{suffix}.gz" for suffix in JSON_LINES), ".parquet")
PROBE_BYTES = 1 << 16
UNZIPPED_BYTES = 1 << 30  # a .gz that holds more is not a file of sentence pairs

# UTF-32 first: its little-endian mark begins with the one of UTF-16.
MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True)
class Table:
    """rows: (line counted from 1, cells). names: the columns of a format that has them, else None."""

    path: Path
    rows: tuple[tuple[int, tuple], ...]
    problems: tuple[Problem, ...] = ()
    names: tuple[str, ...] | None = None


def read_table(path: Path, delimiter: str | None = None) -> Table:
    """The rows of a file, by its extension, or as text with the delimiter given.

    Tab-separated text has no quoting; with any other delimiter quotes follow RFC 4180 within a line. Lines
    that cannot be taken apart are in `problems`. DataError for a file that cannot be read at all or is empty.
    """
    suffix = suffix_of(path)
    if delimiter is None and suffix == ".parquet":
        return _parquet(path)
    if delimiter is None and suffix.removesuffix(".gz") in JSON_LINES:
        return _json_lines(path)
    lines = read_lines(path)
    delimiter = delimiter or DELIMITERS.get(suffix) or sniff(lines[:50])
    if delimiter is None:
        raise DataError(
            f"{path}: no tab, semicolon, bar or comma splits its lines into three columns or more; "
            "save it as .tsv, .csv or .jsonl"
        )
    rows, problems = _each_line(path, lines, lambda line: split_line(line, delimiter))
    return Table(path, rows, problems)


def read_scored(path: Path, gold: Path) -> tuple[Table, int]:
    """Two tab-separated sentences a line, with the scores of the same lines in `gold`; how many lines have none.

    Rows are (first, second, score); what follows the second sentence is not read. DataError when the files are
    of different length, where no line could be trusted to have its own score.
    """
    lines, scores = read_lines(path, keep_blank=True), read_lines(gold, keep_blank=True)
    for longer, shorter in ((lines, scores), (scores, lines)):
        while len(longer) > len(shorter) and not longer[-1].strip():
            longer.pop()
    if len(lines) != len(scores):
        raise DataError(f"{gold}: {len(scores)} scores for the {len(lines)} pairs of {path.name}")
    scored = [(number, line) for number, line in enumerate(lines, start=1) if scores[number - 1].strip()]
    cells = [(number, tuple(line.split("\t")[:2])) for number, line in scored]
    rows = tuple((number, (*row, scores[number - 1])) for number, row in cells if len(row) == 2)
    short = tuple(Problem(str(path), number, "1 column where 2 are expected") for number, row in cells if len(row) < 2)
    return Table(path, rows, short), len(lines) - len(scored)


def suffix_of(path: Path) -> str:
    """The extension in lower case, with the one before .gz: ".jsonl.gz"."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return "".join(suffixes[-2:] if suffixes[-1:] == [".gz"] else suffixes[-1:])


def stem_of(path: Path) -> str:
    """The name without the extension of `suffix_of`."""
    return path.name[: len(path.name) - len(suffix_of(path))]


def read_lines(path: Path, keep_blank: bool = False, latin: bool = False) -> list[str]:
    """The lines of a text file without their ends; blank lines at the end are left off unless they count.

    UTF-8, or UTF-8/16/32 with a byte-order mark, or Latin-1 where a layout says so (`latin`). DataError names
    the first byte that cannot be decoded; no other encoding is guessed.
    """
    data = _bytes(path)
    text = data.decode("latin-1") if latin else _decode(path, data)
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if keep_blank and not lines[-1]:
        lines.pop()  # what follows the last line end is no line
    while not keep_blank and lines and not lines[-1].strip(" "):
        lines.pop()
    if not lines:
        raise DataError(f"{path}: the file is empty")
    if len(lines) == 1 and "\r" in lines[0]:
        raise DataError(f"{path}: its lines end in bare carriage returns; convert them to line feeds")
    return lines


def probe_lines(path: Path) -> list[str]:
    """The first lines of a text file, for recognising it; undecodable bytes do not matter here."""
    data = _bytes(path, PROBE_BYTES)
    encoding, start = _encoding(data)
    lines = data[start:].decode(encoding, errors="replace").split("\n")
    if len(data) == PROBE_BYTES and len(lines) > 1:
        lines.pop()  # cut off in the middle
    return [line.removesuffix("\r") for line in lines if line.strip()]


def sniff(lines: list[str]) -> str | None:
    """The delimiter that gives most lines the same columns, three or more and one of numbers; else None."""
    filled = [line for line in lines if line.strip()]
    for delimiter in ("\t", ";", "|", ","):
        rows = [row for line in filled if (row := _cells(line, delimiter))]
        width, count = Counter(map(len, rows)).most_common(1)[0] if rows else (0, 0)
        if width < 3 or 3 * count < 2 * len(filled):
            continue
        columns = zip(*(row for row in rows if len(row) == width), strict=True)
        if any(2 * sum(as_number(cell) is not None for cell in column) >= count for column in columns):
            return delimiter
    # Tabs hardly occur in sentences, so that an uneven file with tabs is a table with malformed rows.
    return "\t" if lines and lines[0].count("\t") >= 2 else None


def as_number(cell: object) -> float | None:
    """A cell as a float, not necessarily finite; None when it is no number."""
    if cell is None or isinstance(cell, bool) or (isinstance(cell, str) and "_" in cell):
        return None  # float() would read "1_0" as ten
    try:
        return float(cell)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        return None


def _cells(line: str, delimiter: str) -> tuple[str, ...]:
    try:
        return split_line(line, delimiter)
    except ValueError:
        return ()


def split_line(line: str, delimiter: str) -> tuple[str, ...]:
    """The cells of one line; ValueError says why it cannot be split."""
    if delimiter == "\t" or '"' not in line:
        return tuple(line.split(delimiter))
    # A quoted field may hold line feeds in CSV at large, but then one forgotten quote swallows rows up to the
    # next quote. A sentence is one line, so every line must balance, and nothing can be swallowed.
    if line.count('"') % 2:
        raise ValueError(
            "a quote is not closed on this line; keep a sentence on one line, double the quotes inside it "
            "and put quotes around it"
        )
    if csv.field_size_limit() < len(line):
        csv.field_size_limit(len(line))
    try:
        return tuple(next(csv.reader([line], delimiter=delimiter, strict=True)))
    except csv.Error as error:
        raise ValueError(f"its quotes cannot be read ({error}); double the quotes inside a quoted field") from None


def _each_line(path: Path, lines: list[str], parse: Callable[[str], object]) -> tuple[tuple, tuple[Problem, ...]]:
    rows, problems = [], []
    for number, line in enumerate(lines, start=1):
        try:
            if not line.strip(" "):
                raise ValueError("blank line")
            rows.append((number, parse(line)))
        except ValueError as error:
            problems.append(Problem(str(path), number, str(error)))
    return tuple(rows), tuple(problems)


def _json_lines(path: Path) -> Table:
    objects, problems = _each_line(path, read_lines(path), _json_object)
    names = tuple(dict.fromkeys(name for _, row in objects for name in row))
    rows = tuple((line, tuple(row.get(name) for name in names)) for line, row in objects)
    return Table(path, rows, problems, names)


def _json_object(line: str) -> dict:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a line of JSON ({str(error) or 'nested too deeply'})") from None
    if not isinstance(value, dict):
        raise ValueError(f"a JSON object is expected, got {type(value).__name__}")
    return value


def _parquet(path: Path) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not _bytes(path, 1):
        raise DataError(f"{path}: the file is empty")
    try:
        with pq.ParquetFile(path) as file:
            # Columns of lists or bytes can be large and hold no sentence or score; pandas' index is no data.
            wanted = [field.name for field in file.schema_arrow if _holds_scalars(pa, field)]
            table = file.read(columns=wanted)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path}: not a readable Parquet file ({reason[:120]})") from None
    try:
        columns = [column.to_pylist() for column in table.columns]
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: a text column holds bytes that are not UTF-8 ({error.reason})") from None
    rows = tuple(enumerate(zip(*columns, strict=True), start=1))
    return Table(path, rows, names=tuple(table.column_names))


def _holds_scalars(pa, field) -> bool:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    types = pa.types
    text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return (text or number or types.is_boolean(kind)) and not field.name.startswith("__index_level_")


def _bytes(path: Path, size: int = -1) -> bytes:
    zipped = path.suffix.lower() == ".gz"
    try:
        with gzip.open(path, "rb") if zipped else path.open("rb") as file:
            data = file.read(UNZIPPED_BYTES + 1 if zipped and size < 0 else size)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path}: not a readable gzip file ({error})") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from None
    if zipped and len(data) > UNZIPPED_BYTES:
        raise DataError(f"{path}: unpacks to more than {UNZIPPED_BYTES} bytes")
    return data


def _encoding(data: bytes) -> tuple[str, int]:
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return encoding, len(mark)
    return "utf-8", 0


def _decode(path: Path, data: bytes) -> str:
    encoding, start = _encoding(data)
    try:
        return data[start:].decode(encoding)
    except UnicodeDecodeError as error:
        position = start + error.start
        line = data.count(b"\n", 0, position) + 1
        raise DataError(
            f"{path}: not {encoding.upper()} at byte {position} (0x{data[position]:02x}, line {line}); "
            "convert the file to UTF-8, for example with: iconv -f ENCODING -t UTF-8"
        ) from None
