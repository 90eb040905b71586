"""Rows that cannot be used: said with file, line and reason, and left out only on request."""

from collections.abc import Sequence

import streamlit as st

from whitelab.datasets import MalformedRows, Problem

BAR = "malformed"  # session_state: the data of the bar that has such rows
LABELLED = "labelled-malformed"  # the same of labelled texts
RETRIEVAL = "retrieval-malformed"  # and of retrieval sets


def rows(problems: Sequence[Problem]) -> list[dict]:
    """Rows that cannot be used, for a table."""
    return [{"file": one.file, "line": one.line, "reason": one.reason} for one in problems]


def say(error: MalformedRows, data: str, key: str = BAR) -> None:
    """List what is wrong with the rows of `data`; `key` then offers to leave them out, see `found`."""
    n = len(error.problems)
    place = " in the bar at the left" if key == BAR else ""
    st.error(f"{n} row{'s' if n != 1 else ''} cannot be read. Mend the file, or leave these rows out{place}.")
    st.dataframe(rows(error.problems), hide_index=True)
    if not found(data, key):
        st.session_state[key] = data
        st.rerun()


def found(data: str, key: str = BAR) -> bool:
    """Whether `data` was seen to have such rows."""
    return st.session_state.get(key) == data
