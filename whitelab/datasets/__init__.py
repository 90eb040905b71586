"""Sentence pairs with gold scores and texts with labels: the only place that knows the formats they come in."""

from .hub import DownloadError, LicenceNotAccepted, fetch
from .labelled import ColumnNames, discover_labelled, load_labelled
from .labels import LabelledInfo, LabelledTexts
from .layouts import Part, TaskInfo, discover
from .loading import load, load_text
from .pairs import DataError, MalformedRows, Problem, SentencePairs
from .senteval import SENTEVAL_TASKS
from .sources import SOURCES, Source, fetched

__all__ = [
    "SENTEVAL_TASKS",
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
    "SentencePairs",
    "Source",
    "TaskInfo",
    "discover",
    "discover_labelled",
    "fetch",
    "fetched",
    "load",
    "load_labelled",
    "load_text",
]
