"""What a lesson hides until a prediction is given: everywhere that a result is drawn asks here."""

import streamlit as st

_HIDDEN = "live-hidden"  # session_state: whether this run may show no score


def hide_live(hidden: bool) -> None:
    """Say whether this run may show the live score."""
    st.session_state[_HIDDEN] = hidden


def live_hidden() -> bool:
    """Whether a lesson waits for a prediction that the live score would give away."""
    return st.session_state.get(_HIDDEN, False)
