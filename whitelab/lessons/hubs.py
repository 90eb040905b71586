"""Lesson 7: sentences that are close to everything."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from whitelab.base.wording import spaced
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
from whitelab.scoring.setting import Setting
from whitelab.statistics import geometry
from whitelab.sweeps.layer_profiles import transformed

_SETTING = "L1:pca"
_MOST = 4000  # sentences whose neighbours are looked for; among more of them it would take more than a second
_LISTED = 5
_NEAR = 1.0  # percentage points that count as no change
_PAIRS = 2  # pairs that do, where they are more

_ENDS = {
    (False, True): "It does not grow, and the score rises",
    (False, False): "It does not grow, and the score does not rise",
    (True, True): "It grows, and the score rises",
    (True, False): "It grows, and the score does not rise",
}
_MORE = {
    "rises": "More often than raw",
    "falls": "Less often than raw",
    "stays": f"As often, within {_NEAR:g} percentage point or {_PAIRS} pairs",
}


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Each of the sentences looked at (`rows` of the space) with its ten nearest among them, and N_10."""

    rows: Int[Tensor, "m"]
    lists: Int[Tensor, "m t"]
    counts: Int[Tensor, "m"]
    largest: int

    def hubs(self) -> tuple[tuple[int, int, tuple[int, ...]], ...]:
        """The largest hubs, as rows of the space, with their counts and some of the rows on whose lists they are."""
        order = self.counts.argsort(descending=True, stable=True)[:_LISTED]
        return tuple((int(self.rows[i]), int(self.counts[i]), self._listing(i)) for i in order)

    def _listing(self, hub: Int[Tensor, ""]) -> tuple[int, ...]:
        """The first rows of the space on whose lists a hub is."""
        return tuple(self.rows[(self.lists == hub).any(1)][: geometry.TOP].tolist())

    def partners(self, space: LayerEmbeddings) -> Bool[Tensor, "q"]:
        """Of each of the `partners_in` the sentences, whether the second is on the first's list."""
        first, second = partners_in(space, self.rows)
        return (self.lists[first] == second[:, None]).any(1)

    def shared(self, other: "Neighbours") -> float:
        """How many of the ten on a sentence's list are on its list in the other space too, on average."""
        return float((self.lists[:, :, None] == other.lists[:, None, :]).any(2).sum(1).double().mean())


def partners_in(space: LayerEmbeddings, rows: Int[Tensor, "m"]) -> tuple[Int[Tensor, "q"], Int[Tensor, "q"]]:
    """The places among `rows` of the first and the second sentence of each similar pair that has both there."""
    place = torch.full((space.n_sentences,), -1)
    place[rows] = torch.arange(len(rows))
    pairs = similar(space)
    first, second = place[space.first[pairs]], place[space.second[pairs]]
    there = (first >= 0) & (second >= 0) & (first != second)
    check_similar(int(there.sum()))
    return first[there], second[there]


def looked_at(space: LayerEmbeddings) -> Int[Tensor, "m"]:
    """The sentences of the task's pairs; of many pairs, those of the first."""
    rows = torch.cat([space.first, space.second]).reshape(2, -1).T.flatten()[:_MOST].unique()
    if len(rows) < (least := 3 * geometry.TOP):  # else a list of ten is no small part of them
        raise NoAnswer(f"{len(rows)} sentences are too few for lists of ten neighbours: {least} are needed")
    return rows


def neighbours(space: LayerEmbeddings, setting: Setting) -> Neighbours:
    """The neighbours of the sentences looked at, under a setting."""
    rows = looked_at(space)
    z: Float[Tensor, "n m"] = transformed(space, setting)
    lists = geometry.nearest(z[rows])
    found = geometry.hubness(lists)
    return Neighbours(rows, lists, found.counts, found.largest)


def _both(space: LayerEmbeddings) -> tuple[Neighbours, Neighbours]:
    setting = setting_on(space, _SETTING)
    return neighbours(space, setting.raw), neighbours(space, setting)


def _ask_largest(space: LayerEmbeddings) -> str:
    (layer,), rows = setting_on(space, _SETTING).layers, looked_at(space)
    them = f"the {spaced(len(rows))} sentences" if len(rows) == space.n_sentences else f"{spaced(len(rows))} sentences"
    return (
        f"For each of {them}, list the ten others with the highest cosine, in layer {layer}, raw. On average a "
        "sentence is then on ten lists. **On how many lists is the one that is on most?**"
    )


def _ask_number(space: LayerEmbeddings) -> Number:
    highest = len(looked_at(space)) - 1
    return Number("Lists it is on", geometry.TOP, highest, 1, 0.3, relative=True)


def nearer_to_the_mean(space: LayerEmbeddings, near: Neighbours, setting: Setting) -> float:
    """How many of the sentences, in percent, lie further from their mean direction than the largest hub."""
    u = geometry.normalize(transformed(space, setting)[near.rows])
    to_mean = u @ u.mean(dim=0)
    return 100 * float((to_mean < to_mean[near.counts.argmax()]).double().mean())


def largest_hub(space: LayerEmbeddings) -> Answer:
    """On how many lists the largest hub of the raw layer is."""
    setting = setting_on(space, _SETTING).raw
    raw = neighbours(space, setting)
    largest, none = raw.largest, int((raw.counts == 0).sum())
    nearer = nearer_to_the_mean(space, raw, setting)
    words = (
        f"The largest **hub** is on {written(largest)} lists; on none at all: {written(none)}. The hub lies nearer to "
        f"the mean direction of these sentences than {written(nearer)} % of them. Read the largest hubs, and ask "
        "yourself whether they deserve so many friends."
    )
    numbers = {"largest hub": largest, "on no list": none, "nearer to the mean": nearer}
    return Answer(largest, words, numbers, sentences={"raw": raw.hubs()})


def whitened_hub(space: LayerEmbeddings) -> Answer:
    """What whitening does to the largest hub and to the score."""
    setting = setting_on(space, _SETTING)
    raw, white = _both(space)
    before, after = spearman(space, setting.raw), spearman(space, setting)
    words = (
        f"Largest hub: {written(raw.largest)} lists raw, {written(white.largest)} whitened. Score: {written(before)} "
        f"raw, {written(after)} whitened. The two measure different things: a hub is counted on lists among all of "
        "these sentences, and the score reads only the cosines of the pairs that were given."
    )
    numbers = {"hub, raw": raw.largest, "hub, whitened": white.largest, "score, raw": before, "score, whitened": after}
    end = _ENDS[white.largest > raw.largest, after > before]
    return Answer(end, words, numbers, sentences={"raw": raw.hubs(), "whitened": white.hubs()})


def _ask_partners(space: LayerEmbeddings) -> str:
    first, _ = partners_in(space, looked_at(space))
    return (
        f"Take {spaced(len(first))} pairs of two different sentences that people call similar, "
        f"{marked_similar(space)}. **Is the second among the ten nearest of the first more often once the layer is "
        "whitened?**"
    )


def partners(space: LayerEmbeddings) -> Answer:
    """Whether whitening brings the partners of similar sentences onto their lists more often."""
    setting = setting_on(space, _SETTING)
    before, after = spearman(space, setting.raw), spearman(space, setting)
    near = _both(space)
    hits = [side.partners(space) for side in near]
    raw, white = (100 * float(one.double().mean()) for one in hits)
    close = max(_NEAR, 100 * (_PAIRS + 0.5) / len(hits[0]))
    way, shared = moved(raw, white, close), near[0].shared(near[1])
    agree = (
        "Nearly every partner was on its list already, so there was hardly any room to rise."
        if way == "stays" and raw >= 100 - _NEAR
        else "Whether the partner is found hardly changes here, whatever the score does."
        if way == "stays"
        else "Search and score agree here."
        if (white - raw) * (after - before) > 0
        else "Search and score disagree here, so it depends on the task which of them to look at."
    )
    words = (
        f"Of these {written(len(hits[0]))} pairs, the partner is on the list for {written(raw)} % raw "
        f"and for {written(white)} % whitened; the score goes from {written(before)} to {written(after)}. {agree} "
        f"After whitening, {written(shared)} of the ten on a list are still on it, on average. The score is for pairs "
        "that are given, such as graded answers; for a search measure a search, as the page Retrieval does on queries "
        "that were judged. The page below shows both lists of any sentence, under Neighbours."
    )
    numbers = {"pairs": len(hits[0]), "on the list, raw": raw, "on the list, whitened": white, "shared": shared}
    return Answer(_MORE[way], words, numbers | {"score, raw": before, "score, whitened": after})


LESSON = Lesson(
    7,
    "Close, but to everything?",
    "Why do some sentences turn up in so many searches?",
    "anisotropy",
    _SETTING,
    6,
    "predict on how many lists the largest hub is, raw and whitened",
    "the largest hub change, whether or not the score follows",
    "If the score rises, search gets better, and the other way round.",
    (
        Step(_ask_largest, _ask_number, largest_hub),
        Step(
            f"Now whiten the layer. {SCORE} **What happens to the largest hub, and to the score?**",
            Choice(tuple(_ENDS.values()), rule="Right where both parts are."),
            whitened_hub,
            scored=_SETTING,
        ),
        Step(
            _ask_partners,
            Choice(
                tuple(_MORE.values()),
                rule=f"A change of at most {_NEAR:g} percentage point or {_PAIRS} pairs counts as none.",
            ),
            partners,
            scored=_SETTING,
        ),
    ),
    opens={"space": "Neighbours"},
)
