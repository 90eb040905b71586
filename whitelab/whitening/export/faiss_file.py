"""A mean and a matrix as a `faiss.LinearTransform`."""

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

import whitelab
from whitelab.base.installation import need
from whitelab.store.aside import write_aside
from whitelab.whitening import Map
from whitelab.whitening.export.contents import as_affine, as_float32, as_json, as_numpy, as_record, kept_matrix
from whitelab.whitening.export.places import target, writing

MARK = b"whitelab"  # the last bytes of a faiss file of ours, which faiss does not read


def to_faiss(path: str | Path, whitener: Map, protocol: Mapping | None = None) -> None:
    """Write the map as a `faiss.LinearTransform` with bias, for `faiss.read_VectorTransform(path)`.

    A is matrix^T rounded to float32, in which faiss works, and b = -A mean is computed in float64 from the
    rounded A, so that the mean still goes to 0. Results differ from ours by the rounding of A x + b, which
    grows with the distance from the origin: some 1e-6 of a vector's length for sentence embeddings. faiss
    has no place for a `protocol`: it follows the bytes that faiss reads, with whitelab's version, as JSON on
    a line of its own, the last but one. Raises ExportError where the file cannot be written.
    """
    path = target(path, is_faiss)
    with writing(path):
        write_aside(path, faiss_bytes(whitener, protocol))


def faiss_bytes(whitener: Map, protocol: Mapping | None = None) -> bytes:
    """What `to_faiss` writes. Raises MissingLibraryError where faiss is not installed."""
    whitener = as_affine(whitener)
    need("faiss")
    import faiss

    matrix = as_float32(kept_matrix(whitener).T)
    transform = faiss.LinearTransform(*matrix.shape[::-1], True)
    faiss.copy_array_to_vector(matrix.ravel(), transform.A)
    faiss.copy_array_to_vector(as_float32(-matrix.astype(np.float64) @ as_numpy(whitener.mean)), transform.b)
    transform.is_trained = True
    transform.set_is_orthonormal()
    writer = faiss.VectorIOWriter()
    faiss.write_VectorTransform(transform, writer)
    record = {"whitelab": whitelab.__version__} | as_record(protocol or {})
    return b"\n".join([faiss.vector_to_array(writer.data).tobytes(), as_json(record).encode(), MARK])


def is_faiss(path: Path) -> bool:
    """Whether `to_faiss` has written it."""
    try:
        with path.open("rb") as file:
            file.seek(-len(MARK), os.SEEK_END)
            return file.read() == MARK
    except OSError:
        return False
