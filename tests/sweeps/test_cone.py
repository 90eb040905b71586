"""The picture of the cone: nothing is moved to fit, and only what a cosine sees is drawn."""

import numpy as np
import pytest
import torch

from tests.conftest import make_space
from whitelab import whitening
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.setting import Setting
from whitelab.sweeps.cone import cones, plane

STAGES = tuple(map(Setting.parse, ("L1", "L1:center", "L1:zca", "L1:pca", "L1:soft:gamma=0.5")))


def test_in_two_dimensions_the_picture_is_the_space_turned():
    space = make_space(d=2)
    raw, *_ = cones(space, STAGES[:1])
    x = space.values[1].double().numpy()
    np.testing.assert_allclose(raw.points @ raw.points.T, x @ x.T, atol=1e-9)
    assert raw.mean == pytest.approx((np.linalg.norm(space.moments((1,)).mean), 0.0), abs=1e-12)


def test_centring_moves_the_mean_to_the_origin_and_whitening_makes_what_is_left_round(space):
    raw, centred, zca, pca, soft = cones(space, STAGES)
    np.testing.assert_allclose(raw.points - raw.mean, centred.points, atol=1e-9)
    assert centred.mean == pytest.approx((0, 0), abs=1e-9)
    assert (centred.angle, zca.angle) == (None, None)

    def spread(stage):
        weights = space.counts.numpy()
        return np.linalg.eigvalsh(np.cov(stage.points.T, fweights=weights.astype(int)))

    np.testing.assert_allclose(spread(zca), 1, atol=1e-8)
    np.testing.assert_allclose(pca.points, zca.points, atol=1e-7)  # a rotation apart, so the same picture
    ratio = {stage: np.divide(*spread(stage)[::-1]) for stage in (centred, soft)}
    assert 1 < ratio[soft] < ratio[centred]


@pytest.mark.parametrize(
    "text",
    ["L1", "L1:pca@5", "L1:zca fit=cross", "L1:soft@7", "L1:shrunk", "L1:center@4", "L1:pca_cor", "L1:group:groups=2"],
)
def test_a_map_is_drawn_as_the_root_of_its_matrix_times_its_transpose(space, text):
    setting = Setting.parse(text)
    (seen,), whitener = cones(space, (setting,)), fit_scope(space, setting).whiteners[0]
    affine = whitening.affine(whitener, "")
    values, vectors = np.linalg.eigh((affine.dense @ affine.dense.T).numpy())
    root = vectors * np.sqrt(values.clip(0)) @ vectors.T
    x = space.values[1].double().numpy() - affine.mean.numpy()
    np.testing.assert_allclose(seen.points, x @ root @ plane(space, (1,)).numpy(), atol=1e-7)


def test_the_angle_is_that_in_all_dimensions():
    space = make_space(d=12)
    (raw,) = cones(space, STAGES[:1])
    x, mean = space.values[1].double(), space.moments((1,)).mean
    cosines = torch.cosine_similarity(x, mean.expand_as(x)).sort().values
    middle = (cosines[(len(x) - 1) // 2] + cosines[len(x) // 2]) / 2
    assert raw.angle == pytest.approx(np.degrees(np.arccos(middle)))
