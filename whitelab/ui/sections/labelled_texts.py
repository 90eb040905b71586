"""Choosing labelled texts on a page: the bundled examples, a path or an upload, and which columns to read."""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from whitelab import datasets
from whitelab.datasets import DEMO, ColumnNames, DataError, LabelledTexts, Upload
from whitelab.datasets.labelled import UnclearRoles
from whitelab.ui.results.files import file_stamp
from whitelab.ui.results.kept import kept
from whitelab.ui.results.study import remembered
from whitelab.ui.sidebar import malformed
from whitelab.ui.sidebar.own_data import UPLOADED
from whitelab.ui.widgets.address import among, bound, spelt
from whitelab.ui.widgets.note import note
from whitelab.ui.widgets.typed import typed_data
from whitelab.ui.widgets.uploader import uploader

TITLES = {DEMO: "Bundled examples", UPLOADED: "Uploaded file"}
FIELDS = {
    "text": "Text",
    "first": "First of a pair",
    "second": "Second of a pair",
    "label": "Label",
    "split": "Split",
    "positive": "Class that says yes",
}
KINDS = ("csv", "tsv", "jsonl", "parquet")
KEEP = "labelled-keep"  # session_state: whether malformed rows are left out
HELP = (
    "Type the path of a CSV, TSV, JSONL or Parquet file with a text and a label, or two texts and a label; of a folder "
    "of such files; or of a folder in SentEval's layout."
)


@remembered()
def read(
    data: str, task: str, columns: ColumnNames, positive: str | None, keep_going: bool, stamp: str
) -> LabelledTexts:
    """A labelled task's rows; `stamp` is that of the files, so a changed file is read again."""
    return datasets.load_labelled(data, task, columns=columns, positive=positive, keep_going=keep_going)


def choose() -> LabelledTexts | None:
    """The labelled texts this visitor chose, with their notes, or None after saying what is missing or wrong."""
    data = _chosen()
    note(*(data.notes if data else ()))
    return data


def _chosen() -> LabelledTexts | None:
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with left:
        data = typed_data("Labelled data", "labelled", list(TITLES), TITLES, HELP)
    with malformed.said(data, malformed.LABELLED), _called_as_the_boxes():
        if data == UPLOADED:
            return _uploaded()
        tasks = {task.name: task for task in datasets.discover_labelled(data)}
        among("labelled-task", tasks, next(iter(tasks)))

        def shown(name: str) -> str:
            return tasks[name].title if name in tasks and tasks[name].layout == DEMO else name

        with right, spelt("labelled-task", tasks, shown):
            name = st.selectbox("Labels", list(tasks), key="labelled-task", bind="query-params", format_func=shown)
        name = name if name in tasks else next(iter(tasks))
        columns, positive = _columns() if tasks[name].layout == "table" else (ColumnNames(), None)
        keep = malformed.left_out(data, malformed.LABELLED, KEEP)
        stamp = file_stamp(tasks[name].files)
        return read(data, name, columns, positive, keep, stamp)
    return None


@contextmanager
def _called_as_the_boxes() -> Iterator[None]:
    """Ask for what a table does not say by the names of the boxes under `Columns`."""
    try:
        yield
    except UnclearRoles as error:
        boxes = ", ".join(FIELDS[role] for role in error.roles)
        raise DataError(f"{error.problem}, under Columns: {boxes}") from None


def code(data: LabelledTexts) -> str:
    """The line of code that reads the same texts."""
    place = data.source if is_upload() else st.session_state.get("labelled") or DEMO
    arguments = [repr(place), repr(data.task)]
    if data.layout == "table":
        named = {name: st.session_state.get(f"column-{name}", "").strip() for name in FIELDS}
        positive = named.pop("positive")
        given = ", ".join(f"{name}={value!r}" for name, value in named.items() if value)
        arguments += [f"columns=whitelab.ColumnNames({given})"] if given else []
        arguments += [f"positive={positive!r}"] if positive else []
    arguments += ["keep_going=True"] if st.session_state.get(KEEP) else []
    return f"whitelab.load_labelled({', '.join(arguments)})"


def is_upload() -> bool:
    """Whether the chosen texts were brought by this visitor."""
    return st.session_state.get("labelled") == UPLOADED


def _columns() -> tuple[ColumnNames, str | None]:
    """Names of columns, where the file does not say them itself."""
    with st.expander("Columns"):
        st.caption("Leave empty what the names of the columns say: text, label, split, or sentence1 and sentence2.")
        values = {}
        for column, (name, title) in zip(st.columns(len(FIELDS)), FIELDS.items(), strict=True):
            values[name] = column.text_input(title, **bound(f"column-{name}", "")).strip() or None
    positive = values.pop("positive")
    return ColumnNames(**values), positive


def _uploaded() -> LabelledTexts | None:
    files = uploader("A table with a text and a label, or two texts and a label", KINDS, "labelled-file")
    if not files:
        st.info("Choose a file. Its first line may name the columns: text, label, and split if it has one.")
        return None
    (file,) = files
    columns, positive = _columns()
    keep = malformed.left_out(UPLOADED, malformed.LABELLED, KEEP)

    def load() -> LabelledTexts:
        upload = Upload(file.name, file.getvalue())
        return datasets.load_labelled(upload, columns=columns, positive=positive, keep_going=keep)

    return kept("labelled-upload", (file.file_id, columns, positive, keep), load)
