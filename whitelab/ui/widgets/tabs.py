"""Sections in tabs, of which only the open one is computed."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from whitelab.ui.widgets.address import linked


def tabs(sections: Mapping[str, Callable[[], Any]], key: str) -> Any:
    """Draw each section in a tab of its name; what the open one returns."""
    places = st.tabs(list(sections), on_change="rerun", **linked(key, next(iter(sections))))
    for place, section in zip(places, sections.values(), strict=True):
        if place.open:
            with place:
                return section()
    return None
