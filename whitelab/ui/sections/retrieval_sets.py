"""Choosing a retrieval set on a page: the bundled one, a folder or uploaded files."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from whitelab import datasets
from whitelab.base.wording import capitalised, plain
from whitelab.datasets import DEMO, RetrievalSet, Upload
from whitelab.encoding.checkpoints import ModelFiles, prompts, prompts_note
from whitelab.encoding.names import ModelError
from whitelab.ui.results.files import file_stamp
from whitelab.ui.results.kept import kept
from whitelab.ui.results.study import remembered
from whitelab.ui.sidebar import malformed
from whitelab.ui.sidebar.own_data import UPLOADED
from whitelab.ui.widgets.address import among, linked
from whitelab.ui.widgets.note import note
from whitelab.ui.widgets.typed import typed_data
from whitelab.ui.widgets.uploader import brought, uploader

DATA, SPLIT, KEEP = "searched-data", "searched-split", "searched-keep"  # session_state: what is chosen
TITLES = {DEMO: "Everyday questions", UPLOADED: "Uploaded files"}
QUERY, DOCUMENT = "query-prompt", "document-prompt"
HELP = (
    "Type the path of a folder, or of its .zip, with corpus.jsonl, queries.jsonl and qrels/test.tsv, as BEIR's, or "
    "with TREC qrels in place of the last."
)
_FILES = "retrieval-files"
_KINDS = ("zip", "jsonl", "tsv", "txt", "qrels", "trec")


@remembered()
def read(data: str, split: str, keep_going: bool, stamp: str) -> RetrievalSet:
    """A retrieval set; `stamp` is that of the files, so a changed file is read again. Raises DataError."""
    return datasets.load_retrieval(data, split, keep_going=keep_going)


def choose(files: ModelFiles) -> RetrievalSet | None:
    """The set this visitor chose, with its notes and prompts, or None after saying what is missing or wrong.

    What the makers of the model with these `files` put before queries and documents is said and offered.
    """
    data = _chosen()
    if data is None:
        return None
    note(*data.notes)
    own, words = _makers(files)
    with st.expander("Prompts", expanded=any(own)):
        query, document = (
            st.text_input(f"Before every {what}", **linked(key, ""), placeholder=f"such as “{example}: ”")
            for what, key, example in (("query", QUERY, "query"), ("document", DOCUMENT, "passage"))
        )
        st.caption(words)
        if any(own) and own != (query or "", document or ""):
            st.button("Use the makers' prompts", key="makers-prompts", on_click=_take, args=own)
    return data.prompted(query or "", document or "") if query or document else data


def _makers(files: ModelFiles) -> tuple[tuple[str, str], str]:
    """What the model's makers put before queries and documents, and the same in words."""
    try:
        own, more = prompts(files), prompts_note(files)
    except ModelError as error:
        return ("", ""), plain(str(error))
    if not any(own):
        return own, "Some models are trained with words before a query or a document; their makers say which."
    before = (f"“{text}” before {what}" for text, what in zip(own, ("queries", "documents"), strict=True) if text)
    said = f"The model's makers put {' and '.join(before)}; scores without them are of another use of the model."
    return own, plain(f"{said} {capitalised(more)}." if more else said)


def _take(query: str, document: str) -> None:
    st.session_state[QUERY], st.session_state[DOCUMENT] = query, document


def _chosen() -> RetrievalSet | None:
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with left:
        data = typed_data("Retrieval set", DATA, list(TITLES), TITLES, HELP)
    with malformed.said(data, malformed.RETRIEVAL):
        if data == UPLOADED:
            return _uploaded(right)
        split = _split(datasets.retrieval_splits(data), right)
        keep = malformed.left_out(data, malformed.RETRIEVAL, KEEP)
        return read(data, split, keep, file_stamp(datasets.retrieval_files(data)))
    return None


def code(data: RetrievalSet) -> str:
    """The expression that reads the same set."""
    prompts = {"query": data.query_prompt, "document": data.document_prompt}
    given = ", ".join(f"{name}={text!r}" for name, text in prompts.items() if text)
    return _reading(data) + (f".prompted({given})" if given else "")


def _reading(data: RetrievalSet) -> str:
    place, keep = st.session_state.get(DATA) or DEMO, ", keep_going=True" if st.session_state.get(KEEP) else ""
    if is_upload():
        names = tuple(file.name for file in brought(_FILES))
        files = f"[whitelab.Upload(name, open(name, 'rb').read()) for name in {names!r}]"
        return f"whitelab.load_retrieval({files}, {data.split!r}{keep})"
    return f"whitelab.load_retrieval({place!r}, {data.split!r}{keep})"


def is_upload() -> bool:
    """Whether the chosen set was brought by this visitor."""
    return st.session_state.get(DATA) == UPLOADED


def _split(splits: tuple[str, ...], place: DeltaGenerator) -> str:
    """The split whose judgements count, asked for at `place`."""
    usual = splits.index("test") if "test" in splits else 0
    among(SPLIT, splits, splits[usual])
    with place:
        split = st.selectbox("Judgements", splits, usual, **linked(SPLIT, splits[usual]))
    return split if split in splits else splits[usual]


def _uploaded(place: DeltaGenerator) -> RetrievalSet | None:
    label = "One .zip, or corpus.jsonl, queries.jsonl and the judgements"
    files = uploader(label, _KINDS, _FILES, several=True)
    if not files:
        st.info(
            "Choose one .zip as BEIR's, or three files: documents and queries as lines of JSON with _id and text, "
            "their names holding corpus and queries, and the judgements as .tsv or TREC qrels."
        )
        return None
    uploads = [Upload(file.name, file.getvalue()) for file in files]
    split = _split(datasets.retrieval_splits(uploads), place)
    keep = malformed.left_out(UPLOADED, malformed.RETRIEVAL, KEEP)
    what = (*(file.file_id for file in files), split, keep)
    return kept("retrieval-upload", what, lambda: datasets.load_retrieval(uploads, split, keep_going=keep))
