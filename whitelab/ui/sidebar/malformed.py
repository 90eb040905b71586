"""Rows that cannot be used: said with file, line and reason, and left out only on request."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import streamlit as st

from whitelab.base.wording import plain, quantity, spaced
from whitelab.datasets import DataError, MalformedRows, Problem, SentencePairs
from whitelab.datasets.loading import left_out_note
from whitelab.datasets.pairs import by_kind
from whitelab.figures import heights
from whitelab.ui.widgets.address import bound

BAR = "malformed"  # session_state: the data of the bar that has such rows
LABELLED = "labelled-malformed"  # the same of labelled texts
RETRIEVAL = "retrieval-malformed"  # and of retrieval sets
SHOWN = 1000  # rows of the table; the count is exact
_IN_SIGHT, _KINDS = 6, 5  # rows without scrolling, and kinds that are told apart, the commonest first


def table(problems: Sequence[Problem], named: bool = True) -> None:
    """Rows that cannot be used, with line, reason and, where `named`, their files; the first of many.

    Of several kinds, more than are in sight, it is said how many there are of each.
    """
    if not problems:
        return
    if len(kinds := by_kind(problems)) > 1 and len(problems) > _IN_SIGHT:
        st.markdown("\n".join(map(_kind, kinds[:_KINDS])))
    columns = ("file", "line", "reason") if named else ("line", "reason")
    rows = [{name: getattr(one, name) for name in columns} for one in problems[:SHOWN]]
    narrow = {"line": st.column_config.NumberColumn(width=70)}
    height, alt = heights.table(min(len(rows), _IN_SIGHT)), "Rows that cannot be used, with line and reason"
    st.dataframe(rows, hide_index=True, height=height, column_config=narrow, alt=alt)
    if len(problems) > SHOWN:
        st.caption(f"The first {spaced(SHOWN)} of {spaced(len(problems))}.")


def _kind(problems: Sequence[Problem]) -> str:
    first, such = problems[0], "such as " * (len(problems) > 1)
    return f"- {quantity(len(problems), 'row')}, {such}line {first.line}: {plain(first.reason)}"


def notes_beside(pairs: SentencePairs) -> list[str]:
    """The notes of `pairs` that stand beside their `table`: all but the one that counts its rows."""
    return [one for one in pairs.notes if one != left_out_note(pairs.problems, pairs.first)]


@contextmanager
def said(data: str, key: str = BAR) -> Iterator[None]:
    """Say why `data` cannot be read, where the lines inside find so; `key` then offers the rows left, see `found`."""
    try:
        yield
    except MalformedRows as error:
        _listed(error, data, key)
    except DataError as error:
        st.error(plain(str(error)))


def _listed(error: MalformedRows, data: str, key: str) -> None:
    n, rest = len(error.problems), error.remedy == MalformedRows.KEEP_THE_REST
    place = " in the bar" if key == BAR else ""
    advice = f". Mend the file, or leave these rows out{place}" if rest else f", and {error.remedy}"
    st.error(f"{quantity(n, 'row')} cannot be read{advice}.")
    table(error.problems)
    if rest and not found(data, key):
        st.session_state[key] = data
        st.rerun()


def found(data: str, key: str = BAR) -> bool:
    """Whether `data` was seen to have such rows."""
    return st.session_state.get(key) == data


def left_out(data: str, key: str, box: str) -> bool:
    """Whether rows of `data` that cannot be used are left out; asked, in the `box` of this key, only where some are."""
    if not found(data, key):
        return False
    return st.checkbox("Leave malformed rows out", **bound(box, False), help="They are counted in the notes.")
