"""Slow and plain oracles of stored vectors and of what cosines mean, from their definitions. No whitelab in here."""

import numpy as np
import reference


def eight_bits(x):
    """Each column in 255 equal steps between its least and greatest value; what is stored is the middle of a step."""
    low, high = x.min(0), x.max(0)
    step = np.floor(np.clip((x - low) / (high - low), 0, 1) * 255)
    return low + (step + 0.5) / 255 * (high - low)


def signs(x):
    """A sign for each column, on the unit sphere."""
    return np.where(x >= 0, 1.0, -1.0) / np.sqrt(x.shape[1])


STORED = {
    "float32": lambda x: x,
    "float16": lambda x: x.astype(np.float16).astype(np.float64),
    "int8": eight_bits,
    "binary": signs,
    "hamming": signs,
}


def nearest_centroids(x, centroids, group):
    """Every `group` columns replaced by the nearest of the centroids there (Jégou et al. 2011, Eq. 8)."""
    found = np.empty_like(x)
    for start in range(0, x.shape[1], group):
        part, choices = x[:, start : start + group], centroids[:, start : start + group]
        for i, row in enumerate(part):
            found[i, start : start + group] = choices[np.square(choices - row).sum(1).argmin()]
    return found


def whitened(fit_rows, x):
    """`x` under PCA whitening of `fit_rows`, of length 1."""
    return reference.unit(reference.whiten(fit_rows, x, "pca"))


def mean_ndcg(scores, judgements, ids, depth=10):
    """The mean over queries; `judgements[q]` are grades by document number, equal scores are ordered by `ids`."""
    values = []
    for query, grades in enumerate(judgements):
        order = sorted(range(scores.shape[1]), key=lambda i: (-round(scores[query, i], 9), ids[i]))
        gains = [max(grades.get(i, 0), 0) / np.log2(place + 2) for place, i in enumerate(order[:depth])]
        best = sorted((grade for grade in grades.values() if grade > 0), reverse=True)[:depth]
        values.append(sum(gains) / sum(grade / np.log2(place + 2) for place, grade in enumerate(best)))
    return float(np.mean(values))


def random_pairs(*groups):
    """The cosine of every pair of different rows within each table."""
    found = []
    for x in groups:
        u = reference.unit(x)
        found += [float(u[i] @ u[j]) for i in range(len(u)) for j in range(i)]
    return np.array(found)


def least_threshold(cosines, gold, cut, rate):
    """The least cosine above which at most `rate` of the pairs with less gold than `cut` are; and the recall there."""
    unlike, alike = cosines[gold < cut], cosines[gold >= cut]
    for candidate in sorted(unlike):
        if (unlike > candidate).mean() <= rate + 1e-12:
            return float(candidate), float((alike > candidate).mean())
    raise AssertionError


def pooled_violators(x, y):
    """Isotonic regression by pooling adjacent violators (Barlow et al. 1972): the fit at each x, ties pooled first."""
    order = np.argsort(x, kind="stable")
    blocks = []
    for value in np.unique(x[order]):
        own = y[x == value]
        blocks.append([own.mean(), len(own), [value]])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            mean, size, places = blocks.pop()
            last = blocks[-1]
            last[0] = (last[0] * last[1] + mean * size) / (last[1] + size)
            last[1] += size
            last[2] += places
    level = {place: mean for mean, _, places in blocks for place in places}
    return np.array([level[value] for value in x])
