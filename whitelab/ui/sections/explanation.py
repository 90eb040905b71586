"""Why a whitening gains or loses here, chosen from what is measured: rank, best k, mean cosine, held-out isotropy."""

from dataclasses import dataclass, replace

import streamlit as st

from whitelab.base.wording import capitalised, p_value, quantity, ratio, spaced
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.scoring.fit_scopes import fitted_vectors
from whitelab.scoring.paired import LEVEL
from whitelab.scoring.setting import Setting
from whitelab.statistics.correlation import ranked_at_once
from whitelab.statistics.geometry import CONE
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.crossed import crossed, objection, p_against_raw
from whitelab.ui.results.scores import curve_of, number_of, shape_of
from whitelab.ui.sidebar.workspace import take
from whitelab.ui.widgets.metric import number
from whitelab.whitening import variant, whitens

SMALL = 0.5  # points below which a change of score is not explained
MOST = 0.8  # of a loss is laid to what loses so much of it alone
_UNCLEAR = "of which {pairs} leave one test sure and the other not"
# What `objection` leaves of a change that Williams' test calls real.
_TURNED = "which maps of half the sentences turn round on the other half, and not by chance"
_OBJECTIONS = {
    "unclear": _UNCLEAR,
    "chance": "which maps of half the sentences do not show beyond doubt on the other half",
    "gain": _TURNED,
    "loss": _TURNED,
}


@dataclass(frozen=True)
class Measured:
    """What an explanation is chosen from, of one setting against raw.

    `whitens` is False of a variant that does not give all kept directions one variance. `best_gain` is that over raw
    at `best_k`; both None where the variant has no k, and where that gain is in doubt itself. `centred` is what
    centring alone gains, with the same cut to `k` where there is one; None where that is not asked. `doubt` is what
    tests say against the change; empty where they call it real, and where there is none.
    """

    name: str
    gain: float
    rank: int
    distinct: int
    per_dimension: float
    mean_cosine: float
    whitens: bool = True
    best_k: int | None = None
    best_gain: float | None = None
    centred: float | None = None
    k: int | None = None
    doubt: str = ""

    @property
    def starved(self) -> bool:
        """Whether the map keeps so many directions that it sets all sentences equally far apart."""
        return self.whitens and self.rank >= self.distinct - 1

    @property
    def unsure(self) -> bool:
        """Whether there is a change to speak of, and a test that does not call it real."""
        return bool(self.doubt) and abs(self.gain) > SMALL


def measured(space: LayerEmbeddings, setting: Setting, verdict: str = "") -> Measured | None:
    """The measures of a setting; None where a score is not defined. The best k is looked for where it may matter.

    `verdict` is a key of `VERDICTS` where the difference from raw was judged; else Williams' test is asked.
    """
    now, raw = number_of(space, setting), number_of(space, setting.raw)
    if now.spearman is None or raw.spearman is None:
        return None
    measures = Measured(
        LABELS.inline(setting.whitening),
        now.spearman - raw.spearman,
        now.rank,
        fitted_vectors(space, setting),
        now.fitted / now.dim,
        shape_of(space, setting.raw).mean_cosine,
        whitens(setting.whitening),
        k=setting.k,
    )
    if not measures.starved:
        measures = replace(measures, doubt=_doubt(space, setting, verdict))
    if measures.unsure:
        return measures
    if not measures.starved and (measures.gain > SMALL or setting.k is not None or not measures.whitens):
        measures = replace(measures, centred=_centred(space, setting))
    if measures.gain > SMALL and not measures.starved:
        return measures
    if not variant(setting.whitening).takes_k:
        return measures
    curve = curve_of(space, setting)
    gain = curve.spearman[curve.best_k - 1] - raw.spearman if curve.best_k else None
    if gain is not None and gain > SMALL and not measures.starved and _doubt(space, setting.with_(k=curve.best_k)):
        return measures
    return replace(measures, best_k=curve.best_k, best_gain=gain)


def _centred(space: LayerEmbeddings, setting: Setting) -> float | None:
    """What centring gains; None of centring itself, and of coordinates, whose cut is another."""
    if setting.whitening == "center" or not setting.fits:
        return None
    centred = number_of(space, setting.raw.with_(whitening="center", k=setting.k, fit=setting.fit)).spearman
    return None if centred is None else centred - number_of(space, setting.raw).spearman


def _doubt(space: LayerEmbeddings, setting: Setting, verdict: str = "") -> str:
    pairs = f"these {spaced(space.n_pairs)} pairs"
    if verdict == "unclear":
        return _UNCLEAR.format(pairs=pairs)
    if verdict == "chance":
        return f"which {pairs} cannot tell from no change"
    if not verdict and ranked_at_once(space.n_subsets, setting.aggregate):
        test = p_against_raw(space, setting)
        if test >= LEVEL:
            return f"which {pairs} cannot tell from no change (Williams {p_value(test)})"
    against = crossed if verdict else objection  # a verdict is of both tests
    return _OBJECTIONS.get(against(space, setting), "").format(pairs=pairs)


def explained(measures: Measured) -> tuple[str, int | None]:
    """The explanation, and a k that the data can bear where one is to be offered."""
    name, gain, cosine = measures.name, measures.gain, number(measures.mean_cosine)
    title = capitalised(name)
    if measures.starved:
        bearable = max(1, measures.distinct // 10)
        bear = quantity(measures.distinct, "different vector bears", "different vectors bear")
        return (
            f"**There is no change to explain yet.** {bear} about a tenth as many directions."
        ), measures.best_k and min(measures.best_k, bearable)
    in_a_cone = measures.mean_cosine >= CONE
    lie = "lie in a cone" if in_a_cone else "are spread around already"
    cone = f"Two random sentences have a mean cosine of {cosine} here, so the raw vectors {lie}"
    if measures.unsure:
        side, change = ("above", "gain") if gain > 0 else ("below", "loss")
        return (
            f"**{title} scores {abs(gain):.2f} points {side} raw here, {measures.doubt}.** So there is no {change} to "
            "explain yet."
        ), None
    centred, cut = measures.centred, "" if measures.k is None else " and the same cut"
    part = "" if centred is None else f" Centring{cut} alone change{'' if cut else 's'} the score by {centred:+.2f}."
    if gain > SMALL:
        why = (
            "Giving every kept direction the same variance takes weight from the few strong ones that most sentences "
            "share and lets the others count."
            if in_a_cone
            else "Giving every kept direction the same variance lets the weak ones count as much as the strong ones."
        )
        if centred is not None and centred > gain + SMALL and measures.whitens:
            return (
                f"**{title} gains {gain:.2f} points here.** {cone}. Centring{cut} alone gains {centred:.2f}; whitening "
                f"what is left costs {centred - gain:.2f} of it."
            ), None
        return f"**{title} gains {gain:.2f} points here.** {cone}.{part}" + f" {why}" * measures.whitens, None
    better = measures.best_gain is not None and measures.best_gain > max(gain, 0) + SMALL
    offered = measures.best_k if better else None
    words = f" At k = {offered} it would gain {measures.best_gain:.2f} points over raw." if better else ""
    if gain >= -SMALL:
        return f"**{title} changes the score by {gain:+.2f} points here.** {cone}.{words}", offered
    if measures.k is not None and centred is not None and centred < -SMALL and centred <= MOST * gain:
        done = "whitening what is kept" if measures.whitens else "the rest of the map"
        back = f"; {done} wins {gain - centred:.2f} back" if gain > centred + SMALL else ""
        return (
            f"**{title} loses {-gain:.2f} points here.** The cut to k = {measures.k} is what costs: centring and the "
            f"same cut alone lose {-centred:.2f}{back}.{words}"
        ), offered
    if not measures.whitens:  # what it does is no reason
        return f"**{title} loses {-gain:.2f} points here.** {cone}.{part}{words}", offered
    why = (
        f", but the weakest of the {measures.rank} directions kept count as much as the strongest now, and "
        f"{ratio(measures.per_dimension)} sentences per dimension were there to tell meaning from noise in them."
        if in_a_cone
        else ". Whitening then takes weight from strong directions that carry meaning and gives it to weak ones that "
        "carry little."
    )
    remedy = (
        words or " Whitening less (a soft exponent, a shrunk covariance) or keeping fewer dimensions amplifies less."
    )
    return f"**{title} loses {-gain:.2f} points here.** {cone}{why}{remedy}", offered


def draw(space: LayerEmbeddings, setting: Setting, verdict: str = "") -> None:
    """Why the setting gains or loses against raw, with one click to a k that the data can bear; `verdict` as in
    `measured`."""
    measures = measured(space, setting, verdict)
    if measures is None:
        return
    words, offered = explained(measures)
    with st.container(horizontal=True, vertical_alignment="center", key="explanation"):
        st.info(words, icon=":material/info:")
        if offered and offered != setting.k:
            st.button(
                f"Use k = {offered}", key="offered-k", on_click=take, kwargs={"k": offered}, icon=":material/tune:"
            )
