"""Loading a task: choose it, read its files, say what was noticed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from whitelab.base.wording import quantity
from whitelab.datasets.columns import (
    ROLES,
    Columns,
    Row,
    chosen_columns,
    find_columns,
    names_pairs,
    read_rows,
    read_texts,
)
from whitelab.datasets.in_memory import pairs_in_memory
from whitelab.datasets.layouts import (
    BUNDLED_SETS,
    DEMO,
    PUBLISHED_PAIRS,
    Part,
    TaskInfo,
    choose,
    discover,
    existing_path,
)
from whitelab.datasets.pairs import SPLITS, DataError, Problem, SentencePairs, check_rows, gold_notes, repeat_note
from whitelab.datasets.tables import Table, read_lines, read_scored, read_table
from whitelab.datasets.uploads import Upload

# Layouts without column names. Columns 0-3 of whiteningbert are padding; the genre in STS-B is no subset, and what
# follows its sentences in the published files says where they are from.
FIXED = {
    "whiteningbert": ("\t", Columns(first=5, second=6, score=4, width=7)),
    "stsbenchmark": ("\t", Columns(first=5, second=6, score=4, width=7, longer=True)),
    "stsb": (",", Columns(first=0, second=1, score=2, width=3)),
}
SCORED = Columns(first=0, second=1, score=2, width=3)
REJOINED = ("senteval", "stsbenchmark")  # SentEval splits these at white space and joins them with single blanks
MTEB_SICK = (
    "MTEB's test split of SICK-R is all of SICK, 9927 pairs, not the 4927 of its test set: its scores stand beside "
    "MTEB's, not beside the papers'"
)
DELIMITERS = {"sick": "\t"}


def load(
    data: str | Path,
    task: str | None = None,
    split: str = "test",
    *,
    columns: Sequence[str] = (),
    keep_going: bool = False,
) -> SentencePairs:
    """The sentence pairs of one task in a folder, a file, the bundled "demo" or a fetched source such as "senteval",
    or under a name that `hold` gave.

    task may be left out when there is only one. split: train, dev, test or all; data without splits answers
    to "test" as well, and says "all". columns: those of a table that hold the first sentence, the second and the
    score, by name, and a fourth that holds the subset if there is one; empty: find them by names or content.
    Malformed rows raise MalformedRows; with keep_going=True they are left out and listed in `problems`. DataError for
    everything else that its owner can solve.
    """
    info = choose(discover(data), task, data)
    split = _resolve(info, split)
    roles = _roles(info, columns)
    if (pairs := pairs_in_memory(data)) is not None:
        return pairs
    used, unused = _parts(info, split)
    notes: list[str] = list(info.notes)
    rows: list[Row] = []
    problems: list[Problem] = []
    for part in used:
        part_rows, part_problems, part_notes = _read(info, part, roles=roles)
        rows += part_rows
        problems += part_problems
        notes += [f"{part.path.name}: {note}" if len(used) > 1 else note for note in part_notes]
    check_rows(rows, problems, keep_going)
    notes.append(left_out_note(problems, rows))
    notes += [_compare(info, part, rows) for part in unused]
    notes.append(_size_note(info, split, len(rows)))
    source = _source(info, split, used) + f" ({', '.join(columns)})" * bool(columns)
    return assemble(info.name, rows, problems, notes, split, source, info.published)


def left_out_note(problems: Sequence[Problem], rows: Sequence) -> str:
    """A note on rows that were left out; empty when there are none."""
    return f"malformed rows left out: {len(problems)}, rows kept: {len(rows)}" if problems else ""


def load_sentences(
    data: str | Path, task: str | None = None, split: str = "test", *, keep_going: bool = False
) -> tuple[str, ...]:
    """The sentences of one task, each as often as it occurs: those of the pairs that `load` gives, or of tables whose
    names tell no scored pairs those that `columns.read_texts` finds. DataError as for load.
    """
    info = choose(discover(data), task, data)
    if info.layout in ("table", "mteb"):
        tables = {part: read_table(part.path) for part in _parts(info, _resolve(info, split))[0]}
        scored = all(map(names_pairs, tables.values()))
        found = [_read(info, *one)[:2] if scored else read_texts(one[1])[::2] for one in tables.items()]
        rows = [row for some, _ in found for row in some]
        check_rows(rows, [problem for _, problems in found for problem in problems], keep_going)
        if scored:
            return (*(row.first for row in rows), *(row.second for row in rows))
        return tuple(sentence for row in rows for sentence in row)
    pairs = load(data, task, split, keep_going=keep_going)
    return (*pairs.first, *pairs.second)


def load_text(path: str | Path | Upload) -> tuple[str, ...]:
    """The stripped sentences of a plain text file, one a line, without blank lines; DataError as for load."""
    path = path if isinstance(path, Upload) else existing_path(path, BUNDLED_SETS)
    if isinstance(path, Path) and not path.is_file():
        raise DataError(f"{path}: not a file; give a text file with one sentence a line")
    stripped = [line.strip() for line in read_lines(path)]
    for number, sentence in enumerate(stripped, start=1):
        if "\0" in sentence:
            raise DataError(f"{path}:{number}: the line holds a NUL byte (UTF-16 needs a byte-order mark)")
    sentences = tuple(sentence for sentence in stripped if sentence)
    if not sentences:
        raise DataError(f"{path}: the file holds no sentences")
    return sentences


def tabs_note(sentences: Sequence[str]) -> str:
    """What to know of lines of text that look like rows of a table, most of them with tabs; empty for any others."""
    tabbed = sum("\t" in sentence for sentence in sentences)
    if 2 * tabbed <= len(sentences):
        return ""
    return (
        f"{tabbed} of {len(sentences)} sentences hold tabs: a line of text is one sentence whole; give a table the "
        "extension .tsv, and names to its columns"
    )


def _resolve(info: TaskInfo, split: str) -> str:
    if split in info.splits:
        return split
    if info.splits == ("all",) and split == "test":
        return "all"
    raise DataError(f"{info.name} has no split {split!r}; it has: {', '.join(info.splits)}")


def _roles(info: TaskInfo, columns: Sequence[str]) -> dict[str, str]:
    """Which column has which role, for a table; empty where nothing is said."""
    names = isinstance(columns, list | tuple) and all(isinstance(name, str) for name in columns)
    if not names or len(columns) not in (0, 3, 4):
        raise DataError(
            f"columns={columns!r} must name three columns, of the first sentence, the second and the score, or four "
            "with that of the subset"
        )
    if columns and info.layout != "table":
        what = "the bundled pairs" if info.layout == DEMO else f"files in the layout {info.layout}"
        raise DataError(f"{info.name}: {what} have columns of their own, so columns={list(columns)!r} has no place")
    return dict(zip(ROLES, columns, strict=False))


def _parts(info: TaskInfo, split: str) -> tuple[list[Part], list[Part]]:
    """Files to read, and task files that repeat what subset files hold."""
    if split == "all" and info.splits != ("all",):
        chosen = [_parts(info, each) for each in SPLITS]
        return [part for used, _ in chosen for part in used], [part for _, rest in chosen for part in rest]
    parts = [part for part in info.parts if part.split == split]
    subsets = [part for part in parts if part.subset is not None]
    whole = [part for part in parts if part.subset is None]
    return (subsets, whole) if subsets else (whole, [])


def _read(
    info: TaskInfo, part: Part, table: Table | None = None, roles: Mapping[str, str] | None = None
) -> tuple[list[Row], list[Problem], tuple[str, ...]]:
    """The rows of a part, whose `table` may have been read already and whose columns' `roles` may have been said."""
    rows, problems, notes = _read_scored(part) if info.layout == "senteval" else _read_table(info, part, table, roles)
    if not rows and not problems:
        raise DataError(f"{part.path}: no pairs in this file")
    if part.subset is not None or info.layout != "table":
        rows = [row._replace(subset=part.subset) for row in rows]
    if info.layout in REJOINED:
        rows = [row._replace(first=" ".join(row.first.split()), second=" ".join(row.second.split())) for row in rows]
    return rows, problems, notes


def _read_scored(part: Part) -> tuple[list[Row], list[Problem], tuple[str, ...]]:
    if part.gold is None:
        raise DataError(f"{part.path}: STS.gs.{part.subset}.txt with its scores is not beside it")
    table, unscored = read_scored(part.path, part.gold)
    rows, problems = read_rows(table, SCORED)
    note = f"{quantity(unscored, 'pair')} without a gold score left out, as SentEval does"
    return rows, problems, (note,) if unscored else ()


def _read_table(
    info: TaskInfo, part: Part, table: Table | None, roles: Mapping[str, str] | None
) -> tuple[list[Row], list[Problem], tuple[str, ...]]:
    delimiter, columns = FIXED.get(info.layout, (DELIMITERS.get(info.layout), None))
    table = read_table(part.path, delimiter) if table is None else table
    if columns is None:
        if not table.rows and table.problems:
            return [], list(table.problems), ()
        columns = chosen_columns(table, **roles) if roles else find_columns(table)
    rows, problems = read_rows(table, columns)
    return rows, problems, columns.notes


def _compare(info: TaskInfo, part: Part, rows: list[Row]) -> str:
    """A note when the task file and its subset files are not the same pairs; empty when they are."""
    try:
        whole, problems, _ = _read(info, part)
    except DataError as error:
        return f"subset files used; the task file could not be compared: {error}"
    in_task, in_subsets = (Counter(row[:3] for row in each) for each in (whole, rows))
    only_task = (in_task - in_subsets).total() + len(problems)
    only_subsets = (in_subsets - in_task).total()
    if not only_task and not only_subsets:
        return ""
    return (
        f"subset files used; they differ from {part.path.name}: {only_task} of its rows are not in them, "
        f"{only_subsets} of theirs are not in it"
    )


def _size_note(info: TaskInfo, split: str, pairs: int) -> str:
    if info.layout == "mteb" and info.name == "sickr" and split == "test" and pairs == 9927:
        return MTEB_SICK
    wanted = [PUBLISHED_PAIRS.get((info.name, each)) for each in (SPLITS if split == "all" else (split,))]
    if not info.published or None in wanted or sum(wanted) == pairs:
        return ""
    return f"{info.title} {split} has {sum(wanted)} pairs as published, this is {pairs}"


def assemble(
    task: str,
    rows: Sequence[Row],
    problems: Sequence[Problem],
    notes: Sequence[str],
    split: str = "all",
    source: str = "",
    published: bool = False,
) -> SentencePairs:
    """Rows as the pairs of one task, their subsets by first appearance, with notes on gold scores and repetitions."""
    labels = [task if row.subset is None else row.subset for row in rows]
    names = tuple(dict.fromkeys(labels))
    position = {name: index for index, name in enumerate(names)}
    gold = np.array([row.gold for row in rows], np.float64)
    subset = np.array([position[label] for label in labels], np.int64)
    notes = (*notes, *gold_notes(gold, subset, names), repeat_note((row.first, row.second) for row in rows))
    return SentencePairs(
        task=task,
        first=tuple(row.first for row in rows),
        second=tuple(row.second for row in rows),
        gold=gold,
        subset=subset,
        subset_names=names,
        split=split,
        source=source,
        published=published,
        notes=tuple(note for note in notes if note),
        problems=tuple(problems),
    )


def _source(info: TaskInfo, split: str, used: list[Part]) -> str:
    count = len(used)
    if used[0].subset is not None:
        return f"{info.name}, {quantity(count, 'subset file')}"
    if info.layout in ("table", DEMO):
        return used[0].path.name
    return f"{info.name} {split}, {', '.join(part.path.name for part in used)}"
