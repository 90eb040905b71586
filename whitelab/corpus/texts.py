"""Files of text read as a stream, whatever their size: a line (.txt) or a record (.jsonl, .csv, .parquet) each."""

import bz2
import codecs
import csv
import glob
import gzip
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from io import TextIOWrapper
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import NamedTuple

from whitelab.base.wording import quantity
from whitelab.corpus.chunks import TEXTS
from whitelab.corpus.manifest import MANIFEST, Manifest
from whitelab.datasets.columns import wrong_width
from whitelab.datasets.layouts import data_path
from whitelab.datasets.offered import is_offered
from whitelab.datasets.pairs import DataError
from whitelab.datasets.tables import PROBE_BYTES, encoding_of, named_delimiter, quotes_are_round_cells

LINE_BYTES = 2**20  # a longer line is no sentence
_OPENERS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_CHUNK = re.compile(r"([0-9a-f]{32}|ids)\.parquet")  # of an embed and of what came of it, and of an index
KINDS = (".txt", ".jsonl", ".csv", ".parquet")
_QUOTED = re.compile(r'"[^"]*("|$)')
_BARE = re.compile(r"\r(?!\n|\Z)")
_DELIMITERS = ",;\t|"
_SHOWN = 24  # columns of those there are, and characters of a column's name

# The last is Arrow's, of a type that it knows by name only.
_UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError, csv.Error, ValueError, KeyError, NotImplementedError)
ID = "id"  # the usual field of ids, which may be missing


class LeftOut(NamedTuple):
    """A line, or with `whole` a file from where it could not be read on, that gave no text, and why."""

    where: str
    reason: str
    whole: bool = False

    def __str__(self) -> str:
        return f"{self.where}: {'cannot be read on: ' * self.whole}{self.reason}"

    @property
    def kind(self) -> str:
        """What is left out, with no place: `line: not UTF-8`."""
        return f"{'file' if self.whole else 'line'}: {self.reason}"


Refuse = Callable[[LeftOut], None]


def text_files(source: str | Path) -> list[Path]:
    """The files of a folder, a glob (`**` for folders of any depth) or a name, sorted; `~` is the home folder.

    What `corpus` has written among them is none, unless its own folder of texts is named. Raises DataError where there
    is none to read.
    """
    path = data_path(source)
    try:
        asked = _above_pattern(path)
        if path.is_file():
            found = [path]
        else:
            found = map(Path, path.rglob("*") if path.is_dir() else glob.glob(str(path), recursive=True))
        files = sorted(file for file in found if file.is_file() and kind_of(file) in KINDS)
        files = [file for file in files if is_offered(file) and not _is_ours(file, asked)]
    except (OSError, ValueError) as error:  # a name too long, a folder closed to us
        raise DataError(f"text={str(source)!r}: cannot be opened ({error})") from None
    if not files:
        raise DataError(
            f"text={str(source)!r} must name .txt, .jsonl, .csv or .parquet files (.gz, .bz2, .xz), found none"
        )
    return files


def stamp_of(source: str | Path) -> str:
    """Hex digest of names, sizes and times of the files of text.

    It is another where one came, went or was written again, or is of a kind that this version alone reads. Raises
    DataError as `text_files`.
    """
    states = [(str(path), (state := path.stat()).st_size, state.st_mtime_ns) for path in text_files(source)]
    return blake2b(json.dumps(states).encode(), digest_size=16).hexdigest()


EMPTY = "no text (empty)"  # of a record, not of a line
CHANGED = "files of its text were not read, or were written again or removed since: embed again reads what is there"


def changed_since(manifest: Manifest) -> bool | None:
    """Whether `CHANGED` can be said of the texts of a corpus; None where they are not there, or nobody noted it."""
    try:
        return stamp_of(manifest.reading["source"]) != manifest.stamp if manifest.stamp else None
    except (DataError, OSError, KeyError):
        return None


def read_texts(
    source: str | Path, refuse: Refuse, text_column: str = "text", id_column: str = ID
) -> Iterator[tuple[str, str]]:
    """`read_records`, but for blank lines."""
    return ((name, text) for name, text in read_records(source, refuse, text_column, id_column) if text)


def read_records(
    source: str | Path, refuse: Refuse, text_column: str = "text", id_column: str = ID
) -> Iterator[tuple[str, str]]:
    """(id, text) of every sentence, the text without blanks at its ends; one without an id gets `file:line`.

    An `id_column` that is not the usual one must be in every record.

    Files are named by their path below `source` where that is a folder, or below the folder in which a glob begins.

    Lines are UTF-8, or what a mark of the byte order says. `refuse` is told of every one that is left out (too long in
    UTF-8, not in its encoding, NUL, not a record with a text in it), and of a file that cannot be read on. The first
    line of a .csv names its columns, below one such as `sep=;` if it has that; of two of one name the first is taken,
    and a quoted cell may hold line ends: after a line that is too long nobody knows where a row begins, so the file is
    not read on. Raises DataError as `text_files`.
    """
    folder = data_path(source)
    if not folder.is_dir():
        folder = folder.parent if folder.is_file() else _above_pattern(folder)
    for path in text_files(source):
        shown = path.relative_to(folder).as_posix()
        try:
            reader = _TABLES.get(kind_of(path))
            for number, record in reader(path, text_column, id_column) if reader else _lines(path):
                where = f"{shown}:{number}"
                try:
                    if isinstance(record, ValueError):
                        raise record
                    line = isinstance(record, str) and (kind_of(path) == ".txt" or not record.strip())
                    if isinstance(record, str):
                        record = _parsed(record, kind_of(path), text_column, id_column)
                    name, text = record
                    if text is None:
                        raise ValueError("no text (null)")
                    if not isinstance(text, str) or "\0" in text:
                        raise ValueError("the text must be a string without NUL")
                    if not (line or text.strip()):
                        raise ValueError(EMPTY)
                    name = where if name is None else str(name)
                    if max(len(name.encode()), len(text.encode())) > LINE_BYTES:
                        raise ValueError(f"longer than {LINE_BYTES} bytes")
                except ValueError as problem:
                    refuse(LeftOut(where, _in_words(problem)))
                    continue
                yield name, text.strip()
        except _UNREADABLE as problem:
            refuse(LeftOut(shown, _in_words(problem), whole=True))


def _in_words(problem: Exception) -> str:
    if isinstance(problem, UnicodeEncodeError):
        return "half a surrogate pair"
    if isinstance(problem, csv.Error) and "new-line" in str(problem):  # which tells programmers how to open files
        return "a carriage return outside quotes"
    return f"not {problem.encoding.upper()}" if isinstance(problem, UnicodeDecodeError) else str(problem)


def _is_ours(path: Path, asked: Path) -> bool:
    """Whether it is what `corpus` has written, in a folder that `asked` is not inside: its texts were read already."""
    if not _CHUNK.fullmatch(path.name):
        return False
    home = path.parent.parent if path.parent.name == TEXTS else path.parent
    if path.parent.name != TEXTS and not (home / MANIFEST).exists():
        return False
    return asked == home or not asked.is_relative_to(home)


def _above_pattern(path: Path) -> Path:
    """The folder in which a pattern begins."""
    return Path(*takewhile(lambda part: not glob.has_magic(part), path.parts))


def kind_of(path: Path) -> str:
    """One of `KINDS` where it is text, whatever it is compressed with."""
    return (path.with_suffix("") if path.suffix in _OPENERS else path).suffix


def form_of(head: bytes, kind: str) -> tuple[str, int, str]:
    """By how a file of a kind begins: its encoding, the bytes of a mark that says so, and what ends its lines.

    These are bare carriage returns where it begins with no others, outside the quotes of a .csv; one alone may stand in
    a long first line.
    """
    encoding, start = encoding_of(head)
    ends = head[start:].decode(encoding, "replace")
    ends = _QUOTED.sub("quoted", ends) if kind == ".csv" else ends
    several = len(_BARE.findall(ends)) > (len(head) == PROBE_BYTES)
    return encoding, start, "\r" if several and "\n" not in ends.rstrip("\r\n") else "\n"


def _head(path: Path) -> bytes:
    with _OPENERS.get(path.suffix, open)(path, "rb") as file:
        return file.read(PROBE_BYTES)


def _lines(path: Path) -> Iterator[tuple[int, str | ValueError]]:
    """Lines by number; one that is too long is said to be, and no more of it is held than shows it, and so is one of a
    file without line feeds, so far, that has them.

    What could not be decoded is in them as lone surrogates, for `_undecoded`.
    """
    encoding, start, end_of_line = form_of(_head(path), kind := kind_of(path))
    with _OPENERS.get(path.suffix, open)(path, "rb") as file:
        file.seek(start)
        lone = "surrogateescape" if encoding == "utf-8" else "undecoded"
        lines, number = TextIOWrapper(file, encoding, lone, newline=end_of_line), 0
        while line := lines.readline(LINE_BYTES + 1):
            number += 1
            too_long, end = len(line.encode("utf-8", "replace")) > LINE_BYTES, line
            while not end.endswith(end_of_line) and (end := lines.readline(LINE_BYTES + 1)):
                pass
            if too_long:
                yield number, ValueError(f"longer than {LINE_BYTES} bytes")
            elif end_of_line == "\r" and kind != ".csv" and "\n" in line.strip("\r\n"):
                yield number, ValueError("line feeds, where lines before end in carriage returns")
            else:
                yield number, line


# What is not UTF-16 or UTF-32 becomes the surrogate of that number, which surrogateescape uses for nothing.
codecs.register_error("undecoded", lambda problem: (chr(0xD800 + int(problem.encoding[4:6])), problem.end))


def _undecoded(text: str) -> str:
    """What a text is not, though its file begins so; empty where all could be decoded."""
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        number = ord(text[problem.start]) - 0xD800
        return f"not UTF-{number if number in (16, 32) else 8}"
    return ""


def _parsed(text: str, kind: str, text_column: str, id_column: str) -> tuple[object, object]:
    if why := _undecoded(text):
        raise ValueError(why)
    if kind == ".txt" or not text.strip():
        return None, text
    try:
        record = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        raise ValueError("not JSON") from None
    if not isinstance(record, dict) or text_column not in record:
        raise ValueError(f"no {text_column!r} (text_column) in it")
    if id_column not in (ID, *record):
        raise ValueError(f"no {id_column!r} (id_column) in it")
    return record.get(id_column), record[text_column]


def _rows(path: Path, text_column: str, id_column: str) -> Iterator[tuple[int, tuple | ValueError]]:
    """(id, text) of each record of a .csv by the line on which it begins, or why it gives none."""
    csv.field_size_limit(max(csv.field_size_limit(), LINE_BYTES))
    text_column, id_column = text_column.strip(" "), id_column.strip(" ")

    def decoded() -> Iterator[str]:
        for _, line in _lines(path):
            if isinstance(line, ValueError):  # of which the end is not there
                raise line
            yield line

    lines, needed = decoded(), _needed(text_column, id_column)
    head, top = next(lines, ""), 1
    if said := named_delimiter(head.rstrip("\r\n")):
        head, top = next(lines, ""), 2
    split = {
        one: [name.strip(" ") for name in next(csv.reader([head], delimiter=one, skipinitialspace=True), [])]
        for one in said or _DELIMITERS
    }
    delimiter = max(split, key=lambda one: ({*needed.values()} <= {*split[one]}, len(split[one])))
    names = split[delimiter]
    _check_columns(names, needed)
    places = {name: names.index(name) for name in names}

    def records(lines: Iterable[str], skip: bool) -> Iterator[tuple[int, list[str] | ValueError]]:
        rows = csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=skip)
        while True:
            number = rows.line_num + 1
            try:
                row = next(rows)
                if len(row) not in (0, len(names)):
                    raise csv.Error(wrong_width(len(row), len(names)))
                if why := _undecoded("".join(row)):
                    raise csv.Error(why)
            except StopIteration:
                return
            except csv.Error as problem:
                after = rows.line_num - number  # which an open quote took, or the row had of its own
                more = f", with {quantity(after, 'line')} after it" if after > 0 else ""
                yield number, ValueError(_in_words(problem) + more)
                continue
            if row:
                yield number, row

    def read(skip: bool) -> list[Sequence[str]]:
        return [() if isinstance(row, ValueError) else row for _, row in records(first[top:-1], skip)]

    encoding, start, end_of_line = form_of(begun := _head(path), ".csv")
    first = begun[start:].decode(encoding, "replace").split(end_of_line)  # of the last of these there may be more
    rounded = read(True)
    cut = len(begun) == PROBE_BYTES and rounded[-1:] == [()]
    skip = quotes_are_round_cells(zip_longest(rounded, read(False), fillvalue=()), cut)
    for number, row in records(lines, skip):
        if isinstance(row, ValueError):
            yield top + number, row
        else:
            own = row[places[id_column]].strip(" ") or None if id_column in places else None
            yield top + number, (own, row[places[text_column]])


def _needed(text_column: str, id_column: str) -> dict[str, str]:
    """The columns that must be there, by the argument that names each."""
    return {"text_column": text_column} | ({"id_column": id_column} if id_column != ID else {})


def _check_columns(names: Sequence[str], needed: Mapping[str, str]) -> None:
    for argument, name in needed.items():
        if name not in names:
            found = ", ".join(repr(one[:_SHOWN]) for one in names[:_SHOWN])
            raise ValueError(f"{argument}={name!r} must be one of the columns {found or '(there are none)'}")


def _table(path: Path, text_column: str, id_column: str) -> Iterator[tuple[int, tuple]]:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        _check_columns(file.schema_arrow.names, _needed(text_column, id_column))
        names = [name for name in (id_column, text_column) if name in file.schema_arrow.names]
        number = 0
        for batch in file.iter_batches(batch_size=1024, columns=names):
            for record in batch.to_pylist():
                number += 1
                yield number, (record.get(id_column), record[text_column])


_TABLES = {".csv": _rows, ".parquet": _table}
