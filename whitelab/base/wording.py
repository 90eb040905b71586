"""Numbers as people read them, and text in which nothing is formatted."""

import math
import re
from collections.abc import Iterable, Sequence


def spaced(count: int | float, sign: str = "") -> str:
    """1240 -> "1 240", with narrow spaces at which no line breaks; a rank may be a half: 1240.5 -> "1 240.5"."""
    text = f"{count:{sign},}" if isinstance(count, int) else f"{count:{sign},.16g}"
    return text.replace(",", "\u202f")


def quantity(count: int, one: str, many: str = "") -> str:
    """`1 pair`, `1 240 pairs`; `many` of what does not only take an s: `query`, `queries`."""
    return f"{spaced(count)} {one if count == 1 else many or f'{one}s'}"


def in_percent(share: float, form: str = ".0f") -> str:
    """0.42 -> "42 %", with a space at which no line breaks."""
    return f"{100 * share:{form}}\u00a0%"


def ratio(value: float) -> str:
    """`7.5`, and below 1 two significant digits, so that no small one reads as nothing: `0.042`."""
    return f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def number(value: float | None, form: str = "z.2f") -> str:
    """`value` in the format `form`; 'undefined' for None or NaN. What rounds to zero has no sign (z)."""
    return "undefined" if value is None or math.isnan(value) else format(value, form)


def p_value(value: float, floor: float = 0.001) -> str:
    """`p = 0.034`, or `p < 0.001` at or below what a test can show, with spaces at which no line breaks."""
    if value != value:
        return "p\u00a0undefined"
    return f"p\u00a0<\u00a0{floor:.3f}" if value <= floor else f"p\u00a0=\u00a0{value:.3f}"


def bare(p: str) -> str:
    """A p-value without its name, for a place that is headed by it: `0.031`, `< 0.001`."""
    return p.removeprefix("p\u00a0").removeprefix("=\u00a0")


def best_as_printed(values: Sequence[float | None], form: str = "%.2f") -> list[bool]:
    """Which of `values` are, printed in `form`, the highest; ties all are, None and NaN never."""
    shown = [None if value is None or math.isnan(value) else float(form % value) for value in values]
    top = max((value for value in shown if value is not None), default=None)
    return [value is not None and value == top for value in shown]


def amount(size: int | float) -> str:
    """Bytes: `89.8 MB`, `812 bytes`, powers of ten."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            break
        size, unit = size / 1000, {"bytes": "kB", "kB": "MB", "MB": "GB"}[unit]
    return f"{size:.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"


def duration(seconds: int | float) -> str:
    """`45 s`, `3 min`, `2.5 h`; never less than a second."""
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    return f"{round(seconds / 60)} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def plain(text: str) -> str:
    """Text of others, such as an error, in which Markdown finds nothing to format."""
    return re.sub(r"([\\`*_{}\[\]<>()#+!|$~:-])", r"\\\1", text)


def capitalised(text: str) -> str:
    """The text as the beginning of a sentence or a line: the rest keeps its capitals."""
    return text[:1].upper() + text[1:]


_PROPER = ("Cholesky",)


def inside(name: str) -> str:
    """A variant's name inside a sentence: `raw`, `soft whitening (γ = 0.5, α = 0)`, but `PCA whitening`."""
    first = name.split()[0]
    return name if first in _PROPER or not first[1:].islower() else name[0].lower() + name[1:]


def for_a_file(text: str, most: int | None = None) -> str:
    """A text in any script as part, of at most so many characters, of a file's name that every system can hold.

    Two texts can become one name.
    """
    return re.sub(r"[^A-Za-z0-9.=_-]+", "-", text)[:most].strip("-") or "text"


def first_line(error: BaseException) -> str:
    """The first line of an error, or its kind where it has no text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def counted(done: int, total: int, unit: str) -> str:
    """`1 200 of 2 551 sentences`, and `47 %` where that is the unit."""
    return f"{100 * done // total} %" if unit == "%" else f"{spaced(done)} of {spaced(total)} {unit}".rstrip()


def cut_note(count: int, what: str, tokens: int) -> str:
    """`12 sentences were cut to 128 tokens`; `what` is one of them."""
    return f"{quantity(count, f'{what} was', f'{what}s were')} cut to {tokens} tokens"


def layer_names(layers: Iterable[int]) -> str:
    """`1 + 6`, or `6` for a layer alone, also where it is named twice."""
    return " + ".join(map(str, dict.fromkeys(layers)))


def layers_in_words(layers: Iterable[int]) -> str:
    """`layers 1 + 6`, or `layer 6`."""
    names = layer_names(layers)
    return f"layers {names}" if "+" in names else f"layer {names}"
