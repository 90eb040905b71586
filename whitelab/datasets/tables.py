"""Files into rows of cells: delimited text, JSON, JSON lines, Parquet.

Nothing here knows which column is which. Lines end at a line feed, or where there is none at a carriage return, so
that other separators Unicode has (U+2028, U+0085 ...) stay inside the sentence they occur in.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from whitelab.base import upload_limits
from whitelab.datasets import parquet
from whitelab.datasets.offered import check_link
from whitelab.datasets.pairs import DataError, Problem
from whitelab.datasets.uploads import File, Upload, check_columns, check_row_count

DELIMITERS = {".csv": ",", ".tsv": "\t"}
JSON_LINES = (".jsonl", ".ndjson")
SUFFIXES = (
    ".csv",
    ".tsv",
    ".txt",
    *JSON_LINES,
    *(f"{suffix}.gz" for suffix in JSON_LINES),
    ".json",
    ".parquet",
)
PROBE_BYTES = 1 << 16
UNZIPPED_BYTES = 1 << 30  # a .gz that holds more is not a file of sentence pairs

ZIPPED = b"PK\x03\x04"  # with which a zip archive begins
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
    """rows: (line counted from 1, cells). names: the columns of a format that has them, else None. top: the line of
    the first row. lists: columns of lists, which hold neither text nor a score."""

    path: File
    rows: tuple[tuple[int, tuple], ...]
    problems: tuple[Problem, ...] = ()
    names: tuple[str, ...] | None = None
    top: int = 1
    lists: tuple[str, ...] = ()


def check_kind(path: File) -> None:
    """Raises DataError for a file whose extension is none of those that are read."""
    if suffix_of(path) not in SUFFIXES:
        raise DataError(f"{path}: files of this kind are not read; use {', '.join(SUFFIXES)}")


def read_table(path: File, delimiter: str | None = None) -> Table:
    """The rows of a file, by its extension, or as text with the delimiter given, or that its first line names.

    Quotes are read as `splitter` has it. Lines that cannot be taken apart are in `problems`. DataError for a file
    that cannot be read at all or is empty.
    """
    suffix = suffix_of(path)
    if delimiter is None and suffix == ".parquet":
        names, columns, lists = parquet.cells(path)
        rows = tuple(enumerate(zip(*columns, strict=True), start=1))
        return Table(path, rows, names=tuple(names), lists=tuple(lists))
    if delimiter is None and suffix.removesuffix(".gz") in JSON_LINES:
        return _json_lines(path)
    if delimiter is None and suffix == ".json":
        return _json(path)
    lines = read_lines(path)
    said = named_delimiter(lines[0])
    named = int(said is not None)
    delimiter = said or delimiter or delimiter_of(suffix, lines)
    if delimiter is None:
        raise DataError(
            f"{path}: no tab, semicolon, bar or comma splits its lines into three columns or more, as pairs with "
            "scores have; save a table as .tsv, .csv or .jsonl, and take texts alone for a corpus, or to fit a map on"
        )
    while len(lines) > named and not lines[-1].strip(f" {delimiter}"):  # spreadsheets write rows that once were filled
        lines.pop()
    if len(lines) == named:
        raise DataError(f"{path}: the file is empty")
    rows, problems = _each_line(path, lines[named:], splitter(lines[named:], delimiter), named + 1)
    numbers, cells = zip(*rows, strict=True) if rows else ((), ())
    rows = tuple(zip(numbers, _pointed(cells, delimiter), strict=True))
    return Table(path, rows, problems, top=named + 1)


def read_records(path: Path, names: Iterable[str], what: str) -> list[dict[str, str]]:
    """The records of a bundled .csv whose first line is exactly `names`; record i stands on line i + 2.

    DataError calls the file's content `what`, where it cannot be read or a line has other columns.
    """
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
    except OSError as error:
        raise DataError(f"{path}: {what} cannot be read ({error.strerror})") from None
    names = list(names)
    for line, row in enumerate(rows or [[]], 1):
        if (line == 1 and row != names) or len(row) != len(names):
            raise DataError(f"{path}: line {line}: expected the columns {', '.join(names)}, got {', '.join(row)}")
    return [dict(zip(names, row, strict=True)) for row in rows[1:]]


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


def suffix_of(path: File) -> str:
    """The extension in lower case, with the one before .gz: ".jsonl.gz"."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return "".join(suffixes[-2:] if suffixes[-1:] == [".gz"] else suffixes[-1:])


def stem_of(path: File) -> str:
    """The name without the extension of `suffix_of`."""
    name = path.name.rpartition("/")[2]  # of an upload it may have folders, those of an archive
    return name[: len(name) - len(suffix_of(path))]


def read_lines(path: File, keep_blank: bool = False, latin: bool = False) -> list[str]:
    """The lines of a text file without their ends; blank lines at the end are left off unless they count.

    UTF-8, or UTF-8/16/32 with a byte-order mark, or Latin-1 where a layout says so (`latin`). DataError names
    the first byte that cannot be decoded; no other encoding is guessed.
    """
    data = _bytes(path)
    text = data.decode("latin-1") if latin else _decode(path, data)
    check_row_count(path, text.rstrip(" \r\n").count(_end_of_line(text)) + 1)
    lines = _split_lines(text)
    if keep_blank and not lines[-1]:
        lines.pop()  # what follows the last line end is no line
    while not keep_blank and lines and not lines[-1].strip(" "):
        lines.pop()
    if not lines:
        raise DataError(f"{path}: the file is empty")
    return lines


def _split_lines(text: str) -> list[str]:
    if (end := _end_of_line(text)) == "\r":
        text = text.replace("\n", "")  # which stand at its end alone
    return [line.removesuffix("\r") for line in text.split(end)]


def _end_of_line(text: str) -> str:
    """A line feed, or where there is none the carriage return, as in files that Excel calls CSV (Macintosh)."""
    within = text.rstrip("\r\n")
    return "\r" if "\n" not in within and "\r" in within else "\n"


def probe_lines(path: File) -> list[str]:
    """The first lines of a text file, for recognising it; undecodable bytes do not matter here."""
    data = _bytes(path, PROBE_BYTES)
    encoding, start = encoding_of(data)
    lines = _split_lines(data[start:].decode(encoding, errors="replace"))
    if len(data) == PROBE_BYTES and len(lines) > 1:
        lines.pop()  # cut off in the middle
    return [line for line in lines if line.strip()]


def delimiter_of(suffix: str, lines: list[str]) -> str | None:
    """What parts the columns of text with this extension; None where neither extension nor content says so.

    A .csv has commas unless only another makes a table of it, such as the semicolons that spreadsheets write where the
    comma stands in numbers, or the tabs of a file that was renamed; what its first line has most of is tried first:
    for pairs and a score (`sniff`), and then for any two columns, a text and its label.
    """
    usual = DELIMITERS.get(suffix)
    if usual == "," and lines:
        first, among = lines[:50], sorted(",\t;|", key=lines[0].count, reverse=True)
        return sniff(first, among) or next((one for one in among if len(_columns(first, one)) > 1), usual)
    return usual or sniff(lines[:50])


DECIMAL_COMMA = re.compile(r"^(\s*[+-]?\d+),(\d+\s*)$")  # a cell that is a number with one


def sniff(lines: list[str], among: Iterable[str] = ("\t", ";", "|", ",")) -> str | None:
    """The first delimiter that gives most lines the same columns, three or more and one of numbers; else None."""
    for delimiter in among:
        columns = _columns(lines, delimiter)
        if len(columns) < 3:
            continue
        if any(2 * sum(as_number(cell) is not None for cell in column) >= len(column) for column in columns):
            return delimiter
    # Tabs hardly occur in sentences, so that an uneven file with tabs is a table with malformed rows.
    return "\t" if "\t" in among and lines and lines[0].count("\t") >= 2 else None


def _columns(lines: list[str], delimiter: str) -> list[tuple[str, ...]]:
    """The columns into which a delimiter splits most lines alike; none where it does not."""
    filled = [line for line in lines if line.strip()]
    split = splitter(filled, delimiter)
    rows = _pointed([row for line in filled if (row := _cells(split, line))], delimiter)
    width, count = Counter(map(len, rows)).most_common(1)[0] if rows else (0, 0)
    if 3 * count < 2 * len(filled):
        return []
    return list(zip(*(row for row in rows if len(row) == width), strict=True))


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


def _cells(split: Callable[[str], tuple[str, ...]], line: str) -> tuple[str, ...]:
    try:
        return split(line)
    except ValueError:
        return ()


def _pointed(rows: Sequence[tuple[str, ...]], delimiter: str) -> Sequence[tuple[str, ...]]:
    """The rows with a point in numbers of each column in which the comma stands for it, as spreadsheets write them.

    That is a column of numbers, between semicolons always, and else where none has a point and not all with a comma may
    be thousands, as 1,234 may and 0,250 may not, nor nearly all beside hundreds.
    """
    width = Counter(map(len, rows)).most_common(1)[0][0] if rows else 0
    places = [place for place in range(width) if _has_decimal_commas(rows, place, delimiter)]
    if not places:
        return rows
    return [
        tuple(DECIMAL_COMMA.sub(r"\1.\2", cell) if place in places else cell for place, cell in enumerate(row))
        for row in rows
    ]


def _has_decimal_commas(rows: Sequence[tuple[str, ...]], place: int, delimiter: str) -> bool:
    cells = [row[place] for row in rows if len(row) > place and row[place].strip().casefold() not in _MISSING]
    found = [cell for cell in cells if DECIMAL_COMMA.match(cell)]
    numbers = [number for cell in cells if "," not in cell and (number := as_number(cell)) is not None]
    if not found or 2 * (len(found) + len(numbers)) < len(cells):
        return False
    if delimiter == ";":
        return True
    if any(map(_MILLIONS.fullmatch, cells)) or any("." in cell for cell in cells if as_number(cell) is not None):
        return False
    odd = [cell for cell in found if not _THOUSANDS.fullmatch(cell)]
    hundreds = any(abs(number) >= 100 for number in numbers)
    return any(map(_BELOW_ONE.match, odd)) or len(odd) > (len(found) / 20 if hundreds else 0)


_MISSING = ("", "na", "n/a", "#n/a", "nan", "none", "null", "nil", "-", "?", "k.a.", "k. a.", "n.b.")
_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*")
_BELOW_ONE = re.compile(r"\s*[+-]?0")
_MILLIONS = re.compile(r"\s*[+-]?\d{1,3}(,\d{2,3})+,\d{3}\s*")


def splitter(lines: Sequence[str], delimiter: str) -> Callable[[str], tuple[str, ...]]:
    """What takes each of these lines apart; it raises ValueError that says why a line cannot be.

    Between tabs quotes are part of the text, unless a spreadsheet or pandas put them there (`_tabs_quoted`). With any
    other delimiter they follow RFC 4180 within a line, and may stand behind a blank where most that do can be read so.
    """
    if delimiter == "\t":
        return _split_quoted if _tabs_quoted(lines) else lambda line: tuple(line.split("\t"))
    split = partial(_split, delimiter=delimiter, skip=True)
    blanks = re.compile(f'[{delimiter}] +"')
    padded = [line for line in lines if blanks.search(line) and line.count('"') % 2 == 0]
    round_cells = [_cells(split, line) for line in padded]
    if not all(round_cells):
        inside = partial(split, skip=False)
        if not quotes_are_round_cells(zip(round_cells, (_cells(inside, line) for line in padded), strict=True)):
            return inside
    return split


def quotes_are_round_cells(rows: Iterable[tuple[Sequence[str], Sequence[str]]], cut: bool = False) -> bool:
    """Whether quotes behind a blank stand round cells, or in them, by `rows` as they are read so and so, empty where
    they cannot be: what is in quotes whole is no text that begins with a quotation. `cut`: the last row may go on."""
    rows = list(rows)
    wrapped = [any(_WRAPPED.fullmatch(cell) for cell in row) for _, row in rows]
    inside = sum(bool(row) and not whole for (_, row), whole in zip(rows, wrapped, strict=True))
    return sum(bool(row) for row, _ in rows) + cut >= inside + any(wrapped)


_WRAPPED = re.compile(' +"(?:[^"]|"")*" *')
_CELL = re.compile(r'(?:^|\t)("(?:[^"]|"")*"|[^"\t]*)')  # with no quote but those round it


def _tabs_quoted(lines: Sequence[str]) -> bool:
    """Whether quotes stand round cells and not in them: every cell with a quote is quoted, and either all of these hold
    a quote or a tab, as pandas writes them, or no other cell but a number holds a comma, as in those of spreadsheets.
    Tabs inside leave every line as many cells: where quotes are text, one cell seldom ends what another begins."""
    rows = [_between_tabs(line) for line in lines if line.strip()]
    if not all(rows) or (any("\t" in cell for row in rows for cell in row) and len(set(map(len, rows))) > 1):
        return False
    quoted = [cell for row in rows for cell in row if '"' in cell]
    others = (cell for row in rows for cell in row if '"' not in cell)
    return bool(quoted) and (
        all('""' in cell[1:-1] or "\t" in cell for cell in quoted)
        or not any("," in cell and not DECIMAL_COMMA.match(cell) for cell in others)
    )


def _between_tabs(line: str) -> list[str]:
    """The cells of a line with the quotes round them; none where a quote stands in a cell."""
    cells = _CELL.findall(line) if '"' in line else line.split("\t")
    return cells if "\t".join(cells) == line else []


def _split_quoted(line: str) -> tuple[str, ...]:
    return tuple(cell[1:-1].replace('""', '"') if '"' in cell else cell for cell in _between_tabs(line))


def _split(line: str, delimiter: str, skip: bool) -> tuple[str, ...]:
    if '"' not in line:
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
        return tuple(next(csv.reader([line], delimiter=delimiter, strict=True, skipinitialspace=skip)))
    except csv.Error as error:
        raise ValueError(f"its quotes cannot be read ({error}); double the quotes inside a quoted field") from None


def named_delimiter(line: str) -> str | None:
    """What parts the columns, of a first line that is none of the table and tells a spreadsheet so: `sep=;`."""
    said = re.fullmatch(r'"?sep=([,;|\t])"?', line)
    return said and said[1]


def _each_line(
    path: File, lines: list[str], parse: Callable[[str], object], first: int = 1
) -> tuple[tuple, tuple[Problem, ...]]:
    rows, problems = [], []
    for number, line in enumerate(lines, start=first):
        try:
            if not line.strip(" "):
                raise ValueError("blank line")
            rows.append((number, parse(line)))
        except ValueError as error:
            problems.append(Problem(str(path), number, str(error)))
    return tuple(rows), tuple(problems)


def _json_lines(path: File) -> Table:
    objects, problems = _each_line(path, read_lines(path), _json_object)
    return _objects(path, objects, problems)


def _objects(path: File, objects: Sequence[tuple[int, dict]], problems: tuple[Problem, ...]) -> Table:
    names = tuple(dict.fromkeys(name for _, row in objects for name in row))
    check_columns(path, len(names))  # or one name a row would make a table of rows x rows cells
    rows = tuple((line, tuple(row.get(name) for name in names)) for line, row in objects)
    return Table(path, rows, problems, names)


def _json(path: File) -> Table:
    """A list of objects, or an object of columns as lists or, as pandas writes them, as objects by row."""
    text = _decode(path, _bytes(path))
    if not text.strip():
        raise DataError(f"{path}: the file is empty")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON ({str(error) or 'nested too deeply'})") from None
    if isinstance(value, dict):
        return _json_columns(path, value)
    if not isinstance(value, list):
        raise DataError(f"{path}: a list of objects or an object of columns is expected, got {type(value).__name__}")
    check_row_count(path, len(value))
    objects, problems = [], []
    for number, row in enumerate(value, start=1):
        if isinstance(row, dict):
            objects.append((number, row))
        else:
            problems.append(Problem(str(path), number, f"a JSON object is expected, got {type(row).__name__}"))
    return _objects(path, objects, tuple(problems))


def _json_columns(path: File, value: dict) -> Table:
    check_columns(path, len(value))
    columns = {name: list(cells.values()) if isinstance(cells, dict) else cells for name, cells in value.items()}
    for name, cells in columns.items():
        if not isinstance(cells, list):
            raise DataError(f"{path}: column {name!r} must be a list, got {type(cells).__name__}")
    sizes = {name: len(cells) for name, cells in columns.items()}
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{name!r} {size}" for name, size in list(sizes.items())[:6])
        raise DataError(f"{path}: the columns must be equally long, got {found}")
    check_row_count(path, max(sizes.values(), default=0))
    rows = tuple(enumerate(zip(*columns.values(), strict=True), start=1))
    return Table(path, rows, names=tuple(columns))


def _json_object(line: str) -> dict:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a line of JSON ({str(error) or 'nested too deeply'})") from None
    if not isinstance(value, dict):
        raise ValueError(f"a JSON object is expected, got {type(value).__name__}")
    return value


def _bytes(path: File, size: int = -1) -> bytes:
    check_link(path)
    zipped = path.suffix.lower() == ".gz"
    most = upload_limits.TABLE_MB << 20 if isinstance(path, Upload) and path.bounded else UNZIPPED_BYTES
    try:
        with path.open("rb") as raw, gzip.open(raw, "rb") if zipped else nullcontext(raw) as file:
            data = file.read(most + 1 if zipped and size < 0 else size)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path}: not a readable gzip file ({error})") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from None
    if zipped and len(data) > most:
        raise DataError(f"{path}: unpacks to more than {most} bytes")
    return data


def encoding_of(data: bytes) -> tuple[str, int]:
    """By the mark of the byte order with which a file begins, and how many bytes that takes; UTF-8 without one."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return encoding, len(mark)
    return "utf-8", 0


def _decode(path: File, data: bytes) -> str:
    encoding, start = encoding_of(data)
    first = data[:PROBE_BYTES]
    if data.startswith(ZIPPED):
        raise DataError(f"{path}: a zip archive, as a spreadsheet is, and no text: save the sheet as CSV")
    if not start and 4 * first.count(0) > len(first) > 0:  # of Latin letters every other byte
        kind = "UTF-16LE" if first[1::2].count(0) > first[::2].count(0) else "UTF-16BE"
        raise DataError(
            f"{path}: UTF-16 needs a byte-order mark, which this file lacks; convert it to UTF-8, for example with: "
            f"iconv -f {kind} -t UTF-8"
        )
    try:
        return data[start:].decode(encoding)
    except UnicodeDecodeError as error:
        position = start + error.start
        before = data[start:position].decode(encoding)
        line = before.count(_end_of_line(before)) + 1
        raise DataError(
            f"{path}: not {encoding.upper()} at byte {position} (0x{data[position]:02x}, line {line}); "
            "convert the file to UTF-8: in Excel save it as CSV UTF-8, elsewhere iconv -f ENCODING -t UTF-8 does it"
        ) from None
