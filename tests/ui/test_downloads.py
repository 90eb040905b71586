"""The part of a page that fetches published data: terms first, then bytes, then a workspace that uses them."""

import threading

import fake_hub
import pytest
from fake_hub import ARCHIVE
from streamlit.testing.v1 import AppTest

from whitelab.base.wording import amount
from whitelab.datasets import SOURCES, fetch, fetched
from whitelab.ui.results.jobs import jobs

PATIENCE = 20.0


@pytest.fixture
def hub(monkeypatch, tmp_path):
    jobs.clear()
    with fake_hub.serving(monkeypatch, tmp_path / "cache") as server:
        yield server
    for job in jobs().active():
        job.cancel()
    jobs.clear()


def page():
    """The bar's box for data, then the section, as a page would have them."""
    import streamlit as st

    from whitelab import datasets
    from whitelab.ui.sections import downloads

    data = st.sidebar.selectbox("Data", ["demo"], key="data", bind="query-params", accept_new_options=True) or "demo"
    st.title("Data")
    st.text(f"data: {data}, tasks: {', '.join(info.name for info in datasets.discover(data))}")
    downloads.section(None)


@pytest.fixture
def at(hub):
    return opened()


def opened(source="small") -> AppTest:
    at = AppTest.from_function(page, default_timeout=PATIENCE).run()
    return at.selectbox(key="download-source").set_value(source).run()


def labels(at) -> list[str]:
    return [button.label for button in at.button]


def accept(at, name="small"):
    return at.checkbox(key=f"accept-{name}").check().run()


def finish(at, name="small"):
    """Wait for the job and let the page see it."""
    job = jobs().get(f"download/{name}")
    assert job.join(PATIENCE)
    return at.run()


def test_terms_licence_size_and_home_are_shown_before_anything_is_asked(at, hub):
    assert not at.exception
    text = " ".join(one.value for one in (*at.markdown, *at.caption))
    for shown in ("Name the authors.", "CC BY-NC-SA 3.0", ARCHIVE.home, "sickr (with train)", "sts12"):
        assert shown in text
    (button,) = at.button
    assert button.label == f"Download {amount(ARCHIVE.size)}"
    assert button.disabled
    assert hub.asked == []
    assert at.selectbox(key="download-source").options == [
        f"{source.title} ({amount(source.size)})" for source in SOURCES.values()
    ]


def test_the_button_opens_when_the_terms_are_accepted_and_each_source_has_its_own(at, hub):
    accept(at)
    assert not at.button[0].disabled
    at.selectbox(key="download-source").set_value("pair").run()
    assert at.button[0].disabled
    assert "Their own terms go on to hold." in [one.value for one in at.markdown]
    assert hub.asked == []


def test_after_the_download_the_source_can_become_the_data(at, hub):
    accept(at)
    at.button(key="download").click().run()
    finish(at)
    assert labels(at) == ["Use as data"]
    assert at.text[0].value == "data: demo, tasks: demo"
    at.button(key="download-use").click().run()
    assert not at.exception
    assert at.text[0].value == "data: small, tasks: sickr, sts12"
    assert at.selectbox(key="data").value == "small"


def test_what_is_here_already_is_offered_at_once(hub):
    fetch("small", accept_licence=True)
    at = opened()
    assert labels(at) == ["Use as data"]
    assert not at.checkbox


def test_progress_is_shown_and_a_cancelled_download_goes_on_where_it_ended(at, hub):
    gate = threading.Event()

    def held(data):
        gate.wait(PATIENCE)
        return data

    hub.faults = [100_000, held]  # a cut, then an answer that waits
    accept(at)
    at.button(key="download").click().run()
    assert labels(at) == ["Cancel"]
    assert [one.value for one in at.markdown if one.value.startswith("**")] == ["**Fetching small**"]
    assert len(at.get("progress")) == 1
    at.button[0].click().run()
    gate.set()
    finish(at)
    assert at.info[0].value == "Fetching small was cancelled."
    assert labels(at) == ["Start again"]
    assert fetched("small") is None
    at.button[0].click().run()
    finish(at)
    assert labels(at) == ["Use as data"]
    assert hub.gets()[-1] is not None  # a Range


def test_a_second_visitor_meets_the_download_that_runs(at, hub):
    gate = threading.Event()

    def held(data):
        gate.wait(PATIENCE)
        return data

    hub.faults = [held]
    accept(at)
    at.button(key="download").click().run()
    other = opened()
    assert labels(other) == ["Cancel"]
    gate.set()
    assert labels(finish(other)) == labels(finish(at)) == ["Use as data"]
    assert len(hub.gets()) == 1


def test_a_failure_is_one_line_and_can_be_tried_again(at, hub):
    hub.heads = (429, {"Retry-After": "55"})
    accept(at)
    at.button(key="download").click().run()
    finish(at)
    assert "try again in 55 s" in at.error[0].value
    assert not at.exception
    assert labels(at) == ["Try again"]
    hub.heads = None
    at.button[0].click().run()
    finish(at)
    assert labels(at) == ["Use as data"]
