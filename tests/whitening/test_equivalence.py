"""Laws of the agreement note: what it calls equal is equal, and it says why."""

from functools import cache

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from whitelab.statistics.geometry import pair_cosines
from whitelab.whitening import WHITENERS, agreements, cosine_class, fit_to_rows
from whitelab.whitening.equivalence import REASONS

D = 6
SPECS = [name for name in WHITENERS if name not in ("group", "shuffled_group", "clusters")]
SPECS += ["clusters:m=1,directions=0", "clusters:m=1,directions=3", "clusters:m=2,directions=1"]
SPECS += ["group:groups=1", "group:groups=2", f"group:groups={D}", "shuffled_group:groups=1", "shuffled_group:groups=2"]
SPECS += [f"shuffled_group:groups={D}", "soft:gamma=0", "soft:gamma=1", "soft:gamma=1,alpha=0.5"]
SPECS += ["all_but_the_top:directions=0", "shrunk:method=epsilon,eps=0"]


def rows(d=D):
    x = np.random.default_rng(3).standard_normal((50, d)) * np.linspace(0.5, 3, d) + 2
    return torch.from_numpy(x @ np.random.default_rng(4).standard_normal((d, d)))


@cache
def cosines(spec, k=None):
    z = fit_to_rows(spec, rows(), k=k)(rows())
    return pair_cosines(z[:-1], z[1:])


@pytest.mark.parametrize("k", [None, 3])
def test_two_specs_agree_exactly_when_the_note_names_them_together(k):
    settings = [(spec, k if WHITENERS[spec.partition(":")[0]].takes_k else None) for spec in SPECS]
    together = [set(one.specs) for one in agreements(settings, D)]
    assert together
    for i, (a, k_a) in enumerate(settings):
        for b, k_b in settings[:i]:
            equal = torch.allclose(cosines(a, k_a), cosines(b, k_b), atol=1e-8, rtol=0)
            assert equal == any({a, b} <= group for group in together), (a, b)


def test_what_agrees_with_nothing_is_not_named():
    assert agreements([("pca", None), ("center", None), ("none", None)], D) == ()
    assert agreements([("pca", None)], D) == ()
    assert agreements([("pca", 3), ("pca_cor", 3)], D) == ()  # other directions are kept


def test_the_reason_is_that_of_the_class():
    (full,) = agreements([("pca", None), ("zca", None), ("cholesky", D)], D)
    assert full.specs == ("pca", "zca", "cholesky")
    assert "rotation only" in full.reason
    (few,) = agreements([("pca", 3), ("cholesky", 3)], D)
    assert "the same k principal directions of the covariance" in few.reason
    (few,) = agreements([("pca_cor", 3), ("zca_cor", 3)], D)
    assert "of the correlation" in few.reason


def test_a_spec_at_the_end_of_its_family_is_told_what_it_has_become():
    (found,) = agreements([("zca", None), ("soft:gamma=1", None), ("group:groups=1", None), ("center", None)], D)
    assert found.because == {
        "soft:gamma=1": "γ = 1 without a ridge is ZCA whitening",
        "group:groups=1": "one group is ZCA whitening",
    }
    (centred,) = agreements([("center", None), ("soft:gamma=0", None), ("all_but_the_top:directions=0", None)], D)
    assert list(centred.because) == ["soft:gamma=0", "all_but_the_top:directions=0"]


def test_every_class_that_can_have_two_members_has_a_reason():
    for k in (None, 3):
        classes = {}
        for spec in SPECS:
            takes = WHITENERS[spec.partition(":")[0]].takes_k
            classes.setdefault(cosine_class(spec, k if takes else None, D), []).append(spec)
        several = {name.partition(",")[0].partition(":")[0] for name, members in classes.items() if len(members) > 1}
        assert several
        assert several <= set(REASONS)


def test_the_negative_control_differs():
    with pytest.raises(AssertionError):
        assert_close(cosines("pca"), cosines("center"))


def test_two_spellings_of_one_spec_are_one_setting_and_agree_with_no_other():
    spelt = [("soft:gamma=0.5", None), ("soft:alpha=0,gamma=0.5", None)]
    assert agreements(spelt, D) == ()
    (found,) = agreements([*spelt, ("zca", None), ("soft:gamma=1", None), ("soft:gamma=1,alpha=0", None)], D)
    assert found.specs == ("zca", "soft:gamma=1")
