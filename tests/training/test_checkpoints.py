"""Laws of what a run needs to be resumed: it is on the disk when its name appears."""

import os

from tiny import SENTENCES, build_model

from whitelab.training import TrainConfig, Trainer
from whitelab.training.checkpoints import checkpoints, save


def test_a_checkpoint_is_flushed_through_files_that_are_open_for_writing(tmp_path, monkeypatch):
    """Windows refuses to flush any other; so does a write of nothing, everywhere."""
    build_model(tmp_path / "model")
    config = TrainConfig(model=str(tmp_path / "model"), batch=16, steps=1)
    flushed = []
    monkeypatch.setattr(os, "fsync", lambda handle: flushed.append(os.write(handle, b"")))
    save(tmp_path / "checkpoints", Trainer(config, SENTENCES), {})
    (found,) = checkpoints(tmp_path / "checkpoints")
    assert len(flushed) == len(list(found.iterdir())) == 2
