"""The score of any subset in one task: by quadratic forms, or by a map fitted on each."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from whitelab import whitening
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.scoring.fit_scopes import Fold, folds
from whitelab.scoring.setting import Setting
from whitelab.statistics import correlation, geometry, linalg
from whitelab.statistics.moments import Moments
from whitelab.sweeps.layer_pairs import LayerMoments, layer_means, pair_grams
from whitelab.sweeps.layer_subsets.plan import as_layers

# Bytes of float64 tables that one chunk of subsets may hold. On a CPU they should stay near its caches: with
# tables of 3 MB the matrix product is four times as fast as with tables of 90 MB.
CHUNK_BYTES = {"cpu": 2**25, "cuda": 2**31}
_TABLES = 10  # [subsets, pairs] alive at once: three forms, their norms, cosines, order, sorted values


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
        """From one pass over the sentences of the fit scope."""
        scope = folds(space, setting.fit)
        table, square = space.n_sentences * space.dim, space.dim**2
        rows = chunk_rows(space, 8 * (4 * table + 5 * square))
        return cls(scope, tuple(LayerMoments.of(fold.rows) for fold in scope), space, setting, rows)

    def __call__(self, masks: Bool[Tensor, "c l"]) -> Float[Tensor, "c"]:
        """Spearman x 100 of every subset, on the CPU."""
        subsets = [as_layers(mask) for mask in masks]
        full = whitening.cosine_class(self.setting.whitening, self.setting.k, self.space.dim) == "whitening"
        cosines = torch.zeros(len(subsets), self.space.n_pairs, dtype=torch.float64, device=self.space.values.device)
        for fold, block in zip(self.folds, self.blocks, strict=True):
            every = [self.moments(fold, block, one) for one in subsets]
            parts = self.whitened if full else self.each
            cosines[:, fold.pairs.to(cosines.device)] = parts(subsets, every, fold)
        return _percent(cosines, self.space, self.setting.aggregate)

    def moments(self, fold: Fold, block: LayerMoments, layers: tuple[int, ...]) -> Moments:
        """Moments of the average of `layers` over the fold's sentences."""
        return fold.rows.moments(layers) if whitening.needs_rows(self.setting.whitening) else block.average(layers)

    def whitened(self, subsets: list[tuple[int, ...]], moments: list[Moments], fold: Fold) -> Float[Tensor, "c q"]:
        """Cosines after a full whitening: all have the same, so L^-1 (x - mean) serves where L can be trusted."""
        factors, _, certain = linalg.trusted_choleskys(torch.stack([one.covariance for one in moments]))
        sure, found = certain.nonzero()[:, 0], {}
        if len(sure):
            x = torch.stack([self.space.combine(subsets[i]).sub_(moments[i].mean) for i in sure.tolist()])
            z = torch.linalg.solve_triangular(factors[sure], x.mT, upper=False).mT
            found = {i: self.cosines(one, fold) for i, one in zip(sure.tolist(), z, strict=True)}
        rest = [i for i in range(len(subsets)) if i not in found]
        if rest:
            others = self.each([subsets[i] for i in rest], [moments[i] for i in rest], fold)
            found |= dict(zip(rest, others, strict=True))
        return torch.stack([found[i] for i in range(len(subsets))])

    def each(self, subsets: list[tuple[int, ...]], moments: list[Moments], fold: Fold) -> Float[Tensor, "c q"]:
        """Cosines under the fitted maps themselves, for any variant, k and rank."""
        maps = (whitening.fit(self.setting.whitening, one, self.setting.k) for one in moments)
        return torch.stack(
            [self.cosines(one(self.space.combine(layers)), fold) for layers, one in zip(subsets, maps, strict=True)]
        )

    def cosines(self, z: Float[Tensor, "n m"], fold: Fold) -> Float[Tensor, "q"]:
        """The cosine of every pair that the fold scores."""
        return geometry.row_cosines(z, self.space.first[fold.pairs], self.space.second[fold.pairs])


def chunk_rows(space: LayerEmbeddings, bytes_each: int) -> int:
    """How many subsets of `bytes_each` bytes may be worked on at once."""
    return max(1, CHUNK_BYTES[space.values.device.type] // bytes_each)


def check_device(device: str | None) -> str | None:
    """Return `device` if torch can reach it and it has float64."""
    if device is None:
        return None
    kind = device.partition(":")[0]
    if kind not in CHUNK_BYTES or (kind == "cuda" and not torch.cuda.is_available()):
        raise ValueError(f"device={device!r} must be cpu, or cuda where there is one")
    return device


def _percent(cosines: Float[Tensor, "c p"], space: LayerEmbeddings, how: str) -> Float[Tensor, "c"]:
    return 100 * correlation.aggregate(cosines, space.gold, space.subset, space.n_subsets, how).cpu()
