"""Records as JSON takes them."""

import math
from typing import Any


def without_nan(value: Any) -> Any:
    """A number, or a dict, list or tuple of values at any depth, with None for NaN and infinity, which JSON has not."""
    if isinstance(value, dict):
        return {key: without_nan(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(without_nan, value))
    return None if isinstance(value, float) and not math.isfinite(value) else value
