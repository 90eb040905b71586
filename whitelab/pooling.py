"""Hidden states of a batch -> one vector a sentence."""

from jaxtyping import Float, Int
from torch import Tensor

from whitelab.checks import check_choice


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


POOLINGS = {"mean": pool_mean, "cls": pool_cls}
POOLING_LABELS = {"mean": "mean of all tokens", "cls": "[CLS] token"}


def check_pooling(name: str) -> str:
    """Return `name` if it is a key of `POOLINGS`."""
    return check_choice(name, "pooling", POOLINGS)
