"""One choice among few, all in sight."""

from collections.abc import Iterable
from typing import TypeVar

import streamlit as st

from whitelab.ui.widgets.address import spelt

T = TypeVar("T")


def choice(label: str, options: Iterable[T], default: T | None = None, **how) -> T:
    """One of `options`, never none: at first, and where what was chosen is gone, the default or else the first.

    `how` is what `st.segmented_control` takes besides.
    """
    options = list(options)
    usual = options[0] if default is None else default
    with spelt(how.get("key", ""), options, how.get("format_func", str)):
        chosen = st.segmented_control(label, options, default=usual, required=True, **how)
    return chosen if chosen in options else usual
