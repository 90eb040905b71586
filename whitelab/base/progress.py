"""How far long work is: a callback that its caller may draw, print or use to stop it."""

from collections.abc import Callable

Progress = Callable[[int, int], None]  # called with (done, total)


def share(progress: Progress, before: int, part: int, total: int) -> Progress:
    """A callback for `part` of the work, after `before` of it, that reports to the callback of the whole `total`."""
    return lambda done, of: progress(before + (part * done // of if of else 0), total)
