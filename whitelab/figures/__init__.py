"""Results -> plotly figures. Pure functions that know neither torch nor Streamlit.

Colour carries meaning and never changes it: each variant has one hue on every page, layers run along one
sequential scale, gold similarity along another. Backgrounds and text colours are left to the theme of the
page. `layout.meta["alt"]` holds the text for people who cannot see the picture.
"""

from whitelab.figures.comparisons import difference_heatmap, row_differences, setting_plane, task_curves, walk_steps
from whitelab.figures.data import gold_histogram, length_histogram
from whitelab.figures.dimensions import k_columns, k_curves, k_surface, search_costs
from whitelab.figures.geometry import by_layer, cosine_histogram, covariance_image, plane, projection, spectrum
from whitelab.figures.layers import layer_counts, pair_heatmap, size_curves, subset_ranking
from whitelab.figures.probes import MATCH_COLOURS, accuracy_by_layer, confusion, cosines_by_label
from whitelab.figures.scores import difference_dots, gold_scatter, score_bars, score_dots
from whitelab.figures.style import (
    DIFFERENCE_ENDS,
    DIFFERENCE_IMAGE,
    DIFFERENCE_SCALE,
    GOLD_SCALE,
    LAYER_SCALE,
    MARK,
    RULE,
    SCORE_SCALE,
    VARIANT_COLOURS,
    VARIANT_SYMBOLS,
    layer_colour,
    variant_colour,
    variant_dashes,
    variant_symbol,
    wrapped,
)
from whitelab.figures.training import (
    OBJECTIVE_COLOURS,
    objective_colour,
    run_dashes,
    training_curve,
    training_plane,
    training_spectrum,
)

__all__ = [
    "OBJECTIVE_COLOURS",
    "objective_colour",
    "run_dashes",
    "training_curve",
    "training_plane",
    "training_spectrum",
    "DIFFERENCE_ENDS",
    "DIFFERENCE_IMAGE",
    "DIFFERENCE_SCALE",
    "GOLD_SCALE",
    "LAYER_SCALE",
    "MARK",
    "RULE",
    "SCORE_SCALE",
    "VARIANT_COLOURS",
    "VARIANT_SYMBOLS",
    "by_layer",
    "cosine_histogram",
    "covariance_image",
    "difference_dots",
    "MATCH_COLOURS",
    "accuracy_by_layer",
    "confusion",
    "cosines_by_label",
    "difference_heatmap",
    "row_differences",
    "setting_plane",
    "task_curves",
    "walk_steps",
    "gold_histogram",
    "gold_scatter",
    "k_columns",
    "k_curves",
    "k_surface",
    "layer_colour",
    "layer_counts",
    "length_histogram",
    "pair_heatmap",
    "plane",
    "projection",
    "score_bars",
    "score_dots",
    "search_costs",
    "size_curves",
    "spectrum",
    "subset_ranking",
    "variant_colour",
    "variant_dashes",
    "variant_symbol",
    "wrapped",
]
