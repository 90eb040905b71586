"""What is to be known of data or numbers, beside them; on the command line `whitelab.cli.writing.note`."""

import streamlit as st

from whitelab.base.wording import plain


def note(*texts: str) -> None:
    """A line for each, which ends with a full stop whether its text does or not."""
    for text in texts:
        st.caption(f"Note: {plain(text.removesuffix('.'))}.")
