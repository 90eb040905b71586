"""Probes of labelled texts: which classifier, the embedded texts, the scores as they come, and what they look like."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import streamlit as st

from whitelab import figures
from whitelab import probe as probes
from whitelab.base.progress import Progress
from whitelab.base.wording import bare, capitalised, cut_note, layers_in_words, p_value, plain, quantity, spaced
from whitelab.datasets import LabelledTexts
from whitelab.encoding.embeddings import LayerRows
from whitelab.figures import heights
from whitelab.probe import CLASSIFIERS, DEFAULT, FITS, How, ProbeScore, usual
from whitelab.probe.classifiers import METRICS, mcnemar
from whitelab.scoring.paired import LEVEL
from whitelab.scoring.setting import Setting, parse_settings
from whitelab.store.embedding_store import Store
from whitelab.ui.frame.fitted_on import fitted_on
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.jobs import follow
from whitelab.ui.results.study import study_each
from whitelab.ui.results.worker import Job
from whitelab.ui.sections import labelled_texts
from whitelab.ui.sidebar.opening import Opened, shelved_texts
from whitelab.ui.sidebar.workspace import Workspace
from whitelab.ui.widgets.address import linked
from whitelab.ui.widgets.chart import chart, csv_button, rounded_table
from whitelab.ui.widgets.choice import choice
from whitelab.ui.widgets.metric import Metric, change, headlines, number
from whitelab.ui.widgets.note import note
from whitelab.ui.widgets.verdict import interval
from whitelab.whitening import too_few

EXAMPLE = "Example written for this project, not a published benchmark."


@dataclass(frozen=True, eq=False)
class Texts:
    """Labelled texts, embedded by `model`, on the shelf, and `notes` on how."""

    data: LabelledTexts
    space: LayerRows
    model: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class ProbePlan:
    """How texts are probed, and the text of the bar's task where the maps are fitted on that."""

    how: How
    rows: LayerRows | None = field(default=None)

    @property
    def code(self) -> str:
        """The arguments of `How` in code."""
        metric = "" if self.how.metric == METRICS[0] else f", metric={self.how.metric!r}"
        return f"How({self.how.classifier!r}, fit={self.how.fit!r}{metric})"


def choose(data: LabelledTexts, chosen: Workspace, opened: Opened) -> ProbePlan:
    """Choose the classifier, what the whitening is fitted on, and a distance."""
    left, right = st.columns([3, 2])
    with left:
        classifier = choice(
            "Classifier",
            [name for name in CLASSIFIERS if data.pairs or name != "threshold"],
            "knn" if usual(data) == "linear" else usual(data),
            key=f"classifier-{'pairs' if data.pairs else data.layout}",
            bind="query-params",
            format_func=CLASSIFIERS.get,
            help="Nearest neighbours (k = 5) and logistic regression as in W-MSE; SentEval's protocol as in "
            "WhitenedCSE's Table 2, slow on large data; a cosine threshold of 0.5 as in WhiteningBERT's Table 3.",
        )
    trained = (1 + data.pairs) * (len(data.rows("train")) or data.n_rows)  # texts
    scored_alone = classifier == "threshold" and not len(data.rows("train"))
    with right:
        fit, own = fitted_on(
            "probe-fit",
            FITS | ({"train": "The scored pairs' texts"} if scored_alone else {}),
            trained,
            chosen,
            opened,
            "The training texts: what a classifier may know; in cross-validation each fold has a map of its own. "
            "All texts: also those that are scored, without their labels. Or the sentences of the bar's task.",
        )
    metric = METRICS[0]
    if classifier == "knn":
        metric = choice(
            "Distance",
            METRICS,
            key="metric",
            bind="query-params",
            format_func=str.capitalize,
            help="W-MSE takes the Euclidean distance of vectors as they are.",
        )
    return ProbePlan(How(classifier, fit=fit, metric=metric), opened.rows if own else None)


def open_texts(chosen: Workspace, data: LabelledTexts) -> Texts | None:
    """The embeddings of labelled texts under the workspace's model; None after drawing the job that makes them."""

    def work(progress: Progress) -> Texts:
        encoder = chosen.encoder()
        space, report = probes.embed_texts(encoder, data, chosen.setting.pooling, store=Store(), progress=progress)
        cut = (cut_note(report.truncated, "text", encoder.max_length),) if report.truncated else ()
        return Texts(data, space, encoder.name, report.notes + cut)

    texts = shelved_texts(chosen, data, labelled_texts.is_upload(), work, key="texts")
    if texts is not None:
        note(*texts.notes)
    return texts


def probed(texts: Texts, settings: Sequence[Setting], plan: ProbePlan, place: str) -> Job:
    """The score of each setting as a job that grows score by score; each is shared with every other place."""
    return study_each(_scored, texts, settings, plan.how, plan.rows, title="Probing", place=place)


def _scored(texts: Texts, setting: Setting, how: How, rows: LayerRows | None, progress: Progress) -> ProbeScore:
    score = probes.tried_probe(texts.space, texts.data, setting, how, texts.model, rows, progress)
    return probes.with_published(score, texts.space.n_layers, texts.data, how)


# ---------------------------------------------------------------------------------------------------- pictures


def accuracies(scores: Sequence[ProbeScore]) -> None:
    """Accuracy before and after, what chance gives, and whether the gap could be chance."""
    if len(scores) < 2:
        return
    raw, white = scores
    if raw.accuracy is None or white.accuracy is None:
        st.error(plain(raw.reason or white.reason))
        return
    p = mcnemar(raw.hits, white.hits)
    gained, lost = int((white.hits & ~raw.hits).sum()), int((raw.hits & ~white.hits).sum())
    gap, above = white.accuracy - raw.accuracy, white.accuracy - white.baseline
    st.markdown(verdict(LABELS.inline(white.setting.whitening), gap, above, p, gained, lost) + _at_best(raw, white))
    title = "Accuracy, {}".format
    help = f"{capitalised(layers_in_words(white.setting.layers))}. {white.protocol}"
    delta, good = change(white.accuracy, raw.accuracy), "either" if p >= LEVEL or gap > 0 >= above else "up"
    below, within = (f"95 %: {interval(one.low, one.high, digits=1)}" for one in scores)
    headlines(
        Metric(title("raw"), number(raw.accuracy), below, help=help),
        Metric(title(LABELS.card(white.setting)), number(white.accuracy), delta, good, help, within),
        Metric(
            "Most frequent class",
            number(raw.baseline),
            f"{quantity(raw.scored, 'row')} scored",
            help="The accuracy of always saying the class that is most frequent among the training rows.",
        ),
        Metric(
            "p of the gap",
            bare(p_value(p)),
            f"{quantity(gained, 'row')} gained, {spaced(lost)} lost",
            help="Two-sided exact McNemar test: had whitening no effect, how often a gap at least this large would "
            "appear.",
        ),
    )
    if white.starved:
        st.warning(too_few(white.setting.whitening, white.rank, white.dim), icon=":material/warning:")


def verdict(name: str, gap: float, above: float, p: float, gained: int, lost: int) -> str:
    """What the gap of `name` from raw says, by McNemar's test at `LEVEL`; it stands `above` the most frequent class."""
    rows = f"{quantity(gained, 'row')} gained and {spaced(lost)} lost, {p_value(p)}"
    if p >= LEVEL:
        return f"**No proof of a gap.** {gap:+.2f} points with {name} against raw may be chance: {rows}."
    if gap > 0 >= above:
        return (
            f"**It helps no further than a guess.** {gap:+.2f} points with {name} against raw: {rows}. But always "
            "saying the most frequent class is right at least as often."
        )
    word = "helps" if gap > 0 else "hurts"
    return f"**It {word} this classifier.** {gap:+.2f} points with {name} against raw, more than chance gives: {rows}."


def _at_best(raw: ProbeScore, white: ProbeScore) -> str:
    """What is left of the gap where each has the threshold that suits it; empty where there is none to choose."""
    if raw.pairs is None or white.pairs is None:
        return ""
    own, other = raw.pairs.best_accuracy, white.pairs.best_accuracy
    return (
        f" The threshold is {raw.pairs.threshold:g} for both, and their cosines lie elsewhere: at the best threshold "
        f"of each on {raw.pairs.chosen_on}, the gap is {other - own:+z.2f} points, {other:.2f} against {own:.2f}."
    )


def by_layer(scores: Sequence[ProbeScore], n_layers: int) -> None:
    """Accuracy by layer, as far as it is known; nothing where it is of none."""
    if all(score.accuracy is None for score in scores):
        return
    specs = dict.fromkeys(score.setting.whitening for score in scores)
    curves = {
        spec: {score.setting.layers[0]: vars(score) for score in scores if score.setting.whitening == spec}
        for spec in specs
    }
    baseline = next((score.baseline for score in scores if score.baseline is not None), None)
    names = ("accuracy", "low", "high", "resamples", "scored")
    titles = LABELS.titles(score.setting for score in scores)
    chart(
        figures.accuracy_by_layer(curves, titles, n_layers, baseline),
        "accuracy",
        lambda: [
            {"layer": score.setting.layers[0], "whitening": score.setting.whitening}
            | {name: record[name] for name in names}
            for score in scores
            for record in (score.as_dict(),)
        ],
    )


def mistakes(scores: Sequence[ProbeScore], data: LabelledTexts, layers: str) -> None:
    """Raw and whitened side by side: confusion, and the cosines of pairs; nothing where neither could be probed."""
    if all(score.accuracy is None for score in scores):
        return
    st.header("Where would the threshold have to be?" if scores[0].pairs else "What is taken for what?")
    for column, score in zip(st.columns(2), scores, strict=True):
        if score.accuracy is None:
            continue
        spec, name, pairs = score.setting.whitening, LABELS.at(score.setting), score.pairs
        words = f"{data.title}, {name}, {layers}"
        with column:
            st.markdown(f"**{name}**")
            if pairs is None:
                chart(figures.confusion(score.confusion, score.classes, words), f"confusion-{spec}")
                continue
            yes = data.classes[data.positive]
            (no,) = set(score.classes) - {yes}  # of more than two, all others together
            levels = (pairs.threshold, pairs.best_threshold)
            figure = figures.cosines_by_label(score.cosines, score.matches, (no, yes), *levels, words)
            chart(figure, f"cosines-{spec}")
            st.caption(
                f"{score.accuracy:.2f} % right at {pairs.threshold:g}, {pairs.best_accuracy:.2f} % at "
                f"{pairs.best_threshold:.3f}, the best threshold on {pairs.chosen_on}; average precision "
                f"{pairs.average_precision:.2f}."
            )


def more(texts: Texts, pooling: str, plan: ProbePlan, of: str) -> tuple[Setting, ...]:
    """More settings side by side, as a visitor types them, once unfolded; `of` says what is probed."""
    lines = DEFAULT.replace(";", "\n")
    unfolded = {"icon": ":material/table_rows:", "on_change": "rerun", **linked("more", False)}
    with st.expander("More settings side by side", **unfolded) as place:
        text = st.text_area(  # drawn folded, too, or what was typed would be gone
            "Settings, one a line",
            lines,
            **linked("probe-settings", lines),
            height=120,
            help="Such as L6, or L1+L-1:pca@128: layers to average (L-1 is the last), whitening, k; `L*:pca` is each "
            "layer in turn. In the bar's pooling.",
        )
        if not place.open:
            return ()
        if wanted := _typed(text, pooling, texts.space.n_layers):
            follow(
                probed(texts, wanted, plan, "probe-more"),
                table,
                key="probe-more",
                of=of,
                caption=lambda scores: f"{len(scores)} settings. {scores[0].protocol}",
                room=180,
            )
    return wanted


def _typed(text: str, pooling: str, n_layers: int) -> tuple[Setting, ...]:
    """The settings of a text, in the workspace's pooling; none after saying what is wrong with it."""
    try:
        typed = parse_settings(text.replace("\n", ";"), n_layers)
        usual = Setting().pooling  # that of a line that names none
        if other := [str(one) for one in typed if one.pooling not in (usual, pooling)]:
            raise ValueError(f"setting={other[0]!r} must be in the bar's pooling, {pooling}, which the texts have")
    except ValueError as error:
        st.error(plain(str(error)))
        return ()
    return tuple(setting.with_(pooling=pooling) for setting in typed)


def table(scores: Sequence[ProbeScore]) -> None:
    """Settings side by side, the best marked of those whose map is not starved."""
    records = [_record(score) for score in scores]
    numbers = [name for name in dict.fromkeys(key for row in records for key in row) if name not in ("Setting", "Why")]
    marked = [name for name in numbers if name in ("Accuracy", "Best accuracy", "Average precision", "F1", "Best F1")]
    rounded_table(
        records,
        {name: st.column_config.NumberColumn(format="%.3f" if name == "at" else "%.2f") for name in numbers},
        alt="Settings with their accuracies and intervals",
        best=dict.fromkeys(marked, [not score.starved for score in scores]),
        height=heights.table(max(len(records), 1)),
        placeholder="-",
    )
    csv_button(lambda: records, "settings")


def _record(score: ProbeScore) -> dict:
    """A score as a row of the table."""
    row = {"Setting": str(score.setting), "Accuracy": score.accuracy, "Low": score.low, "High": score.high}
    if score.f1 is not None:
        row["F1"] = score.f1
    if score.pairs is not None:
        row |= {
            "Best accuracy": score.pairs.best_accuracy,
            "at": score.pairs.best_threshold,
            "Average precision": score.pairs.average_precision,
            "Best F1": score.pairs.best_f1,
        }
    if score.published is not None:
        row["Published"] = score.published.value
    return row | ({"Why": score.reason} if score.reason else {})
