"""A sentence and its nearest ones, raw beside whitened, with the hubs among them marked."""

from collections.abc import Sequence

import numpy as np
import streamlit as st
from torch import Tensor

from whitelab.base.wording import plain, spaced
from whitelab.encoding.embed import embed
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.encoding.names import ModelName
from whitelab.figures import heights
from whitelab.scoring.setting import Setting
from whitelab.statistics.geometry import REMEDIES, TOP
from whitelab.sweeps.layer_measures import Neighbourhood, hub_remedies, nearest_to, neighbourhood
from whitelab.ui.frame.recipe import pooling
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.jobs import wait
from whitelab.ui.results.study import study_job
from whitelab.ui.sidebar import workspace
from whitelab.ui.sidebar.opening import Opened
from whitelab.ui.widgets.address import linked
from whitelab.ui.widgets.chart import rounded_table
from whitelab.ui.widgets.metric import number

_TYPED, _PLACE = "inspect", "inspected"
_MATCHES = 5
_LONGEST = 2000  # characters of a sentence that is encoded
_REMEDIED = 6000  # sentences: above, remedies score so many pairs that they are asked for


def draw(opened: Opened, compared: Setting) -> str:
    """Type part of a sentence or click one; its neighbours in both spaces; what takes hubs away. The lines that give
    the same in Python."""
    space, sentences = opened.space, opened.pairs.sentences
    if space.n_sentences < 3:
        st.info("Fewer than three sentences have no neighbours to compare.")
        return ""
    settings = {"raw": compared.raw, "mapped": compared}
    found = {}
    for place, setting in settings.items():
        job = study_job(
            neighbourhood, space, setting, title="Searching neighbours", unit="tiles", place=f"near-{place}"
        )
        found[place] = wait(job, key=f"near-{place}", height=heights.table(TOP, heights.WRAPPED))
    if any(one is None for one in found.values()):
        return ""
    row = _chosen(sentences, found["raw"])
    if isinstance(row, str):
        new = _encoded(row)
        if new is None:
            st.info(f"None of the {spaced(len(sentences))} sentences has “{plain(row)}”. Type fewer words.")
            return ""
        st.markdown(f"Nearest to **{plain(row)}**, which is none of the {spaced(len(sentences))} sentences")
    else:
        st.markdown(f"Nearest to **{plain(sentences[row])}**")
    for column, (place, setting) in zip(st.columns(2), settings.items(), strict=True):
        near = found[place]
        with column:
            if isinstance(row, str):
                st.caption(LABELS.at(setting))
                others, cosines = nearest_to(space, setting, new)
            else:
                own, others, cosines = int(near.counts[row]), near.rows[row], near.cosines[row]
                hub = ", a hub" if own > near.hub_from else ""
                st.caption(f"{LABELS.at(setting)}: on {spaced(own)} lists itself{hub}")
            _list(f"near-{place}-{row}", LABELS.at(setting), near, others.tolist(), cosines.tolist(), sentences)
    st.caption(
        "*Lists* says on how many sentences' lists of ten nearest a sentence is: ten on average. A star marks a hub, "
        "on more lists than the mean and two standard deviations (Radovanovic et al. 2010). Click a sentence to go on "
        "from it."
    )
    return _code(row, compared) + _remedies(space, compared)


def _code(row: int | str, compared: Setting) -> str:
    """The lines that give the neighbours of a sentence, or of a new one, in Python."""
    nearest = f"near.rows[{row}], near.cosines[{row}]"
    new = ""
    if isinstance(row, str):
        nearest = "*whitelab.nearest_to(space, one, new[:, 0])"
        new = f"new, _ = whitelab.embed(encoder, [{row!r}]{pooling(workspace.current())})\n"
    return (
        f"{new}settings = [whitelab.Setting.parse(text) for text in {(str(compared.raw), str(compared))!r}]\n"
        "for one in settings:\n"
        "    near = whitelab.neighbourhood(space, one)\n"
        f"    for other, cosine in zip({nearest}):\n"
        "        print(cosine, near.counts[other], near.counts[other] > near.hub_from, pairs.sentences[other])\n"
    )


def _chosen(sentences: Sequence[str], raw: Neighbourhood) -> int | str:
    """The row clicked last, or the shortest sentence with the typed text, or that text; at first the largest hub."""
    typed = st.text_input(
        "Sentence",
        **linked(_TYPED, ""),
        placeholder="Type part of a sentence, or one of your own; at first the largest hub is shown",
        on_change=lambda: st.session_state.pop(_PLACE, None),
    )
    clicked = st.session_state.get(_PLACE)
    if clicked is not None and clicked < len(sentences):
        return clicked
    if not typed or not typed.strip():
        return int(np.argmax(raw.counts))
    wanted = typed.strip().lower()
    matches = sorted((len(text), row) for row, text in enumerate(sentences) if wanted in text.lower())
    if not matches:
        return typed.strip()[:_LONGEST]
    if len(matches) > 1:
        others = [row for _, row in matches[1 : _MATCHES + 1]]
        with st.expander(f"{spaced(len(matches))} sentences have that; the shortest is shown"):
            for other in others:
                st.button(plain(sentences[other]), key=f"inspect-{other}", type="tertiary", on_click=_go, args=(other,))
    return matches[0][1]


def _encoded(text: str) -> Tensor | None:
    """A sentence in every layer, [l, d], which is kept nowhere, because it is the visitor's.

    None where vectors stand for the model, or where a word's weight depends on all the other sentences.
    """
    chosen = workspace.current()
    weighted = not chosen.given and ModelName.parse(chosen.model.name).kind == "sif"
    return None if chosen.given or weighted else embed(chosen.encoder(), [text], chosen.setting.pooling)[0][:, 0]


def _go(row: int) -> None:
    st.session_state[_PLACE] = row


def _list(
    key: str,
    space: str,
    near: Neighbourhood,
    others: Sequence[int],
    cosines: Sequence[float],
    sentences: Sequence[str],
) -> None:
    """Neighbours in one space, as it is called, each to be clicked."""

    def follow() -> None:
        for chosen in st.session_state[key].selection.rows:
            _go(others[chosen])

    rounded_table(
        [
            {
                "Cosine": cosine,
                "Lists": int(near.counts[other]),
                "Hub": "★" if near.counts[other] > near.hub_from else "",
                "Sentence": sentences[other],
            }
            for other, cosine in zip(others, cosines, strict=True)
        ],
        {
            "Cosine": st.column_config.NumberColumn(format="%.3f", width=60),
            "Lists": st.column_config.NumberColumn(width=45),
            "Hub": st.column_config.TextColumn(width=35),
            "Sentence": st.column_config.TextColumn(width=184),  # all there is in a window of 390 pixels
        },
        alt=f"{space}: the nearest sentences with cosine and the lists they are on",
        row_height=heights.WRAPPED,
        height=heights.table(len(others), heights.WRAPPED),
        key=key,
        on_select=follow,
        selection_mode="single-row",
    )


def _remedies(space: LayerEmbeddings, compared: Setting) -> str:
    """Hubs of the raw and of the mapped space, by plain cosine and under each remedy, and the line that gives them in
    Python, in the loop of `_code`."""
    st.markdown("**What takes hubs away?**")
    if space.n_sentences > _REMEDIED and not st.toggle("Score every pair of sentences", **linked("remedies", False)):
        st.caption(f"CSLS and mutual proximity score all pairs of {spaced(space.n_sentences)} sentences: minutes.")
        return ""
    rows = []
    for place, setting in (("raw", compared.raw), ("mapped", compared)):
        job = study_job(hub_remedies, space, setting, title="Trying remedies", unit="rows", place=f"remedies-{place}")
        found = wait(job, key=f"remedies-{place}", height=heights.table(3))
        if found is None:
            return ""
        rows += [
            {
                "Space": LABELS.at(setting),
                "Neighbours by": REMEDIES[name],
                "Skewness": number(one["skewness"]),
                "Largest hub": spaced(one["largest"]),
                "On no list": f"{100 * one['never']:.1f} %",
            }
            for name, one in found.items()
        ]
    st.dataframe(rows, hide_index=True, height=heights.table(len(rows)), alt="Hubs of both spaces under each remedy")
    st.caption(
        "CSLS (Conneau et al. 2018): 2 cos(x, y) - r(x) - r(y), r the mean cosine with the ten nearest. Mutual "
        "proximity (Schnitzer et al. 2012): how likely each is farther from a third than from the other."
    )
    return "    print(one, whitelab.hub_remedies(space, one))\n"
