"""Fitting on more rows than fit in memory, against numpy.cov and scikit-learn's IncrementalPCA."""

from time import perf_counter

import numpy as np
import torch
from sklearn.decomposition import IncrementalPCA

from benchmarks.harness import Options, Table, compared, figures, megabytes, peak_bytes, side_by_side
from benchmarks.spaces import row_batches
from whitelab.statistics.moments import Moments


def streaming(options: Options) -> list[Table]:
    """The moments of rows that are made as they are asked for; only the fit is timed."""
    dim, rows, sample = options.pick((64, 40_000, 20_000), (768, 1_000_000, 40_960))
    ours = "whitelab, batches as they come"
    runs = {
        ours: lambda: fit(row_batches(sample, dim)),
        "numpy.cov, all rows in memory": lambda: by_numpy(sample, dim),
        "scikit-learn IncrementalPCA, all components": lambda: by_sklearn(sample, dim),
    }
    timings = side_by_side(
        runs, options.pick(1, min(3, options.repeats)), dict.fromkeys(runs, rows / sample), warm=False
    )
    seconds, peak, rate = whole(rows, dim)
    share = 2 * rows * dim**2 / seconds / 1e9 / rate
    return [
        Table(
            f"Moments of {rows:,} rows of {dim} dimensions",
            ("", "seconds", "times whitelab's"),
            compared(timings, ours),
            (
                f"Each is timed on {sample:,} rows and scaled. whitelab on all {rows:,}: {figures(seconds)} s, "
                f"{figures(rows / seconds)} rows a second, {100 * share:.0f} % of the machine's float64 matrix "
                f"products ({rate:,.0f} GFLOP/s for this shape), and {megabytes(peak)} of memory at the peak, batches "
                f"of 8,192 rows included. A matrix of {dim} x {dim} takes {megabytes(8 * dim**2)}, all rows would "
                f"take {megabytes(8 * rows * dim)}.",
            ),
        )
    ]


def fit(batches) -> float:
    """Seconds that go into the moments of the batches; making them is not counted."""
    total, spent = None, 0.0
    for batch in batches:
        start = perf_counter()
        part = Moments.of(batch)
        total = part if total is None else total.merge(part)
        spent += perf_counter() - start
    return spent


def whole(rows: int, dim: int) -> tuple[float, int | None, float]:
    """Seconds and peak memory of the fit on all rows, and GFLOP/s of the products it needs, measured around it."""
    before, spent = matmul_rate(dim), []
    peak = peak_bytes(lambda: spent.append(fit(row_batches(rows, dim))))
    return spent[0], peak, (before + matmul_rate(dim)) / 2


def matmul_rate(dim: int, rows: int = 2048, seconds: float = 1.0) -> float:
    """GFLOP/s of x^T x in float64."""
    x = torch.randn(rows, dim, dtype=torch.float64)
    start, rounds = perf_counter(), 0
    while perf_counter() - start < seconds:
        x.T @ x
        rounds += 1
    return 2 * rounds * rows * dim**2 / (perf_counter() - start) / 1e9


def by_numpy(rows: int, dim: int) -> float:
    """numpy.cov of all rows at once."""
    x = np.concatenate([batch.numpy() for batch in row_batches(rows, dim)])
    start = perf_counter()
    np.cov(x, rowvar=False, dtype=np.float64)
    return perf_counter() - start


def by_sklearn(rows: int, dim: int) -> float:
    """IncrementalPCA over the same batches."""
    pca, spent = IncrementalPCA(), 0.0
    for batch in row_batches(rows, dim):
        start = perf_counter()
        pca.partial_fit(batch.numpy().astype(np.float64))
        spent += perf_counter() - start
    return spent
