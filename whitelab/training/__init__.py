"""Training a sentence encoder without labels, step by step, watched as its space takes shape.

    for record in train(TrainConfig(objective="simcse"), sentences, pairs, folder="run"):
        print(record.step, record.loss, record.spearman)

`config` says what a run is and what a step tells, `batches` which sentences a step takes, `trainer` what it does
with them, `health` when to stop, `checkpoints` and `result` what stays on disk.
"""

from whitelab.training.config import COLLAPSED, DIVERGED, StepRecord, TrainConfig
from whitelab.training.loop import train
from whitelab.training.trainer import Trainer, start, start_files

__all__ = ["COLLAPSED", "DIVERGED", "StepRecord", "TrainConfig", "Trainer", "start", "start_files", "train"]
