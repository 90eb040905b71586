"""Alignment against uniformity."""

import streamlit as st

from whitelab import figures
from whitelab.statistics import geometry
from whitelab.ui.results import cache
from whitelab.ui.widgets import frame

chosen, opened = frame.open_page(
    "Are similar sentences close, and all sentences spread out?",
    "Look for points towards the lower left, and for the path a variant takes there: whitening buys uniformity and pays "
    "with alignment.",
)
space, labels = opened.space, frame.labels()
with st.container(horizontal=True):
    positives = st.segmented_control(
        "Positive pairs",
        list(geometry.POSITIVES),
        default="gt4",
        key="positives",
        bind="query-params",
        required=True,
        format_func=lambda name: geometry.POSITIVES[name],
        help="SimCSE's footnote 3 says above 4; code in circulation uses at least 4. The losses differ.",
    )
    variants = frame.variant_picker(chosen, "paths", ("none", "center", "standardize", chosen.compared))
positives = positives or "gt4"
now = cache.score(opened.key, chosen.protocol(opened.pairs.source))
variant = chosen.compared
short = labels[variant].split()[0]
before = cache.profile(opened.key, chosen.layers, "none", None, positives, chosen.aggregate, chosen.fit)
after = cache.profile(opened.key, chosen.layers, variant, chosen.k, positives, chosen.aggregate, chosen.fit)
floor = geometry.uniformity_floor(space.dim)

for column, (label, value, reference) in zip(
    st.columns(4),
    (
        ("Alignment, raw", before.alignment, None),
        (f"Alignment, {short}", after.alignment, before.alignment),
        ("Uniformity, raw", before.uniformity, None),
        (f"Uniformity, {short}", after.uniformity, before.uniformity),
    ),
    strict=True,
):
    column.metric(
        label,
        frame.number(value, 3),
        delta=None if reference is None or value != value else f"{value - reference:+.3f}",
        delta_color="inverse",
        border=True,
        height="stretch",
        help=f"Lower is better. Layers {' + '.join(map(str, chosen.layers))}.",
    )
if before.positives == 0:
    st.warning(f"No pair has {geometry.POSITIVES[positives]}, so the alignment loss is not defined for this data.")

found = cache.layer_profiles(opened.key, variants, positives, chosen.aggregate, chosen.fit, "profiles")
if found is None:
    st.stop()
rows = [
    {
        "layer": one.layers[0],
        "whitening": one.whitening,
        "alignment": one.alignment,
        "uniformity": one.uniformity,
        "spearman": one.spearman,
    }
    for one in found
]
selected = chosen.layers[0] if len(chosen.layers) == 1 else None
frame.chart(figures.plane(rows, labels, floor, selected), "plane", lambda: rows)
st.caption(
    f"Every point is one layer (its number beside it) under one variant; colour is Spearman x 100. {before.positives} positive "
    f"pairs ({geometry.POSITIVES[positives]}); uniformity over all {frame.spaced(2 * space.n_pairs)} sentence occurrences. "
    f"The floor for d = {space.dim} is {floor:.3f}, the value of a uniform distribution on the sphere. Whitening variants "
    "coincide: they differ by a rotation only."
)

frame.close_page(
    opened,
    now,
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
    "Centring alone explains most of the gain in uniformity.",
    frame.preamble(chosen)
    + "\nfrom whitelab.sweeps.layer_profiles import layer_profiles\n\n"
    + f"for one in layer_profiles(space, {variants!r}, positives={positives!r}{frame.fit_arguments(chosen)}):\n"
    + "    print(one.layers, one.whitening, one.alignment, one.uniformity, one.spearman)\n",
)
