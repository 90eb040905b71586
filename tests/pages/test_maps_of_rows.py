"""Variants that are fitted to rows on the pages: fitted by a job first, and never for a whole sweep unasked."""

import pytest
from questions import QUESTIONS

import whitelab
from whitelab.scoring.setting import Setting
from whitelab.whitening import WHITENERS

from .visiting import choose, deltas, go_to, live, press, said, scored, start, tour, until

pytestmark = pytest.mark.model
FLOW = WHITENERS["flow"].label


def test_every_page_has_a_flow_and_its_score_is_the_packages(small, space):
    at = until(start(**small, whitening=FLOW))
    for page in tour(at, tuple(page for page in QUESTIONS if page != "uniformity")):
        assert not at.error, page
        assert live(at) == scored(space, "L1:flow")
    go_to(at, "uniformity")  # whose every point is a map of its own
    assert said(at, "Flow is fitted to the sentences themselves, anew for every layer:")
    choose(until(go_to(at, "overview")), whitening="clusters")
    assert live(at) == scored(space, "L1:clusters")


def test_a_map_of_every_pair_of_layers_is_made_when_it_is_asked_for(small, space):
    at = until(start("layers", **small, whitening=FLOW))
    assert said(at, "Flow is fitted to the sentences themselves, anew for 10 pairs of layers:")
    assert deltas(at)["Best one or two, flow"] == "not scored yet"
    (key,) = [one.key for one in at.button if one.label == "Start"]
    press(at, key)
    best = whitelab.layer_pairs(space, Setting.parse("L0:flow")).best
    assert deltas(at)["Best one or two, flow"] == f"Spearman {best.spearman:.2f}"


def test_the_cost_and_the_form_that_holds_it_stand_where_the_map_is_taken_away(small):
    at = until(start("whitening", **small, whitening=FLOW))
    assert said(at, "Fitted in ", " steps, ", " parameters.")
    (formats,) = [one for one in at.get("button_group") if one.key == "format"]
    assert list(formats.options) == ["safetensors", "scikit-learn"]
