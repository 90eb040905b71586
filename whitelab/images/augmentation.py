"""Views of images: a random crop, stretched back to the whole, a small rotation, noise."""

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

# The part of the area a crop has, its ratio of sides, the rotation in degrees, and the deviation of the noise, where
# white is 1. W-MSE crops from 0.2 of 32 x 32 pixels and more on; of 8 x 8 that leaves less than half a digit.
AREA, RATIO, DEGREES, NOISE = (0.5, 1.0), (3 / 4, 4 / 3), 15.0, 0.1


def views(
    images: Float[Tensor, "b c h w"], count: int, generator: torch.Generator | None = None
) -> Float[Tensor, "v b c h w"]:
    """`count` views of every image, each with a crop, a rotation and noise of its own, drawn from `generator`.

    A crop has a random area and ratio of sides and lies within the image (W-MSE, section 4, "Image Transformation
    Details"); in place of mirrors and colours, which change what a digit is or do nothing to it, rotation and noise.
    What a rotation brings in from outside is the nearest pixel of the image's border.
    """
    copies = images.repeat(count, 1, 1, 1)
    number, (height, width) = len(copies), copies.shape[2:]

    def drawn(low: float, high: float) -> Float[Tensor, "n"]:
        return low + (high - low) * torch.rand(number, generator=generator, dtype=images.dtype)

    area, ratio = drawn(*AREA), drawn(*(math.log(one) for one in RATIO)).exp()
    across, down = ((area * ratio).sqrt().clamp_max(1), (area / ratio).sqrt().clamp_max(1))
    angle = torch.deg2rad(drawn(-DEGREES, DEGREES))
    cosine, sine, aspect = angle.cos(), angle.sin(), height / width
    # Where a pixel of the view lies in the image, both from -1 to 1: stretched, turned (in pixels), shifted.
    maps = torch.stack(
        [
            torch.stack([across * cosine, -down * sine * aspect, (1 - across) * drawn(-1.0, 1.0)], dim=-1),
            torch.stack([across * sine / aspect, down * cosine, (1 - down) * drawn(-1.0, 1.0)], dim=-1),
        ],
        dim=1,
    )
    grid = affine_grid(maps, list(copies.shape), align_corners=False)
    found = grid_sample(copies, grid, padding_mode="border", align_corners=False)
    found = found + NOISE * torch.randn(found.shape, generator=generator, dtype=images.dtype)
    return found.unflatten(0, (count, -1))
