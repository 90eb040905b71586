"""What the papers draw, computed on any model and data, and the printed numbers to put beside it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from whitelab.base.progress import Progress, silent
from whitelab.base.records import without_nan
from whitelab.compare import published
from whitelab.compare.bench import Bench, tried
from whitelab.compare.grid import Grid, Loaded, called
from whitelab.compare.presets import PRESETS, Preset
from whitelab.compare.published import SPEARMAN, Published
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.encoding.encoders import Encoder
from whitelab.scoring.setting import Setting, parse_settings
from whitelab.store.embedding_store import Store
from whitelab.sweeps import layer_profiles
from whitelab.sweeps.dimensions import KCurve, k_curve
from whitelab.sweeps.layer_pairs import LayerPairs, layer_pairs

WHITENINGBERT, SU = PRESETS["whiteningbert"], PRESETS["bert-whitening"]
GROUPS = 128  # of WhitenedCSE's released code; its paper has 32 to 384


# ------------------------------------------------------------------------------------------------- measured


def spaces(
    encoder: Encoder,
    data: str,
    tasks: Sequence[str],
    preset: Preset = WHITENINGBERT,
    *,
    store: Store | None = None,
    keep_going: bool = False,
    progress: Progress = silent,
) -> Iterator[tuple[str, LayerEmbeddings]]:
    """Each task's mean-pooled embeddings under a preset, as they are done. Raises Unscored for what cannot be had."""
    for task in tasks:
        yield task, Bench(encoder, data, task, store, keep_going, progress).space("mean", preset)


def pair_maps(named: Iterator[tuple[str, LayerEmbeddings]]) -> Iterator[dict[str, LayerPairs]]:
    """WhiteningBERT Figure 1: every pair of layers of each task, one task more each time."""
    maps: dict[str, LayerPairs] = {}
    for task, space in named:
        setting = Setting(pooling=space.origin.pooling, aggregate=WHITENINGBERT.aggregate)
        maps = maps | {task: layer_pairs(space, setting)}
        yield maps


def pair_average(maps: Mapping[str, LayerPairs]) -> dict[tuple[int, int], float | None]:
    """The plain mean over the tasks of every cell i <= j; None where a task has no score there."""
    found = {}
    for cells in zip(*(one.cells for one in maps.values()), strict=True):
        scores = [cell.spearman for cell in cells]
        found[cells[0].layers] = None if None in scores else sum(scores) / len(scores)
    return found


def task_curves(
    encoder: Encoder,
    data: str,
    tasks: Sequence[str],
    setting: Setting,
    preset: Preset = SU,
    *,
    store: Store | None = None,
    keep_going: bool = False,
    progress: Progress = silent,
) -> Iterator[dict[str, KCurve]]:
    """BERT-whitening Figure 1: the score of `setting` at every k on each task, one task more each time."""
    curves: dict[str, KCurve] = {}
    for done, task in enumerate(tasks, 1):
        bench = Bench(encoder, data, task, store, keep_going)
        curves = curves | {task: k_curve(*bench.scored(setting, preset), by_subset=False)}
        yield curves
        progress(done, len(tasks))


@dataclass(frozen=True)
class Spot:
    """A setting of a model in the plane of alignment and uniformity; None where a loss is not defined."""

    model: str
    setting: str
    whitening: str
    alignment: float | None
    uniformity: float | None
    spearman: float | None
    positives: int
    dim: int

    def as_dict(self) -> dict:
        """A flat record."""
        return asdict(self)


def spot(bench: Bench, setting: Setting, preset: Preset = WHITENINGBERT, positives: str = "gt4") -> Spot:
    """WhitenedCSE Figure 3 without its training: both losses (its Eq. 9 and 10) of one setting on a bench's task.

    Raises Unscored for what cannot be had, ValueError for layers, `k` and positives that do not exist.
    """
    losses = layer_profiles.losses(*bench.scored(setting, preset), positives)
    numbers = without_nan((losses.alignment, losses.uniformity, losses.spearman))
    encoder = bench.encoder
    return Spot(encoder.name, str(setting), setting.whitening, *numbers, losses.positives, encoder.dim)


def spread_settings(dim: int) -> tuple[Setting, ...]:
    """The spaces of WhitenedCSE's Figure 1 for an encoder of `dim` dimensions: raw, its own whitening, all whitened.

    Its shuffled group whitening has the 128 groups of the released code, where there are two coordinates or more for
    each and they come out even; elsewhere the variant's own number, which is no paper's.
    """
    groups = f":groups={GROUPS}" if dim > GROUPS and dim % GROUPS == 0 else ""
    return parse_settings(f"L-1;L-1:shuffled_group{groups};L-1:pca")


def cosine_spread(bench: Bench, setting: Setting, preset: Preset = WHITENINGBERT) -> np.ndarray:
    """WhitenedCSE Figure 1 as numbers: cosines of random pairs of different sentences under a setting."""
    return layer_profiles.cosine_sample(*bench.scored(setting, preset))


@dataclass(frozen=True, eq=False)
class LossFigure:
    """What has been measured so far: spots, why settings were left out by model, cosines of random pairs by model and
    spec."""

    spots: tuple[Spot, ...] = ()
    left_out: dict[str, dict[str, str]] = field(default_factory=dict)
    spreads: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)

    def plus(self, spot: Spot, cosines: np.ndarray | None) -> "LossFigure":
        """One spot more."""
        spreads = self.spreads
        if cosines is not None:
            spreads = spreads | {spot.model: spreads.get(spot.model, {}) | {spot.whitening: cosines}}
        return replace(self, spots=(*self.spots, spot), spreads=spreads)

    def without(self, model: str, setting: Setting, reason: str) -> "LossFigure":
        """Without a setting of a model."""
        return replace(self, left_out=self.left_out | {model: self.left_out.get(model, {}) | {str(setting): reason}})


def losses(
    grid: Grid,
    task: str,
    positives: str = "gt4",
    *,
    store: Store | None = None,
    progress: Progress = silent,
    load: Callable[[str, str, bool], Encoder] | None = None,
) -> Iterator[LossFigure]:
    """WhitenedCSE Figures 1 and 3 of every model of a grid on one task, one setting more each time.

    Its settings are those of the grid and those of Figure 1, whose cosines are kept. What cannot be had is left out
    with its reason. Models are named as `compare` names them. A model is loaded by `load(name, dtype, allow_bin)`;
    `progress(done, total)` counts settings.
    """

    def settings(dim: int = 0) -> tuple[Setting, ...]:
        return tuple(dict.fromkeys((*grid.settings, *spread_settings(dim))))

    # Of Figure 1 the settings depend on the width, and may be in the grid: a model can have more or fewer.
    found, done, total = LossFigure(), 0, len(grid.models) * len(settings())
    for model, name in called(grid.models).items():
        encoder = Loaded(model, grid.dtype, model in grid.allow_bin, load).encoder
        lost = isinstance(encoder, str)
        dim = 0 if lost else encoder.dim
        bench = None if lost else Bench(encoder, grid.data, task, store, grid.keep_going)
        for one in settings(dim):
            made = encoder if lost else tried(lambda one=one, bench=bench: spot(bench, one, grid.rules, positives))
            if isinstance(made, str):
                found = found.without(name, one, made)
            else:
                kept = one in spread_settings(dim)
                found = found.plus(replace(made, model=name), cosine_spread(bench, one, grid.rules) if kept else None)
            done += 1
            progress(min(done, total), total)
            yield found


# -------------------------------------------------------------------------------------------------- printed


def _plain(model: str) -> str:
    """The tables' name of a model that is as it was pretrained; empty for one that was trained further."""
    name, training = published.named(model)
    return "" if training else name


def panels() -> dict[str, str]:
    """The models of WhiteningBERT's Figure 1: name in the tables -> heading."""
    return {one.model: one.section for one in _figure1()}


def pairs_place() -> str:
    """Where these cells are printed, in words."""
    return _figure1()[0].place


def printed_pairs(model: str) -> dict[tuple[int, int], float]:
    """The cells i <= j of WhiteningBERT's Figure 1 for a model; none for one it does not draw."""
    found = {}
    for one in _figure1():
        if one.model == _plain(model):
            layers = published.PrintedRow.parse(one.setting).layers
            found[layers[0], layers[-1]] = one.value
    return found


def _figure1() -> list[Published]:
    return list(published.numbers("whiteningbert", "Figure 1", column="avg"))


def printed_sizes(model: str) -> dict[int, tuple[tuple[int, ...], float]]:
    """The best layer and the best pair of layers in the cells of Figure 1: what Figure 2 shows at sizes 1 and 2."""
    best: dict[int, tuple[tuple[int, ...], float]] = {}
    for pair, value in printed_pairs(model).items():
        layers = tuple(dict.fromkeys(pair))
        if value > best.get(len(layers), ((), float("-inf")))[1]:
            best[len(layers)] = layers, value
    return best


def printed_ks(model: str, dim: int) -> list[Published]:
    """BERT-whitening's numbers for a model fitted on all splits, which lie on the curves of its Figure 1.

    A number without k stands at k = `dim`; `printed_k` says where.
    """
    found = []
    for one in published.numbers("bert-whitening"):
        own = published.PrintedRow.parse(one.setting)
        fits = own.whitening == "whitening" and own.fit == "splits" and not own.training and one.column != "avg"
        if one.model == _plain(model) and fits and one.unit == SPEARMAN and (own.k or dim) <= dim:
            found.append(one)
    return found


def printed_k(one: Published, dim: int) -> int:
    """The k of a printed number; all `dim` where it names none."""
    return published.PrintedRow.parse(one.setting).k or dim
