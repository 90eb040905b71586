"""The list of lessons, and the strip above the real pages, without a browser."""

from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
import streamlit as st
from questions import QUESTIONS

import whitelab
from whitelab.lessons import LESSONS, answered, asked
from whitelab.lessons.lesson import written
from whitelab.ui.sections import lesson_strip
from whitelab.whitening import WHITENERS

from .visiting import choose, failed, go_to, keys, knob, live, press, said, scored, start, until, upload

pytestmark = [pytest.mark.model, pytest.mark.usefixtures("demo")]

SHEET = {"view": "For teachers"}


def waits(at) -> bool:
    """Whether a step asks for its prediction."""
    return any(button.label in ("Predict", "Hand it in") for button in at.button) and not at.get("progress")


def strip(page, **query):
    """A lesson's step on its page, as soon as it asks or answers."""
    at = start(**query) if page == "overview" else visit(page, query)
    return until(at, lambda at: waits(at) or "lesson-again" in keys(at))


def visit(page, query):
    at = start("lessons")
    for name, value in query.items():
        at.query_params[name] = value
    return go_to(at, page)


def titles(at) -> list[str]:
    return [title.value for title in at.title]


def predict(at, guess, step):
    """Hand a number in, and wait for the lesson's answer."""
    at.number_input(key=f"lesson-4-{step}-field").set_value(guess)
    next(button for button in at.button if button.label == "Predict").click()
    return until(at.run(), lambda at: "lesson-again" in keys(at))


def test_the_list_names_every_lesson_its_time_and_what_one_does_and_sees():
    at = until(start("lessons"), lambda at: said(at, *(lesson.question for lesson in LESSONS.values())))
    for lesson in LESSONS.values():
        assert said(at, f"{lesson.minutes} minutes", lesson.does, lesson.sees)
    heads = [one.value for one in at.header]
    assert heads[: len(LESSONS)] == [f"{lesson.number}. {lesson.title}" for lesson in LESSONS.values()]
    assert [len(at.tabs), at.tabs[1].label] == [2, "For teachers"]


def test_a_teacher_makes_a_link_and_sees_answers_misconception_and_time(demo):
    at = until(start("lessons", **SHEET), lambda at: at.get_by_key("answers-4") is not None)
    at.get_by_key("teach-lesson").set_value(4)
    at.get_by_key("teach-hidden").set_value(True)
    at.get_by_key("teach-fixed").set_value(True)
    at.get_by_key("teach-present").set_value(True)
    at.run()
    assert at.code[0].value.endswith("/?lesson=4&step=1&answers=hidden&fixed=yes&present=yes")
    assert said(at, LESSONS[4].misconception)
    answer = answered(4, 1, demo)
    assert not said(at, answer.words)
    at.get_by_key("answers-4").set_value(True)
    until(at.run(), lambda at: said(at, answer.words))
    assert said(at, written(answer.value))


def test_the_sheet_has_all_that_a_teacher_needs_to_put_a_question_and_to_mark_its_answer(demo):
    """What the learner's page has: options, what counts as right, and the answer as it is written there."""
    at = until(start("lessons", **SHEET), lambda at: at.get_by_key("answers-9") is not None)
    for number in (3, 9):
        at.get_by_key(f"answers-{number}").set_value(True)
    at = until(at.run(), lambda at: said(at, answered(9, 3, demo).words))
    for number, step in ((3, 2), (9, 1), (9, 2), (9, 3)):
        (_, ask), answer = asked(number, step, demo), answered(number, step, demo)
        assert said(at, ask.rule, f"**{ask.measured(answer)}.** {answer.words}")
        for option in getattr(ask, "options", ()):
            assert said(at, f"- {option} (right)") is ask.right(option, answer)
            assert said(at, f"- {option}")
    assert any(len(answered(9, step, demo).accepted) > 1 for step in (1, 2, 3))


def test_a_link_for_a_class_opens_on_all_that_the_answers_depend_on_and_on_the_setting_of_the_lesson(place):
    data = place / "malformed.csv"
    data.write_text((place / "pairs.csv").read_text() + "one,two,much\n")
    bar = {"model": str(place / "model"), "data": str(data), "keep": "true", "pooling": "cls", "unit": "true",
           "dtype": "bfloat16", "aggregate": "mean", "layers": "2", "whitening": WHITENERS["soft"].label,
           "soft-gamma": "0.25", "fit": "cross", "k": "5"}  # fmt: skip
    at = until(start("lessons", **SHEET, **bar), lambda at: at.get_by_key("teach-lesson") is not None)
    mine = at.session_state["workspace"]
    assert (mine.data.lenient, mine.dtype, str(mine.setting)) == (
        True, "bfloat16", "unit_cls/L2:soft:gamma=0.25,alpha=0@5 aggregate=mean fit=cross"
    )  # fmt: skip
    at.get_by_key("teach-lesson").set_value(4)
    query = parse_qs(urlsplit(at.run().code[0].value).query)
    assert query.keys() >= {"model", "data", "keep", "pooling", "unit", "dtype", "aggregate"}
    opened = start(**{name: words[0] for name, words in query.items()})
    theirs = until(opened, waits).session_state["workspace"]
    assert (theirs.model, theirs.data, theirs.dtype) == (mine.model, mine.data, mine.dtype)
    assert theirs.setting == LESSONS[4].setting_at(1).with_(pooling="unit_cls", aggregate="mean")


def test_page_and_score_are_hidden_until_the_last_prediction_is_given(demo):
    """Either answers steps to come as well as the one at hand."""
    at = strip("overview", lesson="4")
    assert titles(at) == []
    assert live(at) is None
    answer = answered(4, 1, demo)
    assert said(at, "The live score is hidden", written(answer.numbers["raw"]))
    assert not said(at, written(answer.value))
    rule = asked(4, 1, demo)[1].rule
    assert said(at, rule)
    at = predict(at, answer.value, 1)
    assert said(at, rule)  # who is right must not be guessed once the question is answered
    assert any(answer.words in box.value and "Right." in box.value for box in at.success)
    assert (titles(at), live(at)) == ([], None)
    at = press(at, "lesson-next", waits)
    assert said(at, "step 2 of 3")
    at = predict(at, 99.0, 2)
    assert any("Not as measured." in box.value for box in at.info)
    assert (titles(at), live(at)) == ([], None)
    at = press(at, "lesson-next", waits)
    at.radio(key="lesson-4-3-field").set_value(at.radio(key="lesson-4-3-field").options[0])
    next(button for button in at.button if button.label == "Predict").click()
    at = until(at.run())
    assert titles(at) == [QUESTIONS["overview"]]
    assert live(at) == scored(demo, "L0:pca")  # the lesson's setting, not the first visitor's
    at = press(at, "lesson-leave")
    assert titles(at) == [QUESTIONS["overview"]]
    assert "lesson" not in at.query_params
    assert not said(at, "step 3 of 3")


@pytest.mark.parametrize(("number", "step", "guess"), [(3, 2, (10.0, 20.5, 30.0)), (6, 2, (1.0, 2.0, 3.0, 4.0, 5.25))])
def test_an_answered_curve_is_there_in_numbers_too_the_predicted_one_beside_every_measured_one(
    number, step, guess, demo
):
    (_, ask), answer = asked(number, step, demo), answered(number, step, demo)
    at = strip(LESSONS[number].page, lesson=str(number), step=str(step), **{f"guess{step}": ask.write(guess)})
    for name, heights in ({"your prediction": guess} | (answer.curves or {"measured": answer.value})).items():
        assert said(at, f"- {name}: {' · '.join(map(written, heights))}")
    assert said(at, " · ".join(ask.names))


def test_a_lesson_that_there_is_not_is_said_above_the_page():
    at = until(start("overview", lesson="99"))
    assert any("no such lesson: they are numbered from 1 to" in box.value for box in at.warning)
    assert live(at) is not None


def test_nothing_is_taken_for_a_prediction_that_is_none():
    at = strip("overview", lesson="4", guess1="much")
    assert waits(at)
    next(button for button in at.button if button.label == "Predict").click()
    at.run()
    assert said(at, "Type a number first.")
    assert waits(at)


def test_a_prediction_made_anew_begins_with_an_empty_field_even_where_the_run_with_the_answer_was_cut_short():
    at = strip("overview", lesson="4", guess1="12")
    at.session_state["lesson-4-1-field"] = 12.0  # which only the end of that run forgets
    at = press(at, "lesson-again", waits)
    assert [field.value for field in at.number_input if field.key.endswith("-field")] == [None]


@pytest.mark.parametrize("lesson", ["0", "nine", "", "99"])
def test_an_address_with_a_lesson_that_is_not_there_shows_the_page(lesson):
    at = until(start(lesson=lesson))
    assert titles(at) == [QUESTIONS["overview"]]


def test_hidden_answers_stay_with_whoever_made_the_link(demo):
    at = strip("overview", lesson="4", answers="hidden", guess1="12")
    assert said(at, "Whoever made this link keeps the answers.")
    assert titles(at) == []
    assert not said(at, answered(4, 1, demo).words)
    assert {"lesson-next", "lesson-again"} <= keys(at)
    at = strip("anisotropy", lesson="1", step="2", answers="hidden", guess2="0.7,0")
    assert said(at, "The numbers stay hidden.")
    assert not said(at, "mean cosine |")


def test_a_fixed_setting_comes_back_and_one_that_is_not_is_the_visitors():
    for fixed, layers in (("yes", [0]), ("no", [2])):
        at = until(start(lesson="4", step="3", guess3="0", fixed=fixed))
        assert at.session_state["layers"] == [0]
        at.get_by_key("layers").set_value([2])
        at = until(at.run())
        assert at.session_state["layers"] == layers
        assert bool(knob(at)["fixed"]) is (fixed == "yes")


def test_under_a_fixed_setting_what_would_take_another_k_says_why_it_does_not():
    guesses = {"guess1": "0", "guess2": "20,20,20,20,20", "guess3": "0.5", "guess4": "90"}
    for fixed in ("yes", "no"):
        at = until(visit("dimensions", {"lesson": "6", "step": "4", "fixed": fixed} | guesses))
        before = at.session_state["k"]
        next(button for button in at.button if button.label.startswith("Take the best k")).click()
        at = until(at.run())
        assert (at.session_state["k"] == before) is (fixed == "yes")
        assert [one.value for one in at.toast] == [lesson_strip._FIXED] * (fixed == "yes")


@pytest.mark.parametrize("lesson", [{"lesson": "4", "step": "3", "guess3": "0"}, {}], ids=["lesson", "page"])
@pytest.mark.parametrize("wish", ["yes", "true", "no"])
def test_a_projector_has_no_bar_in_a_lesson_and_on_a_page(wish, lesson):
    assert bare(until(start(**lesson, present=wish))) is (wish != "no")


def bare(at) -> bool:
    return any(one.proto.body == lesson_strip.PRESENTED for one in at.html)


@pytest.mark.parametrize("lesson", [{"lesson": "4", "step": "3", "guess3": "0"}, {}], ids=["lesson", "page"])
def test_a_projectors_view_goes_along_to_every_page_until_it_is_left(lesson):
    at = start(**lesson, present="yes")
    for page in ("layers", "lessons"):
        at.query_params.clear()  # as a click on a link does
        assert bare(go_to(at, page))
    at.button(key="present-leave").click().run()
    assert not bare(at)
    assert not bare(go_to(at, "layers"))
    assert "present-leave" not in keys(at)
    at = until(start(lesson="4", step="3", guess3="0", present="yes"))
    at.button(key="lesson-leave").click().run()
    assert not bare(at)


def to_lesson(at, **place):
    """Lesson 4 from the list of lessons, as a click on its link opens it."""
    at = go_to(at, "lessons")
    at.query_params.clear()
    for name, value in ({"lesson": "4"} | place).items():
        at.query_params[name] = value
    return until(go_to(at, "overview"), lambda at: waits(at) or "lesson-again" in keys(at))


def test_knobs_in_the_address_stay_where_a_link_named_them_and_not_where_a_page_wrote_them():
    knobs = {"layers": "2", "k": "5"}
    linked = until(start(lesson="4", **knobs), waits)
    assert str(linked.session_state["workspace"].setting) == "mean/L2:pca@5"
    at = to_lesson(until(start(**knobs)), **knobs)
    assert str(at.session_state["workspace"].setting) == "mean/L0:pca"


@pytest.mark.parametrize("by", ["button", "link"])
@pytest.mark.parametrize(("place", "keeps"), [({}, False), ({"step": "3", "guess3": "0"}, True)])
def test_who_leaves_a_lesson_has_the_setting_of_before_but_at_its_end_where_the_page_is_handed_over(place, keeps, by):
    own = {"layers": "2", "whitening": WHITENERS["soft"].label, "soft-gamma": "0.25", "fit": "cross", "k": "5"}
    at = until(start(**own))
    before = at.session_state["workspace"].setting
    at = to_lesson(at, **place)
    during = at.session_state["workspace"].setting
    assert during != before
    if by == "button":
        at = press(at, "lesson-leave")
    else:
        at.query_params.clear()  # as a click on a link does
        at = until(go_to(at, "whitening"))
    assert at.session_state["workspace"].setting == (during if keeps else before)
    assert str(before) == "mean/L2:soft:gamma=0.25,alpha=0@5 fit=cross"


ONWARDS = [("lesson-back",), ("lesson-again",), ("lesson-following",), ("lesson-back", "lesson-next", "lesson-again")]


@pytest.mark.parametrize("way", ONWARDS)
def test_who_goes_on_from_a_lesson_s_end_has_the_setting_of_before_where_one_is_left_in_its_midst(way):
    at = until(start(layers="2", k="5"))
    at = to_lesson(at, step="3", guess2="0", guess3="0")
    for button in way:
        at = press(at, button, lambda at: waits(at) or "lesson-again" in keys(at))
    assert str(at.session_state["workspace"].setting) != "mean/L2:pca@5"
    assert str(press(at, "lesson-leave").session_state["workspace"].setting) == "mean/L2:pca@5"


def test_who_leaves_before_the_next_step_is_drawn_has_the_setting_of_before(monkeypatch):
    at = to_lesson(until(start(layers="2", k="5")), step="3", guess3="0")
    monkeypatch.setattr(lesson_strip, "_step", lambda here: st.stop())
    at.button(key="lesson-following").click().run()
    at.query_params.clear()
    assert str(until(go_to(at, "whitening")).session_state["workspace"].setting) == "mean/L2:pca@5"


def test_all_dimensions_stay_all_of_them_where_a_lesson_is_left_with_another_model(small):
    at = until(start(**small, layers="2"))
    assert str(at.session_state["workspace"].setting) == "mean/L2:pca"
    at = to_lesson(at)
    at = choose(
        at, lambda at: at.session_state["workspace"].model.dim == 384 and "lesson-leave" in keys(at), model="bundled"
    )
    at = press(at, "lesson-leave")
    assert str(at.session_state["workspace"].setting) == "mean/L2:pca"


def test_data_without_an_answer_say_why_and_the_page_is_there(place):
    data = place / "alike.csv"
    data.write_text("sentence1,sentence2,score\n" + "".join(f"a cat {i},a dog {i},{i % 4}\n" for i in range(20)))
    query = {"lesson": "7", "step": "3", "model": str(place / "model"), "data": str(data), "guess3": "0"}
    at = until(start(**query))
    assert said(at, "5 pairs of similar sentences are too few: 10 are needed")
    assert "lesson-again" not in keys(at)  # nothing was measured that a prediction could meet
    assert not failed(at, "score")
    assert titles(at) == [QUESTIONS["anisotropy"]]
    assert said(at, "*Lists* says on how many sentences' lists")  # the tab that shows what the lesson was about


def test_a_teacher_is_warned_of_too_few_sentences_above_the_steps_and_in_them(place):
    data = place / "few.csv"
    data.write_text("sentence1,sentence2,score\n" + "".join(f"a cat {i},a dog {i * i},{i % 5}\n" for i in range(12)))
    at = start("lessons", **SHEET, model=str(place / "model"), data=str(data))
    at = until(at, lambda at: said(at, "different vectors span only"))
    at.get_by_key("answers-4").set_value(True)
    until(at.run(), lambda at: said(at, "This step has no answer here: 24 different vectors span only 23 of"))


def test_the_answers_do_not_need_the_fit_of_the_bar(tmp_path):
    with (tmp_path / "star.npz").open("wb") as file:  # all pairs share one sentence: there are no two halves
        values = np.random.default_rng(0).normal(size=(2, 41, 8))
        np.savez(file, values=values, first=np.zeros(40, int), second=np.arange(1, 41), gold=np.arange(40.0))
    at = upload(until(start("data")), (tmp_path / "star.npz").read_bytes(), "star.npz", "vectors-files")
    choose(press(at, "use-vectors"), lambda at: failed(at, "Cross-fitting is not possible here"), fit="cross")
    at.query_params.update(SHEET)
    at = until(go_to(at, "lessons"), lambda at: at.get_by_key("answers-4") is not None)
    at.get_by_key("answers-4").set_value(True)
    until(at.run(), lambda at: said(at, "**Step 2.**"))
    at.query_params["lesson"] = "4"
    until(go_to(at, "overview"), waits)
    at.get_by_key("fit").set_value("cross")
    assert waits(at.run())


def test_the_query_of_a_link_is_what_a_place_is_read_from():
    assert lesson_strip.link(3, 2) == {"lesson": "3", "step": "2"}
    assert whitelab.Setting.parse(LESSONS[3].setting)
