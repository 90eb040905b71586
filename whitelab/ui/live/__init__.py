"""The live score: the number, its change against raw, its little curve and the knob k, moved in the browser itself.

Components without a build step: `live.js` draws, and `curve.js`, mounted when the page has been drawn, brings the
scores of every k. So the first number never waits for the curve, and from then on a drag needs no server. `ahead.js`
does the same for one layer more or less and for another variant.
"""

from functools import partial
from pathlib import Path
from weakref import ref

import streamlit as st

from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.scoring.paired import Doubt
from whitelab.scoring.score import Score
from whitelab.scoring.setting import Setting
from whitelab.ui.live import ahead
from whitelab.ui.results.scores import curve_of
from whitelab.ui.results.shelf import shelf
from whitelab.ui.sidebar.workspace import FIXED, K
from whitelab.ui.widgets.component import component
from whitelab.ui.widgets.metric import in_doubt
from whitelab.whitening import variant

PLACES = ("live-bar", "live-strip")  # keys of the two components

# Pairs times dimensions up to which the whole curve is computed ahead of the hand: about a second.
CURVE_CELLS = 5_000_000

_ASSETS = Path(__file__).parent


_card, _strip = (component(_ASSETS, name, "live", "live", isolate_styles=False) for name in ("live", "strip"))
_curve = st.components.v2.component(
    "whitelab.curve", html="<span></span>", js=(_ASSETS / "curve.js").read_text("utf-8")
)


def draw(
    bar,
    page,
    setting: Setting,
    dim: int,
    space: LayerEmbeddings | None = None,
    *scores: Score,
    doubt: Doubt | None = None,
    never: bool = False,
) -> None:
    """Draw the knob k with the live score above it; `scores` are those of the setting and of raw, once known.

    `doubt` says which scores about it may be raw's but for chance, and which k say nothing: the browser asks it while
    k is moved.
    `never` says that there will be none, for want of data that can be read.

    The card stands in the container `bar`; the strip, in `page`, shows only while the bar is closed.
    """
    now, raw = (score.spearman for score in scores) if scores else (None, None)
    takes_k = variant(setting.whitening).takes_k
    data = {
        "k": st.session_state[K],
        "dim": dim,
        "takes_k": takes_k,
        "fixed": st.session_state.get(FIXED, "") if takes_k else f"{variant(setting.whitening).label} has no k.",
        "score": now,
        "raw": None if setting.whitening == "none" else raw,  # which is not held against itself
        "of": _of(space, setting) if space is not None else "",
        "words": "undefined" if scores else "no score" if never else "...",
        "help": scores[0].line() if scores else "",
        "doubt": doubt and _doubt(doubt, scores[0], takes_k),
    }
    for place, mount, key, take in zip((bar, page), (_card, _strip), PLACES, (_from_bar, _from_strip), strict=True):
        with place:
            mount(key=key, data=data, on_k_change=take)


def _doubt(doubt: Doubt, score: Score, takes_k: bool) -> list:
    """For JSON: from where to where, from which k on (for a variant without one: any or none), and the words."""
    starved = doubt.verdict(score.spearman, score.rank) == "starved"
    starving = doubt.starving if takes_k else int(starved) or None
    if takes_k and starving and score.rank < starving <= (score.setting.k or score.dim):
        starving = None  # vectors with a direction fewer than their number allows: no k keeps so many
    return [max(doubt.low, -101), min(doubt.high, 101), starving, in_doubt("chance"), in_doubt("starved")]


def hand_over(space: LayerEmbeddings, setting: Setting) -> None:
    """Hand the browser the scores of every k, where the setting has a k, and those one move on, where soon known."""
    if len(space.gold) * space.dim > CURVE_CELLS:
        return
    first, second = st.container(), st.container()
    if variant(setting.whitening).takes_k:
        curve = curve_of(space, setting)
        with first:
            _curve(key="live-curve", data={"of": _of(space, setting), "scores": list(curve.spearman)}, height=1)
    with second:
        ahead.hand_over(ref(space), setting, _of(space, setting), st.session_state[K])


def _of(space: LayerEmbeddings, setting: Setting) -> str:
    return f"{shelf().name(space)} {setting.with_(k=None)}"


def _take(key: str) -> None:
    k = st.session_state.get(key, {}).get("k")  # a run that was cut short may have left nothing
    if isinstance(k, int | float) and k >= 1:
        st.session_state[K] = int(k)


_from_bar, _from_strip = (partial(_take, key) for key in PLACES)
