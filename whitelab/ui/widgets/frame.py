"""The parts every page is made of: its question, charts with their data, explanation, code, protocol line."""

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from whitelab.base.wording import spaced
from whitelab.datasets import DataError, MalformedRows
from whitelab.scoring.score import Score
from whitelab.ui.results import cache
from whitelab.ui.results.cache import Opened
from whitelab.ui.sidebar import malformed, own_data, workspace
from whitelab.ui.sidebar.workspace import Workspace, plain
from whitelab.whitening import WHITENERS, label, parse, whitens

DEMO = "Demonstration set written for this project, not a published benchmark."


def open_page(question: str, look_for: str) -> tuple[Workspace, Opened]:
    """Draw the title, open the workspace's space and the live score; stop where there is nothing to show."""
    chosen = ask(question, look_for)
    if chosen is None:
        st.stop()
    opened = open_chosen(chosen)
    for note in (*opened.pairs.notes, *opened.report.notes):
        st.caption(f"Note: {note}")
    if opened.pairs.problems:
        with st.expander(f"{len(opened.pairs.problems)} malformed rows were left out"):
            st.dataframe(malformed.rows(opened.pairs.problems))
    if opened.report.truncated:
        st.caption(f"Note: {opened.report.truncated} sentences were cut to {chosen.max_length} tokens.")
    return chosen, opened


def ask(question: str, look_for: str) -> Workspace | None:
    """Draw the title, and what is missing where there is no workspace."""
    st.title(question)
    st.markdown(look_for)
    chosen = workspace.current()
    if st.session_state.get(own_data.LOST) and (chosen is None or chosen.data == "demo"):
        st.info(own_data.GONE, icon=":material/link_off:")
    if chosen is None:
        st.info("Choose a model and data in the bar at the left. What is missing there is said there.")
    return chosen


def open_chosen(chosen: Workspace) -> Opened:
    """Open the workspace's space and draw the live score; stop where there is nothing to show."""
    try:
        opened = cache.open_space(chosen)
    except MalformedRows as error:
        malformed.say(error, chosen.data)
        st.stop()
    except DataError as error:
        st.error(str(error))
        st.stop()
    if opened is None:
        st.stop()
    _live(chosen, opened)
    return opened


def is_demo(opened: Opened) -> bool:
    """Whether these are the pairs of the demonstration set, whatever an upload calls itself."""
    return not opened.own and not opened.pairs.published and opened.pairs.task == "demo"


def open_aside(question: str, look_for: str) -> None:
    """Draw the title of a page that shows something else than the workspace's space, and the live score if it can.

    While the space is embedded its progress stands in the bar, where the score will be.
    """
    st.title(question)
    st.markdown(look_for)
    chosen = workspace.current()
    if chosen is None:
        return
    with st.session_state[workspace.LIVE]:
        try:
            opened = cache.open_space(chosen)
        except DataError as error:
            st.caption(plain(str(error)))
            return
    if opened is not None:
        _live(chosen, opened)


def _live(chosen: Workspace, opened: Opened) -> None:
    protocol = chosen.protocol(opened.pairs.source)
    now = cache.score(opened.key, protocol)
    raw = cache.score(opened.key, protocol.with_(whitening="none", k=None))
    with st.session_state[workspace.LIVE]:
        st.metric(
            "Spearman x 100, live",
            number(now.spearman),
            delta=change(now.spearman, raw.spearman, "against raw"),
            help=now.line(),
            border=True,
        )
        st.caption(fitted_on(now))
        if is_demo(opened):
            st.caption(DEMO)
    if whitens(chosen.whitening) and now.rank >= opened.space.n_sentences - 1:
        st.warning(
            f"{opened.space.n_sentences} different sentences span only {now.rank} of {now.dim} dimensions. Whitening "
            "then puts them at equal distances from each other, so these cosines say nothing about meaning. Keep fewer "
            "dimensions (k) or bring more sentences.",
            icon=":material/warning:",
        )


def fitted_on(score: Score) -> str:
    """What a score's map was fitted on, in a line short enough to stand beside it."""
    if score.protocol.whitening == "none":
        return f"d {score.dim}, nothing fitted"
    isotropy = "undefined" if score.isotropy is None else f"{score.isotropy:.2f}"
    return (
        f"fitted on {spaced(score.sentences)} sentences, d {score.dim}, rank {score.rank}, held-out isotropy {isotropy}"
    )


def number(value: float | None, digits: int = 2) -> str:
    """A number for a headline; 'undefined' for None or NaN."""
    if value is None or value != value:
        return "undefined"
    return f"{value:z.{digits}f}"  # z: what rounds to zero has no sign


def change(now: float | None, before: float | None, words: str) -> str | None:
    """A signed difference for a metric's second line."""
    if now is None or before is None or now != now or before != before:
        return None
    return f"{now - before:+z.2f} {words}"


def score_metric(label: str, score: Score, raw: Score | None = None, **more) -> None:
    """A Spearman score with its interval, and its change against raw."""
    width = "" if score.half_width is None else f"± {score.half_width:.2f}"
    delta = change(score.spearman, raw.spearman, "against raw") if raw else None
    st.metric(
        label,
        number(score.spearman),
        delta=delta or width or None,
        delta_color="normal" if delta else "off",
        delta_arrow="auto" if delta else "off",
        delta_description=width if delta else None,
        border=True,
        height="stretch",
        **more,
    )


def chart(
    figure: go.Figure,
    key: str,
    rows: Callable[[], Sequence[dict]] | None = None,
    on_select: Callable[[], None] | None = None,
) -> None:
    """A figure at its own height with alternative text, and its data to download as CSV."""
    st.plotly_chart(
        figure,
        key=key,
        width="stretch",
        height=int(figure.layout.height),
        alt=figure.layout.meta["alt"],
        on_select=on_select or "ignore",
        selection_mode="points",
        config={"displaylogo": False, "displayModeBar": False if on_select else "hover"},
    )
    if rows is not None:
        csv_button(rows, key)


def csv_button(rows: Callable[[], Sequence[dict]], key: str) -> None:
    """Rows to download as CSV, written when they are asked for."""
    st.download_button(
        "Data (CSV)",
        lambda: as_csv(rows()),
        file_name=f"whitelab-{key}.csv",
        mime="text/csv",
        key=f"{key}-csv",
        on_click="ignore",
        type="tertiary",
        icon=":material/download:",
    )


def kept(name: str, of: Any, make: Callable[[], Any]) -> Any:
    """`make()`, kept for this visitor until `of` is another: a large figure costs more than all else k changes."""
    held = st.session_state.get(f"{name}-kept")
    if held is None or held[0] != of:
        held = st.session_state[f"{name}-kept"] = of, make()
    return held[1]


def as_csv(rows: Sequence[dict]) -> str:
    """Rows as CSV text."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else [])
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def variant_picker(chosen: Workspace, key: str, default: Sequence[str], title: str = "Variants") -> list[str]:
    """Choose variants side by side, as specs; never none at all.

    A name stands for the workspace's spec of it; a typed spec such as `soft:gamma=0.25` is taken as it is.
    """
    names = list(dict.fromkeys(spec.partition(":")[0] for spec in default))
    found = st.multiselect(
        title,
        list(WHITENERS),
        default=names,
        key=key,
        bind="query-params",
        accept_new_options=True,
        format_func=lambda name: WHITENERS[name].label if name in WHITENERS else name,
        placeholder="Choose variants",
        help="Type a variant with parameters to add it, such as soft:gamma=0.25 or group:groups=32.",
    )
    specs = []
    for name in found or names:
        try:
            specs.append(chosen.spec_of(name) if name in WHITENERS else str(parse(name, chosen.dim)))
            parse(specs[-1], chosen.dim)
        except ValueError as error:
            st.error(str(error))
            specs = specs[:-1] if specs and name in WHITENERS else specs
    return list(dict.fromkeys(specs)) or [chosen.spec_of(name) for name in names]


def baseline_picker(chosen: Workspace, key: str) -> str:
    """Choose the variant the others are compared with, as a spec."""
    found = st.selectbox(
        "Compared with",
        list(WHITENERS),
        key=key,
        bind="query-params",
        accept_new_options=True,
        format_func=lambda name: WHITENERS[name].label if name in WHITENERS else name,
        help="The baseline of the paired test. Type a variant with parameters to take it.",
    )
    try:
        return str(parse(chosen.spec_of(found or "none") if found in WHITENERS else found or "none", chosen.dim))
    except ValueError as error:
        st.error(str(error))
        return "none"


_PROPER = ("Cholesky",)


class Labels(dict):
    """Readable names of specs: a bare name is the variant's label, a spec shows its parameters."""

    def __missing__(self, spec: str) -> str:
        return WHITENERS[spec].label if spec in WHITENERS else label(spec)

    def inline(self, spec: str) -> str:
        """The name inside a sentence: `raw`, `soft whitening (γ = 0.5, α = 0)`, but `PCA whitening`."""
        name = self[spec]
        first = name.split()[0]
        return name if first in _PROPER or not first[1:].islower() else name[0].lower() + name[1:]


def labels() -> Labels:
    """Readable names of the variants."""
    return Labels()


def close_page(opened: Opened, score: Score, formulas: Sequence[tuple[str, str]], words: str, code: str) -> None:
    """What am I looking at, show the code, and the protocol line."""
    with st.expander("What am I looking at?", icon=":material/help:"):
        st.markdown(words)
        for formula, source in formulas:
            st.latex(formula)
            st.caption(source)
    with st.expander("Show the code", icon=":material/code:"):
        st.code(code, language="python")
    st.caption(score.line() + f" · {spaced(score.pairs)} pairs")
    if is_demo(opened):
        st.caption(DEMO)


def need_a_model(chosen: Workspace, opened: Opened, why: str) -> None:
    """Where vectors stand for the model, say why this page needs a real one, and end there."""
    if chosen.given:
        st.info(why, icon=":material/info:")
        now = cache.score(opened.key, chosen.protocol(opened.pairs.source))
        code = preamble(chosen) + "print(pairs.n_pairs, space.values.shape)\n"
        close_page(opened, now, [], "Vectors that were made elsewhere, with the gold scores of their pairs.", code)
        st.stop()


def preamble(chosen: Workspace) -> str:
    """The lines of code that open the same space."""
    if chosen.given:
        return f"import whitelab\n\n{chosen.own.code}\nencoder = found\n"
    pooling = "" if chosen.pooling == "mean" else f', "{chosen.pooling}"'
    dtype = "" if chosen.dtype == "float32" else f', dtype="{chosen.dtype}"'
    dtype += ", allow_bin=True" if chosen.allow_bin else ""
    return (
        "import whitelab\n"
        "from whitelab.encoding.embeddings import embed_pairs\n\n"
        f"{_pairs_line(chosen)}\n"
        f"encoder = whitelab.load_encoder({chosen.model!r}{dtype})\n"
        f"space, report = embed_pairs(encoder, pairs{pooling}, store=whitelab.Store())\n"
        f"{_corpus_lines(chosen, pooling)}"
    )


def _pairs_line(chosen: Workspace) -> str:
    return (
        chosen.own.code if chosen.own else f"pairs = whitelab.load({chosen.data!r}, {chosen.task!r}, {chosen.split!r})"
    )


def _corpus_lines(chosen: Workspace, pooling: str) -> str:
    if chosen.fit in OWN:
        return ""
    return (
        "\nfrom whitelab.encoding.embeddings import embed_scope\n"
        "from whitelab.scoring.fit_scopes import scope_text\n\n"
        f"text = scope_text({chosen.fit!r}, {data_in_code(chosen)}, {chosen.task!r})\n"
        f"corpus = embed_scope(encoder, text{pooling}, store=whitelab.Store())\n"
    )


def data_in_code(chosen: Workspace) -> str:
    """The data as an argument in code."""
    return "whitelab.datasets.hold(pairs)" if chosen.own else repr(chosen.data)


def fit_arguments(chosen: Workspace) -> str:
    """The arguments that say in code what is fitted on; empty for the task's sentences."""
    if chosen.fit == "task":
        return ""
    return f", fit={chosen.fit!r}" + ("" if chosen.fit in OWN else ", corpus=corpus")


def sentence_colours(opened: Opened, colour: str) -> tuple[list, str]:
    """A value for every sentence: the mean gold of its pairs, or the subset it first occurs in."""
    pairs = opened.pairs
    rows = np.concatenate([pairs.first_index, pairs.second_index])
    if colour == "subset":
        first = dict(zip(rows[::-1], np.tile(pairs.subset, 2)[::-1], strict=True))
        return [pairs.subset_names[first[i]] for i in range(len(pairs.sentences))], "subset"
    total = np.bincount(rows, weights=np.tile(pairs.gold, 2), minlength=len(pairs.sentences))
    return (total / pairs.counts).tolist(), "gold"
