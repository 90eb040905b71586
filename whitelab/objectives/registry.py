"""The table of training objectives that the trainer, pages, the command line and the tests read.

An objective with its parameters is one string, a spec: `simcse`, `w-mse:positives=4,size=256`. `parse` checks it
at the door and `canonical` writes out every parameter that counts.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from whitelab import specs
from whitelab.objectives import heads, losses
from whitelab.specs import Parameter, Spec


@dataclass(frozen=True)
class Objective:
    """One entry of `OBJECTIVES`: what is trained on top of the encoder, by which loss, and what to tell a user.

    A step of training: `positives(spec)` views h [v, b, d] of b sentences (v dropout masks), `head(h, generator)`,
    the predictor on top where there is one, then `loss`. Every method takes the spec as text or parsed.
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

    def positives(self, spec: str | Spec) -> int:
        """v: how many views of each sentence the trainer runs."""
        return self._values(spec).get("positives", 2)

    def head(self, spec: str | Spec, dim: int) -> nn.Module:
        """The network between encoder and loss, `head(h [v, b, dim], generator) -> z [v, b, m]`; training only.

        Raises ValueError where a parameter does not fit `dim`.
        """
        return self.head_of(dim, **self._values(spec, dim))

    def predictor(self, spec: str | Spec, dim: int) -> nn.Module | None:
        """The network the online side has on top of its head, `predictor(z [v, b, m], generator) -> [v, b, m]`."""
        return self.predictor_of(**self._values(spec, dim)) if self.predictor_of else None

    def needs_target(self) -> bool:
        """Whether the trainer keeps a slow copy of encoder and head, whose output is the `target` of `loss`."""
        return self.predictor_of is not None

    def target_decay(self, spec: str | Spec, progress: float) -> float:
        """The part of its old parameters the slow copy keeps in a step, `progress` of the way (0 to 1).

        1 - (1 - decay) (cos(pi progress) + 1) / 2: from `decay` up to 1 (BYOL, Grill et al. 2020, section 3.2).
        """
        decay = self._values(spec).get("decay", 1.0)
        return 1 - (1 - decay) * (math.cos(math.pi * progress) + 1) / 2

    def batch(self, spec: str | Spec, dim: int) -> int:
        """The smallest batch of sentences the loss is defined for."""
        return self.batch_of(dim, **self._values(spec, dim))

    def loss(
        self,
        spec: str | Spec,
        z: Float[Tensor, "v b m"],
        generator: torch.Generator,
        target: Float[Tensor, "v b m"] | None = None,
        step: int = 0,
    ) -> Float[Tensor, ""]:
        """The loss of a batch, `z` from the head (and the predictor where there is one), differentiable in `z`.

        `generator` (on the CPU) draws what is random in it. Raises ValueError for a wrong number of views.
        """
        values = self._values(spec)
        views = self.positives(spec)
        if z.shape[0] != views:
            raise ValueError(f"z must have the {views} views of {self.name}, got {z.shape[0]}")
        if (target is not None) != self.needs_target():
            wants = "needs a target" if self.needs_target() else "takes no target"
            raise ValueError(f"target={'None' if target is None else 'given'}: {self.name} {wants}")
        return self.loss_of(z, generator=generator, target=target, **values)

    def _values(self, spec: str | Spec, dim: int | None = None) -> dict:
        found = parse(str(spec), dim)
        if found.name != self.name:
            raise ValueError(f"objective={str(spec)!r} is not {self.name}")
        return dict(found.values)


# ---------------------------------------------------------------------------------------- losses and heads


def _contrastive(z, generator, target, *, temperature):
    return losses.contrastive(z, temperature)


def _mse(z, generator, target, *, positives, euclidean, embedding, hidden):
    return losses.mse(z, bool(euclidean))


def _tanh(dim, **parameters):
    return heads.TanhHead(dim)


def _projection(dim, *, hidden, embedding, **parameters):
    return heads.Projection(dim, hidden, embedding)


# ----------------------------------------------------------------------------------------------- the table

_TEMPERATURE = Parameter("temperature", "τ", losses.TEMPERATURE, 0.001, 10.0, "Divides the similarities.")
_POSITIVES = Parameter("positives", "positives", 2, 2, 16, "Views of a sentence; all pairs of them are drawn together.")
_EUCLIDEAN = Parameter("euclidean", "Euclidean", 0, 0, 1, "0: cosine; 1: squared Euclidean distance.")
_EMBEDDING = Parameter("embedding", "embedding", 64, 1, 4096, "Dimensions of the projection the loss sees.")
_HIDDEN = Parameter("hidden", "hidden", 1024, 1, 16384, "Width of the projection's hidden layer.")

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
            _contrastive,
            _tanh,
        ),
        Objective(
            "mse",
            "MSE",
            "Pulls the views of a sentence together and nothing apart: it collapses, and is the control.",
            r"\frac{2}{Nd(d-1)}\sum \operatorname{dist}(v_i, v_j)",
            "Ermolov et al. 2021 (W-MSE), section 3.1",
            (_POSITIVES, _EUCLIDEAN, _EMBEDDING, _HIDDEN),
            _mse,
            _projection,
        ),
    )
}


def parse(spec: str, dim: int | None = None) -> Spec:
    """`NAME[:param=value,...]` -> Spec; parameters not given have their defaults.

    Raises ValueError for an unknown name or parameter and for a value out of range (where the range ends at the
    width d of the encoder, only when `dim` is given).
    """
    return Spec(*specs.read(spec, "objective", OBJECTIVES, dim))


def canonical(spec: str) -> str:
    """The text of `spec` with every parameter that counts, in the registry's order."""
    return str(parse(spec))


def objective(spec: str) -> Objective:
    """The registry's entry of a spec."""
    return OBJECTIVES[parse(spec).name]


def label(spec: str) -> str:
    """A readable name: `SimCSE (τ = 0.05)`."""
    return parse(spec).label(objective(spec).label)
