"""Laws of the losses: the papers' equations, what collapses and what does not, precision."""

import numpy as np
import pytest
import reference
import torch
from torch.autograd import gradcheck
from torch.testing import assert_close

from whitelab.training.objectives import (
    SingularBatch,
    barlow,
    byol,
    contrastive,
    contrastive_whitened,
    mse,
    multi_positive_l1,
    multi_positive_l2,
    nt_xent,
    sliced,
    vicreg,
    w_mse,
    whiten,
)

from .doing import BATCH, seeded, views


def turn(d=5, seed=9):
    return torch.linalg.qr(torch.randn(d, d, generator=seeded(seed), dtype=torch.float64))[0]


def permutations(b, count, seed=0):
    generator = seeded(seed)
    return [torch.randperm(b, generator=generator).numpy() for _ in range(count)]


# --------------------------------------------------------------------------------------- contrastive losses


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_the_contrastive_loss_is_the_papers_sentence_by_sentence(temperature):
    z = views()
    assert_close(contrastive(z, temperature).item(), reference.contrastive(z.numpy(), temperature))


def test_the_contrastive_loss_has_one_direction():
    z = views()
    assert (contrastive(z) - contrastive(z.flip(0))).abs() > 1e-3


def test_the_contrastive_loss_does_not_see_lengths():
    z = views()
    lengths = torch.rand(2, BATCH, 1, generator=seeded(1), dtype=torch.float64) + 0.5
    assert_close(contrastive(z * lengths), contrastive(z))


def test_equal_rows_have_the_contrastive_loss_of_chance():
    """Collapse does not lower it: log b."""
    assert_close(contrastive(torch.ones(2, 16, 4, dtype=torch.float64)).item(), float(np.log(16)))


def test_the_multi_positive_losses_with_one_positive_are_the_contrastive_loss():
    z = views()
    for negatives in ("view", "all"):
        assert_close(multi_positive_l1(z, negatives=negatives), contrastive(z))
        for reading in ("text", "code"):
            assert_close(multi_positive_l2(z, negatives=negatives, reading=reading), contrastive(z))
    assert (multi_positive_l2(z, reading="printed") - contrastive(z)).abs() > 0.1


@pytest.mark.parametrize("negatives", ["view", "all"])
@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (1.0, 0.8, 0.3)])
@pytest.mark.parametrize("loss", ["l1", "text", "printed", "code"])
def test_the_multi_positive_losses_are_the_papers_sentence_by_sentence(loss, weights, negatives):
    z = views(4)
    settings = (0.3, weights, negatives)
    found = multi_positive_l1(z, *settings) if loss == "l1" else multi_positive_l2(z, *settings, reading=loss)
    assert_close(found.item(), reference.multi_positive(z.numpy(), *settings, loss))


def test_l1_is_the_sum_of_the_contrastive_losses_of_its_positives():
    z = views(3)
    assert_close(multi_positive_l1(z), contrastive(z[[0, 1]]) + contrastive(z[[0, 2]]))


def pull(reading):
    """The derivative of L2 by the cosine of a sentence with the less alike of its two positives."""
    angle = torch.tensor([0.9], dtype=torch.float64, requires_grad=True)
    near = torch.tensor([0.3], dtype=torch.float64)
    zero, one = torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    anchors = torch.stack([torch.cat([one, zero, zero]), torch.cat([zero, zero, one])])
    second = torch.stack([torch.cat([near.cos(), near.sin(), zero]), anchors[1]])
    third = torch.stack([torch.cat([angle.cos(), angle.sin(), zero]), anchors[1]])
    loss = multi_positive_l2(torch.stack([anchors, second, third]), 0.5, reading=reading)
    return -torch.autograd.grad(loss, angle)[0].item() / np.sin(0.9)


def test_the_second_loss_as_printed_drives_positives_apart_and_as_described_together():
    assert pull("printed") > 0
    assert pull("text") < pull("code") < 0


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("count", [2, 3])
def test_nt_xent_is_the_papers_row_by_row(count, normalized):
    z = views(count, b=7)
    assert_close(nt_xent(z, 2.0, normalized).item(), reference.nt_xent(z.numpy(), 2.0, normalized))


# --------------------------------------------------------------------------------------------------- W-MSE


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("euclidean", [False, True])
@pytest.mark.parametrize(("count", "size", "repeats", "eps"), [(2, 12, 1, 0.0), (2, 8, 3, 0.0), (4, 6, 2, 0.1)])
def test_batch_slicing_is_the_papers_step_by_step(count, size, repeats, eps, euclidean, joint):
    v = views(count)
    found = w_mse(
        v,
        seeded(3),
        size=size,
        repeats=repeats,
        euclidean=euclidean,
        eps=eps,
        statistics="joint" if joint else "view",
    )
    expected = reference.w_mse(
        v.numpy(), permutations(BATCH, repeats, 3), size, euclidean=euclidean, eps=eps, joint=joint
    )
    assert_close(found.item(), float(expected))


def test_every_sub_batch_is_white_and_rows_stay_in_their_places():
    v = views(3)
    z = sliced(v, seeded(3), size=12)
    (order,) = permutations(BATCH, 1, 3)
    for view, part in ((view, part) for view in range(3) for part in (order[:12], order[12:])):
        assert_close(torch.cov(z[view, part].T), torch.eye(5, dtype=z.dtype), atol=1e-9, rtol=0)
        assert_close(z[view, part], whiten(v[view, part], "cholesky"))
    assert (torch.cov(z[0].T) - torch.eye(5)).abs().max() > 1e-3


def test_a_sub_batch_of_the_whole_batch_with_joint_statistics_is_equations_7_and_8():
    v = views(3)
    z = sliced(v, seeded(), size=BATCH, statistics="joint")
    assert_close(z.flatten(0, 1), whiten(v.flatten(0, 1), "cholesky"))


@pytest.mark.parametrize("euclidean", [False, True])
@pytest.mark.parametrize("statistics", ["view", "joint"])
@pytest.mark.parametrize("whitening", ["cholesky", "zca", "pca"])
def test_w_mse_of_identical_views_is_zero(whitening, statistics, euclidean):
    v = views(1).expand(3, -1, -1)
    settings = {"size": 12, "whitening": whitening, "statistics": statistics, "euclidean": euclidean}
    assert w_mse(v, seeded(), **settings).item() == pytest.approx(0, abs=1e-20)
    assert w_mse(views(3), seeded(), **settings) > 0.1


@pytest.mark.parametrize("eps", [0.0, 0.2])
@pytest.mark.parametrize("euclidean", [False, True])
@pytest.mark.parametrize(
    ("whitening", "statistics"), [("cholesky", "joint"), ("zca", "joint"), ("pca", "joint"), ("zca", "view")]
)
def test_w_mse_does_not_see_a_rotation_of_its_input(whitening, statistics, euclidean, eps):
    v = views(3)
    settings = {"size": 12, "whitening": whitening, "statistics": statistics, "euclidean": euclidean, "eps": eps}
    assert_close(w_mse(v @ turn() + 2, seeded(), **settings), w_mse(v, seeded(), **settings))
    assert (mse(v @ turn() + 2) - mse(v)).abs() > 1e-3


def test_cholesky_factors_of_each_view_by_itself_do_see_a_rotation():
    """The control, and a fact about batch slicing as W-MSE describes it: its Eq. 7 has one W for all views."""
    v = views(3)
    difference = w_mse(v @ turn(), seeded(), size=12) - w_mse(v, seeded(), size=12)
    assert difference.abs() > 1e-3


def test_w_mse_with_joint_statistics_does_not_see_any_invertible_map():
    v = views(3)
    mix = torch.randn(5, 5, generator=seeded(4), dtype=torch.float64)
    settings = {"size": 12, "statistics": "joint"}
    assert_close(w_mse(v @ mix, seeded(), **settings), w_mse(v, seeded(), **settings))


def test_repeats_average_over_permutations_that_one_generator_draws():
    v = views()
    generator = seeded(2)
    each = [w_mse(v, generator, size=12) for _ in range(3)]
    assert_close(w_mse(v, seeded(2), size=12, repeats=3), torch.stack(each).mean())
    assert len({round(one.item(), 9) for one in each}) == 3


def test_the_permutation_does_not_matter_where_one_sub_batch_is_the_batch():
    v = views()
    assert_close(w_mse(v, seeded(1), size=BATCH), w_mse(v, seeded(2), size=BATCH))


@pytest.mark.parametrize("whitening", ["cholesky", "zca", "standardize"])
@pytest.mark.parametrize("statistics", ["view", "joint"])
def test_gradients_of_w_mse_equal_finite_differences(statistics, whitening):
    v = views(3, b=12, d=4).requires_grad_()
    settings = {"size": 6, "repeats": 2, "statistics": statistics, "whitening": whitening}
    assert gradcheck(lambda v: w_mse(v, seeded(), **settings), v)


def test_contrastive_whitened_is_the_contrastive_loss_of_what_w_mse_compares():
    v = views(2)
    z = sliced(v, seeded(1), size=12)
    for normalized in (True, False):
        found = contrastive_whitened(v, seeded(1), temperature=0.7, normalized=normalized, size=12)
        assert_close(found.item(), reference.nt_xent(z.numpy(), 0.7, normalized))


# ---------------------------------------------------------------------------------------- MSE, BYOL, collapse


@pytest.mark.parametrize("count", [2, 3, 4])
def test_mse_is_the_mean_over_sentences_and_pairs_of_views(count):
    z = views(count)
    pairs = [(p, q) for p in range(count) for q in range(p + 1, count)]
    cosine = torch.nn.functional.cosine_similarity
    assert_close(mse(z), torch.stack([2 - 2 * cosine(z[p], z[q], dim=1) for p, q in pairs]).mean())
    assert_close(mse(z, euclidean=True), torch.stack([(z[p] - z[q]).square().sum(1) for p, q in pairs]).mean())


@pytest.mark.parametrize("count", [2, 3])
def test_byol_is_its_paper_both_ways_round(count):
    y, t = views(count), views(count, seed=1)
    assert_close(byol(y, t).item(), reference.byol(y.numpy(), t.numpy()))


def test_byol_is_zero_where_predictions_are_right_and_teaches_the_target_nothing():
    y, t = views(1).expand(2, -1, -1).clone().requires_grad_(), views(1).expand(2, -1, -1).clone().requires_grad_()
    byol(y, t).backward()
    assert byol(y, t).item() == pytest.approx(0, abs=1e-12)
    assert t.grad is None


def test_a_collapsed_representation_is_the_minimum_of_mse_and_not_admitted_by_w_mse():
    z = torch.ones(2, BATCH, 5, dtype=torch.float64)
    assert mse(z).item() == 0
    assert mse(z, euclidean=True).item() == 0
    with pytest.raises(SingularBatch, match="collapsed"):
        w_mse(z, seeded(), size=12)


def test_a_zero_row_is_at_right_angles_to_every_other():
    z = views(3)
    z[1, :4] = 0
    z[2, 2:5] = 0
    pairs = ((0, 1), (0, 2), (1, 2))
    assert_close(mse(z), torch.stack([2 - 2 * torch.cosine_similarity(z[p], z[q], dim=1) for p, q in pairs]).mean())
    assert_close(2 * mse(0 * z), byol(0 * z, 0 * z))  # which counts every pair both ways round


@pytest.mark.parametrize("statistics", ["view", "joint"])
def test_a_collapsed_representation_is_no_minimum_of_w_mse_with_eps_but_of_the_euclidean_one(statistics):
    z, settings = torch.ones(2, BATCH, 5, dtype=torch.float64), {"size": 12, "eps": 0.1, "statistics": statistics}
    assert w_mse(z, seeded(), **settings).item() == 2
    assert w_mse(z, seeded(), **settings, euclidean=True).item() == 0


def test_shrinking_towards_one_point_lowers_mse_and_leaves_w_mse_where_it_was():
    v = views()
    shrunk = 0.01 * (v - v.mean(dim=(0, 1))) + v.mean(dim=(0, 1))
    assert mse(shrunk) < 1e-2 * mse(v)
    assert_close(w_mse(shrunk, seeded(), size=12), w_mse(v, seeded(), size=12))


def test_batch_norm_in_place_of_whitening_lets_every_dimension_say_the_same():
    """W-MSE, section 3.1: standardised, one feature in every dimension costs little; whitened, it is refused."""
    feature = views(2, d=1, noise=0.01)
    copies = feature.expand(-1, -1, 5)
    assert w_mse(copies, seeded(), size=12, whitening="standardize") < 0.05
    with pytest.raises(SingularBatch, match="singular"):
        w_mse(copies, seeded(), size=12)


# ------------------------------------------------------------------------------- whitening as a penalty


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("weight", [5e-3, 1.0])
def test_barlow_is_its_paper_entry_by_entry(count, weight):
    z = views(count)
    assert_close(barlow(z, weight).item(), reference.barlow(z.numpy(), weight))


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("weights", [(25.0, 25.0, 1.0, 1.0), (3.0, 7.0, 2.0, 4.0)])
def test_vicreg_is_its_paper_term_by_term(count, weights):
    z = views(count)
    assert_close(vicreg(z, *weights).item(), reference.vicreg(z.numpy(), *weights))


def test_the_penalties_are_nothing_where_whitening_has_done_its_work():
    """Equal white views are the minimum of all three; one dimension said twice is not, though equal."""
    white = whiten(views(1)[0], "zca")
    copied = torch.cat([white[:, :4], white[:, :1]], dim=1)
    for loss in (lambda z: barlow(z, 1.0), vicreg):
        assert loss(white.expand(2, -1, -1)).item() == pytest.approx(0, abs=1e-9)
        assert loss(copied.expand(2, -1, -1)) > 0.1
    assert barlow(copied.expand(2, -1, -1), 0.0).item() == pytest.approx(0, abs=1e-9)


def test_barlow_of_a_collapsed_batch_is_its_dimension():
    assert barlow(torch.randn(64).expand(2, 48, 64)).item() == 64


def test_barlow_does_not_see_shifts_and_scales_of_columns_and_vicreg_sees_scales():
    z, scale = views(), torch.tensor([0.1, 2.0, 3.0, 0.5, 1.0], dtype=torch.float64)
    assert_close(barlow(z * scale + 4), barlow(z))
    assert_close(vicreg(z + 4), vicreg(z))
    assert (vicreg(z * scale) - vicreg(z)).abs() > 0.1


def test_a_collapsed_batch_costs_what_the_definitions_say():
    z = torch.ones(2, BATCH, 5, dtype=torch.float64)
    assert barlow(z).item() == 5
    assert vicreg(z).item() == pytest.approx(2 * 25 * (1 - 1e-2))


@pytest.mark.parametrize("loss", [barlow, vicreg])
def test_gradients_of_the_penalties_equal_finite_differences(loss):
    assert gradcheck(lambda v: loss(0.3 * v), views(3, b=12, d=4).requires_grad_())


# -------------------------------------------------------------------------------------------- precision


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_widened_before_similarities_are_divided_by_the_temperature(dtype):
    z = views(3).to(dtype)
    for loss in (lambda z: contrastive(z[:2]), multi_positive_l1, multi_positive_l2, mse, nt_xent, barlow, vicreg):
        assert loss(z).dtype == torch.float32
        assert_close(loss(z), loss(z.float()))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert_close(loss(z), loss(z.float()))


LOSSES = {
    "contrastive": contrastive,
    "multi_positive_l1": multi_positive_l1,
    "multi_positive_l2": multi_positive_l2,
    "nt_xent": nt_xent,
    "mse": mse,
    "barlow": barlow,
    "vicreg": vicreg,
    "byol": lambda z: byol.__wrapped__(z, z),
}


def without_signature(name):
    """The loss without the check of its signature, which runs in tests alone."""
    return getattr(LOSSES[name], "__wrapped__", LOSSES[name])


@pytest.mark.parametrize("name", [*LOSSES, "sliced"])
def test_views_of_another_shape_or_of_no_real_numbers_are_refused(name):
    loss = (lambda z: sliced.__wrapped__(z, size=12)) if name == "sliced" else without_signature(name)
    for wrong in (views()[0], views()[None]):
        with pytest.raises(ValueError, match=r"must have the shape \[v, b, d\], got \["):
            loss(wrong)
    with pytest.raises(ValueError, match="must hold real numbers, got torch.complex128"):
        loss(views().to(torch.complex128))
    with pytest.raises(TypeError, match="must be a tensor, an array or a list of numbers, got str"):
        loss("views")


@pytest.mark.parametrize("name", LOSSES)
def test_one_view_and_a_batch_of_nothing_have_no_loss(name):
    with pytest.raises(ValueError, match="views, got 1"):
        without_signature(name)(views(1))
    with pytest.raises(ValueError, match=r"must hold at least 1 sentence and 1 dimension, got \[2, 0, 5\]"):
        without_signature(name)(views()[:, :0])


@pytest.mark.parametrize("name", LOSSES)
def test_an_array_has_the_loss_of_its_tensor(name):
    assert torch.equal(without_signature(name)(views().numpy()), without_signature(name)(views()))


@pytest.mark.parametrize("name", ["contrastive", "multi_positive_l1", "multi_positive_l2", "nt_xent"])
@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan"), float("inf")])
def test_a_temperature_is_a_number_above_zero(name, temperature):
    with pytest.raises(ValueError, match=f"temperature={temperature} must be a number above 0"):
        LOSSES[name](views(), temperature=temperature)


def test_predictions_and_targets_that_torch_would_stretch_are_refused():
    with pytest.raises(ValueError, match=r"prediction and target must share the shape \[v, b, d\], got"):
        byol.__wrapped__(views(), views()[:, :1])


def test_wrong_weights_and_views_are_named():
    with pytest.raises(ValueError, match=r"weights=\[1.0\] must hold 2 numbers above 0"):
        multi_positive_l1(views(3), weights=[1.0])
    with pytest.raises(ValueError, match="z must have 2 views, got 3"):
        contrastive.__wrapped__(views(3))  # without the check of its signature, which runs in tests alone
