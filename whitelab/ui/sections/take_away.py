"""The fitted map as a download: a file, the lines that use it, and how it was made."""

import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import streamlit as st

from whitelab.base.installation import MissingLibraryError, need
from whitelab.base.progress import Progress
from whitelab.base.wording import layers_in_words, plain
from whitelab.corpus.fitting import CORPUS
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.encoding.encoders import Encoder
from whitelab.scoring.calibration import Calibration, calibrate, tells_apart
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.score import Score
from whitelab.scoring.setting import FIT_SCOPES, Setting
from whitelab.ui.results.jobs import claim, jobs, wait
from whitelab.ui.results.scores import number_of, scored
from whitelab.ui.results.shelf import shelf
from whitelab.ui.results.study import study
from whitelab.ui.sidebar.opening import Opened
from whitelab.ui.sidebar.workspace import Workspace
from whitelab.ui.widgets.choice import choice
from whitelab.ui.widgets.recipe import opening, pooling
from whitelab.ui.widgets.variants import LABELS
from whitelab.whitening import Map, RowMap, affine, export, of_rows
from whitelab.whitening.onnx_export import onnx_lines, to_onnx

SCIKIT = "scikit-learn"  # no file, but the lines that make the same map
ASKED = "asked-model"  # session_state: the key of the model folder this visitor asked for


def _fit_for_a_file(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.=_-]+", "-", text)


@dataclass(frozen=True)
class Parcel:
    """One map to take away, and the score it was made for, whose protocol has only one map (not `cross`)."""

    workspace: Workspace
    opened: Opened
    score: Score

    @property
    def setting(self) -> Setting:
        """The setting of score and map."""
        return self.score.setting

    @property
    def stem(self) -> str:
        """A file name that says what is inside."""
        k = f"-k{self.setting.k}" if self.setting.k else ""
        layers = "-".join(map(str, self.setting.layers))
        fit = self.setting.fit
        place = Path(fit.removeprefix(CORPUS))
        name = _fit_for_a_file(place.name if fit.startswith(CORPUS) else place.stem)[:40].strip("-") or "text"
        text = f"{Path(self.score.protocol.origin.model).name}-layers-{layers}-{self.setting.whitening}{k}"
        return _fit_for_a_file(text) + ("" if fit == "task" else f"-on-{name}")

    @property
    def record(self) -> dict:
        """How the map was made, with no path of this machine in it."""
        fit = self.setting.fit
        plain = {"fit": fit if fit in FIT_SCOPES else Path(fit).name}
        return self.score.protocol.as_dict() | plain | {"fitted": self.score.fitted, "rank": self.score.rank}

    def whitener(self) -> Map:
        """The map."""
        (whitener,) = fit_scope(self.opened.space, self.setting).whiteners
        return whitener

    def calibration(self) -> Calibration | None:
        """What cosines under the map mean; None where there is only one sentence, or all have the same."""
        return study(calibrate, self.opened.space, self.setting) if self.calibrates else None

    @property
    def calibrates(self) -> bool:
        """Whether its cosines mean something."""
        return tells_apart(self.opened.space, self.score)

    def scale(self) -> export.Scale | None:
        """That as an export carries it."""
        found = self.calibration()
        return found and found.arrays()


def section(chosen: Workspace, opened: Opened, now: Score) -> None:
    """Take the map of a score away: where it was cross-fitted, the one that is fitted on the whole task."""
    st.subheader("Take it away")
    setting = now.setting.with_(fit="task") if now.setting.fit == "cross" else now.setting
    score = scored(opened.space, setting)
    layers = layers_in_words(setting.layers)
    scope = FIT_SCOPES.get(setting.fit)
    fitted = f"fitted on {scope[0].lower()}{scope[1:]}." if scope else f"fitted on {Path(setting.fit).name}."
    if now.setting.fit == "cross":
        fitted = "fitted on the task's sentences: cross-fitting has two maps, and an export holds one."
    st.markdown(
        f"The map of **{LABELS.inline(setting.whitening)}**, {layers}, {score.rank} of {score.dim} directions, "
        f"{fitted} The protocol goes with it."
    )
    if score.rank:
        if score.starved:
            st.warning(
                "This map sets the very sentences it was fitted on equally far apart, and was fitted on too few to say "
                "anything of others: keep fewer dimensions, or fit on more text, before you ship it.",
                icon=":material/warning:",
            )
        _say_if_worse(opened.space, score)
        draw(Parcel(chosen, opened, score))
    else:
        st.warning(
            "The sentences it was fitted on do not vary, so the map keeps no direction and there is nothing to export."
        )


def _say_if_worse(space: LayerEmbeddings, score: Score) -> None:
    """Say that the last layer scores higher raw: what is shipped stands against that, not against its own layer."""
    last = (space.n_layers - 1,)
    untouched = number_of(space, score.setting.raw.with_(layers=last))
    if None not in (score.spearman, untouched.spearman) and untouched.spearman - score.spearman > 1:
        st.info(
            f"The raw vectors of {layers_in_words(last)}, the last, score {untouched.spearman:.2f} on these pairs, and "
            f"this map {score.spearman:.2f}. Advise looks for what serves best.",
            icon=":material/info:",
        )


def draw(parcel: Parcel) -> None:
    """Choose a format, download it, and read how to use it."""
    labels = {name: one.label for name, one in export.FORMATS.items() if not (one.whole and parcel.workspace.given)}
    if of_rows(parcel.setting.whitening):
        labels = {name: label for name, label in labels.items() if export.FORMATS[name].any_map}
    labels |= {SCIKIT: SCIKIT}
    if st.session_state.get("format") not in (None, *labels):
        st.session_state["format"] = next(iter(labels))
    kind = choice("Format", tuple(labels), key="format", bind="query-params", format_func=labels.get)
    forms = {"npz": _npz, "faiss": _faiss, "sentence-transformers": _model, "onnx": _onnx, "safetensors": _safetensors}
    left, right = st.columns([3, 7])
    with left:
        forms.get(kind, _scikit)(parcel)
    with right:
        st.code(lines(kind, parcel), language="python")


def _npz(parcel: Parcel) -> None:
    meaning = " What a cosine means goes with them." if parcel.calibrates else ""
    st.markdown(
        f"Mean and matrix in float64 with the protocol, for NumPy alone. One sentence or a million: the same lines."
        f"{meaning}"
    )
    _takes(parcel)
    _download(parcel, "npz", "application/octet-stream", lambda: _npz_bytes(parcel))


def _takes(parcel: Parcel) -> None:
    """Which vectors a bare map takes: others of the same width would pass without a word."""
    if not parcel.workspace.given:
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
    _download(parcel, "faiss", "application/octet-stream", lambda: export.faiss_bytes(parcel.whitener(), parcel.record))


def _safetensors(parcel: Parcel) -> None:
    st.markdown("The whole map in one file without pickles. whitelab loads it, whatever kind of map it is.")
    _takes(parcel)
    whitener = parcel.whitener()
    if isinstance(whitener, RowMap):
        cost = {name: f"{value:,.0f}" if name != "seconds" else f"{value:.1f}" for name, value in whitener.cost.items()}
        st.caption("Fitted in " + ", ".join(f"{value} {name}" for name, value in cost.items()) + ".")
    data = partial(export.safetensors_bytes, whitener, parcel.record)
    _download(parcel, "safetensors", "application/octet-stream", data)


def _scikit(parcel: Parcel) -> None:
    st.markdown(
        "The map as a transformer for pipelines, fitted on embeddings of your own, whole or in batches. The code fits "
        "it on the task's sentences, each as often as it occurs."
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
    to_onnx(folder, encoder, layers, made_by, linear, about[0], apart=True)


def _folder(parcel: Parcel, kind: str, write: Callable) -> None:
    """The button that makes a folder with the encoder in it, how far that is, and the download."""
    if parcel.workspace.dtype != "float32":
        st.info(f"{export.FORMATS[kind].label} computes in float32: choose it as the compute type in the bar.")
        return
    name = f"export/{kind}/{shelf().name(parcel.opened.space)}/{parcel.setting}"
    if st.session_state.get(ASKED) != name:
        st.button("Make the model folder", key="make-model", on_click=_ask, args=(name,), icon=":material/package_2:")
        return
    job = jobs().submit(name, "Writing the model folder", lambda progress: _packed(parcel, write, progress), "steps")
    packed = wait(job, key="model-zip", height=170)
    if packed is not None:
        # The button holds `packed`, without which the file would be removed once nobody's job holds it.
        _download(
            parcel, "zip", "application/zip", lambda: packed.path.read_bytes(), f" ({packed.nbytes / 1e6:.0f} MB)"
        )


@dataclass(frozen=True, eq=False)
class ModelZip:
    """A packed model folder, in a folder of its own that is removed together with this object."""

    home: tempfile.TemporaryDirectory
    path: Path

    @property
    def nbytes(self) -> int:
        """What it takes on disk."""
        return self.path.stat().st_size


def _packed(parcel: Parcel, write: Callable, progress: Progress) -> ModelZip:
    """The model folder, written, compared and packed."""
    home = tempfile.TemporaryDirectory(prefix="whitelab-")
    folder, packed = Path(home.name) / parcel.stem, Path(home.name) / f"{parcel.stem}.zip"
    progress(0, 2)
    setting, encoder = parcel.setting, parcel.workspace.encoder()
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


def _download(parcel: Parcel, ending: str, mime: str, data, size: str = "") -> None:
    st.download_button(
        f"Download .{ending}{size}",
        data,
        file_name=f"{parcel.stem}.{ending}",
        mime=mime,
        key=f"take-{ending}",
        on_click="ignore",
        type="primary",
        icon=":material/download:",
    )


def lines(kind: str, parcel: Parcel) -> str:
    """How to use the download, from sentences on, or how to have the same in scikit-learn."""
    stem, k = parcel.stem, parcel.setting.k
    if kind == "npz":
        return f"{export.numpy_lines(f'{stem}.npz')}\n\n{making_x(parcel)}z = whiten(x)\n{_meaning(parcel)}"
    if kind == "faiss":
        return (
            "import faiss\nimport numpy as np\n\n"
            f"{making_x(parcel)}"
            f'transform = faiss.read_VectorTransform("{stem}.faiss")\n'
            "z = transform.apply(np.ascontiguousarray(x, dtype=np.float32))  # of another width: an AssertionError\n\n"
            "# cosine search: whitened vectors of length 1, compared by their inner product\n"
            "faiss.normalize_L2(z)\n"
            "index = faiss.IndexFlatIP(transform.d_out)\n"
            "index.add(z)\n"
        )
    if kind == "safetensors":
        return (
            "from whitelab.whitening.export import from_safetensors\n\n"
            f"{making_x(parcel).replace('.numpy()', '')}"
            f'fitted, protocol = from_safetensors("{stem}.safetensors")\n'
            "z = fitted(x)  # a tensor [n, d] to one in float64\n"
        )
    if kind == "sentence-transformers":
        return (
            "# unzip first; needs no whitelab\n"
            "from sentence_transformers import SentenceTransformer\n\n"
            f'model = SentenceTransformer("{stem}")\n'
            'vectors = model.encode(["A man plays a guitar.", "Someone makes music."])\n'
            "print(model.similarity(vectors, vectors))\n"
        )
    if kind == "onnx":
        usage = onnx_lines(stem, parcel.workspace.encoder(), parcel.whitener().columns)
        return (
            f"# unzip first; needs no whitelab\n{usage}\n\n"
            'vectors = encode(["A man plays a guitar.", "Someone makes music."])\n'
        )
    made = f"WhiteningTransformer({parcel.setting.whitening!r}{f', k={k}' if k else ''})"
    whole = (
        "import numpy as np\n"
        "import whitelab\n"
        "from sklearn.pipeline import make_pipeline\n"
        "from sklearn.preprocessing import Normalizer\n"
        "from whitelab import WhiteningTransformer\n\n"
        f"{opening(parcel.workspace)}"
        f"x = space.combine({parcel.setting.layers!r})  # [n, {parcel.score.dim}], or your own\n"
        "x = x.repeat_interleave(space.counts.long(), dim=0).numpy()\n"
        f"pipeline = make_pipeline({made}, Normalizer()).fit(x)\n"
        "z = pipeline.transform(x)\n"
    )
    if of_rows(parcel.setting.whitening):
        return whole
    return (
        f"{whole}\n# or in batches, with the same result\nwhitening = {made}\n"
        "for batch in np.array_split(x, 4):\n    whitening.partial_fit(batch)\n"
    )


def _meaning(parcel: Parcel) -> str:
    """The lines that say what a cosine of the map's vectors means."""
    if not parcel.calibrates:
        return ""
    space = parcel.opened.space
    gold = bool((space.gold != space.gold[0]).any())
    return f"\n# what a cosine of them means\n{export.scale_lines(f'{parcel.stem}.npz', gold)}"


def making_x(parcel: Parcel) -> str:
    """The lines that make what the map takes: vectors of another layer or pooling it would take without a word."""
    layers, chosen = list(parcel.setting.layers), parcel.workspace
    what = ("the mean of " if len(layers) > 1 else "") + layers_in_words(layers)
    if chosen.given:
        return f"x = ...  # [n, {parcel.score.dim}], {what} of vectors made as those given: no others fit the map\n"
    return (
        "import whitelab\n\n"
        f"encoder = whitelab.load_encoder({chosen.model.name!r})\n"
        'sentences = ["A man plays a guitar.", "Someone makes music."]\n'
        f"values, report = whitelab.embed(encoder, sentences{pooling(chosen)})\n"
        f"x = values[{layers}].mean(0).numpy()  # [n, {parcel.score.dim}], {what}: no other vectors fit the map\n"
    )
