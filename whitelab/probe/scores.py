"""What a probe finds: accuracy with its interval, and for pairs how well cosines tell them apart."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float

from whitelab.compare.published import Published
from whitelab.scoring.setting import Setting


@dataclass(frozen=True)
class PairMeasures:
    """How well cosines tell matching pairs from others; a pair is said to match where cosine >= threshold.

    `best_accuracy` is at `best_threshold`, the threshold that is best on the pairs `chosen_on`: the training pairs,
    or the scored pairs themselves, and then it is an upper bound. `average_precision` and `best_f1` (x 100)
    concern the scored pairs.
    """

    threshold: float
    best_threshold: float
    best_accuracy: float
    best_accuracy_low: float
    best_accuracy_high: float
    chosen_on: str
    average_precision: float
    best_f1: float
    best_f1_threshold: float


@dataclass(frozen=True)
class ProbeScore:
    """Accuracy x 100 of one setting on one task with its 95 % Wilson interval; None with a `reason` otherwise.

    `baseline` is the accuracy of always saying the most frequent class of the training rows. `scored` rows were scored,
    `train` learnt from (the fewest of any fold; `folds` were scored, or 1 split), the map was fitted on `fitted` texts
    and keeps `rank` of `dim` directions. `f1` (x 100) is that of the class that says yes, where there is one.
    `confusion[i][j]` counts rows of class i that were taken for class j. `c` is what SentEval's protocol chose for each
    fold, or for the one split. `hits` says for every row scored whether it was right, in file order. `truncated` texts
    of the task are longer than the `max_length` tokens that the model reads of one. Where a map is `starved`
    (`whitening.starved`) it says nothing.
    """

    model: str
    setting: Setting
    task: str
    classifier: str
    accuracy: float | None
    low: float | None = None
    high: float | None = None
    baseline: float | None = None
    scored: int = 0
    train: int = 0
    folds: int = 0
    fitted: int = 0
    rank: int = 0
    dim: int = 0
    f1: float | None = None
    pairs: PairMeasures | None = None
    classes: tuple[str, ...] = ()
    confusion: tuple[tuple[int, ...], ...] = ()
    c: tuple[float, ...] = ()
    protocol: str = ""
    reason: str = ""
    published: Published | None = None
    truncated: int = 0
    max_length: int | None = None
    starved: bool = False
    hits: Bool[np.ndarray, "n"] | None = field(default=None, repr=False, compare=False)
    cosines: Float[np.ndarray, "n"] | None = field(default=None, repr=False, compare=False)
    matches: Bool[np.ndarray, "n"] | None = field(default=None, repr=False, compare=False)

    def as_dict(self) -> dict:
        """A JSON-ready record."""
        names = ("task", "classifier", "accuracy", "low", "high", "baseline", "f1", "scored", "train", "fitted")
        record = {"model": self.model, "setting": str(self.setting)} | {name: getattr(self, name) for name in names}
        record |= {"folds": self.folds, "rank": self.rank, "dim": self.dim, "protocol_line": self.protocol}
        record |= {"truncated": self.truncated, "max_length": self.max_length}
        record["resamples"] = 0  # Wilson's interval is a formula
        if self.pairs is not None:
            record |= vars(self.pairs)
        if self.c:
            record["c"] = list(self.c)
        if self.published is not None:
            record |= {"published": self.published.value, "published_in": self.published.place}
        if self.confusion:
            record |= {"classes": list(self.classes), "confusion": [list(row) for row in self.confusion]}
        return record | ({"reason": self.reason} if self.reason else {})
