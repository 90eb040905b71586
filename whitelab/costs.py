"""What a training run will take, reckoned before it starts: seconds, memory, disk. Rough, and said to be."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import torch

from whitelab import objectives
from whitelab.encoders import choose_device
from whitelab.models import ModelFiles
from whitelab.training import StepRecord, TrainConfig

# Tokens of a word and of the marks round a sentence, about, in the vocabularies of BERT and its kin.
_TOKENS_A_WORD, _MARKS = 1.22, 2
# Of the speed of one large matrix product: what training reaches on a CPU, in batches cut in parts.
_EFFICIENCY = 0.75
# Zeroing, clipping and AdamW go several times through all parameters; on one thread.
_SECONDS_A_PARAMETER = 3e-8
# Bytes: a parameter with gradient and two moments; a process with torch and transformers in it.
_BYTES_A_PARAMETER, _BYTES_OF_A_PROCESS = 16, 350e6


@dataclass(frozen=True)
class Size:
    """What decides the cost of an encoder: its `blocks`, width `dim`, inner width `inner`, `vocabulary` of rows."""

    blocks: int
    dim: int
    inner: int
    vocabulary: int

    @classmethod
    def of(cls, files: ModelFiles, blocks: int | None = None) -> "Size":
        """That of a model, or of its first `blocks`."""
        config = json.loads((files.folder / "config.json").read_text("utf-8"))
        inner = next((config[name] for name in ("intermediate_size", "hidden_dim", "d_ff") if config.get(name)), None)
        vocabulary = config.get("vocab_size") or 30_000
        return cls(min(blocks or files.layers, files.layers), files.dim, inner or 4 * files.dim, vocabulary)

    @property
    def parameters(self) -> int:
        """Weights, without the small ones."""
        return self.vocabulary * self.dim + self.blocks * self._block

    @property
    def _block(self) -> int:
        return 4 * self.dim**2 + 2 * self.dim * self.inner

    def forward(self, tokens: float, length: float) -> float:
        """Floating-point operations of `tokens` in sentences of `length` tokens."""
        return tokens * self.blocks * (2 * self._block + 4 * length * self.dim)


@dataclass(frozen=True)
class Cost:
    """Of a run: seconds of a `step` and of an `evaluation`, how many evaluations there are, bytes.

    `measured` names the run whose pace this was corrected by, empty where nothing was measured.
    """

    step: float
    evaluation: float
    evaluations: int
    steps: int
    memory: float
    disk: float
    measured: str = ""

    @property
    def seconds(self) -> float:
        """Of the whole run."""
        return self.steps * self.step + self.evaluations * self.evaluation

    def at_pace_of(self, other: "Cost", records: Sequence[StepRecord], name: str) -> "Cost":
        """This cost, corrected by how long the steps of a run took for which `other` was reckoned."""
        plain = [one.seconds for one in records if one.step and one.spearman is None and not one.stop]
        if len(plain) < 3 or not other.step:
            return self
        pace = median(plain) / other.step
        return Cost(
            self.step * pace,
            self.evaluation * pace,
            self.evaluations,
            self.steps,
            self.memory,
            self.disk,
            name,
        )


def cost(config: TrainConfig, size: Size, words: float, scored: int, speed: float) -> Cost:
    """What `config` will take: `words` a sentence of the corpus, `scored` words to evaluate on, `speed` as `speed()`.

    A step: 3 forward passes' worth of operations for every view (1 for a slow copy), and what goes by the number of
    parameters. An evaluation: one forward pass. Memory: AdamW's 16 bytes a parameter, and what a block keeps of every
    token for its gradient.
    """
    config, found = config.settled(size.dim), objectives.objective(config.objective)
    length = min(float(config.max_length), _TOKENS_A_WORD * words + _MARKS)
    views = found.positives(config.objective)
    tokens = views * config.batch * length
    passes = 3 + found.needs_target()
    threads = torch.get_num_threads() if choose_device() == "cpu" else 50
    step = config.accumulation * passes * size.forward(tokens, length) / (_EFFICIENCY * speed)
    step += size.parameters * _SECONDS_A_PARAMETER / threads
    evaluations = (config.steps // config.eval_every if config.eval_every else 1) + 1 if scored else 0
    kept = 4 * size.blocks * tokens * (14 * size.dim + 3 * size.inner)
    copies = 1.25 if found.needs_target() else 1.0
    return Cost(
        step,
        size.forward(_TOKENS_A_WORD * scored, length) / (_EFFICIENCY * speed),
        evaluations,
        config.steps,
        _BYTES_OF_A_PROCESS + copies * _BYTES_A_PARAMETER * size.parameters + kept,
        float(_BYTES_A_PARAMETER * size.parameters),  # a checkpoint with two moments, and the model
    )


def speed(seconds: float = 0.05) -> float:
    """Floating-point operations a second of a matrix product as large as a batch's, on the device that trains."""
    device = choose_device()
    a, b = torch.ones(512, 768, device=device), torch.ones(768, 1536, device=device)
    a @ b  # the first one also loads the library
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        (a @ b).sum().item()  # waits for a device that works on its own
        best = min(best, time.perf_counter() - began)
    return 2 * 512 * 768 * 1536 / best
