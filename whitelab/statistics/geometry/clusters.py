"""Clusters: whether a space that is anisotropic as a whole is isotropic inside its parts."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.base.checks import check_int, check_matrix
from whitelab.base.threads import one_blas_thread
from whitelab.statistics.geometry.isotropy import iso_score
from whitelab.statistics.linalg import exact, gram

CLUSTERS = 10
_SAMPLE = 3000  # rows, drawn with seed 0: k-means and the silhouette of all would cost more than all else


@dataclass(frozen=True)
class Clusters:
    """k-means of at most 3,000 rows: how apart its clusters are, and how isotropic they are inside.

    `silhouette` is the mean of (b - a) / max(a, b), a the mean distance of a row to its own cluster's others and b to
    those of the nearest other cluster (Rousseeuw 1987). `between` is the share of the variance between the clusters'
    centres, `iso_score_within` the IsoScore of the rows measured from their own centre (Cai et al. 2021).
    """

    silhouette: float
    between: float
    iso_score_within: float


def clusters(x: Float[Tensor, "n d"], count: int = CLUSTERS, directions: int | None = None, seed: int = 0) -> Clusters:
    """Find `count` clusters by k-means (Lloyd, started once by k-means++) and measure them.

    `directions` is how many IsoScore counts as all of them (default: d). NaN where there are no more than `count` rows
    or all are equal. Raises ValueError for fewer than 2 clusters.
    """
    check_int(count, "count", 2)
    check_int(seed, "seed", 0, 2**32 - 1)
    x = exact(check_matrix(x)).cpu()
    if len(x) > _SAMPLE:
        x = x[torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))[:_SAMPLE]]
    total = float((x - x.mean(0)).square().sum())
    if len(x) <= count or total <= 0 or len(x.unique(dim=0)) <= count:
        return Clusters(math.nan, math.nan, math.nan)
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    with one_blas_thread():
        found = KMeans(count, n_init=1, random_state=seed).fit(x.numpy())
        silhouette = float(silhouette_score(x.numpy(), found.labels_))
    inside = x - torch.from_numpy(found.cluster_centers_)[torch.from_numpy(found.labels_).long()]
    return Clusters(
        silhouette,
        1 - float(inside.square().sum()) / total,
        iso_score(gram(inside), directions),
    )
