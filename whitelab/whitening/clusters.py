"""Clusters of rows, each with a centre and dominant directions of its own."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from whitelab.base.checks import check_int
from whitelab.base.progress import Progress, silent
from whitelab.base.threads import one_blas_thread
from whitelab.statistics import linalg
from whitelab.statistics.linalg import exact
from whitelab.statistics.moments import Moments
from whitelab.whitening.maps import RowMap

_ROWS = 8192  # rows given to their centroids at once


@dataclass(frozen=True, eq=False)
class ClusterMap(RowMap):
    """z = (I - U_c U_c^T)(x - mu_c) with c the cluster whose centroid is nearest to x; 0 where that may be rounding.

    `tensors`: `centroids` and `means [c, d]`, `tops [c, d, D]`, whose columns are zero where a cluster spans fewer.
    """

    kind: ClassVar[str] = "clusters"

    def __post_init__(self) -> None:
        if len({len(self.tensors[name]) for name in ("centroids", "means", "tops")}) > 1:
            raise ValueError("centroids, means and tops must be those of the same clusters")

    @property
    def dim(self) -> int:
        """d."""
        return self.tensors["means"].shape[1]

    def nearest(self, x: Float[Tensor, "n d"]) -> Int[Tensor, "n"]:
        """The cluster of every row, by the Euclidean distance to its centroid."""
        return _nearest(exact(x), self.tensors["centroids"].to(x.device))

    def _mapped(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        z, own = torch.empty_like(x), self.nearest(x)
        for cluster, (mean, top) in enumerate(zip(self.tensors["means"], self.tensors["tops"], strict=True)):
            rows = own == cluster
            y = x[rows] - mean.to(x.device)
            left = y - (y @ top.to(x.device)) @ top.to(x.device).T
            rounding = left.square().sum(1) < linalg.RANK_TOLERANCE * y.square().sum(1)  # its cosines say nothing
            z[rows] = left.masked_fill(rounding[:, None], 0)
        return z


def fit_clusters(
    x: Float[Tensor, "n d"],
    counts: Float[Tensor, "n"],
    *,
    m: int = 27,
    directions: int = 12,
    seed: int = 0,
    progress: Progress = silent,
) -> ClusterMap:
    """k-means with `m` clusters, and all-but-the-top in each: its mean and `directions` principal directions removed.

    Rajaee and Pilehvar 2021 (27 clusters, 12 directions for BERT), after Cai et al. 2021, who find contextual spaces
    isotropic inside clusters. They cluster the vectors of tokens; here they are those of sentences, and a row counts
    as often as it occurs. k-means is scikit-learn's (k-means++, one start, Lloyd). A cluster of fewer than
    2 `directions` + 2 different rows would be left with next to nothing: the smallest such is dissolved, its rows go
    to the nearest centroid that is left, and so on. There are never more clusters than rows, nor more directions
    removed than d - 1. With m = 1 it is all-but-the-top (Mu and Viswanath 2018, Algorithm 1).
    """
    check_int(m, "m", 1)
    check_int(seed, "seed", 0, 2**32 - 1)
    start = time.perf_counter()
    directions = min(check_int(directions, "directions", 0), x.shape[1] - 1)
    x, counts = exact(x), exact(counts)
    centroids, enough = _centroids(x, counts, m, seed), 2 * directions + 2
    own = _nearest(x, centroids)
    while len(centroids) > 1:
        sizes = [linalg.distinct_rows(x, enough, (own == cluster).nonzero()[:, 0]) for cluster in range(len(centroids))]
        smallest = sizes.index(min(sizes))
        if sizes[smallest] == enough:
            break
        centroids = torch.cat([centroids[:smallest], centroids[smallest + 1 :]])
        own = _nearest(x, centroids)
    means, tops = [], []
    for done, (mean, top) in enumerate(_removals(x, counts, own, len(centroids), directions), 1):
        means.append(mean)
        tops.append(torch.nn.functional.pad(top, (0, directions - top.shape[1])))
        progress(done, len(centroids))
    tensors = {"centroids": centroids, "means": torch.stack(means), "tops": torch.stack(tops)}
    removed = max(int(top.any(0).sum()) for top in tops)
    facts = {"clusters": len(centroids), "seconds": time.perf_counter() - start}
    found = ClusterMap("clusters", x.shape[1] - removed, float(counts.sum()), tensors, facts)
    return found if found(x).any() else replace(found, rank=0)


def _centroids(x: Float[Tensor, "n d"], counts: Float[Tensor, "n"], m: int, seed: int) -> Float[Tensor, "c d"]:
    from sklearn.cluster import KMeans

    m = min(m, len(x))
    if m == 1:
        return (counts @ x / counts.sum())[None]
    rows = x.cpu().numpy()
    origin = rows.mean(0)  # distances of rows far from 0 would lose digits
    with one_blas_thread():
        found = KMeans(m, n_init=1, random_state=seed).fit(rows - origin, sample_weight=counts.cpu().numpy())
    centres = np.unique(found.cluster_centers_, axis=0)  # fewer where rows repeat
    return torch.from_numpy(centres + origin).to(x.device)


def _nearest(x: Float[Tensor, "n d"], centroids: Float[Tensor, "c d"]) -> Int[Tensor, "n"]:
    origin = centroids.mean(0)
    centres = centroids - origin
    offsets = centres.square().sum(1) / 2
    parts = [((part - origin) @ centres.T - offsets).argmax(1) for part in x.split(_ROWS)]
    return torch.cat(parts) if parts else torch.empty(0, dtype=torch.int64, device=x.device)


def _removals(
    x: Tensor, counts: Tensor, own: Int[Tensor, "n"], clusters: int, directions: int
) -> Iterator[tuple[Float[Tensor, "d"], Float[Tensor, "d D"]]]:
    """Mean and first principal directions of every cluster."""
    for cluster in range(clusters):
        rows = own == cluster
        part, weights = x[rows], counts[rows]
        if len(part) >= x.shape[1]:
            moments = Moments.of(part, weights)
            yield moments.mean, moments.eigen.vectors[:, :directions]
            continue
        mean = part[0] + weights @ (part - part[0]) / weights.sum()
        root = (part - mean) * weights.sqrt()[:, None]  # whose d x d covariance is dearer than its few rows
        eigen = linalg.eigen(root @ root.T).top(directions)
        yield mean, root.T @ (eigen.vectors / eigen.values.sqrt())
