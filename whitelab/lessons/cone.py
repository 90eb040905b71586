"""Lesson 1: what a cone is, and where the model has one."""

from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.encoding.pooling import UNIT
from whitelab.lessons import clouds
from whitelab.lessons.lesson import (
    Answer,
    Choice,
    Cloud,
    Lesson,
    NoAnswer,
    Number,
    Step,
    listed,
    setting_on,
    written,
)
from whitelab.statistics.geometry import CONE
from whitelab.sweeps.layer_profiles import layer_shapes

_AWAY = (2.0, 0.0)


def two_spreads_away(space: None = None) -> Answer:
    """The mean cosine of the round cloud, moved by two of its standard deviations."""
    there, centred = (clouds.measured("mean", state).mean_cosine for state in (_AWAY, (0.0, 0.0)))
    words = (
        f"Measured: {written(there)}; before the move it was {written(centred)}. The points have not changed their "
        "places among each other: only the origin, from which every arrow starts, lies at the edge of the cloud "
        "now. Seen from there, nearly all points lie on one side. That is a **cone**, and its measure is the mean "
        "cosine of two random points."
    )
    return Answer(there, words, {"moved by two spreads": there, "at the origin": centred})


def half(state: clouds.State) -> Answer:
    """How far the mean cosine of a moved cloud is from 0.5."""
    here = clouds.measured("mean", state).mean_cosine
    away = (state[0] ** 2 + state[1] ** 2) ** 0.5
    side = "about right" if abs(here - 0.5) <= 0.05 else "too far away" if here > 0.5 else "too near to the origin"
    words = (
        f"Your mean lies {written(away)} spreads from the origin and two random points have a mean cosine of "
        f"{written(here)}: {side} for 0.50. In which direction the cloud was moved matters little, how far matters "
        "much, measured by its own spread."
    )
    return Answer(abs(here - 0.5), words, {"distance": away, "mean cosine": here})


def _layers(space: LayerEmbeddings) -> Choice:
    names = tuple(f"Layer {layer}" for layer in range(space.n_layers))
    return Choice(names, rule="Right is the layer with the highest mean cosine, to two digits.")


def _ask_narrowest(space: LayerEmbeddings) -> str:
    if space.n_layers < 2:
        raise NoAnswer("it has one layer only, and none to choose from")
    lowest = (
        "In layer 0 no word has seen another yet; the" if space.origin.pooling in ("mean", f"{UNIT}mean") else "The"
    )
    return (
        f"A language model makes one such cloud in each of its layers, here in {space.dim} dimensions instead of two. "
        f"**Which of them is the narrowest cone?** {lowest} last layer is what is usually taken."
    )


def narrowest(space: LayerEmbeddings) -> Answer:
    """The layer whose random sentences have the highest mean cosine, raw; one vector for all is no cone."""
    shapes = layer_shapes(space, [setting_on(space, "L0")])
    cosines = {f"Layer {one.layers[0]}": one.mean_cosine for one in shapes}
    cones = {name: cosine for layer, (name, cosine) in enumerate(cosines.items()) if space.different((layer,)) > 1}
    if not cones:
        raise NoAnswer("every layer has one vector for all sentences")
    name, last = max(cones, key=cones.get), list(cosines)[-1]
    every = ", ".join(f"{layer.lower()} {written(value)}" for layer, value in cosines.items())
    as_narrow = tuple(one for one, cosine in cones.items() if written(cosine) == written(cones[name]))
    points = [one for one in cosines if one not in cones]
    words = f"Mean cosine of two random sentences: {every}. "
    if points:
        has = "have" if len(points) > 1 else "has"
        words += f"{listed(points)} {has} one vector for all sentences, which is no cone. "
    words += f"{listed(as_narrow)} {'are' if len(as_narrow) > 1 else 'is'} the narrowest. "
    if cones[name] < CONE:
        words += "No layer here is much of a cone."
    elif written(cones[name]) == written(1.0):
        words += "Two random sentences point almost the same way there: what tells them apart is beyond these digits."
    else:
        words += (
            f"A cosine of {written(cones[name])} looks like a likeness, and there it is what two random sentences have "
            "on average: only how far above it a pair lies says that the two are alike."
        )
    if cones[name] >= CONE and last in cones and last not in as_narrow:
        words += f" The last layer is {'hardly a cone' if cones[last] < CONE else 'a cone too'}."
    return Answer(name, f"{words} The page below shows all layers.", cosines, accepted=as_narrow)


LESSON = Lesson(
    1,
    "What is a cone?",
    "Why do two sentences that have nothing to do with each other get a high cosine?",
    "anisotropy",
    "L1:pca",
    5,
    "drag the middle of a two-dimensional cloud",
    "what that does to the histogram of cosines",
    "A high cosine means that two sentences are similar.",
    (
        Step(
            "A sentence is an arrow from the origin to a point, and a **cosine** says how nearly two arrows point the "
            "same way: 1 the same, 0 at a right angle, -1 opposite. Below lie 40 points around the origin, and two "
            "random ones have a mean cosine of about 0. Now the whole cloud moves to the right, by two **spreads**: a "
            "spread is how far a point typically lies from the middle to either side, and the ellipse around the cloud "
            "reaches two of them. **What is the mean cosine of two random points then?**",
            Number("Mean cosine", -1.0, 1.0, 0.01, 0.1),
            two_spreads_away,
            needs="",
            picture=("mean", (0.0, 0.0), _AWAY),
        ),
        Step(
            "**Drag the middle of the cloud to where two random points have a mean cosine of 0.50.** The numbers stay "
            "hidden until you hand it in; the histogram of cosines moves with your hand.",
            Cloud("mean", "Within 0.05 of 0.50 counts as right.", 0.05, blind=True),
            half,
            needs="cloud",
        ),
        Step(
            _ask_narrowest,
            _layers,
            narrowest,
        ),
    ),
)
