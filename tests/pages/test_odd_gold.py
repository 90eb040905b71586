"""Gold scores of which little follows: all equal, or hardly any pair alike."""

import pytest
from tiny import SENTENCES

from .visiting import alts, keys, said, start, table, until


def judged(place, name: str, gold) -> dict[str, str]:
    """The query of a visit to pairs with these gold scores."""
    rows = zip(SENTENCES[::2], SENTENCES[1::2], gold, strict=False)
    (place / f"{name}.csv").write_text("".join(f"{a},{b},{score}\n" for a, b, score in rows))
    return {"model": str(place / "model"), "data": str(place / f"{name}.csv"), "layers": "1"}


@pytest.mark.parametrize("alike", [1, 9, 10])
def test_an_alignment_of_few_pairs_is_said_to_be_one(place, alike):
    at = until(start("uniformity", **judged(place, f"alike{alike}", [4.5] * alike + [1, 2, 3] * 10)))
    assert any("says little of others" in one.value for one in at.warning) is (alike < 10)


def test_of_gold_that_is_all_equal_nothing_moves_towards_it_and_no_sentences_are_equally_far_apart(place):
    query = judged(place, "equal", [3] * 60)
    at = until(start("whitening", **query, see="Pairs that moved most"))
    assert said(at, "of one gold score for all, no rank is nearer to gold")
    assert "moved" not in keys(at)  # the choice of pairs that moved towards gold
    assert "Direction" not in table(at, "First sentence")
    assert not said(at, "Whiskers are 95 % intervals")  # there are none
    at = until(start("dimensions", **query))
    assert said(at, "there is no direction left to keep.")
    assert not said(at, "so the curve is flat")
    assert not said(at, "so all sentences are equally far apart")
    at = until(start("layers", **query, see="Would more layers do better?"))
    assert said(at, "No subset has a score that is defined.")
    assert not [alt for alt in alts(at) if "ubsets" in alt or "number of layers" in alt]


def test_pairs_none_of_which_moved_are_not_called_of_one_gold_score(small):
    at = until(start("whitening", **small, whitening="PCA whitening", baseline="zca", see="Pairs that moved most"))
    assert said(at, "0 of 60 pairs moved towards their gold rank and 0 away from it")
