"""How well cosines tell matching pairs from others."""

from dataclasses import replace

import numpy as np
import pytest
from labelled_texts import RAW, WHITE, matched, with_y
from reference import most_often_right, whiten
from sklearn.metrics import average_precision_score, f1_score

from whitelab.probe import How, probe


@pytest.mark.parametrize("setting", [RAW, WHITE])
def test_pair_measures_are_those_of_the_plain_cosines(setting):
    data, space = matched()
    found = probe(space, data, setting, How("threshold"))
    x = space.values[1].double().numpy()
    rows = np.concatenate([data.first_index, data.second_index])
    z = whiten(x[rows], x, setting.whitening)
    u, v = z[data.first_index], z[data.second_index]
    cosines = (u * v).sum(1) / np.linalg.norm(u, axis=1) / np.linalg.norm(v, axis=1)
    assert np.allclose(found.cosines, cosines, atol=1e-9)
    yes = data.y == 1
    assert found.accuracy == pytest.approx(100 * np.mean((cosines >= 0.5) == yes))
    assert found.pairs.best_accuracy == pytest.approx(100 * most_often_right(cosines, yes))
    assert found.pairs.average_precision == pytest.approx(100 * average_precision_score(yes, cosines))
    assert found.f1 == pytest.approx(100 * f1_score(yes, cosines >= 0.5))
    best = max(f1_score(yes, cosines >= t) for t in cosines)
    assert found.pairs.best_f1 == pytest.approx(100 * best)
    assert found.pairs.chosen_on == "the scored pairs"


def test_a_threshold_is_chosen_on_training_pairs_where_there_are_some():
    data, space = matched(60, ["train"] * 40 + ["test"] * 20)
    found = probe(space, data, WHITE, How("threshold"))
    assert (found.scored, found.train, found.fitted) == (20, 40, 80)
    assert found.pairs.chosen_on == "the training pairs"
    flipped = with_y(data, [*data.y[:40], *(1 - data.y[40:])])  # the labels of the test rows decide nothing
    assert probe(space, flipped, WHITE, How("threshold")).pairs.best_threshold == found.pairs.best_threshold


def test_a_threshold_tells_one_of_three_classes_from_the_others():
    data, space = matched()
    y = np.where(data.y == 1, 2, np.arange(data.n_rows) % 2)
    three = replace(data, y=y, classes=("maybe", "no", "yes"), positive=2)
    one, found = (probe(space, each, RAW, How("threshold")) for each in (data, three))
    assert (found.accuracy, found.pairs, found.f1) == (one.accuracy, one.pairs, one.f1)
    assert (found.classes, found.confusion) == (("not yes", "yes"), one.confusion)


def test_the_fixed_threshold_is_what_was_asked_for():
    data, space = matched()
    found = probe(space, data, RAW, How("threshold", threshold=0.9))
    assert found.accuracy == pytest.approx(100 * np.mean((found.cosines >= 0.9) == found.matches))
    assert "match where cosine >= 0.9" in found.protocol


def test_swapping_what_says_yes_swaps_what_is_matched():
    data, space = matched()
    one = probe(space, data, RAW, How("threshold"))
    other = probe(space, replace(data, positive=0), RAW, How("threshold"))
    assert one.accuracy + other.accuracy == pytest.approx(100)
