"""Slow and plain oracles in float64, written from the papers' equations. Nothing here imports whitelab."""

import numpy as np
import torch
from scipy.integrate import quad
from scipy.spatial.distance import pdist
from scipy.stats import norm, skew, spearmanr
from sklearn.covariance import OAS, LedoitWolf

CUT_OFF = 1e-10
CONSTANT = 1e-9


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
    x, fit_rows = np.asarray(x, dtype=np.float64), np.asarray(fit_rows, dtype=np.float64)
    name, _, rest = variant.partition(":")
    given = dict(part.split("=") for part in rest.split(",") if part)
    if name == "none":
        return x
    if name == "prefix":
        return x[:, :k]
    if name == "common_component":
        return without_common_component(fit_rows, x)
    if name == "r2":
        return without_mean_direction(fit_rows, x)
    mean, variance, axes = directions(fit_rows)
    centred = x - mean
    if name == "center":
        return centred if k is None else centred @ axes[:k].T
    if name == "standardize":
        return centred / fit_rows.std(axis=0, ddof=1)
    if name == "all_but_the_top":
        top = axes[: int(given.get("directions", 3))]
        return centred - centred @ top.T @ top
    if name in ("group", "shuffled_group"):
        order = np.arange(x.shape[1])
        if name == "shuffled_group":
            order = shuffle(x.shape[1], int(given.get("seed", 0)))
        return group_whiten(fit_rows, x, np.array_split(order, int(given.get("groups", 8))))
    if name in ("pca_cor", "zca_cor"):
        return correlation_whiten(fit_rows, x, name, k)
    if name in ("soft", "shrunk", "iternorm"):
        return centred @ partial(fit_rows, name, given, k)
    if name == "cholesky" and k is None and len(axes) == x.shape[1]:
        factor = np.linalg.cholesky(np.cov(fit_rows.T))
        return np.linalg.solve(factor, centred.T).T
    z = centred @ axes[:k].T / np.sqrt(variance[:k])
    return z @ axes[:k] if name == "zca" else z


def correlation_whiten(fit_rows, x, name, k):
    """Kessy et al. 2018: standardise, then whiten by the correlation. Inside the span of the kept directions."""
    mean, _, axes = directions(fit_rows)
    inside, fitted = (rows @ axes.T @ axes for rows in (x - mean, fit_rows - mean))
    deviation = fitted.std(axis=0, ddof=1)
    alive = deviation**2 >= CUT_OFF * (deviation**2).max()
    scale = np.where(alive, 1 / np.where(alive, deviation, 1), 0)
    _, s, vt = np.linalg.svd(fitted * scale, full_matrices=False)
    k = min(k or len(axes), len(axes))
    z = (inside * scale) @ vt[:k].T / (s[:k] / np.sqrt(len(fitted) - 1))
    return z @ vt[:k] if name == "zca_cor" else z


def partial(fit_rows, name, given, k):
    """The symmetric matrices that whiten part of the way, from their definitions."""
    n, d = fit_rows.shape
    covariance = np.atleast_2d(np.cov(fit_rows.T))
    trace = np.trace(covariance)
    values, vectors = np.linalg.eigh(covariance)
    if name == "iternorm":
        # Huang et al. 2019, Algorithm 1, with matrices.
        p = np.eye(d)
        for _ in range(int(given.get("steps", 5))):
            p = (3 * p - p @ p @ p @ covariance / trace) / 2
        matrix = p / np.sqrt(trace)
    elif name == "shrunk":
        method = given.get("method", "ledoit-wolf")
        if method == "epsilon":
            eps = float(given.get("eps", 0.01))
            shrunk = (1 - eps) * covariance + eps * np.eye(d)
        else:
            estimate = {"ledoit-wolf": LedoitWolf, "oas": OAS}[method]()
            shrunk = estimate.fit(fit_rows).covariance_ * n / (n - 1)
        shrunk_values, shrunk_vectors = np.linalg.eigh(shrunk)
        matrix = (shrunk_vectors / np.sqrt(shrunk_values)) @ shrunk_vectors.T
    else:
        gamma, alpha = given.get("gamma", 0.5), float(given.get("alpha", 0))
        gamma = snr_exponent(values, k) if gamma == "auto" else float(gamma)
        kept = (values >= CUT_OFF * values.max()) | (alpha > 0) | (gamma == 0)
        powers = np.zeros(d)
        powers[kept] = (values[kept] + alpha * trace / d) ** (-gamma / 2) if gamma else 1.0
        matrix = (vectors * powers) @ vectors.T
    top = vectors[:, ::-1][:, :k]
    return matrix if k is None else matrix @ top @ top.T


def snr_exponent(values, k):
    """The mean Wiener gain SNR / (1 + SNR) of the k strongest kept directions, the weaker half of them being noise."""
    kept = sorted((v for v in values if v >= CUT_OFF * max(values)), reverse=True)
    noise = np.mean(kept[len(kept) // 2 :])
    ratios = [max(0.0, value - noise) / noise for value in kept[:k]]
    return np.mean([ratio / (1 + ratio) for ratio in ratios])


def zipfian(table, ids):
    """Yokoi et al. 2024, Algorithm 1: mean and covariance of the word vectors, each word with its share p of `ids`."""
    tokens = [i for row in ids for i in row]
    p = {word: tokens.count(word) / len(tokens) for word in set(tokens)}
    mean = sum(p[word] * table[word] for word in p)
    return mean, sum(p[word] * np.outer(table[word] - mean, table[word] - mean) for word in p)


def shuffle(d, seed):
    """The permutation a seed stands for."""
    return torch.randperm(d, generator=torch.Generator().manual_seed(seed)).numpy()


def group_whiten(fit_rows, x, groups):
    """WhitenedCSE, Eq. 4: every group of columns whitened by itself, columns left in their places."""
    z = np.zeros_like(x)
    for columns in groups:
        z[:, columns] = whiten(fit_rows[:, columns], x[:, columns], "zca")
    return z


def without_common_component(fit_rows, x):
    """Arora et al. 2017, Algorithm 1: the first singular direction of the rows as they are."""
    first = np.linalg.svd(fit_rows, full_matrices=False)[2][:1]
    return x - x @ first.T @ first


def without_mean_direction(fit_rows, x):
    """Ren et al. 2025, R2, one unit vector at a time."""
    mean = sum(row / np.linalg.norm(row) for row in fit_rows)
    mean = mean / np.linalg.norm(mean)
    return np.array([row - (row @ mean) * mean for row in x])


def pair_cosines(a, b):
    """a.b / (||a|| ||b||), one pair at a time, rounded to 12 decimals; 0 for a zero vector."""
    found = []
    for u, v in zip(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64), strict=True):
        norm = np.linalg.norm(u) * np.linalg.norm(v)
        found.append(0.0 if norm == 0 else round(float(u @ v / norm), 12))
    return np.array(found)


def spearman(x, gold):
    """scipy's Spearman, NaN where it is not defined: fewer than 2 pairs, equal gold, `x` equal up to rounding."""
    x, gold = np.asarray(x), np.asarray(gold)
    if len(x) < 2 or np.ptp(x) < CONSTANT or np.ptp(gold) == 0:
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


def apart(found, expected):
    """The largest distance of a row from what it should be, as a part of that row's length."""
    found, expected = np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    return float(np.max(np.linalg.norm(found - expected, axis=1) / np.linalg.norm(expected, axis=1)))


def unit(x):
    """Rows divided by their length; a zero row stays zero."""
    x = np.asarray(x, dtype=np.float64)
    length = np.linalg.norm(x, axis=-1, keepdims=True)
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


def lists(scores, top):
    """The `top` columns of the highest score of every row, itself left out, one row at a time."""
    found = []
    for i, row in enumerate(np.asarray(scores)):
        others = [j for j in np.argsort(-row, kind="stable") if j != i]
        found.append(others[:top])
    return np.array(found)


def distances(x, top):
    """Euclidean distances of every row to its `top` nearest others, ascending, by plain subtraction."""
    x = np.asarray(x, dtype=np.float64)
    every = np.array([np.sqrt(((x - row) ** 2).sum(axis=1)) for row in x])
    np.fill_diagonal(every, np.inf)
    return np.sort(every, axis=1)[:, :top]


def hub_counts(neighbours):
    """Radovanovic et al. 2010, section 2: N_k(x), on how many lists a row is; their skewness as SciPy has it."""
    counts = [sum(i in row for row in neighbours.tolist()) for i in range(len(neighbours))]
    return np.array(counts), float(skew(counts))


def csls(x, top):
    """Conneau et al. 2018, section 2.3: 2 cos(x, y) - r(x) - r(y), r the mean cosine with the `top` nearest."""
    cosines, best = neighbours(x, top)
    r = np.array([cosines[i, best[i]].mean() for i in range(len(cosines))])
    return np.array([[2 * cosines[i, j] - r[i] - r[j] for j in range(len(r))] for i in range(len(r))])


def mutual_proximity(x):
    """Schnitzer et al. 2012, section 3.2, independent Gaussians: (1 - F_x(d))(1 - F_y(d)), in logs, d = 1 - cos."""
    u = unit(x)
    d, n = 1 - u @ u.T, len(u)
    others = [np.delete(d[i], i) for i in range(n)]
    side = np.array([norm.logsf(d[i], others[i].mean(), others[i].std()) for i in range(n)])
    return side + side.T


def iso_score(x, cov=None):
    """Rudman et al. 2022, Algorithm 1, step by step."""
    cov = np.cov(np.asarray(x, dtype=np.float64).T) if cov is None else cov
    values, vectors = np.linalg.eigh(cov)
    n = len(cov)
    variances = np.diag(vectors.T @ cov @ vectors)  # of the principal coordinates
    normed = np.sqrt(n) * variances / np.linalg.norm(variances)
    defect = np.linalg.norm(normed - 1) / np.sqrt(2 * (n - np.sqrt(n)))
    phi = (n - defect**2 * (n - np.sqrt(n))) ** 2 / n**2
    return float((n * phi - 1) / (n - 1))


def partition_isotropy(x, centred):
    """Mu and Viswanath 2018, section 2: min Z(c) / max Z(c) over eigenvectors c of X^T X and their negatives."""
    u = unit(x - x.mean(axis=0)) if centred else unit(x)
    sums = []
    for c in np.linalg.eigh(u.T @ u)[1].T:
        for sign in (1, -1):
            sums.append(sum(np.exp(sign * row @ c) for row in u))
    return float(min(sums) / max(sums))


def rogue_shares(x):
    """Timkey and van Schijndel 2021: shares of the mean cosine, largest first, pair by pair."""
    u = unit(x)
    parts = np.mean([u[i] * u[j] for i in range(len(u)) for j in range(len(u)) if i != j], axis=0)
    return np.sort(parts / parts.sum())[::-1]


def two_nn(x):
    """Facco et al. 2017: mu = r2 / r1 has the density d mu^(-d-1), whose likelihood is largest at N / sum ln mu."""
    logs = [np.log(second / first) for first, second in distances(x, 2) if first > 1e-9]
    return len(logs) / sum(logs)


def mle_dimension(x, k):
    """Levina and Bickel 2004, Eq. 8, averaged over the rows as in Eq. 9."""
    found = []
    for row in distances(x, k):
        if row[0] > 1e-9:
            found.append(1 / (sum(np.log(row[-1] / t) for t in row[:-1]) / (k - 1)))
    return float(np.mean(found))


def linear_cka(x, y):
    """Kornblith et al. 2019, Eq. 4, of the unbiased HSIC of Song et al. 2012, Eq. 4: K = X X^T and L = Y Y^T."""

    def hsic(k, other):
        n, one = len(k), np.ones(len(k))
        sums = (one @ k @ one) * (one @ other @ one) / ((n - 1) * (n - 2)) - 2 / (n - 2) * (one @ k @ other @ one)
        return (np.trace(k @ other) + sums) / (n * (n - 3))

    k, other = (z @ z.T - np.diag((z @ z.T).diagonal()) for z in (x - x.mean(0), y - y.mean(0)))
    return float(hsic(k, other) / np.sqrt(hsic(k, k) * hsic(other, other)))


def nearest(train, labels, test, k, metric="euclidean"):
    """The most frequent label of the k nearest rows, the smallest of equally frequent ones (W-MSE, section 4)."""
    train, test = np.asarray(train, dtype=np.float64), np.asarray(test, dtype=np.float64)
    found = []
    for row in test:
        if metric == "cosine":
            distance = [1 - row @ other / np.linalg.norm(row) / np.linalg.norm(other) for other in train]
        else:
            distance = [np.linalg.norm(row - other) for other in train]
        votes = [labels[i] for i in np.argsort(distance, kind="stable")[:k]]
        counts = {label: votes.count(label) for label in votes}
        found.append(min(label for label, count in counts.items() if count == max(counts.values())))
    return np.array(found)


def wilson(right, rows, z=1.959963984540054):
    """Wilson 1927: the shares p with |right / rows - p| <= z sqrt(p (1 - p) / rows)."""
    share = right / rows
    middle = (share + z**2 / (2 * rows)) / (1 + z**2 / rows)
    half = z / (1 + z**2 / rows) * np.sqrt(share * (1 - share) / rows + z**2 / (4 * rows**2))
    return middle - half, middle + half


def most_often_right(cosines, matches):
    """How often `cosine >= t` is right for the best t, by trying a threshold in every gap."""
    values = np.unique(cosines)
    gaps = np.concatenate([[values[0] - 1], (values[:-1] + values[1:]) / 2, [values[-1] + 1]])
    return max(np.mean((cosines >= t) == matches) for t in gaps)


# --------------------------------------------------------------------------------------------- objectives


def contrastive(z, temperature):
    """WhitenedCSE, Eq. 1, sentence by sentence: z [2, b, d], views of the anchors and of the positives."""
    anchors, positives = unit(z[0]), unit(z[1])
    found = []
    for i in range(len(anchors)):
        scores = [np.exp(anchors[i] @ positives[j] / temperature) for j in range(len(positives))]
        found.append(-np.log(scores[i] / sum(scores)))
    return np.mean(found)


def multi_positive(z, temperature, weights, negatives, loss):
    """WhitenedCSE, Eq. 7 (`l1`) and the three readings of Eq. 8, sentence by sentence: z [1 + m, b, d]."""
    z = unit(z)
    anchors, positives, found = z[0], z[1:], []
    for i in range(len(anchors)):
        scores = np.exp(np.array([[anchors[i] @ row for row in view] for view in positives]) / temperature)
        below = scores.sum(axis=1) if negatives == "view" else np.full(len(positives), scores.sum())
        own, terms = scores[:, i], range(len(positives))
        if loss == "l1":
            found.append(-sum(weights[p] * np.log(own[p] / below[p]) for p in terms))
        elif loss == "text":
            found.append(np.log(sum(weights[p] * below[p] / own[p] for p in terms)))
        elif loss == "printed":
            found.append(-np.log(sum(weights[p] / own[p] / below[p] for p in terms)))
        else:
            found.append(-np.log(sum(weights[p] * own[p] / below[p] for p in terms)))
    return np.mean(found)


def nt_xent(z, temperature, normalized):
    """W-MSE, Eq. 2, with every row an anchor, averaged over pairs of views: z [v, b, d]."""
    z, b, found = unit(z) if normalized else z, z.shape[1], []
    for p in range(len(z)):
        for q in range(p + 1, len(z)):
            rows = np.concatenate([z[p], z[q]])
            for i in range(2 * b):
                others = [np.exp(rows[i] @ rows[k] / temperature) for k in range(2 * b) if k != i]
                own = np.exp(rows[i] @ rows[(i + b) % (2 * b)] / temperature)
                found.append(-np.log(own / sum(others)))
    return np.mean(found)


def w_mse(v, permutations, size, *, euclidean, eps=0.0, joint=False):
    """W-MSE, section 3: v [d, N, m], one permutation of the N sentences for each iteration of batch slicing.

    "We first partition the batch in d parts. [...] Then we randomly permute the elements of each partition, using
    the same permutation for all the partitions. Next, each partition is further split in sub-batches. [...] For each
    V_i, we use only its elements to compute a corresponding whitening matrix." Cholesky as in appendix B. With
    `joint` mean and covariance are of the sub-batches of all partitions together (Eq. 7 and 8).
    """
    parts, sentences, _ = v.shape
    results = []
    for permutation in permutations:
        z = np.empty_like(v)
        for start in range(0, sentences, size):
            chosen = permutation[start : start + size]
            for part in range(parts):
                rows = v[part][chosen]
                pool = np.concatenate([v[p][chosen] for p in range(parts)]) if joint else rows
                covariance = (1 - eps) * np.cov(pool.T) + eps * np.eye(v.shape[2])
                inverse = np.linalg.inv(np.linalg.cholesky(covariance))
                for place, row in zip(chosen, rows, strict=True):
                    z[part, place] = inverse @ (row - pool.mean(axis=0))
        if not euclidean:
            z = unit(z)
        distances = [
            ((z[p, i] - z[q, i]) ** 2).sum()
            for i in range(sentences)
            for p in range(parts)
            for q in range(p + 1, parts)
        ]
        results.append(2 / (sentences * parts * (parts - 1)) * sum(distances))
    return np.mean(results)


def byol(prediction, target):
    """BYOL, Eq. 2, both ways round, mean over pairs of views and sentences: [v, b, d] each."""
    y, t, found = unit(prediction), unit(target), []
    for i in range(y.shape[1]):
        for p in range(len(y)):
            for q in range(p + 1, len(y)):
                found.append(((y[p, i] - t[q, i]) ** 2).sum() + ((y[q, i] - t[p, i]) ** 2).sum())
    return np.mean(found)


def barlow(z, weight):
    """Barlow Twins, Eq. 1 and 2, entry by entry, mean over pairs of views: z [v, b, d]."""
    z, d, found = z - z.mean(axis=1, keepdims=True), z.shape[2], []
    for p in range(len(z)):
        for q in range(p + 1, len(z)):
            loss = 0.0
            for i in range(d):
                for j in range(d):
                    a, b = z[p][:, i], z[q][:, j]
                    correlation = sum(a * b) / (np.sqrt(sum(a**2)) * np.sqrt(sum(b**2)))
                    loss += (1 - correlation) ** 2 if i == j else weight * correlation**2
            found.append(loss)
    return np.mean(found)


def vicreg(z, invariance, variance, covariance, gamma, eps=1e-4):
    """VICReg, Eq. 1-6 with the mean over dimensions of its pseudocode in Eq. 5, pair of views by pair: z [v, b, d]."""

    def v(x):
        return np.mean([max(0.0, gamma - np.sqrt(np.var(column, ddof=1) + eps)) for column in x.T])

    def c(x):
        matrix = np.cov(x.T)
        return sum(matrix[i, j] ** 2 for i in range(len(matrix)) for j in range(len(matrix)) if i != j) / len(matrix)

    found = []
    for p in range(len(z)):
        for q in range(p + 1, len(z)):
            s = np.mean((z[p] - z[q]) ** 2)
            found.append(invariance * s + variance * (v(z[p]) + v(z[q])) + covariance * (c(z[p]) + c(z[q])))
    return np.mean(found)


# ------------------------------------------------------------------------------------------------- SBERT-WK


def sbert_wk(states, start=4, window=2, least=0.01):
    """Wang and Kuo (2020), section IV, token by token: the states [l, t, d] of one sentence -> its vector.

    Fewer than three states from `start` on: all of them, because two have no variance of adjacent cosines. A mean
    cosine below `least` counts as that, because the paper's inverse of it has no meaning at 0 and below.
    """
    states = states[start:] if len(states) - start >= 3 else states
    words = [states[:, token] for token in range(max(1, states.shape[1] - 1))]  # [SEP] is left out
    vectors, variances = [], []
    for word in words:
        count = len(word)
        alignment, novelty = np.ones(count), np.ones(count)
        for i in range(count) if count > 1 else ():
            others = [word[k] for k in range(count) if k != i and abs(k - i) <= window]
            alignment[i] = 1 / max(np.mean([unit(word[i]) @ unit(one) for one in others]), least)
            q, _ = np.linalg.qr(np.stack(others, axis=1))
            novelty[i] = np.linalg.norm(word[i] - q @ (q.T @ word[i])) / np.linalg.norm(word[i])
        weights = alignment / sum(alignment) / 2 + novelty / sum(novelty) / 2
        vectors.append(sum(weight * state for weight, state in zip(weights, word, strict=True)))
        variances.append(np.var([unit(word[i]) @ unit(word[i + 1]) for i in range(count - 1)]) if count > 2 else 0.0)
    if not any(variances):
        return np.mean(vectors, axis=0)
    return sum(one * vector for one, vector in zip(variances, vectors, strict=True)) / sum(variances)
