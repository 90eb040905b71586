"""Rankings of a retrieval set: what is measured and fitted, the scores as they come, and what they look like."""

import html
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import streamlit as st

from whitelab import figures
from whitelab.base.progress import Progress
from whitelab.base.wording import layers_in_words, p_value, plain, spaced
from whitelab.datasets import RetrievalSet
from whitelab.encoding.embed import EmbedReport
from whitelab.figures.style import wrapped
from whitelab.retrieval.embedded import FITS, RetrievalSpace, embed_retrieval, for_documents
from whitelab.retrieval.metrics import METRICS
from whitelab.retrieval.relevance import Retrieval, RetrievalCurve, RetrievalStanding, against, hits, retrieve
from whitelab.scoring.paired import RESAMPLES, VERDICTS
from whitelab.scoring.setting import Setting
from whitelab.statistics.significance import few_note, least_p
from whitelab.store.embedding_store import Store
from whitelab.ui.frame.fitted_on import fitted_on
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.shelf import shelf
from whitelab.ui.results.study import study, study_each
from whitelab.ui.results.worker import Job
from whitelab.ui.sections import retrieval_sets
from whitelab.ui.sidebar.opening import Opened, shelved_texts
from whitelab.ui.sidebar.workspace import Workspace
from whitelab.ui.widgets import address, verdict
from whitelab.ui.widgets.chart import chart
from whitelab.ui.widgets.metric import Metric, headlines
from whitelab.ui.widgets.note import note
from whitelab.whitening import too_few

EXAMPLE = "Passages, queries and judgements written for this project, not a published benchmark."
CLEAR = 0.01  # of a metric between 0 and 1: less is no reason to speak of another layer
SHOWN, SHORTENED = 5, 240  # documents of a query that are shown, and letters of each


@dataclass(frozen=True)
class Comparison:
    """By which metric settings are compared, what their maps are fitted on, and whether that is the bar's task."""

    metric: str
    fit: str
    own: bool

    @property
    def label(self) -> str:
        """The metric's name."""
        return METRICS[self.metric].label

    def of(self, setting: Setting) -> Setting:
        """The setting with these choices in place of those of pairs."""
        return setting.with_(aggregate="all", fit=self.fit, k=setting.k)


def choose(data: RetrievalSet, chosen: Workspace, opened: Opened) -> Comparison:
    """Choose the metric and what the whitening is fitted on."""
    left, right = st.columns([3, 2])
    with left, address.spelt("compared-by", METRICS, lambda name: METRICS[name].label):
        metric = st.selectbox(  # five names are wider than a narrow window
            "Compared by",
            list(METRICS),
            key="compared-by",
            bind="query-params",
            format_func=lambda name: METRICS[name].label,
            help=" ".join(f"{one.label}: {one.hint}" for one in METRICS.values()),
        )
    with right:
        fit, own = fitted_on(
            "search-fit",
            FITS,
            len(data.documents),
            chosen,
            opened,
            "The corpus is there before the first query comes. Queries are shorter and worded otherwise. Or other "
            "text: the sentences of the bar's task.",
        )
    return Comparison(metric or "ndcg@10", fit, own)


def open_set(chosen: Workspace, opened: Opened, data: RetrievalSet, comparison: Comparison) -> RetrievalSpace | None:
    """`embedded`, carrying the sentences of the bar's task where maps are fitted on those."""
    space = embedded(chosen, data)
    if space is None or not comparison.own:
        return space
    name = f"{shelf().name(space)}+{shelf().name(opened.space)}/{comparison.fit}"
    return shelf().call(space.with_text(comparison.fit, opened.rows), name)


@dataclass(frozen=True, eq=False)
class _Embedded:
    space: RetrievalSpace
    report: EmbedReport


def embedded(chosen: Workspace, data: RetrievalSet) -> RetrievalSpace | None:
    """The set embedded under the workspace's model, after saying what there is to know of it; None after drawing the
    job that makes it.
    """

    def work(progress: Progress) -> _Embedded:
        encoder = for_documents(chosen.encoder())
        return _Embedded(*embed_retrieval(encoder, data, chosen.setting.pooling, store=Store(), progress=progress))

    found = shelved_texts(chosen, data, retrieval_sets.is_upload(), work, key="retrieval")
    if found is None:
        return None
    note(*found.report.notes)
    return shelf().call(found.space, f"{shelf().name(found)}/space")


def ranked(space: RetrievalSpace, settings: Sequence[Setting], place: str) -> Job:
    """The retrieval of each setting as a job that grows; each is shared with every other place."""
    return study_each(retrieve, space, settings, title="Ranking documents", place=place)


# ---------------------------------------------------------------------------------------------------- pictures


def standings(results: Sequence[Retrieval], comparison: Comparison) -> None:
    """Before and after, whether the difference is real, and how many queries rose and fell."""
    if len(results) < 2:
        return
    raw, white = _standings(tuple(results), comparison.metric)
    second = "recall@100" if comparison.metric != "recall@100" else "ndcg@10"
    before, after = (one.means[second] for one in results)
    moved = white.difference
    name = LABELS.at(results[-1].setting)
    headlines(
        Metric(
            f"{comparison.label}, {LABELS.card(results[-1].setting)}",
            f"{white.mean:.4f}",
            f"{moved.estimate:+.4f} against raw",
            "up" if white.verdict in ("gain", "loss") else "either",
            METRICS[comparison.metric].hint,
            f"95 %: {verdict.interval(white.low, white.high, digits=4)}",
        ),
        Metric(
            f"{comparison.label}, raw",
            f"{raw.mean:.4f}",
            f"95 %: {verdict.interval(raw.low, raw.high, digits=4)}",
        ),
        Metric(
            "Queries gained",
            spaced(white.gained),
            f"{spaced(white.lost)} lost, of {spaced(len(results[0].per_query[0]))}",
        ),
        Metric(METRICS[second].label, f"{after:.4f}", f"{after - before:+.4f} against raw", "either"),
    )
    with st.container(key="said-ranked"):
        st.markdown(f"{verdict.ICONS[white.verdict]} {_sentence(white, comparison, name)}")
    if few := few_note(white.retrieval.per_query.shape[1], "queries", means=True):
        note(few)
    made = results[-1].protocol
    if results[-1].starved:
        st.warning(too_few(made.setting.whitening, made.rank, made.dim), icon=":material/warning:")


def judged(results: Sequence[Retrieval], comparison: Comparison) -> str:
    """The verdict on the last of the results against the first."""
    return _standings(tuple(results), comparison.metric)[-1].verdict


def beaten(results: Sequence[Retrieval], every: Sequence[Retrieval], comparison: Comparison) -> str:
    """That the raw vectors of the last of `every` layer rank better than the last of the results, of others."""
    raw = [one for one in every if one.setting.whitening == "none"]
    if not raw or raw[-1].setting.layers == results[-1].setting.layers:
        return ""
    untouched, now = raw[-1].means[comparison.metric], results[-1].means[comparison.metric]
    if untouched - now <= CLEAR:
        return ""
    return (
        f"The raw vectors of {layers_in_words(raw[-1].setting.layers)}, the last, reach {comparison.label} "
        f"{untouched:.4f} here, and this map {now:.4f}. Advise looks for what serves best."
    )


@lru_cache(16)
def _standings(results: tuple[Retrieval, ...], metric: str) -> tuple[RetrievalStanding, ...]:
    """`against`, once for all parts of a page; results are shared, so that for all visitors it is."""
    return against(results, metric=metric)


def _sentence(white: RetrievalStanding, comparison: Comparison, name: str) -> str:
    found = white.difference
    p = p_value(found.p_value, least_p(RESAMPLES))
    return (
        f"**{VERDICTS[white.verdict]}.** {name} moves {comparison.label} by {found.estimate:+.4f}, 95 % interval "
        f"{verdict.interval(found.low, found.high, '+', 4)} ({p}), from {spaced(RESAMPLES)} resamples of the queries."
    )


def by_layer(results: Sequence[Retrieval], comparison: Comparison, n_layers: int) -> None:
    """The metric by layer, as far as it is known."""
    standing = _standings(tuple(results), comparison.metric)
    specs = dict.fromkeys(one.setting.whitening for one in results)
    curves = {
        spec: {
            one.retrieval.setting.layers[0]: {"mean": one.mean, "low": one.low, "high": one.high}
            for one in standing
            if one.retrieval.setting.whitening == spec
        }
        for spec in specs
    }
    titles = LABELS.titles(one.setting for one in results)
    chart(
        figures.metric_by_layer(curves, titles, n_layers, comparison.label),
        "retrieval-layers",
        lambda: [{"layer": one.setting.layers[0], "whitening": one.setting.whitening} | one.means for one in results],
    )


def by_k(curve: RetrievalCurve, comparison: Comparison, k: int | None, raw: float | None) -> None:
    """The metric at every k, beside that of raw vectors where it is known."""
    means, spec = curve.means(comparison.metric), curve.protocol.setting.whitening
    marks = {"best": curve.best_k(comparison.metric), "chosen": min(k or curve.protocol.dim, curve.protocol.dim)}
    variant = spec, LABELS.unscaled(spec)
    chart(
        figures.metric_by_k(means, curve.protocol.rank, variant, marks, raw, comparison.label),
        "retrieval-k",
        lambda: [
            {"whitening": spec, "k": j} | {name: values[j - 1] for name, values in columns.items()}
            for columns in ({name: curve.means(name) for name in METRICS},)
            for j in curve.k
        ],
    )


def by_query(space: RetrievalSpace, results: Sequence[Retrieval], comparison: Comparison) -> str:
    """Which queries gained and which lost, and what one of them finds under either setting; the lines that give the
    same in Python, after those of `code`."""
    data = space.data
    before, after = (one.of(comparison.metric).tolist() for one in results)
    changes = [b - a for a, b in zip(before, after, strict=True)]
    hover = [
        f"{wrapped(text)}<br>{html.escape(comparison.label)}: {a:.4f} to {b:.4f}"
        for text, a, b in zip(data.queries, before, after, strict=True)
    ]
    rows = [
        {"query": name, "text": text, "metric": comparison.metric, "raw": a, "whitened": b, "change": b - a}
        for name, text, a, b in zip(data.query_ids, data.queries, before, after, strict=True)
    ]
    chart(figures.query_differences(changes, hover, comparison.label), "retrieval-queries", lambda: rows)
    order = sorted(range(len(changes)), key=lambda i: -abs(changes[i]))
    query = st.selectbox(
        "A query, those that moved most first",
        order,
        key=f"searched-query-{data.fingerprint[:12]}",
        format_func=lambda i: f"{changes[i]:+.4f}  {data.queries[i]}",
    )
    query = order[0] if query is None else query
    with st.container(key="said-hits"):
        columns = st.columns(2)
    for column, one in zip(columns, results, strict=True):
        with column:
            st.markdown(
                f"**{LABELS.at(one.setting)}**, {comparison.label} {float(one.of(comparison.metric)[query]):.4f}"
            )
            _hits(space, one.setting, query)
    return (
        "for one in results:\n"
        f"    print(one.of({comparison.metric!r}).tolist(), hits(searched, one.setting, {query}, {SHOWN}))\n"
    )


def _hits(space: RetrievalSpace, setting: Setting, query: int) -> None:
    """The first documents of a query, each with its grade, its cosine and the beginning of its text."""
    lines = []
    for place, hit in enumerate(study(hits, space, setting, query, SHOWN), start=1):
        grade = "not judged" if hit.grade is None else f"grade {hit.grade:g}"
        grade = f"**{grade}**" if hit.grade and hit.grade > 0 else grade
        text = textwrap.shorten(space.data.documents[hit.document], SHORTENED, placeholder=" ...") or "(empty)"
        lines.append(f"{place}. {grade}, cosine {hit.cosine:.3f}: {plain(text)}")
    st.markdown("\n".join(lines))


def searched_code(data: RetrievalSet, comparison: Comparison, pooling: str) -> str:
    """The lines that make the page's embeddings as `searched`; `pooling` is one more argument if not the usual."""
    carried = (
        f"searched = searched.with_text({comparison.fit!r}, whitelab.LayerRows(space.values, space.counts))\n"
        if comparison.own
        else ""
    )
    return (
        f"data = {retrieval_sets.code(data)}\n"
        "reader = whitelab.for_documents(encoder)\n"
        f"searched, _ = whitelab.embed_retrieval(reader, data{pooling}, store=whitelab.Store())\n"
        f"{carried}"
    )


def code(
    data: RetrievalSet, settings: Sequence[Setting], comparison: Comparison, curve: Setting | None, pooling: str
) -> str:
    """The lines that give the page's numbers in Python, `pooling` as in `searched_code`.

    Without `curve` those of every k are left out: there are none where all texts have one vector.
    """
    every_k = (
        f"curve = whitelab.retrieval_curve(searched, whitelab.Setting.parse({str(curve)!r}))\n"
        f"print(curve.best_k({comparison.metric!r}), dict(zip(curve.k, curve.means({comparison.metric!r}))))\n"
    )
    return (
        "from whitelab.retrieval.relevance import against, hits\n\n"
        f"{searched_code(data, comparison, pooling)}"
        f"settings = [whitelab.Setting.parse(text) for text in {tuple(map(str, settings))!r}]\n"
        "results = [whitelab.retrieve(searched, one) for one in settings]\n"
        f"for one in against(results, metric={comparison.metric!r}):\n"
        "    print(one.mean, (one.low, one.high), one.difference, one.gained, one.lost)\n"
        "    print(one.retrieval.means, one.retrieval.line())\n"
        "for layer in range(searched.space.n_layers):\n"
        "    for one in settings:\n"
        "        alone = whitelab.retrieve(searched, one.with_(layers=(layer,)))\n"
        "        print(alone.setting, alone.means)\n"
        f"{every_k if curve else ''}"
    )
