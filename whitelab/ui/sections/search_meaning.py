"""What the cosine of a query with a document means: its percentile, and a threshold against what was judged."""

from collections.abc import Sequence

import streamlit as st

from whitelab.base.wording import in_percent, plain, spaced
from whitelab.figures import heights
from whitelab.retrieval.calibration import SearchCalibration, calibrate_search
from whitelab.retrieval.embedded import RetrievalSpace
from whitelab.scoring.setting import Setting
from whitelab.statistics.random_cosines import FLOOR, TOP
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.jobs import follow
from whitelab.ui.results.study import study_each
from whitelab.ui.sections.cosine_meaning import code, cosine_picker, percentiles, placed, rate_picker, threshold
from whitelab.ui.widgets.metric import Metric, headlines, number

RATES = (0.001, 0.01, 0.05)


def draw(space: RetrievalSpace, setting: Setting) -> str:
    """The section, and the lines that give its numbers in Python."""
    st.header("What does the cosine of a query with a document mean?")
    st.markdown(
        "Most documents have nothing to do with a query. Look at where they lie, and how many relevant ones lie above "
        "a threshold that lets few of the others through."
    )
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with left:
        cosine = cosine_picker(0.5, "searched-cosine")
    with right:
        rate = rate_picker(RATES, "searched-rate")
    settings = tuple(dict.fromkeys((setting.raw, setting)))
    follow(
        study_each(calibrate_search, space, settings, None, rate, title="Counting cosines", place="searched-meaning"),
        lambda found: _picture(found, cosine),
        key="searched-meaning",
        caption=lambda found: f"All {spaced(found[-1].random.pairs)} pairs of a query and a document.",
        room=heights.room(heights.CURVES) + 220,
    )
    return code("whitelab.calibrate_search(searched", settings, f"rate={rate}", "meant.threshold.recall", cosine)


def _picture(found: Sequence[SearchCalibration], cosine: float) -> None:
    raw, now = found[0], found[-1]
    cut, before = now.threshold, raw.threshold
    where = f"From the cosine that {FLOOR} % of the pairs are below to the one that {100 - TOP:.1g} % are above."
    headlines(
        *placed(found, cosine, "all pairs of a query and a document", "Queries with documents", where),
        threshold(found, f"from which at most {in_percent(cut.rate, 'g')} of the pairs not judged relevant lie"),
        Metric(
            "Relevant above it",
            f"{100 * cut.recall:.0f} %",
            f"{100 * before.recall:.0f} % raw",
            help="Of all documents judged relevant; intervals come from queries drawn anew.",
            description=f"95 %: {100 * cut.recall_low:.0f} to {100 * cut.recall_high:.0f} %",
        ),
    )
    with st.container(key="said-threshold"):
        st.markdown(
            f"{LABELS.at(now.setting)} from {number(cut.cosine, 3)} on: **{in_percent(cut.recall)}** of the "
            f"{spaced(cut.alike)} relevant documents at {in_percent(cut.false_positives, '.2g')} false positives; of "
            f"all that lie there {in_percent(cut.precision, '.1f')} were judged relevant, raw "
            f"{in_percent(before.precision, '.1f')}. Documents nobody judged count as not relevant, so the true share "
            "may be higher."
        )
    percentiles(found, cosine, "all queries and documents", "searched-percentiles")
    st.caption(plain(now.line()))
