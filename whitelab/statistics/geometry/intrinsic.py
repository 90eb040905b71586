"""Intrinsic dimension: how many coordinates the rows would need near any one of them, from neighbours' distances."""

import numpy as np
from jaxtyping import Float
from torch import Tensor

from whitelab.base.checks import check_int, check_shape
from whitelab.statistics.linalg import exact

NEIGHBOURS = 20  # of the maximum likelihood estimate

# A row whose nearest other row is no farther than this has a double, and the ratio of its distances says nothing.
APART = 1e-9
# The logarithm of the ratio of two distances that are one but for rounding (whitening every direction of n <= d
# sentences makes all their distances one).
_EQUAL = 1e-9


def two_nn(distances: Float[Tensor | np.ndarray, "n t"]) -> float:
    """N / sum ln(r_2 / r_1) over the N rows with r_1 > 1e-9: TwoNN by maximum likelihood (Facco et al. 2017).

    From each row's Euclidean distances to its nearest rows, ascending (`nearest_rows`); t >= 2. The ratio r_2 / r_1
    has the density d mu^(-d-1), whose likelihood is largest there; the paper itself fits a line to the
    distribution function. NaN where no row counts or r_2 = r_1 everywhere.
    """
    distances = exact(check_shape(distances, "distances", "n t"))
    check_int(distances.shape[1], "columns of distances", 2)
    near = distances[distances[:, 0] > APART]
    logs = (near[:, 1] / near[:, 0]).log()
    return len(near) / float(logs.sum()) if (logs > _EQUAL).any() else float("nan")


def mle_dimension(distances: Float[Tensor | np.ndarray, "n t"], k: int = NEIGHBOURS) -> float:
    """The mean over rows of (1 / (k - 1) sum_{j<k} ln(T_k / T_j))^-1 (Levina and Bickel 2004, Eq. 8 and 9).

    T_j is a row's distance to its j-th nearest row, in column j - 1. Rows with T_1 <= 1e-9 are left out, as in
    `two_nn`, and so are those whose k distances are all equal; NaN where none is left.
    """
    distances = exact(check_shape(distances, "distances", "n t"))
    check_int(k, "k", 2, distances.shape[1], "columns of distances")
    near = distances[distances[:, 0] > APART, :k]
    logs = (near[:, -1:] / near[:, :-1]).log().mean(1)
    logs = logs[logs > _EQUAL]
    return float((1 / logs).mean()) if len(logs) else float("nan")
