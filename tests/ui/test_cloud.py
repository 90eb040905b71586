"""What a browser says of the pictures that a hand changes."""

import pytest
import streamlit as st

from whitelab.ui import cloud


@pytest.mark.parametrize("said", [None, {}, {"state": None}, {"state": [1.0]}, {"state": ["1", "2"]}, {"state": "ab"}])
def test_nonsense_leaves_the_picture_as_it_was(said, monkeypatch):
    monkeypatch.setattr(st, "session_state", {"key": said})
    assert cloud.state_of("key", (0.5, 0.5)) == (0.5, 0.5)


def test_a_state_that_was_dragged_is_taken(monkeypatch):
    monkeypatch.setattr(st, "session_state", {"key": {"state": [1, 2.5]}})
    assert cloud.state_of("key", (0.5, 0.5)) == (1.0, 2.5)
