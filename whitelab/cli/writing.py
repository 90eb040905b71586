"""How numbers and layers are written, and what is said on stderr while a command works."""

import contextlib
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import replace

from whitelab.base.progress import Progress
from whitelab.base.wording import counted, number, quantity

_ARGUMENT = re.compile(r"\b(?P<name>\w+)=(?P<value>'[^']*'|\[[^]]*\]|[^\s,;:()]+)")  # as the library's errors name one
_GIVEN = ContextVar("given", default=None)  # the options of the command at work, in whose words notes are said
COLUMN = "COLUMN"  # the metavar of options that name one, whose name may be empty as that of pandas' index is
SECONDS = 10  # between two lines of progress in a file
SHOWN = 5  # rows left out that are said of each kind


def short(value: float | None) -> str:
    """`number` with four significant digits."""
    return number(value, ".4g")


def step_line(record, names: Iterable[str], digits: int) -> str:
    """A step of training: those of its numbers that are known, its seconds with so many `digits`, and its message."""
    known = [(name, value) for name in names if (value := getattr(record, name)) is not None]
    parts = [f"step {record.step:5}", *(f"{name.replace('_', ' ')} {short(value)}" for name, value in known)]
    return "  ".join([*parts, f"{record.seconds:.{digits}f} s", *filter(None, [record.message])])


def shown_ks(dim: int) -> list[int]:
    """The numbers of kept dimensions that a table over all of them shows."""
    return [k for k in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 768, 1024) if k < dim] + [dim]


def joined(layers: Iterable[int]) -> str:
    return "+".join(map(str, layers))


def say(line: str) -> None:
    print(line, file=sys.stderr)


@contextlib.contextmanager
def options_of(args) -> Iterator[None]:
    """Meanwhile notes name an option of `args` where the library names an argument."""
    token = _GIVEN.set(args)
    try:
        yield
    finally:
        _GIVEN.reset(token)


def in_options(text: str, args) -> str:
    """A text of the library with `rate=2.0` as `--rate 2.0`, wherever that is what an option of the command says.

    A text in quotes that no option of its name holds, such as `quantizer='int9'`, is that of the one option in which it
    was given: `--codes int9`.
    """
    options = getattr(args, "spelled", {})

    def spelled(found: re.Match) -> str:
        name, shown = found["name"], found["value"]
        own = _spelled(options[name], getattr(args, name), shown) if name in options else ""
        if own or not shown.startswith("'") or name not in options and hasattr(args, name):
            return own or found[0]
        text = shown[1:-1]
        given = options.keys() & getattr(args, "given", ())
        said = [one for one in given if text in re.split("[,;]", str(getattr(args, one)))]
        return f"{options[said[0]]} {shlex.quote(text)}" if len(said) == 1 else found[0]

    return _ARGUMENT.sub(spelled, text)


def _spelled(option: str, value, shown: str) -> str:
    """An option and its value, where an error shows that value; else nothing."""
    if shown == "True" and value is False or shown == "None" and value is None:  # a switch, or what is missing
        return option
    values = value if isinstance(value, (list, tuple)) else [value]
    given = ",".join(map(str, values))
    if shown in (repr(value), str(list(values)), given):
        return f"{option} {shlex.quote(given)}"
    return f"{option} {shown}" if isinstance(value, float) and shown == f"{value:g}" else ""


def note(*texts: str) -> None:
    for text in texts:
        say(f"note: {in_options(text, _GIVEN.get())}")


def left_out(problems: Iterable) -> None:
    """Say the first rows of each kind of problem, and how many more there are."""
    from whitelab.datasets.pairs import by_kind

    for kind in by_kind(problems):
        for problem in kind[:SHOWN]:
            say(f"left out: {problem}")
        if len(kind) > SHOWN:
            say(f"left out: {quantity(len(kind) - SHOWN, 'more such row')}")


class RowLog:
    """Rows of scores, each said on stderr by its `line` as it is made; a reason for none once for all it is true of.

    Reasons wait for the first score: where there comes none, they are the error.
    """

    def __init__(self, line: Callable[..., str]) -> None:
        self.line, self.rows = line, []
        self._said: set[tuple[str, str]] = set()

    def take(self, row) -> None:
        """Take a row, its reason in the words of the options, and say what there is to say."""
        self.rows.append(row := replace(row, reason=in_options(row.reason, _GIVEN.get())))
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
            settings, tasks = (dict.fromkeys(str(getattr(row, part)) for row in rows) for part in ("setting", "task"))
            lines.append(f"{model} · {', '.join(settings)} · {', '.join(tasks)}: {reason}")
        return lines

    def _reasons(self) -> dict[tuple[str, str], list]:
        from whitelab.compare import reasons_of

        return reasons_of(self.rows)


def progress(doing: str = "encoding", unit: str = "tokens", even: bool = True) -> Progress:
    """A line that counts up on a terminal; where stderr is a file, a line every `SECONDS`, and none of short work.

    It ends with the time left where the work is `even`: as much is done in every second.
    """
    terminal, told = sys.stderr.isatty(), time.monotonic()
    first: tuple[float, int] | None = None  # of the first report, which may count what was there

    def show(done: int, total: int) -> None:
        nonlocal told, first
        now = time.monotonic()
        began, there = first = first or (now, done)
        text = f"{doing} {counted(done, total, unit)}"
        if even and done > there:
            text += f", {(now - began) * (total - done) / (done - there):.0f} s left"
        if terminal:
            print(f"\r{text} ", end="\n" if done == total else "", file=sys.stderr, flush=True)
        elif now - told >= SECONDS:
            told = now
            say(text)

    return show
