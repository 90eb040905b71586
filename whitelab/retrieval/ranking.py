"""Where the relevant documents stand in the ranking of their query: under a setting, and for every k at once.

Only ranks are needed, and the rank of a document is one more than the number of those before it: nothing is sorted.
The document that a query is itself (`RetrievalSpace.own`) does not count.
Cosines of a query with the others that are one but for rounding are a tie, as in `correlation.is_constant`: whitening
every direction of fewer texts than dimensions makes them so, and their last digits would pass for a ranking.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from whitelab import whitening
from whitelab.base.progress import Progress, silent
from whitelab.base.threads import side_by_side
from whitelab.retrieval.embedded import RetrievalSpace
from whitelab.scoring.fit_scopes import Fitted, folds
from whitelab.scoring.setting import Setting
from whitelab.statistics import geometry
from whitelab.statistics.correlation import CONSTANT_WITHIN, is_constant
from whitelab.statistics.geometry import COSINE_DECIMALS
from whitelab.whitening import Directions

_SCORES = 2**25  # cosines of queries with documents that are held at once
_CELLS = 2**22  # judgements x documents that are compared at once
_DOCUMENTS = 1024  # documents whose running sums are taken at once, for one query


def cosines(space: RetrievalSpace, fitted: Fitted, queries: slice = slice(None)) -> Float[Tensor, "q n"]:
    """The cosine of these queries with every document under the map, rounded as all cosines are; 0 for a zero row."""
    unit = geometry.normalize(fitted.turned())
    return _products(unit[space.queries[queries]], unit[space.documents])


def ranks_under(space: RetrievalSpace, fitted: Fitted) -> Int[Tensor, "j"]:
    """The rank (1 = first) of every relevant document in its query's ranking of all, by the cosines under a map.

    Of documents with one cosine the one whose id comes first as text stands first, as in sentence_transformers'
    evaluator. No more than `_SCORES` cosines are held at once.
    """
    unit = geometry.normalize(fitted.turned())
    documents, query = unit[space.documents], space.relevant.query
    found, step = torch.empty_like(query), max(1, _SCORES // len(documents))
    for start in range(0, len(space.queries), step):
        scores = _products(unit[space.queries[start : start + step]], documents)
        judged = ((query >= start) & (query < start + step)).nonzero()[:, 0]
        found[judged] = _places(space, scores, query[judged], space.document[judged], start)
    return found


def _products(a: Float[Tensor, "q d"], b: Float[Tensor, "n d"]) -> Float[Tensor, "q n"]:
    return (a @ b.T).clamp_(-1, 1).round_(decimals=COSINE_DECIMALS)


def _places(
    space: RetrievalSpace,
    scores: Float[Tensor, "q n"],
    query: Int[Tensor, "j"],
    document: Int[Tensor, "j"],
    start: int = 0,
) -> Int[Tensor, "j"]:
    """The ranks of these documents, where `scores` are those of the queries from `start` on."""
    found, query = torch.empty_like(query), query - start
    itself = space.own[start : start + len(scores)]
    (those,) = (itself >= 0).nonzero(as_tuple=True)
    if len(those):
        scores = scores.clone()
        scores[those, itself[those]] = scores[those, itself[those] - 1]  # another document's, so that it parts no tie
    if (tied := is_constant(scores)).any():
        scores = scores.masked_fill(tied[:, None], 0.0)
    if len(those):
        scores[those, itself[those]] = -torch.inf
    step = max(1, _CELLS // scores.shape[1])
    for at in range(0, len(query), step):
        part = slice(at, at + step)
        rows, own = scores[query[part]], scores[query[part], document[part]][:, None]
        before = (rows > own) | ((rows == own) & (space.by_id < space.by_id[document[part]][:, None]))
        found[part] = 1 + before.sum(1)
    return found


def top(space: RetrievalSpace, scores: Float[Tensor, "n"], count: int, query: int) -> Int[Tensor, "t"]:
    """The first `count` documents of a query's ranking, ties as in `ranks_under`."""
    order = space.by_id.argsort()
    order = order[order != space.own[query]]
    return order[scores[order].argsort(descending=True, stable=True)][:count]


def directions(space: RetrievalSpace, setting: Setting) -> tuple[Directions, Float[Tensor, "s r"]]:
    """The weighted directions of the map and all texts along them: the first `kept(k)` are those of the setting at k.

    Raises ValueError where k has no meaning, and where the directions' weights change with k.
    """
    whitening.check_same_weights(setting.whitening)
    (fold,) = folds(space.space, setting.fit)
    moments = fold.rows.moments(setting.layers)
    basis = whitening.directions(setting.whitening, moments)
    return basis, basis.along(space.space.combine(setting.layers), moments.mean)


def ranks_by_k(space: RetrievalSpace, z: Float[Tensor, "s r"], progress: Progress = silent) -> Int[Tensor, "j r"]:
    """Ranks in the first 1, 2, ..., r columns of `z`: their dot products are running sums, so one pass has them all.

    Queries are worked on side by side. Costs q n r running sums and j n r comparisons. `progress(done, total)` counts
    queries and may raise to cancel.
    """
    query, found = space.relevant.query, torch.empty(len(space.relevant.query), z.shape[1], dtype=torch.int64)
    of = [(query == i).nonzero()[:, 0] for i in range(len(space.queries))]

    def one(i: int) -> None:
        found[of[i]] = _ranks_of(space, z, i, of[i])

    for done, _ in enumerate(side_by_side(one, range(len(of))), start=1):
        progress(done, len(of))
    return found


def _ranks_of(space: RetrievalSpace, z: Float[Tensor, "s r"], i: int, judged: Int[Tensor, "m"]) -> Int[Tensor, "m r"]:
    documents = space.document[judged]
    own, places = _running(z, space.queries[i], space.documents[documents]), space.by_id[documents]
    counts = torch.ones(own.shape, dtype=torch.int64)
    least, most = own.new_full(own.shape[1:], torch.inf), own.new_full(own.shape[1:], -torch.inf)
    others = torch.arange(len(space.documents)) != space.own[i]
    rows_of, ids = space.documents[others], space.by_id[others]
    for rows, by_id in zip(rows_of.split(_DOCUMENTS), ids.split(_DOCUMENTS), strict=True):
        scores = _running(z, space.queries[i], rows)
        least, most = torch.minimum(least, scores.amin(0)), torch.maximum(most, scores.amax(0))
        for place in range(len(own)):
            tied = (scores == own[place]) & (by_id < places[place])[:, None]
            counts[place] += ((scores > own[place]) | tied).sum(0)
    in_order = 1 + (ids < places[:, None]).sum(1, keepdim=True)
    return torch.where(most - least < CONSTANT_WITHIN, in_order, counts)


def _running(z: Float[Tensor, "s r"], query: Int[Tensor, ""], rows: Int[Tensor, "c"]) -> Float[Tensor, "c r"]:
    """The cosine of a query with these rows in the first 1, 2, ..., r columns."""
    a, b = z[query], z[rows]
    return geometry.cosines_from((a * b).cumsum(1), a.square().cumsum(0).expand_as(b), b.square().cumsum(1))
