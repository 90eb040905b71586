"""Where a cosine stands among those of random pairs: the scale that a space gives to its cosines.

Raw sentence embeddings lie in a cone, so that 0.7 may be what any two sentences have; whitened ones do not. A cosine
says something only against the cosines of pairs that have nothing to do with each other.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from whitelab.base.checks import check_int, check_matrix
from whitelab.base.lazy import cached_property
from whitelab.statistics.geometry import normalize, row_cosines

BINS = 2**16  # of equal width on [-1, 1]: 0.00003 of a cosine
ALL_PAIRS = 2**27  # as many pairs are all counted: some 16,000 rows
SAMPLED = 2**22  # of more, so many are drawn
_ROWS = 1024
_AT_ONCE = 2**19  # pairs: an eighth of `SAMPLED`
_KNOTS = 4096  # of an exported table, evenly spread over the pairs; the outermost thousandths have more
_TAIL = 256
CONFIDENCE = 0.95
FLOOR, TOP = 0.1, 99.9  # percentiles


def bin_of(cosines: Float[Tensor, "..."]) -> Int[Tensor, "..."]:
    """Which of the `BINS` each cosine is counted in."""
    return ((cosines + 1) * (BINS / 2)).long().clamp_(0, BINS - 1)


@dataclass(frozen=True, eq=False)
class RandomCosines:
    """The cosines of pairs of different rows, counted in `BINS` equal bins: `counts`, `pairs` in all.

    `exact`: every pair there is was counted, else they were drawn.
    """

    counts: Float[np.ndarray, "b"]
    exact: bool

    @classmethod
    def of(cls, *groups, all_pairs: int = ALL_PAIRS, sampled: int = SAMPLED, seed: int = 0) -> "RandomCosines":
        """Of the rows of `x [n, d]`, each counted once; of several tables the pairs within each.

        Up to `all_pairs` pairs all of them; otherwise `sampled`, drawn with replacement by `seed`, of each table its
        share. Raises ValueError for shapes and numbers as `check_matrix`, for a negative seed, and where there is
        no pair at all.
        """
        check_int(sampled, "sampled", 1)
        tables = [check_matrix(x) for x in groups]
        sizes = [len(x) * (len(x) - 1) // 2 for x in tables]
        total = sum(sizes)
        if not total:
            raise ValueError("x must hold at least two rows, or there are no pairs")
        every = total <= all_pairs
        counts, generator = np.zeros(BINS), torch.Generator().manual_seed(check_int(seed, "seed", 0))
        for x, size in zip(tables, sizes, strict=True):
            parts = _all(normalize(x)) if every else _drawn(x, round(sampled * size / total), generator)
            for part in parts:
                counts += torch.bincount(bin_of(part), minlength=BINS).cpu().numpy()
        return cls(counts, every)

    @property
    def pairs(self) -> int:
        """Pairs counted."""
        return round(self.counts.sum())

    def as_dict(self) -> dict:
        """A JSON-ready record without the counts."""
        record = {"random_pairs": self.pairs, "all_pairs": self.exact, "percentile_error": self.error}
        return record | {"floor": self.floor, "median": self.median, "top": self.top}

    @property
    def error(self) -> float:
        """How far a percentile may be off, in points.

        Within a bin pairs count as evenly spread, which errs by the fullest bin at most. Where pairs were drawn, the
        bound that holds for all cosines at once in 95 of 100 draws is added (Dvoretzky-Kiefer-Wolfowitz with the
        constant of Massart 1990).
        """
        drawn = 0.0 if self.exact else math.sqrt(math.log(2 / (1 - CONFIDENCE)) / (2 * self.pairs))
        return 100 * float(self.counts.max() / self.pairs + drawn)

    def percentile(self, cosine):
        """The share of random pairs, in percent, whose cosine is not above `cosine`, a number or an array of them."""
        found = np.interp(np.asarray(cosine, dtype=np.float64), self._edges, self._shares)
        return float(found) if found.ndim == 0 else found

    def cosine(self, percentile: float) -> float:
        """The cosine that `percentile` percent of the random pairs do not exceed. Raises ValueError outside 0..100."""
        if not 0 <= percentile <= 100:
            raise ValueError(f"percentile={percentile!r} must lie between 0 and 100")
        # Where no pair lies the curve is level; the end of it that is nearer to the pairs below is meant.
        place = int(np.searchsorted(self._shares, percentile))
        if place == 0:
            return float(self._edges[np.flatnonzero(self.counts)[0]])
        low, high = self._shares[place - 1 : place + 1]
        return float(self._edges[place - 1] + (percentile - low) / (high - low) * (2 / BINS))

    @property
    def floor(self) -> float:
        """The cosine that one pair in a thousand is below."""
        return self.cosine(FLOOR)

    @property
    def median(self) -> float:
        """The median cosine."""
        return self.cosine(50.0)

    @property
    def top(self) -> float:
        """The cosine that one pair in a thousand is above."""
        return self.cosine(TOP)

    def table(self) -> tuple[Float[np.ndarray, "m"], Float[np.ndarray, "m"]]:
        """Cosines and their percentiles, both rising: `numpy.interp(cosine, *table)` is `percentile` to 0.03 points."""
        tail = np.geomspace(min(100 / self.pairs, 0.01), 0.1, _TAIL)
        wanted = np.concatenate([tail, np.linspace(0, 100, _KNOTS), 100 - tail])
        places = np.searchsorted(self._shares, wanted)
        filled = np.flatnonzero(self.counts)
        # Both ends of each step, so that a gap without pairs stays level.
        places = np.unique(np.concatenate([places, np.maximum(places - 1, 0), [0, filled[0], filled[-1] + 1, BINS]]))
        return self._edges[places], self._shares[places]

    def arrays(self, among: str = "") -> dict[str, np.ndarray]:
        """`table` as an export carries it: `cosine` and `percentile`, and `among` which pairs, where that is said."""
        table = dict(zip(("cosine", "percentile"), self.table(), strict=True))
        return table | ({"among": np.array(among)} if among else {})

    @cached_property
    def _edges(self) -> Float[np.ndarray, "e"]:
        return np.linspace(-1, 1, BINS + 1)

    @cached_property
    def _shares(self) -> Float[np.ndarray, "e"]:
        return 100 * np.concatenate([[0.0], self.counts.cumsum()]) / self.counts.sum()


def _all(unit: Float[Tensor, "n d"]) -> Iterable[Float[Tensor, "m"]]:
    """The cosine of every pair of different rows, once, a table of `_ROWS` x `_ROWS` at a time."""
    parts = unit.split(_ROWS)
    for number, one in enumerate(parts):
        square = one @ one.T
        yield square[tuple(torch.triu_indices(*square.shape, offset=1, device=unit.device))]
        for other in parts[number + 1 :]:
            yield (one @ other.T).flatten()


def _drawn(x: Float[Tensor, "n d"], count: int, generator: torch.Generator) -> Iterable[Float[Tensor, "m"]]:
    """Pairs are drawn first and taken in the order of their first rows: a row of a large table is then fetched once for
    all its pairs, and to fetch one at random takes longer than to multiply it."""
    n, step, sides = len(x), _ROWS * 64, [torch.empty(2, 0, dtype=torch.int64)]
    for start in range(0, count if n > 1 else 0, step):
        size = min(step, count - start)
        first = torch.randint(n, (size,), generator=generator)
        sides.append(torch.stack([first, (first + 1 + torch.randint(n - 1, (size,), generator=generator)) % n]))
    pairs = torch.cat(sides, 1)
    for order in pairs[0].argsort().split(_AT_ONCE):
        yield row_cosines(x, *pairs[:, order].to(x.device))
