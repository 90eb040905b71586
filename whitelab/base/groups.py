"""Values by what they have in common."""

from collections.abc import Hashable, Iterable
from typing import TypeVar

Key, Value = TypeVar("Key", bound=Hashable), TypeVar("Value")


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """The values of each key, keys and values in the order in which they come."""
    found: dict[Key, list[Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
