"""A folder that holds a map with its encoder: filled aside, compared with whitelab, packed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

import whitelab
from whitelab.base.checks import check_is, check_layers
from whitelab.encoding.embed import embed
from whitelab.encoding.encoders import Encoder
from whitelab.encoding.names import ONE_LAYER
from whitelab.store.aside import folder_aside, let_read
from whitelab.whitening import Map, Whitener
from whitelab.whitening.export.contents import as_affine, as_json, as_record
from whitelab.whitening.export.formats import FORMATS, RANDOM, Scale, check_holds
from whitelab.whitening.export.npz_file import scale_lines
from whitelab.whitening.export.places import ExportError, target, writing

NOTE = "whitelab.json"  # lists the files of a model folder of ours
SCALE = "cosine_scale.npz"  # what its cosines mean
WHITE_SPACE = "White space at the ends of a sentence, which whitelab strips from its data, is left to you."

# A model folder must give these the vectors that whitelab gives them. Two lengths, so that padding takes part.
# Rounding in float32 changes what an encoder gives by some 1e-6 of its length (measured), and what a map makes
# of it by 1e-7 times the spread of its singular values, at most 1e5; a mistake changes it by more than a tenth.
PROBES = ("A man is playing a guitar in front of the old house by the river.", "water")
POOLED_TOLERANCE, MAPPED_TOLERANCE = 1e-3, 5e-2


def checked(
    form: str, encoder: Encoder, layers: Sequence[int], pooling: str, whitener: Map, protocol: Mapping | None
) -> tuple[tuple[int, ...], str, Whitener, dict]:
    """Layers, pooling and map that a form of `FORMATS` can hold with the encoder, and the record of them all.

    Raises ExportError for a model, a map or a dtype that it cannot hold, ValueError for layers or a pooling that do not
    exist.
    """
    check_is(encoder, "encoder", Encoder, "load_encoder('bundled') gives")
    layers = check_layers(layers, encoder.n_layers)
    whole = encoder.files.kind not in ONE_LAYER
    pooling = check_holds(form, encoder.check_pooling(pooling), "" if whole else encoder.name)
    whitener = as_affine(whitener)
    if whitener.mean.shape[0] != encoder.dim:
        raise ExportError(f"whitener must take the model's d={encoder.dim} dimensions, got {whitener.mean.shape[0]}")
    if encoder.dtype != "float32":
        raise ExportError(f"dtype={encoder.dtype!r} must be 'float32', in which {FORMATS[form].label} computes")
    return layers, pooling, whitener, as_record(protocol or {}) | encoder_record(encoder, layers, pooling, whitener)


def pooled_probes(encoder: Encoder, layers: tuple[int, ...], pooling: str) -> Float[Tensor, "n d"]:
    """What whitelab makes of `PROBES` before the map, in float64."""
    values, _ = embed(encoder, PROBES, pooling)
    return values[list(layers)].to(torch.float64).mean(dim=0)


@contextmanager
def model_folder(folder: str | Path, record: Mapping) -> Iterator[Path]:
    """A folder aside to fill, which gets its name with a note of `record` and of what lies in it; whole or absent.

    Raises ExportError where it cannot be written, or what lies there is not an earlier export.
    """
    folder = target(folder, is_model_folder)
    with writing(folder), folder_aside(folder) as aside:
        yield aside
        files = sorted(path.relative_to(aside).as_posix() for path in aside.rglob("*") if path.is_file())
        note = {"whitelab": whitelab.__version__, "protocol": dict(record), "files": [*files, NOTE]}
        (aside / NOTE).write_text(as_json(note, indent=2), "utf-8")
        let_read(aside)


def write_scale(aside: Path, scale: Scale | None) -> str:
    """Write what cosines mean, where it is known, as `cosine_scale.npz`; the part of a README that reads it."""
    if not scale:
        return ""
    np.savez(aside / SCALE, **scale)
    lines = scale_lines(f"path/to/this/folder/{SCALE}", "gold" in scale, among=str(scale.get("among", RANDOM)))
    return f"\n## What a cosine means\n\n```python\nimport numpy as np\n\n{lines}```\n"


def zip_folder(folder: str | Path, path: str | Path | BytesIO, name: str = "") -> None:
    """Pack a folder, under its own name or this one ("." for none), into a .zip at `path` or in memory.

    Weights, which do not shrink, are stored as they are.
    """
    folder = Path(folder)
    with ZipFile(path, "w") as packed:
        for file in sorted(one for one in folder.rglob("*") if one.is_file()):
            kind = ZIP_STORED if file.suffix == ".safetensors" else ZIP_DEFLATED
            packed.write(file, Path(name or folder.name) / file.relative_to(folder), kind)


def check_near(found: Tensor, expected: Tensor, tolerance: float, name: str, form: str) -> None:
    """Raise ExportError unless the rows `found` in an exported form of the model are the `expected`, up to rounding."""
    # Measured by the longest: with k = 1, one vector may lie next to 0 by chance.
    apart = float((found - expected).norm(dim=1).max() / expected.norm(dim=1).max())
    if apart <= tolerance:
        return
    mapped = " once whitened: keep fewer directions (k), the last hold little but rounding"
    raise ExportError(
        f"model={name!r} cannot be exported to {form}: loaded back, its vectors are off by {apart:.1e} of their "
        f"length{mapped if tolerance == MAPPED_TOLERANCE else ''}"
    )


def encoder_record(encoder: Encoder, layers: tuple[int, ...], pooling: str, whitener: Whitener) -> dict:
    """The part of a protocol that decides a vector."""
    return {
        "model": encoder.name,
        "layers": list(layers),
        "combine": "mean",
        "pooling": pooling,
        "whitening": whitener.name,
        "k": whitener.k,
        "rank": whitener.rank,
        "fitted": round(whitener.count),
        "dim": whitener.dense.shape[1],
        "dtype": encoder.dtype,
        "max_length": encoder.max_length,
    }


def is_model_folder(path: Path) -> bool:
    """Whether all that lies in the folder is of an earlier export."""
    if not path.is_dir():
        return False
    found = {one.relative_to(path).as_posix() for one in path.rglob("*") if not one.is_dir()}
    try:
        return not found or found <= set(json.loads((path / NOTE).read_text("utf-8"))["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
