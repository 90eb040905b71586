"""What a smaller k buys: memory, time and neighbours of an exact search, measured with faiss.

The corpus is the task's sentences, filled up with synthetic rows to the size of interest. In the eigenbasis
the first k columns of a whitened space are whitening-k, so one projection serves every k.
"""

import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from whitelab import whitening
from whitelab.base.checks import check_int
from whitelab.base.installation import need
from whitelab.base.progress import Progress
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows
from whitelab.scoring.fit_scopes import folds
from whitelab.statistics.moments import Moments

MAX_BYTES = 4 * 2**30  # of all indices of one measurement, which are held side by side
FLOAT_BYTES = 4

# A neighbour counts when its cosine is within this of the last true one: below it float32 cannot tell ties apart.
_TIE = 1e-6
_CHUNK_ROWS = 8192
_BATCH_QUERIES = 64


@dataclass(frozen=True)
class Machine:
    """Where the times were taken: they mean nothing without it."""

    processor: str
    cores: int
    threads: int
    faiss: str

    def line(self) -> str:
        """One line, as shown under every time."""
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return f"{self.processor}, {threads} of {self.cores} cores, faiss {self.faiss}"


@dataclass(frozen=True)
class SearchCost:
    """One k: `columns` = min(k, rank) of them are stored, in `bytes` of float32.

    `milliseconds` of one query alone (median, with its quartiles); `time_ratio` is the median, with
    quartiles, of its ratio to d in the same round; `queries_per_second` of queries in batches. `recall` is the
    share of the neighbours at k = d that is found, `raw_recall` that of the raw vectors' neighbours.
    """

    k: int
    columns: int
    bytes: int
    milliseconds: float
    milliseconds_quartiles: tuple[float, float]
    time_ratio: float
    time_ratio_quartiles: tuple[float, float]
    queries_per_second: float
    recall: float
    raw_recall: float


@dataclass(frozen=True)
class SearchCosts:
    """Exact search over `corpus` rows, `sentences` of them real, for ascending k; the last row is k = d."""

    rows: tuple[SearchCost, ...]
    corpus: int
    sentences: int
    queries: int
    top: int
    dim: int
    rank: int
    layers: tuple[int, ...]
    whitening: str
    machine: Machine

    def memory_ratio(self, row: SearchCost) -> float:
        """Bytes against those at k = d: exactly k/d where the rank is d."""
        return row.bytes / self.rows[-1].bytes

    def nearest(self, k: int) -> SearchCost:
        """The measured row whose k is nearest to `k`, the smaller of two equally near ones."""
        return min(self.rows, key=lambda row: abs(row.k - k))

    def as_dict(self) -> dict:
        """A JSON-ready record."""
        return asdict(self) | {"layers": list(self.layers), "rows": [self.record(row) for row in self.rows]}

    def record(self, row: SearchCost) -> dict:
        """One row as flat columns, for a table or a figure."""
        record = asdict(row) | {"memory_ratio": self.memory_ratio(row)}
        for name in ("milliseconds", "time_ratio"):
            record[f"{name}_q1"], record[f"{name}_q3"] = record.pop(f"{name}_quartiles")
        return record


def default_ks(dim: int, k: int | None = None) -> tuple[int, ...]:
    """d, d/2, d/4, d/8, d/16, and `k` where it is given, ascending."""
    halves = {max(1, dim >> step) for step in range(5)}
    return tuple(sorted(halves | ({check_int(k, "k", 1, dim, "d")} if k is not None else set())))


def bytes_needed(dim: int, corpus: int, ks: Iterable[int]) -> int:
    """Bytes of one index for each k and of the raw vectors' index, which gives the raw neighbours."""
    return corpus * FLOAT_BYTES * (sum(ks) + dim)


def search_costs(
    space: LayerEmbeddings,
    layers: Sequence[int],
    variant: str = "pca",
    ks: Iterable[int] | None = None,
    corpus: int = 100_000,
    queries: int = 256,
    top: int = 10,
    *,
    rounds: int = 40,
    threads: int = 1,
    seed: int = 0,
    progress: Progress | None = None,
    fit: str = "task",
    text: LayerRows | None = None,
) -> SearchCosts:
    """Memory, time and recall of an exact cosine search (`faiss.IndexFlatIP`) for each k, d always among them.

    The corpus holds every sentence of the task once, and rows drawn from the Gaussian with the mean and
    covariance of the task's sentences, `corpus` in all. Queries are at most `queries` of the sentences, each
    left out of its own `top` neighbours. Times are taken with `threads` threads: every round searches one
    query in every index, in an order drawn anew, each after another query that is not timed, so it finds the
    processor's caches as a service with that index alone would. Batches are matrix products. A found row
    counts as a neighbour when its cosine reaches that of the last true neighbour, so ties count for everyone;
    at k = d recall is exactly 1.

    The map is fitted on the scope `fit`, with `text` its rows (`fit_scopes.folds`); `cross` has two maps and is
    refused. Su et al. 2021, section 3.3: the speed of retrieval is "directly proportional to the dimensionality".
    Raises ValueError for a variant or a k without meaning, for a corpus that is smaller than the task or
    needs more than MAX_BYTES, and for `top` beyond the corpus; MissingLibraryError where faiss is not
    installed. `progress(done, total)` may raise to cancel.
    """
    variant = str(whitening.parse(variant, space.dim))
    whitening.check_k(1, variant, space.dim)
    fold, *others = folds(space, fit, text)
    if others:
        raise ValueError(f"fit={fit!r} fits {1 + len(others)} maps, and an index holds the vectors of one")
    ks = default_ks(space.dim) if ks is None else ks
    ks = sorted({check_int(k, "k", 1, space.dim, "d") for k in ks} | {space.dim})
    _check_corpus(corpus, space, ks)
    check_int(top, "top", 1, corpus - 1, "corpus - 1")
    check_int(queries, "queries", 1)
    check_int(rounds, "rounds", 1)
    check_int(threads, "threads", 1)
    need("faiss")
    rng = np.random.default_rng(seed)
    moments = space.moments(layers)
    fitted = _nested(variant, fold.rows.moments(layers))
    if fitted.rank == 0:
        raise ValueError(f"layers={list(layers)} give every sentence the same vector, so there is nothing to search")
    own = rng.permutation(space.n_sentences)[:queries]
    widths = [min(k, fitted.rank) for k in ks]

    filling = _parts(space.n_sentences, _CHUNK_ROWS) + _parts(corpus - space.n_sentences, _CHUNK_ROWS)
    step = _Steps(progress, filling + _parts(len(own), _BATCH_QUERIES) * (len(ks) + 1) + rounds)
    chunks = corpus_rows(space, layers, moments, fitted, corpus, rng)
    import faiss

    with _threads(faiss, threads):
        raw, *indices = _build([space.dim, *widths], chunks, faiss.IndexFlatIP, step)
        with _matrix_products(faiss):
            found, seconds = _neighbours([raw, *indices], own, top, step)
        times = 1000 * _single_queries(indices, own, top, rounds, rng, step)
    recalls = [_recall(indices[-1], own, found[-1], ids) for ids in found[1:]]
    raw_recalls = [_recall(raw, own, found[0], ids) for ids in found[1:]]

    ratios = times / times[:, -1:]
    rows = tuple(
        SearchCost(
            k=k,
            columns=width,
            bytes=corpus * width * FLOAT_BYTES,
            milliseconds=float(np.median(times[:, i])),
            milliseconds_quartiles=_quartiles(times[:, i]),
            time_ratio=float(np.median(ratios[:, i])),
            time_ratio_quartiles=_quartiles(ratios[:, i]),
            queries_per_second=len(own) / seconds[i + 1],
            recall=recalls[i],
            raw_recall=raw_recalls[i],
        )
        for i, (k, width) in enumerate(zip(ks, widths, strict=True))
    )
    machine = Machine(processor_name(), os.cpu_count() or 1, threads, faiss.__version__)
    return SearchCosts(
        rows, corpus, space.n_sentences, len(own), top, space.dim, fitted.rank, tuple(layers), variant, machine
    )


def _check_corpus(corpus: int, space: LayerEmbeddings, ks: Sequence[int]) -> None:
    check_int(corpus, "corpus", 1)
    if corpus < space.n_sentences:
        raise ValueError(f"corpus={corpus} must be at least n={space.n_sentences}, the task's sentences")
    needed = bytes_needed(space.dim, corpus, ks)
    if needed > MAX_BYTES:
        raise ValueError(
            f"corpus={corpus} needs {needed / 2**30:.1f} GiB for d={space.dim} and {len(ks)} values of k, "
            f"more than {MAX_BYTES / 2**30:g} GiB"
        )


def _parts(count: int, size: int) -> int:
    return -(-count // size)


def _nested(variant: str, moments: Moments) -> whitening.Whitener:
    """The map whose first k columns are the variant at k; inner products see no rotation."""
    found = whitening.directions(variant, moments)
    return whitening.Whitener(variant, moments.mean, found.matrix, found.rank, None, moments.count)


def corpus_rows(
    space: LayerEmbeddings,
    layers: Sequence[int],
    moments: Moments,
    fitted: whitening.Whitener,
    corpus: int,
    rng: np.random.Generator,
) -> Iterator[tuple[Float[np.ndarray, "c d"], Float[np.ndarray, "c r"]]]:
    """The corpus in chunks, raw and through `fitted`: the sentences, then rows from their Gaussian.

    x = mean + U Lambda^(1/2) g with g standard normal, and its image under `fitted` is computed from g at once.
    """
    x = space.combine(layers)
    for start in range(0, len(x), _CHUNK_ROWS):
        part = x[start : start + _CHUNK_ROWS]
        yield part.numpy().astype(np.float32), fitted(part).numpy().astype(np.float32)
    kept = moments.eigen
    half = (kept.vectors * kept.values.sqrt()).T
    mean, root = moments.mean.numpy().astype(np.float32), half.numpy().astype(np.float32)
    shift = ((moments.mean - fitted.mean) @ fitted.matrix).numpy().astype(np.float32)
    image = (half @ fitted.matrix).numpy().astype(np.float32)
    for start in range(len(x), corpus, _CHUNK_ROWS):
        g = rng.standard_normal((min(_CHUNK_ROWS, corpus - start), kept.rank), dtype=np.float32)
        yield g @ root + mean, g @ image + shift


@contextmanager
def _threads(faiss, threads: int) -> Iterator[None]:
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(threads)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


@contextmanager
def _matrix_products(faiss) -> Iterator[None]:
    """Let faiss search every batch by matrix products.

    Left alone, faiss 1.15 compares queries one by one while queries x columns < 128 000, a bound meant for
    many threads (its pull request 5109). On one thread that is several times slower, and a batch would change
    its method somewhere between two values of k.
    """
    before = faiss.cvar.distance_compute_blas_threshold
    faiss.cvar.distance_compute_blas_threshold = 1
    try:
        yield
    finally:
        faiss.cvar.distance_compute_blas_threshold = before


def _build(widths: Sequence[int], chunks: Iterable, new: Callable, step: "_Steps") -> list:
    """One index of the raw rows and one for each further width, of unit rows cut to that many columns."""
    indices = [new(width) for width in widths]
    for raw, z in chunks:
        indices[0].add(unit_rows(raw))
        for index in indices[1:]:
            index.add(unit_rows(z[:, : index.d]))
        step()
    return indices


def unit_rows(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    """Rows divided by their length, contiguous; a zero row stays zero."""
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return np.divide(x, length, out=np.zeros(x.shape, x.dtype), where=length > 0)


def _neighbours(indices: Sequence, own: np.ndarray, top: int, step: "_Steps") -> tuple[list[np.ndarray], list[float]]:
    """Ids `[q, top]` of every index without the query itself, and the seconds of the batches."""
    found, seconds = [[] for _ in indices], [0.0] * len(indices)
    for start in range(0, len(own), _BATCH_QUERIES):
        batch = own[start : start + _BATCH_QUERIES]
        for i, index in enumerate(indices):
            queries = index.reconstruct_batch(batch)
            if start == 0:
                index.search(queries, top + 1)  # the first search also wakes threads and fills buffers
            begin = time.perf_counter()
            _, ids = index.search(queries, top + 1)
            seconds[i] += time.perf_counter() - begin
            found[i].append(without_self(ids, batch))
            step()
    return [np.concatenate(parts) for parts in found], seconds


def without_self(ids: Int[np.ndarray, "q m"], own: Int[np.ndarray, "q"]) -> Int[np.ndarray, "q t"]:
    """The first m - 1 ids of each row that are not the query's own, in order.

    Where m or more rows tie with the query its own id may be missing; the last id goes then.
    """
    last = np.argsort(ids == own[:, None], axis=1, kind="stable")
    return np.take_along_axis(ids, last, axis=1)[:, :-1]


def _single_queries(
    indices: Sequence, own: np.ndarray, top: int, rounds: int, rng: np.random.Generator, step: "_Steps"
) -> np.ndarray:
    """Seconds `[rounds, indices]` of one query alone; the order of the indices is drawn anew in every round."""
    seconds = np.empty((rounds, len(indices)))
    queries = [index.reconstruct_batch(own) for index in indices]
    for number in range(rounds):
        this, other = number % len(own), (number + 1) % len(own)
        for i in rng.permutation(len(indices)):
            indices[i].search(queries[i][other : other + 1], top + 1)
            query = queries[i][this : this + 1]
            begin = time.perf_counter()
            indices[i].search(query, top + 1)
            seconds[number, i] = time.perf_counter() - begin
        step()
    return seconds


def _recall(reference, own: np.ndarray, true: Int[np.ndarray, "q t"], found: Int[np.ndarray, "q t"]) -> float:
    """Share of `found` whose cosine in `reference` reaches that of the last of `true`."""
    queries = reference.reconstruct_batch(own)

    def cosines(ids):
        rows = reference.reconstruct_batch(ids.ravel()).reshape(*ids.shape, -1)
        return np.einsum("qd,qtd->qt", queries, rows)

    return float((cosines(found) >= cosines(true).min(axis=1, keepdims=True) - _TIE).mean())


def _quartiles(values: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(values, [0.25, 0.75])
    return float(low), float(high)


class _Steps:
    """Counts steps and tells `progress`."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.done, self.total = progress, 0, total

    def __call__(self) -> None:
        self.done += 1
        if self.progress:
            self.progress(self.done, self.total)


def processor_name() -> str:
    """The processor as its maker names it, or its architecture where the system does not tell."""
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "unknown processor"
