"""Lesson 5: how many sentences a map needs."""

from collections.abc import Iterable, Sequence
from operator import sub
from statistics import median

from whitelab.base.wording import spaced
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.lessons.lesson import (
    SCORE,
    Answer,
    Choice,
    Curve,
    Lesson,
    NoAnswer,
    Number,
    Real,
    Step,
    defined,
    difference,
    setting_on,
    spearman,
    written,
)
from whitelab.scoring.setting import Setting
from whitelab.sweeps.fit_size import sentence_scores

_SETTING = "L-1:pca"
_RATIOS = (0.5, 1.0, 2.0, 4.0)
_ENOUGH = 0.5  # points that a remedy must be worth
_FAR = 5.0  # points below the median of the draws from which on one is said to fall
_DRAWS = 5  # of as many sentences each: one tells nothing of what another gives


def sizes(space: LayerEmbeddings) -> dict[str, int]:
    """How many sentences stand for which multiple of d; all of them at the end."""
    multiples = {f"n = {ratio:g} d": round(ratio * space.dim) for ratio in _RATIOS}
    multiples = {name: size for name, size in multiples.items() if 2 <= size < space.n_sentences}
    return multiples | {f"all {spaced(space.n_sentences)}": space.n_sentences}


def _raw(space: LayerEmbeddings) -> Real:
    return spearman(space, setting_on(space, _SETTING).raw)


def _names(space: LayerEmbeddings) -> Curve:
    raw = _raw(space)
    names = tuple(sizes(space))
    return Curve(names, 0.0, 100.0, (float(min(max(round(raw), 0), 100)),) * len(names), 4.0)


Draws = tuple[Real, ...]


def _draws(space: LayerEmbeddings, settings: Sequence[Setting], sizes: Iterable[int]) -> list[list[Draws]]:
    """The scores of each setting, at each size, by draw. Raises NoAnswer as `spearman`, of all sentences too."""
    spearman(space, _SETTING)
    sizes = list(sizes)
    draws = [sentence_scores(space, settings, sizes, seed) for seed in range(_DRAWS)]
    return [[tuple(map(defined, size)) for size in zip(*rows, strict=True)] for rows in zip(*draws, strict=True)]


def _range(scores: Draws) -> str:
    """From the lowest score of several draws to the highest; one number where they agree."""
    return " to ".join(dict.fromkeys((written(min(scores)), written(max(scores)))))


def _ends(name: str, scores: Draws) -> dict[str, Real]:
    return {f"{name}, lowest": min(scores), f"{name}, highest": max(scores)}


def _ask_curve(space: LayerEmbeddings) -> str:
    raw = _raw(space)
    return (
        f"A whitening map is fitted on sentences, and it has d = {space.dim} directions to measure. Fit it on n of "
        f"them, drawn at random, and rank all pairs with it. {SCORE} Raw, the last layer scores {written(raw)}. "
        "**Draw the score of the whitened layer for each n.**"
    )


def _without_weakest(space: LayerEmbeddings, size: int, seed: int) -> Real:
    """The score of one draw's map without the direction of which its sentences show least."""
    setting = setting_on(space, _SETTING)
    ((whole,),) = sentence_scores(space, [setting], [size], seed)
    ((less,),) = sentence_scores(space, [setting.with_(k=max(1, whole.rank - 1))], [size], seed)
    return defined(less)


def _of_a_fall(name: str, scores: Draws, without_weakest: Real) -> str:
    """What is said of the lowest of several draws, by what it scores without its weakest direction."""
    why = (
        ": its sentences differ least along that one, as where two are nearly alike, and whitening blows it up."
        if median(scores) - without_weakest <= _FAR
        else ", so that one alone is not the reason."
    )
    return (
        f" One draw of {name} falls to {written(min(scores))}. Without the weakest of its directions it scores "
        f"{written(without_weakest)}{why}"
    )


def by_sentences(space: LayerEmbeddings) -> Answer:
    """The score by the number of sentences the map was fitted on."""
    (draws,) = _draws(space, [setting_on(space, _SETTING)], sizes(space).values())
    curve = {name: scores[0] for name, scores in zip(sizes(space), draws, strict=True)}
    lowest, most = min(curve, key=curve.get), list(curve)[-1]
    every = "".join(
        f"\n- {name}: {written(scores[0])}" + f" ({_range(scores)})" * (name != most)
        for name, scores in zip(curve, draws, strict=True)
    )
    if lowest == "n = 1 d":
        why = (
            "The lowest point is where there are as many sentences as dimensions. There the weakest directions look "
            "almost flat by accident, and whitening blows up just those. With fewer sentences most of them are not "
            "seen at all and are left out."
        )
    elif lowest == most:
        why = "More sentences do not help here: the score is lowest with all of them."
    else:
        why = f"The lowest point here is at {lowest}, not where n = d."
    rise, weighed = difference(curve[most], curve[lowest]), spearman(space, setting_on(space, _SETTING))
    numbers = curve | {"from the lowest to all": rise}
    for name, scores in zip(curve, draws, strict=True):
        if name not in (lowest, most) and median(scores) - min(scores) > _FAR:
            without = f"{name}, lowest without a direction"
            numbers[without] = _without_weakest(space, sizes(space)[name], scores.index(min(scores)))
            why += _of_a_fall(name, scores, numbers[without])
    words = (
        f"Measured on one random draw of sentences, in brackets on {_DRAWS}:\n{every}\n\n{why} From the lowest point "
        f"of the one draw to all sentences it is {written(rise)} points."
    )
    if written(weighed) != written(curve[most]):
        words += (
            f" Each sentence counts once here. Where it counts as often as it occurs, as on the page below, all of "
            f"them give {written(weighed)}."
        )
    for name, scores in list(zip(curve, draws, strict=True))[:-1]:
        numbers |= _ends(name, scores)
    return Answer(tuple(curve.values()), words, numbers, curves={"measured": tuple(curve.values())})


def _narrow(space: LayerEmbeddings) -> int:
    return min(space.dim, space.n_sentences)


def _ask_shrunk(space: LayerEmbeddings) -> str:
    raw = _raw(space)
    return (
        "**Shrinkage** mixes the measured **covariance**, how much dimensions vary and how much together, with a round "
        "one, the more the fewer sentences there are, so that "
        f"weak directions are trusted less. Raw, the last layer scores {written(raw)}. **What does it score under a "
        f"shrunk map that was fitted on n = {_narrow(space)} sentences?**"
    )


def shrunk(space: LayerEmbeddings) -> Answer:
    """The score of the shrunk map of few sentences, and how far from the plain one's it is with all."""
    setting = setting_on(space, _SETTING)
    both = [setting, setting.with_(whitening="shrunk")]
    (few, plain), (mended, rescued) = _draws(space, both, [_narrow(space), space.n_sentences])
    before, after = few[0], mended[0]
    gains = [shrunk - unshrunk for shrunk, unshrunk in zip(mended, few, strict=True)]
    effect = (
        "shrinkage gains in each"
        if min(gains) > 0
        else "shrinkage costs in each"
        if max(gains) < 0
        else "whether shrinkage gains hangs on the draw"
    )
    gap = rescued[0] - plain[0]
    less = ": with more to measure from, less has to be mixed in" if abs(gap) < min(map(abs, gains)) else ""
    words = (
        f"With n = {_narrow(space)}: plain {written(before)}, shrunk {written(after)} on the first step's draw. Over "
        f"{_DRAWS} draws: plain {_range(few)}, shrunk {_range(mended)}; {effect}. With all sentences the two are "
        f"{written(abs(gap))} points apart{less}."
    )
    numbers = {"plain": before, "shrunk": after, "apart with all sentences": abs(gap)}
    numbers |= _ends("plain", few) | _ends("shrunk", mended)
    return Answer(after, words, numbers)


REMEDIES = (
    "Fit on more sentences",
    "Shrink the covariance",
    "Keep a quarter of the dimensions",
    "Take ZCA instead of PCA whitening",
    "Take Cholesky instead of PCA whitening",
)


def remedies(space: LayerEmbeddings) -> Answer:
    """What raises the score where there are as many sentences as dimensions."""
    plain, size = setting_on(space, _SETTING), _narrow(space)
    settings = [
        plain,
        plain.with_(whitening="shrunk"),
        plain.with_(k=max(1, space.dim // 4)),
        plain.with_(whitening="zca"),
        plain.with_(whitening="cholesky"),
    ]
    few = [scores for (scores,) in _draws(space, settings, [size])]
    ((many,),) = _draws(space, [plain], [space.n_sentences])
    reached = dict(zip(REMEDIES, [many, *few[1:]], strict=True))
    least = {name: min(map(sub, scores, few[0])) for name, scores in reached.items()}
    good = tuple(name for name, gain in least.items() if gain > _ENOUGH)
    if len(good) < 2:
        raise NoAnswer(f"fewer than two of the five are worth {_ENOUGH:g} points here, so there are no two to choose")
    raw, mended = spearman(space, plain.raw), max(sum(scores) / _DRAWS for scores in reached.values())
    against_raw = f"The highest mean of the draws is {written(mended)}, and the raw layer has {written(raw)}" + (
        f": within {_ENOUGH:g} points, so a mended map is worth no more than none here."
        if abs(mended - raw) <= _ENOUGH
        else ": a mended map is worth having here."
        if mended > raw
        else ": not to whiten is a remedy too, and the best here."
    )
    every = "; ".join(f"{name[0].lower()}{name[1:]} {_range(scores)}" for name, scores in reached.items())
    words = (
        f"Plain PCA whitening scores {_range(few[0])} over {_DRAWS} random draws of {size} sentences. With a remedy: "
        f"{every}. ZCA and Cholesky only turn what PCA gives. {len(good)} of the five are worth more than {_ENOUGH:g} "
        f"points in every draw; where their ranges overlap, no draw ranks them. {against_raw}"
    )
    numbers = {"raw": raw, "mended": mended}
    for name, scores in {"Plain": few[0], **reached}.items():
        numbers |= _ends(name, scores)
    return Answer(good, words, numbers, accepted=good)


LESSON = Lesson(
    5,
    "How many sentences does a map need?",
    "Is a map fitted on as many sentences as there are dimensions good enough?",
    "whitening",
    _SETTING,
    8,
    "draw a score over the number of sentences before it is run",
    "where it falls, and what shrinkage does there",
    "More sentences always help, a little each.",
    (
        Step(_ask_curve, _names, by_sentences, scored=_SETTING, slow="Fitting on more and more sentences"),
        Step(
            _ask_shrunk,
            Number("Score of the shrunk map", 0.0, 100.0, 0.5, 3.0),
            shrunk,
            scored=_SETTING,
            slow="Fitting shrunk maps",
        ),
        Step(
            "A map was fitted on as many sentences as there are dimensions, and there is no time for a better model. "
            "**Name two remedies.**",
            Choice(
                REMEDIES,
                several=2,
                rule=f"Right are two that gain more than {_ENOUGH:g} points in each of {_DRAWS} draws.",
            ),
            remedies,
            scored=_SETTING,
            slow="Fitting on several draws",
        ),
    ),
)
