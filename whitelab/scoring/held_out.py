"""How round sentences are that a map was not fitted on: what whitening gives to sentences still to come."""

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab import whitening
from whitelab.corpus.fitting import isotropy
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows, MeasuredRows
from whitelab.scoring.fit_scopes import HALVED, folds, held_out_halves, map_of, weighs_directions
from whitelab.scoring.setting import Setting, check_is_setting
from whitelab.statistics import geometry
from whitelab.statistics.moments import Moments


def held_out_isotropy(space: LayerEmbeddings, setting: Setting) -> float:
    """IsoScore, 0 to 1, of sentences that the map was not fitted on (1: their covariance is round).

    On the sentences of the fit it is 1 for any whitening, by construction. For `task`, `splits` and `vectors`
    the scope's sentences are halved at random, each half measured under the map of the other; for `cross` the folds do
    that; for other text the task's sentences are measured. (PR - 1) / (rank - 1), Rudman et al. 2022, with PR
    the participation ratio of the kept directions. In r directions white data of m rows have about 1 / (1 + r / m),
    and (1 - y) / (1 + z - y z), y = r / f, z = r / m, under a map that was whitened by f rows of them (the moments of
    an F-matrix, Bai and Silverstein 2010, section 4.4): few rows of either kind keep it low. NaN where fewer than two
    directions are kept or two sentences are left, or a half has none, and where a map is fitted on moments alone, such
    as a corpus's: which sentences they are of is not known. Raises ValueError as `fit_scope`.
    """
    setting = check_is_setting(setting).on(space)
    scope = folds(space, setting.fit)
    if setting.fit in HALVED:
        parts = held_out_halves(scope[0].rows)
        if not parts:
            return float("nan")
        ways = [parts, parts[::-1]]
    elif setting.fit == "cross":
        ways = [(scope[0].rows, scope[1].rows), (scope[1].rows, scope[0].rows)]
    else:
        rows = scope[0].rows
        if isinstance(rows, MeasuredRows):
            return float("nan")
        unseen = space.kept_lately(("unseen", setting.fit), rows, lambda: unseen_by(rows, space))
        if unseen.counts.count_nonzero() < 2:
            return float("nan")
        ways = [(rows, unseen)]
    scores = [isotropy_between(seen, unseen, setting) for seen, unseen in ways]
    return sum(scores) / len(scores)


def unseen_by(rows: LayerEmbeddings | LayerRows, space: LayerEmbeddings) -> LayerEmbeddings | LayerRows:
    """The sentences of `space` that are not among `rows`, known by their vectors."""
    seen = {row.tobytes() for row in rows.values[-1][rows.counts > 0].cpu().numpy()}
    fresh = torch.tensor([row.tobytes() not in seen for row in space.values[-1].cpu().numpy()])
    return space if fresh.all() else LayerRows(space.values, space.counts * fresh.to(space.counts))


def isotropy_between(
    seen: LayerEmbeddings | LayerRows | MeasuredRows, unseen: LayerEmbeddings | LayerRows, setting: Setting
) -> float:
    """IsoScore of `unseen` rows under the map that a setting fits on `seen` ones, as `held_out_isotropy`."""
    if whitening.of_rows(setting.whitening):
        fitted = map_of(seen, setting)
        covariance = unseen.moments_of(fitted(unseen.combine(setting.layers))).covariance
        return geometry.iso_score(covariance, fitted.rank)
    fitted_to, held_out = (rows.moments(setting.layers) for rows in (seen, unseen))
    if weighs_directions(setting):
        # The PCA form: a rotation afterwards changes no participation ratio.
        basis = whitening.directions(setting.whitening, fitted_to)
        covariance = _covariance_along(unseen, setting, basis, fitted_to, held_out)
        return geometry.iso_score(covariance, len(covariance))
    return isotropy(held_out, whitening.fit(setting.whitening, fitted_to, setting.k))


def _covariance_along(
    rows: LayerEmbeddings | LayerRows, setting: Setting, basis: whitening.Directions, fitted_to: Moments, own: Moments
) -> Float[Tensor, "m m"]:
    """The covariance of `rows`, whose `own` moments are given, in the first k of the directions fitted to others.

    Where these are weighted eigenvectors, what all variants and k read is kept, as `along` keeps rows.
    """
    if basis.weights is None:
        columns = basis.columns(setting.k)
        return columns.T @ own.covariance @ columns
    key, axes = ("covariance along", setting.layers), fitted_to.eigen_all.vectors
    turned = rows.kept_lately(key, fitted_to, lambda: axes.T @ own.covariance @ axes)
    return basis.square_of_axes(turned, setting.k)
