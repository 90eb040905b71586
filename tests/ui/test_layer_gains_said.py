"""What the overview says of its first picture is what the numbers are."""

from dataclasses import replace

import pytest

from whitelab import Setting
from whitelab.scoring.paired import doubt
from whitelab.sweeps.layer_gains import layer_gains
from whitelab.ui.sections.layer_gains import _tested, above, finding


@pytest.fixture
def gains(space):
    *_, gains = layer_gains(space, Setting.parse("L0:pca"))
    return gains


def said(gains, changes, cuts=(0, 0, 0, 0), against=lambda gain, score: "") -> str:
    """The finding where whitening and the cut change the layers' raw score of 50 by so much."""
    made = [
        replace(
            gain,
            raw=replace(gain.raw, spearman=50.0),
            whitened=replace(gain.whitened, spearman=50.0 + change),
            cut=replace(gain.cut, spearman=50.0 + cut),
        )
        for gain, change, cut in zip(gains, changes, cuts, strict=True)
    ]
    return finding(made, Setting.parse("L0:pca"), against)


def test_it_names_the_layers_that_gain_and_lose_and_by_how_much(gains):
    words = said(gains, (4, 2.25, 0.2, -3), (5, 5, 5, -1))
    assert "gains in layers 0 and 1 (by up to 4.0 points), loses in layer 3 (by 3.0 points)" in words
    assert "changes little in layer 2.**" in words
    assert "Cut to k = 4, a third" in words
    assert "it gains in layers 0 to 2 (by up to 5.0 points) and loses in layer 3" in words


def test_it_says_on_which_sentences_where_these_are_those_a_map_was_fitted_on(gains):
    own = "**On the sentences it is fitted on, "
    for setting, known in (("L0:pca", True), ("L0:pca fit=cross", False), ("L0:prefix@2", False)):
        assert finding(gains, Setting.parse(setting)).startswith(own) is known


def test_it_never_says_gain_where_nothing_gains(gains):
    words = said(gains, (-4, -2, -1, -3), (-1, -1, -1, -1))
    assert "gains" not in words
    assert "loses in layers 0 to 3" in words


def test_it_says_how_narrow_the_cone_is_where_it_is_narrowest_and_widest(gains):
    cones = (0.1, 0.72, 0.31, 0.02)
    made = [replace(gain, mean_cosine=cone) for gain, cone in zip(gains, cones, strict=True)]
    words = finding(made, Setting.parse("L0:pca@3"))
    assert "0.72 in layer 1, a narrow cone, and of 0.02 in layer 3" in words
    assert "with k = 3" in words
    assert "cone" not in finding([replace(gain, mean_cosine=0.1) for gain in gains], Setting.parse("L0:pca"))


def test_a_layer_whose_sentences_are_equally_far_apart_neither_gains_nor_loses(gains):
    some = said(gains, (8, 3, -29, -20), against=lambda gain, score: "starved" * (score.spearman in (58.0, 30.0)))
    assert "gains in layer 1 (by 3.0 points), loses in layer 2 (by 29.0 points) and sets all sentences" in some
    assert "equally far apart in layers 0 and 3, where its score says nothing.**" in some
    every = said(gains, (8, 3, -29, -20), (4, 0, 0, 0), against=lambda gain, score: "starved" * (score.rank > 4))
    assert "PCA whitening sets all sentences equally far apart in layers 0 to 3, where" in every
    assert "Cut to k = 4, a third of the dimensions as BERT-whitening cuts them, it gains in layer 0" in every
    assert "turns the loss" not in every


def test_a_change_that_may_be_chance_is_neither_a_gain_nor_a_loss_nor_a_cause_of_anything(gains):
    narrow = [replace(gain, mean_cosine=0.5) for gain in gains]

    def against(gain, score):
        return "chance" * (score.spearman in (53.0, 46.0, 51.5))

    words = said(narrow, (3, 0.2, -4, 5), (1.5, -4, -4, 8), against=against)
    assert (
        "PCA whitening gains in layer 3 (by 5.0 points), changes little in layer 1 and may change the score by "
        "chance alone in layers 0 and 2.**"
    ) in words
    assert "it gains in layer 3 (by 8.0 points) and may change the score by chance alone in layers 0 to 2." in words
    assert "A cone alone" not in words
    assert "turns the loss" not in words
    for changes in ((3, 0.2, -6, 0.1), (6, 0.2, -4, 0.1)):  # one of the two that differ is chance
        assert "A cone alone" not in said(narrow, changes, against=against)
    assert "A cone alone" in said(narrow, (6, 0.2, -6, 0.1))


def test_a_raw_layer_that_scores_higher_than_the_setting_at_hand_is_named_and_no_other(gains):
    raws = (60.0, 70.0, 88.0, 80.0)
    made = [
        replace(gain, raw=replace(gain.raw, spearman=raw), whitened=replace(gain.whitened, spearman=white))
        for gain, raw, white in zip(gains, raws, (75.0, 80.0, 85.0, 82.0), strict=True)
    ]
    now = replace(gains[1].whitened, spearman=80.0)
    assert above(made, now).startswith(
        "**Layer 2 scores higher as it is: 88.00 raw, against 80.00 for layer 1 under PCA"
    )
    assert above(made, now).endswith("No mark here is higher.")
    better = [replace(made[0], whitened=replace(now, spearman=90.0)), *made[1:]]
    assert "No mark" not in above(better, now)
    for score in (87.9, 88.0, 93.0, None):
        assert above(made, replace(now, spearman=score)) == ""


def test_cones_that_are_as_narrow_in_every_layer_are_not_told_apart(gains):
    alike = [replace(gain, mean_cosine=0.94 + gain.layer / 1000) for gain in gains]
    assert "have a mean cosine of 0.94 in every layer, a narrow cone." in said(alike, (1, 1, 1, 1))
    apart = [replace(gain, mean_cosine=0.94 - gain.layer / 10) for gain in gains]
    assert "of 0.94 in layer 0, a narrow cone, and of 0.64 in layer 3." in said(apart, (1, 1, 1, 1))


def test_what_stands_against_a_change_is_told_from_the_scores_at_hand(gains, space):
    """Embeddings that no shelf knows can be asked for nothing anew, such as an isotropy whose maps are fitted first."""
    for gain in gains:
        for score in (gain.whitened, gain.cut):
            assert _tested(space, gain, score) == doubt(space, score, gain.raw).verdict(score.spearman, score.rank)
