"""What a teacher needs of the lessons: a link for a class, and the answers on the present data."""

from urllib.parse import urlencode, urlsplit

import streamlit as st

from whitelab.base.installation import program
from whitelab.base.wording import plain
from whitelab.datasets import DataError
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.lessons import LESSONS, Choice, Cloud, Lesson, NoAnswer, answered, asked
from whitelab.ui.results.shelf import shelf
from whitelab.ui.results.study import study
from whitelab.ui.sections.lesson_strip import link, open_answered
from whitelab.ui.sidebar.opening import Opened, chosen_pairs, task_name
from whitelab.ui.sidebar.workspace import Workspace, moved_by_put
from whitelab.ui.widgets.address import bound, told
from whitelab.whitening import starved, too_few


def draw(chosen: Workspace | None) -> None:
    """A link to any step, and below it every lesson with what learners expect, its link and its answers."""
    uploaded = chosen is not None and chosen.own is not None
    st.header("A link for a class")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        number = st.selectbox(
            "Lesson",
            list(LESSONS),
            **bound("teach-lesson", 1, _title),
            format_func=_title,
            width=340,
        )
        step = st.number_input("Step", 1, len(LESSONS[number].steps), 1, **bound(f"teach-step-{number}", 1), width=120)
    with st.container(horizontal=True):
        wishes = {
            "answers": "hidden" if st.toggle("Hide the answers", **bound("teach-hidden", False)) else "",
            "fixed": "yes" if st.toggle("Fix the setting", **bound("teach-fixed", False)) else "",
            "present": "yes" if st.toggle("For a projector", **bound("teach-present", False)) else "",
        }
    rest = {name: wish for name, wish in wishes.items() if wish} | _carried(uploaded)
    st.code(_address(LESSONS[number], step, rest), language=None)
    st.caption(
        "The link opens on the model and the data of the bar, at the lesson's layers, variant, k and fit. "
        "Hidden answers: predictions are taken, and neither the answer nor the page is shown. A fixed setting: "
        "layers, variant, k and fit stay at the lesson's. For a projector: larger type, and no bar."
    )
    if urlsplit(st.context.url or "").hostname in ("localhost", "127.0.0.1", "::1"):
        st.caption(
            f"It opens on this computer only. For a class, run `{program()} app --hosted` on one that others reach, as "
            "`docs/hosting.md` says."
        )
    if uploaded:
        st.info(
            "An upload cannot be shared: whoever opens the link sees the demonstration set.", icon=":material/info:"
        )
    st.header("Answers on the present data")
    st.caption("They are computed when you ask, with the model and the data of the bar.")
    opened = _embedded(chosen)
    if opened and starved("pca", opened.space.n_sentences, opened.space.span):
        st.warning(too_few("pca", opened.space.span, opened.space.dim), icon=":material/warning:")
    for lesson in LESSONS.values():
        with st.expander(f"{lesson.number}. {lesson.title} · {lesson.minutes} minutes"):
            st.markdown(f"**What learners expect.** {lesson.misconception}")
            st.code(_address(lesson, 1, rest), language=None)
            if not st.toggle("Show the answers", key=f"answers-{lesson.number}"):
                continue
            if opened is None:
                st.caption("They come once the sentences are embedded: the bar says how far that is.")
            else:
                _answers(lesson, opened.space)


def _title(number: int) -> str:
    return f"{number}. {LESSONS[number].title}"


def _answers(lesson: Lesson, space: LayerEmbeddings) -> None:
    for i, part in enumerate(lesson.steps, 1):
        try:
            question, wanted = study(asked, lesson.number, i, space)
            st.markdown(f"**Step {i}.** {question}")
            st.caption(wanted.rule)
            if isinstance(wanted, Cloud):
                continue
            answer = study(answered, lesson.number, i, space if part.needs else None)
            if isinstance(wanted, Choice):
                counts = {option: " (right)" * wanted.right(option, answer) for option in wanted.options}
                st.markdown("".join(f"\n- {option}{right}" for option, right in counts.items()))
            st.info(f"**{wanted.measured(answer)}.** {answer.words}")
        except NoAnswer as error:
            st.warning(f"This step has no answer here: {plain(str(error))}.")


def _embedded(chosen: Workspace | None) -> Opened | None:
    """The workspace's space if it is there; the bar shows how far it is otherwise."""
    if chosen is None:
        return None
    if chosen.given:
        return open_answered(chosen)
    try:
        return shelf().get(task_name(chosen, chosen.data.task, chosen_pairs(chosen)))
    except DataError:
        return None


def _address(lesson: Lesson, step: int, rest: dict) -> str:
    """A link that can be copied."""
    parts = urlsplit(st.context.url or "")
    home = f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""
    page = "" if lesson.page == "overview" else lesson.page
    return f"{home}/{page}?{urlencode(link(lesson.number, step) | rest, doseq=True)}"


def _carried(uploaded: bool) -> dict[str, list[str]]:
    """What a link says of the bar, but for the knobs that a lesson moves itself."""
    left = ("data",) if uploaded else ()
    return {knob: words for knob, words in told().items() if knob not in left and not moved_by_put(knob)}
