"""What a run leaves behind: a model that loads like any other, and a card that says how it came about."""

from dataclasses import dataclass, replace
from pathlib import Path

from whitelab.base.installation import RELEASE
from whitelab.base.wording import number
from whitelab.encoding import architectures
from whitelab.encoding.checkpoints import TRAINING_FILE, licence_note
from whitelab.encoding.pooling import POOLING_LABELS
from whitelab.encoding.sentence_modules import write_modules
from whitelab.statistics.geometry import POSITIVES
from whitelab.store.aside import folder_aside, let_read
from whitelab.training import objectives
from whitelab.training.config import OPTIMISTIC, StepRecord, TrainConfig
from whitelab.training.trainer import Trainer

CARD = """---
library_name: transformers
pipeline_tag: sentence-similarity
tags: [feature-extraction, sentence-similarity, whitelab]
---

# {start}, trained with {label}

A sentence encoder. A sentence is {pooled} of the last layer; compare sentences by their cosine.

```python
from transformers import {kind}, AutoTokenizer

model, tokenizer = (kind.from_pretrained("path/to/this/folder") for kind in ({kind}, AutoTokenizer))
texts = ["A man plays a guitar.", "Someone makes music."]
batch = tokenizer(texts, padding=True, truncation=True, max_length={max_length}, return_tensors="pt")
hidden = model(**batch).last_hidden_state
{pool}
```

`SentenceTransformer("path/to/this/folder")` gives the same vectors.

{training}"""

TRAINING = """## Training

{start} was trained by {release} without labels, for {step} of {steps} steps of {batch} sentences, at a
learning rate of {lr:g}, with seed {seed}.

### Objective

{summary} `{objective}` ({source})

### Data

{sentences} unique sentences, labels unused: {corpus} (fingerprint {fingerprint}). {repeated} more were left out,
whose tokens are those of one of them. Of all, {truncated} were cut to {max_length} tokens. {seen} are among the scored
sentences.

### Scores

{scores}

### Settings

{settings}

## Licence

{licence} The sentences it was trained on may have a licence of their own.
"""

_POOL = {
    "mean": 'mask = batch["attention_mask"][..., None]\nvectors = (hidden * mask).sum(1) / mask.sum(1)',
    "cls": "vectors = hidden[:, 0]",
    "last": 'last = batch["attention_mask"].cumsum(1).argmax(1)\nvectors = hidden[range(len(hidden)), last]',
}


@dataclass
class Scores:
    """The records of a run that were scored: at the `start`, the `best` and the `last` one."""

    start: StepRecord | None = None
    best: StepRecord | None = None
    last: StepRecord | None = None

    def take(self, record: StepRecord) -> bool:
        """Take note of a record; whether it is the best so far, which one that stops the run is by what it `kept`."""
        if record.spearman is None:
            return False
        if record.kept is not None:
            record = replace(record, step=record.kept, kept=None, stop="", message="")
        self.last = record
        self.start = record if record.step == 0 else self.start
        if record.stop or (self.best is not None and record.spearman <= self.best.spearman):
            return False
        self.best = record
        return True

    @classmethod
    def of(cls, record: dict) -> "Scores":
        """What `as_dict` made."""
        return cls(*(StepRecord.of(record[name]) if name in record else None for name in ("start", "best", "last")))

    def as_dict(self) -> dict:
        """A JSON-ready record of the scored records there are."""
        found = {"start": self.start, "best": self.best, "last": self.last}
        return {name: one.as_dict() for name, one in found.items() if one is not None}


def write_model(folder: Path, trainer: Trainer, scores: Scores) -> None:
    """Write the encoder as it is: safetensors, config, tokenizer, pooling and card, aside first and then renamed.

    What the card says of the training lies beside it too, for the cards of later exports (`checkpoints.origin_note`).
    """
    training = _training(trainer, scores)
    with folder_aside(folder) as aside:
        trainer.encoder.save(aside)
        write_modules(aside, trainer.config.pooling, trainer.encoder.dim, trainer.encoder.max_length)
        let_read(aside)
        (aside / TRAINING_FILE).write_text(training, "utf-8")
        (aside / "README.md").write_text(_card(trainer, training), "utf-8")


def _card(trainer: Trainer, training: str) -> str:
    """The README.md of the model."""
    config, encoder = trainer.config, trainer.encoder
    kind = architectures.shell_of(encoder.model, encoder.name)
    return CARD.format(
        start=encoder.name,
        label=objectives.label(config.objective),
        kind=kind.__name__ if kind else "AutoModel",
        max_length=encoder.max_length,
        pooled=f"the {POOLING_LABELS[config.pooling]}",
        pool=_POOL[config.pooling],
        training=training,
    )


def _training(trainer: Trainer, scores: Scores) -> str:
    """How the weights came about, and their licence, as sections of a card."""
    config, found = trainer.config, objectives.objective(trainer.config.objective)
    batch = config.batch if config.accumulation == 1 else f"{config.accumulation} x {config.batch}"
    return TRAINING.format(
        start=trainer.encoder.name,
        release=RELEASE,
        step=trainer.step,
        steps=config.steps,
        batch=batch,
        lr=config.lr,
        summary=found.summary,
        objective=config.objective,
        source=found.source,
        sentences=f"{trainer.batches.count:,}",
        corpus=config.without_paths()["corpus"] or "not named",
        fingerprint=trainer.batches.fingerprint,
        repeated=f"{trainer.batches.repeated:,}",
        truncated=f"{trainer.batches.truncated:,}",
        seen=f"{trainer.seen:,}",
        max_length=config.max_length,
        seed=config.seed,
        scores=_scores(config, scores),
        settings="\n".join(f"- {name}: {value}" for name, value in config.without_paths().items() if value is not None),
        licence=licence_note("The start was", trainer.encoder.name, trainer.encoder.files.weights),
    )


def _scores(config: TrainConfig, scores: Scores) -> str:
    if scores.best is None:
        return "It was not scored."
    rows = [("the start", scores.start), ("trained encoder", scores.best)]
    lines = ["| | step | Spearman x 100 | alignment | uniformity |", "| --- | --- | --- | --- | --- |"]
    for name, one in rows:
        if one is not None:
            values = (one.spearman, one.alignment, one.uniformity)
            shown = " | ".join(number(value, "z.3f") for value in values)
            lines.append(f"| {name} | {one.step} | {shown} |")
    pairs = config.evaluation or "pairs that are not named"
    return "\n".join(
        [
            *lines,
            "",
            f"On {pairs}, {config.pooling} pooling of the last layer, no whitening, aggregate all, alignment over "
            f"pairs with {POSITIVES[config.positives]}. {OPTIMISTIC}.",
        ]
    )
