"""Widgets that live in the address of the page, so that a copied link shows the same."""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

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
