"""What an encoder is trained for: losses of several views of a sentence, with whitening in the graph.

`batch_whitening` holds the whitening and its gradient, `losses` the losses as pure functions, `heads` the networks
between encoder and loss, `registry` the table that the trainer, the pages and the tests read.
"""

from whitelab.base.parameters import Parameter, Spec
from whitelab.training.objectives.batch_whitening import RunningMoments, SingularBatch, whiten, whiten_slices
from whitelab.training.objectives.heads import Projection, TanhHead, WhitenedHead
from whitelab.training.objectives.losses import (
    barlow,
    byol,
    contrastive,
    contrastive_whitened,
    mse,
    multi_positive_l1,
    multi_positive_l2,
    nt_xent,
    sliced,
    vicreg,
    w_mse,
)
from whitelab.training.objectives.registry import OBJECTIVES, Objective, canonical, label, objective, parse

__all__ = [
    "OBJECTIVES",
    "Objective",
    "Parameter",
    "Projection",
    "RunningMoments",
    "SingularBatch",
    "Spec",
    "TanhHead",
    "WhitenedHead",
    "barlow",
    "byol",
    "canonical",
    "contrastive",
    "contrastive_whitened",
    "label",
    "mse",
    "multi_positive_l1",
    "multi_positive_l2",
    "nt_xent",
    "objective",
    "parse",
    "sliced",
    "vicreg",
    "w_mse",
    "whiten",
    "whiten_slices",
]
