"""The parts every page is made of: its question, the live score, and at the end explanation, code and protocol line."""

from collections.abc import Sequence

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

from whitelab.base.wording import cut_note, plain, quantity
from whitelab.corpus.fitting import CORPUS
from whitelab.datasets import BUNDLED_SETS, DEMO, DataError
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.scoring.score import Score, reversed_note
from whitelab.scoring.setting import scope_name
from whitelab.statistics.significance import few_note
from whitelab.ui import live
from whitelab.ui.frame.page_zip import page_zip
from whitelab.ui.frame.recipe import recipe
from whitelab.ui.results.placed import LEFT, too_large
from whitelab.ui.results.scores import doubt_of, number_of, scored
from whitelab.ui.results.study import fitted
from whitelab.ui.sidebar import fit_scope, malformed, own_data, workspace
from whitelab.ui.sidebar.opening import Opened, open_space
from whitelab.ui.sidebar.workspace import Workspace
from whitelab.ui.widgets import address
from whitelab.ui.widgets.chart import begin_figures, data_of, shown
from whitelab.ui.widgets.metric import number
from whitelab.ui.widgets.note import begin_notes, note, unsaid
from whitelab.whitening import too_few

RAW = "raw vectors are chosen in the bar: where this page holds a whitening against them, it is PCA whitening."
OF_PAIRS = "notes-of-pairs"  # session_state: what is to be known of the bar's pairs on a page of other data
DEMO_NOTE = "Demonstration set written for this project, not a published benchmark."

# What stands beside every score, for someone who meets it for the first time.
TERMS = """
- **Spearman x 100** compares two orders of the pairs: by the cosine of their vectors, and by the gold score that people
  gave them. 100 is the same order, 0 no relation. Only the order counts, not the size of a cosine.
- **±** and the whiskers of layers are half a 95 % interval, from the score and the number of pairs alone (Bonett and
  Wright 2000). Where a page names resamples, the pairs were drawn again instead: the two are alike, not the same, and
  lie further apart for an average over subsets.
- **Raw** vectors are as the model gives them. **Whitening** moves their mean to the origin and stretches the space
  until every kept direction has the same variance and none are correlated; **k** keeps those of most variance.
- **d** is how many numbers a vector has. **Rank** is how many directions a map keeps: a whitening keeps those along
  which the sentences it was fitted on vary, at most k. Three sentences vary along two directions, a hundred along 99 at
  most; a whitening that keeps as many as that sets all of them equally far apart, whatever they say.
- **Held-out isotropy** (0 to 1) says how round a map makes sentences that it was not fitted on. Near 1 it carries over;
  few sentences keep it low, those it was fitted on and those it is measured on, and so does a map that does not whiten.
  It is undefined for a map of an embedded corpus, whose sentences this task may hold too.
- **Participation ratio** counts directions by how much variance each really has: d where all have the same, 1 where one
  has all.
- **Could be chance** stands by a change from raw where Williams' test of the two rankings leaves p at 0.05 or more;
  while k is moved the browser says so from the k that was tested last. **No verdict** stands there where the map sets
  all sentences equally far apart.
- Differences are taken before rounding, so their last digit may not follow from two numbers as they are shown.
"""

FITTED = (
    "d is how many numbers a vector has, rank how many directions the map keeps. Held-out isotropy (0 to 1) says how "
    "round it makes sentences that it was not fitted on."
)


def open_page(
    question: str, look_for: str, *, intervals: bool = False, of_pairs: bool = True
) -> tuple[Workspace, Opened]:
    """Draw the title, open the workspace's space and the live score; stop where there is nothing to show.

    Where the page gives `intervals` over the pairs, too few pairs for them are noted, and where its numbers are
    `of_pairs`, too few texts for the setting's map, and its data names the pairs; a page of other data says so of its
    own. There `close_page` says what is to be known of the pairs, beside the live score, which is all that is theirs.
    """
    chosen = ask(question, look_for)
    if chosen is None:
        st.stop()
    opened = open_chosen(chosen)
    if of_pairs:
        data_of(opened.space, chosen.compared)
        if instead := st.session_state[fit_scope.INSTEAD]:
            st.warning(instead, icon=":material/link_off:")
    if intervals and (few := few_note(opened.space.n_pairs, "pairs")):
        note(few)
    if of_pairs and (found := number_of(opened.space, chosen.setting)).starved:
        st.warning(too_few(chosen.setting.whitening, found.rank, opened.space.dim), icon=":material/warning:")
    known = _known(chosen, opened)
    if of_pairs:
        note(*known)
    else:
        st.session_state[OF_PAIRS] = known
    note(*[RAW] * (chosen.setting.whitening == "none"))
    if of_pairs and opened.pairs.problems:
        with st.expander(
            f"{quantity(len(opened.pairs.problems), 'malformed row was', 'malformed rows were')} left out"
        ):
            malformed.table(opened.pairs.problems)
    return chosen, opened


def _known(chosen: Workspace, opened: Opened) -> list[str]:
    """What is to be known of the workspace's pairs and their embeddings."""
    raw = number_of(opened.space, chosen.compared.raw)
    backwards = reversed_note(raw.by_pairs, raw.pairs)
    cut = opened.report.truncated
    return [
        *opened.pairs.notes,
        *opened.report.notes,
        *([cut_note(cut, "sentence", chosen.model.max_length)] if cut else []),
        *[backwards] * bool(backwards),
        *[LEFT] * too_large(opened.space),
    ]


def ask(question: str, look_for: str) -> Workspace | None:
    """Draw the title, and what is missing where there is no workspace."""
    _head(question)
    st.markdown(look_for)
    chosen = workspace.current()
    if st.session_state.get(own_data.LOST) and (chosen is None or chosen.data.source == DEMO):
        st.info(own_data.GONE, icon=":material/link_off:")
    if chosen is None:
        workspace.say_what_is_missing()
    return chosen


def _head(question: str) -> None:
    """Draw the title, of a page that app.py runs.

    Streamlit's older mechanism takes a folder named pages: until a server has met app.py, a deep link runs the page
    alone, without bar and navigation. Every visitor to whom that happens turns it off and starts anew.
    """
    if workspace.LIVE not in st.session_state:
        PagesManager.uses_pages_directory = False
        st.rerun()
    begin_figures()
    begin_notes()
    st.session_state[OF_PAIRS] = []
    st.title(question)


def open_chosen(chosen: Workspace) -> Opened:
    """Open the workspace's space and draw the live score; stop where there is nothing to show."""
    opened, unreadable = None, True
    with malformed.said(chosen.data.source):
        opened = open_space(chosen)
        unreadable = False
    _live(chosen, opened, unreadable)
    if opened is None:
        st.stop()
    return opened


def open_aside(question: str, look_for: str) -> None:
    """Draw the title of a page that shows something else than the workspace's space, and the live score if it can.

    While the space is embedded its progress stands in the bar, where the score will be.
    """
    _head(question)
    st.markdown(look_for)
    chosen = workspace.current()
    if chosen is None:
        return
    opened, unreadable = None, False
    with st.session_state[workspace.LIVE]:
        try:
            opened = open_space(chosen)
        except DataError as error:
            unreadable = True
            st.caption(plain(str(error)))
        if opened is not None and not fitted(opened.space, (chosen.setting,), "fit-live"):
            opened = None
    _live(chosen, opened, unreadable)
    if opened is not None:
        st.session_state[OF_PAIRS] = _known(chosen, opened)


def need_a_model(chosen: Workspace, opened: Opened, why: str) -> None:
    """Where vectors stand for the model, say why this page needs a real one, and end there."""
    if chosen.given:
        st.info(why, icon=":material/info:")
        words = "Vectors that were made elsewhere, with the gold scores of their pairs."
        close_page(chosen, opened, [], words, "print(pairs.n_pairs, space.values.shape)\n")
        st.stop()


def is_demo(opened: Opened) -> bool:
    """Whether these are the pairs of the demonstration set, whatever an upload calls itself."""
    return not opened.own and not opened.pairs.published and opened.pairs.task in BUNDLED_SETS


def _live(chosen: Workspace, opened: Opened | None, unreadable: bool) -> None:
    setting, places = chosen.setting, (st.session_state[workspace.LIVE], st.session_state[workspace.STRIP])
    st.session_state[workspace.OPENED] = opened
    if opened is None:
        live.draw(*places, setting, chosen.model.dim, never=unreadable)
        return
    space = opened.space
    if not fitted(space, (setting,)):
        live.draw(*places, setting, space.dim)
        st.stop()
    now, raw = number_of(space, setting), number_of(space, setting.raw)
    live.draw(*places, setting, space.dim, space, now, raw, doubt=doubt_of(space, setting))
    with st.session_state[workspace.BELOW]:
        st.caption(plain(fit_in_words(scored(space, setting))), help=FITTED)
        if is_demo(opened):
            st.caption(DEMO_NOTE)


def fit_in_words(score: Score) -> str:
    """What a score's map was fitted on, in a line short enough to stand beside it."""
    if not score.setting.fits:
        return f"nothing fitted, d {score.dim}" + f", rank {score.rank}" * (score.rank < score.dim)
    return (
        f"fitted on {quantity(score.fitted, 'sentence')}, d {score.dim}, rank {score.rank}, "
        f"held-out isotropy {number(score.isotropy)}{_why_undefined(score) if score.isotropy is None else ''}"
    )


def _why_undefined(score: Score) -> str:
    """Why there is no held-out isotropy under a map that was fitted (`held_out.held_out_isotropy`)."""
    if score.setting.fit.startswith(CORPUS):
        return ": its corpus may hold the sentences of this task too"
    if score.rank < 2:
        return ": it takes two directions"
    return ": too few different sentences are left to measure it on"


def close_page(
    chosen: Workspace | None,
    opened: Opened | None,
    formulas: Sequence[tuple[str, str]],
    words: str,
    body: str = "",
    answer: str = "",
) -> None:
    """What am I looking at, show the code, the live score's protocol line.

    `body` is the page's part of the code, `answer` what it says in words that its results should keep. Where nothing is
    opened, on a page that needs none, there is no live score.
    """
    with st.expander("What am I looking at?", icon=":material/help:"):
        st.markdown(words)
        st.markdown(TERMS)
        for formula, source in formulas:
            st.latex(formula)
            st.caption(source)
    code = recipe(chosen, body) if chosen else f"import whitelab\n\n{body}"
    if opened or body:
        with st.expander("Show the code", key="the-code", icon=":material/code:"):  # open it stays open
            st.code(code, language="python")
            end = ", and ends with the live score" if chosen else ""
            st.caption(f"It runs where whitelab is installed, or in its folder{end}.")
    if opened is None:
        return
    score = scored(opened.space, chosen.setting)
    _hand_out(score, opened.space, code, answer)
    note(*unsaid(st.session_state[OF_PAIRS]), of="the bar's pairs")
    pairs = quantity(score.pairs, "pair") + f". {DEMO_NOTE}" * is_demo(opened)
    st.caption(f"Live score: {plain(score.line())} · {pairs}")


def _hand_out(score: Score, space: LayerEmbeddings, code: str, answer: str = "") -> None:
    """The button for all that the page has shown in this run, with the live score of its space, in one file."""
    # The file is made when no page runs, so it cannot ask for them.
    name, results, fit = address.page(), shown(), scope_name(score.setting.fit, space.texts)
    if results:
        st.download_button(
            "This page's results (.zip)",
            lambda: page_zip(name, score, fit, results, code, answer),
            file_name=f"whitelab-{name}.zip",
            mime="application/zip",
            key="page-zip",
            on_click="ignore",
            icon=":material/folder_zip:",
            help="Settings and score with their protocol, every figure as HTML, its data as CSV, and the code.",
        )
