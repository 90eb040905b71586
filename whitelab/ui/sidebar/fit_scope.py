"""What the map is fitted on: a box of the bar, and the key that tells one content of it from another."""

import streamlit as st

from whitelab import datasets
from whitelab.base import upload_limits
from whitelab.base.wording import inside, plain, quantity
from whitelab.corpus.fitting import CORPUS
from whitelab.corpus.manifest import MANIFEST, Manifest, finished
from whitelab.datasets import DataError, Upload
from whitelab.datasets.layouts import file_at
from whitelab.encoding.embeddings import held_in_words, layers_held
from whitelab.encoding.names import WORD_TABLES, ModelName, shown_name
from whitelab.encoding.pooling import UNIT
from whitelab.encoding.precomputed import Vectors
from whitelab.scoring.fit_scopes import lacking
from whitelab.scoring.setting import EVERY, FIT_SCOPES, OWN_SENTENCES, TOKENS
from whitelab.ui.results.files import file_stamp
from whitelab.ui.sidebar import own_data
from whitelab.ui.sidebar.data import Chosen
from whitelab.ui.sidebar.model import Picked
from whitelab.ui.sidebar.own_data import UPLOADED, OwnData
from whitelab.ui.widgets import address
from whitelab.ui.widgets.address import bound
from whitelab.ui.widgets.typed import typed_choice
from whitelab.ui.widgets.uploader import OURS, TEXT, TEXT_READ, how_read
from whitelab.whitening import label, needs_rows

TASK = "task", "task"  # the sentences that are scored, which every other scope falls back to
INSTEAD = "fitted-instead"  # session_state: why the task's sentences are taken in place of what was chosen, '' if not


def choose(
    picked: Picked, chosen: Chosen, own: OwnData | None, layers: tuple[int, ...], pooling: str, spec: str
) -> tuple[str, str]:
    """What the map of `spec` is fitted on: the name for the setting, and a key that changes with the content."""
    scopes = _of_vectors(own.vectors) if own is not None and own.vectors is not None else None
    disabled, st.session_state[INSTEAD] = spec == "none", ""
    fit = _knob(scopes, disabled)
    if disabled or fit is None or (scopes and fit not in scopes):
        return TASK
    try:
        if fit == UPLOADED:
            return _uploaded_text()
        return fit, _key(fit, picked, chosen, own, layers, pooling, spec)
    except DataError as error:
        st.session_state[INSTEAD] = f"{plain(str(error))}. Meanwhile the map is fitted on the task's sentences."
        st.error(st.session_state[INSTEAD])
        return TASK


def _of_vectors(given: Vectors) -> tuple[str, ...]:
    """What vectors that were brought can be fitted on: there is no model to embed other text."""
    more = given.space.texts[EVERY].n_sentences > given.space.n_sentences
    return (*OWN_SENTENCES, EVERY) if more else OWN_SENTENCES


def _knob(scopes: tuple[str, ...] | None, disabled: bool) -> str | None:
    if scopes and st.session_state.get("fit") not in (None, *scopes):
        st.session_state["fit"] = "task"

    def shown(name: str) -> str:
        return (FIT_SCOPES | {UPLOADED: "Uploaded text file"}).get(name, name)

    usual = (*(name for name in FIT_SCOPES if name != EVERY), UPLOADED)
    with address.spelt("fit", scopes or usual, shown):
        return typed_choice(
            "Fitted on",
            list(scopes or usual),
            **bound("fit", "task", shown),
            new=not scopes,
            disabled=disabled,
            format_func=shown,
            help="WhiteningBERT fits on the task's own sentences, BERT-whitening also on all splits or on other text. "
            "Cross-fitting scores each half of the pairs with a map fitted on the other half. Words by frequency are "
            "Zipfian whitening (Yokoi et al. 2024), for static: and sif: models. Type a path for other "
            "text: a .txt with one sentence a line, a file or folder of pairs, or corpus: and the folder of an "
            "embedded corpus (the page Corpus shows how).",
        )


def _key(
    fit: str, picked: Picked, chosen: Chosen, own: OwnData | None, layers: tuple[int, ...], pooling: str, spec: str
) -> str:
    """The scope, and of files their state; DataError where the bar's sentences cannot be mapped by it."""
    if fit in OWN_SENTENCES:
        return fit
    if fit == EVERY:
        if own is None or own.vectors is None:
            raise DataError("All vectors are for vectors that stand in a model's place")
        return fit
    if fit == TOKENS:
        if ModelName.parse(picked.name).kind not in WORD_TABLES:
            raise DataError("Words are for static: and sif: models")
        if pooling.startswith(UNIT):
            raise DataError("Vectors of length 1 are no means of words")
        return fit
    if fit == "splits":
        return _splits_key(chosen, own)
    if fit.startswith(CORPUS):
        folder, manifest = finished(fit.removeprefix(CORPUS))
        if not _goes_with(manifest, picked, layers, pooling):
            raise DataError(_held(manifest, picked))
        if needs_rows(spec) and manifest.recipe.apart and len(manifest.recipe.layers) > 1:
            raise DataError(f"The corpus {lacking(inside(label(spec)))}")
        return f"{fit}/{file_stamp([folder / MANIFEST])}"
    path = file_at(fit)
    files = [file for info in datasets.discover(fit) for file in info.files] if path is None else [path]
    return f"{fit}/{file_stamp(files)}"


def _goes_with(corpus: Manifest, picked: Picked, layers: tuple[int, ...], pooling: str) -> bool:
    """Whether a corpus was embedded as the bar's sentences are."""
    known, name = {corpus.model, ModelName.parse(corpus.loaded).anywhere}, picked.name
    same = not known.isdisjoint({name, ModelName.parse(name).anywhere})
    made = st.session_state.get("dtype") or "float32", picked.max_length, pooling
    same = same and made == (corpus.compute, corpus.max_length, corpus.recipe.pooling)
    return same and layers_held(layers, corpus.recipe.layers, corpus.recipe.apart)


def _held(corpus: Manifest, picked: Picked) -> str:
    """What a corpus was embedded with, and what of it cannot be had here."""
    recipe, read = corpus.recipe, picked.max_length
    held = (
        f"The corpus holds {shown_name(corpus.loaded)}, {held_in_words(recipe.layers, recipe.apart)}, "
        f"{recipe.pooling} pooling, {corpus.compute}, at most {corpus.max_length} tokens"
    )
    if read == corpus.max_length:
        return held
    return f"{held}, where this app reads {read}: the command line can cut texts there, this app cannot"


def _splits_key(chosen: Chosen, own: OwnData | None) -> str:
    if len(chosen.info.splits) == 1:
        st.caption("This task has one split only, so all its splits are the task itself.")
    return f"splits/{own.key}" if own else f"splits/{chosen.stamp}/{chosen.info.files[0].parent}/{chosen.task}"


def _uploaded_text() -> tuple[str, str]:
    file = st.file_uploader(
        "Text to fit on",
        type=TEXT,
        max_upload_size=upload_limits.TABLE_MB,
        key=f"fit-file-{st.session_state.get(own_data.FIT_FILE, 0)}",
        help=f"{TEXT_READ} At most {upload_limits.TABLE_MB} MB. {OURS}",
    )
    if file is not None and own_data.fit_text(own_data.text_key(file.file_id)) is None:
        found = datasets.read_sentences(Upload(file.name, file.getvalue()), keep_going=True)
        own_data.hold_text(file.name, file.file_id, found.text, how_read(found))
    if text := own_data.fit_text():
        key, name, sentences, how = text
        st.caption(f"Fitted on {plain(name)}, {quantity(sentences.total(), 'sentence')}{how}.")
        return name, key
    st.session_state[INSTEAD] = own_data.TEXT_GONE
    st.caption("Until a file is there, or sentences are pasted on the Data page, the task's sentences are used.")
    return TASK
