"""Alignment and uniformity (Wang and Isola 2020)."""

import math
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from whitelab.base.checks import (
    check_choice,
    check_int,
    check_matrix,
    check_positive,
    check_real,
    check_shape,
    check_sides,
)
from whitelab.base.devices import own_precision, threads_on
from whitelab.base.threads import side_by_side
from whitelab.base.wording import quantity
from whitelab.statistics.geometry.cosines import normalize, row_weights

# Sentence pairs that count as "positive" in the alignment loss. SimCSE's footnote 3 says gold above 4;
# code in circulation uses at least 4, which gives another number (0.33 against 0.25 on STS-B). Both are of scores
# from 0 to 5, of which the top fifth begins at 4.
POSITIVES = {"gt4": "gold > 4", "ge4": "gold >= 4", "top": "gold in the top fifth of its range"}

_FEW = 10  # positive pairs below which their mean says little of others
_MANY_ROWS = 1024
_T_IN_FLOAT32 = 4  # above it a few pairs outweigh all others, and float32's errors no longer average out
_ROWS_PER_TILE = 512  # on a processor: its cache holds 2 MB
_FEW_TILES = 16  # so few are sooner done by threads that share their operations than by some begun for them


def alignment(a, b, alpha: float = 2.0) -> float:
    """Mean ||u_a - u_b||^alpha over positive pairs, rows i of `a [p, d]` and `b [p, d]`, at unit length (0 is best).

    Wang and Isola 2020; WhitenedCSE Eq. 9 with alpha = 2. NaN when there is no positive pair. Raises ValueError for two
    shapes and for an `alpha` that is not above 0.
    """
    check_positive(alpha, "alpha")
    a, b = check_sides(a, b)
    if a.shape[0] == 0:
        return float("nan")
    distance = (normalize(check_matrix(a, "a")) - normalize(check_matrix(b, "b"))).square().sum(-1)
    return float(distance.pow(alpha / 2).mean())


def uniformity(x, weights=None, t: float = 2.0) -> float:
    """log of the mean of exp(-t ||u_i - u_j||^2) over distinct rows i < j of `x [n, d]` (lower is more uniform).

    Wang and Isola 2020; WhitenedCSE Eq. 10 with t = 2; rows are brought to unit length first, and row i counts
    `weights[i]` times, once where None is given. Computed
    from tiles of the Gram matrix, never [n, n] at once; from 1,024 rows on they are float32 for t up to 4, which is
    off by about 1e-7, and by up to 1e-5 where rows are equal. NaN for one row. Raises ValueError for `t` outside
    0..100.
    """
    _check_t(t)
    u = normalize(check_matrix(x))
    w = row_weights(weights, u)
    n = float(w.sum())
    if n <= 1:
        return float("nan")
    # exp(-t ||u - v||^2) = exp(2t u.v) exp(-2t) a(u) a(v), where a is 1 but for a zero row
    a = w * (t * (1 - u.square().sum(-1))).exp()
    v = u * (2 * t) ** 0.5
    if len(v) >= _MANY_ROWS and t <= _T_IN_FLOAT32:  # errors of single cosines have either sign and average out
        v = v.float()
    tiles = range(0, len(v), _tile(v))
    threads = threads_on(v.device) if len(tiles) > _FEW_TILES else 1
    with own_precision(v.device):
        total = sum(side_by_side(partial(_kernel_sum, v, a), tiles, threads))
    return float(((total * math.exp(-2 * t) + w @ (w - 1)) / (n * (n - 1))).log())


def _check_t(t: float) -> None:
    if not 0 <= t <= 100:  # beyond, exp(-4t) of two opposite rows comes near the smallest float64
        raise ValueError(f"t={t} must lie between 0 and 100")


def _kernel_sum(v: Float[Tensor, "n d"], a: Float[Tensor, "n"], i: int) -> Float[Tensor, ""]:
    """Sum of a_i a_j exp(v_i.v_j) over a tile's rows and all others from them on, those beyond the tile twice."""
    size, factors = _tile(v), a.to(v.dtype)
    total, (rows, weights) = a.new_zeros(()), (v[i : i + size], a[i : i + size])
    room = v.new_empty(len(rows) * size)  # tables of new memory each time would take longer than their arithmetic
    for j in range(i, len(v), size):
        columns = v[j : j + size]
        kernel = room[: len(rows) * len(columns)].view(len(rows), len(columns))
        torch.mm(rows, columns.T, out=kernel).exp_()
        if i == j:
            kernel.fill_diagonal_(0)
        total += (1 if i == j else 2) * (weights @ (kernel @ factors[j : j + size]).to(a.dtype))
    return total


def _tile(v: Tensor) -> int:
    return _ROWS_PER_TILE if v.device.type == "cpu" else 8 * _ROWS_PER_TILE


def uniformity_floor(dim: int, t: float = 2.0) -> float:
    """Uniformity of the uniform distribution on the unit sphere of R^dim, the lowest reachable in the limit.

    log E exp(-2t (1 - s)) over the cosine s of two random directions = log 0F1(; d/2; t^2) - 2t, for
    which d = 2 gives log I_0(2t) - 2t (Wang and Isola 2020, Prop. 4.1.2). A finite set of n points can lie
    below it by about 1 / n. Raises ValueError for `dim` below 1 and for `t` outside 0..100.
    """
    check_int(dim, "dim", 1)
    _check_t(t)
    from scipy.special import hyp0f1

    return float(torch.tensor(float(hyp0f1(dim / 2, t * t)), dtype=torch.float64).log()) - 2 * t


def positives(gold: Float[Tensor | np.ndarray, "p"], rule: str = "gt4") -> Int[Tensor, "m"]:
    """Positions of the positive pairs under a rule of `POSITIVES`."""
    check_choice(rule, "positives", POSITIVES)
    gold = check_real(check_shape(gold, "gold", "p"), "gold")
    if rule == "top":
        low, high = (gold.min(), gold.max()) if len(gold) else (0, 0)
        chosen = (gold - low >= (0.8 - 1e-6) * (high - low)) & (gold > low)  # rounding leaves none out that is at 4/5
    else:
        chosen = gold > 4 if rule == "gt4" else gold >= 4
    return chosen.nonzero()[:, 0]


def usual_positives(gold: Float[Tensor | np.ndarray, "p"]) -> str:
    """The rule for scores of such a scale, where none is named: SimCSE's for 0 to 5, else the top fifth."""
    return "gt4" if len(gold) and gold.min() >= 0 and 4 < gold.max() <= 5 else "top"


def alignment_note(gold: Float[Tensor | np.ndarray, "p"], rule: str = "gt4") -> str:
    """Why alignment is not defined, where no pair is positive, or says little of other pairs; empty where neither."""
    if count := len(positives(gold, rule)):
        return f"alignment over {quantity(count, 'positive pair')} says little of others" * (count < _FEW)
    why = (
        "all have the same"
        if rule == "top"
        else "a rule for gold scores from 0 to 5; the top fifth ('top') goes with any scale"
    )
    return f"alignment is not defined: no pair has {POSITIVES[rule]}, {why}"
