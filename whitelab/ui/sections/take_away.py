"""The fitted map as a download: a file, the lines that use it, and how it was made."""

import re
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from whitelab.base.installation import MissingLibraryError, need
from whitelab.scoring.fit_scopes import SCOPES
from whitelab.scoring.score import Protocol, Score
from whitelab.ui.results import cache
from whitelab.ui.results.cache import Opened
from whitelab.ui.results.jobs import claim
from whitelab.ui.sidebar.workspace import Workspace
from whitelab.whitening import export

FORMATS = {
    "npz": "NumPy",
    "faiss": "FAISS",
    "sentence-transformers": "sentence-transformers",
    "scikit-learn": "scikit-learn",
}
ASKED = "asked-model"  # session_state: the key of the model folder this visitor asked for


@dataclass(frozen=True)
class Parcel:
    """One map to take away, and the score it was made for, whose protocol has only one map (not `cross`)."""

    workspace: Workspace
    opened: Opened
    score: Score

    @property
    def protocol(self) -> Protocol:
        """The protocol of score and map."""
        return self.score.protocol

    @property
    def stem(self) -> str:
        """A file name that says what is inside."""
        k = f"-k{self.protocol.k}" if self.protocol.k else ""
        layers = "-".join(map(str, self.protocol.layers))
        text = f"{Path(self.protocol.model).name}-layers-{layers}-{self.protocol.whitening}{k}"
        return re.sub(r"[^A-Za-z0-9.=_-]+", "-", text)

    @property
    def record(self) -> dict:
        """How the map was made, with no path of this machine in it."""
        fit = self.protocol.fit
        plain = {"fit": fit if fit in SCOPES else Path(fit).name}
        return self.protocol.as_dict() | plain | {"sentences": self.score.sentences, "rank": self.score.rank}

    def whitener(self):
        """The map."""
        return cache.one_map(self.opened, self.protocol)


def draw(parcel: Parcel) -> None:
    """Choose a format, download it, and read how to use it."""
    kind = st.segmented_control(
        "Format",
        [one for one in FORMATS if one != "sentence-transformers" or not parcel.workspace.given],
        default="npz",
        key="format",
        bind="query-params",
        required=True,
        format_func=lambda name: FORMATS[name],
    )
    kind = "npz" if parcel.workspace.given and kind == "sentence-transformers" else kind  # there is no encoder
    left, right = st.columns([3, 7])
    with left:
        {"npz": _npz, "faiss": _faiss, "sentence-transformers": _model}.get(kind or "npz", _scikit)(parcel)
    with right:
        st.code(lines(kind or "npz", parcel), language="python")


def _npz(parcel: Parcel) -> None:
    st.markdown(
        "Mean and matrix in float64 with the protocol, for NumPy alone. One sentence or a million: the same lines."
    )
    _download(parcel, "npz", "application/octet-stream", lambda: export.npz_bytes(parcel.whitener(), parcel.record))


def _faiss(parcel: Parcel) -> None:
    st.markdown(
        "A `LinearTransform` in float32 that stands before any FAISS index. The protocol follows as a line of JSON."
    )
    try:
        need("faiss")
    except MissingLibraryError as error:
        st.info(str(error))
        return
    _download(parcel, "faiss", "application/octet-stream", lambda: export.faiss_bytes(parcel.whitener(), parcel.record))


def _scikit(parcel: Parcel) -> None:
    st.markdown(
        "The same map as a transformer for pipelines. It is fitted on your own embeddings, whole or in batches."
    )


def _model(parcel: Parcel) -> None:
    st.markdown(
        "Encoder, layers, pooling and map in one model folder that loads without whitelab and gives the same vectors. "
        "It is loaded back and compared before you get it."
    )
    if parcel.workspace.dtype != "float32":
        st.info("sentence-transformers computes in float32: choose it as the compute type in the bar at the left.")
        return
    key = cache.model_key(parcel.opened, parcel.protocol)
    if st.session_state.get(ASKED) != key:
        st.button("Make the model folder", key="make-model", on_click=_ask, args=(key,), icon=":material/package_2:")
        return
    found = cache.model_zip(parcel.workspace, parcel.opened, parcel.protocol, parcel.record, parcel.stem, "model-zip")
    if found is not None:
        megabytes = found.path.stat().st_size / 1e6
        # The button holds `found`, without which the file would be removed once nobody's job holds it.
        _download(parcel, "zip", "application/zip", lambda: found.path.read_bytes(), f" ({megabytes:.0f} MB)")


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
    """How to use the download, or how to have the same in scikit-learn."""
    stem, k = parcel.stem, parcel.protocol.k
    if kind == "npz":
        return export.numpy_lines(f"{stem}.npz")
    if kind == "faiss":
        return (
            "import faiss\n\n"
            f'transform = faiss.read_VectorTransform("{stem}.faiss")\n'
            "z = transform.apply(x)  # x: float32 embeddings [n, d]\n\n"
            "# cosine search: whitened vectors of length 1, compared by their inner product\n"
            "faiss.normalize_L2(z)\n"
            "index = faiss.IndexFlatIP(transform.d_out)\n"
            "index.add(z)\n"
        )
    if kind == "sentence-transformers":
        return (
            "# unzip first; needs no whitelab\n"
            "from sentence_transformers import SentenceTransformer\n\n"
            f'model = SentenceTransformer("{stem}")\n'
            'vectors = model.encode(["A man plays a guitar.", "Someone makes music."])\n'
            "print(model.similarity(vectors, vectors))\n"
        )
    return (
        "from sklearn.pipeline import make_pipeline\n"
        "from sklearn.preprocessing import Normalizer\n"
        "from whitelab import WhiteningTransformer\n\n"
        f"whitening = WhiteningTransformer({parcel.protocol.whitening!r}{f', k={k}' if k else ''})\n"
        "pipeline = make_pipeline(whitening, Normalizer()).fit(x)  # x: embeddings [n, d]\n"
        "z = pipeline.transform(x)\n\n"
        "# or in batches, with the same result\n"
        "for batch in batches:\n"
        "    whitening.partial_fit(batch)\n"
    )
