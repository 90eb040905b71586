"""Laws of the whitening family: what is white, what is equal, what is nearest, what is refused."""

from itertools import combinations

import numpy as np
import pytest
import reference
import torch
from torch.testing import assert_close

from whitelab import linalg
from whitelab.geometry import pair_cosines
from whitelab.moments import Moments
from whitelab.whitening import WHITENERS, check_k, fit, fit_zca

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


def random_rotation(d, seed):
    q, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))
    return torch.from_numpy(q)


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


@pytest.mark.parametrize("name", ["none", "center", "standardize"])
def test_the_other_variants_do_not_whiten(name):
    z = fit(name, Moments.of(rows()))(rows())
    assert not torch.allclose(Moments.of(z).covariance, torch.eye(7, dtype=torch.float64), atol=0.1)


@pytest.mark.parametrize("name", WHITENERS)
def test_every_variant_is_the_papers(name):
    x = rows()
    found, expected = fit(name, Moments.of(x))(x), torch.from_numpy(reference.whiten(x, x, name))
    if name == "pca":
        # The sign of an eigenvector is not identified.
        expected = expected * (expected * found).sum(0).sign()
    assert_close(found, expected)


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
        pca, zca, cholesky = (all_cosines(fit(name, moments, k)(x)) for name in ("pca", "zca", "cholesky"))
        assert_close(pca, zca, atol=1e-9, rtol=0)
        assert_close(pca, cholesky, atol=1e-9, rtol=0)


def test_the_other_variants_have_other_cosines():
    x = rows()
    white = all_cosines(fit("pca", Moments.of(x))(x))
    for name in ("none", "center", "standardize"):
        assert (all_cosines(fit(name, Moments.of(x))(x)) - white).abs().max() > 0.1


@pytest.mark.parametrize("shape", SHAPES)
def test_zca_is_nearest_to_the_data_among_whitenings(shape):
    x = rows(shape)
    moments = Moments.of(x)
    fitted = fit_zca(moments)
    centred, z = x - moments.mean, fitted(x)
    nearest = (z - centred).square().sum()
    axes = linalg.eigen(moments.covariance).vectors
    for seed in range(20):
        turned = z @ axes @ random_rotation(fitted.rank, seed) @ axes.T
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


# k


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", TAKES_K)
def test_k_equal_to_d_changes_nothing(name, shape):
    x = rows(shape)
    moments, d = Moments.of(x), x.shape[1]
    assert_close(all_cosines(fit(name, moments, d)(x)), all_cosines(fit(name, moments)(x)), atol=1e-9, rtol=0)
    if WHITENERS[name].whitens:
        assert_close(fit(name, moments, d)(x), fit(name, moments)(x))


@pytest.mark.parametrize("name", TAKES_K)
def test_a_smaller_k_does_change_something_and_is_the_rank(name):
    x = rows()
    fitted = fit(name, Moments.of(x), 3)
    assert (fitted.rank, fitted.k) == (3, 3)
    assert (all_cosines(fitted(x)) - all_cosines(fit(name, Moments.of(x))(x))).abs().max() > 0.1
    assert linalg.eigen(Moments.of(fitted(x)).covariance).rank == 3


@pytest.mark.parametrize("name", TAKES_K)
def test_a_k_above_the_rank_keeps_the_rank(name):
    x = rows("tall deficient")
    assert fit(name, Moments.of(x), 6).rank == 4


@pytest.mark.parametrize("name", ["none", "standardize"])
def test_k_is_refused_where_it_has_no_meaning(name):
    message = f"k=3 has no meaning for whitening='{name}'; k is taken by center, pca, zca, cholesky"
    with pytest.raises(ValueError, match=message):
        fit(name, Moments.of(rows()), 3)
    assert check_k(None, name, 7) is None


@pytest.mark.parametrize("k", [0, 8, -1])
def test_k_is_refused_outside_1_to_d(k):
    with pytest.raises(ValueError, match=f"k={k} must lie between 1 and d=7"):
        fit("pca", Moments.of(rows()), k)


def test_an_unknown_variant_is_told_the_known_ones():
    with pytest.raises(ValueError, match="whitening='ica' must be one of none, center, standardize, pca"):
        fit("ica", Moments.of(rows()))


# Awkward input


@pytest.mark.parametrize("name", WHITENERS)
@pytest.mark.parametrize("x", [[[1.0, 2.0, 3.0]], [[0.0], [1.0], [4.0]], [[2.0, 1.0], [2.0, 5.0], [2.0, 6.0]]])
def test_one_row_one_dimension_and_a_constant_column_give_finite_results(name, x):
    x = torch.tensor(x)
    z = fit(name, Moments.of(x))(x)
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


def test_rows_of_another_dimension_are_refused():
    with pytest.raises(ValueError, match="x must have d=7 columns, got 3"):
        fit("pca", Moments.of(rows()))(torch.zeros(2, 3))


@pytest.mark.parametrize("name", WHITENERS)
@pytest.mark.parametrize("k", [None, 3])
def test_arguments_are_left_alone(name, k):
    x = rows()
    moments = Moments.of(x)
    before = [t.clone() for t in (x, moments.mean, moments.scatter)]
    fit(name, moments, k if WHITENERS[name].takes_k else None)(x)
    assert all(torch.equal(a, b) for a, b in zip((x, moments.mean, moments.scatter), before, strict=True))
