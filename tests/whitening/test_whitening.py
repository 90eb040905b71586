"""Laws of the whitening family: what is white, what is equal, what is nearest, what is refused."""

from itertools import combinations

import jaxtyping
import numpy as np
import pytest
import reference
import torch
from sklearn.covariance import OAS, LedoitWolf
from torch.testing import assert_close

from tests.conftest import AT_ONE_DIMENSION, OF_MOMENTS, rotation
from whitelab.statistics import linalg
from whitelab.statistics.geometry import pair_cosines
from whitelab.statistics.moments import Moments
from whitelab.whitening import (
    WHITENERS,
    canonical,
    check_k,
    cosine_class,
    directions,
    fit,
    fit_shuffled_group,
    fit_to_rows,
    fit_zca,
    label,
    parse,
    scaled_together,
    shrinkage,
    too_few,
    variant,
    whitens,
)

# One spec a variant, with parameters that 7 dimensions can have.
SPECS = {name: name for name in WHITENERS} | {
    "group": "group:groups=3",
    "shuffled_group": "shuffled_group:groups=3,seed=4",
    "all_but_the_top": "all_but_the_top:directions=2",
    "iternorm": "iternorm:steps=7",
    "clusters": "clusters:m=2,directions=1",
}
WHITENING = [name for name, variant in WHITENERS.items() if variant.whitens]
TAKES_K = [name for name, variant in WHITENERS.items() if variant.takes_k]
SHAPES = {
    "tall full": (90, 7, 7),
    "tall deficient": (90, 7, 4),
    "wide full": (6, 9, 5),
    "wide deficient": (6, 9, 3),
}


def rows(shape="tall full", dtype=torch.float64, seed=0):
    """`n` rows off the origin in `d` dimensions whose covariance has the given rank."""
    n, d, rank = SHAPES[shape]
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, rank)) * np.linspace(0.5, 3, rank) @ rng.standard_normal((rank, d)) + 5
    return torch.from_numpy(x).to(dtype)


def all_cosines(z):
    i, j = np.array(list(combinations(range(len(z)), 2))).T
    return pair_cosines(z[i], z[j])


# What whitening is


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", WHITENING)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_whitened_covariance_is_the_identity_on_the_kept_subspace(name, shape, dtype):
    # float32 rows are not exactly deficient: their rounding is far below the tolerance of the rank policy.
    x, rank = rows(shape, dtype), SHAPES[shape][2]
    fitted = fit(name, Moments.of(x))
    z = fitted(x)
    assert z.dtype == torch.float64
    assert fitted.rank == rank
    assert_close(z.mean(0), torch.zeros_like(z[0]), atol=1e-8, rtol=0)
    values = linalg.eigenvalues(Moments.of(z).covariance)
    expected = torch.cat([torch.ones(rank), torch.zeros(z.shape[1] - rank)]).double()
    assert_close(values, expected, atol=1e-8, rtol=0)
    before = linalg.eigenvalues(Moments.of(x).covariance)[:rank]
    assert (before - 1).abs().max() > 0.1


@pytest.mark.parametrize("name", sorted(set(OF_MOMENTS) - set(WHITENING)))
def test_the_other_variants_do_not_whiten(name):
    assert not whitens(SPECS[name])
    z = fit(SPECS[name], Moments.of(rows()))(rows())
    assert not torch.allclose(Moments.of(z).covariance, torch.eye(7, dtype=torch.float64), atol=0.01)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", sorted(set(OF_MOMENTS) - {"cholesky", "standardize", "iternorm"}))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_variant_is_the_papers_in_every_shape(name, shape, dtype):
    # cholesky has its own test below; a deficient standardize and the matrix form of iternorm have no plain oracle
    x = rows(shape, dtype)
    fitted = fit(SPECS[name], Moments.of(x))
    found, expected = fitted(x), torch.from_numpy(reference.whiten(x, x, SPECS[name]))
    assert fitted.name == canonical(SPECS[name])
    if name in ("pca", "pca_cor"):
        expected = expected * (expected * found).sum(0).sign()
    assert_close(found, expected, atol=1e-7, rtol=1e-6)


@pytest.mark.parametrize("name", ["cholesky", "standardize", "iternorm"])
def test_those_without_a_plain_oracle_in_every_shape_are_the_papers_in_one(name):
    x = rows()
    assert_close(fit(SPECS[name], Moments.of(x))(x), torch.from_numpy(reference.whiten(x, x, SPECS[name])))


@pytest.mark.parametrize("k", [1, 3, 7])
def test_zca_and_center_with_k_are_the_papers(k):
    x = rows()
    assert_close(fit("zca", Moments.of(x), k)(x), torch.from_numpy(reference.whiten(x, x, "zca", k)))
    found, expected = fit("center", Moments.of(x), k)(x), reference.whiten(x, x, "center", k)
    assert_close(found @ found.T, torch.from_numpy(expected @ expected.T))


def test_none_is_the_identity_and_center_only_shifts():
    x = rows()
    assert torch.equal(fit("none", Moments.of(x))(x), x)
    assert_close(fit("center", Moments.of(x))(x), x - x.mean(0))


# The three whitenings


@pytest.mark.parametrize("shape", SHAPES)
def test_the_whitenings_agree_on_every_cosine_at_every_k(shape):
    x = rows(shape)
    moments = Moments.of(x)
    for k in (None, *range(1, x.shape[1] + 1)):
        by_class = {}
        for name in WHITENING:
            by_class.setdefault(cosine_class(name, k, x.shape[1]), []).append(all_cosines(fit(name, moments, k)(x)))
        assert [len(found) for found in by_class.values()] == ([5] if k in (None, x.shape[1]) else [3, 2])
        for first, *others in by_class.values():
            for other in others:
                assert_close(first, other, atol=1e-8, rtol=0)


def test_the_correlation_whitenings_keep_other_directions_than_the_covariance_ones():
    x = rows()
    by_covariance, by_correlation = (all_cosines(fit(name, Moments.of(x), 3)(x)) for name in ("pca", "pca_cor"))
    assert (by_covariance - by_correlation).abs().max() > 0.1


def test_the_other_variants_have_other_cosines():
    x = rows()
    white = all_cosines(fit("pca", Moments.of(x))(x))
    others = set(OF_MOMENTS) - set(WHITENING)
    assert len(others) > 5
    for name in others:
        assert (all_cosines(fit(SPECS[name], Moments.of(x))(x)) - white).abs().max() > 0.01, name


@pytest.mark.parametrize("shape", SHAPES)
def test_zca_is_nearest_to_the_data_among_whitenings(shape):
    x = rows(shape)
    moments = Moments.of(x)
    fitted = fit_zca(moments)
    centred, z = x - moments.mean, fitted(x)
    nearest = (z - centred).square().sum()
    axes = linalg.eigen(moments.covariance).vectors
    for seed in range(20):
        turned = z @ axes @ rotation(fitted.rank, seed) @ axes.T
        assert linalg.eigenvalues(Moments.of(turned).covariance)[: fitted.rank].min() > 1 - 1e-8
        assert (turned - centred).square().sum() > nearest
    if fitted.rank == x.shape[1]:
        for name in ("pca", "cholesky"):
            assert (fit(name, moments)(x) - centred).square().sum() > nearest


@pytest.mark.parametrize("shape", SHAPES)
def test_the_matrix_of_zca_is_symmetric_and_that_of_cholesky_triangular(shape):
    x, rank, d = rows(shape), SHAPES[shape][2], SHAPES[shape][1]
    zca, cholesky, pca = (fit(name, Moments.of(x)).matrix for name in ("zca", "cholesky", "pca"))
    assert_close(zca, zca.T)
    assert cholesky.shape == (d, rank)
    w = cholesky.T
    assert_close(w, w.tril(d - rank))
    assert (w.diagonal(d - rank) > 0).all()
    assert not torch.allclose(pca.T, pca.T.tril(d - rank))


def test_cholesky_at_full_rank_is_the_inverse_factor():
    x = rows()
    factor = torch.linalg.cholesky(Moments.of(x).covariance)
    assert_close(fit("cholesky", Moments.of(x)).matrix.T, torch.linalg.inv(factor))


def test_a_layer_after_layernorm_keeps_d_minus_1_directions(layernorm):
    x = layernorm.combine((1,))
    for name in WHITENING:
        fitted = fit(name, layernorm.moments((1,)))
        assert fitted.rank == layernorm.dim - 1
        assert fitted(x).abs().max() < 100


@pytest.mark.parametrize("name", sorted(OF_MOMENTS))
def test_a_map_that_is_written_into_leaves_its_moments_as_they_are(name):
    moments = Moments.of(rows())
    held = moments.mean, moments.covariance, moments.eigen_all.vectors, moments.standardized[0]
    before, fitted = [one.clone() for one in held], fit(SPECS[name], moments)
    for part in (fitted.mean, fitted.matrix):
        if part is not None:
            part.zero_()
    assert all(map(torch.equal, held, before))


def test_an_array_or_a_list_is_mapped_as_a_tensor_is_and_a_map_shows_no_numbers():
    x = rows()
    fitted = fit("pca", Moments.of(x))
    assert_close(fitted(x.numpy()), fitted(x), atol=0, rtol=0)
    assert_close(fitted(x.tolist()), fitted(x), atol=0, rtol=0)
    assert repr(fitted) == "Whitener(name='pca', rank=7, k=None, count=90.0)"


# k


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", TAKES_K)
def test_k_equal_to_d_changes_nothing(name, shape):
    x = rows(shape)
    moments, d = Moments.of(x), x.shape[1]
    for y in (x, rows(shape, seed=1)):  # the other spans what the fit has not seen
        assert_close(all_cosines(fit(name, moments, d)(y)), all_cosines(fit(name, moments)(y)), atol=1e-9, rtol=0)
    if WHITENERS[name].whitens:
        assert_close(fit(name, moments, d)(x), fit(name, moments)(x))


@pytest.mark.parametrize("name", TAKES_K)
def test_a_smaller_k_does_change_something_and_is_the_rank(name):
    x = rows()
    fitted = fit(name, Moments.of(x), 3)
    assert (fitted.rank, fitted.k) == (3, 3)
    assert (all_cosines(fitted(x)) - all_cosines(fit(name, Moments.of(x))(x))).abs().max() > 0.1
    assert linalg.eigen(Moments.of(fitted(x)).covariance).rank == 3


@pytest.mark.parametrize("name", [*TAKES_K, "soft:gamma=0", "soft:gamma=auto,alpha=0.1"])
def test_a_k_above_the_rank_keeps_the_rank(name):
    moments, unseen = Moments.of(rows("tall deficient")), rows(seed=1)
    if name == "prefix":  # of which the data say nothing
        assert fit(name, moments, 6).rank == 6
        return
    for k in (4, 5, 6):
        assert fit(name, moments, k).rank == 4
        z = directions(name, moments).along(unseen, moments.mean, k)
        for found in (z, fit(name, moments, k)(unseen)):
            assert_close(all_cosines(found), all_cosines(fit(name, moments, 4)(unseen)), atol=1e-9, rtol=0)
    drops_nothing = name.partition(":")[2] or name in ("center", "shrunk", "iternorm")
    assert fit(name, moments, 7).rank == (7 if drops_nothing else 4)


@pytest.mark.parametrize("name", ["none", "standardize"])
def test_k_is_refused_where_it_has_no_meaning(name):
    message = f"k=3 has no meaning for whitening='{name}'; k is taken by center, pca, zca, cholesky, pca_cor"
    with pytest.raises(ValueError, match=message):
        fit(name, Moments.of(rows()), 3)
    assert check_k(None, name, 7) is None


@pytest.mark.parametrize("k", [0, 8, -1])
def test_k_is_refused_outside_1_to_d(k):
    with pytest.raises(ValueError, match=f"k={k} must lie between 1 and d=7"):
        fit("pca", Moments.of(rows()), k)


@pytest.mark.parametrize("k", [0, 8, -1])
@pytest.mark.parametrize("name", [name for name, one in WHITENERS.items() if one.takes_k])
def test_a_function_that_fits_refuses_the_k_that_its_spec_refuses(name, k):
    with pytest.raises(ValueError, match=f"k={k} must lie between 1 and d=7"):
        WHITENERS[name].fit(Moments.of(rows()), k)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("soft", {"gamma": 2.5}, "gamma=2.5 must lie between 0 and 2"),
        ("soft", {"alpha": -1.0}, "alpha=-1.0 must lie between 0 and 10"),
        ("shrunk", {"method": "OAS"}, "method='OAS' must be one of ledoit-wolf, oas, epsilon"),
        ("shrunk", {"method": "epsilon", "eps": 5.0}, "eps=5.0 must lie between 0 and 1"),
        ("iternorm", {"steps": -2}, "steps=-2 must lie between 1 and 30"),
    ],
)
def test_a_function_that_fits_refuses_the_parameters_that_its_spec_refuses(name, values, message):
    with pytest.raises(ValueError, match=message):
        WHITENERS[name].fit(Moments.of(rows()), **values)


def test_an_unknown_variant_is_told_the_known_ones():
    with pytest.raises(ValueError, match="whitening='ica' must be one of none, center, standardize, pca"):
        fit("ica", Moments.of(rows()))


# Awkward input


@pytest.mark.parametrize("name", WHITENERS)
@pytest.mark.parametrize("x", [[[1.0, 2.0, 3.0]], [[0.0], [1.0], [4.0]], [[2.0, 1.0], [2.0, 5.0], [2.0, 6.0]]])
def test_one_row_one_dimension_and_a_constant_column_give_finite_results(name, x):
    x = torch.tensor(x)
    z = fit_to_rows(AT_ONE_DIMENSION.get(name, name), x)(x)
    assert z.isfinite().all()
    assert len(z) == len(x)


@pytest.mark.parametrize("name", WHITENING)
def test_a_constant_column_is_a_lost_direction(name):
    x = torch.cat([rows(), torch.full((90, 1), 0.1)], dim=1)
    fitted = fit(name, Moments.of(x))
    assert fitted.rank == 7
    assert_close(all_cosines(fitted(x)), all_cosines(fit(name, Moments.of(rows()))(rows())), atol=1e-9, rtol=0)


def test_standardising_sets_a_constant_column_to_0_and_the_others_to_variance_1():
    x = torch.cat([rows(), torch.full((90, 1), 0.1)], dim=1)
    fitted = fit("standardize", Moments.of(x))
    assert fitted.rank == 7
    assert fitted(x)[:, 7].abs().max() == 0
    assert_close(fitted(x)[:, :7].var(0), torch.ones(7, dtype=torch.float64))


@pytest.mark.parametrize("name", ["standardize", *WHITENING])
@pytest.mark.parametrize("n", [2, 3, 7, 90])
def test_one_row_repeated_keeps_no_direction(name, n):
    x = rows()[:1].expand(n, 7)
    fitted = fit(name, Moments.of(x))
    assert fitted.rank == 0
    assert fitted(x).abs().sum() == 0


def test_the_scale_of_the_data_does_not_matter():
    x = rows()
    for name in WHITENING:
        white = all_cosines(fit(name, Moments.of(x))(x))
        for scale in (1e-12, 1e12):
            assert_close(all_cosines(fit(name, Moments.of(scale * x))(scale * x)), white, atol=1e-9, rtol=0)


@pytest.mark.parametrize("name", OF_MOMENTS)
def test_rows_are_refused_where_their_moments_are_fitted(name):
    for x in (rows(), rows().numpy()):
        with pytest.raises(TypeError, match=f"moments must be Moments, such as .* got {type(x).__name__}"):
            WHITENERS[name].fit(x)


@pytest.mark.parametrize("name", ["shuffled_group", "clusters", "flow"])
def test_a_seed_below_zero_is_refused_where_it_would_be_drawn_from(name):
    x = rows("wide full")
    given = (x, torch.ones(len(x))) if WHITENERS[name].of_rows else (Moments.of(x),)
    with pytest.raises(ValueError, match="seed=-1 must"):
        WHITENERS[name].fit(*given, seed=-1)


def test_rows_of_another_dimension_are_refused():
    with pytest.raises(ValueError, match="x must have d=7 columns, got 3"):
        fit("pca", Moments.of(rows()))(torch.zeros(2, 3))


@pytest.mark.parametrize("name", OF_MOMENTS)
@pytest.mark.parametrize("k", [None, 3])
def test_arguments_are_left_alone(name, k):
    x = rows()
    moments = Moments.of(x)
    before = [t.clone() for t in (x, moments.mean, moments.scatter)]
    fit(SPECS[name], moments, k if WHITENERS[name].takes_k else None)(x)
    assert all(torch.equal(a, b) for a, b in zip((x, moments.mean, moments.scatter), before, strict=True))


# The ends of the families


def same_map(one, other, x):
    return torch.allclose(one(x), other(x), atol=1e-9, rtol=0)


@pytest.mark.parametrize("shape", SHAPES)
def test_soft_is_center_at_gamma_0_and_whitening_at_gamma_1(shape):
    x = rows(shape)
    moments = Moments.of(x)
    assert same_map(fit("soft:gamma=0", moments), fit("center", moments), x)
    assert same_map(fit("soft:gamma=1", moments), fit("zca", moments), x)
    assert not same_map(fit("soft:gamma=0.5", moments), fit("zca", moments), x)
    assert (cosine_class("soft:gamma=0"), cosine_class("soft:gamma=1")) == ("center", "whitening")
    assert cosine_class("soft:gamma=1,alpha=0.1") == "soft:gamma=1,alpha=0.1"


@pytest.mark.parametrize("k", [1, 3, None])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_exponent_of_its_own_choice_is_the_mean_wiener_gain_of_the_directions_kept(shape, k):
    x = rows(shape)
    moments = Moments.of(x)
    z = fit("soft:gamma=auto", moments, k)(x)
    assert_close(z, torch.from_numpy(reference.whiten(x, x, "soft:gamma=auto", k)), atol=1e-8, rtol=0)
    assert not torch.allclose(z, fit("soft", moments, k)(x), atol=1e-3)
    assert_close(all_cosines(fit("soft:gamma=auto", Moments.of(1000 * x), k)(1000 * x)), all_cosines(z))


def test_the_exponent_of_its_own_choice_centres_a_flat_spectrum_and_whitens_what_stands_far_above_the_noise():
    axes = torch.cat([torch.eye(8), -torch.eye(8)]).double()
    flat = directions("soft:gamma=auto", Moments.of(axes)).exponents
    assert_close(flat, torch.zeros(8).double(), atol=1e-12, rtol=0)
    peaked = axes * torch.tensor([1000.0] * 4 + [1.0] * 4)
    exponents = directions("soft:gamma=auto", Moments.of(peaked)).exponents
    assert (exponents[:4] > 1 - 1e-5).all()
    assert (exponents.diff() <= 1e-12).all()
    assert 0.4 < exponents[-1] < 0.6


def test_a_large_ridge_turns_soft_whitening_into_centring():
    x = rows()
    moments = Moments.of(x)
    centred = all_cosines(fit("center", moments)(x))
    gaps = [(all_cosines(fit(f"soft:gamma=1,alpha={a}", moments)(x)) - centred).abs().max() for a in (0.01, 1, 10)]
    assert gaps[0] > gaps[1] > gaps[2]


@pytest.mark.parametrize("shape", SHAPES)
def test_one_group_is_zca_and_d_groups_standardise(shape):
    x = rows(shape)
    moments, d = Moments.of(x), x.shape[1]
    assert same_map(fit("group:groups=1", moments), fit("zca", moments), x)
    assert same_map(fit(f"group:groups={d}", moments), fit("standardize", moments), x)
    assert not same_map(fit("group:groups=2", moments), fit("zca", moments), x)
    assert cosine_class("group:groups=1", None, d) == cosine_class("shuffled_group:groups=1", None, d) == "whitening"
    assert cosine_class(f"group:groups={d}", None, d) == cosine_class("standardize", None, d)


def test_a_group_is_white_inside_and_correlated_with_the_others():
    x = rows()
    covariance = Moments.of(fit("group:groups=3", Moments.of(x))(x)).covariance
    for block in torch.tensor_split(torch.arange(7), 3):
        assert_close(covariance[block][:, block], torch.eye(len(block), dtype=torch.float64))
    assert (covariance - torch.eye(7, dtype=torch.float64)).abs().max() > 0.1


def test_shuffled_group_with_the_identity_is_group_and_seeds_differ():
    x = rows()
    moments = Moments.of(x)
    identity = fit_shuffled_group(moments, groups=3, permutation=torch.arange(7))
    assert same_map(identity, fit("group:groups=3", moments), x)
    first, again, other = (fit(f"shuffled_group:groups=3,seed={seed}", moments) for seed in (0, 0, 1))
    assert torch.equal(first.matrix, again.matrix)
    assert not same_map(first, other, x)
    with pytest.raises(ValueError, match="permutation must hold every number from 0 to d-1=6 once"):
        fit_shuffled_group(moments, groups=3, permutation=torch.zeros(7, dtype=torch.long))
    order = np.arange(7)[::-1].copy()
    given = fit_shuffled_group(moments, groups=3, permutation=order)
    assert order.tolist() == [6, 5, 4, 3, 2, 1, 0]  # an array is read, not sorted
    assert torch.equal(given.matrix, fit_shuffled_group(moments, groups=3, permutation=torch.tensor(order)).matrix)


def test_iternorm_approaches_zca_step_by_step_and_starts_near_centring():
    x = rows()
    moments = Moments.of(x)
    white = fit("zca", moments)(x)
    gaps = [float((fit(f"iternorm:steps={steps}", moments)(x) - white).norm()) for steps in (1, 4, 8, 16, 30)]
    gaps = [max(gap, 1e-12 * gaps[0]) for gap in gaps]  # what is smaller is rounding, in any order
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-8 * gaps[0]


def test_iternorm_is_stable_where_the_matrix_form_is_not():
    rng = np.random.default_rng(0)
    q = rotation(8, 1)
    x = torch.from_numpy(rng.standard_normal((400, 8)) * np.logspace(0, -4, 8)) @ q
    moments = Moments.of(x)
    fitted = fit("iternorm:steps=30", moments)(x)
    assert_close(linalg.eigenvalues(Moments.of(fitted).covariance)[:6], torch.ones(6).double(), atol=1e-2, rtol=0)
    literal = reference.whiten(x, x, "iternorm:steps=30")
    assert not np.allclose(literal, fitted, atol=1e-2)


@pytest.mark.parametrize("method", ["ledoit-wolf", "oas"])
@pytest.mark.parametrize("shape", SHAPES)
def test_shrinkage_is_scikit_learns(method, shape):
    x = rows(shape)
    expected = {"ledoit-wolf": LedoitWolf, "oas": OAS}[method]().fit(x.numpy()).shrinkage_
    found = shrinkage(Moments.of(x), method)
    assert found == pytest.approx(expected, abs=1e-9)
    assert 0 < found < 1
    parts = Moments.merged(Moments.of(part) for part in (x[:2], x[2:5], x[5:]))
    assert shrinkage(parts, method) == pytest.approx(expected, abs=1e-9)


def test_no_shrinkage_is_whitening_and_full_shrinkage_is_centring():
    x = rows()
    moments = Moments.of(x)
    assert same_map(fit("shrunk:method=epsilon,eps=0", moments), fit("zca", moments), x)
    assert same_map(fit("shrunk:method=epsilon,eps=1", moments), fit("center", moments), x)
    assert cosine_class("shrunk:method=epsilon,eps=0") == "whitening"
    bare = Moments(moments.count, moments.mean, moments.scatter)
    with pytest.raises(ValueError, match="moments must hold quartic for ledoit-wolf"):
        fit("shrunk", bare)


def test_all_but_the_top_removes_the_top_and_leaves_the_rest_as_it_was():
    x = rows()
    moments = Moments.of(x)
    z = fit("all_but_the_top:directions=2", moments)(x)
    before, after = linalg.eigenvalues(moments.covariance), linalg.eigenvalues(Moments.of(z).covariance)
    assert_close(after, torch.cat([before[2:], torch.zeros(2).double()]), atol=1e-9, rtol=1e-9)
    assert same_map(fit("all_but_the_top:directions=0", moments), fit("center", moments), x)
    assert cosine_class("all_but_the_top:directions=0") == "center"


def test_r2_is_blind_to_how_long_rows_are_and_takes_the_mean_direction_of_unit_vectors_away():
    x = rows()
    longer = x * torch.linspace(0.1, 7, len(x), dtype=x.dtype)[:, None]
    halves = Moments.of(longer[:40]).merge(Moments.of(longer[40:]))
    z = fit("r2", halves)(x)
    assert_close(z, torch.from_numpy(reference.without_mean_direction(x.numpy(), x.numpy())))
    assert (fit("common_component", halves)(x) - z).abs().max() > 0.1  # which is not blind to it
    units = torch.nn.functional.normalize(x.double(), dim=1)
    assert (fit("r2", Moments.of(x))(units)).mean(0).norm() < 1e-12 < units.mean(0).norm()
    opposite = torch.cat([x, -x])
    assert_close(fit("r2", Moments.of(opposite))(x), x.double())  # no mean direction, nothing taken away
    with pytest.raises(ValueError, match="moments must hold unit for r2"):
        fit("r2", Moments(3.0, x[0].double(), torch.eye(x.shape[1]).double()))


def test_the_common_component_is_that_of_the_uncentred_rows():
    x = rows()
    moments = Moments.of(x)
    z = fit("common_component", moments)(x)
    assert_close(z, torch.from_numpy(reference.without_common_component(x.numpy(), x.numpy())))
    assert z.mean(0).norm() > 1e-3
    centred = fit("all_but_the_top:directions=1", moments)(x)
    assert (z - centred).abs().max() > 0.1


@pytest.mark.parametrize("directions", [0, 3])
def test_of_rows_that_do_not_vary_all_but_the_top_keeps_something_only_where_it_takes_no_direction(directions):
    one, others = rows()[:1].repeat(5, 1), rows()
    fitted = fit(f"all_but_the_top:directions={directions}", Moments.of(one))
    assert fitted(others).any() == (fitted.rank > 0) == (directions == 0)


@pytest.mark.parametrize("variant", ["all_but_the_top:directions=3", "common_component", "r2"])
def test_rows_that_lose_every_direction_they_span_become_zero_and_not_the_cosines_of_rounding(variant):
    draw = torch.Generator().manual_seed(0)
    along = torch.randn(4, 30, generator=draw)
    if variant == "all_but_the_top:directions=3":
        line, more = along, torch.cat([along, torch.randn(1, 30, generator=draw)])
    else:
        line = along[:, :1].abs() * along[:1]
        more = torch.cat([line, along[1:2]])
    fitted = fit(variant, Moments.of(line))
    assert not fitted(line).any()
    assert fitted.rank == 0
    assert fit(variant, Moments.of(more))(more).abs().max() > 0.1


@pytest.mark.parametrize("name", TAKES_K)
@pytest.mark.parametrize("k", [1, 3, 6])
def test_the_first_k_directions_are_the_variant_with_k(name, k):
    x = rows()
    moments = Moments.of(x)
    z = directions(name, moments).along(x, moments.mean, k)
    assert_close(all_cosines(z), all_cosines(fit(name, moments, k)(x)), atol=1e-9, rtol=0)


# One row, hostile numbers


@pytest.mark.parametrize("name", WHITENERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_one_row_alone_is_mapped_as_in_its_batch(name, shape):
    x = rows(shape)
    fitted = fit_to_rows(SPECS[name], x)
    assert_close(fitted(x[2:3]), fitted(x)[2:3], atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("name", WHITENERS)
def test_a_variant_fits_nothing_where_its_map_is_the_same_whatever_the_rows(name):
    k = 3 if variant(name).takes_k else None
    one, other = (fit_to_rows(SPECS[name], rows(seed=seed), k=k) for seed in (0, 1))
    unseen = rows(seed=2)
    assert torch.equal(one(unseen), other(unseen)) != variant(name).fits
    assert one.count == (90 if variant(name).fits else 0)


@pytest.mark.parametrize("name", WHITENERS)
def test_rows_that_are_all_equal_become_zero_but_for_none(name):
    x = rows()[:1].expand(5, 7)
    z = fit_to_rows(SPECS[name], x)(x)
    # The first coordinates are not centred, and a flow's couplings have learned where the one point goes.
    assert (z.abs().sum() < 1e-12) == (name not in ("none", "prefix", "flow"))
    assert z.isfinite().all()
    assert torch.equal(z, z[:1].expand_as(z))


@pytest.mark.parametrize("name", WHITENERS)
def test_a_condition_number_of_1e12_gives_no_garbage(name):
    rng = np.random.default_rng(3)
    x = torch.from_numpy(rng.standard_normal((200, 6)) * np.sqrt(np.logspace(0, -12, 6))) @ rotation(6, 5)
    fitted = fit_to_rows(SPECS[name], x)
    z = fitted(x)
    assert z.isfinite().all()
    assert z.abs().max() < 100
    if name in WHITENING:
        assert fitted.rank == 5  # variances 1, 4e-3, 2e-5, 6e-8, 3e-10 stay; 1e-12 is below the policy


@pytest.mark.parametrize("name", WHITENERS)
def test_half_precision_rows_are_mapped_like_their_exact_values(name):
    half = rows().half()
    fitted, exact = fit_to_rows(SPECS[name], half), fit_to_rows(SPECS[name], half.double())
    assert_close(fitted(half), exact(half.double()), atol=1e-9, rtol=1e-9)


# Specs


@pytest.mark.parametrize("name", WHITENERS)
def test_the_canonical_text_reads_back_as_itself(name):
    text = canonical(name)
    assert canonical(text) == text
    assert parse(text) == parse(name)
    assert label(name).startswith(WHITENERS[name].label)
    assert variant(text) is WHITENERS[name]


def test_a_spec_carries_every_parameter_that_counts():
    assert canonical("soft") == "soft:gamma=0.5,alpha=0"
    assert canonical("soft:alpha=.25") == "soft:gamma=0.5,alpha=0.25"
    assert canonical("shuffled_group:seed=3") == "shuffled_group:groups=8,seed=3"
    assert canonical("shrunk") == "shrunk:method=ledoit-wolf"
    assert canonical("shrunk:eps=0.2,method=epsilon") == "shrunk:method=epsilon,eps=0.2"
    assert label("soft:gamma=1") == "Soft whitening (γ = 1, α = 0)"
    assert label("shrunk:method=oas") == "Shrunk whitening (oas)"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("soft:gamma=3", "whitening='soft:gamma=3': gamma=3 must lie between 0 and 2"),
        ("soft:gamma=nan", "gamma=nan must lie between 0 and 2"),
        ("soft:gamma=half", "gamma='half' must be a number"),
        ("soft:beta=1", "whitening='soft:beta=1': soft takes gamma=, alpha=, got 'beta=1'"),
        ("soft:gamma", "soft takes gamma=, alpha=, got 'gamma'"),
        ("soft:gamma=0,gamma=1", "must not name gamma twice"),
        ("pca:gamma=1", "pca takes no parameters, got 'gamma=1'"),
        ("group:groups=2.5", "groups='2.5' must be a whole number"),
        ("group:groups=0", "groups=0 must be at least 1"),
        ("shrunk:method=best", "method='best' must be one of ledoit-wolf, oas, epsilon"),
        (":1", "whitening=':1' must be one of none"),
        ("iternorm:steps=0", "steps=0 must lie between 1 and 30"),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused_at_the_door(spec, message):
    with pytest.raises(ValueError, match=message):
        parse(spec)


def test_what_is_no_text_is_no_spec(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # a user runs without the annotations' checks
    for take in (parse, lambda spec: fit(spec, Moments.of(rows()))):
        with pytest.raises(TypeError, match="whitening must be str, such as 'none', got NoneType"):
            take(None)


@pytest.mark.parametrize("spec", [*WHITENING, "soft:gamma=1", "group:groups=1", "shuffled_group:groups=1"])
def test_a_smaller_k_is_advised_only_where_the_map_takes_one(spec):
    assert whitens(spec)
    assert ("(k)" in too_few(spec, 5, 9)) is variant(spec).takes_k
    assert not any("(k)" in too_few(spec, rank, 9) for rank in (0, 1))  # there is none smaller


def test_one_vector_and_several_are_counted_in_their_own_words():
    assert too_few("pca", 0, 9).startswith("1 different vector spans only 0 of 9 dimensions")
    assert too_few("pca", 5, 9).startswith("6 different vectors span only 5 of 9 dimensions")


def test_a_parameter_bounded_by_d_is_refused_when_d_is_known():
    moments = Moments.of(rows())
    with pytest.raises(ValueError, match="groups=8 must lie between 1 and d=7"):
        fit("group", moments)
    with pytest.raises(ValueError, match="directions=7 must lie between 0 and d-1=6"):
        fit("all_but_the_top:directions=7", moments)
    assert parse("group:groups=8").name == "group"


def _enlarged(spec: str, weak: float) -> float:
    """How much larger than a usual direction a map makes one of which the data have `weak`: both lie in the first half
    of the coordinates, along none of them."""
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.standard_normal((400, 8)))
    x[:, 3] *= weak
    turn = rotation(4)
    x[:, :4] = x[:, :4] @ turn.T
    both = torch.zeros(2, 8, dtype=torch.float64)
    both[:, :4] = turn.T[[3, 0]]
    z = fit(spec, Moments.of(x))(x.mean(0) + both)
    return float(z[0].norm() / z[1].norm())


@pytest.mark.parametrize(
    ("spec", "at_once"),
    [
        *((name, 8) for name in WHITENING),
        *((spec, 8) for spec in ("soft", "soft:gamma=1.5", "soft:gamma=1,alpha=0.0001", "iternorm:steps=16")),
        *((f"shrunk:method=epsilon,eps={eps}", 8) for eps in (0, 0.0001)),
        *((spec, 8) for spec in ("group:groups=1", "shuffled_group:groups=1")),
        ("group:groups=2", 4),
        *((spec, 0) for spec in ("none", "center", "standardize", "soft:gamma=0", "soft:gamma=0.3")),
        *((spec, 0) for spec in ("soft:gamma=1,alpha=0.01", "shrunk", "shrunk:method=oas", "iternorm", "r2")),
        *((spec, 0) for spec in ("shrunk:method=epsilon,eps=0.01", "iternorm:steps=9", "all_but_the_top")),
        *((spec, 0) for spec in ("common_component", "prefix", "group:groups=8", "shuffled_group:groups=8")),
    ],
)
def test_directions_are_scaled_together_where_a_faint_one_is_enlarged_manyfold(spec, at_once):
    assert scaled_together(spec, 8, 8) == at_once
    assert (_enlarged(spec, 1e-3) > 25) is (at_once > 0)
    assert scaled_together(spec, 8, 3) == min(at_once, 3)  # no more than are kept


def test_groups_of_unequal_size_count_by_the_largest_and_an_exponent_of_the_spectrum_by_the_highest():
    assert scaled_together("shuffled_group:groups=3", 8, 8) == 3
    assert scaled_together("soft:gamma=auto", 8, 8) == 8
    assert scaled_together("soft:gamma=auto,alpha=0.01", 8, 8) == 0
