"""Every command: its summary and its module, with `add_options(parser)` and `run(args)`."""

from whitelab.cli import (
    app,
    compare,
    datasets,
    download,
    embed,
    fitsize,
    geometry,
    kcurve,
    layers,
    models,
    probe,
    retrieve,
    score,
    similarity,
    train,
    whiten,
)

COMMANDS = {
    "models": ("list the models that can be used", models),
    "datasets": ("list the tasks a folder or file holds", datasets),
    "download": ("fetch a published benchmark, after its licence was shown", download),
    "embed": ("embed a task's sentences in every layer and keep them", embed),
    "score": ("Spearman of one setting", score),
    "layers": ("Spearman of every pair of layers, or of every subset", layers),
    "kcurve": ("Spearman for every number of kept dimensions", kcurve),
    "fitsize": ("the score by the number of sentences a map is fitted on", fitsize),
    "geometry": ("isotropy, hubs, dimension, alignment and uniformity of every layer", geometry),
    "similarity": ("how alike the layers are, or those of two models, by CKA", similarity),
    "compare": ("models, settings and tasks side by side, as in the papers' tables", compare),
    "probe": ("classification beyond STS: neighbours, a linear probe, SentEval, a threshold", probe),
    "retrieve": ("how well a setting ranks documents that were judged relevant", retrieve),
    "whiten": ("fit a map and export it to another tool", whiten),
    "train": ("train an encoder without labels, a result a step", train),
    "app": ("open the laboratory in a browser", app),
}
