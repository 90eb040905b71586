"""What a map is fitted on, and which pairs it then scores.

A scope (`setting.FIT_SCOPES`) is `task`, `splits`, `cross`, or the name of other text. All but `cross` differ in the
rows that a map is fitted on, `cross` also in the folds: there each half of the pairs is scored by the other's map.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from whitelab import whitening
from whitelab.datasets import DataError, discover, load, load_text
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows
from whitelab.scoring.setting import OWN_SENTENCES, Setting
from whitelab.statistics import geometry
from whitelab.statistics.moments import Moments

Embedding = Callable[[tuple[str, ...]], Tensor]  # sentences -> their embeddings in every layer, [l, n, d]


# A table of all sentences along every direction is kept up to this size, so that moving k is reading it.
_TURNED_BYTES = 2**26


@dataclass(frozen=True, eq=False)
class Fold:
    """One map: `rows` it is fitted on, `pairs [q]` it scores, `sentences [m]` it transforms."""

    rows: LayerEmbeddings | LayerRows
    pairs: Int[Tensor, "q"]
    sentences: Int[Tensor, "m"]


def folds(space: LayerEmbeddings, fit: str = "task") -> tuple[Fold, ...]:
    """The maps a scope fits: one, or two for `cross`.

    Raises ValueError where the scope needs text that the space does not carry, and where the pairs cannot be halved.
    """
    if fit == "cross":
        return space.kept("cross", lambda: _halved(space))
    if fit != "task" and fit not in space.texts:
        raise ValueError(
            f"fit={fit!r} needs the embedded sentences of that text; the space carries "
            f"{', '.join(space.texts) or 'none'} (LayerEmbeddings.with_text)"
        )
    rows = space if fit == "task" else space.texts[fit]
    return (Fold(rows, torch.arange(space.n_pairs), torch.arange(space.n_sentences)),)


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


def _halved(space: LayerEmbeddings) -> tuple[Fold, ...]:
    late, both = halves(space), []
    for scored in (~late, late):
        pairs = scored.nonzero()[:, 0]
        sentences = torch.cat([space.first[pairs], space.second[pairs]]).unique()
        away = torch.cat([space.first[~scored], space.second[~scored]])
        counts = torch.bincount(away, minlength=space.n_sentences).to(torch.float64)
        both.append(Fold(LayerRows(space.values, counts), pairs, sentences))
    return tuple(both)


@dataclass(frozen=True, eq=False)
class Fitted:
    """The maps of a setting, one a fold. Each fold's moments are decomposed once, whatever the variant and k.

    Where a variant weighs eigen-directions its k first columns (the PCA form) give the cosines, because its other
    forms differ from them by a rotation; the map itself is made when `whiteners` is asked for.
    """

    space: LayerEmbeddings
    setting: Setting
    folds: tuple[Fold, ...]

    @cached_property
    def moments(self) -> tuple[Moments, ...]:
        """What each map is fitted to."""
        return tuple(fold.rows.moments(self.setting.layers) for fold in self.folds)

    @cached_property
    def whiteners(self) -> tuple[whitening.Whitener, ...]:
        """The maps."""
        return tuple(whitening.fit(self.setting.whitening, part, self.setting.k) for part in self.moments)

    @cached_property
    def bases(self) -> tuple[whitening.Directions, ...] | None:
        """The weighted directions of each map; None for a variant that weighs no eigen-directions."""
        bases = tuple(_basis(self.setting, part) for part in self.moments)
        return bases if bases[0] is not None else None

    @property
    def rank(self) -> int:
        """Directions kept, the fewest of any fold."""
        if self.bases is not None:
            return min(min(basis.rank, self.setting.k or basis.rank) for basis in self.bases)
        return min(whitener.rank for whitener in self.whiteners)

    @property
    def count(self) -> int:
        """Sentence occurrences a map was fitted on, the fewest of any fold."""
        return min(round(part.count) for part in self.moments)

    def cosines(self) -> Float[Tensor, "p"]:
        """The cosine of every pair under the map that scores it."""
        space = self.space
        cosines = torch.empty(space.n_pairs, dtype=torch.float64)
        for number, fold in enumerate(self.folds):
            first, second = space.first[fold.pairs], space.second[fold.pairs]
            cosines[fold.pairs] = geometry.row_cosines(self._turned(number), first, second).cpu()
        return cosines

    def turned(self) -> Float[Tensor, "n m"]:
        """`transform` up to a rotation, which no cosine or length sees: cheaper, where there is one map."""
        return self._turned(0) if len(self.folds) == 1 else self.transform()

    def transform(self) -> Float[Tensor, "n m"]:
        """Every sentence under the map that transforms it; a map of lower rank fills up with zeros."""
        x = self.space.combine(self.setting.layers)
        parts = [whitener(x) for whitener in self.whiteners]
        if len(parts) == 1:
            return parts[0]
        z = torch.zeros(self.space.n_sentences, max(part.shape[1] for part in parts), dtype=torch.float64)
        for fold, part in zip(self.folds, parts, strict=True):
            z[fold.sentences, : part.shape[1]] = part[fold.sentences]
        return z

    def _turned(self, number: int) -> Float[Tensor, "n m"]:
        """All rows under the map of one fold, up to a rotation; with every direction at hand another k is a slice."""
        space, layers, k = self.space, self.setting.layers, self.setting.k
        if self.bases is None:
            return self.whiteners[number](space.combine(layers))
        basis, moments = self.bases[number], self.moments[number]

        def rows(columns: int | None) -> Float[Tensor, "n m"]:
            return (space.combine(layers) - moments.mean) @ basis.columns(columns)

        if 8 * space.n_sentences * basis.rank > _TURNED_BYTES:
            return rows(k)
        key = ("turned", layers, self.setting.whitening, number)
        return space.kept_lately(key, moments, lambda: rows(None))[:, :k]

    def variances(self) -> Float[Tensor, "m"] | None:
        """Of the sentences it was fitted on, along the kept directions, descending; None where these are not known.

        They are known from the one decomposition where a variant weighs eigenvectors of the task's own covariance.
        """
        if len(self.folds) > 1 or self.folds[0].rows is not self.space:
            return None
        if self.bases is None:
            return self.moments[0].eigen_all.values if self.setting.whitening in ("none", "center") else None
        (basis,) = self.bases
        if basis.variances is None:
            return None
        values = basis.variances * basis.matrix.square().sum(0)
        return values[: self.setting.k].sort(descending=True).values


def _basis(setting: Setting, moments: Moments) -> whitening.Directions | None:
    """The weighted directions of a setting's map; None where there are none, or centring keeps every direction."""
    spec = setting.whitening
    if not whitening.variant(spec).takes_k or (spec == "center" and setting.k is None):
        return None
    return whitening.directions(spec, moments)


def fit_scope(space: LayerEmbeddings, setting: Setting) -> Fitted:
    """The maps of `setting` on `space`. Raises ValueError as `Setting.on` and `folds` do."""
    setting = setting.on(space)
    return Fitted(space, setting, folds(space, setting.fit))


def held_out_isotropy(space: LayerEmbeddings, setting: Setting) -> float:
    """IsoScore, 0 to 1, of sentences that the map was not fitted on (1: their covariance is round).

    On the sentences of the fit it is 1 for any whitening, by construction. For `task` and `splits` the scope's
    sentences are halved at random, each half measured under the map of the other; for `cross` the folds do
    that; for other text the task's sentences are measured. (PR - 1) / (rank - 1), Rudman et al. 2022, with PR
    the participation ratio of the kept directions; white data of n rows in r directions have about n / (n + r).
    NaN where fewer than two directions are kept. Raises ValueError as `fit_scope`.
    """
    setting = setting.on(space)
    scope = folds(space, setting.fit)
    if setting.fit in ("task", "splits"):
        if scope[0].rows.n_sentences < 2:
            return float("nan")
        first, second = scope[0].rows.parted
        ways = [(first, second), (second, first)]
    elif setting.fit == "cross":
        ways = [(scope[0].rows, scope[1].rows), (scope[1].rows, scope[0].rows)]
    else:
        ways = [(scope[0].rows, space)]
    scores = [isotropy_between(seen, unseen, setting) for seen, unseen in ways]
    return sum(scores) / len(scores)


def isotropy_between(seen: LayerEmbeddings | LayerRows, unseen: LayerEmbeddings | LayerRows, setting: Setting) -> float:
    """IsoScore of `unseen` rows under the map that a setting fits on `seen` ones, as `held_out_isotropy`."""
    seen, unseen = (rows.moments(setting.layers) for rows in (seen, unseen))
    basis = _basis(setting, seen)
    if basis is not None:
        matrix = basis.columns(setting.k)  # a rotation afterwards changes no participation ratio
        rank = matrix.shape[1]
    else:
        whitener = whitening.fit(setting.whitening, seen, setting.k)
        matrix, rank = whitener.dense, whitener.rank
    if rank < 2:
        return float("nan")
    ratio = geometry.participation_ratio(matrix.T @ unseen.covariance @ matrix)
    return (ratio - 1) / (rank - 1)


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
    counts = Counter()
    for info in discover(fit):
        counts += _pairs_text(fit, info.name, keep_going)
    return counts


def fit_rows(
    fit: str, embed: Embedding, data: str = "", task: str | None = None, keep_going: bool = False
) -> LayerRows:
    """The text of a scope (`scope_text`), embedded, each sentence as often as it occurs. Raises DataError."""
    counts = scope_text(fit, data, task, keep_going)
    return LayerRows(embed(tuple(counts)), torch.tensor(list(counts.values()), dtype=torch.float64))


def with_fit_text(
    space: LayerEmbeddings,
    setting: Setting,
    embed: Embedding,
    data: str = "",
    task: str | None = None,
    keep_going: bool = False,
) -> LayerEmbeddings:
    """`space`, carrying the embedded text of the setting's fit where that is not the task's own sentences."""
    if setting.fit in OWN_SENTENCES:
        return space
    return space.with_text(setting.fit, fit_rows(setting.fit, embed, data, task, keep_going))


def _published(path: str) -> bool:
    """SICK comes as .txt; any other .txt is plain text, even where its commas look like columns."""
    try:
        return all(info.published for info in discover(path))
    except DataError:
        return False


def _pairs_text(data: str, task: str | None, keep_going: bool) -> Counter[str]:
    splits = next(info.splits for info in discover(data) if task in (None, info.name))
    counts = Counter()
    for split in ("all",) if "all" in splits else splits:
        pairs = load(data, task, split, keep_going=keep_going)
        counts += Counter((*pairs.first, *pairs.second))
    return counts
