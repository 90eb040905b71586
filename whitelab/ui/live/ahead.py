"""What the live number would be one move on: with a layer more or less, or under another variant.

Computed once the visitor reaches for those knobs, so that nobody pays for a sight not wanted; then the browser shows
it on the layers' pills and paints it at the click, before the server has heard of it.
"""

from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from weakref import ReferenceType

import streamlit as st

from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.scoring.fit_scopes import at_hand
from whitelab.scoring.setting import Setting
from whitelab.ui.results.scores import number_of
from whitelab.ui.sidebar import knobs
from whitelab.whitening import WHITENERS, canonical, variant

PLACE = "live-ahead"  # key of the component
SECONDS = 1.5  # what is known by then is shown; the browser asks on for the rest

_mount = st.components.v2.component(
    "whitelab.ahead", html="<span></span>", js=(Path(__file__).parent / "ahead.js").read_text("utf-8")
)


@st.fragment
def hand_over(held: ReferenceType[LayerEmbeddings], setting: Setting, of: str, k: int) -> None:
    """Hand over the numbers around `setting` on a space, for the knob the visitor has reached for.

    `of` and `k` tell the live score whether they are about what it shows. A fragment: reaching for a knob runs this
    alone, and a session keeps no embeddings for its sake.
    """
    space, knob = held(), st.session_state.get(PLACE, {}).get("wanted")
    moves = {"layers": layer_moves, "whitening": variant_moves}.get(knob)
    scores, more, end = {}, False, monotonic() + SECONDS
    for label, moved in moves(space, setting, k) if moves and space is not None else ():
        if more := monotonic() > end:
            break
        st.empty()  # where a newer move of the visitor's ends this run
        try:
            if not at_hand(space, (moved,)):
                continue  # what takes a while to fit is fitted when it is chosen
            score, raw = number_of(space, moved), number_of(space, moved.raw)
        except ValueError:
            continue  # a map that cannot be fitted here says why when it is chosen
        scores[label] = [score.spearman, None if moved.whitening == "none" else raw.spearman]
    now = number_of(space, setting).spearman if scores else None
    data = {"of": of, "k": k, "knob": knob, "now": now, "scores": scores, "more": more}
    _mount(key=PLACE, data=data, height=1, on_wanted_change=lambda: None)


def layer_moves(space: LayerEmbeddings, setting: Setting, k: int) -> Iterator[tuple[str, Setting]]:
    """The setting with each layer put in or taken out, by the layer's number; the last one left stays."""
    here = set(setting.layers)
    for layer in range(space.n_layers):
        if layers := here ^ {layer}:
            yield str(layer), setting.with_(layers=tuple(sorted(layers)))


def variant_moves(space: LayerEmbeddings, setting: Setting, k: int) -> Iterator[tuple[str, Setting]]:
    """The setting under each other variant, its parameters as the bar keeps them, by the variant's label."""
    for name, entry in WHITENERS.items():
        if entry is not variant(setting.whitening):
            spec = knobs.kept_spec(name, entry.parameters, canonical)
            yield entry.label, setting.with_(whitening=spec, k=k if entry.takes_k and k < space.dim else None)
