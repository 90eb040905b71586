"""What a map is fitted on beside other texts than the bar's pairs, as a setting takes it."""

import pytest
from streamlit.testing.v1 import AppTest


def _page(task, sentences=11):
    from types import SimpleNamespace

    import streamlit as st

    from whitelab import Setting
    from whitelab.ui.frame.fitted_on import fitted_on

    opened = SimpleNamespace(space=SimpleNamespace(dim=8, n_sentences=sentences), pairs=SimpleNamespace(task=task))
    chosen = SimpleNamespace(setting=Setting.parse("mean/L1:pca"))
    st.session_state["found"] = fitted_on("of", {"corpus": "The corpus"}, 10, chosen, opened, "texts")


@pytest.mark.parametrize(("task", "scope"), [("demo", "demo"), ("mine", "the sentences of mine")])
def test_a_task_that_is_a_scope_by_itself_is_called_so(task, scope):
    at = AppTest.from_function(_page, args=(task,)).run()
    assert not at.exception
    assert at.session_state["found"] == (scope, True)
    (box,) = at.selectbox
    assert box.options[-1] == f"The sentences of {task}"


def test_a_task_of_fewer_sentences_stands_in_for_no_texts_that_are_too_few():
    at = AppTest.from_function(_page, args=("mine", 9)).run()
    assert not at.exception
    assert at.session_state["found"] == ("corpus", False)
    assert not at.caption
