"""How many dimensions are worth keeping."""

import streamlit as st

from whitelab import figures
from whitelab.ui import cache, frame
from whitelab.whitening import variant as variant_of

chosen, opened = frame.open_page(
    "How many dimensions are worth keeping?",
    "Look for the point after which the curve is flat: dimensions beyond it cost memory and search time, and buy nothing.",
)
space, labels = opened.space, frame.labels()
variant = chosen.compared if variant_of(chosen.compared).takes_k else "pca"
other = "center" if variant != "center" else "pca"
k = chosen.k or space.dim
curve = cache.k_curve(opened.key, chosen.layers, variant, chosen.aggregate, chosen.fit)
rival = cache.k_curve(opened.key, chosen.layers, other, chosen.aggregate, chosen.fit)
base = chosen.protocol(opened.pairs.source, whitening=variant, k=k)
now = cache.score(opened.key, base)
raw = cache.score(opened.key, base.with_(whitening="none", k=None))
size = space.n_sentences * 4

for column, draw in zip(
    st.columns(4),
    (
        lambda: frame.score_metric(f"Spearman at k = {k}", now, raw),
        lambda: st.metric(
            "Best k",
            curve.best_k or "undefined",
            delta=f"Spearman {curve.spearman[curve.best_k - 1]:.2f}" if curve.best_k else None,
            delta_color="off",
            delta_arrow="off",
            border=True,
            height="stretch",
        ),
        lambda: st.metric(
            "Knee",
            curve.knee or "undefined",
            delta="within 0.5 points of the best",
            delta_color="off",
            delta_arrow="off",
            border=True,
            height="stretch",
        ),
        lambda: st.metric(
            "Memory saved",
            f"{100 * (1 - k / space.dim):.0f} %",
            delta=f"{size * k / 2**20:.1f} of {size * space.dim / 2**20:.1f} MiB",
            delta_color="off",
            delta_arrow="off",
            border=True,
            height="stretch",
            help=f"float32 vectors of this task's {frame.spaced(space.n_sentences)} sentences. An exact search reads "
            "the same share of bytes.",
        ),
    ),
    strict=True,
):
    with column:
        draw()


def take(value: int) -> None:
    """Move the workspace's k."""
    st.session_state["k"] = value


with st.container(horizontal=True, vertical_alignment="center"):
    lines = space.n_subsets > 1 and st.toggle("One line for each subset", key="lines", bind="query-params")
    if curve.best_k and variant_of(chosen.whitening).takes_k:
        st.button(f"Take the best k, {curve.best_k}", on_click=take, args=(curve.best_k,))
        st.button(f"Take the knee, {curve.knee}", on_click=take, args=(curve.knee,))
frame.chart(
    figures.k_curves(
        curve.spearman,
        curve.subsets if lines else {},
        variant,
        labels[variant],
        k,
        curve.best_k,
        curve.knee,
        curve.rank,
        raw.spearman,
        (other, "PCA without scaling" if other == "center" else labels[other], rival.spearman),
    ),
    "k-curve",
    lambda: [
        {"k": j, "spearman": s, "explained": e, **{name: v[j - 1] for name, v in curve.subsets.items()}}
        for j, s, e in zip(curve.k, curve.spearman, curve.explained, strict=True)
    ],
)
st.caption(
    f"Move k in the bar at the left. The top {k} directions hold {100 * curve.explained[k - 1]:.1f} % of the variance. "
    f"The rank is {curve.rank} of {curve.dim}"
    + (": above it there is no direction left to keep, so the curve is flat." if curve.rank < curve.dim else ".")
)

frame.close_page(
    opened,
    now,
    [
        (variant_of(variant).formula, variant_of(variant).source),
        (
            r"\cos_k(a,b)=\frac{\sum_{i\le k} a_i b_i}{\sqrt{\sum_{i\le k} a_i^2\,\sum_{i\le k} b_i^2}}",
            "In the eigenbasis every k is a running sum, so the whole curve costs one projection",
        ),
    ],
    "k always means the top-k eigen-directions of the covariance. Whitening variants share one curve, because they differ by a "
    "rotation inside those directions. The knee is the smallest k within 0.5 points of the best.",
    frame.preamble(chosen)
    + f"\ncurve = whitelab.k_curve(space, {chosen.layers}, {variant!r}, {chosen.aggregate!r}{frame.fit_arguments(chosen)})\n"
    + "print(curve.best_k, curve.knee, curve.spearman[curve.best_k - 1])\n",
)
