"""Every command: its summary, what adds its options to a parser, and what runs it."""

from whitelab.cli import (
    app,
    compare,
    datasets,
    download,
    embed,
    geometry,
    kcurve,
    layers,
    models,
    probe,
    score,
    train,
    whiten,
)

COMMANDS = {
    "models": ("list the models that can be used", models.add_options, models.run),
    "datasets": ("list the tasks a folder or file holds", datasets.add_options, datasets.run),
    "download": ("fetch a published benchmark, after its licence was shown", download.add_options, download.run),
    "embed": ("embed a task's sentences in every layer and keep them", embed.add_options, embed.run),
    "score": ("Spearman of one setting", score.add_options, score.run),
    "layers": ("Spearman of every pair of layers, or of every subset", layers.add_options, layers.run),
    "kcurve": ("Spearman for every number of kept dimensions", kcurve.add_options, kcurve.run),
    "geometry": ("isotropy, alignment and uniformity of every layer", geometry.add_options, geometry.run),
    "compare": ("models, settings and tasks side by side, as in the papers' tables", compare.add_options, compare.run),
    "probe": (
        "classification beyond STS: neighbours, a linear probe, SentEval, a threshold",
        probe.add_options,
        probe.run,
    ),
    "whiten": ("fit a map and export it to another tool", whiten.add_options, whiten.run),
    "train": ("train an encoder without labels, a result a step", train.add_options, train.run),
    "app": ("open the laboratory in a browser", app.add_options, app.run),
}
