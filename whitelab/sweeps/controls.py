"""What a curve over k is held against: columns that no covariance chose, and directions without scaling."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.base.checks import check_int
from whitelab.base.progress import Progress, Steps, silent
from whitelab.base.records import without_nan
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.scoring.setting import Setting, check_is_setting
from whitelab.sweeps.dimensions import cumulative_cosines, k_curve, scores_by_k

CONTROLS = {
    "first": "The first k coordinates",
    "random": "k random coordinates",
    "projection": "A random projection to k",
    "center": "PCA without scaling",
}


@dataclass(frozen=True)
class Control:
    """Spearman x 100 for k = 1..d: the mean of `draws`, and the `least` and the `most` of any of them."""

    spearman: tuple[float | None, ...]
    least: tuple[float | None, ...]
    most: tuple[float | None, ...]
    draws: int


def k_controls(
    space: LayerEmbeddings, setting: Setting, draws: int = 5, seed: int = 0, progress: Progress = silent
) -> Mapping[str, Control]:
    """The controls of a setting's k-curve, by the names in `CONTROLS`; its own variant and k do not count.

    `first`, `random` and `projection` are of the raw rows, nothing fitted: their first k coordinates, k coordinates
    drawn without return, their products with k columns of independent standard normal numbers, `draws` times each.
    Draws are nested, the k of one being among its k + 1, so each costs one pass of running sums. `center` is the
    curve of PCA whose directions keep their lengths, under the setting's own fit. Raises ValueError for `draws`
    below 1 and a negative `seed`. `progress(done, total)` counts curves and may raise to cancel.
    """
    check_is_setting(setting)
    check_int(draws, "draws", 1)
    generator = torch.Generator().manual_seed(check_int(seed, "seed", 0))
    setting = setting.with_(whitening="center", k=None).on(space)
    x, d = space.combine(setting.layers), space.dim
    orders = [torch.randperm(d, generator=generator) for _ in range(draws)]
    normals = [torch.randn(d, d, generator=generator, dtype=torch.float64) for _ in range(draws)]
    columns = {
        "first": [lambda: x],
        "random": [lambda order=order: x[:, order] for order in orders],
        "projection": [lambda normal=normal: x @ normal.to(x.device) for normal in normals],
    }
    found, step = {}, Steps(progress, 2 + 2 * draws)
    for name, makers in columns.items():
        curves = []
        for make in makers:
            curves.append(_curve(space, setting, make()))
            step()
        found[name] = _control(curves)
    centred = k_curve(space, setting, by_subset=False).spearman
    step()
    return found | {"center": Control(centred, centred, centred, 1)}


def _curve(space: LayerEmbeddings, setting: Setting, z: Float[Tensor, "n d"]) -> Float[Tensor, "d"]:
    cosines = cumulative_cosines(z, space.first, space.second)
    how = setting.aggregate
    scores = scores_by_k(cosines, lambda x: space.judged.spearman(x, how))
    return 100 * torch.tensor(scores, dtype=torch.float64)


def _control(curves: list[Float[Tensor, "d"]]) -> Control:
    """A k at which a draw has no score has none at all."""
    table = torch.stack(curves)
    band = (table.mean(0), table.amin(0), table.amax(0))
    parts = (tuple(without_nan(part.tolist())) for part in band)
    return Control(*parts, draws=len(curves))
