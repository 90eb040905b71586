"""A corpus that is being embedded, as its folder shows it: how far it is, how its geometry settles, what came of it."""

import time

import streamlit as st

from whitelab import figures
from whitelab.base.installation import program
from whitelab.base.wording import layers_in_words, plain, spaced
from whitelab.corpus.manifest import Manifest, Status, status
from whitelab.corpus.settling import settling
from whitelab.datasets import DataError
from whitelab.encoding.checkpoints import shown_name
from whitelab.ui.sidebar.address import bound
from whitelab.ui.widgets.chart import chart
from whitelab.ui.widgets.metric import Metric, headlines

EVERY = 3.0  # seconds between two looks at a folder
SILENCE = 120.0  # seconds without a new chunk, after which a run is taken to have ended
_FAILED_SHOWN = 20


def choose() -> str:
    """The folder to watch; empty where none was named."""
    return st.text_input(
        "Folder of a corpus",
        **bound("embedded", ""),
        placeholder="/data/sentences-embedded",
        help="What --out named in `corpus embed`, on the machine this app runs on.",
    ).strip()


def begin() -> None:
    """What to type where there is no corpus yet."""
    st.markdown(
        "There is no folder to look at yet. A corpus is embedded outside this app, so closing the page stops nothing:"
    )
    st.code(
        f"{program()} corpus embed --text 'sentences/*.txt' --layers -1 --engine processes --workers 2 --out embedded\n"
        f"{program()} corpus fit embedded --whitening pca --k 128 --out map.npz\n"
        f"{program()} score --whitening pca --k 128 --fit corpus:embedded",
        language="bash",
    )


@st.fragment(run_every=EVERY)
def watch(folder: str) -> None:
    """Draw the folder's state, again every few seconds: that asks the folder and nothing else."""
    try:
        found = status(folder)
        settled = settling(folder)
    except DataError as error:
        st.error(plain(str(error)))
        begin()
        return
    headlines(*_numbers(found))
    if found.done < found.chunks:
        st.progress(found.sentences_done / max(found.sentences, 1), text=_state(found))
    else:
        st.caption("Finished: every chunk is there.")
    for name, why in list(found.failed.items())[:_FAILED_SHOWN]:
        st.warning(f"Chunk {name[:12]} is missing: {plain(why)}", icon=":material/error:")
    if found.refused:
        st.caption(
            f"{spaced(found.refused)} lines were left out: too long, not UTF-8 or not a record. "
            "The manifest has the first thousand of them."
        )
    held = Manifest.read(folder)
    layers, kept = layers_in_words(held.recipe.layers), " or any average of them" * held.recipe.apart
    st.markdown(
        f"To score pairs with a map fitted on it, choose {plain(shown_name(held.loaded))}, {layers}{kept}, "
        f"{held.recipe.pooling} pooling in the bar, then **Fitted on**, and type `corpus:{folder}`."
    )
    if not settled.seen:
        return
    left, right = st.columns(2)
    with left:
        st.subheader("Is it enough to fit on?")
        if settled.sentences:
            points = [
                {"sentences": n, "isotropy": value}
                for n, value in zip(settled.sentences, settled.isotropy, strict=True)
            ]
            figure = figures.settling_curve(settled.sentences, settled.isotropy, "zca", "Full whitening")
            chart(figure, "corpus-settling", lambda: points)
            st.caption(
                "Full whitening fitted on the first chunks, measured on as many after them, in the order they came. "
                "New text that comes out round has 1. More text helps as long as the line rises; with few sentences "
                f"for each of {len(settled.spectrum)} dimensions it is low, and may be flat there too."
            )
        else:
            st.markdown("Two chunks are needed, one to fit on and one to measure.")
    with right:
        st.subheader("How is variance spread?")
        label = f"Raw, {spaced(settled.seen)} sentences"
        rows = [{"direction": i + 1, "variance": value} for i, value in enumerate(settled.spectrum)]
        chart(figures.spectrum({"none": settled.spectrum}, {"none": label}), "corpus-spectrum", lambda: rows)
        st.caption(f"Of the first {spaced(settled.seen)} sentences that came.")


def _numbers(found: Status) -> list[Metric]:
    left = "unknown" if found.seconds_left is None else _span(found.seconds_left)
    done = f"{100 * found.sentences_done / max(found.sentences, 1):.0f} %"
    return [
        Metric("Chunks done", f"{spaced(found.done)} of {spaced(found.chunks)}", done),
        Metric("Sentences done", spaced(found.sentences_done), f"of {spaced(found.sentences)}"),
        Metric(
            "Sentences a second",
            "unknown" if found.rate is None else spaced(round(found.rate)),
            help="Over the last 32 chunks, by the times of their files.",
        ),
        Metric("Time left", left, help="At that rate."),
    ]


def _state(found: Status) -> str:
    if found.failed:
        return f"Ended with {len(found.failed)} chunks missing. The same command again does those alone."
    if found.mtime is not None and time.time() - found.mtime > SILENCE:
        return "No chunk came for two minutes: it may have been stopped. The same command again goes on from here."
    return "Under way."


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
