"""The gain of every layer alone is that of its own scores."""

import pytest

from whitelab import Setting, score
from whitelab.statistics import geometry
from whitelab.sweeps.layer_gains import layer_gains


@pytest.mark.parametrize("text", ["L0+L2:pca", "L0:pca@5", "L1:standardize", "L0:soft aggregate=mean fit=cross"])
def test_gains_are_those_of_each_layers_own_scores(space, text):
    setting = Setting.parse(text)
    *_, gains = layer_gains(space, setting)
    assert [gain.layer for gain in gains] == list(range(space.n_layers))
    for gain in gains:
        alone = setting.with_(layers=(gain.layer,))
        assert gain.whitened.spearman == score(space, alone).spearman
        assert gain.gain(gain.whitened) == score(space, alone).spearman - score(space, alone.raw).spearman
        assert gain.mean_cosine == geometry.mean_cosine(space.values[gain.layer], space.counts)


def test_what_keeps_every_direction_is_also_cut_to_a_third(space):
    *_, whole = layer_gains(space, Setting.parse("L0:pca"))
    assert whole[1].cut.spearman == score(space, Setting.parse("L1:pca@4")).spearman  # of 12 dimensions
    for text in ("L0:pca@5", "L0:standardize"):
        *_, gains = layer_gains(space, Setting.parse(text))
        assert {gain.cut for gain in gains} == {None}


def test_layers_come_one_by_one(space):
    steps = []
    counts = [len(gains) for gains in layer_gains(space, Setting.parse("L0:pca"), lambda *done: steps.append(done))]
    assert counts == [1, 2, 3, 4]
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]
