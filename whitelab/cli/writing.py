"""How numbers and layers are written, and what is said on stderr while a command works."""

import sys
import time
from collections.abc import Iterable

from whitelab.base.progress import Progress, silent


def number(value: float | None, form: str = "z.2f") -> str:
    """`value` in the format `form`; 'undefined' for None. What rounds to zero has no sign (z)."""
    return "undefined" if value is None else format(value, form)


def short(value: float | None) -> str:
    """`number` with four significant digits."""
    return number(value, ".4g")


def joined(layers: Iterable[int]) -> str:
    return "+".join(map(str, layers))


def say(line: str) -> None:
    print(line, file=sys.stderr)


def note(text: str) -> None:
    say(f"note: {text}")


def left_out(problems: Iterable) -> None:
    for problem in problems:
        say(f"left out: {problem}")


def progress(doing: str = "encoding", unit: str = "tokens") -> Progress:
    """A line that counts up on a terminal; nothing where stderr is a file."""
    if not sys.stderr.isatty():
        return silent
    start = time.monotonic()

    def show(done: int, total: int) -> None:
        left = (time.monotonic() - start) * (total - done) / done if done else 0
        end = "\n" if done == total else ""
        text = f"\r{doing} {done:,} of {total:,} {unit}, {left:.0f} s left "
        print(text, end=end, file=sys.stderr, flush=True)

    return show
