"""How numbers, layers and progress are written."""

import sys
import time
from collections.abc import Callable, Sequence


def short(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4g}"


def joined(layers: Sequence[int]) -> str:
    return "+".join(map(str, layers))


def progress(doing: str = "encoding", unit: str = "tokens") -> Callable[[int, int], None] | None:
    """A line that counts up on a terminal; nothing where stderr is a file."""
    if not sys.stderr.isatty():
        return None
    start = time.monotonic()

    def show(done: int, total: int) -> None:
        left = (time.monotonic() - start) * (total - done) / done if done else 0
        end = "\n" if done == total else ""
        print(
            f"\r{doing} {done:,} of {total:,} {unit}, {left:.0f} s left ",
            end=end,
            file=sys.stderr,
            flush=True,
        )

    return show
