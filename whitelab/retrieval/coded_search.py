"""What fewer bits buy a search: memory, time and neighbours of each code among as many vectors as asked for."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from whitelab.base.installation import need
from whitelab.base.machine import processor
from whitelab.base.progress import Progress, Steps, silent
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.retrieval import search_cost
from whitelab.retrieval.compression import TRAINED, Code, Coder, check_codes
from whitelab.retrieval.search_cost import MAX_BYTES, SearchPlan, filled_corpus, planned, steps_of, unit_rows
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.setting import Setting, check_is_setting

# What faiss has an index for. It has none that compares numbers with signs, so `binary` is not among them.
SEARCHED = tuple(map(Code, ("float32", "float16", "int8", "pq4", "hamming", "pq8")))


@dataclass(frozen=True)
class CodedSearch:
    """One code: `bytes` of all its vectors, single queries in `milliseconds` (median, quartiles) and as a ratio to
    float32 in the same round, `queries_per_second` in batches, and the share of float32's neighbours found.
    """

    code: Code
    bytes: int
    milliseconds: float
    milliseconds_quartiles: tuple[float, float]
    time_ratio: float
    queries_per_second: float
    recall: float

    def as_dict(self) -> dict:
        """A JSON-ready record."""
        record = asdict(self) | {"code": str(self.code)}
        record["milliseconds_q1"], record["milliseconds_q3"] = record.pop("milliseconds_quartiles")
        return record


@dataclass(frozen=True)
class CodedSearches:
    """Exhaustive search over `corpus` vectors of a setting, `sentences` of them real, by each code; float32 first."""

    rows: tuple[CodedSearch, ...]
    setting: Setting
    corpus: int
    sentences: int
    dim: int
    top: int
    machine: str

    def as_dict(self) -> dict:
        """A JSON-ready record."""
        return asdict(self) | {"rows": [row.as_dict() for row in self.rows], "setting": str(self.setting)}


def check_searched(setting: Setting, codes: Sequence[Code]) -> None:
    """Raise ValueError for the fit scope `cross`, and for a code that no index of faiss searches.

    Raises TypeError for what is no Setting and no Code.
    """
    if check_is_setting(setting).fit == "cross":
        raise ValueError("fit='cross' fits 2 maps, and an index holds the vectors of one")
    if any(code.quantizer == "binary" for code in check_codes(codes)):
        raise ValueError("codes must not hold binary: faiss has no index that compares numbers with signs; use hamming")


def coded_searches(
    space: LayerEmbeddings,
    setting: Setting,
    codes: Sequence[Code] = SEARCHED,
    plan: SearchPlan | None = None,
    progress: Progress = silent,
) -> CodedSearches:
    """Memory, time and recall of an exhaustive faiss search of each code, as `search_cost.search_costs` measures k.

    The corpus is the task's sentences under the setting's map, filled up with rows of their Gaussian; it streams, and
    only the indices are held. Codes are trained on the sentences. Queries stay in float32. `plan.ks` does not count.
    Raises ValueError as `SearchPlan.on` and `check_searched`, and for indices of more than `MAX_BYTES` together.
    `progress(done, total)` may raise to cancel.
    """
    need("faiss")
    import faiss

    check_searched(setting, codes)
    plan = replace(planned(plan), ks=(1,)).on(space)
    fitted = fit_scope(space, setting)
    (whitener,) = fitted.whiteners
    whitener, moments = replace(whitener, matrix=whitener.dense), space.moments(fitted.setting.layers)
    rng = np.random.default_rng(plan.seed)
    rows = unit_rows(whitener(space.combine(fitted.setting.layers)).numpy()).astype(np.float32)
    coders = _coders(tuple(dict.fromkeys((Code(), *codes))), rows, plan)
    own = rng.permutation(space.n_sentences)[: plan.queries]
    queries = [np.ascontiguousarray(coder.asking(rows[own])) for coder in coders]
    step = Steps(progress, steps_of(plan, space.n_sentences, len(own), len(coders)))
    with search_cost.threads(faiss, plan.threads):
        for _, z in filled_corpus(space, fitted.setting.layers, moments, whitener, plan.corpus, rng):
            part = unit_rows(z)
            for coder in coders:
                coder.index.add(np.ascontiguousarray(coder.asking(part)))
            step()
        indices = [coder.index for coder in coders]
        with search_cost.matrix_products(faiss):
            ids, seconds = search_cost.neighbours(indices, queries, own, plan.top, step)
        times = 1000 * search_cost.single_queries(indices, queries, plan.top, plan.rounds, rng, step)
    found = tuple(
        CodedSearch(
            code=coder.code,
            bytes=plan.corpus * coder.bytes,
            milliseconds=float(np.median(times[:, i])),
            milliseconds_quartiles=search_cost.quartiles(times[:, i]),
            time_ratio=float(np.median(times[:, i] / times[:, 0])),
            queries_per_second=len(own) / seconds[i],
            recall=search_cost.recall(indices[0], own, ids[0], ids[i]),
        )
        for i, coder in enumerate(coders)
    )
    machine = f"{processor(plan.threads)}, faiss {faiss.__version__}"
    sizes = (plan.corpus, space.n_sentences, rows.shape[1], plan.top)
    return CodedSearches(found, fitted.setting, *sizes, machine)


def _coders(codes: Sequence[Code], rows: np.ndarray, plan: SearchPlan) -> list[Coder]:
    """A coder of each code, trained on `rows` [n, d]. Raises ValueError for indices of more than `MAX_BYTES`."""
    rotations: dict = {}
    coders = [Coder(code, rows[:TRAINED], rotations, plan.seed) for code in codes]
    needed = plan.corpus * sum(coder.bytes for coder in coders)
    if needed > MAX_BYTES:
        limit = MAX_BYTES / 2**30
        raise ValueError(
            f"corpus={plan.corpus} needs {needed / 2**30:.1f} GiB for these codes, more than {limit:g} GiB"
        )
    return coders
