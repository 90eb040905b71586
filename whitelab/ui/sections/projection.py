"""The sentences as points, before or after a map, in two or three coordinates."""

import streamlit as st

from whitelab import figures
from whitelab.figures import heights
from whitelab.scoring.setting import Setting
from whitelab.statistics.projection import METHODS, UMAP_ROWS
from whitelab.sweeps.layer_profiles import projected
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.jobs import wait
from whitelab.ui.results.study import study_job
from whitelab.ui.sidebar.opening import Opened
from whitelab.ui.widgets.chart import chart
from whitelab.ui.widgets.choice import choice


def draw(opened: Opened, compared: Setting) -> str:
    """Choose a space, a method and a colour, and look; the line that gives the points in Python, if there are any."""
    stages = {setting.whitening: setting for setting in (compared.raw, compared)}
    with st.container(horizontal=True):
        stage = choice("Space", stages, key="stage", bind="query-params", format_func=LABELS.__getitem__)
        method = choice("Method", METHODS, key="method", bind="query-params", format_func=METHODS.get)
        dims = choice("Dimensions", [2, 3], key="dims", bind="query-params")
        colour = choice("Colour", ["gold", "subset"], key="colour", bind="query-params")
    if method == "umap" and opened.space.n_sentences < UMAP_ROWS:
        here = opened.space.n_sentences
        st.info(f"UMAP lays out {UMAP_ROWS} different sentences or more, and here are {here}. Choose PCA.")
        return ""
    title = f"Computing the {METHODS[method]} projection"
    job = study_job(
        projected, opened.space, stages[stage], method, dims, title=title, unit="epochs", place="projection"
    )
    points = wait(job, key="projection", height=heights.room(heights.PROJECTION))
    if points is None:
        return ""
    pairs = opened.pairs
    values = pairs.gold_by_sentence.tolist() if colour == "gold" else list(pairs.subset_by_sentence)
    chart(
        figures.projection(points, pairs.sentences, values, colour, METHODS[method]),
        "projection-chart",
        lambda: [
            {"sentence": text, **{f"x{j}": value for j, value in enumerate(point, 1)}, colour: shade}
            | {"whitening": stage, "method": method}
            for text, point, shade in zip(pairs.sentences, points.tolist(), values, strict=True)
        ],
    )
    st.caption(
        "Each point is a sentence; hover to read it. "
        + ("In UMAP only neighbourhoods mean something, not axes or far distances." if method == "umap" else "")
    )
    return f"print(whitelab.projected(space, whitelab.Setting.parse({str(stages[stage])!r}), {method!r}, {dims}))\n"
