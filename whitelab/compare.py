"""Models x settings x tasks under one protocol, cell by cell: the papers' tables on any model and data.

A setting is written `[cls/|mean/]L1+L-1[:variant[@k]]`: pooling, layers to average (negative numbers count from
the last), and a whitening spec. A preset is what a paper or a benchmark does with everything else.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from whitelab import published, whitening
from whitelab.checks import check_choice
from whitelab.datasets import SentencePairs, load
from whitelab.embeddings import LayerEmbeddings, LayerRows
from whitelab.encoders import Encoder, embed, load_encoder
from whitelab.evaluate import Protocol, Score, embed_scope, score, with_pairs
from whitelab.pooling import check_pooling
from whitelab.published import Published
from whitelab.scopes import OWN, scope_text
from whitelab.store import Store

SEVEN = {"stsb", "sickr", "sts12", "sts13", "sts14", "sts15", "sts16"}
AVERAGE = "avg"  # the task of a row's average over all tasks, plain, as the papers print it

_SETTING = re.compile(r"(?:(?P<pooling>\w+)/)?(?P<layers>L-?\d+(?:\+L-?\d+)*)(?::(?P<spec>[^@]+))?(?:@(?P<k>\d+))?")


@dataclass(frozen=True)
class Setting:
    """One row of a comparison. `layers` may count from the last (-1), so that it fits models of any depth."""

    pooling: str
    layers: tuple[int, ...]
    whitening: str = "none"
    k: int | None = None

    @classmethod
    def parse(cls, text: str) -> "Setting":
        """`L1+L-1:pca@256` -> Setting. Raises ValueError for any other text."""
        found = _SETTING.fullmatch(text.strip())
        if not found:
            raise ValueError(f"setting={text.strip()!r} must look like L6, cls/L-1, L1+L6:pca or L1+L-1:pca@256")
        layers = tuple(int(part.removeprefix("L")) for part in found["layers"].split("+"))
        k, spec = found["k"] and int(found["k"]), whitening.canonical(found["spec"] or "none")
        if k is not None and not whitening.variant(spec).takes_k:
            whitening.check_k(k, spec, k)
        return cls(check_pooling(found["pooling"] or "mean"), layers, spec, k)

    def __str__(self) -> str:
        layers = "+".join(f"L{layer}" for layer in self.layers)
        spec = "" if self.whitening == "none" else f":{self.whitening}"
        return f"{self.pooling}/{layers}{spec}" + (f"@{self.k}" if self.k is not None else "")

    def numbers(self, n_layers: int) -> tuple[int, ...]:
        """The layers in a model that has `n_layers`, the embedding layer among them."""
        return tuple(dict.fromkeys(layer + n_layers if layer < 0 else layer for layer in self.layers))


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


TABLE1 = "cls/L-1;mean/L-1;mean/L1;mean/L1+L-1;mean/L1+L-1:pca"

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


def parse_settings(text: str) -> tuple[Setting, ...]:
    """`table1`, or settings separated by semicolons."""
    text = TABLE1 if text.strip() == "table1" else text
    found = tuple(Setting.parse(part) for part in text.split(";") if part.strip())
    if not found:
        raise ValueError(f"settings={text!r} must hold at least one setting, such as 'L6;L1+L6:pca', or be 'table1'")
    return tuple(dict.fromkeys(found))


def differences(one: str, other: str) -> dict[str, tuple[object, object]]:
    """What two presets decide differently: name -> (in one, in the other)."""
    first, second = (PRESETS[check_choice(name, "protocol", PRESETS)] for name in (one, other))
    names = ("aggregate", "fit", "max_length", "settings")
    return {n: (getattr(first, n), getattr(second, n)) for n in names if getattr(first, n) != getattr(second, n)}


@dataclass(frozen=True)
class Cell:
    """One score of the table, or the reason there is none. `task` is `avg` for the mean over the tasks.

    `published` is what a paper prints for the same model, setting, task and aggregation.
    """

    model: str
    setting: Setting
    task: str
    spearman: float | None
    half_width: float | None = None
    protocol: Protocol | None = None
    reason: str = ""
    published: Published | None = None

    def as_dict(self) -> dict:
        """A JSON-ready record."""
        record = {
            "model": self.model,
            "setting": str(self.setting),
            "task": self.task,
            "spearman": self.spearman,
            "half_width_95": self.half_width,
            "published": self.published and self.published.value,
            "published_in": self.published and self.published.place,
            "protocol": self.protocol and self.protocol.as_dict(),
        }
        return record | ({"reason": self.reason} if self.reason else {})


Progress = Callable[[int, int], None]


def compare(
    models: Sequence[str],
    data: str | SentencePairs,
    tasks: Sequence[str],
    settings: Sequence[Setting],
    protocol: str = "whiteningbert",
    *,
    store: Store | None = None,
    keep_going: bool = False,
    dtype: str = "float32",
    progress: Progress | None = None,
) -> Iterator[Cell]:
    """Every cell as it is done: by model, then task, then setting; each model's averages after its tasks.

    A task is embedded once for all its settings and let go before the next. What goes wrong with a model or a
    task is said in its cells, and the others go on. `progress(done, total)` counts models x tasks. Pairs in hand
    are their only task.
    """
    preset = PRESETS[check_choice(protocol, "protocol", PRESETS)]
    total = len(models) * len(tasks)
    for number, name in enumerate(models):
        cells: list[Cell] = []
        encoder = tried(lambda name=name: load_encoder(name, dtype=dtype, max_length=preset.max_length))
        for turn, task in enumerate(tasks):
            if isinstance(encoder, str):
                found = [Cell(name, setting, task, None, reason=encoder) for setting in settings]
            else:
                found = list(_task(encoder, data, task, settings, preset, store, keep_going))
            cells += found
            yield from found
            if progress:
                progress(number * len(tasks) + turn + 1, total)
        if len(tasks) > 1:
            yield from (_average(encoder, name, one, cells, preset) for one in settings)


# What a user can cause and mend; anything else is a fault of ours and goes up.
_EXPECTED = (ValueError, OSError, MemoryError)


def tried(work):
    """The result of `work()`, or one line that says why there is none."""
    try:
        return work()
    except _EXPECTED as error:
        return "not enough memory" if isinstance(error, MemoryError) else " ".join(str(error).split())
    except RuntimeError as error:  # torch has no class of its own for a machine that is full
        if "memory" not in str(error):
            raise
        return "not enough memory"


def _task(
    encoder: Encoder,
    data: str | SentencePairs,
    task: str,
    settings: Sequence[Setting],
    preset: Preset,
    store: Store | None,
    keep_going: bool,
) -> Iterator[Cell]:
    pairs = data if isinstance(data, SentencePairs) else tried(lambda: load(data, task, keep_going=keep_going))
    spaces: dict[str, LayerEmbeddings | str] = {}
    corpora: dict[str, LayerRows | None | str] = {}
    for setting in settings:
        pooling = setting.pooling
        if isinstance(pairs, str):
            yield Cell(encoder.name, setting, task, None, reason=pairs)
            continue
        if pooling not in spaces:
            spaces[pooling] = tried(lambda p=pooling: _space(encoder, pairs, p, store))
        needs = setting.whitening != "none" and preset.fit not in OWN
        if needs and pooling not in corpora:
            text = lambda p=pooling: embed_scope(  # noqa: E731
                encoder, scope_text(preset.fit, data, task, keep_going), p, store=store
            )
            corpora[pooling] = tried(text)
        yield _cell(encoder, pairs, setting, preset, spaces[pooling], corpora.get(pooling) if needs else None)


def _space(encoder: Encoder, pairs: SentencePairs, pooling: str, store: Store | None) -> LayerEmbeddings:
    values, _ = embed(encoder, pairs.sentences, pooling, store=store)
    return with_pairs(values, pairs)


def _cell(encoder, pairs, setting, preset, space, corpus) -> Cell:
    for problem in (space, corpus):
        if isinstance(problem, str):
            return Cell(encoder.name, setting, pairs.task, None, reason=problem)
    found = tried(lambda: score(space, _protocol(encoder, pairs, setting, preset), corpus))
    if isinstance(found, str):
        return Cell(encoder.name, setting, pairs.task, None, reason=found)
    return _scored(encoder, setting, preset, found)


def _scored(encoder: Encoder, setting: Setting, preset: Preset, found: Score) -> Cell:
    one = found.protocol
    paper = _printed(encoder, setting, one.task, preset)
    return Cell(one.model, setting, one.task, found.spearman, found.half_width, one, found.reason, paper)


def _printed(encoder: Encoder, setting: Setting, task: str, preset: Preset) -> Published | None:
    return printed(encoder.name, encoder.n_layers, encoder.dim, setting, task, preset)


def printed(model: str, n_layers: int, dim: int, setting: Setting, task: str, preset: Preset) -> Published | None:
    """What a paper prints for this cell under the preset's aggregation; None where none does."""
    kind = whitening.cosine_class(setting.whitening, setting.k, dim)
    k = setting.k if kind.startswith("covariance") else None
    if kind != "none" and kind != "whitening" and k is None:
        return None
    wanted = published.Setting.of(
        setting.pooling,
        setting.numbers(n_layers),
        "none" if kind == "none" else "whitening",
        k,
        preset.fit,
    )
    found = published.lookup(model, wanted, task, n_layers - 1)
    like = [one for one in found if one.aggregate in ("", preset.aggregate)]
    return next((one for one in like if one.paper == preset.paper), like[0] if like else None)


def _protocol(encoder: Encoder, pairs: SentencePairs, setting: Setting, preset: Preset) -> Protocol:
    return Protocol(
        model=encoder.name,
        data=pairs.source,
        task=pairs.task,
        split=pairs.split,
        pooling=setting.pooling,
        layers=setting.numbers(encoder.n_layers),
        whitening=setting.whitening,
        k=setting.k,
        fit="task" if setting.whitening == "none" else preset.fit,
        aggregate=preset.aggregate,
        dtype=encoder.dtype,
        max_length=encoder.max_length,
    )


def _average(encoder: Encoder | str, name: str, setting: Setting, cells: Sequence[Cell], preset: Preset) -> Cell:
    """The mean over the tasks; None where a task has no score."""
    model = name if isinstance(encoder, str) else encoder.name
    scores = [cell.spearman for cell in cells if cell.setting == setting]
    missing = [cell.task for cell in cells if cell.setting == setting and cell.spearman is None]
    if missing:
        return Cell(model, setting, AVERAGE, None, reason=f"no score for {', '.join(missing)}")
    # The papers' averages are over the seven tasks, so nothing is printed for the mean of fewer.
    seven = {cell.task for cell in cells} == SEVEN
    paper = _printed(encoder, setting, AVERAGE, preset) if seven else None
    return Cell(model, setting, AVERAGE, sum(scores) / len(scores), published=paper)


# ------------------------------------------------------------------------------------------------- tables

FORMATS = ("csv", "markdown", "latex")


def pivot(cells: Sequence[Cell]) -> tuple[list[str], list[tuple[str, str, dict[str, float | None]]]]:
    """Tasks in order, and a row (model, setting, {task: score}) for each model and setting."""
    tasks = list(dict.fromkeys(cell.task for cell in cells))
    rows: dict[tuple[str, str], dict[str, float | None]] = {}
    for cell in cells:
        rows.setdefault((cell.model, str(cell.setting)), {})[cell.task] = cell.spearman
    return tasks, [(model, setting, scores) for (model, setting), scores in rows.items()]


def best_scores(rows: Sequence[tuple[str, str, dict[str, float | None]]], task: str) -> float | None:
    """The highest score of a task as printed, with two decimals; ties are all best."""
    found = [round(scores[task], 2) for *_, scores in rows if scores.get(task) is not None]
    return max(found, default=None)


def written(cells: Sequence[Cell], form: str) -> str:
    """The table as text: CSV with every digit, Markdown or LaTeX with two decimals and the best in bold."""
    check_choice(form, "format", FORMATS)
    tasks, rows = pivot(cells)
    if form == "csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["model", "setting", *tasks])
        writer.writerows([model, setting, *(scores.get(task) for task in tasks)] for model, setting, scores in rows)
        return text.getvalue()
    top = {task: best_scores(rows, task) for task in tasks}
    bold = ("**", "**") if form == "markdown" else (r"\textbf{", "}")

    def shown(value: float | None, task: str) -> str:
        if value is None:
            return "-"
        number = f"{value:.2f}"
        return number.join(bold) if round(value, 2) == top[task] else number

    body = [[model, setting, *(shown(scores.get(task), task) for task in tasks)] for model, setting, scores in rows]
    head = ["model", "setting", *tasks]
    if form == "markdown":
        lines = [head, ["---", "---", *["---:"] * len(tasks)], *body]
        return "".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines)
    lines = [" & ".join(_latex(cell) for cell in line) + r" \\" for line in (head, *body)]
    lines = [rf"\begin{{tabular}}{{ll{'r' * len(tasks)}}}", r"\toprule", lines[0], r"\midrule", *lines[1:]]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _latex(cell: str) -> str:
    return cell if cell.startswith("\\textbf") else re.sub(r"([&%$#_{}])", r"\\\1", cell)
