"""What maps are fitted on where a page has other texts than the bar's pairs: those, or the sentences of the task."""

from collections.abc import Mapping

import streamlit as st

from whitelab.base.wording import capitalised
from whitelab.ui.sidebar.opening import Opened
from whitelab.ui.sidebar.workspace import WORKSPACE
from whitelab.ui.widgets.address import spelt


def fitted_on(key: str, texts: Mapping[str, str], usual: str | None, opened: Opened, words: str) -> tuple[str, bool]:
    """One of the `texts` (name -> label) or the bar's task, as a map's fit is called, and whether it is the task.

    At first the `usual` one; None where there are too few of them for a map. `words` say what is to be chosen from.
    """
    sentences = f"the sentences of {opened.pairs.task}"
    scopes = {**texts, WORKSPACE: capitalised(sentences)}
    key = key if usual else f"{key}-few"  # what is usual is not written into the address
    with spelt(key, scopes, scopes.get):
        fit = st.selectbox(
            "Whitening fitted on",
            list(scopes),
            list(scopes).index(usual or WORKSPACE),
            key=key,
            bind="query-params",
            format_func=scopes.get,
            help=words,
        )
    own = fit == WORKSPACE
    return sentences if own else fit, own
