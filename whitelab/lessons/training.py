"""Lesson 10: whether training finds what whitening computes.

A whitening is a linear map in closed form. Here a linear map is trained instead, on the open space's own vectors, with
three objectives of the training page: seconds, where training the model itself takes minutes.
"""

from dataclasses import asdict, dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.lessons.lesson import (
    SCORE,
    Answer,
    Choice,
    Lesson,
    NoAnswer,
    Number,
    Step,
    setting_on,
    spearman,
    written,
)
from whitelab.scoring.setting import Setting
from whitelab.statistics.geometry import normalize, usual_positives
from whitelab.sweeps.layer_profiles import losses as losses_of
from whitelab.sweeps.layer_profiles import shape
from whitelab.training.objectives import losses

_SETTING = "L1:pca"
_STEPS, _EVERY, _BATCH, _WIDTH, _RATE, _DROPOUT = 60, 15, 256, 32, 0.02, 0.1
_COLLAPSED = 0.9  # mean cosine of two random sentences from which on they count as one place

OBJECTIVES = {"simcse": "SimCSE", "w-mse": "W-MSE", "mse": "Plain MSE"}


@dataclass(frozen=True)
class Point:
    """Where a map stands after `step` steps."""

    step: int
    spearman: float
    alignment: float
    uniformity: float
    mean_cosine: float
    effective_rank: float


def _width(space: LayerEmbeddings) -> int:
    """Directions of the map, no more than whitening could keep of so few sentences."""
    return min(_WIDTH, space.dim, max(1, space.n_sentences // 3))


def _batch(space: LayerEmbeddings) -> int:
    """Sentences of a step."""
    return min(_BATCH, space.n_sentences)


def trained(space: LayerEmbeddings, objective: str) -> tuple[Point, ...]:
    """A linear map of the setting's layers, trained with an objective, from its start on.

    Each step takes a batch of sentences twice, with other coordinates dropped: what the objective pulls together.
    """
    x = normalize(space.combine(setting_on(space, _SETTING).layers)).float() * space.dim**0.5
    generator = torch.Generator().manual_seed(0)
    width = _width(space)
    start = torch.linalg.qr(torch.randn(space.dim, width, generator=generator, dtype=x.dtype))[0]
    weights = start.requires_grad_(True)
    optimiser = torch.optim.Adam([weights], lr=_RATE)
    points = [_point(space, x @ weights.detach(), 0)]
    for step in range(1, _STEPS + 1):
        rows = x[torch.randperm(len(x), generator=generator)[: _batch(space)]]
        kept = torch.rand(2, *rows.shape, generator=generator, dtype=x.dtype) >= _DROPOUT
        loss = _loss(objective, (rows * kept / (1 - _DROPOUT)) @ weights, generator)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % _EVERY == 0:
            points.append(_point(space, x @ weights.detach(), step))
    return tuple(points)


def _loss(objective: str, z: Float[Tensor, "2 b w"], generator: torch.Generator) -> Float[Tensor, ""]:
    if objective == "simcse":
        return losses.contrastive(z)
    if objective == "w-mse":
        return losses.w_mse(z, generator, size=z.shape[1], eps=1e-3)
    return losses.mse(z)


def _point(space: LayerEmbeddings, z: Float[Tensor, "n w"], step: int) -> Point:
    """Measured as every layer is: the mapped vectors stand for a layer of their own."""
    made = replace(space, values=z[None], texts={})
    setting = Setting((0,), pooling=space.origin.pooling)
    loss, form = losses_of(made, setting, usual_positives(made.gold)), shape(made, setting)
    if loss.spearman != loss.spearman:
        raise NoAnswer("the score of a trained map is not defined on this data")
    return Point(step, loss.spearman, loss.alignment, loss.uniformity, form.mean_cosine, form.effective_rank)


def paths(space: LayerEmbeddings) -> dict[str, tuple[Point, ...]]:
    """The three runs, kept with the space."""
    return space.kept("trained maps", lambda: {name: trained(space, name) for name in OBJECTIVES})


def _last(space: LayerEmbeddings) -> dict[str, Point]:
    return {OBJECTIVES[name]: path[-1] for name, path in paths(space).items()}


def _started_apart(space: LayerEmbeddings) -> Point:
    """Where all runs start. Raises NoAnswer where a collapse would be nothing new."""
    start = paths(space)["mse"][0]
    if start.mean_cosine >= _COLLAPSED:
        raise NoAnswer(
            f"two random sentences have a mean cosine of {written(start.mean_cosine)} before the first step, so that "
            "nothing is left to collapse"
        )
    return start


def _ask_collapse(space: LayerEmbeddings) -> str:
    _started_apart(space)
    (layer,) = setting_on(space, _SETTING).layers
    return (
        f"A whitening is a linear map. Train one instead, on layer {layer}: it starts at {_width(space)} random "
        f"directions. Every step takes a **batch** of {_batch(space)} sentences, each of them twice with a tenth of "
        "its numbers dropped at random, its two **views**, and pulls the two together. **SimCSE** also pushes all "
        "other sentences of the batch away, its negatives. **W-MSE** has none, but whitens the batch first. "
        f"**Plain MSE** only pulls. **Which one puts all sentences into one place within {_STEPS} steps?**"
    )


def _ask_without_negatives(space: LayerEmbeddings) -> str:
    start = _started_apart(space)
    return (
        "W-MSE has no negatives: no part of it asks for two sentences to be far apart. At random directions, before "
        f"the first step, two random sentences have a mean cosine of {written(start.mean_cosine)}. **What is it under "
        f"W-MSE's map after {_STEPS} steps?**"
    )


_NOBODY = "None of them"


def collapse(space: LayerEmbeddings) -> Answer:
    """Which run ends with all sentences in one place."""
    start, ends = _started_apart(space), _last(space)
    worst = max(ends, key=lambda name: ends[name].mean_cosine)
    fallen = tuple(name for name, point in ends.items() if point.mean_cosine >= _COLLAPSED)
    shown = fallen or (worst,)  # of the others the next step asks
    every = ", ".join(f"{name} {written(ends[name].mean_cosine)}" for name in shown)
    if fallen:
        why = f"{' and '.join(fallen)} ended where sentences point nearly the same way: that is a **collapse**."
        if fallen == (OBJECTIVES["mse"],):
            why += " An objective that only pulls together is satisfied best by one point for everything."
    else:
        why = f"None reaches {_COLLAPSED:g}, so none has collapsed here; {worst} comes nearest."
    words = (
        f"Mean cosine of two random sentences under the map: {written(start.mean_cosine)} before the first step, at "
        f"random directions. After "
        f"{written(_STEPS)} steps: {every}. {why}"
    )
    numbers = {"before": start.mean_cosine, "steps": _STEPS} | {name: ends[name].mean_cosine for name in shown}
    return Answer(worst if fallen else _NOBODY, words, numbers, accepted=fallen or (_NOBODY,))


def without_negatives(space: LayerEmbeddings) -> Answer:
    """How near two random sentences are under the map of W-MSE, beside those of the other runs."""
    _started_apart(space)
    cosines = {name: point.mean_cosine for name, point in _last(space).items()}
    every = ", ".join(f"{name} {written(cosine)}" for name, cosine in cosines.items())
    fallen = {name for name, cosine in cosines.items() if cosine >= _COLLAPSED}
    if "W-MSE" in fallen:
        why = "W-MSE has collapsed here."
    elif "Plain MSE" in fallen:
        why = (
            "W-MSE compares views only after it has whitened the batch. A batch whose sentences all lie in one place "
            "cannot be whitened, so the collapse is ruled out without negatives."
        )
        if "SimCSE" not in fallen:
            why += " SimCSE keeps them apart too, but it has negatives: every other sentence of the batch."
    else:
        why = "Plain MSE, which does not whiten, keeps sentences apart too after these few steps."
    words = f"Mean cosine of two random sentences after {written(_STEPS)} steps: {every}. {why}"
    return Answer(cosines["W-MSE"], words, {"steps": _STEPS} | cosines, paths=_records(space))


def _records(space: LayerEmbeddings) -> dict[str, tuple[dict, ...]]:
    """The runs for the plane of alignment and uniformity."""
    return {name: tuple(map(asdict, path)) for name, path in paths(space).items()}


def _ask_gain(space: LayerEmbeddings) -> str:
    setting = setting_on(space, _SETTING)
    raw, (layer,) = spearman(space, setting.raw), setting.layers
    return (
        f"{SCORE} Raw, layer {layer} has {written(raw)}. A map that starts at {_width(space)} random directions of it "
        f"is trained for {_STEPS} steps of SimCSE, which reads sentences only, never a **gold score**, people's mark "
        "of a pair. **What does the trained map score?**"
    )


def against_whitening(space: LayerEmbeddings) -> Answer:
    """The trained map beside the closed form of as many directions."""
    path, ends = paths(space)["simcse"], _last(space)
    setting = setting_on(space, _SETTING)
    raw = spearman(space, setting.raw)
    white = spearman(space, setting.with_(k=_width(space)))
    after = path[-1].spearman
    side = "ahead of" if after > white else "behind"
    fallen = [name for name, point in ends.items() if point.mean_cosine >= _COLLAPSED and point.spearman > 20]
    slip = (
        f" That {' and '.join(fallen)} still rank{'s' * (len(fallen) == 1)} pairs at a mean cosine of {_COLLAPSED:g} "
        "or more is no slip: ranks see differences however small."
        if fallen
        else ""
    )
    words = (
        f"SimCSE's map goes from {written(path[0].spearman)} to {written(after)}; W-MSE's ends at "
        f"{written(ends['W-MSE'].spearman)}, plain MSE's at {written(ends['Plain MSE'].spearman)}. The raw layer "
        f"scores {written(raw)}, and PCA whitening to as many directions, which takes one formula and no step, "
        f"{written(white)}: after these steps training is {side} it.{slip} Training a whole model, on the page "
        "below, can change what the directions mean, and a linear map cannot."
    )
    numbers = {"start": path[0].spearman, "raw": raw, "PCA whitening": white} | {n: p.spearman for n, p in ends.items()}
    return Answer(after, words, numbers)


LESSON = Lesson(
    10,
    "Can training do it instead?",
    "Whitening is a formula. Can a few steps of training find as good a map?",
    "training",
    _SETTING,
    7,
    "predict what three objectives do side by side",
    "paths in the plane of alignment and uniformity, and a collapse",
    "Pulling the two views of a sentence together is enough to learn from.",
    (
        Step(
            _ask_collapse,
            Choice((*OBJECTIVES.values(), _NOBODY), rule=f"That is a mean cosine of at least {_COLLAPSED:g}."),
            collapse,
            slow="Training three maps",
        ),
        Step(
            _ask_without_negatives,
            Number("Mean cosine under W-MSE's map", -1.0, 1.0, 0.01, 0.15),
            without_negatives,
            slow="Training three maps",
        ),
        Step(
            _ask_gain,
            Number("Score after training", 0.0, 100.0, 0.5, 3.0),
            against_whitening,
            scored=f"{_SETTING}@1",
            slow="Training three maps",
        ),
    ),
)
