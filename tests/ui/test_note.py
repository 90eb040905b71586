"""Notes: each is a sentence with one full stop."""

from streamlit.testing.v1 import AppTest


def page():
    from whitelab.ui.widgets.note import note

    note("3 pairs repeat another", "2 lines were left out.")


def test_every_note_ends_with_one_full_stop():
    at = AppTest.from_function(page).run()
    assert [one.value for one in at.caption] == ["Note: 3 pairs repeat another.", "Note: 2 lines were left out."]
