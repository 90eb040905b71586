"""How a corpus settles while it grows: what a map fitted on the first chunks makes of the next."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

from whitelab import whitening
from whitelab.corpus.chunks import is_done, merged_moments, read_moments
from whitelab.corpus.fitting import isotropy
from whitelab.corpus.manifest import Manifest
from whitelab.datasets.layouts import existing_path
from whitelab.encoding.embeddings import MeasuredRows, Origin

MOST = 128  # chunks looked at, half a million sentences: no spectrum of some thousand dimensions moves after that


@dataclass(frozen=True)
class Settling:
    """Of a folder's chunks: `sentences` of the fits, `isotropy` of each fit on the chunks after it.

    `spectrum` is that of all chunks that were looked at, as many values as they have rank, `seen` their sentences,
    `dim` the dimensions of their vectors.
    """

    sentences: tuple[int, ...]
    isotropy: tuple[float, ...]
    spectrum: tuple[float, ...]
    seen: int
    dim: int


def settling(folder: str | Path, spec: str = "zca", k: int | None = None) -> Settling:
    """Fits on 1, 2, 4, ... of the chunks that are there, in the manifest's order, each measured on as many after them.

    That order is of names, which are digests: neither that of the texts nor that in which the chunks were done.
    IsoScore (0 to 1) of rows that the map has not seen; layers kept apart are averaged. Empty before two chunks are
    there. Raises DataError without manifest, ValueError as `whitening.fit`.
    """
    manifest, folder = Manifest.read(folder), existing_path(folder)
    there = {path.stem for path in folder.glob("*.parquet")}  # one listing, so that few files are opened
    listed = (name for name in dict.fromkeys(manifest.chunks) if name in there and is_done(folder, name))
    names = tuple(islice(listed, MOST))
    if not names:
        return Settling((), (), (), 0, manifest.dim)
    recipe = manifest.recipe

    def averaged(first: int, last: int):
        known = _between(folder, names[first:last])
        rows = MeasuredRows("", Origin(), manifest.n_layers, manifest.dim, recipe.layers, known)
        return rows.moments(recipe.layers)

    sentences, values, count = [], [], 1
    while 2 * count <= len(names):
        seen = averaged(0, count)
        sentences.append(round(seen.count))
        values.append(isotropy(averaged(count, 2 * count), whitening.fit(spec, seen, k)))
        count *= 2
    whole = averaged(0, len(names))
    return Settling(
        tuple(sentences), tuple(values), tuple(whole.eigen.values.tolist()), round(whole.count), manifest.dim
    )


@lru_cache(maxsize=24)
def _between(folder: Path, names: tuple[str, ...]):
    """Merged moments of some chunks, kept: the first ones stay the first once they are all there."""
    if len(names) < 2:
        return read_moments(folder, names[0])
    half = 1 << (len(names) - 1).bit_length() - 1
    one, two = _between(folder, names[:half]), merged_moments(folder, names[half:])
    return one.merge(two)
