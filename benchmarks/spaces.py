"""What the benchmarks run on: the sentences of a data folder, and made-up embeddings of any size."""

from collections.abc import Iterator

import torch
from torch import Tensor

import whitelab
from whitelab import LayerEmbeddings, SentencePairs
from whitelab.datasets import discover


def tasks(data: str) -> list[SentencePairs]:
    """Every task of `data` with its test split."""
    return [whitelab.load(data, info.name) for info in discover(data)]


def asked(pairs: list[SentencePairs]) -> list[str]:
    """The list a user would hand over: both columns of every task, with the repetitions they have."""
    return [text for one in pairs for text in (*one.first, *one.second)]


def made_up(
    layers: int, dim: int, pairs: int, sentences: int | None = None, seed: int = 0, device: str = "cpu"
) -> LayerEmbeddings:
    """Embeddings with the shapes of a task: related layers off the origin, each in a hyperplane as LayerNorm's.

    No speed measured here depends on the values beyond that: a single layer has rank d - 1, which takes an
    eigendecomposition where averages of layers take a Cholesky factor.
    """
    n, draw = sentences or 2 * pairs, torch.Generator(device).manual_seed(seed)
    on = {"generator": draw, "device": device}
    x, values = torch.randn(n, dim, **on), torch.empty(layers, n, dim, device=device)
    for layer in values:
        x = 0.8 * x + 0.6 * torch.randn(n, dim, **on)
        gain, bias = torch.rand(dim, **on) + 0.4, torch.randn(dim, **on)
        torch.addcmul(bias, x - x.mean(dim=1, keepdim=True), gain, out=layer)
    first = torch.arange(pairs, device=device)
    gold = torch.rand(pairs, dtype=torch.float64, **on).mul(25).round() / 5
    return LayerEmbeddings(values, first, (n - 1 - first), gold, torch.zeros_like(first), ("",))


def afresh(space: LayerEmbeddings) -> LayerEmbeddings:
    """The same embeddings with nothing computed from them kept."""
    return LayerEmbeddings(space.values, space.first, space.second, space.gold, space.subset, space.subset_names)


def row_batches(rows: int, dim: int, size: int = 8192, seed: int = 0) -> Iterator[Tensor]:
    """`rows` float32 rows in batches, made as they are asked for."""
    draw = torch.Generator().manual_seed(seed)
    spread = torch.rand(dim, generator=draw) + 0.1
    for start in range(0, rows, size):
        yield torch.randn(min(size, rows - start), dim, generator=draw).mul_(spread)
