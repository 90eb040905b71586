"""From one preset to another, one field at a time: which choice moves the score, and by how much."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from whitelab.base.groups import grouped
from whitelab.base.progress import Progress, silent
from whitelab.compare.bench import Bench, Unscored
from whitelab.compare.grid import AVERAGE, mean_over_tasks
from whitelab.compare.presets import FIELDS, PRESETS, Preset, differences, worded
from whitelab.datasets import Problem
from whitelab.encoding.encoders import Encoder, load_encoder
from whitelab.scoring.setting import Setting
from whitelab.store.embedding_store import Store

_OF_SETTING = ("pooling", "layers", "whitening", "k")  # the others belong to the preset
# Why a field that differs may have no step of its own.
IDLE = {
    "split": "concerns other tasks",
    "k": "goes with the whitening",
    "fit": "goes with the whitening",
    "decimals": "concerns an average over tasks",
}


@dataclass(frozen=True)
class Step:
    """One field changed: `spearman` (x 100) after it and its `change`; None where a score is not defined."""

    field: str
    before: object
    after: object
    spearman: float | None
    change: float | None
    reason: str = ""


@dataclass(frozen=True)
class Walk:
    """The scores of one task from preset `a` to preset `b`. The changes of its steps add up to `difference`.

    The fields are changed in the order of `presets.FIELDS`. In another order the steps may be others, for what a
    choice does can depend on the choices made before it; their sum is the same. `idle` are fields that the presets
    decide differently without a step of their own, for the reason in `IDLE`. `notes` are what to know of the pairs and
    embeddings, under either preset or on the way, `problems` the rows left out there.
    """

    model: str
    task: str
    a: str
    b: str
    start: float | None
    steps: tuple[Step, ...]
    reason: str = ""
    idle: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def end(self) -> float | None:
        """The score under `b`."""
        return self.steps[-1].spearman if self.steps else self.start

    @property
    def difference(self) -> float | None:
        """The score under `b` less that under `a`."""
        return None if self.start is None or self.end is None else self.end - self.start

    @property
    def gap(self) -> str:
        """Why a score on the way is not defined; empty where all are."""
        return self.reason or next((step.reason for step in self.steps if step.reason), "")

    @property
    def largest(self) -> Step | None:
        """The step that moved the score most; None where none moved it."""
        moved = [step for step in self.steps if step.change]
        return max(moved, key=lambda step: abs(step.change), default=None)

    def as_dict(self) -> dict:
        """A JSON-ready record."""
        steps = [
            {
                "field": step.field,
                "from": worded(step.field, step.before),
                "to": worded(step.field, step.after),
                "spearman": step.spearman,
                "change": step.change,
            }
            | ({"reason": step.reason} if step.reason else {})
            for step in self.steps
        ]
        record = {"model": self.model, "task": self.task, "from": self.a, "to": self.b}
        record |= {"start": self.start, "end": self.end, "difference": self.difference, "steps": steps}
        record |= {name: list(told) for name, told in (("idle", self.idle), ("notes", self.notes)) if told}
        return record | ({"reason": self.reason} if self.reason else {})


def walks(
    model: str | Encoder,
    data: str,
    tasks: Sequence[str],
    a: str,
    b: str,
    *,
    setting: Setting | None = None,
    corpus: str | None = None,
    store: Store | None = None,
    keep_going: bool = False,
    progress: Progress = silent,
) -> Iterator[Walk]:
    """A Walk for each task as it is done, and of several tasks one for their average.

    Each preset has its own setting, or both have `setting`. The first score is that of `compare` under `a`, the
    last that under `b`. A `k` of the model's d or more keeps all. `progress(done, total)` counts scores.
    Raises ValueError for presets that do not exist, a `corpus` that is needed and missing, and as `load_encoder`.
    """
    differ = differences(a, b, setting, data)
    states = _states(a, b, setting, corpus, differ)
    encoder = load_encoder(model) if isinstance(model, str) else model
    found, total = [], len(tasks) * len(states)
    for task in tasks:
        bench, scores = Bench(encoder, data, task, store, keep_going), []
        for _, one, preset in states:
            scores.append(_score(bench, one, preset))
            progress(len(found) * len(states) + len(scores), total)
        found.append(scores)
        one = _walk(encoder.name, task, [task], a, b, [state[0] for state in states], scores)
        yield replace(one, idle=_idle(one, differ), notes=bench.notes, problems=bench.problems)
    if len(tasks) > 1:
        one = _of_average(encoder.name, tasks, a, b, states, found)
        yield replace(one, idle=_idle(one, differ))


State = tuple[tuple[str, object, object] | None, Setting, Preset]  # what changed (nothing at first), then what holds
Scored = tuple[float | None, str]
Differences = Mapping[str, tuple[object, object]]  # field -> what one preset decides, and the other


def _states(a: str, b: str, setting: Setting | None, corpus: str | None, changes: Differences) -> list[State]:
    """Every preset and setting on the way. A field that decides nothing where it would change is left out."""
    first, last = (PRESETS[name].fitted_on(corpus) for name in (a, b))
    here, target = (setting or Setting.parse(PRESETS[name].setting) for name in (a, b))
    preset, states = first, [(None, here, first)]
    for field, (before, after) in changes.items():
        if field in _OF_SETTING:
            if field == "k" and target.whitening == "none":
                continue
            # Without whitening there is no k; one that was kept until here goes with it.
            more = {"k": None} if field == "whitening" and after == "none" else {}
            here = replace(here, **{field: after}, **more)
        elif field == "split":
            preset = replace(preset, whole=last.whole)
        elif field == "fit" and (not target.fits or preset.fit == last.fit):
            continue
        else:
            preset = replace(preset, **{field: getattr(last, field)})
        states.append(((field, before, after), here, preset))
    return states


def _score(bench: Bench, setting: Setting, preset: Preset) -> Scored:
    if setting.k is not None and setting.k >= bench.encoder.dim:
        setting = replace(setting, k=None)
    try:
        found = bench.score(setting, preset)
    except Unscored as error:
        return None, str(error)
    return found.spearman, found.reason


def _walk(
    model: str,
    name: str,
    tasks: Sequence[str],
    a: str,
    b: str,
    changes: Sequence[tuple | None],
    scores: Sequence[Scored],
) -> Walk:
    """The walk of a task, or of the average over `tasks`, without steps that cannot concern it."""
    steps = []
    for change, (old, _), (new, reason) in zip(changes[1:], scores[:-1], scores[1:], strict=True):
        moved = None if old is None or new is None else new - old
        steps.append(Step(*change, new, moved, reason))
    kept = tuple(step for step in steps if _concerns(step, name, tasks))
    return Walk(model, name, a, b, scores[0][0], kept, scores[0][1])


def _concerns(step: Step, name: str, tasks: Sequence[str]) -> bool:
    """Rounding concerns the average over tasks only, a split the tasks that one of the presets takes whole."""
    if step.field == "split":
        return not {*step.before, *step.after}.isdisjoint(tasks)
    return step.field != "decimals" or name == AVERAGE


def idle_words(fields: Sequence[str]) -> str:
    """In a sentence, what differs without a step of its own, and why; empty for nothing."""
    whys = grouped((IDLE[field], FIELDS[field].lower()) for field in fields)
    said = "; ".join(f"{', '.join(of)} ({why})" for why, of in whys.items())
    return f"Without a step of its own: {said}." if said else ""


def _idle(walk: Walk, differ: Differences) -> tuple[str, ...]:
    stepped = {step.field for step in walk.steps}
    return tuple(field for field in differ if field not in stepped)


def _of_average(
    model: str, tasks: Sequence[str], a: str, b: str, states: Sequence[State], found: Sequence[Sequence[Scored]]
) -> Walk:
    scores = []
    for (_, _, preset), column in zip(states, zip(*found, strict=True), strict=True):
        values = [value for value, _ in column]
        if None in values:
            scores.append((None, next(reason for value, reason in column if value is None)))
        else:
            scores.append((mean_over_tasks(values, preset), ""))
    return _walk(model, AVERAGE, tasks, a, b, [state[0] for state in states], scores)
