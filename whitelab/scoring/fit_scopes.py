"""What a map is fitted on, and which pairs it then scores.

A scope is `task` (every sentence of the task, as WhiteningBERT does), `splits` (all its splits, BERT-whitening's
"target"), `cross` (half of the pairs, scoring the other half, both ways), or the name of other text (the role
NLI has in BERT-whitening). The first and the last two differ in the rows, `cross` also in the folds.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from whitelab import whitening
from whitelab.base.checks import check_layers
from whitelab.datasets import DataError, discover, load, load_text
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows
from whitelab.statistics import geometry

SCOPES = {
    "task": "The task's sentences",
    "splits": "All splits of the task",
    "cross": "Cross-fitted halves",
}
OWN = ("task", "cross")  # scopes that need no other sentences than the task's


@dataclass(frozen=True, eq=False)
class Fold:
    """One map: `rows` it is fitted on, `pairs [q]` it scores, `sentences [m]` it transforms."""

    rows: LayerEmbeddings | LayerRows
    pairs: Int[Tensor, "q"]
    sentences: Int[Tensor, "m"]


def folds(space: LayerEmbeddings, fit: str = "task", corpus: LayerRows | None = None) -> tuple[Fold, ...]:
    """The maps a scope fits: one, or two for `cross`.

    Raises ValueError where the scope needs a corpus and there is none, where the corpus comes from another
    model, and where the pairs cannot be halved.
    """
    everything = torch.arange(space.n_pairs), torch.arange(space.n_sentences)
    if fit == "task":
        return (Fold(space, *everything),)
    if fit == "cross":
        return _cross(space)
    if corpus is None:
        raise ValueError(f"fit={fit!r} needs the embedded sentences of that text, got corpus=None")
    if (corpus.n_layers, corpus.dim) != (space.n_layers, space.dim):
        raise ValueError(
            f"corpus must have {space.n_layers} layers of d={space.dim} as the task, "
            f"got {corpus.n_layers} of {corpus.dim}"
        )
    return (Fold(corpus, *everything),)


def halves(space: LayerEmbeddings, seed: int = 0) -> Bool[Tensor, "p"]:
    """Which pairs are in the second half. No sentence is in both.

    Pairs that share a sentence stay together; these groups are dealt in random order to the half that has
    fewer pairs so far. Raises ValueError when all pairs hang together.
    """
    first, second, n = space.first.cpu().numpy(), space.second.cpu().numpy(), space.n_sentences
    graph = coo_array((np.ones(len(first)), (first, second)), shape=(n, n))
    group = connected_components(graph, directed=False)[1][first]
    names, sizes = np.unique(group, return_counts=True)
    if len(names) < 2:
        raise ValueError("fit='cross' needs pairs that fall into two halves without a common sentence")
    dealt, filled = {}, [0, 0]
    for i in np.random.default_rng(seed).permutation(len(names)):
        side = int(filled[1] < filled[0])
        dealt[names[i]] = side
        filled[side] += sizes[i]
    return torch.tensor([bool(dealt[name]) for name in group])


# The folds of a task are kept as long as it is, and with them the moments of each half.
_CROSSED: WeakKeyDictionary[LayerEmbeddings, tuple[Fold, ...]] = WeakKeyDictionary()


def _cross(space: LayerEmbeddings) -> tuple[Fold, ...]:
    found = _CROSSED.get(space)
    if found is None:
        found = _CROSSED[space] = _halved(space)
    return found


def _halved(space: LayerEmbeddings) -> tuple[Fold, ...]:
    late = halves(space)
    found = []
    for scored in (~late, late):
        pairs = scored.nonzero()[:, 0]
        sentences = torch.cat([space.first[pairs], space.second[pairs]]).unique()
        away = torch.cat([space.first[~scored], space.second[~scored]])
        counts = torch.bincount(away, minlength=space.n_sentences).to(torch.float64)
        found.append(Fold(LayerRows(space.values, counts), pairs, sentences))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Fitted:
    """The maps of a scope for one combination of layers, variant and k: one Whitener a fold."""

    folds: tuple[Fold, ...]
    whiteners: tuple[whitening.Whitener, ...]
    layers: tuple[int, ...]

    @property
    def rank(self) -> int:
        """Directions kept, the fewest of any fold."""
        return min(one.rank for one in self.whiteners)

    @property
    def count(self) -> int:
        """Sentence occurrences a map was fitted on, the fewest of any fold."""
        return min(round(one.count) for one in self.whiteners)

    def cosines(self, space: LayerEmbeddings) -> Float[Tensor, "p"]:
        """The cosine of every pair under the map that scores it."""
        x = space.combine(self.layers)
        found = torch.empty(space.n_pairs, dtype=torch.float64)
        for fold, whitener in zip(self.folds, self.whiteners, strict=True):
            z = whitener(x)
            a, b = z[space.first[fold.pairs]], z[space.second[fold.pairs]]
            found[fold.pairs] = geometry.pair_cosines(a, b).cpu()
        return found

    def transform(self, space: LayerEmbeddings) -> Float[Tensor, "n m"]:
        """Every sentence under the map that transforms it; a map of lower rank fills up with zeros."""
        x = space.combine(self.layers)
        if len(self.folds) == 1:
            return self.whiteners[0](x)
        found = torch.zeros(space.n_sentences, max(w.dense.shape[1] for w in self.whiteners), dtype=torch.float64)
        for fold, whitener in zip(self.folds, self.whiteners, strict=True):
            z = whitener(x[fold.sentences])
            found[fold.sentences, : z.shape[1]] = z
        return found


def fit_scope(
    space: LayerEmbeddings,
    layers: tuple[int, ...],
    spec: str = "none",
    k: int | None = None,
    fit: str = "task",
    corpus: LayerRows | None = None,
) -> Fitted:
    """Fit `spec` with `k` on the scope `fit`. Raises ValueError as `folds` and `whitening.fit` do."""
    layers = check_layers(layers, space.n_layers)
    whitening.check_k(k, spec, space.dim)
    found = folds(space, fit, corpus)
    return Fitted(found, tuple(whitening.fit(spec, fold.rows.moments(layers), k) for fold in found), layers)


def held_out_isotropy(
    space: LayerEmbeddings,
    layers: tuple[int, ...],
    spec: str,
    k: int | None = None,
    fit: str = "task",
    corpus: LayerRows | None = None,
) -> float:
    """IsoScore, 0 to 1, of sentences that the map was not fitted on (1: their covariance is round).

    On the sentences of the fit it is 1 for any whitening, by construction. For `task` and `splits` the scope's
    sentences are halved at random, each half measured under the map of the other; for `cross` the folds do
    that; for other text the task's sentences are measured. (PR - 1) / (rank - 1), Rudman et al. 2022, with PR
    the participation ratio of the kept directions; white data of n rows in r directions have about n / (n + r).
    NaN where fewer than two directions are kept.
    """
    if fit in ("task", "splits"):
        rows = folds(space, fit, corpus)[0].rows
        if rows.n_sentences < 2:
            return float("nan")
        first, second = rows.parted
        ways = [(first, second), (second, first)]
    elif fit == "cross":
        a, b = folds(space, fit)
        ways = [(a.rows, b.rows), (b.rows, a.rows)]
    else:
        ways = [(folds(space, fit, corpus)[0].rows, space)]
    found = [_isotropy(seen.moments(layers), unseen.moments(layers), spec, k) for seen, unseen in ways]
    return sum(found) / len(found)


def _isotropy(seen, unseen, spec: str, k: int | None) -> float:
    whitener = whitening.fit(spec, seen, k)
    if whitener.rank < 2:
        return float("nan")
    matrix = whitener.dense
    ratio = geometry.participation_ratio(matrix.T @ unseen.covariance @ matrix)
    return (ratio - 1) / (whitener.rank - 1)


# ----------------------------------------------------------------------------------------------- sentences


def scope_text(fit: str, data: str, task: str | None, keep_going: bool = False) -> Counter[str]:
    """The sentences a scope other than the task's own fits on, and how often each occurs.

    `splits`: both columns of every split. Otherwise `fit` names a text file (.txt, one sentence a line), a file
    of pairs, a folder of tasks (all of them, all splits) or `demo`. Raises DataError.
    """
    if fit == "splits":
        return _pairs_text(data, task, keep_going)
    if Path(fit).suffix.lower() == ".txt" and not _published(fit):
        return Counter(load_text(fit))
    found = Counter()
    for one in discover(fit):
        found += _pairs_text(fit, one.name, keep_going)
    return found


def _published(path: str) -> bool:
    """SICK comes as .txt; any other .txt is plain text, even where its commas look like columns."""
    try:
        return all(one.published for one in discover(path))
    except DataError:
        return False


def _pairs_text(data: str, task: str | None, keep_going: bool) -> Counter[str]:
    splits = next(one.splits for one in discover(data) if task in (None, one.name))
    found = Counter()
    for split in ("all",) if "all" in splits else splits:
        pairs = load(data, task, split, keep_going=keep_going)
        found += Counter((*pairs.first, *pairs.second))
    return found
