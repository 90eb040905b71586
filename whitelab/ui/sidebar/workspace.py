"""The workspace bar: the controls that decide what every page shows, kept in the address of the page.

Drawn by app.py before the page, so that its widgets live on every page. Choices come from the registries.
"""

import math
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from whitelab.base.devices import choose_device, device_name, dtypes_for
from whitelab.base.wording import plain
from whitelab.datasets.layouts import MEMORY
from whitelab.encoding.encoders import Encoder
from whitelab.encoding.pooling import GIVEN, POOLING_LABELS, UNIT
from whitelab.scoring.setting import Setting, layer_numbers
from whitelab.statistics.correlation import AGGREGATE_LABELS
from whitelab.ui.results.jobs import redraw
from whitelab.ui.sidebar import data, fit_scope, knobs, model, own_data
from whitelab.ui.sidebar.data import Chosen
from whitelab.ui.sidebar.model import Picked
from whitelab.ui.sidebar.own_data import OwnData
from whitelab.ui.widgets import address, look
from whitelab.ui.widgets.address import among, bound
from whitelab.ui.widgets.choice import choice
from whitelab.whitening import WHITENERS, canonical, parse, variant

SLOT = "workspace"  # session_state: the Workspace of this run
WORKSPACE = "workspace"  # of other data: the choice of fitting on the sentences of the bar's task
K, OF = "k", "k-of"  # session_state: how many directions are kept, and of how many
PRESENT = "present"  # session_state and address: whether pages are for a projector, which shows no bar
LIVE = "live-score"  # session_state: the sidebar's place for the live score
WHOLE = 10**6  # k of all dimensions: the bar cuts it to d
FIXED = "fixed-setting"  # session_state: why the knobs of a setting go back to where they were; '' where they move
TURNED = "turned"  # session_state: knobs as a click has turned them, for the run that draws the bar next
KEPT = "layers-kept"  # session_state: the layers of the run before, should none be left
AHEAD = (
    "live-ahead-place"  # session_state: the place, at the same spot in every run, of what the live score knows ahead
)
STRIP = "live-strip-place"  # session_state: the page's place for the live score while the bar is closed
OPENED = "opened-space"  # session_state: what the page has opened, None where it could not
BELOW = "below-score"  # session_state: the place for what is said of it


@dataclass(frozen=True)
class Workspace:
    """What the visitor chose: a model, a task of some data, and a setting.

    `fit_key` is the setting's fit scope, telling one content of an uploaded or changed file from another. `own` is what
    the visitor has brought, where that is the data.
    """

    model: Picked
    data: Chosen
    setting: Setting
    dtype: str
    fit_key: str = "task"
    own: OwnData | None = None

    @property
    def given(self) -> bool:
        """Whether vectors stand for model and data."""
        return self.own is not None and self.own.vectors is not None

    @property
    def embeds_by(self) -> tuple[str, str, str]:
        """What tells its embeddings of a text from any others: model, type and pooling."""
        return self.model.key, self.dtype, self.setting.pooling

    @property
    def compared(self) -> Setting:
        """What is held against raw: the chosen setting, PCA whitening where that is raw itself."""
        return self.setting.with_(whitening="pca") if self.setting.whitening == "none" else self.setting

    def spec_of(self, name: str) -> str:
        """A variant by name: the chosen one with its parameters, any other with its defaults."""
        chosen = self.setting.whitening
        return chosen if chosen.partition(":")[0] == name else canonical(name)

    def encoder(self) -> Encoder:
        """The loaded model."""
        return model.shared_encoder(self.model.name, self.dtype, self.model.allow_bin)


def draw(page: str) -> None:
    """Draw the bar of `page` and put the Workspace (or None, with the reason on screen) into the session."""
    st.session_state[SLOT], st.session_state[STRIP] = None, st.container(key="strip")
    st.session_state[data.REFUSED], st.session_state[data.ELSEWHERE] = "", None
    turned = st.session_state.pop(TURNED, {})
    layers = turned.pop("layers", ())  # which wait for their model: a knob that does forgets what it is told
    st.session_state[TURNED] = {"layers": layers} if layers else {}
    st.session_state.update(turned)
    with st.sidebar:
        st.session_state[LIVE], st.session_state[BELOW] = st.container(key="live"), st.container()
        st.session_state[AHEAD] = st.container(key="ahead")
        with st.session_state[AHEAD]:
            look.mend()
            unseen = st.container()
    with st.sidebar, address.of(page, unseen):
        address.keep(PRESENT, address.kept(PRESENT, "", str), "")
        place, chosen = st.container(), data.choose()
        own = own_data.current() if chosen is not None and chosen.info.layout == MEMORY else None
        with place:
            picked = _vectors(own) if own and own.vectors else model.opened(model.choose(), chosen)
        if picked is not None and chosen is not None:
            st.session_state[SLOT] = _workspace(picked, chosen, own)
        st.caption(f"Computing on {device_name(choose_device())}")
    if missed := address.misread(address.BAR):
        st.warning(f"{missed} The bar shows what is computed.")


_CLOSED = " (» at the top left opens it where it is closed)"


def current() -> Workspace | None:
    """The Workspace of this run, None where model or data cannot be had."""
    return st.session_state.get(SLOT)


def say_what_is_missing() -> None:
    """Say why there is no Workspace: on the page too, as the bar may be closed."""
    loading, refused = st.session_state.get(model.LOADING), st.session_state.get(data.REFUSED)
    if refused:
        st.warning(plain(refused))
        if elsewhere := st.session_state.get(data.ELSEWHERE):
            _offer(*elsewhere)
    elif loading:
        st.info(f"{plain(loading)} is being loaded. How far it is stands in the bar{_CLOSED}.")
    else:
        st.info(f"Choose a model and data in the bar{_CLOSED}. What is missing there is said there.")


def _offer(page: str, key: str, source: str) -> None:
    """A button that opens what the bar refuses in its own box on the page that reads it, and gives the bar pairs."""
    if st.button(f"Open it on the page {page.capitalize()}", key="elsewhere", icon=":material/arrow_forward:"):
        st.session_state[data.TO_DEMO] = True
        if page == address.page():
            turn(**{key: source})
            st.rerun()
        st.switch_page(f"pages/{page}.py", query_params={key: source})


def put(setting: Setting, stays: Container[str] = ()) -> None:
    """Move the knobs of layers, variant and k to a setting, but for those whose names are among what `stays`."""
    turn(layers=None if "layers" in stays else setting.layers, k=None if "k" in stays else setting.k or WHOLE)
    if "whitening" not in stays:
        spec = parse(setting.whitening)
        st.session_state["whitening"] = spec.name
        knobs.put(spec)


def moved_by_put(knob: str) -> bool:
    """Whether a knob of the bar is of those that a setting moves: layers, variant with its parameters, k and fit."""
    variant, dash, _ = knob.partition("-")
    return knob in ("layers", "whitening", "k", "fit") or bool(dash) and variant in WHITENERS


def knobs_of_a_setting() -> dict[str, Any]:
    """The knobs that a setting moves, by their keys, as they are; k of all dimensions whatever the model then is."""
    state = st.session_state
    found = {key: value for key, value in state.items() if moved_by_put(key) and value is not None}
    return found | ({K: WHOLE} if state.get(K, 0) >= state.get(OF, math.inf) else {})


def take(layers: Iterable[int] | None = None, k: int | None = None) -> None:
    """Move the knobs of layers and k, each where one is given; where they are fixed, say so. For callbacks."""
    why = st.session_state.get(FIXED)
    if why and (layers or k):
        st.toast(why, icon=":material/lock:")
    else:
        turn(layers=layers, k=k)


def turn(**knobs) -> None:
    """Turn knobs, by their keys, those that are given, in the next run of the whole page, before it draws any.

    A fragment that looks again by itself asks with what the browser shows of all knobs. Written to them at once, what
    was clicked in it would be put back where its question and the run of the page come together.
    """
    if given := {key: value for key, value in knobs.items() if value is not None}:
        st.session_state.setdefault(TURNED, {}).update(given)
        redraw()


def _vectors(own: OwnData) -> Picked:
    """Say that vectors stand for a model; what was chosen of one is kept for later."""
    for key in ("model", "pooling", "dtype"):
        if key in st.session_state:
            st.session_state[key] = st.session_state[key]
    with st.container(border=True):
        st.markdown("**Model**")
        st.caption(f"The vectors of {plain(own.pairs.source)} stand for a model. Choose other data to choose a model.")
    return Picked(own.vectors.name, False, own.vectors.n_layers, own.vectors.space.dim, (GIVEN,))


# ----------------------------------------------------------------------------------------------------- setting


def _workspace(picked: Picked, chosen: Chosen, own: OwnData | None) -> Workspace:
    """The knobs, one after another, and what they say."""
    given = own is not None and own.vectors is not None
    layers = _layers(picked, given)
    pooling = GIVEN if given else _pooling(picked)
    whitening = _whitening(picked.dim)
    fit, fit_key = fit_scope.choose(picked, chosen, own, layers, pooling, whitening)
    k = choose_k(whitening, picked.dim)
    setting = Setting(layers, whitening, k, pooling, fit, _aggregate())
    dtype = own.vectors.dtype if given else _dtype()
    return Workspace(picked, chosen, setting, dtype, fit_key, own)


def _layers(picked: Picked, given: bool) -> tuple[int, ...]:
    count, state = picked.n_layers, st.session_state
    lower = [min(1, count - 1)]  # where the cone is narrow; the last layer may have been trained to fill the space
    _exchange("vectors" if given else "model", layers=lower, k=picked.dim)
    typed = "layers" not in state and _typed_layers(count)
    if layers := state[TURNED].pop("layers", typed):
        state.layers = sorted({layer + count if layer < 0 else layer for layer in layers})
    if typed:
        address.respell("layers", sorted({str(layer % count) for layer in typed}, key=int))
    if "layers" in state:
        # The last layer taken out stays.
        kept = [layer for layer in state.layers or state.get(KEPT, lower) if layer < count] or [count - 1]
        if kept != state.layers:  # what is said again stands in the address, be it the default
            state.layers = kept
    layers = st.pills(
        "Layers, averaged",
        list(range(count)),
        selection_mode="multi",
        default=lower,
        **bound("layers", lower),
        help=("0 is the first layer given." if given else "0 is the embedding layer.")
        + " Several layers are averaged. Point at them: under each appears what one click would change in the score.",
    )
    state[KEPT] = layers or lower
    return tuple(sorted(state[KEPT]))


def _typed_layers(count: int) -> tuple[int, ...]:
    """Layers that somebody wrote into the address by hand, as `1,6`, `L1+L6` or `-1`; none where they are no such."""
    given = st.query_params.get_all("layers")
    if all(map(str.isdecimal, given)):  # as the app itself writes them
        return ()
    try:
        layers = layer_numbers(" ".join(given))
    except ValueError:
        return ()
    return layers if all(-count <= layer < count for layer in layers) else ()


def _exchange(kind: str, **start) -> None:
    """Keep these knobs of the model while vectors are shown, and the other way round.

    They are set, never deleted: the address would fill in what it still says of the other.
    """
    state, before = st.session_state, st.session_state.get("knobs-of", kind)
    if before != kind:
        for name, value in start.items():
            state[f"{name}-{before}"] = state.get(name)
            state[name] = state.get(f"{name}-{kind}") or value
        state.pop(OF, None)
    state["knobs-of"] = kind


_POOLINGS = {"mean": "Mean", "cls": "[CLS]", "last": "Last token", "wk": "SBERT-WK"}


def _pooling(picked: Picked) -> str:
    def shown(name: str) -> str:
        return _POOLINGS.get(name, name)

    usual = "mean" if "mean" in picked.poolings else picked.poolings[0]
    among("pooling", picked.poolings, usual)
    pooling = choice(
        "Pooling",
        picked.poolings,
        usual,
        **bound("pooling", "mean", shown),
        format_func=shown,
        help="; ".join(POOLING_LABELS[name] for name in picked.poolings),
    )
    unit = st.toggle(
        "Vectors of length 1",
        **bound("unit", False),
        help="Each layer's vector is brought to length 1 before layers are averaged and a map is fitted. It changes "
        "nothing of one raw layer, whose cosines see no length; a map fitted on it is another.",
    )
    return (UNIT if unit else "") + pooling


def _whitening(dim: int) -> str:
    def shown(name: str) -> str:
        return WHITENERS[name].label

    with address.spelt("whitening", WHITENERS, shown):
        name = st.selectbox(
            "Variant",
            list(WHITENERS),
            index=list(WHITENERS).index("pca"),
            **bound("whitening", "pca", shown),
            format_func=shown,
            help="What is done to the embeddings before cosines are taken.",
        )
    return knobs.spec(name or "pca", WHITENERS[name or "pca"].parameters, canonical, dim)


def choose_k(whitening: str, dim: int) -> int | None:
    """How many eigen-directions are kept; None where all are, or where the variant has no k.

    The knob itself is drawn with the live score, above it.
    """
    state = st.session_state
    k = address.kept(K, dim, lambda text: max(1, int(text)))
    every = K in state and k >= state.get(OF, math.inf)  # all directions of another model are all of this one's
    k = dim if every else min(k, dim)
    state[OF] = dim
    address.keep(K, k, dim)
    return k if variant(whitening).takes_k and k < dim else None


def _aggregate() -> str:
    words = "; ".join(AGGREGATE_LABELS.values())
    return choice("Aggregate over subsets", AGGREGATE_LABELS, **bound("aggregate", "all"), help=words)


def _dtype() -> str:
    return choice(
        "Compute type",
        dtypes_for(choose_device()),
        "float32",
        **bound("dtype", "float32"),
        help="bfloat16 is faster on processors that have it and moves scores by a few hundredths.",
    )
