"""The score of any subset in one task: by quadratic forms, or by a map fitted on each."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from whitelab import whitening
from whitelab.base.devices import at_once, threads_on
from whitelab.base.machine import within_memory
from whitelab.base.threads import side_by_side
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.scoring.fit_scopes import Fold, folds
from whitelab.scoring.setting import Setting
from whitelab.statistics import geometry, linalg
from whitelab.statistics.moments import Moments
from whitelab.sweeps.layer_moments import LayerMoments, layer_means, pair_grams, whitened_cosines
from whitelab.sweeps.layer_subsets.plan import as_layers

# Bytes of float64 tables that one chunk of subsets may hold. On a CPU they should stay near its caches: with
# tables of 3 MB the matrix product is four times as fast as with tables of 90 MB.
CHUNK_BYTES = 2**25
# Bytes of covariances that are summed from blocks at once: each time all blocks are read.
MATRICES_BYTES = 2**27
_TABLES = 10  # [subsets, pairs] alive at once: three forms, their norms, cosines, order, sorted values


def cost_of(setting: Setting, dim: int) -> str:
    """What the score of a subset takes under a setting: `sums`, a `factor` of a covariance, or its `eigen` basis."""
    if setting.whitening == "none" or setting.fit == "task" and (setting.whitening, setting.k) == ("center", None):
        return "sums"
    full = whitening.cosine_class(setting.whitening, setting.k, dim) == "whitening"
    return "factor" if full else "eigen"


@dataclass(frozen=True, eq=False)
class LinearScorer:
    """Scores of subsets under a variant that commutes with averaging: none, or centring.

    x.y for the sums of the chosen layers is sum_ij m_i m_j (x_i . y_j): one row of weights m_i m_j, i <= j,
    times `forms [3, g, p]`, the pairs' Gram matrices a.b, a.a and b.b with (i, j) and (j, i) added up.
    """

    forms: Float[Tensor, "3 g p"]
    space: LayerEmbeddings
    how: str
    rows: int

    @classmethod
    def of(cls, space: LayerEmbeddings, setting: Setting) -> "LinearScorer":
        """From one pass over the pairs."""
        grams = pair_grams(space, layer_means(space) if setting.whitening == "center" else None)
        i, j = torch.triu_indices(space.n_layers, space.n_layers)
        twice = (i != j).to(grams[0])[:, None]
        forms = torch.stack([gram[i, j] + twice * gram[j, i] for gram in grams])
        return cls(forms, space, setting.aggregate, chunk_rows(space, 8 * _TABLES * space.n_pairs))

    def __call__(self, masks: Bool[Tensor, "c l"]) -> Float[Tensor, "c"]:
        """Spearman x 100 of every subset, on the CPU."""
        i, j = torch.triu_indices(masks.shape[1], masks.shape[1])
        weights = (masks[:, i] & masks[:, j]).to(self.forms)
        dot, square_a, square_b = (weights @ form for form in self.forms)
        # Layers that cancel leave rounding, which may be negative.
        cosines = geometry.cosines_from(dot, square_a.clamp_min_(0), square_b.clamp_min_(0))
        return _percent(cosines, self.space, self.how)


@dataclass(frozen=True, eq=False)
class FittedScorer:
    """Scores of subsets under a variant fitted on each: covariances from blocks, one factorisation each.

    One block matrix a fold of the fit scope; a fold's map scores its own pairs.
    """

    folds: tuple[Fold, ...]
    blocks: tuple[LayerMoments, ...]
    space: LayerEmbeddings
    setting: Setting
    rows: int

    @classmethod
    def of(cls, space: LayerEmbeddings, setting: Setting) -> "FittedScorer":
        """From one pass over the sentences of the fit scope.

        Raises ValueError for a variant that is fitted to rows: that of every subset would take hours.
        """
        if whitening.of_rows(setting.whitening):
            raise ValueError(
                f"whitening={setting.whitening!r} is fitted to rows, a while for each map: subsets of layers are "
                "searched under variants that moments suffice for"
            )
        scope = folds(space, setting.fit)
        rows = at_once(space.values.device, max(1, MATRICES_BYTES // (8 * space.dim**2)), 40 * space.dim**2)
        return cls(scope, tuple(LayerMoments.of(fold.rows) for fold in scope), space, setting, rows)

    def __call__(self, masks: Bool[Tensor, "c l"]) -> Float[Tensor, "c"]:
        """Spearman x 100 of every subset, on the CPU."""
        subsets, device = [as_layers(mask) for mask in masks], self.space.values.device
        cosines = torch.zeros(len(subsets), self.space.n_pairs, dtype=torch.float64, device=device)
        for fold, block in zip(self.folds, self.blocks, strict=True):
            moments = self.moments(fold, block, subsets)
            score = partial(self.cosines, fold)
            found = side_by_side(score, zip(subsets, moments, self.factors(moments), strict=True), threads_on(device))
            for row, part in zip(cosines, found, strict=True):
                row[fold.pairs.to(device)] = part
        return _percent(cosines, self.space, self.setting.aggregate)

    def moments(self, fold: Fold, block: LayerMoments, subsets: list[tuple[int, ...]]) -> list[Moments]:
        """Moments of the average of each of `subsets` over the fold's sentences."""
        if whitening.needs_rows(self.setting.whitening):
            return [fold.rows.moments(layers) for layers in subsets]
        return block.averages(subsets)

    def factors(self, moments: list[Moments]) -> list[Callable[[], linalg.Factor | None]]:
        """How each comes by a factor where all directions are kept: on a GPU together, else where it is asked for.

        None where it is not certain, and where directions are left out.
        """
        if cost_of(self.setting, self.space.dim) != "factor":
            return [lambda: None] * len(moments)
        scatters = [one.scatter for one in moments]
        if self.space.values.device.type == "cpu":
            return [partial(linalg.factor, one) for one in scatters]
        return [lambda made=made: made for made in linalg.factors(torch.stack(scatters))]

    def cosines(
        self, fold: Fold, subset: tuple[tuple[int, ...], Moments, Callable[[], linalg.Factor | None]]
    ) -> Float[Tensor, "q"]:
        """Of every pair the fold scores, from a subset's layers, their moments, and the factor where there is one."""
        layers, moments, factor = subset
        if (known := factor()) is not None:
            return whitened_cosines(self.space, fold, known, layers, len(layers) * moments.mean)
        fitted = whitening.fit(self.setting.whitening, moments, self.setting.k)
        z = fitted(self.space.combine(layers))
        return geometry.row_cosines(z, self.space.first[fold.pairs], self.space.second[fold.pairs])


@dataclass(eq=False)
class Placed:
    """A scorer where it was asked to compute; what does not fit there is scored in smaller parts, then on the CPU.

    `notes` say so.
    """

    make: Callable[[LayerEmbeddings], LinearScorer | FittedScorer]
    space: LayerEmbeddings
    scorer: LinearScorer | FittedScorer | None
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, make: Callable, space: LayerEmbeddings, device: str | None) -> "Placed":
        """`make` of the space on `device` (None: where it is)."""
        if device is None:
            return cls(make, space, make(space))
        found = cls(make, space, within_memory(lambda: make(space.to(device))))
        if found.scorer is None:
            found.leave()
        return found

    @property
    def rows(self) -> int:
        """Subsets to score at once."""
        return self.scorer.rows

    def leave(self) -> None:
        """Go on on the CPU."""
        self.notes.append("the device has too little memory for the search, which went on on the CPU")
        self.scorer = None  # gone before the next is made
        self.scorer = self.make(self.space.to("cpu"))

    def __call__(self, masks: Bool[Tensor, "c l"]) -> Float[Tensor, "c"]:
        """Spearman x 100 of every subset, on the CPU. Raises MemoryError where one alone does not fit there."""
        found = within_memory(lambda: self.scorer(masks))
        if found is not None:
            return found
        if len(masks) > 1:
            self.notes.append("memory ran out: subsets were scored in smaller parts")
            return torch.cat([self(part) for part in masks.split(-(-len(masks) // 2))])
        if self.scorer.space.values.device.type == "cpu":
            raise MemoryError("one subset of layers does not fit in memory: use fewer sentences or layers")
        self.leave()
        return self(masks)


def chunk_rows(space: LayerEmbeddings, bytes_each: int) -> int:
    """How many subsets of `bytes_each` bytes may be worked on at once."""
    return at_once(space.values.device, max(1, CHUNK_BYTES // bytes_each), bytes_each)


def check_device(device: str | None) -> str | None:
    """Return `device` if torch can reach it and it has float64."""
    if device is None:
        return None
    kind, _, index = device.partition(":")
    there = torch.cuda.device_count() if kind == "cuda" and torch.cuda.is_available() else 0
    if device != "cpu" and not (index or "0").isdecimal() or device != "cpu" and int(index or 0) >= there:
        raise ValueError(f"device={device!r} must be cpu, or cuda where there is one")
    return device


def _percent(cosines: Float[Tensor, "c p"], space: LayerEmbeddings, how: str) -> Float[Tensor, "c"]:
    return 100 * space.judged.spearman(cosines, how).cpu()
