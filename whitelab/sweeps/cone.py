"""The cone that sentences fill, as a flat picture through the origin: raw, centred and under a map."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whitelab import whitening
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.setting import Setting, check_settings
from whitelab.statistics import linalg


@dataclass(frozen=True, eq=False)
class Cone:
    """One stage: every sentence and the mean vector in the plane, and degrees between a sentence and the mean.

    `angle` is the median over the sentences in all dimensions, None where the mean vector is 0.
    """

    points: Float[np.ndarray, "n 2"]
    mean: tuple[float, float]
    angle: float | None


def plane(space: LayerEmbeddings, layers: tuple[int, ...]) -> Float[Tensor, "d 2"]:
    """The raw mean vector of the average of `layers`, and across it the direction of most variance; of length 1."""
    moments = space.moments(layers)
    first = moments.mean if moments.mean.norm() > 0 else moments.eigen_all.vectors[:, 0]
    first = first / first.norm()
    beside = torch.eye(len(first), dtype=first.dtype, device=first.device) - torch.outer(first, first)
    second = linalg.eigen_all(beside @ moments.covariance @ beside).vectors[:, 0]
    return torch.stack([first, second], dim=1).cpu()


def cones(
    space: LayerEmbeddings,
    settings: Sequence[Setting],
    plane_of: Callable[[LayerEmbeddings, tuple[int, ...]], Float[Tensor, "d 2"]] = plane,
) -> tuple[Cone, ...]:
    """The space under each of the `settings`, seen in one plane through the origin: no stage is moved to fit.

    The plane holds the raw mean vector (the first axis) and the direction at right angles to it along which the raw
    vectors vary most. A map x -> (x - m) M is drawn as (x - m) (M M^T)^(1/2): the same up to a rotation, which no
    cosine sees, and the only one that turns nothing on the way. Under `fit="cross"` that of the first half is drawn.
    Who keeps planes says where they come from: `plane_of(space, layers)`. Raises ValueError for a map that is not
    affine.
    """
    settings = check_settings(settings)
    layers = settings[0].on(space).layers
    x, mean = space.combine(layers), space.moments(layers).mean
    axes = plane_of(space, layers).to(x.device)
    return tuple(_cone(x, mean, axes, *_map(space, setting)) for setting in settings)


def _map(space: LayerEmbeddings, setting: Setting) -> tuple[Float[Tensor, "d"], Float[Tensor, "d d"]]:
    """The mean a setting takes away, and its matrix without the rotation."""
    fitted = fit_scope(space, setting)
    if fitted.bases is not None and fitted.bases[0].weights is not None:  # the axes are there: nothing to take apart
        basis, mean = fitted.bases[0], fitted.moments[0].mean
        return mean if basis.centred else torch.zeros_like(mean), basis.turned_back(fitted.setting.k)
    whitener = whitening.affine(fitted.whiteners[0], "the cone is drawn through a mean and a matrix")
    dense = whitener.dense
    if torch.equal(dense, torch.eye(len(dense), dtype=dense.dtype, device=dense.device)):
        return whitener.mean, dense
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
            angle = math.degrees(math.acos(min(max(float(cosines.nanquantile(0.5)), -1.0), 1.0)))
    return Cone((x @ (root @ plane)).cpu().numpy(), tuple((centre @ plane).tolist()), angle)
