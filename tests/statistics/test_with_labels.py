"""Laws of what is told from labels: a resample counts as its rows written out, for scikit-learn too."""

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, v_measure_score

from whitelab.statistics.significance import bootstrap_counts, bootstrap_means, holm
from whitelab.statistics.with_labels import average_precision, v_measure


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def written_out(counts, *columns):
    """Each row as often as it counts."""
    return [np.repeat(column, counts.astype(int)) for column in columns]


@pytest.mark.parametrize("decimals", [1, 9])
def test_average_precision_is_scikit_learns_of_the_rows_written_out_ties_included(rng, decimals):
    scores, positive = rng.normal(size=60).round(decimals), rng.random(60) < 0.3
    counts = rng.integers(0, 4, (60, 5)).astype(float)
    found = average_precision(torch.from_numpy(scores), torch.from_numpy(positive), torch.from_numpy(counts))
    for value, column in zip(found.tolist(), counts.T, strict=True):
        drawn_scores, drawn_positive = written_out(column, scores, positive)
        assert value == pytest.approx(average_precision_score(drawn_positive, drawn_scores), abs=1e-12)
    none = average_precision(torch.from_numpy(scores), torch.zeros(60, dtype=torch.bool), torch.ones(60, 1))
    assert none.isnan().all()


def test_v_measure_is_scikit_learns_of_the_rows_written_out(rng):
    labels, clusters = rng.integers(0, 4, 80), rng.integers(0, 3, 80)
    clusters[:40] = labels[:40]
    counts = rng.integers(0, 4, (80, 5)).astype(float)
    found = v_measure(torch.from_numpy(labels), torch.from_numpy(clusters), torch.from_numpy(counts))
    for value, column in zip(found.tolist(), counts.T, strict=True):
        assert value == pytest.approx(v_measure_score(*written_out(column, labels, clusters)), abs=1e-12)
    assert float(v_measure(torch.from_numpy(labels), torch.from_numpy(labels), torch.ones(80, 1))) == pytest.approx(1)


def test_counts_and_means_resample_alike(rng):
    values = torch.from_numpy(rng.normal(size=(3, 40)))
    means, counted = bootstrap_means(values, 300), bootstrap_counts(40, lambda counts: values @ counts / 40, 300)
    assert torch.equal(means.samples, counted.samples)
    assert torch.allclose(means.score, values.mean(1))


def test_holm_rejects_what_stepping_down_by_hand_rejects(rng):
    for _ in range(50):
        p_values = (rng.random(8) ** 3).tolist()
        adjusted = holm(p_values)
        rejected, left = set(), sorted(range(8), key=p_values.__getitem__)
        while left and p_values[left[0]] <= 0.05 / len(left):
            rejected.add(left.pop(0))
        assert {i for i, value in enumerate(adjusted) if value <= 0.05} == rejected
    assert holm([0.01, float("nan"), 0.04])[0] == pytest.approx(0.02)
    assert np.isnan(holm([0.01, float("nan")])[1])
