"""Sentence pairs with gold scores and texts with labels: the only place that knows the formats they come in."""

from .labelled import ColumnNames, discover_labelled, load_labelled
from .labels import LabelledInfo, LabelledTexts
from .layouts import Part, TaskInfo, discover
from .loading import load, load_text
from .pairs import DataError, MalformedRows, Problem, SentencePairs
from .senteval import SENTEVAL_TASKS

__all__ = [
    "SENTEVAL_TASKS",
    "ColumnNames",
    "DataError",
    "LabelledInfo",
    "LabelledTexts",
    "MalformedRows",
    "Part",
    "Problem",
    "SentencePairs",
    "TaskInfo",
    "discover",
    "discover_labelled",
    "load",
    "load_labelled",
    "load_text",
]
