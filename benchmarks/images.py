"""W-MSE in its own domain: its Tables 1, 4 and 5 and batch slicing, rerun on scikit-learn's digits."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field

from benchmarks.harness import Options, Table, mean_and_deviation
from whitelab.datasets.images import DIGITS, ImageSet, load_images
from whitelab.images.run import Accuracies, ImageRun, accuracies_of, pixels, split

STEPS = 100

# Name -> spec. Table 1, what whitelab has beside it, and the control that is to collapse.
COMPARED = {
    "contrastive": "contrastive",
    "BYOL": "byol",
    "W-MSE 2": "w-mse",
    "W-MSE 4": "w-mse:positives=4",
    "Barlow Twins": "barlow:embedding=256,hidden=256",
    "VICReg": "vicreg:embedding=256,hidden=256",
    "MSE, nothing whitened": "mse",
}
# Table 4: the contrastive loss with whitening and L2 normalisation on and off, and what the paper has on CIFAR-10.
WHITENED = {
    "normalised": ("contrastive", "89.66 / 86.55"),
    "whitened, normalised": ("contrastive-whitened", "diverged"),
    "neither": ("contrastive:euclidean=1", "79.48 / 76.60"),
    "whitened": ("contrastive-whitened:euclidean=1", "77.39 / 74.14"),
}
# Table 5: Euclidean distance in place of the cosine, and what the paper has on STL-10.
EUCLIDEAN = {
    "contrastive": ("contrastive:euclidean=1,temperature=1", "78.00 / 71.07"),
    "W-MSE 2": ("w-mse:euclidean=1", "89.91 / 85.56"),
    "W-MSE 4": ("w-mse:positives=4,euclidean=1", "90.40 / 87.09"),
}
PRINTED = {"Table 4, the contrastive loss": WHITENED, "Table 5, Euclidean distance": EUCLIDEAN}
# Section 3: sub-batches of 128 of one view, the default, or one mean and covariance of all views of the batch.
SLICED = {
    "W-MSE 2, sliced": "w-mse",
    "W-MSE 2, whole batch (Eq. 7-8)": "w-mse:size=256,statistics=joint",
    "W-MSE 4, sliced": "w-mse:positives=4",
    "W-MSE 4, whole batch (Eq. 7-8)": "w-mse:positives=4,size=256,statistics=joint",
}


@dataclass(frozen=True)
class Outcome:
    """A finished run: accuracies, effective rank of the last batch's features, seconds, why it stopped early."""

    found: Accuracies
    rank: float | None
    seconds: float
    message: str


def images(options: Options) -> list[Table]:
    """Table 1: accuracies of classifiers on the frozen features, over seeds, between two anchors."""
    trials = Trials.of(options)
    data, seeds = trials.data, trials.seeds
    found = {name: trials.outcomes(spec) for name, spec in options.pick({"W-MSE 2": "w-mse"}, COMPARED).items()}
    anchors = {
        "untrained encoder": [ImageRun(data, seed=seed).accuracies() for seed in seeds],
        "pixels": [accuracies_of(pixels(data), data)],
    }
    table = Table(
        f"Table 1 on {data.name}: {trials.steps} steps",
        ("objective", "linear", "5-nn", "effective rank", "seconds"),
        (
            *(_row(name, runs, timed=True) for name, runs in found.items()),
            *((name, *_accuracies(each), "", "") for name, each in anchors.items()),
        ),
        (_how(data, seeds), *_stops(found)),
    )
    return [table]


def whitened(options: Options) -> list[Table]:
    """Tables 4 and 5 beside what the paper prints, trained as in the table above."""
    trials, tables = Trials.of(options), []
    for title, rows in options.pick(dict([next(iter(PRINTED.items()))]), PRINTED).items():
        found = {name: trials.outcomes(spec) for name, (spec, _) in rows.items()}
        tables.append(
            Table(
                f"{title} on {trials.data.name}: {trials.steps} steps",
                ("features", "linear", "5-nn", "effective rank", "the paper's"),
                tuple((*_row(name, found[name]), printed) for name, (_, printed) in rows.items()),
                _stops(found),
            )
        )
    return tables


def slicing(options: Options) -> list[Table]:
    """Batch slicing on and off, trained as in the tables above."""
    trials = Trials.of(options)
    found = {name: trials.outcomes(spec) for name, spec in SLICED.items()}
    title = f"Batch slicing on {trials.data.name}: {trials.steps} steps"
    rows = tuple(_row(name, runs) for name, runs in found.items())
    return [Table(title, ("whitening", "linear", "5-nn", "effective rank"), rows, _stops(found))]


@dataclass(frozen=True)
class Trials:
    """What all runs have in common; a spec that stands in two tables is trained once."""

    data: ImageSet
    steps: int
    seeds: range
    done: dict = field(default_factory=dict)

    @classmethod
    def of(cls, options: Options) -> "Trials":
        """Two steps of one seed in a quick run."""
        return cls(load_images(DIGITS), options.pick(2, STEPS), range(options.pick(1, min(3, options.repeats))))

    def outcomes(self, spec: str) -> tuple[Outcome, ...]:
        """A run for every seed."""
        if spec not in self.done:
            self.done[spec] = tuple(_outcome(self.data, spec, self.steps, seed) for seed in self.seeds)
        return self.done[spec]


def _outcome(data, spec: str, steps: int, seed: int) -> Outcome:
    run = ImageRun(data, spec, steps, seed)
    *_, last = run.records()
    found = run.accuracies()
    print(f"{spec}, seed {seed}: {found.linear_accuracy:.2f} / {found.knn_accuracy:.2f}", file=sys.stderr, flush=True)
    return Outcome(found, last.effective_rank, last.seconds, last.message and f"step {last.step}: {last.message}")


def _row(name: str, runs: Iterable[Outcome], timed: bool = False) -> tuple[str, ...]:
    runs = list(runs)
    ranks = [one.rank for one in runs if one.rank is not None]
    seconds = (mean_and_deviation([one.seconds for one in runs], 0),) if timed else ()
    return (name, *_accuracies([one.found for one in runs]), mean_and_deviation(ranks, 1) if ranks else "", *seconds)


def _accuracies(found: list[Accuracies]) -> tuple[str, str]:
    linear, knn = [one.linear_accuracy for one in found], [one.knn_accuracy for one in found]
    return mean_and_deviation(linear, 2), mean_and_deviation(knn, 2)


def _stops(found: dict[str, tuple[Outcome, ...]]) -> tuple[str, ...]:
    return tuple(f"{name}: {one.message}." for name, runs in found.items() for one in runs if one.message)


def _how(data, seeds: range) -> str:
    run, (train, test) = ImageRun(data), split(data)
    weights = sum(one.numel() for one in run.encoder.parameters())
    return (
        f"Accuracy x 100 on {len(test)} held-out images, the same in every run, mean and standard deviation over "
        f"{len(seeds)} seeds; one image is {100 / len(test):.2f}. Trained on the other {len(train)} without labels, "
        f"{run.batch} images a batch, Adam at {run.rate:g}, every objective with its defaults and head, those of "
        f"Barlow Twins and VICReg 256 wide; the encoder has {weights:,} weights."
    )
