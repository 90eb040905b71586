"""The order of the subsets scored so far."""

import math
from dataclasses import dataclass, field
from itertools import combinations, compress, count
from time import perf_counter

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from whitelab.base.records import without_nan
from whitelab.scoring.score import SCORE_DECIMALS
from whitelab.scoring.setting import Setting
from whitelab.sweeps.layer_subsets.plan import Plan, as_layers, extended
from whitelab.sweeps.layer_subsets.results import LayerSubset, Ranking, SubsetSearch

FEWEST_COUNTED, MOST_COUNTED = 10, 100
_MEANWHILE = 100  # subsets listed, at most, before all are scored: a list of thousands takes tenths of a second


@dataclass(eq=False)
class Findings:
    """Scores so far, `[c, t]` a chunk, in the order of size and then of layers; grows while a search runs."""

    plan: Plan
    names: tuple[str, ...]
    top: int
    setting: Setting
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
        top = self.top if finished else min(self.top, _MEANWHILE)
        tasks = {n: ranked(masks, scores[:, t], scores, top) for t, n in enumerate(self.names)}
        every = {size for size, count in self.counted.items() if count == math.comb(self.plan.n_layers, size)}
        return SubsetSearch(
            ranking=ranked(masks, scores.mean(-1), scores, top),
            tasks=tasks,
            scored=self.scored,
            total=self.total,
            seconds=perf_counter() - self.started,
            finished=finished,
            exact_sizes=tuple(size for size in self.plan.sizes if size in every),
            strategy=self.plan.strategy,
            sizes=self.plan.sizes,
            n_layers=self.plan.n_layers,
            setting=self.setting,
        )


def counted_among(scored: int) -> int:
    """How many of the best of so many subsets `needed` counts: a tenth, from 10 to 100 where there are so many.

    Among nearly all subsets every layer is as frequent as any other.
    """
    return min(scored, max(FEWEST_COUNTED, min(MOST_COUNTED, scored // 10)))


def best_first(scores: Float[Tensor, "s"]) -> Int[Tensor, "s"]:
    """Positions by descending score; equals keep their order, NaN comes last."""
    return torch.argsort(scores.round(decimals=SCORE_DECIMALS).nan_to_num(-math.inf), descending=True, stable=True)


def ranked(masks: Bool[Tensor, "s l"], scores: Float[Tensor, "s"], tasks: Float[Tensor, "s t"], top: int) -> Ranking:
    """The `top` of the subsets by `scores`, the best of each size, and how often each layer is among the first."""
    order = best_first(scores)[: int((~scores.isnan()).sum())]
    ordered, sizes = scores[order].round(decimals=SCORE_DECIMALS), masks[order].sum(-1)
    places = torch.searchsorted(-ordered, -ordered) + 1

    def subsets(wanted: Int[Tensor, "c"]) -> list[LayerSubset]:  # a call of each tensor, and not of each subset
        one = order[wanted]
        own = tasks[one].round(decimals=SCORE_DECIMALS).tolist()
        told = masks[one].tolist(), ordered[wanted].tolist(), places[wanted].tolist(), own
        return [
            LayerSubset(tuple(compress(count(), held)), score, place, tuple(without_nan(each)))
            for held, score, place, each in zip(*told, strict=True)
        ]

    counted = counted_among(len(order))
    first_of = {size: int((sizes == size).int().argmax()) for size in sizes.unique().tolist()}
    return Ranking(
        top=tuple(subsets(torch.arange(min(top, len(order))))),
        best_by_size=dict(zip(first_of, subsets(torch.tensor([*first_of.values()], dtype=torch.long)), strict=True)),
        layer_counts=tuple(masks[order[:MOST_COUNTED]].sum(0).tolist()),
        needed=tuple(masks[order[:counted]].sum(0).tolist()),
        counted=counted,
    )
