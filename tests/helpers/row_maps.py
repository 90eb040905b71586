"""Slow oracles of the maps that are fitted to rows, one row and one coordinate at a time."""

import math

import numpy as np


def clusters(fit_rows, x, labels, directions):
    """Rajaee and Pilehvar 2021: each cluster of `fit_rows` loses its mean and its first principal directions.

    A row of `x` belongs to the cluster whose mean is nearest.
    """
    fit_rows, x, found = np.asarray(fit_rows, dtype=float), np.asarray(x, dtype=float), []
    means = [fit_rows[labels == c].mean(0) for c in np.unique(labels)]
    for row in x:
        own = int(np.argmin([math.dist(row, mean) for mean in means]))
        values, vectors = np.linalg.eigh(np.cov(fit_rows[labels == np.unique(labels)[own]].T))
        z = row - means[own]
        for direction in vectors.T[np.argsort(-values)][:directions]:
            z = z - (z @ direction) * direction
        found.append(z)
    return np.array(found)


def flow(tensors, row, levels, depth):
    """Glow on a vector (Kingma and Dhariwal 2018, Table 1): actnorm, permutation, additive coupling; then the split.

    log-determinant of actnorm: sum log |s|; of the other two: 0. Log scales are kept divided by 3, as in Glow's code.
    """
    p = {name: np.asarray(one, dtype=float) for name, one in tensors.items()}
    x, out, log_det = [float(v) for v in row], [], 0.0
    for level in range(levels):
        for step in range(depth):
            name, d = f"{level}.{step}", len(x)
            scale = [math.exp(3 * v) for v in p[f"{name}.actnorm.log_scale"]]
            x = [s * (v + b) for v, b, s in zip(x, p[f"{name}.actnorm.bias"], scale, strict=True)]
            log_det += sum(math.log(s) for s in scale)
            x = x[::-1]
            kept = (d + 1) // 2
            hidden = np.array(x[:kept])
            for layer in ("first", "second"):
                hidden = np.einsum("a,ab->b", hidden, p[f"{name}.{layer}.weight"]) + p[f"{name}.{layer}.bias"]
                hidden = np.maximum(hidden * np.exp(3 * p[f"{name}.{layer}.log_scale"]), 0)
            last = np.einsum("a,ab->b", hidden, p[f"{name}.last.weight"]) + p[f"{name}.last.bias"]
            last = last * np.exp(3 * p[f"{name}.last.log_scale"])
            x = x[:kept] + [v + t for v, t in zip(x[kept:], last, strict=True)]
        if level + 1 < levels and len(x) > 1:
            kept = (len(x) + 1) // 2
            out, x = out + x[kept:], x[:kept]
        elif len(x) == 1:
            break
    return np.array(out + x), log_det


def gaussian_bits(x):
    """Entropy of the Gaussian with the covariance of `x`, in bits a dimension: the likelihood of its own fit."""
    d = x.shape[1]
    _, log_det = np.linalg.slogdet(np.atleast_2d(np.cov(x.T, bias=True)))
    return (math.log2(2 * math.pi * math.e) + log_det / math.log(2) / d) / 2
