"""How narrow the cone is."""

import streamlit as st

from whitelab import figures
from whitelab.figures import heights
from whitelab.statistics.geometry import METRICS
from whitelab.sweeps.layer_profiles import cosine_sample, layer_shapes, shape
from whitelab.ui.results.jobs import wait
from whitelab.ui.results.study import study, study_job
from whitelab.ui.sections import cone_view, layer_similarity, neighbour_inspector, projection, space_measures
from whitelab.ui.widgets.chart import chart
from whitelab.ui.widgets.metric import Metric, change, headlines, number
from whitelab.ui.widgets.page import close_page, open_page
from whitelab.ui.widgets.variants import LABELS, variant_picker

BY_OCCURRENCE = [name for name, one in METRICS.items() if not one.unique]  # the others: a tab below

chosen, opened = open_page(
    "How narrow is the cone, layer by layer?",
    "Look for layers whose random sentences have a high cosine: there, every sentence points the same way.",
)
space, compared = opened.space, chosen.compared
shown = variant_picker(chosen, "show", ("none", "center", compared.whitening))
titles = {setting.whitening: LABELS.at(setting) for setting in shown}
before, after = (study(shape, space, one) for one in (compared.raw, compared))
combined = " + ".join(map(str, compared.layers))
headlines(
    *(
        Metric(
            f"{METRICS[name].label}, {LABELS.at(setting)}",
            number(getattr(measured, name), digits),
            None if measured is before else change(getattr(after, name), getattr(before, name), digits=digits),
            "" if measured is before else good,
            f"{METRICS[name].hint} Layers {combined}.",
        )
        for name, digits, good in (("mean_cosine", 3, "down"), ("participation_ratio", 1, "up"))
        for setting, measured in ((compared.raw, before), (compared, after))
    )
)

metric = st.segmented_control(
    "Measure",
    BY_OCCURRENCE,
    default="mean_cosine",
    key="measure",
    bind="query-params",
    required=True,
    format_func=lambda name: METRICS[name].label,
)
metric = metric or "mean_cosine"
job = study_job(layer_shapes, space, tuple(shown), title="Measuring every layer", unit="settings", place="profiles")
if profiles := wait(job, key="profiles", height=heights.room(heights.CURVES)):
    curves = {spec: [getattr(one, metric) for one in profiles if one.whitening == spec] for spec in titles}
    chart(
        figures.by_layer(curves, titles, METRICS[metric].label),
        "by-layer",
        lambda: [
            {
                "layer": one.layers[0],
                **{name: getattr(one, name) for name in BY_OCCURRENCE},
                "variant": one.whitening,
                "k": one.k,
            }
            for one in profiles
        ],
    )
    st.caption("{0.hint} An isotropic space has {0.ideal}. What it cannot see: {0.blind}".format(METRICS[metric]))

TABS = ["The cone", "Cosines of random pairs", "Spectrum", "Projection", "Every measure", "Neighbours", "Layers alike"]
cone, cosines, spectra, picture, every, near, alike = st.tabs(TABS, key="space", on_change="rerun", bind="query-params")
if cone.open:
    with cone:
        cone_view.draw(opened, compared)
if cosines.open:
    with cosines:
        samples = {one.whitening: study(cosine_sample, space, one) for one in shown}
        chart(figures.cosine_histogram(samples, titles), "cosines")
        st.caption(
            f"20\u202f000 random pairs of different sentences, layers {combined}. The means above are exact, over all "
            "pairs."
        )
if spectra.open:
    with spectra:
        measured = {one.whitening: study(shape, space, one) for one in shown}
        chart(
            figures.spectrum({spec: one.eigenvalues for spec, one in measured.items()}, titles),
            "spectra",
            lambda: [
                {"variant": spec, "direction": i, "eigenvalue": value}
                for spec, one in measured.items()
                for i, value in enumerate(one.eigenvalues, 1)
            ],
        )
        ratios = ", ".join(f"{titles[spec]} {one.participation_ratio:.1f}" for spec, one in measured.items())
        st.caption(f"Participation ratio: {ratios} of {space.dim}.")
if picture.open:
    with picture:
        projection.draw(opened, compared)
for tab, section in ((every, space_measures), (near, neighbour_inspector), (alike, layer_similarity)):
    if tab.open:
        with tab:
            section.draw(opened, compared)

close_page(
    chosen,
    opened,
    [
        (
            r"\mathbb{E}_{i\neq j}\cos(x_i,x_j)=\frac{\lVert\sum_i u_i\rVert^2-n}{n(n-1)},\quad u_i=x_i/\lVert x_i\rVert",
            "Mean cosine of random pairs, exact over all pairs; Ethayarajh 2019 samples it. No measure of isotropy: centring alone brings it to 0 (Rudman and Eickhoff 2024)",
        ),
        (
            r"\mathrm{PR}=\frac{(\sum_i\lambda_i)^2}{\sum_i\lambda_i^2}",
            "Participation ratio of the covariance; IsoScore (Rudman et al. 2022) is (PR - 1) / (d - 1)",
        ),
    ],
    "A space is anisotropic when its vectors fill a narrow cone: two random sentences then look similar, and cosine "
    "says little. Centring moves the cone's axis to the origin; whitening also gives every direction the same variance.",
    f"for text in {tuple(map(str, shown))!r}:\n"
    "    for one in whitelab.layer_shapes(space, [whitelab.Setting.parse(text)]):\n"
    "        print(text, one.layers, one.mean_cosine, one.participation_ratio)\n",
)
