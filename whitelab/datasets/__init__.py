"""Sentence pairs with gold scores, and the only place that knows the file formats they come in."""

from .layouts import Part, TaskInfo, discover
from .loading import load, load_text
from .pairs import DataError, MalformedRows, Problem, SentencePairs
from .sheets import ROLES, Sheet, open_pasted, open_sheet
from .tables import Upload

__all__ = [
    "ROLES",
    "DataError",
    "MalformedRows",
    "Part",
    "Problem",
    "SentencePairs",
    "Sheet",
    "TaskInfo",
    "Upload",
    "discover",
    "load",
    "load_text",
    "open_pasted",
    "open_sheet",
]
