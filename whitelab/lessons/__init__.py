"""Ten lessons on the real pages: each asks for predictions, and the core computes every answer when it is asked."""

from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.lessons import by_hand, cone, dimensions, gain, hubs, roundness, sentences, spread, together, training
from whitelab.lessons.lesson import Answer, Ask, Choice, Cloud, Curve, Lesson, NoAnswer, Number, Step

LESSONS: dict[int, Lesson] = {
    module.LESSON.number: module.LESSON
    for module in (cone, roundness, by_hand, gain, sentences, dimensions, hubs, spread, together, training)
}


def asked(lesson: int, step: int, space: LayerEmbeddings | None) -> tuple[str, Ask]:
    """The question of a step, counted from 1, and the prediction it wants."""
    return LESSONS[lesson].steps[step - 1].asked(space)


def answered(lesson: int, step: int, of: LayerEmbeddings | tuple[float, ...] | None) -> Answer:
    """The answer of a step on a space, or on the state of its cloud. Raises NoAnswer where there is none."""
    return LESSONS[lesson].steps[step - 1].answered(of)


__all__ = [
    "LESSONS",
    "Answer",
    "Ask",
    "Choice",
    "Cloud",
    "Curve",
    "Lesson",
    "NoAnswer",
    "Number",
    "Step",
    "answered",
    "asked",
]
