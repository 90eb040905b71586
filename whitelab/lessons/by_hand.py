"""Lesson 3: whiten by hand, and why the three classical whitenings tie."""

import torch

from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.lessons import clouds
from whitelab.lessons.lesson import (
    SCORE,
    Answer,
    Choice,
    Cloud,
    Curve,
    Lesson,
    NoAnswer,
    Step,
    difference,
    setting_on,
    spearman,
    written,
)
from whitelab.statistics import geometry
from whitelab.sweeps.layer_profiles import transformed

FORMS = {"pca": "PCA", "zca": "ZCA", "cholesky": "Cholesky"}
_SETTING = "L2:pca"  # not the layer of lesson 4, whose answer would stand here
_TIE = 0.1  # points of Spearman x 100 below which two scores count as equal


def whitened_by_hand(state: clouds.State) -> Answer:
    """How far the covariance of the turned and stretched cloud is from the identity."""
    here = clouds.measured("turn", state)
    across, upwards, shared = here.covariance
    apart = max(float((a - b).abs().max()) for a, b in _ghost_cosines())
    alike = f"differs by {written(apart)} at most" if apart >= 0.005 else f"is the same in all ({written(apart)} apart)"
    done = (
        "That is the identity, near enough: you have whitened it."
        if here.from_identity <= 0.15
        else "The identity has 1.00, 1.00 and 0.00. Turn until the longer axis lies level, then stretch."
    )
    words = (
        f"Your covariance has {written(across)} across, {written(upwards)} upwards and {written(shared)} between the "
        f"two. {done} The coloured points are three whitenings of the same cloud. **PCA** whitening turns its long "
        "axis level and then stretches; **ZCA** turns that back again, so that points move the least; **Cholesky** "
        "makes one new coordinate after the other, each from the old ones up to its place. They are turned or mirrored "
        "against each other (your rings lie around one of them where yours is turned as that is). The cosine of any "
        f"two points {alike}."
    )
    numbers = {
        "variance across": across,
        "variance upwards": upwards,
        "covariance": shared,
        "cosines of the ghosts differ by": apart,
    }
    return Answer(here.from_identity, words, numbers)


def _ghost_cosines():
    tables = [u @ u.T for u in map(geometry.normalize, clouds.ghosts().values())]
    return [(tables[0], other) for other in tables[1:]]


def _ask_bars(space: LayerEmbeddings) -> str:
    setting = setting_on(space, _SETTING)
    layer, raw = setting.layers[0], spearman(space, setting.raw)
    return (
        f"The same with real sentences. {SCORE} Layer {layer} scores {written(raw)} raw. PCA, ZCA and Cholesky "
        "whitening are three ways to get the identity there: variance 1 in every dimension, nothing shared between "
        "two. **Which of the three scores most, and by how much? Draw them.**"
    )


def _bars(space: LayerEmbeddings) -> Curve:
    return Curve(tuple(FORMS.values()), 0.0, 100.0, (20.0, 40.0, 60.0), 1.0, bars=True)


def three_bars(space: LayerEmbeddings) -> Answer:
    """The scores of the three whitenings."""
    setting = setting_on(space, _SETTING)
    raw = spearman(space, setting.raw)
    scores = {label: spearman(space, setting.with_(whitening=form)) for form, label in FORMS.items()}
    spread = difference(max(scores.values()), min(scores.values()))
    tie = (
        "The three tie, because each differs from another by a turn of the whole space only, and turning two arrows "
        "together leaves the angle between them."
        if spread <= _TIE
        else "They do not tie here."
    )
    gain = difference(scores["PCA"], raw)
    side = "a gain" if gain > 0 else "a loss"
    words = (
        f"{', '.join(f'{label} {written(value)}' for label, value in scores.items())}; raw {written(raw)}. {tie} "
        f"Against raw, PCA whitening is {side} of {written(abs(gain))} points on this layer and this data."
    )
    return Answer(tuple(scores.values()), words, {"raw": raw, "difference to raw": abs(gain)} | scores)


_STILL, _APART = "Yes, the three still tie", "No, they come apart"


def one_bit(space: LayerEmbeddings) -> Answer:
    """The scores of the three whitenings when only the sign of every coordinate is kept."""
    setting, scores = setting_on(space, _SETTING), {}
    for form, label in FORMS.items():
        bits = transformed(space, setting.with_(whitening=form)).sign()
        cosines = geometry.row_cosines(bits, space.first, space.second)
        scores[label] = 100 * float(space.judged.spearman(cosines, setting.aggregate))
    if any(value != value for value in scores.values()):
        raise NoAnswer("the score of signs is not defined on this data")
    spread = difference(max(scores.values()), min(scores.values()))
    whole = spearman(space, setting)
    tie = (
        f"They differ by up to {written(spread)} points: signs are read along the axes, and the three clouds are "
        "turned differently against the axes. A turn changes no angle, but it changes signs."
        if spread > _TIE
        else f"They differ by {written(spread)} points only: this data does not tell them apart even now."
    )
    words = (
        f"One bit a dimension: {', '.join(f'{label} {written(value)}' for label, value in scores.items())}; with "
        f"all of a float's bits PCA has {written(whole)}. {tie} One bit takes a thirty-second of the memory."
    )
    numbers = {f"{label}, one bit": value for label, value in scores.items()}
    return Answer(_APART if spread > _TIE else _STILL, words, numbers | {"PCA, all bits": whole, "spread": spread})


def ghost_points() -> dict[str, list[list[float]]]:
    """The three whitened clouds, to draw."""
    return {FORMS[name]: torch.round(points, decimals=4).tolist() for name, points in clouds.ghosts().items()}


LESSON = Lesson(
    3,
    "Whiten it yourself",
    "What does whitening do, and why do its three classical forms tie?",
    "whitening",
    _SETTING,
    8,
    "turn and stretch a leaning cloud until it is white",
    "three different clouds with one and the same matrix of cosines",
    "PCA, ZCA and Cholesky whitening are three methods, so one of them must score best.",
    (
        Step(
            "To **whiten** is to make a cloud round: variance 1 across, variance 1 upwards, and nothing shared between "
            "the two. A **covariance**, the table of those three numbers, is then called the **identity**. **Turn and "
            "stretch the leaning cloud until it fills the dashed circle.** Its covariance is measured each time you "
            "let go.",
            Cloud("turn", "Right where every number of the covariance is within 0.15 of 1, 1 and 0.", 0.15),
            whitened_by_hand,
            needs="cloud",
        ),
        Step(_ask_bars, _bars, three_bars, scored=_SETTING),
        Step(
            "Now keep one bit of every dimension: whether it is above or below 0. **Do the three still score the "
            "same?**",
            Choice((_STILL, _APART), rule=f"Scores within {_TIE:g} points count as tied."),
            one_bit,
            scored=_SETTING,
        ),
    ),
)
