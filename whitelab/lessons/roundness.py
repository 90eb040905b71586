"""Lesson 2: centred is not isotropic."""

from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.lessons import clouds
from whitelab.lessons.lesson import Answer, Choice, Cloud, Lesson, Number, Step, moved, setting_on, written
from whitelab.sweeps.layer_profiles import shape

_FLAT = (2.0, 0.5)
_NEAR = 0.1  # a change of the mean cosine below which it stays

_WAYS = {
    "rises": "It rises towards 1: the points lie along one line now",
    "stays": "It stays at about 0",
    "falls": "It falls towards -1: the points lie at opposite ends",
}


def stretched(space: None = None) -> Answer:
    """What four times the width for its height does to the mean cosine of a centred cloud."""
    before, after = clouds.measured("axes", (1.0, 1.0)), clouds.measured("axes", _FLAT)
    way = moved(before.mean_cosine, after.mean_cosine, _NEAR)
    words = (
        f"Mean cosine {written(before.mean_cosine)} before and {written(after.mean_cosine)} after: it {way}. Every "
        "point has a counterpart on the other side of the origin, so for each cosine near 1 there is one near -1; that "
        "counterpart, at -1 exactly, is why it lies a little below 0. What did change is the **participation ratio**, "
        f"the number of directions that share the variance: {written(before.participation_ratio)} of 2 before, "
        f"{written(after.participation_ratio)} after."
    )
    numbers = {
        "mean cosine before": before.mean_cosine,
        "mean cosine after": after.mean_cosine,
        "participation ratio before": before.participation_ratio,
        "participation ratio after": after.participation_ratio,
    }
    return Answer(_WAYS[way], words, numbers)


def refuted(state: clouds.State) -> Answer:
    """How far a stretched cloud is from a participation ratio of 1.5 or less, at mean cosine 0."""
    here = clouds.measured("axes", state)
    cosine, ratio = here.mean_cosine, here.participation_ratio
    missing = max(ratio - 1.5, 0.0) + max(abs(cosine) - 0.05, 0.0)
    end = (
        "A space can be centred and still use few of its directions: the claim is refuted."
        if missing <= 0
        else "That is still nearly round: pull the axes further apart."
    )
    words = (
        f"Your ellipse has a mean cosine of {written(cosine)} and a participation ratio of {written(ratio)} of 2. {end}"
    )
    return Answer(missing, words, {"mean cosine": cosine, "participation ratio": ratio})


def _directions(space: LayerEmbeddings) -> Number:
    return Number("Directions that share the variance", 1, space.dim, 1, 0.25, relative=True)


def _ask_ratio(space: LayerEmbeddings) -> str:
    setting = setting_on(space, "L1:pca")
    return (
        f"Back to the sentences. Layer {setting.layers[0]} has {space.dim} dimensions. Centre it: move the mean of "
        "the sentences to the origin. **How many directions share the variance, by the participation ratio?** It would "
        f"be 1 if one direction held everything, and {shape(space, setting).rank} at most, if all that they span held "
        "the same."
    )


def shared_variance(space: LayerEmbeddings) -> Answer:
    """The participation ratio of the centred layer, and of the whitened one."""
    centred, white = (shape(space, setting_on(space, text)) for text in ("L1:center", "L1:pca"))
    ratio = centred.participation_ratio
    flat = ": the sentences fill a flat ellipsoid" if ratio < white.rank / 2 else ""
    words = (
        f"Centred, the mean cosine is {written(centred.mean_cosine)} and the participation ratio {written(ratio)} of "
        f"{white.rank} at most{flat}. Whitening stretches every kept direction to the same "
        f"length: mean cosine {written(white.mean_cosine)}, participation ratio {written(white.participation_ratio)}, "
        "as many as the sentences span. "
        "So the two measures answer two questions, and a space needs both to be round."
    )
    numbers = {
        "mean cosine, centred": centred.mean_cosine,
        "participation ratio, centred": ratio,
        "mean cosine, whitened": white.mean_cosine,
        "participation ratio, whitened": white.participation_ratio,
    }
    return Answer(ratio, words, numbers)


LESSON = Lesson(
    2,
    "Is centred the same as isotropic?",
    "If random sentences have a mean cosine of 0, is every direction used alike?",
    "anisotropy",
    "L1:center",
    5,
    "drag the axes of an ellipse around the origin",
    "the mean cosine and the participation ratio, side by side",
    "A mean cosine of 0 means that the space is isotropic.",
    (
        Step(
            "The cloud lies around the origin: it is **centred**. Now it is pulled to twice its width and pressed to "
            "half its height. **What happens to the mean cosine of two random points?**",
            Choice(tuple(_WAYS.values()), rule="A change of less than 0.1 counts as staying."),
            stretched,
            needs="",
            picture=("axes", (1.0, 1.0), _FLAT),
        ),
        Step(
            "Somebody says: *mean cosine 0, so the space is isotropic*, which means the same in all directions. "
            "**Drag the two axes to an ellipse that refutes it.**",
            Cloud("axes", "Right with a mean cosine within 0.05 of 0 and a participation ratio of at most 1.50.", 1e-9),
            refuted,
            needs="cloud",
        ),
        Step(_ask_ratio, _directions, shared_variance),
    ),
)
