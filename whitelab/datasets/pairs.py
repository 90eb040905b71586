"""What a set of scored sentence pairs is, and how its problems are told."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from whitelab.base.groups import grouped
from whitelab.base.lazy import cached_property
from whitelab.base.wording import quantity

REPEATS = 0.1  # share of rows that repeat another, above which a reader is told; in STS12 it is 0.07
SPLITS = ("train", "dev", "test")  # of published data
NOT_A_NUMBER = "is not a number"  # of a cell, at the end of a `Problem`'s reason
_VALUES = re.compile(r"""['"].*(?:['"]|\.\.\.)|\d+""")  # what differs between reasons of one kind; long ones are cut
MANY_GROUPS = 12  # with whole numbers in order: a scale of so many steps is hardly sorted, and has them all
SCALE = (0.0, 5.0)  # the STS scale; other ranges are accepted and noted, since Spearman reads order only


class DataError(ValueError):
    """A problem with the data that its owner can solve; the message is one line: what, where, what to do."""


@dataclass(frozen=True)
class Problem:
    """One row that cannot be used. `line` counts from 1; in a Parquet file it is the row."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


def by_kind(problems: Iterable[Problem]) -> list[list[Problem]]:
    """The problems whose reasons differ only in quoted values and numbers, the commonest kind first."""
    kinds = grouped((_VALUES.sub("", problem.reason), problem) for problem in problems)
    return sorted(kinds.values(), key=len, reverse=True)


class MalformedRows(DataError):
    """Rows that cannot be used, all of them in `problems`; of more than three the message shows one of each kind.

    `remedy` is the advice that closes the message.
    """

    KEEP_THE_REST = "fix them, or keep the rest with keep_going=True"
    NOTHING_LEFT = "no row is left to keep"
    NO_NUMBERS = "no row is left to keep: write scores as numbers, or give pairs with labels to the probe"

    def __init__(self, problems: Iterable[Problem], remedy: str = KEEP_THE_REST):
        self.problems = tuple(problems)
        self.remedy = remedy
        count = len(self.problems)
        shown = [str(problem) for problem in self.problems]
        if count > 3:
            shown = [f"{kind[0]} ({quantity(len(kind), 'such row')})" for kind in by_kind(self.problems)]
            shown[5:] = ["..."] if len(shown) > 5 else []
        super().__init__(f"{quantity(count, 'malformed row')}: {'; '.join(shown)}; {remedy}")

    def __reduce__(self):
        return MalformedRows, (self.problems, self.remedy)


def check_rows(rows: Sequence, problems: Sequence[Problem], keep_going: bool) -> None:
    """Raise MalformedRows where no row is left, and for `problems` unless the rest is to be kept."""
    if rows and (keep_going or not problems):
        return
    if rows:
        raise MalformedRows(problems)
    labels = problems and all(one.reason.endswith(NOT_A_NUMBER) for one in problems)
    raise MalformedRows(problems, MalformedRows.NO_NUMBERS if labels else MalformedRows.NOTHING_LEFT)


@dataclass(frozen=True, eq=False)
class SentencePairs:
    """p scored sentence pairs of one task, as its files have them.

    first, second: p stripped sentences each. gold: float64 [p], not rescaled, -0 as 0. subset: int64 [p], index into
    subset_names; a task without subsets has its own name as the only one. split: train, dev, test or all.
    source: what to show on screen. published: whether this is a known benchmark. notes: what a reader of a
    score should know. problems: rows left out because the caller asked for the rest. Arrays are read-only copies;
    DataError when the parts do not fit together.
    """

    task: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    gold: np.ndarray
    subset: np.ndarray
    subset_names: tuple[str, ...]
    split: str = "all"
    source: str = ""
    published: bool = False
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    def __post_init__(self) -> None:
        for name in ("first", "second", "subset_names", "notes"):
            object.__setattr__(self, name, check_texts(self.task, name, getattr(self, name)))
        object.__setattr__(self, "problems", tuple(self.problems))
        gold = check_numbers(self.task, "gold", self.gold)
        object.__setattr__(self, "gold", frozen(gold + 0.0, np.float64))  # of -0.0 a 0.0
        object.__setattr__(self, "subset", check_whole_numbers(self.task, "subset", self.subset))
        check_distinct(self.task, "subset_names", self.subset_names)
        self._check()

    def __repr__(self) -> str:
        return f"SentencePairs({self.task!r}, split={self.split!r}, {self.n_pairs} pairs)"

    def _check(self) -> None:
        pairs = len(self.first)
        if pairs == 0:
            raise DataError(f"{self.task}: at least one pair is needed, got none")
        sizes = {"second": len(self.second), "gold": self.gold.shape, "subset": self.subset.shape}
        wanted = {"second": pairs, "gold": (pairs,), "subset": (pairs,)}
        for name, size in sizes.items():
            if size != wanted[name]:
                raise DataError(f"{self.task}: {name} has size {size} but first holds {pairs} sentences")
        if not np.isfinite(self.gold).all():
            raise DataError(f"{self.task}: gold must be finite in every row")
        if self.subset.min() < 0 or self.subset.max() >= len(self.subset_names):
            raise DataError(f"{self.task}: subset must index the {len(self.subset_names)} subset_names")

    @property
    def n_pairs(self) -> int:
        return len(self.first)

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The n unique sentences, by first appearance, pair by pair and first before second."""
        return tuple(self._rows_of_sentences)

    @cached_property
    def first_index(self) -> np.ndarray:
        """int64 [p]: the row of each pair's first sentence in `sentences`."""
        return frozen([self._rows_of_sentences[sentence] for sentence in self.first], np.int64)

    @cached_property
    def second_index(self) -> np.ndarray:
        """int64 [p]: the row of each pair's second sentence in `sentences`."""
        return frozen([self._rows_of_sentences[sentence] for sentence in self.second], np.int64)

    @cached_property
    def counts(self) -> np.ndarray:
        """int64 [n]: how often each of `sentences` occurs over both columns; sums to 2p."""
        occurrences = np.concatenate([self.first_index, self.second_index])
        return frozen(np.bincount(occurrences, minlength=len(self.sentences)), np.int64)

    @cached_property
    def gold_by_sentence(self) -> np.ndarray:
        """float64 [n]: the mean gold score of the pairs that each of `sentences` is in."""
        rows = np.concatenate([self.first_index, self.second_index])
        total = np.bincount(rows, weights=np.tile(self.gold, 2), minlength=len(self.sentences))
        return frozen(total / self.counts, np.float64)

    @cached_property
    def subset_by_sentence(self) -> tuple[str, ...]:
        """n names: the subset in which each of `sentences` occurs first."""
        rows = np.concatenate([self.first_index, self.second_index])
        first = dict(zip(rows[::-1].tolist(), np.tile(self.subset, 2)[::-1].tolist(), strict=True))
        return tuple(self.subset_names[first[row]] for row in range(len(self.sentences)))

    @cached_property
    def fingerprint(self) -> str:
        """Hex SHA-256 of sentences, gold scores, subsets and their names, in order: what decides a score.

        A lone subset has the name of its task, which a file has from where it lies, and decides nothing.
        """
        return self._digest(self.subset_names if len(self.subset_names) > 1 else ())

    @property
    def fingerprint_with_name(self) -> str:
        """`fingerprint` with a lone subset's name in it, which runs have that were begun before it was left out."""
        return self._digest(self.subset_names)

    def _digest(self, names: Sequence[str]) -> str:
        digest = hashlib.sha256()
        for texts in (self.first, self.second, names):
            hash_texts(digest, texts)
        digest.update(self.gold.astype("<f8").tobytes())
        digest.update(self.subset.astype("<i8").tobytes())
        return digest.hexdigest()

    @cached_property
    def _rows_of_sentences(self) -> dict[str, int]:
        return places(self.first, self.second)


def check_texts(task: str, name: str, values: Iterable[str]) -> tuple[str, ...]:
    """`values` as a tuple. Raises DataError for one text in their place, and for a value that is none."""
    if isinstance(values, str):
        raise DataError(f"{task}: {name} must hold several texts, got one: {values[:60]!r}")
    values = tuple(values)
    for row, value in enumerate(values):
        if not isinstance(value, str):
            raise DataError(f"{task}: {name} must hold texts, row {row} holds {value!r}")
    return values


def check_whole_numbers(task: str, name: str, values) -> np.ndarray:
    """A read-only int64 copy. Raises DataError where a value is no whole number."""
    numbers = check_numbers(task, name, values)
    wrong = numbers[~(np.isfinite(numbers) & (numbers == np.floor(numbers)))]
    if wrong.size:
        raise DataError(f"{task}: {name} must hold whole numbers, got {wrong[0]:g}")
    return frozen(numbers, np.int64)


def check_distinct(task: str, name: str, values: Sequence[str]) -> None:
    """Raise DataError where two are equal."""
    if len(set(values)) < len(values):
        twice = next(value for value in values if values.count(value) > 1)
        raise DataError(f"{task}: {name} must differ from each other, got {twice!r} twice")


def check_numbers(task: str, name: str, values) -> np.ndarray:
    """The values as float64. Raises DataError where one is no number."""
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{task}: {name} must hold numbers") from None


def places(*columns: Sequence[str]) -> dict[str, int]:
    """The unique texts of columns of one length, by first appearance and row by row, each with its place among them."""
    found: dict[str, int] = {}
    for row in zip(*columns, strict=True):
        for text in row:
            found.setdefault(text, len(found))
    return found


def hash_texts(digest, texts: Sequence[str]) -> None:
    """Add texts to a `hashlib` digest, with their number and lengths, which keep ("ab", "c") from ("a", "bc")."""
    digest.update(len(texts).to_bytes(8, "little"))
    for text in texts:
        encoded = text.encode("utf-8")
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)


def gold_notes(gold: np.ndarray, subset: np.ndarray, subset_names: tuple[str, ...]) -> tuple[str, ...]:
    """What a reader of a Spearman should know about the gold scores: too few, constant, another range."""
    notes, gold = [], gold + 0.0  # which makes -0 a 0
    if len(gold) == 1:
        notes.append("one pair only: Spearman is undefined")
    elif gold.min() == gold.max():
        notes.append(f"every gold score is {gold[0]:g}: Spearman is undefined")
    elif len(subset_names) > 1:
        present = [gold[subset == index] for index in range(len(subset_names))]
        flat = [name for name, part in zip(subset_names, present, strict=True) if len(part) and np.ptp(part) == 0]
        if flat:
            notes.append(f"one gold score throughout, so Spearman is undefined, in: {', '.join(flat)}")
    steps = np.diff(gold)
    if len(gold) >= MANY_GROUPS and ((steps > 0).all() or (steps < 0).all()) and (gold == gold.round()).all():
        ends = f"from {gold[0]:g} to {gold[-1]:g}"
        notes.append(f"gold scores are whole numbers in order, {ends}, as rows are numbered: they may be no scores")
    if gold.min() < SCALE[0] or gold.max() > SCALE[1]:
        notes.append(
            f"gold scores run from {gold.min():g} to {gold.max():g}, "
            f"outside the STS scale of {SCALE[0]:g} to {SCALE[1]:g}"
        )
    return tuple(notes)


def repeat_note(pairs: Iterable[tuple[Hashable, Hashable]]) -> str:
    """What a reader of an interval should know of pairs that are there again, either way round; empty for a few."""
    return repeats_note([frozenset(pair) for pair in pairs], "pairs", "another, either way round")


def repeats_note(rows: Sequence[Hashable], what: str, other: str) -> str:
    """The same of any rows, called `what`, that repeat the `other`."""
    again = len(rows) - len(set(rows))
    if again <= len(rows) * REPEATS:
        return ""
    return (
        f"{again} of {len(rows)} {what} repeat {other}: each counts, so intervals and tests promise more than "
        f"{len(rows) - again} different {what} can keep"
    )


def frozen(values, dtype) -> np.ndarray:
    """A copy that cannot be written to."""
    array = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array
