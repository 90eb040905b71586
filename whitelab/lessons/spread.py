"""Lesson 8: what spreading sentences out costs, and that it is not the score."""

from dataclasses import dataclass

from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.lessons.lesson import (
    SCORE,
    Answer,
    Choice,
    Lesson,
    NoAnswer,
    Number,
    Step,
    check_similar,
    marked_similar,
    moved,
    setting_on,
    similar,
    spearman,
    written,
)
from whitelab.statistics import geometry
from whitelab.sweeps.layer_profiles import losses, shape

_CENTRED, _SETTING = "L2:center", "L2:pca"
_ALIKE = 2.0  # percentage points of a share that count as no change
_NEAR = 0.05  # of a squared distance, likewise
_LOSSES = ("alignment", "uniformity")
_BEST = 0.5  # points behind the best score that count as the best too

_WAYS = {
    "rises": "They move further apart",
    "stays": f"They stay, within {_NEAR:g}",
    "falls": "They move closer together",
}


@dataclass(frozen=True)
class Spread:
    """Mean squared distances of similar sentences (`alignment`) and of two random ones, at length 1; and the score."""

    alignment: float
    random: float
    uniformity: float
    score: float

    @property
    def share(self) -> float:
        """The distance of similar sentences in percent of that of random ones."""
        return 100 * self.alignment / self.random


def spread(space: LayerEmbeddings, text: str) -> Spread:
    """What a setting makes of the sentences. Raises NoAnswer for few similar pairs, and as `spearman`."""
    setting = setting_on(space, text)
    score = spearman(space, setting)
    check_similar(len(similar(space)))
    found, form = losses(space, setting, geometry.usual_positives(space.gold)), shape(space, setting)
    if not form.mean_cosine < 1 - 1e-9:
        raise NoAnswer("two random sentences point the same way there, so that nothing is left to compare")
    return Spread(found.alignment, 2 - 2 * form.mean_cosine, found.uniformity, score)


def _ask_centred(space: LayerEmbeddings) -> str:
    raw, centred = spread(space, "L2"), spread(space, _CENTRED)
    (layer,) = setting_on(space, _SETTING).layers
    return (
        "Of two sentences at length 1, the squared distance is 0 where they point the same way, 2 at a right angle and "
        f"4 at opposite ends. In layer {layer}, raw, two random sentences are {written(raw.random)} apart on average. "
        f"Two that people call similar, {marked_similar(space)}, are {written(raw.alignment)} apart: that is the "
        "**alignment**. "
        f"Now centre the layer and measure again: random ones are {written(centred.random)} apart. "
        "**How far apart are similar ones?**"
    )


def centred_alignment(space: LayerEmbeddings) -> Answer:
    """The alignment once centred, beside what it is of the distance of random sentences."""
    raw, centred = spread(space, "L2"), spread(space, _CENTRED)
    way = {
        "stays": "centring takes all sentences apart alike, similar ones too",
        "rises": "centring takes similar sentences apart more than others",
        "falls": "centring takes similar sentences apart less than others",
    }[moved(raw.share, centred.share, _ALIKE)]
    words = (
        f"Similar sentences are {written(centred.alignment)} apart, and were {written(raw.alignment)}. In percent of "
        f"the distance of random ones that is {written(centred.share)}, and was {written(raw.share)}: {way}. So an "
        "alignment says little alone: in a narrow cone it is low, because everything is near everything."
    )
    numbers = {"raw": raw.alignment, "centred": centred.alignment}
    return Answer(centred.alignment, words, numbers | {"share, raw": raw.share, "share, centred": centred.share})


def whitened_alignment(space: LayerEmbeddings) -> Answer:
    """What whitening after centring does to both losses."""
    raw, centred, white = (spread(space, text) for text in ("L2", _CENTRED, _SETTING))
    floor = geometry.uniformity_floor(space.dim)
    words = (
        f"Similar sentences are {written(white.alignment)} apart, centred {written(centred.alignment)}; in percent of "
        f"the distance of random ones {written(white.share)}, centred {written(centred.share)}. The **uniformity** "
        f"says how evenly all sentences are spread, the lower, the more evenly: raw {written(raw.uniformity)}, centred "
        f"{written(centred.uniformity)}, whitened {written(white.uniformity)}, and {written(floor)} for vectors "
        f"spread evenly over all {space.dim} directions."
    )
    if (way := moved(centred.alignment, white.alignment, _NEAR)) == "rises":
        words += (
            " Whitening makes all directions equally strong, so that whatever similar sentences differ in along weak "
            "ones counts as much as what they share along strong ones."
        )
    numbers = {"alignment, centred": centred.alignment, "alignment, whitened": white.alignment, "floor": floor}
    numbers |= {"share, centred": centred.share, "share, whitened": white.share, "raw": raw.uniformity}
    numbers |= {"uniformity, centred": centred.uniformity, "uniformity, whitened": white.uniformity}
    gained = raw.uniformity - white.uniformity
    if gained >= _NEAR:
        numbers["by centring"] = 100 * (raw.uniformity - centred.uniformity) / gained
        words += f" Of what whitening gains there, centring alone brings {written(numbers['by centring'])} %."
    return Answer(_WAYS[way], words, numbers)


def _maps(space: LayerEmbeddings) -> dict[str, str]:
    quarter = max(space.dim // 4, 1)
    return {
        "Raw": "L2",
        "Centred": _CENTRED,
        "Whitened": _SETTING,
        f"Whitened, cut to a quarter (k = {quarter})": f"{_SETTING}@{quarter}",
    }


def _ask_best(space: LayerEmbeddings) -> Choice:
    return Choice(tuple(_maps(space)), rule=f"What scores within {_BEST:g} points of the best counts, too.")


def best_score(space: LayerEmbeddings) -> Answer:
    """Which of four maps of a layer scores best, beside both losses."""
    found = {name: spread(space, text) for name, text in _maps(space).items()}
    best = max(found, key=lambda name: found[name].score)
    lowest = [
        loss for loss in _LOSSES if getattr(found[best], loss) == min(getattr(one, loss) for one in found.values())
    ]
    every = "".join(
        f"\n- {name}: alignment {written(one.alignment)}, uniformity {written(one.uniformity)}, score "
        f"{written(one.score)}"
        for name, one in found.items()
    )
    words = (
        "Both are losses: the lower, the closer similar sentences and the more even the spread. The higher the score, "
        f"the better:\n{every}\n\nBest score: {best}. Its "
        f"{' and '.join(lowest) or 'alignment and uniformity'} {'is' if len(lowest) == 1 else 'are'} "
        f"{'also' if lowest else 'not'} the lowest of the four. Alignment looks at similar pairs only and uniformity "
        "at no gold score at all; the score reads the order of all pairs, also of those half alike. So neither stands "
        "for it: measure it, as the plane below does by its colours, for every layer and the bar's k, at first all."
    )
    parts = (*_LOSSES, "score")
    numbers = {f"{name}, {part}": getattr(one, part) for name, one in found.items() for part in parts}
    accepted = tuple(name for name, one in found.items() if one.score >= found[best].score - _BEST)
    return Answer(best, words, numbers, accepted=accepted)


LESSON = Lesson(
    8,
    "Spread out, at what price?",
    "Whitening spreads sentences out. Do similar ones stay together, and does the score follow?",
    "uniformity",
    _SETTING,
    6,
    "predict how far apart similar sentences are, centred and whitened, and which map scores best",
    "every layer in the plane of alignment and uniformity",
    "The more evenly sentences are spread, the better they are ranked.",
    (
        Step(
            _ask_centred,
            Number("Squared distance of similar sentences, centred", 0.0, 4.0, 0.01, 0.1),
            centred_alignment,
            scored=_CENTRED,
        ),
        Step(
            "Now whiten the layer as well, so that every direction counts alike. **What becomes of similar sentences, "
            "compared with centring alone?**",
            Choice(tuple(_WAYS.values()), rule="By their mean squared distance at length 1."),
            whitened_alignment,
            scored=_SETTING,
        ),
        Step(
            f"To spread evenly is good, and so is to keep similar sentences close together. {SCORE} "
            "**Which of four maps of this layer scores best?**",
            _ask_best,
            best_score,
            scored=_SETTING,
        ),
    ),
)
