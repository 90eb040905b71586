"""How few bits a vector may take: the score against its bytes, on request, and what a rotation costs then."""

from collections.abc import Sequence

import streamlit as st

from whitelab import figures
from whitelab.base.wording import plain, spaced
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.figures import heights
from whitelab.retrieval.compression import CODES, ROTATIONS, Code
from whitelab.retrieval.embedded import RetrievalSpace
from whitelab.retrieval.frontier import CodedScore, Frontier, frontier
from whitelab.scoring.paired import RESAMPLES, VERDICTS
from whitelab.scoring.setting import Setting
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.jobs import follow, redraw
from whitelab.ui.results.study import study_job
from whitelab.ui.widgets import asking, verdict
from whitelab.ui.widgets.chart import chart, clicked
from whitelab.ui.widgets.metric import Metric, headlines, number

OF = "bits"  # what is asked for
CHOSEN = "bits-chosen"  # session_state: the point clicked
SHOWN_CODES = tuple(code for code in CODES if code.rotation != "opq")  # which takes longer than all others together
TURNED = ("pca", "zca", "cholesky")  # one class of cosines, three systems of d coordinates each while all are kept
TURNED_CODES = tuple(map(Code, ("float32", "float16", "int8", "binary", "hamming")))


def draw(space: LayerEmbeddings | RetrievalSpace, setting: Setting, metric: str = "ndcg@10") -> None:
    """The frontier of raw vectors and a setting, once this visitor has asked for it."""
    st.header("How few bits does a vector need?")
    st.markdown(
        "A quantiser stores a vector in fewer bytes. Look at how few bytes still keep the score, and of which "
        "vectors: raw or whitened, rotated or not."
    )
    if not asking.once("Store in fewer bits", OF):
        return
    stored = study_job(
        frontier, space, _compared(setting), SHOWN_CODES, metric, title="Coding", unit="blocks", place="bits"
    )
    follow(
        stored,
        lambda found: _picture(found, stored.key),
        key="bits-part",
        caption=lambda found: f"{len(found.points)} codes; a click on a mark shows its setting.",
        room=heights.room(heights.TALL) + 130,
    )
    st.markdown("**Rotations stop being free once bits are cut** (all dimensions, whatever k)")
    follow(
        study_job(
            frontier, space, _turned(setting), TURNED_CODES, metric, title="Turning", unit="blocks", place="bits-turned"
        ),
        _table,
        key="bits-turned",
        caption=lambda found: (
            "PCA, ZCA and Cholesky whitening differ by a rotation, which changes no cosine of floats."
        ),
        room=heights.table(len(TURNED_CODES)),
    )


def code(setting: Setting, space: str, metric: str | None = None) -> str:
    """The lines that give these numbers in Python, of the embeddings called `space`; none where nobody asked."""
    if not asking.asked(OF):
        return ""
    stored = ((_compared(setting), SHOWN_CODES), (_turned(setting), TURNED_CODES))
    return (
        "for settings, codes in (\n"
        + "".join(f"    ({tuple(map(str, settings))!r}, {tuple(map(str, codes))!r}),\n" for settings, codes in stored)
        + "):\n"
        "    settings = [whitelab.Setting.parse(text) for text in settings]\n"
        "    codes = [whitelab.Code.parse(text) for text in codes]\n"
        f"    *_, stored = whitelab.frontier({space}, settings, codes{f', {metric!r}' if metric else ''})\n"
        "    for one in stored.points:\n"
        "        print(one.bytes, one.score, (one.low, one.high), one.difference, one.verdict, one.line())\n"
        "    print(*(one.line() for one in stored.best()), sep='\\n')  # the frontier\n"
    )


def _compared(setting: Setting) -> tuple[Setting, ...]:
    return tuple(dict.fromkeys((setting.with_(whitening="none"), setting)))


def _turned(setting: Setting) -> tuple[Setting, ...]:
    return tuple(setting.with_(whitening=name, k=None) for name in TURNED)


def _picture(found: Frontier, of: str) -> None:
    """The chart, and the setting of the mark that was clicked, or of the best at a byte for eight dimensions."""
    points, best = found.scored, found.best()
    if not points or points[0] is not found.points[0]:
        st.info("Float32 raw vectors have no score that is defined, so nothing can be held against them.")
        return
    place = st.session_state.get(CHOSEN, (of, None))
    chosen = place[1] if place[0] == of and place[1] is not None and place[1] < len(points) else _usual(points, best)
    digits = found.digits
    records = [one.as_dict() | {"on_frontier": one in best} for one in points]
    rows = [
        record | {"whitening": one.setting.whitening, "rotation": one.code.rotation, "code": one.code.label}
        for record, one in zip(records, points, strict=True)
    ]

    def choose() -> None:
        if (data := clicked("bits-frontier")) is not None:
            st.session_state[CHOSEN] = of, data[0]
            redraw()

    shown = points[chosen]
    _headlines(shown, points[0], digits)
    figure = figures.bits_frontier(rows, LABELS, found.metric, chosen, digits)
    chart(figure, "bits-frontier", lambda: records, on_select=choose)
    st.caption(
        f"Marks: circle {ROTATIONS['none']}, diamond random rotation, square ITQ (iterative "
        "quantization, Gong et al. 2013: the rotation that brings vectors nearest to their signs). Intervals from "
        f"{spaced(RESAMPLES)} resamples. One side is stored, the other asks in float32 (Hamming cuts both). Rotations "
        "and quantisers are trained on the text the map is fitted on; few rows flatter a product quantiser, which "
        "learns them by heart. A map that returns to d columns, such as ZCA and soft, is stored in all of "
        "them whatever k.",
        help="The Hamming distance of two codes is the number of bits in which they differ. It is all that is left to "
        "rank by where both sides are cut to their signs. In a search many documents are equally far then, and of "
        "these the one whose id comes first stands first: other ids can move the score, more so with fewer bits.",
    )
    for text in found.left_out:
        st.caption(f"Left out: {plain(text)}.")
    if unscored := len(found.points) - len(points):
        st.caption(f"{unscored} of {len(found.points)} codes have no score that is defined.")
    st.caption(plain(shown.line()))


def _headlines(shown: CodedScore, raw: CodedScore, digits: int) -> None:
    moved, less = shown.difference, f"{raw.bytes / shown.bytes:.3g} times less than float32 raw"
    headlines(
        Metric("Bytes a vector", spaced(shown.bytes), less if shown.bytes < raw.bytes else "as float32 raw"),
        Metric(
            "Score stored so",
            f"{shown.score:.{digits}f}",
            f"95 %: {verdict.interval(shown.low, shown.high, digits=digits)}",
            help=f"{LABELS.at(shown.setting)}, {shown.code.label}. {shown.code.of.hint}",
        ),
        Metric(
            "Difference from float32 raw",
            f"{moved.estimate:+.{digits}f}",
            VERDICTS[shown.verdict],
            shown.verdict if shown.verdict in ("gain", "loss") else "",
            description=f"95 %: {verdict.interval(moved.low, moved.high, '+', digits)}",
        ),
    )
    st.markdown(f"{verdict.ICONS[shown.verdict]} {LABELS.at(shown.setting)}, {shown.code.label}.")


def _usual(points: Sequence[CodedScore], best: Sequence[CodedScore]) -> int:
    """The best point of a bit a dimension or less, else the last."""
    few = [one for one in best if one.bytes <= points[0].bytes / 32]
    return points.index(few[-1]) if few else len(points) - 1


def _table(found: Frontier) -> None:
    """The score of each quantiser under each map, and how far the maps are apart."""
    digits = found.digits
    if any(one.verdict == "starved" for one in found.points):
        st.warning(
            "The text is too little for these maps: it leaves all sentences equally far apart but for rounding, so the "
            "scores and what lies between them say nothing.",
            icon=verdict.ICONS["starved"],
        )
    rows = []
    for code in TURNED_CODES:
        own = {one.setting.whitening: one.score for one in found.points if one.code == code}
        values = [own[name] for name in TURNED if name in own]
        if values:
            cells = {LABELS[name]: number(own[name], digits) for name in TURNED if name in own}
            spread = number(max(values) - min(values) if all(one == one for one in values) else None, digits)
            rows.append({"Stored as": code.label} | cells | {"Apart by": spread})
    st.dataframe(rows, hide_index=True, key="bits-turned-table", alt="Score of each quantiser under each map")
