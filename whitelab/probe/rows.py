"""Which rows are learnt from, chosen with and scored, the map they allow, and what a classifier sees of them."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from whitelab import whitening
from whitelab.base.checks import check_int
from whitelab.datasets import LabelledTexts
from whitelab.probe.classifiers import stratified
from whitelab.probe.options import How
from whitelab.scoring.setting import Setting
from whitelab.statistics import linalg
from whitelab.statistics.moments import Moments
from whitelab.whitening import Map


@dataclass(frozen=True, eq=False)
class Turn:
    """Rows to learn from, rows to choose with (perhaps none), rows to score."""

    train: Int[np.ndarray, "n"]
    dev: Int[np.ndarray, "v"]
    test: Int[np.ndarray, "m"]


def turns(data: LabelledTexts, folds: int = 10, seed: int = 1111) -> tuple[Turn, ...]:
    """One turn where the data has a test split (a dev split stands in), else stratified folds, shuffled.

    Rows of equal texts stay in one fold. Tasks in SentEval's layout are sorted by length and label first, and equal
    texts not kept together, so that the folds are SentEval's own. Fewer folds where the smallest class has fewer
    different rows. Raises ValueError where nothing can be learnt, and for a `seed` that
    is not within 0..2^32 - 1.
    """
    check_int(seed, "seed", 0, 2**32 - 1)
    order, scored = _order(data), data.scored_split
    split = np.array(data.split)[order]
    if scored:
        train, test = order[split == "train"], order[split == scored]
        if len(train) == 0:
            raise ValueError(f"{data.task}: rows of the split {scored} need rows of the split train")
        return (Turn(train, order[split == "dev"] if scored == "test" else order[:0], test),)
    return tuple(Turn(order[a], order[:0], order[b]) for a, b in stratified_rows(data, order, folds, seed))


def stratified_rows(
    data: LabelledTexts, rows: Int[np.ndarray, "n"], folds: int, seed: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """`classifiers.stratified` of all rows or those that are learnt from, as places in `rows`."""
    learnt = " of the training split" if data.scored_split else " in the training part of each fold"
    where = learnt if len(rows) < data.n_rows else ""
    return stratified(np.array(data.classes)[data.y[rows]], folds, seed, same_texts(data)[rows], where)


def same_texts(data: LabelledTexts) -> Int[np.ndarray, "n"]:
    """A number for each row that rows of the same text, or texts either way round, share; in SentEval's layout none."""
    if data.layout == "senteval":
        return np.arange(data.n_rows)
    texts = np.sort(np.stack([data.first_index, data.second_index]), axis=0)
    return np.unique(texts, axis=1, return_inverse=True)[1].reshape(-1)


def _order(data: LabelledTexts) -> np.ndarray:
    rows = np.arange(data.n_rows)
    if data.layout != "senteval":
        return rows
    length = [[len(text.split()) for text in texts] for texts in (data.first, data.second or data.first)]
    for row in data.blank:  # SentEval sorts before it puts in a full stop
        length[0][row] = length[1][row] = 0
    return np.array(sorted(rows, key=lambda i: (length[0][i], length[1][i], data.y[i])))


def occurrences(data: LabelledTexts, rows: Int[np.ndarray, "n"]) -> Int[Tensor, "m"]:
    """The place in `data.sentences` of every text of these rows, repetitions kept."""
    index = (data.first_index, data.second_index) if data.pairs else (data.first_index,)
    return torch.from_numpy(np.concatenate([part[rows] for part in index]))


def fit_map(
    x: Float[Tensor, "s d"],
    data: LabelledTexts,
    rows: Int[np.ndarray, "n"],
    setting: Setting,
    how: How,
    corpus: Moments | Map | None = None,
) -> Map:
    """The map of a setting, from the texts of `rows` (`fit` train), of all rows, or from the `corpus` (or fitted)."""
    if isinstance(corpus, Map):
        return corpus
    if corpus is not None:
        return whitening.fit(setting.whitening, corpus, setting.k)
    seen = _fitted_on(data, rows, how)
    if not setting.fits:  # reads no more of its moments than of which size they are
        zero = torch.zeros(x.shape[1], dtype=torch.float64, device=x.device)
        return whitening.fit(setting.whitening, Moments(float(len(seen)), zero, torch.diag(zero)), setting.k)
    if whitening.of_rows(setting.whitening):
        return whitening.fit_to_rows(setting.whitening, x, torch.bincount(seen, minlength=len(x)).to(x), setting.k)
    return whitening.fit(setting.whitening, Moments.of(x[seen]), setting.k)


def is_starved(
    x: Float[Tensor, "s d"],
    data: LabelledTexts,
    rows: Int[np.ndarray, "n"],
    fitted: Map,
    how: How,
    corpus: Moments | Map | None = None,
) -> bool:
    """Whether what `fit_map` gave sets all texts it was fitted on equally far apart (`whitening.starved`)."""
    if not whitening.whitens(fitted.name):
        return False
    if corpus is not None:
        return whitening.starved(fitted.name, round(corpus.count), fitted.rank)
    different = linalg.distinct_rows(x, x.shape[1] + 2, _fitted_on(data, rows, how).unique())
    return whitening.starved(fitted.name, different, fitted.rank)


def _fitted_on(data: LabelledTexts, rows: Int[np.ndarray, "n"], how: How) -> Int[Tensor, "m"]:
    return occurrences(data, np.arange(data.n_rows) if how.fit == "all" else rows)


def features(z: Float[Tensor, "s d"], data: LabelledTexts) -> Float[np.ndarray, "n f"]:
    """What a classifier sees of each row: the vector, or |u - v| and u v of a pair (SentEval)."""
    z = z.cpu().numpy()
    u = z[data.first_index]
    if not data.pairs:
        return u
    v = z[data.second_index]
    return np.concatenate([np.abs(u - v), u * v], axis=1)
