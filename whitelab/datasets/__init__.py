"""Sentence pairs with gold scores, texts with labels, retrieval sets: the only place that knows their formats."""

from whitelab.datasets.hub import DownloadError, LicenceNotAccepted, fetch
from whitelab.datasets.in_memory import hold
from whitelab.datasets.labelled import ColumnNames, discover_labelled, load_labelled
from whitelab.datasets.labels import LabelledInfo, LabelledTexts
from whitelab.datasets.layouts import (
    BUNDLED_SETS,
    DEMO,
    DEMO_SEARCH,
    Part,
    TaskInfo,
    all_published,
    data_name,
    discover,
)
from whitelab.datasets.loading import load, load_sentences, load_text, tabs_note
from whitelab.datasets.pairs import DataError, MalformedRows, Problem, SentencePairs
from whitelab.datasets.retrieval_sets import RetrievalSet, load_retrieval, retrieval_files, retrieval_splits
from whitelab.datasets.sheets import Sheet, open_pasted, open_sheet, read_sentences
from whitelab.datasets.sources import SOURCES, Source, fetched
from whitelab.datasets.uploads import Upload

__all__ = [
    "BUNDLED_SETS",
    "DEMO",
    "DEMO_SEARCH",
    "SOURCES",
    "ColumnNames",
    "DataError",
    "DownloadError",
    "LabelledInfo",
    "LabelledTexts",
    "LicenceNotAccepted",
    "MalformedRows",
    "Part",
    "Problem",
    "RetrievalSet",
    "SentencePairs",
    "Sheet",
    "Source",
    "TaskInfo",
    "Upload",
    "all_published",
    "data_name",
    "discover",
    "discover_labelled",
    "fetch",
    "fetched",
    "hold",
    "load",
    "load_labelled",
    "load_retrieval",
    "load_sentences",
    "load_text",
    "read_sentences",
    "open_pasted",
    "open_sheet",
    "retrieval_files",
    "retrieval_splits",
    "tabs_note",
]
