"""What is said beside the k-curve: where it ends, and what its best k is worth under maps that never saw the pairs."""

from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.scoring.fit_scopes import thin_halves
from whitelab.scoring.score import Score
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


def rank_words(curve: KCurve, raw: Score) -> str:
    """How many directions there are to keep, and what becomes of the curve beyond."""
    said = f" The rank is {curve.rank} of {curve.dim}"
    beyond = "all sentences are equally far apart" if curve.spearman[-1] is None else "the curve is flat"
    if raw.reason:  # there is no curve
        beyond = ""
    if (spanned := curve.ranks[-2:][0]) + 1 < curve.rank:
        there = f": from there {beyond}" if beyond else ""
        return f"{said}. The sentences span {spanned} of these{there}, and k = {curve.dim} keeps all others at once."
    if curve.rank == curve.dim:
        return f"{said}."
    return f"{said}: above it there is no direction left to keep{beyond and f', so {beyond}'}."


def held_out_words(space: LayerEmbeddings, curve: KCurve, held_out: KCurve | None) -> str:
    """What the best k of the task's own fit is worth on pairs that its map has not seen."""
    if held_out is None or curve.best_k is None or held_out.spearman[curve.best_k - 1] is None:
        return ""
    if thin_halves(space, curve.setting, curve.best_k):
        return f" Halves of these pairs have too few sentences to say what k = {curve.best_k} is worth on others."
    fitted, unseen = curve.spearman[curve.best_k - 1], held_out.spearman[curve.best_k - 1]
    return (
        f" Cross-fitted (each half of the pairs scored with a map fitted on the other), the best k = {curve.best_k} "
        f"scores {unseen:.2f} instead of {fitted:.2f}; the best of that curve is k = {held_out.best_k}."
    )
