"""What a run is asked for is checked at the door and survives JSON."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tiny import SENTENCES

from whitelab.training import StepRecord, TrainConfig, train


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
        ({"pooling": "wk"}, "pooling='wk' must be one of mean, cls, last"),
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
        ({"lr": 0, "head_lr": 0.1}, "lr=0 must be above 0: the encoder would learn nothing"),
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


def test_numbers_of_numpy_become_pythons_own_which_a_checkpoint_can_hold():
    given = {"steps": np.int64(6), "batch": np.int64(4), "lr": np.float32(0.5), "dropout": np.float64(0.1), "clip": 1}
    config = TrainConfig(**given)
    assert [type(getattr(config, name)) for name in given] == [int, int, float, float, float]
    assert config == TrainConfig(steps=6, batch=4, lr=0.5, dropout=0.1)


def test_configs_and_records_survive_json(config):
    config = replace(config, objective="w-mse:embedding=4,size=8", head_lr=0.1)
    assert TrainConfig.of(json.loads(json.dumps(config.as_dict()))) == config
    record = StepRecord(3, 0.5, 1e-4, 0.1, 2.0, 50.0, spectrum=(0.5, 0.25))
    assert StepRecord.of(json.loads(json.dumps(record.as_dict()))) == record
    assert StepRecord(0).as_dict() == {"step": 0, "loss": None, "lr": None, "seconds": 0.0, "gradient_norm": None}
    scored = {"spearman": 50.0, "alignment": None, "uniformity": None, "mean_cosine": None, "effective_rank": None}
    assert record.as_dict().items() >= scored.items()
    with pytest.raises(ValueError, match="config has colour, which must be among"):
        TrainConfig.of({"colour": "red"})
