"""What maps are fitted on where a page has other texts than the bar's pairs: those, or the sentences of the task."""

from collections.abc import Mapping

import streamlit as st

from whitelab.base.wording import capitalised, plain, quantity
from whitelab.datasets.layouts import BUNDLED_SETS
from whitelab.scoring.setting import OWN_SENTENCES
from whitelab.ui.sidebar.opening import Opened
from whitelab.ui.sidebar.workspace import WORKSPACE, Workspace
from whitelab.ui.widgets.address import spelt


def fitted_on(
    key: str, texts: Mapping[str, str], count: int, chosen: Workspace, opened: Opened, words: str
) -> tuple[str, bool]:
    """One of the `texts` (name -> label) or the bar's task, as a map's fit is called, and whether it is the task.

    At first the first of the `texts`, the task where their `count` is too few for a map and it has as many. `words` say
    what is to be chosen from.
    """
    usual, dim = next(iter(texts)), opened.space.dim
    few = count <= min(2 * dim, opened.space.n_sentences)  # fewer than dimensions leave nothing but equal distances
    sentences = f"the sentences of {opened.pairs.task}"
    scopes = {**texts, WORKSPACE: capitalised(sentences)}
    key = f"{key}-few" if few else key  # what is usual is not written into the address
    with spelt(key, scopes, scopes.get):
        fit = st.selectbox(
            "Whitening fitted on",
            list(scopes),
            list(scopes).index(WORKSPACE if few else usual),
            key=key,
            bind="query-params",
            format_func=scopes.get,
            help=words,
        )
    own = fit == WORKSPACE
    if own and few:
        st.caption(
            f"{quantity(count, 'text is', 'texts are')} too few to fit {dim} dimensions on, so the map is first fitted "
            f"on {plain(sentences)}. The command line and Advise fit on the set's own texts unless told otherwise."
        )
    if own and chosen.setting.fit not in OWN_SENTENCES:
        st.caption("The other text that the bar's map is fitted on is not used here.")
    scope = opened.pairs.task if opened.pairs.task in BUNDLED_SETS else sentences  # where that is a scope by itself
    return scope if own else fit, own
