"""What a hundred steps of training without labels do to a raw encoder, objective by objective, over several seeds."""

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.harness import Options, Table, figures, mean_and_deviation
from whitelab.datasets import SentencePairs, discover, load
from whitelab.training import StepRecord, TrainConfig, objectives, start, train

# The objectives of the papers, and what they are held against: more positives without whitening (WhitenedCSE, Table 6),
# a slow copy in place of whitening, and neither, which is to collapse (W-MSE, section 3.1).
PAPERS = ("simcse", "whitenedcse", "w-mse")
CONTROLS = ("whitenedcse:whitening=none", "byol", "mse")
SCORED = "stsb"


@dataclass(frozen=True)
class Runs:
    """The runs of one objective: the start and the last record of each seed."""

    spec: str
    batch: int
    pairs: tuple[tuple[StepRecord, StepRecord], ...]
    seconds: tuple[float, ...]

    def cells(self) -> tuple[str, ...]:
        """A row of the table."""
        gains = [last.spearman - first.spearman for first, last in self.pairs]
        return (
            objectives.label(self.spec),
            str(self.batch),
            self.moved("spearman", 2),
            mean_and_deviation(gains, 2, "+"),
            self.moved("alignment", 3),
            self.moved("uniformity", 2),
            self.moved("effective_rank", 0),
            figures(statistics.mean(self.seconds)),
        )

    def moved(self, name: str, digits: int) -> str:
        """`before → after ± deviation` of a field of the records; every seed has the same start."""
        before = getattr(self.pairs[0][0], name)
        after = [getattr(last, name) for _, last in self.pairs]
        if before is None or None in after:
            return "not defined"
        return f"{before:.{digits}f} → {mean_and_deviation(after, digits)}"

    def notes(self) -> tuple[str, ...]:
        """What stopped a run early, once for each that was."""
        return tuple(f"{objectives.label(self.spec)}: {last.message}." for _, last in self.pairs if last.stop)


def training(options: Options) -> list[Table]:
    """The objectives of the papers."""
    return [steps_of(options.pick(PAPERS[:1], PAPERS), options)]


def controls(options: Options) -> list[Table]:
    """What they are held against."""
    return [steps_of(options.pick(CONTROLS[:1], CONTROLS), options)]


def steps_of(specs: Sequence[str], options: Options) -> Table:
    """From the first three layers of the bundled model: the last step's score, not the best, so nothing is selected."""
    pairs, corpus = scored_and_corpus(options.data)
    steps, seeds = options.pick(2, 100), range(options.pick(1, min(3, options.repeats)))
    found = [several(spec, corpus, pairs, steps, seeds) for spec in specs]
    config = TrainConfig()
    return Table(
        f"{steps} steps from {config.model}, scored on {pairs.source}",
        ("objective", "batch", "Spearman", "gain", "alignment", "uniformity", "effective rank", "seconds"),
        tuple(one.cells() for one in found),
        (
            f"Before → after, mean and standard deviation over {len(seeds)} seeds. {len(corpus):,} sentences: "
            f"those of the data's tasks that are not scored; {config.pooling} pooling of the last layer, rate "
            f"{config.lr:g}, {config.warmup} steps of warm-up, then linear to 0, {config.precision}, at most "
            f"{config.max_length} tokens. Seconds are those of a run, its two scores included.",
            *(note for one in found for note in one.notes()),
        ),
    )


def scored_and_corpus(data: str) -> tuple[SentencePairs, tuple[str, ...]]:
    """The pairs of STS-B (or of the only task), and the unique sentences of all tasks that are not among theirs."""
    names = [task.name for task in discover(data)]
    pairs = load(data, SCORED if SCORED in names else names[0])
    held = set(pairs.sentences)
    others = [load(data, name) for name in names if name != pairs.task]
    corpus = dict.fromkeys(text for one in others for text in one.sentences if text not in held)
    return pairs, tuple(corpus) or pairs.sentences  # the demonstration set is one task: its labels are unused


def several(spec: str, corpus: Sequence[str], pairs: SentencePairs, steps: int, seeds: Sequence[int]) -> Runs:
    """A run for every seed, in memory."""
    ends, seconds = [], []
    for seed in seeds:
        config = TrainConfig(objective=spec, steps=steps, seed=seed, eval_every=0)
        records = list(train(config, corpus, pairs))
        ends.append((records[0], records[-1]))
        seconds.append(sum(one.seconds for one in records))
        print(
            f"{spec}, seed {seed}: {records[0].spearman:.2f} -> {records[-1].spearman:.2f}", file=sys.stderr, flush=True
        )
    batch = config.settled(start(config).dim).batch
    return Runs(spec, batch, tuple(ends), tuple(seconds))
