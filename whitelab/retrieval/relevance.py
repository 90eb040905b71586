"""How well a setting ranks the documents that were judged relevant: of every query, on average, and at every k."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.base.checks import check_choice, check_int, check_several
from whitelab.base.progress import Progress, silent
from whitelab.base.wording import layers_in_words, quantity, spaced
from whitelab.retrieval import ranking
from whitelab.retrieval.embedded import FITS, RetrievalSpace, check_retrieval_space
from whitelab.retrieval.metrics import METRICS, measured
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.paired import RESAMPLES, unless_starved, verdict_of
from whitelab.scoring.setting import Protocol, Setting, check_is_setting, made_by, scope_in_words
from whitelab.statistics.significance import Bootstrap, Difference, bootstrap_means

COUNTS = ("queries", "documents", "truncated", "truncated_queries")  # of a protocol, beside the scores of a document
KNEE = 0.005  # below the best that a knee may be


@dataclass(frozen=True)
class RetrievalProtocol:
    """A setting, what it was applied to, and what was ranked for what: all that decides a score.

    `fitted` counts the texts the map was fitted on (0 where nothing is), `rank` the directions it keeps of `dim`,
    `truncated` the documents that are longer than the model reads, `truncated_queries` such queries. `prompts` stand
    before queries and documents.
    """

    made: Protocol
    documents: int
    queries: int
    judgements: int
    truncated: int
    fitted: int
    rank: int
    dim: int
    prompts: tuple[str, str] = ("", "")
    truncated_queries: int = 0

    @property
    def setting(self) -> Setting:
        """What was chosen, with the layers by their numbers."""
        return self.made.setting

    def as_dict(self) -> dict:
        """A flat JSON-ready record."""
        record = self.made.as_dict()
        record.pop("aggregate")
        names = ("documents", "queries", "judgements", "truncated", "truncated_queries", "fitted", "rank", "dim")
        record |= {name: getattr(self, name) for name in names}
        if any(self.prompts):
            record |= dict(zip(("query_prompt", "document_prompt"), self.prompts, strict=True))
        return record | {"similarity": "cosine", "relevant": "grade > 0", "gain": "grade", "ties": "by document id"}

    def line(self) -> str:
        """The protocol in one line."""
        setting, origin = self.setting, self.made.origin
        variant = setting.named_map
        kept = f"(rank {self.rank} of {self.dim})"
        if setting.fits:
            variant += f" fitted on {scope_in_words(setting.fit, FITS)}, {spaced(self.fitted)} texts {kept}"
        elif setting.whitening != "none":
            variant += f", nothing fitted {kept}"
        made = made_by(origin.pooling)
        cut = "" if origin.max_length is None else f" · at most {origin.max_length} tokens"
        documents = quantity(self.truncated, "document") if self.truncated else ""
        queries = quantity(self.truncated_queries, "query", "queries") if self.truncated_queries else ""
        cut += f", {' and '.join(filter(None, (documents, queries)))} cut" if documents or queries else ""
        cut += " · prompts {!r} and {!r}".format(*self.prompts) if any(self.prompts) else ""
        return (
            f"{origin.model} · {layers_in_words(setting.layers)} · {made} · {origin.data} "
            f"({origin.split}) · {quantity(self.documents, 'document')}, {quantity(self.queries, 'query', 'queries')}, "
            f"{quantity(self.judgements, 'judgement')} · cosine · {variant} · {origin.dtype}{cut}"
        )


@dataclass(frozen=True, eq=False)
class Retrieval:
    """Every metric of `METRICS`, from 0 to 1: of each query (`per_query [m, q]`, rows in the registry's order).

    Where its map is `starved` (`whitening.starved`) the ranking says nothing about meaning.
    """

    per_query: Float[Tensor, "m q"]
    protocol: RetrievalProtocol
    starved: bool = False

    @property
    def setting(self) -> Setting:
        """What was chosen, with the layers by their numbers."""
        return self.protocol.setting

    @property
    def means(self) -> dict[str, float]:
        """Each metric's mean over the queries."""
        return dict(zip(METRICS, self.per_query.mean(1).tolist(), strict=True))

    def of(self, metric: str) -> Float[Tensor, "q"]:
        """One metric of every query. Raises ValueError for an unknown one."""
        return self.per_query[list(METRICS).index(check_choice(metric, "metric", METRICS))]

    def line(self) -> str:
        """How the score was made, in one line."""
        return self.protocol.line()

    def as_dict(self) -> dict:
        """The JSON document of `python -m whitelab retrieve`."""
        counts = {name: getattr(self.protocol, name) for name in COUNTS}
        return self.means | counts | {"protocol": self.protocol.as_dict()}


def retrieve(space: RetrievalSpace, setting: Setting) -> Retrieval:
    """Rank all documents for every query by cosine under a setting, and measure the ranking.

    Raises ValueError as `RetrievalSpace.on`, for a `k` out of range, and for text to fit on that is not carried, and
    TypeError for a space that is no RetrievalSpace.
    """
    fitted = fit_scope(check_retrieval_space(space).space, space.on(setting))
    values = measured(ranking.ranks_under(space, fitted)[:, None], space.relevant)[..., 0]
    return Retrieval(values, protocol_of(space, fitted.setting, fitted.count, fitted.rank), fitted.starved)


@dataclass(frozen=True)
class Hit:
    """A document in the ranking of a query: its number, its cosine, and its grade; None where it was not judged."""

    document: int
    cosine: float
    grade: float | None


def hits(space: RetrievalSpace, setting: Setting, query: int, count: int = 10) -> tuple[Hit, ...]:
    """The first `count` documents in the ranking of query number `query`.

    Raises ValueError as `retrieve`, and for a query that is not there.
    """
    check_int(query, "query", 0, len(check_retrieval_space(space).queries) - 1, "q-1")
    check_int(count, "count", 1)
    (cosines,) = ranking.cosines(space, fit_scope(space.space, space.on(setting)), slice(query, query + 1))
    own = space.data.query == query
    grades = dict(zip(space.data.document[own].tolist(), space.data.grade[own].tolist(), strict=True))
    first = ranking.top(space, cosines, count, query).tolist()
    return tuple(Hit(document, float(cosines[document]), grades.get(document)) for document in first)


def protocol_of(space: RetrievalSpace, setting: Setting, fitted: int, rank: int) -> RetrievalProtocol:
    """What a ranking was made under."""
    sizes = (len(space.documents), len(space.queries), len(space.data.grade), space.truncated)
    prompts = space.data.query_prompt, space.data.document_prompt
    made, dim = Protocol(setting, space.space.origin), space.space.dim
    return RetrievalProtocol(made, *sizes, fitted, rank, dim, prompts, space.truncated_queries)


@dataclass(frozen=True, eq=False)
class RetrievalCurve:
    """Every metric for k = 1..rank: `per_query [m, q, r]`. Above the rank nothing changes."""

    per_query: Float[Tensor, "m q r"]
    protocol: RetrievalProtocol

    @property
    def k(self) -> tuple[int, ...]:
        """1..d."""
        return tuple(range(1, self.protocol.dim + 1))

    def means(self, metric: str = "ndcg@10") -> tuple[float, ...]:
        """One metric's mean over the queries for k = 1..d. Raises ValueError for an unknown one."""
        values = self.per_query[list(METRICS).index(check_choice(metric, "metric", METRICS))].mean(0).tolist()
        return tuple(values + values[-1:] * (self.protocol.dim - len(values)))

    def best_k(self, metric: str = "ndcg@10") -> int:
        """The smallest k with the highest mean."""
        means = self.means(metric)
        return 1 + means.index(max(means))

    def knee(self, metric: str = "ndcg@10") -> int:
        """The smallest k whose mean is within `KNEE` of the best."""
        means = self.means(metric)
        return 1 + next(i for i, value in enumerate(means) if value >= max(means) - KNEE)

    def as_dict(self) -> dict:
        """A JSON-ready record: each metric as a list over k."""
        curves = {name: list(self.means(name)) for name in METRICS}
        counts = {name: getattr(self.protocol, name) for name in COUNTS}
        record = {"k": list(self.k)} | curves | {"best_k": {name: self.best_k(name) for name in METRICS}}
        return record | counts | {"protocol": self.protocol.as_dict() | {"k": "every k"}}


def retrieval_curve(space: RetrievalSpace, setting: Setting, progress: Progress = silent) -> RetrievalCurve:
    """`retrieve` at every k, in one pass; the setting's own k does not count. `center` is PCA without its scaling.

    In the eigenbasis the dot products of every k are running sums, and so are the squared lengths. Raises
    ValueError as `retrieve`, where k has no meaning, and where no direction is left. `progress(done, total)` counts
    queries and may raise to cancel.
    """
    setting = check_retrieval_space(space).on(check_is_setting(setting).with_(k=None))
    basis, z = ranking.directions(space, setting)
    if not basis.kept(1):
        raise ValueError(f"layers={list(setting.layers)} give every text the same vector, so there is nothing to rank")
    ranks = ranking.ranks_by_k(space, z, progress)
    values = measured(ranks[:, [basis.kept(k) - 1 for k in range(1, basis.rank + 1)]], space.relevant)
    fitted = round(space.space.texts[setting.fit].count) if setting.fits else 0
    return RetrievalCurve(values, protocol_of(space, setting, fitted, basis.rank))


# ------------------------------------------------------------------------------------------------ side by side


@dataclass(frozen=True, eq=False)
class RetrievalStanding:
    """One metric of a retrieval, its 95 % bootstrap interval, and its difference from the baseline's.

    `verdict` is a key of `scoring.paired.VERDICTS`; `gained` and `lost` count the queries that rose and fell.
    """

    retrieval: Retrieval
    metric: str
    mean: float
    low: float
    high: float
    difference: Difference
    resamples: int
    verdict: str
    gained: int
    lost: int

    def interval(self) -> dict:
        """The ends of the metric's interval, to stand beside it."""
        return {f"{self.metric}_low": self.low, f"{self.metric}_high": self.high, "resamples": self.resamples}

    def as_dict(self) -> dict:
        """A JSON-ready record of the difference."""
        record = self.difference.as_dict() | {"p_value": self.difference.p_value, "resamples": self.resamples}
        moved = {"queries_gained": self.gained, "queries_lost": self.lost}
        return record | {"verdict": self.verdict} | moved


def against(
    results: Sequence[Retrieval],
    baseline: int = 0,
    metric: str = "ndcg@10",
) -> tuple[RetrievalStanding, ...]:
    """Every result against `results[baseline]` on the same queries, which are resampled for all of them together.

    Raises ValueError for a `baseline` that is not there, for results of different queries and for none, TypeError for
    what is no Retrieval.
    """
    check_several(results, "results", Retrieval, "retrieve(space, setting) gives")
    check_int(baseline, "baseline", 0, len(results) - 1, "len(results)-1")
    sizes = {one.per_query.shape[1] for one in results}
    if len(sizes) > 1:
        raise ValueError(f"results must be of the same queries, got {', '.join(map(str, sorted(sizes)))} of them")
    values = torch.stack([one.of(metric) for one in results])
    drawn = bootstrap_means(values, RESAMPLES)
    return tuple(_standing(results, metric, values, drawn, i, baseline) for i in range(len(results)))


def _standing(
    results: Sequence[Retrieval], metric: str, values: Float[Tensor, "v q"], drawn: Bootstrap, i: int, baseline: int
) -> RetrievalStanding:
    difference, moved = drawn.difference(i, baseline), values[i] - values[baseline]
    low, high, mean = (float(part[i]) for part in (drawn.low, drawn.high, drawn.score))
    gained, lost = int((moved > 0).sum()), int((moved < 0).sum())
    few = results[i].starved or results[baseline].starved
    verdict = "same" if i == baseline else unless_starved(verdict_of(difference, None), few)
    return RetrievalStanding(results[i], metric, mean, low, high, difference, drawn.resamples, verdict, gained, lost)
