"""Which column is which, and whether a row can be used."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise, zip_longest
from typing import NamedTuple

from whitelab.base.wording import quantity
from whitelab.datasets.pairs import MANY_GROUPS, NOT_A_NUMBER, DataError, Problem
from whitelab.datasets.tables import DECIMAL_COMMA, Table, as_number, sniff

# Names are compared as `plain_name` gives them.
SENTENCE_NAMES = (
    ("sentence1", "sentence2"),
    ("sentencea", "sentenceb"),
    ("sent1", "sent2"),
    ("senta", "sentb"),
    ("text1", "text2"),
    ("texta", "textb"),
    ("s1", "s2"),
    ("question1", "question2"),
    ("premise", "hypothesis"),
    ("first", "second"),
)
# Of sentences that come without a gold score: pairs with a label, what sentence-transformers calls triplets, and
# single texts.
UNSCORED_NAMES = (
    ("anchor", "positive", "negative"),
    ("query", "positive", "negative"),
    ("anchor", "positive"),
    *SENTENCE_NAMES,
    ("text",),
    ("sentence",),
)
SCORE_NAMES = (
    "score",
    "gold",
    "goldscore",
    "label",
    "similarity",
    "similarityscore",
    "relatedness",
    "relatednessscore",
    "rating",
)
SUBSET_NAMES = ("subset", "genre", "dataset")
ROLES = ("first", "second", "score", "subset")
KIND_NAMES = ("kind",)  # of what kind a pair is, as the demonstration set says: known, so that it is no sentence

_RUNNING = "running number"
_LISTED = 12  # columns that a message names
_MANY_ROWS = 50  # with a number each: as many scores in whole numbers are hardly all different


class Clear(NamedTuple):
    """What is clear of columns that are not: the places of the two `texts`, that of the only number beside those of
    rows (`score`), whether none is mostly numbers but those of rows (`scoreless`), and the columns with what they hold
    (`listed`): where there are texts or no score, only those of numbers."""

    texts: tuple[int, ...] = ()
    score: int | None = None
    listed: str = ""
    scoreless: bool = False


class UnclearColumns(DataError):
    """Which columns of a table are two texts and a score, neither names nor content say; some may be `clear`."""

    clear = Clear()


@dataclass(frozen=True)
class Columns:
    """Positions of what is read in a row of `width` cells (`longer`: or more); header: its first row holds names, and
    by_name: names told which columns are the sentences.
    """

    first: int
    second: int
    score: int
    width: int
    subset: int | None = None
    header: bool = False
    notes: tuple[str, ...] = ()
    longer: bool = False
    by_name: bool = False


class Row(NamedTuple):
    first: str
    second: str
    gold: float
    subset: str | None


def find_columns(table: Table, header: bool | None = None) -> Columns:
    """The columns of a table, by names where these are known, else by content where that leaves one choice.

    header: whether the first row holds names (None: find out). DataError lists the columns found when it leaves
    more, or says that there are no rows below the names.
    """
    names, header, guessed = name_columns(table, header)
    body = table.rows[1:] if header else table.rows
    if names and not body and not table.problems:
        raise DataError(f"{table.path}: column names only, no pairs")
    cells = [row for _, row in body if len(row) == len(names)]
    contents = [content_of([row[column] for row in cells]) for column in range(len(names))]
    roles = _named_roles(table, names, contents)
    taken = set(roles.values())
    by_name = "first" in roles
    by_content = not {"score", "first"} <= set(roles)
    roles.pop("kind", None)
    if "score" not in roles:
        numbers = _free(contents, "number", taken)
        for column in numbers:
            numbering = _numbering([row[column] for row in cells], by_name)
            if numbering == _RUNNING or len(numbers) == 1 and numbering:  # beside others it may still be the score
                contents[column] = numbering
        left = _free(contents, "number", taken)
        if len(numbers) != 1 or not left:  # a number beside one of rows may be a document's year
            free = [one for one in _free(contents, "text", taken) if _are_sentences([row[one] for row in cells])]
            texts = (roles["first"], roles["second"]) if by_name else free if len(free) == 2 else ()
            raise _unclear(table, names, contents, texts, left[0] if len(left) == 1 else None)
        roles["score"] = numbers[0]
    if "first" not in roles:
        texts = _free(contents, "text", taken)
        if len(texts) != 2:
            raise _unclear(table, names, contents)
        roles["first"], roles["second"] = texts
    notes = []
    if by_content:
        chosen = ", ".join(f"{role} {names[roles[role]]!r}" for role in ("first", "second", "score"))
        notes.append(f"columns recognised by content: {chosen}")
    if guessed:
        notes.append(taken_for_names(names))
    if table.lists:
        notes.append(f"columns of lists are not read with pairs: {', '.join(map(repr, table.lists[:12]))}")
    return Columns(width=len(names), header=header, notes=tuple(notes), by_name=by_name, **roles)


def chosen_columns(table: Table, header: bool | None = None, **asked: int | str) -> Columns:
    """The columns that hold each role of `asked` (first, second, score, maybe subset), by name or position.

    Names are as `shown_names` gives them. DataError for a column that is not there or has two roles.
    """
    unsaid = header is None and table.names is None
    if unsaid and table.rows:
        top = shown_names(cell.strip() for cell in table.rows[0][1])
        header = True if any(column in top for column in asked.values()) else None
    names, header, _ = name_columns(table, header)
    names = shown_names(names)
    chosen = {role: _position(table, names, role, column) for role, column in asked.items()}
    for column, count in Counter(chosen.values()).items():
        if count > 1:
            roles = " and ".join(role for role, position in chosen.items() if position == column)
            raise DataError(f"{table.path}: column {names[column]!r} cannot be {roles} at once")
    notes = ()
    if unsaid and not header and table.rows and _stands_above(table, chosen["score"], len(names)):
        header, notes = True, (taken_for_names(table.rows[0][1]),)
    return Columns(width=len(names), header=header, notes=notes, **chosen)


def _stands_above(table: Table, score: int, width: int) -> bool:
    """Whether the first row can be names, with one in place of a score where others are numbers."""
    (line, top), *rest = table.rows
    if line != table.top or len(top) != width or not _may_be_names([top[score]]):
        return False
    below = [row[score] for _, row in rest if len(row) == width]
    return _may_be_names(different(cell for cell in top if cell.strip())) and content_of(below) == "number"


def shown_names(names: Iterable[str]) -> tuple[str, ...]:
    """The names of columns by which one is chosen: all different, and none empty."""
    return different(name or "(no name)" for name in names)


def _position(table: Table, names: tuple[str, ...], role: str, column: int | str) -> int:
    if column in names:
        return names.index(column)
    if isinstance(column, int) and 0 <= column < len(names):
        return column
    raise DataError(f"{table.path}: {role}={column!r} must be one of the columns {', '.join(names)}")


def names_pairs(table: Table) -> bool:
    """Whether the names of a table's columns tell two sentences, beside a gold score: what `find_columns` takes by
    content alone, an id and a question say, may be no pairs."""
    try:
        columns = find_columns(table)
    except DataError:
        return False
    body = table.rows[1:] if columns.header else table.rows
    scores = [row[columns.score] for _, row in body if len(row) == columns.width]
    return columns.by_name and content_of(scores) == "number"


class Texts(NamedTuple):
    """Sentences that nobody scores, a tuple for each usable row; the names of their columns; and the other rows."""

    rows: list[tuple[str, ...]]
    columns: tuple[str, ...]
    problems: list[Problem]


def read_texts(table: Table) -> Texts:
    """The sentences of a table, by the names of its columns where these are known (`UNSCORED_NAMES`), else of every
    column of text whose cells mostly hold several words, or where none does of every column of text. DataError where
    there is none.
    """
    if not table.rows and table.problems:
        return Texts([], (), list(table.problems))
    names, header, _ = name_columns(table)
    plain = [plain_name(name) for name in names]
    known = next((wanted for wanted in UNSCORED_NAMES if set(wanted) <= set(plain)), None)
    if known is None and names and not header and table.names is None and _may_be_names(table.rows[0][1]):
        names, header = tuple(cell.strip() for cell in table.rows[0][1]), True
    body = table.rows[1:] if header else table.rows
    cells = [row for _, row in body if len(row) == len(names)]
    if not body and not table.problems:
        raise DataError(f"{table.path}: column names only, no sentences")
    if known:
        columns = [plain.index(name) for name in known]
    else:
        contents = [content_of([row[column] for row in cells]) for column in range(len(names))]
        texts = [column for column, content in enumerate(contents) if content == "text"]
        columns = [column for column in texts if _are_sentences([row[column] for row in cells])] or texts
        if not columns or (len(names) == 1 and _are_parted([row[0] for row in cells])):
            needed = f"one of text is needed: name it text{_tabs_hint(table)}"
            raise DataError(f"{table.path}: columns found: {listed(table, names, contents)}; {needed}")
    rows, problems = [], list(table.problems)
    for line, row in body:
        try:
            check_width(row, len(names))
            rows.append(tuple(text_cell(row[column], names[column]) for column in columns))
        except ValueError as error:
            problems.append(Problem(str(table.path), line, str(error)))
    return Texts(rows, tuple(names[column] for column in columns), sorted(problems, key=lambda problem: problem.line))


def _may_be_names(cells: Sequence[str]) -> bool:
    """Whether a first row can hold names: each short, no number, no sentence's end, and no two alike."""
    names = [cell.strip() for cell in cells]
    short = all(_may_name(name) and name[-1:] not in ("", ".", "?", "!") and as_number(name) is None for name in names)
    return short and len(set(names)) == len(names)


def _are_sentences(cells: list) -> bool:
    """Whether at least half of the filled cells hold several words."""
    filled = [str(cell) for cell in cells if cell is not None and str(cell).strip()]
    return 2 * sum(len(cell.split()) > 1 for cell in filled) >= len(filled)


def _are_parted(cells: list[str]) -> bool:
    """Whether lines are rows of cells that another delimiter parts."""
    return sniff(cells[:50]) is not None or any("\t" in cell for cell in cells)


def _may_name(cell: str) -> bool:
    """Whether a first cell is short enough for a column's name, which sentences rarely are."""
    return len(cell.split()) <= 3


def read_rows(table: Table, columns: Columns) -> tuple[list[Row], list[Problem]]:
    """The usable rows in order, and the others with their reasons, the table's own problems included."""
    rows, problems = [], list(table.problems)
    for line, cells in table.rows[1:] if columns.header else table.rows:
        try:
            rows.append(_row(cells, columns))
        except ValueError as error:
            problems.append(Problem(str(table.path), line, str(error)))
    return rows, sorted(problems, key=lambda problem: problem.line)


def _row(cells: tuple, columns: Columns) -> Row:
    check_width(cells, columns.width, columns.longer)
    return Row(
        text_cell(cells[columns.first], "first sentence"),
        text_cell(cells[columns.second], "second sentence"),
        _gold(cells[columns.score]),
        None if columns.subset is None else text_cell(cells[columns.subset], "subset", any_type=True),
    )


def check_width(cells: Sequence, width: int, longer: bool = False, wanted: str = "") -> None:
    """Raise ValueError for a row of fewer or (unless `longer`) more cells; `wanted` says what belongs there."""
    if len(cells) < width or (len(cells) > width and not longer):
        raise ValueError(wrong_width(len(cells), width, wanted))


def wrong_width(count: int, width: int, wanted: str = "") -> str:
    """`2 columns where 1 is expected`, or where `wanted`, which says what belongs there."""
    expected = wanted or f"{width} {'is' if width == 1 else 'are'} expected"
    return f"{quantity(count, 'column')} where {expected}"


def text_cell(cell: object, what: str, any_type: bool = False) -> str:
    """A cell as stripped text; ValueError says in terms of `what` why it is none."""
    if cell is None:
        raise ValueError(f"{what} is missing")
    if not isinstance(cell, str) and not any_type:
        raise ValueError(f"{what} is not text: {shown(cell)}")
    text = str(cell).strip()
    if not text:
        raise ValueError(f"{what} is empty")
    if "\0" in text:
        raise ValueError(f"{what} holds a NUL byte (UTF-16 needs a byte-order mark)")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"{what} holds half a surrogate pair, which is not text") from None
    return text


def _gold(cell: object) -> float:
    if cell is None:
        raise ValueError("score is missing")
    if isinstance(cell, str) and not cell.strip():
        raise ValueError("score is empty")
    number = as_number(cell)
    if number is None:
        comma = ", with a comma," if DECIMAL_COMMA.match(str(cell)) else ""
        raise ValueError(f"score {shown(cell)}{comma} {NOT_A_NUMBER}")
    if not math.isfinite(number):
        raise ValueError(f"score {shown(cell)} is not a finite number")
    return number


def name_columns(table: Table, header: bool | None = None) -> tuple[tuple[str, ...], bool, bool]:
    """Column names; whether the first row holds them (as told, or None: find out); whether that was only guessed."""
    if table.names is not None:
        return table.names, False, False
    if not table.rows:
        return (), False, False
    top = tuple(cell.strip() for cell in table.rows[0][1])
    if header:
        return top, True, False
    if header is None and table.rows[0][0] == table.top and not any(as_number(cell) is not None for cell in top):
        known = {name for names in UNSCORED_NAMES for name in names} | {
            *SCORE_NAMES,
            *SUBSET_NAMES,
            *KIND_NAMES,
        }
        hits = sum(plain_name(cell) in known for cell in top)
        # Two known names are a header; a single one could be a one-word sentence, but where it names the only column.
        if hits >= 2 or hits == len(top) == 1:
            return top, True, False
        # Unknown names: short, different, and a number below one of them.
        short = all(cell and _may_name(cell) for cell in top) and len(set(top)) == len(top)
        below = [row for _, row in table.rows[1:] if len(row) == len(top)]
        if short and any(content_of([row[column] for row in below]) == "number" for column in range(len(top))):
            return top, True, True
    width = Counter(len(row) for _, row in table.rows).most_common(1)[0][0]
    return unnamed(width), False, False


def taken_for_names(names: tuple[str, ...]) -> str:
    """The note that the names of columns were only guessed to be names."""
    return "the first line was taken for column names: " + ", ".join(map(repr, names))


def unnamed(width: int) -> tuple[str, ...]:
    """What columns are called whose names are not known."""
    return tuple(f"column {number}" for number in range(1, width + 1))


def _named_roles(table: Table, names: tuple[str, ...], contents: list[str]) -> dict[str, int]:
    plain = [plain_name(name) for name in names]
    pairs = [pair for pair in SENTENCE_NAMES if pair[0] in plain and pair[1] in plain]
    scores = [name for name in SCORE_NAMES if name in plain]
    if len(scores) > 1:  # a relatedness score beside a textual label, say
        scores = [name for name in scores if contents[plain.index(name)] == "number"]
        if len(scores) != 1:
            texts = [plain.index(name) for name in pairs[0]] if len(pairs) == 1 else ()
            raise _unclear(table, names, contents, texts)
    if len(pairs) > 1:
        raise _unclear(table, names, contents)
    wanted = {"score": scores, "subset": SUBSET_NAMES, "kind": KIND_NAMES}
    if pairs:
        wanted |= {"first": pairs[0][:1], "second": pairs[0][1:]}
    roles = {}
    for role, candidates in wanted.items():
        for name in candidates:
            if name in plain:
                if plain.count(name) > 1:
                    raise DataError(f"{table.path}: two columns are named {names[plain.index(name)]!r}; rename one")
                roles[role] = plain.index(name)
                break
    return roles


def plain_name(name: str) -> str:
    """A name as names are compared: in lower case, without spaces, hyphens and underscores."""
    return name.strip().lower().replace("_", "").replace("-", "").replace(" ", "")


def different(names: Iterable[str]) -> tuple[str, ...]:
    """The names, made different: a, b, a -> a, b, a (2). Those that stand there once stay as they are."""
    names = tuple(names)
    found, seen, last = [], set(names), Counter()
    for name in names:
        last[name] += 1
        unique = name
        while last[name] > 1 and unique in seen:
            unique = f"{name} ({last[name]})"
            last[name] += unique in seen
        seen.add(unique)
        found.append(unique)
    return tuple(found)


def content_of(cells: list) -> str:
    """`number` when at least half of the filled cells are, so that malformed scores do not hide it."""
    filled = [cell for cell in cells if cell is not None and str(cell).strip()]
    if not filled:
        return "empty"
    numbers = sum(as_number(cell) is not None for cell in filled)
    if 2 * numbers >= len(filled):
        return "number"
    return "text" if any(isinstance(cell, str) for cell in filled) else "other"


def _numbering(cells: list, named: bool) -> str:
    """What numbers are that are those of rows or of groups of rows, and no scores; empty where they may be scores.

    They are whole, and many: each one more than that of the row before, or each one less, or where no names tell the
    sentences (`named`) all different, or each that of the row before or the next.
    """
    numbers = [number for number in map(as_number, cells) if number is not None and math.isfinite(number)]
    different = len(set(numbers))
    if different < MANY_GROUPS or not all(number.is_integer() for number in numbers):
        return ""
    steps = {after - one for one, after in pairwise(numbers)}
    if steps in ({1}, {-1}) or not named and steps in ({0, 1}, {0, -1}):
        return _RUNNING
    return "whole numbers, all different" if not named and _MANY_ROWS <= different == len(numbers) else ""


def _free(contents: list[str], wanted: str, taken: set[int]) -> list[int]:
    return [column for column, content in enumerate(contents) if content == wanted and column not in taken]


def _unclear(
    table: Table, names: tuple[str, ...], contents: list[str], texts: Sequence[int] = (), score: int | None = None
) -> UnclearColumns:
    found = listed(table, names, contents)
    needed = "two text columns and one number are needed: name them sentence1, sentence2 and score"
    if len(names) >= 3:
        needed += ", or say which they are: `load(columns=...)`, `score --columns` or the Data page, which asks"
    error = UnclearColumns(f"{table.path}: columns found: {found}; {needed}{_tabs_hint(table)}{_unread_hint(table)}")
    apart = shown_names(names)
    of_numbers = [column for column, content in enumerate(contents) if content not in ("text", "empty", "other")]
    scoreless = all(contents[column] == _RUNNING for column in of_numbers)
    numbers = ", ".join(f"{shown(apart[column])} ({contents[column]})" for column in of_numbers[:_LISTED])
    numbers += _and_more(len(of_numbers))
    error.clear = Clear(tuple(texts), score, numbers if texts or scoreless else found, scoreless)
    return error


def _tabs_hint(table: Table) -> str:
    tabs = any(isinstance(cell, str) and "\t" in cell for _, row in table.rows[:1] for cell in row)
    return "; its first line holds tabs: give it the extension .tsv" if tabs else ""


def _unread_hint(table: Table) -> str:
    """That most of a table could not be read, so that little is known of its columns; empty where most could."""
    if len(table.problems) <= len(table.rows):
        return ""
    first = table.problems[0]
    return f"; {quantity(len(table.problems), 'line')} of it cannot be read, such as {first.line}: {first.reason}"


def listed(table: Table, names: tuple[str, ...], contents: list[str]) -> str:
    """The columns of a table with what they hold, and where they have no names begin with, for a message."""
    begin = [f", first {shown(cell)}" for cell in table.rows[0][1]] if names and names == unnamed(len(names)) else []
    columns = islice(zip_longest(names, contents, begin[: len(names)], fillvalue=""), _LISTED)
    found = ", ".join(f"{shown(name)} ({content}{first})" for name, content, first in columns)
    return (found or "none") + _and_more(len(names))


def _and_more(count: int) -> str:
    """How many of `count` columns are not listed; empty where all are."""
    return f" and {count - _LISTED} more" if count > _LISTED else ""


def shown(value: object) -> str:
    """A value for a message, cut when long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
