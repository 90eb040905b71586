"""Every cell of a comparison as it is done, or the reason why it has no score."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import PurePath

from whitelab import whitening
from whitelab.base.checks import check_choice
from whitelab.base.lazy import cached_property
from whitelab.base.progress import Progress, Steps, silent
from whitelab.compare import published
from whitelab.compare.bench import Bench, tried
from whitelab.compare.presets import PRESETS, Preset
from whitelab.compare.published import Published
from whitelab.datasets import Problem
from whitelab.encoding.catalogue import known_layers
from whitelab.encoding.checkpoints import version
from whitelab.encoding.encoders import Encoder, load_encoder
from whitelab.encoding.names import (
    BUNDLED,
    BUNDLED_NAME,
    ONE_LAYER,
    WORD_TABLES,
    ModelError,
    ModelName,
    folder_of,
    shown_name,
)
from whitelab.scoring.score import Score
from whitelab.scoring.setting import Protocol, Setting, parse_settings
from whitelab.statistics.correlation import Judged
from whitelab.store.embedding_store import Store

SEVEN = {"stsb", "sickr", "sts12", "sts13", "sts14", "sts15", "sts16"}
AVERAGE = "avg"  # the task of a row's average over all tasks, plain, as the papers print it

Row = tuple[str, str]  # model and setting


@dataclass(frozen=True)
class Cell:
    """One score of the table, or the reason there is none. `task` is `avg` for the mean over the tasks.

    `published` is what a paper prints for the same model, setting, task and aggregation. `score` and `judged`
    are what a test between two rows needs; an average has neither, and is `of_starved` where one of its cells is
    starved. `notes` is what to know of the pairs and the embeddings, `problems` the rows left out of the task so far.
    `weights` is the digest of the model's, empty where they are drawn.
    """

    model: str
    setting: Setting
    task: str
    spearman: float | None
    half_width: float | None = None
    protocol: Protocol | None = None
    reason: str = ""
    published: Published | None = None
    score: Score | None = field(default=None, repr=False, compare=False)
    judged: Judged | None = field(default=None, repr=False, compare=False)
    n_layers: int = field(default=0, repr=False, compare=False)
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = field(default=(), repr=False, compare=False)
    of_starved: bool = field(default=False, repr=False, compare=False)
    weights: str = field(default="", repr=False, compare=False)

    @property
    def row(self) -> Row:
        """The row of the table it stands in."""
        return self.model, str(self.setting)

    @property
    def starved(self) -> bool:
        """Whether its map is starved (`whitening.starved`), so that the score says nothing about meaning."""
        return self.of_starved or (self.score is not None and self.score.starved)

    def as_dict(self, interval: tuple[float, float] | None = None, resamples: int = 0) -> dict:
        """A JSON-ready record, with the ends of an `interval` from so many `resamples` where there is one."""
        record = {
            "model": self.model,
            "setting": str(self.setting),
            "task": self.task,
            "spearman": self.spearman,
            "pairs": self.score and self.score.pairs,
            "half_width_95": self.half_width,
            "starved": self.score and self.score.starved,
            "published": self.published and self.published.value,
            "published_in": self.published and self.published.place,
            "protocol": self.protocol and self.protocol.as_dict(),
        }
        record |= dict(zip(("low", "high"), interval, strict=True)) | {"resamples": resamples} if interval else {}
        record |= {"notes": list(self.notes)} if self.notes else {}
        return record | ({"reason": self.reason} if self.reason else {})


@dataclass(frozen=True)
class Grid:
    """What a comparison is of: models x tasks x settings under a preset.

    `corpus` names the text of a preset that fits on other text. `versions` of the models (`checkpoints.version`) are
    those of now unless given; a `stamp` of the data's files tells one state of them from another. `allow_bin` are
    those of the models whose weights may be pickled (`load_encoder`), `starred` those of the settings that stand for
    each layer (`settings_for`) and are no row of a model without it. Raises ValueError for an unknown preset, one
    without the corpus it needs, and a setting that names fit or aggregate.
    """

    models: tuple[str, ...]
    data: str
    tasks: tuple[str, ...]
    settings: tuple[Setting, ...]
    preset: str = "whiteningbert"
    dtype: str = "float32"
    keep_going: bool = False
    corpus: str | None = None
    stamp: str = ""
    versions: tuple[str, ...] = ()
    allow_bin: tuple[str, ...] = ()
    starred: tuple[Setting, ...] = ()

    def __post_init__(self) -> None:
        for name in ("models", "tasks", "settings", "starred"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "allow_bin", tuple(name for name in self.models if name in self.allow_bin))
        object.__setattr__(self, "versions", self.versions or tuple(map(version, self.models)))
        for row in self.settings:
            if (row.fit, row.aggregate) != ("task", "all"):
                raise ValueError(f"setting={str(row)!r} must leave fit and aggregate to the preset {self.preset}")
        self.rules  # noqa: B018

    @property
    def rules(self) -> Preset:
        """What the preset decides."""
        return PRESETS[check_choice(self.preset, "preset", PRESETS)].fitted_on(self.corpus)

    @property
    def size(self) -> int:
        """How many cells it has, without averages."""
        return len(self.tasks) * sum(len(rows_of(model, self.settings, self.starred)) for model in self.models)

    def cells(self) -> Iterator["Grid"]:
        """Each cell as a grid of its own, which holds all that decides it: by model, then task, then setting."""
        for model, written in zip(self.models, self.versions, strict=True):
            for task in self.tasks:
                for row in rows_of(model, self.settings, self.starred):
                    one = {"models": (model,), "versions": (written,), "tasks": (task,), "settings": (row,)}
                    yield replace(self, **one, starred=())


def rows_of(model: str, settings: Sequence[Setting], starred: Sequence[Setting] = ()) -> tuple[Setting, ...]:
    """The settings under which a model is compared: those given, of a model with one layer on that, each once.

    Those that are `starred` (`Grid`) are left out where they name a layer that the model does not have.
    """
    try:
        kind = ModelName.parse(model).kind
    except ModelError:
        kind = ""  # said in its cells
    if kind in ONE_LAYER:
        pooling = {"pooling": "mean"} if kind in WORD_TABLES else {}
        settings = [setting.with_(layers=(0,), **pooling) for setting in settings]
    elif starred and (depth := _depth(model)):
        settings = [setting for setting in settings if setting not in starred or max(setting.layers) < depth]
    return tuple(dict.fromkeys(settings))


def settings_for(models: Sequence[str], text: str) -> tuple[tuple[Setting, ...], tuple[Setting, ...]]:
    """`parse_settings` for models that differ in depth: every row, and those of them that are `Grid.starred`.

    `L*` stands for each layer of the deepest. Raises ValueError as `parse_settings`, and for `L*` and a model that
    nobody knows the layers of before it is downloaded.
    """
    if "L*" not in text:
        return parse_settings(text), ()
    if unknown := [model for model in models if _depth(model) is None]:
        names = ", ".join(unknown)
        raise ValueError(f"settings={text!r} must name layers by number: how many {names} has is not known yet")
    settings = parse_settings(text, max(1, *map(_depth, models)))
    return settings, tuple(one for one in settings if one not in parse_settings(text, 1))


def _depth(model: str) -> int | None:
    """The layers of a model; None where they are not known, 0 of one that cannot be had, as its cells say."""
    try:
        return known_layers(model)
    except (ModelError, OSError):
        return 0


def called(models: Sequence[str]) -> dict[str, str]:
    """By model what cells call it: `shown_name`; those whose names end alike, as `a/model` and `b/model` do, by as much
    of their paths as tells them apart, and what is one place spelled twice as it is spelled."""
    found = {model: model for model in models}
    known: dict[tuple, dict[str, tuple[ModelName, tuple[str, ...]]]] = {}
    for model in models:
        with contextlib.suppress(ModelError):  # said in its cells
            name, found[model] = ModelName.parse(model), shown_name(model)
            folder, base = folder_of(name.base), BUNDLED_NAME if name.base == BUNDLED else name.base
            parts = (folder.resolve() if folder else PurePath(base)).parts or (base,)
            known.setdefault((name.kind, name.seed, name.blocks, parts[-1]), {})[model] = name, parts
    for alike in known.values():
        count, places = 1, {parts for _, parts in alike.values()}
        while len({parts[-count:] for parts in places}) < len(places):
            count += 1
        if count > 1:
            found |= {model: replace(name, base=str(PurePath(*p[-count:]))).shown for model, (name, p) in alike.items()}
        times = Counter(found[model] for model in alike)
        found |= {model: model for model in alike if times[found[model]] > 1}
    return found


def compare(
    grid: Grid,
    *,
    store: Store | None = None,
    progress: Progress = silent,
    known: MutableMapping[Grid, Cell] | None = None,
    load: Callable[[str, str, bool], Encoder] | None = None,
) -> Iterator[Cell]:
    """Every cell as it is done: by model, then task, then setting; each model's averages after its tasks.

    A task is embedded once for all its settings and let go before the next. What goes wrong with a model or a
    task is said in its cells, and the others go on. Those in `known`, by their `Grid.cells`, are taken from there and
    new ones with a score put there, so that a comparison that was stopped or grew goes on where it stood; a model is
    loaded only where a cell needs it, by `load(name, dtype, allow_bin)`. `progress(done, total)` counts cells without
    averages.
    """
    known = {} if known is None else known
    step, names = Steps(progress, grid.size), called(grid.models)
    for name, of_model in groupby(grid.cells(), lambda one: one.models[0]):
        loaded, cells = Loaded(name, grid.dtype, name in grid.allow_bin, load), []
        for task, of_task in groupby(of_model, lambda one: one.tasks[0]):
            bench = None
            for one in of_task:
                cell, (setting,) = known.get(one), one.settings
                if cell is None:
                    if bench is None and isinstance(loaded.encoder, Encoder):
                        bench = Bench(loaded.encoder, grid.data, task, store, grid.keep_going)
                    cell = _cell(bench, setting, grid.rules) if bench else _lost(name, setting, task, loaded.encoder)
                    if cell.spearman is not None:
                        known[one] = cell
                cells.append(cell)
                yield replace(cell, model=names[name])
                step()
        if len(grid.tasks) > 1:
            rows = dict.fromkeys(cell.setting for cell in cells)
            for row in rows:
                whole = average([cell for cell in cells if cell.setting == row], grid.rules)
                yield replace(whole, model=names[name])


@dataclass(eq=False)
class Loaded:
    """A model that is loaded when it is first asked for, or the reason why it cannot be."""

    name: str
    dtype: str
    allow_bin: bool
    load: Callable[[str, str, bool], Encoder] | None

    @cached_property
    def encoder(self) -> Encoder | str:
        """By `load(name, dtype, allow_bin)`, or as `load_encoder` does."""
        load = self.load or (lambda name, dtype, allow_bin: load_encoder(name, dtype=dtype, allow_bin=allow_bin))
        return tried(lambda: load(self.name, self.dtype, self.allow_bin))


def _lost(model: str, setting: Setting, task: str, reason: str) -> Cell:
    return Cell(model, setting, task, None, reason=reason)


def _cell(bench: Bench, setting: Setting, preset: Preset) -> Cell:
    found = tried(lambda: bench.score(setting, preset))
    if isinstance(found, str):
        return _lost(bench.encoder.name, setting, bench.task, found)
    return Cell(
        bench.encoder.name,
        setting,
        bench.task,
        found.spearman,
        found.half_width,
        found.protocol,
        found.reason,
        printed(bench.encoder.name, bench.encoder.n_layers, found.dim, setting, bench.task, preset),
        found,
        bench.judged(preset),
        bench.encoder.n_layers,
        bench.notes,
        bench.problems,
        weights="" if bench.encoder.files.kind == "random" else bench.encoder.files.weights,
    )


def printed(model: str, n_layers: int, dim: int, setting: Setting, task: str, preset: Preset) -> Published | None:
    """What a paper prints for this cell under the preset's aggregation; None where none does."""
    kind = whitening.cosine_class(setting.whitening, setting.k, dim)
    k = setting.k if kind.startswith("covariance") else None
    if kind != "none" and kind != "whitening" and k is None:
        return None
    wanted = published.PrintedRow.of(
        setting.pooling,
        setting.numbers(n_layers),
        "none" if kind == "none" else "whitening",
        k,
        preset.fit,
    )
    found = published.lookup(model, wanted, task, n_layers - 1)
    like = [one for one in found if one.aggregate in ("", preset.aggregate)]
    return next((one for one in like if one.paper == preset.paper), like[0] if like else None)


def mean_over_tasks(scores: Sequence[float], preset: Preset) -> float:
    """The average over tasks, of scores rounded first where the source does."""
    kept = scores if preset.decimals is None else [round(score, preset.decimals) for score in scores]
    return sum(kept) / len(kept)


def average(cells: Sequence[Cell], preset: Preset) -> Cell:
    """The mean over the tasks of one row; None where a task has no score."""
    first = cells[0]
    missing = [cell.task for cell in cells if cell.spearman is None]
    if missing:
        return Cell(first.model, first.setting, AVERAGE, None, reason=f"no score for {', '.join(missing)}")
    # The papers' averages are over the seven tasks, so nothing is printed for the mean of fewer.
    seven = {cell.task for cell in cells} == SEVEN
    paper = seven and printed(first.model, first.n_layers, first.score.dim, first.setting, AVERAGE, preset)
    value = mean_over_tasks([cell.spearman for cell in cells], preset)
    starved = any(cell.starved for cell in cells)
    return Cell(first.model, first.setting, AVERAGE, value, published=paper or None, of_starved=starved)
