"""Texts and pairs of texts with a class: any table, SentEval's folders, and the bundled examples.

A table needs a text and a label, or two texts and a label, and may say in a column, or by its files' names, which
rows are for training and which for testing. The seven SentEval tasks are read by `senteval`.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from whitelab.base.groups import grouped
from whitelab.datasets.columns import (
    SENTENCE_NAMES,
    check_width,
    content_of,
    listed,
    name_columns,
    plain_name,
    shown,
    taken_for_names,
    text_cell,
    unnamed,
)
from whitelab.datasets.labels import LabelledInfo, LabelledRow, LabelledTexts
from whitelab.datasets.layouts import DEMO, DEMO_FOLDER, choose, existing_path
from whitelab.datasets.loading import left_out_note, load
from whitelab.datasets.pairs import REPEATS, DataError, Problem, check_rows, repeats_note
from whitelab.datasets.senteval import SENTEVAL, senteval_tasks
from whitelab.datasets.tables import SUFFIXES, Table, as_number, check_kind, read_table, stem_of, suffix_of
from whitelab.datasets.uploads import File, Upload, check_columns

TEXT_NAMES = ("text", "sentence", "question", "review", "utterance", "query", "comment", "content", "document", "title")
LABEL_NAMES = (
    "label",
    "class",
    "category",
    "topic",
    "target",
    "intent",
    "sentiment",
    "goldlabel",
    "isduplicate",
    "paraphrase",
    "labeltext",
)
SPLIT_NAMES = ("split", "partition", "fold", "set")
SPLIT_WORDS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("dev", "valid", "validation", "val"), "dev"),
    **dict.fromkeys(("test", "testing"), "test"),
}
# Names of a class that says yes, as plain names; whoever means another one says so.
YES = ("1", "true", "yes", "positive", "paraphrase", "duplicate", "entailment", "equivalent", "same")
FEW = 10  # rows from which a label that the first row alone has is a column's name
CUT = 2.0  # from this gold score on, two demo sentences share more than their topic (data/demo/README.md)

_ALIASES = {"sst": "sst2"}  # what people say, and the name here

_WHOLE = re.compile(r"[+-]?\d+")
_SPLIT_FILE = re.compile(
    r"(?:(?P<stem>.+?)[-_.])?(?P<split>train|training|dev|valid|validation|val|test)(?:-\d+-of-\d+)?", re.IGNORECASE
)


@dataclass(frozen=True)
class ColumnNames:
    """Which columns to read, where their names or contents do not say it; None: find it out."""

    text: str | None = None
    label: str | None = None
    first: str | None = None
    second: str | None = None
    split: str | None = None


class UnclearRoles(DataError):
    """What a table does not say by itself and who reads it can: `roles`, fields of `ColumnNames` or `positive`.

    `problem` is the message without them; it closes with them as the command line calls them.
    """

    def __init__(self, problem: str, *roles: str):
        self.problem, self.roles = problem, roles
        super().__init__(f"{problem} ({', '.join(f'--{role}' for role in roles)})")

    def __reduce__(self):
        return UnclearRoles, (self.problem, *self.roles)


# ----------------------------------------------------------------------------------------------- what there is


def discover_labelled(data: str | Path | Upload) -> tuple[LabelledInfo, ...]:
    """The tasks in a table, an upload, a folder of tables, a folder in SentEval's layout, or the bundled "demo".

    Files of a folder whose names differ in train, dev and test only are one task; where a split of it lies there in
    two formats, which may be the same rows twice, each format is a task that its extension names. DataError when the
    path is missing or holds nothing readable.
    """
    if data == DEMO and isinstance(data, str):
        return _demo_tasks()
    path = data if isinstance(data, Upload) else existing_path(data, (DEMO,))
    if isinstance(path, Upload) or path.is_file():
        check_kind(path)
        return (LabelledInfo(stem_of(path), path.name, "table", ((path, ""),)),)
    found = senteval_tasks(path) or _tables(path)
    if not found:
        raise DataError(
            f"{path}: no labelled texts in this folder; looked for SentEval's MR, CR, SUBJ, MPQA, SST, TREC and MRPC, "
            "and for tables in .csv, .tsv, .jsonl or .parquet"
        )
    return found


def _tables(folder: Path) -> tuple[LabelledInfo, ...]:
    groups: dict[str, list[tuple[Path, str]]] = {}
    for file in sorted(folder.iterdir()):
        if not file.is_file() or file.name.startswith((".", "~")) or suffix_of(file) not in SUFFIXES:
            continue
        if suffix_of(file) == ".txt":  # as likely a readme
            continue
        match = _SPLIT_FILE.fullmatch(stem_of(file))
        name, split = (
            (match["stem"] or folder.name, SPLIT_WORDS[match["split"].lower()]) if match else (stem_of(file), "")
        )
        groups.setdefault(name, []).append((file, split))
    tasks: dict[str, list[tuple[Path, str]]] = {}
    for name, parts in groups.items():
        forms = {(split, suffix_of(file)) for file, split in parts}
        twice = len(forms) > len({split for split, _ in forms})
        for file, split in parts:
            tasks.setdefault(name + suffix_of(file) if twice else name, []).append((file, split))
    return tuple(LabelledInfo(name, name, "table", tuple(parts)) for name, parts in sorted(tasks.items()))


def load_labelled(
    data: str | Path | Upload,
    task: str | None = None,
    *,
    columns: ColumnNames | None = None,
    test: str | Path | Upload | None = None,
    positive: str | None = None,
    keep_going: bool = False,
) -> LabelledTexts:
    """The rows of one task, every split of it.

    task may be left out when there is only one; its case does not matter. columns names what is read of a table.
    test: a second table, whose rows are the test split of the first; neither is for the bundled examples and
    SentEval's tasks. positive: the class of pairs that says yes (in RTE as published on the Hugging Face hub it is
    0). Malformed rows raise MalformedRows; with keep_going=True they are left out and listed in `problems`.
    DataError for everything else that its owner can solve.
    """
    # A table of one's own may be named sst.csv, so what people call a task comes after what tasks are called.
    plain = (task or "").lower()
    alike = [lambda name, wanted=wanted: name.lower() == wanted for wanted in (plain, _ALIASES.get(plain))]
    info = choose(discover_labelled(data), task, data, alike)
    columns = columns or ColumnNames()
    if info.layout != "table":
        _check_table_only(info, columns, test)
    if info.layout == "demo":
        return _DEMO[info.name](info, positive)
    if info.layout == "senteval":
        rows, problems, notes, classes = *SENTEVAL[info.name].read(info), SENTEVAL[info.name].classes
    else:
        parts = info.parts
        if test is not None:
            if len(parts) > 1:
                raise DataError(f"{info.name}: its files say their splits, so test={str(test)!r} has no place")
            parts = ((parts[0][0], "train"), (test if isinstance(test, Upload) else existing_path(test), "test"))
        rows, problems, notes = _read_tables(parts, columns)
        classes = None
    check_rows(rows, problems, keep_going)
    if problems:
        notes.append(left_out_note(problems, rows))
    return _assemble(info, rows, problems, notes, classes, positive)


def _check_table_only(info: LabelledInfo, columns: ColumnNames, test: str | Path | Upload | None) -> None:
    """Refuse what is said of a table where the columns and splits are known."""
    what = {"demo": "the bundled examples", "senteval": "tasks in SentEval's layout"}[info.layout]
    if test is not None:
        raise DataError(f"{info.name}: {what} say their splits, so test={str(test)!r} has no place")
    for role, name in vars(columns).items():
        if name is not None:
            raise DataError(f"{info.name}: {what} have columns of their own, so {role}={name!r} has no place")


def _assemble(
    info: LabelledInfo,
    rows: list[LabelledRow],
    problems: list[Problem],
    notes: list[str],
    classes: tuple[str, ...] | None,
    positive: str | None,
) -> LabelledTexts:
    pairs = rows[0].second is not None
    labels = {row.label for row in rows}
    if not classes and not pairs and len(rows) > 2 and len(labels) > min(max(20, len(rows) // 2), len(rows) - 1):
        raise UnclearRoles(
            f"{info.name}: {len(labels)} different labels in {len(rows)} rows are no classes; name the column that "
            "holds the label",
            "label",
        )
    classes = classes or _ordered(labels)
    if len(classes) < 2:
        raise DataError(f"{info.name}: two classes are needed, every row has the label {classes[0]!r}")
    number = {name: place for place, name in enumerate(classes)}
    data = LabelledTexts(
        task=info.name,
        first=tuple(row.first for row in rows),
        second=tuple(row.second for row in rows) if pairs else None,
        y=np.array([number[row.label] for row in rows], np.int64),
        classes=classes,
        split=tuple(row.split for row in rows),
        positive=_positive(info.name, classes, pairs, positive),
        layout=info.layout,
        blank=tuple(place for place, row in enumerate(rows) if row.blank),
        title=info.title,
        source=", ".join(path.name for path in info.files),
        problems=tuple(sorted(problems, key=lambda one: (one.file, one.line))),
    )
    return replace(data, notes=(*notes, *_alike(classes), *_repeat_notes(data)))


def _alike(classes: Iterable[str]) -> list[str]:
    """What a reader of a confusion should know of classes that only a computer tells apart."""
    alike = grouped((unicodedata.normalize("NFKC", name).casefold(), name) for name in classes)
    found = [", ".join(map(repr, names)) for names in alike.values() if len(names) > 1]
    return [f"classes that differ only in case or in how a character is coded: {'; '.join(found)}"] if found else []


def _repeat_notes(data: LabelledTexts) -> list[str]:
    """What a reader of an accuracy should know of texts that are there again, among those scored or those learnt."""
    texts = [frozenset(row) for row in zip(data.first, data.second or data.first, strict=True)]
    splits = {name: [texts[row] for row in data.rows(name)] for name in set(data.split)}
    scored = data.scored_split
    counted, what = (splits[scored], f"{scored} rows") if scored else (texts, "rows")
    notes = [repeats_note(counted, what, "another's text")]
    learnt = set(splits.pop("train", ()))
    for name, rows in sorted(splits.items()):
        known = sum(text in learnt for text in rows)
        if known > len(rows) * REPEATS:
            of = f"{known} of {len(rows)} {name} rows"
            notes.append(f"{of} repeat the text of a train row, which a classifier can know by heart")
    return [note for note in notes if note]


def _ordered(labels: Iterable[str]) -> tuple[str, ...]:
    """Classes by number where all are finite numbers, else by name."""
    numbers = {label: _finite(label) for label in labels}
    if all(value is not None for value in numbers.values()):
        return tuple(sorted(numbers, key=lambda label: (numbers[label], label)))
    return tuple(sorted(numbers))


def _positive(task: str, classes: tuple[str, ...], pairs: bool, wanted: str | None) -> int | None:
    if wanted is not None:
        if wanted not in classes:
            more = f" and {len(classes) - 12} more" if len(classes) > 12 else ""
            found = ", ".join(map(shown, classes[:12])) + more
            raise UnclearRoles(
                f"{task}: no class named {wanted!r}; classes found: {found}; name the one that says yes", "positive"
            )
        return classes.index(wanted)
    if len(classes) != 2:
        if pairs:
            raise UnclearRoles(
                f"{task}: pairs need two classes, got {len(classes)}: {', '.join(map(shown, classes[:6]))}; "
                "a gold score is no label. Or name the one that says yes",
                "positive",
            )
        return None
    known = [place for place, name in enumerate(classes) if plain_name(name) in YES]
    if len(known) == 1:
        return known[0]
    if pairs:
        raise UnclearRoles(
            f"{task}: which of the classes {classes[0]!r} and {classes[1]!r} says that the two texts match? Name it",
            "positive",
        )
    return None


# ----------------------------------------------------------------------------------------------- tables


def _read_tables(
    parts: tuple[tuple[File, str], ...], wanted: ColumnNames
) -> tuple[list[LabelledRow], list[Problem], list[str]]:
    rows, problems, notes = [], [], []
    for path, split in parts:
        table = read_table(path, "\t" if suffix_of(path) == ".txt" else None)
        if not table.rows:
            problems += table.problems
            continue
        roles, header, width, found = _roles(table, wanted)
        check_columns(path, width)
        if rows and ("second" in roles) != (rows[0].second is not None):
            raise DataError(f"{path}: one file of the task holds pairs and another single texts")
        notes += [f"{path.name}: {note}" if len(parts) > 1 else note for note in found]
        problems += table.problems
        for line, cells in table.rows[1:] if header else table.rows:
            try:
                row = _row(cells, roles, width)
                rows.append(row._replace(split=split) if split else row)
            except ValueError as error:
                problems.append(Problem(str(path), line, str(error)))
    if not rows and not problems:
        raise DataError(f"{parts[0][0]}: column names only, no rows")
    if any(row.split for row in rows) and not all(row.split for row in rows):
        raise DataError(f"{parts[0][0]}: some files of the task say their split and others do not")
    return rows, problems, notes


def _row(cells: tuple, roles: dict[str, int], width: int) -> LabelledRow:
    check_width(cells, width)
    if "second" in roles:
        first, second = (text_cell(cells[roles[role]], f"{role} text") for role in ("first", "second"))
    else:
        first, second = text_cell(cells[roles["text"]], "text"), None
    return LabelledRow(first, second, _label(cells[roles["label"]]), _split(cells, roles))


def _label(cell: object) -> str:
    """A label as text; whole numbers lose their decimals, so that 1, 1.0 and "1" are one class."""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and math.isnan(cell):
        raise ValueError("label is missing")
    number = _finite(cell)
    return str(number) if isinstance(number, int) else text_cell(cell, "label", any_type=True)


def _finite(cell: object) -> int | float | None:
    """A cell as a number, an int where it is whole; None when it is none or not finite."""
    number = as_number(cell)
    if number is None or not math.isfinite(number):
        return None
    text = str(cell).strip()
    if _WHOLE.fullmatch(text):  # a float would make one of neighbours above 2^53
        return int(text)
    return int(number) if number.is_integer() else number


def _split(cells: tuple, roles: dict[str, int]) -> str:
    if "split" not in roles:
        return ""
    word = text_cell(cells[roles["split"]], "split", any_type=True)
    if word.lower() not in SPLIT_WORDS:
        raise ValueError(f"split {shown(word)} is none of train, dev and test")
    return SPLIT_WORDS[word.lower()]


def _roles(table: Table, wanted: ColumnNames) -> tuple[dict[str, int], bool, int, list[str]]:
    """Column of each role, whether the first row holds names, the number of columns, and notes."""
    names, header, guessed = _names(table, wanted)
    body = [cells for _, cells in (table.rows[1:] if header else table.rows) if len(cells) == len(names)]
    columns = [[cells[i] for cells in body] for i in range(len(names))]
    contents = [content_of(column) for column in columns]
    roles = {role: _named(table, names, contents, name) for role, name in vars(wanted).items() if name is not None}
    if ("first" in roles) != ("second" in roles):
        raise UnclearRoles(f"{table.path}: a pair needs both columns", "first", "second")
    _known(names, roles)
    notes = [taken_for_names(names)] if guessed else []
    if "label" not in roles or ("text" not in roles and "first" not in roles):
        notes += _by_content(table, names, contents, columns, roles)
    return roles, header, len(names), notes


def _names(table: Table, wanted: ColumnNames) -> tuple[tuple[str, ...], bool, bool]:
    """Column names; whether the first row holds them; whether that was only guessed."""
    if table.names is not None:
        return table.names, False, False
    top = tuple(str(cell).strip() for cell in table.rows[0][1])
    asked = {name for name in vars(wanted).values() if name is not None}
    known = {*TEXT_NAMES, *LABEL_NAMES, *SPLIT_NAMES, *(name for pair in SENTENCE_NAMES for name in pair)}
    hits = [name for name in top if name in asked or plain_name(name) in known]
    distinct = len(set(top)) == len(top) and not any(as_number(cell) is not None for cell in top)
    short = table.rows[0][0] == table.top and distinct and all(cell and len(cell.split()) <= 3 for cell in top)
    if short and hits:
        return top, True, False
    names, header, guessed = name_columns(table)
    if short and not (header or asked) and _is_no_class(table.rows):
        return top, True, True
    return names, header, guessed


def _is_no_class(rows: tuple[tuple[int, tuple], ...]) -> bool:
    """Whether the first row of a table holds a label that no other row has, where every other label repeats.

    In a table of few rows it could be a class of one row: as many rows as `FEW` must lie below it.
    """
    top, *below = (tuple(str(cell).strip() for cell in cells) for _, cells in rows)
    below = [cells for cells in below if len(cells) == len(top)]
    counts = [Counter(column) for column in zip(*below, strict=True)] if len(below) >= FEW else []
    return any(
        name not in labels and len(labels) > 1 and min(labels.values()) > 1
        for name, labels in zip(top, counts, strict=False)
    )


def _named(table: Table, names: tuple[str, ...], contents: list[str], name: str) -> int:
    same = [i for i, own in enumerate(names) if own == name] or [
        i for i, own in enumerate(names) if plain_name(own) == plain_name(name)
    ]
    if len(same) != 1:
        problem = "no column" if not same else "two columns"
        raise DataError(f"{table.path}: {problem} named {name!r}; columns found: {listed(table, names, contents)}")
    return same[0]


def _known(names: tuple[str, ...], roles: dict[str, int]) -> None:
    """Add the roles whose column has a usual name."""
    plain = [plain_name(name) for name in names]
    free = {name: i for i, name in reversed(list(enumerate(plain))) if i not in roles.values()}

    def take(role: str, choices: Iterable[str]) -> None:
        place = next((free[name] for name in choices if name in free), None)
        if role not in roles and place is not None:
            roles[role] = place

    if "text" not in roles and "first" not in roles:
        pair = next(((a, b) for a, b in SENTENCE_NAMES if a in free and b in free), None)
        if pair:
            roles["first"], roles["second"] = free[pair[0]], free[pair[1]]
        else:
            take("text", TEXT_NAMES)
    free = {name: i for name, i in free.items() if i not in roles.values()}
    take("label", LABEL_NAMES)
    free = {name: i for name, i in free.items() if i not in roles.values()}
    take("split", SPLIT_NAMES)


def _by_content(table: Table, names, contents: list[str], columns: list[list], roles: dict[str, int]) -> list[str]:
    """Find a label that repeats and a text that does not, where just one choice is left; DataError otherwise."""
    free = [i for i in range(len(names)) if i not in roles.values()]
    kinds = {i: len({str(cell).strip() for cell in columns[i]}) for i in free}
    repeats = [i for i in free if contents[i] in ("text", "number") and 2 <= kinds[i] <= max(2, len(columns[i]) // 2)]
    if "label" not in roles and len(repeats) == 1:
        roles["label"] = repeats[0]
    texts = [i for i in free if contents[i] == "text" and i not in roles.values()]
    texts = texts if len(texts) == 1 else [i for i in texts if i not in repeats]
    if "text" not in roles and "first" not in roles and len(texts) == 1:
        roles["text"] = texts[0]
    if "label" not in roles or ("text" not in roles and "first" not in roles):
        raise UnclearRoles(
            f"{table.path}: columns found: {listed(table, names, contents)}; a text and a label are needed, or two "
            "texts and a label: name them text and label, or say which they are",
            "text",
            "first",
            "second",
            "label",
        )
    chosen = ", ".join(f"{role} {names[place]!r}" for role, place in sorted(roles.items()))
    row = "; the first line is read as a row" if names == unnamed(len(names)) else ""
    return [f"columns recognised by content: {chosen}{row}"]


# ----------------------------------------------------------------------------------------------- bundled examples


def _demo_tasks() -> tuple[LabelledInfo, ...]:
    table = DEMO_FOLDER / "labelled" / "speech_acts.tsv"
    pairs = tuple((file, "") for file in sorted(DEMO_FOLDER.glob("*.tsv")))
    return (
        LabelledInfo("act", "Speech acts", "demo", ((table, ""),), False),
        LabelledInfo("domain", "Domains", "demo", ((table, ""),), False),
        LabelledInfo("related", "Related pairs", "demo", pairs, True),
    )


def _demo_texts(info: LabelledInfo, positive: str | None) -> LabelledTexts:
    rows, problems, notes = _read_tables(info.parts, ColumnNames(text="text", label=info.name, split="split"))
    return _assemble(info, rows, problems, notes, None, positive)


def _demo_pairs(info: LabelledInfo, positive: str | None) -> LabelledTexts:
    pairs = load(DEMO)
    labels = ["related" if gold >= CUT else "apart" for gold in pairs.gold]
    rows = [LabelledRow(*row, "") for row in zip(pairs.first, pairs.second, labels, strict=True)]
    note = f"label made from the gold score: related from {CUT:g} on, apart below"
    return _assemble(info, rows, [], [note], None, positive or "related")


_DEMO = {"act": _demo_texts, "domain": _demo_texts, "related": _demo_pairs}
