"""A figure or a table with its data to take away."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd  # here and not where it is used: plotly takes it as soon as another thread has begun to import it
import plotly.graph_objects as go
import streamlit as st

BEST = "font-weight: bold; background-color: rgba(46, 134, 209, 0.22)"


SHOWN = "page-figures"  # session_state: what `chart` and `csv_button` drew in this run of the page


@dataclass(frozen=True, eq=False)
class Shown:
    """A figure on the page, None for a table, and how to have its data as rows."""

    figure: go.Figure | None
    rows: Callable[[], Sequence[dict]] | None


def begin_figures() -> None:
    """Forget the figures of the run before, but for those who still hold them: a button that is pressed meanwhile."""
    st.session_state[SHOWN] = {}


def shown() -> dict[str, Shown]:
    """The figures and tables of the page this visitor looks at, by key, in the order in which they were drawn."""
    return st.session_state.setdefault(SHOWN, {})


def chart(
    figure: go.Figure,
    key: str,
    rows: Callable[[], Sequence[dict]] | None = None,
    on_select: Callable[[], None] | None = None,
) -> None:
    """A figure at its own height with alternative text, and its data to download as CSV."""
    shown()[key] = Shown(figure, rows)
    st.plotly_chart(
        figure,
        key=key,
        width="stretch",
        height=int(figure.layout.height),
        alt=figure.layout.meta["alt"],
        on_select=on_select or "ignore",
        selection_mode="points",
        config={"displaylogo": False, "displayModeBar": False if on_select else "hover"},
    )
    if rows is not None:
        _download(rows, key)


def clicked(key: str) -> Any | None:
    """What was clicked in the chart `key`, as its figure describes it; None where nothing was."""
    points = st.session_state[key].selection.points
    return points[0]["customdata"] if points else None


def csv_button(rows: Callable[[], Sequence[dict]], key: str) -> None:
    """The rows of a table to download as CSV."""
    shown()[key] = Shown(None, rows)
    _download(rows, key)


def _download(rows: Callable[[], Sequence[dict]], key: str) -> None:
    """Rows as CSV, written when they are asked for."""
    st.download_button(
        "Data (CSV)",
        lambda: as_csv(rows()),
        file_name=f"whitelab-{key}.csv",
        mime="text/csv",
        key=f"{key}-csv",
        on_click="ignore",
        type="tertiary",
        icon=":material/download:",
    )


def as_csv(rows: Sequence[dict]) -> str:
    """Rows as CSV text."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else [])
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def rounded_table(
    rows: Sequence[dict] | dict[str, list],
    column_config: Mapping[str, Any],
    *,
    best: Sequence[str] = (),
    printed: Mapping[str, Callable[[Any], str]] | None = None,
    **options: Any,
) -> Any:
    """`st.dataframe`, whose decimals are printed here, as those beside it are: a browser takes every half up.

    The highest number of each column in `best`, as printed, stands out; ties all do. `printed` are functions for
    columns that want another. `options` and what comes back are `st.dataframe`'s.
    """
    table = pd.DataFrame(rows)
    words = {name: "{:.16g}".format for name in table.columns if pd.api.types.is_float_dtype(table[name])}
    columns = dict(column_config)
    for name in [name for name in table.columns if name in columns]:
        kind = columns[name]["type_config"]
        if (kind.get("format") or "").endswith("f"):
            words[name] = partial(_decimals, kind["format"])
            columns[name] = columns[name] | {"type_config": kind | {"format": None}}  # else the browser prints it

    def bold(column: pd.Series) -> list[str]:
        shown = [float(words[column.name](value)) for value in pd.to_numeric(column)]
        return [BEST if value == np.nanmax(shown) else "" for value in shown]

    missing = options.get("placeholder", "None")
    styled = table.style.format(words | dict(printed or {}), na_rep=missing)
    if best:
        styled.apply(bold, subset=list(best))
    return st.dataframe(styled, column_config=columns, **options)


def _decimals(pattern: str, value: float) -> str:
    """A number printed by a pattern; what rounds to zero has no sign."""
    return pattern % (float(pattern % value) + 0.0)
