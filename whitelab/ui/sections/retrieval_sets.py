"""Choosing a retrieval set on a page: the bundled one, a folder or uploaded files."""

import streamlit as st

from whitelab import datasets
from whitelab.base import upload_limits
from whitelab.datasets import DEMO, DataError, MalformedRows, RetrievalSet, Upload
from whitelab.ui.results.files import file_stamp
from whitelab.ui.sidebar import malformed
from whitelab.ui.sidebar.own_data import UPLOADED

DATA, SPLIT, KEEP = "searched-data", "searched-split", "searched-keep"  # session_state: what is chosen
HELP = (
    "Type the path of a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv, as BEIR's, or with TREC qrels in "
    "place of the last."
)
_KINDS = ("jsonl", "tsv", "txt", "qrels", "trec")
_HELD = "retrieval-upload"  # session_state: the files of an upload and what was read of them


@st.cache_resource(max_entries=8, show_spinner=False)
def read(data: str, split: str, keep_going: bool, stamp: float) -> RetrievalSet:
    """A retrieval set; `stamp` is the files' time, so a changed file is read again. Raises DataError."""
    return datasets.load_retrieval(data, split, keep_going=keep_going)


def choose() -> RetrievalSet | None:
    """The set this visitor chose, or None after saying what is missing or wrong."""
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with left:
        data = st.selectbox(
            "Retrieval set",
            [DEMO, UPLOADED],
            key=DATA,
            bind="query-params",
            accept_new_options=True,
            format_func=lambda name: {DEMO: "Everyday questions", UPLOADED: "Uploaded files"}.get(name, name),
            help=HELP,
        )
    data = data or DEMO
    try:
        if data == UPLOADED:
            return _uploaded()
        splits = datasets.retrieval_splits(data)
        with right:
            split = st.selectbox("Judgements", splits, _usual(splits), key=SPLIT, bind="query-params")
        split = split if split in splits else splits[_usual(splits)]
        return read(data, split, _keep(data), file_stamp(datasets.retrieval_files(data)))
    except MalformedRows as error:
        malformed.say(error, data, malformed.RETRIEVAL)
    except DataError as error:
        st.error(str(error))
    return None


def code(data: RetrievalSet) -> str:
    """The expression that reads the same set."""
    place, keep = st.session_state.get(DATA) or DEMO, ", keep_going=True" if st.session_state.get(KEEP) else ""
    if place == UPLOADED:
        names = tuple(upload.name for upload in st.session_state[_HELD][1])
        files = f"[whitelab.Upload(name, open(name, 'rb').read()) for name in {names!r}]"
        return f"whitelab.load_retrieval({files}{keep})"
    return f"whitelab.load_retrieval({place!r}, {data.split!r}{keep})"


def is_upload() -> bool:
    """Whether the chosen set was brought by this visitor."""
    return st.session_state.get(DATA) == UPLOADED


def _usual(splits: tuple[str, ...]) -> int:
    return splits.index("test") if "test" in splits else 0


def _keep(data: str) -> bool:
    """Whether rows that cannot be used are left out; asked only where there are some."""
    if not malformed.found(data, malformed.RETRIEVAL):
        return False
    return st.checkbox("Leave malformed rows out", key=KEEP, help="They are counted in the notes.")


def _uploaded() -> RetrievalSet | None:
    files = st.file_uploader(
        "corpus.jsonl, queries.jsonl and the judgements",
        type=list(_KINDS),
        accept_multiple_files=True,
        max_upload_size=upload_limits.TABLE_MB,
        key="retrieval-files",
        help=f"At most {upload_limits.TABLE_MB} MB each. They stay in this session; nobody else sees them.",
    )
    if not files:
        st.info(
            "Choose three files: documents and queries as lines of JSON with _id and text, their names holding "
            "corpus and queries, and the judgements as .tsv or TREC qrels."
        )
        return None
    what = (tuple(file.file_id for file in files), _keep(UPLOADED))
    held = st.session_state.get(_HELD)
    if held is None or held[0] != what:
        uploads = [Upload(file.name, file.getvalue()) for file in files]
        found = datasets.load_retrieval(uploads, keep_going=what[1])
        held = st.session_state[_HELD] = what, uploads, found
    return held[2]
