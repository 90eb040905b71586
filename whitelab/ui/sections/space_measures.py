"""Every measure over the unique sentences, layer by layer: small pictures side by side, raw against the variants."""

from collections.abc import Sequence

import streamlit as st

from whitelab import figures
from whitelab.base.wording import layers_in_words
from whitelab.encoding.pooling import GIVEN
from whitelab.figures import heights
from whitelab.scoring.setting import Setting
from whitelab.statistics.geometry import METRICS
from whitelab.sweeps.layer_measures import Measures, layer_measures, norm_correlations
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.jobs import wait
from whitelab.ui.results.study import study_job
from whitelab.ui.sidebar.opening import Opened
from whitelab.ui.widgets.chart import chart, csv_button
from whitelab.ui.widgets.metric import number

UNIQUE = {name: metric for name, metric in METRICS.items() if metric.unique}
_COLUMNS = 3


def draw(opened: Opened, compared: Setting) -> str:
    """A row of pictures for each group, what each measure is, and whether lengths follow the text; the lines that give
    the same in Python."""
    settings = (compared.raw,) if compared.raw == compared else (compared.raw, compared)
    title = "Measuring every layer, each sentence once"
    job = study_job(layer_measures, opened.space, settings, title=title, unit="%", place="measures")
    found = wait(job, key="measures", height=heights.room(heights.SMALL))
    if found is None:
        return ""
    titles = LABELS.titles(settings)
    for group in dict.fromkeys(metric.group for metric in UNIQUE.values()):
        st.markdown(f"**{group}**")
        names = [name for name, metric in UNIQUE.items() if metric.group == group]
        for place, name in enumerate(names):
            if place % _COLUMNS == 0:
                columns = st.columns(_COLUMNS)
            with columns[place % _COLUMNS]:
                curves = {spec: [one.values[name] for one in found if one.whitening == spec] for spec in titles}
                chart(figures.by_layer(curves, titles, METRICS[name].label, height=heights.SMALL), f"measure-{name}")
        if group == "Lengths":
            _lengths(opened, settings)
    csv_button(lambda: [_row(one) for one in found], "measures")
    st.caption(
        "Each sentence counts once, however often it occurs. On the sentences that a whitening was fitted on IsoScore "
        "is near 1 by construction: the held-out one stands below every score."
    )
    with st.expander("What each measure is, and what it cannot see"):
        for metric in UNIQUE.values():
            st.markdown(
                f"**{metric.label}**, {metric.range}. {metric.hint} ${metric.formula}$ ({metric.source}). "
                f"*It cannot see:* {metric.blind}"
            )
    lengths = "for one in settings:\n    print(one, whitelab.norm_correlations(space, one, pairs.sentences))\n"
    return (
        f"settings = [whitelab.Setting.parse(text) for text in {tuple(map(str, settings))!r}]\n"
        "for one in whitelab.layer_measures(space, settings):\n"
        "    print(one.layers, one.whitening, one.values)\n" + lengths * (opened.space.origin.pooling != GIVEN)
    )


def _lengths(opened: Opened, settings: Sequence[Setting]) -> None:
    """One line: whether long sentences, or those of frequent words, have long vectors. None where text is not known."""
    if opened.space.origin.pooling == GIVEN:
        return
    said = []
    for setting in settings:
        length, frequency = norm_correlations(opened.space, setting, opened.pairs.sentences).values()
        said.append(f"{LABELS.at(setting)}: {number(length)} and {number(frequency)}")
    layers = layers_in_words(settings[0].layers)
    st.caption(
        f"Spearman of a vector's length with the words of its sentence, {layers}: with their number, and with "
        f"how frequent they are among these sentences. {'; '.join(said)}. A word is letters, digits and underscores in "
        "a row."
    )


def _row(one: Measures) -> dict:
    return {"layer": one.layers[0], "whitening": one.whitening, "k": one.k} | one.values
