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
    "Moments": "whitelab.statistics.moments",
    "WHITENERS": "whitelab.whitening",
    "Whitener": "whitelab.whitening",
    "fit": "whitelab.whitening",
    "fit_all_but_the_top": "whitelab.whitening",
    "fit_to_rows": "whitelab.whitening",
    "fit_center": "whitelab.whitening",
    "fit_cholesky": "whitelab.whitening",
    "fit_common_component": "whitelab.whitening",
    "fit_group": "whitelab.whitening",
    "fit_iternorm": "whitelab.whitening",
    "fit_none": "whitelab.whitening",
    "fit_pca": "whitelab.whitening",
    "fit_pca_cor": "whitelab.whitening",
    "fit_r2": "whitelab.whitening",
    "fit_shrunk": "whitelab.whitening",
    "fit_shuffled_group": "whitelab.whitening",
    "fit_soft": "whitelab.whitening",
    "fit_standardize": "whitelab.whitening",
    "fit_zca": "whitelab.whitening",
    "fit_zca_cor": "whitelab.whitening",
    "METRICS": "whitelab.statistics.geometry",
    "alignment": "whitelab.statistics.geometry",
    "mean_cosine": "whitelab.statistics.geometry",
    "pair_cosines": "whitelab.statistics.geometry",
    "participation_ratio": "whitelab.statistics.geometry",
    "uniformity": "whitelab.statistics.geometry",
    "spearman": "whitelab.statistics.correlation",
    "bootstrap": "whitelab.statistics.significance",
    "moved": "whitelab.statistics.significance",
    "williams": "whitelab.statistics.significance",
    "SentencePairs": "whitelab.datasets",
    "fetch": "whitelab.datasets",
    "load": "whitelab.datasets",
    "discover": "whitelab.datasets",
    "ColumnNames": "whitelab.datasets",
    "load_labelled": "whitelab.datasets",
    "Store": "whitelab.store.embedding_store",
    "LayerEmbeddings": "whitelab.encoding.embeddings",
    "LayerRows": "whitelab.encoding.embeddings",
    "Encoder": "whitelab.encoding.encoders",
    "embed": "whitelab.encoding.embed",
    "embed_pairs": "whitelab.encoding.embeddings",
    "embed_scope": "whitelab.encoding.embeddings",
    "embed_corpus": "whitelab.corpus.embedding",
    "corpus_rows": "whitelab.corpus.fitting",
    "fit_corpus": "whitelab.corpus.fitting",
    "scope_text": "whitelab.scoring.fit_text",
    "load_encoder": "whitelab.encoding.encoders",
    "Setting": "whitelab.scoring.setting",
    "Protocol": "whitelab.scoring.setting",
    "Score": "whitelab.scoring.score",
    "score": "whitelab.scoring.score",
    "read_either": "whitelab.encoding.precomputed",
    "read_vectors": "whitelab.encoding.precomputed",
    "paired": "whitelab.scoring.paired",
    "calibrate": "whitelab.scoring.calibration",
    "RandomCosines": "whitelab.statistics.random_cosines",
    "layer_gains": "whitelab.sweeps.layer_gains",
    "layer_pairs": "whitelab.sweeps.layer_pairs",
    "SubsetSearch": "whitelab.sweeps.layer_subsets",
    "k_controls": "whitelab.sweeps.controls",
    "k_curve": "whitelab.sweeps.dimensions",
    "k_curves": "whitelab.sweeps.dimensions",
    "pair_curves": "whitelab.sweeps.dimensions",
    "cones": "whitelab.sweeps.cone",
    "shape": "whitelab.sweeps.layer_profiles",
    "cosine_sample": "whitelab.sweeps.layer_profiles",
    "projected": "whitelab.sweeps.layer_profiles",
    "losses": "whitelab.sweeps.layer_profiles",
    "layer_shapes": "whitelab.sweeps.layer_profiles",
    "layer_losses": "whitelab.sweeps.layer_profiles",
    "measures": "whitelab.sweeps.layer_measures",
    "layer_measures": "whitelab.sweeps.layer_measures",
    "layer_similarity": "whitelab.sweeps.layer_measures",
    "norm_correlations": "whitelab.sweeps.layer_measures",
    "neighbourhood": "whitelab.sweeps.layer_measures",
    "nearest_to": "whitelab.sweeps.layer_measures",
    "hub_remedies": "whitelab.sweeps.layer_measures",
    "search_subsets": "whitelab.sweeps.layer_subsets",
    "project": "whitelab.statistics.projection",
    "OBJECTIVES": "whitelab.training.objectives",
    "Objective": "whitelab.training.objectives",
    "WhiteningTransformer": "whitelab.whitening.estimator",
    "SearchPlan": "whitelab.retrieval.search_cost",
    "search_costs": "whitelab.retrieval.search_cost",
    "load_retrieval": "whitelab.datasets",
    "Upload": "whitelab.datasets",
    "embed_retrieval": "whitelab.retrieval.embedded",
    "for_documents": "whitelab.retrieval.embedded",
    "retrieve": "whitelab.retrieval.relevance",
    "retrieval_curve": "whitelab.retrieval.relevance",
    "calibrate_search": "whitelab.retrieval.calibration",
    "Code": "whitelab.retrieval.compression",
    "frontier": "whitelab.retrieval.frontier",
    "TrainConfig": "whitelab.training",
    "train": "whitelab.training",
    "probes": "whitelab.probe",
    "advise_pairs": "whitelab.advice",
    "advise_search": "whitelab.advice",
    "advise_texts": "whitelab.advice",
    "advise_sentences": "whitelab.advice",
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
