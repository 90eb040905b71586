"""Laws of the tests of a difference: resampling equals scoring what was drawn, and the levels are what they say."""

import math
from functools import partial

import jaxtyping
import numpy as np
import pytest
import reference
import torch
from scipy import stats
from torch.testing import assert_close

from whitelab.statistics import significance
from whitelab.statistics.correlation import AGGREGATES, aggregate, spearman
from whitelab.statistics.significance import (
    Bootstrap,
    bootstrap,
    bootstrap_means,
    drawn_counts,
    few_note,
    halved,
    least_p,
    moved,
    williams,
    williams_bounds,
    williams_t,
)


def settings(rows=4, p=90, seed=0):
    """Cosines of several variants and gold scores, both with ties, and three subsets of unequal size."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 11, p) / 2
    x = np.round(gold * rng.uniform(0.5, 2, (rows, 1)) + 2 * rng.standard_normal((rows, p)), 1)
    subset = rng.permutation(np.resize([0, 0, 0, 1, 1, 2], p))
    return torch.from_numpy(x), torch.from_numpy(gold), torch.from_numpy(subset)


def normal(rng, p, r_a, r_b, r_ab):
    """Two rows and gold scores of a normal distribution with these correlations."""
    matrix = np.array([[1, r_ab, r_a], [r_ab, 1, r_b], [r_a, r_b, 1]])
    return torch.from_numpy(rng.multivariate_normal(np.zeros(3), matrix, p, method="cholesky").T.copy())


def drawn(subset, n_subsets, resamples, seed=0):
    """The pairs of every resample, in the order of their numbers."""
    counts = torch.cat(list(drawn_counts(subset, n_subsets, resamples, seed))).long()
    return torch.stack([torch.arange(len(subset)).repeat_interleave(one) for one in counts])


# Resampling


@pytest.mark.parametrize("how", AGGREGATES)
@pytest.mark.parametrize("ties", [True, False])
def test_every_resample_has_the_score_of_the_pairs_drawn(how, ties):
    x, gold, subset = settings()
    if not ties:
        rng = np.random.default_rng(1)
        x, gold = torch.from_numpy(rng.random(x.shape)), torch.from_numpy(rng.random(gold.shape))
    found = bootstrap(x, gold, subset, 3, how, resamples=40, seed=5)
    whole = how == "all"
    index = drawn(torch.zeros_like(subset) if whole else subset, 1 if whole else 3, 40, seed=5).numpy()
    for row, samples in zip(x.numpy(), found.samples, strict=True):
        expected = [100 * reference.aggregate(row[one], gold[one], subset[one], how) for one in index]
        np.testing.assert_allclose(samples, expected, atol=1e-10)
    assert found.samples.std(dim=1).min() > 1  # or nothing was resampled


def test_scores_are_the_aggregates_and_intervals_hold_them():
    x, gold, subset = settings()
    for how in AGGREGATES:
        found = bootstrap(x, gold, subset, 3, how, resamples=200)
        assert_close(found.score, 100 * aggregate(x, gold, subset, 3, how))
        assert (found.low < found.score).all()
        assert (found.score < found.high).all()
        assert_close(found.low, torch.from_numpy(np.percentile(found.samples, 2.5, axis=1)))
        assert_close(found.high, torch.from_numpy(np.percentile(found.samples, 97.5, axis=1)))


def test_arrays_are_scored_and_tested_as_tensors_are():
    x, gold, subset = settings()
    for f, arguments in ((spearman, (x, gold)), (williams, (x[0], x[1], gold)), (moved, (x[0], x[1], gold))):
        assert f(*(one.numpy() for one in arguments)) == pytest.approx(f(*arguments))
    drawn_from = bootstrap(x.numpy(), gold.numpy(), subset.numpy(), 3, "mean", resamples=5)
    assert torch.equal(drawn_from.samples, bootstrap(x, gold, subset, 3, "mean", resamples=5).samples)


def test_pairs_are_drawn_with_replacement_within_their_own_subset():
    _, _, subset = settings()
    index = drawn(subset, 3, 500)
    sizes = subset.sort().values
    assert (subset[index].sort().values == sizes).all()
    assert all(len(one.unique()) < len(one) for one in index)
    times = torch.bincount(index.flatten(), minlength=90)
    assert times.min() > 400  # 500 on average: no pair is out of reach or preferred
    assert times.max() < 600
    assert not (subset[drawn(torch.zeros_like(subset), 1, 500)].sort().values == sizes).all(dim=1).all()


@pytest.mark.parametrize("cells", [1, 90 * 7, 90 * 40])
def test_the_chunk_size_changes_nothing(monkeypatch, cells):
    x, gold, subset = settings()
    whole = bootstrap(x, gold, subset, 3, "mean", resamples=40)
    monkeypatch.setattr(significance, "_CELLS_PER_CHUNK", cells)
    assert torch.equal(bootstrap(x, gold, subset, 3, "mean", resamples=40).samples, whole.samples)


def test_every_chunk_of_resamples_is_reported(monkeypatch):
    x, gold, subset = settings()
    monkeypatch.setattr(significance, "_CELLS_PER_CHUNK", 90 * 16)
    for drawn in (partial(bootstrap, x, gold, subset, 3), partial(bootstrap_means, x)):
        seen = []
        drawn(resamples=40, progress=lambda *step, seen=seen: seen.append(step))
        assert seen == [(16, 40), (32, 40), (40, 40)]


def test_a_seed_fixes_the_resamples_and_rows_share_them():
    x, gold, subset = settings()
    found = bootstrap(x, gold, subset, 3, resamples=50, seed=1)
    assert torch.equal(found.samples, bootstrap(x, gold, subset, 3, resamples=50, seed=1).samples)
    assert not torch.equal(found.samples, bootstrap(x, gold, subset, 3, resamples=50, seed=2).samples)
    alone = bootstrap(x[2:3], gold, subset, 3, resamples=50, seed=1)
    assert torch.equal(found.samples[2:3], alone.samples)
    longer = bootstrap(x, gold, subset, 3, resamples=60, seed=1)
    assert torch.equal(found.samples, longer.samples[:, :50])


def test_only_ranks_matter_and_minus_zero_ties_with_zero():
    x, gold, subset = settings()
    found = bootstrap(x, gold, subset, 3, resamples=30).samples
    assert_close(bootstrap(x.exp(), gold, subset, 3, resamples=30).samples, found)
    assert_close(bootstrap(x.float(), gold.float(), subset, 3, resamples=30).samples, found)
    signed = torch.where(x == 0, -x, x)
    assert (x == 0).any()
    assert torch.equal(bootstrap(signed, gold, subset, 3, resamples=30).samples, found)


def test_a_perfect_row_scores_100_in_every_resample():
    gold = torch.arange(30.0)
    found = bootstrap(torch.stack([gold, -gold]), gold, torch.zeros(30, dtype=torch.long), 1, resamples=50)
    assert_close(found.samples, torch.tensor([[100.0], [-100.0]], dtype=torch.float64).expand(2, 50))


def coverage(truth, trials=150, p=80):
    """Share of the trials whose interval holds `truth`, for normal data with r = 0.7."""
    rng = np.random.default_rng(0)
    inside = []
    for trial in range(trials):
        a, _, gold = normal(rng, p, 0.7, 0.7, 0.5)
        found = bootstrap(a[None], gold, torch.zeros(p, dtype=torch.long), 1, "all", 200, trial)
        inside.append(float(found.low[0]) <= truth <= float(found.high[0]))
    return np.mean(inside)


def test_intervals_cover_the_truth_as_often_as_they_say():
    truth = 100 * 6 / math.pi * math.asin(0.7 / 2)
    assert 0.90 < coverage(truth) < 0.99
    assert coverage(truth + 20) < 0.3


# The paired difference


def test_a_difference_is_taken_within_resamples():
    x, gold, subset = settings()
    found = bootstrap(x, gold, subset, 3, "wmean", resamples=99)
    d = found.samples[0] - found.samples[2]
    one = found.difference(0, 2)
    assert one.estimate == float(found.score[0] - found.score[2])
    assert (one.low, one.high) == pytest.approx(tuple(np.percentile(d, [2.5, 97.5])))
    tail = min((d <= 0).sum(), (d >= 0).sum())
    assert one.p_value == pytest.approx(min(1, 2 * (int(tail) + 1) / 100))
    other = found.difference(2, 0)
    assert (other.estimate, other.low, other.high) == pytest.approx((-one.estimate, -one.high, -one.low))
    assert other.p_value == one.p_value


def test_pairing_narrows_the_interval_of_a_difference():
    gold, a, b = torch.from_numpy(np.random.default_rng(0).random((3, 300)))
    a, subset = gold + a, torch.zeros(300, dtype=torch.long)
    b = a + 0.1 * b
    found = bootstrap(torch.stack([a, b]), gold, subset, 1, resamples=300)
    paired = found.difference(0, 1)
    unpaired = (found.samples[0] - found.samples[1].flip(0)).std() * 2 * 1.96
    assert paired.high - paired.low < 0.3 * unpaired


def test_p_is_1_against_oneself_and_never_0():
    x, gold, subset = settings()
    found = bootstrap(torch.stack([gold, -gold, gold]), gold, subset, 3, resamples=99)
    assert found.difference(0, 1).p_value == least_p(99) == 2 / 100
    assert found.difference(0, 2).p_value == found.difference(0, 0).p_value == 1.0
    assert found.difference(0, 2).estimate == found.difference(0, 2).high == 0.0


def rejections(truth_b, test, trials=250, p=60):
    """Share of the trials in which `test` finds r_a = 0.6 and r_b = `truth_b` different at 5 %."""
    rng = np.random.default_rng(1)
    return np.mean([test(*normal(rng, p, 0.6, truth_b, 0.5)) < 0.05 for _ in range(trials)])


def bootstrap_p(a, b, gold):
    subset = torch.zeros(len(gold), dtype=torch.long)
    return bootstrap(torch.stack([a, b]), gold, subset, 1, resamples=200).difference(0, 1).p_value


def williams_p(a, b, gold):
    return williams(a, b, gold).p_value


@pytest.mark.parametrize("test", [bootstrap_p, williams_p])
def test_equal_correlations_are_called_different_1_time_in_20_and_different_ones_often(test):
    assert 0.01 < rejections(0.6, test) < 0.09
    assert rejections(0.2, test) > 0.7


# Scores that are not defined


def test_a_row_without_a_score_has_no_interval_and_does_not_disturb_its_neighbours():
    x, gold, subset = settings(rows=2)
    noise = -1 / 23 + 1e-12 * torch.rand(90, dtype=torch.float64)
    found = bootstrap(torch.stack([x[0], noise, x[1]]), gold, subset, 3, "mean", resamples=20)
    assert found.score.isnan().tolist() == found.low.isnan().tolist() == [False, True, False]
    assert found.samples[1].isnan().all()
    assert torch.equal(found.samples[[0, 2]], bootstrap(x, gold, subset, 3, "mean", resamples=20).samples)
    lost = found.difference(0, 1)
    assert all(math.isnan(value) for value in (lost.estimate, lost.low, lost.high, lost.p_value))


@pytest.mark.parametrize("gold", [[3.0] * 5, [1.0, 2.0, float("nan"), 3.0, 4.0]])
def test_gold_without_ranks_gives_nan(gold):
    found = bootstrap(torch.rand(2, 5), torch.tensor(gold), torch.zeros(5, dtype=torch.long), 1, resamples=3)
    assert found.score.isnan().all()
    assert found.high.isnan().all()


@pytest.mark.parametrize("p", [0, 1])
def test_too_few_pairs_give_nan(p):
    found = bootstrap(torch.rand(2, p), torch.rand(p), torch.zeros(p, dtype=torch.long), 1, resamples=3)
    assert found.score.shape == (2,)
    assert found.samples.isnan().all()
    assert found.low.isnan().all()


@pytest.mark.parametrize("how", ["mean", "wmean"])
def test_an_empty_subset_makes_the_averages_undefined(how):
    x, gold, subset = settings()
    assert bootstrap(x, gold, subset, 4, how, resamples=3).score.isnan().all()
    assert not bootstrap(x, gold, subset, 4, "all", resamples=3).score.isnan().any()


@pytest.mark.parametrize("how", ["mean", "wmean"])
def test_an_average_with_a_subset_of_two_pairs_has_no_interval_and_tells_nothing_apart(how):
    def found(few):
        sizes = torch.tensor([few, 40])
        gold, noise = torch.randn(int(sizes.sum())).double(), torch.randn(2, int(sizes.sum())).double()
        return bootstrap(gold + noise, gold, torch.arange(2).repeat_interleave(sizes), 2, how, resamples=200)

    torch.manual_seed(0)
    for few, there in ((2, False), (3, False), (8, True)):
        one = found(few)
        difference = one.difference(0, 1)
        assert not one.score.isnan().any()
        assert not math.isnan(difference.estimate)
        assert one.low.isnan().tolist() == one.high.isnan().tolist() == [not there] * 2
        assert math.isnan(difference.low) == math.isnan(difference.high) == math.isnan(difference.p_value) != there


def test_resamples_that_are_constant_are_left_out():
    x = torch.tensor([[0.0, 1e-12, 1.0]], dtype=torch.float64)
    gold, subset = torch.tensor([1.0, 2.0, 3.0]).double(), torch.zeros(3, dtype=torch.long)
    found = bootstrap(x, gold, subset, 1, resamples=200, seed=0)
    index = drawn(subset, 1, 200)
    expected = torch.stack([100 * spearman(x[0, one], gold[one]) for one in index])
    assert_close(found.samples[0], expected, equal_nan=True)
    assert 0 < int(expected.isnan().sum()) < 200
    few = Bootstrap.of(found.score, torch.cat([found.samples] + 9 * [torch.ones(1, 200)], dim=1))
    assert few.low.tolist() == [1.0]  # of the rest, where those are a tenth or fewer


# Williams' test


def test_t_is_williams_and_steigers():
    # Howell, Statistical Methods for Psychology: r = .80 and .72, .89 between them, 26 cases: t(23) = 1.36.
    assert williams_t(0.80, 0.72, 0.89, 26) == pytest.approx(1.361, abs=5e-4)


def steiger(a, b, gold):
    """Steiger 1980, Eq. 7, with the correlation matrix R and its determinant written out, and two-sided p."""
    R = stats.spearmanr(np.stack([gold, a, b], axis=1)).statistic
    n, r_a, r_b, r_ab = len(gold), R[0, 1], R[0, 2], R[1, 2]
    bottom = 2 * (n - 1) / (n - 3) * np.linalg.det(R) + ((r_a + r_b) / 2) ** 2 * (1 - r_ab) ** 3
    t = (r_a - r_b) * np.sqrt((n - 1) * (1 + r_ab) / bottom)
    return t, 2 * stats.t.cdf(-abs(t), n - 3)


@pytest.mark.parametrize("p", [4, 5, 90])
def test_the_test_is_its_formula_on_spearman_correlations(p):
    rng = np.random.default_rng(p)
    a, b, gold = normal(rng, p, 0.6, 0.3, 0.4)
    a, gold = a.round(decimals=1), gold.round(decimals=1)
    found = williams(a, b, gold)
    t, p_value = steiger(a.numpy(), b.numpy(), gold.numpy())
    assert (found.t, found.p_value, found.df, found.reason) == (pytest.approx(t), pytest.approx(p_value), p - 3, "")
    for value, x, y in ((found.r_a, a, gold), (found.r_b, b, gold), (found.r_ab, a, b)):
        assert value == pytest.approx(reference.spearman(x, y))


def test_swapping_the_rows_turns_the_sign_and_only_ranks_matter():
    x, gold, _ = settings()
    found, swapped = williams(x[0], x[1], gold), williams(x[1], x[0], gold)
    assert (swapped.t, swapped.p_value) == pytest.approx((-found.t, found.p_value))
    assert found.t != 0
    assert williams((x[0] / 10).exp(), x[1], 3 * gold + 1) == found


def test_rows_that_leave_no_variance_are_told_apart_for_certain():
    assert williams_t(0.5, -0.5, 0.5, 10) == math.inf
    assert williams_t(0.3, -0.3, 1 - 2 * 0.3 * 0.3, 10) == math.inf  # rounding makes this determinant -6e-17
    assert williams_t(-0.5, 0.5, 0.5, 10) == -math.inf


@pytest.mark.parametrize(
    ("r_b", "r_ab", "p"),
    [(0.3, 0.9, 1379), (0.75, 0.5, 80), (-0.2, 0.0, 30), (0.9, 0.97, 10_000)],
)
def test_at_its_bounds_the_test_gives_just_the_level_and_between_them_more(r_b, r_ab, p):
    def p_value(r_a):
        return 2 * stats.t.sf(abs(williams_t(r_a, r_b, r_ab, p)), p - 3)

    low, high = williams_bounds(r_b, r_ab, p)
    assert low < r_b < high
    assert [p_value(low), p_value(high)] == pytest.approx([0.05, 0.05], abs=1e-9)
    assert all(p_value(low + share * (high - low)) > 0.05 for share in (0.01, 0.3, 0.7, 0.99))
    assert all(p_value(beyond) < 0.05 for beyond in (low - 1e-6, high + 1e-6))
    wide = williams_bounds(r_b, r_ab, p, 0.01)
    assert wide[0] < low < high < wide[1]


def test_the_bounds_divide_the_correlations_that_there_can_be():
    rng = np.random.default_rng(1)
    for r_b, r_ab in rng.uniform(-0.98, 0.98, (150, 2)):
        p = int(rng.choice([10, 50, 1000]))
        low, high = williams_bounds(r_b, r_ab, p)
        reach = math.sqrt((1 - r_b**2) * (1 - r_ab**2))
        wanted = stats.t.ppf(0.975, p - 3)
        for r_a in np.linspace(r_b * r_ab - reach, r_b * r_ab + reach, 52)[1:-1]:
            if min(abs(r_a - low), abs(r_a - high)) > 1e-6:
                assert (abs(williams_t(r_a, r_b, r_ab, p)) < wanted) == (low < r_a < high)


def test_too_few_pairs_have_no_bounds():
    assert williams_bounds(0.3, 0.9, 3) == (-1, 1) != williams_bounds(0.3, 0.9, 4)
    assert williams_bounds(0.9, 0.1, 6)[1] == 1  # not even the highest differs enough


UP = [1.0, 2.0, 3.0, 4.0, 5.0]
MIXED = [2.0, 1.0, 4.0, 5.0, 3.0]
FLAT = [-0.25, -0.25, -0.25 + 1e-12, -0.25, -0.25]


@pytest.mark.parametrize(
    ("a", "b", "gold", "reason"),
    [
        (UP[:3], MIXED[:3], UP[:3], "it needs at least 4 pairs, got 3"),
        ([], [], [], "it needs at least 4 pairs, got 0"),
        (FLAT, UP, MIXED, "cosines_a is constant"),
        (UP, FLAT, MIXED, "cosines_b is constant"),
        (UP, MIXED, [3.0] * 5, "gold is constant"),
        (UP, [*MIXED[:4], math.nan], UP, "cosines_b has NaN"),
        (UP, [1.0, 2.0, 3.0, 4.0, 50.0], MIXED, "cosines_a and cosines_b rank all pairs alike"),
        (UP, UP[::-1], MIXED, "cosines_a and cosines_b rank all pairs in reverse"),
    ],
)
def test_what_cannot_be_tested_is_said(a, b, gold, reason):
    found = williams(*(torch.tensor(one, dtype=torch.float64) for one in (a, b, gold)))
    assert math.isnan(found.t)
    assert math.isnan(found.p_value)
    assert found.reason == f"Williams' test is not defined: {reason}"
    assert found.df == len(gold) - 3


# The pairs that moved


def test_moves_are_differences_of_average_ranks():
    x, gold, _ = settings()
    ranks = [stats.rankdata(one) for one in (x[0], x[1], gold)]
    change = ranks[1] - ranks[0]
    found = moved(x[0], x[1], gold, top=12)
    assert len(found) == 12
    assert [abs(one.change) for one in found] == sorted(abs(change), reverse=True)[:12]
    for one in found:
        assert (one.before, one.after, one.gold) == tuple(r[one.pair] for r in ranks)
        assert one.change == one.after - one.before
        assert one.nearer == abs(one.before - one.gold) - abs(one.after - one.gold)
    assert {one.nearer > 0 for one in found} == {True, False}


def test_equal_moves_come_in_the_order_of_the_pairs_and_pairs_that_stayed_do_not_come():
    before, after = torch.tensor([1.0, 2, 3, 4, 5, 9]), torch.tensor([2.0, 1, 4, 3, 5, 6])
    found = moved(before, after, torch.tensor([1.0, 2, 4, 3, 0, 6]))
    assert [(one.pair, one.change, one.nearer) for one in found] == [
        (0, 1.0, 1.0),
        (1, -1.0, -1.0),
        (2, 1.0, 1.0),
        (3, -1.0, -1.0),
    ]
    assert [one.pair for one in moved(before, after, before, top=3)] == [0, 1, 2]
    assert moved(before, 2 * before, before) == ()
    assert moved(before[:0], before[:0], before[:0]) == ()


def test_ties_are_broken_alike_however_many_there_are():
    before = torch.arange(2000.0)
    swapped = before.view(-1, 2).flip(1).flatten()
    assert [one.pair for one in moved(before, swapped, before, top=50)] == list(range(50))


def test_moves_towards_gold_are_told_from_moves_away():
    gold, mixed = torch.tensor(UP), torch.tensor(MIXED)
    assert all(one.nearer > 0 for one in moved(mixed, gold, gold))
    assert all(one.nearer < 0 for one in moved(gold, mixed, gold))
    assert [one.pair for one in moved(mixed, gold, gold)] == [4, 0, 1, 2, 3]
    middle = torch.ones(3)
    assert [one.nearer for one in moved(torch.tensor([1.0, 2, 3]), torch.tensor([3.0, 2, 1]), middle)] == [0, 0]


def test_rounding_moves_no_pair():
    noise = -0.25 + 1e-12 * torch.rand(6, dtype=torch.float64)
    found = moved(noise, torch.arange(6).double(), torch.arange(6).double())
    assert {one.before for one in found} == {3.5}
    assert moved(noise, noise.flip(0), torch.arange(6).double()) == ()


# Wrong arguments


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"resamples": 0}, "resamples=0 must be a whole number of at least 1"),
        ({"resamples": 10.5}, "resamples=10.5 must be a whole number of at least 1"),
        ({"seed": -1}, "seed=-1 must be a whole number of at least 0"),
        ({"how": "median"}, "how='median' must be one of all, mean, wmean"),
        ({"n_subsets": 0}, "n_subsets=0 must be a whole number of at least 1"),
        ({"n_subsets": 2}, r"subset must hold numbers from 0 to 1, got \[0, 1, 2\]"),
        ({"gold": torch.zeros(89)}, "gold must have p=90 values as cosines has, got 89"),
        ({"subset": torch.zeros(7).long()}, "subset must have p=90 values as cosines has, got 7"),
        ({"cosines": torch.zeros(90)}, r"cosines must have the shape \[v, p\], got \[90\]"),
        ({"gold": torch.zeros(1, 90)}, r"gold must have the shape \[p\], got \[1, 90\]"),
        ({"subset": torch.zeros(90)}, "subset must be a tensor or an array of integers, got torch.float32"),
        ({"subset": torch.zeros(90) > 0}, "subset must be a tensor or an array of integers, got torch.bool"),
    ],
)
def test_arguments_that_make_no_bootstrap_are_refused(monkeypatch, changes, message):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # a user runs without the annotations' checks
    x, gold, subset = settings()
    with pytest.raises((ValueError, TypeError), match=message):
        bootstrap(**({"cosines": x, "gold": gold, "subset": subset, "n_subsets": 3} | changes))


def test_rows_that_are_not_there_are_refused():
    x, gold, subset = settings()
    found = bootstrap(x, gold, subset, 3, resamples=2)
    with pytest.raises(ValueError, match="i=4 must lie between 0 and 3"):
        found.difference(4, 0)
    with pytest.raises(ValueError, match="j=-1 must lie between 0 and 3"):
        found.difference(0, -1)


def test_rows_of_another_length_are_refused(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    five, four = torch.arange(5.0), torch.arange(4.0)
    with pytest.raises(ValueError, match="cosines_b must have p=5 values as gold has, got 4"):
        williams(five, four, five)
    with pytest.raises(ValueError, match="before must have p=5 values as gold has, got 4"):
        moved(four, five, five)


def test_tables_are_not_taken_for_rows_nor_rows_for_tables(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    five, table = torch.arange(5.0), torch.zeros(1, 5)
    for compare, name in ((williams, "cosines_a"), (moved, "before")):
        with pytest.raises(ValueError, match=rf"{name} must have the shape \[p\], got \[1, 5\]"):
            compare(table, five, five)
        with pytest.raises(ValueError, match=r"gold must have the shape \[p\], got \[1, 5\]"):
            compare(five, five, table)
    with pytest.raises(ValueError, match=r"values must have the shape \[v, q\], got \[5\]"):
        bootstrap_means(five)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32])
def test_subsets_are_numbered_in_integers_of_any_size(monkeypatch, dtype):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    x, gold, subset = settings()
    found, wanted = (bootstrap(x, gold, one, 3, "mean", resamples=5) for one in (subset.to(dtype), subset))
    assert torch.equal(found.samples, wanted.samples)


def test_numbers_that_a_network_made_are_read_and_give_no_gradient():
    x, gold, subset = settings()
    made = [one.clone().requires_grad_() for one in (x, gold)]
    found, wanted = bootstrap(*made, subset, 3, resamples=5), bootstrap(x, gold, subset, 3, resamples=5)
    assert torch.equal(found.samples, wanted.samples)
    assert not found.samples.requires_grad
    assert not bootstrap_means(made[0], 5).samples.requires_grad


def test_moves_of_bools_are_those_of_numbers(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    x, gold, _ = settings()
    assert moved(x[0] > 0.5, x[1], gold) == moved((x[0] > 0.5).double(), x[1], gold)


def test_moves_that_make_no_sense_are_refused():
    five = torch.arange(5.0)
    with pytest.raises(ValueError, match="top=0 must be a whole number of at least 1"):
        moved(five, five, five, top=0)
    with pytest.raises(ValueError, match="after must hold numbers, pair 2 has NaN"):
        moved(five, torch.tensor([0.0, 1.0, math.nan, 3.0, 4.0]), five)


def test_few_queries_are_noted_where_intervals_of_their_means_are_too_short():
    """Four of five queries tie, the rest differ either way alike: more than 5 of 100 intervals leave 0 out."""
    rng, seen = np.random.default_rng(3), {}
    for count in (40, 225):
        ties = rng.random((2000, count)) < 0.8
        difference = torch.from_numpy(np.where(ties, 0, rng.uniform(-1, 1, (2000, count))))
        found = bootstrap_means(difference, resamples=300)
        seen[count] = float(((found.low > 0) | (found.high < 0)).double().mean())
    assert seen[40] > 0.075
    assert seen[225] < 0.065
    assert "intervals of differences are a little too short" in few_note(40, "queries", means=True)
    assert "intervals of differences are a little too short" in few_note(20, "queries", means=True)
    assert not few_note(50, "queries", means=True)
    assert not few_note(20, "pairs")
    for means in (False, True):
        assert "no interval here is to be trusted" in few_note(19, "queries", means)


def test_arguments_are_left_alone():
    x, gold, subset = settings()
    before = x.clone(), gold.clone(), subset.clone()
    state = torch.random.get_rng_state()
    bootstrap(x, gold, subset, 3, "wmean", resamples=5)
    williams(x[0], x[1], gold)
    moved(x[0], x[1], gold)
    assert all(torch.equal(a, b) for a, b in zip((x, gold, subset), before, strict=True))
    assert torch.equal(torch.random.get_rng_state(), state)


# Means over queries


def test_the_bootstrap_of_means_draws_columns_alike_for_every_row():
    values = torch.rand(3, 40, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    values[2] = values[0] + 0.1
    found = bootstrap_means(values, resamples=300, seed=5)
    index = drawn(torch.zeros(40, dtype=torch.int64), 1, 300, seed=5)
    torch.testing.assert_close(found.samples, values[:, index].mean(-1))
    torch.testing.assert_close(found.score, values.mean(1))
    tails = torch.tensor([0.025, 0.975], dtype=torch.float64)
    torch.testing.assert_close(torch.stack([found.low, found.high]), torch.quantile(found.samples, tails, dim=1))
    shift = found.difference(2, 0)
    assert (shift.low, shift.high) == pytest.approx((0.1, 0.1))
    with pytest.raises(ValueError, match="q=0"):
        bootstrap_means(values[:, :0])


@pytest.mark.parametrize("halves", [2, 5, 40])
def test_halves_give_the_interval_of_student_and_a_difference_of_two_its_own(halves):
    values = torch.rand(2, halves, dtype=torch.float64, generator=torch.Generator().manual_seed(halves))
    score = torch.tensor([3.0, 5.0], dtype=torch.float64)
    drawn = halved(score, values, 20_000)
    found = drawn.difference(0, 1)
    for middle, x, low, high in (
        (3.0, values[0], drawn.low[0], drawn.high[0]),
        (-2.0, values[0] - values[1], found.low, found.high),
    ):
        half = float(stats.t.ppf(0.975, halves - 1) * x.std())
        assert (float(low), float(high)) == pytest.approx((middle - half, middle + half), abs=0.1 * half)


def test_halves_of_a_mean_give_the_deviation_of_the_mean_of_all():
    values = torch.randn(400, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    splits = torch.stack([torch.randperm(400)[:200] for _ in range(4000)])
    drawn = halved(values.mean()[None], values[splits].mean(1)[None], 20_000)
    assert float(drawn.samples.std()) == pytest.approx(float(values.std() / 20), rel=0.05)


def test_one_half_does_not_say_how_far_halves_differ():
    with pytest.raises(ValueError, match="h=1 must be"):
        halved(torch.zeros(2).double(), torch.zeros(2, 1).double())
