"""Laws of whitening in the graph: what is white afterwards, and that its gradient is right and finite."""

from types import SimpleNamespace

import numpy as np
import pytest
import reference
import torch
from torch.autograd import gradcheck
from torch.testing import assert_close

from whitelab.statistics.moments import Moments
from whitelab.training.objectives import RunningMoments, SingularBatch, whiten, whiten_slices
from whitelab.training.objectives.batch_whitening import METHODS
from whitelab.whitening import fit, fit_shuffled_group

FULL = ("pca", "zca", "cholesky")
PERMUTATION = torch.tensor([3, 1, 0, 5, 4, 2])

# Eigenvalues of a covariance: apart, all one, in exact pairs, nearly repeated.
SPECTRA = {
    "apart": (1.0, 1.7, 2.5, 3.6, 5.0, 7.0),
    "one value": (1.0,) * 6,
    "exact pairs": (1.0, 1.0, 2.0, 2.0, 3.0, 3.0),
    "nearly equal": (1.0, 1.0 + 1e-9, 2.0, 2.0 + 1e-12, 2.0 + 1e-7, 3.0),
}


def batch(n=20, d=6, seed=0, spectrum=None):
    """Rows off the origin, correlated, or with exactly the covariance eigenvalues asked for."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=generator, dtype=torch.float64)
    if spectrum is not None:
        x = torch.linalg.qr(x - x.mean(dim=0))[0] * (n - 1) ** 0.5 * torch.tensor(spectrum, dtype=torch.float64).sqrt()
        turn = torch.linalg.qr(torch.randn(d, d, generator=generator, dtype=torch.float64))[0]
        return x @ turn + 3
    return x @ torch.randn(d, d, generator=generator, dtype=torch.float64) + 3


def settings(method):
    """Groups for the methods that have them, and a permutation that is known."""
    grouped = {"groups": 3} if method in ("group", "shuffled_group") else {}
    return grouped | ({"permutation": PERMUTATION} if method == "shuffled_group" else {})


# ------------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("method", FULL)
def test_the_whitened_batch_has_mean_zero_and_identity_covariance(method, ddof):
    x = batch()
    z = whiten(x, method, ddof=ddof)
    assert_close(z.mean(dim=0), torch.zeros_like(z[0]), atol=1e-10, rtol=0)
    assert_close(torch.cov(z.T, correction=ddof), torch.eye(6, dtype=z.dtype), atol=1e-10, rtol=0)
    assert (torch.cov(x.T) - torch.eye(6)).abs().max() > 0.5


@pytest.mark.parametrize("method", FULL)
def test_whitening_in_the_graph_is_the_whitening_fitted_on_the_batch(method):
    x = batch()
    assert_close(whiten(x, method), fit(method, Moments.of(x))(x), atol=1e-9, rtol=0)


def test_every_group_is_white_and_the_groups_stay_correlated():
    z = whiten(batch(), "group", groups=3)
    covariance = torch.cov(z.T)
    inside = torch.block_diag(*[torch.ones(2, 2)] * 3).bool()
    assert_close(covariance[inside], torch.eye(6, dtype=z.dtype)[inside], atol=1e-10, rtol=0)
    assert covariance[~inside].abs().max() > 0.05


def test_one_group_is_zca_and_d_groups_standardize():
    x = batch()
    assert_close(whiten(x, "group", groups=1), whiten(x, "zca"))
    assert_close(whiten(x, "group", groups=6), whiten(x, "standardize"))
    assert_close(whiten(x, "standardize"), (x - x.mean(dim=0)) / x.std(dim=0))


@pytest.mark.parametrize("groups", [1, 2, 3, 4, 5, 6])
def test_groups_are_those_of_the_fitted_variant_even_or_not(groups):
    x = batch()
    assert_close(whiten(x, "group", groups=groups), fit(f"group:groups={groups}", Moments.of(x))(x))
    fitted = fit_shuffled_group(Moments.of(x), groups=groups, permutation=PERMUTATION)
    assert_close(whiten(x, "shuffled_group", groups=groups, permutation=PERMUTATION), fitted(x))


def test_the_shuffle_is_undone():
    x = batch()
    z = whiten(x, "shuffled_group", groups=3, permutation=PERMUTATION)
    assert_close(z[:, PERMUTATION], whiten(x[:, PERMUTATION], "group", groups=3))
    assert_close(whiten(x, "shuffled_group", groups=3, permutation=torch.arange(6)), whiten(x, "group", groups=3))
    assert (z - whiten(x, "group", groups=3)).abs().max() > 0.05


def test_the_shuffle_is_drawn_from_the_generator():
    x = batch()
    first, again, other = (
        whiten(x, "shuffled_group", groups=3, generator=torch.Generator().manual_seed(seed)) for seed in (5, 5, 6)
    )
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)
    drawn = torch.from_numpy(reference.shuffle(6, 5))
    assert_close(first, whiten(x, "shuffled_group", groups=3, permutation=drawn))


def test_epsilon_is_that_of_w_mse():
    x, eps = batch(n=5), 0.3
    inverse = np.linalg.inv(np.linalg.cholesky(0.7 * np.cov(x.numpy().T) + 0.3 * np.eye(6)))
    expected = (x.numpy() - x.numpy().mean(axis=0)) @ inverse.T
    assert_close(whiten(x, "cholesky", eps=eps), torch.from_numpy(expected))


@pytest.mark.parametrize("method", [*FULL, "standardize"])
def test_slices_are_whitened_as_if_alone(method):
    x = torch.stack([batch(seed=seed) for seed in range(3)])
    assert_close(whiten_slices(x, method), torch.stack([whiten(one, method) for one in x]))


@pytest.mark.parametrize("method", METHODS)
def test_autocast_does_not_reach_the_whitening(method):
    x = batch().float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z = whiten(x, method, **settings(method))
    assert z.dtype == torch.float32
    assert torch.equal(z, whiten(x, method, **settings(method)))


# ---------------------------------------------------------------------------------------------- gradients


@pytest.mark.parametrize("eps", [0.0, 0.2])
@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("method", METHODS)
def test_gradients_equal_finite_differences(method, ddof, eps):
    x = batch(n=9, spectrum=SPECTRA["apart"]).requires_grad_()
    assert gradcheck(lambda x: whiten(x, method, eps=eps, ddof=ddof, **settings(method)), x)


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("method", [name for name in METHODS if name != "pca"])
def test_gradients_equal_finite_differences_where_eigenvalues_repeat(method, spectrum):
    x = batch(n=9, spectrum=SPECTRA[spectrum]).requires_grad_()
    assert gradcheck(lambda x: whiten(x, method, **settings(method)), x)


@pytest.mark.parametrize("spectrum", SPECTRA)
def test_gradients_of_cosines_after_pca_are_exact_where_eigenvalues_repeat(spectrum):
    """The rotation is not determined there, but inner products within the batch do not see it."""
    x = batch(n=9, spectrum=SPECTRA[spectrum]).requires_grad_()

    def products(x):
        z = whiten(x, "pca")
        return z @ z.T

    assert gradcheck(products, x)


@pytest.mark.parametrize("spectrum", SPECTRA)
def test_gradients_of_pca_itself_stay_finite(spectrum):
    x = batch(spectrum=SPECTRA[spectrum]).requires_grad_()
    weights = batch(seed=1)
    (gradient,) = torch.autograd.grad((weights * whiten(x, "pca")).sum(), x)
    assert gradient.isfinite().all()
    assert gradient.abs().max() < 1e6


def test_a_naive_backward_pass_is_not_finite_where_eigenvalues_repeat():
    """The control: torch's own derivative of the eigenvectors."""
    covariance = torch.eye(4, dtype=torch.float64, requires_grad=True)
    values, vectors = torch.linalg.eigh(covariance)
    (gradient,) = torch.autograd.grad(((vectors * values.rsqrt()) @ vectors.mT)[0, 1], covariance)
    assert not gradient.isfinite().all()


def test_gradients_are_finite_where_a_coordinate_is_dead():
    """A LayerNorm gain of 0 leaves one, in whichever group it falls."""
    x = batch()
    x[:, 4] = 0.25
    x.requires_grad_()
    z = whiten(x, "group", groups=3)
    (gradient,) = torch.autograd.grad((batch(seed=1) * z).sum(), x)
    assert z[:, 4].abs().max() == 0
    assert gradient.isfinite().all()
    assert gradient.abs().max() < 1e3


@pytest.mark.parametrize("method", METHODS)
def test_a_detached_map_is_a_constant_of_the_graph(method):
    """WhitenedCSE's released code: the gradient passes through the centred rows only, G -> (G - mean G) W."""
    x = batch().requires_grad_()
    weights = batch(seed=1)
    z = whiten(x, method, detach=True, **settings(method))
    (detached,) = torch.autograd.grad((weights * z).sum(), x)
    (full,) = torch.autograd.grad((weights * whiten(x, method, **settings(method))).sum(), x)
    # z = (x - mean) W^T by least squares, exact because n > d.
    centred = (x - x.mean(dim=0)).detach()
    matrix = torch.linalg.lstsq(centred, z.detach()).solution
    assert_close(detached, (weights - weights.mean(dim=0)) @ matrix.T, atol=1e-9, rtol=1e-9)
    assert (detached - full).abs().max() > 0.1


# ------------------------------------------------------------------------------------------------ momentum


def test_running_moments_equal_the_recursion():
    running, beta = RunningMoments(6, 0.8), 0.8
    mean, covariance = None, np.eye(6)
    for seed in range(4):
        x = batch(seed=seed)
        z = whiten(x, "zca", ddof=0, running=running)
        m, s = x.numpy().mean(axis=0), np.cov(x.numpy().T, bias=True)
        mean = m if mean is None else beta * mean + (1 - beta) * m
        covariance = beta * covariance + (1 - beta) * s
        assert_close(running.mean, torch.from_numpy(mean))
        assert_close(running.covariance, torch.from_numpy(covariance))
        values, vectors = np.linalg.eigh(covariance)
        expected = (x.numpy() - mean) @ (vectors / np.sqrt(values)) @ vectors.T
        assert_close(z, torch.from_numpy(expected))


def test_without_memory_running_moments_are_those_of_the_batch():
    running = RunningMoments(6, 0.0)
    whiten(batch(seed=1), running=running)
    assert_close(whiten(batch(), running=running), whiten(batch()))


@pytest.mark.parametrize("method", METHODS)
def test_under_momentum_a_batch_may_have_fewer_rows_than_dimensions(method):
    """WhitenedCSE's Table 3: 64 rows, 768 dimensions. Where none varied, eigenvalues repeat and PCA may turn."""
    x, running = batch(n=4).requires_grad_(), RunningMoments(6, 0.7)
    for _ in range(3):
        assert whiten(x, method, running=running, **settings(method)).isfinite().all()

    def products(x):
        z = whiten(x, method, running=_copy(running), **settings(method))
        return z @ z.T

    assert gradcheck(products, x)
    with pytest.raises(SingularBatch, match="n=2 rows must be more than the d=6"):
        whiten(batch(n=2), "zca", running=RunningMoments(6, 0.0))


def test_the_start_at_the_identity_is_forgotten():
    running, x = RunningMoments(6, 0.5), batch()
    for _ in range(60):
        z = whiten(x, running=running)
    assert_close(z, whiten(x))


def test_moments_stay_where_they_are_when_a_head_goes_where_there_is_no_float64():
    """A device that has none is put in its place: MPS."""
    running = RunningMoments(6)
    there = SimpleNamespace(device=torch.device("mps"))
    assert running._apply(lambda x: there) is running
    assert running.covariance.device.type == "cpu"
    assert running.to("meta").covariance.device.type == "meta"


def _copy(running):
    copy = RunningMoments(len(running.mean), running.beta)
    copy.load_state_dict(running.state_dict())
    return copy


@pytest.mark.parametrize("method", METHODS)
def test_gradients_under_momentum_pass_through_this_batch_only(method):
    start = RunningMoments(6, 0.7)
    whiten(batch(seed=1), running=start)

    def whitened(x):
        return whiten(x, method, running=_copy(start), **settings(method))

    assert gradcheck(whitened, batch(n=9, spectrum=SPECTRA["apart"]).requires_grad_())
    assert not start.mean.requires_grad
    assert not start.covariance.requires_grad


# -------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("method", FULL)
def test_too_few_rows_are_refused_with_both_numbers(method):
    with pytest.raises(SingularBatch, match=r"n=6 rows must be more than the d=6 dimensions .* take n=7 or more, or"):
        whiten(batch(n=6), method)
    assert whiten(batch(n=7), method).isfinite().all()
    assert whiten(batch(n=6), method, eps=0.1).isfinite().all()


def test_groups_need_more_rows_than_a_group_has_coordinates():
    with pytest.raises(SingularBatch, match="n=2 rows must be more than the d=2 dimensions whitened together"):
        whiten(batch(n=2), "group", groups=3)
    assert whiten(batch(n=3), "group", groups=3).isfinite().all()


@pytest.mark.parametrize("method", METHODS)
def test_a_collapsed_batch_is_refused(method):
    for rows in (torch.ones(20, 6), torch.randn(6, dtype=torch.float64).expand(7, 6)):  # whose mean is rounded
        with pytest.raises(SingularBatch, match="collapsed"):
            whiten(rows, method, **settings(method))


def test_cholesky_refuses_a_hyperplane_and_zca_drops_its_normal():
    x = batch()
    x = x - x.mean(dim=1, keepdim=True)
    with pytest.raises(SingularBatch, match="singular: the d=6 dimensions"):
        whiten(x, "cholesky")
    values = torch.linalg.eigvalsh(torch.cov(whiten(x, "zca").T))
    assert_close(values, torch.tensor([0.0] + [1.0] * 5, dtype=values.dtype), atol=1e-10, rtol=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "svd"}, "method='svd' must be one of pca, zca, cholesky"),
        ({"groups": 7}, "groups=7 must lie between 1 and d=6"),
        ({"eps": 1.5}, "eps=1.5 must lie between 0 and 1"),
        ({"method": "shuffled_group", "permutation": torch.tensor([0, 0, 1, 2, 3, 4])}, "every number from 0 to d-1=5"),
        ({"running": RunningMoments(5)}, "x must have the d=5 columns of the running moments, got 6"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        whiten(batch(), **change)


def test_wrong_values_are_named():
    x = batch()
    x[3, 2] = torch.nan
    with pytest.raises(ValueError, match="x must hold finite numbers, row 3 has NaN"):
        whiten(x)
    with pytest.raises(ValueError, match="beta=1.0 must lie between 0 and 1"):
        RunningMoments(4, 1.0)
