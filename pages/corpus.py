"""A corpus larger than memory: how far its embedding is, and whether a map fitted on it has settled."""

import streamlit as st

from whitelab.ui.frame.page import close_page, open_page
from whitelab.ui.sections import corpora

chosen, opened = open_page(
    "How far is my corpus, and is it enough to fit on?",
    "A map to ship is fitted on a corpus, not on a test set. Look at whether sentences the map has not seen come out "
    "round: once they do, more text changes little, and the live score can be fitted on it.",
    of_pairs=False,
)
with st.container(key="controls"):
    folder = corpora.choose()
code = corpora.draw(chosen, folder)

close_page(
    chosen,
    opened,
    [
        (
            r"\Sigma_{A\cup B} = \Sigma_A + \Sigma_B + \frac{n_A n_B}{n_A+n_B}(\mu_A-\mu_B)(\mu_A-\mu_B)^\top",
            "Chan, Golub and LeVeque 1983: scatters of two chunks make that of both, so no chunk is read twice",
        )
    ],
    "Text is cut into chunks of some thousand sentences, named by what is in them. Each chunk that is done is a file of "
    "vectors and a file of moments: count, mean and scatter. A map needs nothing else, so a corpus of any size is fitted "
    "by adding up moments, with the same bits whatever machine did which chunk. A corpus is embedded by a process of its "
    "own, begun here or in a terminal, whose files this page reads: closing the page stops nothing. What is begun here "
    "ends with the app; what was stopped goes on where it was.",
    code,
)
