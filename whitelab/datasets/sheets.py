"""Tables whose columns someone chooses, and text that was pasted."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from whitelab.datasets.columns import (
    Clear,
    Columns,
    UnclearColumns,
    chosen_columns,
    find_columns,
    name_columns,
    names_pairs,
    read_rows,
    read_texts,
    shown_names,
)
from whitelab.datasets.layouts import existing_path
from whitelab.datasets.loading import assemble, left_out_note, load_text
from whitelab.datasets.pairs import DataError, MalformedRows, Problem, SentencePairs, check_rows
from whitelab.datasets.tables import SUFFIXES, Table, check_kind, read_lines, read_table, sniff, stem_of, suffix_of
from whitelab.datasets.uploads import Upload, check_columns

PASTED = "pasted.txt"  # what pasted text is called in messages
_TABLES = set(SUFFIXES) - {".txt"}  # which may hold a table, too, and is told apart where pairs are asked for
_PREVIEWED = 8  # rows
TABS = "a pair is one line: first sentence, tab, second sentence, tab, score"


@dataclass(frozen=True, eq=False)
class Sheet:
    """A table, and which of its columns were recognised.

    names: of all columns, a repeated one numbered. header: its first row holds them. found: the recognised
    columns, None where more than one choice is left or none; `unclear` then says why, and `clear` what is, even so.
    """

    table: Table
    names: tuple[str, ...]
    header: bool
    found: Columns | None
    unclear: str = ""
    clear: Clear = Clear()

    @property
    def named_by_format(self) -> bool:
        """Whether the format itself names the columns, so that no row can hold their names."""
        return self.table.names is not None

    @property
    def n_rows(self) -> int:
        """Rows of data, malformed ones among them."""
        return len(self.table.rows) + len(self.table.problems) - self.header

    def column(self, role: str) -> int | None:
        """The recognised column of a role (`columns.ROLES`), or the likely one; None where there is none."""
        if self.found is None:
            texts = dict(zip(("first", "second"), self.clear.texts, strict=False))
            return (texts | {"score": self.clear.score}).get(role)
        return getattr(self.found, role)

    def preview(self) -> list[dict[str, str]]:
        """The first rows as they are, every cell as text; short rows end in empty cells."""
        body = self.table.rows[1:] if self.header else self.table.rows
        return [
            {name: "" if cell is None else str(cell) for name, cell in zip_longest(self.names, row[: len(self.names)])}
            for _, row in body[:_PREVIEWED]
        ]

    def pairs(
        self, first: int | str, second: int | str, score: int | str, subset: int | str | None = None
    ) -> SentencePairs:
        """The pairs of the chosen columns, by name or position; rows that cannot be used are in `problems`.

        DataError for a column that is not there or has two roles; MalformedRows where no row is left.
        """
        asked = {"first": first, "second": second, "score": score} | ({} if subset is None else {"subset": subset})
        rows, problems = read_rows(self.table, chosen_columns(self.table, self.header, **asked))
        check_rows(rows, problems, keep_going=True)
        path = self.table.path
        return assemble(stem_of(path), rows, problems, (left_out_note(problems, rows),), source=path.name)


def open_sheet(file: str | Path | Upload, header: bool | None = None) -> Sheet:
    """A table with its columns recognised as far as they can be, for choosing others.

    header: whether the first row holds the columns' names (None: find out). DataError where the file cannot be
    read as a table, or holds no row.
    """
    file = file if isinstance(file, Upload) else existing_path(file)
    check_kind(file)
    table = read_table(file)
    if len(table.rows) <= 1 and table.problems:  # the one line that can be read holds names, if anything
        raise MalformedRows(table.problems, MalformedRows.NOTHING_LEFT)
    if not table.rows:
        raise DataError(f"{file}: no pairs in this file")
    names, header, _ = name_columns(table, header)
    check_columns(file, len(names))
    if len(table.rows) == header:
        raise DataError(f"{file}: column names only, no pairs")
    try:
        return Sheet(table, shown_names(names), header, find_columns(table, header))
    except UnclearColumns as error:
        return Sheet(table, shown_names(names), header, None, str(error), error.clear)
    except DataError as error:
        return Sheet(table, shown_names(names), header, None, str(error))


class Sentences(NamedTuple):
    """The sentences of one file, each as often as it occurs; the columns they stood in, none of a text file; and the
    rows that were left out."""

    text: tuple[str, ...]
    columns: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def read_sentences(file: str | Path | Upload, *, keep_going: bool = False) -> Sentences:
    """The sentences of a file: of a table what `load_sentences` gives, of any other the lines (`load_text`). DataError
    as these."""
    if suffix_of(file if isinstance(file, Upload) else Path(file)) not in _TABLES:
        return Sentences(load_text(file))
    table = read_table(file if isinstance(file, Upload) else existing_path(file))
    if names_pairs(table):
        columns = find_columns(table)
        rows, problems = read_rows(table, columns)
        names = tuple(name_columns(table)[0][place] for place in (columns.first, columns.second))
        text = (*(row.first for row in rows), *(row.second for row in rows))
    else:
        rows, names, problems = read_texts(table)
        text = tuple(sentence for row in rows for sentence in row)
    check_rows(rows, problems, keep_going)
    return Sentences(text, names, tuple(problems))


def open_pasted(text: str) -> Sheet | tuple[str, ...]:
    """Pasted text: a Sheet where its lines are pairs with a score, else its sentences, one a line.

    Columns stand between tabs, as spreadsheets copy them, or as in a .txt file. DataError where lines hold tabs
    but no pairs, and where there is no sentence.
    """
    file = Upload(PASTED, text.encode("utf-8", "replace"))
    lines = read_lines(file)
    if sniff(lines[:50]) is not None:
        return open_sheet(file)
    for number, line in enumerate(lines, start=1):
        if "\t" in line:
            raise DataError(f"line {number} holds {line.count(chr(9)) + 1} columns; {TABS}")
    return load_text(file)
