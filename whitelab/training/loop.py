"""A run from its first step, or from its last checkpoint, to its end."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from whitelab.datasets import SentencePairs
from whitelab.training import checkpoints
from whitelab.training.config import StepRecord, TrainConfig
from whitelab.training.result import Scores, write_model
from whitelab.training.trainer import Trainer

# In the folder of a run.
CHECKPOINTS, MODEL = "checkpoints", "model"


def train(
    config: TrainConfig,
    sentences: Sequence[str],
    evaluation: SentencePairs | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    device: str | None = None,
) -> Iterator[StepRecord]:
    """Train, a record after every step; record 0 is the untrained start. The generator returns the Encoder.

    With a `folder` there are `checkpoints/`, the last of which `resume` goes on from (the next record is that of the
    step after it; without one the run begins anew), and `model/`: the encoder where `evaluation` scored best so far,
    the start included, or without scores that of the last checkpoint. What is due after a step is written when the
    next record is asked for, so that a record can be kept before it. Closing the generator writes a checkpoint; a kill
    loses the steps since the last one.

    On a CPU a resumed run gives the records and weights of one that was never interrupted, bit for bit, as long as
    torch uses as many threads. A collapse or a number that is none ends the run early, with a record that says so.

    Raises ValueError, ModelError and CheckpointError at once, before a record is asked for.
    """
    trainer = Trainer(config, sentences, evaluation, device)
    keeper = Keeper(trainer, None if folder is None else Path(folder))
    if resume:
        keeper.restore()
    return _steps(trainer, keeper)


def _steps(trainer: Trainer, keeper: "Keeper") -> Iterator[StepRecord]:
    if keeper.at is None:
        yield from keeper.handed(trainer.untrained())
    while trainer.step < trainer.config.steps and not keeper.stopped:
        yield from keeper.handed(trainer.advance())
    return trainer.encoder


class Keeper:
    """What a run leaves on disk: its last checkpoint, and the best model so far. `at` is the checkpoint's step."""

    def __init__(self, trainer: Trainer, folder: Path | None):
        self.trainer, self.folder = trainer, folder
        self.scores, self.stopped, self.at = Scores(), False, None

    def restore(self) -> None:
        """Bring the trainer to the last checkpoint, where there is one."""
        found = checkpoints.checkpoints(self.folder / CHECKPOINTS) if self.folder else []
        if found:
            self.scores = Scores.of(checkpoints.restore(found[-1], self.trainer))
            self.at = self.trainer.step

    def handed(self, record: StepRecord) -> Iterator[StepRecord]:
        """Hand on a record, then write what is due after it, also where the caller closes the generator here."""
        best, self.stopped = self.scores.take(record), bool(record.stop)
        try:
            yield record
        except GeneratorExit:
            self.write(record, best, leaving=True)
            raise
        self.write(record, best)

    def write(self, record: StepRecord, best: bool, leaving: bool = False) -> None:
        """The model, if it is the best, and with it or when due a checkpoint. Nothing after a step that failed."""
        due = best or leaving or self.trainer.config.saves(record.step)
        if self.folder is None or record.stop or not due:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        if best or self.scores.best is None:
            write_model(self.folder / MODEL, self.trainer, self.scores)
        checkpoints.save(self.folder / CHECKPOINTS, self.trainer, self.scores.as_dict())
        self.at = record.step
