"""What a cosine means: thresholds, curves to the gold scale, and what each owes to the pairs it is measured on."""

import math
from dataclasses import replace

import coding
import numpy as np
import pytest
import torch

from whitelab.base.wording import spaced
from whitelab.scoring.calibration import calibrate, gold_scale, threshold
from whitelab.scoring.fit_scopes import fit_scope, halves
from whitelab.scoring.setting import Setting


def made(p=400, seed=0, slope=1.0):
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 6, p).astype(float)
    cosines = np.tanh(slope * gold / 5 + rng.normal(0, 0.3, p)).round(3)  # with ties
    return torch.from_numpy(cosines), torch.from_numpy(gold)


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("cut", [1.0, 2.5, 4.0])
def test_the_threshold_is_the_least_cosine_that_keeps_the_false_positives_asked_for(rate, cut):
    cosines, gold = made()
    found = threshold(cosines, gold, cut, rate, resamples=50)
    cosine, recall = coding.least_threshold(cosines.numpy(), gold.numpy(), cut, rate)
    assert (found.cosine, found.recall) == pytest.approx((cosine, recall))
    assert found.false_positives <= rate
    called = cosines > found.cosine
    assert found.precision == pytest.approx(float((gold[called] >= cut).double().mean()))
    assert (found.alike, found.unlike) == (int((gold >= cut).sum()), int((gold < cut).sum()))
    assert found.low <= found.cosine <= found.high
    assert found.recall_low <= found.recall <= found.recall_high


def test_the_interval_of_a_threshold_of_many_pairs_is_that_of_pairs_drawn_one_resample_at_a_time():
    cosines, gold = made(1500)
    found = threshold(cosines, gold, 3.0, 0.1, resamples=400)
    rng = np.random.default_rng(9)
    drawn = []
    for _ in range(400):
        index = rng.integers(0, 1500, 1500)
        drawn.append(coding.least_threshold(cosines.numpy()[index], gold.numpy()[index], 3, 0.1))
    (low, recall_low), (high, recall_high) = np.quantile(drawn, [0.025, 0.975], axis=0)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.01)
    assert (found.recall_low, found.recall_high) == pytest.approx((recall_low, recall_high), abs=0.02)


@pytest.mark.parametrize("rate", [0.01, 0.1])  # of 50 pairs that are not alike, none and five are expected
def test_intervals_cover_what_holds_of_the_population_and_shrink(rate):
    cosines, gold = made(60_000, seed=1)
    truth = threshold(cosines, gold, 3.0, rate, resamples=2)
    covered, widths = np.zeros(2), {}
    for size in (100, 400):
        for seed in range(100):
            part = torch.from_numpy(np.random.default_rng(seed).permutation(60_000)[:size])
            found = threshold(cosines[part], gold[part], 3.0, rate, resamples=200)
            covered += found.low <= truth.cosine <= found.high, found.recall_low <= truth.recall <= found.recall_high
            widths.setdefault(size, []).append(found.high - found.low)
    assert covered.min() >= 184  # of 200; 190 are expected
    assert np.mean(widths[400]) < 0.9 * np.mean(widths[100])


def test_without_a_pair_of_either_kind_there_is_no_threshold():
    cosines, gold = made()
    for cut in (-1.0, 9.0):
        found = threshold(cosines, gold, cut, resamples=10)
        assert all(math.isnan(value) for value in (found.cosine, found.low, found.recall, found.precision))
    for wrong, message in (
        ({"rate": 0.0}, "rate=0.0 must lie"),
        ({"cut": math.nan}, "cut=nan must be a number"),
        ({"seed": -1}, "seed=-1 must be a whole number of at least 0"),
    ):
        with pytest.raises(ValueError, match=message):
            threshold(cosines, gold, **{"cut": 3.0} | wrong)


def test_gold_is_the_isotonic_fit_and_its_error_that_of_the_other_half(space):
    cosines = fit_scope(space, Setting.parse("L1:pca")).cosines()
    found = gold_scale(space, cosines)
    x, y, late = cosines.numpy(), space.gold.numpy(), halves(space).numpy()
    np.testing.assert_allclose(found(x), coding.pooled_violators(x, y), atol=1e-9)
    errors, means = np.empty(len(x)), np.empty(len(x))
    for side in (late, ~late):
        level = coding.pooled_violators(x[~side], y[~side])
        order = np.argsort(x[~side], kind="stable")
        errors[side] = np.interp(x[side], x[~side][order], level[order]) - y[side]
        means[side] = y[~side].mean() - y[side]
    assert found.error == pytest.approx(np.sqrt(np.mean(errors**2)))
    assert found.error_of_mean == pytest.approx(np.sqrt(np.mean(means**2)))
    own = np.sqrt(np.mean((found(x) - y) ** 2))
    assert own < found.error  # on its own pairs it flatters itself
    assert found.low <= found.error <= found.high
    assert (found(-1), found(1)) == (found.gold[0], found.gold[-1])


@pytest.mark.parametrize("text", ["L1", "L1:zca", "L0+L1:soft@3 fit=cross"])
def test_a_calibration_is_made_of_the_cosines_of_its_setting(space, text):
    setting = Setting.parse(text)
    found = calibrate(space, setting, cut=3.0, rate=0.2)
    fitted = fit_scope(space, setting)
    z = fitted.transform().numpy()
    plain = coding.random_pairs(*(z[fold.sentences.numpy()] for fold in fitted.folds))
    assert found.random.pairs == len(plain)
    for value, share in ((found.random.floor, 0.001), (found.random.median, 0.5), (found.random.top, 0.999)):
        assert value == pytest.approx(np.quantile(plain, share, method="inverted_cdf"), abs=1e-3)
    most = space.gold >= space.gold.quantile(0.95)
    assert found.ceiling == pytest.approx(float(fitted.cosines()[most].median()))
    assert found.threshold.cosine == threshold(fitted.cosines(), space.gold, 3.0, 0.2).cosine
    assert found.line().startswith(found.protocol.line(fitted.count, fitted.rank))
    assert f"{spaced(len(plain))} random pairs" in found.line()
    assert found.as_dict()["protocol"] == found.protocol.as_dict()


def test_another_seed_draws_other_resamples_and_halves(space):
    setting = Setting.parse("L1:pca")
    found, other = (calibrate(space, setting, rate=0.3, seed=seed) for seed in (0, 1))
    assert other.threshold.recall_low != found.threshold.recall_low
    assert other.gold.low == gold_scale(space, other.cosines, seed=1).low != found.gold.low


def test_without_gold_there_is_a_scale_and_nothing_else(space):
    found = calibrate(replace(space, gold=torch.ones_like(space.gold)), Setting.parse("L1:pca"))
    assert (found.threshold, found.gold, found.ceiling) == (None, None, None)
    assert set(found.arrays()) == {"cosine", "percentile", "among"}
    assert found.random.pairs > 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rate": 1.0}, "rate=1.0 must lie between 0 and 1"),
        ({"cut": math.inf}, "cut=inf must be a number"),
        ({"seed": -1}, "seed=-1 must be a whole number of at least 0"),
    ],
)
def test_wrong_options_are_refused_with_and_without_gold_that_differs(space, wrong, message):
    for given in (space, replace(space, gold=torch.ones_like(space.gold))):
        with pytest.raises(ValueError, match=message):
            calibrate(given, Setting.parse("L1:pca"), **wrong)


@pytest.mark.parametrize("text", ["L1:pca", "L1:zca fit=cross"])
def test_a_map_that_keeps_no_direction_has_no_scale(space, text):
    level = replace(space, values=torch.ones_like(space.values))
    assert calibrate(level, Setting.parse("L1")).random.median == pytest.approx(1, abs=1e-4)
    with pytest.raises(ValueError, match="has no direction to keep: the .* texts it was fitted on do not vary"):
        calibrate(level, Setting.parse(text))


def test_pairs_that_hang_together_have_a_curve_and_no_error(space):
    tied = replace(space, first=torch.zeros_like(space.first))
    found = calibrate(tied, Setting.parse("L1")).gold
    assert math.isnan(found.error)
    assert "two halves without a common sentence" in found.reason
    assert len(found.cosine) == len(found.gold) >= 2
