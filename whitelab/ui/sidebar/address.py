"""Widgets that live in the address of the page, so that a copied link shows the same."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import streamlit as st

T = TypeVar("T")

_PAGE, _OPENS = "address-page", "address-opens"  # session_state: the page drawn last; whether this run opens another


@contextmanager
def of(page: str) -> Iterator[None]:
    """Draw the bar of `page` inside, so that `bound` knows when the page is being opened."""
    state = st.session_state
    state[_OPENS] = state.get(_PAGE) != page
    yield
    state[_PAGE], state[_OPENS] = page, False


def bound(key: str, default) -> dict:
    """The arguments of a widget that lives in the address, where its `default` is not written.

    A link clicked before the browser has read the address drops what stood there, while the session has it still.
    On the run that opens a page, the session therefore says again what the address lacks; later runs say nothing,
    because the address they see is not kept up to date. Whatever is not drawn for a while comes back as it was.
    """
    state = st.session_state
    if state.get(_OPENS) and key not in st.query_params and state.get(key, default) != default:
        state[key] = state[key]
    return {"key": key, "bind": "query-params", "persist_state": "session"}


def kept(key: str, default: T, read: Callable[[str], T]) -> T:
    """A value of the session that is no widget of Streamlit's; at first what the address says, where it can be read."""
    if key not in st.session_state:
        try:
            return read(st.query_params[key])
        except (KeyError, ValueError):
            return default
    return st.session_state[key]


def keep(key: str, value, default) -> None:
    """Put a value into the session and, unless it is the default, into the address."""
    st.session_state[key] = value
    if value == default:
        st.query_params.pop(key, None)
    elif st.query_params.get(key) != str(value):
        st.query_params[key] = str(value)
