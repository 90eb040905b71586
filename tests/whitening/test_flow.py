"""Laws of the flow: a density that integrates to 1, an inverse, a start that standardises, a training that learns."""

import math

import numpy as np
import pytest
import row_maps
import torch
from progressing import progressed
from torch.testing import assert_close

from tests.conftest import float64_by_default
from whitelab.statistics.moments import Moments
from whitelab.whitening import fit, fit_to_rows, flow

DIMS = [1, 2, 3, 5, 8, 13]


def rows(n=120, d=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    mixed = torch.randn(d, d, generator=generator, dtype=torch.float64)
    return torch.randn(n, d, generator=generator, dtype=torch.float64) @ mixed + 4


def bent(n=2000, seed=0):
    """Rows on a parabola, whose covariance says nothing of it."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 2, generator=generator, dtype=torch.float64)
    return torch.stack([x[:, 0], 2 * x[:, 0].square() + 0.2 * x[:, 1]], 1)


@pytest.mark.parametrize("d", DIMS)
@pytest.mark.parametrize("shape", ["levels=3,depth=3", "levels=1,depth=2", "levels=5,depth=1"])
def test_the_map_is_glows(d, shape):
    x = rows(d=d)
    fitted = fit_to_rows(f"flow:epochs=20,lr=0.01,{shape}", x)
    z, log_det = flow.forward(fitted.tensors, x, *fitted.shape)
    for i in (0, 7):
        expected, volume = row_maps.flow(fitted.tensors, x[i], *fitted.shape)
        assert_close(z[i], torch.from_numpy(expected))
        assert float(log_det) == pytest.approx(volume)
    assert_close(fitted(x.float()), fitted(x.float().double()))


@pytest.mark.parametrize("d", DIMS)
def test_the_log_determinant_is_that_of_the_jacobian(d):
    fitted = fit_to_rows("flow:epochs=30,lr=0.01", rows(d=d))
    for row in rows(2, d, seed=1):
        jacobian = torch.autograd.functional.jacobian(lambda v: flow.forward(fitted.tensors, v[None], 3, 3)[0][0], row)
        log_det = flow.forward(fitted.tensors, row[None], 3, 3)[1]
        assert_close(torch.linalg.slogdet(jacobian)[1], log_det)
        assert abs(float(log_det)) > 0.01


@pytest.mark.parametrize("d", DIMS)
def test_the_inverse_undoes_the_map(d):
    x = rows(d=d)
    fitted = fit_to_rows("flow:epochs=30,lr=0.01", x)
    assert_close(fitted.inverse(fitted(x)), x)
    assert (fitted(x) - x).abs().max() > 0.1


def test_the_density_integrates_to_one():
    fitted = fit_to_rows("flow:epochs=5,lr=0.01", bent())
    across, up = torch.linspace(-6, 6, 301, dtype=torch.float64), torch.linspace(-8, 40, 601, dtype=torch.float64)
    grid = torch.cartesian_prod(across, up)
    z, log_det = flow.forward(fitted.tensors, grid, *fitted.shape)
    density = torch.exp(-z.square().sum(1) / 2) / (2 * math.pi)
    cell = float((across[1] - across[0]) * (up[1] - up[0]))
    assert float(density.sum() * log_det.exp()) * cell == pytest.approx(1, abs=0.01)
    assert float(density.sum()) * cell != pytest.approx(1, abs=0.1)


def test_the_bits_are_those_of_the_standard_normal_under_the_map():
    x = rows()
    fitted = fit_to_rows("flow:epochs=3", x)
    values = []
    for row in x:
        z, log_det = row_maps.flow(fitted.tensors, row, 3, 3)
        values.append(-(sum(-v * v / 2 - math.log(2 * math.pi) / 2 for v in z) + log_det) / math.log(2) / 5)
    assert fitted.bits(x) == pytest.approx(np.mean(values))


def test_before_training_the_flow_standardises_and_afterwards_it_does_not():
    x = rows(d=7)
    start, trained = (fit_to_rows(f"flow:batch=120,epochs=20,lr={lr}", x)(x) for lr in (0, 0.01))
    standardized = fit("standardize", Moments.of(x))(x)
    ratio = math.sqrt(120 / 119)  # variances here are divided by n
    cosines = [torch.nn.functional.normalize(z) @ torch.nn.functional.normalize(z).T for z in (start, standardized)]
    assert_close(*cosines, atol=1e-5, rtol=0)
    assert_close(start.square().sum(1), (ratio * standardized).square().sum(1), atol=1e-4, rtol=1e-4)
    assert (
        torch.nn.functional.normalize(trained) @ torch.nn.functional.normalize(trained).T - cosines[1]
    ).abs().max() > 0.1


def test_training_finds_what_no_gaussian_can():
    fitted = fit_to_rows("flow:epochs=15,lr=0.003", bent())
    fresh = bent(seed=1)
    untrained = fit_to_rows("flow:lr=0", bent())
    gaussian = row_maps.gaussian_bits(fresh.numpy())
    assert fitted.bits(fresh) < gaussian - 0.3
    assert untrained.bits(fresh) > gaussian - 0.05


def test_of_gaussian_rows_there_is_nothing_more_to_find():
    x, fresh = rows(4000, 3), rows(8000, 3)[4000:]
    truth = row_maps.gaussian_bits(torch.cat([x, fresh]).numpy())
    assert fit_to_rows("flow:epochs=5", x).bits(fresh) > truth - 0.02


def test_the_first_step_is_that_of_adam_without_bias_correction():
    x = rows(64)
    before, after = (fit_to_rows(f"flow:lr={lr}", x).tensors for lr in (0, 0.001))
    moved = {name: one.float().requires_grad_() for name, one in before.items()}
    loss = flow.bits(*flow.forward(moved, x.float()[torch.randperm(64)], 3, 3))
    gradients = torch.autograd.grad(loss, list(moved.values()), allow_unused=True)
    steps = []
    for (name, start), gradient in zip(before.items(), gradients, strict=True):
        large = gradient.abs() > 1e-3
        step = (start - after[name] - 0.001 * 0.01 * start) * gradient.sign()
        steps.append(step[large])
    steps = torch.cat(steps)
    assert len(steps) > 50
    assert_close(steps, torch.full_like(steps, 0.001 * 0.1 / math.sqrt(0.001)), rtol=0.05, atol=0)


def test_a_row_that_counts_twice_is_two_rows_and_an_epoch_longer_for_it():
    x, counts = rows(60), torch.ones(60, dtype=torch.float64)
    counts[::4] = 3
    weighted = fit_to_rows("flow:batch=16", x, counts)
    repeated = fit_to_rows("flow:batch=16", x.repeat_interleave(counts.long(), 0))
    assert torch.equal(weighted(x), repeated(x))
    assert weighted.facts["steps"] == 90 // 16
    assert weighted.count == 90


def test_equal_seeds_give_equal_maps_and_others_do_not():
    first, again, other = (fit_to_rows(f"flow:seed={seed}", rows())(rows()) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)


ON = float64_by_default, torch.inference_mode, torch.no_grad, lambda: torch.autocast("cpu", dtype=torch.bfloat16)


@pytest.mark.parametrize("on", ON)
def test_what_the_caller_has_on_changes_no_map(on):
    usual = fit_to_rows("flow", rows())(rows())
    with on():
        assert torch.equal(fit_to_rows("flow", rows())(rows()), usual)


def test_the_cost_stands_beside_it():
    fitted = fit_to_rows("flow:epochs=3,batch=16", rows(160, 8))
    assert fitted.cost["steps"] == 30
    assert fitted.cost["seconds"] > 0
    assert fitted.cost["parameters"] == sum(one.numel() for one in fitted.tensors.values())


def test_progress_counts_the_steps_and_may_stop_them():
    told = progressed(lambda progress: fit_to_rows("flow:batch=16", rows(160), progress=progress))
    assert told == [(i + 1, 10) for i in range(10)]


def test_coordinates_that_do_not_vary_stay_finite_for_rows_that_do():
    x = rows(d=6)
    x[:, 2] = 3.0
    other = x.clone()
    other[:, 2] = 9.0
    fitted = fit_to_rows("flow:epochs=5", x)
    assert fitted(other).abs().max() < 1e3
    for level in (torch.ones(9, 6, dtype=torch.float64), x[:1]):
        of_nothing = fit_to_rows("flow", level)
        assert of_nothing(x).isfinite().all()
        assert of_nothing.rank == 0 < fitted.rank
