"""Widgets that live in the address, where browser and session could come to differ."""

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetStates

from whitelab.whitening import WHITENERS

from .visiting import choose, go_to, knob, start, until

SOFT = WHITENERS["soft"].label


@pytest.mark.parametrize(
    ("kind", "key", "address", "shown"),
    [
        ("selectbox", "whitening", {"whitening": WHITENERS["center"].label}, WHITENERS["center"].label),
        ("slider", "soft-gamma", {"whitening": SOFT, "soft-gamma": "0.25"}, 0.25),
    ],
)
def test_a_page_opened_by_a_link_that_overtook_the_address_shows_what_the_session_holds(
    kind, key, address, shown, small
):
    at = until(start(**small | address))
    at.query_params.clear()
    at.switch_page("pages/data.py")._run(WidgetStates())  # a browser that knows nothing yet
    found = getattr(at, kind)(key).proto
    assert found.set_value
    assert (found.raw_value if kind == "selectbox" else found.value[0]) == shown
    assert at.query_params[key] in (address[key], [address[key]])  # and a reload keeps it


def test_k_is_kept_where_a_link_overtook_the_address(small):
    at = until(start(**small, k="5"))
    at.query_params.clear()
    at.switch_page("pages/data.py")._run(WidgetStates())
    assert knob(at)["k"] == 5
    assert at.query_params["k"] in ("5", ["5"])


def test_a_knob_has_its_value_again_after_another_variant_was_shown(small):
    at = until(start(**small | {"whitening": SOFT, "soft-gamma": "0.25"}))
    choose(at, whitening="pca")
    assert not [one for one in at.slider if one.key == "soft-gamma"]
    go_to(at, "data")
    assert choose(at, whitening="soft").sidebar.slider("soft-gamma").value == 0.25
