"""What the bundled demonstration sets promise, read through the readers everyone else uses."""

import re
from collections import Counter

import numpy as np
import pytest

from whitelab.datasets import BUNDLED_SETS, discover, load


@pytest.fixture(scope="module", params=BUNDLED_SETS)
def demo(request):
    return load(request.param)


def overlap(pairs) -> np.ndarray:
    """Jaccard index of the two sentences' sets of lower-cased words, for each pair."""
    words = [[set(re.findall(r"\w+", text.lower())) for text in side] for side in (pairs.first, pairs.second)]
    return np.array([len(a & b) / len(a | b) for a, b in zip(*words, strict=True)])


def bands(pairs) -> np.ndarray:
    """0 to 4 for scores in [0, 1), ... [4, 5]."""
    return np.minimum(pairs.gold.astype(int), 4)


def ranks(values: np.ndarray) -> np.ndarray:
    """Average ranks, ties sharing theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]


def test_it_is_labelled_as_no_benchmark(demo):
    assert not demo.published
    assert demo.task in BUNDLED_SETS
    assert discover(demo.task)[0].subset_names == demo.subset_names


def test_it_is_large_enough(demo):
    assert demo.n_pairs >= 1400
    assert len(demo.sentences) == 2 * demo.n_pairs  # none twice


def test_every_subset_is_large_enough(demo):
    sizes = Counter(demo.subset_names[number] for number in demo.subset)
    assert len(sizes) >= 10
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
    shares = np.bincount(bands(demo), minlength=5) / demo.n_pairs
    assert shares.min() >= 0.10, shares


def test_no_sentence_is_in_both_sets():
    everyday, hard = (set(load(name).sentences) for name in BUNDLED_SETS)
    assert not everyday & hard


def test_everyday_pairs_share_words_as_the_published_pairs_do():
    pairs = load("demo")
    shared = overlap(pairs)
    assert 0.5 <= np.corrcoef(ranks(shared), ranks(pairs.gold))[0, 1] <= 0.65  # STS-B 0.57, STS15 0.70
    means = np.array([shared[bands(pairs) == band].mean() for band in range(5)])
    stsb, sts15 = np.array([0.25, 0.33, 0.38, 0.44, 0.55]), np.array([0.13, 0.20, 0.29, 0.37, 0.53])
    assert np.all((sts15 - 0.03 <= means) & (means <= stsb + 0.03)), means
    shares = np.bincount(bands(pairs)) / pairs.n_pairs
    assert np.abs(shares - [0.18, 0.14, 0.19, 0.24, 0.25]).max() < 0.03, shares  # STS-B's


def test_in_the_contrast_set_word_overlap_does_not_give_the_score_away():
    pairs = load("demo-hard")
    shared = overlap(pairs)
    assert abs(np.corrcoef(ranks(shared), ranks(pairs.gold))[0, 1]) < 0.25
    assert np.sum((shared > 0.5) & (pairs.gold <= 2.5)) >= 200
    assert np.sum((shared < 0.25) & (pairs.gold >= 4)) >= 150


def test_the_ranks_used_here_share_ties():
    assert ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1.0, 3.5, 2.0]
