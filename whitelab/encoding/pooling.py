"""Hidden states of a batch -> one vector a sentence."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from whitelab.base.checks import check_choice
from whitelab.statistics.linalg import exact

# SBERT-WK's layers and neighbours, those of BERT-base in the paper and its code.
WK_START, WK_WINDOW = 4, 2
# An inverse of a mean cosine has no meaning at 0 and below; layers of trained models are at 0.5 and above.
_LEAST_ALIGNMENT = 0.01
# Squared deviations of cosines that are rounding alone.
_NO_VARIANCE = 1e-24


def padded(ids: Sequence[Sequence[int]], pad: int) -> tuple[Int[Tensor, "p t"], Int[Tensor, "p t"]]:
    """Token ids of unequal length as a table filled up on the right, and the mask of what is not filling."""
    longest = max(map(len, ids))
    table = torch.tensor([[*row, *[pad] * (longest - len(row))] for row in ids])
    lengths = torch.tensor([len(row) for row in ids])
    return table, (torch.arange(longest) < lengths[:, None]).long()


def pool_mean(hidden: Float[Tensor, "b t d"], mask: Int[Tensor, "b t"] | None = None) -> Float[Tensor, "b d"]:
    """Mean over all tokens the mask keeps, [CLS] and [SEP] among them, accumulated in float32.

    The exact divisor (Su et al. 2021, `first-last-avg`); WhiteningBERT's code adds 0.01 to it. Without
    a mask every token counts. A row with no token at all gives the zero vector.
    """
    hidden = hidden.float()
    if mask is None:
        return hidden.mean(dim=1)
    weights = mask.to(hidden.dtype)[..., None]
    return (hidden * weights).sum(dim=1) / weights.sum(dim=1).clamp_min(1.0)


def pool_cls(hidden: Float[Tensor, "b t d"], mask: Int[Tensor, "b t"] | None = None) -> Float[Tensor, "b d"]:
    """The first token's state ([CLS]), in float32."""
    return hidden[:, 0].float()


def pool_last(hidden: Float[Tensor, "b t d"], mask: Int[Tensor, "b t"] | None = None) -> Float[Tensor, "b d"]:
    """The state of the last token the mask keeps, in float32, with the padding on either side.

    In a decoder it is the only one that has seen the whole sentence. A row with no token gives its last state.
    """
    if mask is None:
        return hidden[:, -1].float()
    last = hidden.shape[1] - 1 - mask.flip(1).argmax(dim=1)
    return hidden[torch.arange(hidden.shape[0], device=hidden.device), last].float()


def pool_wk(hidden: Float[Tensor, "l b t d"]) -> Float[Tensor, "b l d"]:
    """SBERT-WK of the states up to every layer, of sentences without padding, in float32; computed in float64.

    For layer j of a token with the states v_i, i = s..j, N(i) the at most `WK_WINDOW` on either side of i among them:

    alignment  a_i ~ 1 / mean_{k in N(i)} cos(v_i, v_k), a mean below 0.01 counting as 0.01
    novelty    n_i ~ |q_i| / |v_i|, q_i the part of v_i orthogonal to the span of N(i), the last of R's diagonal in a QR
    token      sum_i (a_i + n_i) / 2 v_i, with sum_i a_i = sum_i n_i = 1
    sentence   the mean of its tokens weighted by the variance of cos(v_i, v_{i+1}) over i; not its last token, [SEP]

    Wang and Kuo (2020), section IV, whose s = 4 of 12 blocks is taken from j = 6 on; before it s = 0, because fewer
    than three states leave a variance of 0. Where every token's is 0 (j < 2) they count alike, and layer 0 is their
    mean. So layer j depends on the first j blocks alone. A sentence of one token keeps it. The released code
    departs from this in three ways: its alignment is to the projection of v_i on the span, its alignment weight is
    divided by the number of states in the window, fewer at the ends, and its second layer has no left neighbour.
    """
    states = exact(hidden[:, :, :-1] if hidden.shape[2] > 1 else hidden).permute(1, 2, 0, 3)
    units = torch.nn.functional.normalize(states, dim=-1)
    cosines = units @ units.mT
    known: dict[tuple[int, int, int], tuple[Tensor, Tensor]] = {}
    weights = torch.stack([_wk_weights(cosines, layer, known) for layer in range(len(hidden))], dim=1)
    return (weights.flatten(2) @ states.flatten(1, 2)).float()


def _wk_weights(cosines: Float[Tensor, "b t l l"], layer: int, known: dict) -> Float[Tensor, "b t l"]:
    """What every state counts in the vector of `layer`; a sentence's sum to 1."""
    first = WK_START if layer >= WK_START + 2 else 0
    places = range(first, layer + 1)
    weights = cosines.new_zeros(cosines.shape[:3])
    if layer == first:
        weights[..., layer] = 1
    else:
        parts = [
            _wk_neighbours(cosines, (max(first, i - WK_WINDOW), i, min(layer, i + WK_WINDOW)), known) for i in places
        ]
        alignment, novelty = (torch.stack(one, dim=-1) for one in zip(*parts, strict=True))
        inverse = alignment.clamp_min(_LEAST_ALIGNMENT).reciprocal()
        weights[..., first : layer + 1] = (
            inverse / inverse.sum(dim=-1, keepdim=True) + novelty / novelty.sum(dim=-1, keepdim=True)
        ) / 2
    steps = cosines.diagonal(1, dim1=-2, dim2=-1)[..., first:layer]
    spread = steps.var(dim=-1, correction=0) if layer - first > 1 else cosines.new_zeros(cosines.shape[:2])
    total = spread.sum(dim=1, keepdim=True)
    importance = torch.where(total > _NO_VARIANCE, spread / total, 1 / cosines.shape[1])
    return importance[..., None] * weights


def _wk_neighbours(
    cosines: Float[Tensor, "b t l l"], window: tuple[int, int, int], known: dict
) -> tuple[Float[Tensor, "b t"], Float[Tensor, "b t"]]:
    """Mean cosine of state `window[1]` with the others from `window[0]` to `window[2]`, and its novelty beside them.

    R of the QR of unit vectors is the Cholesky factor of their cosines: small matrices, all tokens at once.
    """
    if window not in known:
        low, place, high = window
        order = [i for i in range(low, high + 1) if i != place] + [place]
        inner = cosines[..., order, :][..., order]
        rounding = 1e-12 * torch.eye(len(order), dtype=inner.dtype, device=inner.device)  # two states may be equal
        factor = torch.linalg.cholesky_ex(inner + rounding).L
        known[window] = inner[..., -1, :-1].mean(dim=-1), factor[..., -1, -1]
    return known[window]


POOLINGS = {"mean": pool_mean, "cls": pool_cls, "last": pool_last}  # of one layer's states
WK = "wk"  # of several layers' states
GIVEN = "given"  # the pooling of vectors that came as they are
POOLING_LABELS = {
    "mean": "mean of all tokens",
    "cls": "[CLS] token",
    "last": "last token",
    WK: "SBERT-WK, layers and tokens weighted by how much they vary",
}
UNIT = "unit_"  # before a pooling: each layer's vector is then brought to length 1
POOLING_LABELS |= {UNIT + name: f"{label}, brought to length 1" for name, label in POOLING_LABELS.items()}


def pool(name: str, hidden: Sequence[Float[Tensor, "b t d"]]) -> Float[Tensor, "b l d"]:
    """The pooling `name` of the states of every layer, without padding."""
    if name == WK:
        return pool_wk(torch.stack(tuple(hidden)))
    return torch.stack([POOLINGS[name](one) for one in hidden], dim=1)


def check_pooling(name: str) -> str:
    """Return `name` if it is a key of `POOLING_LABELS`."""
    return check_choice(name, "pooling", POOLING_LABELS)
