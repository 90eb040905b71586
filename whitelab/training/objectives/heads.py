"""The small networks between encoder and loss. They are trained with the encoder and thrown away afterwards.

All take `h [v, b, d]`, view i of sentence j at `h[i, j]`, and a generator for what they draw. They are made in float32,
as encoders give `h`, whatever torch makes where nothing is said.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from whitelab.base.checks import check_choice
from whitelab.training.objectives.batch_whitening import RunningMoments, whiten

# Which rows one whitening of `WhitenedHead` sees: a view of every sentence, or a piece of the batch.
CHUNKS = ("views", "batch")


class TanhHead(nn.Module):
    """tanh(A h + a) with A [d, d]: SimCSE's head (Gao et al. 2021, section 6.3), dropped at test time."""

    def __init__(self, dim: int):
        super().__init__()
        self.linear = nn.Linear(dim, dim, dtype=torch.float32)

    def forward(self, h: Float[Tensor, "v b d"], generator: torch.Generator | None = None) -> Float[Tensor, "v b d"]:
        return torch.tanh(self.linear(h))


class WhitenedHead(nn.Module):
    """tanh(A w(h) + a): each of the v chunks of the batch whitened by itself, then SimCSE's head.

    WhitenedCSE (Zhuo et al. 2023), section 4.1 and Fig. 2. Section 4.1 takes the output of this head as the
    representation of a sentence. The released code, and whitelab, train with it and represent a sentence by the
    encoder's own state: the head's output depends on the batch a sentence is whitened in and on the permutation drawn.

    `method` is a method of `whiten`; shuffled group whitening draws a permutation for every chunk, which makes the
    views of a sentence differ (Eq. 6 and 11). `chunks` "views" whitens view by view, as there. The released code
    cuts the rows, sentence after sentence with its views, into v pieces ("batch"): the views of all but v - 1
    sentences then share permutation and map and differ by dropout only.

    `views` above that of the input repeats it: with one encoded view its v whitenings are the positives.
    With `normalize` rows have length 1 before they are whitened. Section 3.2.1 has "a batch of normalized sentence
    representations", without saying normalized how; sections 3.1 and 4.1 feed the encoder's output to the whitening as
    it is, and so do the released code and the default.

    `momentum` above 0 is beta of `RunningMoments`, fed chunk by chunk. Covariances have n in their denominator
    (released code).
    """

    def __init__(
        self,
        dim: int,
        method: str,
        *,
        views: int,
        groups: int = 1,
        eps: float = 0.0,
        momentum: float = 0.0,
        detach: bool = False,
        chunks: str = "views",
        normalize: bool = False,
    ):
        super().__init__()
        self.chunks, self.views = check_choice(chunks, "chunks", CHUNKS), views
        self.normalize = normalize
        self.settings = {"method": method, "groups": groups, "eps": eps, "detach": detach, "ddof": 0}
        self.running = RunningMoments(dim, momentum) if momentum else None
        self.head = TanhHead(dim)

    def forward(self, h: Float[Tensor, "u b d"], generator: torch.Generator | None = None) -> Float[Tensor, "v b d"]:
        return self.head(self.whitened(h.expand(self.views, -1, -1), generator))

    def whitened(self, h: Float[Tensor, "v b d"], generator: torch.Generator | None) -> Float[Tensor, "v b d"]:
        """Every chunk of `h` whitened, each row in its place."""
        if self.normalize:
            h = nn.functional.normalize(h, dim=-1)
        if self.chunks == "views":
            return self._each(h, generator)
        views, b = h.shape[:2]
        pieces = h.transpose(0, 1).flatten(0, 1).unflatten(0, (views, b))
        return self._each(pieces, generator).flatten(0, 1).unflatten(0, (b, views)).transpose(0, 1)

    def _each(self, pieces: Float[Tensor, "v b d"], generator: torch.Generator | None) -> Float[Tensor, "v b d"]:
        return torch.stack([whiten(one, generator=generator, running=self.running, **self.settings) for one in pieces])


class Projection(nn.Module):
    """B relu(batchnorm(A h + a)) + c with A [hidden, d], B [out, hidden]: a perceptron with `depth` hidden layers.

    With one the projection g of W-MSE (Ermolov et al. 2021, section 3) and the projector and predictor of BYOL; with
    two the projector of Barlow Twins (Zbontar et al. 2021) and the expander of VICReg (Bardes et al. 2022), whose
    released code leaves out the constants, which the batch norm or the loss takes out again. The statistics of the
    batch norm are taken over all views together, as in the released code of W-MSE.
    """

    def __init__(self, dim: int, hidden: int, out: int, depth: int = 1):
        super().__init__()
        layers, kind = [], {"dtype": torch.float32}
        for width in (dim, *[hidden] * (depth - 1)):
            layers += [nn.Linear(width, hidden, **kind), nn.BatchNorm1d(hidden, **kind), nn.ReLU(inplace=True)]
        self.layers = nn.Sequential(*layers, nn.Linear(hidden, out, **kind))

    def forward(self, h: Float[Tensor, "v b d"], generator: torch.Generator | None = None) -> Float[Tensor, "v b m"]:
        return self.layers(h.flatten(0, 1)).unflatten(0, h.shape[:2])
