"""How narrow the cone is."""

import streamlit as st

from whitelab import figures
from whitelab.statistics.geometry import METRICS
from whitelab.statistics.projection import METHODS
from whitelab.ui.results import cache
from whitelab.ui.widgets import frame

chosen, opened = frame.open_page(
    "How narrow is the cone, layer by layer?",
    "Look for layers whose random sentences have a high cosine: there, every sentence points the same way.",
)
space, labels = opened.space, frame.labels()
variants = frame.variant_picker(chosen, "show", ("none", "center", chosen.compared))
now = cache.score(opened.key, chosen.protocol(opened.pairs.source))
before = cache.profile(opened.key, chosen.layers, "none", None, "gt4", chosen.aggregate, chosen.fit)
variant, k = chosen.compared, chosen.k
after = cache.profile(opened.key, chosen.layers, variant, k, "gt4", chosen.aggregate, chosen.fit)
short = labels[variant].split()[0]
combined = " + ".join(map(str, chosen.layers))

for column, (label, value, reference, hint) in zip(
    st.columns(4),
    (
        ("Mean cosine, raw", before.mean_cosine, None, METRICS["mean_cosine"].hint),
        (
            f"Mean cosine, {short}",
            after.mean_cosine,
            before.mean_cosine,
            METRICS["mean_cosine"].hint,
        ),
        ("Participation ratio, raw", before.participation_ratio, None, METRICS["participation_ratio"].hint),
        (
            f"Participation ratio, {short}",
            after.participation_ratio,
            before.participation_ratio,
            METRICS["participation_ratio"].hint,
        ),
    ),
    strict=True,
):
    digits = 3 if "cosine" in label else 1
    column.metric(
        label,
        frame.number(value, digits),
        delta=None if reference is None else f"{value - reference:+.{digits}f}",
        delta_color="inverse" if "cosine" in label else "normal",
        help=f"{hint} Layers {combined}.",
        border=True,
        height="stretch",
    )

metric = st.segmented_control(
    "Measure",
    list(METRICS),
    default="mean_cosine",
    key="measure",
    bind="query-params",
    required=True,
    format_func=lambda name: METRICS[name].label,
)
metric = metric or "mean_cosine"
if found := cache.layer_profiles(opened.key, variants, "gt4", chosen.aggregate, chosen.fit, "profiles"):
    curves = {name: [getattr(one, metric) for one in found if one.whitening == name] for name in variants}
    frame.chart(
        figures.by_layer(curves, labels, METRICS[metric].label),
        "by-layer",
        lambda: [
            {"layer": one.layers[0], **{m: getattr(one, m) for m in METRICS}, "variant": one.whitening} for one in found
        ],
    )
    st.caption(f"{METRICS[metric].hint} An isotropic space has {METRICS[metric].ideal}.")

cosines, spectra, picture = st.tabs(["Cosines of random pairs", "Spectrum", "Projection"])
with cosines:
    samples = {
        name: cache.cosine_sample(opened.key, chosen.layers, name, chosen.k_for(name), chosen.fit) for name in variants
    }
    frame.chart(figures.cosine_histogram(samples, labels), "cosines")
    st.caption(
        f"20\u202f000 random pairs of different sentences, layers {combined}. The means above are exact, over all pairs."
    )
with spectra:
    shown = {
        name: cache.profile(opened.key, chosen.layers, name, chosen.k_for(name), "gt4", chosen.aggregate, chosen.fit)
        for name in variants
    }
    frame.chart(
        figures.spectrum({name: one.eigenvalues for name, one in shown.items()}, labels),
        "spectra",
        lambda: [
            {"variant": name, "direction": i + 1, "eigenvalue": value}
            for name, one in shown.items()
            for i, value in enumerate(one.eigenvalues)
        ],
    )
    st.caption(
        "Participation ratio: "
        + ", ".join(f"{labels[name]} {one.participation_ratio:.1f}" for name, one in shown.items())
        + f" of {space.dim}."
    )
with picture, st.container():
    with st.container(horizontal=True):
        stage = st.segmented_control(
            "Space",
            list(dict.fromkeys(("none", variant))),
            default="none",
            key="stage",
            required=True,
            format_func=lambda name: labels[name],
        )
        method = st.segmented_control(
            "Method",
            list(METHODS),
            default="pca",
            key="method",
            bind="query-params",
            required=True,
            format_func=lambda name: METHODS[name],
        )
        dims = st.segmented_control("Dimensions", [2, 3], default=2, key="dims", bind="query-params", required=True)
        colour = st.segmented_control(
            "Colour", ["gold", "subset"], default="gold", key="colour", bind="query-params", required=True
        )
    stage, method, dims, colour = stage or "none", method or "pca", dims or 2, colour or "gold"
    points = cache.projected(
        opened.key, chosen.layers, stage, chosen.k_for(stage), chosen.fit, method, dims, "projection"
    )
    if points is not None:
        values, title = frame.sentence_colours(opened, colour)
        frame.chart(
            figures.projection(points, opened.pairs.sentences, values, title, METHODS[method]),
            "projection-chart",
            lambda: [
                {"sentence": text, **{f"x{j + 1}": value for j, value in enumerate(point)}, title: shade}
                for text, point, shade in zip(opened.pairs.sentences, points.tolist(), values, strict=True)
            ],
        )
        st.caption(
            "Each point is a sentence; hover to read it. "
            + ("In UMAP only neighbourhoods mean something, not axes or far distances." if method == "umap" else "")
        )

frame.close_page(
    opened,
    now,
    [
        (
            r"\mathbb{E}_{i\neq j}\cos(x_i,x_j)=\frac{\lVert\sum_i u_i\rVert^2-n}{n(n-1)},\quad u_i=x_i/\lVert x_i\rVert",
            "Mean cosine of random pairs, exact over all pairs; Ethayarajh 2019 samples it",
        ),
        (
            r"\mathrm{PR}=\frac{(\sum_i\lambda_i)^2}{\sum_i\lambda_i^2}",
            "Participation ratio of the covariance; IsoScore (Rudman et al. 2022) is (PR - 1) / (d - 1)",
        ),
    ],
    "A space is anisotropic when its vectors fill a narrow cone: two random sentences then look similar, and cosine "
    "says little. Centring moves the cone's axis to the origin; whitening also gives every direction the same variance.",
    frame.preamble(chosen)
    + "\nfrom whitelab.sweeps.layer_profiles import layer_profiles\n\n"
    + f"for one in layer_profiles(space, {variants!r}{frame.fit_arguments(chosen)}):\n"
    + "    print(one.layers, one.whitening, one.mean_cosine, one.participation_ratio)\n",
)
