"""Widgets that live in the address of the page, so that a copied link shows the same."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import streamlit as st

T = TypeVar("T")

_PAGE, _OPENS = "address-page", "address-opens"  # session_state: the page drawn last; whether this run opens another
_READ = "address-read"  # session_state: of every knob first drawn by this run, what stood in the address
_MISREAD = "address-misread"  # session_state: what stood there and cannot be had, beside what the knob was put to
_LENGTH = 60  # characters of it that are shown


@contextmanager
def of(page: str) -> Iterator[None]:
    """Draw the bar of `page` inside, so that `bound` knows when the page is being opened."""
    state = st.session_state
    state[_OPENS] = state.get(_PAGE) != page
    state[_READ] = {}
    yield
    state[_PAGE], state[_OPENS] = page, False
    missed = {key: (asked, state.get(key)) for key, asked in state.pop(_READ).items() if not _holds(key, *asked)}
    state[_MISREAD] = state.get(_MISREAD, {}) | {key: (asked[0], value) for key, (asked, value) in missed.items()}


def misread() -> list[str]:
    """What the address asked of knobs that could not be had, as `k=abc`, until the knob is moved."""
    state = st.session_state
    return [
        f"{key}={', '.join(asked)}"[:_LENGTH]
        for key, (asked, value) in state.get(_MISREAD, {}).items()
        if state.get(key) == value
    ]


def _note(key: str, default, shown: Callable[[T], str]) -> None:
    """Remember what the address says of a knob that the session does not have yet."""
    state = st.session_state
    if key in st.query_params and key not in state and _READ in state:
        state[_READ][key] = (st.query_params.get_all(key), default, shown)


def _holds(key: str, asked: list[str], default, shown: Callable[[T], str]) -> bool:
    """Whether the knob stands where the address asked, in whichever way that was written."""
    value = st.session_state.get(key, default)
    values = value if isinstance(value, list) else [] if value is None else [value]
    written = (sorted(_bare(way(one)) for one in values) for way in (str, shown))
    return sorted(map(_bare, asked)) in written


def _bare(text: str) -> str:
    try:
        return str(float(text))
    except ValueError:
        return text.strip().casefold()


def bound(key: str, default, shown: Callable[[T], str] = str) -> dict:
    """The arguments of a widget that lives in the address, as `shown`, where its `default` is not written.

    A link clicked before the browser has read the address drops what stood there, while the session has it still.
    On the run that opens a page, the session therefore says again what the address lacks; later runs say nothing,
    because the address they see is not kept up to date. Whatever is not drawn for a while comes back as it was.
    """
    state = st.session_state
    _note(key, default, shown)
    if state.get(_OPENS) and key not in st.query_params and state.get(key, default) != default:
        state[key] = state[key]
    return {"key": key, "bind": "query-params", "persist_state": "session"}


def kept(key: str, default: T, read: Callable[[str], T]) -> T:
    """A value of the session that is no widget of Streamlit's; at first what the address says, where it can be read."""
    if key not in st.session_state:
        _note(key, default, str)
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
