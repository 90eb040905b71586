"""Which classifier, and everything else but data and setting that decides a score."""

from dataclasses import dataclass

from whitelab.base.checks import check_choice, check_int
from whitelab.datasets import LabelledTexts
from whitelab.probe.classifiers import METRICS

CLASSIFIERS = {"knn": "Neighbours", "linear": "Linear", "senteval": "SentEval", "threshold": "Threshold"}
FITS = {"train": "The training texts", "all": "All texts"}


@dataclass(frozen=True)
class How:
    """Everything but data and setting that decides a probe's score.

    `fit` says what the whitening is fitted on: `train`, the texts the classifier learns from (in cross-validation
    each fold has a map of its own); `all`, every text, as WhiteningBERT does on STS; or the name of other text.
    `neighbours` and `metric` are for `knn`, `threshold` for `threshold`. `standardize` brings every feature to mean
    0 and variance 1 on the training rows before a classifier sees it; no paper does.
    """

    classifier: str = "linear"
    fit: str = "train"
    neighbours: int = 5
    metric: str = "euclidean"
    folds: int = 10
    standardize: bool = False
    threshold: float = 0.5
    seed: int = 1111

    def __post_init__(self) -> None:
        check_choice(self.classifier, "classifier", CLASSIFIERS)
        check_choice(self.metric, "metric", METRICS)
        check_int(self.neighbours, "neighbours", 1)
        check_int(self.folds, "folds", 2)
        check_int(self.seed, "seed", 0, 2**32 - 1)
        if not -1 <= self.threshold <= 1:
            raise ValueError(f"threshold={self.threshold!r} must lie between -1 and 1")
        if not self.fit:
            raise ValueError("fit='' must be train, all, or name other text")

    def on(self, data: LabelledTexts) -> str:
        """The classifier that runs on `data`: `linear` means SentEval's protocol on a task in SentEval's layout."""
        return "senteval" if self.classifier == "linear" and data.layout == "senteval" else self.classifier

    def uses(self, field: str, data: LabelledTexts) -> bool:
        """Whether `neighbours`, `metric`, `folds`, `standardize` or `threshold` decides anything on `data`."""
        classifier = self.on(data)
        if field == "folds":
            chosen_in_folds = classifier == "senteval" and not (data.scored_split == "test" and "dev" in data.split)
            return classifier != "threshold" and (data.scored_split is None or chosen_in_folds)
        if field == "standardize":
            return classifier != "threshold"
        return classifier == {"neighbours": "knn", "metric": "knn", "threshold": "threshold"}[field]


def usual(data: LabelledTexts) -> str:
    """The classifier that the papers use on data of this kind."""
    if data.layout == "senteval":
        return "senteval"
    return "threshold" if data.pairs else "linear"
