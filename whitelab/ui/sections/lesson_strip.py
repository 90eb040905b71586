"""The strip of a lesson above the real page: its question, the prediction, and then both side by side with the reason.

Where a lesson stands is in the address: `?lesson=3&step=2`, the predictions as `guess1`, `guess2`, ... `answers=hidden`
keeps the answers to the teacher, `fixed=yes` the setting where the lesson has it, `present=yes` is for a projector, of
a lesson or a page, and goes along from page to page until it is left.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import streamlit as st

from whitelab import figures
from whitelab.base.wording import plain, quantity
from whitelab.datasets import DataError
from whitelab.lessons import LESSONS, Answer, Ask, Choice, Cloud, Curve, Lesson, NoAnswer, Number, Step, answered, asked
from whitelab.lessons.by_hand import FORMS, ghost_points
from whitelab.lessons.clouds import KINDS, measured
from whitelab.lessons.lesson import written
from whitelab.lessons.training import OBJECTIVES
from whitelab.scoring.setting import Setting
from whitelab.ui.cloud import cloud, sketch
from whitelab.ui.results.study import study
from whitelab.ui.sidebar import workspace
from whitelab.ui.sidebar.opening import Opened, open_space
from whitelab.ui.sidebar.workspace import Workspace
from whitelab.ui.widgets import address
from whitelab.ui.widgets.chart import chart

_AT = "lesson-at"  # session_state: the lesson and step whose setting the bar was put to
_OWN = "lesson-own"  # session_state: the knobs as the visitor had them before the first lesson moved them
_ENDED = "lesson-ended"  # session_state: whether a lesson's last step was answered when it was last drawn
_WORDS = ("lesson", "step", "answers", "fixed", "present")  # of the address, beside the predictions
_YES = ("yes", "true")
_AGAIN = "lesson-times-again"  # session_state: how often this visitor has asked to predict again
_FIXED = "The link to this lesson fixes the setting: layers, variant, k and fit."
# What stands for a curve of a lesson in the colours of all pages.
_VARIANTS = {
    "softly whitened": "soft",
    "shrunk": "shrunk",
    "first coordinates": "prefix",
    "random coordinates": "none",
}
# What charts have in a size of their own, which Streamlit leaves as it is; plotly measures it in its tester.
_GROWN = "\n".join(
    f':is(.js-plotly-plot, #js-plotly-tester) text[style*="font-size: {size}px"]'
    f" {{ font-size: {size / 16}rem !important; }}"
    for size in (11, 12, 13)
)
PRESENTED = f"""<style>
[data-testid=stSidebar], [data-testid=stExpandSidebarButton] {{ display: none; }}
:root {{ font-size: 125% !important; }}
.st-key-present-leave {{ position: absolute; margin-top: -2.75rem; }}
{_GROWN}
</style>"""


@dataclass(frozen=True)
class Place:
    """Where a visitor stands: a step of a lesson, counted from 1, and what the link asks for."""

    lesson: Lesson
    step: int
    hidden: bool = False
    fixed: bool = False
    again: int = 0  # a prediction made anew has widgets of its own, with nothing in them

    @property
    def key(self) -> str:
        """The beginning of the keys of this step's widgets."""
        return f"lesson-{self.lesson.number}-{self.step}" + f"-again-{self.again}" * (self.again > 0)


def place() -> Place | None:
    """Where the address says; None where it names no lesson there is."""
    asked_for = st.query_params
    try:
        lesson = LESSONS[int(asked_for.get("lesson", ""))]
        step = int(asked_for.get("step", 1))
    except (ValueError, KeyError):
        return None
    wishes = asked_for.get("answers") == "hidden", _wished("fixed")
    return Place(lesson, min(max(step, 1), len(lesson.steps)), *wishes, st.session_state.get(_AGAIN, 0))


def _wished(name: str) -> bool:
    """Whether the address says yes to that, or true, as it does of a switch."""
    return st.query_params.get(name, "").casefold() in _YES


def _presented() -> bool:
    """Whether pages are for a projector: from the address that says so on, until that is left."""
    return address.kept(workspace.PRESENT, "", str).casefold() in _YES


def title() -> str:
    """What a browser calls the step where the address has a lesson, such as `Lesson 3, step 2`; else nothing."""
    here = place()
    return f"Lesson {here.lesson.number}, step {here.step}" if here else ""


def link(lesson: int, step: int = 1, **wishes: str) -> dict[str, str]:
    """The query of a link to a step."""
    return {"lesson": str(lesson), "step": str(step), **wishes}


def open_lesson(page: str) -> None:
    """Before the bar is drawn: go to the lesson's page, and put the knobs where a step begins, in type as asked for."""
    if _presented():
        st.html(PRESENTED)
    here = place()
    st.session_state[workspace.FIXED] = _FIXED if here is not None and here.fixed else ""
    if here is None:
        st.session_state.pop(_AT, None)
        _give_back()
        return
    if page != here.lesson.page:
        st.switch_page(f"pages/{here.lesson.page}.py", query_params=_carried())
    before, now = st.session_state.get(_AT), (here.lesson.number, here.step)
    if before != now or here.fixed:
        if before is None:  # of a link none are there yet
            st.session_state[_OWN] = workspace.knobs_of_a_setting()
        _put(here.lesson.setting_at(here.step), keep_address=_linked() and not here.fixed)
        st.session_state.update(here.lesson.opens)
        st.session_state[_AT] = now
    if before != now:
        st.session_state.pop(_ENDED, None)  # of the step that was there


def _carried() -> dict[str, list[str]]:
    """What the address of another page is to say: of a link all; else of the lesson, and knobs say the rest."""
    names = [name for name in st.query_params if _linked() or name in _WORDS or name.startswith("guess")]
    return {name: st.query_params.get_all(name) for name in names}


def _linked() -> bool:
    """Whether the address is that of a link: of a visit with a bar, pages have written it."""
    return workspace.SLOT not in st.session_state


def _put(setting: Setting, keep_address: bool) -> None:
    """Move the bar's knobs to a setting; a link's own may stay, but for the fit, which the answers do not heed."""
    workspace.put(setting, st.query_params if keep_address else ())
    st.session_state["fit"] = setting.fit


# --------------------------------------------------------------------------------------------------- the strip


def draw() -> bool:
    """Draw the strip where the address has a lesson; whether the page below may be drawn.

    It may after the last step: a page answers steps to come as well as the one at hand.
    """
    here = place()
    if here is None:
        if "lesson" in st.query_params:
            st.warning(
                f"There is no such lesson: they are numbered from 1 to {len(LESSONS)}.", icon=":material/link_off:"
            )
        if _presented():
            leave = "Leave the projector's view"
            st.button(leave, key="present-leave", icon=":material/close:", on_click=_leave, type="tertiary")
        return True
    with st.container(border=True, key="lesson"):
        shown = _step(here)
    if not shown:
        with st.session_state[workspace.LIVE]:
            st.caption(f"The live score is hidden{'' if here.hidden else ' until the last step'}.")
        if not here.hidden:
            st.caption("The page itself comes below after the last step.")
    return shown


def _step(here: Place) -> bool:
    lesson, step = here.lesson, here.lesson.steps[here.step - 1]
    where = f"Lesson {lesson.number} of {len(LESSONS)} · step {here.step} of {len(lesson.steps)}"
    st.header(f"{where} · {lesson.title}", anchor=False)
    opened = None
    if step.needs == "space":
        opened = _opened()
        if opened is None:
            _ways(here, ready=False)
            return False
    space = opened.space if opened else None
    try:
        question, ask = study(asked, lesson.number, here.step, space)
        st.markdown(question)
        guess, answer = _given(here, ask), None
        with _beside(here, step, guess):
            if isinstance(ask, Cloud):
                _cloud(here, ask, guess)
            elif guess is None:
                _prediction(here, ask)
            if guess is not None and here.hidden:
                st.info("Your prediction is noted. Whoever made this link keeps the answers.", icon=":material/lock:")
            elif guess is not None:
                answer = _answer(here, step, guess if isinstance(ask, Cloud) else space)
                _result(here, ask, guess, answer, opened)
    except NoAnswer as error:
        st.warning(f"This step has no answer here: {plain(str(error))}.", icon=":material/block:")
        _ways(here, ready=True, answerable=False)
        return here.step == len(lesson.steps)
    _ways(here, ready=guess is not None)
    return answer is not None and f"guess{len(lesson.steps)}" in st.query_params


def _beside(here: Place, step: Step, guess) -> AbstractContextManager:
    """Where a step goes on: beside its picture, where it has one."""
    if step.picture is None:
        return nullcontext()
    kind, before, after = step.picture
    left, right = st.columns(2)
    with left:
        cloud(f"{here.key}-picture", kind, before if guess is None or here.hidden else after, still=True)
    return right


def open_answered(chosen: Workspace) -> Opened | None:
    """The space that answers are of, as `open_space`: whatever fit the bar has, they need no text for it."""
    return open_space(replace(chosen, setting=chosen.setting.raw))


def _opened() -> Opened | None:
    chosen = workspace.current()
    if chosen is None:
        workspace.say_what_is_missing()
        return None
    try:
        return open_answered(chosen)
    except DataError as error:
        st.error(plain(str(error)))
        return None


def _answer(here: Place, step: Step, of) -> Answer:
    if not step.slow:
        return study(answered, here.lesson.number, here.step, of)
    with st.spinner(f"{step.slow} ..."):
        return study(answered, here.lesson.number, here.step, of)


def _given(here: Place, ask: Ask):
    """The prediction of this step that the address has; None where there is none that can be."""
    try:
        return ask.read(st.query_params[f"guess{here.step}"])
    except (KeyError, ValueError):
        return None


def _give(here: Place, ask: Ask, guess) -> None:
    """Put a prediction into the address and begin again with it."""
    st.query_params[f"guess{here.step}"] = ask.write(guess)
    st.rerun()


# ----------------------------------------------------------------------------------------------- predictions


def _prediction(here: Place, ask: Ask) -> None:
    """Ask for a prediction, and say what one lacks that is none yet."""
    if isinstance(ask, Curve):
        heights = sketch(f"{here.key}-curve", ask.names, ask.start, (ask.low, ask.high), bars=ask.bars)
        st.caption(ask.rule)
        if _predict(here):
            _give(here, ask, heights)
        return
    with st.form(here.key, border=False):
        guess = _field(here, ask)
        st.caption(ask.rule)
        sent = st.form_submit_button("Predict", type="primary", icon=":material/check:")
    if not sent:
        return
    if guess in (None, []) or (isinstance(ask, Choice) and ask.several > 1 and len(guess) != ask.several):
        st.warning(f"Choose {ask.several} first." if isinstance(ask, Choice) else "Type a number first.")
        return
    _give(here, ask, tuple(guess) if isinstance(guess, list) else guess)


def _field(here: Place, ask: Number | Choice):
    key = f"{here.key}-field"
    if isinstance(ask, Number):
        low, high = (type(ask.step)(limit) for limit in (ask.low, ask.high))
        return st.number_input(
            ask.label, low, high, None, ask.step, key=key, placeholder=f"{ask.low:g} to {ask.high:g}", width=320
        )
    if ask.several == 1:
        return st.radio("Your prediction", ask.options, index=None, key=key)
    return st.pills("Your prediction", ask.options, selection_mode="multi", key=key)  # no list that covers the button


def _predict(here: Place, label: str = "Predict") -> bool:
    return st.button(label, key=f"{here.key}-predict", type="primary", icon=":material/check:")


def _cloud(here: Place, ask: Cloud, guess) -> None:
    """The cloud to drag, what the core measures of it, and the button that hands it in."""
    left, right = st.columns([3, 2])
    with left:
        ghosts = ghost_points() if ask.kind == "turn" and guess is not None and not here.hidden else None
        inks = {label: figures.variant_colour(form) for form, label in FORMS.items()}
        start = guess or KINDS[ask.kind].start
        state = cloud(f"{here.key}-cloud", ask.kind, start, ghosts, inks, still=guess is not None)
        if ghosts:
            legend = [f':color[●]{{foreground="{inks[label]}"}} {label}' for label in ghosts]
            st.markdown(" · ".join(["○ yours", *legend]))
    with right:
        if ask.blind and (guess is None or here.hidden):
            st.caption("The numbers stay hidden." if here.hidden else "The numbers stay hidden until you hand it in.")
        else:
            _numbers(ask.kind, state)
        st.caption(ask.rule)
        if guess is None and _predict(here, "Hand it in"):
            _give(here, ask, tuple(state))


def _numbers(kind: str, state) -> None:
    here = measured(kind, state)
    across, upwards, shared = here.covariance
    rows = {"mean cosine": here.mean_cosine}
    if kind == "axes":
        rows["participation ratio, of 2"] = here.participation_ratio
    if kind == "turn":
        rows = {"variance across": across, "variance upwards": upwards, "covariance of the two": shared}
    table = "".join(f"| {name} | {written(value)} |\n" for name, value in rows.items())
    st.markdown(f"| measured | |\n|---|---:|\n{table}")


# --------------------------------------------------------------------------------------------------- answers


def _result(here: Place, ask: Ask, guess, answer: Answer, opened: Opened | None) -> None:
    """Prediction and answer side by side, and why."""
    right = ask.right(guess, answer)
    wrong = "**Not there yet.**" if isinstance(ask, Cloud) else "**Not as measured.**"
    verdict = ("**Right.**", ":material/check_circle:") if right else (wrong, ":material/cancel:")
    if isinstance(ask, Curve):
        curves = answer.curves or {"measured": answer.value}
        inks = {name: figures.variant_colour(_VARIANTS.get(name, "pca")) for name in curves}
        sketch(f"{here.key}-curve", ask.names, guess, (ask.low, ask.high), curves, inks, bars=ask.bars)
    elif not isinstance(ask, Cloud):
        said = ("You", ask.shown(guess)), ("Measured", ask.measured(answer))
        for column, (label, words) in zip(st.columns(2), said, strict=True):
            with column, st.container(border=True):
                st.caption(label)
                st.markdown(f"**{words}**")
    if not isinstance(ask, Cloud):  # which has it beside the cloud
        st.caption(ask.rule)
    (st.success if right else st.info)(f"{verdict[0]} {answer.words}", icon=verdict[1])
    if isinstance(ask, Curve):
        _heights(ask, {"your prediction": guess} | curves)
    if answer.paths:
        chart(figures.training_plane(_runs(answer)), f"{here.key}-plane")
        st.caption("The further left, the better all sentences spread; the lower, the closer similar ones lie.")
    if answer.sentences:
        _hubs(here, answer, opened)


def _heights(ask: Curve, curves: Mapping[str, Sequence[float]]) -> None:
    """In numbers, for who does not see the picture, and for curves that lie on each other."""
    rows = (f"\n- {name}: {' · '.join(map(written, heights))}" for name, heights in curves.items())
    st.caption(f"The heights at {' · '.join(ask.names)}:\n" + "".join(rows))


def _hubs(here: Place, answer: Answer, opened: Opened) -> None:
    """The largest hubs, which are to be read; choosing one shows sentences on whose lists it is."""
    texts = opened.pairs.sentences
    for name, rows in answer.sentences.items():
        picked = st.radio(  # whose labels wrap: sentences are to be read to their end
            f"The largest hubs, {name}. Choose one to see on whose lists it is.",
            rows,
            index=None,
            key=f"{here.key}-hubs-{name}",
            format_func=lambda hub: f"{plain(texts[hub[0]])} ({quantity(hub[1], 'list')})",
        )
        if picked:
            st.markdown("On the lists of\n" + "".join(f"\n- {plain(texts[row])}" for row in picked[2]))


def _runs(answer: Answer) -> list[dict]:
    """The paths of an answer as the training page's figure takes runs."""
    return [
        {
            "name": OBJECTIVES[name],
            "objective": name,
            "seed": 0,
            "records": list(path),
            "steps": path[-1]["step"],
            "stop": "",
        }
        for name, path in answer.paths.items()
    ]


def _ways(here: Place, ready: bool, answerable: bool = True) -> None:
    """Back, again where there is an answer to predict, next and leave."""
    last = here.step == len(here.lesson.steps)
    with st.container(horizontal=True, vertical_alignment="center", key="lesson-ways"):
        if here.step > 1:
            st.button("Back", key="lesson-back", icon=":material/arrow_back:", on_click=_go, args=(here.step - 1,))
        if ready and answerable:
            st.button("Predict again", key="lesson-again", icon=":material/replay:", on_click=_again, args=(here,))
        if ready and not last:
            st.button(
                "Next",
                key="lesson-next",
                type="primary",
                icon=":material/arrow_forward:",
                on_click=_go,
                args=(here.step + 1,),
            )
        if ready and last and here.lesson.number + 1 in LESSONS:
            following = LESSONS[here.lesson.number + 1]
            st.button(
                f"Next lesson: {following.title}",
                key="lesson-following",
                type="primary",
                icon=":material/arrow_forward:",
                on_click=_follow,
                args=(following,),
            )
        if ready and last:
            st.page_link("pages/lessons.py", label="All lessons", icon=":material/school:")
        st.session_state[_ENDED] = ready and last
        st.button("Leave the lesson", key="lesson-leave", icon=":material/close:", on_click=_leave, type="tertiary")


def _give_back() -> None:
    """Turn the knobs back to where the visitor had them, but at a lesson's end, which hands over the page as it is."""
    own = st.session_state.pop(_OWN, {})
    if not st.session_state.pop(_ENDED, False):
        workspace.turn(**own)


def _go(step: int) -> None:
    st.query_params["step"] = str(step)


def _again(here: Place) -> None:
    st.query_params.pop(f"guess{here.step}", None)
    st.session_state[_AGAIN] = here.again + 1


def _follow(following: Lesson) -> None:
    _forget()
    st.query_params["lesson"], st.query_params["step"] = str(following.number), "1"


def _forget() -> None:
    for name in [name for name in st.query_params if name.startswith("guess")]:
        del st.query_params[name]


def _leave() -> None:
    _give_back()
    _forget()
    for name in _WORDS:
        st.query_params.pop(name, None)
    st.session_state.pop(workspace.PRESENT, None)
