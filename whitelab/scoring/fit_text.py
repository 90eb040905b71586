"""The text of a fit scope (`setting.FIT_SCOPES`): which sentences a map is fitted on that are not the task's own.

`splits`, the name of a file, a folder or a bundled set, or `corpus:FOLDER`, of which moments alone are known.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import torch
from torch import Tensor

from whitelab.corpus.fitting import CORPUS, corpus_rows
from whitelab.corpus.manifest import finished
from whitelab.datasets import DataError, all_published, discover, load_sentences, load_text
from whitelab.datasets.layouts import BUNDLED_SETS, existing_path
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows, MeasuredRows
from whitelab.scoring.setting import FIT_SCOPES, OWN_SENTENCES, TOKENS, Setting, check_is_setting

Embedding = Callable[[tuple[str, ...]], Tensor]  # sentences -> their embeddings in every layer, [l, n, d]


def scope_text(fit: str, data: str, task: str | None, keep_going: bool = False) -> Counter[str]:
    """The sentences a scope other than the task's own fits on, and how often each occurs.

    `splits`: both columns of every split. Otherwise `fit` names a text file (.txt, one sentence a line), a file
    of pairs, triplets or texts, a folder of tasks (all of them, all splits) or `demo`; gold scores and labels are not
    used (`load_sentences`). Raises DataError.
    """
    if fit == TOKENS:
        raise DataError("fit='tokens' names no text: it is for the pairs of a task, under a static: or sif: model")
    if fit.startswith(CORPUS):
        raise DataError(f"fit={fit!r} names no text but its moments: a map of a model's layers can be fitted on them")
    if fit == "splits":
        return _pairs_text(data, task, keep_going)
    if Path(fit).suffix.lower() == ".txt" and not all_published(fit):
        return Counter(load_text(fit))
    counts = Counter()
    for info in discover(fit):
        counts += _pairs_text(fit, info.name, keep_going)
    return counts


def fit_rows(
    fit: str, embed: Embedding, data: str = "", task: str | None = None, keep_going: bool = False
) -> LayerRows | MeasuredRows:
    """The text of a scope (`scope_text`), embedded, each sentence as often as it occurs; of `corpus:FOLDER` what is
    known of it (`corpus_rows`). Raises DataError."""
    if fit.startswith(CORPUS):
        return corpus_rows(fit.removeprefix(CORPUS))
    counts = scope_text(fit, data, task, keep_going)
    return LayerRows(embed(tuple(counts)), torch.tensor(list(counts.values()), dtype=torch.float64))


def with_fit_text(
    space: LayerEmbeddings,
    setting: Setting,
    embed: Embedding,
    data: str = "",
    task: str | None = None,
    keep_going: bool = False,
) -> LayerEmbeddings:
    """`space`, carrying the embedded text of the setting's fit where that is not the task's own sentences."""
    if check_is_setting(setting).fit in (*OWN_SENTENCES, TOKENS):
        return space
    return space.with_text(setting.fit, fit_rows(setting.fit, embed, data, task, keep_going))


def check_text(
    fit: str, data: str, task: str | None, keep_going: bool = False, scopes: Iterable[str] = FIT_SCOPES
) -> None:
    """Raises DataError as `fit_rows` would, before anything is embedded; where nothing is there, with what may be:
    one of the `scopes`, or other text.
    """
    if fit not in (*FIT_SCOPES, *BUNDLED_SETS):
        try:
            existing_path(fit.removeprefix(CORPUS))
        except DataError as error:
            known = ", ".join((*scopes, f"{CORPUS}FOLDER", *BUNDLED_SETS))
            raise DataError(f"fit={fit!r} must be {known} or the path of other text: {error}") from None
    if fit.startswith(CORPUS):
        finished(fit.removeprefix(CORPUS))
    else:
        scope_text(fit, data, task, keep_going)


def _pairs_text(data: str, task: str | None, keep_going: bool) -> Counter[str]:
    splits = next(info.splits for info in discover(data) if task in (None, info.name))
    counts = Counter()
    for split in ("all",) if "all" in splits else splits:
        counts += Counter(load_sentences(data, task, split, keep_going=keep_going))
    return counts
