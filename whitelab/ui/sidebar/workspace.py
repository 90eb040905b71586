"""The workspace bar: the controls that decide what every page shows, kept in the address of the page.

Drawn by app.py before the page, so that its widgets live on every page. Choices come from the registries.
"""

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass

import streamlit as st

from whitelab import datasets
from whitelab.base import upload_limits
from whitelab.base.devices import choose_device, device_name, dtypes_for
from whitelab.base.wording import plain, quantity
from whitelab.corpus.fitting import CORPUS
from whitelab.corpus.manifest import MANIFEST, Manifest, finished
from whitelab.datasets import DataError, Upload
from whitelab.datasets.layouts import MEMORY, file_at
from whitelab.encoding.embeddings import held_in_words, layers_held
from whitelab.encoding.encoders import Encoder
from whitelab.encoding.names import WORD_TABLES, ModelName, shown_name
from whitelab.encoding.pooling import GIVEN, POOLING_LABELS, UNIT
from whitelab.scoring.setting import FIT_SCOPES, OWN_SENTENCES, TOKENS, Setting
from whitelab.statistics.correlation import AGGREGATE_LABELS
from whitelab.ui import live
from whitelab.ui.results.files import file_stamp
from whitelab.ui.results.jobs import redraw
from whitelab.ui.sidebar import address, data, knobs, model, own_data
from whitelab.ui.sidebar.address import among, bound
from whitelab.ui.sidebar.data import Chosen
from whitelab.ui.sidebar.model import Picked
from whitelab.ui.sidebar.own_data import UPLOADED, OwnData
from whitelab.ui.widgets import look
from whitelab.ui.widgets.choice import choice
from whitelab.ui.widgets.typed import typed_choice
from whitelab.whitening import WHITENERS, canonical, parse

SLOT = "workspace"  # session_state: the Workspace of this run
WORKSPACE = "workspace"  # of other data: the choice of fitting on the sentences of the bar's task
LIVE = "live-score"  # session_state: the sidebar's place for the live score
WHOLE = 10**6  # k of all dimensions: the bar cuts it to d
LAYERS = "layers-next"  # session_state: the layers to choose; a knob that waits for its model forgets what it is told
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
    st.session_state[data.REFUSED] = ""
    with st.sidebar:
        st.session_state[LIVE], st.session_state[BELOW] = st.container(key="live"), st.container()
        st.session_state[AHEAD] = st.container(key="ahead")
        with st.session_state[AHEAD]:
            look.mend()
            unseen = st.container()
    with st.sidebar, address.of(page, unseen):
        place, chosen = st.container(), data.choose()
        own = own_data.current() if chosen is not None and chosen.info.layout == MEMORY else None
        with place:
            picked = _vectors(own) if own and own.vectors else model.opened(model.choose(), chosen)
        if picked is not None and chosen is not None:
            st.session_state[SLOT] = _workspace(picked, chosen, own)
        st.caption(f"Computing on {device_name(choose_device())}")
    if missed := address.misread(address.BAR):
        st.warning(f"{missed} The bar shows what is computed.")


def current() -> Workspace | None:
    """The Workspace of this run, None where model or data cannot be had."""
    return st.session_state.get(SLOT)


def say_what_is_missing() -> None:
    """Say why there is no Workspace: on the page too, as the bar may be closed."""
    loading, refused = st.session_state.get(model.LOADING), st.session_state.get(data.REFUSED)
    if refused:
        st.warning(plain(refused))
    elif loading:
        st.info(f"{plain(loading)} is being loaded. How far it is stands in the bar.")
    else:
        st.info("Choose a model and data in the bar. What is missing there is said there.")


def put(setting: Setting, stays: Container[str] = ()) -> None:
    """Move the knobs of layers, variant and k to a setting, but for those whose names are among what `stays`."""
    take(None if "layers" in stays else setting.layers, None if "k" in stays else setting.k or WHOLE)
    if "whitening" not in stays:
        spec = parse(setting.whitening)
        st.session_state["whitening"] = spec.name
        knobs.put(spec)


def moved_by_put(knob: str) -> bool:
    """Whether a knob of the bar is of those that a setting moves: layers, variant with its parameters, k and fit."""
    variant, dash, _ = knob.partition("-")
    return knob in ("layers", "whitening", "k", "fit") or bool(dash) and variant in WHITENERS


def take(layers: Iterable[int] | None = None, k: int | None = None) -> None:
    """Move the knobs of layers and k, each where one is given. For callbacks."""
    if layers:
        st.session_state[LAYERS] = layers
    if k:
        st.session_state["k"] = k
    if layers or k:
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
    fit, fit_key = _fit(picked, chosen, own, layers, pooling, disabled=whitening == "none")
    k = live.choose_k(whitening, picked.dim)
    setting = Setting(layers, whitening, k, pooling, fit, _aggregate())
    dtype = own.vectors.dtype if given else _dtype()
    return Workspace(picked, chosen, setting, dtype, fit_key, own)


def _layers(picked: Picked, given: bool) -> tuple[int, ...]:
    count, state = picked.n_layers, st.session_state
    lower = [min(1, count - 1)]  # where the cone is narrow; the last layer may have been trained to fill the space
    _exchange("vectors" if given else "model", layers=lower, k=picked.dim)
    typed = "layers" not in state and _typed_layers(count)
    if typed:
        state.setdefault(LAYERS, typed)
    if LAYERS in state:
        state.layers = sorted({layer + count if layer < 0 else layer for layer in state.pop(LAYERS)})
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
    parts = re.split(r"[,+\s]+", " ".join(given).strip())
    layers = [int(part.lstrip("Ll")) for part in parts if re.fullmatch(r"[Ll]?-?\d{1,3}", part)]
    whole = len(layers) == len(parts) and all(-count <= layer < count for layer in layers)
    return tuple(layers) if whole else ()


def _exchange(kind: str, **start) -> None:
    """Keep these knobs of the model while vectors are shown, and the other way round.

    They are set, never deleted: the address would fill in what it still says of the other.
    """
    state, before = st.session_state, st.session_state.get("knobs-of", kind)
    if before != kind:
        for name, value in start.items():
            state[f"{name}-{before}"] = state.get(name)
            state[name] = state.get(f"{name}-{kind}") or value
        state.pop(live.OF, None)
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


# --------------------------------------------------------------------------------------------------- fit scope


def _fit(
    picked: Picked, chosen: Chosen, own: OwnData | None, layers: tuple[int, ...], pooling: str, disabled: bool
) -> tuple[str, str]:
    """What the map is fitted on: the name for the setting, and a key that changes with the content."""
    given = own is not None and own.vectors is not None
    if given and st.session_state.get("fit") not in (None, *OWN_SENTENCES):
        st.session_state["fit"] = "task"  # there is no model to embed other text

    def shown(name: str) -> str:
        return (FIT_SCOPES | {UPLOADED: "Uploaded text file"}).get(name, name)

    with address.spelt("fit", FIT_SCOPES, shown):
        fit = typed_choice(
            "Fitted on",
            list(OWN_SENTENCES) if given else [*FIT_SCOPES, UPLOADED],
            **bound("fit", "task", shown),
            new=not given,
            disabled=disabled,
            format_func=shown,
            help="WhiteningBERT fits on the task's own sentences, BERT-whitening also on all splits or on other text. "
            "Cross-fitting scores each half of the pairs with a map fitted on the other half. Words by frequency are "
            "Zipfian whitening (Yokoi et al. 2024), for static: and sif: models. Type a path for other "
            "text: a .txt with one sentence a line, a file or folder of pairs, or corpus: and the folder of an "
            "embedded corpus (the page Corpus shows how).",
        )
    if disabled or fit is None or (given and fit not in OWN_SENTENCES):
        return "task", "task"
    if fit in OWN_SENTENCES:
        return fit, fit
    if fit == TOKENS:
        if ModelName.parse(picked.name).kind not in WORD_TABLES:
            st.error("Words are for static: and sif: models. Until one is chosen, the map is fitted on the sentences.")
            return "task", "task"
        if pooling.startswith(UNIT):
            st.error(
                "Vectors of length 1 are no means of words. Until that is off, the map is fitted on the sentences."
            )
            return "task", "task"
        return fit, fit
    if fit == UPLOADED:
        return _uploaded_text()
    try:
        if fit == "splits":
            return fit, _splits_key(chosen, own)
        if fit.startswith(CORPUS):
            folder, manifest = finished(fit.removeprefix(CORPUS))
            if not _goes_with(manifest, picked, layers, pooling):
                st.error(f"{_held(manifest, picked)} the map is fitted on the task's sentences.")
                return "task", "task"
            return fit, f"{fit}/{file_stamp([folder / MANIFEST])}"
        path = file_at(fit)
        files = [file for info in datasets.discover(fit) for file in info.files] if path is None else [path]
        return fit, f"{fit}/{file_stamp(files)}"
    except DataError as error:
        st.error(f"{plain(str(error))}. Until it is mended, the map is fitted on the task's sentences.")
        return "task", "task"


def _goes_with(corpus: Manifest, picked: Picked, layers: tuple[int, ...], pooling: str) -> bool:
    """Whether a corpus was embedded as the bar's sentences are."""
    known, name = {corpus.model, ModelName.parse(corpus.loaded).anywhere}, picked.name
    same = not known.isdisjoint({name, ModelName.parse(name).anywhere})
    made = st.session_state.get("dtype") or "float32", picked.max_length, pooling
    same = same and made == (corpus.compute, corpus.max_length, corpus.recipe.pooling)
    return same and layers_held(layers, corpus.recipe.layers, corpus.recipe.apart)


def _held(corpus: Manifest, picked: Picked) -> str:
    """What a corpus was embedded with, and until when something else holds."""
    recipe, read = corpus.recipe, picked.max_length
    held = (
        f"The corpus holds {plain(shown_name(corpus.loaded))}, {held_in_words(recipe.layers, recipe.apart)}, "
        f"{recipe.pooling} pooling, {corpus.compute}, at most {corpus.max_length} tokens"
    )
    if read == corpus.max_length:
        return f"{held}. Until that is chosen,"
    return f"{held}, where this app reads {read}: the command line can cut texts there, this app cannot. Here"


def _splits_key(chosen: Chosen, own: OwnData | None) -> str:
    if len(chosen.info.splits) == 1:
        st.caption("This task has one split only, so all its splits are the task itself.")
    return f"splits/{own.key}" if own else f"splits/{chosen.stamp}/{chosen.info.files[0].parent}/{chosen.task}"


def _uploaded_text() -> tuple[str, str]:
    file = st.file_uploader(
        "Text, one sentence a line",
        type=["txt"],
        max_upload_size=upload_limits.TABLE_MB,
        key=f"fit-file-{st.session_state.get(own_data.FIT_FILE, 0)}",
        help=f"At most {upload_limits.TABLE_MB} MB. It stays in this session; nobody else sees it.",
    )
    text = own_data.fit_text()
    if file is None:
        if text:
            st.caption(f"Fitted on {plain(text[1])}, {quantity(text[2].total(), 'sentence')}.")
            return text[1], text[0]
        st.caption("Until a file is there, or sentences are pasted on the Data page, the task's sentences are used.")
        return "task", "task"
    if text is None or text[0] != own_data.text_key(file.file_id):
        try:
            own_data.hold_text(file.name, file.file_id, datasets.load_text(Upload(file.name, file.getvalue())))
        except DataError as error:
            st.error(plain(str(error)))
            return "task", "task"
    return file.name, own_data.text_key(file.file_id)
