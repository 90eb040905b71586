"""Tables beside charts and cards: their numbers are printed as those of the cards are."""

import json
import math

import pytest
from streamlit import dataframe_util
from streamlit.testing.v1 import AppTest

from whitelab.ui.widgets.metric import number

VALUES = [78.125, 78.375, 78.124, 0.005, 2.675, -0.001, 61.0]  # the first two lie at half a hundredth exactly


def page(values):
    import streamlit as st

    from whitelab.ui.widgets.chart import rounded_table

    columns = {
        "Score": st.column_config.NumberColumn(format="%.2f"),
        "Gain": st.column_config.NumberColumn(format="%+.2f"),
        "gone": st.column_config.NumberColumn(format="%.2f"),
    }
    rows = [{"Score": value, "Gain": value, "Left": value, "Count": 12345} for value in values]
    rounded_table(rows, columns, best=["Score"], printed={"Count": "{:_}".format}, placeholder="-")


def test_a_table_prints_a_number_as_a_card_does_also_at_a_half_and_keeps_all_its_digits():
    (table,) = AppTest.from_function(page, args=([*VALUES, None],)).run().dataframe
    shown = dataframe_util.convert_arrow_bytes_to_pandas_df(table.proto.arrow_data.styler.display_values)
    assert shown["Score"].tolist() == [*map(number, VALUES), "-"]
    assert shown["Gain"].tolist()[4:] == ["+2.67", "+0.00", "+61.00", "-"]
    assert (shown["Left"].tolist()[-2:], set(shown["Count"])) == (["61", "-"], {"12_345"})
    assert table.value["Score"].tolist()[:-1] == pytest.approx(VALUES, rel=0)
    assert math.isnan(table.value["Score"].iloc[-1])
    kinds = {name: one["type_config"] for name, one in json.loads(table.proto.columns).items()}
    assert not any(kinds[name].get("format") for name in ("Score", "Gain"))  # with one the browser prints
