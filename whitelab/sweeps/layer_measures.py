"""Every measure over the unique sentences of a task, layer by layer, and how alike the layers are."""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from whitelab.base.checks import check_shape
from whitelab.base.progress import Progress, Steps, part_of, silent
from whitelab.base.records import without_nan
from whitelab.base.threads import side_by_side
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows, check_space
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.setting import Setting, check_is_setting, check_settings
from whitelab.statistics import geometry, linalg
from whitelab.sweeps.fitted_maps import EVERY_LAYER, fits_anew_for

_SIDE_BY_SIDE = 10_000  # sentences up to which layers are measured side by side


@dataclass(frozen=True)
class Measures:
    """What `geometry.METRICS` says of the unique sentences under one setting: `values` by name, NaN where not defined.

    The map is fitted as the setting says, on every occurrence; each sentence then counts once. IsoScore counts the
    directions that the map keeps, or that two maps keep together. Only rogue shares see more than the space up to a
    rotation.
    """

    layers: tuple[int, ...]
    whitening: str
    k: int | None
    values: dict[str, float]


def as_record(measured: Measures) -> dict[str, float | None]:
    """The measures by name, JSON-ready: None where one is not defined."""
    return without_nan(measured.values)


def measures(space: LayerEmbeddings, setting: Setting, progress: Progress = silent) -> Measures:
    """Measure the average of the setting's layers under its map. Raises ValueError as `fit_scopes.fit_scope` does."""
    fitted = fit_scope(space, setting)
    kept, here = space.counts > 0, fitted.setting
    z, axes = (rows if kept.all() else rows[kept] for rows in (fitted.turned(), fitted.transform()))
    known = None if len(fitted.folds) == 1 else geometry.Rows(z).variances
    rank = fitted.rank if known is None else linalg.kept_rank(known)
    rows = geometry.Rows(z, axes=axes, rank=rank, known=known, progress=progress)
    return Measures(here.layers, here.whitening, here.k, geometry.measured(rows))


def norm_correlations(
    space: LayerEmbeddings, setting: Setting, sentences: Sequence[str] | None
) -> dict[str, float | None]:
    """Spearman's rho of the lengths of the vectors with the words of the sentences, unique ones, under the map.

    `norm_length_correlation`: with their number (`geometry.word_counts`); `norm_frequency_correlation`: with how
    frequent they are among these sentences (`geometry.word_frequencies`). None where the text is not known or a side
    is constant.
    """
    names = ("norm_length_correlation", "norm_frequency_correlation")
    z, kept = fit_scope(space, setting).turned(), (space.counts > 0).nonzero()[:, 0].tolist()
    if sentences is None or z.shape[1] == 0:
        return dict.fromkeys(names)
    used = [sentences[row] for row in kept]
    values = (geometry.word_counts(used), geometry.word_frequencies(used))
    found = (geometry.norm_correlation(z[kept], one) for one in values)
    return without_nan(dict(zip(names, found, strict=True)))


@fits_anew_for(EVERY_LAYER)
def layer_measures(
    space: LayerEmbeddings, settings: Sequence[Setting], progress: Progress = silent
) -> tuple[Measures, ...]:
    """The measures of every layer alone under each of the `settings`, whose own layers do not count; layer by layer.

    `progress(done, total)` counts in hundredths of a layer under a setting, and may raise to cancel.
    """
    settings = check_settings(settings)
    chosen = [setting.with_(layers=(layer,)) for layer in range(check_space(space).n_layers) for setting in settings]
    done, lock = [0] * len(chosen), Lock()

    def one(number: int) -> Measures:
        def report(part: int, whole: int) -> None:
            with lock:
                done[number] = 100 * part // whole
                progress(sum(done), 100 * len(chosen))

        found = measures(space, chosen[number], report)
        report(1, 1)
        return found

    # Above this size one layer keeps all threads busy, and two would need twice the memory.
    threads = None if space.n_sentences <= _SIDE_BY_SIDE else 1
    return tuple(side_by_side(one, range(len(chosen)), threads))


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """The ten nearest sentences of every sentence by cosine, nearest first, and on how many such lists each is.

    `rows [n, t]` and `cosines [n, t]` are of the space's sentences, `counts [n]` theirs; `hub_from` is two standard
    deviations above the mean count, where Radovanovic et al. 2010 begin to speak of hubs.
    """

    rows: Int[np.ndarray, "n t"]
    cosines: Float[np.ndarray, "n t"]
    counts: Int[np.ndarray, "n"]
    hub_from: float


def neighbourhood(space: LayerEmbeddings, setting: Setting, progress: Progress = silent) -> Neighbourhood:
    """The neighbours under the setting's map. Raises ValueError for fewer than two sentences, and as `fit_scope`."""
    z = fit_scope(space, setting).turned()
    if len(z) < 2 or z.shape[1] == 0:
        raise ValueError(f"space must hold two sentences that differ, got n={len(z)} in {z.shape[1]} directions")
    top = min(geometry.TOP, len(z) - 1)
    near = geometry.nearest_rows(z, {"cosine": top}, progress)["cosine"]
    counts = geometry.hubness(near.rows).counts
    limit = top + 2 * float(counts.double().std(correction=0))
    return Neighbourhood(*(one.cpu().numpy() for one in (near.rows, near.values, counts)), limit)


def nearest_to(
    space: LayerEmbeddings, setting: Setting, new: Float[Tensor, "l d"]
) -> tuple[Int[np.ndarray, "t"], Float[np.ndarray, "t"]]:
    """The ten sentences nearest to a new one by cosine, nearest first, and their cosines, under the setting's map.

    `new` is that sentence in every layer. Of two cross-fitted maps each compares it with the sentences it scores.
    Raises ValueError as `fit_scope`.
    """
    fitted = fit_scope(space, setting)
    x, layers = space.combine(fitted.setting.layers), fitted.setting.layers
    new = check_shape(new, "new", "l d")
    own = LayerRows(new[:, None].to(x.device), torch.ones(1)).combine(layers)
    cosines = x.new_zeros(len(x))
    for fold, whitener in zip(fitted.folds, fitted.whiteners, strict=True):
        mapped, one = (geometry.normalize(whitener(rows)) for rows in (x[fold.sentences], own))
        cosines[fold.sentences] = mapped @ one[0]
    values, rows = cosines.topk(min(geometry.TOP, len(x)))
    return rows.cpu().numpy(), values.cpu().numpy()


def hub_remedies(space: LayerEmbeddings, setting: Setting, progress: Progress = silent) -> dict[str, dict[str, float]]:
    """Skewness, largest hub and share on no list, under each of `geometry.REMEDIES`, of the setting's space."""
    z, found = fit_scope(space, setting).turned(), {}
    total = len(z) * len(geometry.REMEDIES)
    for number, remedy in enumerate(geometry.REMEDIES):
        within = part_of(progress, number * len(z), len(z), total)
        hubs = geometry.hubness(geometry.remedied(z, remedy, min(geometry.TOP, len(z) - 1), within))
        found[remedy] = {"skewness": hubs.skewness, "largest": hubs.largest, "never": hubs.never}
    return found


@fits_anew_for(EVERY_LAYER)
def layer_similarity(
    space: LayerEmbeddings,
    setting: Setting,
    other: LayerEmbeddings | None = None,
    progress: Progress = silent,
) -> Float[np.ndarray, "l m"]:
    """Linear CKA of every layer with every other, each under the setting's map, over the unique sentences.

    HSIC(X, Y) / sqrt(HSIC(X, X) HSIC(Y, Y)) (Kornblith et al. 2019, section 3), debiased as `geometry.hsic`: the same
    under any rotation and any scale of either side, not under whitening, which is no rotation; about 0 of unrelated
    spaces. NaN where a side does not vary or one row alone lies apart from equal others, where all its rows are equally
    far apart, as under full whitening of n <= d sentences, and below 4 rows.

    With `other`, embeddings of the same sentences by another model, of every layer with each of that one's, where the
    setting is fitted anew; a `k` above its dimensions keeps all of them. Raises ValueError for embeddings of other
    sentences.
    """
    check_is_setting(setting)
    if other is not None and other.n_sentences != space.n_sentences:
        raise ValueError(f"other must hold the same n={space.n_sentences} sentences, got {other.n_sentences}")
    kept, columns = check_space(space).counts > 0, other or space

    def rows(of: LayerEmbeddings, layer: int) -> Float[Tensor, "n m"]:
        here = setting.with_(layers=(layer,), pooling=of.origin.pooling)
        here = here.with_(k=None) if here.k is not None and here.k > of.dim else here
        return fit_scope(of, here).turned()[kept]

    sizes = [[_size(rows(of, layer)) for layer in range(of.n_layers)] for of in (space, columns)]
    found = np.full((space.n_layers, columns.n_layers), np.nan)
    step = Steps(progress, found.size)
    for i in range(space.n_layers):
        own = rows(space, i)
        for j in range(columns.n_layers):
            if other is None and j < i:
                found[i, j] = found[j, i]
            elif sizes[0][i] > 0 and sizes[1][j] > 0:
                same = other is None and i == j
                shared = sizes[0][i] if same else geometry.hsic(own, rows(columns, j))
                found[i, j] = shared / (sizes[0][i] ** 0.5 * sizes[1][j] ** 0.5)
            step()
    return found


def _size(x: Float[Tensor, "n m"]) -> float:
    """HSIC of a layer with itself; 0 where there is no column."""
    return geometry.hsic(x, x) if x.shape[1] else 0.0
