"""How numbers are written on a line."""

import pytest

from whitelab.cli.writing import number, short


@pytest.mark.parametrize(
    ("value", "text"), [(None, "undefined"), (81.554, "81.55"), (-0.004, "0.00"), (-0.006, "-0.01"), (0.0, "0.00")]
)
def test_what_rounds_to_zero_has_no_sign(value, text):
    assert number(value) == text


def test_short_numbers_have_four_digits():
    assert [short(value) for value in (None, 12.34567, 0.00012345678)] == ["undefined", "12.35", "0.0001235"]
