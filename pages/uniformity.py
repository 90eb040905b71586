"""Alignment against uniformity."""

import streamlit as st

from whitelab.base.wording import capitalised, layers_in_words
from whitelab.statistics import geometry
from whitelab.ui.frame.page import close_page, open_page
from whitelab.ui.frame.variants import LABELS, variant_picker
from whitelab.ui.results.scores import losses_of
from whitelab.ui.sections import spread_plane
from whitelab.ui.widgets.choice import choice
from whitelab.ui.widgets.metric import Metric, change, headlines, number

chosen, opened = open_page(
    "Are similar sentences close, and all sentences spread out?",
    "Look at which way a variant moves each layer: to the left all sentences spread out, upwards similar ones move "
    "apart. Up and to the left, spread is bought with alignment.",
)
space, compared = opened.space, chosen.compared
usual = geometry.usual_positives(space.gold)
if st.session_state.get("positives-usual", usual) != usual:  # other data, on another scale
    st.session_state["positives"] = usual
st.session_state["positives-usual"] = usual
left, right = st.columns(2)
with left:
    positives = choice(
        "Positive pairs",
        geometry.POSITIVES,
        usual,
        key="positives",
        bind="query-params",
        format_func=geometry.POSITIVES.get,
        help="SimCSE's footnote 3 says above 4; code in circulation uses at least 4. The losses differ. Of scores that "
        "do not run from 0 to 5 the top fifth is what 4 and above is of these.",
    )
with right:
    paths = variant_picker(chosen, "paths", ("none", "center", compared.whitening))
before, after = (losses_of(space, one, positives) for one in (compared.raw, compared))
hint = f"Lower is better. {capitalised(layers_in_words(compared.layers))}."
headlines(
    *(
        Metric(f"{title}, {LABELS.card(setting)}", number(value, 3), delta, "down" if delta else "", hint)
        for title, name in (("Alignment", "alignment"), ("Uniformity", "uniformity"))
        for setting, value, delta in (
            (compared.raw, getattr(before, name), None),
            (compared, getattr(after, name), change(getattr(after, name), getattr(before, name), digits=3)),
        )
    )
)
if said := geometry.alignment_note(space.gold, positives):
    st.warning(f"{capitalised(said)}.")
spread_plane.draw(space, compared, tuple(paths), positives)

close_page(
    chosen,
    opened,
    [
        (
            r"\ell_{\text{align}}=\mathbb{E}_{(x,y)\sim p_{\text{pos}}}\lVert u_x-u_y\rVert^2",
            "Wang and Isola 2020; WhitenedCSE Eq. 9",
        ),
        (
            r"\ell_{\text{uniform}}=\log\,\mathbb{E}_{i<j}\,e^{-2\lVert u_i-u_j\rVert^2}",
            "Wang and Isola 2020; WhitenedCSE Eq. 10; vectors brought to unit length first",
        ),
    ],
    "Alignment asks whether paraphrases lie close together, uniformity whether all sentences together fill the sphere. "
    "In a narrow cone centring alone explains most of what whitening gains in uniformity at full k.",
    f"for text in {tuple(map(str, paths))!r}:\n"
    f"    for one in whitelab.layer_losses(space, [whitelab.Setting.parse(text)], {positives!r}):\n"
    "        print(text, one.layers, one.alignment, one.uniformity, one.spearman)\n"
    f"for text in {(str(compared.raw), str(compared))!r}:\n"
    f"    one = whitelab.losses(space, whitelab.Setting.parse(text), {positives!r})\n"
    "    print(text, one.layers, one.alignment, one.uniformity, one.spearman)\n",
)
