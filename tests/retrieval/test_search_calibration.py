"""Laws of what a query's cosine means: every pair is counted, and a threshold does what it promises."""

from dataclasses import replace

import coding
import numpy as np
import pytest
import reference
from judged import judged_space, retrieval_set
from progressing import progressed

from whitelab.retrieval.calibration import STEPS, calibrate_search
from whitelab.scoring.setting import Setting

SETTING = Setting((1,), "pca", 5)


@pytest.fixture(scope="module")
def searched():
    return judged_space(retrieval_set(120, 25, grades=(1, 2)), d=8)


def table(space, setting):
    """The cosine of every query with every document, and the grade of each, 0 where nobody judged it."""
    x = space.space.values[setting.layers[0]].numpy().astype(np.float64)
    rows = x[space.documents.numpy()]
    z = reference.unit(reference.whiten(rows, x, setting.whitening, setting.k))
    grades = np.zeros((len(space.queries), len(space.documents)))
    grades[space.data.query, space.data.document] = space.data.grade
    return z[space.queries.numpy()] @ z[space.documents.numpy()].T, grades


@pytest.mark.parametrize("setting", [SETTING, Setting((1,))])
def test_percentiles_and_threshold_are_those_of_all_pairs(searched, setting):
    found = calibrate_search(searched, setting, rate=0.1)
    cosines, grades = table(searched, setting)
    assert found.random.pairs == cosines.size
    for cosine in (-0.3, 0.1, 0.6):
        wanted = 100 * (cosines <= cosine).mean()
        assert abs(found.random.percentile(cosine) - wanted) <= found.random.error + 1e-9
    cut = found.threshold
    cosine, recall = coding.least_threshold(cosines.ravel(), grades.ravel(), 1, 0.1)
    assert cosine - 1e-9 <= cut.cosine <= cosine + 2 / STEPS + 1e-9
    called, alike = cosines >= cut.cosine, grades >= 1
    assert cut.false_positives == pytest.approx(called[~alike].mean())
    assert cut.false_positives <= 0.1
    assert cut.recall == pytest.approx(called[alike].mean())
    assert cut.recall == pytest.approx(recall, abs=2 / alike.sum())
    assert cut.precision == pytest.approx(alike[called].mean())
    assert (cut.alike, cut.unlike) == (alike.sum(), (~alike).sum())
    assert found.relevant == pytest.approx(np.median(cosines[alike]), abs=0.05)
    assert np.interp(0.1, *found.arrays().values()) == pytest.approx(found.random.percentile(0.1), abs=0.03)
    strict = calibrate_search(searched, setting, grade=2.0, rate=0.1).threshold
    assert strict.alike == (grades >= 2).sum() < cut.alike


def test_intervals_come_from_queries_drawn_anew(searched):
    found = calibrate_search(searched, SETTING, rate=0.1, resamples=400).threshold
    cosines, grades = table(searched, SETTING)
    rng, drawn = np.random.default_rng(1), []
    for _ in range(400):
        rows = rng.integers(0, len(cosines), len(cosines))
        drawn.append(coding.least_threshold(cosines[rows].ravel(), grades[rows].ravel(), 1, 0.1))
    for place, (low, high) in enumerate([(found.low, found.high), (found.recall_low, found.recall_high)]):
        wanted = np.percentile([one[place] for one in drawn], (2.5, 97.5))
        width = wanted[1] - wanted[0]
        assert [low, high] == pytest.approx(wanted, abs=0.25 * width)


def test_queries_in_parts_give_the_same_and_can_be_cancelled(searched, monkeypatch):
    whole = calibrate_search(searched, SETTING)
    monkeypatch.setattr("whitelab.retrieval.calibration._COSINES", 300)
    assert calibrate_search(searched, SETTING).as_dict() == whole.as_dict()
    steps = progressed(lambda progress: calibrate_search(searched, SETTING, progress=progress))
    assert steps[-1] == (25, 25)
    assert len(steps) > 10


def test_wrong_input_is_one_line(searched):
    for options, message in (
        ({"rate": 1.0}, "rate=1.0 must lie between 0 and 1"),
        ({"grade": float("nan")}, "cut=nan"),
        ({"seed": -1}, "seed=-1 must be a whole number of at least 0"),
    ):
        with pytest.raises(ValueError, match=message):
            calibrate_search(searched, SETTING, **options)
    none = calibrate_search(searched, SETTING, grade=9.0).threshold
    assert none.alike == 0
    assert np.isnan(none.cosine)
    with pytest.raises(ValueError, match="fit='cross' has no meaning"):
        calibrate_search(searched, replace(SETTING, fit="cross"))
