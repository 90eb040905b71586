"""The whitening family as a scikit-learn transformer, for pipelines and for rows that come in batches."""

import warnings

import numpy as np
import torch
from jaxtyping import Float
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from whitelab import whitening
from whitelab.statistics import linalg
from whitelab.statistics.moments import Moments
from whitelab.whitening import WHITENERS, Map

FLOATS = [np.float64, np.float32]


class WhiteningTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """z = (x - mean_) matrix_, the map `whitelab.whitening.fit(variant, moments_, k)`.

    `variant` names an entry of `whitelab.WHITENERS`, `k` keeps the top-k eigen-directions. Sums and
    results are float64 for every type of `X`. However the rows are split over calls of `partial_fit`, the
    map is that of all of them together, up to rounding in float64.

    Fitted are `moments_` (count, mean and scatter of the rows), `n_samples_seen_` and `n_features_in_`,
    and from them `whitener_` (the map, which `whitelab.whitening.export` takes), `mean_ [d]`, `matrix_ [d, m]` and
    `rank_` (the directions kept).

    A variant that is fitted to rows (`clusters`, `flow`) needs all of them at once, so it has no `partial_fit`, and
    its map no mean and matrix: there is no `inverse_transform`, and `mean_` and `matrix_` raise ValueError.

    Raises ValueError for an unknown variant, for `k` outside 1..d or where it has no meaning, for NaN and
    infinity, and, when the map is applied, where the rows do not vary, so that there is nothing to keep.
    """

    def __init__(self, variant="pca", k=None) -> None:
        # Untyped and unchecked: scikit-learn wants an estimator to take anything here and to refuse it in `fit`.
        self.variant = variant
        self.k = k

    def fit(self, X, y=None) -> "WhiteningTransformer":
        """Fit to the rows of `X [n, d]` and forget all others. `y` is ignored.

        Warns where they are so few that the map sets them equally far apart (`whitening.starved`).
        """
        x = self._absorb(X, None)
        rank, dim = self.rank_, self.n_features_in_
        if rank > 0 and whitening.starved(str(self.variant), linalg.distinct_rows(x, dim + 2), rank):
            warnings.warn(whitening.too_few(str(self.variant), rank, dim), stacklevel=2)
        return self

    @available_if(lambda self: _of_moments(self.variant))
    def partial_fit(self, X, y=None) -> "WhiteningTransformer":
        """Fit to the rows of `X [n, d]` together with all those seen since `fit`. `y` is ignored.

        The map itself is only made when it is asked for: a step costs n d^2, and no eigenvectors.
        """
        self._absorb(X, getattr(self, "moments_", None))
        return self

    def _absorb(self, X, seen: Moments | None) -> torch.Tensor:
        """The rows, once they are taken in."""
        x = _tensor(validate_data(self, X, dtype=FLOATS, reset=seen is None))
        moments = Moments.of(x)
        # The first rows at once, so that settings that cannot be are refused before a stream has been read.
        self._map = None
        if not _of_moments(self.variant):
            self._map = whitening.fit_to_rows(self.variant, x, k=self.k)
        elif seen is None:
            self._map = whitening.fit(self.variant, moments, self.k)
        self._settings = self.variant, self.k  # those of the fit, whatever `set_params` says later
        self.moments_ = moments if seen is None else seen.merge(moments)
        self.n_samples_seen_ = len(x) + (0 if seen is None else self.n_samples_seen_)
        return x

    def transform(self, X) -> Float[np.ndarray, "n m"]:
        """The map of every row of `X [n, d]`, in float64."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=FLOATS, reset=False)
        return self._kept()(_tensor(X)).numpy()

    @available_if(lambda self: _of_moments(self.variant))
    def inverse_transform(self, X) -> Float[np.ndarray, "n d"]:
        """The nearest rows to `mean_` that the map sends to `X [n, m]`: X matrix_^+ + mean_.

        Undoes `transform` exactly where the map keeps every direction. Otherwise it reconstructs, as
        scikit-learn's PCA does: the part of a row in the kept subspace comes back, and in place of the
        rest, which is lost, stands the mean.
        """
        check_is_fitted(self)
        fitted = whitening.affine(self._kept(), "only a matrix is inverted here")
        X = check_array(X, dtype=FLOATS)
        if X.shape[1] != self._n_features_out:
            raise ValueError(f"X must have m={self._n_features_out} columns, got {X.shape[1]}")
        # Singular values of a map are inverse roots of the eigenvalues that the rank policy keeps, so the
        # smallest is at least 1e-5 of the largest; the rounding of a null direction is 1e-15 of it.
        inverse = torch.linalg.pinv(fitted.dense, rtol=linalg.RANK_TOLERANCE)
        return (linalg.exact(_tensor(X)) @ inverse + fitted.mean).numpy()

    @property
    def whitener_(self) -> Map:
        """The fitted map."""
        check_is_fitted(self)
        if self._map is None:
            variant, k = self._settings
            self._map = whitening.fit(variant, self.moments_, k)
        return self._map

    @property
    def mean_(self) -> Float[np.ndarray, "d"]:
        """What is subtracted: the mean of the rows (0 where the variant does not centre)."""
        return whitening.affine(self.whitener_, "it has no mean").mean.numpy().copy()

    @property
    def matrix_(self) -> Float[np.ndarray, "d m"]:
        """What is multiplied with from the right."""
        return whitening.affine(self.whitener_, "it has no matrix").dense.numpy().copy()

    @property
    def rank_(self) -> int:
        """The number of directions the map keeps."""
        return self.whitener_.rank

    @property
    def _n_features_out(self) -> int:
        """m; `get_feature_names_out` counts up to it."""
        return self.whitener_.columns

    def _kept(self) -> Map:
        """The map, if there is something left after it."""
        fitted = self.whitener_
        if fitted.rank == 0:
            raise ValueError(
                f"variant={self._settings[0]!r} has no direction to keep: the {self.n_samples_seen_} row(s) it was "
                f"fitted on do not vary"
            )
        return fitted


def _of_moments(variant) -> bool:
    """Whether moments suffice for `variant`, which may still be anything."""
    entry = WHITENERS.get(str(variant).partition(":")[0])
    return entry is None or not entry.of_rows


def _tensor(X: np.ndarray) -> torch.Tensor:
    # torch warns of arrays that cannot be written to and refuses strides that run backwards.
    return torch.from_numpy(np.require(X, requirements=["C", "W"]))
