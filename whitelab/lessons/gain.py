"""Lesson 4: whether whitening helps, layer by layer, and on a genre that was not seen."""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from whitelab import whitening
from whitelab.base.wording import spaced
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.lessons.lesson import (
    INTERVAL,
    SCORE,
    Answer,
    Choice,
    Lesson,
    NoAnswer,
    Number,
    Step,
    check_apart,
    difference,
    half,
    setting_on,
    spearman,
    written,
)
from whitelab.scoring.fit_scopes import is_thin
from whitelab.statistics import geometry
from whitelab.statistics.moments import Moments
from whitelab.statistics.significance import Difference, bootstrap
from whitelab.sweeps.layer_profiles import shape

_FIRST, _LAST = "L0:pca", "L-1:pca"  # not layer 1, on which the first page opens
_DRAWN = 0.05  # of an interval's width, by which another draw of the bootstrap may move its end (measured)


def _raw(space: LayerEmbeddings, text: str) -> float:
    return spearman(space, setting_on(space, text).raw)


def _lowest(space: LayerEmbeddings) -> int:
    """The lowest layer with a score: word vectors at [CLS] are the same for every sentence."""
    why = NoAnswer("it has one layer only, and none below it")
    for layer in range(space.n_layers - 1):
        try:
            _raw(space, f"L{layer}")
        except NoAnswer as error:
            why = error
        else:
            return layer
    raise why


def _ask_lower(space: LayerEmbeddings) -> str:
    layer = _lowest(space)
    words = ", where no word has seen another yet," if layer == 0 and space.origin.pooling == "mean" else ""
    return (
        f"{SCORE} Layer {layer}{words} scores {written(_raw(space, f'L{layer}'))} raw. "
        "**What does it score once it is whitened**: moved so that the mean is the origin, and stretched so that every "
        "direction counts alike?"
    )


def _ask_last(space: LayerEmbeddings) -> str:
    return (
        f"The last layer is the one that is usually taken. It scores {written(_raw(space, _LAST))}. **What does it "
        "score once whitened, more or less than that?**"
    )


def _compared(space: LayerEmbeddings, text: str, name: str) -> Answer:
    setting = setting_on(space, text)
    raw, white = spearman(space, setting.raw), spearman(space, setting)
    centred = spearman(space, setting.with_(whitening="center"))
    cosine = shape(space, setting.raw).mean_cosine
    lie = "in a cone" if cosine >= geometry.CONE else "spread around already, not in a cone"
    by_centring, by_stretch = difference(centred, raw), difference(white, centred)
    words = (
        f"{name}: raw {written(raw)}, centred {written(centred)}, whitened {written(white)}. Two random sentences have "
        f"a mean cosine of {written(cosine)} there, so they lie {lie}. Centring changes the score by "
        f"{by_centring:+z.2f}, and making every direction equally strong after that by {by_stretch:+z.2f}"
    )
    if by_stretch > 0:
        words += ": equal weights rank these pairs better than the weights that the directions had"
    elif by_stretch < 0:
        words += ": the weights that the directions had rank these pairs better than equal ones"
    words += ". The map was fitted on these very sentences; the last step tests maps on others."
    last = _raw(space, _LAST)
    if text != _LAST and last > max(raw, white):
        words += f" Whitening does not make up for the layers above: the last has {written(last)} raw."
    numbers = {"raw": raw, "centred": centred, "whitened": white, "mean cosine": cosine}
    return Answer(white, words, numbers)


def lower(space: LayerEmbeddings) -> Answer:
    """The whitened score of the lowest layer with one."""
    layer = _lowest(space)
    return _compared(space, f"L{layer}:pca", f"Layer {layer}")


def last(space: LayerEmbeddings) -> Answer:
    """The whitened score of the last layer."""
    return _compared(space, _LAST, "The last layer")


# ------------------------------------------------------------------------------------------- a genre not seen

CANDIDATES = {
    "Layer 1, centred": "L1:center",
    "Layer 1, whitened": "L1:pca",
    "Layer 1, softly whitened": "L1:soft",
    "Layer 1 and the last, whitened": "L1+L-1:pca",
    "Last layer, whitened": "L-1:pca",
}


@dataclass(frozen=True, eq=False)
class Unseen:
    """The pairs a setting is judged on, and the rows its map is fitted on: all other pairs' sentences, but theirs.

    `genre` is that of the pairs, empty where the task has none.
    """

    genre: str
    pairs: Int[Tensor, "q"]
    rows: Int[Tensor, "r"]


def unseen(space: LayerEmbeddings) -> Unseen:
    """The last genre of the task; of a task without genres, a half of its pairs. Raises NoAnswer where it has none."""
    if space.n_layers < 2:
        raise NoAnswer("it has one layer only, and the settings to choose from need layer 1")
    if space.n_subsets > 1:
        late, genre = space.subset == space.n_subsets - 1, space.subset_names[-1]
    else:
        late, genre = half(space), ""
    check_apart(late)
    theirs, rows = (torch.cat([space.first[pairs], space.second[pairs]]) for pairs in (late, ~late))
    rows = rows[~torch.isin(rows, theirs)]
    if len(rows) < 2:
        raise NoAnswer(f"{genre} has all sentences of the other pairs, so that no map could be fitted without it")
    return Unseen(genre, late.nonzero()[:, 0], rows)


def gain_unseen(space: LayerEmbeddings, text: str) -> Difference:
    """What a setting gains over raw on pairs that its map was not fitted on, with its 95 % interval."""
    setting, apart = setting_on(space, text), unseen(space)
    x = space.combine(setting.layers)
    white = whitening.fit(setting.whitening, Moments.of(x[apart.rows]), setting.k)(x)
    first, second = space.first[apart.pairs], space.second[apart.pairs]
    cosines = torch.stack([geometry.row_cosines(z, first, second) for z in (white, x)])
    gold = space.gold[apart.pairs]
    return bootstrap(cosines, gold, torch.zeros_like(apart.pairs), 1).difference(0, 1)


def _ask_unseen(space: LayerEmbeddings) -> str:
    apart = unseen(space)
    pairs, of = spaced(len(apart.pairs)), f"of the {spaced(space.n_pairs)} pairs"
    them = f"the {pairs} pairs of the subset **{apart.genre}**" if apart.genre else f"{pairs} {of}"
    return (
        f"Set aside {them}, fit the map on all other sentences, and score these pairs. "
        "**Is there a setting whose gain over its own raw layers is hardly luck?** Then "
        f"{INTERVAL} lies above 0. Softly whitened means that strong directions are turned down only half as far."
    )


def beats_raw(space: LayerEmbeddings) -> Answer:
    """Which settings gain on the pairs that were not seen, beyond doubt."""
    gains = {name: gain_unseen(space, text) for name, text in CANDIDATES.items()}
    if any(gain.estimate != gain.estimate for gain in gains.values()):
        raise NoAnswer("a score is not defined on the pairs that were set apart")
    sure = tuple(name for name, gain in gains.items() if gain.low > 0)
    close = tuple(name for name, gain in gains.items() if abs(gain.low) < _DRAWN * (gain.high - gain.low))
    best = max(sure, key=lambda name: gains[name].estimate, default=_NONE)
    every = "".join(
        f"\n- {name}: {gain.estimate:+.2f} ({written(gain.low)} to {written(gain.high)})"
        for name, gain in gains.items()
    )
    verdict = (
        f"Above 0: {'; '.join(one[0].lower() + one[1:] for one in sure)}. An interval that touches 0 may be luck, and "
        "the best of five that only just clears it is a hint, not a proof."
        if sure
        else "No interval lies above 0: none of these is a certain gain on pairs that were not seen"
        + ("." if close else ", and to say so is the right answer to whoever asks.")
    )
    if close:
        ends = "Those intervals end" if len(close) > 1 else "That interval ends"
        verdict += (
            f" {'; '.join(close)}: too near to call. {ends} so near to 0 that other resamples may put the end on the "
            "other side, so either answer counts."
        )
    if is_thin(fitted := len(unseen(space).rows.unique()), space.dim):
        verdict += (
            f" These maps had {spaced(fitted)} sentences for {space.dim} directions: with more, what those that whiten "
            "gain or lose here may turn round."
        )
    closing = "(The page below uses all pairs and a map fitted on all of them, so its numbers differ.)"
    words = f"Against the same layers raw, with 95 % intervals:\n{every}\n\n{verdict} {closing}"
    numbers = {f"{name}, {part}": getattr(gain, part) for name, gain in gains.items() for part in ("low", "high")}
    none = () if set(sure) - set(close) else (_NONE,)
    return Answer(best, words, numbers, accepted=tuple(dict.fromkeys((*sure, *close, *none))))


_NONE = "None of these"

LESSON = Lesson(
    4,
    "Does it help?",
    "When does whitening raise the score, and when does it hurt?",
    "overview",
    _FIRST,
    7,
    "predict the scores of two layers, and look for a gain that is hardly luck",
    "what whitening gains or loses in a low layer and in the last",
    "Whitening either always helps or always hurts.",
    (
        Step(_ask_lower, Number("Score once whitened", 0.0, 100.0, 0.5, 1.0), lower, scored=_LAST),
        Step(
            _ask_last,
            Number("Score of the last layer, whitened", 0.0, 100.0, 0.5, 1.0),
            last,
            scored=_LAST,
            setting=_LAST,
        ),
        Step(
            _ask_unseen,
            Choice(
                (*CANDIDATES, _NONE),
                rule="Right is a setting whose interval lies above 0; where it ends at 0 either counts.",
            ),
            beats_raw,
        ),
    ),
)
