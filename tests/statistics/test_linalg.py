"""Laws of the rank policy and of the two factorisations."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from tests.conftest import rotation
from whitelab.statistics import linalg
from whitelab.statistics.moments import Moments


def with_spectrum(values, seed=0):
    values = torch.tensor(values, dtype=torch.float64)
    q = rotation(len(values), seed)
    matrix = q @ torch.diag(values) @ q.T
    return (matrix + matrix.T) / 2


def test_the_decomposition_rebuilds_the_matrix():
    matrix = with_spectrum([5.0, 2.0, 1.0, 0.5])
    found = linalg.eigen(matrix)
    assert_close(found.vectors @ torch.diag(found.values) @ found.vectors.T, matrix)
    assert_close(found.values, torch.tensor([5.0, 2.0, 1.0, 0.5], dtype=torch.float64))


def test_the_largest_coordinate_of_every_vector_is_positive():
    vectors = linalg.eigen(with_spectrum([5.0, 2.0, 1.0, 0.5])).vectors
    assert (vectors[vectors.abs().argmax(dim=0), torch.arange(4)] > 0).all()


@pytest.mark.parametrize(("small", "rank"), [(1e-9, 3), (1e-11, 2), (0.0, 2)])
def test_directions_below_the_tolerance_are_dropped(small, rank):
    assert linalg.eigen(with_spectrum([1.0, 0.5, small])).rank == rank


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_the_rank_does_not_depend_on_the_scale(scale):
    assert linalg.eigen(scale * with_spectrum([1.0, 1e-4, 1e-12])).rank == 2


def test_a_zero_matrix_has_rank_zero():
    found = linalg.eigen(torch.zeros(3, 3))
    assert (found.rank, found.dim, tuple(found.vectors.shape)) == (0, 3, (3, 0))
    assert linalg.kept_rank(torch.empty(0)) == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_that_differ_by_rounding_alone_count_once_in_any_order_and_at_any_scale(dtype):
    random = torch.Generator().manual_seed(0)
    x = torch.randn(30, 8, generator=random, dtype=dtype) + 3
    noise = 1e-7 * torch.randn(12, 8, generator=random, dtype=dtype)
    again = torch.cat([x, x[:12] + noise, x[:5]])[torch.randperm(47, generator=random)]
    for scale in (1e-6, 1.0, 1e6):
        assert linalg.distinct_rows(scale * again, 100) == 30
    assert linalg.distinct_rows(again, 7) == 7
    assert linalg.distinct_rows(again[:0], 7) == 0
    late = torch.cat([x[:1].expand(50, 8), x])  # among the first rows there are not so many
    assert (linalg.distinct_rows(late, 20), linalg.distinct_rows(late, 40)) == (20, 30)
    assert linalg.distinct_rows(torch.cat([x, x + 1e-3]), 100) == 60


def test_top_keeps_the_first_k_and_no_more_than_the_rank():
    found = linalg.eigen(with_spectrum([3.0, 2.0, 1.0, 0.0]))
    assert found.top(None) is found
    assert found.top(4) is found
    assert_close(found.top(2).values, found.values[:2])
    assert_close(found.top(2).vectors, found.vectors[:, :2])


def test_eigenvalues_are_descending_and_never_negative():
    values = linalg.eigenvalues(with_spectrum([3.0, 1.0, 0.0, 0.0]))
    assert (values >= 0).all()
    assert (values.diff() <= 0).all()


def test_a_layer_after_layernorm_has_rank_d_minus_1_and_the_mean_of_two_has_rank_d(layernorm, space):
    for layer in range(layernorm.n_layers):
        assert linalg.eigen(layernorm.moments((layer,)).covariance).rank == layernorm.dim - 1
    assert linalg.eigen(layernorm.moments((0, 3)).covariance).rank == layernorm.dim
    assert linalg.eigen(space.moments((0,)).covariance).rank == space.dim


def test_the_trusted_factor_is_the_inverse_of_choleskys():
    matrix = with_spectrum([5.0, 2.0, 1.0, 0.5])
    inverse = linalg.trusted_cholesky(matrix)
    assert_close(inverse, torch.linalg.inv(torch.linalg.cholesky(matrix)))
    assert_close(inverse @ matrix @ inverse.T, torch.eye(4, dtype=torch.float64))
    assert torch.equal(inverse, inverse.tril())
    assert (inverse.diagonal() > 0).all()


@pytest.mark.parametrize("smallest", [0.0, 1e-12, 1e-11])
def test_a_singular_or_ill_conditioned_matrix_is_not_trusted(smallest):
    assert linalg.trusted_cholesky(with_spectrum([1.0, 0.1, smallest])) is None


@pytest.mark.parametrize("smallest", [1.0, 1e-4, 1e-8])
def test_a_well_conditioned_matrix_is_trusted(smallest):
    assert linalg.trusted_cholesky(with_spectrum([1.0, 0.1, smallest])) is not None


def test_a_zero_matrix_and_a_layernorm_layer_are_not_trusted(layernorm):
    assert linalg.trusted_cholesky(torch.zeros(2, 2)) is None
    assert linalg.trusted_cholesky(layernorm.moments((1,)).covariance) is None
    assert linalg.trusted_cholesky(layernorm.moments((0, 1)).covariance) is not None


def test_a_batch_of_certificates_equals_one_by_one():
    spectra = ([5.0, 2.0, 1.0], [1.0, 0.1, 0.0], [1.0, 0.1, 1e-12], [1.0, 1e-4, 1e-8], [0.0, 0.0, 0.0])
    matrices = torch.stack([with_spectrum(values, seed) for seed, values in enumerate(spectra)])
    matrices[3, 0, 0] = -1.0  # not positive: its factor is not finished
    factors, inverses, certain = linalg.trusted_choleskys(matrices)
    assert certain.tolist() == [True, False, False, False, False]
    for matrix, factor, inverse, sure in zip(matrices, factors, inverses, certain, strict=True):
        alone = linalg.trusted_cholesky(matrix)
        assert (alone is not None) == bool(sure)
        if sure:
            assert_close(inverse, alone)
            assert_close(factor @ factor.T, matrix)


@given(st.lists(st.floats(-14, 0), min_size=1, max_size=6), st.integers(0, 50))
def test_what_is_trusted_has_full_rank_under_the_policy(exponents, seed):
    matrix = with_spectrum([10.0**e for e in exponents], seed)
    if linalg.trusted_cholesky(matrix) is not None:
        assert linalg.eigen(matrix).rank == len(exponents)


def spectrum(null, smallest=1e-6, d=24):
    """`d` eigenvalues from 1 down to `smallest`, the last `null` of them rounding noise."""
    kept = np.geomspace(1.0, smallest, d - null)
    return [*kept.tolist(), *[1e-16] * null]


@pytest.mark.parametrize("smallest", [1e-2, 1e-6, 1e-8])
@pytest.mark.parametrize("null", [0, 1, 3, 7])
def test_a_factor_whitens_as_the_eigenvectors_do_on_what_the_policy_keeps(null, smallest):
    matrix = with_spectrum(spectrum(null, smallest), null)
    rows = torch.randn(9, 24, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    found, kept = linalg.factor(matrix), linalg.eigen(matrix)
    z, expected = found.whiten(rows), rows @ (kept.vectors * kept.values.rsqrt())
    assert found.rank == kept.rank == 24 - null
    assert_close(z @ z.T, expected @ expected.T, rtol=1e-6, atol=1e-6)
    assert_close(found.null.T @ found.null, torch.eye(null, dtype=torch.float64))


@pytest.mark.parametrize("values", [spectrum(8), spectrum(23), [1.0] * 20 + [1e-10] * 4, [0.0] * 24, [1.0, 0.0]])
def test_no_factor_where_too_much_is_null_or_the_threshold_is_too_near(values):
    assert linalg.factor(with_spectrum(values)) is None


def test_no_factor_of_what_is_not_positive():
    matrix = with_spectrum(spectrum(1))
    matrix[0, 0] = -1.0
    assert linalg.factor(matrix) is None


@given(st.lists(st.floats(-14, 0), min_size=9, max_size=14), st.integers(0, 50))
def test_a_factor_has_the_rank_of_the_policy(exponents, seed):
    matrix = with_spectrum([1.0, *(10.0**e for e in exponents)], seed)
    found = linalg.factor(matrix)
    if found is not None:
        assert found.rank == linalg.eigen(matrix).rank


@pytest.mark.parametrize(("rank", "d"), [(4, 4), (3, 5), (1, 4), (1, 1)])
def test_the_lower_factor_is_trapezoidal_with_a_positive_diagonal(rank, d):
    root = torch.from_numpy(np.random.default_rng(3).standard_normal((rank, d)))
    lower = linalg.lower_factor(root)
    assert_close(lower.T @ lower, root.T @ root)
    assert_close(lower, lower.tril(d - rank))
    assert (lower.diagonal(d - rank) > 0).all()
    assert rank == 1 or not torch.allclose(root, root.tril(d - rank))


def test_the_lower_factor_at_full_rank_is_the_inverse_cholesky_factor():
    matrix = with_spectrum([5.0, 2.0, 1.0, 0.5])
    found = linalg.eigen(matrix)
    root = (found.vectors * found.values.rsqrt()).T
    assert_close(linalg.lower_factor(root), linalg.trusted_cholesky(matrix))


def test_float64_stays_where_it_is():
    x = torch.ones(2, dtype=torch.float64)
    assert linalg.exact(x) is x
    assert linalg.exact(x.half()).dtype == torch.float64


def test_arguments_are_left_alone():
    matrix = Moments.of(torch.randn(9, 4, generator=torch.Generator().manual_seed(0))).covariance
    before = matrix.clone()
    linalg.eigen(matrix), linalg.trusted_cholesky(matrix), linalg.eigenvalues(matrix)
    linalg.lower_factor(matrix), linalg.factor(matrix)
    assert torch.equal(matrix, before)


@pytest.mark.parametrize("dim", [1, 3, 4, 9])
def test_a_gram_matrix_is_the_whole_product_and_exactly_symmetric(dim, monkeypatch):
    monkeypatch.setattr(linalg, "LEAF", 4)
    x = torch.randn(20, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(dim))
    found = linalg.gram(x)
    assert_close(found, x.T @ x)
    assert torch.equal(found, found.T)


@pytest.mark.parametrize("dim", [1, 4, 9, 16])
def test_products_with_a_triangle_are_the_whole_ones(dim, monkeypatch):
    monkeypatch.setattr(linalg, "LEAF", 4)
    draw = torch.Generator().manual_seed(dim)
    lower = (torch.randn(dim, dim, dtype=torch.float64, generator=draw) + 3 * torch.eye(dim)).tril()
    rows = torch.randn(7, dim, dtype=torch.float64, generator=draw)
    inverse, out = linalg.inverse_lower(lower), torch.full((7, dim), torch.nan, dtype=torch.float64)
    assert_close(inverse @ lower, torch.eye(dim, dtype=torch.float64))
    assert torch.equal(inverse, inverse.tril())
    assert_close(linalg.times_lower(rows, lower), rows @ lower.T)
    assert linalg.times_lower(rows, lower, out) is out
    assert_close(out, rows @ lower.T)


@pytest.mark.parametrize("of", [linalg.eigen, linalg.eigen_all, linalg.eigenvalues])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_lapack_fails_on_is_refused_in_words(of, bad):
    with pytest.raises(ValueError, match="matrix must hold finite numbers"):
        of(torch.full((4, 4), bad, dtype=torch.float64))
