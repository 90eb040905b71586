"""How fast training is: steps a second, memory on a GPU, and the part of a step that goes into whitening."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import torch

from benchmarks.harness import Options, Spread, Table, Timings, figures, megabytes, side_by_side
from benchmarks.spaces import asked, tasks
from whitelab.training import TrainConfig, Trainer, objectives

# Each objective, and the same without whitening: W-MSE whitens what MSE compares. Sub-batches of 64 fit every batch.
PACED = {
    "simcse": None,
    "whitenedcse": "whitenedcse:whitening=none",
    "w-mse:embedding=32": "mse:embedding=32",
}
BATCHES = (64, 128, 256, 512, 1024)

# A rate of 0 takes as long as any, and the last step is like the first: nothing collapses on the way.
CONFIG = TrainConfig(steps=1_000_000, lr=0.0, eval_every=0)


def pace(options: Options) -> list[Table]:
    """Every objective at the two smallest batches, on the CPU, a step at a time."""
    return [paces(CONFIG, asked(tasks(options.data)), BATCHES[:2], 1, options.repeats)]


def paces(
    config: TrainConfig,
    sentences: Sequence[str],
    batches: Sequence[int],
    steps: int,
    repeats: int,
    paced: Mapping[str, str | None] = PACED,
    device: str = "cpu",
) -> Table:
    """A row for every objective and batch; a round is `steps` steps of each, with and without whitening in turns."""
    rows, gpu = [], device == "cuda"
    for batch in batches:
        trainers, peaks = {}, {}
        for spec in filter(None, (*paced, *paced.values())):
            made = partial(Trainer, replace(config, objective=spec, batch=batch), sentences, device=device)
            trainers[spec], peaks[spec] = started(made, device)
        timings = side_by_side({spec: partial(advance, one, steps) for spec, one in trainers.items()}, repeats)
        for spec, control in paced.items():
            memory = (megabytes(peaks[spec]),) if gpu else ()
            rate = Spread.of([steps / seconds for seconds in timings.seconds[spec]]).text()
            rows.append((objectives.label(spec), str(batch), rate, *memory, share(timings, spec, control)))
    return Table(
        f"Steps of training from {config.model}",
        ("objective", "batch", "steps a second", *(("peak memory",) if gpu else ()), "whitening's share of a step"),
        tuple(rows),
        (
            f"{config.precision}, at most {config.max_length} tokens, a round is {steps} "
            f"step{'s' if steps > 1 else ''} of each. The share is what the same step without whitening does not "
            "take: WhitenedCSE with none, and MSE for W-MSE."
            + (" Memory is what torch allocates at most: weights, optimiser and a step." if gpu else ""),
        ),
    )


def started(make, device: str) -> tuple[Trainer, int | None]:
    """A trainer that `make` makes, on a GPU after two steps, with the most bytes that it has held there until then."""
    if device == "cpu":
        return make(), None
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    trainer = make()
    advance(trainer, 2)  # the second has the optimiser's moments beside its gradients
    return trainer, torch.cuda.max_memory_allocated() - before


def advance(trainer: Trainer, steps: int) -> None:
    """Take `steps` steps and wait until they are done. Raises RuntimeError where one cannot be taken."""
    for _ in range(steps):
        if (record := trainer.advance()).stop:
            raise RuntimeError(f"{trainer.config.objective}, batch {trainer.config.batch}: {record.message}")
    if trainer.device == "cuda":
        torch.cuda.synchronize()


def share(timings: Timings, spec: str, control: str | None) -> str:
    """The part of `spec`'s time that `control` does without, in per cent; empty where nothing is whitened."""
    if control is None:
        return ""
    left = timings.ratio(control, spec)
    low, median, high = (figures(100 * (1 - part)) for part in (left.high, left.median, left.low))
    return f"{median} % [{low}, {high}]"
