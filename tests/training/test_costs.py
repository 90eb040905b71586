"""Laws of the reckoned cost of a run: what it grows with, and that a measured pace replaces the guess."""

from dataclasses import replace

import pytest

from whitelab.encoding.catalogue import Size
from whitelab.training import StepRecord, TrainConfig
from whitelab.training.costs import cost, paced_cost, seconds_left

SIZE = Size(3, 384, 1536, 30_522 * 384 + 3 * (4 * 384**2 + 2 * 384 * 1536))
CONFIG = TrainConfig()


def of(config=CONFIG, size=SIZE, tokens=14.0, scored=36_000, rate=5e10):
    return cost(config, size, tokens, scored, rate)


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


def test_memory_grows_with_the_corpus():
    large = cost(CONFIG, SIZE, 14.0, 36_000, 5e10, sentences=1_000_000)
    assert large.memory - of().memory == pytest.approx(6e8)
    assert replace(large, memory=of().memory) == of()


def test_a_sentence_costs_no_more_than_it_is_cut_to():
    assert of(tokens=1000.0).step == of(tokens=32.0).step > of().step


def test_the_whole_run_is_its_steps_and_its_evaluations():
    found = of()
    assert found.evaluations == 5  # the start, and after 25, 50, 75 and 100 steps
    assert found.seconds == pytest.approx(100 * found.step + 5 * found.evaluation)
    assert of(replace(CONFIG, eval_every=0)).evaluations == 2
    assert of(scored=0).evaluations == 0


@pytest.mark.parametrize("every", [0, 1, 25, 60, 200])
def test_evaluations_are_counted_as_the_trainer_takes_them(every):
    config = replace(CONFIG, steps=110, eval_every=every)
    assert of(config).evaluations == sum(config.evaluates(step) for step in range(config.steps + 1))


@pytest.mark.parametrize("every", [0, 1, 7, 20, 60])
def test_what_is_left_of_a_run_counts_steps_and_evaluations_apart(every):
    config = replace(CONFIG, steps=50, eval_every=every)
    seconds = [20.0 * config.evaluates(step) + (step > 0) for step in range(config.steps + 1)]
    records = [StepRecord(step, seconds=took) for step, took in enumerate(seconds)]
    assert seconds_left(config, records[:1]) is None
    for done in range(1, config.steps):
        assert seconds_left(config, records[: done + 1]) == pytest.approx(sum(seconds[done + 1 :])), done
    assert seconds_left(config, records) is None


def test_a_measured_pace_replaces_the_guess_and_is_named():
    records = [StepRecord(0, spearman=50.0), *(StepRecord(i, loss=1.0, seconds=3 * of().step) for i in range(1, 6))]
    found = of(replace(CONFIG, batch=128)).at_pace_of(of(), records, "simcse-1")
    assert found.step == pytest.approx(3 * of(replace(CONFIG, batch=128)).step)
    assert found.evaluation == pytest.approx(3 * of().evaluation)
    assert found.measured == "simcse-1"
    assert found.memory == of(replace(CONFIG, batch=128)).memory


def test_evaluations_have_a_pace_of_their_own_where_some_were_measured():
    step, evaluation = 3 * of().step, of().evaluation / 2
    config = replace(CONFIG, steps=50, eval_every=10)
    took = [step + evaluation * config.evaluates(i) for i in range(config.steps + 1)]
    spearman = [50.0 if config.evaluates(i) else None for i in range(config.steps + 1)]
    records = [StepRecord(i, loss=1.0, seconds=took[i], spearman=spearman[i]) for i in range(config.steps + 1)]
    found = of(config).at_pace_of(of(config), records, "simcse-1")
    assert found.seconds == pytest.approx(50 * step + of(config).evaluations * evaluation)


def test_the_pace_is_that_of_the_same_objective_where_such_a_run_shows_one():
    records = [StepRecord(i, loss=1.0, seconds=1.0) for i in range(1, 6)]
    other, same = replace(CONFIG, objective="w-mse"), replace(CONFIG, objective="simcse:temperature=0.1", batch=128)
    for past, measured in (
        ((("w-mse-1", other, records), ("simcse-2", same, records), ("simcse-1", same, records)), "simcse-2"),
        ((("w-mse-1", other, records), ("simcse-1", same, [])), "w-mse-1"),
        ((("simcse-1", replace(same, model="bundled"), records),), ""),
    ):
        runs = ((name, config, lambda steps=steps: steps) for name, config, steps in past)
        assert paced_cost(CONFIG, SIZE, 14.0, 36_000, 1000, runs).measured == measured


def test_evaluations_and_the_start_are_no_measure_of_a_step():
    records = [StepRecord(i, spearman=50.0, seconds=100.0) for i in range(9)]
    assert of().at_pace_of(of(), records, "simcse-1") == of()


def test_the_rate_of_this_machine_is_taken_where_none_is_given():
    assert of(rate=None).step > 0
    assert of(rate=None).step != of().step
