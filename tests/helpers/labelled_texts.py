"""Made-up texts with labels, and vectors of them, for the tests of probes."""

from dataclasses import replace

import numpy as np
import torch

from whitelab.datasets import LabelledTexts
from whitelab.encoding.embeddings import LayerRows
from whitelab.scoring.setting import Setting

RAW, WHITE = Setting.parse("L1"), Setting.parse("L1:pca")


def make_texts(n=90, classes=3, split=(), seed=0, layout="table", pairs=False) -> LabelledTexts:
    """Rows named by their number, in random order; a pair is a text and the one after it."""
    y = np.random.default_rng(seed).permutation(np.arange(n) % classes)
    first = tuple(f"text {'x ' * (i % 4)}{i}" for i in range(n))
    return LabelledTexts(
        task="made",
        first=first,
        second=first[1:] + first[:1] if pairs else None,
        y=y,
        classes=tuple("abcdef"[:classes]),
        split=tuple(split) or ("",) * n,
        positive=1 if pairs else None,
        layout=layout,
    )


def make_rows(data: LabelledTexts, d=8, signal=1.5, seed=1) -> LayerRows:
    """Three layers whose first coordinates tell the class of the text, more of them in each layer."""
    rng = np.random.default_rng(seed)
    s = len(data.sentences)
    y = np.zeros(s, dtype=int)
    y[data.first_index] = data.y
    values = []
    for layer in range(3):
        x = rng.standard_normal((s, d)) * np.logspace(0, -1, d) + 2
        x[np.arange(s), y] += layer * signal
        values.append(x)
    return LayerRows(torch.tensor(np.stack(values), dtype=torch.float32), torch.ones(s, dtype=torch.float64))


def halved(n=90) -> list[str]:
    return ["train" if i % 3 else "test" for i in range(n)]


def with_y(data: LabelledTexts, y) -> LabelledTexts:
    return replace(data, y=np.asarray(y))


def matched(n=60, split=()):
    """Pairs whose cosines say something of their label."""
    data = make_texts(n, 2, split, pairs=True)
    space = make_rows(data, d=6, signal=0.0)
    values = space.values.clone()
    second, first = data.second_index[data.y == 1], data.first_index[data.y == 1]
    values[:, second] = 0.6 * values[:, first] + 0.4 * values[:, second]
    return data, LayerRows(values, space.counts)
