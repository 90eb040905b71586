"""The losses as pure functions of `z [v, b, d]`: row `z[p, i]` is view p of sentence i; a scalar comes back.

Views of one sentence are its positives, other sentences of the batch its negatives. `sim` is the cosine. Half
precision is widened to float32, because similarities are divided by small temperatures.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

# The temperature of SimCSE and WhitenedCSE.
TEMPERATURE = 0.05


def contrastive(z: Float[Tensor, "2 b d"], temperature: float = TEMPERATURE) -> Float[Tensor, ""]:
    """The contrastive loss of a sentence's first view against every second view.

    L = - 1/b sum_i log( exp(sim(z_0i, z_1i) / t) / sum_j exp(sim(z_0i, z_1j) / t) )

    WhitenedCSE (Zhuo et al. 2023), Eq. 1; SimCSE (Gao et al. 2021), Eq. 4, where the views are two dropout
    masks. One direction only: the second views are never anchors. 0 for one sentence, which has no negatives.
    """
    return cross_entropy(_cosines(z[0], z[1]) / temperature, _own(z))


def mse(z: Float[Tensor, "v b d"], euclidean: bool = False) -> Float[Tensor, ""]:
    """Mean squared distance of a sentence's views, over all v (v - 1) / 2 pairs of them.

    L = 2 / (b v (v - 1)) sum_i sum_{p < q} dist(z_pi, z_qi), dist(x, y) = 2 - 2 sim(x, y)

    W-MSE (Ermolov et al. 2021), Eq. 5 and 6. With `euclidean` dist(x, y) = ||x - y||^2 (its appendix D), a sum
    over dimensions; the released code averages over them, which is 1/d of it. Without whitening it is 0 where
    all rows are equal and not zero, so a network can collapse to a constant; then it is the control.
    """
    _check_views(z)
    z = _wide(z) if euclidean else normalize(_wide(z), dim=-1)
    # With the mean c_i of the v views of sentence i: sum_{p < q} ||z_p - z_q||^2 = v sum_p ||z_p - c||^2.
    views = z.shape[0]
    return 2 / (views - 1) * (z - z.mean(dim=0)).square().sum(dim=(0, 2)).mean()


def _cosines(x: Float[Tensor, "b d"], y: Float[Tensor, "c d"]) -> Float[Tensor, "b c"]:
    return normalize(_wide(x), dim=-1) @ normalize(_wide(y), dim=-1).T


def _own(z: Tensor) -> Tensor:
    """The column each row's positive is in."""
    return torch.arange(z.shape[1], device=z.device)


def _wide(z: Tensor) -> Tensor:
    return z.float() if z.dtype in (torch.float16, torch.bfloat16) else z


def _check_views(z: Tensor) -> None:
    if z.shape[0] < 2:
        raise ValueError(f"z must have at least 2 views, got {z.shape[0]}")
