"""Lesson 6: how many dimensions to keep, and which."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.lessons.lesson import (
    SCORE,
    Answer,
    Choice,
    Curve,
    Lesson,
    NoAnswer,
    Number,
    Step,
    difference,
    setting_on,
    spearman,
    written,
)
from whitelab.statistics import geometry
from whitelab.sweeps.dimensions import KCurve, k_curve
from whitelab.sweeps.layer_profiles import shape

_SETTING = "L-1:pca"
_DRAWS = 5  # of random coordinates, averaged
_GAMMAS = (0.0, 0.25, 0.5, 0.75, 1.0)
_NEAR = 1.0  # points that a quarter of the memory may cost
_TIE = 0.5  # points between scores that count as one

_KEPT = {
    "prefix": "The first half of the coordinates, as they come",
    "random": "A random half of the coordinates",
    "pca": "The strongest half of the directions, whitened",
    "soft": "The strongest half of the directions, softly whitened",
}
_NO_LEAD = "None of them leads"
_CONTROLS = ("first coordinates", "random coordinates")


def coordinates_score(space: LayerEmbeddings, layers: tuple[int, ...], columns: Tensor) -> float:
    """Spearman x 100 of raw vectors of which only these coordinates are kept."""
    x: Float[Tensor, "n k"] = space.combine(layers)[:, columns]
    cosines = geometry.row_cosines(x, space.first, space.second)
    rho = float(space.judged.spearman(cosines))
    if rho != rho:
        raise NoAnswer("the score of these coordinates is not defined on this data")
    return 100 * rho


def prefix_score(space: LayerEmbeddings, layers: tuple[int, ...], k: int) -> float:
    """The score of the first k coordinates."""
    return coordinates_score(space, layers, torch.arange(k))


def random_score(space: LayerEmbeddings, layers: tuple[int, ...], k: int) -> float:
    """The mean score of k random coordinates, over several draws."""
    generator = torch.Generator().manual_seed(0)
    draws = [torch.randperm(space.dim, generator=generator)[:k] for _ in range(_DRAWS)]
    return sum(coordinates_score(space, layers, columns) for columns in draws) / _DRAWS


def halves_of(space: LayerEmbeddings) -> dict[str, float]:
    """The score of half of the dimensions, kept in four ways."""
    setting, k = setting_on(space, _SETTING), max(1, space.dim // 2)
    return {
        "prefix": prefix_score(space, setting.layers, k),
        "random": random_score(space, setting.layers, k),
        "pca": spearman(space, setting.with_(k=k)),
        "soft": spearman(space, setting.with_(whitening="soft", k=k)),
    }


def which_half(space: LayerEmbeddings) -> Answer:
    """Which half of the dimensions leads, if any."""
    raw = spearman(space, setting_on(space, _SETTING).raw)
    scores = halves_of(space)
    second, best = sorted(scores, key=scores.get)[-2:]
    lead = difference(scores[best], scores[second])
    controls, made = max(scores["prefix"], scores["random"]), max(scores["pca"], scores["soft"])
    why = (
        f"The two controls show what half of the memory gives for free: {written(controls)} at best. The better of the "
        f"two maps has {written(made)}. What a map adds must be compared with the controls, not with nothing."
    )
    words = (
        f"All {space.dim} raw: {written(raw)}. Half of them: first coordinates {written(scores['prefix'])}, random "
        f"ones {written(scores['random'])}, strongest directions whitened {written(scores['pca'])}, softly whitened "
        f"{written(scores['soft'])}. The highest is {written(lead)} points above the next. {why}"
    )
    numbers = {"raw": raw, "lead": lead} | {_KEPT[name]: value for name, value in scores.items()}
    return Answer(_KEPT[best] if lead > _TIE else _NO_LEAD, words, numbers)


def _ks(space: LayerEmbeddings) -> dict[str, int]:
    fractions = {
        f"d/{step}" if step > 1 else "d": max(min(2, space.dim), space.dim // step) for step in (16, 8, 4, 2, 1)
    }
    return {f"k = {k} ({name})": k for name, k in fractions.items()}


def _ask_curve(space: LayerEmbeddings) -> Curve:
    raw = spearman(space, setting_on(space, _SETTING).raw)
    names = tuple(_ks(space))
    # From where it is right for nobody who has drawn nothing.
    return Curve(names, 0.0, 100.0, (10.0 if raw >= 50 else 90.0,) * len(names), 4.0)


def _at(curve: KCurve, k: int) -> float:
    if curve.spearman[k - 1] is None:
        raise NoAnswer("the score is not defined at every k on this data")
    return curve.spearman[k - 1]


def _against(whitened: Sequence[float], control: Sequence[float]) -> str:
    """At how many k whitening is ahead of a control, level with it and behind it."""
    leads = [white - free for white, free in zip(whitened, control, strict=True)]
    ahead, behind = sum(lead > _TIE for lead in leads), sum(lead < -_TIE for lead in leads)
    return f"ahead at {ahead}, level at {len(leads) - ahead - behind} and behind at {behind}"


def over_k(space: LayerEmbeddings) -> Answer:
    """The whitened score at a few k, beside the same of soft whitening and of the two controls."""
    setting = setting_on(space, _SETTING)
    end = spearman(space, setting)
    curve, soft = (k_curve(space, variant, by_subset=False) for variant in (setting, setting.with_(whitening="soft")))
    ks = _ks(space)
    curves = {
        "whitened": tuple(_at(curve, k) for k in ks.values()),
        "softly whitened": tuple(_at(soft, k) for k in ks.values()),
        "first coordinates": tuple(prefix_score(space, setting.layers, k) for k in ks.values()),
        "random coordinates": tuple(random_score(space, setting.layers, k) for k in ks.values()),
    }
    top = _at(curve, curve.best_k)
    above = difference(top, end)
    every = f"all {curve.rank} directions"
    if curve.rank < space.dim:
        every += f" (in the others of {space.dim} the sentences do not differ)"
    more = (
        f"More is not better: with {every} the score is {written(above)} points lower"
        if above > _TIE
        else f"With {every} it is {written(above)} points lower"
    )
    controls = "; ".join(f"against {name} {_against(curves['whitened'], curves[name])}" for name in _CONTROLS)
    scores = ", ".join(f"{name} {written(value)}" for name, value in zip(ks, curves["whitened"], strict=True))
    words = (
        f"Whitened: {scores}. Its best is {written(top)} at k = {curve.best_k}. {more}. Whitening gives the last "
        f"direction the same weight as the first, however little it holds. The controls choose nothing, and at k = d "
        f"they are the raw vectors. At these {len(ks)} k, with {_TIE:g} points or less taken for level, whitening is: "
        f"{controls}."
    )
    numbers = dict(zip(ks, curves["whitened"], strict=True)) | {"best": top, "best above the end": above}
    return Answer(curves["whitened"], words, numbers, curves=curves)


def best_gamma(space: LayerEmbeddings) -> Answer:
    """The exponent with the highest score where all directions are kept, and how much it matters at a quarter."""
    setting, quarter = setting_on(space, _SETTING), max(1, space.dim // 4)
    scores, few = (
        {gamma: spearman(space, setting.with_(whitening=f"soft:gamma={gamma:g}", k=k)) for gamma in _GAMMAS}
        for k in (None, quarter)
    )
    best, raw = max(scores, key=scores.get), spearman(space, setting.raw)
    close = tuple(gamma for gamma, value in scores.items() if value >= scores[best] - _TIE)
    spread, spread_few = (difference(max(one.values()), min(one.values())) for one in (scores, few))
    lead = f"Highest is γ = {written(best)}"
    if best == 0:
        lead += ": of these five none beats leaving the directions as they are"
    elif 0.0 in close:
        lead += f", by no more than {_TIE:g} points over no scaling at all (γ = 0)"
    at_quarter = f"With only k = {quarter} kept they lie within {written(spread_few)} points of each other" + (
        f", and here within {written(spread)}: most of what scaling changes lies in the weaker directions, which are "
        "left out there"
        if spread_few < spread / 2
        else ""
    )
    every = ", ".join(f"γ = {gamma:g} {written(value)}" for gamma, value in scores.items())
    words = f"All {shape(space, setting).rank} directions: {every}; raw {written(raw)}. {lead}. {at_quarter}."
    numbers = {f"γ = {gamma:g}": value for gamma, value in scores.items()}
    numbers |= {"raw": raw, "best γ": best, "spread at a quarter": spread_few}
    return Answer(best, words, numbers, accepted=close)


def _ask_k(space: LayerEmbeddings) -> Number:
    return Number("Your k", 1, space.dim, 1, 0, words="Every k that keeps both promises counts as right.")


def _ask_quarter(space: LayerEmbeddings) -> str:
    return (
        f"Whitened, the last layer scores highest at some k. **Name a k that takes at most a quarter of the memory of "
        f"all {space.dim} and scores at most {_NEAR:g} point less than that.**"
    )


def quarter_of_the_memory(space: LayerEmbeddings) -> Answer:
    """Every k of at most d / 4 whose score is at most a point below that of the best k."""
    end = spearman(space, setting_on(space, _SETTING))
    curve = k_curve(space, setting_on(space, _SETTING), by_subset=False)
    top, quarter = _at(curve, curve.best_k), max(1, space.dim // 4)
    good = tuple(k for k in range(1, quarter + 1) if _at(curve, k) >= top - _NEAR)
    if not good:
        raise NoAnswer(f"no k up to {quarter} stays within {_NEAR:g} point of {written(top)}, the best")
    best = max(good, key=lambda k: _at(curve, k))
    at_best = "the best of all" if best == curve.best_k else f"against {written(top)} at k = {curve.best_k}, the best"
    words = (
        f"{len(good)} of the {quarter} values up to a quarter of the memory will do, the least of them k = {good[0]}. "
        f"Of them k = {best} scores highest: {written(_at(curve, best))}, {at_best}. All {curve.rank} directions have "
        f"{written(end)}."
    )
    numbers = {"best": top, "best of at most a quarter": _at(curve, best), "with all": end}
    return Answer(best, words, numbers, accepted=good)


LESSON = Lesson(
    6,
    "How many dimensions?",
    "Which half of the dimensions can go, and at what price?",
    "dimensions",
    _SETTING,
    8,
    "draw a score over k, and choose an exponent",
    "four curves: whitened, softly whitened, first and random coordinates",
    "The first coordinates matter most, and every dimension that is dropped costs something.",
    (
        Step(
            "Memory and search time grow with the number of dimensions. Keep half of them, of the last layer. The "
            "strongest directions are those along which sentences differ most; softly whitened, they are turned down "
            f"half as far as whitened. {SCORE} **Which half scores highest?**",
            Choice(
                (*_KEPT.values(), _NO_LEAD),
                rule=f"To lead is to be more than {_TIE:g} points above each of the others.",
            ),
            which_half,
            scored="L-1",
        ),
        Step(
            "Order the directions by how much variance they hold, keep the first k, and whiten them. **Draw the "
            "score.** Two controls, first and random coordinates of the raw vectors, will stand beside it.",
            _ask_curve,
            over_k,
            scored=_SETTING,
        ),
        Step(
            "Between leaving the directions as they are (γ = 0) and whitening them fully (γ = 1) lies everything in "
            "between: each direction is divided by its spread to the power γ. **Which γ scores highest with all "
            "directions kept?** Measured are 0, 0.25, 0.5, 0.75 and 1.",
            Number(
                *("γ, exponent", 0.0, 1.0, 0.05, 0.125),
                words=f"Within 0.125 of a γ that scores within {_TIE:g} points of the highest counts as right.",
            ),
            best_gamma,
            scored=_SETTING,
        ),
        Step(_ask_quarter, _ask_k, quarter_of_the_memory, scored=_SETTING),
    ),
)
