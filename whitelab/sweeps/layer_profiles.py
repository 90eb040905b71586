"""The shape of every layer of a task's embeddings, before and after a variant."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from jaxtyping import Float
from torch import Tensor

from whitelab import whitening
from whitelab.base.progress import Progress, Steps, silent
from whitelab.base.records import without_nan
from whitelab.encoding.embeddings import LayerEmbeddings, check_space
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.setting import Setting, check_settings
from whitelab.statistics import geometry, linalg
from whitelab.statistics.projection import project
from whitelab.sweeps.fitted_maps import EVERY_LAYER, fits_anew_for


@dataclass(frozen=True)
class Shape:
    """How a space fills its dimensions under one setting; NaN where a measure is not defined.

    Every measure counts each sentence as often as it occurs in the task's pairs. `eigenvalues` are those of the
    covariance, descending, d of them.
    """

    layers: tuple[int, ...]
    whitening: str
    k: int | None
    rank: int
    mean_cosine: float
    participation_ratio: float
    effective_rank: float
    top_share: float
    eigenvalues: tuple[float, ...]


@dataclass(frozen=True)
class Losses:
    """Alignment over `positives` pairs and uniformity over every sentence occurrence; `spearman` is x 100."""

    layers: tuple[int, ...]
    whitening: str
    k: int | None
    alignment: float
    uniformity: float
    spearman: float
    positives: int


def as_record(shape: Shape, losses: Losses) -> dict:
    """A JSON-ready record of both, without the spectrum; None where a measure is not defined."""
    record = asdict(shape) | asdict(losses)
    del record["eigenvalues"], record["layers"]
    return without_nan(record)


def transformed(space: LayerEmbeddings, setting: Setting) -> Float[Tensor, "n m"]:
    """The task's sentences in the average of the setting's layers, under its map."""
    return fit_scope(space, setting).transform()


def covariance(space: LayerEmbeddings, setting: Setting) -> Float[Tensor, "m m"]:
    """Covariance of the task's sentences, as often as they occur, under the setting's map: I where it whitens."""
    return geometry.Rows(transformed(space, setting), space.counts).covariance


def shape(space: LayerEmbeddings, setting: Setting) -> Shape:
    """Measure the average of the setting's layers under its map. Raises ValueError as `fit_scopes.fit_scope` does."""
    fitted = fit_scope(space, setting)
    rows = geometry.Rows(fitted.turned(), space.counts, known=fitted.variances())
    eigenvalues = rows.variances.tolist()
    return Shape(
        layers=fitted.setting.layers,
        whitening=fitted.setting.whitening,
        k=fitted.setting.k,
        rank=fitted.rank,
        eigenvalues=(*eigenvalues, *[0.0] * (space.dim - len(eigenvalues))),
        **geometry.measured(rows, unique=False),
    )


def losses(space: LayerEmbeddings, setting: Setting, positives: str = "gt4") -> Losses:
    """The two losses of Wang and Isola 2020 (WhitenedCSE, Eq. 9 and 10) and the score, as `shape`."""
    fitted = fit_scope(space, setting)
    setting, z = fitted.setting, fitted.turned()
    chosen, nan = geometry.positives(space.gold, positives), float("nan")
    first, second = space.first, space.second
    empty, how = not z.any(), setting.aggregate
    cosines = geometry.row_cosines(z, first, second)
    return Losses(
        layers=setting.layers,
        whitening=setting.whitening,
        k=setting.k,
        alignment=nan if empty else geometry.alignment(z[first[chosen]], z[second[chosen]]),
        uniformity=nan if empty else geometry.uniformity(z, space.counts),
        spearman=100 * float(space.judged.spearman(cosines, how)),
        positives=len(chosen),
    )


@fits_anew_for(EVERY_LAYER)
def layer_shapes(
    space: LayerEmbeddings,
    settings: Sequence[Setting],
    progress: Progress = silent,
    shape_of: Callable[[LayerEmbeddings, Setting], Shape] = shape,
) -> tuple[Shape, ...]:
    """The shape of every layer alone under each of the `settings`, whose own layers do not count; layer by layer.

    Who keeps shapes says where they come from: `shape_of(space, setting)`.
    """
    return _every_layer(shape_of, space, settings, progress)


@fits_anew_for(EVERY_LAYER)
def layer_losses(
    space: LayerEmbeddings,
    settings: Sequence[Setting],
    positives: str = "gt4",
    progress: Progress = silent,
    losses_of: Callable[[LayerEmbeddings, Setting, str], Losses] = losses,
) -> tuple[Losses, ...]:
    """The losses of every layer alone under each of the `settings`, as `layer_shapes`."""
    return _every_layer(lambda *of: losses_of(*of, positives), space, settings, progress)


def _every_layer(measure: Callable, space: LayerEmbeddings, settings: Sequence[Setting], progress) -> tuple:
    """Settings that give every pair the same cosine (`whitening.cosine_class`: one whitening and another) differ by a
    rotation only, which no measure here sees: one of them is computed, and the others are copies under their names.
    Two maps are turned each by itself, so there only those of one `whitening.eigenform` are the same.
    """
    settings = check_settings(settings)
    step, found = Steps(progress, check_space(space).n_layers * len(settings)), []
    for layer in range(space.n_layers):
        measured: dict[tuple, Shape | Losses] = {}
        for setting in settings:
            here = setting.with_(layers=(layer,)).on(space)
            alike = whitening.eigenform(here.whitening), here.k
            if here.fit != "cross":
                alike = whitening.cosine_class(here.whitening, here.k, space.dim)
            law = alike, here.raw, here.fit
            if law not in measured:
                measured[law] = measure(space, here)
            found.append(replace(measured[law], whitening=here.whitening, k=here.k))
            step()
    return tuple(found)


IMAGE_SIZE = 256  # pixels of a covariance image, at most


@dataclass(frozen=True, eq=False)
class CovarianceImage:
    """A covariance: as an image of means of `block` x `block` entries, and its eigenvalues, descending.

    `limit` is where the colours of the image end: at the median variance, or above it at what 99 of 100 pixels
    stay below.
    """

    pixels: Float[np.ndarray, "s s"]
    block: int
    limit: float
    eigenvalues: tuple[float, ...]


def covariance_image(space: LayerEmbeddings, setting: Setting) -> CovarianceImage:
    """The covariance of the task's sentences under the setting's map, small enough to look at."""
    matrix = covariance(space, setting)
    reduced, block = geometry.block_means(matrix, IMAGE_SIZE)
    pixels = reduced.cpu().numpy().astype(np.float32)
    limit = max(np.percentile(np.abs(pixels), 99), np.median(pixels.diagonal())) if pixels.size else 1.0
    return CovarianceImage(pixels, block, float(limit) or 1.0, tuple(linalg.eigenvalues(matrix).tolist()))


def cosine_sample(space: LayerEmbeddings, setting: Setting) -> Float[np.ndarray, "m"]:
    """Cosines of random pairs of different sentences under the setting's map; none where it leaves nothing of them."""
    z = fit_scope(space, setting).turned()
    return geometry.cosine_sample(z, space.counts).cpu().numpy() if z.any() else np.empty(0)


def projected(
    space: LayerEmbeddings, setting: Setting, method: str, dims: int, progress: Progress = silent
) -> Float[np.ndarray, "n c"]:
    """The task's sentences under the setting's map in 2 or 3 coordinates (`projection.METHODS`), UMAP's made apart."""
    return project(fit_scope(space, setting).turned(), method, dims, progress=progress, apart=True).cpu().numpy()
