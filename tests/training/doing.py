"""Runs, batches and weights, made and compared in several files."""

import torch
from tiny import SENTENCES, untimed
from torch import nn

from whitelab.encoding.encoders import load_encoder
from whitelab.training import train
from whitelab.training.batches import Batches

# One of every kind there is: by batch, with running moments, sliced, with a slow copy, penalised, and the control.
SPECS = (
    "simcse",
    "whitenedcse:groups=16",
    "whitenedcse:groups=16,momentum=0.5",
    "w-mse:embedding=4,size=8,hidden=16",
    "byol:embedding=8,hidden=16",
    "vicreg:embedding=8,hidden=16",
    "mse:embedding=8,hidden=16",
)


# Sentences and dimensions of made-up views.
BATCH, DIM = 24, 12


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def views(v=2, b=BATCH, d=5, seed=0, noise=0.5):
    """Views of b correlated sentences off the origin, float64."""
    generator = seeded(seed)
    sentences = torch.randn(b, d, generator=generator, dtype=torch.float64)
    mix = torch.randn(d, d, generator=generator, dtype=torch.float64)
    return (sentences + noise * torch.randn(v, b, d, generator=generator, dtype=torch.float64)) @ mix + 1


def weights(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def whole(config, pairs=None, folder=None, resume=False):
    """Every record and the weights at the end."""
    records, encoder = ended(train(config, SENTENCES, pairs, folder, resume))
    return untimed(records), weights(encoder.model)


def ended(run):
    """Every record of a run, and the encoder that it returns."""
    records = []
    while True:
        try:
            records.append(next(run))
        except StopIteration as end:
            return records, end.value


def batches(place, size=10, seed=0, max_length=32, sentences=SENTENCES):
    return Batches(load_encoder(str(place / "model"), device="cpu"), sentences, size, seed, max_length)


class Identity(nn.Module):
    def forward(self, h, generator=None):
        return h
