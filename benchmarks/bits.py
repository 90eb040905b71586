"""Vectors in fewer bits: what each point of the frontier takes in memory and time on a corpus of a million."""

import sys
from time import perf_counter

import numpy as np
import torch

from benchmarks.harness import Options, Table, figures, megabytes, peak_bytes
from benchmarks.spaces import row_batches
from whitelab.datasets import RetrievalSet
from whitelab.retrieval.compression import Code
from whitelab.retrieval.embedded import RetrievalSpace, with_judgements
from whitelab.retrieval.frontier import frontier
from whitelab.scoring.setting import Setting

POINTS = tuple(map(Code.parse, ("float32", "float16", "int8", "hamming", "binary+itq", "pq8", "pq4")))
WHITE = Setting(whitening="pca")


def bits(options: Options) -> list[Table]:
    """Every point alone: one pass for float32 raw, which all are held against, and one for the point, both streamed."""
    dim, documents, queries = options.pick((32, 3_000, 10), (384, 1_000_000, 50))
    space = corpus(documents, queries, dim)
    rows, seconds, steps = [], {}, []
    for code in POINTS:
        start = perf_counter()
        peak = peak_bytes(
            lambda code=code: list(frontier(space, [WHITE], [code], progress=lambda *at: steps.append(at)))
        )
        seconds[code] = perf_counter() - start
        of = code.columns(dim), seconds[code], seconds[code] / seconds[POINTS[0]]
        print(f"{code}: {megabytes(peak)}, {seconds[code]:.0f} s", file=sys.stderr, flush=True)
        rows.append((code.label, f"{size(code, dim):,}", figures(of[1]), f"{of[2]:.2f}", megabytes(peak)))
    all_at_once = peak_bytes(lambda: list(frontier(space, [WHITE], POINTS)))
    own = megabytes(space.space.values.numpy().nbytes)
    note = (
        f"PCA whitening fitted on the corpus, {queries} queries, one layer. The embeddings themselves take {own}. All "
        f"{len(POINTS)} points in one pass, as a page asks for them: {megabytes(all_at_once)}. Every run made "
        f"{len(steps) // len(POINTS):,} calls of its progress, at any of which it can be cancelled."
    )
    head = ("", "bytes a vector", "seconds", "times float32's", "peak memory beyond the embeddings")
    return [Table(f"Points of the frontier, {documents:,} vectors of {dim} dimensions", head, tuple(rows), (note,))]


def size(code: Code, dim: int) -> int:
    """Bytes of one vector."""
    return code.of.make(code.columns(dim)).sa_code_size()


def corpus(documents: int, queries: int, dim: int) -> RetrievalSpace:
    """Made-up documents off the origin with unequal directions, and queries each near the one that answers it."""
    answers = np.arange(queries) * (documents // queries)
    data = RetrievalSet(
        "made up",
        *(tuple(f"{kind}{i}" for i in range(n)) for kind, n in (("d", documents), ("document ", documents))),
        *(tuple(f"{kind}{i}" for i in range(queries)) for kind in ("q", "query ")),
        np.arange(queries),
        answers,
        np.ones(queries),
    )
    values, start = torch.empty(1, len(data.sentences), dim), 0
    for batch in row_batches(len(data.sentences), dim):
        values[0, start : start + len(batch)] = batch + 0.5
        start += len(batch)
    near = torch.from_numpy(data.document_rows[answers])
    values[0, torch.from_numpy(data.query_rows)] = (
        0.6 * values[0, torch.from_numpy(data.query_rows)] + 0.4 * values[0, near]
    )
    return with_judgements(values, data)
