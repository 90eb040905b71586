"""What the registry of objectives promises: every spec trains, says the same twice, and is refused by name."""

from itertools import chain

import pytest
import reference
import torch
from torch.testing import assert_close

from whitelab.training.config import TrainConfig
from whitelab.training.objectives import (
    OBJECTIVES,
    SingularBatch,
    canonical,
    label,
    objective,
    parse,
    w_mse,
)
from whitelab.whitening import WHITENERS

from .doing import DIM, seeded, views

# Every objective with parameters that 24 sentences in 12 dimensions can have.
SMALL = {
    "simcse": "simcse",
    "whitenedcse": "whitenedcse:groups=4",
    "w-mse": "w-mse:embedding=5,hidden=16,size=12,repeats=2",
    "contrastive-whitened": "contrastive-whitened:embedding=5,hidden=16,size=12",
    "byol": "byol:embedding=5,hidden=16",
    "barlow": "barlow:embedding=5,hidden=16",
    "vicreg": "vicreg:embedding=5,hidden=16",
    "mse": "mse:embedding=5,hidden=16",
}


@pytest.mark.parametrize("name", ["simcse", "whitenedcse", "w-mse"])
def test_an_objective_says_where_its_defaults_are_not_its_papers(name):
    departs, defaults = OBJECTIVES[name].departs, TrainConfig(name)
    assert departs.endswith(".")
    assert f"{defaults.lr:g}" in departs
    if name != "w-mse":
        assert f"here the {defaults.pooling}" in departs
    values = dict(parse(name).values)
    if name == "whitenedcse":
        assert f"{values['groups']} are its released code's" in departs
        assert (values["chunks"], values["detach"]) == ("views", 0)
    if name == "w-mse":
        assert values["statistics"] == "view"


def step(spec, seed=0):
    """One forward and backward pass as a trainer does it: loss, gradient on h, and the head's parameters."""
    one = objective(spec)
    torch.manual_seed(seed)
    head, predictor = one.head(spec, DIM), one.predictor(spec, DIM)
    h = views(one.positives(spec), d=DIM).float().requires_grad_()
    generator = seeded(seed)
    z = head(h, generator)
    target = z.detach() if one.needs_target() else None
    loss = one.loss(spec, predictor(z, generator) if predictor else z, generator, target=target)
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
    assert list(OBJECTIVES) == [
        "simcse",
        "whitenedcse",
        "w-mse",
        "contrastive-whitened",
        "byol",
        "barlow",
        "vicreg",
        "mse",
    ]
    for name, one in OBJECTIVES.items():
        assert one.name == name
        assert all((one.label, one.summary, one.formula, one.source))
        assert all(knob.hint for knob in one.parameters)


def test_a_letter_over_a_knob_is_followed_by_what_it_is_there():
    """One letter is an exponent of a whitening and a deviation of VICReg."""
    families = (WHITENERS, OBJECTIVES)
    for one in (one for family in families for entry in family.values() for one in entry.parameters):
        letter, _, noun = one.title.partition(", ")
        assert noun not in ("", one.label) if len(one.label) == 1 else not noun
        assert letter == one.label or len(letter) > 1  # a capital μ is another letter
    titles = [{one.name: one.title for one in entry.parameters} for entry in (WHITENERS["soft"], OBJECTIVES["vicreg"])]
    assert [one["gamma"] for one in titles] == ["γ, exponent", "γ, deviation"]


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


def test_one_encoding_in_pieces_of_the_batch_fits_no_batch():
    """Of 64 sentences 62 would have three equal views; the paper shuffles every view, its code encodes each."""
    with pytest.raises(ValueError, match="passes=once must not go with chunks=batch"):
        objective("whitenedcse").batch("whitenedcse:passes=once,chunks=batch", 768)
    for spec in ("whitenedcse:passes=once", "whitenedcse:chunks=batch"):
        assert objective(spec).batch(spec, 768) == 7


def test_only_byol_keeps_a_slow_copy_which_slows_down_to_a_halt():
    assert [name for name, one in OBJECTIVES.items() if one.needs_target()] == ["byol"]
    decay = [OBJECTIVES["byol"].target_decay("byol", progress) for progress in (0.0, 0.5, 1.0)]
    assert decay == pytest.approx([0.99, 0.995, 1.0])


def test_the_penalties_have_their_papers_weights_and_a_head_of_two_hidden_layers():
    z = views(d=7)
    assert_close(OBJECTIVES["barlow"].loss("barlow", z, seeded()).item(), reference.barlow(z.numpy(), 0.005))
    assert_close(OBJECTIVES["vicreg"].loss("vicreg", z, seeded()).item(), reference.vicreg(z.numpy(), 25, 25, 1, 1))
    other = "vicreg:invariance=3,variance=7,covariance=2,gamma=4"
    assert_close(OBJECTIVES["vicreg"].loss(other, z, seeded()).item(), reference.vicreg(z.numpy(), 3, 7, 2, 4))
    for name in ("barlow", "vicreg"):
        widths = [
            one.out_features
            for one in OBJECTIVES[name].head(SMALL[name], DIM).layers
            if hasattr(one, "weight") and one.weight.ndim == 2
        ]
        assert widths == [16, 16, 5]


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
