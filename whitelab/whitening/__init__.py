"""Moments, or rows -> a frozen, callable map that centres, scales or whitens.

Whitening makes the covariance the identity. Every W with W^T W = covariance^-1 does (Kessy, Lewin and
Strimmer 2018), and they differ by a rotation only, so at full rank PCA, ZCA, Cholesky, PCA-cor and ZCA-cor
give the same cosine for every pair of sentences. Null directions are dropped by the rank policy of
`whitelab.statistics.linalg`: the result is then the pseudo-inverse map of the kept subspace.

`maps` holds the map, `spectral` the variants that weigh eigen-directions, `groups` those that work on blocks
of coordinates, `direction_removal` those that take directions away, `registry` the table the rest of whitelab reads,
`equivalence` says which of its entries must agree. Two maps are fitted to rows instead and are not affine: `clusters`,
and the `flow` that `flow_training` trains.
"""

from whitelab.base.parameters import Spec
from whitelab.whitening.direction_removal import fit_all_but_the_top, fit_common_component, fit_r2
from whitelab.whitening.equivalence import Agreement, agreements
from whitelab.whitening.groups import fit_group, fit_shuffled_group, fit_standardize
from whitelab.whitening.maps import Map, RowMap, Whitener, affine
from whitelab.whitening.registry import (
    WHITENERS,
    Parameter,
    Variant,
    canonical,
    check_k,
    check_same_weights,
    check_takes_k,
    cosine_class,
    directions,
    eigenform,
    fit,
    fit_to_rows,
    label,
    needs_rows,
    of_rows,
    parse,
    scaled_together,
    starved,
    starved_remedy,
    starving,
    too_few,
    variant,
    whitens,
)
from whitelab.whitening.spectral import (
    Directions,
    fit_center,
    fit_cholesky,
    fit_iternorm,
    fit_none,
    fit_pca,
    fit_pca_cor,
    fit_shrunk,
    fit_soft,
    fit_zca,
    fit_zca_cor,
    identity,
    shrinkage,
    turned,
)

__all__ = [
    "WHITENERS",
    "Agreement",
    "Directions",
    "Map",
    "Parameter",
    "RowMap",
    "Spec",
    "Variant",
    "Whitener",
    "affine",
    "agreements",
    "canonical",
    "check_k",
    "check_same_weights",
    "check_takes_k",
    "cosine_class",
    "eigenform",
    "directions",
    "fit",
    "fit_all_but_the_top",
    "fit_center",
    "fit_cholesky",
    "fit_common_component",
    "fit_group",
    "fit_iternorm",
    "fit_none",
    "fit_pca",
    "fit_pca_cor",
    "fit_r2",
    "fit_to_rows",
    "fit_shrunk",
    "fit_shuffled_group",
    "fit_soft",
    "fit_standardize",
    "fit_zca",
    "fit_zca_cor",
    "identity",
    "label",
    "needs_rows",
    "of_rows",
    "parse",
    "scaled_together",
    "shrinkage",
    "starved",
    "starved_remedy",
    "starving",
    "too_few",
    "turned",
    "variant",
    "whitens",
]
