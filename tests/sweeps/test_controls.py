"""Laws of the controls of a k-curve: every k the plain path, and at k = d nothing lost."""

import pytest
import reference
import torch

from whitelab.scoring.setting import Setting
from whitelab.sweeps.controls import CONTROLS, k_controls
from whitelab.sweeps.dimensions import k_curve

SETTING = Setting((1, 2), "pca", aggregate="wmean")


def plain(space, z, k):
    """The score of the first k columns by hand."""
    first, second, gold, subset = (part.numpy() for part in (space.first, space.second, space.gold, space.subset))
    cosines = reference.pair_cosines(z[first, :k], z[second, :k])
    sizes = [(subset == i).sum() for i in range(space.n_subsets)]
    scores = [reference.spearman(cosines[subset == i], gold[subset == i]) for i in range(space.n_subsets)]
    return 100 * sum(n * s for n, s in zip(sizes, scores, strict=True)) / sum(sizes)


def test_the_first_coordinates_are_those_as_they_come(space):
    found = k_controls(space, SETTING)["first"]
    z = space.combine((1, 2)).numpy()
    for k in range(2, space.dim + 1):
        assert found.spearman[k - 1] == pytest.approx(plain(space, z, k), abs=1e-9)
    assert found.least == found.most == found.spearman


def test_every_coordinate_is_all_of_them_in_any_order_and_a_projection_is_not(space):
    found = k_controls(space, SETTING, draws=3)
    assert list(found) == list(CONTROLS)
    whole = plain(space, space.combine((1, 2)).numpy(), space.dim)
    for name in ("first", "random"):
        assert found[name].spearman[-1] == pytest.approx(whole, abs=1e-9)
    assert found["random"].least[3] < found["random"].spearman[3] < found["random"].most[3]
    assert found["projection"].spearman[-1] != pytest.approx(whole, abs=1e-3)


def test_drawn_controls_are_the_plain_path_of_their_draws(space):
    found = k_controls(space, SETTING, draws=1, seed=4)
    generator = torch.Generator().manual_seed(4)
    x, d = space.combine((1, 2)), space.dim
    order = torch.randperm(d, generator=generator)
    normal = torch.randn(d, d, generator=generator, dtype=torch.float64)
    for k in (2, 5, d):
        assert found["random"].spearman[k - 1] == pytest.approx(plain(space, x[:, order].numpy(), k), abs=1e-9)
        assert found["projection"].spearman[k - 1] == pytest.approx(plain(space, (x @ normal).numpy(), k), abs=1e-9)


def test_pca_without_scaling_is_the_curve_of_centring_under_the_fit_of_the_setting(space):
    setting = SETTING.with_(fit="cross")
    assert k_controls(space, setting)["center"].spearman == k_curve(space, setting.with_(whitening="center")).spearman


def test_no_draws_are_refused(space):
    with pytest.raises(ValueError, match="draws=0"):
        k_controls(space, SETTING, draws=0)
