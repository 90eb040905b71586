"""Text in the cells of a .csv that no spreadsheet takes for a formula."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

_BEGINS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def safe_cells(values: Iterable[Any]) -> list[Any]:
    """Values of a row, text that a spreadsheet would compute with `'` before it (OWASP, CSV injection).

    Numbers stay, also those in text.
    """
    return [f"'{one}" if isinstance(one, str) and _is_formula(one) else one for one in values]


def _is_formula(text: str) -> bool:
    with suppress(ValueError):
        float(text)
        return False
    return text.startswith(_BEGINS_A_FORMULA)
