"""Laws of what a run needs to be resumed: it is on the disk while its name is."""

import os
import shutil
from pathlib import Path

import pytest
from tiny import SENTENCES, build_model

from whitelab.training import TrainConfig, Trainer
from whitelab.training.checkpoints import STATE, checkpoints, save


def test_a_checkpoint_is_flushed_through_files_that_are_open_for_writing(tmp_path, monkeypatch):
    """Windows refuses to flush any other; so does a write of nothing, everywhere."""
    build_model(tmp_path / "model")
    config = TrainConfig(model=str(tmp_path / "model"), batch=16, steps=1)
    flushed = []
    monkeypatch.setattr(os, "fsync", lambda handle: flushed.append(os.write(handle, b"")))
    save(tmp_path / "checkpoints", Trainer(config, SENTENCES), {})
    (found,) = checkpoints(tmp_path / "checkpoints")
    assert len(flushed) == len(list(found.iterdir())) == 2


def test_a_kill_while_the_checkpoint_before_is_removed_leaves_whole_ones(tmp_path, monkeypatch):
    build_model(tmp_path / "model")
    trainer = Trainer(TrainConfig(model=str(tmp_path / "model"), batch=16, steps=2), SENTENCES)
    save(tmp_path, trainer, {})
    trainer.advance()
    real = shutil.rmtree

    def torn(folder, **how):
        if not (states := list(Path(folder).rglob(STATE))):
            return real(folder, **how)
        states[0].unlink()
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", torn)
    with pytest.raises(KeyboardInterrupt):
        save(tmp_path, trainer, {})
    assert [(one.name, (one / STATE).is_file()) for one in checkpoints(tmp_path)] == [("step-000001", True)]
