"""The score by the number of sentences a map is fitted on."""

import pytest
import torch

import whitelab
from whitelab.scoring.setting import Setting
from whitelab.sweeps.sentences import sample_counts, sentence_scores


def test_a_larger_sample_holds_a_smaller_and_each_has_its_size(space):
    few, many = sample_counts(space, 10), sample_counts(space, 30)
    assert (few.sum(), many.sum()) == (10, 30)
    assert bool((many >= few).all())
    assert not torch.equal(few, sample_counts(space, 10, seed=1))


def test_every_score_is_that_of_a_map_fitted_on_the_sample(space):
    setting = Setting.parse("L1:pca")
    ((few, many), (shrunk, _)) = sentence_scores(space, [setting, setting.with_(whitening="shrunk")], [20, 40])
    x = space.combine((1,))
    white = whitelab.fit("pca", whitelab.Moments.of(x[sample_counts(space, 20) > 0]))(x)
    rho = whitelab.spearman(whitelab.pair_cosines(white[space.first], white[space.second]), space.gold)
    assert few.spearman == pytest.approx(100 * float(rho))
    assert (few.sentences, many.sentences) == (20, 40)
    assert shrunk.spearman != few.spearman


def test_a_sample_of_more_sentences_than_there_are_is_refused(space):
    with pytest.raises(ValueError, match="sentences=61 must lie between 1 and n=60"):
        sentence_scores(space, [Setting.parse("L1:pca")], [61])
