"""Lesson 9: whether the average of two layers is better than one layer."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from whitelab.base.wording import layers_in_words, spaced
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.lessons.lesson import (
    INTERVAL,
    SCORE,
    Answer,
    Choice,
    Lesson,
    NoAnswer,
    Number,
    Real,
    Step,
    check_apart,
    difference,
    half,
    setting_on,
    spearman,
    written,
)
from whitelab.statistics import correlation, geometry
from whitelab.statistics.significance import bootstrap

_SETTING = "L1+L-1"
_NEAR = 0.5  # points behind the best score that count as the best too

Layers = tuple[int, ...]


def cosines(space: LayerEmbeddings) -> dict[Layers, Float[Tensor, "p"]]:
    """The cosine of every pair in each layer, and in each average of two. Raises NoAnswer where there is one layer."""
    n = space.n_layers
    if n < 2:
        raise NoAnswer("it has one layer only, and an average needs two")
    every = [(a,) for a in range(n)] + [(a, b) for a in range(n) for b in range(a + 1, n)]
    return space.kept(
        "averages of two layers",
        lambda: {one: geometry.row_cosines(space.combine(one), space.first, space.second) for one in every},
    )


def scores(space: LayerEmbeddings, pairs: Bool[Tensor, "p"] | None = None) -> dict[Layers, float]:
    """Spearman x 100 of every layer and average of two, raw, on some of the pairs; what is not defined is left out."""
    spearman(space, "L-1")  # few pairs, or no score at all
    found = cosines(space)
    table = torch.stack(list(found.values()))
    table, gold = (table, space.gold) if pairs is None else (table[:, pairs], space.gold[pairs])
    values = (100 * correlation.spearman(table, gold)).tolist()
    return {layers: value for layers, value in zip(found, values, strict=True) if value == value}


def _gains(space: LayerEmbeddings) -> dict[Layers, float]:
    """What each average of two gains over the better of the two alone."""
    found = scores(space)
    gains = {
        pair: score - max(found[pair[:1]], found[pair[1:]])
        for pair, score in found.items()
        if len(pair) == 2 and {pair[:1], pair[1:]} <= found.keys()
    }
    if not gains:
        raise NoAnswer("fewer than two of its layers have a score")
    return gains


def _ask_count(space: LayerEmbeddings) -> str:
    count = len(_gains(space))
    return (
        f"The average of two layers is a vector as long as one layer's. {SCORE} Take every two layers of this model "
        f"that have a score, {count} averages, without any whitening. **How many score higher than the better of their "
        "two layers alone?**"
    )


def _count(space: LayerEmbeddings) -> Number:
    return Number("Averages ahead of both layers", 0, len(_gains(space)), 1, max(2, len(_gains(space)) // 10))


def ahead(space: LayerEmbeddings) -> Answer:
    """How many averages of two layers are ahead of both."""
    gains = _gains(space)
    higher = sum(gain > 0 for gain in gains.values())
    words = f"{written(higher)} of {written(len(gains))} are ahead of both of their layers"
    numbers = {"ahead": higher, "averages": len(gains)}
    kinds = {
        "neighbours": [gain for (a, b), gain in gains.items() if b - a == 1],
        "layers further apart": [gain for (a, b), gain in gains.items() if b - a > 1],
    }
    means = {name: sum(some) / len(some) for name, some in kinds.items() if some}
    numbers |= means
    leads = " and ".join(f"{mean:+z.2f} for {name}" for name, mean in means.items())
    words += (
        f". The mean lead of an average over the better of its two is {leads}. The score of an average is no average "
        "of scores, for the average of two vectors is another vector, with cosines of its own."
    )
    return Answer(higher, words, numbers)


def _candidates(space: LayerEmbeddings) -> dict[str, Layers]:
    last = setting_on(space, "L-1").layers[0]
    named = {
        "Layer 0 and the last": (0, last),
        "Layer 1 and the last": (1, last),
        "The last two": (last - 1, last),
        "The last layer alone": (last,),
    }
    known = scores(space)
    return {name: layers for name, layers in named.items() if layers in known}


def _ask_which(space: LayerEmbeddings) -> Choice:
    return Choice(tuple(_candidates(space)), rule=f"What scores within {_NEAR:g} points of the best counts, too.")


def rule_of_thumb(space: LayerEmbeddings) -> Answer:
    """Which of four choices that people make without looking scores best."""
    known = scores(space)
    found = {name: known[layers] for name, layers in _candidates(space).items()}
    best = max(found, key=found.get)
    every = "".join(f"\n- {name}: {written(score)}" for name, score in found.items())
    words = (
        f"Raw, on this model and these pairs:\n{every}\n\nWhiteningBERT averages layer 1 and the last, which did well "
        "on the models of its paper. A rule found on some models is a guess on another."
    )
    accepted = tuple(name for name, score in found.items() if score >= found[best] - _NEAR)
    return Answer(best, words, found, accepted=accepted)


@dataclass(frozen=True)
class Candidate:
    """Layers that may be chosen on a half of the pairs, and their score there and on the other."""

    layers: Layers
    seen: float
    unseen: float


def _on_halves(space: LayerEmbeddings) -> tuple[list[Candidate], Bool[Tensor, "p"]]:
    """Every layer and average of two with a score on both halves of the pairs, and which pairs are the other half."""
    late = half(space)
    for side in (late, ~late):
        check_apart(side)
    seen, unseen = scores(space, ~late), scores(space, late)
    return [Candidate(one, score, unseen[one]) for one, score in seen.items() if one in unseen], late


def chosen_on_half(space: LayerEmbeddings) -> tuple[Candidate, Candidate, Bool[Tensor, "p"]]:
    """The average of two and the layer that are best on a half of the pairs, and which pairs are the other half."""
    candidates, late = _on_halves(space)
    both = []
    for size in (2, 1):
        known = [one for one in candidates if len(one.layers) == size]
        if not known:
            raise NoAnswer("fewer than two of its layers have a score")
        both.append(max(known, key=lambda one: one.seen))
    return *both, late


_ENDS = {
    "gain": "The average is ahead, and hardly by luck",
    "chance": "Neither: the difference may be luck",
    "loss": "The single layer is ahead, and hardly by luck",
}


def on_the_other_half(space: LayerEmbeddings) -> Answer:
    """Whether the best average of a half of the pairs beats the best layer of that half on the other half."""
    average, layer, late = chosen_on_half(space)
    table = torch.stack([cosines(space)[one.layers][late] for one in (average, layer)])
    gold = space.gold[late]
    found = bootstrap(table, gold, torch.zeros(len(gold), dtype=torch.int64), 1).difference(0, 1)
    way = "gain" if found.low > 0 else "loss" if found.high < 0 else "chance"
    luck, places = _luck(space, average, layer)
    ahead_by = difference(average.unseen, layer.unseen)
    words = (
        f"Best on the half chosen on: the average of {layers_in_words(average.layers)} with {written(average.seen)}, "
        f"and {layers_in_words(layer.layers)} alone with {written(layer.seen)}. On the other half the average scores "
        f"{written(average.unseen)} and the layer {written(layer.unseen)}: a difference of {ahead_by:+z.2f}, "
        f"with a 95 % interval from {written(found.low)} to {written(found.high)}. {luck} The best of many may be the "
        "best by luck where it was chosen, so a choice is to be judged on pairs that had no part in it."
    )
    numbers = {"average, chosen on": average.seen, "layer, chosen on": layer.seen, "average": average.unseen}
    numbers |= {"layer": layer.unseen, "low": found.low, "high": found.high}
    return Answer(_ENDS[way], words, numbers | places)


def _luck(space: LayerEmbeddings, average: Candidate, layer: Candidate) -> tuple[str, dict[str, Real]]:
    """What may be luck of choosing: places that the chosen have lost among all candidates, not that scores change.

    How far a candidate's score changes from one half to the other hangs on how high it is, so changes tell nothing.
    Layers and averages are ranked together, as the question is whether one is ahead of the other.
    """
    every, _ = _on_halves(space)
    seen, unseen = ([getattr(one, side) for one in every] for side in ("seen", "unseen"))
    means = [sum(side) / len(every) for side in (seen, unseen)]
    numbers, places, lost = {"candidates": len(every), "all, chosen on": means[0], "all": means[1]}, [], False
    for name, chosen in {"the average": average, "the layer": layer}.items():
        before, after = _place(chosen.seen, seen), _place(chosen.unseen, unseen)
        numbers |= {f"{name}, place chosen on": before, f"{name}, place": after}
        places.append(f"{name} is number {before} on the half chosen on and number {after} on the other")
        if after > 1:
            behind = numbers[f"{name}, behind"] = difference(max(unseen), chosen.unseen)
            places[-1] += f", {written(behind)} points behind the best there"
        lost |= after > before
    words = (
        f"A half may be harder or easier for every choice: the mean of all {len(every)} layers and averages is "
        f"{written(means[0])} on the half chosen on and {written(means[1])} on the other. So that a score differs "
        "there need not be luck of choosing; that a place is lost may be. "
    ) + (
        f"Here some are: of all {len(every)} together, {', and '.join(places)}. That is luck of choosing, or the pairs "
        "of the other half are of another kind: two halves do not tell which."
        if lost
        else f"Here neither has lost one, of all {len(every)} together."
    )
    return words, numbers


def _place(score: float, scores: Iterable[float]) -> int:
    """Of a score among others, as written: equal ones share the better place."""
    return 1 + sum(difference(other, score) > 0 for other in scores)


def _ask_half(space: LayerEmbeddings) -> str:
    _, _, late = chosen_on_half(space)
    return (
        "Now choose by score. On a half of the pairs, take the best of all averages of two layers, and the best layer. "
        f"Then score both on the {spaced(int(late.sum()))} other pairs, whose sentences the first half does not have. "
        f"A difference is hardly luck where {INTERVAL} has no 0. **Which is ahead there?**"
    )


LESSON = Lesson(
    9,
    "One layer or two?",
    "Which layers should be averaged, and who says so?",
    "layers",
    _SETTING,
    6,
    "predict how often two layers beat both of them, and what a choice is worth on pairs it has not seen",
    "the score of every pair of layers",
    "Two layers are better than one.",
    (
        Step(_ask_count, _count, ahead),
        Step(
            "Without looking at scores, people take one of these. **Which scores best here, raw?**",
            _ask_which,
            rule_of_thumb,
        ),
        Step(
            _ask_half,
            Choice(tuple(_ENDS.values()), rule="A difference that may be luck puts neither ahead."),
            on_the_other_half,
        ),
    ),
)
