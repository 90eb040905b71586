"""The workspace bar: the controls that decide what every page shows, kept in the address of the page.

Drawn by app.py before the page, so that its widgets live on every page. Choices come from the registries.
"""

import re
from collections import Counter
from dataclasses import dataclass

import streamlit as st

from whitelab import datasets
from whitelab.base import upload_limits
from whitelab.base.wording import spaced
from whitelab.datasets import DataError, TaskInfo, Upload
from whitelab.datasets.held import PREFIX
from whitelab.datasets.layouts import MEMORY, file_at
from whitelab.encoding.checkpoints import shown_name
from whitelab.encoding.encoders import choose_device, device_name, dtypes_for
from whitelab.encoding.pooling import GIVEN, POOLING_LABELS
from whitelab.scoring import fit_scopes
from whitelab.scoring.setting import Protocol
from whitelab.statistics.correlation import AGGREGATE_LABELS
from whitelab.ui.results.files import file_stamp
from whitelab.ui.sidebar import address, knobs, malformed, model, own_data
from whitelab.ui.sidebar.address import bound
from whitelab.ui.sidebar.model import Picked
from whitelab.ui.sidebar.own_data import UPLOADED, Brought
from whitelab.whitening import WHITENERS, canonical, variant

SLOT = "workspace"  # session_state: the Workspace of this run
LIVE = "live-score"  # session_state: the sidebar's place for the live score


@dataclass(frozen=True)
class Workspace:
    """What the user chose. `k` is None when all dimensions are kept or the variant takes no k.

    `whitening` is a canonical spec. `fit` is the scope as a protocol names it; `fit_key` also tells one content
    of an uploaded or changed file from another. `own` is what the visitor has brought, where that is the data.
    `weights` is the digest of the model's: a model that was trained on keeps its name. `max_length` is where the
    model cuts sentences, in tokens.
    """

    model: str
    data: str
    task: str
    split: str
    keep_going: bool
    pooling: str
    layers: tuple[int, ...]
    whitening: str
    k: int | None
    aggregate: str
    dtype: str
    n_layers: int
    dim: int
    stamp: float
    fit: str = "task"
    fit_key: str = "task"
    allow_bin: bool = False
    own: Brought | None = None
    weights: str = ""
    max_length: int | None = None

    @property
    def model_key(self) -> str:
        """What names the model and its weights in every cache."""
        return f"{self.model}@{self.weights[:16]}"

    @property
    def given(self) -> bool:
        """Whether vectors stand for model and data."""
        return self.own is not None and self.own.vectors is not None

    @property
    def compared(self) -> str:
        """The variant to hold against raw: the chosen one, PCA whitening when that is raw itself."""
        return "pca" if self.whitening == "none" else self.whitening

    def k_for(self, spec: str) -> int | None:
        """The k another variant would have here: None where it takes none."""
        return self.k if variant(spec).takes_k else None

    def spec_of(self, name: str) -> str:
        """A variant by name: the chosen one with its parameters, any other with its defaults."""
        return self.whitening if self.whitening.partition(":")[0] == name else canonical(name)

    def fit_text(self) -> Counter[str]:
        """The sentences of the fit scope, where they are not an upload. Asks no session. Raises DataError."""
        return fit_scopes.scope_text(self.fit, self.data, self.task, self.keep_going)

    def protocol(self, source: str, **changes) -> Protocol:
        """The Protocol of a score in this workspace."""
        base = Protocol(
            model=self.model if self.given else shown_name(self.model),
            data=source,
            task=self.task,
            split=self.split,
            pooling=self.pooling,
            layers=self.layers,
            whitening=self.whitening,
            k=self.k,
            fit=self.fit,
            aggregate=self.aggregate,
            dtype=self.dtype,
            max_length=self.max_length,
        )
        return base.with_(**changes) if changes else base


def draw(page: str) -> None:
    """Draw the bar of `page` and put the Workspace (or None, with the reason on screen) into the session."""
    st.session_state[SLOT] = None
    with st.sidebar, address.of(page):
        st.session_state[LIVE] = st.container()
        place, task = st.container(), _task()
        own = own_data.current() if task is not None and task[1].layout == MEMORY else None
        with place:
            picked = _vectors(own) if own and own.vectors else model.opened(model.choose(), task)
        if picked is not None and task is not None:
            st.session_state[SLOT] = _knobs(picked, *task, own)
        st.caption(f"Computing on {device_name(choose_device())}")


def current() -> Workspace | None:
    """The Workspace of this run, None where model or data cannot be had."""
    return st.session_state.get(SLOT)


def _vectors(own: Brought) -> Picked:
    """Say that vectors stand for a model; what was chosen of one is kept for later."""
    for key in ("model", "pooling", "dtype"):
        if key in st.session_state:
            st.session_state[key] = st.session_state[key]
    with st.container(border=True):
        st.markdown("**Model**")
        st.caption(f"The vectors of {plain(own.pairs.source)} stand for a model. Choose other data to choose a model.")
    return Picked(own.vectors.name, False, own.vectors.n_layers, own.vectors.space.dim, (GIVEN,))


def _task() -> tuple[str, TaskInfo, str, bool] | None:
    own, state = own_data.current(), st.session_state
    gone = state.pop("data-gone", False)
    if gone:
        state["data"] = "demo"
    data = st.selectbox(
        "Data",
        ["demo", UPLOADED] if own else ["demo"],
        **({"key": "data"} if gone else bound("data", "demo")),  # unbound, it takes what is gone out of the address
        accept_new_options=True,
        on_change=lambda: state.pop(own_data.LOST, None),
        format_func=lambda name: {"demo": "Demonstration set (bundled)", UPLOADED: own_data.LABEL}.get(name, name),
        help="Type the path of a folder or file: STS in the WhiteningBERT layout, STS-B CSV, SICK, or any CSV, TSV, "
        "JSON, JSONL or Parquet with two text columns and one score. To upload a file, go to the Data page.",
    )
    data = data or "demo"
    if data in (UPLOADED, own_data.LABEL) or data.startswith(PREFIX):
        if own is not None:
            return own.key, own.task, "all", False
        state[own_data.LOST] = state["data-gone"] = True
        st.rerun()
    try:
        tasks = {task.name: task for task in datasets.discover(data)}
    except DataError as error:
        st.error(str(error))
        return None
    name = next(iter(tasks))
    if len(tasks) > 1:
        name = st.selectbox("Task", list(tasks), **bound("task", name)) or name
    task = tasks[name]
    split = "test" if "test" in task.splits else task.splits[0]
    if len(task.splits) > 1:
        split = st.selectbox("Split", task.splits, index=task.splits.index(split), **bound("split", split)) or split
    keep = st.session_state.get("keep") is True
    if keep or malformed.found(data):
        keep = st.checkbox("Leave malformed rows out", key="keep", help="They stay listed under the data's notes.")
    return data, task, split, keep


def _knobs(picked: Picked, data: str, task: TaskInfo, split: str, keep: bool, own: Brought | None) -> Workspace:
    n_layers, dim, state = picked.n_layers, picked.dim, st.session_state
    given = own is not None and own.vectors is not None
    first_and_last = sorted({min(1, n_layers - 1), n_layers - 1})
    _exchange("vectors" if given else "model", layers=first_and_last, k=dim)
    if "layers" not in state:
        state.layers = first_and_last
    state.layers = [layer for layer in state.layers if layer < n_layers] or [n_layers - 1]
    layers = st.pills(
        "Layers, averaged",
        list(range(n_layers)),
        selection_mode="multi",
        **bound("layers", first_and_last),
        help="0 is the first layer given." if given else "0 is the embedding layer. Several layers are averaged.",
    )
    pooling = GIVEN if given else _pooling(picked)
    whitening = st.selectbox(
        "Variant",
        list(WHITENERS),
        index=list(WHITENERS).index("pca"),
        **bound("whitening", "pca"),
        format_func=lambda name: WHITENERS[name].label,
        help="What is done to the embeddings before cosines are taken.",
    )
    whitening = knobs.spec(whitening or "pca", WHITENERS[whitening or "pca"].parameters, canonical, dim)
    fit, fit_key = _scope(task, own, disabled=whitening == "none")
    if state.get("k", 0) > dim:
        state.k = dim
    takes_k = variant(whitening).takes_k
    k = st.slider(
        "k, kept dimensions",
        1,
        dim,
        value=dim,
        **bound("k", dim),
        disabled=not takes_k,
        help="The top-k eigen-directions." if takes_k else f"{variant(whitening).label} has no k.",
    )
    aggregate = st.segmented_control(
        "Aggregate over subsets",
        list(AGGREGATE_LABELS),
        default="all",
        **bound("aggregate", "all"),
        required=True,
        help="; ".join(AGGREGATE_LABELS.values()),
    )
    dtype = own.vectors.dtype if given else _dtype()
    return Workspace(
        model=picked.model,
        allow_bin=picked.allow_bin,
        data=data,
        task=task.name,
        split=split,
        keep_going=keep,
        pooling=pooling,
        layers=tuple(sorted(layers or [n_layers - 1])),
        whitening=whitening,
        k=k if takes_k and k < dim else None,
        aggregate=aggregate or "all",
        dtype=dtype,
        n_layers=n_layers,
        dim=dim,
        stamp=file_stamp(task.files),
        fit=fit,
        fit_key=fit_key,
        own=own,
        weights=picked.weights,
        max_length=picked.max_length,
    )


def _exchange(kind: str, **start) -> None:
    """Keep these knobs of the model while vectors are shown, and the other way round.

    They are set, never deleted: the address would fill in what it still says of the other.
    """
    state, before = st.session_state, st.session_state.get("knobs-of", kind)
    if before != kind:
        for name, value in start.items():
            state[f"{name}-{before}"] = state.get(name)
            state[name] = state.get(f"{name}-{kind}") or value
    state["knobs-of"] = kind


def _pooling(picked: Picked) -> str:
    state = st.session_state
    if state.get("pooling", "mean") not in picked.poolings:
        state.pooling = "mean"
    found = st.segmented_control(
        "Pooling",
        picked.poolings,
        default="mean",
        **bound("pooling", "mean"),
        required=True,
        format_func=lambda name: {"mean": "Mean", "cls": "[CLS]", "last": "Last token"}.get(name, name),
        help="; ".join(POOLING_LABELS[name] for name in picked.poolings),
    )
    return found or "mean"


def _dtype() -> str:
    found = st.segmented_control(
        "Compute type",
        dtypes_for(choose_device()),
        default="float32",
        **bound("dtype", "float32"),
        required=True,
        help="bfloat16 is faster on processors that have it and moves scores by a few hundredths.",
    )
    return found or "float32"


def _scope(task: TaskInfo, own: Brought | None, disabled: bool) -> tuple[str, str]:
    """What the map is fitted on: the name for the protocol, and a key that changes with the content."""
    given = own is not None and own.vectors is not None
    if given and st.session_state.get("fit") not in (None, *setting.OWN_SENTENCES):
        st.session_state["fit"] = "task"  # there is no model to embed other text
    fit = st.selectbox(
        "Fitted on",
        list(setting.OWN_SENTENCES) if given else [*setting.FIT_SCOPES, UPLOADED],
        **bound("fit", "task"),
        accept_new_options=not given,
        disabled=disabled,
        format_func=lambda name: (setting.FIT_SCOPES | {UPLOADED: "Uploaded text file"}).get(name, name),
        help="WhiteningBERT fits on the task's own sentences, BERT-whitening also on all splits or on other text. "
        "Cross-fitting scores each half of the pairs with a map fitted on the other half. Type a path for other "
        "text: a .txt with one sentence a line, or a file or folder of pairs.",
    )
    fit = "task" if fit is None or given and fit not in setting.OWN_SENTENCES else fit
    if disabled or fit in setting.OWN_SENTENCES:
        return ("task" if disabled else fit), ("task" if disabled else fit)
    if fit == UPLOADED:
        return _uploaded()
    try:
        if fit == "splits":
            if len(task.splits) == 1:
                st.caption("This task has one split only, so all its splits are the task itself.")
            if own is not None:
                return fit, f"splits/{own.key}"
            return fit, f"splits/{file_stamp(task.files)}/{task.files[0].parent}/{task.name}"
        path = file_at(fit)
        files = [file for one in datasets.discover(fit) for file in one.files] if path is None else [path]
        return fit, f"{fit}/{file_stamp(files)}"
    except DataError as error:
        st.error(f"{error}. Until it is mended, the map is fitted on the task's sentences.")
        return "task", "task"


def _uploaded() -> tuple[str, str]:
    file = st.file_uploader(
        "Text, one sentence a line",
        type=["txt"],
        max_upload_size=upload_limits.TABLE_MB,
        key="fit-file",
        help=f"At most {upload_limits.TABLE_MB} MB. It stays in this session; nobody else sees it.",
    )
    held = own_data.fit_text()
    if file is None:
        if held:
            st.caption(f"Fitted on {plain(held[1])}, {spaced(held[2].total())} sentences.")
            return held[1], held[0]
        st.caption("Until a file is there, or sentences are pasted on the Data page, the task's sentences are used.")
        return "task", "task"
    if held is None or held[0] != own_data.text_key(file.file_id):
        try:
            own_data.hold_text(file.name, file.file_id, datasets.load_text(Upload(file.name, file.getvalue())))
        except DataError as error:
            st.error(plain(str(error)))
            return "task", "task"
    return file.name, own_data.text_key(file.file_id)


def plain(text: str) -> str:
    """Text of others, such as an error, in which Markdown finds nothing to format."""
    return re.sub(r"([\\`*_{}\[\]<>()#+!|$~:-])", r"\\\1", text)
