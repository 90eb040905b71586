"""What a run needs to go on after it was killed: `step-NNNNNN/` with weights.safetensors and state.pt.

A checkpoint is written aside and renamed, so under its own name it is whole, and only then the one before it goes.
"""

import os
import re
from contextlib import suppress
from pathlib import Path

import torch
from safetensors.torch import load_model, save_model

from whitelab.store.aside import folder_aside, remove_folder
from whitelab.training.config import TrainConfig
from whitelab.training.trainer import Trainer

WEIGHTS, STATE = "weights.safetensors", "state.pt"
_NAME = re.compile(r"step-\d{6,}")

# What a run is begun with beside its config, and how an error names it.
_BEGUN_WITH = {
    "sentences": "sentences must be those",
    "evaluation": "evaluation must be the pairs",
    "weights": "model must have the weights",
    "tokenizer": "model must have the tokenizer",
    "config": "model must have the config.json",
}


class CheckpointError(ValueError):
    """A checkpoint that does not belong to the run that wants to go on from it; the message says why."""


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints of a run, oldest first."""
    found = folder.glob("step-*") if folder.is_dir() else ()
    return sorted((one for one in found if _NAME.fullmatch(one.name)), key=step_of)


def step_of(path: Path) -> int:
    """The step after which a checkpoint was written."""
    return int(path.name.removeprefix("step-"))


def save(folder: Path, trainer: Trainer, extra: dict) -> None:
    """Write a checkpoint of `trainer` and of `extra` (plain values), and remove those before it."""
    folder.mkdir(parents=True, exist_ok=True)
    before = checkpoints(folder)
    path = folder / f"step-{trainer.step:06d}"
    state = trainer.state() | {
        "config": trainer.config.as_dict(),
        "begun_with": _begun_with(trainer),
        "extra": extra,
    }
    with folder_aside(path) as aside:
        save_model(trainer.encoder.model, str(aside / WEIGHTS))
        torch.save(state, aside / STATE)
        for file in aside.iterdir():
            with file.open("r+b") as written:  # Windows flushes only what is open for writing
                os.fsync(written.fileno())
    for old in before:
        if old != path:
            with suppress(OSError):  # of no more use, and no reason to end a run
                remove_folder(old)


def restore(path: Path, trainer: Trainer) -> dict:
    """Bring `trainer` where a checkpoint was written; returns its `extra`.

    Raises CheckpointError where the config, the sentences, the scored pairs or the start are not those it was written
    with.
    """
    state = torch.load(path / STATE, map_location=trainer.device, weights_only=True)
    _check(state, trainer)
    load_model(trainer.encoder.model, str(path / WEIGHTS), device=trainer.device)
    trainer.restore(state)
    return state["extra"]


def _begun_with(trainer: Trainer) -> dict[str, str | None]:
    """Digests of what the config of a run only names."""
    files = trainer.encoder.files
    return {
        "sentences": trainer.batches.fingerprint,
        "evaluation": None if trainer.evaluation is None else trainer.evaluation.fingerprint,
        "weights": files.weights,
        "tokenizer": files.tokenizer,
        "config": files.config,
    }


def _check(state: dict, trainer: Trainer) -> None:
    was = TrainConfig.of(state["config"]).as_dict()
    for name, value in trainer.config.as_dict().items():
        if value != was[name]:
            raise CheckpointError(f"{name}={value!r} must be {was[name]!r}, with which the run was begun")
    was, pairs = state.get("begun_with", {}), trainer.evaluation
    if pairs is not None and was.get("evaluation") == pairs.fingerprint_with_name:
        was = was | {"evaluation": pairs.fingerprint}
    for name, value in _begun_with(trainer).items():
        if value != was.get(name):
            raise CheckpointError(f"{_BEGUN_WITH[name]} with which the run was begun")
