"""What decides a training run, and what each of its steps tells."""

import math
from dataclasses import asdict, dataclass, fields, replace
from numbers import Real

from whitelab.base.checks import check_choice, check_int
from whitelab.base.devices import DTYPES
from whitelab.base.user_folders import name_of
from whitelab.encoding.names import BUNDLED, ModelError, shown_name
from whitelab.encoding.pooling import POOLINGS
from whitelab.statistics.geometry import POSITIVES
from whitelab.training import objectives

BATCH = 64

# What to know of the score of a run that was scored.
OPTIMISTIC = "The step kept is the one that scored best on these pairs, so its score is optimistic: score it on others"
DECAYS = ("linear", "constant")

# Why a run stopped before its last step.
COLLAPSED, DIVERGED = "collapsed", "diverged"

_LEAST = {"batch": 2, "steps": 1, "warmup": 0, "accumulation": 1, "seed": 0}
_LEAST |= {"max_length": 3, "eval_every": 0, "save_every": 1}
_WORDS = ("corpus", "evaluation")  # which describe the data, often by its path


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides a run: equal configs on equal data give equal records, bit for bit on a CPU.

    `objective` is a spec (`objectives.OBJECTIVES`), `model` names the start. `corpus` and `evaluation` describe the
    data for people and decide nothing; what stands before a last slash in them does not leave the machine.

    `batch` None is 64, or the next the objective takes from there on; `settled` puts in the number.

    A step takes `accumulation` batches of `batch` sentences each and averages their gradients. What a loss compares,
    in-batch negatives or the statistics of a whitening or a batch norm, stays within one batch: two batches of 64 are
    one of 128 only where head and loss take every sentence by itself, which no objective here does.

    The rate climbs from 0 to `lr` (that of the head: `head_lr`, None for the same) over `warmup` steps and then falls
    to 0 at the end (`linear`) or stays (`constant`). `clip` bounds the gradient's length, 0 for no bound;
    `weight_decay` takes matrices only. `precision` is what the encoder computes in; the head, the loss and the weights
    are float32. Sentences are cut to `max_length` tokens for training, not for evaluation. `dropout` is that of all the
    encoder's layers in training, None for what the model's configuration says.

    Every `eval_every` steps the pairs are scored, 0 for at the start and the end only; every `save_every` steps a run
    with a folder writes a checkpoint.
    """

    objective: str = "simcse"
    model: str = f"{BUNDLED}:3"
    corpus: str = ""
    evaluation: str = ""
    pooling: str = "mean"
    batch: int | None = None
    steps: int = 100
    lr: float = 1e-4
    head_lr: float | None = None
    warmup: int = 10
    decay: str = "linear"
    weight_decay: float = 0.0
    clip: float = 1.0
    accumulation: int = 1
    precision: str = "float32"
    seed: int = 0
    max_length: int = 32
    eval_every: int = 25
    save_every: int = 25
    positives: str = "gt4"
    dropout: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", objectives.canonical(self.objective))
        check_choice(self.pooling, "pooling", POOLINGS)  # of the last layer alone
        for name, low in _LEAST.items():
            if name != "batch" or self.batch is not None:
                object.__setattr__(self, name, check_int(getattr(self, name), name, low))
        check_choice(self.decay, "decay", DECAYS)
        check_choice(self.precision, "precision", DTYPES)
        check_choice(self.positives, "positives", POSITIVES)
        for name in ("lr", "weight_decay", "clip", "head_lr", "dropout"):
            if name not in ("head_lr", "dropout") or getattr(self, name) is not None:
                object.__setattr__(self, name, _check_number(getattr(self, name), name))
        if self.dropout is not None and self.dropout >= 1:
            raise ValueError(f"dropout={self.dropout!r} must be below 1")

    @classmethod
    def of(cls, record: dict) -> "TrainConfig":
        """The config of a record that `as_dict` made. Raises ValueError for one that is not."""
        names = {field.name for field in fields(cls)}
        if unknown := sorted(set(record) - names):
            raise ValueError(f"config has {', '.join(unknown)}, which must be among {', '.join(sorted(names))}")
        return cls(**record)

    def as_dict(self) -> dict:
        """A JSON-ready record."""
        return asdict(self)

    def settled(self, dim: int) -> "TrainConfig":
        """The same with a number for `batch`, for an encoder of `dim` dimensions.

        Raises ValueError for a batch that is too small for the objective.
        """
        objective = objectives.objective(self.objective)
        smallest = objective.batch(self.objective, dim)
        batch = objective.whole(self.objective, dim, BATCH) if self.batch is None else self.batch
        if batch < smallest:
            raise ValueError(f"batch={batch} must be at least {smallest} for {self.objective}")
        return replace(self, batch=batch)

    def without_paths(self) -> dict:
        """As `as_dict`, as it may leave the machine: of a file or folder its name."""
        try:
            model = shown_name(self.model)
        except ModelError:  # no run begins from it, but it is listed
            model = name_of(self.model)
        return self.as_dict() | {"model": model} | {name: name_of(getattr(self, name)) for name in _WORDS}

    def rate(self, step: int) -> float:
        """What `lr` is multiplied by in `step` (1 to `steps`): never 0, so that no step is for nothing."""
        rising = min(1.0, step / self.warmup) if self.warmup else 1.0
        if self.decay == "constant" or step <= self.warmup:
            return rising
        return (self.steps - step + 1) / (self.steps - self.warmup)

    @property
    def warming(self) -> str:
        """That the rate never reaches `lr`, where the steps end within the warm-up; else empty."""
        if self.steps >= self.warmup:
            return ""
        reached = f"{min(max(round(100 * self.rate(self.steps)), 1), 99)} % of its rate"
        return f"the warm-up of {self.warmup} steps is longer than the run, which ends at {reached}"

    def evaluates(self, step: int) -> bool:
        """Whether the pairs are scored after `step`: at the start, at the end, and every `eval_every` steps."""
        return step in (0, self.steps) or bool(self.eval_every and step % self.eval_every == 0)

    def saves(self, step: int) -> bool:
        """Whether a checkpoint is due after `step`."""
        return step == self.steps or (step > 0 and step % self.save_every == 0)


def _check_number(value, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name}={value!r} must be a number of at least 0")
    return float(value)


_SCORED = ("spearman", "alignment", "uniformity", "mean_cosine", "effective_rank")  # beside a spectrum


@dataclass(frozen=True)
class StepRecord:
    """One step: `loss` and `gradient_norm` before its update (norm before clipping), `lr` of the encoder.

    Step 0 is the start and has neither; its `note` says if all steps are warm-up, how many sentences are cut, if gold
    scores run the other way, and if no pair is positive. Where the pairs were scored there is `spearman` (x 100),
    `alignment`, `uniformity`, `mean_cosine`, `effective_rank`, and `spectrum`: the share of the variance along the 1st,
    2nd, 4th, 8th, ... principal direction. None stands for what was not measured or is not defined.

    `seconds` is what the step took, its evaluation included. `stop` says why this is the last record before the last
    step (`collapsed` or `diverged`), `message` explains it. `kept` is then the step that the run was brought back to;
    what was scored are its weights.
    """

    step: int
    loss: float | None = None
    lr: float | None = None
    seconds: float = 0.0
    gradient_norm: float | None = None
    spearman: float | None = None
    alignment: float | None = None
    uniformity: float | None = None
    mean_cosine: float | None = None
    effective_rank: float | None = None
    spectrum: tuple[float, ...] | None = None
    stop: str = ""
    message: str = ""
    kept: int | None = None
    note: str = ""

    @classmethod
    def of(cls, record: dict) -> "StepRecord":
        """The record that `as_dict` made. Raises TypeError or ValueError for one that is not."""
        spectrum = record.get("spectrum")
        return cls(**record | {"spectrum": None if spectrum is None else tuple(spectrum)})

    def as_dict(self) -> dict:
        """A JSON-ready record; what was not measured, or needs no words, is left out, what is not defined is None."""
        always = ("step", "loss", "lr", "seconds", "gradient_norm")
        if self.spectrum is not None:
            always += _SCORED
        return {name: value for name, value in asdict(self).items() if name in always or value not in (None, "")}
