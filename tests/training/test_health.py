"""What stops a run, what does not, and what is kept of it."""

import itertools
import re
from dataclasses import replace

import pytest
import torch
from tiny import SENTENCES

from whitelab.encoding.encoders import load_encoder
from whitelab.encoding.names import ModelError
from whitelab.training import COLLAPSED, DIVERGED, Trainer, objectives, train
from whitelab.training.health import RANK_LEFT, BatchShape, collapse
from whitelab.training.objectives import OBJECTIVES, Objective
from whitelab.training.trainer import shares

from .doing import Identity, same, weights, whole


def test_a_step_with_infinite_numbers_is_not_taken(config, pairs, tmp_path):
    config = replace(config, lr=1e30, warmup=0, clip=0.0, eval_every=100)
    records = whole(config, pairs, tmp_path)[0]
    last = records[-1]
    assert last.stop == DIVERGED
    assert last.step < config.steps
    assert last.message.endswith("the step was not taken; lower the rate or raise the warm-up")
    assert records[0].spearman is not None
    kept = load_encoder(str(tmp_path / "model"), device="cpu")
    assert same(weights(kept.model), weights(load_encoder(config.model, device="cpu").model))


@pytest.mark.parametrize("spec", ["w-mse:embedding=4,size=16,hidden=16", "byol:embedding=8,hidden=16", "simcse"])
def test_a_head_whose_outputs_overflow_is_a_divergence(config, spec):
    """A whitening refuses them, which is no fault of an argument."""
    records = whole(replace(config, objective=spec, head_lr=1e38, warmup=0))[0]
    assert (records[-1].step, records[-1].stop) == (2, DIVERGED)
    assert "the loss is nan" in records[-1].message


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
    assert last.message.endswith("or choose precision='float32'")
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
    assert ("trained encoder | 6 | 6.000" in card) == scored


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
    return {"embeddings": BatchShape.of(x)}


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
    assert BatchShape.of(line).rank == pytest.approx(1, abs=1e-3)
    found = collapse(wide, watched(line), 16)
    assert found.startswith("the embeddings collapsed onto a line: their effective rank fell from")


@pytest.mark.parametrize("shape", [(20, 6), (6, 20)])
def test_the_shape_is_that_of_the_covariance(shape):
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    roots = torch.linalg.svdvals(x - x.mean(0))
    p = roots[roots > 1e-6] / roots.sum()
    u = x / x.norm(dim=1, keepdim=True)
    n = len(x)
    found = BatchShape.of(x)
    assert found.rank == pytest.approx(float((-p * p.log()).sum().exp()), rel=1e-6)
    assert found.spread == pytest.approx(1 - float((u @ u.T).sum() - n) / (n * (n - 1)))


@pytest.mark.parametrize("noise", [0.0, 1e-4, 1e-2, 0.1, 1.0])
def test_a_rank_without_eigenvalues_is_at_most_the_rank_and_tells_a_collapse_as_well(noise):
    draw = torch.Generator().manual_seed(1)
    line = torch.randn(64, 1, generator=draw) * torch.randn(1, 48, generator=draw)
    x = line + noise * torch.randn(64, 48, generator=draw)
    exact, rough = BatchShape.of(x), BatchShape.of(x, at_least=True)
    assert rough.spread == exact.spread
    assert rough.rank <= exact.rank
    assert (rough.rank < RANK_LEFT) == (exact.rank < RANK_LEFT)
    assert rough.rank == exact.rank or rough.rank >= RANK_LEFT


def test_shares_of_the_spectrum():
    assert shares([8.0, 4.0, 2.0, 1.0, 1.0]) == (0.5, 0.25, 0.0625)
    assert shares([0.0, 0.0]) is None
