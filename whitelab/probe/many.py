"""Every setting on every task by every model, each score as it is made, beside what papers print."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from whitelab.base.progress import Progress, silent
from whitelab.compare import AVERAGE, tried
from whitelab.compare.published import ACCURACY, PrintedRow, lookup
from whitelab.datasets import LabelledTexts
from whitelab.encoding.embed import EmbedReport, embed
from whitelab.encoding.embeddings import LayerRows
from whitelab.encoding.encoders import Encoder, load_encoder
from whitelab.probe.options import FITS, How, usual
from whitelab.probe.rows import occurrences
from whitelab.probe.scores import ProbeScore
from whitelab.probe.scoring import probe
from whitelab.scoring.fit_text import fit_rows
from whitelab.scoring.setting import Setting, parse_settings
from whitelab.store.embedding_store import Store

DEFAULT = "L-1;L-1:pca;L1+L-1;L1+L-1:pca"


def embed_texts(
    encoder: Encoder,
    data: LabelledTexts,
    pooling: str = "mean",
    *,
    store: Store | None = None,
    progress: Progress = silent,
) -> tuple[LayerRows, EmbedReport]:
    """Every unique text of `data` in all layers, counted as often as it occurs. Raises as `embed`."""
    values, report = embed(encoder, data.sentences, pooling, store=store, progress=progress)
    counts = torch.bincount(occurrences(data, np.arange(data.n_rows)), minlength=len(data.sentences))
    return LayerRows(values, counts.to(torch.float64)), report


def probes(
    models: Sequence[str],
    tasks: Iterable[LabelledTexts],
    settings: str = DEFAULT,
    how: How | Sequence[How] | None = None,
    *,
    store: Store | None = None,
    dtype: str = "float32",
    max_length: int | None = None,
    num_layers: int | None = None,
    allow_bin: bool = False,
    progress: Progress = silent,
) -> Iterator[ProbeScore]:
    """Every score as it is made: by model, then task, then setting; after SentEval's tasks their average.

    `how` is one for all tasks or one for each; None is each task's usual classifier. What goes wrong with a
    model, a task or a setting is said in its scores, and the others go on. `progress(done, total)` counts models x
    tasks. Raises ValueError where `models` is one name.
    """
    if isinstance(models, str):
        raise ValueError(f"models={models!r} must be a list of names, such as [{models!r}]")
    tasks = list(tasks)
    for row in parse_settings(settings, 1):
        if (row.fit, row.aggregate) != ("task", "all"):
            raise ValueError(
                f"setting={str(row)!r} must leave fit and aggregate out: the probe's own fit says the first"
            )
    hows = [How(usual(data)) for data in tasks] if how is None else how
    hows = [hows] * len(tasks) if isinstance(hows, How) else hows
    options = {"dtype": dtype, "max_length": max_length, "num_layers": num_layers, "allow_bin": allow_bin}
    for number, name in enumerate(models):
        encoder = tried(lambda name=name: load_encoder(name, **options))
        scores: list[ProbeScore] = []
        for turn, (data, own) in enumerate(zip(tasks, hows, strict=True)):
            if isinstance(encoder, str):
                found = [_lost(name, one, data, own, encoder) for one in parse_settings(settings, 1)]
                scores += found
                yield from found
            else:
                for score in _task(encoder, data, parse_settings(settings, encoder.n_layers), own, store):
                    scores.append(score)
                    yield score
            progress(number * len(tasks) + turn + 1, len(models) * len(tasks))
        if len(tasks) > 1 and all(data.layout == "senteval" for data in tasks):
            yield from averages(scores)


def _task(encoder: Encoder, data: LabelledTexts, settings, how: How, store: Store | None) -> Iterator[ProbeScore]:
    embedded_in: dict[str, tuple[LayerRows, EmbedReport] | str] = {}
    corpora: dict[str, LayerRows | str | None] = {}
    for setting in settings:
        pooling = setting.pooling
        sized = tried(partial(setting.sized, encoder.n_layers, encoder.dim))  # before its texts are embedded
        if isinstance(sized, str):
            yield _lost(encoder.name, setting, data, how, sized)
            continue
        if pooling not in embedded_in:
            embedded_in[pooling] = tried(lambda p=pooling: embed_texts(encoder, data, p, store=store))
        needs = how.fit not in FITS and setting.fits
        if needs and pooling not in corpora:
            embedded = partial(_embedded, encoder, pooling, store)
            corpora[pooling] = tried(partial(fit_rows, how.fit, embedded))
        made, corpus = embedded_in[pooling], corpora.get(pooling) if needs else None
        missing = next((one for one in (made, corpus) if isinstance(one, str)), None)
        if missing:
            yield _lost(encoder.name, setting, data, how, missing)
        else:
            space, report = made
            found = tried_probe(space, data, setting, how, encoder.name, corpus)
            found = replace(found, truncated=report.truncated, max_length=encoder.max_length)
            yield with_published(found, encoder.n_layers, data, how)


def _embedded(encoder: Encoder, pooling: str, store: Store | None, sentences: tuple[str, ...]) -> torch.Tensor:
    return embed(encoder, sentences, pooling, store=store)[0]


def tried_probe(
    space: LayerRows,
    data: LabelledTexts,
    setting: Setting,
    how: How,
    model: str,
    corpus: LayerRows | None = None,
    progress: Progress = silent,
) -> ProbeScore:
    """`probe`, or a score that is None with the reason."""
    found = tried(lambda: probe(space, data, setting, how, model=model, corpus=corpus, progress=progress))
    return _lost(model, setting, data, how, found) if isinstance(found, str) else found


def _lost(model: str, setting: Setting, data: LabelledTexts, how: How, reason: str) -> ProbeScore:
    return ProbeScore(model, setting, data.task, how.classifier, None, reason=reason)


def with_published(score: ProbeScore, n_layers: int, data: LabelledTexts, how: How) -> ProbeScore:
    """The score with what a paper prints for the same model (of `n_layers`), setting and task; raw only."""
    if data.layout != "senteval" or how.on(data) != "senteval" or score.setting.whitening != "none":
        return score
    wanted = PrintedRow.of(score.setting.pooling, score.setting.numbers(n_layers), "none")
    found = lookup(score.model, wanted, data.task.lower(), n_layers - 1, unit=ACCURACY)
    return replace(score, published=found[0]) if found else score


def averages(scores: Sequence[ProbeScore]) -> Iterator[ProbeScore]:
    """Of each setting of one model the plain mean over its tasks, as WhitenedCSE's Table 2 prints it."""
    for setting in dict.fromkeys(one.setting for one in scores):
        own = [one for one in scores if one.setting == setting]
        missing = [one.task for one in own if one.accuracy is None]
        mean = None if missing else math.fsum(one.accuracy for one in own) / len(own)
        yield ProbeScore(
            own[0].model,
            setting,
            AVERAGE,
            own[0].classifier,
            mean,
            protocol=f"mean over {', '.join(one.task for one in own)}",
            reason=f"no score for {', '.join(missing)}" if missing else "",
        )
