"""How far long work is: a callback that its caller may draw, print or use to stop it."""

from collections.abc import Callable

Progress = Callable[[int, int], None]  # called with (done, total)
