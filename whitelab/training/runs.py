"""The runs there are, a folder each, from which one can tell after any kill what happened and how far it came.

    root / NAME / config.json       what was asked for (`TrainConfig`), and a fingerprint of the scored pairs
                  data.json         the sentences and the scored pairs, so that a run can be resumed from here alone
                  records.jsonl     a line a step, written when the step is done
                  result.json       how it ended; absent while it waits or runs, and after a kill
                  lock, owner.json  held by the process that trains it, and who that is (`held_folder`)
                  checkpoints/      as long as it can be resumed
                  model/            the best so far

A run of name NAME in the usual root is the model `trained:NAME` everywhere else. Once it has begun, no later run
gets its name by itself.
"""

import json
import math
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from whitelab.base.user_folders import expanded
from whitelab.datasets import SentencePairs
from whitelab.encoding.checkpoints import find_model, on_disk, runs_root
from whitelab.encoding.names import TRAINED
from whitelab.store import held_folder
from whitelab.store.aside import is_aside, remove_folder, write_aside
from whitelab.store.held_folder import now
from whitelab.training import StepRecord, TrainConfig, objectives, train
from whitelab.training.checkpoints import checkpoints, step_of
from whitelab.training.loop import CHECKPOINTS, MODEL
from whitelab.training.result import Scores

WAITING, RUNNING, FINISHED, CANCELLED, FAILED, DIED = "waiting", "running", "finished", "cancelled", "failed", "died"
NOT_STARTED = "not started"  # what is said of one that waits on disk and for no turn

_RESUMABLE = (CANCELLED, FAILED, DIED)

_REMOVED = ".removed"  # in the usual root: an empty file for each name that was given and is not to be given again
_CONFIG, _DATA, _RECORDS, _RESULT = "config.json", "data.json", "records.jsonl", "result.json"


class RunError(ValueError):
    """A run that is not there, is somebody else's at the moment, or cannot go on; the message says what to do."""


class Abandoned(Exception):
    """Thrown into `Run.follow` where whoever began the run is gone: it ends as by closing, and says so."""


@dataclass(frozen=True)
class Run:
    """A run on disk; every method reads what is there now."""

    folder: Path

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    @property
    def config(self) -> TrainConfig:
        """What was asked for."""
        return TrainConfig.of(_read(self.folder / _CONFIG)["config"])

    @property
    def created(self) -> str:
        """When, in UTC, as ISO 8601."""
        return _read(self.folder / _CONFIG)["created"]

    def records(self) -> tuple[StepRecord, ...]:
        """The steps so far; a last line that was torn by a kill is left out."""
        found = []
        with suppress(FileNotFoundError):
            for line in (self.folder / _RECORDS).read_bytes().splitlines():
                try:
                    found.append(StepRecord.of(json.loads(line)))
                except (ValueError, TypeError, AttributeError):
                    break
        return tuple(found)

    def data(self) -> tuple[tuple[str, ...], SentencePairs | None]:
        """The sentences it is trained on, and the pairs it is scored on."""
        found = _read(self.folder / _DATA)
        return tuple(found["sentences"]), None if found["pairs"] is None else _pairs(found["pairs"])

    @property
    def pairs_fingerprint(self) -> str:
        """That of the pairs it is scored on, which tells them from others of any name; empty without pairs."""
        record = _read(self.folder / _CONFIG)
        if (known := record.get("scored_pairs")) is None:  # of a run made before runs kept it, or kept another
            pairs = self.data()[1]
            known = "" if pairs is None else pairs.fingerprint
        return known

    def repeats(self, config: TrainConfig, sentences: Sequence[str], evaluation: SentencePairs | None = None) -> bool:
        """Whether it was asked for with all that decides a run: an equal config, but for its words, and equal data.

        One that cannot be read, such as one that is being removed, repeats nothing.
        """
        with suppress(RunError):
            own = replace(self.config, corpus=config.corpus, evaluation=config.evaluation)
            pairs = "" if evaluation is None else evaluation.fingerprint
            same = replace(own, batch=config.batch) == config and _batch_of(own) == _batch_of(config)
            return same and self.pairs_fingerprint == pairs and self.data()[0] == tuple(sentences)
        return False

    @property
    def ended_at(self) -> int | None:
        """When it ended, in nanoseconds as the file system has it; None while it has not."""
        with suppress(OSError):
            return (self.folder / _RESULT).stat().st_mtime_ns
        return None

    @property
    def checkpoint(self) -> int | None:
        """The step of the last checkpoint, None where there is none."""
        found = checkpoints(self.folder / CHECKPOINTS)
        return step_of(found[-1]) if found else None

    @property
    def model_folder(self) -> Path:
        """Where its model lies, once it has one."""
        return self.folder / MODEL

    @property
    def has_model(self) -> bool:
        """Whether there is a model to load: the best so far, even while the run goes on."""
        return (self.model_folder / "config.json").is_file()

    def state(self) -> str:
        """waiting, running, finished, cancelled, collapsed, diverged, failed, or died: killed, or its app was.

        A run whose result is written has ended, even while its process clears up.
        """
        return RUNNING if not (self.folder / _RESULT).is_file() and held_folder.is_held(self.folder) else self._left()

    def _left(self) -> str:
        """The state of a run that nobody trains."""
        if (self.folder / _RESULT).is_file():
            return _read(self.folder / _RESULT)["state"]
        return DIED if (self.folder / _RECORDS).exists() else WAITING

    def summary(self) -> "Summary":
        """One line of the list of runs."""
        records, config, state, scores = self.records(), self.config, self.state(), Scores()
        for record in records:
            scores.take(record)
        ended = state not in (RUNNING, WAITING) and (self.folder / _RESULT).is_file()
        result = _read(self.folder / _RESULT) if ended else {}
        step = records[-1].step if records else 0
        message = result.get("message", "")
        if state == DIED:
            left = f"it can be resumed from step {self.checkpoint}" if self.checkpoint is not None else "it begins anew"
            message = f"{message or 'it died'} at step {step}; {left}"
        return Summary(
            name=self.name,
            state=state,
            step=step,
            config=config,
            label=objectives.label(config.objective),
            created=self.created,
            seconds=math.fsum(record.seconds for record in records),
            start=scores.start,
            best=scores.best,
            last=scores.last,
            message=message,
            resumable=state in _RESUMABLE,
            model=f"{TRAINED}{self.name}" if self.has_model and self.folder.parent == runs_root() else "",
        )

    # ------------------------------------------------------------------------------------------- training

    def follow(self, resume: bool = False, device: str | None = None) -> Iterator[StepRecord]:
        """Train, every record kept before it is handed on; with `resume` from the last checkpoint on.

        Closing the generator cancels the run, with a checkpoint. A run that cannot begin, or go on, keeps its records.
        Raises RunError where the run is not one to begin (or to resume), or is held by another process.
        """
        with self._held():
            self._check(resume)
            sentences, pairs = self.data()
            (self.folder / _RESULT).unlink(missing_ok=True)
            state, message = CANCELLED, ""  # unless it comes to an end of its own
            try:
                steps = train(self.config, sentences, pairs, self.folder, resume, device)
                self._rewind(self.checkpoint if resume else None)
                with closing(steps), (self.folder / _RECORDS).open("ab") as file:
                    for record in steps:
                        file.write(json.dumps(record.as_dict(), allow_nan=False).encode() + b"\n")
                        file.flush()
                        yield record
                end = self.records()[-1]
                state, message = end.stop or FINISHED, end.message
            except Abandoned:
                state, message = DIED, "the program that began it ended"
            except Exception as error:
                state, message = FAILED, " ".join(str(error).split()) or type(error).__name__
                raise
            finally:
                result = {"state": state, "message": message, "ended": now()}
                write_aside(self.folder / _RESULT, json.dumps(result).encode())
            if state not in _RESUMABLE:  # three times the size of the model, and of no more use
                shutil.rmtree(self.folder / CHECKPOINTS, ignore_errors=True)

    def _check(self, resume: bool) -> None:
        state = self._left()
        if resume and state not in (WAITING, *_RESUMABLE):
            raise RunError(f"run={self.name!r} is {state}: there is nothing to resume")
        if not resume and state != WAITING:
            raise RunError(f"run={self.name!r} is {state} already: resume it, or make a new one")

    def _rewind(self, step: int | None) -> None:
        """Keep the records up to `step` (None: none)."""
        kept = [record for record in self.records() if step is not None and record.step <= step]
        lines = "".join(json.dumps(record.as_dict(), allow_nan=False) + "\n" for record in kept)
        write_aside(self.folder / _RECORDS, lines.encode())

    @contextmanager
    def _held(self) -> Iterator[None]:
        try:
            with held_folder.held(self.folder):
                yield
        except held_folder.HeldElsewhere as who:
            raise RunError(f"run={self.name!r} is being trained by {who}") from None

    def owner(self) -> str:
        """Who trains it, in words."""
        return held_folder.owner(self.folder)

    def remove(self) -> None:
        """Delete the run, its checkpoints and its model. Raises RunError while it is being trained."""
        if held_folder.is_free(self.folder) is False:
            raise RunError(f"run={self.name!r} is being trained by {self.owner()}: cancel it first")
        begun = (self.folder / _RECORDS).exists() or self.model_folder.exists()
        if begun and self.folder.parent.resolve() == runs_root().resolve():
            (removed := self.folder.parent / _REMOVED).mkdir(exist_ok=True)
            (removed / self.name).touch()
        remove_folder(self.folder)


@dataclass(frozen=True)
class Summary:
    """A run in one line: how far it is, and the scored records at its start, its best and its last.

    `model` is the name under which its model is found elsewhere, empty where there is none; `message` explains an end
    before the last step.
    """

    name: str
    state: str
    step: int
    config: TrainConfig
    label: str
    created: str
    seconds: float
    start: StepRecord | None
    best: StepRecord | None
    last: StepRecord | None
    message: str
    resumable: bool
    model: str

    def as_dict(self) -> dict:
        """A JSON-ready record."""
        record = asdict(self) | {"config": self.config.as_dict()}
        for name in ("start", "best", "last"):
            one = getattr(self, name)
            record[name] = None if one is None else one.as_dict()
        return record


def create(
    config: TrainConfig,
    sentences: Sequence[str],
    evaluation: SentencePairs | None = None,
    folder: str | Path | None = None,
) -> Run:
    """A new run that waits, in `folder` or under a name of its own in the usual place; nothing is trained yet.

    Raises RunError where the folder is taken; what a killed `create` left in it is replaced.
    """
    if folder is None:
        path = _new_folder(runs_root(), objectives.parse(config.objective).name)
    else:
        path = _path(folder, "out")
        if path.exists() and not (path.is_dir() and _is_unbegun(path)):
            raise RunError(f"out={str(path)!r} is not empty: choose another folder, or resume the run that is there")
        path.mkdir(parents=True, exist_ok=True)
    data = {"sentences": list(sentences), "pairs": None if evaluation is None else _as_dict(evaluation)}
    write_aside(path / _DATA, json.dumps(data).encode())
    # Last, because a folder with a config is a run.
    record = {"config": config.as_dict(), "created": now()}
    record["scored_pairs"] = "" if evaluation is None else evaluation.fingerprint
    write_aside(path / _CONFIG, json.dumps(record, indent=2).encode())
    return Run(path)


def find_run(name: str | Path) -> Run:
    """The run in that folder, as `create` means it, or of that name in the usual place.

    Raises RunError where there is none.
    """
    usual = [runs_root() / name] if re.fullmatch(r"[\w.-]+", str(name)) else []
    for folder in (_path(name, "run"), *usual):
        if all((folder / one).is_file() for one in (_CONFIG, _DATA)):  # a model has a config too
            return Run(folder)
    raise RunError(f"run={str(name)!r} must be the folder of a run, or a run in {runs_root()}; there is none")


def runs() -> tuple[Run, ...]:
    """The runs in the usual place whose config can be read, the newest first."""
    root, found = runs_root(), {}
    for path in root.glob(f"*/{_CONFIG}") if root.is_dir() else ():
        with suppress(RunError, ValueError, TypeError, KeyError):
            run, asked = Run(path.parent), _read(path)
            TrainConfig.of(asked["config"])
            found[run] = (asked["created"], run.name)
    return tuple(sorted(found, key=found.get, reverse=True))


def _is_unbegun(folder: Path) -> bool:
    """Whether a folder is empty, but for what is written of a run before its config."""
    names = {path.name for path in folder.iterdir() if not is_aside(path)}
    if names != {_DATA}:
        return not names
    with suppress(RunError, AttributeError):
        return _read(folder / _DATA).keys() == {"sentences", "pairs"}
    return False


def _batch_of(config: TrainConfig) -> int | None:
    """The batch that is trained with; None where none was asked for and the model, which decides it, is not here."""
    if config.batch is None and on_disk(config.model):
        with suppress(ValueError, OSError):
            return config.settled(find_model(config.model, allow_bin=True).dim).batch
    return config.batch


def repeat_note(name: str, state: str) -> str:
    """What to know before the run of that name, in that state ('' for one that goes on), is begun once more."""
    then = "it can be resumed" if state in _RESUMABLE else "to repeat it adds nothing new"
    then = "it is still to be trained" if state in (WAITING, NOT_STARTED) else then
    said = f" ({state})" if state else ""
    return f"run {name}{said} has the same settings, sentences and pairs: {then}"


def _path(folder: str | Path, argument: str) -> Path:
    try:
        return expanded(folder).resolve()
    except ValueError as error:
        raise RunError(f"{argument}={str(folder)!r} must be a folder: {error}") from None


def _new_folder(root: Path, stem: str) -> Path:
    """A folder of a name that no run of `root` has or has had: links and notes go on naming what was removed."""
    root.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        path = root / f"{stem}-{number}"
        if not (root / _REMOVED / path.name).exists():
            with suppress(FileExistsError):
                path.mkdir()
                return path
        number += 1


def _as_dict(pairs: SentencePairs) -> dict:
    return {
        "task": pairs.task,
        "first": pairs.first,
        "second": pairs.second,
        "gold": pairs.gold.tolist(),
        "subset": pairs.subset.tolist(),
        "subset_names": pairs.subset_names,
        "split": pairs.split,
        "source": pairs.source,
    }


def _pairs(record: dict) -> SentencePairs:
    arrays = {"gold": np.array(record["gold"], np.float64), "subset": np.array(record["subset"], np.int64)}
    texts = {name: tuple(record[name]) for name in ("first", "second", "subset_names")}
    return SentencePairs(**record | arrays | texts)


def _read(path: Path) -> dict:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"run={path.parent.name!r} has no {path.name} that can be read: {error}") from None
