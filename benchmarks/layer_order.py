"""`python -m benchmarks.layer_order --data FOLDER`: which measures of a space order layers as their scores do.

Of every task: Spearman's rho, over layers, of a measure of the raw unique sentences with the raw score. A cell is the
mean over tasks with the least and the greatest.
"""

import argparse
from collections.abc import Callable, Sequence

from scipy.stats import spearmanr

from benchmarks.harness import markdown_lines
from whitelab.datasets import discover, load
from whitelab.encoding.embeddings import LayerEmbeddings, embed_pairs
from whitelab.encoding.encoders import load_encoder
from whitelab.scoring.score import score
from whitelab.scoring.setting import Setting
from whitelab.statistics.geometry import METRICS
from whitelab.store.embedding_store import Store
from whitelab.sweeps.layer_measures import as_record, layer_measures
from whitelab.sweeps.layer_profiles import layer_shapes

MODELS = ("bundled", "random:bundled")
SHAPES = [name for name, metric in METRICS.items() if not metric.unique]
SCORE = "spearman"

Row = dict[str, float | None]

# What a column is called -> which of the rows of one task it is over.
COLUMNS: dict[str, Callable[[str, int], bool]] = {
    "bundled, layers 0 to 6": lambda model, layer: model == "bundled",
    "bundled, layers 0 to 5": lambda model, layer: model == "bundled" and layer < 6,
    "random:bundled, layers 0 to 6": lambda model, layer: model != "bundled",
    "both, 14 layers": lambda model, layer: True,
}


def layer_rows(space: LayerEmbeddings) -> list[Row]:
    """The measures of each layer, raw, with its score."""
    raw = Setting()
    measured, shapes = layer_measures(space, [raw]), layer_shapes(space, (raw,))
    rows = []
    for layer in range(space.n_layers):
        row = as_record(measured[layer]) | {name: getattr(shapes[layer], name) for name in SHAPES}
        rows.append(row | {SCORE: score(space, raw.with_(layers=(layer,)), isotropy=False).spearman})
    return rows


def correlations(tasks: Sequence[dict[tuple[str, int], Row]]) -> dict[str, dict[str, list[float]]]:
    """measure -> column -> rho of each task."""
    names = [name for name in next(iter(tasks[0].values())) if name != SCORE]
    found: dict[str, dict[str, list[float]]] = {name: {column: [] for column in COLUMNS} for name in names}
    for rows in tasks:
        for column, chosen in COLUMNS.items():
            here = [row for of, row in rows.items() if chosen(*of)]
            for name in names:
                rho = spearmanr([row[name] for row in here], [row[SCORE] for row in here]).statistic
                found[name][column].append(float(rho))
    return found


def table(found: dict[str, dict[str, list[float]]]) -> list[str]:
    """The lines of a table: a measure a row, the most telling within the first column first."""

    def mean(values: list[float]) -> float:
        return sum(values) / len(values)

    first = next(iter(COLUMNS))
    rows = []
    for name in sorted(found, key=lambda name: -abs(mean(found[name][first]))):
        cells = [f"{mean(part):+.2f} ({min(part):+.2f} to {max(part):+.2f})" for part in found[name].values()]
        rows.append((f"`{name}`", *cells))
    return markdown_lines(("", *COLUMNS), rows)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.layer_order", description=__doc__)
    parser.add_argument("--data", default="demo", help="a folder of tasks")
    args = parser.parse_args(argv)
    names = [info.name for info in discover(args.data)]
    tasks: list[dict[tuple[str, int], Row]] = [{} for _ in names]
    for model in MODELS:
        encoder = load_encoder(model)
        for rows, name in zip(tasks, names, strict=True):
            space, _ = embed_pairs(encoder, load(args.data, name, "test"), store=Store())
            rows |= {(model, layer): row for layer, row in enumerate(layer_rows(space))}
    print("\n".join([", ".join(names), "", *table(correlations(tasks))]))


if __name__ == "__main__":
    main()
