"""What labelled texts are, and a task of them that can be loaded."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from whitelab.base.lazy import cached_property
from whitelab.datasets.pairs import (
    SPLITS,
    DataError,
    Problem,
    check_distinct,
    check_texts,
    check_whole_numbers,
    hash_texts,
    places,
)
from whitelab.datasets.uploads import File


@dataclass(frozen=True)
class LabelledInfo:
    """A task that can be loaded: its files with the split each holds ("" where a column or nothing says it).

    layout: senteval, table or demo. pairs is None for a table, where only reading tells.
    """

    name: str
    title: str
    layout: str
    parts: tuple[tuple[File, str], ...]
    pairs: bool | None = None

    @property
    def files(self) -> tuple[File, ...]:
        return tuple(path for path, _ in self.parts)


@dataclass(frozen=True, eq=False)
class LabelledTexts:
    """n texts, or n pairs of texts, each with the number of its class and the name of its split.

    second is None for single texts. y: int64 [n], index into classes. split: train, dev or test a row, "" in data
    without splits. positive: the class that says yes, for two texts and where one is known to. layout: senteval,
    table or demo. blank: rows of SentEval's whose line was empty, which is read as a full stop and counts as no word.
    Otherwise as `SentencePairs`.
    """

    task: str
    first: tuple[str, ...]
    second: tuple[str, ...] | None
    y: np.ndarray
    classes: tuple[str, ...]
    split: tuple[str, ...]
    positive: int | None = None
    layout: str = "table"
    blank: tuple[int, ...] = ()
    title: str = ""
    source: str = ""
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    def __post_init__(self) -> None:
        for name in ("first", "second", "classes", "split", "notes"):
            if name != "second" or self.second is not None:
                object.__setattr__(self, name, check_texts(self.task, name, getattr(self, name)))
        object.__setattr__(self, "y", check_whole_numbers(self.task, "y", self.y))
        check_distinct(self.task, "classes", self.classes)
        n, y = len(self.first), self.y
        sizes = {"y": len(y), "split": len(self.split), "second": n if self.second is None else len(self.second)}
        for name, size in sizes.items():
            if size != n:
                raise DataError(f"{self.task}: {name} has size {size} but first holds {n} texts")
        if n == 0:
            raise DataError(f"{self.task}: at least one row is needed, got none")
        if y.min() < 0 or y.max() >= len(self.classes):
            raise DataError(f"{self.task}: y must index the {len(self.classes)} classes")
        if unknown := next((split for split in self.split if split not in (*SPLITS, "")), None):
            names = f"{', '.join(SPLITS)}, or '' in data without"
            raise DataError(f"{self.task}: split must hold {names}, got {unknown[:40]!r}")
        if self.positive is not None and self.positive not in range(len(self.classes)):
            raise DataError(f"{self.task}: positive={self.positive!r} must index the {len(self.classes)} classes")

    @property
    def n_rows(self) -> int:
        return len(self.first)

    @property
    def pairs(self) -> bool:
        """Whether a row is two texts."""
        return self.second is not None

    @property
    def scored_split(self) -> str | None:
        """The split that is scored: test, dev where there is none, None in data without either."""
        return next((name for name in ("test", "dev") if name in self.split), None)

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The unique texts by first appearance, row by row and first before second."""
        return tuple(self._places)

    @cached_property
    def first_index(self) -> np.ndarray:
        """int64 [n]: the row of each first text in `sentences`."""
        return np.array([self._places[text] for text in self.first], np.int64)

    @cached_property
    def second_index(self) -> np.ndarray:
        """int64 [n]: the row of each second text in `sentences`; of the first once more for single texts."""
        return np.array([self._places[text] for text in self.second or self.first], np.int64)

    @cached_property
    def fingerprint(self) -> str:
        """Hex SHA-256 of everything that decides a score."""
        digest = hashlib.sha256(self.layout.encode())
        for texts in (self.first, self.second or (), self.classes, self.split):
            hash_texts(digest, texts)
        digest.update(self.y.astype("<i8").tobytes())
        digest.update(repr(self.positive).encode())
        if self.blank:
            digest.update(repr(self.blank).encode())
        return digest.hexdigest()

    def rows(self, split: str) -> np.ndarray:
        """int64 indices of the rows of a split, in order."""
        return np.flatnonzero(np.array(self.split) == split)

    @cached_property
    def _places(self) -> dict[str, int]:
        return places(self.first) if self.second is None else places(self.first, self.second)


class LabelledRow(NamedTuple):
    first: str
    second: str | None
    label: str
    split: str
    blank: bool = False
