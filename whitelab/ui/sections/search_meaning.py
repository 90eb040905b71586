"""What the cosine of a query with a document means: its percentile, and a threshold against what was judged."""

from collections.abc import Sequence

import streamlit as st

from whitelab import figures
from whitelab.base.wording import plain, spaced
from whitelab.figures import heights
from whitelab.retrieval.calibration import SearchCalibration, calibrate_search
from whitelab.retrieval.embedded import RetrievalSpace
from whitelab.scoring.setting import Setting
from whitelab.statistics.random_cosines import FLOOR, TOP
from whitelab.ui.results.jobs import follow
from whitelab.ui.results.study import study_each
from whitelab.ui.sections.cosine_meaning import GRID, rate_picker, scale_rows
from whitelab.ui.widgets.chart import chart
from whitelab.ui.widgets.metric import Metric, headlines, number
from whitelab.ui.widgets.variants import LABELS

RATES = (0.001, 0.01, 0.05)


def draw(space: RetrievalSpace, setting: Setting) -> str:
    """The section, and the lines that give its numbers in Python."""
    st.subheader("What does the cosine of a query with a document mean?")
    st.markdown(
        "Most documents have nothing to do with a query. Look at where they lie, and how many relevant ones lie above "
        "a threshold that lets few of the others through."
    )
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with left:
        cosine = float(st.slider("Cosine", -1.0, 1.0, 0.5, 0.01, key="searched-cosine"))
    with right:
        rate = rate_picker(RATES, "searched-rate")
    settings = tuple(dict.fromkeys((setting.raw, setting)))
    follow(
        study_each(calibrate_search, space, settings, None, rate, title="Counting cosines", place="searched-meaning"),
        lambda found: _picture(found, cosine),
        key="searched-meaning",
        note=lambda found: f"All {spaced(found[-1].random.pairs)} pairs of a query and a document.",
        room=heights.room(heights.CURVES) + 220,
    )
    return (
        f"meant = whitelab.calibrate_search(searched, whitelab.Setting.parse({str(setting)!r}), rate={rate})\n"
        f"print(meant.random.percentile({cosine}), meant.threshold)\n"
        "print(meant.line())\n"
    )


def _picture(found: Sequence[SearchCalibration], cosine: float) -> None:
    raw, now = found[0], found[-1]
    cut, before = now.threshold, raw.threshold
    headlines(
        Metric(
            f"Percentile of {cosine:.2f}, {LABELS.inline(now.setting.whitening)}",
            f"{now.random.percentile(cosine):.2f}",
            f"{raw.random.percentile(cosine):.2f} raw",
            help="The share of all pairs of a query and a document, in percent, whose cosine is not above it.",
        ),
        Metric(
            "Queries with documents",
            f"{now.random.floor:.2f} to {now.random.top:.2f}",
            f"{raw.random.floor:.2f} to {raw.random.top:.2f} raw",
            help=f"From the cosine that {FLOOR} % of the pairs are below to the one that {100 - TOP:.1g} % are above.",
        ),
        Metric(
            "Threshold",
            number(cut.cosine, 3),
            f"{number(before.cosine, 3)} raw",
            help=f"The least cosine from which at most {100 * cut.rate:g} % of the pairs not judged relevant lie.",
            description=f"95 %: {number(cut.low, 3)} to {number(cut.high, 3)}",
        ),
        Metric(
            "Relevant above it",
            f"{100 * cut.recall:.0f} %",
            f"{100 * before.recall:.0f} % raw",
            help="Of all documents judged relevant; intervals come from queries drawn anew.",
            description=f"95 %: {100 * cut.recall_low:.0f} to {100 * cut.recall_high:.0f} %",
        ),
    )
    st.markdown(
        f"{LABELS.at(now.setting)} from {number(cut.cosine, 3)} on: **{100 * cut.recall:.0f} %** of the "
        f"{spaced(cut.alike)} relevant documents at {100 * cut.false_positives:.2g} % false positives; of all that lie "
        f"there {100 * cut.precision:.1f} % were judged relevant, raw {100 * before.precision:.1f} %. Documents nobody "
        "judged count as not relevant, so the true share is higher."
    )
    curves = {one.setting.whitening: (GRID.tolist(), one.random.percentile(GRID).tolist()) for one in found}
    figure = figures.cosine_scale(curves, LABELS, cosine, "Percentile among all queries and documents")
    chart(figure, "searched-percentiles", lambda: scale_rows(curves, "percentile"))
    st.caption(plain(now.line()))
