"""The table of training objectives that the trainer, pages, the command line and the tests read.

An objective with its parameters is one string, a spec: `simcse`, `w-mse:positives=4,size=256`. `parse` checks it
at the door and `canonical` writes out every parameter that counts.
"""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from whitelab.base.parameters import Parameter, Spec, family
from whitelab.training.objectives import heads, losses

TRIED = 512  # sentences of noise on which larger batches are checked


@dataclass(frozen=True)
class Objective:
    """One entry of `OBJECTIVES`: what is trained on top of the encoder, by which loss, and what to tell a user.

    A step of training: `positives(spec)` views h [v, b, d] of b sentences (v dropout masks), `head(h, generator)`,
    the predictor on top where there is one, then `loss`. Where a target is needed, it is the slow copies' head
    output, without predictor. Every method takes the spec as text or parsed. `departs` says where what stands here at
    first is not as in its paper, or in the paper's code.
    """

    name: str
    label: str
    summary: str
    formula: str
    source: str
    parameters: tuple[Parameter, ...]
    loss_of: Callable[..., Tensor]  # (z, generator, target, **parameters)
    head_of: Callable[..., nn.Module]  # (dim, **parameters)
    batch_of: Callable[..., int] = lambda dim, **parameters: 2
    predictor_of: Callable[..., nn.Module] | None = None  # (**parameters)
    multiple_of: Callable[..., int] = lambda **parameters: 1
    departs: str = ""

    def positives(self, spec: str | Spec) -> int:
        """How many views of each sentence the trainer runs through the encoder, v of the `h` the head gets."""
        return 1 if self._values(spec).get("passes") == "once" else self.views(spec)

    def views(self, spec: str | Spec) -> int:
        """How many views of each sentence the loss compares, v of the `z` the head gives."""
        return self._values(spec).get("positives", 2)

    def head(self, spec: str | Spec, dim: int) -> nn.Module:
        """The network between encoder and loss, `head(h [v, b, dim], generator) -> z [v, b, m]`; training only.

        Raises ValueError where a parameter does not fit `dim`.
        """
        return self.head_of(dim, **self._values(spec, dim))

    def predictor(self, spec: str | Spec, dim: int) -> nn.Module | None:
        """The network the online side has on top of its head, `predictor(z [v, b, m], generator) -> [v, b, m]`."""
        return self.predictor_of(**self._values(spec, dim)) if self.predictor_of else None

    def top(self, spec: str | Spec, dim: int) -> nn.ModuleDict:
        """All that is trained on top of an encoder, in the order it is run through: `head`, and where there is one
        `predictor`. Raises ValueError as `head`."""
        head, predictor = self.head(spec, dim), self.predictor(spec, dim)
        return nn.ModuleDict({"head": head} if predictor is None else {"head": head, "predictor": predictor})

    def needs_target(self) -> bool:
        """Whether the trainer keeps a slow copy of encoder and head, whose output is the `target` of `loss`."""
        return self.predictor_of is not None

    def slow_copy(self, encoder: nn.Module, head: nn.Module) -> nn.ModuleDict | None:
        """A copy of `encoder` and `head` without gradients, which `follow` moves; None where none is needed."""
        if not self.needs_target():
            return None
        return deepcopy(nn.ModuleDict({"encoder": encoder, "head": head})).requires_grad_(False)

    def follow(
        self, spec: str | Spec, copy: nn.ModuleDict, encoder: nn.Module, head: nn.Module, progress: float
    ) -> None:
        """Move a `slow_copy` towards what it was copied from, after a step that is `progress` of the way."""
        kept, online = self.target_decay(spec, progress), [*encoder.parameters(), *head.parameters()]
        for slow, fast in zip(copy.parameters(), online, strict=True):
            slow.lerp_(fast.detach(), 1 - kept)

    def target_decay(self, spec: str | Spec, progress: float) -> float:
        """The part of its old parameters the slow copy keeps in a step, `progress` of the way (0 to 1).

        1 - (1 - decay) (cos(pi progress) + 1) / 2: from `decay` up to 1 (BYOL, Grill et al. 2020, section 3.2).
        """
        decay = self._values(spec).get("decay", 1.0)
        return 1 - (1 - decay) * (math.cos(math.pi * progress) + 1) / 2

    def batch(self, spec: str | Spec, dim: int) -> int:
        """The smallest batch of sentences the loss is defined for.

        Raises ValueError where the parameters fit no batch at all.
        """
        return self.batch_of(dim, **self._values(spec, dim))

    def multiple(self, spec: str | Spec) -> int:
        """What a batch must be a multiple of: the sub-batch of a whitening loss (W-MSE, batch slicing), else 1."""
        return self.multiple_of(**self._values(spec))

    def whole(self, spec: str | Spec, dim: int, batch: int) -> int:
        """`batch`, raised to the next that the loss takes. Raises ValueError where there is none."""
        multiple = self.multiple(spec)
        return -(-max(batch, self.batch(spec, dim)) // multiple) * multiple

    def loss(
        self,
        spec: str | Spec,
        z: Float[Tensor, "v b m"],
        generator: torch.Generator,
        target: Float[Tensor, "v b m"] | None = None,
    ) -> Float[Tensor, ""]:
        """The loss of a batch, `z` from the head (and the predictor where there is one), differentiable in `z`.

        `generator` (on the CPU) draws what is random in it. Raises ValueError for a wrong number of views.
        """
        values, views = self._values(spec), self.views(spec)
        if z.shape[0] != views:
            raise ValueError(f"z must have the {views} views of {self.name}, got {z.shape[0]}")
        if (target is not None) != self.needs_target():
            wants = "needs a target" if self.needs_target() else "takes no target"
            raise ValueError(f"target={'None' if target is None else 'given'}: {self.name} {wants}")
        return self.loss_of(z, generator=generator, target=target, **values)

    def try_on_noise(
        self,
        spec: str | Spec,
        head: nn.Module,
        batch: int,
        dim: int,
        generator: torch.Generator,
        device: str | torch.device = "cpu",
    ) -> None:
        """Raise ValueError where `head` (on `device`) and loss cannot take `batch` sentences of `dim` dimensions."""
        noise = torch.randn(self.positives(spec), batch, dim, generator=generator, dtype=torch.float32).to(device)
        z = head(noise, generator)
        self.loss(spec, z, generator, z.detach() if self.needs_target() else None)

    def check_batch(self, spec: str | Spec, batch: int, dim: int) -> None:
        """Raise ValueError where the objective cannot take such batches, as `try_on_noise` does, in little time.

        Noise of `TRIED` sentences stands for larger batches: what a loss refuses, it refuses of small ones.
        """
        generator, tried = torch.Generator().manual_seed(0), min(batch, self.whole(spec, dim, TRIED))
        self.try_on_noise(spec, self.head(spec, dim), tried, dim, generator)

    def _values(self, spec: str | Spec, dim: int | None = None) -> dict:
        found = parse(str(spec), dim)
        if found.name != self.name:
            raise ValueError(f"objective={str(spec)!r} is not {self.name}")
        return dict(found.values)


# ---------------------------------------------------------------------------------------- losses and heads


def _whitenedcse(z, generator, target, *, loss, weight, negatives, temperature, **of_head):
    weights = [1.0] + [weight] * (z.shape[0] - 2)
    if loss == "l1":
        return losses.multi_positive_l1(z, temperature, weights, negatives)
    return losses.multi_positive_l2(z, temperature, weights, negatives, reading=_READINGS[loss])


def _w_mse(z, generator, target, *, positives, repeats, euclidean, embedding, hidden, **slicing):
    return losses.w_mse(z, generator, repeats=repeats, euclidean=bool(euclidean), **slicing)


def _contrastive_whitened(z, generator, target, *, temperature, positives, euclidean, embedding, hidden, **slicing):
    if slicing["whitening"] == "none":
        return losses.nt_xent(z, temperature, not euclidean)
    return losses.contrastive_whitened(z, generator, temperature=temperature, normalized=not euclidean, **slicing)


def _whitened(dim, *, whitening, groups, positives, eps, momentum, detach, chunks, normalize, **parameters):
    if whitening == "none":
        return heads.TanhHead(dim)
    knobs = {"groups": groups if whitening in _GROUPED else 1, "eps": eps, "momentum": momentum, "chunks": chunks}
    return heads.WhitenedHead(dim, whitening, views=positives, detach=bool(detach), normalize=bool(normalize), **knobs)


def _projection(dim, *, hidden, embedding, depth=1, **parameters):
    return heads.Projection(dim, hidden, embedding, depth)


def _rows_to_whiten(dim, *, whitening, groups, eps, momentum, chunks, passes, **parameters):
    if (chunks, passes) == ("batch", "once"):
        raise ValueError(
            "passes=once must not go with chunks=batch, which whitens the views of nearly every sentence alike: they "
            "would be one and the same; take chunks=views (the paper) or passes=each (its code)"
        )
    if whitening == "none" or eps or momentum:
        return 2
    return 1 + (-(-dim // groups) if whitening in _GROUPED else dim)


def _sub_batch(dim, *, size, embedding, whitening, eps, statistics, positives, **parameters):
    if whitening == "none":
        return 2
    rows = size * positives if statistics == "joint" else size
    if not eps and whitening != "standardize" and rows <= embedding:
        raise ValueError(
            f"size={size} gives {rows} rows to whiten embedding={embedding} dimensions, which takes more of them "
            f"(size={2 * embedding} is the paper's rule), or eps above 0"
        )
    return size


def _whole_sub_batches(*, size, whitening, **parameters):
    return 1 if whitening == "none" else size


# ----------------------------------------------------------------------------------------------- the table

_GROUPED = ("shuffled_group", "group")
_WHITENED = ("whitening", *_GROUPED, "zca", "pca")  # what counts only where batches are whitened
_READINGS = {"l2": "text", "l2-printed": "printed", "l2-code": "code"}

_TEMPERATURE = Parameter("temperature", "τ", losses.TEMPERATURE, 0.001, 10.0, "Divides the similarities.")
_POSITIVES = Parameter("positives", "positives", 2, 2, 16, "Views of each sentence; every pair of them is compared.")
_EUCLIDEAN = Parameter("euclidean", "Euclidean", 0, 0, 1, "0: cosine. 1: squared Euclidean distance.")
_EMBEDDING = Parameter("embedding", "embedding", 64, 1, 4096, "Dimensions of the projection, which the loss sees.")
_HIDDEN = Parameter("hidden", "hidden", 1024, 1, 16384, "Width of the projection's hidden layer.")
# Both papers expand 2048 dimensions to 8192, which is more than a laptop trains.
_EXPANDED = (
    replace(_EMBEDDING, default=1024, high=16384, hint=f"{_EMBEDDING.hint} The paper's is 8192."),
    replace(_HIDDEN, hint="Width of the two hidden layers; the paper's is 8192."),
)
_EPS = Parameter("eps", "ε", 0.0, 0, 1, "Whitens (1 - eps) covariance + eps I; 0 whitens fully.", noun="epsilon")
_SIZE = Parameter(
    "size",
    "sub-batch",
    128,
    2,
    65536,
    "Rows whitened together; not given, twice the embedding, which is the paper's rule.",
    multiple=("embedding", 2),
)
_WHITENING = Parameter(
    "whitening",
    "whitening",
    "cholesky",
    choices=("cholesky", "zca", "pca", "standardize"),
    hint="Which matrix W with W'W = inverse covariance; standardize is batch norm, the paper's control.",
)
_STATISTICS = Parameter(
    "statistics",
    "statistics",
    "view",
    choices=losses.STATISTICS,
    hint="view: each view of a sub-batch by itself (batch slicing); joint: all its views together (Eq. 7-8).",
)
_SLICED = ("whitening", *_WHITENING.choices)  # what counts only where sub-batches are whitened

OBJECTIVES: dict[str, Objective] = {
    one.name: one
    for one in (
        Objective(
            "simcse",
            "SimCSE",
            "Pulls two dropout views of a sentence together and pushes all other sentences away.",
            r"-\log\frac{e^{\cos(z_i, z_i^+)/\tau}}{\sum_j e^{\cos(z_i, z_j^+)/\tau}}",
            "Gao et al. 2021, Eq. 4; Zhuo et al. 2023 (WhitenedCSE), Eq. 1",
            (_TEMPERATURE,),
            lambda z, generator, target, temperature: losses.contrastive(z, temperature),
            lambda dim, **parameters: heads.TanhHead(dim),
            departs="It takes [CLS] and a rate of 0.00003; here the mean and 0.0001 stand at first.",
        ),
        Objective(
            "whitenedcse",
            "WhitenedCSE",
            "Whitens shuffled groups of coordinates, which spreads the batch and makes views of a sentence differ, "
            "then contrasts.",
            r"-\sum_{p=1}^{m}\lambda_p\log\frac{e^{\cos(z_i, z_{i,p}^+)/\tau}}{\sum_j e^{\cos(z_i, z_{j,p}^+)/\tau}},"
            r"\quad z = \tanh(A\,\mathrm{SGW}(h) + a)",
            "Zhuo et al. 2023 (WhitenedCSE), Eq. 5-8",
            (
                Parameter(
                    "whitening",
                    "whitening",
                    "shuffled_group",
                    choices=("shuffled_group", "group", "zca", "pca", "none"),
                    hint="Table 3 of the paper; none is SimCSE with more positives (Table 6).",
                ),
                Parameter(
                    "groups",
                    "groups",
                    128,
                    1,
                    None,
                    "Number of groups, d / groups coordinates in each.",
                    when=("whitening", *_GROUPED),
                ),
                Parameter("positives", "views", 3, 2, 16, "Views of each sentence, the anchor among them (Table 5)."),
                Parameter(
                    "loss",
                    "loss",
                    "l1",
                    choices=("l1", *_READINGS),
                    hint="l1: Eq. 7. l2: Eq. 8 as its text means it; as printed it drives positives apart.",
                ),
                Parameter("weight", "λ", 1.0, 0.001, 100.0, "Weight of each positive after the first, which has 1."),
                Parameter(
                    "negatives",
                    "negatives",
                    "view",
                    choices=("view", "all"),
                    hint="Denominator over the same positive of every sentence, or over all positives.",
                ),
                _TEMPERATURE,
                replace(_EPS, when=_WHITENED),
                Parameter(
                    "momentum",
                    "β",
                    0.0,
                    0,
                    0.9999,
                    "Part of the old moments that is kept (Eq. 13), of a start at the identity; 0 whitens by the batch "
                    "alone.",
                    when=_WHITENED,
                ),
                Parameter(
                    "detach",
                    "constant W",
                    0,
                    0,
                    1,
                    "1: no gradient through the whitening matrix, as in the released code.",
                    when=_WHITENED,
                ),
                Parameter(
                    "chunks",
                    "chunks",
                    "views",
                    choices=heads.CHUNKS,
                    hint="views: each view whitened by itself (Fig. 2); batch: pieces of the batch (released code).",
                    when=_WHITENED,
                ),
                Parameter(
                    "passes",
                    "passes",
                    "each",
                    choices=("each", "once"),
                    hint="each: every view encoded with its own dropout; once: one encoding, shuffled several times.",
                    when=("whitening", "shuffled_group"),
                ),
                Parameter(
                    "normalize",
                    "unit length",
                    0,
                    0,
                    1,
                    "1: rows of length 1 before whitening. The paper's section 3.2.1 says normalized, not how; "
                    "its code, and 0, whiten them as they are.",
                    when=_WHITENED,
                ),
            ),
            _whitenedcse,
            _whitened,
            _rows_to_whiten,
            departs="Its paper has 256 or 384 groups; 128 are its released code's. Each view is whitened by itself, "
            "as in the paper's Figure 2, and the gradient goes through W, of which it says nothing; the "
            "code whitens thirds of the batch with a constant W. Both take [CLS] and a rate of 0.00003 "
            "(paper) or 0.00001 (code); here the mean and 0.0001 stand at first. The paper takes z as the "
            "vector of a sentence; scored here is the encoder's own, as in the code.",
        ),
        Objective(
            "w-mse",
            "W-MSE",
            "Pulls whitened views of a sentence together; no negatives: the whitening keeps sentences apart.",
            r"\frac{2}{Nd(d-1)}\sum \operatorname{dist}(z_i, z_j),\quad z = W_V(v - \mu_V),\ "
            r"W_V^\top W_V = \Sigma_V^{-1}",
            "Ermolov et al. 2021 (W-MSE), Eq. 5-8",
            (
                _POSITIVES,
                _EUCLIDEAN,
                _EMBEDDING,
                _HIDDEN,
                _SIZE,
                _WHITENING,
                _EPS,
                _STATISTICS,
                Parameter(
                    "repeats", "repeats", 1, 1, 64, "Slicings averaged; only batches of several sub-batches gain."
                ),
            ),
            _w_mse,
            _projection,
            _sub_batch,
            multiple_of=_whole_sub_batches,
            departs="Its Eq. 7-8 take the moments of all views together; here each view of a sub-batch is whitened "
            "by itself, as in its Figure 3 and its code. It was made for images, whose views are crops and "
            "colours; here they are dropout masks. Its rate is 0.002 or 0.003; here 0.0001 stands at first. "
            "Scored is the encoder's own vector, as there.",
        ),
        Objective(
            "contrastive-whitened",
            "Contrastive, whitened",
            "The contrastive loss on whitened features: a negative result of the W-MSE paper.",
            r"-\log\frac{e^{z_i^\top z_j/\tau}}{\sum_{k\neq i} e^{z_i^\top z_k/\tau}},\quad z = W_V(v - \mu_V)",
            "Ermolov et al. 2021 (W-MSE), section 4.2 and Table 4",
            (
                Parameter("temperature", "τ", 0.5, 0.001, 1000.0, "Divides the similarities; the paper has 0.5."),
                _POSITIVES,
                Parameter("euclidean", "unnormalized", 0, 0, 1, "0: rows of length 1. 1: inner products as they are."),
                _EMBEDDING,
                _HIDDEN,
                replace(
                    _WHITENING,
                    choices=(*_WHITENING.choices, "none"),
                    hint=_WHITENING.hint + " none: the first row of Table 4, all else equal.",
                ),
                replace(_SIZE, when=_SLICED),
                replace(_EPS, when=_SLICED),
                replace(_STATISTICS, when=_SLICED),
            ),
            _contrastive_whitened,
            _projection,
            _sub_batch,
            multiple_of=_whole_sub_batches,
        ),
        Objective(
            "byol",
            "BYOL",
            "Predicts what a slow copy of the network says about the other view; no negatives and no whitening.",
            r"\sum_{i\neq j}\big(2 - 2\cos(q(z_i), \bar z_j)\big)",
            "Grill et al. 2020, Eq. 2; Ermolov et al. 2021, section 4",
            (
                _POSITIVES,
                _EMBEDDING,
                _HIDDEN,
                Parameter(
                    "decay", "decay", 0.99, 0, 1, "Part of its parameters the slow copy keeps in the first step."
                ),
            ),
            lambda z, generator, target, **parameters: losses.byol(z, target),
            _projection,
            predictor_of=lambda **parameters: _projection(parameters["embedding"], **parameters),
        ),
        Objective(
            "barlow",
            "Barlow Twins",
            "Holds the cross-correlation of two views at the identity: whitening's constraint as a penalty.",
            r"\sum_i (1 - C_{ii})^2 + \lambda \sum_i \sum_{j\neq i} C_{ij}^2",
            "Zbontar et al. 2021 (Barlow Twins), Eq. 1-2",
            (
                Parameter("weight", "λ", 0.005, 0, 10.0, "Weight of the correlations off the diagonal."),
                _POSITIVES,
                *_EXPANDED,
            ),
            lambda z, generator, target, weight, **parameters: losses.barlow(z, weight),
            partial(_projection, depth=2),
        ),
        Objective(
            "vicreg",
            "VICReg",
            "Pulls views together, keeps every dimension's deviation above γ and dimensions uncorrelated: whitening's "
            "constraint as two penalties.",
            r"\lambda\, s(Z, Z') + \mu\,[v(Z) + v(Z')] + \nu\,[c(Z) + c(Z')]",
            "Bardes et al. 2022 (VICReg), Eq. 1-6",
            (
                Parameter("invariance", "λ", 25.0, 0, 1000.0, "Weight of the distance between views."),
                Parameter("variance", "μ", 25.0, 0, 1000.0, "Weight of deviations that fall short of γ."),
                Parameter("covariance", "ν", 1.0, 0, 1000.0, "Weight of the covariances off the diagonal."),
                Parameter(
                    "gamma",
                    "γ",
                    1.0,
                    0.001,
                    100.0,
                    "Deviation that every dimension is to have.",
                    noun="deviation",
                ),
                _POSITIVES,
                *_EXPANDED,
            ),
            lambda z, generator, target, invariance, variance, covariance, gamma, **parameters: losses.vicreg(
                z, invariance, variance, covariance, gamma
            ),
            partial(_projection, depth=2),
        ),
        Objective(
            "mse",
            "MSE",
            "Pulls the views of a sentence together and nothing apart: it collapses, and is the control.",
            r"\frac{2}{Nd(d-1)}\sum \operatorname{dist}(v_i, v_j)",
            "Ermolov et al. 2021 (W-MSE), section 3.1",
            (_POSITIVES, _EUCLIDEAN, _EMBEDDING, _HIDDEN),
            lambda z, generator, target, euclidean, **parameters: losses.mse(z, bool(euclidean)),
            _projection,
        ),
    )
}


parse, canonical = family("objective", OBJECTIVES)  # a range that ends at d ends at the width of the encoder


def objective(spec: str) -> Objective:
    """The registry's entry of a spec."""
    return OBJECTIVES[parse(spec).name]


def label(spec: str) -> str:
    """A readable name with what differs from the defaults: `W-MSE (positives = 4)`."""
    return parse(spec).short_label(objective(spec).label)
