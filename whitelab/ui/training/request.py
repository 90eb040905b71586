"""Runs as the form asks for them: sentences, pairs, settings, what they take, and the same in Python."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from textwrap import indent

from whitelab.base.installation import option, program
from whitelab.base.lazy import cached_property
from whitelab.base.user_folders import name_of
from whitelab.base.wording import amount, duration, quantity, spaced
from whitelab.datasets import BUNDLED_SETS, SentencePairs, tabs_note
from whitelab.encoding.catalogue import guess_tokens
from whitelab.encoding.names import ModelError, without_path
from whitelab.training import TrainConfig, objectives
from whitelab.training.costs import Cost
from whitelab.training.runs import Run
from whitelab.ui.sidebar import model


@dataclass(frozen=True, eq=False)
class Text:
    """Sentences, kept while they are trained on, with what every rerun asks of them."""

    sentences: tuple[str, ...]

    @cached_property
    def unique(self) -> int:
        """How many of them differ."""
        return len(set(self.sentences))

    @cached_property
    def tokens(self) -> float:
        """A sentence's, about, on average, from the first thousand."""
        some = self.sentences[:1000]
        return guess_tokens(some) / max(len(some), 1)

    @cached_property
    def note(self) -> str:
        """What to know of them; mostly empty."""
        return tabs_note(self.sentences)

    def without(self, pairs: SentencePairs) -> "Text":
        """Those that are in no pair; itself where that is all of them."""
        scored = set(pairs.sentences)
        rest = tuple(one for one in self.sentences if one not in scored)
        return Text(rest) if len(rest) < len(self.sentences) else self


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sentences to train on; `name` is for all visitors, `code` makes them in Python, `path` in a command line."""

    name: str
    text: Text
    code: str
    path: str = ""

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences."""
        return self.text.sentences


@dataclass(frozen=True, eq=False)
class Scored:
    """Pairs to score on, and about how many tokens their sentences have.

    `name` is for all visitors, `code` makes `scored` in Python, `words` are options of a command line; empty where it
    has none.
    """

    pairs: SentencePairs
    name: str
    code: str
    words: tuple[str, ...]
    tokens: int
    demo: bool = False

    @classmethod
    def of(cls, data: str, task: str, split: str, pairs: SentencePairs, tokens: int) -> "Scored":
        """Pairs that are loaded by their name or path."""
        lenient = ", keep_going=True" if pairs.problems else ""
        bundled = data in BUNDLED_SETS
        words = [option("--eval", data)]
        words += [] if bundled else [option("--task", task)]
        words += [option("--split", split)] if split != "test" else []
        return cls(
            pairs,
            f"{pairs.source}, {split}",
            f"scored = whitelab.load({data!r}, {task!r}, {split!r}{lenient})\n",
            () if pairs.problems else tuple(words),
            tokens,
            bundled,
        )


@dataclass(frozen=True, eq=False)
class TrainingPlan:
    """What the form asks for: a run, or several that differ in their objective alone, with what each will take."""

    configs: tuple[TrainConfig, ...]
    corpus: Corpus
    scored: Scored
    costs: tuple[Cost, ...]

    @property
    def config(self) -> TrainConfig:
        """Of the first run, whose parameters the form shows."""
        return self.configs[0]

    def repeats(self, run: Run, *configs: TrainConfig) -> bool:
        """Whether one of its runs, or of those of `configs`, would be that run once more."""
        return any(run.repeats(one, self.corpus.sentences, self.scored.pairs) for one in configs or self.configs)

    @property
    def code(self) -> str:
        """The lines of Python that make the same runs, and the command lines where they can say so."""
        head = "# what the form asks for\nfrom whitelab.training.runs import create\n\n"
        head += f"{self.scored.code}{self.corpus.code}"
        run = (
            "run = create(config, sentences, scored)\n"
            "for record in run.follow():\n"
            "    print(record.step, record.loss, record.spearman)\n"
        )
        end = "print(run.summary().model)  # the model's name everywhere else\n"
        if len(self.configs) == 1:
            return f"{head}config = {self._made(self.config)}\n{run}\n{end}{self._commands()}"
        configs = "".join(f"    {self._made(one)},\n" for one in self.configs)
        return f"{head}for config in (\n{configs}):\n{indent(run + end, '    ')}{self._commands()}"

    def _made(self, config: TrainConfig) -> str:
        changed = [
            f"{one.name}={getattr(config, one.name)!r}"
            for one in fields(TrainConfig)
            if one.name not in ("corpus", "evaluation") and getattr(config, one.name) != one.default
        ]
        return f"whitelab.TrainConfig({', '.join(changed)})"

    def _commands(self) -> str:
        if not self.corpus.path or not self.scored.words:
            return ""
        lines = "".join(f"# {self._command(one)}\n" for one in self.configs)
        return f"\n# the same without Python:\n{lines}"

    def _command(self, config: TrainConfig) -> str:
        words = [program(), "train", option("--corpus", self.corpus.path), *self.scored.words]
        for name in ("objective", "model", "steps", "batch", "lr", "seed", "eval_every", "positives"):
            if (value := getattr(config, name)) != getattr(TrainConfig, name):
                words.append(option(f"--{name.replace('_', '-')}", value))
        return " ".join(words)


def cost_words(found: Sequence[Cost]) -> str:
    """What the runs will take, in a sentence."""
    if len(found) > 1:
        seconds, memory, disk = ([getattr(one, name) for one in found] for name in ("seconds", "memory", "disk"))
        return (
            f"About **{duration(sum(seconds))}** for {len(found)} runs, one after another, {amount(max(memory))} of "
            f"memory and {amount(sum(disk))} on disk."
        )
    (cost,) = found
    step = f"{cost.step:.1f} s" if cost.step >= 0.1 else f"{1000 * cost.step:.0f} ms"
    evaluations = f"with {cost.evaluations} evaluations " if cost.evaluations else ""
    source = f"at the pace of {cost.measured}" if cost.measured else "estimated from this machine's speed"
    return (
        f"About **{duration(cost.seconds)}** {evaluations}({step} a step, {source}), {amount(cost.memory)} of "
        f"memory and {amount(cost.disk)} on disk."
    )


def plan_line(plan: TrainingPlan) -> str:
    """How the scores of what the form says would be made, in a line."""
    names = " | ".join(objectives.label(one.objective) for one in plan.configs)
    scored = f"{plan.scored.name} ({quantity(plan.scored.pairs.n_pairs, 'pair')})"
    sentences = f"{spaced(len(plan.corpus.sentences))} sentences ({plan.config.corpus})"
    return protocol_line(plan.config, names, scored, sentences)


def start_of(config: TrainConfig) -> str:
    """The model that training starts from, as the bar calls it; of a path what may leave."""
    try:
        return model.label_of(without_path(config.model))
    except ModelError:
        return name_of(config.model)


def protocol_line(config: TrainConfig, names: str, scored: str, sentences: str) -> str:
    """How a run's scores are made, in a line: objectives by their `names`, `scored` on which pairs, of which sentences.

    No path of this machine is in it but what the last two have.
    """
    steps = quantity(config.steps, "step") + (f" of {config.batch * config.accumulation}" if config.batch else "")
    return (
        f"{start_of(config)}, last layer, {config.pooling} pooling · scored on {scored}, "
        f"aggregate all, no whitening · {names}, {steps} of {sentences}, at most {config.max_length} tokens of each, "
        f"AdamW, rate {config.lr:g}, seed {config.seed}"
    )
