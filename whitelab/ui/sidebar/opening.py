"""From what the bar says to a space on the shelf: the task's pairs, embedded, carrying the text a map is fitted on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from whitelab import datasets
from whitelab.base.progress import Progress, part_of
from whitelab.base.wording import quantity
from whitelab.corpus.fitting import CORPUS, corpus_rows
from whitelab.datasets import DataError, LabelledTexts, RetrievalSet, SentencePairs
from whitelab.encoding.embed import EmbedReport
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows, MeasuredRows, embed_pairs, embed_scope
from whitelab.encoding.pooling import UNIT
from whitelab.scoring.fit_scopes import folds
from whitelab.scoring.fit_text import scope_text
from whitelab.scoring.setting import EVERY, TOKENS, Setting
from whitelab.store.embedding_store import Store
from whitelab.ui.results.files import file_stamp
from whitelab.ui.results.shelf import shelf, shelved
from whitelab.ui.results.study import study_job
from whitelab.ui.results.worker import Job
from whitelab.ui.sidebar import own_data
from whitelab.ui.sidebar.data import pairs_of
from whitelab.ui.sidebar.model import Picked
from whitelab.ui.sidebar.workspace import Workspace


@dataclass(frozen=True, eq=False)
class Opened:
    """The task of a workspace, embedded: `space` is on the shelf and carries the text its maps are fitted on.

    `own` says that a visitor has brought the task.
    """

    pairs: SentencePairs
    space: LayerEmbeddings
    report: EmbedReport
    device: str
    own: bool = False

    @property
    def rows(self) -> LayerRows:
        """The task's sentences as a text to fit on."""
        space = self.space
        rows = space.kept("rows", lambda: LayerRows(space.values, space.counts))
        return shelf().call(rows, f"{shelf().name(space)}/rows")


def chosen_pairs(workspace: Workspace) -> SentencePairs:
    """The workspace's pairs. Raises DataError."""
    if workspace.own is not None:
        return workspace.own.pairs
    data = workspace.data
    return pairs_of(data.source, data.task, data.split, data.lenient, data.stamp)


def open_space(workspace: Workspace) -> Opened | None:
    """The workspace's embeddings; None after drawing the progress of the job that makes them.

    Raises DataError when the data, or the text of the fit scope, cannot be read, and when pairs cannot be halved.
    """
    opened, fit = _open_task(workspace), workspace.setting.fit
    if opened is None or fit in ("task", TOKENS, EVERY):
        return opened
    if fit != "cross":
        return _with_fit_text(workspace, opened)
    try:
        folds(opened.space, fit)
    except ValueError as error:
        raise DataError(f"Cross-fitting is not possible here: {error}") from None
    return opened


def _open_task(workspace: Workspace) -> Opened | None:
    own = workspace.own
    if workspace.given:
        space = shelf().call(own.vectors.space, own_data.vectors_name(own))
        return Opened(own.pairs, space, EmbedReport(0, 0, (), 0.0), "", own=True)
    pairs = chosen_pairs(workspace)
    # Others who wait read the title.
    title = f"Embedding {quantity(len(pairs.sentences), 'sentence')} of {'an upload' if own else workspace.data.task}"
    name = task_name(workspace, workspace.data.task, pairs)
    return shelved(name, title, lambda progress: _embed(workspace, pairs, name, progress), "tokens", key="embed")


def beside(workspace: Workspace, other: Picked) -> Workspace:
    """The workspace with another model; where that does not know the workspace's pooling, its own first is taken."""
    setting = workspace.setting
    known = setting.pooling.removeprefix(UNIT) in other.poolings
    pooling = setting.pooling if known else other.poolings[0]
    return replace(workspace, model=other, setting=setting.with_(pooling=pooling))


def _embed(workspace: Workspace, pairs: SentencePairs, name: str, progress: Progress) -> Opened:
    model = workspace.encoder()
    space, report = embed_pairs(model, pairs, workspace.setting.pooling, store=Store(), progress=progress)
    return Opened(pairs, shelf().call(space, f"{name}/space"), report, model.device, workspace.own is not None)


def task_name(workspace: Workspace, task: str, pairs: SentencePairs) -> str:
    """What names the embeddings of one task under the workspace's model, type and pooling."""
    own = (workspace.own.key,) if workspace.own else ()
    return "task/" + "/".join((*workspace.embeds_by, task, pairs.fingerprint, *own))


def shelved_texts(
    workspace: Workspace, data: LabelledTexts | RetrievalSet, own: bool, work: Callable[[Progress], Any], *, key: str
) -> Any | None:
    """What `work` makes of texts under the workspace's model, as `shelved`; of a visitor's `own`, for nobody else."""
    secret = (own_data.secret(),) if own else ()
    name = "/".join((key, *workspace.embeds_by, data.task, data.fingerprint, *secret))
    title = f"Embedding {quantity(len(data.sentences), 'text')} of {'an upload' if own else data.task}"
    return shelved(name, title, work, "tokens", key=key)


def _with_fit_text(workspace: Workspace, opened: Opened) -> Opened | None:
    """`opened`, its space carrying the embedded text of the fit scope; None after drawing the job that makes it."""
    fit = workspace.setting.fit
    name = "text/" + "/".join((*workspace.embeds_by, workspace.fit_key)) + "/lenient" * workspace.data.lenient
    uploaded = own_data.fit_text(workspace.fit_key)  # here, because it lies in this visitor's session

    def work(progress: Progress) -> LayerRows | MeasuredRows:
        data = workspace.data
        if fit.startswith(CORPUS) and not uploaded:  # whose file may be called so
            return corpus_rows(fit.removeprefix(CORPUS))
        text = uploaded[2] if uploaded else scope_text(fit, data.source, data.task, data.lenient)
        return embed_scope(workspace.encoder(), text, workspace.setting.pooling, store=Store(), progress=progress)

    title = "uploaded text" if uploaded else "all splits" if fit == "splits" else fit
    rows = shelved(name, f"Embedding {title}, to fit on", work, "tokens", key="fit-text")
    if rows is None:
        return None
    try:
        space = _carrying(opened.space, fit, rows)
        if isinstance(rows, MeasuredRows):
            rows.moments(workspace.setting.numbers(rows.n_layers))
    except ValueError as error:  # a corpus of another model, pooling or layer
        raise DataError(str(error)) from None
    return replace(opened, space=space)


def _carrying(space: LayerEmbeddings, fit: str, rows: LayerRows | MeasuredRows) -> LayerEmbeddings:
    return shelf().call(space.with_text(fit, rows), f"{shelf().name(space)}+{shelf().name(rows)}")


def every_task(workspace: Workspace, fitted: LayerEmbeddings) -> Job:
    """The job that embeds every task of the workspace's data; its result maps tasks to spaces on the shelf.

    Tasks have the workspace's split where they have it, else test, else their first. Those on the shelf already are
    shared with their own pages. Each carries the text that `fitted`, the workspace's own space, carries.
    """
    infos, split = datasets.discover(workspace.data.source), workspace.data.split
    tasks = [(info.name, info.split_like(split), file_stamp(info.files)) for info in infos]
    plain = replace(workspace, setting=Setting(pooling=workspace.setting.pooling), fit_key="task")
    return study_job(_every_task, plain, tasks, fitted, title=f"Embedding {len(tasks)} tasks", unit="sentences")


def _every_task(
    workspace: Workspace, tasks: Sequence[tuple[str, str, str]], fitted: LayerEmbeddings, progress: Progress
) -> dict[str, LayerEmbeddings]:
    data = workspace.data
    loaded = {name: pairs_of(data.source, name, split, data.lenient, stamp) for name, split, stamp in tasks}
    total, done, spaces = sum(len(pairs.sentences) for pairs in loaded.values()), 0, {}
    for task, pairs in loaded.items():
        name, own = task_name(workspace, task, pairs), len(pairs.sentences)
        opened = shelf().get(name)
        if opened is None:
            counted = part_of(progress, done, own, total)
            opened = shelf().put(name, _embed(workspace, pairs, name, counted))
        space = opened.space
        for text, rows in fitted.texts.items():
            space = _carrying(space, text, rows)
        spaces[task] = space
        done += own
        progress(done, total)
    return spaces
