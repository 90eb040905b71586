"""Laws of the reckoned cost of a run: what it grows with, and that a measured pace replaces the guess."""

from dataclasses import replace

import pytest
from tiny import build_model

from whitelab import costs
from whitelab.costs import Size, cost
from whitelab.encoders import load_encoder
from whitelab.models import find_model
from whitelab.training import StepRecord, TrainConfig

SIZE = Size(3, 384, 1536, 30_522)
CONFIG = TrainConfig()


def of(config=CONFIG, size=SIZE, words=10.0, scored=30_000, speed=1e11):
    return cost(config, size, words, scored, speed)


@pytest.mark.parametrize("architecture", ["bert", "distilbert", "t5-encoder"])
def test_the_size_of_a_model_counts_nearly_all_of_its_weights(architecture, tmp_path):
    folder = build_model(tmp_path / "model", architecture)
    size = Size.of(find_model(str(folder)))
    true = sum(one.numel() for one in load_encoder(str(folder)).model.parameters())
    assert (size.blocks, size.dim) == (3, 32)
    assert size.parameters == pytest.approx(true, rel=0.25)


def test_a_truncated_model_has_fewer_weights_and_never_more_blocks_than_there_are(tmp_path):
    files = find_model(str(build_model(tmp_path / "model")))
    assert Size.of(files, 1).parameters < Size.of(files, 2).parameters < Size.of(files).parameters
    assert Size.of(files, 9).blocks == 3


@pytest.mark.parametrize(
    "more",
    [
        {"batch": 128},
        {"accumulation": 2},
        {"objective": "whitenedcse"},  # three views
        {"objective": "byol"},  # a slow copy
    ],
)
def test_a_step_takes_longer_the_more_is_encoded(more):
    assert of(replace(CONFIG, **more)).step > of().step


def test_memory_grows_with_the_batch_and_not_with_its_accumulation():
    assert of(replace(CONFIG, batch=256)).memory > of().memory == of(replace(CONFIG, accumulation=8)).memory


def test_a_sentence_costs_no_more_than_it_is_cut_to():
    assert of(words=1000.0).step == of(words=26.0).step > of().step


def test_the_whole_run_is_its_steps_and_its_evaluations():
    found = of()
    assert found.evaluations == 5  # the start, and after 25, 50, 75 and 100 steps
    assert found.seconds == pytest.approx(100 * found.step + 5 * found.evaluation)
    assert of(replace(CONFIG, eval_every=0)).evaluations == 2
    assert of(scored=0).evaluations == 0


def test_a_measured_pace_replaces_the_guess_and_is_named():
    records = [StepRecord(0, spearman=50.0), *(StepRecord(i, loss=1.0, seconds=3 * of().step) for i in range(1, 6))]
    found = of(replace(CONFIG, batch=128)).at_pace_of(of(), records, "simcse-1")
    assert found.step == pytest.approx(3 * of(replace(CONFIG, batch=128)).step)
    assert found.evaluation == pytest.approx(3 * of().evaluation)
    assert found.measured == "simcse-1"
    assert found.memory == of(replace(CONFIG, batch=128)).memory


def test_evaluations_and_the_start_are_no_measure_of_a_step():
    records = [StepRecord(i, spearman=50.0, seconds=100.0) for i in range(9)]
    assert of().at_pace_of(of(), records, "simcse-1") == of()


def test_this_machine_multiplies_at_some_speed():
    assert costs.speed(0.01) > 1e6
