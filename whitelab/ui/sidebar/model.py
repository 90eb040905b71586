"""The model picker: what can be chosen, what it will cost before it is downloaded, and loading it.

What a network is (layers, d, poolings) is known once it runs, so the knobs wait for the job that loads it.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import streamlit as st

from whitelab.base.devices import choose_device
from whitelab.base.progress import Progress
from whitelab.base.wording import plain, quantity
from whitelab.datasets import DataError
from whitelab.encoding import catalogue
from whitelab.encoding.checkpoints import ModelFiles, PickledWeights, find_model, on_disk, trained_models, version
from whitelab.encoding.encoders import Encoder
from whitelab.encoding.hub import cached_models
from whitelab.encoding.later import encoder_for_store
from whitelab.encoding.names import BUNDLED, BUNDLED_NAME, ModelError, ModelName, allowed
from whitelab.ui.results.jobs import FIRST_SECONDS, jobs, wait
from whitelab.ui.results.study import remembered
from whitelab.ui.sidebar.data import REFUSED, Chosen, tokens_of
from whitelab.ui.widgets.address import bound
from whitelab.ui.widgets.typed import exists, typed_choice

CONTROLS = (f"{BUNDLED}:3", f"random:{BUNDLED}", f"static:{BUNDLED}", f"sif:{BUNDLED}", f"output:{BUNDLED}")
WORDS = {
    "random": "Random",
    "static": "Static",
    "sif": "SIF",
    "output": "Own output",
}  # short, because the bar is narrow
ASKED = "model-asked"  # session_state: the model this visitor pressed Download for
LOADING = "model-loading"  # session_state: the label of the model that this run waits for, None where it waits for none
PICKLED = "model-pickled"  # session_state: the model that was seen to have pickled weights only


@dataclass(frozen=True)
class Picked:
    """A model that is loaded: layers with the embedding layer, d, the poolings that make sense, its files' digest.

    `max_length` is where it cuts sentences, in tokens; None for vectors, of which that is not known.
    """

    name: str
    allow_bin: bool
    n_layers: int
    dim: int
    poolings: tuple[str, ...]
    digest: str = ""
    max_length: int | None = None

    @property
    def key(self) -> str:
        """What names the model and its files in every result: a model that was trained on keeps its name."""
        return f"{self.name}@{self.digest[:16]}"


def shared_encoder(model: str, dtype: str, allow_bin: bool = False) -> Encoder:
    """A loaded model as it is now, shared by all visitors (the encoder locks itself)."""
    return _encoder(model, dtype, allow_bin, version(model))


@remembered("model", grows=True)
def _encoder(model: str, dtype: str, allow_bin: bool, written: str) -> Encoder:
    return encoder_for_store(model, dtype=dtype, allow_bin=allow_bin)


def options() -> list[str]:
    """What the operator allows: the bundled model with its controls, what is on this machine, the catalogue."""
    names = (BUNDLED, *CONTROLS, *_trained(), *_cached(), *(one.name for one in catalogue.entries()))
    return [name for name in dict.fromkeys(names) if allowed(name)]


def _trained() -> tuple[str, ...]:
    try:
        return trained_models()
    except ModelError as error:  # the operator's folder for runs
        st.error(plain(str(error)))
        return ()


@st.cache_data(ttl=60, show_spinner=False)
def _cached() -> tuple[str, ...]:
    return cached_models()


def label(model: str) -> str:
    """A readable name: the papers' where there is one, and what is made of it."""
    try:
        return label_of(ModelName.parse(model))
    except ModelError:
        return model


def label_of(name: ModelName) -> str:
    """The same of a name taken apart."""
    known = catalogue.entry_of(name)
    base = BUNDLED_NAME if name.base == BUNDLED else known.title if known else name.base
    if not name.kind and name.blocks is None:
        return f"{base} (bundled)" if name.base == BUNDLED else base
    parts = [f"{WORDS[name.kind]}: {base}" if name.kind else base]
    parts += [f"seed {name.seed}"] if name.seed else []
    parts += [quantity(name.blocks, "block")] if name.blocks is not None else []
    return ", ".join(parts)


def labelled(names: Sequence[str]) -> Callable[[str], str]:
    """The labels of a list; what is typed stays, for the browser would take its label for a name."""
    return lambda name: label(name) if name in names else name


def choose() -> str:
    """Draw the select box and return the model's name."""
    names = options()
    shown = labelled(names)
    found = typed_choice(
        "Model",
        names,
        found=recognised,
        **bound("model", BUNDLED, shown),
        format_func=shown,
        help="Type a Hugging Face name or the path of a folder. NAME:3 takes its first 3 blocks, random:NAME its "
        "architecture with random weights, static:NAME and sif:NAME its word embeddings alone, output:NAME what its "
        "own sentence-transformers modules (dense layers, length 1) make of the last layer.",
    )
    return found or BUNDLED


def recognised(model: str) -> bool:
    """Whether a name, or what its modifiers are put to, is that of a folder or among the `options`."""
    try:
        base = ModelName.parse(model).base
    except ModelError:
        return False
    return exists(base) or base in options()


def opened(model: str, chosen: Chosen | None) -> Picked | None:
    """The model once it is loaded; None after drawing what it would cost, how far it is, or why there is none."""
    allow_bin = st.session_state.get(PICKLED) == model and st.session_state.get("allow-bin") is True
    key = _key(model, allow_bin)
    st.session_state[LOADING] = None
    if not on_disk(model) and jobs().get(key) is None and st.session_state.get(ASKED) != model:
        st.session_state[REFUSED] = f"{label(model)} is not on this machine yet. The bar offers to download it."
        _offer(model, chosen)
        return None
    dtype = st.session_state.get("dtype") or "float32"

    def work(progress) -> Picked:
        digest = find_model(model, progress, allow_bin=allow_bin).digest
        encoder = shared_encoder(model, dtype, allow_bin)
        sizes = encoder.n_layers, encoder.dim, encoder.pooling_choices
        return Picked(model, allow_bin, *sizes, digest, encoder.max_length)

    job = jobs().submit(key, f"Loading {label(model)}", work, "bytes")
    picked = wait(job, key="find", quick=FIRST_SECONDS)
    st.session_state[LOADING] = None if job.finished else label(model)
    if job.error is not None:
        st.session_state[REFUSED] = f"{job.title} failed: {job.message}. Change it in the bar."
    if isinstance(job.error, PickledWeights):
        st.session_state[PICKLED] = model
    if st.session_state.get(PICKLED) == model:
        st.checkbox(
            "Load pickled weights",
            key="allow-bin",
            help="Read with weights_only=True, which runs no code. Tick it only for a model you trust.",
        )
    return picked


def find(model: str, key: str, files_of: Callable[[str, Progress], ModelFiles]) -> ModelFiles | None:
    """The files of a model, as `files_of` has them; None after drawing the job that looks for them."""
    name = f"files/{model}/{version(model)}"
    return wait(jobs().submit(name, f"Finding {model}", lambda progress: files_of(model, progress), "bytes"), key=key)


def _offer(model: str, chosen: Chosen | None) -> None:
    """What the model is and what it will take, and the button that downloads it."""
    known = catalogue.entry(model)
    with st.container(border=True, key="model-offer"):
        st.markdown(f"`{ModelName.parse(model).base}` is not on this machine yet.")
        st.caption(_facts(model, chosen) if known else "It is not in the catalogue: its size shows once it is here.")
        st.button(
            "Download and load",
            key="model-download",
            icon=":material/download:",
            type="primary",
            width="stretch",
            on_click=_ask,
            args=(model,),
        )


def _facts(model: str, chosen: Chosen | None) -> str:
    """Size, licence, cost and what else to know of a model of the catalogue."""
    known, sentences = catalogue.entry(model), _text(chosen)
    dtype = st.session_state.get("dtype") or "float32"
    cost = catalogue.estimate(known, choose_device(), dtype, *sentences)
    parts = [f"{known.line()}.", f"Takes {cost.line()}, the download apart."]
    if ModelName.parse(model).kind == "random":
        parts.append("Only its config and tokenizer are downloaded.")
    elif known.weights == "bin":
        parts.append("Only pickled weights are published, which are loaded after you say so.")
    return " ".join([*parts, known.note]).strip()


def _text(chosen: Chosen | None) -> tuple[int, int]:
    """About how many tokens, and how many sentences, the chosen task has."""
    with suppress(DataError):
        if chosen is not None:
            return tokens_of(chosen.source, chosen.task, chosen.split, chosen.lenient, chosen.stamp)
    return 0, 0


def _ask(model: str) -> None:
    st.session_state[ASKED] = model
    for allow_bin in (False, True):
        jobs().forget_finished(_key(model, allow_bin))


def _key(model: str, allow_bin: bool) -> str:
    """The name of the job that finds and loads a model."""
    return f"find/{model}/{version(model)}" + "/bin" * allow_bin
