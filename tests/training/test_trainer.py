"""Steps equal a plain loop, and the views of a sentence differ by what they should."""

import re
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from processes import ROOT, run_python
from tiny import ARCHITECTURES, SENTENCES, build_model
from torch import nn
from transformers import AutoModel
from transformers.utils import logging

from tests.conftest import float64_by_default
from whitelab.training import TrainConfig, Trainer, objectives
from whitelab.training.objectives import OBJECTIVES, Objective
from whitelab.training.trainer import seeded, start

from .doing import SPECS, Identity, batches, same, weights


def infonce(z, temperature=0.05):
    """- mean_i log softmax_j( cos(z_0i, z_1j) / t )_i, in plain loops."""
    total = 0.0
    for i in range(z.shape[1]):
        sims = [torch.dot(z[0, i], other) / (z[0, i].norm() * other.norm()) / temperature for other in z[1]]
        total = total - sims[i] + torch.stack(sims).exp().sum().log()
    return total / z.shape[1]


def test_steps_equal_a_plain_loop_without_dropout(place, config, alike):
    """One sentence at a time, AdamW and the schedule by hand."""
    config = replace(config, model=str(place / "still"), steps=3, weight_decay=0.1, clip=0.5, head_lr=2e-3)
    trainer = Trainer(config, SENTENCES, device="cpu")
    network = AutoModel.from_pretrained(place / "still")
    network.load_state_dict(trainer.encoder.model.state_dict())
    head = nn.Linear(32, 32)
    head.load_state_dict(trainer.top["head"].linear.state_dict())
    named = [(one, 1e-3) for one in network.parameters()] + [(one, 2e-3) for one in head.parameters()]
    moments = [(torch.zeros_like(one), torch.zeros_like(one)) for one, _ in named]
    for step in (1, 2, 3):
        rows = trainer.batches.rows(step - 1)
        h = torch.stack([network(torch.tensor([trainer.batches.ids[r]])).last_hidden_state[0].mean(0) for r in rows])
        loss = infonce(torch.tanh(head(h)).expand(2, -1, -1))
        for one, _ in named:
            one.grad = None
        loss.backward()
        norm = torch.stack([one.grad.norm() for one, _ in named if one.grad is not None]).norm()
        factor = {1: 0.5, 2: 1.0, 3: 1.0}[step]
        with torch.no_grad():
            for (one, rate), (m, v) in zip(named, moments, strict=True):
                if one.grad is None:
                    continue
                grad = one.grad * min(1.0, 0.5 / (norm + 1e-6))
                one.mul_(1 - rate * factor * (0.1 if one.ndim > 1 else 0.0))
                m.mul_(0.9).add_(0.1 * grad)
                v.mul_(0.999).add_(0.001 * grad**2)
                one.sub_(rate * factor * (m / (1 - 0.9**step)) / ((v / (1 - 0.999**step)).sqrt() + 1e-8))
        record = trainer.advance()
        assert record.loss == pytest.approx(loss.item(), rel=1e-4)
        assert record.gradient_norm == pytest.approx(norm.item(), rel=1e-3)
        assert record.lr == pytest.approx(1e-3 * factor)
    expected = network.state_dict()
    for name, value in trainer.encoder.model.state_dict().items():
        if not name.endswith("key.bias"):  # it moves all logits of a query alike: its gradient is rounding
            torch.testing.assert_close(
                value, expected[name], rtol=0, atol=2e-4, msg=lambda text, n=name: f"{n}: {text}"
            )


def length(z, generator, target):
    return z.square().sum(-1).mean()


@pytest.fixture
def separable(monkeypatch):
    """An objective that takes every sentence by itself."""
    made = Objective("separable", "", "", "", "", (), length, lambda dim: Identity())
    monkeypatch.setitem(OBJECTIVES, "separable", made)


def gradients(config, **changes):
    trainer = Trainer(replace(config, **changes), SENTENCES, device="cpu")
    with seeded(0) as generator:
        loss, _ = trainer._backward(1, generator)
    found = {name: one.grad for name, one in trainer.encoder.model.named_parameters() if one.grad is not None}
    return loss, found


def test_accumulation_is_a_larger_batch_where_sentences_are_taken_by_themselves(place, config, separable, alike):
    config = replace(config, model=str(place / "still"), objective="separable")
    one, two = gradients(config, batch=32), gradients(config, batch=16, accumulation=2)
    assert one[0] == pytest.approx(two[0], rel=1e-5)
    for name, grad in one[1].items():
        torch.testing.assert_close(grad, two[1][name], rtol=1e-3, atol=1e-4)


def test_accumulation_averages_whole_batches_and_is_no_larger_batch_for_a_contrast(place, config, alike):
    config = replace(config, model=str(place / "still"))
    large, (loss, grads) = gradients(config, batch=32), gradients(config, batch=16, accumulation=2)
    assert abs(large[0] - loss) > 0.1
    trainer = Trainer(config, SENTENCES, device="cpu")
    with seeded(0) as generator:
        losses = [
            trainer._loss(trainer.views(trainer.encoder.model, rows), rows, generator)[0]
            for rows in (trainer.batches.rows(0), trainer.batches.rows(1))
        ]
    assert loss == pytest.approx(sum(one.item() for one in losses) / 2, rel=1e-5)
    (sum(losses) / 2).backward()
    for name, one in trainer.encoder.model.named_parameters():
        if one.grad is not None:
            torch.testing.assert_close(one.grad, grads[name], rtol=1e-3, atol=1e-4)


def test_the_slow_copy_follows_the_parameters(config):
    trainer = Trainer(replace(config, objective="byol:embedding=8,hidden=16,decay=0.9"), SENTENCES, device="cpu")
    before = weights(trainer.target["encoder"])
    trainer.advance()
    kept = 1 - (1 - 0.9) * (torch.cos(torch.tensor(torch.pi / 8)).item() + 1) / 2
    name = "encoder.layer.0.output.dense.weight"
    now, online = weights(trainer.target["encoder"])[name], weights(trainer.encoder.model)[name]
    torch.testing.assert_close(now, kept * before[name] + (1 - kept) * online)
    assert not torch.equal(online, before[name])
    assert not any(one.requires_grad for one in trainer.target.parameters())


def test_the_rate_rises_and_falls_and_is_never_zero():
    config = TrainConfig(steps=10, warmup=4)
    assert [config.rate(step) for step in range(1, 11)] == pytest.approx(
        [0.25, 0.5, 0.75, 1, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6]
    )
    assert [replace(config, decay="constant").rate(step) for step in (1, 4, 10)] == [0.25, 1, 1]
    assert replace(config, warmup=0).rate(1) == 1
    assert replace(config, warmup=20).rate(10) == 0.5


def test_a_run_that_is_all_warm_up_says_how_far_its_rate_comes(config):
    for warmup, said in ((6, "the warm-up of 6 steps is longer than the run, which ends at 50 % of its rate"), (3, "")):
        short = replace(config, steps=3, warmup=warmup, lr=1e-3)
        assert Trainer(short, SENTENCES, device="cpu").start().note == said
    for steps, percent in ((1, 1), (999, 99)):  # of 1,000: neither none of it nor all
        assert replace(config, steps=steps, warmup=1000).warming.endswith(f"ends at {percent} % of its rate")


def test_scores_are_due_at_both_ends_and_in_between():
    config = TrainConfig(steps=10, eval_every=4, save_every=3)
    assert [step for step in range(11) if config.evaluates(step)] == [0, 4, 8, 10]
    assert [step for step in range(11) if replace(config, eval_every=0).evaluates(step)] == [0, 10]
    assert [step for step in range(11) if config.saves(step)] == [3, 6, 9, 10]


def test_autocast_is_near_float32_and_leaves_the_weights_in_it(config):
    config = replace(config, steps=1)
    exact, short = (
        Trainer(replace(config, precision=kind), SENTENCES, device="cpu").advance() for kind in ("float32", "bfloat16")
    )
    assert short.loss != exact.loss
    assert short.loss == pytest.approx(exact.loss, rel=0.3)
    trainer = Trainer(replace(config, precision="bfloat16"), SENTENCES, device="cpu")
    trainer.advance()
    assert {one.dtype for one in trainer.encoder.model.parameters()} == {torch.float32}


def two_losses(config, spec):
    trainer = Trainer(replace(config, objective=spec, steps=2), SENTENCES, device="cpu")
    return [trainer.advance().loss for _ in range(2)]


@pytest.mark.parametrize("spec", SPECS)
def test_the_type_that_torch_makes_by_default_changes_no_step(config, spec):
    usual = two_losses(config, spec)
    with float64_by_default():
        assert two_losses(config, spec) == usual


ON = torch.inference_mode, torch.no_grad, lambda: torch.autocast("cpu", dtype=torch.bfloat16)


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("spec", ["simcse", "byol:embedding=8,hidden=16"])
def test_what_the_caller_has_on_changes_no_step(config, spec, on):
    usual = two_losses(config, spec)
    with on():
        assert two_losses(config, spec) == usual


def test_a_state_that_is_restored_in_inference_mode_is_trained_on(config):
    states = []
    for on in (nullcontext, torch.inference_mode):
        first = Trainer(config, SENTENCES, device="cpu")
        first.advance()
        with on():
            second = Trainer(config, SENTENCES, device="cpu")
            second.restore(first.state())
        states.append(second.advance().loss)
    assert states[0] == states[1]


def test_views_differ_by_dropout_alone(config):
    trainer = Trainer(config, SENTENCES, device="cpu")
    rows = trainer.batches.rows(0)
    with torch.no_grad():
        still = trainer.views(trainer.encoder.model, rows)
        noisy = trainer.views(trainer.encoder.model.train(), rows)
    torch.testing.assert_close(still[0], still[1])
    assert (noisy[0] - noisy[1]).abs().max() > 1e-2


ALIKE = ("simcse", "w-mse:embedding=4,size=8,hidden=16", "byol:embedding=8,hidden=16", "mse:embedding=8,hidden=16")


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("spec", ALIKE)
def test_a_start_without_dropout_is_refused_where_nothing_else_tells_views_apart(place, config, spec, precision):
    """As ModernBERT's: W-MSE and MSE would be 0 and stay so, SimCSE would have no positives."""
    config = replace(config, model=str(place / "still"), objective=spec, precision=precision)
    label = re.escape(objectives.label(spec))
    expected = f"model='still' has no dropout, by which alone the views of a sentence differ in {label}: .* set dropout"
    with pytest.raises(ValueError, match=expected):
        Trainer(config, SENTENCES, device="cpu")
    with pytest.raises(ValueError, match=r"model='model' has none with dropout=0.0, by which alone"):
        Trainer(replace(config, model=str(place / "model"), dropout=0.0), SENTENCES, device="cpu")
    assert not Trainer(replace(config, dropout=0.1), SENTENCES, device="cpu").advance().stop


def test_a_head_that_draws_tells_views_apart_without_dropout(place, config):
    """The shuffled groups of WhitenedCSE are its point; without the shuffle its views are one."""
    config = replace(config, model=str(place / "still"), batch=48, objective="whitenedcse:groups=16")
    assert not Trainer(config, SENTENCES, device="cpu").advance().stop
    with pytest.raises(ValueError, match="has no dropout"):
        Trainer(replace(config, objective="whitenedcse:whitening=zca"), SENTENCES, device="cpu")


def test_a_head_that_tells_the_views_of_a_few_sentences_apart_does_not_do(place, config):
    """Of 50 sentences in three pieces all but two have their views in one, under one permutation and one map."""
    config = replace(config, model=str(place / "still"), batch=50, objective="whitenedcse:groups=16,chunks=batch")
    with pytest.raises(ValueError, match="has no dropout"):
        Trainer(config, SENTENCES, device="cpu")
    assert not Trainer(replace(config, dropout=0.1), SENTENCES, device="cpu").advance().stop


def test_a_dropout_that_is_set_is_the_networks_in_training_alone(place, config):
    own, none, given = (
        Trainer(replace(config, model=str(place / model), dropout=p, steps=1), SENTENCES, device="cpu")
        for model, p in (("model", None), ("still", 0.1), ("model", 0.1))
    )
    assert own.advance().loss == none.advance().loss == given.advance().loss  # 0.1 is what the model has itself
    assert Trainer(replace(config, dropout=0.3), SENTENCES, device="cpu").advance().loss != own.advance().loss
    ids = own.batches.ids[0]
    still, set_ = (
        Trainer(replace(config, model=str(place / "model"), dropout=p), SENTENCES, device="cpu") for p in (None, 0.9)
    )
    torch.testing.assert_close(still.encoder.forward([ids])["mean"], set_.encoder.forward([ids])["mean"])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_dropout_that_is_set_is_that_of_every_layer(tmp_path, architecture, alike):
    """Also where it is no module but a number that attention takes, as in T5."""
    config = TrainConfig(model=str(build_model(tmp_path / architecture, architecture)), batch=16, dropout=0.0)
    trainer = Trainer(config, SENTENCES, device="cpu")
    network, rows = trainer.encoder.model, trainer.batches.rows(0)
    with torch.no_grad():
        expected, found = trainer.views(network, rows), trainer.views(network.train(), rows)
    assert torch.equal(found, expected)


def test_an_encoder_that_draws_all_the_same_is_refused_where_there_is_to_be_no_dropout(place, config, monkeypatch):
    def noisy(*given):
        encoder = start(*given)
        encoder.model.embeddings.register_forward_hook(lambda module, _, out: out + torch.rand_like(out))
        return encoder

    monkeypatch.setattr("whitelab.training.trainer.start", noisy)
    with pytest.raises(ValueError, match=r"dropout=0.0 cannot be had of model='model': in training it draws"):
        Trainer(replace(config, dropout=0.0), SENTENCES, device="cpu")
    assert not Trainer(replace(config, dropout=0.1), SENTENCES, device="cpu").advance().stop


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_trains(tmp_path, architecture):
    model = build_model(tmp_path / architecture, architecture)
    trainer = Trainer(TrainConfig(model=str(model), batch=16, lr=1e-3, warmup=0), SENTENCES, device="cpu")
    before = weights(trainer.encoder.model)
    record = trainer.advance()
    assert not record.stop
    assert not same(weights(trainer.encoder.model), before)


def test_transformers_is_quiet_while_it_trains(config):
    trainer, heard = Trainer(config, SENTENCES, device="cpu"), []
    trainer.encoder.model.register_forward_hook(lambda *_: heard.append(logging.get_verbosity()))
    trainer.advance()
    assert set(heard) == {logging.ERROR}


def test_training_cuts_sentences_and_scoring_does_not(place, config):
    found = batches(place, max_length=5)
    assert max(map(len, found.ids)) == 5
    assert found.truncated > 0
    assert batches(place).truncated == 0
    trainer = Trainer(replace(config, max_length=5), SENTENCES, device="cpu")
    assert trainer.encoder.max_length > 5
    assert f"{found.truncated} sentences were cut to 5 tokens" in trainer.start().note
    assert "cut" not in Trainer(config, SENTENCES, device="cpu").start().note


ON_A_GPU = """
import sys
from dataclasses import replace
from tiny import SENTENCES
from whitelab.training import TrainConfig, Trainer
Trainer._check_views = lambda self: None  # which refuses what cannot learn
for objective in ("simcse", "whitenedcse:groups=4", "byol:embedding=8"):
    config = TrainConfig(objective=objective, model=sys.argv[1], batch=32, steps=3, dropout=0.0, eval_every=0)
    runs = [Trainer(config, SENTENCES, device="cpu")]
    runs += [Trainer(replace(config, precision=one), SENTENCES, device="cuda") for one in sys.argv[2:]]
    for _ in range(3):
        records = [one.advance() for one in runs]
        print(*(record.stop or record.loss for record in records))
"""


@pytest.mark.cuda
def test_the_first_steps_on_a_gpu_are_those_of_the_cpu(place):
    """Without dropout, which draws other numbers there; in a process where no other device is pretended to torch."""
    precisions = ("float32", "bfloat16", "float16")
    run = run_python(ON_A_GPU, place / "model", *precisions, PYTHONPATH=str(ROOT / "tests" / "helpers"))
    assert run.returncode == 0, run.stderr
    steps = [[float(one) for one in line.split()] for line in run.stdout.splitlines()]
    assert len(steps) == 9
    for wanted, exact, *rough in steps:
        assert exact == pytest.approx(wanted, rel=1e-3, abs=1e-4)
        assert rough == pytest.approx([wanted] * 2, rel=0.1, abs=0.01)
