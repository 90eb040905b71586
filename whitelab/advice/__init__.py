"""What to do with the vectors, for a purpose, from the user's own data: few settings, measured, in three sentences."""

from whitelab.advice.advising import (
    PURPOSES,
    SERVED,
    advise_pairs,
    advise_search,
    advise_sentences,
    advise_texts,
)
from whitelab.advice.answer import Advice, answer, kept_as, named
from whitelab.advice.evidence import Evidence, Option

__all__ = [
    "SERVED",
    "PURPOSES",
    "Advice",
    "Evidence",
    "Option",
    "advise_pairs",
    "advise_search",
    "advise_sentences",
    "advise_texts",
    "answer",
    "kept_as",
    "named",
]
