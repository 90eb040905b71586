"""Sentence pairs with gold scores, and the only place that knows the file formats they come in."""

from .hub import DownloadError, LicenceNotAccepted, fetch
from .layouts import Part, TaskInfo, discover
from .loading import load, load_text
from .pairs import DataError, MalformedRows, Problem, SentencePairs
from .sources import SOURCES, Source, fetched

__all__ = [
    "SOURCES",
    "DataError",
    "DownloadError",
    "LicenceNotAccepted",
    "MalformedRows",
    "Part",
    "Problem",
    "SentencePairs",
    "Source",
    "TaskInfo",
    "discover",
    "fetch",
    "fetched",
    "load",
    "load_text",
]
