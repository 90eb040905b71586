"""How numbers and layers are written, and what is said on stderr while a command works."""

import sys
import time
from collections.abc import Callable, Iterable

from whitelab.base.progress import Progress, silent
from whitelab.base.wording import counted


def number(value: float | None, form: str = "z.2f") -> str:
    """`value` in the format `form`; 'undefined' for None. What rounds to zero has no sign (z)."""
    return "undefined" if value is None else format(value, form)


def short(value: float | None) -> str:
    """`number` with four significant digits."""
    return number(value, ".4g")


def shown_ks(dim: int) -> list[int]:
    """The numbers of kept dimensions that a table over all of them shows."""
    return [k for k in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 768, 1024) if k < dim] + [dim]


def joined(layers: Iterable[int]) -> str:
    return "+".join(map(str, layers))


def say(line: str) -> None:
    print(line, file=sys.stderr)


def note(*texts: str) -> None:
    for text in texts:
        say(f"note: {text}")


def left_out(problems: Iterable) -> None:
    for problem in problems:
        say(f"left out: {problem}")


class RowLog:
    """Rows of scores, each said on stderr by its `line` as it is made; a reason for none once for all it is true of.

    Reasons wait for the first score: where there comes none, they are the error.
    """

    def __init__(self, line: Callable[..., str]) -> None:
        self.line, self.rows = line, []
        self._said: set[tuple[str, str]] = set()

    def take(self, row) -> None:
        """Take a row and say what there is to say."""
        self.rows.append(row)
        if any(not one.reason for one in self.rows):
            for (model, reason), rows in self._reasons().items():
                if (model, reason) not in self._said:
                    self._said.add((model, reason))
                    say(self.line(rows[0]))
        if not row.reason:
            say(self.line(row))

    def check(self, lead: str = "") -> None:
        """Raise ValueError with every reason, once, where there is no score."""
        if all(row.reason for row in self.rows):
            raise ValueError(lead + "; ".join(dict.fromkeys(reason for _, reason in self._reasons())))

    def lines(self) -> list[str]:
        """The rows with a score, and below them each reason with what it is true of."""
        lines = [self.line(row) for row in self.rows if not row.reason]
        for (model, reason), rows in self._reasons().items():
            settings, tasks = (dict.fromkeys(map(str, part)) for part in zip(*map(_place, rows), strict=True))
            lines.append(f"{model} · {', '.join(settings)} · {', '.join(tasks)}: {reason}")
        return lines

    def _reasons(self) -> dict[tuple[str, str], list]:
        from whitelab.compare import reasons_of

        return reasons_of(self.rows)


def _place(row) -> tuple:
    return row.setting, row.task


def progress(doing: str = "encoding", unit: str = "tokens") -> Progress:
    """A line that counts up on a terminal; nothing where stderr is a file."""
    if not sys.stderr.isatty():
        return silent
    start = time.monotonic()

    def show(done: int, total: int) -> None:
        left = (time.monotonic() - start) * (total - done) / done if done else 0
        end = "\n" if done == total else ""
        text = f"\r{doing} {counted(done, total, unit)}, {left:.0f} s left "
        print(text, end=end, file=sys.stderr, flush=True)

    return show
