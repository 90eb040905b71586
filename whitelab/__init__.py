"""whitelab: a laboratory for the geometry of sentence embeddings.

The public names below are loaded on first use, so importing the package loads neither torch nor
Streamlit.
"""

import os
from importlib import import_module

# Torch's OpenMP threads spin while they wait for each other. On a machine that does anything else at the
# same time they then spin against the threads they wait for: one measure of a layer took 5 s instead of
# 0.3 s beside one busy process on two cores. Read when torch is loaded, which is later than this.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__version__ = "0.1.0"

_HOMES = {
    "Moments": "whitelab.moments",
    "WHITENERS": "whitelab.whitening",
    "Whitener": "whitelab.whitening",
    "fit": "whitelab.whitening",
    "fit_all_but_the_top": "whitelab.whitening",
    "fit_center": "whitelab.whitening",
    "fit_cholesky": "whitelab.whitening",
    "fit_common_component": "whitelab.whitening",
    "fit_group": "whitelab.whitening",
    "fit_iternorm": "whitelab.whitening",
    "fit_none": "whitelab.whitening",
    "fit_pca": "whitelab.whitening",
    "fit_pca_cor": "whitelab.whitening",
    "fit_shrunk": "whitelab.whitening",
    "fit_shuffled_group": "whitelab.whitening",
    "fit_soft": "whitelab.whitening",
    "fit_standardize": "whitelab.whitening",
    "fit_zca": "whitelab.whitening",
    "fit_zca_cor": "whitelab.whitening",
    "METRICS": "whitelab.geometry",
    "alignment": "whitelab.geometry",
    "mean_cosine": "whitelab.geometry",
    "pair_cosines": "whitelab.geometry",
    "participation_ratio": "whitelab.geometry",
    "uniformity": "whitelab.geometry",
    "spearman": "whitelab.correlation",
    "bootstrap": "whitelab.significance",
    "moved": "whitelab.significance",
    "williams": "whitelab.significance",
    "SentencePairs": "whitelab.datasets",
    "fetch": "whitelab.datasets",
    "load": "whitelab.datasets",
    "discover": "whitelab.datasets",
    "ColumnNames": "whitelab.datasets",
    "load_labelled": "whitelab.datasets",
    "Store": "whitelab.store",
    "LayerEmbeddings": "whitelab.embeddings",
    "LayerRows": "whitelab.embeddings",
    "Encoder": "whitelab.encoders",
    "embed": "whitelab.encoders",
    "load_encoder": "whitelab.encoders",
    "Protocol": "whitelab.evaluate",
    "Score": "whitelab.evaluate",
    "score": "whitelab.evaluate",
    "read_vectors": "whitelab.vectors",
    "paired": "whitelab.standings",
    "layer_pairs": "whitelab.layers",
    "SubsetSearch": "whitelab.subsets",
    "k_curve": "whitelab.dimensions",
    "k_curves": "whitelab.dimensions",
    "project": "whitelab.projection",
    "OBJECTIVES": "whitelab.objectives",
    "Objective": "whitelab.objectives",
    "WhiteningTransformer": "whitelab.estimator",
    "search_costs": "whitelab.retrieval",
    "TrainConfig": "whitelab.training",
    "train": "whitelab.training",
    "probes": "whitelab.probe",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'whitelab' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
