"""What one visitor's session keeps from one run of a page to the next."""

from collections.abc import Callable
from typing import Any

import streamlit as st


def kept(name: str, of: Any, make: Callable[[], Any]) -> Any:
    """`make()`, kept for this visitor until `of` is another: a large figure costs more than all else k changes."""
    entry = st.session_state.get(f"{name}-kept")
    if entry is None or entry[0] != of:
        entry = st.session_state[f"{name}-kept"] = of, make()
    return entry[1]
