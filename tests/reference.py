"""Slow and plain oracles in float64, written from the papers' equations. Nothing here imports whitelab."""

import numpy as np
from scipy.integrate import quad
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

CUT_OFF = 1e-10


def occurrences(x, counts):
    """Every row as often as it occurs."""
    return np.repeat(np.asarray(x, dtype=np.float64), np.asarray(counts).astype(int), axis=0)


def directions(x):
    """Mean, variances (descending) and axes [r, d] of the rows of `x`, by SVD of the centred data.

    Su et al. 2021, Eq. 3-8: Sigma = U Lambda U^T; here Lambda = s^2 / (n - 1), and axes with
    lambda < 1e-10 lambda_1 are dropped.
    """
    x = np.asarray(x, dtype=np.float64)
    mean = x.mean(axis=0)
    _, s, vt = np.linalg.svd(x - mean, full_matrices=False)
    variance = s**2 / max(len(x) - 1, 1)
    kept = (variance >= CUT_OFF * variance[0]) & (variance > 0)
    return mean, variance[kept], vt[kept]


def whiten(fit_rows, x, variant, k=None):
    """`x` under the variant fitted on `fit_rows`; whitenings of Kessy et al. 2018, Table 1.

    pca: Lambda^(-1/2) U^T, its first k rows (Su et al. 2021, Algorithm 1). zca: U Lambda^(-1/2) U^T.
    cholesky: any map with the same W^T W has the same cosines, so at reduced rank the PCA map stands in.
    """
    x = np.asarray(x, dtype=np.float64)
    if variant == "none":
        return x
    mean, variance, axes = directions(fit_rows)
    centred = x - mean
    if variant == "center":
        return centred if k is None else centred @ axes[:k].T
    if variant == "standardize":
        return centred / np.asarray(fit_rows, dtype=np.float64).std(axis=0, ddof=1)
    if variant == "cholesky" and k is None and len(axes) == x.shape[1]:
        factor = np.linalg.cholesky(np.cov(np.asarray(fit_rows, dtype=np.float64).T))
        return np.linalg.solve(factor, centred.T).T
    z = centred @ axes[:k].T / np.sqrt(variance[:k])
    return z @ axes[:k] if variant == "zca" else z


def pair_cosines(a, b):
    """a.b / (||a|| ||b||), one pair at a time, rounded to 12 decimals; 0 for a zero vector."""
    found = []
    for u, v in zip(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64), strict=True):
        norm = np.linalg.norm(u) * np.linalg.norm(v)
        found.append(0.0 if norm == 0 else round(float(u @ v / norm), 12))
    return np.array(found)


def spearman(x, gold):
    """scipy's Spearman, NaN where it is not defined."""
    x, gold = np.asarray(x), np.asarray(gold)
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(gold) == 0:
        return np.nan
    return float(spearmanr(x, gold).statistic)


def aggregate(x, gold, subset, how):
    """SimCSE Table B.1: `all` concatenates the subsets, `mean` and `wmean` average their correlations."""
    x, gold, subset = np.asarray(x), np.asarray(gold), np.asarray(subset)
    if how == "all":
        return spearman(x, gold)
    numbers, sizes = np.unique(subset, return_counts=True)
    scores = [spearman(x[subset == number], gold[subset == number]) for number in numbers]
    return float(np.average(scores, weights=sizes if how == "wmean" else None))


def combined(space, layers):
    """WhiteningBERT, section 3.2: the mean of the layers."""
    return np.mean([space.values[layer].numpy().astype(np.float64) for layer in layers], axis=0)


def task_rows(space, layers):
    """Every sentence occurrence of both columns, what WhiteningBERT fits on."""
    x = combined(space, layers)
    return np.concatenate([x[space.first.numpy()], x[space.second.numpy()]])


def transformed(space, layers, variant, k=None):
    """The task's sentences after the variant."""
    return whiten(task_rows(space, layers), combined(space, layers), variant, k)


def score(space, layers, variant="none", k=None, how="all"):
    """Spearman x 100 of a whole protocol."""
    z = transformed(space, layers, variant, k)
    cosines = pair_cosines(z[space.first.numpy()], z[space.second.numpy()])
    return 100 * aggregate(cosines, space.gold.numpy(), space.subset.numpy(), how)


def unit(x):
    """Rows divided by their length; a zero row stays zero."""
    x = np.asarray(x, dtype=np.float64)
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return np.divide(x, length, out=np.zeros_like(x), where=length > 0)


def mean_cosine(x):
    """Ethayarajh 2019, section 3.2, over every i != j instead of a sample."""
    u = unit(x)
    return float(np.mean([u[i] @ u[j] for i in range(len(u)) for j in range(len(u)) if i != j]))


def participation_ratio(covariance):
    """(sum lambda)^2 / sum lambda^2."""
    values = np.linalg.eigvalsh(covariance)
    return float(values.sum() ** 2 / (values**2).sum())


def effective_rank(x):
    """Roy and Vetterli 2007, Eq. 2-4: exp of the entropy of the singular values of the centred data."""
    s = np.linalg.svd(x - x.mean(axis=0), compute_uv=False)
    p = s[s > 1e-12 * s[0]] / s.sum()
    return float(np.exp(-(p * np.log(p)).sum()))


def alignment(a, b, alpha=2.0):
    """WhitenedCSE Eq. 9 (Wang and Isola 2020): E ||f(x) - f(x+)||^alpha."""
    return float((np.linalg.norm(unit(a) - unit(b), axis=1) ** alpha).mean())


def uniformity(x, t=2.0):
    """WhitenedCSE Eq. 10 (Wang and Isola 2020): log E exp(-t ||f(x) - f(y)||^2) over i < j."""
    return float(np.log(np.exp(-t * pdist(unit(x), "sqeuclidean")).mean()))


def uniformity_floor(dim, t=2.0):
    """log E exp(-2t (1 - s)) by quadrature over the angle; the density of the angle is sin^(d - 2)."""
    density = quad(lambda angle: np.sin(angle) ** (dim - 2), 0, np.pi)[0]
    kernel = quad(lambda a: np.exp(-2 * t * (1 - np.cos(a))) * np.sin(a) ** (dim - 2), 0, np.pi)[0]
    return float(np.log(kernel / density))


def neighbours(x, top):
    """Cosines of every row with every other (its own is -inf) and the rows of the `top` largest."""
    cosines = unit(x) @ unit(x).T
    np.fill_diagonal(cosines, -np.inf)
    return cosines, np.argsort(-cosines, axis=1, kind="stable")[:, :top]


def recall(true, x, top):
    """Share of the `top` neighbours in `x` that reach the cosine of the last of the `top` neighbours in `true`."""
    cosines, best = neighbours(true, top)
    _, found = neighbours(x, top)
    hits = [cosines[i, found[i]] >= cosines[i, best[i, -1]] - 1e-6 for i in range(len(cosines))]
    return float(np.mean(hits))
