"""Every vector of a corpus under a map: whitened, cut to k, of length 1, in fewer bits; chunk by chunk, as before."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from whitelab import whitening
from whitelab.base.checks import check_choice
from whitelab.base.progress import Progress, silent
from whitelab.base.threads import one_thread
from whitelab.corpus.chunks import Recipe, is_complete, read_chunk, rows_of, vectors_in, write_vectors
from whitelab.corpus.manifest import MANIFEST, Manifest, finished, missing_note, place_for
from whitelab.datasets.pairs import DataError
from whitelab.store.aside import remove_abandoned, write_aside
from whitelab.whitening.export import ExportError, from_npz, npz_bytes

# What a chunk can hold, all of vectors of length 1. int8 has 127 where a vector is largest, bits are signs, eight to a
# byte, the first dimension in the highest bit (numpy.packbits): over its length each stands for the vector.
CODES = ("float16", "float32", "int8", "bits")
MAP, IDS = "map.npz", "ids.parquet"  # of an index; an applied folder names its map in the manifest


def apply_map(
    folder: str | Path,
    out: str | Path,
    fitted: whitening.Whitener,
    record: Mapping,
    vectors: str = "float16",
    progress: Progress = silent,
) -> dict:
    """Write ids and mapped vectors of a finished folder to `out`, and the map itself; what is there is not done again.

    Map and chunks are named by what is in them and the manifest comes last, so that until all is there `out` stays
    what an earlier call made it. `record` is the map's protocol (`layers` say which of those kept apart it is of).
    Returns the manifest. Raises DataError for a corpus that is not whole, ValueError for a map of another d or pooling,
    OSError where the disk refuses.
    """
    check_choice(vectors, "vectors", CODES)
    out = place_for(out, "apply")
    folder, manifest = finished(folder)
    layers = tuple(record.get("layers", manifest.recipe.layers))
    places = _places(manifest, layers)
    check_map(fitted, record, manifest)
    out.mkdir(parents=True, exist_ok=True)
    remove_abandoned(out)
    digest = fitted.digest
    write_aside(out / f"{digest}.npz", npz_bytes(fitted, record))  # also where a damaged one lies
    names = _names(manifest.chunks, digest, vectors, layers)
    written = 0
    for done, (chunk, name) in enumerate(zip(manifest.chunks, names, strict=True)):
        if not is_complete(out / f"{name}.parquet", name):
            table = read_chunk(folder, chunk)
            mapped = _coded(_mapped(table, manifest, fitted, places), vectors)
            write_vectors(out / f"{name}.parquet", table["id"], mapped, {"chunk": name, "of": chunk})
            written += 1
        progress(done + 1, len(names))
    found = {
        "corpus": str(folder.resolve()), "model": manifest.model, "loaded": manifest.loaded,
        "pooling": manifest.recipe.pooling,
        "layers": list(layers), "max_length": manifest.max_length, "compute": manifest.compute,
        "whitening": fitted.name, "k": fitted.k, "dim": fitted.columns, "vectors": vectors,
        "sentences": manifest.sentences, "chunks": names, "of": list(manifest.chunks), "texts": list(manifest.texts),
        "map": f"{digest}.npz", "written": written,
        "embedded": asdict(manifest.recipe),
    }  # fmt: skip
    write_aside(out / MANIFEST, json.dumps(found, indent=1).encode())
    return found


def _names(chunks: Sequence[str], digest: str, vectors: str, layers: tuple[int, ...]) -> list[str]:
    """What the chunks of an embedded corpus are called under the map of that digest."""
    recipe = f"{digest} {vectors} {layers}"
    return [blake2b(f"{one} {recipe}".encode(), digest_size=16).hexdigest() for one in chunks]


def _places(manifest: Manifest, layers: tuple[int, ...]) -> list[int] | None:
    """Where the map's layers are in a stored vector; None where vectors are their average already."""
    if not manifest.recipe.apart:
        if layers != manifest.recipe.layers:
            raise ValueError(f"map is of layers {list(layers)}, the corpus of {list(manifest.recipe.layers)}")
        return None
    if not set(layers) <= set(manifest.recipe.layers):
        raise ValueError(f"map is of layers {list(layers)}, the corpus keeps {list(manifest.recipe.layers)}")
    return [manifest.recipe.layers.index(layer) for layer in layers]


def check_map(fitted: whitening.Map, record: Mapping, manifest: Manifest) -> None:
    """Raise ValueError for a map with its record of another d or pooling than a corpus."""
    if fitted.dim != manifest.dim:
        raise ValueError(f"map must be one of d={manifest.dim} dimensions, got {fitted.dim}")
    if (other := record.get("pooling", manifest.recipe.pooling)) != manifest.recipe.pooling:
        raise ValueError(f"map must be of the corpus's pooling {manifest.recipe.pooling!r}, got one of {other!r}")


def _mapped(table, manifest: Manifest, fitted: whitening.Map, places: list[int] | None) -> Tensor:
    """`[n, m]`, of length 1, in float32; computed in float64."""
    x = torch.tensor(vectors_in(table["vector"]), dtype=torch.float64)
    if places is not None:
        x = x.view(len(x), -1, manifest.dim)[:, places].mean(1)
    with one_thread():
        return torch.nn.functional.normalize(fitted(x)).float()


def _coded(mapped: Tensor, vectors: str) -> np.ndarray:
    if vectors == "bits":
        return np.packbits(mapped.numpy() > 0, axis=1)
    if vectors == "int8":
        most = mapped.abs().amax(1, keepdim=True).clamp_min(1e-30)
        return (mapped * (127 / most)).round().to(torch.int8).numpy()
    return mapped.to(getattr(torch, vectors)).numpy()


def decoded(values: np.ndarray, manifest: Mapping) -> np.ndarray:
    """Stored vectors as float32 `[n, m]` of length 1, bits as plus and minus 1.

    Raises DataError where they are not as wide as the manifest says, which of some maps it once said wrong.
    """
    wide = -(-manifest["dim"] // 8) if manifest["vectors"] == "bits" else manifest["dim"]
    if values.shape[1] != wide:
        raise DataError(f"{MANIFEST} says {manifest['dim']} dimensions, and the chunks hold others; run apply again")
    if manifest["vectors"] == "bits":
        values = np.unpackbits(values, axis=1, count=manifest["dim"]).astype(np.float32) * 2 - 1
    found = values.astype(np.float32)
    if manifest["vectors"] != "float32":  # a cosine of rounded vectors exceeds 1
        found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), np.float32(1e-30))
    return found


def decoded_shard(folder: Path, name: str, manifest: Mapping) -> np.ndarray:
    """All stored vectors of one chunk of an applied folder, as `decoded`."""
    return decoded(vectors_in(read_chunk(folder, name, ("vector",))["vector"]), manifest)


def map_of(folder: Path, manifest: Mapping) -> Path:
    """Where the map lies whose vectors are in an applied folder, or in an index of one."""
    return folder / manifest.get("map", MAP)  # without one in those written before


def read_map(folder: Path, manifest: Mapping) -> whitening.Whitener:
    """The map whose vectors are in an applied folder, or in an index of one.

    Raises DataError where it is not whole or not there, and where it is not what the manifest says.
    """
    path = map_of(folder, manifest)
    try:
        fitted, _ = from_npz(path)
    except ExportError:
        raise not_whole(path, manifest) from None
    _check_said(folder, manifest, fitted)
    return fitted


def _check_said(folder: Path, manifest: Mapping, fitted: whitening.Map) -> None:
    """Raise DataError where a manifest of `apply_map` or of an index says what its chunks and its map do not bear out.

    Chunks are named by all that decides them, so that names which follow from what it says show that it is so. What
    was written before `embedded` stood there is taken as it is.
    """
    if "embedded" not in manifest:
        return
    try:
        layers, vectors = tuple(manifest["layers"]), manifest["vectors"]
        recipe = Recipe(**manifest["embedded"] | {"layers": tuple(manifest["embedded"]["layers"])})
        embedded = [recipe.name(one) for one in manifest["texts"]]
        names = _names(embedded, fitted.digest, vectors, layers)
        same = (embedded, names, recipe.pooling) == (manifest["of"], manifest["chunks"], manifest["pooling"])
        named = manifest["k"] in (None, fitted.k)  # older ones took it from a record, which may lack it
        same &= named and manifest["whitening"] == fitted.name
        if same and "index" not in manifest:
            same = sum(rows_of(folder, name) for name in names) == manifest["sentences"]
    except (KeyError, TypeError, AttributeError):
        same = False
    if not same:
        raise not_whole(folder / MANIFEST, manifest, "it says what its chunks and its map do not bear out")


def not_whole(path: Path, manifest: Mapping, why: str = "") -> DataError:
    """What is said of a file of an applied folder, or of an index, that is not what its step wrote."""
    step = "index" if "index" in manifest else "apply"
    return DataError(f"{path}: not whole{f' ({why})' * bool(why)}: make it again with `corpus {step}`")


def read_applied(folder: Path) -> dict:
    """The manifest of `apply_map` or of an index. Raises DataError where there is none, or a chunk is missing."""
    try:
        found = json.loads((folder / MANIFEST).read_bytes())
        names = [] if "index" in found else found["chunks"]
        if "width" in found:  # as it was called before
            found["dim"] = found.pop("width")
        found["dim"], found["vectors"], found["corpus"], found["texts"]
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(
            f"{folder}: must be what `corpus apply` or `corpus index` wrote, with its {MANIFEST}; what `corpus embed` "
            "wrote goes through `corpus apply` first, with --whitening none where it is to stay as it is"
        ) from None
    missing = [name for name in dict.fromkeys(names) if not (folder / f"{name}.parquet").exists()]
    if missing:
        raise DataError(f"{folder}: {missing_note(missing, names)}; run apply again")
    return found
