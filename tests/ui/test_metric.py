"""Headline numbers: what is not defined is said in words, and what rounds to zero has no sign."""

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from tests.conftest import make_space
from whitelab.scoring.paired import Doubt
from whitelab.scoring.score import score
from whitelab.scoring.setting import Setting
from whitelab.ui.widgets.metric import change, number, score_metric


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (68.126, 2, "68.13"),
        (-0.001, 2, "0.00"),
        (0.5, 3, "0.500"),
        (None, 2, "undefined"),
        (float("nan"), 2, "undefined"),
    ],
)
def test_a_number_is_rounded_or_undefined(value, digits, text):
    assert number(value, digits) == text


def test_a_change_is_signed_and_none_where_a_number_is_not_defined():
    assert change(70.0, 68.5, "against raw") == "+1.50 against raw"
    assert change(1.0, 1.001) == "+0.00"
    for undefined in (None, float("nan")):
        assert change(undefined, 1.0) is change(1.0, undefined) is None


def test_a_score_stands_with_its_interval_and_its_change_against_raw():
    space = make_space()
    raw, now = (score(space, Setting((1,), name)) for name in ("none", "pca"))
    alone, both = score_metric("Spearman", raw), score_metric("Spearman", now, raw)
    assert (alone.value, alone.delta, alone.good) == (number(raw.spearman), f"± {raw.half_width:.2f}", "")
    assert both.delta == change(now.spearman, raw.spearman, "against raw")
    assert (both.good, both.description) == ("up", f"score ± {now.half_width:.2f}")
    sure, unsure = (Doubt(raw.spearman - width, raw.spearman + width, now.rank + 1) for width in (1e-9, 100.0))
    assert score_metric("Spearman", now, raw, sure) == both
    found = score_metric("Spearman", now, raw, unsure)
    assert (found.good, found.delta) == ("either", change(now.spearman, raw.spearman, "(could be chance)"))
    starved = score_metric("Spearman", now, raw, replace(unsure, starving=now.rank))
    assert starved.delta.endswith(" (no verdict)")
    elsewhere = score_metric("Spearman", now, raw, sure, "loss")
    other = both.delta.replace("against raw", "(a loss on new text)")
    assert (elsewhere.good, elsewhere.delta) == ("either", other)
    assert score_metric("Spearman", now, raw, sure, "chance").delta.endswith("(in doubt on new text)")
    assert score_metric("Spearman", now, raw, unsure, "loss") == found
    assert score_metric("Spearman", raw, raw, sure) == alone
    nothing = score_metric("Spearman", replace(now, spearman=None, half_width=None), raw)
    assert (nothing.value, nothing.delta, nothing.description) == ("undefined", None, None)


def page():
    from whitelab.ui.widgets.metric import Metric, headlines

    headlines(*(Metric(good or "note", "1", "+1.00", good) for good in ("up", "down", "gain", "loss", "")))
    headlines(*(Metric(f"no {good}", "1", "+0.00 against raw", good) for good in ("up", "down", "either")))


def test_what_is_good_is_green_what_is_not_is_red_and_a_note_is_neither():
    at = AppTest.from_function(page).run()
    assert not at.exception
    shown = {one.label: one.proto for one in at.metric}
    colours = {label: one.color for label, one in shown.items()}
    assert colours["up"] == colours["gain"] != colours["down"] == colours["loss"]
    assert colours["note"] not in (colours["up"], colours["down"])
    for level in ("no up", "no down", "no either"):
        assert (shown[level].color, shown[level].direction) == (shown["note"].color, shown["note"].direction)
