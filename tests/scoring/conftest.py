"""Pairs and other text on which every fit scope can be tried."""

import pytest
import torch

from tests.conftest import make_space
from whitelab.encoding.embeddings import LayerRows


@pytest.fixture
def corpus():
    """Other sentences from the same model: another mean, another covariance, some counted twice."""
    other = make_space(n=100, sizes=(60,), seed=9)
    return LayerRows(other.values, 1 + (torch.arange(100) % 2).double())


@pytest.fixture
def sparse(corpus):
    """Pairs that fall into many groups: 90 pairs over 160 sentences, carrying the other text."""
    return make_space(n=160, sizes=(50, 40), seed=5).with_text("other text", corpus).with_text("splits", corpus)
