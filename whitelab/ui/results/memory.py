"""What is kept for all visitors, in one budget of bytes: embeddings, results, jobs, data that were read, models.

The least recently used makes way, whatever it is. What someone still holds, a run that draws it or work that needs it,
is found again for as long as it lives, although it made way: to let go of it would free nothing.
"""

import logging
import threading
import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import streamlit as st

from whitelab.base.budget import SHARE, budget, total_memory
from whitelab.base.machine import collect_rarely, keep_freed_memory
from whitelab.base.threads import share
from whitelab.ui.results.sizes import size_of

Key = tuple[str, Hashable]  # a kind, and a name within it

MEASURED_SECONDS = 5.0  # how often a value that grows is measured: embeddings with all their moments take 8 ms
OVERHEAD = 1000  # bytes of an entry beside its value: its key, its place

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class _Entry:
    value: Any
    size: int
    grows: bool
    drop: Callable[[], None] | None
    measured: float


class _Turn:
    """Work that is under way: who asks for the same meanwhile waits for it."""

    def __init__(self) -> None:
        self.ended, self.made = threading.Event(), False
        self.value: Any = None


class Memory:
    """Values by kind and name, the least recently used first, all together at most `most` bytes.

    Of each kind the one used last stays, however large: else what a page has just asked for would be gone by the next
    click. So the total is at most `most`, or what the last of each kind take.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.most, self._clock = most, clock
        self._entries: dict[Key, _Entry] = {}  # in order of use
        self._last: dict[str, Key | None] = {}  # of each kind, the one used last
        self._alive: WeakValueDictionary[Key, Any] = WeakValueDictionary()
        self._turns: dict[Key, _Turn] = {}
        self._total = 0
        self._lock = threading.RLock()

    @property
    def total(self) -> int:
        """Bytes of all that is kept, as far as known."""
        return self._total

    def get(self, key: Key, default: Any = None) -> Any:
        """The value of this key, used now; `default` where there is none or it had to make way."""
        with self._lock:
            entry = self._touched(key)
            if entry and not (entry.grows and self._clock() - entry.measured >= MEASURED_SECONDS):
                return entry.value
            found = entry.value if entry else self._alive.get(key, default)
        if found is default:
            return default
        return self.put(key, found, grows=True)  # measured anew; one that made way and is still held is taken back

    def put(
        self,
        key: Key,
        value: Any,
        *,
        size: int | None = None,
        grows: bool = False,
        drop: Callable[[], None] | None = None,
    ) -> Any:
        """Keep `value` under `key`, and return it; of two that are made at once the first stays.

        Its `size` in bytes is measured where it is not given, and where it `grows` again now and then when it is used.
        `drop()` is called once it makes way.
        """
        size = OVERHEAD + (size_of(value) if size is None else size)
        with self._lock:
            entry = self._touched(key)
            if entry is None:
                entry = self._entries[key] = _Entry(value, size, grows, drop, self._clock())
                self._total += size
                with suppress(TypeError):  # no weak reference to such a value
                    self._alive[key] = value
            elif entry.value is value:
                self._total += size - entry.size
                entry.size, entry.measured = size, self._clock()
            self._last[key[0]] = key
            gone = self._make_room()
        for one in gone:
            one()
        return entry.value

    def made(self, key: Key, make: Callable[[], Any], grows: bool = False) -> Any:
        """The value of this key, by `make()` where there is none; those who ask at once share one call.

        Raises what `make` raises, and keeps nothing then: the next who asks tries anew.
        """
        while (found := self.get(key, self)) is self:
            with self._lock:
                turn = self._turns.get(key)
                first = turn is None
                if first:
                    if key in self._entries:  # made between the look and now
                        continue
                    turn = self._turns[key] = _Turn()
            if first:
                return self._make(key, make, grows, turn)
            turn.ended.wait()
            if turn.made:
                return turn.value
        return found

    def touch(self, key: Key) -> None:
        """Count the value of this key as used now."""
        with self._lock:
            self._touched(key)

    def remove(self, key: Key) -> None:
        """Let go of the value of this key."""
        with self._lock:
            self._alive.pop(key, None)
            self._pop(key)

    def _make(self, key: Key, make: Callable[[], Any], grows: bool, turn: _Turn) -> Any:
        try:
            with share():
                turn.value = self.put(key, make(), grows=grows)
            turn.made = True
            return turn.value
        finally:
            with self._lock:
                del self._turns[key]
            turn.ended.set()

    def _touched(self, key: Key) -> _Entry | None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._entries[key] = entry
            self._last[key[0]] = key
        return entry

    def _pop(self, key: Key) -> _Entry | None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._total -= entry.size
            if self._last[key[0]] == key:
                self._last[key[0]] = next((one for one in reversed(self._entries) if one[0] == key[0]), None)
        return entry

    def _make_room(self) -> list[Callable[[], None]]:
        """Drop the least recently used until all fits; what is to be called for them, outside the lock."""
        gone = []
        if self._total > self.most:
            for key in [one for one in self._entries if self._last.get(one[0]) != one]:
                entry = self._pop(key)
                gone += [entry.drop] if entry.drop else []
                if self._total <= self.most:
                    break
        return gone


@st.cache_resource(show_spinner=False)
def memory() -> Memory:
    """The memory of this process, shared by every visitor."""
    keep_freed_memory()
    collect_rarely()
    try:
        return Memory(budget())
    except ValueError as error:  # `whitelab app` refuses it before it starts; a visitor could not mend it
        _log.warning("%s; a quarter of the machine's memory is used", error)
        return Memory(total_memory() // SHARE)
