"""Laws of the views: what is drawn lies within its bounds, and nothing else happens to an image."""

import math

import pytest
import torch
from torch.testing import assert_close

from whitelab.images import augmentation
from whitelab.images.augmentation import views


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def only(monkeypatch):
    """Leave all but the given out of the augmentation."""

    def leave(area=(1.0, 1.0), ratio=(1.0, 1.0), degrees=0.0, noise=0.0):
        for name, value in (("AREA", area), ("RATIO", ratio), ("DEGREES", degrees), ("NOISE", noise)):
            monkeypatch.setattr(augmentation, name, value)

    return leave


def places(height, width):
    """[1, 2, h, w]: every pixel's own place, from -1 to 1 across and down."""
    x, y = (2 * (torch.arange(one) + 0.5) / one - 1 for one in (width, height))
    return torch.stack(torch.meshgrid(x, y, indexing="xy"))[None]


def blob(height, width, across, down):
    x, y = places(height, width)[0] * torch.tensor([width, height])[:, None, None] / 2
    return torch.exp(-((x / across) ** 2) - (y / down) ** 2)[None, None]


def test_without_any_augmentation_a_view_is_the_image(only):
    only()
    images = torch.rand(3, 2, 8, 6, generator=seeded())
    assert_close(views(images, 2, seeded()), images.expand(2, -1, -1, -1, -1), atol=1e-5, rtol=0)


def test_views_differ_from_each_other_and_are_those_of_the_generator():
    images = torch.rand(4, 1, 8, 8, generator=seeded())
    found = views(images, 3, seeded(1))
    assert found.shape == (3, 4, 1, 8, 8)
    assert torch.equal(found, views(images, 3, seeded(1)))
    assert all((found[i] - found[j]).abs().max() > 0.1 for i in range(3) for j in range(i))


def test_an_image_of_one_value_stays_it_but_for_noise_of_the_given_size(only):
    only(area=(0.3, 1.0), ratio=(0.5, 2.0), degrees=180.0)
    images = torch.full((200, 1, 8, 8), 0.5)
    assert_close(views(images, 2, seeded()), images.expand(2, -1, -1, -1, -1), atol=1e-5, rtol=0)
    only(noise=0.1)
    assert float((views(images, 2, seeded()) - 0.5).std()) == pytest.approx(0.1, rel=0.05)


def test_a_crop_lies_within_the_image_and_has_an_area_and_a_ratio_within_their_bounds(only):
    only(area=(0.5, 0.7), ratio=(0.8, 1.25))
    found = views(places(32, 48).expand(300, -1, -1, -1), 1, seeded())[0]
    # Inside, where no border is near, places go up evenly by the crop's share of the side.
    across = (found[:, 0, 16, 30] - found[:, 0, 16, 18]) / (2 * 12 / 48)
    down = (found[:, 1, 22, 24] - found[:, 1, 10, 24]) / (2 * 12 / 32)
    area, ratio = across * down, across / down
    for value, (low, high) in ((area, (0.5, 0.7)), (ratio, (0.8, 1.25))):
        assert low - 1e-3 <= value.min() < low + 0.1 * (high - low)
        assert high - 0.1 * (high - low) < value.max() <= high + 1e-3
    middle = found[:, :, 15:17, 23:25].mean(dim=(2, 3)).abs()
    assert (middle <= 1 - torch.stack([across, down], dim=1) + 1e-3).all()
    assert middle.max() > 0.1


def test_a_rotation_keeps_what_is_round_in_images_that_are_not_square(only):
    only(degrees=180.0)
    round_, long = blob(24, 40, 5, 5), blob(24, 40, 5, 2)
    for image, kept in ((round_, True), (long, False)):
        found = views(image.expand(50, -1, -1, -1), 1, seeded())[0]
        assert ((found - image).abs().max() < 0.05) == kept


def test_a_rotation_turns_by_no_more_than_its_degrees(only):
    only(degrees=30.0)
    found = views(places(32, 32).expand(300, -1, -1, -1), 1, seeded())[0][:, :, 12:20, 12:20]
    slopes = (found[:, 0, :, -1] - found[:, 0, :, 0]).mean(dim=1), (found[:, 1, :, -1] - found[:, 1, :, 0]).mean(dim=1)
    angles = torch.rad2deg(torch.atan2(slopes[1], slopes[0]))
    assert 28 < angles.max() <= 30 + 1e-2
    assert -30 - 1e-2 <= angles.min() < -28
    assert_close(slopes[0].square() + slopes[1].square(), torch.full((300,), (2 * 7 / 32) ** 2), atol=1e-4, rtol=0)


def test_the_published_bounds_of_the_ratio_are_used():
    assert augmentation.RATIO == (3 / 4, 4 / 3)
    assert math.prod(augmentation.RATIO) == 1
