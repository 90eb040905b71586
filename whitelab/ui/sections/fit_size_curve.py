"""How many sentences a map needs: the score by the sentences it is fitted on, drawn on demand."""

from collections.abc import Sequence

import streamlit as st

from whitelab import figures
from whitelab.base.groups import grouped
from whitelab.base.wording import capitalised, plain, spaced
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.figures import heights
from whitelab.scoring.setting import TOKENS, Setting
from whitelab.sweeps.fit_size import WORDS_ARE_NOT_DRAWN, FitSize, fit_sizes, with_shrunk
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.jobs import follow
from whitelab.ui.results.scores import number_of
from whitelab.ui.results.study import study_job
from whitelab.ui.widgets import asking
from whitelab.ui.widgets.chart import chart

OF = "fit-size"  # what is asked for


def draw(space: LayerEmbeddings, setting: Setting) -> None:
    """The curve of a setting, a shrunk and a soft map, once this visitor has asked for it."""
    st.header("How many sentences does it need?")
    st.markdown(
        "A covariance in d dimensions wants far more than d sentences. Look at what happens to full whitening near one "
        "sentence a dimension, and at what shrinking does there."
    )
    if setting.fit == TOKENS:
        st.caption(plain(capitalised(WORDS_ARE_NOT_DRAWN)) + ".")
        return
    if not asking.once("Fit on fewer sentences", OF):
        return
    settings = with_shrunk(setting)
    raw = number_of(space, setting.raw).spearman
    follow(
        study_job(fit_sizes, space, settings, title="Fitting on fewer sentences", unit="sizes", place="fit-size"),
        lambda points: _picture(points, space.dim, raw),
        key="fit-size-part",
        caption=lambda points: f"Random samples of {points[0].sentences} to {spaced(points[-1].sentences)} sentences.",
        room=heights.room(heights.TALL),
    )
    st.caption(
        "All pairs are scored, and each sentence counts once. It is one random draw, in which a larger sample holds a "
        "smaller: another gives other scores."
    )
    if setting.fit in ("task", "cross"):
        st.caption(
            "Dotted lines are cross-fitted, with maps that saw no sentence they score, and may lie above the others. A "
            "map of few sentences makes their vectors unlike all others: a pair of one that it was fitted on and one "
            "that it was not mostly gets a lower cosine, whatever it means. Cross-fitted there is no such pair."
        )


def code(setting: Setting) -> str:
    """The lines that give these numbers in Python; none where nobody asked."""
    if setting.fit == TOKENS or not asking.asked(OF):
        return ""
    return (
        "from whitelab.sweeps.fit_size import fit_sizes, with_shrunk\n\n"
        f"*_, points = fit_sizes(space, with_shrunk(whitelab.Setting.parse({str(setting)!r})))\n"
        "for one in points:\n"
        "    print(one.setting, one.sentences, one.score, one.cross_fitted)\n"
    )


def _picture(points: Sequence[FitSize], dim: int, raw: float | None) -> None:
    by_map = grouped((point.setting.whitening, point) for point in points)
    chart(
        figures.fit_size_curves(
            [
                (
                    spec,
                    LABELS.at(own[0].setting),
                    [point.sentences for point in own],
                    [point.score for point in own],
                    [point.cross_fitted for point in own],
                )
                for spec, own in by_map.items()
            ],
            dim,
            raw,
        ),
        "fit-size-curve",
        lambda: [
            {
                "whitening": point.setting.whitening,
                "fitted": point.sentences,
                "spearman": point.score,
                "cross_fitted": point.cross_fitted,
                "held_out_isotropy": point.isotropy,
                "held_out": point.unseen,
                "rank": point.rank,
            }
            for point in points
        ],
    )
