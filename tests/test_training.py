"""Laws of the trainer: seeds decide everything, a kill changes nothing, failures stop it, the best is kept."""

import itertools
import json
import re
import shutil
from dataclasses import replace

import pytest
import torch
from tiny import ARCHITECTURES, SENTENCES, build_model, build_place, untimed
from torch import nn
from transformers import AutoModel, AutoTokenizer

from whitelab import objectives
from whitelab.datasets import load
from whitelab.encoders import Encoder, load_encoder
from whitelab.evaluate import embed_pairs
from whitelab.models import ModelError
from whitelab.objectives import OBJECTIVES, Objective
from whitelab.profiles import profile
from whitelab.training import COLLAPSED, DIVERGED, StepRecord, TrainConfig, Trainer, train
from whitelab.training.batches import PART, Batches, derived, padded
from whitelab.training.checkpoints import CheckpointError, checkpoints
from whitelab.training.health import Shape, collapse
from whitelab.training.result import Scores
from whitelab.training.trainer import seeded, shares

# One of every kind there is: by batch, with running moments, sliced, with a slow copy, and the control.
SPECS = (
    "simcse",
    "whitenedcse:groups=16",
    "whitenedcse:groups=16,momentum=0.5",
    "w-mse:embedding=4,size=8,hidden=16",
    "byol:embedding=8,hidden=16",
    "mse:embedding=8,hidden=16",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    root = build_place(tmp_path_factory.mktemp("training"))
    build_model(root / "still")
    settings = json.loads((root / "still" / "config.json").read_text())
    settings |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (root / "still" / "config.json").write_text(json.dumps(settings))
    return root


@pytest.fixture(scope="module")
def pairs(place):
    return load(place / "pairs.csv")


@pytest.fixture
def config(place):
    return TrainConfig(
        model=str(place / "model"), batch=16, steps=8, lr=1e-3, warmup=2, eval_every=3, save_every=2, seed=3
    )


def weights(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def whole(config, pairs=None, folder=None, resume=False):
    """Every record and the weights at the end."""
    steps, records = train(config, SENTENCES, pairs, folder, resume), []
    while True:
        try:
            records.append(next(steps))
        except StopIteration as end:
            return untimed(records), weights(end.value.model)


def batches(place, size=10, seed=0, max_length=32, sentences=SENTENCES):
    return Batches(load_encoder(str(place / "model"), device="cpu"), sentences, size, seed, max_length)


# ------------------------------------------------------------------------------------------- what decides


@pytest.mark.parametrize("spec", SPECS)
def test_seeds_decide_everything(spec, config, pairs):
    config = replace(config, objective=spec, steps=3)
    first, second, other = (whole(one, pairs) for one in (config, config, replace(config, seed=4)))
    assert first[0] == second[0]
    assert same(first[1], second[1])
    assert first[0][1].loss != other[0][1].loss
    assert not same(first[1], other[1])


def test_torchs_own_generator_neither_decides_nor_is_disturbed(config):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = whole(replace(config, steps=2))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert whole(replace(config, steps=2))[0] == first[0]


def test_evaluation_does_not_change_training(config, pairs):
    bare, bare_weights = whole(replace(config, eval_every=0))
    watched, watched_weights = whole(replace(config, eval_every=1), pairs)
    assert [one.loss for one in bare] == [one.loss for one in watched]
    assert [one.gradient_norm for one in bare] == [one.gradient_norm for one in watched]
    assert same(bare_weights, watched_weights)
    assert all(one.spearman is None for one in bare)
    assert all(one.spearman is not None for one in watched)


@pytest.mark.parametrize("spec", SPECS)
def test_a_run_that_was_killed_goes_on_bit_for_bit(spec, config, pairs, tmp_path):
    """A copy of the folder is what a kill would have left there."""
    config = replace(config, objective=spec)
    records, final = whole(config, pairs, tmp_path / "whole")
    for record in train(config, SENTENCES, pairs, tmp_path / "killed"):
        if record.step == 6:
            shutil.copytree(tmp_path / "killed", tmp_path / "left")
    (last,) = checkpoints(tmp_path / "left" / "checkpoints")
    at = int(last.name[-6:])
    assert 0 < at < 6
    resumed, resumed_weights = whole(config, pairs, tmp_path / "left", resume=True)
    assert resumed == records[at + 1 :]
    assert same(resumed_weights, final)
    for name in ("model.safetensors", "README.md"):
        assert (tmp_path / "left/model" / name).read_bytes() == (tmp_path / "whole/model" / name).read_bytes()


def test_resuming_with_fresh_optimiser_would_give_other_weights(config, tmp_path):
    """The control of the law above: the state matters."""
    final = whole(config, None, tmp_path / "whole")[1]
    for record in train(config, SENTENCES, None, tmp_path / "left"):
        if record.step == 5:
            break
    path = checkpoints(tmp_path / "left" / "checkpoints")[-1] / "state.pt"
    state = torch.load(path, weights_only=True)
    state["optimiser"]["state"] = {}
    torch.save(state, path)
    assert not same(whole(config, None, tmp_path / "left", resume=True)[1], final)


@pytest.mark.parametrize(("long", "at"), [(-1.0, 5), (1e9, 0)])
def test_a_kill_during_a_long_evaluation_loses_its_step_alone(long, at, config, pairs, tmp_path, monkeypatch):
    """Whoever stops a run waits a minute for it, and an evaluation may take several."""
    monkeypatch.setattr("whitelab.training.loop._LONG_SECONDS", long)
    config = replace(config, save_every=100)

    def falling(self):  # so that no checkpoint is written for the best
        if self.step == 6 and not (tmp_path / "left").exists():
            shutil.copytree(tmp_path / "whole", tmp_path / "left")
        return {"spearman": -float(self.step)}

    monkeypatch.setattr(Trainer, "measure", falling)
    expected, final = whole(config, pairs, tmp_path / "whole")
    assert [one.name for one in checkpoints(tmp_path / "left" / "checkpoints")] == [f"step-{at:06d}"]
    records, resumed = whole(config, pairs, tmp_path / "left", resume=True)
    assert records == expected[at + 1 :]
    assert same(resumed, final)


def test_closing_the_generator_loses_no_step(config, pairs, tmp_path):
    steps = train(replace(config, save_every=100, eval_every=0), SENTENCES, None, tmp_path)
    taken = [next(steps) for _ in range(4)]
    steps.close()
    assert checkpoints(tmp_path / "checkpoints")[-1].name == f"step-{taken[-1].step:06d}"


def test_a_half_written_checkpoint_is_no_checkpoint(config, tmp_path):
    records = whole(replace(config, steps=2), None, tmp_path)[0]
    (tmp_path / "checkpoints" / ".0123.tmp").mkdir()
    assert [one.name for one in checkpoints(tmp_path / "checkpoints")] == ["step-000002"]
    assert whole(replace(config, steps=2), None, tmp_path, resume=True)[0] == []
    assert len(records) == 3


def test_a_checkpoint_belongs_to_its_config_and_its_sentences(config, tmp_path):
    whole(replace(config, steps=2), None, tmp_path)
    with pytest.raises(CheckpointError, match=r"lr=0.5 must be 0.001, with which the run was begun"):
        next(train(replace(config, steps=2, lr=0.5), SENTENCES, None, tmp_path, resume=True))
    with pytest.raises(CheckpointError, match="sentences must be those with which the run was begun"):
        next(train(replace(config, steps=2), SENTENCES[1:], None, tmp_path, resume=True))


# --------------------------------------------------------------------------------------------- sentences


def test_an_epoch_is_a_permutation_without_its_last_piece(place):
    found = batches(place)
    assert (found.count, found.per_epoch) == (384, 38)
    first = [row for number in range(38) for row in found.rows(number)]
    second = [row for number in range(38, 76) for row in found.rows(number)]
    assert len(set(first)) == len(set(second)) == 380
    assert first != second
    assert first[:10] != sorted(first[:10])


def test_a_batch_depends_on_its_number_and_the_seed_alone(place):
    found, again, other = batches(place), batches(place), batches(place, seed=1)
    for number in range(100):
        found.rows(number)
    assert found.rows(40) == again.rows(40)
    assert other.rows(40) != again.rows(40)


def test_equal_and_empty_sentences_count_once_and_never(place):
    found = batches(place, sentences=[*SENTENCES, SENTENCES[0], f" {SENTENCES[1]} ", "", "  "])
    assert list(found.ids) == list(batches(place).ids)
    assert found.fingerprint == batches(place).fingerprint


def test_training_cuts_sentences_and_scoring_does_not(place, config):
    found = batches(place, max_length=5)
    assert max(map(len, found.ids)) == 5
    assert found.truncated > 0
    assert batches(place).truncated == 0
    assert Trainer(replace(config, max_length=5), SENTENCES, device="cpu").encoder.max_length > 5


def test_a_corpus_is_tokenised_in_pieces_and_kept_in_four_bytes_a_token(place, monkeypatch):
    expected, cut = load_encoder(str(place / "model"), device="cpu").cut_to(5).tokenize(SENTENCES)
    sizes, real = [], Encoder.tokenize
    monkeypatch.setattr("whitelab.training.batches._AT_A_TIME", 100)
    monkeypatch.setattr(Encoder, "tokenize", lambda self, texts: (sizes.append(len(texts)), real(self, texts))[1])
    found = batches(place, max_length=5)
    assert sizes == [100, 100, 100, 84]
    assert list(found.ids) == expected
    assert found.truncated == cut > 0
    assert found.ids.nbytes == 4 * sum(map(len, expected)) + 8 * (len(expected) + 1)
    with pytest.raises(IndexError, match="i=384 must lie between 0 and 383"):
        found.ids[384]


def test_a_corpus_smaller_than_a_batch_is_refused(place):
    with pytest.raises(ValueError, match="batch=10 must lie between 2 and the corpus's 9 unique sentences"):
        batches(place, sentences=SENTENCES[:9])


def test_padding_is_on_the_right_and_masked():
    ids, mask = padded([[5, 6, 7], [8]], 1)
    assert ids.tolist() == [[5, 6, 7], [8, 1, 1]]
    assert mask.tolist() == [[1, 1, 1], [1, 0, 0]]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_padded_parts_give_the_vectors_of_single_sentences(tmp_path, architecture, monkeypatch):
    monkeypatch.setitem(PART, "cpu", 3)
    model = build_model(tmp_path / architecture, architecture)
    texts = [" ".join(SENTENCES[i : i + 1 + i % 4]) for i in range(20)]
    for pooling in load_encoder(str(model), device="cpu").poolings:
        trainer = Trainer(TrainConfig(model=str(model), pooling=pooling, batch=20, max_length=60), texts, device="cpu")
        rows = trainer.batches.rows(0)
        assert len({len(trainer.batches.ids[row]) for row in rows}) > 3
        with torch.no_grad():
            found = trainer.views(trainer.encoder.model, rows)
        expected = torch.cat([trainer.encoder.forward([trainer.batches.ids[row]])[pooling][:, -1] for row in rows])
        for view in found:
            torch.testing.assert_close(view, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_trains(tmp_path, architecture):
    model = build_model(tmp_path / architecture, architecture)
    trainer = Trainer(TrainConfig(model=str(model), batch=16, lr=1e-3, warmup=0), SENTENCES, device="cpu")
    before = weights(trainer.encoder.model)
    record = trainer.advance()
    assert not record.stop
    assert not same(weights(trainer.encoder.model), before)


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


# -------------------------------------------------------------------------------------------------- steps


def infonce(z, temperature=0.05):
    """- mean_i log softmax_j( cos(z_0i, z_1j) / t )_i, in plain loops."""
    total = 0.0
    for i in range(z.shape[1]):
        sims = [torch.dot(z[0, i], other) / (z[0, i].norm() * other.norm()) / temperature for other in z[1]]
        total = total - sims[i] + torch.stack(sims).exp().sum().log()
    return total / z.shape[1]


@pytest.fixture
def alike(monkeypatch):
    """Trainers take views that are one and the same."""
    monkeypatch.setattr(Trainer, "_check_views", lambda self: None)


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


class Identity(nn.Module):
    def forward(self, h, generator=None):
        return h


def length(z, generator, target):
    return z.square().sum(-1).mean()


@pytest.fixture
def separable(monkeypatch):
    """An objective that takes every sentence by itself."""
    made = Objective("separable", "", "", "", "", (), length, lambda dim: Identity())
    monkeypatch.setitem(OBJECTIVES, "separable", made)


def gradients(config, **changes):
    trainer = Trainer(replace(config, **changes), SENTENCES, device="cpu")
    with seeded("cpu", 0) as generator:
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
    with seeded("cpu", 0) as generator:
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


def test_scores_are_due_at_both_ends_and_in_between():
    config = TrainConfig(steps=10, eval_every=4, save_every=3)
    assert [step for step in range(11) if config.evaluates(step)] == [0, 4, 8, 10]
    assert [step for step in range(11) if replace(config, eval_every=0).evaluates(step)] == [0, 10]
    assert [step for step in range(11) if config.saves(step)] == [3, 6, 9, 10]


def test_autocast_is_near_float32_and_leaves_the_weights_in_it(config):
    config = replace(config, steps=1)
    exact, short = (
        next_record(Trainer(replace(config, precision=kind), SENTENCES, device="cpu"))
        for kind in ("float32", "bfloat16")
    )
    assert short.loss != exact.loss
    assert short.loss == pytest.approx(exact.loss, rel=0.3)
    trainer = Trainer(replace(config, precision="bfloat16"), SENTENCES, device="cpu")
    trainer.advance()
    assert {one.dtype for one in trainer.encoder.model.parameters()} == {torch.float32}


def next_record(trainer):
    return trainer.advance()


def test_different_keys_give_different_seeds():
    seeds = [derived(0, "step", 1), derived(0, "step", 2), derived(1, "step", 1), derived(0, "order", 1)]
    assert len(set(seeds)) == 4
    assert derived(0, "step", 1) == seeds[0]


# ------------------------------------------------------------------------------------------------ failures


def test_a_step_with_infinite_numbers_is_not_taken(config, pairs, tmp_path):
    config = replace(config, lr=1e30, warmup=0, clip=0.0, eval_every=100)
    records = whole(config, pairs, tmp_path)[0]
    last = records[-1]
    assert last.stop == DIVERGED
    assert last.step < config.steps
    assert "the step was not taken; lower the rate" in last.message
    assert records[0].spearman is not None
    kept = load_encoder(str(tmp_path / "model"), device="cpu")
    assert same(weights(kept.model), weights(load_encoder(config.model, device="cpu").model))


def test_numbers_that_overflow_where_they_are_scored_are_a_divergence(config, pairs):
    config = replace(config, lr=1e30, warmup=0, clip=0.0, eval_every=1)
    records = whole(config, pairs)[0]
    assert [one.stop for one in records] == ["", DIVERGED]
    assert records[-1].message.startswith("the embeddings hold NaN or infinity after this step; lower the rate")
    assert records[-1].loss is not None
    assert records[-1].spearman is None


@pytest.fixture
def half(config, monkeypatch):
    """Trainers in float16, which a CPU is slow in but has."""
    monkeypatch.setattr("whitelab.training.trainer.dtypes_for", lambda device: ("float32", "float16"))
    return lambda: Trainer(replace(config, precision="float16", steps=30), SENTENCES, device="cpu")


def test_a_gradient_that_is_never_a_number_in_float16_is_a_divergence(half, monkeypatch):
    """Its scaler passes over such steps without a word; the root has an infinite slope at 0."""
    real, trainer, resumed, well = Trainer._loss, half(), half(), half()
    monkeypatch.setattr(Trainer, "_loss", lambda self, h, *a: ((h.sum() - h.sum().detach()).abs().sqrt(), h))
    before = weights(trainer.encoder.model)
    assert not any(trainer.advance().stop for _ in range(19))
    state = trainer.state()
    last = trainer.advance()
    assert (last.stop, last.step, trainer.step) == (DIVERGED, 20, 19)
    assert last.message.startswith("the gradient was no number in 20 steps in a row, none of which was taken; lower")
    assert same(weights(trainer.encoder.model), before)
    resumed.restore(state)
    assert resumed.advance().stop == DIVERGED
    well.restore(state)
    monkeypatch.setattr(Trainer, "_loss", real)
    assert not well.advance().stop  # a gradient of numbers ends the row
    assert well.skipped == 0


def test_a_start_that_gives_no_numbers_is_no_divergence(config, pairs, tmp_path):
    """The control of the law above: nothing was trained yet, so the weights are damaged."""
    encoder = load_encoder(config.model, device="cpu")
    encoder.model.embeddings.LayerNorm.weight.data.fill_(float("nan"))
    encoder.save(tmp_path)
    with pytest.raises(ModelError, match="its weights are damaged"):
        next(train(replace(config, model=str(tmp_path)), SENTENCES, pairs, device="cpu"))


def test_the_weights_are_left_as_they_were_by_a_step_that_is_not_taken(config, monkeypatch):
    trainer = Trainer(config, SENTENCES, device="cpu")
    trainer.advance()
    before = weights(trainer.encoder.model)
    monkeypatch.setattr(Trainer, "_loss", lambda self, h, rows, generator: (h.sum() * float("nan"), h))
    record = trainer.advance()
    assert (record.stop, record.loss, trainer.step) == (DIVERGED, None, 1)
    assert record.message.startswith("the loss is nan")
    assert same(weights(trainer.encoder.model), before)


def test_nothing_to_invert_is_explained(config, monkeypatch):
    def singular(*_):
        raise objectives.SingularBatch("n=4 rows must be more than the d=8 dimensions")

    trainer = Trainer(config, SENTENCES, device="cpu")
    monkeypatch.setattr(Trainer, "_loss", singular)
    record = trainer.advance()
    assert record.stop == DIVERGED
    assert "the objective's whitening failed (n=4 rows must be more" in record.message


def pulled(z, generator, target):
    return objectives.mse(z)


@pytest.mark.parametrize("head", [lambda dim: Identity(), objectives.heads.TanhHead], ids=["no head", "a head"])
def test_pulling_alone_collapses_and_is_stopped_and_contrast_at_the_same_rate_is_not(
    config, pairs, tmp_path, monkeypatch, head
):
    monkeypatch.setitem(OBJECTIVES, "pulled", Objective("pulled", "", "", "", "", (), pulled, head))
    config = replace(config, steps=200, lr=3e-3, eval_every=0)
    fallen = whole(replace(config, objective="pulled"), pairs, tmp_path)[0]
    assert fallen[-1].stop == COLLAPSED
    assert fallen[-1].step < 200
    assert re.match(r"the (embeddings|head's outputs) collapsed: two sentences of a batch", fallen[-1].message)
    assert fallen[-1].spearman is not None
    assert (tmp_path / "model" / "model.safetensors").is_file()
    standing = whole(replace(config, steps=fallen[-1].step))[0]
    assert not standing[-1].stop


@pytest.fixture
def growing(monkeypatch):
    """Scores that grow with the steps, so that the last state is the best."""
    monkeypatch.setattr(Trainer, "measure", lambda self: {"spearman": float(self.step)} if self.evaluation else {})


def after(config, steps):
    """The weights after so many steps."""
    trainer = Trainer(config, SENTENCES, device="cpu")
    for _ in range(steps):
        trainer.advance()
    return weights(trainer.encoder.model)


def kept_model(folder):
    return weights(load_encoder(str(folder / "model"), device="cpu").model)


def not_taken(monkeypatch):
    """Step 7 has no loss."""
    real = Trainer._loss
    monkeypatch.setattr(
        Trainer, "_loss", lambda self, h, *a: (h.sum() * float("nan"), h) if self.step == 6 else real(self, h, *a)
    )


def spoilt(monkeypatch):
    """Step 7 ruins the weights, which step 8 finds."""
    real = Trainer._update

    def update(self, number):
        if number == 7:
            next(self.encoder.model.parameters()).data.fill_(float("nan"))
        return real(self, number)

    monkeypatch.setattr(Trainer, "_update", update)


def fallen(monkeypatch):
    """Step 7 collapses."""
    steps = itertools.count(1)
    monkeypatch.setattr("whitelab.training.health.collapse", lambda *_: "fallen" if next(steps) == 7 else "")


@pytest.mark.parametrize("scored", [True, False], ids=["scored", "not scored"])
@pytest.mark.parametrize(
    ("happens", "save_every"),
    [(not_taken, 100), (spoilt, 2), (spoilt, 1), (fallen, 2)],
    ids=["not taken", "spoilt", "spoilt when a checkpoint is due", "collapsed"],
)
def test_what_was_learned_before_a_stop_is_the_model(
    config, pairs, tmp_path, monkeypatch, growing, happens, save_every, scored
):
    config = replace(config, eval_every=0, save_every=save_every, steps=10)
    expected = after(config, 6)
    happens(monkeypatch)
    records = whole(config, pairs if scored else None, tmp_path)[0]
    last = records[-1]
    assert last.stop == (COLLAPSED if happens is fallen else DIVERGED)
    assert last.step in (7, 8)
    assert (last.kept, last.spearman) == (6, 6.0 if scored else None)
    assert same(kept_model(tmp_path), expected)
    card = (tmp_path / "model" / "README.md").read_text("utf-8")
    assert "for 6 of 10 steps" in card
    assert ("this model | 6 | 6.000" in card) == scored


def test_scores_after_a_stop_are_those_of_what_was_kept(config, pairs, tmp_path, monkeypatch, growing):
    """The last evaluation before a collapse had scored the last checkpoint: the model is that, the record the fall."""
    config = replace(config, eval_every=3, save_every=100)
    expected = after(config, 6)
    fallen(monkeypatch)
    last = whole(config, pairs, tmp_path)[0][-1]
    assert (last.stop, last.step, last.kept, last.spearman) == (COLLAPSED, 7, None, 7.0)
    assert same(kept_model(tmp_path), expected)


def test_a_stop_before_anything_was_learned_keeps_the_start(config, tmp_path):
    config = replace(config, lr=1e30, warmup=0, clip=0.0, save_every=1)
    last = whole(config, None, tmp_path)[0][-1]
    assert (last.stop, last.kept) == (DIVERGED, 0)
    assert same(kept_model(tmp_path), weights(load_encoder(config.model, device="cpu").model))


def watched(x):
    return {"embeddings": Shape.of(x)}


def test_a_narrow_start_is_no_collapse():
    """[CLS] states of a middle layer may have a mean cosine of 0.999999; what counts is what becomes of them."""
    narrow = torch.ones(16, 12) + 1e-3 * torch.randn(16, 12, generator=torch.Generator().manual_seed(0))
    shape = watched(narrow)
    assert shape["embeddings"].spread < 1e-5
    assert collapse(shape, shape, 16) == ""
    wide = watched(torch.randn(16, 12, generator=torch.Generator().manual_seed(0)))
    assert "mean cosine of 0.99999" in collapse(wide, shape, 16)
    assert collapse(wide, shape, 4) == ""


def test_a_line_is_a_collapse():
    generator = torch.Generator().manual_seed(0)
    line = torch.outer(torch.randn(16, generator=generator), torch.randn(12, generator=generator))
    wide = watched(torch.randn(16, 12, generator=generator))
    assert wide["embeddings"].rank > 5
    assert Shape.of(line).rank == pytest.approx(1, abs=1e-3)
    found = collapse(wide, watched(line), 16)
    assert found.startswith("the embeddings collapsed onto a line: their effective rank fell from")


@pytest.mark.parametrize("shape", [(20, 6), (6, 20)])
def test_the_shape_is_that_of_the_covariance(shape):
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    roots = torch.linalg.svdvals(x - x.mean(0))
    p = roots[roots > 1e-6] / roots.sum()
    u = x / x.norm(dim=1, keepdim=True)
    n = len(x)
    found = Shape.of(x)
    assert found.rank == pytest.approx(float((-p * p.log()).sum().exp()), rel=1e-6)
    assert found.spread == pytest.approx(1 - float((u @ u.T).sum() - n) / (n * (n - 1)))


def test_shares_of_the_spectrum():
    assert shares([8.0, 4.0, 2.0, 1.0, 1.0]) == (0.5, 0.25, 0.0625)
    assert shares([0.0, 0.0]) is None


# ------------------------------------------------------------------------------------------------ the result


def test_the_best_model_is_kept(config, tmp_path, monkeypatch, pairs):
    scores = iter([10.0, 20.0, 60.0, 50.0, 55.0, 60.0])
    monkeypatch.setattr(Trainer, "measure", lambda self: {"spearman": next(scores)})
    config = replace(config, steps=5, eval_every=1)
    kept = Trainer(replace(config, eval_every=0), SENTENCES, device="cpu")
    kept.advance()
    kept.advance()
    whole(config, pairs, tmp_path)
    assert same(weights(load_encoder(str(tmp_path / "model"), device="cpu").model), weights(kept.encoder.model))
    assert "this model | 2 | 60.000" in (tmp_path / "model" / "README.md").read_text("utf-8")


def test_scores_remember_start_best_and_last():
    scores = Scores()
    taken = [scores.take(StepRecord(step, spearman=s)) for step, s in enumerate([5.0, None, 7.0, 7.0, 6.0])]
    assert taken == [True, False, True, False, False]
    assert [one.step for one in (scores.start, scores.best, scores.last)] == [0, 2, 4]
    assert not scores.take(StepRecord(5, spearman=99.0, stop=COLLAPSED))
    assert scores.take(StepRecord(6, spearman=9.0, stop=DIVERGED, message="why", kept=5))
    assert scores.best == scores.last == StepRecord(5, spearman=9.0)
    assert Scores.of(json.loads(json.dumps(scores.as_dict()))) == scores


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_the_model_loads_by_its_path_and_scores_as_at_its_last_evaluation(config, pairs, tmp_path, pooling):
    config = replace(config, pooling=pooling, steps=4, eval_every=1, lr=3e-4)
    records = whole(config, pairs, tmp_path)[0]
    best = max(records, key=lambda one: one.spearman)
    for model, record in ((tmp_path / "model", best), (config.model, records[0])):
        found = profile(embed_pairs(load_encoder(str(model), device="cpu"), pairs, pooling)[0], (3,))
        assert found.spearman == record.spearman
        assert (found.uniformity, found.mean_cosine) == (record.uniformity, record.mean_cosine)
    assert len({one.spearman for one in records}) == 5


def test_the_card_runs_with_plain_transformers(config, tmp_path):
    """The code on the card is what a user will copy."""
    whole(replace(config, steps=2, corpus="tiny sentences"), None, tmp_path)
    text = (tmp_path / "model" / "README.md").read_text("utf-8")
    code = text.split("```python\n")[1].split("```")[0].replace("path/to/this/folder", str(tmp_path / "model"))
    names = {}
    exec(code, names)
    encoder = load_encoder(str(tmp_path / "model"), device="cpu")
    ids, _ = encoder.tokenize(["A man plays a guitar.", "Someone makes music."])
    expected = torch.cat([encoder.forward([one])["mean"][:, -1] for one in ids])
    torch.testing.assert_close(names["vectors"].detach(), expected, rtol=1e-4, atol=1e-5)
    assert "384 unique sentences, labels unused: tiny sentences" in text
    assert "It was not scored." in text
    assert "look it up before you share" in text
    assert AutoTokenizer.from_pretrained(tmp_path / "model").model_max_length == encoder.tokenizer.model_max_length


def test_sentences_that_are_also_scored_are_counted(config, pairs):
    assert Trainer(config, SENTENCES, pairs, device="cpu").seen == len(set(pairs.sentences) & set(SENTENCES)) > 0
    assert Trainer(config, SENTENCES, device="cpu").seen == 0


# --------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch": 1}, "batch=1 must be a whole number of at least 2"),
        ({"steps": 0}, "steps=0 must be a whole number of at least 1"),
        ({"lr": -1.0}, "lr=-1.0 must be a number of at least 0"),
        ({"clip": float("inf")}, "clip=inf must be a number of at least 0"),
        ({"head_lr": float("nan")}, "head_lr=nan must be a number of at least 0"),
        ({"dropout": -0.1}, "dropout=-0.1 must be a number of at least 0"),
        ({"dropout": 1.0}, "dropout=1.0 must be below 1"),
        ({"pooling": "max"}, "pooling='max' must be one of mean, cls, last"),
        ({"decay": "cosine"}, "decay='cosine' must be one of linear, constant"),
        ({"precision": "int8"}, "precision='int8' must be one of float32, bfloat16, float16"),
        ({"objective": "triplet"}, "objective='triplet' must be one of simcse"),
    ],
)
def test_a_config_is_checked_at_the_door(changes, message):
    with pytest.raises(ValueError, match=message):
        TrainConfig(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"objective": "w-mse:embedding=4,size=32,hidden=8"}, "batch=16 must be at least 32 for w-mse"),
        ({"objective": "w-mse:embedding=4,size=12,hidden=8"}, "b=16 sentences must be a multiple of size=12"),
        ({"precision": "float16"}, "precision='float16' must be one of float32, bfloat16"),
        ({"pooling": "last"}, "pooling='last' must be mean or cls for model='model'"),
        ({"model": "sif:bundled"}, "model='sif:bundled' cannot be trained: it is a table of word embeddings"),
        ({"max_length": 5000}, "max_length=5000 must lie between 3 and the model's limit"),
        ({"batch": 500}, "batch=500 must lie between 2 and the corpus's 384 unique sentences"),
    ],
)
def test_what_does_not_fit_is_said_before_the_first_record(config, changes, message):
    with pytest.raises(ValueError, match=message):
        next(train(replace(config, **changes), SENTENCES, device="cpu"))


def test_configs_and_records_survive_json(config):
    config = replace(config, objective="w-mse:embedding=4,size=8", head_lr=0.1)
    assert TrainConfig.of(json.loads(json.dumps(config.as_dict()))) == config
    record = StepRecord(3, 0.5, 1e-4, 0.1, 2.0, 50.0, spectrum=(0.5, 0.25))
    assert StepRecord.of(json.loads(json.dumps(record.as_dict()))) == record
    assert StepRecord(0).as_dict() == {"step": 0, "loss": None, "lr": None, "seconds": 0.0, "gradient_norm": None}
    with pytest.raises(ValueError, match="config has colour, which must be among"):
        TrainConfig.of({"colour": "red"})
