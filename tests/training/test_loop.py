"""A run from its first step to its last: seeds decide everything, a kill changes nothing."""

import hashlib
import json
import os
import shutil
from dataclasses import replace

import pytest
import torch
from families import build_family
from tiny import SENTENCES, build_model

from whitelab.datasets.pairs import hash_texts
from whitelab.encoding.embed import embed
from whitelab.encoding.encoders import load_encoder
from whitelab.encoding.names import ModelError
from whitelab.store.embedding_store import Store
from whitelab.training import Trainer, train
from whitelab.training.checkpoints import CheckpointError, checkpoints

from .doing import SPECS, ended, same, whole


def test_seeds_decide_everything(config, pairs):
    config = replace(config, objective=SPECS[0], steps=3)
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


def test_a_start_that_could_not_be_written_is_refused_before_a_record(config, tmp_path):
    config = replace(config, model=str(build_family(tmp_path / "start", "BART")))
    with pytest.raises(ModelError, match="cannot be saved: transformers has no encoder-only"):
        train(config, SENTENCES, None, tmp_path / "run")
    assert next(train(config, SENTENCES)).step == 0  # in memory nothing is written


def test_vectors_of_what_was_learned_are_not_those_of_the_start_in_a_store(config, pairs, tmp_path):
    store, before = Store(tmp_path), load_encoder(config.model)
    raw, _ = embed(before, SENTENCES, store=store)
    _, learned = ended(train(replace(config, steps=2), SENTENCES))
    found, report = embed(learned, SENTENCES, store=store)
    assert report.reused == 0
    assert not torch.allclose(found[-1], raw[-1], atol=1e-3)
    torch.testing.assert_close(embed(learned, SENTENCES, store=store)[0], found)
    torch.testing.assert_close(embed(before, SENTENCES, store=store)[0], raw)


@pytest.mark.parametrize("there", ["model", "checkpoints/step-000009"])
def test_what_no_run_has_written_is_not_replaced(there, config, tmp_path):
    (tmp_path / there).mkdir(parents=True)
    (tmp_path / there / "thesis.txt").write_text("mine")
    for resume in (False, True):
        with pytest.raises(ValueError, match=f"holds {there}, which no run has written"):
            train(config, SENTENCES, None, tmp_path, resume)
    assert (tmp_path / there / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize("resume", [False, True])
def test_what_is_in_the_way_of_a_run_is_said_at_once(resume, config, tmp_path):
    file, named, empty = (tmp_path / name for name in ("file", "named", "empty"))
    file.write_text("mine")
    named.mkdir()
    for name in ("model", "checkpoints"):
        (named / name).write_text("mine")
        with pytest.raises(ValueError, match=f"holds {name}, which no run has written"):
            train(config, SENTENCES, None, named, resume)
        (named / name).unlink()
    for folder in (file, file / "below"):
        with pytest.raises(ValueError, match="must be a folder, and a file is there"):
            train(config, SENTENCES, None, folder, resume)
    (empty / "checkpoints" / "step-000001").mkdir(parents=True)
    with pytest.raises(ValueError, match="holds checkpoints/step-000001, which no run has written"):
        train(config, SENTENCES, None, empty, resume)


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


def test_a_kill_while_the_model_is_replaced_loses_no_model_and_leaves_nothing(config, tmp_path, monkeypatch):
    config, replaced = replace(config, steps=4), os.replace

    def copied(source, target):
        replaced(source, target)
        if target.parent.name == "old":
            shutil.copytree(tmp_path / "whole", tmp_path / "left", dirs_exist_ok=True)

    monkeypatch.setattr(os, "replace", copied)
    monkeypatch.setattr(Trainer, "measure", lambda self: {"spearman": 9.0 - abs(self.step - 3)})
    config = replace(config, eval_every=3, save_every=9)
    whole(config, None, tmp_path / "whole")
    (old,) = (tmp_path / "left").glob(".*/old/model")
    before = (old / "model.safetensors").read_bytes()
    (tmp_path / "left" / "checkpoints" / f".{'a' * 32}.tmp").mkdir()
    assert not (tmp_path / "left" / "model").exists()
    train(config, SENTENCES, None, tmp_path / "left", resume=True)
    assert (tmp_path / "left" / "model" / "model.safetensors").read_bytes() == before
    assert sorted(one.name for one in (tmp_path / "left").rglob(".*")) == []


def test_a_checkpoint_belongs_to_its_config_and_its_sentences(config, tmp_path):
    whole(replace(config, steps=2), None, tmp_path)
    with pytest.raises(CheckpointError, match=r"lr=0.5 must be 0.001, with which the run was begun"):
        next(train(replace(config, steps=2, lr=0.5), SENTENCES, None, tmp_path, resume=True))
    with pytest.raises(CheckpointError, match="sentences must be those with which the run was begun"):
        next(train(replace(config, steps=2), SENTENCES[1:], None, tmp_path, resume=True))


def test_a_checkpoint_belongs_to_its_scored_pairs(config, pairs, tmp_path):
    """The best of one set and the best of another are no two scores to choose from."""
    config = replace(config, steps=2)
    whole(config, pairs, tmp_path)
    for other in (None, replace(pairs, gold=pairs.gold[::-1].copy())):
        with pytest.raises(CheckpointError, match="evaluation must be the pairs with which the run was begun"):
            train(config, SENTENCES, other, tmp_path, resume=True)


def test_a_run_goes_on_that_was_begun_when_fingerprints_held_the_name_of_a_lone_subset(config, pairs, tmp_path):
    config = replace(config, steps=2)
    assert len(pairs.subset_names) == 1
    whole(config, pairs, tmp_path)
    earlier, state = hashlib.sha256(), checkpoints(tmp_path / "checkpoints")[-1] / "state.pt"
    for texts in (pairs.first, pairs.second, pairs.subset_names):
        hash_texts(earlier, texts)
    earlier.update(pairs.gold.tobytes() + pairs.subset.tobytes())
    held = torch.load(state, weights_only=True)
    torch.save(held | {"begun_with": held["begun_with"] | {"evaluation": earlier.hexdigest()}}, state)
    assert whole(config, pairs, tmp_path, resume=True)[0] == []
    with pytest.raises(CheckpointError, match="evaluation must be the pairs with which the run was begun"):
        train(config, SENTENCES, replace(pairs, subset_names=("other",)), tmp_path, resume=True)


@pytest.mark.parametrize(
    ("file", "words"),
    [("config.json", "config.json"), ("vocab.txt", "tokenizer"), ("model.safetensors", "weights")],
)
def test_a_checkpoint_belongs_to_its_start(config, folder, tmp_path, file, words):
    """An activation is in no weight: the run would go on as another network."""
    config = replace(config, model=str(folder), steps=2)
    whole(config, None, tmp_path / "run")
    assert whole(config, None, tmp_path / "run", resume=True)[0] == []
    if file == "config.json":
        settings = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps(settings | {"hidden_act": "relu"}))
    elif file == "vocab.txt":
        (folder / file).write_text((folder / file).read_text() + "more\n", "utf-8")
    else:
        shutil.copy(build_model(tmp_path / "other", seed=1) / file, folder / file)
    with pytest.raises(CheckpointError, match=f"model must have the {words} with which the run was begun"):
        train(config, SENTENCES, None, tmp_path / "run", resume=True)
