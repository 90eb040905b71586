"""Classifiers on vectors, thresholds on cosines, and how sure an accuracy is.

Nothing here knows what a vector or a cosine is of; `whitelab.probe` does.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from scipy.stats import binomtest
from sklearn.model_selection import StratifiedKFold

from whitelab.base.checks import check_choice, check_int, check_matrix
from whitelab.probe.regression import margins
from whitelab.statistics.geometry import normalize

_DISTANCES = 2**22  # from some rows to all others, held at once
_DISTANCE_DECIMALS = 11  # of the squares of lengths that are near: rounding ends below
METRICS = ("euclidean", "cosine")
# SentEval's grids of C (senteval/tools/validation.py, the scikit-learn form): with a dev split or folds in folds,
# and where folds of a training split choose for a test split.
GRID = tuple(2.0**t for t in range(-2, 4))
TEST_GRID = tuple(2.0**t for t in range(-1, 6))


def knn(
    train: Float[np.ndarray, "n d"],
    labels: Int[np.ndarray, "n"],
    test: Float[np.ndarray, "m d"],
    k: int = 5,
    metric: str = "euclidean",
) -> Int[np.ndarray, "m"]:
    """The class most frequent among the `k` nearest training rows; of equally frequent ones the smallest.

    W-MSE, section 4: k = 5, Euclidean, features not normalised; the rule for equal frequency is its code's. Of rows
    that are equally far but for rounding (a text that occurs twice, say) the first are nearest, however many threads
    there are: squares of distances are told apart by 1e-11 of the row's squared length and that of its k-th distance,
    both from the training rows' median. `cosine` is the alternative. Raises ValueError for k beyond n
    and for rows with NaN.
    """
    k = check_int(k, "k", 1, len(train), "n")
    x, asked = check_matrix(train, "train").double(), check_matrix(test, "test").double()
    if check_choice(metric, "metric", METRICS) == "cosine":
        x, asked = normalize(x), normalize(asked)
    else:
        middle = x.median(0).values  # which no long row moves
        x, asked = x - middle, asked - middle
    squares = x.square().sum(1)
    classes, numbers = np.unique(labels, return_inverse=True)
    votes = torch.nn.functional.one_hot(torch.from_numpy(numbers), len(classes)).double()
    found = []
    for part in asked.split(max(1, _DISTANCES // len(x))):
        length = part.square().sum(1, keepdim=True)
        far = (squares - 2 * part @ x.T).add_(length)
        scale = length + far.topk(k, dim=1, largest=False).values[:, -1:]  # near rows are no longer than this
        far.div_(scale.clamp_min_(torch.finfo(scale.dtype).tiny)).round_(decimals=_DISTANCE_DECIMALS)
        last = far.topk(k, dim=1, largest=False).values[:, -1:]
        nearer, level = far < last, far == last
        level &= level.cumsum(1) <= k - nearer.sum(1, keepdim=True)
        found.append(((nearer | level).double() @ votes).argmax(1))
    return classes[torch.cat(found).numpy()]


def linear(
    train: Float[np.ndarray, "n d"],
    labels: Int[np.ndarray, "n"],
    test: Float[np.ndarray, "m d"],
    c: float = 1.0,
    device: torch.device | str = "cpu",
) -> Int[np.ndarray, "m"]:
    """Predictions of a multinomial logistic regression, L2 penalty 1 / (2 c), solved in float32 to its minimum.

    Within 2e-6 of the loss, measured on 300 and 1,500 rows of 2 and 6 classes with features of up to some thousands.
    Of more than two classes that can be told apart without an error, within 1e-4 of what is left of it for features of
    up to some hundreds, and within 2 % for some thousands.

    W-MSE's lbfgs form (protocols D7; its other form trains the same model for 500 epochs of Adam). Raises
    ValueError for fewer than two classes and for a `c` that is not above 0.
    """
    x, y = np.concatenate([train, test]), np.concatenate([labels, np.full(len(test), labels[0])])
    found, classes = margins(x, y, np.arange(len(x))[None] < len(train), (c,), device)
    return classes[found[0, len(train) :, :, 0].argmax(dim=1).cpu().numpy()]


def best_c(
    x: Float[np.ndarray, "n d"],
    y: Int[np.ndarray, "n"],
    splits: Sequence[tuple[np.ndarray, np.ndarray]],
    grid: Sequence[float],
    device: torch.device | str = "cpu",
) -> float:
    """The C of `grid` with the highest mean accuracy over `splits` of (rows to learn from, rows to score).

    Means are compared in hundredths of a percent and ties go to the smallest C, as in SentEval. All regressions,
    one a split and C, are solved at once.
    """
    seen = np.zeros((len(splits), len(x)), dtype=bool)
    for row, (learnt, _) in zip(seen, splits, strict=True):
        row[learnt] = True
    found, classes = margins(x, y, seen, grid, device)
    right = classes[found.argmax(dim=2).cpu().numpy()] == y[None, :, None]
    means = np.mean([right[:, unseen, f].mean(axis=1) for f, (_, unseen) in enumerate(splits)], axis=0)
    return grid[int(np.argmax(np.round(100 * means, 2)))]


def powers(grid: Sequence[float]) -> str:
    """A grid of powers of two in words, `2^-2..2^3`."""
    return "..".join(f"2^{round(np.log2(one))}" for one in (grid[0], grid[-1]))


def accuracy(right: Bool[np.ndarray, "n"]) -> float:
    """The share of rows that are right x 100, whose halves are exact: that of `np.mean` may lie beside them."""
    return 100 * int(right.sum()) / len(right)


def wilson(right: int, rows: int) -> tuple[float, float]:
    """The 95 % Wilson interval of a share, x 100. Rows count as independent, which folds are only nearly."""
    found = binomtest(right, rows).proportion_ci(method="wilson")
    return 100 * float(found.low), 100 * float(found.high)


def mcnemar(one: Bool[np.ndarray, "n"], other: Bool[np.ndarray, "m"]) -> float:
    """Two-sided exact p-value that two classifiers are right equally often on the same rows (McNemar)."""
    if len(one) != len(other):
        raise ValueError(f"other must hold the same n={len(one)} rows, got {len(other)}")
    gained, lost = int((other & ~one).sum()), int((one & ~other).sum())
    return float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0


def best_threshold(cosines: Float[np.ndarray, "n"], matches: Bool[np.ndarray, "n"]) -> float:
    """The threshold t for which `cosine >= t` is right most often; half-way between two cosines, lowest of equals."""
    values, place = np.unique(cosines, return_inverse=True)
    yes = np.bincount(place, weights=matches, minlength=len(values))
    no = np.bincount(place, minlength=len(values)) - yes
    # Right with the threshold below value i: matches from i on, and non-matches before i.
    right = np.append(yes[::-1].cumsum()[::-1], 0) + np.append(0, no.cumsum())
    i = int(np.argmax(right))
    if i == 0:
        return float(values[0])
    return float((values[i - 1] + values[i]) / 2) if i < len(values) else float(np.nextafter(values[-1], 2))


def stratified(
    y: Shaped[np.ndarray, "n"], folds: int, seed: int, group: Int[np.ndarray, "n"] | None = None, where: str = ""
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Shuffled folds as (rows to learn from, rows to score), each with every class of `y` in its proportion.

    Rows of one `group` stay together, counted once and with the class of the first. Fewer than `folds` where the
    smallest class has fewer groups. Raises ValueError, which says `where`, where nothing can be learnt.
    """
    group = np.arange(len(y)) if group is None else group
    _, first, place = np.unique(group, return_index=True, return_inverse=True)
    lead, leads = first[place], np.sort(first)
    present, sizes = np.unique(y[leads], return_counts=True)
    once = " (equal rows count once, with the label of the first)" if len(leads) < len(y) else ""
    if len(present) < 2:
        raise ValueError(f"cross-validation needs two classes{where}, got only {present.tolist()[0]!r}{once}")
    if rare := present[sizes < 2].tolist():
        raise ValueError(
            f"cross-validation needs 2 different rows of each class{where}, got 1 of {', '.join(map(repr, rare[:6]))}"
            f"{f' and {len(rare) - 6} more' if len(rare) > 6 else ''}{once}; "
            "leave such classes out, or bring more of them"
        )
    turns = StratifiedKFold(min(folds, int(sizes.min())), shuffle=True, random_state=seed).split(leads, y[leads])
    return [tuple(np.flatnonzero(np.isin(lead, leads[part])) for part in turn) for turn in turns]
