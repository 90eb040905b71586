"""A run from its first step, or from its last checkpoint, to its end."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from whitelab.base.user_folders import expanded
from whitelab.datasets import SentencePairs
from whitelab.encoding.architectures import shell_of
from whitelab.encoding.checkpoints import TRAINING_FILE
from whitelab.encoding.encoders import Encoder, NotFinite
from whitelab.store.aside import recover_folders
from whitelab.training import checkpoints
from whitelab.training.config import COLLAPSED, StepRecord, TrainConfig
from whitelab.training.result import Scores, write_model
from whitelab.training.trainer import Trainer

# In the folder of a run.
CHECKPOINTS, MODEL = "checkpoints", "model"

# An evaluation that takes longer is not waited for by everybody who stops a run: a checkpoint goes before it.
_LONG_SECONDS = 10.0


def train(
    config: TrainConfig,
    sentences: Sequence[str],
    evaluation: SentencePairs | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    device: str | None = None,
) -> Iterator[StepRecord]:
    """Train, a record after every step; record 0 is the start. The generator returns the Encoder.

    With a `folder` there are `checkpoints/`, the last of which `resume` goes on from (the next record is that of the
    step after it; without one the run begins anew), and `model/`: the encoder where `evaluation` scored best so far,
    the start included, or without scores that of the last checkpoint. What is due after a step is written when the
    next record is asked for, so that a record can be kept before it. The first record is followed by a checkpoint;
    closing the generator writes one; a kill loses the steps since the last one, and what it left half replaced is put
    right by `resume`. None is of weights that overflow. The step that ends in a long evaluation begins with one, so a
    kill during the evaluation loses that step alone.

    On a CPU a resumed run gives the records and weights of one that was never interrupted, bit for bit, as long as
    torch uses as many threads. A collapse or a number that is none ends the run early, with a record that says so.
    What was learned is kept: the encoder is brought back to the last state that is intact, which is scored if it was
    not, and is the model if it is the best or nothing is scored. A step that was not taken leaves that state where it
    is; after a collapse, and where a step spoilt the weights, it is that of the last checkpoint, so a collapse loses
    what came after that.

    The encoder it returns has a digest of its own: no store takes its vectors for those of the start.

    Raises ValueError, also for a `folder` in which something else goes by these names, ModelError and CheckpointError
    at once, before a record is asked for.
    """
    if not config.lr:
        raise ValueError("lr=0 must be above 0: the encoder would learn nothing")
    folder = None if folder is None else expanded(folder)
    _check_ours(folder)
    for parent in (folder, folder / CHECKPOINTS) if folder and resume else ():
        recover_folders(parent)
    trainer = Trainer(config, sentences, evaluation, device)
    keeper = Keeper(trainer, folder)
    if resume:
        keeper.restore()
    return _steps(trainer, keeper)


def _steps(trainer: Trainer, keeper: "Keeper") -> Iterator[StepRecord]:
    if keeper.at is None:
        yield from keeper.handed(trainer.start())
    while trainer.step < trainer.config.steps and not keeper.stopped:
        yield from keeper.handed(trainer.advance())
    return _learned(trainer.encoder)


def _learned(encoder: Encoder) -> Encoder:
    """An encoder under the digest of the weights it has now; that of its files is the start's."""
    digest = hashlib.sha256()
    for name, tensor in encoder.model.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return replace(encoder, files=replace(encoder.files, weights=digest.hexdigest()))


def _check_ours(folder: Path | None) -> None:
    """Raise ValueError where a run would replace what no run has written, and where a file is in its way."""
    if folder is None:
        return
    if any(path.is_file() for path in (folder, *folder.parents)):
        raise ValueError(f"folder={str(folder)!r} must be a folder, and a file is there")
    model, kept = folder / MODEL, folder / CHECKPOINTS
    unused = not model.exists() or (model.is_dir() and not any(model.iterdir()))
    ours = {model: unused or (model / TRAINING_FILE).is_file(), kept: not kept.is_file()}
    ours |= {one: (one / checkpoints.STATE).is_file() for one in checkpoints.checkpoints(kept)}
    for place, is_ours in ours.items():
        if not is_ours:
            raise ValueError(f"folder={str(folder)!r} holds {place.relative_to(folder)}, which no run has written")


class Keeper:
    """What a run leaves on disk: its last checkpoint, and the best model so far. `at` is the checkpoint's step."""

    def __init__(self, trainer: Trainer, folder: Path | None):
        if folder is not None:
            shell_of(trainer.encoder.model, trainer.encoder.name)  # before a step that could not be written
        self.trainer, self.folder = trainer, folder
        self.scores, self.stopped, self.at = Scores(), False, None

    def restore(self) -> None:
        """Bring the trainer to the last checkpoint, where there is one."""
        found = checkpoints.checkpoints(self.folder / CHECKPOINTS) if self.folder else []
        if found:
            self.scores = Scores.of(checkpoints.restore(found[-1], self.trainer))
            self.at = self.trainer.step

    def _kept(self, record: StepRecord) -> StepRecord:
        """A record that stops the run, with the trainer brought back to the last intact state, scored if it was not."""
        found = None if record.stop == COLLAPSED else self._scores()
        if found is None and self.at is not None:
            self.restore()
            found = self._scores()
        known = record.spearman is not None and not found  # scores of its own, and none to put in their place
        return record if found is None or known else replace(record, kept=self.trainer.step, **found)

    def _scores(self) -> dict | None:
        """What is measured of the trainer's state, empty if that is known; None if its weights give no numbers."""
        last = self.scores.last
        if last is not None and last.step == self.trainer.step:
            return {}
        try:
            return self.trainer.measure() if self.trainer.intact() else None
        except NotFinite:
            return None

    def handed(self, record: StepRecord) -> Iterator[StepRecord]:
        """Hand on a record, then write what is due after it, also where the caller closes the generator here."""
        record = self._kept(record) if record.stop else record
        best, self.stopped = self.scores.take(record), bool(record.stop)
        try:
            yield record
        except GeneratorExit:
            self.write(record, best, leaving=True)
            raise
        self.write(record, best)

    def write(self, record: StepRecord, best: bool, leaving: bool = False) -> None:
        """The model, if it is the best, and with it or when due a checkpoint; after a stop the model alone."""
        due = best or leaving or self.at is None or record.kept is not None or self._is_due(record.step)
        if self.folder is None or not due or not (best or self.trainer.intact()):
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        if best or self.scores.best is None:
            write_model(self.folder / MODEL, self.trainer, self.scores)
        if record.stop:
            return
        checkpoints.save(self.folder / CHECKPOINTS, self.trainer, self.scores.as_dict())
        self.at = record.step

    def _is_due(self, step: int) -> bool:
        config, last = self.trainer.config, self.scores.last
        long = last is not None and last.seconds > _LONG_SECONDS
        return config.saves(step) or (long and config.evaluates(step + 1))
