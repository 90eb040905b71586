"""What an encoder is trained for: losses of several views of a sentence, with whitening in the graph.

`losses` holds the losses, `heads` the networks between encoder and loss, `registry` the table the trainer and
the pages read.
"""

from whitelab.objectives.losses import contrastive, mse
from whitelab.objectives.registry import OBJECTIVES, Objective, canonical, label, objective, parse
from whitelab.specs import Parameter, Spec

__all__ = [
    "OBJECTIVES",
    "Objective",
    "Parameter",
    "Spec",
    "canonical",
    "contrastive",
    "label",
    "mse",
    "objective",
    "parse",
]
