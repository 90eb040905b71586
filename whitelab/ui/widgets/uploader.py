"""Files that a visitor brings to a page: they stay in the session when the page, and with it the uploader, is left."""

from collections.abc import Sequence

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from whitelab.base import upload_limits
from whitelab.base.wording import plain, quantity
from whitelab.datasets.sheets import Sentences
from whitelab.datasets.tables import SUFFIXES

TEXT = [suffix.removeprefix(".") for suffix in SUFFIXES]  # files of sentences, as `datasets.read_sentences` takes them
TEXT_READ = "A .txt with one sentence a line, or a table with sentences in one column or several."
OURS = "It stays in this session; nobody else sees it."


def uploader(
    label: str,
    kinds: Sequence[str],
    key: str,
    *,
    several: bool = False,
    most: int = upload_limits.TABLE_MB,
    help: str = OURS,
) -> list[UploadedFile]:
    """Ask for a file, or for `several`; what was brought, with a button that lets go of it once the box is empty.

    A file has at most so many MB; `help` says what becomes of it. While one takes the place of another the box is
    empty: were there nothing then, the knobs that come after it would be gone for a moment, and Streamlit may show
    them at their defaults when they return.
    """
    given = st.file_uploader(
        label,
        type=list(kinds),
        accept_multiple_files=several,
        max_upload_size=most,
        key=key,
        help=f"At most {most} MB a file. {help}",
    )
    if given:
        st.session_state[_name(key)] = given if several else [given]
    elif files := brought(key):
        with st.container(horizontal=True, vertical_alignment="center"):
            names = ", ".join(plain(file.name) for file in files)
            st.markdown(f"You brought **{names}**. Another upload takes its place.")
            st.button("Let go", key=f"forget-{key}", on_click=_let_go, args=(key,), icon=":material/delete:")
    return brought(key)


def how_read(found: Sentences) -> str:
    """Which columns of a table sentences are from, and how many rows were left out; empty where there is nothing to
    say."""
    columns = ", ".join(map(plain, found.columns))
    said = f" of its {'columns' if len(found.columns) > 1 else 'column'} *{columns}*" if columns else ""
    return said + (f", {quantity(len(found.problems), 'row')} left out" if found.problems else "")


def brought(key: str) -> list[UploadedFile]:
    """The files brought last to the uploader of this key."""
    return st.session_state.get(_name(key), [])


def _let_go(key: str) -> None:
    st.session_state.pop(_name(key), None)


def _name(key: str) -> str:
    return f"{key}-brought"
