"""Every cell of a comparison as it is done, or the reason why it has no score."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from whitelab import published, whitening
from whitelab.checks import check_choice
from whitelab.compare.presets import PRESETS, Preset
from whitelab.compare.settings import Setting
from whitelab.datasets import SentencePairs, load
from whitelab.embeddings import LayerEmbeddings, LayerRows
from whitelab.encoders import Encoder, embed, load_encoder
from whitelab.evaluate import Protocol, Score, embed_scope, score, with_pairs
from whitelab.published import Published
from whitelab.scopes import OWN, scope_text
from whitelab.store import Store

SEVEN = {"stsb", "sickr", "sts12", "sts13", "sts14", "sts15", "sts16"}
AVERAGE = "avg"  # the task of a row's average over all tasks, plain, as the papers print it


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
    data: str,
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
    task is said in its cells, and the others go on. `progress(done, total)` counts models x tasks.
    """
    preset = PRESETS[check_choice(protocol, "protocol", PRESETS)]
    total = len(models) * len(tasks)
    for number, name in enumerate(models):
        cells: list[Cell] = []
        encoder = _tried(lambda name=name: load_encoder(name, dtype=dtype, max_length=preset.max_length))
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


def _tried(work):
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
    data: str,
    task: str,
    settings: Sequence[Setting],
    preset: Preset,
    store: Store | None,
    keep_going: bool,
) -> Iterator[Cell]:
    pairs = _tried(lambda: load(data, task, keep_going=keep_going))
    spaces: dict[str, LayerEmbeddings | str] = {}
    corpora: dict[str, LayerRows | None | str] = {}
    for setting in settings:
        pooling = setting.pooling
        if isinstance(pairs, str):
            yield Cell(encoder.name, setting, task, None, reason=pairs)
            continue
        if pooling not in spaces:
            spaces[pooling] = _tried(lambda p=pooling: _space(encoder, pairs, p, store))
        needs = setting.whitening != "none" and preset.fit not in OWN
        if needs and pooling not in corpora:
            text = lambda p=pooling: embed_scope(  # noqa: E731
                encoder, scope_text(preset.fit, data, task, keep_going), p, store=store
            )
            corpora[pooling] = _tried(text)
        yield _cell(encoder, pairs, setting, preset, spaces[pooling], corpora.get(pooling) if needs else None)


def _space(encoder: Encoder, pairs: SentencePairs, pooling: str, store: Store | None) -> LayerEmbeddings:
    values, _ = embed(encoder, pairs.sentences, pooling, store=store)
    return with_pairs(values, pairs)


def _cell(encoder, pairs, setting, preset, space, corpus) -> Cell:
    for problem in (space, corpus):
        if isinstance(problem, str):
            return Cell(encoder.name, setting, pairs.task, None, reason=problem)
    found = _tried(lambda: score(space, _protocol(encoder, pairs, setting, preset), corpus))
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
