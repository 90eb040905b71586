"""Laws of the training objectives: the papers' equations, what collapses and what does not, the registry's promises."""

from itertools import chain

import numpy as np
import pytest
import reference
import torch
from torch.autograd import gradcheck
from torch.testing import assert_close

from whitelab.training.objectives import (
    OBJECTIVES,
    SingularBatch,
    WhitenedHead,
    byol,
    canonical,
    contrastive,
    contrastive_whitened,
    label,
    mse,
    multi_positive_l1,
    multi_positive_l2,
    nt_xent,
    objective,
    parse,
    sliced,
    w_mse,
    whiten,
)

# Every objective with parameters that 24 sentences in 12 dimensions can have.
DIM, BATCH = 12, 24
SMALL = {
    "simcse": "simcse",
    "whitenedcse": "whitenedcse:groups=4",
    "w-mse": "w-mse:embedding=5,hidden=16,size=12,repeats=2",
    "contrastive-whitened": "contrastive-whitened:embedding=5,hidden=16,size=12",
    "byol": "byol:embedding=5,hidden=16",
    "mse": "mse:embedding=5,hidden=16",
}


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def views(v=2, b=BATCH, d=5, seed=0, noise=0.5):
    """Views of b correlated sentences off the origin, float64."""
    generator = seeded(seed)
    sentences = torch.randn(b, d, generator=generator, dtype=torch.float64)
    mix = torch.randn(d, d, generator=generator, dtype=torch.float64)
    return (sentences + noise * torch.randn(v, b, d, generator=generator, dtype=torch.float64)) @ mix + 1


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


def test_table_4_compares_whitening_with_none_and_nothing_else():
    one, z = OBJECTIVES["contrastive-whitened"], views(2)
    white, raw = "contrastive-whitened:embedding=5,size=12", "contrastive-whitened:embedding=5,whitening=none"
    for euclidean, normalized in ((0, True), (1, False)):
        rest = f",temperature=0.7,euclidean={euclidean}"
        found = one.loss(raw + rest, z, seeded(1)).item()
        assert_close(found, reference.nt_xent(z.numpy(), 0.7, normalized))
        assert abs(found - one.loss(white + rest, z, seeded(1)).item()) > 1e-2
    torch.manual_seed(0)
    with_whitening = one.head(white, DIM).state_dict()
    torch.manual_seed(0)
    assert_close(one.head(raw, DIM).state_dict(), with_whitening)


def test_without_whitening_the_contrastive_loss_takes_any_batch_and_names_no_sub_batch():
    one, raw = OBJECTIVES["contrastive-whitened"], "contrastive-whitened:whitening=none,size=12,eps=0.1"
    assert (one.batch(raw, DIM), one.multiple(raw)) == (2, 1)
    assert canonical(raw) == canonical("contrastive-whitened:whitening=none")
    assert not {"size", "eps", "statistics"} & {key for key, _ in parse(raw).counting}
    assert label(raw) == "Contrastive, whitened (whitening = none)"
    with pytest.raises(ValueError, match="whitening='none' must be one of cholesky, zca, pca, standardize"):
        parse("w-mse:whitening=none")


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


# ------------------------------------------------------------------------------------------ WhitenedCSE's head


def sgw(**settings):
    """The head with float64 parameters."""
    torch.manual_seed(0)
    return WhitenedHead(DIM, "shuffled_group", **({"views": 3, "groups": 4} | settings)).double()


def test_every_view_is_whitened_by_itself_with_a_permutation_of_its_own():
    h = views(3, d=DIM)
    z = sgw().whitened(h, seeded(7))
    generator = seeded(7)
    for view in range(3):
        order = torch.randperm(DIM, generator=generator)
        white = whiten(h[view], "shuffled_group", groups=4, permutation=order, ddof=0)
        assert_close(z[view], white)
        for group in order.view(4, 3):
            assert_close(torch.cov(z[view][:, group].T, correction=0), torch.eye(3, dtype=z.dtype), atol=1e-9, rtol=0)


def test_pieces_of_the_batch_are_those_of_the_released_code():
    """Rows go sentence by sentence, so one piece holds b / v sentences with all their views."""
    h = views(3, d=DIM)
    z = sgw(chunks="batch").whitened(h, seeded(7))
    generator = seeded(7)
    rows = torch.stack([h[view, i] for i in range(BATCH) for view in range(3)])
    white = []
    for piece in rows.split(BATCH):
        order = torch.randperm(DIM, generator=generator)
        white.append(whiten(piece, "shuffled_group", groups=4, permutation=order, ddof=0))
    white = torch.cat(white)
    for i in range(BATCH):
        for view in range(3):
            assert_close(z[view, i], white[3 * i + view])


def test_one_encoding_whitened_several_times_gives_views_that_differ():
    h = views(1, d=DIM)
    z = sgw()(h, seeded(7))
    assert z.shape == (3, BATCH, DIM)
    assert_close(z, sgw()(h.expand(3, -1, -1), seeded(7)))
    assert (z[0] - z[1]).abs().max() > 0.01


@pytest.mark.parametrize("chunks", ["views", "batch"])
def test_rows_have_length_one_before_they_are_whitened_only_on_request(chunks):
    h = views(3, d=DIM)
    lengths = torch.rand(3, BATCH, 1, generator=seeded(1), dtype=torch.float64) + 0.5
    raw, unit = sgw(chunks=chunks), sgw(chunks=chunks, normalize=True)
    assert_close(unit.whitened(h, seeded(7)), raw.whitened(h / h.norm(dim=-1, keepdim=True), seeded(7)))
    assert_close(unit.whitened(h * lengths, seeded(7)), unit.whitened(h, seeded(7)))
    assert (raw.whitened(h * lengths, seeded(7)) - raw.whitened(h, seeded(7))).abs().max() > 0.1
    spec = "whitenedcse:groups=4"
    assert [OBJECTIVES["whitenedcse"].head(f"{spec}{rest}", DIM).normalize for rest in ("", ",normalize=1")] == [0, 1]


def test_the_head_is_whitening_then_a_layer_then_tanh():
    head, h = sgw(), views(3, d=DIM)
    layer = head.head.linear
    assert_close(head(h, seeded(7)), torch.tanh(head.whitened(h, seeded(7)) @ layer.weight.T + layer.bias))


def test_the_head_keeps_its_running_moments_in_its_state():
    head, h = sgw(momentum=0.9), views(3, d=DIM)
    head(h, seeded(7))
    state = {name: value.clone() for name, value in head.state_dict().items()}
    expected = head(h, seeded(8))
    resumed = sgw(momentum=0.9)
    resumed.load_state_dict(state)
    assert torch.equal(resumed(h, seeded(8)), expected)
    assert state["running.batches"] == 3
    assert not torch.allclose(sgw(momentum=0.9)(h, seeded(8)), expected)


# -------------------------------------------------------------------------------------------------- registry


def step(spec, seed=0):
    """One forward and backward pass as a trainer does it: loss, gradient on h, and the head's parameters."""
    one = objective(spec)
    torch.manual_seed(seed)
    head, predictor = one.head(spec, DIM), one.predictor(spec, DIM)
    h = views(one.positives(spec), d=DIM).float().requires_grad_()
    generator = seeded(seed)
    z = head(h, generator)
    target = z.detach() if one.needs_target() else None
    loss = one.loss(spec, predictor(z, generator) if predictor else z, generator, target=target, step=3)
    loss.backward()
    return loss, h.grad, head


def variations():
    """Every objective, and every word and switch of its parameters."""
    for name, spec in SMALL.items():
        yield spec
        for one in OBJECTIVES[name].parameters:
            values = one.choices or ((0, 1) if (one.low, one.high, type(one.default)) == (0, 1, int) else ())
            for value in values:
                if value != one.default:
                    yield f"{spec},{one.name}={value}" if ":" in spec else f"{spec}:{one.name}={value}"


@pytest.mark.parametrize(
    "spec", [*variations(), "whitenedcse:groups=4,momentum=0.5", "whitenedcse:groups=4,positives=5"]
)
def test_every_objective_trains_the_encoder_and_every_parameter_of_its_head(spec):
    loss, gradient, head = step(spec)
    assert loss.ndim == 0
    assert loss.isfinite()
    assert gradient.isfinite().all()
    assert gradient.abs().max() > 0
    assert all(one.grad is not None and one.grad.isfinite().all() for one in head.parameters())


@pytest.mark.parametrize("spec", SMALL.values())
def test_a_step_is_reproducible(spec):
    (first, gradient, _), (again, repeated, _) = step(spec), step(spec)
    assert torch.equal(first, again)
    assert torch.equal(gradient, repeated)


@pytest.mark.parametrize("spec", chain(SMALL.values(), ["w-mse:positives=4,euclidean=1,size=128,repeats=4"]))
def test_canonical_text_is_stable_and_says_the_same(spec):
    assert canonical(canonical(spec)) == canonical(spec)
    assert parse(canonical(spec)) == parse(spec)


def test_the_registry_is_the_promised_one():
    assert list(OBJECTIVES) == ["simcse", "whitenedcse", "w-mse", "contrastive-whitened", "byol", "mse"]
    for name, one in OBJECTIVES.items():
        assert one.name == name
        assert all((one.label, one.summary, one.formula, one.source))
        assert all(knob.hint for knob in one.parameters)


def test_a_parameter_depends_on_one_before_it():
    """Pages draw them in order, and draw what counts beside those already drawn."""
    for one in OBJECTIVES.values():
        names = [knob.name for knob in one.parameters]
        assert all(knob.when[0] in names[: names.index(knob.name)] for knob in one.parameters if knob.when)


@pytest.mark.parametrize("name", ["w-mse", "contrastive-whitened"])
def test_a_sub_batch_has_twice_the_embedding_size_where_none_is_given(name):
    """The paper's rule; before it was followed, specs named their size, and still say what they did."""
    one = OBJECTIVES[name]
    for embedding in (1, 32, 64, 4096):
        assert dict(parse(f"{name}:embedding={embedding}").values)["size"] == 2 * embedding
    assert canonical(name) == canonical(f"{name}:embedding=64,size=128")
    assert one.multiple(f"{name}:embedding=32") == one.batch(f"{name}:embedding=32", DIM) == 64
    assert one.multiple(f"{name}:embedding=32,size=128") == 128
    assert "size=128" in canonical(f"{name}:embedding=32,size=128")
    assert label(f"{name}:embedding=32") == f"{one.label} (embedding = 32)"
    assert label(f"{name}:embedding=32,size=128") == f"{one.label} (embedding = 32, sub-batch = 128)"


def test_the_canonical_form_of_runs_made_before_is_unchanged():
    written = "w-mse:positives=2,euclidean=0,embedding=64,hidden=1024,size=128,whitening=cholesky,eps=0,statistics=view"
    assert canonical("w-mse") == canonical(f"{written},repeats=1") == f"{written},repeats=1"


def test_a_default_that_is_a_multiple_is_one_of_the_defaults_it_depends_on():
    for one in OBJECTIVES.values():
        defaults = {knob.name: knob.default for knob in one.parameters}
        assert all(knob.usual(defaults) == knob.default for knob in one.parameters)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_defaults_work_at_the_size_of_a_small_encoder(name):
    one, dim = OBJECTIVES[name], 384
    assert one.batch(name, dim) <= 128
    h = views(one.positives(name), b=128, d=dim).float()
    z = one.head(name, dim)(h, seeded())
    prediction = one.predictor(name, dim)(z, seeded()) if one.needs_target() else z
    assert one.loss(name, prediction, seeded(), target=z if one.needs_target() else None).isfinite()


@pytest.mark.parametrize("spec", [*SMALL.values(), "w-mse:embedding=5,size=6", "whitenedcse:whitening=zca"])
def test_the_smallest_batch_is_enough_and_for_whitening_the_smallest(spec):
    one = objective(spec)
    smallest = one.batch(spec, DIM)
    h = views(one.positives(spec), b=smallest, d=DIM).float()
    head = one.head(spec, DIM)
    z = head(h, seeded())
    target = z if one.needs_target() else None
    assert one.loss(spec, z, seeded(), target=target).isfinite()
    if one.name == "whitenedcse":
        with pytest.raises(SingularBatch, match="must be more than the d="):
            head(h[:, : smallest - 1], seeded())


@pytest.mark.parametrize("whitening", ["zca", "pca"])
def test_full_whitening_with_momentum_takes_the_papers_batch(whitening):
    """WhitenedCSE's Table 3: batches of 64 in an encoder of several hundred dimensions."""
    one, spec, dim = OBJECTIVES["whitenedcse"], f"whitenedcse:whitening={whitening},momentum=0.9", 384
    assert one.batch(spec, dim) <= 64
    h = views(3, b=64, d=dim).float().requires_grad_()
    one.loss(spec, one.head(spec, dim)(h, seeded()), seeded()).backward()
    assert h.grad.isfinite().all()
    assert h.grad.abs().max() > 0
    with pytest.raises(SingularBatch, match="n=64 rows must be more than the d=384"):
        one.head(f"whitenedcse:whitening={whitening}", dim)(h, seeded())


def test_views_and_passes():
    assert objective("simcse").positives("simcse") == 2
    assert objective("whitenedcse").positives("whitenedcse:positives=4") == 4
    spec = "whitenedcse:positives=4,passes=once"
    assert (objective(spec).positives(spec), objective(spec).views(spec)) == (1, 4)
    unshuffled = "whitenedcse:passes=once,whitening=group"  # one encoding grouped twice would be the same view twice
    assert objective(unshuffled).positives(unshuffled) == 3


def test_only_byol_keeps_a_slow_copy_which_slows_down_to_a_halt():
    assert [name for name, one in OBJECTIVES.items() if one.needs_target()] == ["byol"]
    decay = [OBJECTIVES["byol"].target_decay("byol", progress) for progress in (0.0, 0.5, 1.0)]
    assert decay == pytest.approx([0.99, 0.995, 1.0])


def test_a_label_tells_what_differs_from_the_defaults():
    assert label("w-mse") == "W-MSE"
    assert label("w-mse:positives=4,statistics=joint") == "W-MSE (positives = 4, statistics = joint)"


def test_parameters_without_effect_are_not_held_against_the_dimension():
    assert "groups" not in canonical("whitenedcse:whitening=zca")
    assert OBJECTIVES["whitenedcse"].batch("whitenedcse:whitening=zca", DIM) == DIM + 1


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("infonce", "objective='infonce' must be one of simcse, whitenedcse, w-mse"),
        ("simcse:tau=1", "objective='simcse:tau=1': simcse takes temperature=, got 'tau=1'"),
        ("w-mse:positives=1", "positives=1 must lie between 2 and 16"),
        ("whitenedcse:loss=l3", "loss='l3' must be one of l1, l2, l2-printed, l2-code"),
    ],
)
def test_wrong_specs_are_named(spec, message):
    with pytest.raises(ValueError, match=message):
        objective(spec)


def test_what_does_not_fit_the_encoder_or_the_batch_is_named():
    with pytest.raises(ValueError, match="groups=128 must lie between 1 and d=12"):
        OBJECTIVES["whitenedcse"].head("whitenedcse", DIM)
    with pytest.raises(ValueError, match="size=64 gives 64 rows to whiten embedding=64 dimensions"):
        OBJECTIVES["w-mse"].batch("w-mse:size=64", DIM)
    with pytest.raises(ValueError, match="b=24 sentences must be a multiple of size=7"):
        w_mse(views(), size=7)
    with pytest.raises(ValueError, match="z must have the 3 views of whitenedcse, got 2"):
        OBJECTIVES["whitenedcse"].loss("whitenedcse", views(), seeded())
    with pytest.raises(ValueError, match="target=None: byol needs a target"):
        OBJECTIVES["byol"].loss("byol", views(), seeded())
    with pytest.raises(ValueError, match="target=given: mse takes no target"):
        OBJECTIVES["mse"].loss("mse", views(), seeded(), target=views())
    with pytest.raises(ValueError, match="objective='mse' is not simcse"):
        OBJECTIVES["simcse"].positives("mse")


def test_wrong_weights_and_views_are_named():
    with pytest.raises(ValueError, match=r"weights=\[1.0\] must hold 2 numbers above 0"):
        multi_positive_l1(views(3), weights=[1.0])
    with pytest.raises(ValueError, match="z must have at least 2 views, got 1"):
        mse(views(1))


# -------------------------------------------------------------------------------------------- precision


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_widened_before_similarities_are_divided_by_the_temperature(dtype):
    z = views(3).to(dtype)
    for loss in (lambda z: contrastive(z[:2]), multi_positive_l1, multi_positive_l2, mse, nt_xent):
        assert loss(z).dtype == torch.float32
        assert_close(loss(z), loss(z.float()))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert_close(loss(z), loss(z.float()))
