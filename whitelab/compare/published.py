"""The papers' tables as data: what was printed, under which setting, and what can be put beside a measured score.

The numbers lie in `data/published`, as printed, contradictions included; its README says what was checked. A
setting is one string, `avg L1+L12 whitening k=256 fit=splits`, read by `PrintedRow.parse`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path

from whitelab.base.checks import check_choice
from whitelab.base.installation import shipped
from whitelab.datasets import DataError
from whitelab.datasets.tables import read_records

FOLDER = shipped("data/published")
PAPERS = {
    "whiteningbert": "WhiteningBERT (Huang et al. 2021)",
    "bert-whitening": "BERT-whitening (Su et al. 2021)",
    "whitenedcse": "WhitenedCSE (Zhuo et al. 2023)",
    "w-mse": "W-MSE (Ermolov et al. 2021)",
}
SPEARMAN = "Spearman x 100"
ACCURACY = "accuracy %"

# The words of a setting, in their order. The last group belongs to one table each and is compared literally.
POOLINGS = {
    "cls": "the first token",
    "avg": "the mean of all tokens that are not padding",
    "wk": "SBERT-WK: tokens and layers weighted by how much they vary",
    "sif": "words weighted by inverse frequency, common component removed",
}
WHITENINGS = {"none": "as it is", "whitening": "full, or its top k directions", "flow": "BERT-flow"}
EXTRA = (
    "transform",
    "groups",
    "shuffle",
    "positives",
    "views",
    "whitened",
    "normalized",
    "epochs",
    "threshold",
    "zero-shot",
)

# Depths the papers print; for other models `lookup` is told.
DEPTHS = {"bert-base": 12, "bert-large": 24, "roberta-base": 12, "roberta-large": 24, "distilbert": 6, "labse": 12}
# Where a task has no other split than the one scored, fitting on it is fitting on all of them.
ONE_SPLIT = ("sts12", "sts13", "sts14", "sts15", "sts16")

# Hugging Face names of models in the tables -> (model, training). Only where the paper leaves no choice of version.
ALIASES = {
    "google-bert/bert-base-uncased": ("bert-base", ""),
    "google-bert/bert-large-uncased": ("bert-large", ""),
    "FacebookAI/roberta-base": ("roberta-base", ""),
    "FacebookAI/roberta-large": ("roberta-large", ""),
    "distilbert/distilbert-base-uncased": ("distilbert", ""),
    "sentence-transformers/LaBSE": ("labse", ""),
    "SpanBERT/spanbert-base-cased": ("spanbert-base", ""),
    "SpanBERT/spanbert-large-cased": ("spanbert-large", ""),
    "microsoft/deberta-base": ("deberta-base", ""),
    "microsoft/deberta-large": ("deberta-large", ""),
    "microsoft/mpnet-base": ("mpnet", ""),
    "google-t5/t5-base": ("t5-base", ""),
    "google-t5/t5-large": ("t5-large", ""),
    "squeezebert/squeezebert-uncased": ("squeezebert", ""),
    "allenai/specter": ("specter", ""),
    "sentence-transformers/bert-base-nli-mean-tokens": ("bert-base", "sbert-nli"),
    "sentence-transformers/bert-large-nli-mean-tokens": ("bert-large", "sbert-nli"),
    "princeton-nlp/unsup-simcse-bert-base-uncased": ("bert-base", "simcse"),
    "princeton-nlp/unsup-simcse-bert-large-uncased": ("bert-large", "simcse"),
    "princeton-nlp/unsup-simcse-roberta-base": ("roberta-base", "simcse"),
}


def alias(model: str) -> str:
    """A Hugging Face name in the tables, empty where none is surely this one."""
    return ALIASES.get(model, ("", ""))[0]


# The hub also answers to names without their organisation, as they were before it had those.
_OLD_NAMES = {name.partition("/")[2]: found for name, found in ALIASES.items()}


@dataclass(frozen=True)
class PrintedRow:
    """How a row was computed, as far as its paper says: an empty part is not said.

    `layers` holds numbers and "last". `k` None keeps all directions. `training` names what the model was trained
    with beyond its checkpoint, `extra` what else tells the rows of one table apart.
    """

    pooling: str = ""
    layers: tuple[int | str, ...] = ()
    whitening: str = ""
    k: int | None = None
    fit: str = ""
    training: str = ""
    extra: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> "PrintedRow":
        """Read `[pooling] [layers] [whitening] [k=N] [fit=TEXT] [train=NAME] [WORD=VALUE...]`; ValueError otherwise.

        `str` writes the same words back in this order.
        """
        found, extra = {}, []
        for word in text.split():
            name, value = _word(word, text)
            if name in EXTRA:
                extra.append((name, value))
            elif name in found:
                raise ValueError(f"setting={text!r} must not say its {name} twice")
            else:
                found[name] = value
        return cls(**found, extra=tuple(extra))

    @classmethod
    def of(
        cls,
        pooling: str,
        layers: Iterable[int],
        whitening: str = "none",
        k: int | None = None,
        fit: str = "task",
        training: str = "",
    ) -> "PrintedRow":
        """The setting of a measured score in whitelab's words: pooling `mean`, fit a scope.

        `whitening` is "whitening" for every spec whose cosines are those of a full whitening, or with `k` of PCA
        (`whitening.cosine_class`). Without whitening nothing is fitted, and `k` and `fit` are left out.
        """
        check_choice(whitening, "whitening", WHITENINGS)
        if whitening == "none":
            k, fit = None, ""
        return cls({"mean": "avg"}.get(pooling, pooling), tuple(sorted(layers)), whitening, k, fit, training)

    def __str__(self) -> str:
        layers = "+".join(layer if layer == "last" else f"L{layer}" for layer in self.layers)
        words = [self.pooling, layers, self.whitening]
        words += [f"k={self.k}"] if self.k is not None else []
        words += [f"fit={self.fit}"] if self.fit else []
        words += [f"train={self.training}"] if self.training else []
        words += [f"{name}={value}" for name, value in self.extra]
        return " ".join(word for word in words if word)

    @property
    def complete(self) -> bool:
        """Whether pooling, layers, whitening and, where something is fitted, its text are all said."""
        fitted = self.whitening == "none" or bool(self.fit)
        return bool(self.pooling and self.layers and self.whitening and fitted)

    def with_last(self, depth: int | None) -> "PrintedRow":
        """The same setting with layer number `depth` called "last"."""
        return replace(self, layers=tuple("last" if layer == depth else layer for layer in self.layers))


def _word(word: str, text: str) -> tuple[str, str | int | tuple]:
    """The part of a setting one word fills, and its value."""
    name, equals, value = word.partition("=")
    if word in POOLINGS:
        return "pooling", word
    if word in WHITENINGS:
        return "whitening", word
    if equals and value:
        if name == "k" and value.isdecimal() and int(value) >= 1:
            return "k", int(value)
        if name == "train":
            return "training", value
        if name == "fit" or name in EXTRA:
            return name, value
    layers = word.split("+")
    if all(layer == "last" or (layer[:1] == "L" and layer[1:].isdecimal()) for layer in layers):
        return "layers", tuple(layer if layer == "last" else int(layer[1:]) for layer in layers)
    raise ValueError(
        f"setting={text!r} must be made of {', '.join(POOLINGS)}; L1+L12 or last; {', '.join(WHITENINGS)}; "
        f"k=, fit=, train=, {', '.join(f'{name}=' for name in EXTRA)}; got {word!r}"
    )


@dataclass(frozen=True)
class Published:
    """One printed number. `printed` is its text, `value` the number; empty and None where the paper has none.

    `section` is the group heading, `row` the label as printed; `model`, `setting` and `column` are normalised.
    `aggregate` says how the subsets of STS12-16 were joined (all, mean, wmean; empty: not known, or no subsets).
    `mark` is what stands beside the number: `up` or `down` (above or below BERT-flow), `second` (underlined).
    """

    paper: str
    edition: str
    table: str
    section: str
    row: str
    model: str
    setting: str
    column: str
    printed: str
    unit: str
    aggregate: str
    mark: str
    note: str

    @property
    def value(self) -> float | None:
        return float(self.printed) if self.printed else None

    @property
    def place(self) -> str:
        """Where it stands, in words: `WhiteningBERT (Huang et al. 2021), Table 1, emnlp edition`."""
        return f"{PAPERS[self.paper]}, {self.table}, {self.edition} edition"


@dataclass(frozen=True)
class PublishedTable:
    """One table of one edition: `numbers` in the order of print."""

    paper: str
    edition: str
    name: str
    title: str
    numbers: tuple[Published, ...]

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        """(section, label) of each printed row."""
        return tuple(dict.fromkeys((number.section, number.row) for number in self.numbers))

    @property
    def columns(self) -> tuple[str, ...]:
        """The normalised columns."""
        return tuple(dict.fromkeys(number.column for number in self.numbers))


@cache
def tables() -> tuple[PublishedTable, ...]:
    """Every table, by paper. DataError where the bundled files are missing or damaged."""
    return read(FOLDER)


def read(folder: Path) -> tuple[PublishedTable, ...]:
    """The tables in a folder laid out as `data/published`: `tables.csv`, and `PAPER.csv` for each paper it names."""
    listed = read_records(folder / "tables.csv", ("paper", "edition", "table", "title"), "the published tables")
    names = [field.name if field.name != "printed" else "value" for field in fields(Published)]
    held: dict[tuple[str, ...], list[Published]] = {(one["paper"], one["edition"], one["table"]): [] for one in listed}
    for paper in dict.fromkeys(one["paper"] for one in listed):
        path = folder / f"{paper}.csv"
        for line, record in enumerate(read_records(path, names, "the published tables"), 2):
            number = Published(*record.values())
            key = (number.paper, number.edition, number.table)
            if key not in held or number.paper != paper:
                raise DataError(f"{path}: line {line}: {' '.join(key)} is not a table of this file in tables.csv")
            _check(number, f"{path}: line {line}")
            held[key].append(number)
    return tuple(PublishedTable(*key, one["title"], tuple(held[key])) for one, key in zip(listed, held, strict=True))


def _check(number: Published, where: str) -> None:
    try:
        PrintedRow.parse(number.setting)
        float(number.printed or 0)
    except ValueError as error:
        raise DataError(f"{where}: {error}") from None


def numbers(
    paper: str | None = None,
    table: str | None = None,
    *,
    edition: str | None = None,
    model: str | None = None,
    column: str | None = None,
) -> tuple[Published, ...]:
    """The printed numbers that agree with everything given, in the order of print.

    `model` is a name of the tables or a Hugging Face name in `ALIASES`, which then also decides the training.
    Raises ValueError for a paper there is none of.
    """
    if paper is not None:
        check_choice(paper, "paper", PAPERS)
    wanted = {"paper": paper, "table": table, "edition": edition, "column": column}
    wanted = {name: value for name, value in wanted.items() if value is not None}
    found = [
        number
        for one in tables()
        for number in one.numbers
        if all(getattr(number, name) == value for name, value in wanted.items())
    ]
    if model is not None:
        name, training = ALIASES.get(model, (model, None))
        found = [
            number
            for number in found
            if number.model == name and training in (None, PrintedRow.parse(number.setting).training)
        ]
    return tuple(found)


def named(model: str) -> tuple[str, str]:
    """The name in the tables and the training of a model, by its Hugging Face name, with organisation or without."""
    return ALIASES.get(model) or _OLD_NAMES.get(model) or (model, "")


def lookup(
    model: str, setting: str | PrintedRow, task: str, last: int | None = None, unit: str = SPEARMAN
) -> tuple[Published, ...]:
    """The published numbers that a measured one in `unit` can be put beside: same model, setting and task.

    `last` is the model's number of layers, by which `L12` and `last` are the same; default: as printed, where it
    is. For STS12-16, which have one split, `fit=task` and `fit=splits` are the same. Of two editions of one table
    the first listed is given. Rows whose paper leaves pooling, layers or fit open are never given. The numbers
    may differ in `aggregate` and in the text's length and case: compare like with like.
    Raises ValueError for a setting that cannot be read or leaves something open.
    """
    wanted = PrintedRow.parse(setting) if isinstance(setting, str) else setting
    name, training = named(model)
    wanted = replace(wanted, training=wanted.training or training)
    if not wanted.complete:
        raise ValueError(f"setting={str(wanted)!r} must name pooling, layers, whitening and, with whitening, fit=")
    depth = last if last is not None else DEPTHS.get(name)
    wanted = _comparable(wanted, depth, task)
    found: dict[tuple[str, ...], Published] = {}
    for number in numbers(model=name, column=task):
        own = PrintedRow.parse(number.setting)
        usable = own.complete and number.unit == unit and number.value is not None
        if usable and _comparable(own, depth, task) == wanted:
            key = (number.paper, number.table, number.section, number.row, number.setting)
            found.setdefault(key, number)
    return tuple(found.values())


def _comparable(setting: PrintedRow, depth: int | None, task: str) -> PrintedRow:
    fit = "task" if task in ONE_SPLIT and setting.fit == "splits" else setting.fit
    return replace(setting.with_last(depth), fit=fit)
