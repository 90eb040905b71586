"""Lengths of vectors, and whether they follow the length or the words of the sentences."""

import math
import re
import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache
from unicodedata import category

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.base.checks import check_shape
from whitelab.statistics.correlation import spearman
from whitelab.statistics.linalg import exact

_WORD = re.compile(r"\w+")
_ROUNDING = 1e-6  # of the mean length: float32 leaves 1e-7 of it to chance


def norms(x: Float[Tensor | np.ndarray, "n d"]) -> Float[Tensor, "n"]:
    """The Euclidean length of every row, float64."""
    return torch.linalg.vector_norm(exact(check_shape(x, "x", "n d")), dim=1)


@cache
def _with_marks() -> re.Pattern:
    marks = "".join(chr(code) for code in range(0x300, sys.maxunicode + 1) if category(chr(code)).startswith("M"))
    return re.compile(rf"[\w{marks}]+")


def _words(text: str) -> list[str]:
    """Runs of letters, digits and underscores, and of the marks that combine with them, which are not in `\\w`."""
    return (_WORD if text.isascii() else _with_marks()).findall(text)


def word_counts(sentences: Sequence[str]) -> Float[Tensor, "n"]:
    """Words of every sentence: runs of letters with their marks, digits and underscores."""
    return torch.tensor([len(_words(text)) for text in sentences], dtype=torch.float64)


def word_frequencies(sentences: Sequence[str]) -> Float[Tensor, "n"]:
    """The mean over a sentence's words of ln of how often the word occurs in all of the `sentences`, lower-cased.

    The sentences are their own corpus, so no list of frequencies decides. 0 for a sentence without words.
    """
    words = [_words(text.lower()) for text in sentences]
    counts = Counter(word for one in words for word in one)
    means = [sum(math.log(counts[word]) for word in one) / max(len(one), 1) for one in words]
    return torch.tensor(means, dtype=torch.float64)


def norm_correlation(x: Float[Tensor | np.ndarray, "n d"], values: Float[Tensor | np.ndarray, "n"]) -> float:
    """Spearman's rho of the rows' lengths with `values`; NaN where one of the two is constant.

    Lengths that spread by less than 1e-6 of their mean are constant, as those of float32 rows brought to length 1.
    """
    lengths = norms(x).cpu()
    mean = float(lengths.mean())
    if float(lengths.std(correction=0)) <= _ROUNDING * mean:
        return math.nan
    return float(spearman(lengths / mean, values))
