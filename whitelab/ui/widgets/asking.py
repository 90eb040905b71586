"""What is computed only once a visitor asks for it, with a button until then."""

from typing import Any

import streamlit as st


def once(label: str, of: str) -> bool:
    """Whether this visitor asked for `of`; a button that asks is drawn where not."""
    if asked(of):
        return True
    button(label, of)
    return False


def button(label: str, of: str, wanted: Any = True, icon: str = "play_arrow") -> None:
    """The button that asks; what was asked for before is forgotten by it."""
    how = {"on_click": st.session_state.update, "args": ({_name(of): wanted},)}
    st.button(label, key=of, icon=f":material/{icon}:", **how)


def asked(of: str, wanted: Any = True) -> bool:
    """Whether this visitor asked for it."""
    return st.session_state.get(_name(of)) == wanted


def _name(of: str) -> str:
    return f"{of}-asked"
