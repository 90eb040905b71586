"""Switches of the environment: on where nothing is said, and no word is guessed at."""

import pytest

from whitelab.base.switches import OFF, ON, TRAINING, switched_on


@pytest.mark.parametrize(("words", "on"), [(("", " ", " On", *ON), True), (("OFF ", *OFF), False)])
def test_a_switch_is_on_unless_it_says_off(monkeypatch, words, on):
    for word in words:
        monkeypatch.setenv(TRAINING, word)
        assert switched_on(TRAINING) is on
    monkeypatch.delenv(TRAINING)
    assert switched_on(TRAINING)


@pytest.mark.parametrize("word", ["disabled", "none", "2"])
def test_a_word_that_is_neither_is_refused(monkeypatch, word):
    monkeypatch.setenv(TRAINING, word)
    with pytest.raises(ValueError, match=f"WHITELAB_TRAINING='{word}' must be on or off"):
        switched_on(TRAINING)
