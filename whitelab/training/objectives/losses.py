"""The losses as pure functions of `z [v, b, d]`: row `z[p, i]` is view p of sentence i; a scalar comes back.

Views of one sentence are its positives, other sentences of the batch its negatives. `sim` is the cosine. Half
precision is widened to float32, and autocast kept out, because similarities are divided by small temperatures. Each
raises ValueError for another shape and for a temperature that is not above 0, TypeError for what holds no numbers.
"""

from collections.abc import Sequence
from itertools import combinations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy, normalize

from whitelab.base.checks import check_choice, check_int, check_positive, check_real, check_shape, widened
from whitelab.base.devices import own_precision
from whitelab.training.objectives.batch_whitening import whiten_slices

# The temperature of SimCSE and WhitenedCSE.
TEMPERATURE = 0.05

# The rows a whitening of W-MSE is computed from: a sub-batch's of one view, or of all its views.
STATISTICS = ("view", "joint")


def contrastive(z: Float[Tensor, "2 b d"], temperature: float = TEMPERATURE) -> Float[Tensor, ""]:
    """The contrastive loss of a sentence's first view against every second view.

    L = - 1/b sum_i log( exp(sim(z_0i, z_1i) / t) / sum_j exp(sim(z_0i, z_1j) / t) )

    WhitenedCSE (Zhuo et al. 2023), Eq. 1; SimCSE (Gao et al. 2021), Eq. 4, where the views are two dropout
    masks. One direction only: the second views are never anchors. 0 for one sentence, which has no negatives.
    Raises ValueError for more views or fewer.
    """
    z = _check_views(z, views=2)
    return cross_entropy(_cosines(z[0], z[1]) / check_positive(temperature, "temperature"), _own(z))


def multi_positive_l1(
    z: Float[Tensor, "v b d"],
    temperature: float = TEMPERATURE,
    weights: Sequence[float] | None = None,
    negatives: str = "view",
) -> Float[Tensor, ""]:
    """The contrastive loss of a sentence's first view against each of its m = v - 1 positives, summed outside the log.

    L_1 = - 1/b sum_i sum_p lambda_p log( exp(sim(z_0i, z_pi) / t) / D_p ), D_p = sum_j exp(sim(z_0i, z_pj) / t)

    WhitenedCSE (Zhuo et al. 2023), Eq. 7. The paper's denominator has no p: with `negatives` "view" it is over
    positive p of every sentence, as in the released code, with "all" over every positive of every sentence. The
    paper gives lambda no value; `weights` None is 1 for each, the released code's. With m = 1 it is `contrastive`.
    """
    z = _check_views(z)
    return (_weights(weights, z)[:, None] * _surprise(z, temperature, negatives)).sum(dim=0).mean()


def multi_positive_l2(
    z: Float[Tensor, "v b d"],
    temperature: float = TEMPERATURE,
    weights: Sequence[float] | None = None,
    negatives: str = "view",
    reading: str = "text",
) -> Float[Tensor, ""]:
    """The multi-positive loss with the sum over positives inside the log, in one of three readings.

    text     L_2 = 1/b sum_i log sum_p lambda_p D_p / exp(sim(z_0i, z_pi) / t), the positive least alike counts most
    printed  L_2 = - 1/b sum_i log sum_p lambda_p exp(- sim(z_0i, z_pi) / t) / D_p
    code     L_2 = - 1/b sum_i log sum_p lambda_p exp(sim(z_0i, z_pi) / t) / D_p, the one most alike counts most

    WhitenedCSE (Zhuo et al. 2023), Eq. 8, `D_p` and arguments as in `multi_positive_l1`. As printed it falls where
    a positive becomes less alike, so it drives positives apart. The text below it says that the minus sign "will
    punish the items with less similarity" and bring all positives closer, which "text" does; this is the
    default. "code" is the line commented out in the released code, whose change of sign acts on an empty slice.
    With m = 1 "text" and "code" are `contrastive`.
    """
    check_choice(reading, "reading", ("text", "printed", "code"))
    z = _check_views(z)
    weight, surprise = _weights(weights, z).log()[:, None], _surprise(z, temperature, negatives)
    if reading == "text":
        return torch.logsumexp(weight + surprise, dim=0).mean()
    if reading == "printed":
        own = torch.stack([cosine_similarity(z[0], one, dim=-1) for one in z[1:]]) / temperature
        return -torch.logsumexp(weight - surprise - 2 * own, dim=0).mean()
    return -torch.logsumexp(weight - surprise, dim=0).mean()


def nt_xent(z: Float[Tensor, "v b d"], temperature: float = 0.5, normalized: bool = True) -> Float[Tensor, ""]:
    """The contrastive loss in which both views are anchors and all 2b - 1 other rows are candidates.

    L = - 1/2b sum_i log( exp(z_i . z_i+ / t) / sum_{k != i} exp(z_i . z_k / t) ), averaged over pairs of views

    W-MSE (Ermolov et al. 2021), Eq. 2, its baseline; rows are divided by their length first where `normalized`.
    More than two views: the mean over pairs, as in its released code.
    """
    z = _check_views(z)
    check_positive(temperature, "temperature")
    z = normalize(z, dim=-1) if normalized else z
    b = z.shape[1]
    partner = torch.arange(2 * b, device=z.device).roll(b)
    itself = torch.eye(2 * b, dtype=torch.bool, device=z.device)
    found = []
    for one, other in combinations(z, 2):
        rows = torch.cat([one, other])
        found.append(cross_entropy((_products(rows, rows) / temperature).masked_fill(itself, -torch.inf), partner))
    return torch.stack(found).mean()


def mse(z: Float[Tensor, "v b d"], euclidean: bool = False) -> Float[Tensor, ""]:
    """Mean squared distance of a sentence's views, over all v (v - 1) / 2 pairs of them.

    L = 2 / (b v (v - 1)) sum_i sum_{p < q} dist(z_pi, z_qi), dist(x, y) = 2 - 2 sim(x, y)

    W-MSE (Ermolov et al. 2021), Eq. 5 and 6. With `euclidean` dist(x, y) = ||x - y||^2 (its appendix D), a sum
    over dimensions; the released code averages over them, which is 1/d of it. A zero row has sim 0 with every
    other. Without whitening it is 0 where all rows are equal and not zero, so a network can collapse to a constant;
    then it is the control.
    """
    z = _check_views(z)
    rows = z if euclidean else normalize(z, dim=-1)
    # With the mean c_i of the v views of sentence i: sum_{p < q} ||z_p - z_q||^2 = v sum_p ||z_p - c||^2.
    distance = 2 / (len(z) - 1) * (rows - rows.mean(dim=0)).square().sum(dim=(0, 2)).mean()
    if euclidean:
        return distance
    # 2 - 2 sim = ||x - y||^2 of two unit rows, and one more for each of them that is zero.
    return distance + 2 * (z == 0).all(dim=-1).to(z.dtype).mean()


def w_mse(
    z: Float[Tensor, "v b d"],
    generator: torch.Generator | None = None,
    *,
    size: int = 128,
    repeats: int = 1,
    euclidean: bool = False,
    whitening: str = "cholesky",
    eps: float = 0.0,
    statistics: str = "view",
) -> Float[Tensor, ""]:
    """`mse` of whitened views: the whitening keeps the rows apart, so that nothing has to be pushed.

    L = 1/repeats sum_r mse(sliced_r(z)), sliced_r with the r-th permutation

    W-MSE (Ermolov et al. 2021), Eq. 3-8, with batch slicing (section 3) by `sliced`. Identical views give 0. Equal
    rows have no whitening and raise SingularBatch; with `eps` above 0 they become zero rows, whose loss is 2, that of
    rows at right angles, and 0 if `euclidean`: then a collapsed batch is a minimum. Turning z changes nothing with
    joint statistics, which are those of Eq. 7 and 8, nor with ZCA; Cholesky factors of each view's own covariance
    depend on the axes, so with the defaults, the paper's batch slicing, it does change the loss. "standardize" is the
    control of section 3.1, batch norm in place of whitening, which does collapse.
    """
    check_int(repeats, "repeats", 1)
    slicing = {"size": size, "whitening": whitening, "eps": eps, "statistics": statistics}
    return torch.stack([mse(sliced(z, generator, **slicing), euclidean) for _ in range(repeats)]).mean()


def contrastive_whitened(
    z: Float[Tensor, "v b d"],
    generator: torch.Generator | None = None,
    *,
    temperature: float = 0.5,
    normalized: bool = True,
    size: int = 128,
    whitening: str = "cholesky",
    eps: float = 0.0,
    statistics: str = "view",
) -> Float[Tensor, ""]:
    """`nt_xent` of whitened views: the negative result of W-MSE (Ermolov et al. 2021), section 4.2 and Table 4.

    There it diverged where `normalized` and was worse than without whitening where not; without it is `nt_xent` of
    `z`. That experiment is not in the released code; the whitening here is the one of `w_mse`, by `sliced`.
    """
    white = sliced(z, generator, size=size, whitening=whitening, eps=eps, statistics=statistics)
    return nt_xent(white, temperature, normalized)


def sliced(
    z: Float[Tensor, "v b d"],
    generator: torch.Generator | None = None,
    *,
    size: int = 128,
    whitening: str = "cholesky",
    eps: float = 0.0,
    statistics: str = "view",
) -> Float[Tensor, "v b d"]:
    """`z` whitened in sub-batches: row [p, i] is still view p of sentence i.

    Batch slicing of W-MSE (Ermolov et al. 2021), section 3 and Fig. 3: the batch is partitioned by view, each part is
    permuted by the one permutation drawn from `generator` and split into sub-batches of `size` rows (twice d is the
    paper's rule), and each sub-batch is whitened by its own mean and covariance (denominator size - 1).

    So text, figure and released code; Eq. 7 and 8 have one mean and covariance of all views. That is
    `statistics` "joint": the v sub-batches of the same sentences share theirs; size = b is Eq. 7 and 8 themselves.
    Raises ValueError where `size` does not divide b, SingularBatch where a sub-batch has no more than d rows and
    eps is 0.
    """
    check_choice(statistics, "statistics", STATISTICS)
    check_int(size, "size", 2)
    z = check_real(check_shape(z, "z", "v b d"), "z")
    views, b = z.shape[:2]
    if b % size:
        raise ValueError(f"b={b} sentences must be a multiple of size={size}, the rows of a sub-batch")
    order = torch.randperm(b, generator=generator).to(z.device)
    parts = z[:, order].unflatten(1, (-1, size))  # view, sub-batch, row, dimension
    if statistics == "joint":
        white = whiten_slices(parts.transpose(0, 1).flatten(1, 2), whitening, eps=eps)
        white = white.unflatten(1, (views, size)).transpose(0, 1)
    else:
        white = whiten_slices(parts.flatten(0, 1), whitening, eps=eps).unflatten(0, (views, -1))
    return white.flatten(1, 2)[:, order.argsort()]


def byol(prediction: Float[Tensor, "v b d"], target: Float[Tensor, "v b d"]) -> Float[Tensor, ""]:
    """Each online prediction against the slow network's other views, which are constants.

    L = 2 / (b v (v - 1)) sum_i sum_{p < q} ( dist(y_pi, t_qi) + dist(y_qi, t_pi) ), dist(x, y) = 2 - 2 sim(x, y)

    BYOL (Grill et al. 2020), Eq. 2, made symmetric; more than two views as in W-MSE's released code, the mean over
    pairs. No negatives and no whitening: that it need not collapse is the predictor's and the batch norm's doing.
    """
    prediction, target = _check_views(prediction, "prediction"), _check_views(target, "target")
    if prediction.shape != target.shape:
        shapes = f"{list(prediction.shape)} and {list(target.shape)}"
        raise ValueError(f"prediction and target must share the shape [v, b, d], got {shapes}")
    y, t = normalize(prediction, dim=-1), normalize(target.detach(), dim=-1)
    views = len(y)
    # Over p != q: every view with the sum of all others.
    cosines = (y * (t.sum(dim=0) - t)).sum(dim=-1)
    return 4 - 4 / (views * (views - 1)) * cosines.sum(dim=0).mean()


def barlow(z: Float[Tensor, "v b d"], weight: float = 5e-3) -> Float[Tensor, ""]:
    """The cross-correlation of two views' columns against the identity: whitening's constraint as a penalty.

    L = sum_i (1 - C_ii)^2 + lambda sum_i sum_{j != i} C_ij^2,
    C_ij = sum_b z_0bi z_1bj / ( sqrt(sum_b z_0bi^2) sqrt(sum_b z_1bj^2) ), columns centred over the batch

    Barlow Twins (Zbontar et al. 2021), Eq. 1 and 2, lambda = 5e-3; more than two views: the mean over pairs. A column
    without variance correlates with nothing, so a collapsed batch has L = d. Scaling a column changes nothing.
    """
    z = _check_views(z)
    z = z - z[:, :1]  # equal rows are exactly 0 then, whatever the rounding of their mean
    columns = normalize(z - z.mean(dim=1, keepdim=True), dim=1)
    found = []
    for one, other in combinations(columns, 2):
        squares = (_products(one.T, other.T) - torch.eye(z.shape[2], dtype=z.dtype, device=z.device)).square()
        own = squares.diagonal().sum()
        found.append(own + weight * (squares.sum() - own))
    return torch.stack(found).mean()


def vicreg(
    z: Float[Tensor, "v b d"],
    invariance: float = 25.0,
    variance: float = 25.0,
    covariance: float = 1.0,
    gamma: float = 1.0,
    eps: float = 1e-4,
) -> Float[Tensor, ""]:
    """Views pulled together, every column's deviation held above gamma, columns of one view decorrelated.

    L = lambda s(Z, Z') + mu (v(Z) + v(Z')) + nu (c(Z) + c(Z')),  s = 1/(b d) sum_i ||z_i - z'_i||^2,
    v = 1/d sum_j max(0, gamma - sqrt(Var(z^j) + eps)),  c = 1/d sum_{i != j} Cov(Z)_ij^2 (denominators b - 1)

    VICReg (Bardes et al. 2022), Eq. 1-6, with lambda = mu = 25, nu = 1; more than two views: the mean over pairs. The
    paper's Eq. 5 sums over dimensions; its pseudocode and the released code, from which the weights come, average as
    here. The released code also halves v(Z) + v(Z'), which `variance` 12.5 gives. 0 only for views that are white
    and equal; a collapsed batch costs 2 mu (gamma - sqrt(eps)).
    """
    z = _check_views(z)
    views, b, dim = z.shape
    centred = z - z.mean(dim=1, keepdim=True)
    spread = torch.relu(gamma - (centred.square().sum(dim=1) / (b - 1) + eps).sqrt()).mean()
    scatters = torch.stack([_products(one.T, one.T) for one in centred]) / (b - 1)
    apart = scatters.square().sum() - scatters.diagonal(dim1=1, dim2=2).square().sum()
    # The mean over pairs of what two views have summed is twice the mean over views.
    return invariance * mse(z, euclidean=True) / dim + 2 * (variance * spread + covariance * apart / (dim * views))


def _surprise(z: Float[Tensor, "v b d"], temperature: float, negatives: str) -> Float[Tensor, "m b"]:
    """- log( exp(sim(z_0i, z_pi) / t) / D_p ) for every positive p of every sentence i."""
    check_choice(negatives, "negatives", ("view", "all"))
    check_positive(temperature, "temperature")
    logits = torch.stack([_cosines(z[0], one) for one in z[1:]]) / temperature
    if negatives == "view":
        return torch.stack([cross_entropy(one, _own(z), reduction="none") for one in logits])
    own = logits.diagonal(dim1=1, dim2=2)
    return torch.logsumexp(logits, dim=(0, 2)) - own


def _weights(weights: Sequence[float] | None, z: Tensor) -> Float[Tensor, "m"]:
    count = z.shape[0] - 1
    weights = [1.0] * count if weights is None else list(weights)
    if len(weights) != count or min(weights, default=1) <= 0:
        raise ValueError(f"weights={weights} must hold {count} numbers above 0, one for each positive")
    return torch.tensor(weights, dtype=z.dtype, device=z.device)


def _cosines(x: Float[Tensor, "b d"], y: Float[Tensor, "c d"]) -> Float[Tensor, "b c"]:
    return _products(normalize(x, dim=-1), normalize(y, dim=-1))


def _products(x: Float[Tensor, "b d"], y: Float[Tensor, "c d"]) -> Float[Tensor, "b c"]:
    with own_precision(x.device):
        return x @ y.T


def _own(z: Tensor) -> Tensor:
    """The column each row's positive is in."""
    return torch.arange(z.shape[1], device=z.device)


def _check_views(z, name: str = "z", views: int | None = None) -> Float[Tensor, "v b d"]:
    """Return `z` in the type that `widened` gives, with `views` views, or two or more. Raises as `check_shape` and
    `check_real`, and ValueError for other views and for a batch of nothing."""
    z = widened(check_real(check_shape(z, name, "v b d"), name))
    if len(z) < 2 or (views is not None and len(z) != views):
        raise ValueError(f"{name} must have {f'{views} views' if views else 'at least 2 views'}, got {len(z)}")
    if z.numel() == 0:
        raise ValueError(f"{name} must hold at least 1 sentence and 1 dimension, got {list(z.shape)}")
    return z
