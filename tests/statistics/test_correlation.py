"""Laws of the rank correlation: scipy's, for many rows at once."""

import math

import jaxtyping
import numpy as np
import pytest
import reference
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata
from torch.testing import assert_close

from whitelab.statistics.correlation import (
    AGGREGATE_LABELS,
    AGGREGATES,
    aggregate,
    average_ranks,
    half_width,
    is_constant,
    rank_products,
    spearman,
    spearman_by_subset,
)

TIED = st.integers(-3, 3).map(float)


def settings(rows=6, p=90, seed=0):
    """Cosines of several settings, gold scores with ties and three subsets of unequal size."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 11, p) / 2
    x = np.round(gold * rng.standard_normal((rows, 1)) + 2 * rng.standard_normal((rows, p)), 1)
    subset = rng.permutation(np.repeat([0, 1, 2], [50, 30, 10]))
    return torch.from_numpy(x), torch.from_numpy(gold), torch.from_numpy(subset)


@given(arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 30)), elements=TIED))
def test_ranks_are_scipys(x):
    np.testing.assert_array_equal(average_ranks(torch.from_numpy(x)), rankdata(x, axis=-1))


def test_minus_zero_ties_with_zero():
    assert average_ranks(torch.tensor([0.0, -0.0, 1.0])).tolist() == [1.5, 1.5, 3.0]


@given(st.integers(2, 40).flatmap(lambda p: arrays(np.float64, (2, p), elements=TIED)))
def test_spearman_is_scipys_with_ties(xy):
    found = float(spearman(torch.from_numpy(xy[0]), torch.from_numpy(xy[1])))
    assert found == pytest.approx(reference.spearman(*xy), abs=1e-12, nan_ok=True)


@given(
    st.tuples(st.integers(1, 4), st.integers(1, 25)).flatmap(
        lambda shape: st.tuples(
            arrays(np.float64, shape, elements=TIED), arrays(np.float64, shape[1:], elements=st.integers(-9, 9))
        )
    )
)
def test_products_of_ranks_are_exact_whatever_the_ties(xb):
    x, b = (torch.from_numpy(one) for one in xb)
    a = average_ranks(x) - (len(b) + 1) / 2
    product, square = rank_products(x, b)
    # a . b would differ by mean(b) times the sum of a, which is 0
    assert torch.equal(product, a @ b)
    assert torch.equal(square, a.square().sum(-1))


def test_products_of_ranks_take_any_leading_axes_and_types():
    x, gold, _ = settings()
    b = average_ranks(gold) - (len(gold) + 1) / 2
    product, square = rank_products(x, b)
    for one in (x.view(2, 3, -1), x.view(3, 1, 2, -1)):
        assert_close(rank_products(one, b), (product.view(one.shape[:-1]), square.view(one.shape[:-1])))
    assert_close(rank_products(x[0], b), (product[0], square[0]))
    for dtype in (torch.float32, torch.bfloat16):
        assert_close(spearman(x.to(dtype), gold), spearman(x.to(dtype).double(), gold))


def test_ties_matter():
    x = torch.tensor([1.0, 2.0, 3.0, 4.0])
    tied = torch.tensor([1.0, 1.0, 2.0, 2.0])
    assert float(spearman(x, tied)) == pytest.approx(2 / math.sqrt(5))
    assert float(spearman(x, x)) == 1.0
    assert float(spearman(x, -x)) == -1.0


def test_many_rows_at_once_equal_one_at_a_time():
    x, gold, subset = settings()
    assert_close(spearman(x, gold), torch.stack([spearman(row, gold) for row in x]))
    assert_close(spearman(x.view(2, 3, -1), gold), spearman(x, gold).view(2, 3))
    for how in AGGREGATES:
        one_by_one = torch.stack([aggregate(row, gold, subset, 3, how) for row in x])
        assert_close(aggregate(x, gold, subset, 3, how), one_by_one)


@pytest.mark.parametrize(
    ("x", "gold"),
    [([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]), ([1.0, 2.0, 3.0], [4.0, 4.0, 4.0]), ([1.0], [2.0]), ([], [])],
)
def test_a_constant_side_or_too_few_pairs_give_nan(x, gold):
    assert math.isnan(spearman(torch.tensor(x), torch.tensor(gold)))


def test_a_constant_row_does_not_disturb_its_neighbours():
    x, gold, _ = settings(rows=2)
    both = spearman(torch.stack([x[0], torch.zeros_like(gold)]), gold)
    assert float(both[0]) == float(spearman(x[0], gold))
    assert math.isnan(both[1])


@pytest.mark.parametrize(("span", "scored"), [(1e-12, False), (5e-10, False), (1e-6, True), (1.0, True)])
def test_a_row_that_is_constant_but_for_rounding_has_no_score_and_one_that_differs_has(span, scored):
    x, gold, subset = settings(rows=1)
    row = -1 / 23 + span * (x[0] - x[0].min()) / (x[0].max() - x[0].min())
    assert bool(is_constant(row)) != scored
    found = spearman(torch.stack([row, x[0]]), gold)
    assert found.isnan().tolist() == [not scored, False]
    for how in AGGREGATES:
        assert math.isnan(aggregate(row, gold, subset, 3, how)) != scored
    assert not math.isnan(spearman(x[0], row))  # the rule is about cosines: gold is taken as it is written
    assert bool(spearman_by_subset(row, gold, subset, 3).isnan().any()) != scored
    assert math.isnan(reference.spearman(row, gold)) != scored


def test_cosines_that_are_zero_but_for_rounding_have_no_score():
    x, gold, _ = settings(rows=1)
    assert math.isnan(spearman(1e-16 * x[0], gold))  # whatever they are beside the largest of them
    assert float(spearman(1e-16 * x[0] * 1e16, gold)) == pytest.approx(float(spearman(x[0], gold)))


def test_rows_of_any_shape_are_told_constant_or_not():
    x = torch.tensor([[[0.0, 1.0], [2.0, 2.0]], [[1.0, 1.0 + 1e-12], [1.0, float("nan")]]], dtype=torch.float64)
    assert is_constant(x).tolist() == [[False, True], [True, False]]
    assert is_constant(torch.zeros(3, 0)).tolist() == [True] * 3


def test_a_value_that_is_nan_gives_nan_as_scipy_does():
    gold = torch.arange(5.0)
    assert math.isnan(spearman(torch.tensor([0.0, 1.0, float("nan"), 3.0, 4.0]), gold))


def test_another_number_of_scores_is_refused(monkeypatch):
    # The annotations would refuse it first; a user runs without them.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=r"x must have p=3 values a row, got \[4, 2\]"):
        spearman(torch.zeros(4, 2), torch.zeros(3))


def test_a_table_of_scores_complex_numbers_and_no_row_are_refused(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    three = torch.arange(3.0)
    with pytest.raises(ValueError, match=r"gold must have the shape \[p\], got \[1, 3\]"):
        spearman(three, three[None])
    with pytest.raises(ValueError, match="x must hold real numbers, got torch.complex64"):
        spearman(three.to(torch.complex64), three)
    with pytest.raises(ValueError, match=r"x must have p=3 values a row, got \[\]"):
        spearman(three[0], three)


def test_bools_correlate_as_numbers(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    x, gold, _ = settings()
    assert torch.equal(spearman(x > 0.5, gold), spearman((x > 0.5).double(), gold))
    assert torch.equal(spearman(x, gold > 2), spearman(x, (gold > 2).double()))


@pytest.mark.parametrize("how", AGGREGATES)
def test_aggregates_are_the_papers(how):
    x, gold, subset = settings()
    for row, found in zip(x, aggregate(x, gold, subset, 3, how), strict=True):
        assert float(found) == pytest.approx(reference.aggregate(row, gold, subset, how), abs=1e-12)


def test_the_three_aggregates_differ_but_agree_on_one_subset():
    x, gold, subset = settings(rows=1)
    three = [float(aggregate(x[0], gold, subset, 3, how)) for how in AGGREGATES]
    assert len({round(s, 6) for s in three}) == 3
    one = [float(aggregate(x[0], gold, torch.zeros_like(subset), 1, how)) for how in AGGREGATES]
    assert one == [float(spearman(x[0], gold))] * 3
    assert AGGREGATE_LABELS.keys() == set(AGGREGATES)


def test_subsets_are_scored_on_their_own_pairs():
    x, gold, subset = settings()
    found = spearman_by_subset(x, gold, subset, 3)
    assert found.shape == (6, 3)
    assert_close(found[:, 1], spearman(x[:, subset == 1], gold[subset == 1]))


@pytest.mark.parametrize("how", ["mean", "wmean"])
def test_an_undefined_subset_makes_the_average_undefined_but_not_the_others(how):
    x, gold, subset = settings(rows=1)
    gold = torch.where(subset == 2, 3.0, gold)
    assert math.isnan(aggregate(x[0], gold, subset, 3, how))
    assert math.isnan(aggregate(x[0], gold, subset, 4, how))
    assert spearman_by_subset(x[0], gold, subset, 4).isnan().tolist() == [False, False, True, True]
    assert not math.isnan(aggregate(x[0], gold, subset, 3, "all"))


def test_an_unknown_aggregate_is_refused():
    x, gold, subset = settings()
    with pytest.raises(ValueError, match="aggregate='median' must be one of all, mean, wmean"):
        aggregate(x, gold, subset, 3, "median")


def test_the_interval_is_bonett_and_wrights():
    # rho = 0.5, p = 100: variance 1.125 / 97, z = 0.549306 +- 0.211077, tanh: 0.325894 to 0.641303.
    assert half_width(0.5, 100) == pytest.approx((0.641303 - 0.325894) / 2, abs=2e-6)
    assert half_width(-0.5, 100) == pytest.approx(half_width(0.5, 100))


def test_the_interval_shrinks_with_pairs_and_with_subsets():
    widths = [half_width(0.6, p) for p in (4, 10, 100, 1000, 10_000)]
    assert widths == sorted(widths, reverse=True)
    assert half_width(0.6, [500]) == half_width(0.6, 500)
    assert half_width(0.6, [500, 500]) < half_width(0.6, 500)
    assert half_width(0.6, [500, 500]) == pytest.approx(half_width(0.6, 997))


@pytest.mark.parametrize(("rho", "pairs"), [(math.nan, 100), (0.5, 3), (0.5, [100, 3])])
def test_the_interval_is_nan_where_it_is_not_defined(rho, pairs):
    assert math.isnan(half_width(rho, pairs))


@pytest.mark.parametrize("rho", [1.0, -1.0])
def test_a_perfect_correlation_has_a_finite_interval(rho):
    assert 0 <= half_width(rho, 10) < 1e-6


def test_the_interval_covers_the_truth_about_95_times_in_100():
    # Bonett and Wright's variance holds for bivariate normal data: rho_s = 6 / pi asin(r / 2).
    rng = np.random.default_rng(0)
    truth = 6 / math.pi * math.asin(0.7 / 2)
    x = torch.from_numpy(rng.standard_normal((800, 60)))
    y = 0.7 * x + math.sqrt(1 - 0.49) * torch.from_numpy(rng.standard_normal((800, 60)))
    found = [float(spearman(a, b)) for a, b in zip(x, y, strict=True)]
    # The interval is not symmetric about rho, its half width nearly is: 95 % give or take 3.
    assert 0.92 < np.mean([abs(rho - truth) <= half_width(rho, 60) for rho in found]) < 0.98


def test_arguments_are_left_alone():
    x, gold, subset = settings()
    before = x.clone(), gold.clone(), subset.clone()
    for how in AGGREGATES:
        aggregate(x, gold, subset, 3, how)
    assert all(torch.equal(a, b) for a, b in zip((x, gold, subset), before, strict=True))
