"""Sentence pairs with gold scores, and the only place that knows the file formats they come in."""

from .layouts import Part, TaskInfo, discover
from .loading import load, load_text
from .pairs import DataError, MalformedRows, Problem, SentencePairs

__all__ = [
    "DataError",
    "MalformedRows",
    "Part",
    "Problem",
    "SentencePairs",
    "TaskInfo",
    "discover",
    "load",
    "load_text",
]
