"""Results -> plotly figures. Pure functions that know neither torch nor Streamlit.

Colour carries meaning and never changes it: each variant has one hue on every page, layers run along one
sequential scale, gold similarity along another. Backgrounds and text colours are left to the theme of the
page. `layout.meta["alt"]` holds the text for people who cannot see the picture.
"""

from whitelab.figures import heights
from whitelab.figures.comparisons import difference_heatmap, row_differences, task_curves, walk_steps
from whitelab.figures.compression import bits_frontier, cosine_scale
from whitelab.figures.corpora import settling_curve
from whitelab.figures.data import gold_histogram, length_histogram
from whitelab.figures.dimensions import fit_size_curves, k_columns, k_curves, k_surface, search_costs
from whitelab.figures.geometry import (
    by_layer,
    cone,
    cosine_histogram,
    covariance_image,
    projection,
    similarity,
    spectrum,
)
from whitelab.figures.layer_gains import layer_dumbbells
from whitelab.figures.layers import layer_counts, pair_heatmap, size_curves, subset_ranking
from whitelab.figures.planes import plane, setting_plane
from whitelab.figures.probes import MATCH_COLOURS, accuracy_by_layer, confusion, cosines_by_label
from whitelab.figures.rankings import metric_by_k, metric_by_layer, query_differences
from whitelab.figures.scores import difference_dots, gold_scatter, option_dots, score_bars, score_dots
from whitelab.figures.style import MARK, RULE, VARIANT_COLOURS, VARIANT_SYMBOLS, layer_colour, variant_colour, wrapped
from whitelab.figures.training import OBJECTIVE_COLOURS, run_dashes, training_curve, training_plane, training_spectrum

__all__ = [
    "MARK",
    "MATCH_COLOURS",
    "OBJECTIVE_COLOURS",
    "RULE",
    "VARIANT_COLOURS",
    "VARIANT_SYMBOLS",
    "accuracy_by_layer",
    "bits_frontier",
    "by_layer",
    "confusion",
    "cone",
    "cosine_histogram",
    "cosine_scale",
    "cosines_by_label",
    "covariance_image",
    "difference_dots",
    "difference_heatmap",
    "fit_size_curves",
    "gold_histogram",
    "gold_scatter",
    "heights",
    "k_columns",
    "k_curves",
    "k_surface",
    "layer_colour",
    "layer_counts",
    "layer_dumbbells",
    "length_histogram",
    "metric_by_k",
    "metric_by_layer",
    "pair_heatmap",
    "plane",
    "projection",
    "query_differences",
    "row_differences",
    "run_dashes",
    "score_bars",
    "settling_curve",
    "option_dots",
    "score_dots",
    "search_costs",
    "setting_plane",
    "similarity",
    "size_curves",
    "spectrum",
    "subset_ranking",
    "task_curves",
    "training_curve",
    "training_plane",
    "training_spectrum",
    "variant_colour",
    "walk_steps",
    "wrapped",
]
