"""A choice among some names that takes others too, typed or pasted."""

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from whitelab.base.user_folders import expanded
from whitelab.ui.widgets.address import linked


def exists(place: str) -> bool:
    """Whether there is a file or folder at a path, `~` expanded."""
    try:
        return expanded(place).exists()
    except (OSError, ValueError):  # too long, no home folder, a null character
        return False


def typed_choice(
    label: str,
    options: Sequence[str],
    key: str,
    found: Callable[[str], bool] = exists,
    on_change: Callable[[], object] | None = None,
    new: bool = True,
    **how,
) -> str | None:
    """One of `options` or, where `new` is true, what is typed; `how` is what `st.selectbox` takes besides.

    Streamlit's box takes what it shows out of what is pasted over it, and lets the first letter typed replace it. So
    where what comes cannot be `found`, but can before or after what was chosen, both together are taken.
    """
    state, before = st.session_state, f"{key}-before"

    def take() -> None:
        part, whole = state[key], state.get(before)
        if part and whole and part not in options:
            together = next((one for one in (whole + part, part + whole) if found(one)), None)
            if together and not found(part):
                state[key] = together
        if on_change:
            on_change()

    state[before] = st.selectbox(label, options, key=key, on_change=take, accept_new_options=new, **how)
    return state[before]


def typed_data(label: str, key: str, names: Sequence[str], titles: Mapping[str, str], help: str) -> str:
    """One of `names`, shown by their `titles`, or a path; the first of them where the box is empty."""

    def shown(name: str) -> str:
        return titles.get(name, name)

    return typed_choice(label, names, **linked(key, names[0], shown), format_func=shown, help=help) or names[0]
