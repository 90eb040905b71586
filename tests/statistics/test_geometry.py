"""Laws of the measures: equal to the double loops, blind to scale, and weights count rows."""

import math
from itertools import product

import jaxtyping
import numpy as np
import pytest
import reference
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from whitelab.statistics import geometry
from whitelab.statistics.linalg import distinct_rows, eigenvalues
from whitelab.statistics.moments import Moments


def rows(n=40, d=6, seed=0, shift=1.0):
    x = np.random.default_rng(seed).standard_normal((n, d)) * np.linspace(0.3, 2, d) + shift
    return torch.from_numpy(x)


def covariance(x):
    return Moments.of(x).covariance


# Cosines


@pytest.mark.parametrize("pairs", [0, 1, 63, 64, 65, 200])
def test_cosines_of_pairs_of_rows_equal_those_of_the_rows_laid_side_by_side(pairs):
    draw = torch.Generator().manual_seed(pairs)
    z = torch.randn(40, 7, generator=draw, dtype=torch.float64)
    z[3] = 0
    first, second = torch.randint(-40, 40, (2, pairs), generator=draw)
    second[::5] = first[::5]
    found = geometry.row_cosines(z.clone().requires_grad_(), first, second)
    np.testing.assert_array_equal(found, geometry.pair_cosines(z[first], z[second]))
    assert (found[::5] == (first[::5] % 40 != 3)).all()  # a row with itself is exactly 1, a zero row exactly 0


def test_pair_cosines_equal_the_plain_formula():
    a, b = rows(seed=1), rows(seed=2)
    np.testing.assert_array_equal(geometry.pair_cosines(a, b), reference.pair_cosines(a, b))


SOME, OTHERS = torch.tensor([0, 1, 5]), torch.tensor([2, 1, 3])

# name -> (what is measured, of which tensors)
OF_TENSORS = {
    "pair_cosines": (geometry.pair_cosines, rows(seed=1), rows(seed=2)),
    "row_cosines": (geometry.row_cosines, rows(), SOME, OTHERS),
    "cosines_from": (geometry.cosines_from, rows().sum(1), *2 * [rows().square().sum(1)]),
    "norms": (geometry.norms, rows()),
    "mean_cosine": (geometry.mean_cosine, rows()),
    "participation_ratio": (geometry.participation_ratio, covariance(rows())),
    "iso_score": (geometry.iso_score, covariance(rows())),
    "block_means": (lambda matrix: geometry.block_means(matrix, 2)[0], covariance(rows())),
    "effective_rank": (geometry.effective_rank, eigenvalues(covariance(rows()))),
    "top_share": (geometry.top_share, eigenvalues(covariance(rows()))),
    "stable_rank": (geometry.stable_rank, eigenvalues(covariance(rows()))),
    "rogue_share": (geometry.rogue_share, geometry.cosine_contributions(rows())),
    "two_nn": (geometry.two_nn, rows().abs().sort().values),
    "mle_dimension": (lambda distances: geometry.mle_dimension(distances, 3), rows().abs().sort().values),
    "hubness": (lambda lists: geometry.hubness(lists).counts, geometry.nearest(rows(), 3)),
    "positives": (geometry.positives, torch.tensor([3.9, 4.0, 4.1, 5.0], dtype=torch.float64)),
}


@pytest.mark.parametrize(("measure", "tensors"), [(of, x) for of, *x in OF_TENSORS.values()], ids=OF_TENSORS)
def test_an_array_is_measured_as_a_tensor_is(measure, tensors):
    found, wanted = measure(*(one.numpy() for one in tensors)), measure(*tensors)
    assert torch.equal(torch.as_tensor(found), torch.as_tensor(wanted))


@pytest.mark.parametrize(
    ("measure", "given", "message"),
    [
        (geometry.pair_cosines, (rows(), rows(d=1)), r"a and b must share the shape \[p, d\], got \[40, 6\]"),
        (geometry.pair_cosines, (rows(), rows(n=1)), r"got \[40, 6\] and \[1, 6\]"),
        (geometry.participation_ratio, (rows(),), r"matrix must have the shape \[d, d\], got \[40, 6\]"),
        (geometry.iso_score, (rows(),), r"matrix must have the shape \[d, d\], got \[40, 6\]"),
        (geometry.block_means, (rows(), 2), r"matrix must have the shape \[d, d\], got \[40, 6\]"),
        (geometry.effective_rank, (covariance(rows()),), r"values must have the shape \[d\], got \[6, 6\]"),
        (geometry.top_share, (covariance(rows()),), r"values must have the shape \[d\], got \[6, 6\]"),
        (geometry.stable_rank, (covariance(rows()),), r"values must have the shape \[d\], got \[6, 6\]"),
        (geometry.rogue_share, (rows(),), r"contributions must have the shape \[d\], got \[40, 6\]"),
        (geometry.two_nn, (torch.ones(3),), r"distances must have the shape \[n, t\], got \[3\]"),
        (geometry.mle_dimension, (torch.ones(3), 2), r"distances must have the shape \[n, t\], got \[3\]"),
        (geometry.hubness, (SOME,), r"lists must have the shape \[n, t\], got \[3\]"),
        (geometry.hubness, (SOME[None, :0],), "lists must name at least one neighbour"),
        (geometry.hubness, (SOME[:, None],), "lists must name rows from 0 to n-1=2, got 5"),
        (geometry.hubness, (-OTHERS[:, None],), "lists must name rows from 0 to n-1=2, got -3"),
        (geometry.positives, (rows(),), r"gold must have the shape \[p\], got \[40, 6\]"),
        (geometry.norms, (torch.ones(3),), r"x must have the shape \[n, d\], got \[3\]"),
        (geometry.cosines_from, (*rows()[:, :2].T, torch.ones(1)), r"must share a shape, got \[40\], \[40\], \[1\]"),
        (geometry.row_cosines, (torch.ones(3), SOME, OTHERS), r"z must have the shape \[n, d\], got \[3\]"),
        (geometry.row_cosines, (rows(), SOME, OTHERS[:1]), r"first and second must share the shape \[p\], got \[3\]"),
    ],
)
def test_shapes_that_torch_would_stretch_or_take_for_others_are_refused(measure, given, message):
    with pytest.raises(ValueError, match=message):
        measure.__wrapped__(*given)  # without the check of its signature, which runs in tests alone


@pytest.mark.parametrize("name", sorted({*OF_TENSORS} - {"hubness"}))
def test_complex_numbers_are_refused(name, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # a user runs without the annotations' checks
    measure, *given = OF_TENSORS[name]
    with pytest.raises(ValueError, match="must hold real numbers, got torch.complex128"):
        measure(*(one.to(torch.complex128) if one.is_floating_point() else one for one in given))


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (lambda: geometry.alignment(rows(), rows(), alpha=-1.0), "alpha=-1.0 must be a number above 0"),
        (lambda: geometry.alignment(rows(), rows(), alpha=0.0), "alpha=0.0 must be a number above 0"),
        (lambda: geometry.uniformity(rows(), t=101.0), "t=101.0 must lie between 0 and 100"),
        (lambda: geometry.uniformity_floor(384, t=1000.0), "t=1000.0 must lie between 0 and 100"),
        (lambda: geometry.uniformity_floor(2, t=-1.0), "t=-1.0 must lie between 0 and 100"),
        (lambda: geometry.uniformity_floor(0), "dim=0 must be a whole number of at least 1"),
    ],
)
def test_exponents_and_dimensions_out_of_range_are_refused(measure, message):
    with pytest.raises(ValueError, match=message):
        measure()


@pytest.mark.parametrize(("dim", "t"), [(1, 100.0), (2, 100.0), (384, 100.0), (4096, 100.0), (2, 0.0)])
def test_the_floor_is_a_number_wherever_uniformity_is(dim, t):
    assert -4 * t <= geometry.uniformity_floor(dim, t) <= 0


@pytest.mark.parametrize("wrong", [rows(n=3), torch.eye(3) > 0])
def test_rows_are_named_by_integers(wrong):
    with pytest.raises(TypeError, match=f"lists must be a tensor or an array of integers, got {wrong.dtype}"):
        geometry.hubness.__wrapped__(wrong)
    with pytest.raises(TypeError, match="first must be a tensor or an array of integers"):
        geometry.row_cosines.__wrapped__(rows(), wrong[0], SOME)


@given(st.integers(1, 200), st.integers(-30, 30), st.integers(0, 1000), st.booleans())
def test_identical_pairs_tie_exactly_whatever_their_scale(d, exponent, seed, half):
    x = (10.0**exponent * rows(8, d, seed)).to(torch.float32 if half else torch.float64)
    assert (geometry.pair_cosines(x, x) == 1.0).all()
    assert (geometry.pair_cosines(x, -3 * x.double()) == -1.0).all()


def test_without_rounding_identical_pairs_would_not_tie():
    u = geometry.normalize(rows(500, 50))
    assert not ((u * u).sum(-1) == 1.0).all()


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_cosines_do_not_overflow_or_vanish(scale):
    a, b = rows(seed=1), rows(seed=2)
    assert_close(geometry.pair_cosines(scale * a, scale * b), geometry.pair_cosines(a, b))


def test_a_zero_vector_has_cosine_0_and_stays_zero():
    a, zero = rows(3), torch.zeros(3, 6)
    assert geometry.pair_cosines(a, zero).tolist() == [0.0] * 3
    assert geometry.pair_cosines(zero, zero).tolist() == [0.0] * 3
    assert geometry.normalize(zero).abs().max() == 0


def test_normalized_rows_have_length_1():
    assert_close(geometry.normalize(rows()).norm(dim=1), torch.ones(40, dtype=torch.float64))


# Mean cosine


def test_the_mean_cosine_equals_the_double_loop():
    x = torch.cat([rows(), rows()[:5], torch.zeros(1, 6)])
    assert geometry.mean_cosine(x) == pytest.approx(reference.mean_cosine(x), abs=1e-12)


def test_the_mean_cosine_knows_a_cone_from_a_sphere():
    assert geometry.mean_cosine(rows(2000, shift=10.0)) > 0.9
    assert abs(geometry.mean_cosine(rows(2000, shift=0.0))) < 0.01


# Uniformity and alignment


def test_uniformity_equals_pdist_on_repeated_rows():
    x = torch.cat([rows(), rows()[:7], rows()[:3]])
    assert geometry.uniformity(x) == pytest.approx(reference.uniformity(x), abs=1e-12)
    assert geometry.uniformity(x, t=0.5) == pytest.approx(reference.uniformity(x, 0.5), abs=1e-12)


@pytest.mark.parametrize("t", [0.3, 2.0, 3.3, 12.0, 100.0])
@pytest.mark.parametrize("cone", [0.0, 3.0])
def test_uniformity_of_many_rows_is_off_by_less_than_1e_7(cone, t):
    x = np.random.default_rng(0).standard_normal((1500, 40)) + cone
    x[7], x[8] = 0, x[9]
    assert geometry.uniformity(x, t=t) == pytest.approx(reference.uniformity(x, t), abs=1e-7)


@pytest.mark.parametrize("n", [300, 1100])
def test_uniformity_of_rows_that_are_all_far_apart_is_no_rounding_of_a_row_with_itself(n):
    x = np.random.default_rng(0).standard_normal((n, 384))
    assert geometry.uniformity(x, t=20.0) == pytest.approx(reference.uniformity(x, 20.0), abs=1e-9)


@pytest.mark.parametrize("t", [-1.0, 101.0, math.nan])
def test_uniformity_refuses_a_t_outside_its_range(t):
    with pytest.raises(ValueError, match="must lie between 0 and 100"):
        geometry.uniformity(rows(), t=t)


def test_uniformity_does_not_depend_on_the_tiles(monkeypatch):
    whole = geometry.uniformity(rows(100), torch.arange(100))
    monkeypatch.setattr(geometry.losses, "_ROWS_PER_TILE", 7)
    assert geometry.uniformity(rows(100), torch.arange(100)) == pytest.approx(whole, abs=1e-12)


def test_autocast_changes_no_uniformity():
    x = torch.randn(1500, 8, generator=torch.Generator().manual_seed(0)) + 3
    expected = geometry.uniformity(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert geometry.uniformity(x) == expected


@pytest.mark.parametrize("dim", [3, 12, 384])
def test_points_uniform_on_the_sphere_reach_the_floor_and_a_cone_does_not(dim):
    x = torch.randn(2500, dim, generator=torch.Generator().manual_seed(dim))
    floor = geometry.uniformity_floor(dim)
    assert geometry.uniformity(x) == pytest.approx(floor, abs=0.01)
    assert geometry.uniformity(x + 1) > floor + 0.3


@pytest.mark.parametrize("dim", [2, 3, 12, 384, 768])
@pytest.mark.parametrize("t", [0.5, 2.0, 4.0])
def test_the_floor_equals_the_integral(dim, t):
    assert geometry.uniformity_floor(dim, t) == pytest.approx(reference.uniformity_floor(dim, t), abs=1e-9)


def test_opposite_and_equal_points_are_the_extremes():
    assert geometry.uniformity([[1.0, 0.0], [-2.0, 0.0]]) == pytest.approx(-8.0, abs=1e-10)
    assert geometry.uniformity([[1.0, 2.0]] * 5) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("alpha", [1.0, 2.0])
def test_alignment_is_the_papers(alpha):
    a, b = rows(seed=1), rows(seed=2)
    assert geometry.alignment(a, b, alpha) == pytest.approx(reference.alignment(a, b, alpha))
    assert geometry.alignment(a.tolist(), b.tolist(), alpha) == geometry.alignment(a, b, alpha)
    assert geometry.alignment(a, 5 * a, alpha) == pytest.approx(0.0, abs=1e-12)


def test_alignment_needs_pairs():
    assert math.isnan(geometry.alignment(torch.empty(0, 4), torch.empty(0, 4)))
    with pytest.raises(ValueError, match=r"a and b must share the shape \[p, d\], got \[2, 4\] and \[3, 4\]"):
        geometry.alignment(torch.zeros(2, 4), torch.zeros(3, 4))


def test_a_gold_score_of_4_is_positive_under_ge4_only(space):
    gold = torch.tensor([3.9, 4.0, 4.1, 5.0])
    assert geometry.positives(gold).tolist() == [2, 3]
    assert geometry.positives(gold, "ge4").tolist() == [1, 2, 3]
    x = space.combine((1,))
    by_rule = {}
    for rule, chosen in (("gt4", space.gold > 4), ("ge4", space.gold >= 4)):
        a, b = x[space.first[chosen]], x[space.second[chosen]]
        rows = geometry.positives(space.gold, rule)
        by_rule[rule] = geometry.alignment(x[space.first[rows]], x[space.second[rows]])
        assert by_rule[rule] == pytest.approx(reference.alignment(a, b))
    some = {rule: geometry.alignment_note(gold[:2], rule) for rule in ("gt4", "ge4")}
    assert some["gt4"].startswith("alignment is not defined: no pair has gold > 4")
    assert some["ge4"] == "alignment over 1 positive pair says little of others"
    assert [bool(geometry.alignment_note(torch.full((n,), 5.0))) for n in (9, 10)] == [True, False]
    assert by_rule["gt4"] != pytest.approx(by_rule["ge4"])
    with pytest.raises(ValueError, match="positives='gt3' must be one of gt4, ge4, top"):
        geometry.positives(gold, "gt3")


@pytest.mark.parametrize(("low", "high"), [(0.0, 5.0), (0.0, 1.0), (-1.0, 1.0), (1.0, 7.0), (0.0, 100.0)])
def test_the_top_fifth_is_the_same_pairs_on_every_scale(low, high):
    gold = torch.arange(0, 51, dtype=torch.float64) / 10
    assert geometry.positives(gold, "top").tolist() == geometry.positives(gold, "ge4").tolist()
    scaled = (low + gold * (high - low) / 5).round(decimals=9)
    assert geometry.positives(scaled, "top").tolist() == geometry.positives(gold, "ge4").tolist()
    assert geometry.alignment_note(scaled, "top") == ""
    for low, span in product(
        range(-20, 21, 3), range(5, 105, 5)
    ):  # in tenths; a pair at 4/5 is in, whatever is rounded
        ends = torch.tensor([low / 10, (low + 4 * span / 5) / 10, (low + span) / 10], dtype=torch.float64)
        assert geometry.positives(ends, "top").tolist() == geometry.positives(ends.float(), "top").tolist() == [1, 2]
    assert "the top fifth ('top') goes with any scale" in geometry.alignment_note(gold / 5)


@pytest.mark.parametrize(
    ("low", "high", "rule"),
    [(0, 5, "gt4"), (1, 4.5, "gt4"), (0, 4, "top"), (1, 7, "top"), (-5, 5, "top"), (0, 1, "top"), (0, 100, "top")],
)
def test_simcses_rule_is_for_scores_that_run_to_5(low, high, rule):
    for gold in (torch.tensor([low, high], dtype=torch.float64), np.array([low, high], dtype=float)):
        assert geometry.usual_positives(gold) == rule
    assert geometry.usual_positives(torch.empty(0)) == "top"


def test_no_pair_is_in_the_top_fifth_of_scores_that_are_all_the_same():
    for gold in (torch.full((4,), 3.0), torch.empty(0)):
        assert geometry.positives(gold, "top").tolist() == []
        assert geometry.alignment_note(gold, "top").endswith("in the top fifth of its range, all have the same")


# Spectra


def test_spectral_measures_equal_their_formulas():
    x = rows()
    values = np.linalg.eigvalsh(np.cov(x.numpy().T))
    assert geometry.participation_ratio(covariance(x)) == pytest.approx(reference.participation_ratio(covariance(x)))
    assert geometry.effective_rank(eigenvalues(covariance(x))) == pytest.approx(reference.effective_rank(x.numpy()))
    assert geometry.top_share(eigenvalues(covariance(x))) == pytest.approx(values.max() / values.sum())


def effective_rank_of(matrix):
    return geometry.effective_rank(eigenvalues(matrix))


@pytest.mark.parametrize("d", [1, 2, 9])
def test_spectral_measures_of_the_identity_and_of_a_line(d):
    eye = torch.eye(d)
    line = torch.outer(torch.ones(d), torch.ones(d))
    for measure in (geometry.participation_ratio, effective_rank_of):
        assert measure(eye) == pytest.approx(d)
        assert measure(7 * eye) == pytest.approx(d)
        assert measure(line) == pytest.approx(1, abs=1e-5)
    assert geometry.top_share(eigenvalues(eye)) == pytest.approx(1 / d)
    assert geometry.top_share(eigenvalues(line)) == pytest.approx(1)


OF_EIGENVALUES = (geometry.effective_rank, geometry.top_share, geometry.stable_rank)


@pytest.mark.parametrize("measure", OF_EIGENVALUES)
def test_eigenvalues_are_measured_in_any_order(measure):
    values = eigenvalues(covariance(rows()))
    assert measure(values.flip(0)) == measure(values[[3, 0, 5, 1, 4, 2]]) == measure(values)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("measure", OF_EIGENVALUES)
def test_eigenvalues_that_rounding_made_negative_are_zero(measure, dtype):
    thin = rows(n=4, d=30)  # of rank 3
    values = np.linalg.eigvalsh(np.cov(thin.numpy().T).astype(dtype))
    assert values.min() < 0
    assert measure(values) == measure(values.clip(0))
    assert math.isfinite(measure(values))


@pytest.mark.parametrize("measure", OF_EIGENVALUES)
def test_eigenvalues_below_zero_are_refused(measure):
    with pytest.raises(ValueError, match="values must be eigenvalues of a covariance, none below 0, got -0.5"):
        measure(torch.tensor([2.0, -0.5, 1.0]))


def test_measures_of_nothing_are_nan():
    assert math.isnan(geometry.participation_ratio(torch.zeros(3, 3)))
    assert math.isnan(geometry.effective_rank(torch.zeros(3)))
    assert math.isnan(geometry.top_share(torch.zeros(3)))
    assert math.isnan(geometry.mean_cosine([[1.0, 2.0]]))
    assert math.isnan(geometry.uniformity([[1.0, 2.0]]))
    assert len(geometry.cosine_sample(torch.ones(1, 2))) == 0


# Weights, samples, the registry


@pytest.mark.parametrize("measure", [geometry.mean_cosine, geometry.uniformity])
@settings(max_examples=30)
@given(weights=st.lists(st.integers(0, 4), min_size=8, max_size=8).filter(lambda w: sum(w) > 1))
def test_a_weight_is_a_number_of_repetitions(measure, weights):
    x = rows(8)
    repeated = x.repeat_interleave(torch.tensor(weights), dim=0)
    assert measure(x, weights) == pytest.approx(measure(repeated), abs=1e-12)


@pytest.mark.parametrize("name", [name for name, one in geometry.METRICS.items() if not one.unique])
def test_a_measure_over_occurrences_counts_a_weight_as_repetitions(name):
    x, weights = rows(8), torch.tensor([1, 3, 2, 1, 1, 1, 4, 1])
    repeated = x.repeat_interleave(weights, dim=0)
    of = geometry.METRICS[name].of
    weighted = of(geometry.Rows(x, weights))
    assert weighted == pytest.approx(of(geometry.Rows(repeated)))
    assert weighted != pytest.approx(of(geometry.Rows(x)))


def test_the_sample_has_the_mean_of_all_pairs_and_repeats_for_a_seed():
    x, weights = rows(), torch.arange(40)
    sample = geometry.cosine_sample(x, seed=3)
    assert torch.equal(sample, geometry.cosine_sample(x, seed=3))
    assert not torch.equal(sample[:100], geometry.cosine_sample(x, seed=4)[:100])
    assert float(sample.mean()) == pytest.approx(geometry.mean_cosine(x), abs=0.02)
    u = geometry.normalize(x)
    w = (weights[:, None] * weights).double().fill_diagonal_(0)
    expected = float((w * (u @ u.T)).sum() / w.sum())
    assert float(geometry.cosine_sample(x, weights).mean()) == pytest.approx(expected, abs=0.02)


def test_a_seed_below_zero_draws_no_sample():
    with pytest.raises(ValueError, match="seed=-1 must be a whole number of at least 0"):
        geometry.cosine_sample(rows(), seed=-1)


@pytest.mark.parametrize("measure", [geometry.mean_cosine, geometry.uniformity])
def test_numbers_that_are_none_are_refused(measure):
    with pytest.raises(ValueError, match="x must hold finite numbers, row 1"):
        measure([[1.0, 2.0], [float("nan"), 1.0]])


OF_ROWS = {
    "normalize": geometry.normalize,
    "norms": geometry.norms,
    "norm_correlation": lambda x: geometry.norm_correlation(x, x[:, 0]),
    "cosine_sample": geometry.cosine_sample,
    "mean_cosine": geometry.mean_cosine,
    "partition_isotropy": geometry.partition_isotropy,
    "standardized": geometry.standardized,
    "distinct_rows": lambda x: distinct_rows(x, 50),
}


@pytest.mark.parametrize("of", OF_ROWS.values(), ids=OF_ROWS)
def test_rows_are_taken_as_a_tensor_or_an_array(of):
    assert_close(of(rows().numpy()), of(rows()))


def test_half_precision_is_measured_in_float64():
    x = (100 * rows()).round().half()
    assert geometry.mean_cosine(x) == geometry.mean_cosine(x.double())
    assert geometry.uniformity(x) == geometry.uniformity(x.double())


@pytest.mark.parametrize("measure", [geometry.mean_cosine, geometry.uniformity, geometry.partition_isotropy])
def test_rows_of_a_network_that_is_training_are_rows(measure):
    assert measure(rows().requires_grad_()) == measure(rows())


def test_arguments_are_left_alone():
    x, weights = rows(), torch.ones(40, dtype=torch.float64)
    cov = covariance(x)
    dot, one, two = x.sum(1), x.square().sum(1), x.square().sum(1)
    given_ = (x, weights, cov, dot, one, two)
    before = [t.clone() for t in given_]
    for metric in geometry.METRICS.values():
        metric.of(geometry.Rows(x, weights, known=eigenvalues(cov)))
    geometry.uniformity(x, weights), geometry.alignment(x, x), geometry.pair_cosines(x, x)
    geometry.cosine_sample(x, weights), geometry.normalize(x), geometry.cosines_from(dot, one, two)
    assert all(torch.equal(a, b) for a, b in zip(given_, before, strict=True))


# Reduction to an image


@pytest.mark.parametrize(("d", "size", "block"), [(6, 8, 1), (6, 6, 1), (6, 3, 2), (7, 3, 3), (5, 1, 5), (0, 4, 1)])
def test_block_means_are_means_of_blocks(d, size, block):
    x = torch.arange(float(d * d)).reshape(d, d)
    found, b = geometry.block_means(x, size)
    assert b == block
    cuts = [slice(i, i + b) for i in range(0, d, b)]
    assert len(cuts) <= size
    for i, rows in enumerate(cuts):
        for j, columns in enumerate(cuts):
            assert float(found[i, j]) == pytest.approx(float(x[rows, columns].mean()))


def test_block_means_need_a_size():
    with pytest.raises(ValueError, match="size=0 must be a whole number of at least 1"):
        geometry.block_means(torch.eye(3), 0)


# -------------------------------------------------------------------------------------------------- hubs


def test_neighbours_are_those_of_a_plain_search_and_hubs_are_counted_from_them():
    x = torch.randn(40, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    u = x / x.norm(dim=1, keepdim=True)
    lists = [sorted(range(40), key=lambda j, i=i: -float(u[i] @ u[j]) if i != j else torch.inf)[:10] for i in range(40)]
    assert geometry.nearest(x).tolist() == lists
    counts = [sum(i in one for one in lists) for i in range(40)]
    assert geometry.hubness(geometry.nearest(x)).counts.tolist() == counts
    assert sum(counts) == 40 * geometry.TOP


def test_a_row_near_the_mean_of_a_cone_is_a_hub_and_of_a_centred_cloud_is_none():
    x = torch.randn(200, 20, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 0.6
    cone, centred = (geometry.hubness(geometry.nearest(z)).largest for z in (x, x - x.mean(0)))
    assert cone > centred
    with pytest.raises(ValueError, match="top=10 must lie between 1 and n-1=4"):
        geometry.nearest(x[:5])
