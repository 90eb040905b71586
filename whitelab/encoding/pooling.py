"""Hidden states of a batch -> one vector a sentence."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from whitelab.base.checks import check_choice


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
    return hidden[torch.arange(len(hidden), device=hidden.device), last].float()


POOLINGS = {"mean": pool_mean, "cls": pool_cls, "last": pool_last}
GIVEN = "given"  # the pooling of vectors that came as they are
POOLING_LABELS = {"mean": "mean of all tokens", "cls": "[CLS] token", "last": "last token"}


def check_pooling(name: str) -> str:
    """Return `name` if it is a key of `POOLINGS`."""
    return check_choice(name, "pooling", POOLINGS)
