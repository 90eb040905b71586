"""What the corpus page says of a curve that settles, rises, or falls because the text differs."""

import pytest

from whitelab.corpus.settling import Settling
from whitelab.ui.sections.corpora import _enough


@pytest.mark.parametrize(
    ("isotropy", "words"),
    [
        ((0.75, 0.95), "More text will change little."),
        ((0.3, 0.6), "More text, or a smaller k, would help."),
        ((0.91, 0.13), "the chunks differ in kind. Mix the lines"),
    ],
)
def test_the_last_point_is_read_aloud(isotropy, words):
    said = _enough(Settling((4096, 8192), isotropy, (1.0,) * 61, 12_288, 64))
    assert f"**{isotropy[-1]:.2f}**" in said
    assert "8\u202f192 sentences, 128 a dimension" in said
    assert words in said


def test_a_fall_while_there_are_fewer_sentences_than_dimensions_says_nothing_of_the_text():
    said = _enough(Settling((200, 400), (0.124, 0.015), (1.0,) * 381, 800, 384))
    assert "More text, or a smaller k, would help." in said


@pytest.mark.parametrize(("k", "of"), [(None, 384), (300, 300)])
def test_a_map_of_fewer_sentences_than_directions_is_not_called_enough(k, of):
    settled = Settling((100, 200), (0.97, 0.95), (1.0,) * 199, 400, 384)
    assert f"at most 199 of {of} directions" in (said := _enough(settled, k))
    assert "will change little" not in said
    assert "will change little" in _enough(settled, 64)


def test_sentences_a_dimension_are_counted_of_the_vectors_dimensions_and_few_are_not_rounded_up():
    assert "200 sentences, 0.52 a dimension" in _enough(Settling((200,), (0.1,), (1.0,) * 150, 400, 384))
