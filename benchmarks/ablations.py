"""WhitenedCSE's Tables 3 to 6 rerun at a laptop's scale: which whitening, how many groups, how many positives."""

from dataclasses import dataclass

from benchmarks.harness import Options, Table, mean_and_deviation
from benchmarks.training import scored_and_corpus, several
from whitelab.training import TrainConfig, objectives, start

# The paper's encoder has twice the dimensions of ours: the same number in a group takes half as many groups.
PAPER_DIM = 768
GROUPS = {128: ("78.57", "77.47"), 384: ("78.78", "77.43")}


@dataclass(frozen=True)
class Row:
    """A setting under the paper's name, and the average over the seven STS tasks that it prints."""

    name: str
    spec: str
    printed: str


def tables(dim: int) -> dict[str, tuple[Row, ...]]:
    """Title -> rows, for an encoder of `dim` dimensions."""
    whitened = "whitenedcse:whitening="
    return {
        "Table 3: which whitening": (
            Row("none (SimCSE)", "simcse", "76.25"),
            Row("PCA", f"{whitened}pca,eps=0.01", "68.55"),
            Row("ZCA", f"{whitened}zca,eps=0.01", "72.11"),
            Row("group", f"{whitened}group", "77.47"),
            Row("shuffled group", "whitenedcse", "78.78"),
        ),
        "Table 4: how many groups": tuple(
            Row(
                f"{PAPER_DIM // groups} in a group{words}",
                f"{whitened}{name},groups={groups * dim // PAPER_DIM}",
                printed[at],
            )
            for groups, printed in GROUPS.items()
            for at, (name, words) in enumerate((("shuffled_group", ""), ("group", ", not shuffled")))
        ),
        "Table 5: how many positives": tuple(
            Row(f"{count} views", f"whitenedcse:positives={count}", printed)
            for count, printed in {2: "77.81", 3: "78.78", 4: "78.65", 5: "78.74"}.items()
        ),
        "Table 6: whitening and positives apart": (
            Row("SimCSE", "simcse", "76.25"),
            Row("shuffled group whitening, 2 views", "whitenedcse:positives=2", "77.81"),
            Row("3 views, no whitening", f"{whitened}none,positives=3", "76.37"),
            Row("4 views, no whitening", f"{whitened}none,positives=4", "76.34"),
            Row("WhitenedCSE", "whitenedcse", "78.78"),
        ),
    }


def ablations(options: Options) -> list[Table]:
    """Each setting trained once a seed, however many tables it stands in."""
    pairs, corpus = scored_and_corpus(options.data)
    steps, seeds = options.pick(2, 100), range(options.pick(1, min(3, options.repeats)))
    shown = tables(start(TrainConfig()).dim)
    if options.quick:
        shown = {title: rows[:1] for title, rows in shown.items()}
    found = {}
    for spec in dict.fromkeys(objectives.canonical(row.spec) for rows in shown.values() for row in rows):
        found[spec] = several(spec, corpus, pairs, steps, seeds)
    note = (
        f"Spearman on {pairs.source} after {steps} steps, mean and deviation over seeds 0 to {seeds[-1]}, trained "
        "as in the table of the papers' objectives; beside it what the paper prints: BERT-base trained to the end, "
        "the average of seven tasks. Only the order can agree. PCA and ZCA whiten a batch of fewer sentences than "
        "dimensions, so they whiten 0.99 covariance + 0.01 I."
    )
    return [
        Table(
            title,
            ("setting", "Spearman", "uniformity", "alignment", "the paper's average"),
            tuple(_cells(row, found[objectives.canonical(row.spec)]) for row in rows),
            (note,) if number == len(shown) - 1 else (),
        )
        for number, (title, rows) in enumerate(shown.items())
    ]


def _cells(row: Row, runs) -> tuple[str, ...]:
    after = [last.spearman for _, last in runs.pairs]
    return row.name, mean_and_deviation(after, 2), runs.moved("uniformity", 2), runs.moved("alignment", 3), row.printed
