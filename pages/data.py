"""The data of every page, and the place to bring one's own."""

import streamlit as st

from whitelab.base.installation import program
from whitelab.base.wording import plain, quantity, spaced
from whitelab.datasets import BUNDLED_SETS
from whitelab.encoding.precomputed import npz_bytes
from whitelab.statistics.geometry import word_counts
from whitelab.ui.frame.page import ask, close_page, open_chosen
from whitelab.ui.results.kept import kept
from whitelab.ui.sections import data_views, downloads, uploads
from whitelab.ui.sidebar import malformed, own_data
from whitelab.ui.sidebar.opening import chosen_pairs
from whitelab.ui.widgets.chart import data_of
from whitelab.ui.widgets.note import note

chosen = ask(
    "What data is this, and can I bring my own?",
    "Look at the gold scores: a Spearman score says how well cosines order the pairs as these scores do, and nothing "
    "else.",
)
pairs = None
if chosen is not None:
    with malformed.said(chosen.data.source):
        pairs = chosen_pairs(chosen)
if pairs is not None:
    has_text = not chosen.given or chosen.own.vectors.has_text
    st.markdown(
        f"**{plain(pairs.source or pairs.task)}**"
        + (
            ", your upload: only this session sees it."
            if chosen.own
            else ", demonstration data."
            if chosen.data.source in BUNDLED_SETS
            else "."
        )
    )
    lengths = None
    if has_text:
        lengths = kept("lengths", pairs.fingerprint, lambda: word_counts(pairs.sentences).int().numpy())
    data_of(task=pairs.task, split=pairs.split)
    data_views.numbers(chosen, pairs, lengths)
    data_views.charts(pairs, lengths)
    note(*malformed.notes_beside(pairs))
    if pairs.problems:
        with st.expander(f"{quantity(len(pairs.problems), 'row was', 'rows were')} rejected", icon=":material/rule:"):
            malformed.table(pairs.problems)

st.header("Bring your own")
if own := own_data.current():
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"You brought **{plain(own.pairs.source)}**, {quantity(own.pairs.n_pairs, 'pair')}. "
            + ("" if chosen and chosen.own else "Choose it under *Data* in the bar. ")
            + "Another upload takes its place."
        )
        st.button("Let go of it", key="forget", on_click=own_data.forget, icon=":material/delete:")
st.caption(
    "Pairs and vectors are brought here; texts with labels on Probe, queries with documents on Retrieval, a "
    "collection of any size on Corpus."
)
brought = uploads.section()

st.header("Fetch published data")
downloads.section(chosen)

if pairs is None:
    st.stop()
if has_text:
    st.header("Pairs")
    data_views.search(pairs)
if len(pairs.subset_names) > 1:
    st.header("Subsets")
    data_views.subsets(pairs)
opened = open_chosen(chosen)
space = opened.space
st.header("Take the embeddings")
megabytes = space.values.element_size() * space.values.nelement() / 1e6
shape = f"[{space.n_layers}, {spaced(space.n_sentences)}, {space.dim}]"
st.markdown(
    f"Every layer of every sentence, `values` {shape}, with `sentences`, the row numbers `first` and `second`, `gold` and "
    f"`subset` of the pairs. `np.load` reads it, so does *Vectors without a model* above, and `{program()} score --vectors`."
)
st.download_button(
    f"Embeddings .npz ({megabytes:.0f} MB)" if megabytes >= 1 else "Embeddings .npz",
    lambda: npz_bytes(opened.pairs, opened.space),
    file_name="whitelab-embeddings.npz",
    mime="application/octet-stream",
    key="embeddings",
    on_click="ignore",
    icon=":material/download:",
)

close_page(
    chosen,
    opened,
    [
        (
            r"\operatorname{score} = 100\,\rho\big(\text{gold}_i,\ \cos(z_{a_i}, z_{b_i})\big),\quad i = 1\dots p",
            "p pairs of rows a_i and b_i; Spearman's rank correlation",
        )
    ],
    "A task is p sentence pairs with gold scores, some of them in subsets. Sentences are stripped and otherwise taken as they are; "
    "every different sentence is embedded once. Rows that cannot be used are listed with line and reason, never dropped unseen.",
    "print(pairs.n_pairs, len(pairs.sentences), pairs.subset_names, pairs.gold.mean())\nprint(space.values.shape)\n"
    + brought,
)
