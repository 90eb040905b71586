"""A space flattened to two or three coordinates for the eye: PCA or UMAP."""

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.base.checks import check_choice, check_int, check_matrix
from whitelab.base.installation import need
from whitelab.base.progress import Progress, silent
from whitelab.statistics import linalg
from whitelab.statistics.geometry.neighbours import nearest_rows
from whitelab.statistics.moments import Moments
from whitelab.statistics.umap_process import Neighbours, coordinates, coordinates_apart

METHODS = {"pca": "PCA", "umap": "UMAP"}
UMAP_ROWS = 5  # the fewest that it lays out


def project(
    x: Float[Tensor, "n d"],
    method: str = "pca",
    dims: int = 2,
    *,
    neighbors: int = 15,
    seed: int = 0,
    progress: Progress = silent,
    apart: bool = False,
) -> Float[Tensor, "n m"]:
    """Coordinates `[n, dims]` of the rows of `x`.

    `pca` projects on the top principal directions (missing ones are 0). `umap` (McInnes et al. 2018) keeps
    cosine neighbourhoods of `neighbors` rows; distances between far groups and the axes mean nothing. Both
    are deterministic for a seed. `progress(done, total)` may raise to stop UMAP. `apart` computes UMAP in a process of
    its own, so that other threads of this one keep their turn. Raises MissingLibraryError where
    UMAP is asked for and not installed.
    """
    check_choice(method, "method", METHODS)
    check_int(dims, "dims", 2, 3)
    check_int(neighbors, "neighbors", 2)
    check_int(seed, "seed", 0, 2**32 - 1)
    x = check_matrix(x)
    return _pca(x, dims) if method == "pca" else _umap(x, dims, neighbors, seed, progress, apart)


def _pca(x: Tensor, dims: int) -> Tensor:
    moments = Moments.of(x)
    top = linalg.eigen(moments.covariance).top(dims)
    coordinates = (linalg.exact(x) - moments.mean) @ top.vectors
    return torch.nn.functional.pad(coordinates, (0, dims - coordinates.shape[1]))


def _umap(x: Tensor, dims: int, neighbors: int, seed: int, progress: Progress, apart: bool) -> Tensor:
    if len(x) < UMAP_ROWS:
        raise ValueError(f"method='umap' needs at least {UMAP_ROWS} sentences, got {len(x)}; use method='pca'")
    need("umap")
    make = coordinates_apart if apart else coordinates
    rows, threads = x.to(torch.float32).cpu().numpy(), torch.get_num_threads()
    try:
        return torch.from_numpy(make(rows, _neighbours(x, min(neighbors, len(x) - 1)), dims, seed, progress))
    finally:
        if torch.get_num_threads() != threads:  # numba sets OpenMP's, which are torch's too, when it starts its own
            torch.set_num_threads(threads)


def _neighbours(x: Tensor, count: int) -> Neighbours:
    """Of every row the `count` nearest by cosine, itself the first: UMAP's own search takes every pair in Python."""
    found = nearest_rows(x, {"cosine": count - 1})["cosine"]
    rows = torch.cat([torch.arange(len(x))[:, None], found.rows.cpu()], dim=1)
    distances = torch.nn.functional.pad((1 - found.values.cpu()).clamp(min=0), (1, 0))
    return rows.to(torch.int32).numpy(), distances.to(torch.float32).numpy()
