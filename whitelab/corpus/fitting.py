"""A folder of chunks -> the map fitted on all of it, what a space carries to be fitted on, how two corpora differ."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean

import torch

from whitelab import whitening
from whitelab.base.records import without_nan
from whitelab.base.wording import layers_in_words
from whitelab.corpus.chunks import merged_moments, read_chunk, vectors_in
from whitelab.corpus.manifest import Manifest, finished
from whitelab.datasets.layouts import existing_path
from whitelab.encoding.embeddings import MeasuredRows, NotMeasuredError, Origin, held_in_words, layers_held
from whitelab.statistics import geometry
from whitelab.statistics.moments import Moments

CORPUS = "corpus:"  # before a folder, in the name of a fit scope
_HALVED = 16  # chunks that are read to be halved: some 65,000 texts


def corpus_rows(folder: str | Path) -> MeasuredRows:
    """The merged moments of a finished folder, as what a space of the same model carries to be fitted on.

    Raises DataError for a folder without manifest and for chunks that are missing.
    """
    name = f"{CORPUS}{folder}"
    folder, manifest = finished(folder)
    known = _merged(folder, manifest.chunks)
    origin = Origin(
        manifest.model,
        pooling=manifest.recipe.pooling,
        dtype=manifest.compute,
        max_length=manifest.max_length,
        encoder=manifest.recipe.encoder,
    )
    return MeasuredRows(name, origin, manifest.n_layers, manifest.dim, manifest.recipe.layers, known, manifest.digest)


@lru_cache(maxsize=4)
def _merged(folder: Path, chunks: tuple[str, ...]) -> Moments:
    """Kept, because names are of contents: the same chunks have the same moments."""
    return merged_moments(folder, chunks)


def fit_corpus(
    folder: str | Path, spec: str = "pca", k: int | None = None, layers: Sequence[int] | None = None
) -> tuple[whitening.Whitener, dict]:
    """The map of `spec` fitted on the merged moments of a folder's chunks, and a record of it.

    `layers` choose among those that were kept apart (None: all of them, averaged). `digest` is that of the map,
    `distinct` counts different texts (their hashes are held: some 100 bytes each). Raises DataError for a folder
    without manifest and for chunks that are missing, ValueError as `whitening.fit`, NotMeasuredError for layers that it
    does not hold.
    """
    manifest = Manifest.read(folder)
    # Before every chunk is read.
    whitening.check_k(k, str(whitening.parse(spec, manifest.dim)), manifest.dim)
    numbers = _numbers(manifest, layers)
    rows, folder = corpus_rows(folder), existing_path(folder)
    fitted = whitening.fit(spec, _moments(rows, spec, numbers), k)
    distinct = set()
    for name in manifest.chunks:
        distinct.update(read_chunk(folder, name, ("hash",))["hash"].to_pylist())
    return fitted, {
        "model": manifest.model,
        "pooling": manifest.recipe.pooling,
        "max_length": manifest.max_length,
        "dtype": manifest.compute,
        "layers": list(numbers),
        "fitted": round(fitted.count),
        "distinct": len(distinct),
        "digest": fitted.digest,
        "rank": fitted.rank,
        "whitening": fitted.name,
        "k": k,
        "chunks": len(manifest.chunks),
    }


def _numbers(manifest: Manifest, layers: Sequence[int] | None) -> tuple[int, ...]:
    """Layers by their numbers, those that a corpus holds where None. Raises NotMeasuredError for others."""
    recipe = manifest.recipe
    if layers is None:
        return recipe.layers
    numbers = tuple(sorted({layer + manifest.n_layers if layer < 0 else layer for layer in layers}))
    if not layers_held(numbers, recipe.layers, recipe.apart):
        raise NotMeasuredError(
            f"layers={list(numbers)} must be what the corpus holds: {held_in_words(recipe.layers, recipe.apart)}"
        )
    return numbers


def _moments(rows: MeasuredRows, spec: str, numbers: tuple[int, ...]) -> Moments:
    """Those a variant is fitted to. Raises NotMeasuredError for one that layers kept apart do not give."""
    if rows.apart and whitening.needs_rows(spec):
        raise NotMeasuredError(
            f"whitening={spec!r} cannot be fitted to moments of layers kept apart: choose another variant, or embed "
            "the corpus anew with these layers averaged"
        )
    return rows.moments(numbers)


@dataclass(frozen=True)
class Drift:
    """How far another corpus lies from the one a map was fitted on.

    `mean` is the distance of the means over the root of the first's total variance, `variance` the second's total
    variance over the first's, `spectrum` the mean absolute logarithm (base 2) of the variances along the first's kept
    directions, 0 where they are equal. `isotropy` is IsoScore (0 to 1) of the halves of the second, on average, under
    the map of the first, `own` that of each under a map of the other half, so that neither map has seen what it is
    judged by: where `isotropy` is lower than `own` by what matters to you, it is time to fit again. `own` is NaN where
    a half is too small for a map of as many directions.
    """

    whitening: str
    k: int | None
    sentences: tuple[int, int]
    mean: float
    variance: float
    spectrum: float
    isotropy: float
    own: float

    def as_dict(self) -> dict:
        """A JSON-ready record; None where a measure is not defined."""
        return without_nan(asdict(self))


def corpus_drift(
    folder: str | Path, other: str | Path, spec: str = "pca", k: int | None = None, layers: Sequence[int] | None = None
) -> Drift:
    """`drift` of two folders of one model. Raises ValueError for another model, else as `fit_corpus`."""
    one, two = Manifest.read(folder), Manifest.read(other)
    if (one.recipe.encoder, one.recipe.pooling) != (two.recipe.encoder, two.recipe.pooling):
        raise ValueError(
            f"both corpora must be of one model and pooling, got {one.model} ({one.recipe.pooling}) and {two.model} "
            f"({two.recipe.pooling})"
        )
    first, second = corpus_rows(folder), corpus_rows(other)
    numbers, held = _numbers(one, layers), two.recipe
    if not layers_held(numbers, held.layers, held.apart):
        raise NotMeasuredError(
            f"{other} must hold what {folder} is measured by, {layers_in_words(numbers)}, and holds "
            f"{held_in_words(held.layers, held.apart)}"
        )
    halves = _halves(existing_path(other), two, numbers)
    return drift(*(_moments(rows, spec, numbers) for rows in (first, second)), halves, spec, k)


def _halves(folder: Path, manifest: Manifest, numbers: tuple[int, ...]) -> tuple[Moments, ...]:
    """Moments of two halves of a corpus, of one where the other is empty.

    A text's hash decides its half, so that no text is in both; of many chunks some are read.
    """
    held, parts = manifest.recipe.layers, ([], [])
    for name in sorted(manifest.chunks)[:_HALVED]:  # names are digests, so these are some at random
        table = read_chunk(folder, name, ("hash", "vector"))
        x = torch.tensor(vectors_in(table["vector"])).float()
        if manifest.recipe.apart:
            x = x.view(len(x), len(held), -1)[:, [held.index(layer) for layer in numbers]].mean(1)
        second = torch.tensor([digest[-1] % 2 == 1 for digest in table["hash"].to_pylist()])
        for part, rows in zip(parts, (x[~second], x[second]), strict=True):
            part += [Moments.of(rows)] if len(rows) else []
    return tuple(Moments.merged(part) for part in parts if part)


def drift(one: Moments, two: Moments, halves: Sequence[Moments], spec: str = "pca", k: int | None = None) -> Drift:
    """How far sentences of `two`, whose `halves` these are, lie from those of `one`.

    Raises ValueError for another d, and as `whitening.fit`.
    """
    if one.dim != two.dim:
        raise ValueError(f"two must have d={one.dim} dimensions, got {two.dim}")
    fitted = whitening.fit(spec, one, k)
    total, directions = one.covariance.trace(), one.eigen
    along = torch.linalg.vecdot(directions.vectors.T, directions.vectors.T @ two.covariance).clamp_min(1e-300)
    return Drift(
        fitted.name,
        k,
        (round(one.count), round(two.count)),
        float((two.mean - one.mean).norm() / total.sqrt()),
        float(two.covariance.trace() / total),
        float((along / directions.values).log2().abs().mean()),
        fmean(isotropy(half, fitted) for half in halves),
        _own(halves, spec, k, fitted.rank),
    )


def _own(halves: Sequence[Moments], spec: str, k: int | None, rank: int) -> float:
    """The isotropy of each half under a map of the other, on average; NaN where one has another rank than `rank`."""
    maps = [whitening.fit(spec, half, k) for half in halves]
    if len(maps) < 2 or any(one.rank != rank for one in maps):
        return float("nan")
    return fmean(map(isotropy, halves, reversed(maps)))


def isotropy(moments: Moments, fitted: whitening.Whitener) -> float:
    """IsoScore (Rudman et al. 2022), 0 to 1, of sentences under a map; NaN below two directions."""
    matrix = fitted.dense
    return geometry.iso_score(matrix.T @ moments.covariance @ matrix, fitted.rank)
