"""What is loaded, as data: every pair and every sentence in one bar."""

import numpy as np
import pytest

from whitelab import figures


@pytest.mark.parametrize("gold", [[0.0, 2.5, 2.5, 5.0], [3.0, 3.0], [4.5], list(np.linspace(-3, 900, 77))], ids=len)
def test_every_pair_is_in_one_bar_of_the_gold_histogram(gold):
    (bars,) = figures.gold_histogram(np.array(gold)).data
    assert sum(bars.y) == len(gold)
    assert len(bars.x) == (len(set(gold)) if len(set(gold)) <= 30 else 25)
    assert bars.width > 0


def test_few_pairs_are_counted_in_whole_ones():
    few, many = (figures.gold_histogram(np.repeat([0.0, 5.0], times)).layout.yaxis.dtick for times in (1, 400))
    assert (few, many) == (1, None)


@pytest.mark.parametrize("lengths", [[1], [0, 0], [3, 3, 7, 12], [1, 2000, 500]], ids=str)
def test_every_sentence_is_in_one_bar_of_the_length_histogram(lengths):
    (bars,) = figures.length_histogram(np.array(lengths)).data
    assert sum(bars.y) == len(lengths)
    assert len(bars.x) <= 61
    assert sum(bars.y[: len(bars.y) // 2 + 1]) >= 1


def test_one_sentence_longer_than_all_others_does_not_crush_them_into_one_bar():
    figure = figures.length_histogram(np.array([*range(1, 21)] * 5 + [3000]))
    (bars,) = figure.data
    assert sum(bars.y > 0) == 21
    assert (bars.y[-1], bars.customdata[-1]) == (1, "40 words or more")
    assert "also 1 with more than 40" in figure.layout.xaxis.title.text
