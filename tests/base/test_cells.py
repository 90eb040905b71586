"""Laws of text in spreadsheets: none of it is a formula."""

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whitelab.base.cells import safe_cells
from whitelab.ui.widgets.chart import as_csv

FORMULAS = ("=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", '=HYPERLINK("http://x","y")')


@given(st.one_of(st.sampled_from([*FORMULAS, "-1 to =A1", "=1 to 2", "-1 +a(1)", "+1 a(b)"]), st.text("'=+-@a1. \t()")))
def test_no_text_is_a_formula_and_all_of_it_is_there(text):
    (cell,) = safe_cells([text])
    assert cell in (text, f"'{text}")
    if cell[:1] in tuple("=+-@\t\r"):  # a number, perhaps with words, which no spreadsheet computes with
        assert re.fullmatch("[+-][0-9.]+[a-z0-9.+ ()-]*", cell)
        assert not re.search("[a-z][(]|[)] *[a-z(+-]|[0-9.] *[+-]", cell)


NUMBERS = ("-0.5", "+2", "-1e-05", "-0.16 to 0.18", "+1 to +4", "-12.51 (could be chance)", "+2.76 against raw")


@pytest.mark.parametrize("value", [-0.5, -3, 1e-300, None, True, *NUMBERS, "it's", "'=1", "a=b"])
def test_numbers_and_other_text_stay_as_they_are(value):
    assert safe_cells([value]) == [value]


def test_a_table_downloaded_from_a_page_holds_no_formula():
    text = as_csv([{"=cmd": one, "score": -0.5} for one in FORMULAS])
    head, *rows = csv.reader(io.StringIO(text))
    assert [head, *rows] == [["'=cmd", "score"], *([f"'{one}", "-0.5"] for one in FORMULAS)]
