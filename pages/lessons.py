"""The list of lessons, and what a teacher needs of them."""

import streamlit as st

from whitelab.lessons import LESSONS
from whitelab.ui.frame.page import open_aside
from whitelab.ui.sections import teaching
from whitelab.ui.sections.lesson_strip import link
from whitelab.ui.sidebar import workspace
from whitelab.ui.widgets.tabs import tabs

open_aside(
    "What is there to learn, and how long does it take?",
    "A lesson asks what you expect and shows what is measured beside it, step by step; after the last it hands you the "
    "real page. Nothing is graded and nothing leaves this page.",
)


def _list() -> None:
    columns = [column for _ in range(0, len(LESSONS), 2) for column in st.columns(2)]
    for column, lesson in zip(columns, LESSONS.values(), strict=False):
        with column.container(border=True, height="stretch", key=f"list-{lesson.number}"):
            st.header(f"{lesson.number}. {lesson.title}", anchor=False)
            st.caption(f"{lesson.minutes} minutes · {len(lesson.steps)} steps")
            st.markdown(lesson.question)
            st.caption(f"You {lesson.does}, and see {lesson.sees}.")
            st.page_link(
                f"pages/{lesson.page}.py",
                label=f"Start lesson {lesson.number}",
                icon=":material/arrow_forward:",
                query_params=link(lesson.number),
            )


tabs({"Lessons": _list, "For teachers": lambda: teaching.draw(workspace.current())}, "view")
