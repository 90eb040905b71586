"""The check of shapes is on: what a signature states, a call that breaks it cannot pass."""

import pytest
import torch
from checked_shapes import MODULES
from jaxtyping import TypeCheckError

from whitelab.statistics.linalg import gram


def test_an_array_of_another_shape_than_the_signature_states_is_refused():
    gram(torch.ones(3, 2))
    with pytest.raises(TypeCheckError, match="gram"):
        gram(torch.ones(3))


def test_every_station_that_computes_is_checked():
    assert {"statistics", "whitening", "scoring", "sweeps", "retrieval", "training", "encoding"} <= {
        name.split(".")[1] for name in MODULES
    }
