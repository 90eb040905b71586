"""What a paper or a benchmark decides in every cell, field by field, and what two of them decide differently."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from whitelab.base.checks import check_choice
from whitelab.compare.published import ONE_SPLIT
from whitelab.datasets import discover
from whitelab.scoring.setting import TABLE1, Setting, scope_name

CORPUS = "corpus"  # the fit of a preset whose text the caller names


@dataclass(frozen=True)
class Preset:
    """What one source does in every cell.

    `setting` is the row it stands for, `settings` the rows of its table. `max_length` None is the model's own
    limit. The split scored is test; of the tasks in `whole`, which the source does not split, all of it. `decimals`
    are those a task's score is rounded to before the average over tasks. `departs` says where what its published
    code does differs from what is done here.
    """

    label: str
    source: str
    aggregate: str
    fit: str
    max_length: int | None
    setting: str
    settings: str
    note: str
    departs: str
    paper: str = ""
    text: str = "strip"
    decimals: int | None = None
    whole: tuple[str, ...] = ()

    def fitted_on(self, corpus: str | None) -> "Preset":
        """The preset with the text its maps are fitted on named, where the source leaves that to its reader.

        Raises ValueError where it needs a `corpus` and there is none.
        """
        if self.fit != CORPUS:
            return self
        if not corpus:
            raise ValueError("corpus=None must name the text to fit on, a path or demo; the paper takes SNLI and MNLI")
        return replace(self, fit=corpus)

    def applied(self, setting: Setting) -> Setting:
        """A row's setting with what the preset decides: what its map is fitted on, and the aggregate."""
        return setting.with_(fit=self.fit if setting.fits else "task", aggregate=self.aggregate)

    def lacks_splits(self, data: str, tasks: Sequence[str]) -> tuple[str, ...]:
        """Those of `tasks` whose maps the preset fits on all published splits, and of which `data` lacks some."""
        part = [one.name for one in discover(data) if one.published and not one.whole]
        lacking = [name for name in tasks if name in part and name not in ONE_SPLIT]
        return tuple(lacking) if self.fit == "splits" else ()

    def split_of(self, data: str, task: str) -> str:
        """The split of a task that is scored: `all` only where the source and the data have it whole."""
        if task not in self.whole:
            return "test"
        return "all" if any(one.name == task and "all" in one.splits for one in discover(data)) else "test"


_NULL = "Its code inverts covariances whole; here directions without variance are left out"
_SU = (
    f"{_NULL}. Its cosines are dot products, which rounding keeps from tying where sentences are the same; here they "
    "tie. For large models the paper keeps 384 directions, not 256."
)

PRESETS: dict[str, Preset] = {
    "whiteningbert": Preset(
        "WhiteningBERT",
        "Huang et al. 2021, section 4 and Table 1",
        "mean",
        "task",
        128,
        "mean/L1+L-1:pca",
        TABLE1,
        "Plain mean over a year's subsets; the map is fitted on all sentences of the year's test data.",
        f"{_NULL}. It keeps the first 768 numbers of every vector, raw or whitened, unless told otherwise: of models "
        "with 1 024 its scores may be points away. It divides a mean by 0.01 more than its tokens, which moved "
        "whitened scores of all-MiniLM-L6-v2 by at most 0.008, and does not count special tokens among the 128.",
        paper="whiteningbert",
    ),
    "bert-whitening": Preset(
        "BERT-whitening, target",
        "Su et al. 2021, section 4 and Tables 1 and 2",
        "wmean",
        "splits",
        64,
        "mean/L1+L-1:pca@256",
        "mean/L1+L-1;mean/L1+L-1:pca;mean/L1+L-1:pca@256",
        "Subsets weighted by their pairs; the map is fitted on every split of the task that the data holds.",
        _SU,
        paper="bert-whitening",
    ),
    "bert-whitening-corpus": Preset(
        "BERT-whitening, corpus",
        "Su et al. 2021, section 4 and Tables 1 and 2 (NLI)",
        "wmean",
        CORPUS,
        64,
        "mean/L1+L-1:pca@256",
        "mean/L1+L-1;mean/L1+L-1:pca;mean/L1+L-1:pca@256",
        "As the above, but the map is fitted on other text. The paper takes both columns of SNLI and MNLI.",
        _SU,
        paper="bert-whitening",
    ),
    "simcse": Preset(
        "SimCSE / SentEval, all",
        "Gao et al. 2021, appendix B",
        "all",
        "task",
        None,
        "cls/L-1",
        "cls/L-1;mean/L-1;mean/L1+L-1",
        "One Spearman over all pairs of a year. The average is taken of scores rounded to two decimals.",
        "Its code sorts the pairs of a subset by length and computes in float32; cosines that must tie, tie here.",
        text="words",
        decimals=2,
    ),
    "mteb": Preset(
        "MTEB",
        "Muennighoff et al. 2023",
        "all",
        "task",
        None,
        "mean/L-1",
        "mean/L-1",
        "One Spearman over all pairs of a task's test split, the model's last layer, its own limit of length. SICK-R "
        "is scored on all its pairs, as MTEB does, where the data has all three splits.",
        "MTEB takes the pooling a model was made with; here it is the mean, which most of them have.",
        whole=("sickr",),
    ),
}

# What a preset decides, in the order in which a walk from one to another changes it.
FIELDS = {
    "split": "Pairs scored",
    "text": "Text",
    "max_length": "Longest sentence",
    "pooling": "Pooling",
    "layers": "Layers",
    "whitening": "Whitening",
    "k": "Dimensions kept",
    "fit": "Fitted on",
    "aggregate": "Subsets of a task",
    "decimals": "Rounding before the average",
}
# What all of them decide alike.
ALIKE = (
    "cosine similarity and Spearman's correlation",
    "every sentence occurrence counts in a fit",
    "[CLS] and [SEP] count in a mean, padding does not",
    "STS13 without SMT",
    "the average over tasks is plain",
)
_FEWER_FITTED = "not all published splits are here, so maps are fitted on fewer sentences than the preset's were"
_AGGREGATES = {"all": "one Spearman over all", "mean": "plain mean", "wmean": "mean weighted by pairs"}
_TEXTS = {"strip": "blanks at both ends removed", "words": "words joined by single blanks"}


def decisions(name: str, setting: Setting | None = None, data: str | None = None) -> dict[str, object]:
    """What a preset decides, field by field, for its own setting or another.

    `k` is None where all directions are kept, `fit` where nothing is fitted. On `data`, no task is scored whole of
    which not all splits are there.
    """
    preset = PRESETS[check_choice(name, "preset", PRESETS)]
    one = setting or Setting.parse(preset.setting)
    return {
        "split": ("test", *(task for task in preset.whole if task not in _in_part(data))),
        "text": preset.text,
        "max_length": preset.max_length,
        "pooling": one.pooling,
        "layers": one.layers,
        "whitening": one.whitening,
        "k": one.k,
        "fit": preset.fit if one.fits else None,
        "aggregate": preset.aggregate,
        "decimals": preset.decimals,
    }


def _in_part(data: str | None) -> tuple[str, ...]:
    """The tasks of which the data has not all splits."""
    return () if data is None else tuple(one.name for one in discover(data) if "all" not in one.splits)


def differences(
    one: str, other: str, setting: Setting | None = None, data: str | None = None
) -> dict[str, tuple[object, object]]:
    """What two presets decide differently, each for its own setting or both for one: field -> (one's, other's)."""
    first, second = (decisions(name, setting, data) for name in (one, other))
    return {field: (first[field], second[field]) for field in FIELDS if first[field] != second[field]}


def worded(field: str, value: object) -> str:
    """A decision in words."""
    if field == "split":
        return "test" + "".join(f"; all of {task}" for task in value[1:])
    if field == "text":
        return _TEXTS[value]
    if field == "max_length":
        return "the model's limit" if value is None else f"{value} tokens"
    if field == "layers":
        return " + ".join({-1: "last"}.get(layer, str(layer)) for layer in value)
    if field == "k":
        return "all" if value is None else str(value)
    if field == "fit":
        named = {None: "nothing", "task": "the split scored", "splits": "all splits of the task", CORPUS: "other text"}
        return named.get(value, str(value))
    if field == "aggregate":
        return _AGGREGATES[value]
    if field == "decimals":
        return "none" if value is None else f"{value} decimals"
    return str(value)


def lacking_splits(presets: Iterable[str], data: str, tasks: Sequence[str]) -> tuple[str, ...]:
    """What is to be known where the data lacks splits that a preset fits on or scores; empty where it has all."""
    chosen = [PRESETS[name] for name in presets]
    fitted = dict.fromkeys(task for one in chosen for task in one.lacks_splits(data, tasks))
    scored = {task: one.label for one in chosen for task in tasks if task in one.whole}
    notes = [f"{', '.join(fitted)}: {_FEWER_FITTED}"] if fitted else []
    return tuple(notes) + tuple(
        f"{task}: scored on its test split alone, where {label} takes all of it: its three splits are not here"
        for task, label in scored.items()
        if not any(one.name == task and one.whole for one in discover(data))
    )


def preset_line(name: str, corpus: str | None = None) -> str:
    """A preset in one line, to stand under a table."""
    preset = PRESETS[check_choice(name, "preset", PRESETS)]
    return (
        f"Spearman x 100 under the preset {name} ({preset.source}): subsets by "
        f"{worded('aggregate', preset.aggregate)}; maps fitted on "
        f"{scope_name(corpus) if preset.fit == CORPUS and corpus else worded('fit', preset.fit)}; longest sentence "
        f"{worded('max_length', preset.max_length)}; the average is the plain mean over tasks"
        + (f", each rounded to {worded('decimals', preset.decimals)} first." if preset.decimals is not None else ".")
    )
