"""Embeddings, shared by all visitors: what is large and asked for by every page, apart from the jobs that make it."""

import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import streamlit as st

from whitelab.base.progress import Progress
from whitelab.datasets import DataError
from whitelab.ui.results.jobs import FIRST_SECONDS, jobs, wait
from whitelab.ui.results.memory import Memory, memory

KIND = "embeddings"
HEIGHT = 170  # pixels of a panel that stands for embeddings


class Shelf:
    """Embeddings by name, kept in `memory`; a value knows its name as long as anyone holds it."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._names: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def get(self, name: str) -> Any | None:
        """The value of this name, None where it was never put here or had to make way."""
        return self._memory.get((KIND, name))

    def put(self, name: str, value: Any) -> Any:
        """Keep `value` under `name`, and return it; of two that are made at once the first stays."""
        # What is derived of embeddings, their moments first of all, is kept with them.
        return self.call(self._memory.put((KIND, name), value, grows=True), name)

    def call(self, value: Any, name: str) -> Any:
        """Give `value` a name without keeping it, and return it: for what is part of others or quickly made."""
        with self._lock:
            self._names[value] = name
        return value

    def remove(self, name: str) -> None:
        """Let go of the value of this name."""
        self._memory.remove((KIND, name))

    def name(self, value: Any) -> str:
        """The name under which a value was put here. Raises KeyError for one that never was."""
        return self._names[value]

    def named(self, value: Any) -> bool:
        """Whether a value was ever put here."""
        try:
            return value in self._names
        except TypeError:  # not hashable, or no weak reference to it
            return False


@st.cache_resource(show_spinner=False)
def shelf() -> Shelf:
    """The shelf of this process, shared by every visitor."""
    return Shelf(memory())


def shelved(name: str, title: str, work: Callable[[Progress], Any], unit: str, *, key: str) -> Any | None:
    """The value `name` from the shelf, else by the job that makes it; None after drawing how far that job is.

    Raises DataError where the work was refused for it at once: pages say it in their own words, and the next run tries
    anew.
    """
    value = shelf().get(name)
    if value is not None:
        return value
    job = jobs().submit(f"shelf/{name}", title, lambda progress: shelf().put(name, work(progress)), unit)
    if job.join(FIRST_SECONDS - job.age) and isinstance(job.error, DataError):
        jobs().forget(job.key)
        raise job.error
    value = wait(job, key=key, height=HEIGHT, quick=FIRST_SECONDS)
    if value is not None:
        jobs().forget(job.key)  # the shelf has it now, and lets go of it when it must
    return value
