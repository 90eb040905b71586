"""Variants on the screen: a curve over k is of a variant that has one, and says so where it is not the chosen one."""

import pytest

from whitelab.scoring.setting import Setting
from whitelab.ui.frame.variants import instead, over_k
from whitelab.whitening import WHITENERS, variant


@pytest.mark.parametrize("name", WHITENERS)
def test_a_curve_over_k_is_of_the_chosen_variant_or_says_whose_it_is(name):
    chosen = Setting((1,), name)
    assert variant(over_k(chosen).whitening).takes_k
    assert (over_k(chosen) == chosen) is (instead(chosen) == "") is WHITENERS[name].takes_k
    assert over_k(chosen).with_(whitening=name) == chosen
