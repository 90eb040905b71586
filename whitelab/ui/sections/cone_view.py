"""The cone as one sees it: the same sentences raw, centred and under the compared variant, around one origin."""

import numpy as np
import streamlit as st

from whitelab import figures
from whitelab.scoring.setting import Setting
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.scores import cones, shape_of
from whitelab.ui.results.study import study
from whitelab.ui.sidebar.opening import Opened
from whitelab.ui.widgets.chart import chart
from whitelab.ui.widgets.metric import number
from whitelab.whitening import of_rows

DRAWN = 1500  # sentences of a picture


def draw(opened: Opened, compared: Setting) -> str:
    """Three pictures from left to right, each with what it shows in numbers; the lines that give these in Python."""
    space, sentences = opened.space, opened.pairs.sentences
    stages = tuple(dict.fromkeys((compared.raw, compared.raw.with_(whitening="center"), compared)))
    if of_rows(compared.whitening):
        stages = stages[:2]
        st.caption(f"{LABELS.at(compared)} has no picture here: it is not one matrix for all sentences.")
    st.markdown(
        "Every sentence is a point, the pink cross the origin, the pink arrow the mean vector. Draw a line from the "
        "cross to each of two points: the smaller the angle between the lines, the nearer the cosine of the two "
        "sentences is to 1. Where all points lie far to one side of the cross, that holds for any two."
    )
    drawn = np.arange(len(sentences))
    if len(drawn) > DRAWN:
        drawn = np.sort(np.random.default_rng(0).choice(drawn, DRAWN, replace=False))
    views = study(cones, space, stages)
    for stage, (column, setting, view) in enumerate(zip(st.columns(len(stages)), stages, views, strict=True)):
        name = LABELS.at(setting)
        with column:
            st.markdown(f"**{name}**")
            texts = [sentences[i] for i in drawn]
            chart(
                figures.cone(view.points[drawn], view.mean, texts, setting.whitening, name),
                f"cone-{stage}",
                lambda view=view, spec=setting.whitening: [
                    {"sentence": text, "along": x, "across": y, "whitening": spec}
                    for text, (x, y) in zip(sentences, view.points.tolist(), strict=True)
                ],
            )
            st.caption(_words(shape_of(space, setting).mean_cosine, view.angle))
    st.caption(
        "The plane holds the raw mean vector and the direction across it along which raw vectors vary most. The other "
        f"{space.dim - 2} dimensions are not seen, so a cone looks narrower than it is. Each picture has a scale of "
        "its own. A map is drawn without the rotation that PCA or Cholesky add, since no cosine sees it."
    )
    return (
        f"settings = [whitelab.Setting.parse(text) for text in {tuple(map(str, stages))!r}]\n"
        "for one, cone in zip(settings, whitelab.cones(space, settings)):\n"
        "    print(one, whitelab.shape(space, one).mean_cosine, cone.angle, cone.mean, cone.points)\n"
    )


def _words(cosine: float, angle: float | None) -> str:
    mean = f"Mean cosine of two random sentences {number(cosine)}."
    if angle is None:
        return f"{mean} The mean vector is the origin."
    return f"{mean} Half of the sentences lie within {angle:.0f}° of the mean vector."
