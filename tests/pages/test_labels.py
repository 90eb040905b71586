"""Laws of choosing labelled texts on a page: an upload is read from memory, under its own name and its limits."""

import tempfile

import pytest
from streamlit.testing.v1 import AppTest

from whitelab.base import upload_limits


def page():
    import streamlit as st

    from whitelab.ui.sections import labelled_texts

    found = labelled_texts.choose()
    if found is not None:
        st.text(f"{found.task} {found.source} {found.n_rows} rows")


@pytest.fixture
def at(monkeypatch):
    monkeypatch.setattr(tempfile, "TemporaryDirectory", None)
    at = AppTest.from_function(page, default_timeout=30)
    at.query_params["labelled"] = "Uploaded file"
    return at.run()


def upload(at, data: bytes):
    at.file_uploader(key="labelled-file").set_value(("own.tsv", data, "text/plain")).run()
    assert not at.exception
    return at


def test_an_uploaded_table_is_read_under_its_own_name(at):
    upload(at, b"text\tlabel\none\ta\ntwo\tb\n")
    assert [one.value for one in at.text] == ["own own.tsv 2 rows"]


def test_what_is_wrong_with_an_upload_is_told_by_its_name(at, monkeypatch):
    upload(at, b"text\tlabel\none\ta\ntwo\n")
    assert at.dataframe[0].value["file"].tolist() == ["own.tsv"]
    monkeypatch.setattr(upload_limits, "COLUMNS", 1)
    upload(at, b"text\tlabel\none\ta\ntwo\tb\n")
    assert [one.value for one in at.error] == ["own.tsv: 2 columns, at most 1 are read from an upload"]
