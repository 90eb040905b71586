"""Laws of the scale that random pairs give to cosines."""

import coding
import numpy as np
import pytest
import torch

from whitelab.statistics.random_cosines import RandomCosines


def rows(n=90, d=6, shift=1.0, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d)) + shift


def shares(cosines, at):
    return 100 * np.mean(cosines[None] <= np.asarray(at)[:, None], axis=1)


def test_percentiles_are_shares_of_all_pairs_to_the_error_that_is_stated():
    x = rows()
    found, plain = RandomCosines.of(x), coding.random_pairs(x)
    at = np.linspace(-1, 1, 801)
    assert (found.pairs, found.exact) == (len(plain), True)
    assert found.error <= 100 * 6 / len(plain)  # so many in one bin at most
    np.testing.assert_allclose(found.percentile(at), shares(plain, at), atol=found.error + 1e-9)
    assert isinstance(found.percentile(0.5), float)


def test_pairs_lie_within_a_table_and_not_across():
    x, y = rows(30), -rows(20, seed=1)
    both = coding.random_pairs(x, y)
    found = RandomCosines.of(x, torch.from_numpy(y))
    assert found.pairs == len(both) == 30 * 29 / 2 + 20 * 19 / 2
    np.testing.assert_allclose(found.percentile(0.0), shares(both, [0.0])[0], atol=found.error)
    assert abs(found.percentile(0.0) - RandomCosines.of(np.concatenate([x, y])).percentile(0.0)) > 10  # a control


@pytest.mark.parametrize("seed", range(4))
def test_drawn_pairs_err_by_no_more_than_is_stated(seed):
    x = rows(400)
    whole = RandomCosines.of(x)
    drawn = RandomCosines.of(x, all_pairs=100, sampled=3000, seed=seed)
    assert (drawn.pairs, drawn.exact) == (3000, False)
    at = np.linspace(-1, 1, 801)
    apart = np.abs(drawn.percentile(at) - whole.percentile(at)).max()
    assert 0 < apart <= drawn.error
    assert drawn.error < 3


def test_rows_in_several_parts_count_every_pair_once(monkeypatch):
    x = rows(50)
    whole = RandomCosines.of(x)
    monkeypatch.setattr("whitelab.statistics.random_cosines._ROWS", 7)
    assert np.abs(RandomCosines.of(x).counts - whole.counts).sum() <= 2  # a cosine at the edge of a bin


@pytest.mark.parametrize("percentile", [0.0, 0.1, 37.0, 50.0, 99.9, 100.0])
def test_the_cosine_of_a_percentile_has_that_percentile(percentile):
    x = rows()
    found, plain = RandomCosines.of(x), coding.random_pairs(x)
    cosine = found.cosine(percentile)
    assert found.percentile(cosine) == pytest.approx(percentile, abs=1e-6)
    assert abs(cosine - np.quantile(plain, percentile / 100, method="inverted_cdf")) < 1e-3


def test_the_exported_table_is_the_scale_to_three_hundredths_of_a_point():
    for x in (rows(), rows(300, 40, shift=0.0), np.repeat(rows(3), 5, axis=0)):
        found = RandomCosines.of(x)
        cosine, percentile = found.table()
        assert (np.diff(cosine) > 0).all()
        assert (np.diff(percentile) >= 0).all()
        at = np.linspace(-1, 1, 5001)
        np.testing.assert_allclose(np.interp(at, cosine, percentile), found.percentile(at), atol=0.03)


def test_a_space_off_the_origin_gives_the_same_cosine_another_meaning():
    x = rows(200, 20, shift=3.0)
    raw, centred = RandomCosines.of(x), RandomCosines.of(x - x.mean(0))
    assert raw.percentile(0.7) < 1
    assert centred.percentile(0.7) > 99


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match="x must hold at least two rows"):
        RandomCosines.of(rows(1), rows(1))
    with pytest.raises(ValueError, match="x must have the shape"):
        RandomCosines.of(np.zeros(3))
    with pytest.raises(ValueError, match="percentile=101.0 must lie between 0 and 100"):
        RandomCosines.of(rows()).cosine(101.0)
    with pytest.raises(ValueError, match="seed=-1 must be a whole number of at least 0"):
        RandomCosines.of(rows(), seed=-1)
