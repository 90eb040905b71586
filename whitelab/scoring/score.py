"""From a task's embeddings and a setting to a score that says how it was made."""

import math
from dataclasses import asdict, dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.base.records import without_nan
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.held_out import held_out_isotropy
from whitelab.scoring.setting import Protocol, Setting, check_is_setting
from whitelab.statistics import correlation

# Scores (x 100) are compared rounded here, so that those which tie in exact arithmetic (layers held twice) tie.
SCORE_DECIMALS = 9


@dataclass(frozen=True)
class SubsetScore:
    """Spearman x 100 of one subset (None where it is not defined) and its pairs."""

    spearman: float | None
    pairs: int


@dataclass(frozen=True)
class Score:
    """Spearman x 100 under `protocol`; None with a `reason` where it is not defined.

    `half_width` is half the 95 % interval on the same scale, `rank` the directions the map keeps out of
    `dim`, `fitted` the occurrences it was fitted on, `isotropy` the IsoScore of sentences it was not fitted
    on (`held_out.held_out_isotropy`; None for `none` and where it is not defined), `gamma` the exponent that
    `soft:gamma=auto` came to, None for every other map. Where its map is `starved` (`whitening.starved`) the score says
    nothing about meaning.
    """

    spearman: float | None
    pairs: int
    subsets: dict[str, SubsetScore]
    rank: int
    dim: int
    fitted: int
    half_width: float | None
    protocol: Protocol
    isotropy: float | None = None
    reason: str = ""
    cosines: Float[Tensor, "p"] | None = field(default=None, repr=False, compare=False)
    gamma: float | None = None
    starved: bool = False

    @property
    def setting(self) -> Setting:
        """What was chosen, with the layers by their numbers."""
        return self.protocol.setting

    @property
    def by_pairs(self) -> float | None:
        """The score with every pair counted alike: of `mean`, the subsets' average weighted by pairs instead."""
        if self.spearman is None or self.setting.aggregate != "mean":
            return self.spearman
        return sum(one.spearman * one.pairs for one in self.subsets.values()) / self.pairs

    def line(self) -> str:
        """How the score was made, in one line."""
        return self.protocol.line(self.fitted, self.rank, self.isotropy, self.gamma)

    def as_dict(self) -> dict:
        """The JSON document of `python -m whitelab score`."""
        record = {
            "spearman": self.spearman,
            "half_width_95": self.half_width,
            "pairs": self.pairs,
            "subsets": {name: asdict(subset) for name, subset in self.subsets.items()},
            "rank": self.rank,
            "dim": self.dim,
            "fitted": self.fitted,
            "held_out_isotropy": self.isotropy,
            "starved": self.starved,
            "protocol": self.protocol.as_dict(),
        }
        record |= {} if self.gamma is None else {"gamma": self.gamma}
        return record | ({"reason": self.reason} if self.reason else {})


def score(space: LayerEmbeddings, setting: Setting, isotropy: bool = True) -> Score:
    """Score a setting.

    Under `cross` each pair has its cosine from the map fitted without it, and all of them are ranked together.
    `isotropy` False leaves the held-out isotropy out, whose maps are fitted on halves and cost more than all else.
    Raises ValueError for layers the space does not have, for a `k` out of range, for text it does not carry and for
    pairs that `cross` cannot halve. The score is None, with a reason, where Spearman's correlation is not defined:
    constant gold scores, cosines that are constant up to rounding, fewer than two pairs. Without pairs no map is
    fitted, and `rank` and `fitted` are 0.
    """
    fitted = fit_scope(space, setting)
    if space.n_pairs == 0:
        return _of_no_pairs(space, fitted.setting)
    setting, values = fitted.setting, fitted.cosines()
    by_subset = correlation.spearman_by_subset(values, space.gold, space.subset, space.n_subsets)
    one = space.n_subsets == 1  # which is the whole then, however it is aggregated
    total = float(by_subset[0] if one else space.judged.spearman(values, setting.aggregate))
    sizes = torch.bincount(space.subset, minlength=space.n_subsets).tolist()
    whole = correlation.ranked_at_once(space.n_subsets, setting.aggregate)
    width = correlation.half_width(total, space.n_pairs if whole else sizes, setting.aggregate)
    return Score(
        spearman=percent(total),
        pairs=space.n_pairs,
        subsets={
            name: SubsetScore(percent(float(rho)), size)
            for name, rho, size in zip(space.subset_names, by_subset, sizes, strict=True)
        },
        rank=fitted.rank,
        dim=space.dim,
        fitted=fitted.count,
        half_width=percent(width),
        protocol=Protocol(setting, space.origin),
        isotropy=isotropy_of(space, setting) if isotropy else None,
        reason="" if not math.isnan(total) else undefined_reason(space, values, setting.aggregate),
        cosines=values.cpu(),
        gamma=fitted.exponent,
        starved=fitted.starved,
    )


def _of_no_pairs(space: LayerEmbeddings, setting: Setting) -> Score:
    cosines = torch.empty(0, dtype=torch.float64)
    return Score(
        spearman=None,
        pairs=0,
        subsets=dict.fromkeys(space.subset_names, SubsetScore(None, 0)),
        rank=0,
        dim=space.dim,
        fitted=0,
        half_width=None,
        protocol=Protocol(setting, space.origin),
        reason=undefined_reason(space, cosines, setting.aggregate),
        cosines=cosines,
    )


def reversed_note(spearman: float | None, pairs: int) -> str:
    """What to say of raw vectors whose score, every pair counted alike, is below 0 beyond doubt; empty where it is not.

    Such a score, an average over subsets too, is known as well as one correlation of so many `pairs`.
    """
    half = None if spearman is None else percent(correlation.half_width(spearman / 100, pairs))
    if half is None or spearman + half >= 0:
        return ""
    return (
        f"the pairs scored highest are the least alike, so that raw vectors, every pair counted alike, score "
        f"{spearman:.2f}: a score must be higher for more similar sentences. If these are distances, turn them round"
    )


def reversal(space: LayerEmbeddings, setting: Setting) -> str:
    """`reversed_note` of a setting's layers as they are."""
    raw = score(space, check_is_setting(setting).raw, isotropy=False)
    return reversed_note(raw.by_pairs, raw.pairs)


def isotropy_of(space: LayerEmbeddings, setting: Setting) -> float | None:
    """`held_out.held_out_isotropy`, None for `none` and where it is not defined."""
    return None if check_is_setting(setting).whitening == "none" else without_nan(held_out_isotropy(space, setting))


def percent(value: float) -> float | None:
    """`value` x 100, None for NaN (JSON has no NaN)."""
    return without_nan(100 * value)


def undefined_reason(space: LayerEmbeddings, values: Tensor, aggregate: str) -> str:
    """Why Spearman's correlation is not defined here, in one sentence."""
    whole = correlation.ranked_at_once(space.n_subsets, aggregate)
    groups = [("", slice(None))] if whole else []
    if not whole:
        groups = [(f" in subset {n!r}", space.subset == i) for i, n in enumerate(space.subset_names)]
    for where, rows in groups:
        gold, cosine = space.gold[rows], values[rows]
        if gold.shape[0] < 2:
            return f"Spearman is not defined{where}: it needs at least 2 pairs, got {gold.shape[0]}"
        if bool((gold == gold[0]).all()):
            return f"Spearman is not defined{where}: all gold scores are {float(gold[0]):g}"
        if bool(correlation.is_constant(cosine)):
            return f"Spearman is not defined{where}: all cosines are {float(cosine[0]):g}"
    return "Spearman is not defined"
