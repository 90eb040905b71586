"""What a paper or a benchmark decides in every cell."""

from dataclasses import dataclass

from whitelab.checks import check_choice
from whitelab.compare.settings import TABLE1


@dataclass(frozen=True)
class Preset:
    """What one source does in every cell: aggregation, fit scope, longest sentence, and its own settings."""

    label: str
    source: str
    aggregate: str
    fit: str
    max_length: int
    settings: str
    note: str
    paper: str = ""


PRESETS: dict[str, Preset] = {
    "whiteningbert": Preset(
        "WhiteningBERT",
        "Huang et al. 2021, section 4 and Table 1",
        "mean",
        "task",
        128,
        TABLE1,
        "Plain mean over a year's subsets; the map is fitted on all sentences of the year's test data.",
        paper="whiteningbert",
    ),
    "bert-whitening": Preset(
        "BERT-whitening",
        "Su et al. 2021, section 4 and Tables 1 and 2",
        "wmean",
        "splits",
        64,
        "mean/L1+L-1;mean/L1+L-1:pca;mean/L1+L-1:pca@256",
        "Subsets weighted by their pairs; the map is fitted on every split of the task that the data holds.",
        paper="bert-whitening",
    ),
    "simcse": Preset(
        "SimCSE / SentEval, all",
        "Gao et al. 2021, appendix B",
        "all",
        "task",
        128,
        "cls/L-1;mean/L-1;mean/L1+L-1",
        "One Spearman over all pairs of a year. SimCSE sets no limit of length; no sentence of the tasks reaches 128.",
    ),
    "mteb": Preset(
        "MTEB",
        "Muennighoff et al. 2023",
        "all",
        "task",
        128,
        "mean/L-1",
        "One Spearman over all pairs of a task, the model's own last layer.",
    ),
}


def differences(one: str, other: str) -> dict[str, tuple[object, object]]:
    """What two presets decide differently: name -> (in one, in the other)."""
    first, second = (PRESETS[check_choice(name, "protocol", PRESETS)] for name in (one, other))
    names = ("aggregate", "fit", "max_length", "settings")
    return {n: (getattr(first, n), getattr(second, n)) for n in names if getattr(first, n) != getattr(second, n)}
