"""The fitted map as a download: a file, the lines that use it, and how it was made."""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import streamlit as st

from whitelab.base.installation import MissingLibraryError, need
from whitelab.base.progress import Progress
from whitelab.base.wording import capitalised, layers_in_words, plain, quantity, spaced
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.encoding.encoders import Encoder
from whitelab.encoding.names import ModelError, check_alone
from whitelab.encoding.pooling import POOLING_LABELS, POOLINGS, UNIT
from whitelab.retrieval.embedded import RetrievalSpace
from whitelab.scoring.score import Score
from whitelab.scoring.setting import Setting
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.crossed import crossed
from whitelab.ui.results.jobs import claim, jobs, wait
from whitelab.ui.results.scores import number_of, scored
from whitelab.ui.sections.parcel import SCIKIT, Parcel, SearchParcel, VectorsParcel, lines
from whitelab.ui.sidebar.opening import Opened
from whitelab.ui.sidebar.workspace import Workspace
from whitelab.ui.widgets.choice import choice
from whitelab.ui.widgets.metric import number
from whitelab.whitening import Map, RowMap, affine, export, of_rows, starved_remedy
from whitelab.whitening.export import to_onnx

ASKED = "asked-model"  # session_state: the key of the model folder this visitor asked for
# How a search's map ranks beside raw vectors, by verdict: about as long, so that what is below stays where it is.
WORTH = {
    "gain": "This map ranks these documents better than the raw vectors of {}, and not by chance. Advise tries others.",
    "loss": "The raw vectors of {} rank these documents better, and not by chance. Advise looks for what serves best.",
    "chance": "Whether this map or the raw vectors of {} rank these documents better is in doubt. Advise tries others.",
    "same": "This map and the raw vectors of {} rank these documents equally well by this metric. Advise tries others.",
}


def section(chosen: Workspace, opened: Opened, now: Score) -> None:
    """Take the map of a score away: where it was cross-fitted, the one that is fitted on the whole task."""
    crossed = now.setting.fit == "cross"
    score = scored(opened.space, now.setting.with_(fit="task") if crossed else now.setting)
    parcel = Parcel(chosen, opened.space, score.setting)
    why = ""
    if crossed:
        scores = number(score.spearman)
        why = f": cross-fitting has two maps, and an export holds one, which scores {scores} on these pairs"
    elif chosen.setting.whitening == "none":
        why = ": raw vectors are chosen, which need no map, and this is the one they are held against here"
    if _introduced(parcel, why):
        _say_if_worse(opened.space, score, parcel.fitted_on)
        _draw(parcel)


def of_search(
    chosen: Workspace, space: RetrievalSpace, setting: Setting, code: str, verdict: str, beaten: str = ""
) -> None:
    """Take the map of a search away; `code` are the lines that make its embeddings as `searched`, and `verdict` is
    that on its ranking against that of raw vectors; `beaten` says that those of the last layer rank better."""
    parcel = SearchParcel(chosen, space.space, space.on(setting), space, code)
    if _introduced(parcel):
        if verdict in WORTH:
            words = WORTH[verdict].format(layers_in_words(parcel.setting.layers))
            with st.container(key="said-worth"):
                st.info(beaten if beaten and verdict != "loss" else words, icon=":material/info:")
        _draw(parcel)


def of_vectors(space: LayerEmbeddings, setting: Setting, code: str) -> None:
    """Take the map of vectors without pairs away; `code` are the lines that read them as `space`."""
    parcel = VectorsParcel(None, space, setting, code)
    if _introduced(parcel):
        _draw(parcel)


def _introduced(parcel: Parcel, why: str = "") -> bool:
    """Say what the map is and how much it is worth; False where it keeps nothing, or nothing elsewhere fits it."""
    st.header("Take it away")
    if not parcel.given:
        try:
            check_alone(parcel.workspace.model.name)
        except ModelError as error:
            st.info(plain(str(error)), icon=":material/info:")
            return False
    setting, fitted = parcel.setting, parcel.fitted
    with st.container(key="said-map"):
        st.markdown(
            f"The map of **{LABELS.inline(setting.whitening)}**, {layers_in_words(setting.layers)}, {fitted.rank} of "
            f"{parcel.space.dim} directions, fitted on {plain(parcel.fitted_on)}{why}. After it a vector has "
            f"{quantity(fitted.columns, 'number')}. The protocol goes with it."
        )
    if not fitted.rank:
        st.warning("What it was fitted on does not vary, so the map keeps no direction and there is nothing to export.")
    elif fitted.starved:
        st.warning(
            "This map sets the very texts it was fitted on equally far apart, and was fitted on too few to say "
            f"anything of others. {starved_remedy(setting.whitening)} Do so before you ship it.",
            icon=":material/warning:",
        )
    return fitted.rank > 0


def _say_if_worse(space: LayerEmbeddings, score: Score, fitted_on: str) -> None:
    """Say that its own layer scores higher raw on other sentences, or else that the last does: what is shipped stands
    against these."""
    if crossed(space, score.setting) == "loss":
        cross, raw = (number_of(space, one) for one in (score.setting.with_(fit="cross"), score.setting.raw))
        st.warning(
            f"Maps fitted on half of these sentences score {cross.spearman:.2f} on the other half, the raw vectors of "
            f"the same layer{'s' * (len(score.setting.layers) > 1)} {raw.spearman:.2f}. "
            f"{starved_remedy(score.setting.whitening)} Advise looks for what serves best.",
            icon=":material/warning:",
        )
        return
    last = (space.n_layers - 1,)
    untouched = number_of(space, score.setting.raw.with_(layers=last))
    if None not in (score.spearman, untouched.spearman) and untouched.spearman - score.spearman > 1:
        st.info(
            f"The raw vectors of {layers_in_words(last)}, the last, score {untouched.spearman:.2f} on these pairs, and "
            f"this map, fitted on {plain(fitted_on)}, {score.spearman:.2f}. Advise looks for what serves best.",
            icon=":material/info:",
        )


def _draw(parcel: Parcel) -> None:
    """Choose a format, download it, and read how to use it."""
    labels = {name: one.label for name, one in export.FORMATS.items() if not (one.whole and parcel.given)}
    if of_rows(parcel.setting.whitening):
        labels = {name: label for name, label in labels.items() if export.FORMATS[name].any_map}
    labels |= {SCIKIT: SCIKIT}
    if st.session_state.get("format") not in (None, *labels):
        st.session_state["format"] = next(iter(labels))
    kind = choice("Format", tuple(labels), key="format", bind="query-params", format_func=labels.get)
    if kind in export.FORMATS and (why := _why_not(kind, parcel)):
        st.info(plain(why))
        return
    if kind == SCIKIT and not parcel.has_rows:
        st.info(
            "scikit-learn fits to rows, and of an embedded corpus only moments are kept. The other formats hold the "
            "fitted map."
        )
        return
    forms = {"npz": _npz, "faiss": _faiss, "sentence-transformers": _model, "onnx": _onnx, "safetensors": _safetensors}
    left, right = st.columns([3, 7])
    with left:
        forms.get(kind, _scikit)(parcel)
        if parcel.prompts and kind in export.FORMATS:
            st.caption(plain(capitalised(export.FORMATS[kind].prompts_note(parcel.prompts))) + ".")
    with right:
        st.code(lines(kind, parcel), language="python")


def _why_not(kind: str, parcel: Parcel) -> str:
    """Why a format cannot hold the model or its pooling; empty where it can."""
    if parcel.given:
        return ""
    pooling = parcel.setting.pooling
    try:
        export.check_holds(kind, pooling, parcel.workspace.model.name)
    except export.ExportError as error:
        if pooling in POOLINGS:
            return f"{error}."
        alone = ", ".join(one.label for one in export.FORMATS.values() if not one.whole)
        return (
            f"{export.FORMATS[kind].label} has no part that makes these vectors ({POOLING_LABELS[pooling]}). The map "
            f"alone can be taken ({alone}){', or turn off Vectors of length 1' * pooling.startswith(UNIT)}."
        )
    return ""


def _npz(parcel: Parcel) -> None:
    meaning = " What a cosine means goes with them." if parcel.calibrates else ""
    st.markdown(
        f"Mean and matrix in float64 with the protocol, for NumPy alone. One sentence or a million: the same lines."
        f"{meaning}"
    )
    _takes(parcel)
    _download(parcel.stem, "npz", "application/octet-stream", lambda: _npz_bytes(parcel))


def _takes(parcel: Parcel) -> None:
    """Which vectors a bare map takes: others of the same width would pass without a word."""
    if not parcel.given:
        st.caption(
            f"It takes the vectors of {layers_in_words(parcel.setting.layers)} as the code makes them. What a model "
            "encodes by itself, its last layer brought to length 1 perhaps, is as wide and does not fit."
        )


def _npz_bytes(parcel: Parcel) -> bytes:
    return export.npz_bytes(parcel.whitener(), parcel.record, parcel.scale())


def _faiss(parcel: Parcel) -> None:
    st.markdown(
        "A `LinearTransform` in float32 that stands before any FAISS index. The protocol follows as a line of JSON."
    )
    _takes(parcel)
    try:
        need("faiss")
    except MissingLibraryError as error:
        st.info(plain(str(error)))
        return
    _download(
        parcel.stem, "faiss", "application/octet-stream", lambda: export.faiss_bytes(parcel.whitener(), parcel.record)
    )


def _safetensors(parcel: Parcel) -> None:
    st.markdown("The whole map in one file without pickles. whitelab loads it, whatever kind of map it is.")
    _takes(parcel)
    whitener = parcel.whitener()
    if isinstance(whitener, RowMap):
        cost = {name: spaced(round(value, int(name == "seconds"))) for name, value in whitener.cost.items()}
        st.caption("Fitted in " + ", ".join(f"{value} {name}" for name, value in cost.items()) + ".")
    data = partial(export.safetensors_bytes, whitener, parcel.record)
    _download(parcel.stem, "safetensors", "application/octet-stream", data)


def _scikit(parcel: Parcel) -> None:
    st.markdown(
        "The map as a transformer for pipelines, fitted on embeddings of your own, whole or in batches. The code fits "
        f"it on {plain(parcel.fitted_on)}, each text as often as it occurs."
    )


def _model(parcel: Parcel) -> None:
    st.markdown(
        "Encoder, layers, pooling and map in one model folder that loads without whitelab and gives the same vectors. "
        "It is loaded back and compared before you get it."
    )
    _folder(parcel, "sentence-transformers", export.to_sentence_transformers)


def _onnx(parcel: Parcel) -> None:
    st.markdown(
        "Encoder, layers, pooling and map in one graph with its tokenizer, for onnxruntime in any language. It is run "
        "there and compared before you get it."
    )
    try:
        need("onnx")
    except MissingLibraryError as error:
        st.info(plain(str(error)))
        return
    _folder(parcel, "onnx", _graph)


def _graph(folder: Path, encoder: Encoder, layers: Sequence[int], made_by: str, whitener: Map, *about) -> None:
    """`to_onnx` beside other visitors: two threads that read Python, as the exporter does, can trip each other up."""
    linear = affine(whitener, "a graph holds a mean and a matrix")
    to_onnx(folder, encoder, layers, made_by, linear, *about, apart=True)


def _folder(parcel: Parcel, kind: str, write: Callable) -> None:
    """The button that makes a folder with the encoder in it, how far that is, and the download."""
    if parcel.workspace.dtype != "float32":
        st.info(f"{export.FORMATS[kind].label} computes in float32: choose it as the compute type in the bar.")
        return
    name = f"export/{kind}/{parcel.name}"
    if st.session_state.get(ASKED) != name:
        st.button("Make the model folder", key="make-model", on_click=_ask, args=(name,), icon=":material/package_2:")
        return
    stem = parcel.stem_of(kind)
    job = jobs().submit(name, "Writing the model folder", partial(_packed, parcel, stem, write), "steps")
    packed = wait(job, key="model-zip", height=170)
    if packed is not None:
        # The button holds `packed`, without which the file would be removed once nobody's job holds it.
        size = f" ({packed.nbytes / 1e6:.0f} MB)"
        _download(stem, "zip", "application/zip", lambda: packed.path.read_bytes(), size)


@dataclass(frozen=True, eq=False)
class ModelZip:
    """A packed model folder, in a folder of its own that is removed together with this object."""

    home: tempfile.TemporaryDirectory
    path: Path

    @property
    def nbytes(self) -> int:
        """What it takes on disk."""
        return self.path.stat().st_size


def _packed(parcel: Parcel, stem: str, write: Callable, progress: Progress) -> ModelZip:
    """The model folder, written, compared and packed, both called by the `stem`."""
    home = tempfile.TemporaryDirectory(prefix="whitelab-")
    folder, packed = Path(home.name) / stem, Path(home.name) / f"{stem}.zip"
    progress(0, 2)
    setting, encoder = parcel.setting, parcel.encoder()
    made = (parcel.whitener(), parcel.record, parcel.scale())
    write(folder, encoder, setting.layers, setting.pooling, *made)
    progress(1, 2)
    export.zip_folder(folder, packed)
    shutil.rmtree(folder)
    return ModelZip(home, packed)


def _ask(key: str) -> None:
    """Ask for this model folder; the last one, which holds a copy of a whole encoder, goes unless others asked too."""
    claim("model-zip", key, drop=True)
    st.session_state[ASKED] = key


def _download(stem: str, ending: str, mime: str, data, size: str = "") -> None:
    st.download_button(
        f"Download .{ending}{size}",
        data,
        file_name=f"{stem}.{ending}",
        mime=mime,
        key=f"take-{ending}",
        on_click="ignore",
        type="primary",
        icon=":material/download:",
    )
