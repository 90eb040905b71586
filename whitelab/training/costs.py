"""What a training run will take: seconds, memory and disk before it starts, roughly; later what is left."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import median

import torch

from whitelab.base.devices import choose_device
from whitelab.base.machine import product_rate
from whitelab.encoding.catalogue import EFFICIENCY, Size
from whitelab.training import StepRecord, TrainConfig, objectives

# Of the rate of one large matrix product: what training reaches on a CPU, in batches cut in parts.
_TRAINING = 0.75
# Zeroing, clipping and AdamW go several times through all parameters; on one thread.
_SECONDS_A_PARAMETER = 3e-8
# Bytes: a parameter with gradient and two moments; a process with torch and transformers in it.
_BYTES_A_PARAMETER, _BYTES_OF_A_PROCESS = 16, 350e6
_LATELY = 32  # steps, and evaluations, whose median is the pace of a run that is under way
# A sentence of the corpus: its text, its place among the others, its token ids (measured at 64 letters).
_BYTES_A_SENTENCE = 600

Past = tuple[str, TrainConfig, Callable[[], Sequence[StepRecord]]]  # a run's name, settings, and how to read its steps


@dataclass(frozen=True)
class Cost:
    """Of a run: seconds of a `step` and of an `evaluation`, how many evaluations there are, bytes.

    `measured` names the run whose pace this was corrected by, empty where nothing was measured.
    """

    step: float
    evaluation: float
    evaluations: int
    steps: int
    memory: float
    disk: float
    measured: str = ""

    @property
    def seconds(self) -> float:
        """Of the whole run."""
        return self.steps * self.step + self.evaluations * self.evaluation

    def at_pace_of(self, other: "Cost", records: Sequence[StepRecord], name: str) -> "Cost":
        """This cost, corrected by how long the steps of a run took for which `other` was reckoned, and its evaluations
        where there were any: these as the steps, where not."""
        plain = [one.seconds for one in records if one.step and one.spearman is None and not one.stop]
        if len(plain) < 3 or not other.step:
            return self
        step = median(plain)
        pace = apart = step / other.step
        scored = [one.seconds - step for one in records if one.step and one.spearman is not None and not one.stop]
        if scored and other.evaluation:
            apart = max(median(scored), 0.0) / other.evaluation
        return replace(self, step=self.step * pace, evaluation=self.evaluation * apart, measured=name)


def cost(
    config: TrainConfig, size: Size, tokens: float, scored: int, rate: float | None = None, sentences: int = 0
) -> Cost:
    """What `config` will take: `tokens` a sentence of the corpus of so many, `scored` tokens to evaluate on.

    A step: 3 forward passes' worth of `Size.products` for every view (1 for a slow copy) at the `rate` of matrix
    products, multiply-adds a second, `product_rate` by default; and what goes by the number of parameters. An
    evaluation: one forward pass, at the share of the rate that encoding reaches. Memory: AdamW's 16 bytes a
    parameter, what a block keeps of every token for its gradient, and the corpus.
    """
    config, found = config.settled(size.dim), objectives.objective(config.objective)
    device = choose_device()
    rate = rate or product_rate(device)
    batch = found.positives(config.objective) * config.batch * min(float(config.max_length), tokens)
    passes = 3 + found.needs_target()
    step = config.accumulation * passes * batch * size.products / (_TRAINING * rate)
    step += size.parameters * _SECONDS_A_PARAMETER / (torch.get_num_threads() if device == "cpu" else 50)
    kept = 4 * size.layers * batch * (14 * size.dim + 3 * size.inner)
    copies = 1.25 if found.needs_target() else 1.0
    return Cost(
        step,
        scored * size.products / (EFFICIENCY * rate),
        (-(-config.steps // config.eval_every) if config.eval_every else 1) + 1 if scored else 0,
        config.steps,
        _BYTES_OF_A_PROCESS + copies * _BYTES_A_PARAMETER * size.parameters + kept + _BYTES_A_SENTENCE * sentences,
        float(_BYTES_A_PARAMETER * size.parameters),  # a checkpoint with two moments, and the model
    )


def seconds_left(config: TrainConfig, records: Sequence[StepRecord]) -> float | None:
    """What a run will take yet, by its own latest steps and evaluations; None before its first step, and at its end.

    `records` are all of it so far, the start with them, whose seconds are those of an evaluation alone.
    """
    taken = [one for one in records if one.step]
    if not taken or taken[-1].step >= config.steps:
        return None
    scored = [one.seconds for one in taken if config.evaluates(one.step)][-_LATELY:]
    plain = [one.seconds for one in taken if not config.evaluates(one.step)][-_LATELY:]
    step = median(plain or scored)  # without a plain one every step has its evaluation in it
    evaluation = max(median(scored) - step, 0.0) if scored else records[0].seconds
    done, every = taken[-1].step, config.eval_every
    due = 1 if not every else config.steps // every - done // every + (config.steps % every > 0)
    return (config.steps - done) * step + due * evaluation


def paced_cost(
    config: TrainConfig, size: Size, tokens: float, scored: int, sentences: int, past: Iterable[Past]
) -> Cost:
    """`cost`, corrected by the pace of the first of the `past` runs from the same start that shows one.

    Those of the same objective, whatever its parameters, come before the others.
    """
    found, kind = cost(config, size, tokens, scored, sentences=sentences), config.objective.partition(":")[0]
    for name, before, records in sorted(past, key=lambda one: one[1].objective.partition(":")[0] != kind):
        if before.model != config.model:
            continue
        with suppress(ValueError):  # settings that were refused, or of a start that has changed since
            paced = found.at_pace_of(cost(before, size, tokens, scored), records(), name)
            if paced.measured:
                return paced
    return found
