"""The shape of every layer of a task's embeddings, before and after a variant."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab import whitening
from whitelab.base.progress import Progress
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.statistics import correlation, geometry, linalg
from whitelab.statistics.moments import Moments


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


def transformed(
    space: LayerEmbeddings,
    layers: tuple[int, ...],
    variant: str,
    k: int | None = None,
    fit: str = "task",
    corpus: LayerRows | None = None,
) -> tuple[Float[Tensor, "n m"], int]:
    """The task's sentences in the average of `layers` after `variant`, and the rank of the map."""
    fitted = fit_scope(space, layers, variant, k, fit, corpus)
    return fitted.transform(space), fitted.rank


def covariance(
    space: LayerEmbeddings,
    layers: tuple[int, ...],
    variant: str = "none",
    k: int | None = None,
    fit: str = "task",
    corpus: LayerRows | None = None,
) -> Float[Tensor, "m m"]:
    """Covariance of the task's sentences, as often as they occur, after `variant`: the identity where it whitens."""
    return _covariance(space, transformed(space, layers, variant, k, fit, corpus)[0])


def _covariance(space: LayerEmbeddings, z: Float[Tensor, "n m"]) -> Float[Tensor, "m m"]:
    return Moments.of(z, space.counts).covariance if z.shape[1] else torch.zeros(0, 0, dtype=torch.float64)


def profile(
    space: LayerEmbeddings,
    layers: tuple[int, ...],
    variant: str = "none",
    k: int | None = None,
    positives: str = "gt4",
    how: str = "all",
    fit: str = "task",
    corpus: LayerRows | None = None,
) -> Profile:
    """Measure the average of `layers` after `variant`. Raises ValueError as `fit_scopes.fit_scope` does."""
    variant = str(whitening.parse(variant, space.dim))
    z, rank = transformed(space, layers, variant, k, fit, corpus)
    spread = _covariance(space, z)
    values = linalg.eigenvalues(spread)
    chosen = geometry.positives(space.gold, positives)
    cosines = geometry.pair_cosines(z[space.first], z[space.second])
    empty = z.shape[1] == 0
    nan = float("nan")
    return Profile(
        layers=tuple(layers),
        whitening=variant,
        k=k,
        rank=rank,
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
    variants: Iterable[str],
    positives: str = "gt4",
    how: str = "all",
    progress: Progress | None = None,
    fit: str = "task",
    corpus: LayerRows | None = None,
) -> tuple[Profile, ...]:
    """Every layer under every variant, layer by layer.

    Whitening variants differ by a rotation only, which no measure here sees, so one of them is computed
    and the others are copies of it under their own names.
    """
    variants = tuple(str(whitening.parse(variant, space.dim)) for variant in variants)
    done, total, found = 0, space.n_layers * len(variants), []
    for layer in range(space.n_layers):
        whitened = None
        for variant in variants:
            rotates_only = whitening.whitens(variant)
            if rotates_only and whitened is not None:
                found.append(replace(whitened, whitening=variant))
            else:
                found.append(profile(space, (layer,), variant, None, positives, how, fit, corpus))
            if rotates_only:
                whitened = found[-1]
            done += 1
            if progress:
                progress(done, total)
    return tuple(found)
