"""A figure or a table with its data to take away."""

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pandas as pd  # here and not where it is used: plotly takes it as soon as another thread has begun to import it
import plotly.graph_objects as go
import streamlit as st

from whitelab.base.cells import safe_cells
from whitelab.base.wording import best_as_printed, for_a_file
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.scoring.setting import Setting, scope_name

BEST = "font-weight: bold; background-color: rgba(46, 134, 209, 0.22)"


SHOWN = "page-figures"  # session_state: what `chart` and tables have shown in this run of the page
MADE = "page-data-made"  # session_state: the columns of `data_of`
HEADLINES = "page-headlines"  # session_state: what `keep_headline` keeps, by label


@dataclass(frozen=True, eq=False)
class Shown:
    """A figure on the page, None for a table, how to have its data as rows, and what that is of: see `data_of`.

    `texts` is a table as the files of its own buttons, by their ending.
    """

    figure: go.Figure | None
    rows: Callable[[], Sequence[dict]] | None
    made: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, Callable[[], str]] = field(default_factory=dict)


def begin_figures() -> None:
    """Forget the figures of the run before, but for those who still hold them: a button that is pressed meanwhile."""
    st.session_state[SHOWN], st.session_state[HEADLINES] = {}, {}
    data_of()


def data_of(space: LayerEmbeddings | None = None, setting: Setting | None = None, **more: str) -> None:
    """Say what the page's data is of from here on: every row then names model, task, split and `page_setting`, as far
    as they are given.

    A row's own columns stay, so where one has a layer, a variant or k of its own, that holds. Of a scope that is a path
    its `scope_name` is said.
    """
    made = {name: getattr(space.origin, name) for name in ("model", "task", "split")} if space else {}
    if setting:
        made["page_setting"] = str(setting.with_(fit=scope_name(setting.fit, space and space.texts)))
    st.session_state[MADE] = {name: value for name, value in (made | more).items() if value}


@contextmanager
def data_under(space: LayerEmbeddings, setting: Setting) -> Iterator[None]:
    """Say of what is drawn inside that it is of this setting of this space in place of the page's."""
    before = st.session_state.get(MADE, {})
    data_of(space, setting)
    try:
        yield
    finally:
        st.session_state[MADE] = before


def _kept(figure: go.Figure | None, key: str, rows: Callable[[], Sequence[dict]] | None) -> Shown:
    """What is shown as `key` from now on, whose rows say what they are of."""
    made = st.session_state.get(MADE, {})
    named = rows and (lambda: [row | {name: made[name] for name in made if name not in row} for row in rows()])
    one = shown()[key] = Shown(figure, named, made)
    return one


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
    one = _kept(figure, key, rows)
    st.plotly_chart(
        figure,
        key=key,
        width="stretch",
        height=int(figure.layout.height),
        alt=figure.layout.meta["alt"],
        on_select=on_select or "ignore",
        selection_mode="points",
        config={
            "displaylogo": False,
            "displayModeBar": False if on_select else "hover",
            "toImageButtonOptions": {"filename": f"whitelab-{for_a_file(key)}", "scale": 2},
        },
    )
    if one.rows is not None:
        _download(one.rows, key)


_BORDERS = {None: "solid", "solid": "solid", "dot": "dotted"}  # as CSS calls dashes; it has no more


def line_key(figure: go.Figure) -> None:
    """The names of lines that a figure's legend leaves out, each beside a piece of its line.

    Words wrap at any width, where a legend of a dozen names takes a phone's room from the curves.
    """
    lines = [trace for trace in figure.data if trace.mode == "lines" and trace.name and trace.showlegend is False]
    piece = "flex: none; width: 1.5rem; margin-right: 0.375rem; border-top: 3px"
    parts = (
        '<span style="display: inline-flex; align-items: center">'
        f'<span aria-hidden="true" style="{piece} {_BORDERS.get(one.line.dash, "dashed")} {one.line.color}"></span>'
        f"{one.name}</span>"
        for one in lines  # whose names the figure holds as escaped HTML
    )
    if lines:
        style = "display: flex; flex-wrap: wrap; gap: 0.125rem 1rem; font-size: 0.875rem"
        st.html(f'<div style="{style}">{"".join(parts)}</div>')


def clicked(key: str) -> Any | None:
    """What was clicked in the chart `key`, as its figure describes it; None where nothing was."""
    points = st.session_state[key].selection.points
    return points[0]["customdata"] if points else None


def csv_button(rows: Callable[[], Sequence[dict]], key: str) -> None:
    """The rows of a table to download as CSV."""
    _download(_kept(None, key, rows).rows, key)


def keep_rows(rows: Callable[[], Sequence[dict]], key: str) -> None:
    """The rows of a table among the page's results, for one that has files of its own."""
    _kept(None, key, rows)


def keep_texts(texts: Mapping[str, Callable[[], str]], key: str) -> None:
    """A table among the page's results as the files that its own buttons give, by their ending."""
    shown()[key] = Shown(None, None, texts=texts)


def keep_headline(row: dict) -> None:
    """A headline number among the page's results, the last of its `label`: all of them are one file."""
    rows = st.session_state.setdefault(HEADLINES, {})
    rows[row["label"]] = row | st.session_state.get(MADE, {})  # each says by itself what it is of
    shown()["headlines"] = Shown(None, lambda: list(rows.values()))


def _download(rows: Callable[[], Sequence[dict]], key: str) -> None:
    """Rows as CSV, written when they are asked for."""
    st.download_button(
        "Data (CSV)",
        lambda: as_csv(rows()),
        file_name=f"whitelab-{for_a_file(key)}.csv",
        mime="text/csv",
        key=f"{key}-csv",
        on_click="ignore",
        type="tertiary",
        icon=":material/download:",
    )


def as_csv(rows: Sequence[dict]) -> str:
    """Rows as CSV text; what one of them lacks is left empty, and no text is a formula (`safe_cells`)."""
    text = io.StringIO()
    names, writer = list(dict.fromkeys(name for row in rows for name in row)), csv.writer(text)
    writer.writerow(safe_cells(names))
    writer.writerows(safe_cells(row.get(name, "") for name in names) for row in rows)
    return text.getvalue()


def rounded_table(
    rows: Sequence[dict] | dict[str, list],
    column_config: Mapping[str, Any],
    *,
    alt: str,
    best: Mapping[str, Sequence[bool]] | None = None,
    printed: Mapping[str, Callable[[Any], str]] | None = None,
    **options: Any,
) -> Any:
    """`st.dataframe` without its row numbers, whose decimals read as those of the cards beside it.

    The highest number of each column in `best`, as printed, stands out, ties all do: among the rows of which it says
    that they may. `printed` are functions for columns that want another form. `alt` is what a screen reader calls the
    table. `options` and what comes back are `st.dataframe`'s.
    """
    table = pd.DataFrame(rows)
    forms = {name: column_config[name]["type_config"].get("format") or "" for name in table if name in column_config}
    forms = {name: form for name, form in forms.items() if form.endswith("f")}
    for name, form in forms.items():
        table[name] = [_for_a_browser(form, value) for value in pd.to_numeric(table[name])]

    def bold(column: pd.Series) -> list[str]:
        asked = column.where(best[column.name]).tolist()
        return [BEST if one else "" for one in best_as_printed(asked, forms[column.name])]

    shown = table
    if best or printed:  # each takes some milliseconds
        plain = {name: "{:.16g}".format for name in table.select_dtypes("float") if name not in forms}
        shown = table.style.format(plain | dict(printed or {}), na_rep=options.get("placeholder", "None"))
        shown = shown.apply(bold, subset=list(best)) if best else shown
    return st.dataframe(shown, column_config=dict(column_config), alt=alt, hide_index=True, **options)


def text_width(texts: Iterable[str]) -> int:
    """The pixels of a table's column in which the longest of `texts` stands whole, at most two fifths of a page's."""
    return min(14 + 7 * max(map(len, texts), default=0), 330)


def _for_a_browser(form: str, value: float) -> float:
    """The value that a browser prints in `form`, such as `%.2f`, as Python prints `value`.

    It is itself but for halves, which a browser takes up and Python to the even digit, and zeros with a sign.
    """
    if not math.isfinite(value):
        return value
    halves = Fraction(value) * 2 * 10 ** int(form[-2])
    return float(form % value) + 0.0 if halves % 2 == 1 or -1 < halves < 0 else value
