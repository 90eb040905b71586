"""What is to be known of data or numbers, beside them; on the command line `whitelab.cli.writing.note`."""

from collections.abc import Iterable

import streamlit as st

from whitelab.base.wording import plain

SAID = "page-notes"  # session_state: the texts of this run's notes


def begin_notes() -> None:
    """Forget the notes of the run before."""
    st.session_state[SAID] = set()


def note(*texts: str, of: str = "") -> None:
    """A line for each, which ends with a full stop whether its text does or not, and names what it is `of` if given."""
    for text in texts:
        st.caption(f"Note{of and f' on {of}'}: {plain(text.removesuffix('.'))}.")
    st.session_state.setdefault(SAID, set()).update(texts)


def unsaid(texts: Iterable[str]) -> list[str]:
    """Those of `texts` that no note of this page has said."""
    return [text for text in texts if text not in st.session_state.get(SAID, ())]
