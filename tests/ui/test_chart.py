"""Tables beside charts and cards: their numbers are printed as those of the cards are."""

import re
from dataclasses import replace
from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Decimal

from streamlit import dataframe_util
from streamlit.testing.v1 import AppTest

from tests.conftest import make_space
from whitelab.encoding.embeddings import Origin
from whitelab.scoring.setting import Setting
from whitelab.ui.widgets.chart import SHOWN
from whitelab.ui.widgets.metric import change, number

VALUES = [
    78.125,
    78.375,
    -78.125,
    78.124,
    0.005,
    2.675,
    -0.001,
    61.0,
]  # the first three are halves


def page(values, styled=True):
    import streamlit as st

    from whitelab.ui.widgets.chart import rounded_table

    columns = {
        "Score": st.column_config.NumberColumn(format="%.2f"),
        "Gain": st.column_config.NumberColumn(format="%+.2f"),
        "gone": st.column_config.NumberColumn(format="%.2f"),
    }
    rows = [{"Score": value, "Gain": value, "Left": value, "Count": 12345} for value in values]
    best = {"Score": [value != 78.375 for value in values]}
    more = {"best": best, "printed": {"Count": "{:_}".format}} if styled else {}
    rounded_table(rows, columns, alt="Scores", placeholder="-", **more)


def in_a_browser(value: float, sign: str = "") -> str:
    """What JavaScript's `toFixed(2)` makes of a number: of two that are equally near the larger."""
    exact = Decimal(value).quantize(Decimal("0.01"), ROUND_HALF_UP if value > 0 else ROUND_HALF_DOWN)
    return f"{exact:{sign}}"


def test_a_table_shows_a_number_as_a_card_does_also_at_a_half_and_keeps_all_its_digits():
    (table,) = AppTest.from_function(page, args=([*VALUES, None],)).run().dataframe
    columns = {name: column.tolist()[:-1] for name, column in table.value.items()}
    assert [*map(in_a_browser, columns["Score"])] == [*map(number, VALUES)]
    assert [in_a_browser(value, "+") for value in columns["Gain"]] == [change(value, 0.0).strip() for value in VALUES]
    assert columns["Left"] == VALUES
    assert [one for one in VALUES if one not in columns["Score"]] == [78.125, 78.375, -78.125, -0.001]
    assert table.value.iloc[-1, :3].isna().all()
    shown = dataframe_util.convert_arrow_bytes_to_pandas_df(table.proto.arrow_data.styler.display_values)
    assert (shown["Left"].tolist()[-2:], set(shown["Count"])) == (["61", "-"], {"12_345"})


def test_the_best_as_printed_stands_out_among_the_rows_that_may_be_and_ties_all_do():
    (table,) = AppTest.from_function(page, args=([*VALUES, None],)).run().dataframe
    cells = re.findall(r"_row(\d+)_col(\d+)", table.proto.arrow_data.styler.styles)
    assert cells == [("0", "0"), ("3", "0")]  # 78.125 and 78.124, below a 78.375 that may not


def test_a_table_that_only_rounds_is_not_styled_which_takes_time():
    (table,) = AppTest.from_function(page, args=(VALUES, False)).run().dataframe
    assert not table.proto.arrow_data.HasField("styler")


def page_of_data(space, setting, rows):
    from whitelab.ui.widgets.chart import begin_figures, csv_button, data_of, keep_rows, shown

    begin_figures()
    csv_button(lambda: rows, "before")
    data_of(space, setting)
    csv_button(lambda: rows, "pairs")
    data_of(setting=setting, model="some/model")
    keep_rows(lambda: rows, "others")
    shown().update(found={key: one.rows() for key, one in shown().items()})


def test_every_row_of_data_says_what_it_is_of_where_it_does_not_say_so_itself():
    setting = Setting.parse("L1+L4:zca@64 aggregate=mean").with_(fit="/home/me/nli.txt")
    space = replace(make_space(), origin=Origin("some/model", "/home/me/sts", "sts13", "test"))
    at = AppTest.from_function(page_of_data, args=(space, setting, [{"k": 1}, {"k": 2, "task": "sts12"}])).run()
    found = at.session_state[SHOWN]["found"]
    assert found["before"] == [{"k": 1}, {"k": 2, "task": "sts12"}]
    made = {"model": "some/model", "page_setting": "mean/L1+L4:zca@64 aggregate=mean fit=nli.txt"}
    assert found["others"] == [{"k": 1} | made, {"k": 2, "task": "sts12"} | made]
    made["split"] = "test"
    assert found["pairs"] == [{"k": 1, "task": "sts13"} | made, {"k": 2, "task": "sts12"} | made]
    assert list(found["pairs"][0])[0] == "k"  # what the row is about stands first


def page_of_lines():
    from whitelab import figures
    from whitelab.ui.widgets.chart import line_key

    curves = {f"subset {i}": [40.0, 41.0] for i in range(36)}
    line_key(figures.k_curves([40.0, 41.0], curves, "pca", "PCA", {}, 2))


def test_no_two_names_of_three_dozen_lines_have_a_piece_that_looks_alike():
    (key,) = AppTest.from_function(page_of_lines).run().get("html")
    pieces = re.findall(r"border-top: 3px ([^\"]+)\"", key.proto.body)
    assert len(set(pieces)) == len(pieces) == 36
