"""Scores as pages need them: in two steps, because the held-out isotropy costs more than the number itself."""

from dataclasses import replace

from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.scoring.paired import Paired, paired
from whitelab.scoring.score import Score, isotropy_of, score
from whitelab.scoring.setting import Setting
from whitelab.statistics.significance import Move, moved
from whitelab.ui.results.study import study


def number_of(space: LayerEmbeddings, setting: Setting) -> Score:
    """The score of a setting without its held-out isotropy."""
    return study(score, space, setting.on(space), isotropy=False)


def scored(space: LayerEmbeddings, setting: Setting) -> Score:
    """The score of a setting, whole."""
    return replace(number_of(space, setting), isotropy=study(isotropy_of, space, setting.on(space)))


def paired_scores(space: LayerEmbeddings, settings: tuple[Setting, ...]) -> Paired:
    """The scores of `settings`, resampled together in one bootstrap."""
    return paired(space, [scored(space, setting) for setting in settings])


def moves(space: LayerEmbeddings, before: Setting, after: Setting) -> tuple[Move, ...]:
    """How far the rank of every pair moved from one setting to another, furthest first.

    Pairs that kept theirs are not in it; none is where a cosine is not defined.
    """
    cosines = [number_of(space, setting).cosines for setting in (before, after)]
    if any(bool(values.isnan().any()) for values in cosines):
        return ()
    return moved(*cosines, space.gold, space.n_pairs)
