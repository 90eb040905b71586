"""Every lesson, walked to its end in a real browser; every kind of prediction by each hand, right and wrong."""

import math
import re

import pytest
import torch
from drawings import contrast
from driving import ARTEFACTS, IDLE, SIDEBAR, STILL, K, faint, pick, skipping, swipe, unnamed, widest
from questions import QUESTIONS

from whitelab.lessons import LESSONS, Choice, Cloud, Curve, Number, answered, asked
from whitelab.lessons.clouds import KINDS, measured
from whitelab.statistics.moments import Moments

pytestmark = [pytest.mark.browser, pytest.mark.model]

LOW, HIGH, TOP, FOOT, ROOM = 0, 100, 10, 44, 270  # of sketch.js: the axis, and what lies around the curve


# ------------------------------------------------------------------------------------------- predictions


def right_state(kind: str) -> tuple[float, ...]:
    """A state of a cloud that reaches its step's goal, in steps of the arrow keys."""
    if kind == "mean":
        return min(((x / 20, 0.0) for x in range(80)), key=lambda s: abs(measured("mean", s).mean_cosine - 0.5))
    if kind == "axes":
        return 3.0, 0.5
    values, vectors = torch.linalg.eigh(Moments.of(KINDS["turn"].points).covariance)
    angle = -math.degrees(math.atan2(vectors[1, 1], vectors[0, 1]))
    angle = (angle + 90) % 180 - 90
    return 2.0 * round(angle / 2), *(round(20 / math.sqrt(values[i])) / 20 for i in (1, 0))


def prediction(ask, answer, right: bool):
    """What to predict, to be right or to be wrong."""
    if isinstance(ask, Number):
        if right:
            return answer.value
        return ask.low if abs(answer.value - ask.low) > abs(answer.value - ask.high) else ask.high
    if isinstance(ask, Choice):
        good = [option for option in ask.options if (option in answer.accepted) == right]
        return tuple(good[: ask.several] if right else [*good, *ask.options][: ask.several])
    return (
        answer.value
        if right
        else tuple(HIGH - 2 if value < 50 else 2.0 for value in answer.value[:1]) + tuple(answer.value[1:])
    )


# ------------------------------------------------------------------------------------------------- hands


def box_of(locator) -> dict[str, float]:
    """Where it is on the screen, also where it is just being drawn anew."""
    while (box := locator.bounding_box()) is None:
        locator.wait_for()
    return box


class Mouse:
    """Clicks and drags."""

    def __init__(self, page):
        self.page = page

    def rest(self):
        """Wait until the answer to the last move has come back, which draws the handles anew."""
        self.page.evaluate(STILL, [IDLE, 150])

    def press(self, name):
        self.page.get_by_role("button", name=name, exact=True).click()

    def number(self, label, text):
        self.page.get_by_label(label).click()
        self.page.keyboard.type(text)
        self.press("Predict")

    def choose(self, options):
        strip = self.page.locator(".st-key-lesson")
        if len(options) == 1:
            strip.get_by_role("radiogroup").get_by_text(options[0], exact=True).click()
        else:
            for option in options:
                strip.get_by_role("button", name=option, exact=True).click()
        self.press("Predict")

    def drag(self, handle, x, y):
        box = box_of(handle)
        self.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        self.page.mouse.down()
        self.page.mouse.move(x, y, steps=4)
        self.page.mouse.up()

    def curve(self, heights):
        self.rest()  # or the end of the run that asks draws the first handle anew
        for i, height in enumerate(heights):
            handle = self.page.locator(f".wl-handle[data-place='{i}']")
            plane = handle.locator("..")  # which stays where the handle is drawn anew
            plane.scroll_into_view_if_needed()
            box = box_of(plane)
            y = box["y"] + TOP + (HIGH - height) * (ROOM - TOP - FOOT) / (HIGH - LOW)
            x = box_of(handle)["x"] + 22
            self.drag(handle, x, y)
            self.rest()
        self.press("Predict")

    def cloud(self, kind, state):
        places = {"mean": [state], "axes": [(state[0], 0), (0, state[1])]}.get(kind)
        if kind == "turn":
            angle = math.radians(state[0])
            places = [(4.2 * math.cos(angle), 4.2 * math.sin(angle)), (state[1], 0), (0, state[2])]
        for i, (x, y) in enumerate(places):
            handle, plane = self.page.locator(".wl-plane .wl-handle").nth(i), self.page.locator(".wl-plane")
            plane.scroll_into_view_if_needed()
            box = plane.bounding_box()
            self.drag(handle, box["x"] + (x + 5) * box["width"] / 10, box["y"] + (5 - y) * box["height"] / 10)
            self.rest()
        self.press("Hand it in")


class Keyboard(Mouse):
    """Keys alone; what is focused is what Tab would reach."""

    def press(self, name):
        self.page.get_by_role("button", name=name, exact=True).focus()
        self.page.keyboard.press("Enter")

    def number(self, label, text):
        self.page.get_by_label(label).focus()
        self.page.keyboard.type(text)
        self.page.keyboard.press("Enter")

    def choose(self, options):
        strip = self.page.locator(".st-key-lesson")
        if len(options) == 1:
            strip.get_by_role("radio", name=options[0], exact=True).focus()
            self.page.keyboard.press("Space")
        else:
            for option in options:
                strip.get_by_role("button", name=option, exact=True).focus()
                self.page.keyboard.press("Space")
        self.press("Predict")

    def steps(self, handle, by, keys, size):
        handle.focus()
        for _ in range(round(abs(by) / size)):
            self.page.keyboard.press(keys[by < 0])

    def curve(self, heights):
        for i, height in enumerate(heights):
            handle = self.page.locator(f".wl-handle[data-place='{i}']")
            away = round(height) - float(handle.get_attribute("aria-valuenow"))
            tens = int(away / 10) * 10
            self.steps(handle, tens, ("PageUp", "PageDown"), 10)
            self.steps(handle, away - tens, ("ArrowUp", "ArrowDown"), 1)
        self.press("Predict")

    def cloud(self, kind, state):
        handles = [self.page.locator(".wl-plane .wl-handle").nth(i) for i in range(len(state))]
        moved = [part - start for part, start in zip(state, KINDS[kind].start, strict=True)]
        for i, by in enumerate(moved):
            size = 2 if kind == "turn" and i == 0 else 0.05
            keys = ("ArrowUp", "ArrowDown") if kind == "mean" and i else ("ArrowRight", "ArrowLeft")
            self.steps(handles[0 if kind == "mean" else i], by, keys, size)
        self.press("Hand it in")


def give(hand, ask, guess):
    """Give a prediction as the hand does."""
    hand.rest()
    if isinstance(ask, Number):
        hand.number(ask.label, f"{guess:.0f}" if isinstance(ask.step, int) else f"{guess:.2f}")
    elif isinstance(ask, Choice):
        hand.choose(guess)
    elif isinstance(ask, Curve):
        hand.curve(guess)
    else:
        hand.cloud(ask.kind, guess)


# ------------------------------------------------------------------------------------------------- walks

# Of each lesson: width, scheme, and of each step the hands that predict, upper case where they are right. What only one
# lesson asks for (a cloud, several options) is given by both hands, the first wrong. Where a lesson asks for nothing
# that others do not, "-" stands for steps that are left out: it is opened at its last.
WALKS = {
    1: (1440, "light", "M mK k"),
    2: (390, "dark", "k kM M"),
    3: (390, "light", "kM K M"),
    4: (1440, "dark", "m K k"),
    5: (390, "dark", "m K kM"),
    6: (1440, "light", "- - - K"),
    7: (1440, "dark", "K m K"),
    8: (768, "light", "- - k"),
    9: (1440, "light", "- - k"),
    10: (390, "light", "- - m"),
}
RELOADED = (1, 2, 3, 4, 7)  # in the second step: both clouds, a curve, a number, a choice


def test_every_kind_of_prediction_is_given_by_mouse_and_by_keyboard_right_and_wrong(demo):
    kinds, given = set(), set()
    for number, (_, _, hands) in WALKS.items():
        for i, step in enumerate(hands.split(), 1):
            _, ask = asked(number, i, demo)
            kind = f"{type(ask).__name__} {getattr(ask, 'kind', '')}{getattr(ask, 'several', '')}"
            kinds.add(kind)
            given |= {(kind, how) for hand in step.strip("-") for how in (hand.lower(), hand.isupper())}
        assert i == len(LESSONS[number].steps)
    assert set(WALKS) == set(LESSONS)
    assert given == {(kind, how) for kind in kinds for how in ("m", "k", True, False)}


@pytest.mark.parametrize("number", LESSONS)
def test_a_lesson_is_walked_to_its_end(app, visit, demo, number):
    """Every step of a lesson from its question to its answer, or the last alone, and out."""
    width, scheme, hands = WALKS[number]
    first = 1 + hands.count("-")
    layout = max(2, first)  # the step whose layout is looked at
    lesson, shown = LESSONS[number], visit(app, scheme, width)
    page = shown.open(f"{'' if lesson.page == 'overview' else lesson.page}?lesson={number}&step={first}", ready=False)
    strip, head = page.locator(".st-key-lesson"), page.get_by_role("heading", name=QUESTIONS[lesson.page])
    for i, step in enumerate(hands.replace("-", "").split(), first):
        strip.get_by_text(f"step {i} of {len(lesson.steps)}").wait_for()
        assert page.title() == f"Lesson {number}, step {i} · whitelab"
        for letter in step:
            hand = {"m": Mouse, "k": Keyboard}[letter.lower()](page)
            page.get_by_role("button", name=re.compile("^(Predict|Hand it in)$")).wait_for()
            head.wait_for(state="detached")
            if width > 1000:
                page.locator(SIDEBAR).get_by_text("The live score is hidden").wait_for()
            if i == layout and letter == step[0]:
                shown.settle()
                page.screenshot(path=ARTEFACTS / f"lesson-{number}-{scheme}-{width}-asked.png")
            verdict = predict(hand, demo, lesson, i, letter.isupper())
            strip.get_by_text(verdict, exact=True).wait_for()
            shown.settle()
            assert head.count() == (i == len(lesson.steps))
            assert page.locator(".wl-plane .wl-handle").count() == 0  # what was handed in stays as it was
            if letter != step[-1]:
                hand.press("Predict again")
        if i == layout:
            if number in RELOADED:
                page.reload()
                strip.get_by_text(verdict, exact=True).wait_for()
            shown.settle()
            page.screenshot(path=ARTEFACTS / f"lesson-{number}-{scheme}-{width}-answered.png")
            assert widest(shown) <= width
            assert unnamed(page) == []
            assert skipping(page) == []
            assert faint(page) == []
        if i < len(lesson.steps):
            hand.press("Next")
    hand.press("Leave the lesson")
    strip.wait_for(state="detached")
    page.wait_for_function("() => !/[?&](lesson|step|guess1)=/.test(location.search)")


def predict(hand, demo, lesson, i, right) -> str:
    """Give a right or a wrong prediction in step `i`; what the lesson then says of it."""
    _, ask = asked(lesson.number, i, demo)
    if isinstance(ask, Cloud):
        guess = right_state(ask.kind) if right else KINDS[ask.kind].start
    else:
        guess = prediction(ask, answered(lesson.number, i, demo if lesson.steps[i - 1].needs else None), right)
    give(hand, ask, guess)
    return "Right." if right else "Not there yet." if isinstance(ask, Cloud) else "Not as measured."


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_ones_own_cloud_is_told_from_the_whitened_ones_it_lies_on_by_who_sees_no_hue(app, visit, scheme):
    page = visit(app, scheme).open("whitening?lesson=3&step=1&guess1=-26,0.5,1.8", ready=False)
    page.get_by_text("yours").first.wait_for()
    page.locator(".wl-ghost").first.wait_for()
    mine, theirs = (page.locator(mark).evaluate_all(INKS) for mark in (".wl-point", ".wl-ghost"))
    assert {fill for fill, _ in mine} == {"none"}  # one that it covers is seen inside
    for own in {stroke for _, stroke in mine}:
        assert min(contrast(in_hex(own), in_hex(fill)) for fill in {fill for fill, _ in theirs}) >= 2
    legend = page.locator(".st-key-lesson").get_by_text("Cholesky").first.inner_text()
    assert [name for name in ("yours", "PCA", "ZCA", "Cholesky") if name not in legend] == []


INKS = "marks => marks.map(mark => [getComputedStyle(mark).fill, getComputedStyle(mark).stroke])"


def in_hex(colour: str) -> str:
    """`rgb(27, 100, 159)` -> `#1B649F`."""
    return "#" + "".join(f"{int(part):02X}" for part in re.findall(r"\d+", colour)[:3])


def test_who_goes_on_by_keyboard_stands_at_the_heading_of_the_step_that_comes(app, visit):
    shown = visit(app)
    page = shown.open("?lesson=4&step=2&guess2=0&guess3=0", ready=False)
    heading = page.locator(".st-key-lesson h2")
    for button, at in (("Next", "4 of 10 · step 3"), ("Back", "4 of 10 · step 2"), ("Next", "4 of 10 · step 3")):
        Keyboard(page).press(button)
        page.wait_for_function("() => document.activeElement.matches('.st-key-lesson h2')")
        assert heading.inner_text().startswith(f"Lesson {at} of 3")
        shown.settle()
    page.get_by_role("button", name="Next lesson").press("Enter")  # on another page
    page.wait_for_function("() => document.activeElement.matches('.st-key-lesson h2')")
    assert heading.inner_text().startswith("Lesson 5 of 10 · step 1 of")
    shown.settle()
    leave = page.get_by_role("button", name="Leave the lesson")
    leave.scroll_into_view_if_needed()
    leave.press("Enter")
    page.wait_for_function("() => document.activeElement.matches('h1')")
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop") == 0


@pytest.mark.parametrize(("number", "step"), [(4, 1), (4, 3)], ids=["in a field", "on the button"])
def test_who_predicts_by_a_key_stands_at_the_answer_and_once_more_at_the_question(app, visit, demo, number, step):
    lesson = LESSONS[number]
    page = visit(app).open(f"{lesson.page}?lesson={number}&step={step}", ready=False)
    page.get_by_role("button", name="Predict", exact=True).wait_for()
    at_answer = "() => document.activeElement.closest('.st-key-lesson [role=status]')"
    verdict = predict(Keyboard(page), demo, lesson, step, right=True)
    page.wait_for_function(at_answer)
    assert page.evaluate("document.activeElement.innerText").find(verdict) >= 0
    if step == 1:
        page.get_by_role("button", name="Predict again", exact=True).press("Enter")
        page.wait_for_function("() => document.activeElement.matches('.st-key-lesson h2')")
        page.locator(".st-key-lesson").get_by_role("spinbutton").fill("1")
        page.get_by_role("button", name="Predict", exact=True).press("Space")
        page.wait_for_function(at_answer)


def test_home_and_end_take_a_ring_of_a_curve_to_where_it_may_stand_at_last(app, visit):
    shown = visit(app)
    ring = shown.open("dimensions?lesson=6&step=2", ready=False).locator(".wl-handle").nth(1)
    for key, end in (("End", "valuemax"), ("Home", "valuemin")):
        ring.press(key)
        assert ring.get_attribute("aria-valuenow") == ring.get_attribute(f"aria-{end}")
        shown.settle()


def test_leaving_by_the_links_at_the_top_keeps_a_knob_that_was_moved_by_hand(app, visit):
    shown = visit(app)
    page = shown.open("?lesson=4&step=3&guess3=0")
    page.locator(f'{SIDEBAR} [aria-label="Layers, averaged"] button').nth(3).click()
    shown.complete()
    assert shown.layers() == [0, 3]
    assert (shown.query()["layers"], shown.query()["lesson"]) == (["0", "3"], ["4"])
    page.get_by_role("link", name="Anisotropy", exact=True).first.click()
    page.get_by_role("heading", name=QUESTIONS["anisotropy"]).wait_for()
    shown.complete()
    assert shown.query() == {"layers": ["0", "3"]}
    assert page.locator(".st-key-lesson").count() == 0


def test_a_teachers_link_in_the_making_is_there_again_when_the_page_is_loaded_anew(app, visit):
    shown = visit(app)
    page = shown.open("lessons", ready=False)
    page.get_by_role("tab", name="For teachers").click()
    step = page.get_by_label("Step", exact=True)
    shown.settle()
    pick(
        page.get_by_role("option", name=f"4. {LESSONS[4].title}", exact=True),
        page.get_by_label("Lesson", exact=True),
        lambda: page.get_by_label("Lesson", exact=True).input_value().startswith("4."),
    )
    shown.settle()
    step.fill("2")
    step.press("Enter")
    for name in ("Hide the answers", "Fix the setting", "For a projector"):
        shown.settle()
        page.locator("label").filter(has_text=name).click()
    link = page.locator("[data-testid=stCode]").first
    wanted = "/?lesson=4&step=2&answers=hidden&fixed=yes&present=yes"
    for _ in range(2):
        link.get_by_text(wanted).wait_for()
        shown.settle()
        assert link.inner_text().strip().endswith(wanted)
        page.reload()


def test_a_fixed_setting_holds_k_still_and_shows_it(app, visit):
    for fixed in ("yes", "no"):
        page = visit(app).open(f"?lesson=4&step=3&guess3=0&fixed={fixed}")
        assert page.locator(K).is_disabled() is (fixed == "yes")
        assert page.locator(f"{SIDEBAR} .wl-curve.wl-empty").count() == 0
        assert page.locator(".wl-at").text_content() == f"k = {page.locator(K).input_value()}"


def test_each_move_between_lessons_is_one_step_back_whatever_knobs_were_moved(app, visit):
    shown = visit(app)
    page, strip = shown.open("lessons", ready=False), shown.page.locator(".st-key-lesson")

    def at(words):
        strip.get_by_text(words).wait_for()
        shown.settle()

    page.get_by_role("link", name="Start lesson 4").click()
    at("Lesson 4 of 10 · step 1 of 3")
    page.goto(f"{app}/?lesson=4&step=3&guess3=0")
    at("Lesson 4 of 10 · step 3 of 3")
    page.locator(f'{SIDEBAR} [aria-label="Layers, averaged"] button').nth(3).click()
    page.wait_for_function("() => /layers=3/.test(location.search)")
    shown.settle()
    page.get_by_role("button", name="Next lesson").click()
    at("Lesson 5 of 10 · step 1 of")  # at another layer, on another page
    page.go_back()
    at("Lesson 4 of 10 · step 3 of 3")
    strip.get_by_role("button", name="Leave the lesson").click()
    strip.wait_for(state="detached")
    page.wait_for_function("() => !/lesson|step|guess/.test(location.search)")
    page.go_back()
    at("Lesson 4 of 10 · step 3 of 3")
    page.go_back()
    at("Lesson 4 of 10 · step 1 of 3")
    page.go_back()
    page.get_by_role("link", name="Start lesson 4").wait_for()


def test_a_projector_has_no_bar_on_any_page_until_it_is_left_and_a_cloud_follows_a_finger_there(app, stranger):
    page = stranger(viewport={"width": 1024, "height": 900}, has_touch=True)
    page.goto(f"{app}/anisotropy?lesson=1&step=2&present=yes")
    handle = page.locator(".wl-plane .wl-handle")
    handle.wait_for()
    page.wait_for_selector(IDLE)
    page.evaluate(STILL, [IDLE, 350])
    assert not page.locator(SIDEBAR).is_visible()
    plane = page.locator(".wl-plane").bounding_box()
    start = handle.bounding_box()
    x, y = start["x"] + start["width"] / 2, start["y"] + start["height"] / 2
    swipe(page, (x, y), (x + 1.5 * plane["width"] / 10, y))
    assert abs(float(handle.get_attribute("aria-valuenow")) - 1.5) < 0.05
    page.get_by_role("button", name="Hand it in").click()
    page.locator(".st-key-lesson").get_by_text("Right.", exact=True).wait_for()
    page.get_by_role("link", name="Lessons", exact=True).first.click()
    page.wait_for_url(re.compile("/lessons.*present=yes"))
    assert not page.locator(SIDEBAR).is_visible()
    page.get_by_role("button", name="Leave the projector's view").click()
    page.locator(SIDEBAR).wait_for()
    page.wait_for_function("() => !/present/.test(location.search)")
