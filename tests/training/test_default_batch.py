"""Laws of the batch an objective takes: what is not said is one that it takes."""

import pytest

from whitelab.training import TrainConfig
from whitelab.training.objectives import OBJECTIVES, objective

D = 128


@pytest.mark.parametrize(
    "spec", [*OBJECTIVES, "w-mse:size=48,embedding=20", "contrastive-whitened:size=12,embedding=5"]
)
def test_the_batch_of_a_run_that_names_none_is_the_first_from_64_on_that_the_objective_takes(spec):
    found, batch = objective(spec), TrainConfig(spec).settled(D).batch
    multiple, smallest = found.multiple(spec), found.batch(spec, D)
    assert batch % multiple == 0
    assert batch >= max(64, smallest)
    assert batch - multiple < max(64, smallest)


def test_only_losses_that_whiten_sub_batches_take_multiples():
    assert {name: found.multiple(name) for name, found in OBJECTIVES.items() if found.multiple(name) > 1} == {
        "w-mse": 128,
        "contrastive-whitened": 128,
    }
    assert objective("w-mse:size=48,embedding=20").multiple("w-mse:size=48,embedding=20") == 48


def test_a_batch_that_is_named_stays_as_it_is():
    assert TrainConfig("w-mse:size=48,embedding=20", batch=50).settled(D).batch == 50
    with pytest.raises(ValueError, match=r"batch=40 must be at least 48 for w-mse"):
        TrainConfig("w-mse:size=48,embedding=20", batch=40).settled(D)
