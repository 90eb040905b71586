"""What a variant does to the score of every layer alone."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from whitelab.base.progress import Progress, silent
from whitelab.encoding.embeddings import LayerEmbeddings, check_space
from whitelab.scoring.score import Score, score
from whitelab.scoring.setting import Setting, check_is_setting
from whitelab.statistics import geometry
from whitelab.sweeps.fitted_maps import EVERY_LAYER, fits_anew_for
from whitelab.whitening import variant

CUT = 3  # BERT-whitening keeps a third: 256 of 768 dimensions (Su et al. 2021)


@dataclass(frozen=True)
class LayerGain:
    """One layer raw and under a setting, and where that keeps every direction also `cut` to a third of them.

    `mean_cosine` is that of random raw sentences.
    """

    layer: int
    raw: Score
    whitened: Score
    cut: Score | None
    mean_cosine: float

    def gain(self, now: Score | None) -> float | None:
        """Points over raw; None where a score is not defined."""
        if now is None or now.spearman is None or self.raw.spearman is None:
            return None
        return now.spearman - self.raw.spearman


def plain_score(space: LayerEmbeddings, setting: Setting) -> Score:
    """The score of a setting without its held-out isotropy."""
    return score(space, setting, isotropy=False)


def mean_cosine(space: LayerEmbeddings, layer: int) -> float:
    """Mean cosine of two random sentences in a raw layer."""
    return float(geometry.mean_cosine(space.combine((layer,)), space.counts))


@fits_anew_for(EVERY_LAYER)
def layer_gains(
    space: LayerEmbeddings,
    setting: Setting,
    progress: Progress = silent,
    number_of: Callable[[LayerEmbeddings, Setting], Score] = plain_score,
    mean_cosine_of: Callable[[LayerEmbeddings, int], float] = mean_cosine,
) -> Iterator[tuple[LayerGain, ...]]:
    """The gain of each layer alone under a setting, whose own layers do not count; one layer more each time.

    Who keeps scores and cosines says where they come from: `number_of(space, setting)`, `mean_cosine_of(space, layer)`.
    """
    gains: tuple[LayerGain, ...] = ()
    cuttable = check_is_setting(setting).k is None and variant(setting.whitening).takes_k and space.dim >= CUT
    for layer in range(check_space(space).n_layers):
        alone = setting.with_(layers=(layer,))
        settings = (alone.raw, alone, *([alone.with_(k=space.dim // CUT)] if cuttable else []))
        raw, whitened, *cut = (number_of(space, each) for each in settings)
        gains += (LayerGain(layer, raw, whitened, cut[0] if cut else None, mean_cosine_of(space, layer)),)
        yield gains
        progress(len(gains), space.n_layers)
