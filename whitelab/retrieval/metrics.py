"""What a ranking is worth: nDCG, MRR, MAP and recall of every query, from the ranks of its relevant documents.

These are what trec_eval gives (so ir_measures, BEIR and MTEB), and where all grades are equal what
sentence_transformers' InformationRetrievalEvaluator gives, but for one corner: of a query with more than 100 relevant
documents that evaluator divides MAP@100 by 100, trec_eval by their number, and so does this.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from whitelab.statistics.linalg import exact


@dataclass(frozen=True)
class Metric:
    """One entry of `METRICS`: `of(ranks [j, v], relevant, depth)` gives [q, v], from 0 to 1, for v rankings."""

    of: Callable[[Int[Tensor, "j v"], "Relevant", int], Float[Tensor, "q v"]]
    depth: int
    label: str
    formula: str
    source: str
    hint: str


@dataclass(frozen=True, eq=False)
class Relevant:
    """The relevant documents of q queries: judgement i has the grade `grade[i]` > 0 for query `query[i]`."""

    query: Int[Tensor, "j"]
    grade: Float[Tensor, "j"]
    n_queries: int

    def total(self, values: Float[Tensor, "j v"]) -> Float[Tensor, "q v"]:
        """The sum of the values of each query."""
        zero = torch.zeros(self.n_queries, values.shape[1], dtype=torch.float64)
        return zero.index_add_(0, self.query, exact(values))

    @property
    def count(self) -> Float[Tensor, "q 1"]:
        """How many relevant documents each query has."""
        return self.total(torch.ones(len(self.query), 1))

    def ideal(self) -> Int[Tensor, "j 1"]:
        """The ranks in the best ranking there can be: by falling grade, from 1 in each query."""
        by_grade = self.grade.argsort(descending=True, stable=True)
        order = by_grade[self.query[by_grade].argsort(stable=True)][:, None]
        return torch.empty_like(order).scatter_(0, order, self.places(order))

    def places(self, order: Int[Tensor, "j v"]) -> Int[Tensor, "j v"]:
        """The place of each judgement among those of its query, from 1, where `order` sorts them by query."""
        sizes = torch.bincount(self.query, minlength=self.n_queries)
        start = sizes.cumsum(0) - sizes
        return torch.arange(len(order))[:, None] - start[self.query[order]] + 1


def _dcg(ranks: Int[Tensor, "j v"], relevant: Relevant, depth: int) -> Float[Tensor, "q v"]:
    gains = relevant.grade[:, None] / torch.log2(exact(ranks) + 1)
    return relevant.total(torch.where(ranks <= depth, gains, 0.0))


def ndcg(ranks: Int[Tensor, "j v"], relevant: Relevant, depth: int) -> Float[Tensor, "q v"]:
    """DCG / that of the best ranking, DCG = sum over ranks r <= depth of grade / log2(r + 1).

    Järvelin and Kekäläinen 2002, with the grade itself as gain, as in trec_eval's ndcg_cut.
    """
    return _dcg(ranks, relevant, depth) / _dcg(relevant.ideal(), relevant, depth)


def mrr(ranks: Int[Tensor, "j v"], relevant: Relevant, depth: int) -> Float[Tensor, "q v"]:
    """1 / the rank of the first relevant document, 0 where it is below `depth`."""
    first = torch.full((relevant.n_queries, ranks.shape[1]), torch.iinfo(torch.int64).max)
    first.scatter_reduce_(0, relevant.query[:, None].expand_as(ranks), ranks, "amin")
    return torch.where(first <= depth, 1 / exact(first), 0.0)


def average_precision(ranks: Int[Tensor, "j v"], relevant: Relevant, depth: int) -> Float[Tensor, "q v"]:
    """The mean over the relevant documents of the precision at their ranks, 0 for those below `depth`."""
    # Judgements by query and, inside it, by rank: the i-th relevant document of a query has precision i / rank.
    by_rank = ranks.argsort(dim=0, stable=True)
    order = by_rank.gather(0, relevant.query[by_rank].argsort(dim=0, stable=True))
    found = ranks.gather(0, order)
    precision = torch.where(found <= depth, exact(relevant.places(order)) / exact(found), 0.0)
    totals = torch.zeros(relevant.n_queries, ranks.shape[1], dtype=torch.float64)
    return totals.scatter_add_(0, relevant.query[order], precision) / relevant.count


def recall(ranks: Int[Tensor, "j v"], relevant: Relevant, depth: int) -> Float[Tensor, "q v"]:
    """The share of the relevant documents that are among the first `depth`."""
    return relevant.total(exact(ranks <= depth)) / relevant.count


_DCG = r"\frac{\sum_{r\le 10} g_r/\log_2(r+1)}{\sum_{r\le 10} g^*_r/\log_2(r+1)}"

METRICS: dict[str, Metric] = {
    "ndcg@10": Metric(
        ndcg,
        10,
        "nDCG@10",
        rf"\mathrm{{nDCG@10}} = {_DCG}",
        "Järvelin and Kekäläinen 2002; the grade is the gain, as in trec_eval. g* are the grades in the best order",
        "How near the first ten come to the best first ten there can be; higher ranks and grades count more.",
    ),
    "mrr@10": Metric(
        mrr,
        10,
        "MRR@10",
        r"\mathrm{MRR@10} = \overline{1/r_1},\quad r_1 = \text{rank of the first relevant document, } r_1\le 10",
        "Voorhees 1999",
        "How soon the first relevant document comes: 1 at the first place, 1/2 at the second.",
    ),
    "map@100": Metric(
        average_precision,
        100,
        "MAP@100",
        r"\mathrm{AP@100} = \tfrac{1}{R}\sum_{i:\,r_i\le 100} i/r_i,\quad r_1<r_2<\dots \text{ the relevant ranks}",
        "Buckley and Voorhees 2000; R relevant documents, found or not, as in trec_eval",
        "The precision at the rank of every relevant document, averaged over all of them.",
    ),
    "recall@10": Metric(
        recall,
        10,
        "Recall@10",
        r"\mathrm{Recall@}n = \#\{i: r_i\le n\}/R",
        "trec_eval's recall",
        "The share of the relevant documents among the first ten.",
    ),
    "recall@100": Metric(
        recall,
        100,
        "Recall@100",
        r"\mathrm{Recall@}n = \#\{i: r_i\le n\}/R",
        "trec_eval's recall",
        "The share of the relevant documents among the first hundred.",
    ),
}


def measured(ranks: Int[Tensor, "j v"], relevant: Relevant) -> Float[Tensor, "m q v"]:
    """Every metric of `METRICS`, in its order, of every query under v rankings, from the ranks (1 = first)."""
    return torch.stack([metric.of(ranks, relevant, metric.depth) for metric in METRICS.values()])
