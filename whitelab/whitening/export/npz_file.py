"""A mean and a matrix in one .npz, which NumPy reads without pickles, and back."""

import io
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch

import whitelab
from whitelab.base.user_folders import expanded
from whitelab.store.aside import write_aside
from whitelab.whitening import Map, Whitener
from whitelab.whitening.export.contents import as_affine, as_json, as_numpy, as_record, checked_map, kept_matrix
from whitelab.whitening.export.formats import RANDOM, Scale
from whitelab.whitening.export.places import ExportError, target, writing

# What numpy raises for no file, another kind of file, a damaged one, and one that holds other things.
NOT_AN_NPZ = (OSError, ValueError, EOFError, AttributeError, TypeError, KeyError, BadZipFile, zlib.error)


def to_npz(path: str | Path, whitener: Map, protocol: Mapping, scale: Scale | None = None) -> None:
    """Write `mean [d]` and `matrix [d, m]` in float64, with z = (x - mean) @ matrix, to an .npz at `path`.

    `scale` says what its cosines mean (`scoring.calibration.Calibration.arrays`): `numpy.interp` of a cosine with
    `cosine` and `percentile` is its percentile, and with `gold_cosine` and `gold` the gold score it stands for.
    Beside them, as text: `protocol` (JSON), `whitener` (JSON: name, rank, k, count) and `whitelab` (the
    version). No pickles: `numpy.load(path)` reads all of it. Raises ExportError where it cannot be written, for a map
    that keeps no direction, and for one that is no mean and matrix, as all but `to_safetensors` do.
    """
    path = target(path, is_npz)
    with writing(path):
        write_aside(path, npz_bytes(whitener, protocol, scale))


def npz_bytes(whitener: Map, protocol: Mapping, scale: Scale | None = None) -> bytes:
    """What `to_npz` writes."""
    whitener = as_affine(whitener)
    matrix = kept_matrix(whitener)
    facts = {"name": whitener.name, "rank": whitener.rank, "k": whitener.k, "count": whitener.count}
    data = io.BytesIO()
    np.savez(
        data,
        mean=as_numpy(whitener.mean),
        matrix=matrix,
        protocol=np.array(as_json(as_record(protocol))),
        whitener=np.array(as_json(facts)),
        whitelab=np.array(whitelab.__version__),
        **(scale or {}),
    )
    return data.getvalue()


def from_npz(path: str | Path) -> tuple[Whitener, dict]:
    """The map and the protocol that `to_npz` wrote. Raises ExportError for any other file."""
    wanted = f"path={str(path)!r} must be an .npz written by whitelab"
    try:
        with np.load(expanded(path), allow_pickle=False) as file:
            facts, protocol = json.loads(str(file["whitener"])), json.loads(str(file["protocol"]))
            tensors = {name: torch.from_numpy(file[name]) for name in ("mean", "matrix")}
    except FileNotFoundError:
        raise ExportError(f"{wanted}, and there is no such file") from None
    except NOT_AN_NPZ:
        raise ExportError(wanted) from None
    return checked_map("affine", tensors, facts, protocol, wanted)


def scale_lines(path: str | Path, gold: bool, cosine: str = "0.7", among: str = RANDOM) -> str:
    """The lines that read what `cosine` means `among` others from an .npz at `path`; with `gold`, its score too."""
    more = 'gold = np.interp(cosine, scale["gold_cosine"], scale["gold"])\n' if gold else ""
    return (
        f"scale, cosine = np.load({str(path)!r}), {cosine}\n"
        f'percentile = np.interp(cosine, scale["cosine"], scale["percentile"])  # among {among}, 0 to 100\n{more}'
    )


def numpy_lines(path: str | Path) -> str:
    """The lines of Python that apply the .npz at `path` with NumPy alone, to be shown and copied."""
    return f'''import numpy as np

with np.load({str(path)!r}) as file:
    mean, matrix = file["mean"], file["matrix"]
    protocol = str(file["protocol"])  # how the map was made, as JSON


def whiten(x):
    """Embeddings [n, d], or a single one [d], to whitened ones [n, m] or [m]."""
    x = np.asarray(x, dtype=np.float64)
    if x.shape[-1:] != mean.shape:
        raise ValueError(f"x must have d={{len(mean)}} columns, as what the map was fitted on; got {{x.shape}}")
    return (x - mean) @ matrix
'''


def is_npz(path: Path) -> bool:
    """Whether `to_npz` has written it."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {"mean", "matrix", "protocol", "whitener", "whitelab"} <= set(getattr(file, "files", ()))
    except NOT_AN_NPZ:
        return False
