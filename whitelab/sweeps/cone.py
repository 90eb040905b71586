"""The cone that sentences fill, as a flat picture through the origin: raw, centred and under a map."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whitelab import whitening
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.setting import Setting
from whitelab.statistics import linalg


@dataclass(frozen=True, eq=False)
class Cone:
    """One stage: every sentence and the mean vector in the plane, and degrees between a sentence and the mean.

    `angle` is the median over the sentences in all dimensions, None where the mean vector is 0.
    """

    points: Float[np.ndarray, "n 2"]
    mean: tuple[float, float]
    angle: float | None


def cones(space: LayerEmbeddings, settings: Sequence[Setting]) -> tuple[Cone, ...]:
    """The space under each of the `settings`, seen in one plane through the origin: no stage is moved to fit.

    The plane holds the raw mean vector (the first axis) and the direction at right angles to it along which the raw
    vectors vary most. A map x -> (x - m) M is drawn as (x - m) (M M^T)^(1/2): the same up to a rotation, which no
    cosine sees, and the only one that turns nothing on the way. Under `fit="cross"` that of the first half is drawn.
    Raises ValueError for a map that is not affine.
    """
    x = space.combine(settings[0].layers)
    moments = space.moments(settings[0].layers)
    plane = _plane(moments.mean, moments.covariance)
    return tuple(_cone(x, moments.mean, plane, *_map(space, setting)) for setting in settings)


def _plane(mean: Float[Tensor, "d"], covariance: Float[Tensor, "d d"]) -> Float[Tensor, "d 2"]:
    first = mean if mean.norm() > 0 else linalg.eigen_all(covariance).vectors[:, 0]
    first = first / first.norm()
    beside = torch.eye(len(first), dtype=first.dtype) - torch.outer(first, first)
    second = linalg.eigen_all(beside @ covariance @ beside).vectors[:, 0]
    return torch.stack([first, second], dim=1)


def _map(space: LayerEmbeddings, setting: Setting) -> tuple[Float[Tensor, "d"], Float[Tensor, "d d"]]:
    """The mean a setting takes away, and its matrix without the rotation."""
    why = "the cone is drawn through a mean and a matrix"
    whitener = whitening.affine(fit_scope(space, setting).whiteners[0], why)
    dense = whitener.dense
    eigen = linalg.eigen_all(dense @ dense.T)
    return whitener.mean, (eigen.vectors * eigen.values.sqrt()) @ eigen.vectors.T


def _cone(x: Tensor, mean: Tensor, plane: Tensor, away: Tensor, root: Tensor) -> Cone:
    x, centre = x - away, (mean - away) @ root
    reach, angle = float(centre.norm()), None
    if reach:  # a map that takes the mean away leaves none to stand at an angle to
        z = x @ root
        lengths = z.norm(dim=1)
        if reach > 1e-6 * float(lengths.max()):
            cosines = (z @ centre) / (lengths * reach)
            angle = math.degrees(math.acos(min(max(float(cosines.nanmedian()), -1.0), 1.0)))
    return Cone((x @ (root @ plane)).numpy(), tuple((centre @ plane).tolist()), angle)
