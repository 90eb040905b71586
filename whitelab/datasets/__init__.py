"""Sentence pairs with gold scores and texts with labels: the only place that knows the formats they come in."""

from .held import hold
from .hub import DownloadError, LicenceNotAccepted, fetch
from .labelled import ColumnNames, discover_labelled, load_labelled
from .labels import LabelledInfo, LabelledTexts
from .layouts import Part, TaskInfo, discover
from .loading import load, load_text
from .pairs import DataError, MalformedRows, Problem, SentencePairs
from .senteval import SENTEVAL_TASKS
from .sheets import ROLES, Sheet, open_pasted, open_sheet
from .sources import SOURCES, Source, fetched
from .tables import Upload

__all__ = [
    "ROLES",
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
    "Sheet",
    "Source",
    "TaskInfo",
    "Upload",
    "discover",
    "discover_labelled",
    "fetch",
    "fetched",
    "hold",
    "load",
    "load_labelled",
    "load_text",
    "open_pasted",
    "open_sheet",
]
