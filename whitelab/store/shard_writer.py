"""Vectors on their way into spaces of the store, written beside whoever makes them."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from whitelab.store.embedding_store import Space, StoreError


class ShardWriter:
    """Gathers rows for several `spaces` into shards, and writes each space's in a thread of its own.

    A shard holds `sentences` of them, or what has come in `seconds`. While one is written the next is gathered: a kill
    loses these two, and each space has two tables of `sentences` rows. Leaving writes what has come until then.
    `refused` says what the store could not take; any other error of a thread is raised with the next shard, once the
    other spaces have theirs.
    """

    def __init__(self, spaces: Mapping[str, Space], sentences: int, seconds: float):
        self.spaces, self.sentences, self.seconds = spaces, sentences, seconds
        self.refused: list[str] = []
        self._texts: list[str] = []
        self._marks: dict[int, int] = {}
        self._gathered: dict[str, np.ndarray] = {}
        self._spare: dict[str, np.ndarray] = {}
        self._under_way: dict[str, Future[np.ndarray]] = {}

    def __enter__(self) -> "ShardWriter":
        self._threads = {name: ThreadPoolExecutor(1) for name in self.spaces}
        self._since = time.perf_counter()
        return self

    def __exit__(self, *_) -> None:
        try:
            self._hand_over()
            self._collect()
        finally:
            for thread in self._threads.values():
                thread.shutdown()

    def add(self, texts: Sequence[str], values: Mapping[str, np.ndarray], marks: Mapping[int, int]) -> None:
        """The next rows: unique `texts`, and for every space float32 `[b, l, d]`, which is copied.

        `marks` are as `Space.write` takes them.
        """
        start = 0
        while self.spaces and start < len(texts):
            here = len(self._texts)
            end = min(len(texts), start + self.sentences - here)
            for name in self.spaces:
                rows = values[name][start:end].transpose(1, 0, 2)
                if name not in self._gathered:
                    self._gathered[name] = np.empty((len(rows), self.sentences, rows.shape[2]), np.float32)
                self._gathered[name][:, here : here + end - start] = rows
            self._texts += texts[start:end]
            self._marks |= {here + i - start: marks[i] for i in range(start, end) if i in marks}
            start = end
            if len(self._texts) == self.sentences or time.perf_counter() - self._since > self.seconds:
                self._hand_over()

    def _hand_over(self) -> None:
        """Let every thread write what was gathered, once it has written what it has."""
        self._collect()
        texts, marks = self._texts, self._marks
        self._texts, self._marks, self._since = [], {}, time.perf_counter()
        if texts:
            for name, rows in self._gathered.items():
                self._under_way[name] = self._threads[name].submit(self._write, self.spaces[name], texts, rows, marks)
            self._gathered, self._spare = self._spare, {}

    def _collect(self) -> None:
        """Wait for the threads, whose tables are free again; the first of their errors is raised."""
        under_way, self._under_way = self._under_way, {}
        errors = {name: one.exception() for name, one in under_way.items()}
        self._spare = {name: one.result() for name, one in under_way.items() if errors[name] is None}
        for error in filter(None, errors.values()):
            raise error

    def _write(self, space: Space, texts: list[str], rows: np.ndarray, marks: dict[int, int]) -> np.ndarray:
        """Write one shard of one space; returns its table."""
        try:
            space.write(texts, rows[:, : len(texts)].transpose(1, 0, 2), marks)
        except StoreError as error:
            self.refused.append(str(error))
        return rows
