"""What a comparison says in words: the right sentence for every verdict, and no number that is not there."""

import math
from dataclasses import replace

import pytest

from whitelab.encoding.embeddings import Origin
from whitelab.scoring.paired import VERDICTS, Standing
from whitelab.scoring.score import Score
from whitelab.scoring.setting import Protocol, Setting
from whitelab.statistics import significance
from whitelab.statistics.significance import Difference, WilliamsTest
from whitelab.ui.sections import probing
from whitelab.ui.widgets import verdict

PROTOCOL = Protocol(Setting((1,), "pca"), Origin("m", "d", "t", "test"))


def standing(kind="gain", estimate=2.0, low=1.0, high=3.0, p=0.01, williams=0.02, spearman=70.0):
    score = Score(spearman, 10, {}, 4, 4, 20, 1.0, PROTOCOL, reason="" if spearman else "all gold scores are 3")
    test = None if williams is None else WilliamsTest(1.0, 7, williams, 0.7, 0.6, 0.9)
    return Standing(score, 69.0, 71.0, Difference(estimate, low, high, p), test, kind)


def said(one, label="PCA whitening", baseline="raw"):
    return verdict.sentence(one, label, baseline, "1 379")


def test_a_difference_without_an_interval_says_why_there_is_none():
    words = said(standing("chance", low=math.nan, high=math.nan, p=math.nan, williams=None))
    assert "scores 2.00 points above raw" in words
    assert significance.NO_INTERVAL in words
    assert "undefined" not in words


def test_the_bootstrap_says_no_less_than_its_resamples_can_show():
    assert verdict.bootstrap_p(standing(p=2 / 1001)) == "p\u00a0<\u00a00.002"
    assert verdict.short_p(standing(p=2 / 1001, williams=0.3)) == "<\u00a00.002, 0.300"
    assert verdict.short_p(standing(p=0.4, williams=None)) == "0.400"
    assert verdict.short_p(standing("same")) is None


@pytest.mark.parametrize("kind", VERDICTS)
def test_every_verdict_has_its_words_and_an_icon(kind):
    assert said(standing(kind)).startswith(f"**{VERDICTS[kind]}.**")
    assert verdict.ICONS[kind].startswith(":material/")


def test_the_sentence_names_the_side_the_interval_and_the_tests():
    assert (
        "scores 2.00 points above raw, 95 % interval +1.00 to +3.00 (bootstrap p = 0.010, Williams p = 0.020)"
        in said(standing()).replace("\u00a0", " ")
    )
    assert "2.00 points below raw" in said(standing("loss", -2.0, -3.0, -1.0))
    assert "no Williams test for an average of subsets" in said(standing(williams=None))
    assert "is compared with itself" in said(standing("same"), "raw", "raw")
    assert "all gold scores are 3" in said(standing("undefined", math.nan, spearman=None))


def test_a_score_that_says_nothing_has_no_interval_and_no_test():
    words = said(standing("starved", -9.0))
    assert "9.00 points below raw. But a map" in words
    assert "95 %" not in words
    assert "p\u00a0" not in words


def fitting(task, cross, apart, thin=False):
    return verdict.fitting(task, cross, apart, "PCA whitening", standing("same", 0.0, 0.0, 0.0), thin)


def test_the_part_of_a_gain_that_is_fitting_is_a_share_of_it():
    text = fitting(standing(estimate=10.0), standing(spearman=68.0), standing("gain", 2.5, 1.0, 4.0))
    assert "So of the gain of 10.00 points over raw, 2.50 (25\u00a0%) come from fitting to the test sentences" in text


def test_where_nothing_is_gained_fitting_is_worth_points_and_no_share():
    text = fitting(standing("loss", -3.0), standing("loss", -4.0), standing("gain", 1.0, 0.5, 1.5))
    assert "worth +1.00 points" in text
    assert "the gain of" not in text


def test_a_gain_that_is_all_fitting_is_said_to_be_a_loss_without_it():
    text = fitting(standing(estimate=9.22), standing("loss", -8.87), standing("gain", 18.09, 15.0, 21.0))
    assert "all of the gain of 9.22 points over raw comes from fitting" in text
    assert "which is worth +18.09 points (95 % interval" in text.replace("\u00a0", " ")
    assert text.endswith("without it the score lies 8.87 points below raw.")
    assert "lower still" not in text


def test_a_gain_that_may_be_all_fitting_is_no_loss_without_it():
    text = fitting(standing(estimate=3.0), standing("chance", 0.0), standing("gain", 3.05, 0.5, 5.6))
    assert "as much as all of the gain of 3.00 points over raw may come from fitting" in text
    assert "below raw" not in text


def test_of_thin_halves_nothing_follows():
    text = fitting(standing(estimate=9.22), standing("loss", -8.87), standing("gain", 18.09, 15.0, 21.0), thin=True)
    assert "A half has too few sentences for so many directions" in text
    assert "comes from fitting" not in text
    assert "below raw" not in text


def test_an_interval_wider_than_the_gain_is_no_clean_bill():
    words = fitting(standing(estimate=17.1), standing(), standing("chance", -1.8, -17.6, 12.2))
    assert "too few pairs to say whether any of +17.10 over raw comes from there" in words
    assert "no sign" not in words


@pytest.mark.parametrize(
    ("kind", "estimate", "words"),
    [
        ("chance", 0.2, "no proof"),
        ("chance", -0.2, "no sign"),
        ("loss", -0.4, "costs 0.40 points here"),
        ("starved", -9.0, "Keep fewer dimensions (k), or fit on more text."),
    ],
)
def test_a_difference_that_shows_no_fitting_is_not_called_one(kind, estimate, words):
    assert words in fitting(standing(), standing(), standing(kind, estimate, -1.0, 1.0))


def test_a_gain_that_cross_fitting_does_not_show_is_said_to_be_in_doubt():
    doubt = verdict.by_halves(standing("chance", 0.5, -1.0, 2.0), "chance")
    assert "+0.50, 95 % interval -1.00 to +2.00: not beyond doubt" in doubt
    for turned in ("gain", "loss"):
        assert "the other way round, beyond chance" in verdict.by_halves(standing(turned), turned)
        assert verdict.objected(turned) == f"a {turned} on new text"
    assert verdict.objected("chance") == "in doubt on new text"
    assert verdict.objected("unclear") == "the tests disagree"
    assert verdict.by_halves(standing("gain"), "") == verdict.objected("") == verdict.by_halves(None, "chance") == ""
    words = verdict.sentence(standing("gain"), "PCA whitening", "raw", "60", doubt)
    assert words.startswith("**The gain is real on the sentences it was fitted on.**")
    assert words.endswith(doubt)
    assert "Other pairs" not in words


def test_scopes_without_a_score_are_not_compared():
    none = standing("undefined", math.nan, math.nan, math.nan, spearman=None)
    assert "nothing to compare" in fitting(none, none, none)
    assert "nan" not in fitting(none, none, replace(none)).lower()


def test_a_probe_claims_a_gap_only_where_chance_would_hardly_give_it():
    assert "No proof of a gap" in probing.verdict("PCA whitening", 2.0, 5.0, 0.05, 9, 3)
    assert "It helps this classifier" in probing.verdict("PCA whitening", 2.0, 0.1, 0.049, 9, 1)
    assert "It hurts this classifier" in probing.verdict("PCA whitening", -2.0, -1.0, 0.001, 1, 12)
    assert "no further than a guess" in probing.verdict("PCA whitening", 65.0, 0.0, 0.001, 160, 30)
