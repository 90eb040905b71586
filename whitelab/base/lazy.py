"""Attributes computed at the first look."""

import threading
from collections.abc import Callable
from typing import Any


class cached_property:  # noqa: N801
    """`functools.cached_property` with a lock an instance, in place of one a class (Python 3.11) or none (3.12).

    Two threads that look at the same attribute of one object compute it once; those that look at it of another object
    do not wait for them.
    """

    def __init__(self, compute: Callable[[Any], Any]) -> None:
        self.compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """The value, from then on an attribute of the instance like any other."""
        if instance is None:
            return self
        attributes, busy = vars(instance), f"{self.name} under way"
        with attributes.setdefault(busy, threading.RLock()):
            try:
                if self.name not in attributes:
                    attributes[self.name] = self.compute(instance)
            finally:
                attributes.pop(busy, None)  # who waits for this lock still finds the value
        return attributes[self.name]
