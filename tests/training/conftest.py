"""The tiny place to train in, for all files of this folder."""

import json

import pytest
from tiny import build_model, build_place

from whitelab.datasets import load
from whitelab.training import TrainConfig, Trainer


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


@pytest.fixture
def alike(monkeypatch):
    """Trainers take views that are one and the same."""
    monkeypatch.setattr(Trainer, "_check_views", lambda self: None)
