"""The space at a glance."""

import streamlit as st

from whitelab import figures
from whitelab.ui.results import cache
from whitelab.ui.widgets import frame
from whitelab.whitening import variant as variant_of

chosen, opened = frame.open_page(
    "What does this space look like, and what would whitening change?",
    "Look at the distance between the grey bar and the coloured ones: that is what a linear map of the same "
    "vectors gains or loses.",
)
variant = chosen.compared
k, labels = chosen.k_for(variant), frame.labels()
base = chosen.protocol(opened.pairs.source)
scores = {
    name: cache.score(opened.key, base.with_(whitening=name, k=chosen.k_for(name)))
    for name in dict.fromkeys(("none", "center", "standardize", "pca", "zca", "cholesky", variant))
}
before = cache.profile(opened.key, chosen.layers, "none", None, "gt4", chosen.aggregate, chosen.fit)
after = cache.profile(opened.key, chosen.layers, variant, k, "gt4", chosen.aggregate, chosen.fit)
raw, now = scores["none"], scores[variant]

for column, draw in zip(
    st.columns(4),
    (
        lambda: frame.score_metric("Spearman, raw", raw),
        lambda: frame.score_metric(f"Spearman, {labels[variant]}", now, raw),
        lambda: st.metric(
            "Mean cosine of random pairs",
            frame.number(after.mean_cosine, 3),
            delta=f"{after.mean_cosine - before.mean_cosine:+.3f} from {before.mean_cosine:.3f}",
            delta_color="inverse",
            border=True,
            height="stretch",
            help="Anisotropy: 0 is isotropic, near 1 a narrow cone.",
        ),
        lambda: st.metric(
            "Rank kept",
            f"{now.rank} of {now.dim}",
            delta=f"fitted on {frame.spaced(now.sentences)} sentences"
            + (f", held-out isotropy {now.isotropy:.2f}" if now.isotropy is not None else ""),
            delta_color="off",
            delta_arrow="off",
            border=True,
            height="stretch",
            help="Directions the rank policy kept. A single layer after LayerNorm is never of full rank.",
        ),
    ),
    strict=True,
):
    with column:
        draw()

if now.reason:
    st.warning(now.reason)
left, right = st.columns([3, 2])
known = [name for name in scores if scores[name].spearman is not None]
with left:
    st.subheader("Spearman by variant")
    if known:
        frame.chart(
            figures.score_bars(
                known,
                [labels[name] for name in known],
                [scores[name].spearman for name in known],
                [scores[name].half_width or 0.0 for name in known],
            ),
            "scores",
            lambda: [
                {"variant": name, "spearman": scores[name].spearman, "half_width_95": scores[name].half_width}
                for name in known
            ],
        )
    st.caption(
        "PCA, ZCA and Cholesky whitening have equal bars because they differ by a rotation only, and a rotation "
        "changes no cosine. The whitening page compares every variant. Whiskers are 95 % intervals."
    )
with right:
    st.subheader("Spectrum")
    frame.chart(
        figures.spectrum({"none": before.eigenvalues, variant: after.eigenvalues}, labels),
        "spectrum",
        lambda: [
            {"variant": p.whitening, "direction": i + 1, "eigenvalue": value}
            for p in (before, after)
            for i, value in enumerate(p.eigenvalues)
        ],
    )
    st.caption(
        f"Participation ratio {before.participation_ratio:.1f} before and {after.participation_ratio:.1f} after, "
        f"of {opened.space.dim} dimensions."
    )
if raw.spearman is not None and now.spearman is not None and now.spearman < raw.spearman:
    st.info(
        f"{labels[variant]} lowers the score here. Encoders trained contrastively, as the bundled model "
        "was, already spread their last layers evenly, and whitening then amplifies directions that carry little "
        "meaning. On published STS data their lower layers gain instead.",
        icon=":material/info:",
    )
st.subheader("Where to go next")
with st.container(horizontal=True):
    for name, label in (
        ("whitening", "Which whitening, and is the gain real?"),
        ("anisotropy", "How narrow is the cone, layer by layer?"),
        ("layers", "Which layers should be averaged?"),
        ("dimensions", "How many dimensions are worth keeping?"),
        ("uniformity", "Are similar sentences close, and all spread out?"),
        ("compare", "Which model, and does it match what was published?"),
    ):
        st.page_link(f"pages/{name}.py", label=label, icon=":material/arrow_forward:")

frame.close_page(
    opened,
    now,
    [
        (
            r"\operatorname{score} = 100\,\rho\big(\text{gold}_i,\ \cos(z_{a_i}, z_{b_i})\big)",
            "Spearman's rank correlation",
        ),
        (variant_of(variant).formula, variant_of(variant).source),
    ],
    variant_of(variant).hint,
    frame.preamble(chosen)
    + f"\nfor name in {list(scores)!r}:\n"
    + "    protocol = whitelab.Protocol(encoder.name, pairs.source, pairs.task, pairs.split, "
    + f"{chosen.pooling!r},\n"
    + f"                                 layers={chosen.layers}, whitening=name, aggregate={chosen.aggregate!r},\n"
    + f"                                 fit={chosen.fit!r})\n"
    + f"    print(name, whitelab.score(space, protocol{', corpus' if opened.corpus else ''}).spearman)\n",
)
