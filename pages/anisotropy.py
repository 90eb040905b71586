"""How narrow the cone is."""

import streamlit as st

from whitelab import figures
from whitelab.base.wording import capitalised, layers_in_words
from whitelab.figures import heights
from whitelab.statistics.geometry import METRICS
from whitelab.ui.frame.page import close_page, open_page
from whitelab.ui.frame.variants import LABELS, variant_picker
from whitelab.ui.results.jobs import wait
from whitelab.ui.results.scores import layer_shapes, shape_of
from whitelab.ui.results.study import study_job
from whitelab.ui.sections import (
    cone_view,
    cosine_meaning,
    layer_similarity,
    neighbour_inspector,
    projection,
    space_measures,
    space_views,
)
from whitelab.ui.widgets.chart import chart
from whitelab.ui.widgets.choice import choice
from whitelab.ui.widgets.metric import Metric, change, headlines, number
from whitelab.ui.widgets.tabs import tabs

BY_OCCURRENCE = [name for name, one in METRICS.items() if not one.unique]  # the others: a tab below

chosen, opened = open_page(
    "How narrow is the cone, layer by layer?",
    "Look for layers whose random sentences have a high cosine: there, all sentences share a direction.",
    intervals=True,
)
space, compared = opened.space, chosen.compared
shown = variant_picker(chosen, "show", ("none", "center", compared.whitening))
titles = LABELS.titles(shown)
before, after = (shape_of(space, one) for one in (compared.raw, compared))
ratio = "either" if compared.k else "up"  # of k directions there are k at most, which is no loss
headlines(
    *(
        Metric(
            f"{METRICS[name].label}, {LABELS.card(setting)}",
            number(getattr(measured, name), digits)
            + f" of {setting.directions(space.dim)}" * (setting.k is not None and good == "either"),
            None if measured is before else change(getattr(after, name), getattr(before, name), digits=digits),
            "" if measured is before else good,
            f"{METRICS[name].hint} {capitalised(layers_in_words(compared.layers))}.",
        )
        for name, digits, good in (("mean_cosine", 3, "down"), ("participation_ratio", 1, ratio))
        for setting, measured in ((compared.raw, before), (compared, after))
    )
)

metric = choice(
    "Measure",
    BY_OCCURRENCE,
    "mean_cosine",
    key="measure",
    bind="query-params",
    format_func=lambda name: METRICS[name].label,
)
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
                "whitening": one.whitening,
                "k": one.k,
            }
            for one in profiles
        ],
    )
    apart = f"Each layer alone; the numbers above are of {layers_in_words(compared.layers)} averaged. "
    words = "{0.hint} An isotropic space has {0.ideal}. What it cannot see: {0.blind}".format(METRICS[metric])
    st.caption(apart * (len(compared.layers) > 1) + words)

sections = {
    "The cone": lambda: cone_view.draw(opened, compared),
    "Cosines of random pairs": lambda: space_views.cosines(space, shown),
    "Spectrum": lambda: space_views.spectra(space, shown),
    "Projection": lambda: projection.draw(opened, compared),
    "Every measure": lambda: space_measures.draw(opened, compared),
    "Neighbours": lambda: neighbour_inspector.draw(opened, compared),
    "Layers alike": lambda: layer_similarity.draw(opened, compared),
    "What a cosine means": lambda: cosine_meaning.draw(space, compared),
}
open_tab = tabs(sections, "space") or ""
per_layer = (
    f"for text in {tuple(map(str, shown))!r}:\n"
    "    for one in whitelab.layer_shapes(space, [whitelab.Setting.parse(text)]):\n"
    "        print(text, one.layers, one.mean_cosine, one.participation_ratio, one.effective_rank, one.top_share)\n"
)

close_page(
    chosen,
    opened,
    [
        (
            r"\mathbb{E}_{i\neq j}\cos(x_i,x_j)=\frac{\lVert\sum_i u_i\rVert^2-n}{n(n-1)},\quad u_i=x_i/\lVert x_i\rVert",
            "Mean cosine of random pairs, exact over all pairs; Ethayarajh 2019 samples it. No measure of isotropy: centring alone brings it near 0 (Rudman and Eickhoff 2024)",
        ),
        (
            r"\mathrm{PR}=\frac{(\sum_i\lambda_i)^2}{\sum_i\lambda_i^2}",
            "Participation ratio of the covariance; IsoScore (Rudman et al. 2022) is (PR - 1) / (d - 1)",
        ),
    ],
    "A space is anisotropic when its vectors fill a narrow cone: two random sentences then look similar, and cosine "
    "says little. Centring moves the cone's axis to the origin; whitening also gives every direction the same variance.",
    (per_layer if profiles else "") + f"for text in {(str(compared.raw), str(compared))!r}:\n"
    "    one = whitelab.shape(space, whitelab.Setting.parse(text))\n"
    "    print(text, one.layers, one.mean_cosine, one.participation_ratio)\n" + open_tab,
)
