"""The data of every page, and the place to bring one's own."""

import numpy as np
import streamlit as st

from whitelab import figures
from whitelab.datasets import DataError, MalformedRows, SentencePairs
from whitelab.encoding.precomputed import npz_bytes
from whitelab.ui.results import cache
from whitelab.ui.sections import downloads, uploads
from whitelab.ui.sidebar import malformed, own_data
from whitelab.ui.widgets import frame

FOUND = 200  # pairs in the searchable table

chosen = frame.ask(
    "What data is this, and can I bring my own?",
    "Look at the gold scores: a Spearman score says how well cosines order the pairs as these scores do, and nothing else.",
)


def words(sentences) -> np.ndarray:
    """Words of each sentence, as spaces part them."""
    return np.array([len(sentence.split()) for sentence in sentences])


def headlines(pairs: SentencePairs, lengths: np.ndarray | None) -> None:
    """How many, and on what scale; `lengths` are the words of each sentence, None where there is no text."""
    gold, n = pairs.gold, len(pairs.sentences)
    repeated = 2 * pairs.n_pairs - n
    for column, (label, value, more, hint) in zip(
        st.columns(4),
        (
            (
                "Pairs",
                frame.spaced(pairs.n_pairs),
                f"{len(pairs.subset_names)} subset{'s' if len(pairs.subset_names) > 1 else ''}",
                "Each pair is two sentences and a gold score.",
            ),
            (
                "Different vectors" if lengths is None else "Different sentences",
                frame.spaced(n),
                f"{frame.spaced(repeated)} repetitions",
                "A map is fitted on every occurrence, so repeated sentences count as often as they occur.",
            ),
            (
                "Gold scores",
                f"{gold.min():.3g} to {gold.max():.3g}",
                f"mean {gold.mean():.2f}, {frame.spaced(len(np.unique(gold)))} different",
                "Spearman reads their order only. Pairs of equal gold share a rank.",
            ),
            (
                (
                    "Words a sentence",
                    f"{np.median(lengths):g}",
                    f"median, at most {lengths.max()}",
                    "As spaces part them.",
                )
                if lengths is not None
                else ("Dimensions", str(chosen.dim), f"{chosen.n_layers} layers", "d and l of the vectors given.")
            ),
        ),
        strict=True,
    ):
        column.metric(
            label, value, delta=more, delta_color="off", delta_arrow="off", border=True, height="stretch", help=hint
        )


def charts(pairs: SentencePairs, lengths: np.ndarray | None) -> None:
    """Gold scores, and lengths where there is text."""
    columns = [st.container()] if lengths is None else st.columns(2)
    with columns[0]:
        st.subheader("Gold scores")
        frame.chart(
            figures.gold_histogram(pairs.gold),
            "gold",
            lambda: [{"pair": i, "gold": value} for i, value in enumerate(pairs.gold.tolist(), start=1)],
        )
    if lengths is not None:
        with columns[1]:
            st.subheader("Length of the sentences")
            frame.chart(
                figures.length_histogram(lengths),
                "lengths",
                lambda: [{"sentence": i, "words": value} for i, value in enumerate(lengths.tolist(), start=1)],
            )


def subsets(pairs: SentencePairs) -> None:
    """Every subset in a line."""
    rows = [np.flatnonzero(pairs.subset == number) for number in range(len(pairs.subset_names))]
    number = st.column_config.NumberColumn(format="%.2f")
    st.dataframe(
        [
            {
                "Subset": name,
                "Pairs": len(own),
                "Lowest gold": float(pairs.gold[own].min()),
                "Mean gold": float(pairs.gold[own].mean()),
                "Highest gold": float(pairs.gold[own].max()),
            }
            for name, own in zip(pairs.subset_names, rows, strict=True)
            if len(own)
        ],
        hide_index=True,
        height="content" if len(rows) <= 12 else 458,
        column_config=dict.fromkeys(("Lowest gold", "Mean gold", "Highest gold"), number),
    )


def search(pairs: SentencePairs) -> None:
    """The pairs whose sentences hold what is typed."""
    left, right = st.columns([3, 2])
    with left:
        asked = st.text_input("Find in the sentences", key="find", placeholder="A word or a part of one")
    with right:
        order = st.segmented_control(
            "Order",
            ["as in the file", "highest gold", "lowest gold"],
            default="as in the file",
            key="order",
            required=True,
        )
    asked = (asked or "").casefold()
    hits = [
        row
        for row, (a, b) in enumerate(zip(pairs.first, pairs.second, strict=True))
        if not asked or asked in a.casefold() or asked in b.casefold()
    ]
    if order in ("highest gold", "lowest gold"):
        hits.sort(key=lambda row: pairs.gold[row], reverse=order == "highest gold")
    rows = hits[:FOUND]
    columns = {
        "Pair": [row + 1 for row in rows],
        "Gold": [float(pairs.gold[row]) for row in rows],
        "First sentence": [pairs.first[row] for row in rows],
        "Second sentence": [pairs.second[row] for row in rows],
    }
    if len(pairs.subset_names) > 1:
        columns["Subset"] = [pairs.subset_names[pairs.subset[row]] for row in rows]
    st.dataframe(
        columns,
        hide_index=True,
        height=390,
        column_config={
            "Pair": st.column_config.NumberColumn(width=60),
            "Gold": st.column_config.NumberColumn(width=60, format="%.2f"),
            "Subset": st.column_config.TextColumn(width="small"),
        },
    )
    shown = min(FOUND, len(hits))
    st.caption(
        f"{frame.spaced(len(hits))} of {frame.spaced(pairs.n_pairs)} pairs"
        + (f", the first {shown} of them shown." if shown < len(hits) else ".")
    )


def loaded() -> SentencePairs | None:
    """The pairs of the workspace; None after saying why there are none."""
    if chosen is None:
        return None
    try:
        return cache.chosen_pairs(chosen)
    except MalformedRows as error:
        malformed.say(error, chosen.data)
    except DataError as error:
        st.error(str(error))
    return None


pairs = loaded()
if pairs is not None:
    has_text = not chosen.given or chosen.own.vectors.has_text
    own = chosen.own
    st.markdown(
        f"**{frame.plain(pairs.source or pairs.task)}**"
        + (
            ", your upload: only this session sees it."
            if own
            else ", demonstration data."
            if chosen.data == "demo"
            else "."
        )
    )
    lengths = frame.kept("lengths", pairs.fingerprint, lambda: words(pairs.sentences)) if has_text else None
    headlines(pairs, lengths)
    charts(pairs, lengths)
    for note in pairs.notes:
        if not note.startswith("malformed rows"):  # they are listed
            st.caption(f"Note: {note}")
    if pairs.problems:
        with st.expander(f"{frame.spaced(len(pairs.problems))} rows were rejected", icon=":material/rule:"):
            uploads.problems(pairs.problems)

st.subheader("Bring your own")
if held := own_data.current():
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"You brought **{frame.plain(held.pairs.source)}**, {frame.spaced(held.pairs.n_pairs)} pairs. "
            "Choose it under *Data* in the bar; another upload takes its place."
        )
        st.button("Let go of it", key="forget", on_click=own_data.forget, icon=":material/delete:")
uploads.section()

st.subheader("Fetch published data")
downloads.section(chosen)

if pairs is None:
    st.stop()
if has_text:
    st.subheader("Pairs")
    search(pairs)
if len(pairs.subset_names) > 1:
    st.subheader("Subsets")
    subsets(pairs)
opened = frame.open_chosen(chosen)
space = opened.space
st.subheader("Take the embeddings")
megabytes = space.values.element_size() * space.values.nelement() / 1e6
shape = f"[{space.n_layers}, {frame.spaced(space.n_sentences)}, {space.dim}]"
st.markdown(
    f"Every layer of every sentence, `values` {shape}, with `sentences`, the row numbers `first` and `second`, `gold` and "
    "`subset` of the pairs. `np.load` reads it, so does *Vectors without a model* above, and `python -m whitelab score --vectors`."
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

frame.close_page(
    opened,
    cache.score(opened.key, chosen.protocol(pairs.source)),
    [
        (
            r"\operatorname{score} = 100\,\rho\big(\text{gold}_i,\ \cos(z_{a_i}, z_{b_i})\big),\quad i = 1\dots p",
            "p pairs of rows a_i and b_i; Spearman's rank correlation",
        )
    ],
    "A task is p sentence pairs with gold scores, some of them in subsets. Sentences are stripped and otherwise taken as they are; "
    "every different sentence is embedded once. Rows that cannot be used are listed with line and reason, never dropped unseen.",
    frame.preamble(chosen)
    + "print(pairs.n_pairs, len(pairs.sentences), pairs.subset_names, pairs.gold.mean())\n"
    + "print(space.values.shape)\n",
)
