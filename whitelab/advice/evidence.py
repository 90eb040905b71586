"""Several settings measured on the same items: each with its interval, against the first and against the best."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.base.records import without_nan
from whitelab.base.wording import p_value
from whitelab.retrieval.compression import Code
from whitelab.scoring.paired import LEVEL, verdict_of
from whitelab.scoring.setting import Setting
from whitelab.statistics.significance import NO_INTERVAL, Bootstrap, Difference, holm, least_p

SPLITS = 50  # random halves that say what choosing the best of several adds to its score
FEWEST = 2000  # resamples


class NoInterval(ValueError):
    """The first of several options has a score and no interval, so that nothing can be told from it."""


@dataclass(frozen=True)
class Option:
    """A setting, its score x 100 with a 95 % interval, its difference from the baseline's, and from the best's.

    `dim` counts the numbers a vector has, `size` its bytes and `code` says how they are kept; `p_holm` is the p-value
    of `difference` among all options' tests, whose intervals come from so many `resamples`.
    """

    setting: Setting
    dim: int
    size: int
    code: Code
    score: float
    low: float
    high: float
    difference: Difference
    p_holm: float
    behind: Difference
    resamples: int

    @property
    def verdict(self) -> str:
        """Whether `difference` is real among all tests: a key of `paired.VERDICTS`, `same` for the baseline."""
        return verdict_of(replace(self.difference, p_value=self.p_holm), None)

    @property
    def p_words(self) -> str:
        """`p_holm` in words: `p < 0.025` where so few resamples cannot show less of so many tests."""
        least = self.difference.p_value <= least_p(self.resamples)
        return p_value(self.p_holm, max(self.p_holm, 0.001)) if least else p_value(self.p_holm)

    def as_dict(self) -> dict:
        """A JSON-ready record."""
        record = {"setting": str(self.setting), "code": str(self.code), "bytes": self.size, "dim": self.dim}
        record |= {"score": self.score, "low": self.low, "high": self.high} | self.difference.as_dict()
        record |= {"p_value": self.difference.p_value, "p_holm": self.p_holm} | self.behind.as_dict("behind")
        return without_nan(record | {"resamples": self.resamples})


@dataclass(frozen=True)
class Evidence:
    """`options`, the baseline first, measured by `metric` on `count` items (`unit`: pairs, queries, texts).

    `honest_gain` is what the option that is best on a random half of the items gains over the baseline on the other
    half, on average: what is left of the best one's lead after it was chosen by it. `runs` counts those of a procedure
    that draws at random, where scores are means over them. `line` says how the baseline was made, or what all options
    share.
    """

    metric: str
    unit: str
    count: int
    options: tuple[Option, ...]
    honest_gain: float
    protocol: dict
    line: str
    runs: int = 0

    @property
    def baseline(self) -> Option:
        """The model as it comes."""
        return self.options[0]

    @property
    def best(self) -> Option:
        """The option with the highest score."""
        return max(self.options, key=lambda option: option.score)

    def as_dict(self) -> dict:
        """A JSON-ready record."""
        record = {"metric": self.metric, "unit": self.unit, "count": self.count}
        record["honest_gain"] = without_nan(self.honest_gain)
        return record | {"options": [option.as_dict() for option in self.options], "protocol": self.protocol}


@dataclass(frozen=True)
class Tried:
    """An option before it is weighed: a setting, the numbers its vectors have, and how they are kept."""

    setting: Setting
    dim: int
    size: int
    code: Code = Code()

    @classmethod
    def whole(cls, setting: Setting, dim: int) -> "Tried":
        """Vectors kept in float32."""
        return cls(setting, dim, 4 * dim)


def enough(options: int) -> int:
    """How many resamples so many options need: no p-value of a bootstrap is below 2 / (b + 1), and Holm multiplies the
    least with the number of tests, so fewer could call nothing real. The least then becomes half of `LEVEL`."""
    return max(FEWEST, math.ceil(4 * options / LEVEL))


def weigh(
    tried: Sequence[Tried],
    drawn: Bootstrap,
    halves: Float[Tensor, "v h"],
    measured: tuple[str, str, int],
    protocol: tuple[dict, str],
    runs: int = 0,
) -> Evidence:
    """Put the scores of what was `tried` beside each other; those that have none, or no interval, are left out.

    `drawn` holds their resamples, row by row, `halves` their scores on each of `random_halves`. `measured` is metric,
    unit and count, `protocol` a record and a line. Raises ValueError where the first has no score, NoInterval where
    it has no interval.
    """
    known = [i for i, value in enumerate(drawn.low.tolist()) if not math.isnan(value)]
    if 0 not in known:
        if not math.isnan(drawn.score[0]):
            raise NoInterval(NO_INTERVAL)
        raise ValueError(f"the {measured[0]} of {tried[0].setting} is not defined on these {measured[1]}")
    best = max(known, key=lambda i: float(drawn.score[i]))
    from_raw = [drawn.difference(i, 0) for i in known]
    # The baseline is not tested against itself.
    adjusted = [math.nan, *holm([one.p_value for one in from_raw[1:]])]
    options = tuple(
        Option(
            *(getattr(tried[i], name) for name in ("setting", "dim", "size", "code")),
            *(float(part[i]) for part in (drawn.score, drawn.low, drawn.high)),
            difference,
            p_holm,
            drawn.difference(i, best),
            drawn.resamples,
        )
        for i, difference, p_holm in zip(known, from_raw, adjusted, strict=True)
    )
    return Evidence(*measured, options, _honest_gain(halves[known]), *protocol, runs)


def random_halves(count: int, splits: int = SPLITS) -> Float[Tensor, "q h"]:
    """Halves of so many items, each beside the other one: how often item i of q is in half h, 0 or 1."""
    generator, halves = torch.Generator().manual_seed(0), []
    for _ in range(splits):
        half = (torch.randperm(count, generator=generator) < count // 2).double()
        halves += [half, 1 - half]
    return torch.stack(halves, dim=1)


def _honest_gain(found: Float[Tensor, "v h"]) -> float:
    chosen = found.nan_to_num(-math.inf).argmax(0)
    other = torch.arange(found.shape[1]) ^ 1  # the other half of each
    gains = found[chosen, other] - found[0, other]
    return float(gains[~gains.isnan()].mean()) if not gains.isnan().all() else math.nan
