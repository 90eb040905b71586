"""How alike every two layers are, raw and under the variant, as two maps on one scale."""

import streamlit as st

from whitelab import figures
from whitelab.figures import heights
from whitelab.scoring.setting import Setting
from whitelab.sweeps.layer_measures import layer_similarity
from whitelab.ui.results.jobs import wait
from whitelab.ui.results.study import study_job
from whitelab.ui.sidebar.opening import Opened
from whitelab.ui.widgets.chart import chart
from whitelab.ui.widgets.variants import LABELS


def draw(opened: Opened, compared: Setting) -> None:
    """Both maps; a setting's own layers do not count."""
    for column, (place, setting) in zip(st.columns(2), (("raw", compared.raw), ("mapped", compared)), strict=True):
        every = setting.with_(layers=(0,))
        with column:
            st.markdown(f"**{LABELS.at(every)}**")
            job = study_job(
                layer_similarity, opened.space, every, title="Comparing layers", unit="pairs", place=f"cka-{place}"
            )
            cka = wait(job, key=f"cka-{place}-wait", height=heights.room(heights.PAIRS))
            if cka is not None:
                chart(figures.similarity(cka, LABELS.at(every)), f"cka-{place}", lambda cka=cka: _rows(cka))
    st.caption(
        "Linear CKA (Kornblith et al. 2019) over the unique sentences: 1 where two layers differ by a rotation and a "
        "scale only. It weighs directions by their variance squared, so raw it is about the few largest; whitened, "
        "every direction counts the same."
    )


def _rows(cka) -> list[dict]:
    return [
        {"layer_i": i, "layer_j": j, "cka": value} for i, row in enumerate(cka.tolist()) for j, value in enumerate(row)
    ]
