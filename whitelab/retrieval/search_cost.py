"""What a smaller k buys: memory, time and neighbours of an exact search, measured with faiss.

The corpus is the task's sentences, filled up with synthetic rows to the size of interest. In the eigenbasis
the first k columns of a whitened space are whitening-k, so one projection serves every k. A variant whose own map
leaves d numbers (ZCA whitening, say) is measured so too: as it is stored once it is turned to the k directions kept.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from whitelab import whitening
from whitelab.base.checks import check_int, check_is
from whitelab.base.installation import need
from whitelab.base.machine import processor
from whitelab.base.progress import Progress, Steps, silent
from whitelab.encoding.embeddings import LayerEmbeddings, check_space
from whitelab.scoring.fit_scopes import folds
from whitelab.scoring.setting import Setting, check_is_setting
from whitelab.statistics.moments import Moments

MAX_BYTES = 4 * 2**30  # of all indices of one measurement, which are held side by side
FLOAT_BYTES = 4

# A neighbour counts when its cosine is within this of the last true one: below it float32 cannot tell ties apart.
_TIE = 1e-6
_CHUNK_ROWS = 8192
_BATCH_QUERIES = 64


@dataclass(frozen=True)
class SearchPlan:
    """What is searched, and how often: each of `ks` (None: d and its halves; d is always among them) in a corpus of
    `corpus` rows, for the `top` neighbours of at most `queries` of the task's sentences, with `threads` threads;
    single queries are timed in `rounds`. `seed` draws queries, synthetic rows and orders.
    """

    ks: tuple[int, ...] | None = None
    corpus: int = 100_000
    queries: int = 256
    top: int = 10
    rounds: int = 40
    threads: int = 1
    seed: int = 0

    def on(self, space: LayerEmbeddings) -> "SearchPlan":
        """The plan with its `ks`, ascending, d among them.

        Raises ValueError as `check`, for a k that does not exist, and for a corpus that needs more than MAX_BYTES,
        TypeError as `check_space`.
        """
        self.check(check_space(space).n_sentences)
        ks = default_ks(space.dim) if self.ks is None else self.ks
        ks = tuple(sorted({check_int(k, "k", 1, space.dim, "d") for k in ks} | {space.dim}))
        needed = bytes_needed(space.dim, self.corpus, ks)
        if needed > MAX_BYTES:
            raise ValueError(
                f"corpus={self.corpus} needs {needed / 2**30:.1f} GiB for d={space.dim} and {len(ks)} values of k, "
                f"more than {MAX_BYTES / 2**30:g} GiB"
            )
        return replace(self, ks=ks)

    def check(self, sentences: int) -> None:
        """Raise ValueError for a corpus of fewer than the task's `sentences`, and for counts out of their range."""
        check_int(self.corpus, "corpus", 1)
        if self.corpus < sentences:
            raise ValueError(f"corpus={self.corpus} must be at least n={sentences}, the task's sentences")
        check_int(self.top, "top", 1, self.corpus - 1, "corpus - 1")
        for name in ("queries", "rounds", "threads"):
            check_int(getattr(self, name), name, 1)
        check_int(self.seed, "seed", 0)


@dataclass(frozen=True)
class SearchCost:
    """One k: vectors of `dim` numbers, as many as directions are kept (of the map itself: `Variant.columns`), are
    stored, in `bytes` of float32.

    `milliseconds` of one query alone (median, with its quartiles); `time_ratio` is the median, with
    quartiles, of its ratio to d in the same round; `queries_per_second` of queries in batches. `recall` is the
    share of the neighbours at k = d that is found, `raw_recall` that of the raw vectors' neighbours.
    """

    k: int
    dim: int
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
    setting: Setting
    machine: str

    def memory_ratio(self, row: SearchCost) -> float:
        """Bytes against those at k = d: exactly k/d where the fit's texts span d directions."""
        return row.bytes / self.rows[-1].bytes

    def nearest(self, k: int) -> SearchCost:
        """The measured row whose k is nearest to `k`, the smaller of two equally near ones."""
        return min(self.rows, key=lambda row: abs(row.k - k))

    def as_dict(self) -> dict:
        """A JSON-ready record."""
        record = asdict(self) | {"rows": [self.record(row) for row in self.rows]}
        return record | {"setting": str(self.setting)}

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


def planned(plan: SearchPlan | None) -> SearchPlan:
    """The plan, or the usual one where there is none. Raises TypeError for all else."""
    return SearchPlan() if plan is None else check_is(plan, "plan", SearchPlan, "SearchPlan(corpus=100_000) is")


def search_costs(
    space: LayerEmbeddings, setting: Setting, plan: SearchPlan | None = None, progress: Progress = silent
) -> SearchCosts:
    """Memory, time and recall of an exact cosine search (`faiss.IndexFlatIP`) for each k of the plan.

    The corpus holds every sentence of the task once, and rows drawn from the Gaussian with the mean and
    covariance of the task's sentences, `plan.corpus` in all. Queries are sentences, each left out of its own
    neighbours. Every round searches one query in every index, in an order drawn anew, each after another query that is
    not timed, so it finds the processor's caches as a service with that index alone would. Batches are matrix
    products. A row counts as a neighbour when its cosine reaches that of the last true neighbour, so ties count for
    everyone; at k = d recall is exactly 1. Su et al. 2021, section 3.3: the speed of retrieval is "directly
    proportional to the dimensionality".

    The setting's own k and aggregate do not count. Raises ValueError for a variant without k, for the fit scope
    `cross`, which has two maps, as `SearchPlan.on`, and
    MissingLibraryError where faiss is not installed. `progress(done, total)` may raise to cancel.
    """
    setting, plan = check_is_setting(setting).with_(k=None).on(space), planned(plan).on(space)
    whitening.check_same_weights(setting.whitening)
    fold, *others = folds(space, setting.fit)
    if others:
        raise ValueError(f"fit={setting.fit!r} fits {1 + len(others)} maps, and an index holds the vectors of one")
    need("faiss")
    moments = fold.rows.moments(setting.layers)
    basis = whitening.directions(setting.whitening, moments)
    if not basis.kept(1):
        layers = list(setting.layers)
        raise ValueError(f"layers={layers} give every sentence the same vector, so there is nothing to search")
    measured = _measured(space, setting, plan, moments, basis, progress)
    import faiss

    machine = f"{processor(plan.threads)}, faiss {faiss.__version__}"
    queries = min(plan.queries, space.n_sentences)
    sizes = (plan.corpus, space.n_sentences, queries, plan.top, space.dim, basis.rank)
    return SearchCosts(_tabulated(plan, measured), *sizes, setting, machine)


@dataclass(frozen=True, eq=False)
class _Measured:
    """By k: columns stored, milliseconds of single queries `[rounds, k]`, queries a second in batches, recalls."""

    widths: Sequence[int]
    times: Float[np.ndarray, "r k"]
    rates: Sequence[float]
    recalls: Sequence[float]
    raw_recalls: Sequence[float]


def _measured(
    space: LayerEmbeddings,
    setting: Setting,
    plan: SearchPlan,
    moments: Moments,
    basis: whitening.Directions,
    progress: Progress,
) -> _Measured:
    import faiss

    rng = np.random.default_rng(plan.seed)
    own = rng.permutation(space.n_sentences)[: plan.queries]
    fitted, widths = _nested(setting.whitening, moments, basis), [basis.kept(k) for k in plan.ks]
    step = Steps(progress, steps_of(plan, space.n_sentences, len(own), len(widths) + 1))
    chunks = filled_corpus(space, setting.layers, space.moments(setting.layers), fitted, plan.corpus, rng)
    with threads(faiss, plan.threads):
        raw, *indices = _build([space.dim, *widths], chunks, faiss.IndexFlatIP, step)
        queries = [index.reconstruct_batch(own) for index in (raw, *indices)]
        with matrix_products(faiss):
            ids, seconds = neighbours([raw, *indices], queries, own, plan.top, step)
        times = 1000 * single_queries(indices, queries[1:], plan.top, plan.rounds, rng, step)
    return _Measured(
        widths,
        times,
        [len(own) / spent for spent in seconds[1:]],
        [recall(indices[-1], own, ids[-1], part) for part in ids[1:]],
        [recall(raw, own, ids[0], part) for part in ids[1:]],
    )


def _tabulated(plan: SearchPlan, measured: _Measured) -> tuple[SearchCost, ...]:
    times, ratios = measured.times, measured.times / measured.times[:, -1:]
    return tuple(
        SearchCost(
            k=k,
            dim=measured.widths[i],
            bytes=plan.corpus * measured.widths[i] * FLOAT_BYTES,
            milliseconds=float(np.median(times[:, i])),
            milliseconds_quartiles=quartiles(times[:, i]),
            time_ratio=float(np.median(ratios[:, i])),
            time_ratio_quartiles=quartiles(ratios[:, i]),
            queries_per_second=measured.rates[i],
            recall=measured.recalls[i],
            raw_recall=measured.raw_recalls[i],
        )
        for i, k in enumerate(plan.ks)
    )


def steps_of(plan: SearchPlan, sentences: int, queries: int, indices: int) -> int:
    """Of a search: chunks of `filled_corpus`, batches of queries in each of the indices, rounds that are timed."""
    filling = _parts(sentences, _CHUNK_ROWS) + _parts(plan.corpus - sentences, _CHUNK_ROWS)
    return filling + _parts(queries, _BATCH_QUERIES) * indices + plan.rounds


def _parts(count: int, size: int) -> int:
    return -(-count // size)


def _nested(variant: str, moments: Moments, found: whitening.Directions) -> whitening.Whitener:
    """The map whose first `found.kept(k)` columns are the variant at k; inner products see no rotation."""
    mean = moments.mean if found.centred else moments.mean.new_zeros(moments.dim)
    return whitening.Whitener(variant, mean, found.matrix, found.rank, None, moments.count)


def filled_corpus(
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
def threads(faiss, threads: int) -> Iterator[None]:
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(threads)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


@contextmanager
def matrix_products(faiss) -> Iterator[None]:
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


def _build(widths: Sequence[int], chunks: Iterable, new: Callable, step: Steps) -> list:
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


def neighbours(
    indices: Sequence, queries: Sequence[np.ndarray], own: np.ndarray, top: int, step: Steps
) -> tuple[list[np.ndarray], list[float]]:
    """Ids `[q, top]` in every index of its own queries without themselves, and the seconds of the batches."""
    found, seconds = [[] for _ in indices], [0.0] * len(indices)
    for start in range(0, len(own), _BATCH_QUERIES):
        batch = own[start : start + _BATCH_QUERIES]
        for i, index in enumerate(indices):
            asked = queries[i][start : start + _BATCH_QUERIES]
            if start == 0:
                index.search(asked, top + 1)  # the first search also wakes threads and fills buffers
            begin = time.perf_counter()
            _, ids = index.search(asked, top + 1)
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


def single_queries(
    indices: Sequence, queries: Sequence[np.ndarray], top: int, rounds: int, rng: np.random.Generator, step: Steps
) -> np.ndarray:
    """Seconds `[rounds, indices]` of one query alone; the order of the indices is drawn anew in every round."""
    seconds = np.empty((rounds, len(indices)))
    count = len(queries[0])
    for number in range(rounds):
        this, other = number % count, (number + 1) % count
        for i in rng.permutation(len(indices)):
            indices[i].search(queries[i][other : other + 1], top + 1)
            query = queries[i][this : this + 1]
            begin = time.perf_counter()
            indices[i].search(query, top + 1)
            seconds[number, i] = time.perf_counter() - begin
        step()
    return seconds


def recall(reference, own: np.ndarray, true: Int[np.ndarray, "q t"], found: Int[np.ndarray, "q t"]) -> float:
    """Share of `found` whose cosine in `reference` reaches that of the last of `true`."""
    queries = reference.reconstruct_batch(own)

    def cosines(ids):
        rows = reference.reconstruct_batch(ids.ravel()).reshape(*ids.shape, -1)
        return np.einsum("qd,qtd->qt", queries, rows)

    return float((cosines(found) >= cosines(true).min(axis=1, keepdims=True) - _TIE).mean())


def quartiles(values: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(values, [0.25, 0.75])
    return float(low), float(high)
