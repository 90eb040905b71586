"""Score against bytes a vector: every code after every map, on pairs or on a retrieval set, in blocks of rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import starmap

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from whitelab.base.checks import check_choice, check_int
from whitelab.base.progress import Progress, Steps, silent
from whitelab.base.records import without_nan
from whitelab.base.wording import spaced
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows, check_space
from whitelab.retrieval.compression import CODES, TRAINED, Code, Coder, check_codes
from whitelab.retrieval.embedded import FITS, RetrievalSpace
from whitelab.retrieval.metrics import METRICS, measured
from whitelab.retrieval.relevance import RetrievalProtocol, protocol_of
from whitelab.retrieval.search_cost import unit_rows
from whitelab.scoring.fit_scopes import Fitted, Fold, folds
from whitelab.scoring.paired import RESAMPLES, unless_starved, verdict_of
from whitelab.scoring.setting import FIT_SCOPES, Protocol, Setting, check_settings, scope_in_words
from whitelab.statistics.correlation import ranked_at_once
from whitelab.statistics.linalg import exact
from whitelab.statistics.significance import Bootstrap, Difference, WilliamsTest, bootstrap, bootstrap_means, williams
from whitelab.whitening import Whitener, identity

BLOCK = 8192  # rows that are mapped, coded and compared at once
# Products are summed in float64 and rounded here, so that equal pairs and documents stay tied: products of the rows as
# they are, and of what was turned or cut in float32.
_DECIMALS, _DECIMALS_OF_FLOAT32 = 9, 6

Space = LayerEmbeddings | RetrievalSpace


@dataclass(frozen=True, eq=False)
class CodedScore:
    """A setting stored by a code: `bytes` a vector of `dim` numbers, its score with 95 % interval, and its difference.

    The score is Spearman x 100 of pairs, or a metric of 0 to 1 of a retrieval set. `difference` is paired, from
    float32 raw vectors; `verdict` a key of `scoring.paired.VERDICTS`, `williams` the test that it hears beside the
    bootstrap, None for a search and where subsets are averaged. `values` are cosines of pairs, or the metric of
    queries.
    """

    setting: Setting
    code: Code
    bytes: int
    dim: int
    score: float
    low: float
    high: float
    difference: Difference
    williams: WilliamsTest | None
    resamples: int
    verdict: str
    protocol: Protocol | RetrievalProtocol
    fitted: int
    rank: int
    values: Float[Tensor, "v"] = field(repr=False, compare=False)

    def line(self) -> str:
        """How it was made, in one line."""
        return f"{self.setting_line()} · {self.code.label}, {spaced(self.bytes)} bytes a vector"

    def setting_line(self) -> str:
        """The same of every code of the setting; codes of raw vectors, too, are trained on what a map is fitted on."""
        made, scope = self.protocol, scope_in_words(self.setting.fit, FIT_SCOPES | FITS)
        line = made.line(self.fitted, self.rank) if isinstance(made, Protocol) else made.line()
        return f"{line} · codes trained on {scope}"

    def as_dict(self) -> dict:
        """A JSON-ready record."""
        record = {"setting": str(self.setting), "code": str(self.code), "bytes": self.bytes, "dim": self.dim}
        record |= {"score": self.score, "low": self.low, "high": self.high} | self.difference.as_dict()
        record |= {"p_value": self.difference.p_value, "p_williams": self.williams and self.williams.p_value}
        record |= {"resamples": self.resamples, "verdict": self.verdict}
        return without_nan(record)


@dataclass(frozen=True, eq=False)
class Frontier:
    """Points found so far, float32 raw first, and why any could not be had."""

    points: tuple[CodedScore, ...]
    left_out: tuple[str, ...]
    metric: str

    @property
    def digits(self) -> int:
        """The decimals in which its scores are written: Spearman's are x 100, a search's from 0 to 1."""
        return 2 if self.metric.startswith("Spearman") else 4

    @property
    def scored(self) -> tuple[CodedScore, ...]:
        """The points whose score is defined."""
        return tuple(one for one in self.points if one.score == one.score)

    def best(self) -> tuple[CodedScore, ...]:
        """The frontier: scored points that no other beats with as few bytes, by rising bytes.

        None of a map that is starved of text: under it the rounding of a code is what tells distances apart.
        """
        found: list[CodedScore] = []
        fed = [one for one in self.scored if one.verdict != "starved"]
        for point in sorted(fed, key=lambda one: (one.bytes, -one.score)):
            if not found or point.score > found[-1].score:
                found.append(point)
        return tuple(found)

    def as_dict(self) -> dict:
        """The JSON document of `python -m whitelab bits`."""
        best = self.best()
        points = [one.as_dict() | {"on_frontier": one in best} for one in self.points]
        return {"metric": self.metric, "points": points, "left_out": list(self.left_out)}


def frontier(
    space: Space,
    settings: Sequence[Setting],
    codes: Sequence[Code] = CODES,
    metric: str = "ndcg@10",
    seed: int = 0,
    progress: Progress = silent,
) -> Iterator[Frontier]:
    """Every setting stored by every code, and float32 raw, against which all are held; grows by a setting each time.

    All settings are of one fit scope, on whose rows rotations and quantisers are trained too, those of raw vectors
    included: at most `TRAINED` of its different sentences, drawn by `seed`. Rows are mapped, coded and compared
    `BLOCK` at a time, and no table of all of them is made. `metric` is of retrieval sets. Pairs are scored by one
    Spearman over all of them or as the settings' `aggregate` says.

    A code that cannot be trained is left out and named. Raises ValueError as `Setting.on` and `RetrievalSpace.on`, for
    settings of several scopes, and MissingLibraryError without faiss. `progress(done, total)` counts blocks and may
    raise to cancel.
    """
    check_int(seed, "seed", 0)
    check_choice(metric, "metric", METRICS)
    settings, codes = tuple(dict.fromkeys(check_settings(settings))), check_codes(codes)
    if not isinstance(space, RetrievalSpace):
        check_space(space)
    raw = settings[0].with_(whitening="none")
    if len({(one.fit, one.aggregate) for one in settings}) > 1:
        raise ValueError("settings must share one fit scope and one aggregate")
    plain = Code()
    work = [(one, codes) for one in settings if one != raw]
    work.insert(0, (raw, tuple(dict.fromkeys((plain, *(codes if raw in settings else ()))))))
    # Codes are made by faiss and NumPy.
    task = _Ranked(space, metric) if isinstance(space, RetrievalSpace) else _Scored(space.to("cpu"), raw.aggregate)
    step = Steps(progress, sum(task.blocks(raw.fit) + len(own) for _, own in work))
    points: tuple[CodedScore, ...] = ()
    left_out: dict[str, list[tuple[str, str]]] = {}
    for setting, own in work:
        made = _coded(task, setting, own, seed, left_out, step)
        points += tuple(task.points(made, (points or made)[0].values))
        yield Frontier(points, tuple(starmap(_left_out, left_out.items())), task.label)


def _left_out(reason: str, whose: Sequence[tuple[str, str]]) -> str:
    """Why codes of settings could not be had, in one line for all that it is true of."""
    codes, specs = (", ".join(dict.fromkeys(names)) for names in zip(*whose, strict=True))
    return f"{codes} of {specs}: {reason}"


@dataclass(frozen=True, eq=False)
class _Made:
    """A setting under a code before it is held against another: the values of pairs or queries."""

    setting: Setting
    code: Code
    bytes: int
    dim: int
    rank: int
    fitted: int
    values: Float[Tensor, "v"]
    starved: bool


@dataclass(frozen=True, eq=False)
class _Map:
    """One fold's map, and the rows that are trained on."""

    whitener: Whitener
    layers: tuple[int, ...]
    fold: Fold
    seed: int

    def rows(self, values: Float[Tensor, "l n d"], at: Int[Tensor, "c"]) -> Float[np.ndarray, "c m"]:
        """Rows `at` under the map, of length 1, in float64."""
        x = exact(values[self.layers[0]][at], copy=True)
        for layer in self.layers[1:]:
            x += exact(values[layer][at])
        return unit_rows(self.whitener(x.div_(len(self.layers))).numpy())

    def training(self) -> Float[np.ndarray, "t m"]:
        """Different rows of the fit scope under the map, at most `TRAINED`."""
        scope: LayerEmbeddings | LayerRows = self.fold.rows
        used = (scope.counts > 0).nonzero()[:, 0]
        order = torch.randperm(len(used), generator=torch.Generator().manual_seed(self.seed))[:TRAINED]
        return np.concatenate([self.rows(scope.values, part) for part in used[order].split(BLOCK)], dtype=np.float32)


def _coded(
    task: "_Scored | _Ranked", setting: Setting, codes: Sequence[Code], seed: int, left_out: dict, step: Steps
) -> list[_Made]:
    """Every code of one setting, all of them in one pass over the rows."""
    scope, setting = task.on(setting)
    fitted = Fitted(task.space, setting, folds(task.space, scope))
    raw = setting.whitening == "none"
    # For raw vectors `fitted` would look through all rows first, for what is no number.
    whiteners = [identity(task.space.values[0, 0])] * len(fitted.folds) if raw else fitted.whiteners
    maps = [_Map(one, setting.layers, fold, seed) for one, fold in zip(whiteners, fitted.folds, strict=True)]
    coders: list[tuple[Coder, ...]] = []
    rows = [(one.training(), {}) for one in maps]
    for code in codes:
        try:
            coders.append(tuple(Coder(code, own, rotations, seed) for own, rotations in rows))
        except ValueError as error:
            left_out.setdefault(str(error).removeprefix(f"{code} "), []).append((str(code), setting.whitening))
        step()
    values = task.values(maps, coders, step)
    rank, count = (task.space.dim, 0) if raw else (fitted.rank, fitted.count)
    few = not raw and fitted.starved
    return [
        _Made(setting, one[0].code, one[0].bytes, one[0].code.columns(rows[0][0].shape[1]), rank, count, found, few)
        for one, found in zip(coders, values, strict=True)
    ]


class _Scored:
    """Pairs: the first sentence asks, the second is stored."""

    label = "Spearman x 100"

    def __init__(self, space: LayerEmbeddings, aggregate: str) -> None:
        self.space, self.aggregate = space, aggregate

    def blocks(self, fit: str) -> int:
        return sum(-(-len(fold.pairs) // BLOCK) for fold in folds(self.space, fit))

    def on(self, setting: Setting) -> tuple[str, Setting]:
        return setting.fit, setting.on(self.space)

    def values(self, maps: Sequence[_Map], coders: Sequence[Sequence[Coder]], step: Steps) -> Float[Tensor, "c p"]:
        space = self.space
        found = torch.empty(len(coders), space.n_pairs, dtype=torch.float64)
        for number, one in enumerate(maps):
            for part in one.fold.pairs.split(BLOCK):
                first, second = (one.rows(space.values, side[part]) for side in (space.first, space.second))
                for place, own in enumerate(coders):
                    coder = own[number]
                    products = np.einsum("cw,cw->c", coder.query(first), coder.stored(second), dtype=np.float64)
                    found[place, part] = _rounded(torch.from_numpy(products), coder)
                step()
        return found

    def points(self, made: Sequence[_Made], base: Float[Tensor, "p"]) -> Iterator[CodedScore]:
        space = self.space
        rows = torch.stack([base, *(one.values for one in made)])
        drawn = bootstrap(rows, space.gold, space.subset, space.n_subsets, self.aggregate, RESAMPLES)
        for place, one in enumerate(made, start=1):
            test = williams(one.values, base, space.gold) if ranked_at_once(space.n_subsets, self.aggregate) else None
            yield _point(one, drawn, place, base, Protocol(one.setting, space.origin), test)


class _Ranked:
    """A retrieval set: queries ask, documents are stored."""

    def __init__(self, searched: RetrievalSpace, metric: str) -> None:
        self.searched, self.space, self.metric = searched, searched.space, metric
        self.place, self.label = list(METRICS).index(metric), METRICS[metric].label

    def blocks(self, fit: str) -> int:
        return -(-len(self.searched.documents) // BLOCK)

    def on(self, setting: Setting) -> tuple[str, Setting]:
        scope = "corpus" if setting.fit == "task" else setting.fit
        return scope, self.searched.on(setting).with_(fit=scope)

    def values(self, maps: Sequence[_Map], coders: Sequence[Sequence[Coder]], step: Steps) -> Float[Tensor, "c q"]:
        (one,), searched, values = maps, self.searched, self.space.values
        asked = one.rows(values, searched.queries)
        judged_rows = one.rows(values, searched.documents[searched.document])
        coders = [own for (own,) in coders]
        queries = [torch.from_numpy(coder.query(asked)).double() for coder in coders]
        own = [
            _rounded(
                (query[searched.relevant.query] * torch.from_numpy(coder.stored(judged_rows)).double()).sum(1), coder
            )
            for coder, query in zip(coders, queries, strict=True)
        ]
        ranks = torch.ones(len(coders), len(searched.document), dtype=torch.int64)
        for part in torch.arange(len(searched.documents)).split(BLOCK):
            rows = one.rows(values, searched.documents[part])
            for place, (coder, query) in enumerate(zip(coders, queries, strict=True)):
                scores = _rounded(query @ torch.from_numpy(coder.stored(rows)).double().T, coder)
                ranks[place] += self._before(scores, own[place], part)
            step()
        return measured(ranks.T.contiguous(), searched.relevant)[self.place].T

    def _before(
        self, scores: Float[Tensor, "q c"], own: Float[Tensor, "j"], part: Int[Tensor, "c"]
    ) -> Int[Tensor, "j"]:
        """How many documents of a block stand before each judged one; of equals, the one whose id comes first."""
        searched, found = self.searched, []
        size = max(1, 2**22 // len(part))
        for at in torch.arange(len(own)).split(size):
            document = searched.document[at, None]
            rows, mine = scores[searched.relevant.query[at]], own[at, None]
            tied = (rows == mine) & (searched.by_id[part] < searched.by_id[document])
            counted = part != searched.own[searched.relevant.query[at], None]
            found.append(((((rows > mine) & (part != document)) | tied) & counted).sum(1))
        return torch.cat(found)

    def points(self, made: Sequence[_Made], base: Float[Tensor, "q"]) -> Iterator[CodedScore]:
        drawn = bootstrap_means(torch.stack([base, *(one.values for one in made)]), RESAMPLES)
        for place, one in enumerate(made, start=1):
            protocol = protocol_of(self.searched, one.setting, one.fitted, one.rank)
            yield _point(one, drawn, place, base, protocol, None)


def _rounded(products: Float[Tensor, "..."], coder: Coder) -> Float[Tensor, "..."]:
    return products.round_(decimals=_DECIMALS if coder.code == Code() else _DECIMALS_OF_FLOAT32)


def _point(made: _Made, drawn: Bootstrap, place: int, base: Float[Tensor, "v"], protocol, test) -> CodedScore:
    """Row `place` of `drawn` against its first, whose values are `base`."""
    difference = drawn.difference(place, 0)
    verdict = "same" if torch.equal(base, made.values) else verdict_of(difference, test)
    verdict = unless_starved(verdict, made.starved)
    score, low, high = (float(part[place]) for part in (drawn.score, drawn.low, drawn.high))
    what = (made.setting, made.code, made.bytes, made.dim, score, low, high, difference, test, drawn.resamples)
    return CodedScore(*what, verdict, protocol, made.fitted, made.rank, made.values)
