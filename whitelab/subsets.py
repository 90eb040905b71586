"""Which layers to average: the score of every subset of the layers, or a declared search among them.

Without whitening the cosine of an average of layers is three quadratic forms in the 0/1 vector of the layers
chosen, so every subset costs one row of a matrix product and one ranking. With whitening each subset has a
covariance, summed from blocks, and needs a factorisation of its own.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from time import perf_counter

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from whitelab import correlation, geometry, linalg, whitening
from whitelab.checks import check_choice, check_int, check_matrix
from whitelab.embeddings import LayerEmbeddings, LayerRows
from whitelab.layers import LayerMoments, layer_means, pair_grams
from whitelab.moments import Moments
from whitelab.scopes import Fold, folds

# Without whitening a search is exhaustive up to this many subsets (20 layers); for more, sizes are complete
# from one layer up while they fit, and larger ones extend the best of the size below.
MAX_EXACT = 2**20
BEAM = 1024
# A factorisation a subset: complete up to triples, then a narrow beam.
FITTED_SIZE = 3
FITTED_BEAM = 8

# Bytes of float64 tables that one chunk of subsets may hold. On a CPU they should stay near its caches: with
# tables of 3 MB the matrix product is four times as fast as with tables of 90 MB.
CHUNK_BYTES = {"cpu": 2**25, "cuda": 2**31}
_TABLES = 10  # [subsets, pairs] alive at once: three forms, their norms, cosines, order, sorted values

COUNTED = 100  # subsets among which `layer_counts` counts
# Scores (x 100) are rounded here, so that subsets which tie in exact arithmetic (layers held twice) tie.
_SCORE_DECIMALS = 9

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class LayerSubset:
    """Spearman x 100 of an average of `layers`, in each task too (None: undefined); equals share a `place`."""

    layers: tuple[int, ...]
    spearman: float
    place: int
    tasks: tuple[float | None, ...]


@dataclass(frozen=True)
class Ranking:
    """The subsets with a score, best first; of equals the smaller, then the lower layers.

    `layer_counts[i]` says how many of the first hundred hold layer i.
    """

    top: tuple[LayerSubset, ...]
    best_by_size: dict[int, LayerSubset]
    layer_counts: tuple[int, ...]

    @property
    def best(self) -> LayerSubset | None:
        """The best of all; None when no score is defined."""
        return min(self.best_by_size.values(), key=lambda one: (one.place, len(one.layers)), default=None)

    @property
    def size_curve(self) -> dict[int, float]:
        """The best score by number of layers."""
        return {size: one.spearman for size, one in self.best_by_size.items()}


@dataclass(frozen=True)
class SubsetSearch:
    """What a search has found: `ranking` by the average over the tasks, `tasks` by each task alone.

    `scored` settings took `seconds`; `total` is an upper bound while a beam runs. `exact` says that every
    subset of every one of `sizes` has been scored, `exact_sizes` for which sizes that holds; `strategy` says
    how subsets are chosen. The average is undefined where a task's score is.
    """

    ranking: Ranking
    tasks: dict[str, Ranking]
    scored: int
    total: int
    seconds: float
    finished: bool
    exact_sizes: tuple[int, ...]
    strategy: str
    sizes: tuple[int, ...]
    n_layers: int
    whitening: str
    k: int | None
    aggregate: str

    @property
    def exact(self) -> bool:
        """Whether no subset of the sizes asked for was left out."""
        return self.exact_sizes == self.sizes

    @property
    def best(self) -> LayerSubset | None:
        """The best of all; None when no score is defined."""
        return self.ranking.best

    def as_dict(self) -> dict:
        """A JSON-ready record."""
        return {
            "scored": self.scored,
            "seconds": self.seconds,
            "exact": self.exact,
            "exact_sizes": list(self.exact_sizes),
            "strategy": self.strategy,
            "layers": self.n_layers,
            "whitening": self.whitening,
            "k": self.k,
            "aggregate": self.aggregate,
            **_ranking_record(self.ranking, tuple(self.tasks)),
            "tasks": {name: _ranking_record(one, (name,)) for name, one in self.tasks.items()},
        }


def _ranking_record(ranking: Ranking, names: tuple[str, ...]) -> dict:
    def record(one: LayerSubset) -> dict:
        found = {"layers": list(one.layers), "spearman": one.spearman, "place": one.place}
        return found | ({"tasks": dict(zip(names, one.tasks, strict=True))} if len(names) > 1 else {})

    return {
        "best_by_size": {str(size): record(one) for size, one in ranking.best_by_size.items()},
        "top": [record(one) for one in ranking.top],
        "layer_counts": list(ranking.layer_counts),
    }


# ------------------------------------------------------------------------------------------------ searching


def search(
    spaces: LayerEmbeddings | Mapping[str, LayerEmbeddings] | Sequence[LayerEmbeddings],
    size: str | int | Sequence[int] = "all",
    variant: str = "none",
    k: int | None = None,
    how: str = "all",
    **options,
) -> SubsetSearch:
    """Score the subsets of `size` layers (a number, a range, or `all`) under one variant, k and aggregate.

    Each score equals `evaluate.score` of that subset; of several tasks it is the plain average. Takes the
    options of `stream`, which says what is guaranteed and when.
    """
    for found in stream(spaces, size, variant, k, how, **(options | {"every": math.inf})):  # noqa: B007
        pass
    return found


def stream(
    spaces: LayerEmbeddings | Mapping[str, LayerEmbeddings] | Sequence[LayerEmbeddings],
    size: str | int | Sequence[int] = "all",
    variant: str = "none",
    k: int | None = None,
    how: str = "all",
    *,
    top: int = 100,
    progress: Progress | None = None,
    device: str | None = None,
    max_exact: int | None = None,
    beam: int | None = None,
    every: float = 0.25,
    fit: str = "task",
    corpus: LayerRows | None = None,
) -> Iterator[SubsetSearch]:
    """What `search` has found so far, about every `every` seconds, and at last all of it.

    Exact when at most `max_exact` subsets have the sizes asked for. Otherwise sizes are complete from 1 up
    while they fit, and larger ones try each of the best `beam` subsets of the size below with each layer
    added. Defaults: 2^20 subsets and a beam of 1024 for `none` and `center` without k; singles, pairs and
    triples and a beam of 8 for what needs a fit a subset.

    Memory beside the embeddings (n sentences, p pairs, l layers, d dimensions): 12 l (l + 1) p bytes for each
    task, or 8 (l d)^2 with a fit (and 8 l n d while it is summed); then one chunk of `CHUNK_BYTES`, or one
    subset where that is more. `progress(scored, total)` may raise to stop the work.
    Raises ValueError for settings that do not exist and for tasks with different layers.
    """
    started = perf_counter()
    tasks = _named(spaces)
    n_layers = next(iter(tasks.values())).n_layers
    variant = str(whitening.parse(variant, min(space.dim for space in tasks.values())))
    check_choice(how, "aggregate", correlation.AGGREGATES)
    check_int(top, "top", 1)
    for space in tasks.values():
        whitening.check_k(k, variant, space.dim)
        for layer in space.values:
            check_matrix(layer, "space.values")
    linear = variant == "none" or (variant == "center" and k is None and fit == "task")
    plan = Plan.of(n_layers, check_sizes(size, n_layers), *_limits(n_layers, linear, max_exact, beam))
    device = check_device(device)

    def scorer(space: LayerEmbeddings) -> "LinearScorer | FittedScorer":
        here = space if device is None else space.to(device)
        return LinearScorer.of(here, variant, how) if linear else FittedScorer.of(here, variant, k, how, fit, corpus)

    findings = _Findings(plan, tuple(tasks), top, variant, k, how, started)
    return _run(findings, scorer, tasks.values(), progress, every)


def _limits(n_layers: int, linear: bool, max_exact: int | None, beam: int | None) -> tuple[int, int]:
    triples = sum(math.comb(n_layers, size) for size in range(1, FITTED_SIZE + 1))
    return (
        check_int((MAX_EXACT if linear else triples) if max_exact is None else max_exact, "max_exact", 1),
        check_int((BEAM if linear else FITTED_BEAM) if beam is None else beam, "beam", 1),
    )


def _run(findings: "_Findings", scorer, spaces, progress: Progress | None, every: float) -> Iterator[SubsetSearch]:
    plan, due, scorers = findings.plan, findings.started + every, []
    for space in spaces:
        scorers.append(scorer(space))
        if progress:
            progress(0, findings.total)
    rows = min(one.rows for one in scorers)
    for size in plan.walk:
        subsets = findings.candidates(size)
        for i in range(0, len(subsets), rows):
            masks = as_masks(subsets[i : i + rows], plan.n_layers)
            findings.add(size, masks, torch.stack([one(masks) for one in scorers], dim=-1))
            if progress:
                progress(findings.scored, findings.total)
            asked = perf_counter()
            if asked >= due:
                snapshot = findings.snapshot(finished=False)
                spent = perf_counter() - asked
                yield snapshot
                due = perf_counter() + max(every, 9 * spent)  # at most a tenth of the time goes into snapshots
    yield findings.snapshot(finished=True)


def _named(spaces) -> dict[str, LayerEmbeddings]:
    if isinstance(spaces, LayerEmbeddings):
        return {"task": spaces}
    tasks = dict(spaces) if isinstance(spaces, Mapping) else {f"task {i}": x for i, x in enumerate(spaces, 1)}
    counts = {name: space.n_layers for name, space in tasks.items()}
    if len(set(counts.values())) != 1:
        raise ValueError(f"spaces must be at least one task, all with the same number of layers, got {counts}")
    return tasks


def check_sizes(size: str | int | Sequence[int], n_layers: int) -> tuple[int, ...]:
    """Return the numbers of layers asked for, ascending, each within `1..n_layers`."""
    if size == "all":
        return tuple(range(1, n_layers + 1))
    if isinstance(size, str):
        raise ValueError(f"size={size!r} must be 'all', a number of layers or a range of them")
    sizes = tuple(size) if isinstance(size, Sequence) else (size,)
    if not sizes:
        raise ValueError(f"size={size!r} must hold at least one number of layers")
    return tuple(sorted({check_int(one, "size", 1, n_layers, "l") for one in sizes}))


def check_device(device: str | None) -> str | None:
    """Return `device` if torch can reach it and it has float64."""
    if device is None:
        return None
    kind = device.partition(":")[0]
    if kind not in CHUNK_BYTES or (kind == "cuda" and not torch.cuda.is_available()):
        raise ValueError(f"device={device!r} must be cpu, or cuda where there is one")
    return device


# ------------------------------------------------------------------------------------------- which subsets


@dataclass(frozen=True)
class Plan:
    """Sizes to go through, in order: those in `complete` with every subset, the others by beam."""

    n_layers: int
    sizes: tuple[int, ...]
    walk: tuple[int, ...]
    complete: frozenset[int]
    beam: int

    @classmethod
    def of(cls, n_layers: int, sizes: tuple[int, ...], max_exact: int, beam: int) -> "Plan":
        """Everything if it is at most `max_exact` subsets, else as far up from size 1 as that goes."""
        if sum(math.comb(n_layers, size) for size in sizes) <= max_exact:
            return cls(n_layers, sizes, sizes, frozenset(sizes), beam)
        last, counted = 1, n_layers
        while last < n_layers and counted + math.comb(n_layers, last + 1) <= max_exact:
            last += 1
            counted += math.comb(n_layers, last)
        start = min(last, sizes[0])
        return cls(n_layers, sizes, tuple(range(start, sizes[-1] + 1)), frozenset(range(start, last + 1)), beam)

    def most(self, size: int) -> int:
        """How many candidates of `size` there can be."""
        every = math.comb(self.n_layers, size)
        below = min(self.beam, math.comb(self.n_layers, size - 1))
        return every if size in self.complete else min(every, below * (self.n_layers - size + 1))

    @property
    def strategy(self) -> str:
        """How subsets are chosen, in one sentence."""
        beams = [size for size in self.walk if size not in self.complete]
        if not beams:
            return f"every subset of {_span(self.sizes)}"
        return (
            f"every subset of {_span(sorted(self.complete))}; of {_span(beams)}, "
            f"each of the best {self.beam} of one layer less with each layer added"
        )


def _span(sizes: Sequence[int]) -> str:
    first, last = sizes[0], sizes[-1]
    if first == last:
        return f"{first} layer{'' if first == 1 else 's'}"
    if len(sizes) == last - first + 1:
        return f"{first} to {last} layers"
    return f"{', '.join(map(str, sizes))} layers"


def extended(subsets: Iterable[tuple[int, ...]], n_layers: int) -> list[tuple[int, ...]]:
    """Every subset that is one of `subsets` and one layer more, in lexical order."""
    return sorted({tuple(sorted((*one, i))) for one in subsets for i in range(n_layers) if i not in one})


def as_masks(subsets: Sequence[tuple[int, ...]], n_layers: int) -> Bool[Tensor, "c l"]:
    """True where a subset holds a layer; all of one size."""
    masks = torch.zeros(len(subsets), n_layers, dtype=torch.bool)
    return masks.scatter_(1, torch.tensor(subsets), True)


def as_layers(mask: Bool[Tensor, "l"]) -> tuple[int, ...]:
    """The layers a subset holds."""
    return tuple(mask.nonzero()[:, 0].tolist())


# ------------------------------------------------------------------------------------- scores of one task


@dataclass(frozen=True, eq=False)
class LinearScorer:
    """Scores of subsets under a variant that commutes with averaging: none, or centring.

    x.y for the sums of the chosen layers is sum_ij m_i m_j (x_i . y_j): one row of weights m_i m_j, i <= j,
    times `forms [3, g, p]`, the pairs' Gram matrices a.b, a.a and b.b with (i, j) and (j, i) added up.
    """

    forms: Float[Tensor, "3 g p"]
    space: LayerEmbeddings
    how: str
    rows: int

    @classmethod
    def of(cls, space: LayerEmbeddings, variant: str, how: str) -> "LinearScorer":
        """From one pass over the pairs."""
        grams = pair_grams(space, layer_means(space) if variant == "center" else None)
        i, j = torch.triu_indices(space.n_layers, space.n_layers)
        twice = (i != j).to(grams[0])[:, None]
        forms = torch.stack([gram[i, j] + twice * gram[j, i] for gram in grams])
        return cls(forms, space, how, chunk_rows(space, 8 * _TABLES * space.n_pairs))

    def __call__(self, masks: Bool[Tensor, "c l"]) -> Float[Tensor, "c"]:
        """Spearman x 100 of every subset, on the CPU."""
        i, j = torch.triu_indices(masks.shape[1], masks.shape[1])
        weights = (masks[:, i] & masks[:, j]).to(self.forms)
        dot, square_a, square_b = (weights @ form for form in self.forms)
        # Layers that cancel leave rounding, which may be negative.
        cosines = geometry.cosines_from(dot, square_a.clamp_min_(0), square_b.clamp_min_(0))
        return _percent(cosines, self.space, self.how)


@dataclass(frozen=True, eq=False)
class FittedScorer:
    """Scores of subsets under a variant fitted on each: covariances from blocks, one factorisation each.

    One block matrix a fold of the fit scope; a fold's map scores its own pairs.
    """

    folds: tuple[Fold, ...]
    blocks: tuple[LayerMoments, ...]
    space: LayerEmbeddings
    variant: str
    k: int | None
    how: str
    rows: int

    @classmethod
    def of(
        cls,
        space: LayerEmbeddings,
        variant: str,
        k: int | None,
        how: str,
        fit: str = "task",
        corpus: LayerRows | None = None,
    ) -> "FittedScorer":
        """From one pass over the sentences of the fit scope."""
        found = folds(space, fit, corpus)
        table, square = space.n_sentences * space.dim, space.dim**2
        rows = chunk_rows(space, 8 * (4 * table + 5 * square))
        return cls(found, tuple(LayerMoments.of(fold.rows) for fold in found), space, variant, k, how, rows)

    def __call__(self, masks: Bool[Tensor, "c l"]) -> Float[Tensor, "c"]:
        """Spearman x 100 of every subset, on the CPU."""
        subsets = [as_layers(mask) for mask in masks]
        full = whitening.cosine_class(self.variant, self.k, self.space.dim) == "whitening"
        cosines = torch.zeros(len(subsets), self.space.n_pairs, dtype=torch.float64, device=self.space.values.device)
        for fold, block in zip(self.folds, self.blocks, strict=True):
            every = [self.moments(fold, block, one) for one in subsets]
            parts = self.whitened if full else self.each
            cosines[:, fold.pairs.to(cosines.device)] = parts(subsets, every, fold)
        return _percent(cosines, self.space, self.how)

    def moments(self, fold: Fold, block: LayerMoments, layers: tuple[int, ...]) -> Moments:
        """Moments of the average of `layers` over the fold's sentences."""
        return fold.rows.moments(layers) if whitening.needs_rows(self.variant) else block.average(layers)

    def whitened(self, subsets: list[tuple[int, ...]], moments: list[Moments], fold: Fold) -> Float[Tensor, "c q"]:
        """Cosines after a full whitening: all have the same, so L^-1 (x - mean) serves where L can be trusted."""
        factors, _, certain = linalg.trusted_choleskys(torch.stack([one.covariance for one in moments]))
        sure, found = certain.nonzero()[:, 0], {}
        if len(sure):
            x = torch.stack([self.space.combine(subsets[i]).sub_(moments[i].mean) for i in sure.tolist()])
            z = torch.linalg.solve_triangular(factors[sure], x.mT, upper=False).mT
            found = {i: self.cosines(one, fold) for i, one in zip(sure.tolist(), z, strict=True)}
        rest = [i for i in range(len(subsets)) if i not in found]
        if rest:
            others = self.each([subsets[i] for i in rest], [moments[i] for i in rest], fold)
            found |= dict(zip(rest, others, strict=True))
        return torch.stack([found[i] for i in range(len(subsets))])

    def each(self, subsets: list[tuple[int, ...]], moments: list[Moments], fold: Fold) -> Float[Tensor, "c q"]:
        """Cosines under the fitted maps themselves, for any variant, k and rank."""
        maps = (whitening.fit(self.variant, one, self.k) for one in moments)
        return torch.stack(
            [self.cosines(one(self.space.combine(layers)), fold) for layers, one in zip(subsets, maps, strict=True)]
        )

    def cosines(self, z: Float[Tensor, "n m"], fold: Fold) -> Float[Tensor, "q"]:
        """The cosine of every pair that the fold scores."""
        return geometry.row_cosines(z, self.space.first[fold.pairs], self.space.second[fold.pairs])


def chunk_rows(space: LayerEmbeddings, bytes_each: int) -> int:
    """How many subsets of `bytes_each` bytes may be worked on at once."""
    return max(1, CHUNK_BYTES[space.values.device.type] // bytes_each)


def _percent(cosines: Float[Tensor, "c p"], space: LayerEmbeddings, how: str) -> Float[Tensor, "c"]:
    return 100 * correlation.aggregate(cosines, space.gold, space.subset, space.n_subsets, how).cpu()


# -------------------------------------------------------------------------------------------------- ranking


@dataclass(eq=False)
class _Findings:
    """Scores so far, `[c, t]` a chunk, in the order of size and then of layers; grows while a search runs."""

    plan: Plan
    names: tuple[str, ...]
    top: int
    variant: str
    k: int | None
    how: str
    started: float
    masks: list[Bool[Tensor, "c l"]] = field(default_factory=list)
    scores: list[Float[Tensor, "c t"]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.expected = {size: self.plan.most(size) for size in self.plan.walk}
        self.counted = dict.fromkeys(self.plan.walk, 0)

    def candidates(self, size: int) -> list[tuple[int, ...]]:
        """The subsets of `size` layers to score, in lexical order."""
        if size in self.plan.complete:
            subsets = list(combinations(range(self.plan.n_layers), size))
        else:
            subsets = extended(self.best_of_size(size - 1), self.plan.n_layers)
        self.expected[size] = len(subsets)
        return subsets

    def add(self, size: int, masks: Bool[Tensor, "c l"], scores: Float[Tensor, "c t"]) -> None:
        self.masks.append(masks)
        self.scores.append(scores)
        self.counted[size] += len(masks)

    @property
    def scored(self) -> int:
        return sum(self.counted.values())

    @property
    def total(self) -> int:
        return sum(self.expected.values())

    def best_of_size(self, size: int) -> list[tuple[int, ...]]:
        """The plan's beam: the best subsets of a size by the average, undefined ones last."""
        masks, scores = torch.cat(self.masks), torch.cat(self.scores).mean(-1)
        of_size = masks.sum(-1) == size
        masks, scores = masks[of_size], scores[of_size]
        return [as_layers(mask) for mask in masks[best_first(scores)[: self.plan.beam]]]

    def snapshot(self, finished: bool) -> SubsetSearch:
        masks, scores = torch.cat(self.masks), torch.cat(self.scores)
        wanted = torch.isin(masks.sum(-1), torch.tensor(self.plan.sizes))
        masks, scores = masks[wanted], scores[wanted]
        tasks = {n: ranked(masks, scores[:, t], scores, self.top) for t, n in enumerate(self.names)}
        every = {size for size, count in self.counted.items() if count == math.comb(self.plan.n_layers, size)}
        return SubsetSearch(
            ranking=ranked(masks, scores.mean(-1), scores, self.top),
            tasks=tasks,
            scored=self.scored,
            total=self.total,
            seconds=perf_counter() - self.started,
            finished=finished,
            exact_sizes=tuple(size for size in self.plan.sizes if size in every),
            strategy=self.plan.strategy,
            sizes=self.plan.sizes,
            n_layers=self.plan.n_layers,
            whitening=self.variant,
            k=self.k,
            aggregate=self.how,
        )


def best_first(scores: Float[Tensor, "s"]) -> Int[Tensor, "s"]:
    """Positions by descending score; equals keep their order, NaN comes last."""
    return torch.argsort(scores.round(decimals=_SCORE_DECIMALS).nan_to_num(-math.inf), descending=True, stable=True)


def ranked(masks: Bool[Tensor, "s l"], scores: Float[Tensor, "s"], tasks: Float[Tensor, "s t"], top: int) -> Ranking:
    """The `top` of the subsets by `scores`, the best of each size, and how often each layer is among the first."""
    order = best_first(scores)[: int((~scores.isnan()).sum())]
    ordered, sizes = scores[order].round(decimals=_SCORE_DECIMALS), masks[order].sum(-1)
    places = torch.searchsorted(-ordered, -ordered) + 1

    def subset(i: int) -> LayerSubset:
        own = tuple(None if s != s else s for s in tasks[order[i]].round(decimals=_SCORE_DECIMALS).tolist())
        return LayerSubset(as_layers(masks[order[i]]), float(ordered[i]), int(places[i]), own)

    first_of = {size: int((sizes == size).int().argmax()) for size in sizes.unique().tolist()}
    return Ranking(
        top=tuple(subset(i) for i in range(min(top, len(order)))),
        best_by_size={size: subset(i) for size, i in first_of.items()},
        layer_counts=tuple(masks[order[:COUNTED]].sum(0).tolist()),
    )
