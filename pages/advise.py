"""What to do with the vectors, from the user's own data."""

import streamlit as st

from whitelab.scoring.paired import LEVEL
from whitelab.ui.frame.page import close_page, open_page
from whitelab.ui.results.jobs import follow
from whitelab.ui.sections import advising
from whitelab.ui.widgets.chart import data_of

chosen, opened = open_page(
    "What should I do with these vectors?",
    "Say what they are for and bring data that shows it. A few dozen settings are measured on it, and the answer may "
    "well be: use them as they are.",
)
data_of(model=opened.space.origin.model)  # the options name their settings, and what judges them is asked below
with st.container(key="controls"):
    question = advising.ask(chosen, opened)
advice = question and follow(question.job, advising.draw, key="advice", caption=advising.tried_on, room=420)

close_page(
    chosen,
    opened,
    [
        (
            rf"p_{{(i)}} \cdot (m - i + 1) < {LEVEL:g}",
            "Holm 1979: m options are tested against the model as it comes, the i-th smallest p-value is multiplied so",
        )
    ],
    "Each option averages some layers and transforms the vectors; all are measured on the same pairs, searches or texts, "
    "which are drawn again and again (bootstrap) to see how far each difference could be chance. With dozens of options "
    "one will look best by luck: so p-values are corrected for their number, and the gain is also measured on a half of "
    "the data that had no say in the choice. Other texts would be grouped otherwise, so the intervals of groups come from "
    "halves of the texts, each grouped anew. To store, the shortest vectors are taken that lose less than a point against "
    "the best and against the model as it comes, beyond doubt after the same correction; below 20 items nothing is decided. Scores are x 100, a point is one of these.",
    question.code + advising.PRINTED if question and not question.job.error else "",
    advice.text if advice else "",
)
