"""What the bundled demonstration set promises, read through the readers everyone else uses."""

import re
from collections import Counter

import numpy as np
import pytest

from whitelab.datasets import discover, load


@pytest.fixture(scope="module")
def demo():
    return load("demo")


@pytest.fixture(scope="module")
def overlap(demo) -> np.ndarray:
    """Jaccard index of the two sentences' sets of lower-cased words, for each pair."""
    words = [[set(re.findall(r"\w+", text.lower())) for text in side] for side in (demo.first, demo.second)]
    return np.array([len(a & b) / len(a | b) for a, b in zip(*words, strict=True)])


def ranks(values: np.ndarray) -> np.ndarray:
    """Average ranks, ties sharing theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]


def test_it_is_labelled_as_no_benchmark(demo):
    assert not demo.published
    assert demo.task == "demo"
    assert discover("demo")[0].subset_names == demo.subset_names


def test_it_is_large_enough(demo):
    assert demo.n_pairs >= 1200
    assert len(demo.sentences) >= 1600


def test_every_subset_is_large_enough(demo):
    sizes = Counter(demo.subset_names[number] for number in demo.subset)
    assert len(sizes) >= 8
    assert min(sizes.values()) >= 120, sizes


def test_no_pair_occurs_twice_in_either_order(demo):
    held = Counter(frozenset(pair) for pair in zip(demo.first, demo.second, strict=True))
    assert [tuple(pair) for pair, count in held.items() if count > 1] == []


def test_no_pair_repeats_one_sentence(demo):
    assert [a for a, b in zip(demo.first, demo.second, strict=True) if a.casefold() == b.casefold()] == []


def test_no_row_is_malformed_and_no_sentence_is_without_words(demo):
    assert demo.problems == ()
    assert [text for text in demo.sentences if not re.search(r"\w", text)] == []


def test_scores_spread_over_the_whole_scale(demo):
    assert demo.gold.min() >= 0
    assert demo.gold.max() <= 5
    bands = np.bincount(np.minimum(demo.gold.astype(int), 4), minlength=5) / demo.n_pairs  # 5 joins [4, 5]
    assert bands.min() >= 0.10, bands


def test_word_overlap_does_not_give_the_score_away(demo, overlap):
    spearman = np.corrcoef(ranks(overlap), ranks(demo.gold))[0, 1]
    assert abs(spearman) < 0.25


def test_many_pairs_contradict_their_word_overlap(demo, overlap):
    assert np.sum((overlap > 0.5) & (demo.gold <= 2.5)) >= 200
    assert np.sum((overlap < 0.25) & (demo.gold >= 4)) >= 150


def test_the_ranks_used_here_share_ties():
    assert ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1.0, 3.5, 2.0]
