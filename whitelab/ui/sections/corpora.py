"""A corpus that is being embedded, as its folder shows it: how far it is, how its geometry settles, what came of it."""

import time

import streamlit as st

from whitelab import figures
from whitelab.base.wording import capitalised, duration, plain, quantity, ratio, spaced
from whitelab.corpus.fitting import CORPUS
from whitelab.corpus.manifest import MANIFEST, Manifest, Status, status
from whitelab.corpus.settling import Settling, settling
from whitelab.corpus.texts import CHANGED, changed_since
from whitelab.datasets import DataError
from whitelab.encoding.embeddings import held_in_words
from whitelab.encoding.names import shown_name
from whitelab.encoding.pooling import UNIT
from whitelab.scoring.setting import scope_name
from whitelab.ui.results import long_runs
from whitelab.ui.results.jobs import REDRAW
from whitelab.ui.results.worker import Job, is_open
from whitelab.ui.sections import corpus_begin
from whitelab.ui.sidebar import workspace
from whitelab.ui.sidebar.workspace import Workspace
from whitelab.ui.widgets.address import bound
from whitelab.ui.widgets.chart import chart, data_of
from whitelab.ui.widgets.metric import Metric, headlines
from whitelab.ui.widgets.note import note

EVERY = 3.0  # seconds between two looks at a folder
_FAILED_SHOWN, _KINDS_SHOWN = 20, 8
_ROUND, _FALLS = 0.9, 0.1  # isotropy from which on more text changes little; by how much less says that text differs


def choose() -> str:
    """The folder to watch; empty where none was named."""
    return st.text_input(
        "Folder of a corpus",
        **bound("embedded", ""),
        placeholder="/data/sentences-embedded",
        help="Where its vectors lie, or are to lie, on the machine this app runs on: what --out named in "
        "`corpus embed`.",
    ).strip()


def draw(chosen: Workspace, folder: str) -> str:
    """The corpus in a folder, or how one is begun there; the lines that do the same in Python."""
    job = corpus_begin.job_of(folder) if folder else None
    if folder and (is_open(job) or _status(folder)):
        manifest = _manifest(folder)
        _watch(folder, chosen, manifest.stamp if manifest and changed_since(manifest) else "")
        k = _k(chosen, manifest)
        arguments = repr(folder) + (f", k={k}" if k else "")
        return (
            "from whitelab.corpus.manifest import status\nfrom whitelab.corpus.settling import settling\n\n"
            f"print(status({folder!r}))\n"
            f"found = settling({arguments})\n"
            "for sentences, isotropy in zip(found.sentences, found.isotropy):\n"
            "    print(sentences, isotropy)\n"
            "print(found.spectrum)  # the variance along each direction, the largest first\n"
        )
    arguments = _begin(chosen, folder, job)
    given = "".join(f"    {name}={value!r},\n" for name, value in arguments.items())
    return (
        "from whitelab.corpus.embedding import embed_corpus\n\n"
        f"made = embed_corpus(\n    folder={folder!r},\n{given})\nprint(made.sentences, len(made.chunks))\n"
        if given
        else ""
    )


def _begin(chosen: Workspace, folder: str, job: Job | None) -> dict:
    """Say why there is nothing to watch, and how one is begun; what the form asks for, where there is one."""
    if job is not None and job.state == "failed":
        st.error(f"The corpus could not be embedded: {plain(job.message)}")
    if corpus_begin.may_begin():
        if folder and job is None:
            st.info(f"There is no corpus in {plain(folder)} yet.")
        return corpus_begin.form(chosen, folder)
    if folder:
        try:
            status(folder)
        except DataError as error:
            st.error(plain(str(error)))
    st.markdown(
        "There is no folder to look at yet. A corpus is embedded outside this app, so closing the page stops nothing:"
    )
    corpus_begin.commands("", {"source": "", "layers": [-1], "device": "cpu"}, chosen)
    return {}


def _status(folder: str) -> Status | None:
    try:
        return status(folder)
    except DataError:
        return None


def _manifest(folder: str) -> Manifest | None:
    try:
        return Manifest.read(folder)
    except DataError:
        return None


def _k(chosen: Workspace, manifest: Manifest | None) -> int | None:
    """The bar's k, where its model's vectors have as many dimensions as the corpus's; None keeps all of them."""
    same = manifest is not None and not chosen.given and chosen.model.dim == manifest.dim
    return chosen.setting.k if same else None


@st.fragment(run_every=EVERY)
def _watch(folder: str, chosen: Workspace, outdated: str) -> None:
    """Draw the folder's state, again every few seconds: that asks the folder and nothing else.

    `outdated` is the stamp of texts that have changed since.
    """
    job, found = corpus_begin.job_of(folder), _status(folder)
    under_way = is_open(job)
    if st.session_state.pop(REDRAW, False) or not (found or under_way):
        st.rerun()
    if found is None:
        st.progress(0.0, text=_turn(job) or "The model is being loaded, and the texts are read.")
        _stop(job)
        return
    manifest = Manifest.read(folder)
    _data_of(folder, manifest)
    headlines(*_numbers(found))
    if found.done < found.chunks or under_way:
        st.progress(found.sentences_done / max(found.sentences, 1), text=_state(found, job))
        if under_way:
            _stop(job)
        elif not found.running:
            _go_on(folder, manifest)
        if job is not None and job.state == "failed" and not found.running:
            st.error(f"It could not go on: {plain(job.message)}")
    else:
        st.caption("Finished: every chunk is there.")
    if manifest.stamp and manifest.stamp == outdated and not (under_way or found.running):
        st.warning(f"{capitalised(CHANGED)}.", icon=":material/edit_document:")
        if found.done == found.chunks:
            _go_on(folder, manifest, "Embed again")
    for name, why in list(found.failed.items())[:_FAILED_SHOWN]:
        st.warning(f"Chunk {name[:12]} is missing: {plain(why)}", icon=":material/error:")
    if left_out := found.left_out:
        shown = "".join(f"\n- {plain(one)}" for one in left_out[:_KINDS_SHOWN])
        more = "\n- and of other kinds" if len(left_out) > _KINDS_SHOWN else ""
        st.warning(f"Left out, with places in `{MANIFEST}`:\n{shown}{more}", icon=":material/rule:")
    note(*found.notes)
    k = _k(chosen, manifest)
    _use(folder, manifest, found, chosen, k)
    try:
        _settled(settling(folder, k=k), found, k)
    except DataError as error:
        st.error(plain(str(error)))


def _data_of(folder: str, manifest: Manifest) -> None:
    """Say that what is drawn from here on is of this corpus, and of which vectors of which model it is."""
    recipe = manifest.recipe
    data_of(
        corpus=f"{scope_name(f'{CORPUS}{folder}')}-{manifest.digest[:6]}",
        model=shown_name(manifest.loaded),
        layers=held_in_words(recipe.layers, recipe.apart),
        pooling=recipe.pooling,
    )


def _use(folder: str, manifest: Manifest, found: Status, chosen: Workspace, k: int | None) -> None:
    """How pairs are scored with a map fitted on it, and a button that does so once it is whole."""
    layers = held_in_words(manifest.recipe.layers, manifest.recipe.apart)
    words = f"It holds {plain(shown_name(manifest.loaded))}, {layers}, {manifest.recipe.pooling} pooling."
    if found.done < found.chunks:
        st.markdown(f"{words} Once it is whole, the live score can be fitted on it.")
        return
    st.markdown(
        f"{words} In the bar that is **Fitted on** `{CORPUS}{folder}`, with the same model, layers and pooling."
    )
    fitted = not chosen.given and chosen.setting.fit == f"{CORPUS}{folder}"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Fit the live score on it",
            key="fit-on-corpus",
            on_click=_fit_on,
            args=(folder, manifest),
            disabled=chosen.given or fitted,  # where vectors stand for a model no map of a corpus goes with them
            icon=":material/tune:",
        )
        if fitted:
            st.page_link("pages/whitening.py", label="Take the map away", icon=":material/arrow_forward:")
    with st.expander("In a terminal", icon=":material/terminal:"):
        corpus_begin.what_next(folder, manifest.arguments, chosen, k)


def _fit_on(folder: str, manifest: Manifest) -> None:
    """Turn the bar to the corpus and to what it was embedded with."""
    recipe = manifest.recipe
    knobs = {"model": manifest.loaded, "dtype": manifest.compute, "fit": f"{CORPUS}{folder}"}
    knobs |= {"pooling": recipe.pooling.removeprefix(UNIT), "unit": recipe.pooling.startswith(UNIT)}
    if st.session_state.get("whitening") == "none":
        knobs["whitening"] = "pca"
    workspace.take(recipe.layers)
    workspace.turn(**knobs)


def _settled(found: Settling, whole: Status, k: int | None) -> None:
    """The two charts of how far the geometry of a corpus has settled, the first under maps that keep `k`."""
    if not found.seen:
        return
    left, right = st.columns(2)
    with left:
        st.header("Is it enough to fit on?")
        if found.sentences:
            st.markdown(_enough(found, k))
            points = [
                {"sentences": n, "isotropy": value, "whitening": "zca", "k": k}
                for n, value in zip(found.sentences, found.isotropy, strict=True)
            ]
            whitening = f"Whitening at k = {k}" if k else "Full whitening"
            figure = figures.settling_curve(found.sentences, found.isotropy, "zca", whitening)
            chart(figure, "corpus-settling", lambda: points)
            st.caption(
                f"{whitening}, fitted on some chunks, measured on as many others, by an order that mixes the text. "
                "New text that comes out round has 1. More text helps as long as the line rises; with few sentences "
                f"for each of {found.dim} dimensions it is low, and may be flat or fall there too. Where it "
                "falls beyond that, the chunks are of different kinds of text. The map to take away is fitted on all "
                "chunks."
            )
        else:
            alone = "" if whole.chunks > 1 else ": embed it into another folder, in chunks of fewer texts (`--chunk`)"
            st.markdown(f"Two chunks are needed, one to fit on and one to measure{alone}.")
    with right:
        st.header("How is variance spread?")
        if not found.spectrum:
            st.markdown("All its vectors so far are the same: they have no variance.")
            return
        label = f"Raw, {quantity(found.seen, 'sentence')}"
        total = sum(found.spectrum)
        rows = [
            {"whitening": "none", "direction": i, "eigenvalue": value, "percent_of_variance": 100 * value / total}
            | {"sentences": found.seen}
            for i, value in enumerate(found.spectrum, 1)
        ]
        chart(figures.spectrum({"none": found.spectrum}, {"none": label}), "corpus-spectrum", lambda: rows)
        st.caption(f"Of {f'{spaced(found.seen)} of' if found.seen < whole.sentences else 'all'} its sentences.")


def _enough(found: Settling, k: int | None = None) -> str:
    """What the last point of the curve says of maps that keep `k` directions, all where None."""
    isotropy, sentences = found.isotropy[-1], found.sentences[-1]
    per = sentences / found.dim
    each = f"{per:.0f}" if per >= 10 else ratio(per)
    a_map = f"At k = {k}, a map" if k else "A map"
    fitted = f"{a_map} fitted on {spaced(sentences)} sentences, {each} a dimension,"
    # A map of fewer sentences than directions to keep has fewer of them: those are another matter than all of them.
    full = [one for n, one in zip(found.sentences, found.isotropy, strict=True) if n > (k or found.dim)]
    if not full:
        return (
            f"{fitted} has at most {sentences - 1} of {k or found.dim} directions. The isotropy of **{isotropy:.2f}** "
            "that it leaves is of these alone, and says nothing yet of a map of all: embed more text."
        )
    words = f"{fitted} leaves the chunks after them with an isotropy of **{isotropy:.2f}**; 1 would be round."
    if isotropy < max(full) - _FALLS:
        return f"{words} It was higher before: the chunks differ in kind. Mix the lines of your files and embed again."
    return (
        f"{words} More text will change little."
        if isotropy >= _ROUND
        else f"{words} More text, or a smaller k, would help."
    )


def _stop(job: Job) -> None:
    st.button(
        "Stop",
        key="stop-corpus",
        on_click=job.cancel,
        disabled=job.cancelling,
        help="What is done is kept, and it can go on from there.",
    )


def _go_on(folder: str, manifest: Manifest, label: str = "Go on") -> None:
    """Take it up where it was, in the model and layers that it holds, whatever the bar says."""
    if corpus_begin.may_begin() and manifest.reading:
        st.button(
            label,
            key="go-on-corpus",
            on_click=corpus_begin.submit,
            args=(folder, manifest.arguments),
            disabled=long_runs.full(),
            icon=":material/play_arrow:",
        )
    else:
        st.caption("The command that began it does what is missing.")


def _numbers(found: Status) -> list[Metric]:
    left = "–" if found.seconds_left is None else duration(found.seconds_left) if found.seconds_left else "0 s"
    done = f"{100 * found.sentences_done / max(found.sentences, 1):.0f} %"
    return [
        Metric("Chunks done", f"{spaced(found.done)} of {spaced(found.chunks)}", done),
        Metric("Sentences done", spaced(found.sentences_done), f"of {spaced(found.sentences)}"),
        Metric(
            "Sentences a second",
            spaced(round(found.rate)) if found.seconds_left else "–",
            help="Over the last 32 chunks, by the times of their files, while it is under way.",
        ),
        Metric("Time left", left, help="At that rate."),
    ]


def _state(found: Status, job: Job | None) -> str:
    if turn := _turn(job):
        return turn
    if found.running:
        return "Under way."
    if is_open(job):
        return "Its process is closing." if found.done == found.chunks else "The model is being loaded."
    if found.lost:
        return f"{quantity(found.lost, 'chunk is', 'chunks are')} damaged or gone since it was finished."
    if found.failed:
        return f"Ended with {quantity(len(found.failed), 'chunk')} missing."
    if found.running is None:
        last = f", and its last chunk came {duration(time.time() - found.mtime)} ago" if found.mtime else ""
        return f"Whether a process works on it cannot be told by the user who runs this app{last}."
    return "No process works on it: it was stopped, or ended."


def _turn(job: Job | None) -> str:
    turn = long_runs.turn(job)
    return f"{capitalised(turn)}{plain(long_runs.waits_for(job)) if turn == 'waiting' else ''}." if turn else ""
