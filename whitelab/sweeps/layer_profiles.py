"""The shape of every layer of a task's embeddings, before and after a variant."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whitelab import whitening
from whitelab.base.progress import Progress
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.setting import Setting
from whitelab.statistics import correlation, geometry, linalg
from whitelab.statistics.moments import Moments
from whitelab.statistics.projection import project


@dataclass(frozen=True)
class Profile:
    """Measures of one layer under one variant; NaN where one is not defined.

    Every measure counts each sentence as often as it occurs in the task's pairs. `spearman` is x 100,
    `eigenvalues` are those of the covariance, descending, `positives` the pairs behind `alignment`.
    """

    layers: tuple[int, ...]
    whitening: str
    k: int | None
    rank: int
    mean_cosine: float
    participation_ratio: float
    effective_rank: float
    top_share: float
    alignment: float
    uniformity: float
    spearman: float
    positives: int
    eigenvalues: tuple[float, ...]

    def as_dict(self) -> dict:
        """A JSON-ready record without the spectrum; None where a measure is not defined."""
        record = {name: None if value != value else value for name, value in asdict(self).items()}
        del record["eigenvalues"]
        return record | {"layers": list(self.layers)}


def transformed(space: LayerEmbeddings, setting: Setting) -> Float[Tensor, "n m"]:
    """The task's sentences in the average of the setting's layers, under its map."""
    return fit_scope(space, setting).transform()


def covariance(space: LayerEmbeddings, setting: Setting) -> Float[Tensor, "m m"]:
    """Covariance of the task's sentences, as often as they occur, under the setting's map: I where it whitens."""
    return _covariance(space, transformed(space, setting))


def _covariance(space: LayerEmbeddings, z: Float[Tensor, "n m"]) -> Float[Tensor, "m m"]:
    return Moments.of(z, space.counts).covariance if z.shape[1] else torch.zeros(0, 0, dtype=torch.float64)


def profile(space: LayerEmbeddings, setting: Setting, positives: str = "gt4") -> Profile:
    """Measure the average of the setting's layers under its map. Raises ValueError as `fit_scopes.fit_scope` does."""
    fitted = fit_scope(space, setting)
    setting, z = fitted.setting, fitted.transform()
    spread = _covariance(space, z)
    values = linalg.eigenvalues(spread)
    chosen = geometry.positives(space.gold, positives)
    cosines = geometry.pair_cosines(z[space.first], z[space.second])
    how, empty, nan = setting.aggregate, z.shape[1] == 0, float("nan")
    return Profile(
        layers=setting.layers,
        whitening=setting.whitening,
        k=setting.k,
        rank=fitted.rank,
        mean_cosine=nan if empty else geometry.mean_cosine(z, space.counts),
        participation_ratio=nan if empty else geometry.participation_ratio(spread),
        effective_rank=nan if empty else geometry.effective_rank(values),
        top_share=nan if empty else geometry.top_share(values),
        alignment=nan if empty else geometry.alignment(z[space.first[chosen]], z[space.second[chosen]]),
        uniformity=nan if empty else geometry.uniformity(z, space.counts),
        spearman=100 * float(correlation.aggregate(cosines, space.gold, space.subset, space.n_subsets, how)),
        positives=len(chosen),
        eigenvalues=tuple(values.tolist()) + (0.0,) * (space.dim - len(values)),
    )


def layer_profiles(
    space: LayerEmbeddings,
    settings: Sequence[Setting],
    positives: str = "gt4",
    progress: Progress | None = None,
) -> tuple[Profile, ...]:
    """Every layer alone under each of the `settings`, whose own layers do not count; layer by layer.

    Settings that give every pair the same cosine (`whitening.cosine_class`: one whitening and another) differ by a
    rotation only, which no measure here sees: one of them is computed, and the others are copies under their names.
    """
    done, total, profiles = 0, space.n_layers * len(settings), []
    for layer in range(space.n_layers):
        measured: dict[tuple, Profile] = {}
        for setting in settings:
            here = setting.with_(layers=(layer,)).on(space)
            law = whitening.cosine_class(here.whitening, here.k, space.dim), here.raw, here.fit
            if law not in measured:
                measured[law] = profile(space, here, positives)
            profiles.append(replace(measured[law], whitening=here.whitening, k=here.k))
            done += 1
            if progress:
                progress(done, total)
    return tuple(profiles)


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
    pixels = reduced.numpy().astype(np.float32)
    limit = max(np.percentile(np.abs(pixels), 99), np.median(pixels.diagonal())) if pixels.size else 1.0
    return CovarianceImage(pixels, block, float(limit) or 1.0, tuple(linalg.eigenvalues(matrix).tolist()))


def cosine_sample(space: LayerEmbeddings, setting: Setting) -> Float[np.ndarray, "m"]:
    """Cosines of random pairs of different sentences under the setting's map."""
    return geometry.cosine_sample(transformed(space, setting), space.counts).numpy()


def projected(
    space: LayerEmbeddings, setting: Setting, method: str, dims: int, progress: Progress | None = None
) -> Float[np.ndarray, "n c"]:
    """The task's sentences under the setting's map in 2 or 3 coordinates (`projection.METHODS`)."""
    return project(transformed(space, setting), method, dims, progress=progress).numpy()
