"""Pairs in memory under a name, which `discover` and `load` take where they take a path."""

from __future__ import annotations

import secrets
from weakref import WeakValueDictionary

from whitelab.datasets.pairs import SentencePairs

PREFIX = "memory:"
_HELD: WeakValueDictionary[str, SentencePairs] = WeakValueDictionary()


def hold(pairs: SentencePairs) -> str:
    """A new name for these pairs, for as long as someone keeps them; nobody can guess it who was not told."""
    name = PREFIX + secrets.token_hex(16)
    _HELD[name] = pairs
    return name


def pairs_in_memory(name: object) -> SentencePairs | None:
    """The pairs of a name that `hold` gave; None for anything else, and for what has been let go."""
    return _HELD.get(name) if isinstance(name, str) and name.startswith(PREFIX) else None
