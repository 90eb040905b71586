"""Why a whitening gains or loses here, chosen from what is measured: rank, best k, mean cosine, held-out isotropy."""

from dataclasses import dataclass

import streamlit as st

from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.scoring.setting import Setting
from whitelab.sweeps.dimensions import k_curve
from whitelab.sweeps.layer_profiles import profile
from whitelab.ui.results.scores import scored
from whitelab.ui.results.study import study
from whitelab.ui.widgets.metric import number
from whitelab.ui.widgets.variants import LABELS
from whitelab.whitening import variant

SMALL = 0.5  # points below which a change of score is not explained
CONE = 0.2  # mean cosine of random pairs from which on a space is called a cone here


@dataclass(frozen=True)
class Measured:
    """What an explanation is chosen from, of one setting that whitens against raw."""

    name: str
    gain: float
    rank: int
    distinct: int
    per_dimension: float
    mean_cosine: float
    isotropy: float | None
    k: int | None
    best_k: int | None
    best_gain: float | None


def measured(space: LayerEmbeddings, setting: Setting) -> Measured | None:
    """The measures of a setting; None where a score is not defined."""
    now, raw = scored(space, setting), scored(space, setting.raw)
    if now.spearman is None or raw.spearman is None:
        return None
    best_k = best_gain = None
    if variant(setting.whitening).takes_k:
        curve = study(k_curve, space, setting.with_(k=None), by_subset=False)
        best_k = curve.best_k
        best_gain = curve.spearman[best_k - 1] - raw.spearman if best_k else None
    return Measured(
        LABELS.inline(setting.whitening),
        now.spearman - raw.spearman,
        now.rank,
        space.n_sentences,
        now.sentences / now.dim,
        study(profile, space, setting.raw).mean_cosine,
        now.isotropy,
        setting.k,
        best_k,
        best_gain,
    )


def explained(one: Measured) -> tuple[str, int | None]:
    """The explanation, and a k that would do better where one is to be offered."""
    name = one.name[0].upper() + one.name[1:]
    if one.rank >= one.distinct - 1:
        bearable = max(1, one.distinct // 10)
        offered = min(one.best_k or bearable, bearable)
        return (
            f"**No verdict yet.** {one.distinct} different sentences span only {one.rank} directions, so {one.name} "
            "sets all of them equally far apart: the score says nothing about meaning, whichever way it went. Keep "
            "fewer dimensions, or fit on more text."
        ), offered
    cone = (
        f"Two random sentences have a mean cosine of {number(one.mean_cosine)} here, so the raw vectors lie in a cone"
        if one.mean_cosine >= CONE
        else f"Two random sentences have a mean cosine of {number(one.mean_cosine)} here, so the raw vectors are "
        "spread around already"
    )
    if one.gain > SMALL:
        return (
            f"**{name} gains {one.gain:.2f} points here.** {cone}, and a few strong directions that most sentences "
            "share decide the raw cosines. Giving every kept direction the same variance lets the others count."
        ), None
    offered = one.best_k if one.best_gain is not None and one.best_gain > max(one.gain, 0) + SMALL else None
    better = f" At k = {one.best_k} it would gain {one.best_gain:.2f} points over raw." if offered else ""
    if one.gain >= -SMALL:
        return f"**{name} changes the score by {one.gain:+.2f} points.** {cone}.{better}", offered
    why = (
        f"{cone}, but the weakest of the {one.rank} directions kept carry little meaning, and whitening gives each of "
        f"them the weight of the strongest ({one.per_dimension:.1f} sentences per dimension were there to tell them "
        "apart)."
        if one.mean_cosine >= CONE
        else f"{cone}, as encoders trained contrastively spread their last layers. Whitening then takes weight from "
        "strong directions that carry meaning and gives it to weak ones that carry little."
    )
    remedy = better or " A soft exponent (γ below 1), a shrunk covariance or a smaller k amplify less."
    return f"**{name} loses {-one.gain:.2f} points here.** {why}{remedy}", offered


def draw(space: LayerEmbeddings, setting: Setting) -> None:
    """Why the setting gains or loses against raw, with one click to a k that the data can bear."""
    one = measured(space, setting)
    if one is None:
        return
    words, offered = explained(one)
    st.info(words, icon=":material/info:")
    if offered and offered != one.k:
        st.button(f"Use k = {offered}", key="offered-k", on_click=_take, args=(offered,), icon=":material/tune:")


def _take(k: int) -> None:
    st.session_state["k"] = k
