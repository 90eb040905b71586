"""How long every operation takes, and in how much memory, where models and data are as large as they come."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import torch

import whitelab
from benchmarks.harness import Options, Table, figures, megabytes, peak_bytes
from benchmarks.spaces import afresh, made_up
from whitelab import LayerEmbeddings, Setting
from whitelab.base.wording import duration
from whitelab.encoding.catalogue import entries, estimate
from whitelab.statistics import geometry
from whitelab.sweeps.layer_subsets import Plan, check_sizes, plan

RAW, PCA = Setting((1,)), Setting((1,), "pca")
# Layers, dimensions, pairs.
SMALL, LARGE = (4, 32, 400), (25, 1024, 100_000)
SCALED = "Work measured on a part is multiplied by the layers, cells, subsets or pairs of rows that it has more of."


@dataclass(frozen=True)
class Work:
    """An operation, measured on a part: `layers` and on a CPU a share `rows` of the pairs.

    All layers take `times` as long, all pairs 1 / rows^`power`, and the whole `flops` float64 operations in matrix
    products (None: it stays on the CPU).
    """

    name: str
    run: Callable[[LayerEmbeddings], object]
    layers: int
    rows: float
    times: float
    flops: float | None
    power: int = 1

    def part(self, shape: tuple[int, int], pairs: int) -> str:
        """What of it was measured, in words."""
        return "whole" if self.times == 1 and shape[1] == pairs else f"{shape[0]} layers, {shape[1]:,} pairs"

    def whole(self, seconds: float, rows: float) -> float:
        """Seconds for all of it, from those for the part with a share `rows` of the pairs."""
        return seconds * self.times / rows**self.power


def works(layers: int, dim: int, pairs: int, parts: tuple[int, int, int] = (2, 3, 10)) -> list[Work]:
    """What pages and commands ask of a space of this size.

    `parts` are the layers of what is measured: of most, of whitened subsets, and of raw subsets.
    """
    few, some, many = (min(one, layers) for one in parts)
    n, cells = 2 * pairs, layers * (layers + 1) / 2
    product, sizes = n * dim**2, check_sizes("all", layers)
    raw, full = (Plan.of(layers, sizes, *plan.limits(layers, cost, None, None)) for cost in ("sums", "factor"))
    raw_subsets, subsets = (sum(map(one.most, one.walk)) for one in (raw, full))
    return [
        Work("score of a layer, raw", lambda one: whitelab.score(one, RAW), 2, 1, 1, 6 * n * dim),
        Work("score of a layer, PCA", lambda one: whitelab.score(one, PCA), 2, 1, 1, 2 * product),
        Work("every k of a layer", lambda one: whitelab.k_curve(one, PCA), 2, 1, 1, 3 * product),
        Work(
            f"{cells:,.0f} pairs of layers, raw",
            lambda one: whitelab.layer_pairs(one, RAW),
            few,
            1,
            (layers / few) ** 2,
            6 * pairs * layers**2 * dim,
        ),
        Work(
            f"{cells:,.0f} pairs of layers, PCA",
            lambda one: whitelab.layer_pairs(one, PCA),
            few,
            1,
            cells / (few * (few + 1) / 2),
            2 * cells * product,
        ),
        Work(
            f"{raw_subsets:,} subsets of layers, raw",
            lambda one: whitelab.search_subsets(one, RAW),
            many,
            0.1,
            raw_subsets / (2**many - 1),
            6 * raw_subsets * cells * pairs,
        ),
        Work(
            f"{subsets:,} subsets of layers, PCA",
            lambda one: whitelab.search_subsets(one, PCA),
            some,
            1,
            subsets / (2**some - 1),
            subsets * product,
        ),
        Work("uniformity of a layer", lambda one: geometry.uniformity(one.values[0]), 2, 0.1, 1, n * product / dim, 2),
        Work(
            "ten nearest neighbours of every sentence",
            lambda one: geometry.nearest(one.values[0]),
            2,
            0.1,
            1,
            2 * n * product / dim,
            2,
        ),
        Work("interval of two scores that are there, 1,000 resamples", _interval, 2, 1, 1, None),
    ]


def _interval(space: LayerEmbeddings) -> object:
    cosines = torch.rand(2, space.n_pairs, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    cosines = cosines.to(space.values.device)
    return whitelab.bootstrap(cosines, space.gold, space.subset, space.n_subsets)


def _seconds(run: Callable, space: LayerEmbeddings) -> float:
    start = perf_counter()
    run(space)
    return perf_counter() - start


def spent(seconds: float) -> str:
    if seconds < 0.01:
        return "below 0.01 s"
    return f"{figures(seconds)} s" if seconds < 60 else duration(seconds)


def limits(options: Options) -> list[Table]:
    """Time and memory of every operation at 25 layers of 1,024 dimensions and 100,000 pairs, on the CPU."""
    layers, dim, pairs = options.pick(SMALL, LARGE)
    rows, spaces = [], {}
    for work in works(layers, dim, pairs):
        shape = (min(work.layers, layers), round(work.rows * pairs))
        if shape not in spaces:
            spaces = {shape: made_up(shape[0], dim, shape[1])}  # one at a time
        space, seconds = afresh(spaces[shape]), []
        peak = peak_bytes(lambda run=work.run, space=space, seconds=seconds: seconds.append(_seconds(run, space)))
        whole = spent(work.whole(seconds[0], work.rows))
        rows.append((work.name, work.part(shape, pairs), spent(seconds[0]), megabytes(peak), whole))
    header = ("", "measured on", "time", "memory beyond the embeddings", "the whole here")
    large = next(one for one in entries() if (one.layers, one.dim) == (24, 1024))
    told = estimate(large, "cpu", tokens=30 * pairs, sentences=2 * pairs).line()
    size = 4 * layers * 2 * pairs * dim / 2**30
    notes = (
        f"The embeddings, {2 * pairs:,} different sentences, take {size:.1f} GiB in float32. Before they are made the "
        f"app says of {large.name}: {told}. {SCALED}",
    )
    return [Table(f"At {layers} layers of {dim:,} dimensions and {pairs:,} pairs", header, tuple(rows), notes)]
