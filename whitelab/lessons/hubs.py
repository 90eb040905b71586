"""Lesson 7: sentences that are close to everything."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from whitelab.base.wording import spaced
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.lessons.lesson import Answer, Choice, Lesson, NoAnswer, Number, Step, moved, setting_on, spearman, written
from whitelab.scoring.setting import Setting
from whitelab.statistics import geometry
from whitelab.sweeps.layer_profiles import transformed

_SETTING = "L1:pca"
_MOST = 4000  # sentences whose neighbours are looked for; among more of them it would take more than a second
_LISTED = 5
_ALIKE = 4.0  # the gold score from which on the sentences of a pair are partners

_ENDS = {
    ("falls", "rises"): "It shrinks, and the score rises",
    ("falls", "falls"): "It shrinks, and the score falls",
    ("rises", "rises"): "It grows, and the score rises",
    ("rises", "falls"): "It grows, and the score falls",
}
_MORE = {
    "rises": "More often than raw",
    "falls": "Less often than raw",
    "stays": "As often, within one percent of the pairs",
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

    def partners(self, space: LayerEmbeddings) -> float:
        """The share, in percent, of pairs with gold of 4 or more whose second is on the first's list."""
        place = torch.full((space.n_sentences,), -1)
        place[self.rows] = torch.arange(len(self.rows))
        first, second = place[space.first], place[space.second]
        alike = (space.gold >= _ALIKE) & (first >= 0) & (second >= 0) & (first != second)
        if not alike.any():
            raise NoAnswer(f"no pair here has a gold score of {_ALIKE:g} or more, so there are no partners to look for")
        hits = (self.lists[first[alike]] == second[alike][:, None]).any(1)
        return 100 * float(hits.double().mean())


def neighbours(space: LayerEmbeddings, setting: Setting) -> Neighbours:
    """The neighbours of the task's sentences under a setting; of its first pairs' where there are many."""
    _check_enough(space)
    z: Float[Tensor, "n m"] = transformed(space, setting)
    rows = torch.cat([space.first, space.second]).reshape(2, -1).T.flatten()[:_MOST].unique()
    lists = geometry.nearest(z[rows])
    found = geometry.hubness(lists)
    return Neighbours(rows, lists, found.counts, found.largest)


def _check_enough(space: LayerEmbeddings) -> None:
    if space.n_sentences <= geometry.TOP + 1:
        raise NoAnswer(f"{space.n_sentences} sentences are too few to have ten neighbours each")


def _both(space: LayerEmbeddings) -> tuple[Neighbours, Neighbours]:
    setting = setting_on(space, _SETTING)
    return neighbours(space, setting.raw), neighbours(space, setting)


def _ask_largest(space: LayerEmbeddings) -> str:
    count = min(space.n_sentences, _MOST)
    return (
        f"For each of about {spaced(count)} sentences, list the ten others with the highest cosine, in the raw first "
        "layer. On average a sentence is then on ten lists. **On how many lists is the one that is on most?**"
    )


def _ask_number(space: LayerEmbeddings) -> Number:
    _check_enough(space)
    return Number("Lists with the largest hub", 10, min(space.n_sentences, 1000), 1, 0.3, relative=True)


def largest_hub(space: LayerEmbeddings) -> Answer:
    """On how many lists the largest hub of the raw layer is."""
    raw = neighbours(space, setting_on(space, _SETTING).raw)
    largest, none = raw.largest, int((raw.counts == 0).sum())
    words = (
        f"The largest **hub** is on {written(largest)} lists, while {written(none)} sentences are on none at all. "
        "Vectors that lie near the middle of the cloud are near to everything, whatever they say. Read the "
        "largest hubs, and ask yourself whether they deserve so many friends."
    )
    numbers = {"largest hub": largest, "on no list": none}
    return Answer(largest, words, numbers, sentences={"raw": raw.hubs()})


def whitened_hub(space: LayerEmbeddings) -> Answer:
    """What whitening does to the largest hub and to the score."""
    setting = setting_on(space, _SETTING)
    raw, white = _both(space)
    before, after = spearman(space, setting.raw), spearman(space, setting)
    hub, score = moved(raw.largest, white.largest), moved(before, after)
    hub, score = ("falls" if hub == "stays" else hub), ("falls" if score == "stays" else score)
    apart = (
        "The two need not go together: a hub spoils lists of neighbours, while the score only reads the cosines of "
        "pairs that were given."
        if hub == score
        else "Here the two go together, but they measure different things: a hub spoils lists of neighbours, while the "
        "score only reads the cosines of pairs that were given."
    )
    words = (
        f"Largest hub: {written(raw.largest)} lists raw, {written(white.largest)} whitened. Score: {written(before)} "
        f"raw, {written(after)} whitened. {apart}"
    )
    numbers = {"hub, raw": raw.largest, "hub, whitened": white.largest, "score, raw": before, "score, whitened": after}
    return Answer(_ENDS[hub, score], words, numbers, sentences={"raw": raw.hubs(), "whitened": white.hubs()})


def partners(space: LayerEmbeddings) -> Answer:
    """Whether whitening brings the partners of similar sentences onto their lists more often."""
    setting = setting_on(space, _SETTING)
    raw, white = (side.partners(space) for side in _both(space))
    before, after = spearman(space, setting.raw), spearman(space, setting)
    way = moved(raw, white, 1.0)
    agree = (
        "The lists hardly change here, whatever the score does: the hubs cost hardly a partner here."
        if way == "stays"
        else "Search and score agree here."
        if (white - raw) * (after - before) > 0
        else "Search and score disagree here, so it depends on the task which of them to look at."
    )
    words = (
        f"The partner is on the list for {written(raw)} % of the similar pairs raw, for {written(white)} % whitened; "
        f"the score goes from {written(before)} to {written(after)}. {agree} The score is for pairs that are given, "
        "such as graded answers; for a search measure a search, as the page Retrieval does on queries that were judged."
    )
    numbers = {"on the list, raw": raw, "on the list, whitened": white, "score, raw": before, "score, whitened": after}
    return Answer(_MORE[way], words, numbers)


LESSON = Lesson(
    7,
    "Close, but to everything?",
    "Why do some sentences turn up in every search?",
    "uniformity",
    _SETTING,
    6,
    "predict on how many lists the largest hub is, raw and whitened",
    "the largest hub change, whether or not the score follows",
    "If the score rises, search gets better, and the other way round.",
    (
        Step(_ask_largest, _ask_number, largest_hub),
        Step(
            "Now whiten the layer. **What happens to the largest hub, and to the score?**",
            Choice(tuple(_ENDS.values()), rule="Right where both parts are; what does not move counts as not grown."),
            whitened_hub,
        ),
        Step(
            "Take the pairs that people call similar, with a gold score of 4 or more. **Is the second sentence among "
            "the ten nearest of the first more often once the layer is whitened?**",
            Choice(tuple(_MORE.values()), rule="A change of less than one percent counts as none."),
            partners,
        ),
    ),
)
