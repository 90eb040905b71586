"""`python -m benchmarks.variants --data FOLDER`: how far to whiten, as the mean over STS tasks.

A row more is a spec more in `VARIANTS`.

Intervals are of the difference from raw: pairs are resampled within each task, the same for every variant.
"""

import argparse
from collections.abc import Sequence

import torch

from benchmarks.harness import markdown_lines
from whitelab.datasets import discover, load
from whitelab.encoding.embeddings import embed_pairs
from whitelab.encoding.encoders import load_encoder
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.setting import Setting
from whitelab.statistics.significance import Bootstrap, average_bootstrap, bootstrap
from whitelab.store.embedding_store import Store

# What a row is called -> its variant and k as a setting names them, raw first.
VARIANTS = {
    "raw": "none",
    "centred": "center",
    "R2": "r2",
    "top 3": "all_but_the_top",
    "soft, γ = 0.5": "soft",
    "soft, γ = auto": "soft:gamma=auto",
    "shrunk": "shrunk",
    "full": "pca",
    "full, k = 128": "pca@128",
    "clusters": "clusters",
    "flow": "flow",
}

# What a column is called -> the model and the layer; layer 3 of the whole model is the last of `bundled:3`.
MODELS = {"bundled": ("bundled", 6), "bundled:3": ("bundled", 3), "random:bundled": ("random:bundled", 6)}


def averages(data: str, tasks: Sequence[str], resamples: int) -> dict[str, Bootstrap]:
    """Of each model, the mean over `tasks` of every variant's score, resampled together."""
    parts: dict[str, list[Bootstrap]] = {name: [] for name in MODELS}
    for model in dict.fromkeys(model for model, _ in MODELS.values()):
        encoder = load_encoder(model)
        for seed, task in enumerate(tasks):
            space, _ = embed_pairs(encoder, load(data, task, "test"), store=Store())
            for name, (of, layer) in MODELS.items():
                if of == model:
                    maps = [fit_scope(space, Setting.parse(f"L{layer}:{spec}")) for spec in VARIANTS.values()]
                    cosines = torch.stack([one.cosines() for one in maps])
                    parts[name].append(
                        bootstrap(cosines, space.gold, space.subset, space.n_subsets, "all", resamples, seed)
                    )
    return {name: average_bootstrap(part) for name, part in parts.items()}


def table(found: dict[str, Bootstrap]) -> list[str]:
    """The lines of a table: a variant a row, a model a column, with the difference from raw and its interval."""
    rows = []
    for row, name in enumerate(VARIANTS):
        cells = []
        for one in found.values():
            difference = one.difference(row, 0)
            apart = f" ({difference.estimate:+.2f}, {difference.low:+.2f} to {difference.high:+.2f})" if row else ""
            cells.append(f"{float(one.score[row]):.2f}{apart}")
        rows.append((name, *cells))
    return markdown_lines(("", *found), rows)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.variants", description=__doc__)
    parser.add_argument("--data", default="demo", help="a folder of tasks")
    parser.add_argument("--tasks", help="names with commas (default: all)")
    parser.add_argument("--resamples", type=int, default=1000)
    args = parser.parse_args(argv)
    tasks = args.tasks.split(",") if args.tasks else [info.name for info in discover(args.data)]
    print("\n".join([", ".join(tasks), "", *table(averages(args.data, tasks, args.resamples))]))


if __name__ == "__main__":
    main()
