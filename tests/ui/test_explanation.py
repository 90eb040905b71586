"""Why a whitening gains or loses, from measures alone: nothing is claimed that they do not show."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import make_space
from whitelab.scoring.paired import LEVEL
from whitelab.scoring.score import score
from whitelab.scoring.setting import Setting
from whitelab.statistics.geometry import CONE
from whitelab.statistics.significance import williams
from whitelab.sweeps.dimensions import k_curve
from whitelab.ui.results.shelf import shelf
from whitelab.ui.sections import explanation
from whitelab.ui.sections.explanation import SMALL, Measured, explained, measured
from whitelab.whitening import variant

GAIN = Measured("PCA whitening", 5.0, 300, 3000, 7.8, 0.6, True, 200, 5.2)

measures = st.builds(
    Measured,
    name=st.just("soft whitening"),
    gain=st.floats(-50, 50),
    rank=st.integers(0, 400),
    distinct=st.integers(2, 4000),
    per_dimension=st.floats(0.1, 50),
    mean_cosine=st.floats(-0.1, 1),
    whitens=st.booleans(),
    best_k=st.none(),
    best_gain=st.none(),
) | st.builds(replace, st.just(GAIN), gain=st.floats(-50, 50), best_gain=st.floats(-50, 50), rank=st.integers(1, 4000))


@given(measures)
def test_the_words_say_the_sign_of_the_change_and_offer_only_a_k_that_is_better(one):
    words, offered = explained(one)
    starved = one.rank >= one.distinct - 1 and one.whitens
    assert ("no change to explain yet" in words) is starved
    assert (" gains " in words) is (one.gain > SMALL and not starved)
    assert (" loses " in words) is (one.gain < -SMALL and not starved)
    assert ("changes the score by" in words) is (abs(one.gain) <= SMALL and not starved)
    if one.best_k is None:  # the variant has none
        assert offered is None
    if offered is not None and not starved:
        assert offered == one.best_k
        assert one.best_gain > max(one.gain, 0)
        assert f"At k = {offered} it would gain {one.best_gain:.2f} points over raw" in words
    elif not starved:
        assert "it would gain" not in words


def test_a_gain_needs_no_remedy():
    words, offered = explained(GAIN)
    assert words.startswith("**PCA whitening gains 5.00 points here.**")
    assert "a mean cosine of 0.60 here, so the raw vectors lie in a cone" in words
    assert offered is None


def test_a_gain_that_centring_has_and_more_is_not_laid_to_the_stretch():
    words = [explained(replace(GAIN, centred=centred))[0] for centred in (8.0, 5.0, 2.0)]
    assert "Centring alone gains 8.00; whitening what is left costs 3.00 of it" in words[0]
    assert ["Giving every kept direction" in one for one in words] == [False, True, True]
    other, _ = explained(replace(GAIN, centred=8.0, whitens=False))
    assert "whitening" not in other.removeprefix("**PCA whitening")
    assert "Centring alone changes the score by +8.00." in other


@pytest.mark.parametrize("gain", [3.0, -3.0])
@pytest.mark.parametrize("spec", ["soft", "group:groups=2", "all_but_the_top:directions=1", "center"])
def test_what_a_variant_does_is_not_given_as_the_reason_of_what_it_gains_or_loses(spec, gain):
    space, setting = shelf().call(make_space(), "defined"), Setting((1,), spec)
    found = replace(measured(space, setting, "gain"), gain=gain)
    words, _ = explained(found)
    assert variant(spec).hint not in words
    raw, centred = (score(space, Setting((1,), name)).spearman for name in ("none", "center"))
    assert (f"Centring alone changes the score by {centred - raw:+.2f}." in words) is (spec != "center")


def test_a_loss_of_a_soft_map_that_its_cut_alone_has_is_laid_to_the_cut():
    words, _ = explained(replace(GAIN, gain=-0.85, best_gain=None, k=64, whitens=False, centred=-0.92))
    assert "The cut to k = 64 is what costs: centring and the same cut alone lose 0.92." in words
    apart, _ = explained(replace(GAIN, gain=-0.85, best_gain=None, k=64, whitens=False, centred=-2.0))
    assert "the rest of the map wins 1.15 back" in apart


def test_coordinates_are_not_said_to_share_their_cut_with_centring():
    space = shelf().call(make_space(), "coordinates")
    assert measured(space, Setting((1,), "prefix", 3), "loss").centred is None


def test_a_loss_in_a_cone_is_laid_to_weak_directions_and_one_in_a_spread_space_is_not():
    loss = replace(GAIN, gain=-3.0, best_gain=-1.0)
    cone, spread = (explained(replace(loss, mean_cosine=value))[0] for value in (CONE, CONE - 0.01))
    assert "weakest of the 300 directions kept count as much as the strongest" in cone
    assert "7.8 sentences per dimension" in cone
    assert "are spread around already. Whitening then takes weight from strong directions" in spread
    assert "lie in a cone" not in spread
    assert "a soft exponent" in cone


def test_a_loss_that_the_cut_alone_has_is_laid_to_the_cut():
    loss = replace(GAIN, gain=-15.0, best_gain=None, k=10)
    words = [explained(replace(loss, centred=cut))[0] for cut in (-22.0, -15.1, -9.0, None)]
    assert "The cut to k = 10 is what costs: centring and the same cut alone lose 22.00" in words[0]
    assert "whitening what is kept wins 7.00 back" in words[0]
    assert "the same cut alone lose 15.10." in words[1]
    assert all("weakest of the 300 directions" in one and "cut to" not in one for one in words[2:])


def test_a_map_of_too_few_sentences_is_given_no_verdict_but_a_k_it_can_bear():
    words, offered = explained(replace(GAIN, rank=23, distinct=24, best_k=20))
    assert words.startswith("**There is no change to explain yet.**")
    assert "24 different vectors bear about a tenth" in words
    assert "far apart" not in words  # the note above every page and the verdict have said it
    assert offered == 2
    assert explained(replace(GAIN, rank=23, distinct=24, best_k=1))[1] == 1


def test_the_measures_are_the_packages_and_undefined_scores_are_not_explained():
    space, setting = shelf().call(make_space(), "explained"), Setting((1,), "pca", 6)
    found, (now, raw) = measured(space, setting, "gain"), (score(space, one) for one in (setting, setting.raw))
    curve = k_curve(space, setting.with_(k=None))
    assert found.gain == pytest.approx(now.spearman - raw.spearman)
    assert (found.rank, found.distinct, found.whitens, found.k) == (now.rank, space.dim + 2, True, 6)
    centred = score(space, Setting((1,), "center", 6))
    assert found.centred == pytest.approx(centred.spearman - raw.spearman)
    if found.gain > SMALL:  # a gain offers no other k, so none is looked for
        assert (found.best_k, found.best_gain) == (None, None)
    else:
        assert found.best_k == curve.best_k
        assert found.best_gain == pytest.approx(curve.spearman[curve.best_k - 1] - raw.spearman)
    flat = replace(space, gold=space.gold * 0)
    assert measured(shelf().call(flat, "constant gold"), setting) is None


@pytest.mark.parametrize("gain", [17.14, -3.0])
def test_what_may_be_chance_is_neither_gain_nor_loss_and_has_no_reason(gain):
    words, offered = explained(replace(GAIN, gain=gain, doubt="which these 80 pairs cannot tell from no change"))
    assert f"scores {abs(gain):.2f} points {'above' if gain > 0 else 'below'} raw here, which these 80 pairs" in words
    assert not any(claim in words for claim in ("gains", "loses", "variance", "weakest", "it would"))
    assert offered is None
    assert " gains " in explained(replace(GAIN, gain=5.0))[0]


def test_the_doubt_is_that_of_the_tests():
    space, setting = shelf().call(make_space(), "doubted"), Setting((1,), "pca", 6)
    now, raw = (score(space, one) for one in (setting, setting.raw))
    test = williams(now.cosines, raw.cosines, space.gold).p_value
    assert bool(measured(space, setting).doubt) is (test >= LEVEL)
    averaged = setting.with_(aggregate="mean")
    assert measured(space, averaged).doubt == ""  # of which that test knows nothing
    for verdict, words in {
        "chance": "cannot tell from no change",
        "unclear": "one test sure and the other not",
    }.items():
        assert words in measured(space, averaged, verdict).doubt
    assert measured(space, setting, "gain").doubt == measured(space, setting, "loss").doubt == ""


def test_a_change_that_halves_do_not_show_or_turn_round_is_said_to_be_so(monkeypatch):
    space, setting = shelf().call(make_space(), "crossed"), Setting((1,), "pca", 6)
    said = {
        "": "",
        "chance": "do not show beyond doubt",
        "loss": "turn round",
        "gain": "turn round",
    }
    for shown, words in said.items():
        monkeypatch.setattr(explanation, "crossed", lambda *_, shown=shown: shown)
        doubt = measured(space, setting, "gain").doubt
        assert (words in doubt, bool(doubt)) == (True, bool(shown))


def test_without_a_verdict_the_explanation_asks_what_stands_against_williams_test(monkeypatch):
    space, setting = shelf().call(make_space(), "crossed"), Setting((1,), "pca", 6)
    monkeypatch.setattr(explanation, "p_against_raw", lambda *_: 0.04)
    for shown, words in {"": "", "unclear": "leave one test sure", "loss": "turn round"}.items():
        monkeypatch.setattr(explanation, "objection", lambda *_, shown=shown: shown)
        doubt = measured(space, setting).doubt
        assert (words in doubt, bool(doubt)) == (True, bool(shown))


@pytest.mark.parametrize(("spec", "k", "promised"), [("pca", 3, True), ("soft:gamma=0.5", 1, False)])
def test_a_better_k_is_promised_only_where_its_gain_stands_the_tests_it_meets_once_it_is_chosen(spec, k, promised):
    base, setting = make_space(), Setting((0,), spec)
    gold = score(base, setting.with_(k=k)).cosines  # what people say is what this k says
    space = shelf().call(replace(base, gold=gold), f"a better k of {spec}")
    curve, found = k_curve(space, setting), measured(space, setting, "loss")
    assert found.gain < -SMALL
    assert curve.best_k == k
    assert curve.spearman[k - 1] > score(space, setting.raw).spearman + SMALL
    assert (found.best_k == k) is ("it would gain" in explained(found)[0]) is promised
    assert (measured(space, setting.with_(k=k)).doubt == "") is promised
