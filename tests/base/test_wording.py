"""Numbers as people read them."""

import math

import pytest

from whitelab.base.wording import (
    amount,
    best_as_printed,
    cut_note,
    duration,
    in_percent,
    p_value,
    quantity,
    ratio,
    spaced,
)


def test_thousands_are_set_apart_by_spaces_at_which_no_line_breaks():
    assert spaced(1234567) == "1\u202f234\u202f567"
    assert [spaced(value) for value in (999, 12345.5, 12345.0, -2000.0)] == [
        "999",
        "12\u202f345.5",
        "12\u202f345",
        "-2\u202f000",
    ]
    assert [spaced(value, "+") for value in (2000, -0.5)] == ["+2\u202f000", "-0.5"]


def test_no_line_breaks_between_a_share_and_its_sign():
    assert [in_percent(0.4249), in_percent(0.0512, ".1f")] == ["42\u00a0%", "5.1\u00a0%"]


@pytest.mark.parametrize(
    ("value", "floor", "text"),
    [
        (0.0341, 0.001, "p = 0.034"),
        (1e-9, 0.001, "p < 0.001"),
        (0.002, 0.002, "p < 0.002"),
        (math.nan, 0.001, "p undefined"),
    ],
)
def test_a_p_value_is_never_written_as_zero_or_in_two_lines(value, floor, text):
    assert p_value(value, floor) == text.replace(" ", "\u00a0")


def test_of_one_thing_the_noun_is_singular_and_of_none_or_several_plural():
    assert [quantity(count, "pair") for count in (0, 1, 2, 1379)] == [
        "0 pairs",
        "1 pair",
        "2 pairs",
        "1\u202f379 pairs",
    ]
    assert [quantity(count, "query", "queries") for count in (1, 2)] == ["1 query", "2 queries"]
    assert [cut_note(count, "text", 9) for count in (1, 2)] == [
        "1 text was cut to 9 tokens",
        "2 texts were cut to 9 tokens",
    ]


def test_the_best_is_the_best_as_printed_and_all_that_tie_but_nothing_that_is_not_defined():
    scores = [70.0, 70.004, None, 65.0, float("nan")]
    assert best_as_printed(scores) == [True, True, False, False, False]
    assert best_as_printed(scores, "%.3f") == [False, True, False, False, False]
    assert best_as_printed([None]) == [False]
    assert best_as_printed([]) == []


def test_a_ratio_that_is_not_nothing_does_not_read_as_nothing():
    assert [ratio(value) for value in (7.5, 1.0, 16 / 384, 0.0)] == ["7.5", "1.0", "0.042", "0"]


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 bytes"), (999, "999 bytes"), (1500, "1.5 kB"), (89_800_000, "89.8 MB"), (2.5e11, "250 GB")],
)
def test_bytes_are_said_in_the_unit_that_fits(size, words):
    assert amount(size) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "1 s"), (89, "89 s"), (90, "2 min"), (5399, "90 min"), (5400, "1.5 h"), (20_000, "5.6 h")],
)
def test_a_duration_is_said_in_the_unit_that_fits(seconds, words):
    assert duration(seconds) == words
