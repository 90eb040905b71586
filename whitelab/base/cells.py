"""Text in the cells of a .csv that no spreadsheet takes for a formula."""

import re
from collections.abc import Iterable
from typing import Any

_BEGINS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_SIGNED = re.compile(r"[+-][0-9.]+(e[+-][0-9]+)?( to [+-]?[0-9.]+)?( \(?[a-z ]+\)?)?")  # `-0.16 to 0.18 (undecided)`


def safe_cells(values: Iterable[Any]) -> list[Any]:
    """Values of a row, text that a spreadsheet would compute with `'` before it (OWASP, CSV injection).

    Numbers stay, also those in text, intervals, and a word or two behind either.
    """
    return [f"'{one}" if isinstance(one, str) and _is_formula(one) else one for one in values]


def _is_formula(text: str) -> bool:
    return text.startswith(_BEGINS_A_FORMULA) and not _SIGNED.fullmatch(text)
