"""Laws of a set of scored pairs: every sentence once, read-only, and a fingerprint of what decides a score."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whitelab.datasets import DataError, SentencePairs, Upload, load, open_sheet


def make_pairs(**changes) -> SentencePairs:
    parts = {
        "task": "t",
        "first": ("a", "b", "a"),
        "second": ("b", "c", "a"),
        "gold": np.array([1.0, 2.0, 5.0]),
        "subset": np.array([0, 1, 0]),
        "subset_names": ("x", "y"),
    }
    return SentencePairs(**parts | changes)


def test_unique_sentences_come_in_order_of_first_appearance_and_indices_lead_back():
    pairs = make_pairs(first=("b", "a", "b"), second=("a", "d", "c"))
    assert pairs.sentences == ("b", "a", "d", "c")
    assert tuple(pairs.sentences[i] for i in pairs.first_index) == pairs.first
    assert tuple(pairs.sentences[i] for i in pairs.second_index) == pairs.second
    assert pairs.counts.tolist() == [2, 2, 1, 1]
    assert pairs.counts.dtype == pairs.first_index.dtype == np.int64


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), min_size=1, max_size=30))
def test_the_index_is_a_bijection_onto_unique_sentences(rows):
    first, second = zip(*rows, strict=True)
    zeros = np.zeros(len(rows), np.int64)
    pairs = make_pairs(first=first, second=second, gold=zeros + 1.0, subset=zeros)
    assert len(set(pairs.sentences)) == len(pairs.sentences)
    assert set(pairs.sentences) == set(first) | set(second)
    assert tuple(pairs.sentences[i] for i in pairs.first_index) == first
    assert tuple(pairs.sentences[i] for i in pairs.second_index) == second
    assert pairs.counts.sum() == 2 * len(rows)


def test_arrays_are_read_only_copies():
    gold = np.array([1.0, 2.0, 5.0])
    pairs = make_pairs(gold=gold)
    gold[0] = 4.0
    assert pairs.gold[0] == 1.0
    for array in (pairs.gold, pairs.subset, pairs.first_index, pairs.second_index, pairs.counts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"second": ("b",)}, "second has size 1 but first holds 3"),
        ({"gold": np.ones(2)}, "gold has size"),
        ({"gold": np.array([1.0, np.nan, 2.0])}, "gold must be finite"),
        ({"subset": np.array([0, 2, 0])}, "subset must index the 2 subset_names"),
        ({"first": (), "second": ()}, "at least one pair"),
        ({"first": ("a", None, "b")}, "first must hold texts, row 1 holds None"),
        ({"second": ("a", "b", float("nan"))}, "second must hold texts, row 2 holds nan"),
        ({"gold": ("high", "low", "low")}, "gold must hold numbers"),
        ({"subset": (0.2, 0.9, 0)}, "subset must hold whole numbers, got 0.2"),
        ({"subset_names": "xy"}, "subset_names must hold several texts, got one: 'xy'"),
        ({"subset_names": ("x", "x")}, "subset_names must differ from each other, got 'x' twice"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(change, message):
    with pytest.raises(DataError, match=message):
        make_pairs(**change)


@pytest.mark.parametrize(
    "change",
    [
        {"first": ("a", "b", "A")},
        {"second": ("b", "c", "b")},
        {"gold": np.array([1.0, 2.0, 4.0])},
        {"subset": np.array([0, 0, 1])},
        {"subset_names": ("x", "z")},
        {"first": ("b", "b", "a"), "second": ("a", "c", "a")},
    ],
)
def test_the_fingerprint_changes_with_everything_that_decides_a_score(change):
    assert make_pairs().fingerprint != make_pairs(**change).fingerprint


def test_the_fingerprint_ignores_what_does_not_decide_a_score():
    same = make_pairs(source="elsewhere", notes=("n",), split="dev", published=True)
    assert make_pairs().fingerprint == same.fingerprint


def test_a_file_read_from_a_disk_and_uploaded_under_any_name_is_the_same_pairs(tmp_path):
    (tmp_path / "mine.csv").write_text("first,second,score\na,b,1\nc,d,2\ne,f,3\n")
    here = load(tmp_path / "mine.csv")
    there = open_sheet(Upload("other.csv", (tmp_path / "mine.csv").read_bytes())).pairs(0, 1, 2)
    assert here.subset_names != there.subset_names
    assert here.fingerprint == there.fingerprint


def test_a_gold_score_of_minus_zero_is_zero():
    zero, minus = (make_pairs(gold=np.array([zero, 1, 2])) for zero in (0.0, -0.0))
    assert minus.fingerprint == zero.fingerprint
    assert not np.signbit(minus.gold).any()


def test_the_fingerprint_keeps_sentence_borders_apart():
    kept = {"gold": np.array([1.0, 2.0]), "subset": np.array([0, 0])}
    one = make_pairs(first=("ab", "c"), second=("d", "e"), **kept)
    other = make_pairs(first=("a", "bc"), second=("d", "e"), **kept)
    assert one.fingerprint != other.fingerprint
