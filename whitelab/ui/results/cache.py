"""What pages may ask for: embeddings through a job, results through st.cache_data.

Every argument of a cached function is part of its key, so they are small: the key of the embeddings and the
knobs. The embeddings themselves are shared by all visitors and never copied.
"""

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st

from whitelab import datasets
from whitelab import probe as probing
from whitelab.base.wording import spaced
from whitelab.compare import Setting
from whitelab.datasets import ColumnNames, DataError, LabelledTexts, SentencePairs
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows, embed_pairs, embed_scope
from whitelab.encoding.encoders import EmbedReport
from whitelab.figures import wrapped
from whitelab.probe import How, ProbeScore
from whitelab.retrieval.search_cost import SearchCosts, search_costs
from whitelab.scoring import score as evaluate
from whitelab.scoring.fit_scopes import OWN, fit_scope
from whitelab.scoring.paired import Paired, paired
from whitelab.scoring.score import Protocol, Score
from whitelab.statistics import geometry, linalg
from whitelab.statistics.projection import METHODS, project
from whitelab.statistics.significance import Move, moved
from whitelab.store.embedding_store import Store
from whitelab.sweeps import dimensions
from whitelab.sweeps import layer_pairs as layers_module
from whitelab.sweeps import layer_profiles as profiles_module
from whitelab.sweeps import layer_subsets as subsets
from whitelab.ui.results.files import file_stamp
from whitelab.ui.results.jobs import QUICK_SECONDS, Job, claim, jobs, wait
from whitelab.ui.sidebar import own_data
from whitelab.ui.sidebar.model import encoder
from whitelab.ui.sidebar.workspace import Workspace
from whitelab.whitening import Whitener, export

IMAGE_SIZE = 256  # pixels of a covariance image, at most


@dataclass(frozen=True, eq=False)
class Opened:
    """The task of a workspace, embedded: `key` names it, and the text its maps are fitted on, in every cache.

    `corpus` is that text where it is not the task's own; `own` says that a visitor has brought the task.
    """

    key: str
    pairs: SentencePairs
    space: LayerEmbeddings
    report: EmbedReport
    device: str
    corpus: LayerRows | None = None
    own: bool = False

    @cached_property
    def rows(self) -> LayerRows:
        """The task's sentences as a text to fit on, with the moments it keeps."""
        return LayerRows(self.space.values, self.space.counts)


@st.cache_resource(max_entries=16, show_spinner=False)
def pairs_of(data: str, task: str, split: str, keep_going: bool, stamp: float) -> SentencePairs:
    """A task's pairs; `stamp` is the files' time, so a changed file is read again."""
    return datasets.load(data, task, split, keep_going=keep_going)


def open_space(workspace: Workspace) -> Opened | None:
    """The workspace's embeddings; None after drawing the progress of the job that makes them.

    Raises DataError when the data cannot be read.
    """
    if workspace.given:
        return _given(workspace)
    pairs, own = chosen_pairs(workspace), workspace.own is not None
    key = embed_key(workspace, workspace.task, pairs)

    def work(progress) -> Opened:
        model = encoder(workspace.model, workspace.dtype, workspace.allow_bin)
        space, report = embed_pairs(model, pairs, workspace.pooling, store=Store(), progress=progress)
        return Opened(key, pairs, space, report, model.device, own=own)

    # Others who wait read the title.
    named = "an upload" if own else workspace.task
    title = f"Embedding {spaced(len(pairs.sentences))} sentences of {named}"
    opened = wait(jobs().submit(key, title, work, "tokens"), key="embed", height=170)
    return opened if opened is None or workspace.fit in OWN else _with_corpus(workspace, opened)


def embed_key(workspace: Workspace, task: str, pairs: SentencePairs) -> str:
    """What names the embeddings of one task under the workspace's model, type and pooling."""
    own = (workspace.own.key,) if workspace.own else ()
    return "embed/" + "/".join((workspace.model_key, workspace.dtype, workspace.pooling, task, pairs.fingerprint, *own))


def chosen_pairs(workspace: Workspace) -> SentencePairs:
    """The workspace's pairs. Raises DataError."""
    if workspace.own is not None:
        return workspace.own.pairs
    return pairs_of(workspace.data, workspace.task, workspace.split, workspace.keep_going, workspace.stamp)


def _given(workspace: Workspace) -> Opened:
    """Vectors a visitor has brought, where every page looks for embeddings."""
    own = workspace.own
    key = own_data.vectors_key(own)
    opened = Opened(key, own.pairs, own.vectors.space, EmbedReport(0, 0, 0, 0.0), "", own=True)
    return jobs().hold(key, "An upload of vectors", opened).result


def _with_corpus(workspace: Workspace, opened: Opened) -> Opened | None:
    """`opened` with the embedded text of the fit scope; None after drawing the job that makes it."""
    parts = (workspace.model_key, workspace.dtype, workspace.pooling, workspace.fit_key)
    key = "fit/" + "/".join(parts) + "/lenient" * workspace.keep_going
    uploaded = own_data.fit_text(workspace.fit_key)  # here, because it lies in this visitor's session

    def work(progress) -> LayerRows:
        text = uploaded[2] if uploaded else workspace.fit_text()
        model = encoder(workspace.model, workspace.dtype, workspace.allow_bin)
        return embed_scope(model, text, workspace.pooling, store=Store(), progress=progress)

    named = {"splits": "all splits"}.get(workspace.fit, workspace.fit)
    named = "uploaded text" if uploaded else named
    job = jobs().submit(key, f"Embedding {named}, to fit on", work, "tokens")
    if job.join(QUICK_SECONDS - job.age) and isinstance(job.error, DataError):
        jobs().forget(key)  # pages say it in their own words, and the next run reads the text anew
        raise job.error
    rows = wait(job, key="fit-text", height=170)
    return None if rows is None else replace(opened, key=opened.key + _AND + key, corpus=rows)


_AND = "\n"  # between the key of the task's embeddings and that of the fit text


def _result(key: str):
    job = jobs().get(key)
    if job is None or job.state != "done":
        raise LookupError("the embeddings were let go; reload the page")
    return job.result


def _space(key: str) -> LayerEmbeddings:
    return _result(key.partition(_AND)[0]).space


def _corpus(key: str) -> LayerRows | None:
    fit_key = key.partition(_AND)[2]
    return _result(fit_key) if fit_key else None


@st.cache_data(max_entries=2000, show_spinner=False)
def score(key: str, protocol: Protocol) -> Score:
    """`score.score` of the embeddings `key`."""
    return evaluate.score(_space(key), protocol, _corpus(key))


@st.cache_data(max_entries=100, show_spinner=False)
def paired_scores(key: str, protocols: tuple[Protocol, ...]) -> Paired:
    """`paired.paired` of the scores of `protocols`, in one bootstrap."""
    return paired(_space(key), [score(key, one) for one in protocols])


@st.cache_resource(max_entries=100, show_spinner=False)
def moves(key: str, before: Protocol, after: Protocol) -> tuple[Move, ...]:
    """`significance.moved` of all pairs between two protocols."""
    gold = _space(key).gold
    return moved(score(key, before).cosines, score(key, after).cosines, gold, len(gold))


@dataclass(frozen=True, eq=False)
class Spread:
    """A covariance: as an image of means of `block` x `block` entries, and its eigenvalues, descending.

    `limit` is where the colours of the image end: at the median variance, or above it at what 99 of 100 pixels
    stay below.
    """

    image: np.ndarray
    block: int
    limit: float
    eigenvalues: tuple[float, ...]


@st.cache_data(max_entries=60, show_spinner=False)
def spread(key: str, layers: tuple[int, ...], variant: str, k: int | None, fit: str) -> Spread:
    """The covariance of the task's sentences after `variant`."""
    matrix = profiles_module.covariance(_space(key), layers, variant, k, fit, _corpus(key))
    reduced, block = geometry.block_means(matrix, IMAGE_SIZE)
    image = reduced.numpy().astype(np.float32)
    limit = max(np.percentile(np.abs(image), 99), np.median(image.diagonal())) if image.size else 1.0
    return Spread(image, block, float(limit) or 1.0, tuple(linalg.eigenvalues(matrix).tolist()))


@st.cache_data(max_entries=8, show_spinner=False)
def hover_sentences(key: str, drawn: np.ndarray) -> list[str]:
    """Both sentences of the pairs `drawn`, escaped and wrapped for hover labels."""
    pairs = _result(key.partition(_AND)[0]).pairs
    return [f"{wrapped(pairs.first[i])}<br><br>{wrapped(pairs.second[i])}<br>" for i in drawn.tolist()]


@st.cache_data(max_entries=200, show_spinner=False)
def k_curve(key: str, layers: tuple[int, ...], variant: str, aggregate: str, fit: str) -> dimensions.KCurve:
    """`dimensions.k_curve`, with one curve a subset."""
    return dimensions.k_curve(_space(key), layers, variant, aggregate, fit=fit, corpus=_corpus(key))


@st.cache_data(max_entries=200, show_spinner=False)
def profile(
    key: str, layers: tuple[int, ...], variant: str, k: int | None, positives: str, aggregate: str, fit: str
) -> profiles_module.Profile:
    """`layer_profiles.profile` of one combination of layers."""
    return profiles_module.profile(_space(key), layers, variant, k, positives, aggregate, fit, _corpus(key))


@st.cache_data(max_entries=200, show_spinner=False)
def cosine_sample(key: str, layers: tuple[int, ...], variant: str, k: int | None, fit: str) -> np.ndarray:
    """Cosines of random pairs of different sentences."""
    space = _space(key)
    z, _ = profiles_module.transformed(space, layers, variant, k, fit, _corpus(key))
    return geometry.cosine_sample(z, space.counts).numpy()


def layer_pairs(key: str, variant: str, k: int | None, aggregate: str, fit: str, place: str) -> Job:
    """`layer_pairs.layer_pairs` as the job of a visitor's `place`; what that place asked for before makes way."""
    if variant == "none":  # nothing is fitted
        key, fit = key.partition(_AND)[0], "task"

    def work(progress):
        return layers_module.layer_pairs(_space(key), variant, k, aggregate, progress, fit, _corpus(key))

    job_key = f"pairs/{key}/{variant}/{k}/{aggregate}/{fit}"
    claim(place, job_key)
    return jobs().submit(job_key, "Scoring every pair of layers", work, "cells")


def layer_profiles(
    key: str, variants: Sequence[str], positives: str, aggregate: str, fit: str, name: str
) -> tuple[profiles_module.Profile, ...] | None:
    """`layer_profiles.layer_profiles` as a job; None while it runs."""

    def work(progress):
        return profiles_module.layer_profiles(_space(key), variants, positives, aggregate, progress, fit, _corpus(key))

    job_key = f"profiles/{key}/{'+'.join(variants)}/{positives}/{aggregate}/{fit}"
    return wait(jobs().submit(job_key, "Measuring every layer", work, "settings"), key=name, height=420)


def projected(
    key: str, layers: tuple[int, ...], variant: str, k: int | None, fit: str, method: str, dims: int, name: str
) -> np.ndarray | None:
    """Coordinates of the sentences as a job; None while it runs."""

    def work(progress):
        z, _ = profiles_module.transformed(_space(key), layers, variant, k, fit, _corpus(key))
        return project(z, method, dims, progress=progress).numpy()

    job_key = f"project/{key}/{layers}/{variant}/{k}/{fit}/{method}/{dims}"
    job = jobs().submit(job_key, f"Computing the {METHODS[method]} projection", work, "epochs")
    return wait(job, key=name, height=560)


@dataclass(frozen=True)
class Search:
    """What a measurement of search costs is of: the embeddings `key` and the knobs."""

    key: str
    layers: tuple[int, ...]
    variant: str
    corpus: int
    ks: tuple[int, ...]
    top: int
    fit: str

    @property
    def job_key(self) -> str:
        """The key of its job."""
        return f"search/{self.key}/{self.layers}/{self.variant}/{self.corpus}/{self.ks}/{self.top}/{self.fit}"

    def forget(self) -> None:
        """Let go of a finished job, so that the next call measures again."""
        job = jobs().get(self.job_key)
        if job is not None and job.finished:
            jobs().forget(self.job_key)


def searched(search: Search, name: str, height: int) -> SearchCosts | None:
    """`search_cost.search_costs` as a job; None while it runs."""

    def work(progress):
        space = _space(search.key)
        return search_costs(
            space,
            search.layers,
            search.variant,
            search.ks,
            search.corpus,
            top=search.top,
            progress=progress,
            fit=search.fit,
            text=_corpus(search.key),
        )

    title = f"Searching among {spaced(search.corpus)} vectors"
    return wait(jobs().submit(search.job_key, title, work, "steps"), key=name, height=height)


# Searches over layer subsets, and every k of every layer


def every_task(workspace: Workspace) -> Job:
    """The job that embeds every task of the workspace's data; its result holds the embeddings by task.

    Tasks have the workspace's split where they have it, else test, else their first. Those that are loaded
    already are shared with their own pages.
    """
    found = datasets.discover(workspace.data)
    asked = [(one.name, _split(one.splits, workspace.split), file_stamp(one.files)) for one in found]
    parts = (workspace.data, workspace.model_key, workspace.dtype, workspace.pooling, workspace.keep_going, asked)

    def work(progress) -> dict[str, LayerEmbeddings]:
        pairs = {
            name: pairs_of(workspace.data, name, split, workspace.keep_going, stamp) for name, split, stamp in asked
        }
        total, done, spaces = sum(len(one.sentences) for one in pairs.values()), 0, {}
        for name, one in pairs.items():
            known = jobs().get(embed_key(workspace, name, one))
            if known is not None and known.state == "done":
                spaces[name] = known.result.space
            else:
                counted = _share(progress, done, len(one.sentences), total)
                model = encoder(workspace.model, workspace.dtype, workspace.allow_bin)
                spaces[name], _ = embed_pairs(model, one, workspace.pooling, store=Store(), progress=counted)
            done += len(one.sentences)
            progress(done, total)
        return spaces

    return jobs().submit(f"tasks/{parts}", f"Embedding {len(asked)} tasks", work, "sentences")


def joined(tasks_key: str, key: str) -> str:
    """The key of the tasks' embeddings, with the fit text that `key` holds."""
    return tasks_key + "".join(key.partition(_AND)[1:])


def _split(splits: Sequence[str], wanted: str) -> str:
    return next((split for split in (wanted, "test") if split in splits), splits[0])


def _share(progress, before: int, part: int, total: int):
    """A callback for one part of the work, which reports to the callback of the whole."""
    return lambda done, of: progress(before + (part * done // of if of else 0), total)


def subset_search(key: str, variant: str, k: int | None, aggregate: str, fit: str, place: str) -> Job:
    """`layer_subsets.stream` as the job of a visitor's `place`: what it has found so far is its partial result.

    `key` names the embeddings of one task, or those of several that `every_task` has made.
    """
    if variant == "none":  # nothing is fitted
        key, fit = key.partition(_AND)[0], "task"

    def work(progress):
        spaces = _result(key.partition(_AND)[0])
        spaces = {spaces.pairs.task: spaces.space} if isinstance(spaces, Opened) else spaces
        settings = {"progress": progress, "every": 0.5, "fit": fit, "corpus": _corpus(key)}
        yield from subsets.stream(spaces, "all", variant, k, aggregate, **settings)

    job_key = f"subsets/{key}/{variant}/{k}/{aggregate}/{fit}"
    claim(place, job_key)
    return jobs().submit(job_key, "Scoring subsets of layers", work, "subsets")


def layer_curves(key: str, variant: str, aggregate: str, fit: str, place: str) -> Job:
    """One `dimensions.k_curve` for each layer alone, as the job of a visitor's `place`; grows layer by layer."""

    def work(progress):
        space, corpus, curves = _space(key), _corpus(key), ()
        for layer in range(space.n_layers):
            curves += tuple(
                dimensions.k_curves(space, [(layer,)], variant, aggregate, by_subset=False, fit=fit, corpus=corpus)
            )
            yield curves
            progress(len(curves), space.n_layers)

    job_key = f"curves/{key}/{variant}/{aggregate}/{fit}"
    claim(place, job_key)
    return jobs().submit(job_key, "Scoring every k of every layer", work, "layers")


# ------------------------------------------------------------------------------------------------ exports


def one_map(opened: Opened, protocol: Protocol) -> Whitener:
    """The map of a protocol whose scope fits only one."""
    settings = (protocol.layers, protocol.whitening, protocol.k, protocol.fit)
    (whitener,) = fit_scope(opened.space, *settings, opened.corpus).whiteners
    return whitener


@dataclass(frozen=True, eq=False)
class ModelZip:
    """A packed model folder, in a folder of its own that is removed together with this object."""

    home: tempfile.TemporaryDirectory
    path: Path

    @property
    def nbytes(self) -> int:
        """What it takes on disk."""
        return self.path.stat().st_size


def model_key(opened: Opened, protocol: Protocol) -> str:
    """The key of the job that writes a model folder."""
    return f"export/{opened.key}/{protocol}"


def model_zip(
    workspace: Workspace, opened: Opened, protocol: Protocol, record: dict, stem: str, name: str
) -> ModelZip | None:
    """`export.to_sentence_transformers` and its .zip as a job; None while it runs."""

    def work(progress) -> ModelZip:
        model = encoder(workspace.model, workspace.dtype, workspace.allow_bin)
        home = tempfile.TemporaryDirectory(prefix="whitelab-")
        folder, packed = Path(home.name) / stem, Path(home.name) / f"{stem}.zip"
        progress(0, 2)
        whitener = one_map(opened, protocol)
        export.to_sentence_transformers(folder, model, protocol.layers, protocol.pooling, whitener, record)
        progress(1, 2)
        export.zip_folder(folder, packed)
        shutil.rmtree(folder)
        return ModelZip(home, packed)

    job = jobs().submit(model_key(opened, protocol), "Writing the model folder", work, "steps")
    return wait(job, key=name, height=170)


# ------------------------------------------------------------------------------------------------- probes


@st.cache_resource(max_entries=16, show_spinner=False)
def labelled(
    data: str, task: str, columns: ColumnNames, positive: str | None, keep_going: bool, stamp: float
) -> LabelledTexts:
    """A labelled task's rows; `stamp` is the files' time, so a changed file is read again."""
    return datasets.load_labelled(data, task, columns=columns, positive=positive, keep_going=keep_going)


@dataclass(frozen=True, eq=False)
class Texts:
    """Embedded labelled texts: `key` names them in every cache."""

    key: str
    data: LabelledTexts
    space: LayerRows
    model: str


def open_texts(workspace: Workspace, data: LabelledTexts) -> Texts | None:
    """The embeddings of labelled texts under the workspace's model; None after drawing the job that makes them."""
    own = st.session_state.get("labelled") == own_data.UPLOADED
    parts = (workspace.model_key, workspace.dtype, workspace.pooling, data.task, data.fingerprint)
    key = "texts/" + "/".join((*parts, own_data.secret()) if own else parts)

    def work(progress) -> Texts:
        model = encoder(workspace.model, workspace.dtype, workspace.allow_bin)
        space = probing.embed_texts(model, data, workspace.pooling, store=Store(), progress=progress)
        return Texts(key, data, space, model.name)

    title = f"Embedding {spaced(len(data.sentences))} texts of {'an upload' if own else data.task}"
    return wait(jobs().submit(key, title, work, "tokens"), key="texts", height=170)


def probed(texts: Texts, settings: Sequence[Setting], how: How, opened: Opened | None, place: str) -> Job:
    """`probe.probe` of each setting as the job of a visitor's `place`; grows score by score.

    `opened` holds the workspace's embeddings where the maps are fitted on its sentences. Scores that any place has
    asked for before are taken from there.
    """
    fitted = opened.key.partition(_AND)[0] if opened else ""
    rows = _result(fitted).rows if opened else None
    stem = f"probe/{texts.key}/{how}/{fitted}"

    def scored(setting: Setting, progress) -> ProbeScore:
        key = f"{stem}/{setting}"
        known = jobs().get(key)
        if known is not None:
            return known.result
        score = probing.tried_probe(texts.space, texts.data, setting, how, texts.model, rows, progress)
        score = probing.with_published(score, texts.space.n_layers, texts.data, how)
        return jobs().hold(key, "A score of a probe", score).result

    def work(progress):
        found: tuple[ProbeScore, ...] = ()
        for number, setting in enumerate(settings):
            found += (scored(setting, _share(progress, number, 1, len(settings))),)
            yield found
            progress(len(found), len(settings))

    job_key = f"{stem}/all/{'+'.join(map(str, settings))}"
    claim(place, job_key)
    return jobs().submit(job_key, "Probing", work, "settings")


BEST = "font-weight: bold; background-color: rgba(46, 134, 209, 0.22)"


def marked_best(records: list[dict], names: Sequence[str]):
    """A table whose highest number of each column, as printed, stands out; ties all do."""
    table = pd.DataFrame(records)

    def bold(column: pd.Series) -> list[str]:
        shown = pd.to_numeric(column).round(2)
        return [BEST if value == shown.max() else "" for value in shown]

    return table.style.apply(bold, subset=list(names)) if names else table
