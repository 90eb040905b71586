"""What a map is fitted on, and which pairs it then scores.

A scope (`setting.FIT_SCOPES`) is `task`, `splits`, `cross`, `tokens`, or the name of other text. All but
`cross` differ in the rows that a map is fitted on, `cross` also in the folds: there each half of the pairs is scored by
the other's map. `tokens` are the word vectors whose means the sentences are, so one map serves both.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from whitelab import whitening
from whitelab.base.checks import check_int, check_matrix
from whitelab.base.lazy import cached_property
from whitelab.base.progress import Progress, part_of, silent
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows, MeasuredRows, NotMeasuredError, check_space
from whitelab.scoring.setting import EVERY, TOKENS, Protocol, Setting, check_is_setting, check_settings, scope_name
from whitelab.statistics import geometry
from whitelab.statistics.moments import Moments

# A table of all sentences along every direction is kept up to this size, so that moving k is reading it.
_TURNED_BYTES = 2**26
# Sentences a direction, below which halves are thin. Those of 400 of STS-B's training pairs (1.02 a direction) scored
# PCA whitening 5 to 12 points below raw in layers 0 to 4 of the bundled model; the map of all 400 gained 4 to 8 on
# other pairs. From halves of 1.52 on the two agreed (docs/findings.md).
_THIN = 1.5
HALVED = ("task", "splits", EVERY)  # scopes that leave no sentence of the task out, measured by halves of themselves
_MAPS_KEPT = 256  # maps of rows, each some 3 MB at 768 dimensions: more than the pairs of 13 layers under two folds


@dataclass(frozen=True, eq=False)
class Fold:
    """One map: `rows` it is fitted on, `pairs [q]` it scores, `sentences [m]` it transforms."""

    rows: LayerEmbeddings | LayerRows | MeasuredRows
    pairs: Int[Tensor, "q"]
    sentences: Int[Tensor, "m"]

    @property
    def has_rows(self) -> bool:
        """Whether the rows themselves are at hand, or their moments alone."""
        return not isinstance(self.rows, MeasuredRows)


def folds(space: LayerEmbeddings, fit: str = "task") -> tuple[Fold, ...]:
    """The maps a scope fits: one, or two for `cross`.

    Raises ValueError where the scope needs text that the space does not carry, and where the pairs cannot be halved.
    """
    check_space(space)
    if fit == "cross":
        return space.kept("cross", lambda: _halved(space))
    if fit == TOKENS:
        return (Fold(_words(space), torch.arange(space.n_pairs), torch.arange(space.n_sentences)),)
    if fit != "task" and fit not in space.texts:
        raise ValueError(
            f"fit={fit!r} needs the embedded sentences of that text; the space carries "
            f"{', '.join(space.texts) or 'none'} (LayerEmbeddings.with_text)"
        )
    rows = space if fit == "task" else space.texts[fit]
    here = space.first.device
    return (Fold(rows, torch.arange(space.n_pairs, device=here), torch.arange(space.n_sentences, device=here)),)


def fitted_vectors(space: LayerEmbeddings, setting: Setting) -> int:
    """How many different vectors the map of a setting is fitted on, the fewest of its folds (`LayerRows.different`).

    Raises ValueError as `folds`, and for layers the space does not have.
    """
    setting = check_is_setting(setting).on(space)
    return min(fold.rows.different(setting.layers) for fold in folds(space, setting.fit))


def is_starved(space: LayerEmbeddings, setting: Setting, rank: int) -> bool:
    """Whether a map that keeps `rank` directions sets all texts it is fitted on equally far apart.

    Raises ValueError as `fitted_vectors`.
    """
    return whitening.whitens(check_is_setting(setting).whitening) and whitening.starved(
        setting.whitening, fitted_vectors(space, setting), rank
    )


def thin_halves(space: LayerEmbeddings, setting: Setting, rank: int) -> bool:
    """Whether cross-fitted halves have so few sentences for the directions that the map of both scales together, of the
    `rank` it keeps, that their maps tell nothing of it.

    Whitened by f rows, r directions of new ones have an IsoScore of about 1 - r / f at most (`held_out_isotropy`), so
    that a map of twice the rows may gain where theirs lose. Raises ValueError as `folds`.
    """
    fewest = min(int(fold.rows.counts.count_nonzero()) for fold in folds(space, "cross"))
    return is_thin(fewest, whitening.scaled_together(setting.whitening, space.dim, rank))


def is_thin(sentences: int, directions: int) -> bool:
    """Whether a map that scales so many directions by so few sentences may lose where one of more gains."""
    return sentences < _THIN * directions


def _words(space: LayerEmbeddings) -> LayerRows:
    if space.words is None:
        raise ValueError(
            f"fit='tokens' needs sentences that are means of word vectors, those of a static: or sif: model that are "
            f"not brought to length 1, got model={space.origin.model!r}, pooling={space.origin.pooling!r}"
        )
    return space.words


def halves(space: LayerEmbeddings, seed: int = 0) -> Bool[Tensor, "p"]:
    """Which pairs are in the second half. No sentence is in both.

    Pairs that share a sentence stay together; these groups are dealt in random order to the half that has
    fewer pairs so far. Raises ValueError when all pairs hang together.
    """
    from scipy.sparse import coo_array  # slow to import, and for `cross` alone
    from scipy.sparse.csgraph import connected_components

    first, second, n = space.first.cpu().numpy(), space.second.cpu().numpy(), space.n_sentences
    graph = coo_array((np.ones(len(first)), (first, second)), shape=(n, n))
    group = connected_components(graph, directed=False)[1][first]
    names, sizes = np.unique(group, return_counts=True)
    if len(names) < 2:
        raise ValueError(
            "fit='cross' needs pairs that fall into two halves without a common sentence; a map fitted on other text "
            "needs none"
        )
    dealt, filled = {}, [0, 0]
    for i in np.random.default_rng(check_int(seed, "seed", 0)).permutation(len(names)):
        side = int(filled[1] < filled[0])
        dealt[names[i]] = side
        filled[side] += sizes[i]
    return torch.tensor([bool(dealt[name]) for name in group], device=space.first.device)


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
        return tuple(_moments(fold.rows, self.setting) for fold in self.folds)

    @cached_property
    def whiteners(self) -> tuple[whitening.Map, ...]:
        """The maps."""
        return tuple(map_of(fold.rows, self.setting) for fold in self.folds)

    @cached_property
    def bases(self) -> tuple[whitening.Directions, ...] | None:
        """The weighted directions of each map; None for a variant that weighs no eigen-directions."""
        if not weighs_directions(self.setting):
            return None
        return tuple(whitening.directions(self.setting.whitening, part) for part in self.moments)

    @property
    def rank(self) -> int:
        """Directions kept, the fewest of any fold."""
        if self.bases is not None:
            return min(basis.kept(self.setting.k) for basis in self.bases)
        return min(whitener.rank for whitener in self.whiteners)

    @property
    def columns(self) -> int:
        """m, the numbers of a vector under the maps (`Map.columns`), the fewest of any fold."""
        return whitening.variant(self.setting.whitening).columns(self.rank, self.space.dim)

    @property
    def starved(self) -> bool:
        """Whether the maps set all texts they are fitted on equally far apart."""
        return whitening.whitens(self.setting.whitening) and is_starved(self.space, self.setting, self.rank)

    @property
    def exponent(self) -> float | None:
        """The exponent that the spectrum chose (`soft:gamma=auto`), the mean of the folds; None where it is given."""
        k = self.setting.k
        chosen = [basis.exponents[: basis.kept(k)] for basis in self.bases or () if basis.exponents is not None]
        ends = [float(one[-1]) for one in chosen if len(one)]
        return sum(ends) / len(ends) if ends else None

    @property
    def count(self) -> int:
        """Sentence occurrences a map was fitted on, the fewest of any fold; 0 where nothing is fitted."""
        return 0 if not self.setting.fits else min(round(fold.rows.count) for fold in self.folds)

    @property
    def record(self) -> dict:
        """How an exported map was made, JSON-ready: the protocol with `fitted` (`count`) and `rank`, and of the scope
        no path of this machine: of a corpus the folder's name, and `fit_digest`, which its manifest has too."""
        own = {"fit": scope_name(self.setting.fit), "fitted": self.count, "rank": self.rank}
        text = self.space.texts.get(self.setting.fit)
        own |= {"fit_digest": text.digest} if isinstance(text, MeasuredRows) else {}
        return Protocol(self.setting, self.space.origin).as_dict() | own

    def cosines(self) -> Float[Tensor, "p"]:
        """The cosine of every pair under the map that scores it."""
        space = self.space
        cosines = torch.empty(space.n_pairs, dtype=torch.float64, device=space.values.device)
        for number, fold in enumerate(self.folds):
            first, second = space.first[fold.pairs], space.second[fold.pairs]
            cosines[fold.pairs] = geometry.row_cosines(self._turned(number), first, second)
        return cosines

    def turned(self) -> Float[Tensor, "n m"]:
        """`transform` up to a rotation, which no cosine or length sees: cheaper, where there is one map.

        Of two maps both are turned back to the axes of the embeddings (the ZCA form) where they weigh directions, so
        that sentences of different halves can be compared.
        """
        if len(self.folds) == 1:
            return self._turned(0)
        if self.bases is None:
            return self.transform()
        z = torch.zeros(self.space.values.shape[1:], dtype=torch.float64, device=self.space.values.device)
        for number, (fold, basis) in enumerate(zip(self.folds, self.bases, strict=True)):
            axes = basis.axes[:, : basis.kept(self.setting.k)]
            z[fold.sentences] = self._turned(number)[fold.sentences] @ axes.T
        return z

    def transform(self) -> Float[Tensor, "n m"]:
        """Every sentence under the map that transforms it; a map of lower rank fills up with zeros."""
        x = self.space.combine(self.setting.layers)
        parts = [whitener(x) for whitener in self.whiteners]
        if len(parts) == 1:
            return parts[0]
        z = parts[0].new_zeros(self.space.n_sentences, max(part.shape[1] for part in parts))
        for fold, part in zip(self.folds, parts, strict=True):
            z[fold.sentences, : part.shape[1]] = part[fold.sentences]
        return z

    def _turned(self, number: int) -> Float[Tensor, "n m"]:
        """All rows under the map of one fold, up to a rotation."""
        if self.bases is None:
            whitener, x = self.whiteners[number], self.space.combine(self.setting.layers)
            return x if whitener.name == "none" else whitener(x)
        return along(self.space, self.setting, number, self.moments[number], self.bases[number])

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
        columns = basis.columns(self.setting.k)
        return (basis.variances[: columns.shape[1]] * columns.square().sum(0)).sort(descending=True).values


def along(
    space: LayerEmbeddings, setting: Setting, number: int, moments: Moments, basis: whitening.Directions
) -> Float[Tensor, "n m"]:
    """Every row in the first k of the weighted directions of one fold's map, by its `number` and moments.

    One table of all rows is kept along the eigenvectors of a fold's covariance: there another k is a slice of it, and
    another variant other weights.
    """
    layers, k = setting.layers, setting.k
    large = 8 * space.n_sentences * space.dim > _TURNED_BYTES
    if large or (basis.weights is None and basis.factors is not None):
        return basis.along(space.averaged(layers), moments.mean, k)
    if basis.weights is None:
        key = ("along", layers, setting.fit, number, setting.whitening)
        every = space.kept_lately(key, moments, lambda: basis.along(space.averaged(layers), moments.mean))
        return every[:, : basis.kept(k)]
    key = ("turned", layers, setting.fit, number)
    turned = space.kept_lately(key, moments, lambda: whitening.turned(space.averaged(layers), moments))
    return basis.of_axes(turned, k)


def weighs_directions(setting: Setting) -> bool:
    """Whether the map is made of weighted eigen-directions: not where centring keeps every direction."""
    spec = check_is_setting(setting).whitening
    return whitening.variant(spec).takes_k and not (spec == "center" and setting.k is None)


def gives(rows: LayerEmbeddings | LayerRows | MeasuredRows, spec: str) -> bool:
    """Whether a map can be fitted on averages of these layers: moments of layers kept apart lack what some need."""
    return not (isinstance(rows, MeasuredRows) and rows.apart and whitening.needs_rows(spec))


def lacking(name: str) -> str:
    """What is said of text that does not give a variant of this name."""
    return f"holds layers kept apart, whose moments do not give {name}"


def _moments(rows: LayerEmbeddings | LayerRows | MeasuredRows, setting: Setting) -> Moments:
    """Those a setting's map is fitted to. Raises NotMeasuredError for one that layers kept apart do not give."""
    if not gives(rows, setting.whitening):
        raise NotMeasuredError(
            f"fit={rows.name!r} {lacking(setting.whitening)}: choose another "
            "variant, or embed it anew with these layers averaged"
        )
    return rows.moments(setting.layers)


def map_of(
    rows: LayerEmbeddings | LayerRows | MeasuredRows, setting: Setting, progress: Progress = silent
) -> whitening.Map:
    """The map of a setting, its layers by their numbers, fitted on `rows`; one that is fitted to rows is kept there."""
    spec, layers = setting.whitening, setting.layers
    if spec == "none" and not isinstance(rows, MeasuredRows):
        for layer in layers:
            check_matrix(rows.values[layer])
        return whitening.identity(rows.values[layers[0], 0])
    if not whitening.of_rows(spec):
        return whitening.fit(spec, _moments(rows, setting), setting.k)
    kept, key = rows.kept("maps", dict), (layers, spec)
    if key not in kept:
        kept[key] = whitening.fit_to_rows(spec, rows.combine(layers), rows.counts, progress=progress)
        for oldest in list(kept)[:-_MAPS_KEPT]:
            kept.pop(oldest, None)
    return kept[key]


def held_out_halves(rows: LayerEmbeddings | LayerRows) -> tuple[LayerRows, ...]:
    """The random halves of `rows` (`parted`), to be measured under each other's map; none where one has no sentence."""
    parts = rows.parted
    return parts if all(part.counts.any() for part in parts) else ()


def fit_ahead(
    space: LayerEmbeddings, settings: Sequence[Setting], isotropy: bool = True, progress: Progress = silent
) -> tuple[whitening.Map, ...]:
    """The maps of those `settings` that are fitted to rows, made and kept, so that what needs them finds them there.

    With `isotropy` also those that `held_out.held_out_isotropy` asks for. `progress(done, total)` counts in hundredths
    of a map and may raise to cancel. Raises ValueError as `fit_scope`.
    """
    wanted = list(_maps_of_rows(space, settings, isotropy))
    found = []
    for rows, setting in wanted:
        within = part_of(progress, 100 * len(found), 100, 100 * len(wanted))
        found.append(map_of(rows, setting, within))
    if wanted:
        progress(100 * len(wanted), 100 * len(wanted))
    return tuple(found)


def at_hand(space: LayerEmbeddings, settings: Sequence[Setting]) -> bool:
    """Whether every map of `fit_ahead` is already there. Raises ValueError as `fit_scope`."""
    return all(
        (setting.layers, setting.whitening) in rows.kept("maps", dict)
        for rows, setting in _maps_of_rows(space, settings, isotropy=True)
    )


def _maps_of_rows(
    space: LayerEmbeddings, settings: Sequence[Setting], isotropy: bool
) -> Iterator[tuple[LayerEmbeddings | LayerRows | MeasuredRows, Setting]]:
    for setting in check_settings(settings):
        if whitening.of_rows(setting.whitening):
            setting = setting.on(space)
            scope = [fold.rows for fold in folds(space, setting.fit)]
            halved = isotropy and setting.fit in HALVED
            for rows in (*scope, *(held_out_halves(scope[0]) if halved else ())):
                yield rows, setting


def fit_scope(space: LayerEmbeddings, setting: Setting) -> Fitted:
    """The maps of `setting` on `space`. Raises ValueError as `Setting.on` and `folds` do, TypeError for text."""
    setting = check_is_setting(setting).on(space)
    if setting.fit in space.texts:  # else a fit looks at the task's own sentences
        for layer in setting.layers:
            space.kept(("checked", layer), lambda x=space.values[layer]: bool(len(check_matrix(x, "values"))))
    return Fitted(space, setting, folds(space, setting.fit))
