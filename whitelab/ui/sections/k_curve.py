"""The k-curve of maps that never saw the pairs they score, beside that of the task's own map."""

from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.scoring.setting import Setting
from whitelab.sweeps.dimensions import KCurve
from whitelab.ui.results.scores import curve_of


def cross_fitted(space: LayerEmbeddings, setting: Setting) -> KCurve | None:
    """The curve of the cross-fitted halves; None where they are the setting's own, or cannot be had of these pairs."""
    if setting.fit == "cross":
        return None
    try:
        return curve_of(space, setting.with_(fit="cross"))
    except ValueError:  # too few pairs for two halves
        return None


def held_out_words(curve: KCurve, held_out: KCurve | None) -> str:
    """What the best k of the task's own fit is worth on pairs that its map has not seen."""
    if held_out is None or curve.best_k is None or held_out.spearman[curve.best_k - 1] is None:
        return ""
    fitted, unseen = curve.spearman[curve.best_k - 1], held_out.spearman[curve.best_k - 1]
    return (
        f" Cross-fitted (each half of the pairs scored with a map fitted on the other), the best k = {curve.best_k} "
        f"scores {unseen:.2f} instead of {fitted:.2f}; the best of that curve is k = {held_out.best_k}."
    )
