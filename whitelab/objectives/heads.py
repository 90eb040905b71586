"""The small networks between encoder and loss. They are trained with the encoder and thrown away afterwards.

All take `h [v, b, d]`, view i of sentence j at `h[i, j]`, and a generator for what they draw.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class TanhHead(nn.Module):
    """tanh(A h + a) with A [d, d]: SimCSE's head (Gao et al. 2021, section 6.3), dropped at test time."""

    def __init__(self, dim: int):
        super().__init__()
        self.linear = nn.Linear(dim, dim)

    def forward(self, h: Float[Tensor, "v b d"], generator: torch.Generator | None = None) -> Float[Tensor, "v b d"]:
        return torch.tanh(self.linear(h))


class Projection(nn.Module):
    """B relu(batchnorm(A h + a)) + c with A [hidden, d], B [out, hidden]: a perceptron with one hidden layer.

    The projection g of W-MSE (Ermolov et al. 2021, section 3) and the projector and predictor of BYOL. The
    statistics of the batch norm are taken over all views together, as in the released code.
    """

    def __init__(self, dim: int, hidden: int, out: int):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(dim, hidden), nn.BatchNorm1d(hidden), nn.ReLU(inplace=True), nn.Linear(hidden, out)
        )

    def forward(self, h: Float[Tensor, "v b d"], generator: torch.Generator | None = None) -> Float[Tensor, "v b m"]:
        return self.layers(h.flatten(0, 1)).unflatten(0, h.shape[:2])
