"""Scores and measures as pages need them: each computed once, for every setting it is the same for, and in parts.

What a sweep over layers shows of one layer, another page shows of the workspace's, and another setting shows of raw. So
sweeps are put together here from results that are kept one by one.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from whitelab.base.progress import Progress
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.scoring.paired import Doubt, Paired, Standing, doubt, paired
from whitelab.scoring.score import Score, isotropy_of, score
from whitelab.scoring.setting import Setting
from whitelab.statistics.significance import Move, moved
from whitelab.sweeps import cone, layer_profiles
from whitelab.sweeps import layer_gains as gains
from whitelab.sweeps.dimensions import KCurve, k_curve
from whitelab.sweeps.fitted_maps import EVERY_LAYER, fits_anew_for
from whitelab.sweeps.layer_gains import LayerGain
from whitelab.sweeps.layer_profiles import Losses, Shape, losses, shape
from whitelab.ui.results.study import study
from whitelab.whitening import eigenform


def shared(setting: Setting) -> Setting:
    """The setting under whose name results are kept: that of its variant's eigenform."""
    return setting.with_(whitening=eigenform(setting.whitening), k=setting.k)


def _study(f: Callable, space: LayerEmbeddings, setting: Setting, *args, **options) -> tuple[Any, Setting]:
    setting = setting.on(space)
    return study(f, space, shared(setting), *args, **options), setting


def number_of(space: LayerEmbeddings, setting: Setting) -> Score:
    """The score of a setting without its held-out isotropy, whose maps cost more than the number itself."""
    found, setting = _study(score, space, setting, isotropy=False)
    return replace(found, protocol=replace(found.protocol, setting=setting))


def scored(space: LayerEmbeddings, setting: Setting) -> Score:
    """The score of a setting, whole."""
    return replace(number_of(space, setting), isotropy=held_out(space, setting))


def held_out(space: LayerEmbeddings, setting: Setting) -> float | None:
    """The held-out isotropy of a setting."""
    return _study(isotropy_of, space, setting)[0]


def doubt_of(space: LayerEmbeddings, setting: Setting) -> Doubt | None:
    """Which scores about that of a setting are not known to differ from raw's."""
    return _study(_doubt, space, setting)[0]


def _doubt(space: LayerEmbeddings, setting: Setting) -> Doubt | None:
    return doubt(space, number_of(space, setting), number_of(space, setting.raw))


def curve_of(space: LayerEmbeddings, setting: Setting, by_subset: bool = False) -> KCurve:
    """The score of a setting at every k; its own does not count."""
    found, setting = _study(k_curve, space, setting.with_(k=None), by_subset=by_subset)
    return replace(found, setting=setting)


def shape_of(space: LayerEmbeddings, setting: Setting) -> Shape:
    """The shape of a setting."""
    found, setting = _study(shape, space, setting)
    return replace(found, whitening=setting.whitening)


def losses_of(space: LayerEmbeddings, setting: Setting, positives: str) -> Losses:
    """The losses of a setting."""
    found, setting = _study(losses, space, setting, positives)
    return replace(found, whitening=setting.whitening)


@fits_anew_for(EVERY_LAYER)
def layer_shapes(space: LayerEmbeddings, settings: tuple[Setting, ...], progress: Progress) -> tuple[Shape, ...]:
    """`layer_profiles.layer_shapes`. For `study_job`, as all sweeps here."""
    return layer_profiles.layer_shapes(space, settings, progress, shape_of)


def cones(space: LayerEmbeddings, settings: tuple[Setting, ...]) -> tuple[cone.Cone, ...]:
    """`cone.cones`."""
    return cone.cones(space, settings, lambda *of: study(cone.plane, *of))


@fits_anew_for(EVERY_LAYER)
def layer_losses(
    space: LayerEmbeddings, settings: tuple[Setting, ...], positives: str, progress: Progress
) -> tuple[Losses, ...]:
    """`layer_profiles.layer_losses`."""
    return layer_profiles.layer_losses(space, settings, positives, progress, losses_of)


@fits_anew_for(EVERY_LAYER)
def layer_gains(space: LayerEmbeddings, setting: Setting, progress: Progress) -> Iterator[tuple[LayerGain, ...]]:
    """`layer_gains.layer_gains`."""
    return gains.layer_gains(space, setting, progress, number_of, lambda *of: study(gains.mean_cosine, *of))


def layer_curves(space: LayerEmbeddings, setting: Setting, progress: Progress) -> Iterator[tuple[KCurve, ...]]:
    """`dimensions.k_curves` without subsets, one layer more each time."""
    curves: tuple[KCurve, ...] = ()
    for layer in range(space.n_layers):
        curves += (curve_of(space, setting.with_(layers=(layer,))),)
        yield curves
        progress(len(curves), space.n_layers)


def paired_scores(space: LayerEmbeddings, settings: tuple[Setting, ...]) -> Paired:
    """The scores of `settings`, resampled together in one bootstrap."""
    return paired(space, [scored(space, setting) for setting in settings])


def standing(space: LayerEmbeddings, settings: tuple[Setting, ...], i: int, baseline: int) -> Standing:
    """One of `settings` against another, all resampled together."""
    return study(paired_scores, space, settings).standing(i, baseline)


def moves(space: LayerEmbeddings, before: Setting, after: Setting) -> tuple[Move, ...]:
    """How far the rank of every pair moved from one setting to another, furthest first.

    Pairs that kept theirs are not in it; none is where a cosine is not defined.
    """
    cosines = [number_of(space, setting).cosines for setting in (before, after)]
    if any(bool(values.isnan().any()) for values in cosines):
        return ()
    return moved(*cosines, space.gold, space.n_pairs)
