"""Which rows are learnt from and scored, and that a map sees no others."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from labelled_texts import halved, make_rows, make_texts, with_y
from sklearn.model_selection import StratifiedKFold

from whitelab.probe import How, fit_map, turns, usual
from whitelab.scoring.setting import Setting, parse_settings


def test_a_test_split_is_one_turn_and_dev_is_kept_apart():
    data = make_texts(12, 2, ["train"] * 6 + ["dev"] * 2 + ["test"] * 4)
    (turn,) = turns(data)
    assert (len(turn.train), len(turn.dev), len(turn.test)) == (6, 2, 4)
    (turn,) = turns(make_texts(12, 2, ["train"] * 6 + ["dev"] * 6))  # for want of a test split
    assert (len(turn.dev), turn.test.tolist()) == (0, list(range(6, 12)))
    with pytest.raises(ValueError, match="rows of the split test need rows of the split train"):
        turns(make_texts(4, 2, ["test"] * 4))


def test_folds_score_every_row_once_and_never_learn_from_it():
    data = make_texts()
    found = turns(data, 10)
    assert sorted(np.concatenate([turn.test for turn in found])) == list(range(90))
    for turn in found:
        assert not set(turn.train) & set(turn.test)
        assert np.bincount(data.y[turn.test]).tolist() == [3, 3, 3]  # stratified


@pytest.mark.parametrize("blank", [(), (7, 40)])
def test_folds_of_senteval_are_those_of_its_sorted_rows(blank):
    data = replace(make_texts(60, 2, layout="senteval"), blank=blank)
    order = sorted(range(60), key=lambda i: (0 if i in blank else len(data.first[i].split()), data.y[i]))
    folds = StratifiedKFold(10, shuffle=True, random_state=1111).split(order, data.y[order])
    for turn, (_, test) in zip(turns(data, 10), folds, strict=True):
        assert turn.test.tolist() == [order[i] for i in test]
    plain = turns(make_texts(60, 2), 10)
    assert any(a.test.tolist() != b.test.tolist() for a, b in zip(turns(data, 10), plain, strict=True))


@pytest.mark.parametrize("pairs", [False, True])
def test_equal_texts_stay_in_one_fold_and_change_nothing_where_there_are_none(pairs):
    data = make_texts(60, 2, pairs=pairs)
    again = replace(
        data,
        first=(data.second or data.first) + data.first,  # a pair the other way round
        second=data.first + data.second if pairs else None,
        y=np.tile(data.y, 2),
        split=data.split * 2,
    )
    folds = list(StratifiedKFold(10, shuffle=True, random_state=1111).split(data.y, data.y))
    for (learnt, scored), turn, twice in zip(folds, turns(data, 10), turns(again, 10), strict=True):
        assert (turn.train.tolist(), turn.test.tolist()) == (learnt.tolist(), scored.tolist())
        assert twice.test.tolist() == [*scored, *(scored + 60)]
        assert not set(twice.train) & set(twice.test)
    senteval = replace(again, layout="senteval", first=("x",) * 120, second=("x",) * 120 if pairs else None)
    assert len(turns(senteval, 10)) == 10


def test_few_rows_make_fewer_folds_and_one_row_none():
    data = make_texts(8, 2)
    assert len(turns(data, 10)) == 4
    with pytest.raises(ValueError, match="2 different rows of each class, got 1 of 'a'; leave"):
        turns(with_y(data, [0] + [1] * 7))


def test_a_label_whose_every_text_stands_earlier_under_another_counts_nowhere():
    data = make_texts(8, 2)
    twice = replace(data, first=data.first * 2, y=[0] * 8 + [1] * 8, split=data.split * 2)
    with pytest.raises(
        ValueError, match="two classes, got only 'a' .equal rows count once, with the label of the first"
    ):
        turns(twice)
    with pytest.raises(ValueError, match="got 1 of 'b' .equal rows count once"):
        turns(with_y(twice, [0] * 7 + [1] * 9))
    assert len(turns(with_y(twice, [0] * 6 + [1] * 10))) == 2


@pytest.mark.parametrize("spec", ["pca", "zca", "soft:gamma=0.5", "standardize"])
def test_the_map_of_the_training_texts_does_not_see_the_test_texts(spec):
    data = make_texts(split=halved())
    setting = Setting.parse(f"L1:{spec}")
    (turn,) = turns(data)
    x = make_rows(data).combine((1,))
    other = x.clone()
    other[data.first_index[turn.test]] = torch.randn(len(turn.test), x.shape[1], dtype=torch.float64) * 50
    before, after = (fit_map(one, data, turn.train, setting, How()) for one in (x, other))
    assert torch.equal(before.mean, after.mean)
    assert torch.equal(before.dense, after.dense)
    before, after = (fit_map(one, data, turn.train, setting, How(fit="all")) for one in (x, other))
    assert not torch.allclose(before.mean, after.mean)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: How("svm"), "classifier='svm' must be one of knn, linear, senteval, threshold"),
        (lambda: How(neighbours=0), "neighbours=0 must be a whole number of at least 1"),
        (lambda: How(folds=1), "folds=1 must be a whole number of at least 2"),
        (lambda: How(seed=-1), "seed=-1 must lie between 0 and"),
        (lambda: turns(make_texts(), seed=-1), "seed=-1 must lie between 0 and"),
        (lambda: How(threshold=2.0), "threshold=2.0 must lie between -1 and 1"),
        (lambda: How(fit=""), "fit='' must be train, all, or name other text"),
        (lambda: parse_settings(" ; ", 3), "settings=' ; ' must hold at least one setting"),
        (lambda: parse_settings("L*:nothing", 3), "nothing"),
    ],
)
def test_wrong_words_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_usual_classifier_is_the_papers():
    assert usual(make_texts(layout="senteval")) == "senteval"
    assert usual(make_texts(n=9, classes=2, pairs=True)) == "threshold"
    assert usual(make_texts()) == "linear"
    assert How("linear").on(make_texts(layout="senteval")) == "senteval"
