"""What a lesson is: steps that ask for a prediction, and answers that the core computes when they are asked for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from jaxtyping import Bool, Int
from torch import Tensor

from whitelab.base.wording import in_percent, quantity, spaced
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.scoring.fit_scopes import halves
from whitelab.scoring.score import Score, score
from whitelab.scoring.setting import Setting
from whitelab.statistics import geometry
from whitelab.whitening import too_few

Real = float | int
FEW = 10  # pairs below which nothing is said of them
_ROUNDING = 1e-6
_SIMILAR = {"gt4": "above 4 of 5", "top": "in the top fifth of its range"}  # how a lesson puts `usual_positives`

# What a lesson says where it first has the term.
SCORE = "The **score** says how well cosines rank pairs of sentences the way people do: 100 is perfect, 0 is chance."
INTERVAL = "the **95 % interval** of the difference, in which 95 of 100 redraws of the pairs put it,"


class NoAnswer(ValueError):
    """The space has no answer to the question; the message says why."""


@dataclass(frozen=True)
class Answer:
    """What was measured: `value` in the form of the prediction, and why in `words`, which name all `numbers`.

    `accepted` are the predictions that count as right: `value` alone where none are named. `curves` are drawn beside a
    curve that was predicted, `sentences` are rows of the space worth reading, each with a number and the rows it
    belongs to.
    """

    value: Real | str | tuple[Real | str, ...]
    words: str
    numbers: Mapping[str, Real]
    accepted: tuple = ()
    curves: Mapping[str, tuple[Real, ...]] = field(default_factory=dict)
    sentences: Mapping[str, tuple[tuple[int, int, tuple[int, ...]], ...]] = field(default_factory=dict)
    paths: Mapping[str, tuple[dict, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.accepted:
            object.__setattr__(self, "accepted", (self.value,))


def _measured(answer: Answer, shown: Callable[[Real | str], str]) -> str:
    """The answer, with what else counts as right: how much, where that is not little."""
    others = [shown(one) for one in answer.accepted if one != answer.value]
    if len(others) >= 3:
        others = [f"one of {len(others)} others"]
    return " or ".join([shown(answer.value), *others])


@dataclass(frozen=True)
class Number:
    """A number between `low` and `high`; right within `near`, or within that share of the answer (`relative`).

    `words` say what is right where the answer accepts several.
    """

    label: str
    low: Real
    high: Real
    step: Real
    near: Real
    relative: bool = False
    words: str = ""

    @property
    def rule(self) -> str:
        """How near counts as right, in words."""
        if self.words:
            return self.words
        how = f"{in_percent(self.near)} of the measured value" if self.relative else f"{self.near:g}"
        return f"Within {how} counts as right."

    def right(self, guess: Real, answer: Answer) -> bool:
        """Whether a prediction counts as right."""
        return any(abs(guess - one) <= self.near * (abs(one) if self.relative else 1) for one in answer.accepted)

    def write(self, guess: Real) -> str:
        """The prediction for an address."""
        return f"{guess:g}"

    def read(self, text: str) -> Real:
        """What `write` has written. Raises ValueError for anything else."""
        guess = float(text)
        if not self.low <= guess <= self.high:
            raise ValueError(f"guess={text} must lie between {self.low:g} and {self.high:g}")
        return int(guess) if isinstance(self.step, int) else guess

    def shown(self, guess: Real) -> str:
        """The prediction, or the answer, for people."""
        return written(guess)

    def measured(self, answer: Answer) -> str:
        """The answer for people, with what else counts as right."""
        return _measured(answer, self.shown)


@dataclass(frozen=True)
class Choice:
    """One of `options`, or `several` of them at once, every one of which must then be right."""

    options: tuple[str, ...]
    several: int = 1
    rule: str = ""

    def right(self, guess, answer: Answer) -> bool:
        """Whether a prediction counts as right."""
        chosen = (guess,) if isinstance(guess, str) else guess
        return all(option in answer.accepted for option in chosen)

    def write(self, guess) -> str:
        """The prediction for an address: places among the options."""
        return ",".join(str(self.options.index(option)) for option in ((guess,) if isinstance(guess, str) else guess))

    def read(self, text: str):
        """What `write` has written. Raises ValueError for anything else."""
        places = [int(part) for part in text.split(",")]
        if len(set(places)) != self.several or not all(0 <= place < len(self.options) for place in places):
            raise ValueError(f"guess={text} must name {self.several} of {len(self.options)} options")
        chosen = tuple(self.options[place] for place in places)
        return chosen[0] if self.several == 1 else chosen

    def shown(self, guess) -> str:
        """The prediction, or the answer, for people."""
        return guess if isinstance(guess, str) else ", ".join(guess)

    def measured(self, answer: Answer) -> str:
        """The answer for people, with what else counts as right."""
        return self.shown(answer.value) if self.several > 1 else _measured(answer, self.shown)


@dataclass(frozen=True)
class Curve:
    """A height at each of `names`, at first those of `start`; `bars` where the places have no order.

    Right within `near` on average, or, of `bars`, where no difference between two heights is off by more.
    """

    names: tuple[str, ...]
    low: Real
    high: Real
    start: tuple[Real, ...]
    near: Real
    bars: bool = False

    @property
    def rule(self) -> str:
        """How near counts as right, in words."""
        if self.bars:
            return f"Only how the heights differ counts: right where no difference is off by more than {self.near:g}."
        return f"Right where the heights are within {self.near:g} on average."

    def right(self, guess: tuple[Real, ...], answer: Answer) -> bool:
        """Whether a prediction counts as right."""
        off = [mine - theirs for mine, theirs in zip(guess, answer.value, strict=True)]
        if self.bars:
            return max(off) - min(off) <= self.near
        return sum(map(abs, off)) / len(off) <= self.near

    def write(self, guess: tuple[Real, ...]) -> str:
        """The prediction for an address."""
        return ",".join(f"{height:g}" for height in guess)

    def read(self, text: str) -> tuple[Real, ...]:
        """What `write` has written. Raises ValueError for anything else."""
        heights = tuple(float(part) for part in text.split(","))
        if len(heights) != len(self.names) or not all(self.low <= height <= self.high for height in heights):
            raise ValueError(f"guess={text} must be {len(self.names)} heights from {self.low:g} to {self.high:g}")
        return heights

    def shown(self, guess: tuple[Real, ...]) -> str:
        """The prediction, or the answer, for people."""
        return ", ".join(f"{name}: {written(height)}" for name, height in zip(self.names, guess, strict=True))

    def measured(self, answer: Answer) -> str:
        """The answer for people."""
        return self.shown(answer.value)


@dataclass(frozen=True)
class Cloud:
    """A state of the two-dimensional cloud of a kind (`clouds.KINDS`), right where the answer is at most `near`.

    `blind` hides its numbers until the state is handed in.
    """

    kind: str
    goal: str
    near: Real
    blind: bool = False

    @property
    def rule(self) -> str:
        """How near counts as right, in words."""
        return self.goal

    def right(self, guess: tuple[Real, ...], answer: Answer) -> bool:
        """Whether a state counts as right; the answer says how far it is from the goal."""
        return answer.value <= self.near

    def write(self, guess: tuple[Real, ...]) -> str:
        """The state for an address."""
        return ",".join(f"{part:.3f}".rstrip("0").rstrip(".") for part in guess)

    def read(self, text: str) -> tuple[Real, ...]:
        """What `write` has written. Raises ValueError for anything else."""
        from whitelab.lessons.clouds import KINDS

        return KINDS[self.kind].check(tuple(float(part) for part in text.split(",")))

    def shown(self, guess: tuple[Real, ...]) -> str:
        """The state for people."""
        from whitelab.lessons.clouds import KINDS

        return KINDS[self.kind].words(guess)


Ask = Number | Choice | Curve | Cloud


@dataclass(frozen=True)
class Step:
    """A question, the prediction it asks for, and what measures the answer.

    `measure` takes the open space (the state of a `Cloud`); `needs` says whether there has to be one. Question and ask
    may depend on it. `scored` is a setting without whose score nobody is asked, for there is no answer. `slow` says
    what a measure does that takes longer than a second. `setting` is where the page stands, of a step that does not
    keep to its lesson's. `picture` is a kind of cloud with its states before and after.
    """

    question: str | Callable[[LayerEmbeddings], str]
    ask: Ask | Callable[[LayerEmbeddings], Ask]
    measure: Callable
    needs: str = "space"
    slow: str = ""
    scored: str = ""
    setting: str = ""
    picture: tuple[str, tuple[Real, ...], tuple[Real, ...]] | None = None

    def asked(self, space: LayerEmbeddings | None) -> tuple[str, Ask]:
        """The question and the prediction it wants. Raises NoAnswer where it is known to have no answer."""
        if self.scored:
            spearman(space, self.scored)
        question = self.question if isinstance(self.question, str) else self.question(space)
        return question, self._ask(space)

    def answered(self, of: LayerEmbeddings | tuple[float, ...] | None) -> Answer:
        """What is measured of it. Raises NoAnswer for what no prediction can meet, such as a score below chance."""
        answer, ask = self.measure(of), self._ask(of)
        if isinstance(ask, Number | Curve):
            values = answer.value if isinstance(answer.value, tuple) else (answer.value,)
            out = [value for value in values if not ask.low - _ROUNDING <= value <= ask.high + _ROUNDING]
            if any(value != value for value in out):
                raise NoAnswer("what it asks for is not defined on this data")
            if out:
                raise NoAnswer(f"{written(out[0])} is measured, and predictions go from {ask.low:g} to {ask.high:g}")
        return answer

    def _ask(self, of) -> Ask:
        return self.ask if isinstance(self.ask, Ask) else self.ask(of)


@dataclass(frozen=True)
class Lesson:
    """A question about `page`, opened at `setting`, in steps. `opens` are controls of the page, such as its tab."""

    number: int
    title: str
    question: str
    page: str
    setting: str
    minutes: int
    does: str
    sees: str
    misconception: str
    steps: tuple[Step, ...]
    opens: Mapping[str, str] = field(default_factory=dict)

    def setting_at(self, step: int) -> Setting:
        """Where the page stands in a step, counted from 1."""
        return Setting.parse(self.steps[step - 1].setting or self.setting)


def setting_on(space: LayerEmbeddings, text: str) -> Setting:
    """A setting as the text has it, on this space: its pooling, and no layer beyond its last."""
    setting = Setting.parse(text)
    last = space.n_layers - 1
    layers = tuple(dict.fromkeys(min(layer, last) for layer in setting.numbers(space.n_layers)))
    return setting.with_(layers=layers, pooling=space.origin.pooling)


def spearman(space: LayerEmbeddings, setting: Setting | str) -> Real:
    """Spearman x 100 of a setting. Raises NoAnswer where its map is starved, pairs are few, or it is not defined."""
    setting = setting_on(space, setting) if isinstance(setting, str) else setting
    result = score(space, setting, isotropy=False)
    if result.starved:
        raise NoAnswer(too_few(setting.whitening, result.rank, result.dim).removesuffix("."))
    if result.pairs < FEW:
        raise NoAnswer(f"{result.pairs} pairs are too few for a score that is more than luck: {FEW} are needed")
    return defined(result)


def defined(result: Score) -> Real:
    """Spearman x 100 of a score. Raises NoAnswer where it is not defined."""
    if result.spearman is None:
        raise NoAnswer(result.reason)
    return result.spearman


def half(space: LayerEmbeddings) -> Bool[Tensor, "p"]:
    """Which pairs are in the second half, with no sentence of the first (`fit_scopes.halves`). Raises NoAnswer."""
    try:
        return halves(space)
    except ValueError:
        raise NoAnswer("its pairs do not fall into two halves without a common sentence") from None


def check_apart(pairs: Bool[Tensor, "p"]) -> None:
    """Raise NoAnswer where the pairs that are set apart are too few for an interval."""
    if (apart := int(pairs.sum())) < FEW:
        raise NoAnswer(f"{apart} pairs set apart are too few: an interval would say nothing of luck below {FEW}")


def similar(space: LayerEmbeddings) -> Int[Tensor, "m"]:
    """The pairs that count as similar. Raises NoAnswer where there are none."""
    pairs = geometry.positives(space.gold, geometry.usual_positives(space.gold))
    if not len(pairs):
        raise NoAnswer("every pair here has the same gold score, so that none is more similar than others")
    return pairs


def check_similar(count: int) -> None:
    """Raise NoAnswer for fewer similar pairs than `FEW`."""
    if count < FEW:
        pairs = quantity(count, "pair of similar sentences is", "pairs of similar sentences are")
        raise NoAnswer(f"{pairs} too few: {FEW} are needed")


def marked_similar(space: LayerEmbeddings) -> str:
    """What sets `similar` pairs apart, inside a question."""
    return f"with a **gold score** (people's mark of a pair) {_SIMILAR[geometry.usual_positives(space.gold)]}"


def written(value: Real) -> str:
    """A measured number as every text of a lesson writes it."""
    return spaced(value) if isinstance(value, int) else f"{value:z.2f}"


def difference(after: Real, before: Real) -> Real:
    """What is written of two numbers' difference: that of the numbers as `written`, so that a reader finds the same."""
    return round(round(after, 2) - round(before, 2), 2)


def listed(names: Sequence[str]) -> str:
    """`Layer 1`, `Layers 1 and 2`, `Layers 1, 2 and 3`, of names that differ in their last word."""
    head, ends = names[0].rpartition(" ")[0], [name.rpartition(" ")[2] for name in names]
    if len(ends) == 1:
        return names[0]
    return f"{head}s {', '.join(ends[:-1])} and {ends[-1]}"


def moved(before: Real, after: Real, near: Real = 0.0) -> str:
    """`rises`, `falls`, or `stays` where the two are within `near`."""
    if abs(after - before) <= near:
        return "stays"
    return "rises" if after > before else "falls"
