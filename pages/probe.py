"""Classification beyond STS, by layer, raw against whitened."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from whitelab import figures
from whitelab.probe import CLASSIFIERS, DEFAULT, FITS, How, ProbeScore, usual
from whitelab.probe.classifiers import METRICS, mcnemar
from whitelab.scoring.setting import Setting, parse_settings
from whitelab.ui.results import cache
from whitelab.ui.results.jobs import follow
from whitelab.ui.sections import labelled_texts
from whitelab.ui.widgets import frame

EXAMPLE = "Example written for this project, not a published benchmark."
WORKSPACE = "workspace"
ROOM = 400  # pixels of the chart, kept free while there is none

chosen, opened = frame.open_page(
    "Does whitening help beyond STS?",
    "Look at which layer reads what best, and at the gap between raw and whitened: what helps cosines need not help a "
    "classifier.",
)
frame.need_a_model(
    chosen,
    opened,
    "A probe embeds labelled texts, and vectors come without a model that could. Choose other data in the bar to probe a model.",
)
names, variant = frame.labels(), chosen.compared
with st.container(key="controls"):
    data = labelled_texts.choose()
    if data is None:
        st.stop()
    offered = [name for name in CLASSIFIERS if data.pairs or name != "threshold"]
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with left:
        classifier = st.segmented_control(
            "Classifier",
            offered,
            default="knn" if usual(data) == "linear" else usual(data),
            key=f"classifier-{'pairs' if data.pairs else data.layout}",
            required=True,
            format_func=lambda name: CLASSIFIERS[name],
            help="Nearest neighbours (k = 5) and logistic regression as in W-MSE; SentEval's protocol as in WhitenedCSE's "
            "Table 2, slow on large data; a cosine threshold of 0.5 as in WhiteningBERT's Table 3.",
        )
    trained = len(data.rows("train")) or data.n_rows
    scored_alone = classifier == "threshold" and not len(data.rows("train"))
    scopes = FITS | ({"train": "The scored pairs' texts"} if scored_alone else {})
    scopes |= {WORKSPACE: f"The sentences of {opened.pairs.task}"}
    with right:
        fit = st.selectbox(
            "Whitening fitted on",
            list(scopes),
            # Fewer texts than dimensions leave nothing but equal distances.
            index=list(scopes).index("train" if trained > 2 * opened.space.dim or data.pairs else WORKSPACE),
            key=f"fit-{data.fingerprint[:12]}",
            format_func=lambda name: scopes[name],
            help="The training texts: what a classifier may know; in cross-validation each fold has a map of its own. "
            "All texts: also those that are scored, without their labels. Or the sentences of the bar's task.",
        )
    metric = "euclidean"
    if classifier == "knn":
        metric = st.segmented_control(
            "Distance",
            METRICS,
            default="euclidean",
            key="metric",
            required=True,
            format_func=str.capitalize,
            help="W-MSE takes the Euclidean distance of vectors as they are.",
        )
own = fit == WORKSPACE
how = How(
    classifier or "knn",
    fit=f"the sentences of {opened.pairs.task}" if own else fit or "train",
    metric=metric or METRICS[0],
)
for note in data.notes:
    st.caption(f"Note: {note}")
texts = cache.open_texts(chosen, data)
if texts is None:
    st.stop()


def setting(layers: Sequence[int], spec: str) -> Setting:
    """A setting in the workspace's pooling, with its k where the variant takes one."""
    return Setting(chosen.pooling, tuple(layers), spec, chosen.k_for(spec))


def extra_settings() -> tuple[Setting, ...]:
    """What was typed in the table's box."""
    typed = st.session_state.get("probe-settings", DEFAULT)
    try:
        return tuple(replace(one, pooling=chosen.pooling) for one in parse_settings(typed.replace("\n", ";")))
    except ValueError as error:
        st.error(str(error))
        return ()


# The workspace's layers

here = (setting(chosen.layers, "none"), setting(chosen.layers, variant))
layers_named = "layer " * (len(chosen.layers) == 1) + "layers " * (len(chosen.layers) > 1)
layers_named += " + ".join(map(str, chosen.layers))


def span(low: float, high: float) -> str:
    """An interval in words."""
    return f"95 %: {low:.1f} to {high:.1f}"


def headlines(scores: Sequence[ProbeScore]) -> None:
    """Accuracy before and after, what chance gives, and whether the gap could be chance."""
    raw, white = (next((one for one in scores if one.setting == wanted), None) for wanted in here)
    if raw is None or white is None:
        return
    if raw.accuracy is None or white.accuracy is None:
        st.error(raw.reason or white.reason)
        return
    columns = st.columns(4)
    for column, one in zip(columns[:2], (raw, white), strict=True):
        column.metric(
            f"Accuracy, {names.inline(one.setting.whitening)}",
            frame.number(one.accuracy),
            delta=span(one.low, one.high) if one is raw else f"{white.accuracy - raw.accuracy:+.2f}",
            delta_color="off" if one is raw else "normal",
            delta_arrow="off" if one is raw else "auto",
            delta_description=None if one is raw else span(one.low, one.high),
            border=True,
            height="stretch",
            help=f"{layers_named.capitalize()}. {one.protocol}",
        )
    columns[2].metric(
        "Most frequent class",
        frame.number(raw.baseline),
        delta=f"{frame.spaced(raw.rows)} rows scored",
        delta_color="off",
        delta_arrow="off",
        border=True,
        height="stretch",
        help="The accuracy of always saying the class that is most frequent among the training rows.",
    )
    p = mcnemar(raw.hits, white.hits)
    gained, lost = int((white.hits & ~raw.hits).sum()), int((raw.hits & ~white.hits).sum())
    columns[3].metric(
        "p of the gap",
        f"{p:.3f}" if p >= 0.001 else f"{p:.0e}",
        delta=f"{gained} rows gained, {lost} lost",
        delta_color="off",
        delta_arrow="off",
        border=True,
        height="stretch",
        help="Two-sided exact McNemar test: had whitening no effect, how often a gap at least this large would appear.",
    )
    if white.starved:
        st.warning(
            f"The map was fitted on {frame.spaced(white.fitted)} texts, which span {white.rank} of {white.dim} "
            "dimensions. It then sets these texts at equal distances from each other. Keep fewer dimensions (k in the "
            "bar) or fit on more text.",
            icon=":material/warning:",
        )


now = cache.probed(texts, here, how, opened if own else None, "probe-here")
by_layer = [setting((layer,), spec) for layer in range(texts.space.n_layers) for spec in ("none", variant)]
wide = cache.probed(texts, by_layer, how, opened if own else None, "probe-layers")
shown = follow(
    now, headlines, key="probe-here", of=texts.key, note=lambda found: f"{data.title}, {layers_named}.", room=150
)

# Every layer

st.subheader("Which layer reads it best?")


def layer_chart(scores: Sequence[ProbeScore]) -> None:
    """Accuracy by layer, as far as it is known."""
    curves = {
        spec: {one.setting.layers[0]: vars(one) for one in scores if one.setting.whitening == spec}
        for spec in ("none", variant)
    }
    baseline = next((one.baseline for one in scores if one.baseline is not None), None)
    frame.chart(
        figures.accuracy_by_layer(curves, names, texts.space.n_layers, baseline),
        "accuracy",
        lambda: [
            {"layer": one.setting.layers[0], "whitening": one.setting.whitening}
            | {name: getattr(one, name) for name in ("accuracy", "low", "high", "rows")}
            for one in scores
        ],
    )


follow(
    wide,
    layer_chart,
    key="probe-layers",
    of=texts.key,
    note=lambda found: (
        "Every layer alone; whiskers are 95 % Wilson intervals, the dotted line the most frequent class."
    ),
    room=ROOM,
)

# What is mistaken for what


def record(one: ProbeScore) -> dict:
    """A score as a row of the table."""
    row = {"Setting": str(one.setting), "Accuracy": one.accuracy, "Low": one.low, "High": one.high}
    if one.f1 is not None:
        row["F1"] = one.f1
    if one.pairs is not None:
        row |= {
            "Best accuracy": one.pairs.best_accuracy,
            "at": one.pairs.best_threshold,
            "Average precision": one.pairs.average_precision,
            "Best F1": one.pairs.best_f1,
        }
    if one.published is not None:
        row["Published"] = one.published.value
    return row | ({"Why": one.reason} if one.reason else {})


def table(scores: Sequence[ProbeScore]) -> None:
    """Settings side by side, the best marked."""
    records = [record(one) for one in scores]
    numbers = [name for name in dict.fromkeys(key for row in records for key in row) if name not in ("Setting", "Why")]
    marked = [name for name in numbers if name in ("Accuracy", "Best accuracy", "Average precision", "F1", "Best F1")]
    st.dataframe(
        cache.marked_best(records, marked),
        hide_index=True,
        height=38 + 35 * max(len(records), 1),
        column_config={
            name: st.column_config.NumberColumn(format="%.3f" if name == "at" else "%.2f") for name in numbers
        },
        placeholder="-",
    )


def mistakes(scores: Sequence[ProbeScore]) -> None:
    """Raw and whitened side by side: confusion, and the cosines of pairs."""
    for column, one in zip(st.columns(2), scores, strict=True):
        if one.accuracy is None:
            continue
        title = names[one.setting.whitening]
        words = f"{data.title}, {title}, {layers_named}"
        with column:
            st.markdown(f"**{title}**")
            if one.pairs is not None:
                sides = (data.classes[1 - data.positive], data.classes[data.positive])
                frame.chart(
                    figures.cosines_by_label(
                        one.cosines, one.matches, sides, one.pairs.threshold, one.pairs.best_threshold, words
                    ),
                    f"cosines-{one.setting.whitening}",
                )
                st.caption(
                    f"{one.accuracy:.2f} % right at {one.pairs.threshold:g}, {one.pairs.best_accuracy:.2f} % at "
                    f"{one.pairs.best_threshold:.3f}, the best threshold on {one.pairs.chosen_on}; average precision "
                    f"{one.pairs.average_precision:.2f}."
                )
            else:
                frame.chart(figures.confusion(one.confusion, one.classes, words), f"confusion-{one.setting.whitening}")


if shown:
    st.subheader("Where would the threshold have to be?" if shown[0].pairs else "What is taken for what?")
    mistakes(shown)

with st.expander("More settings side by side", icon=":material/table_rows:"):
    st.text_area(
        "Settings, one a line",
        DEFAULT.replace(";", "\n"),
        key="probe-settings",
        height=120,
        help="L1+L-1[:variant[@k]]: layers to average (L-1 is the last), whitening, k. In the workspace's pooling.",
    )
    wanted = extra_settings()
    if wanted:
        more = cache.probed(texts, wanted, how, opened if own else None, "probe-more")
        follow(
            more,
            table,
            key="probe-more",
            of=texts.key,
            note=lambda found: f"{len(found)} settings. {found[0].protocol}",
            room=180,
        )

corpus = ", corpus=LayerRows(space.values, space.counts)" if own else ""
pooling = "" if chosen.pooling == "mean" else f', "{chosen.pooling}"'
arguments = f"{how.classifier!r}, fit={how.fit!r}" + ("" if how.metric == METRICS[0] else f", metric={how.metric!r}")
if shown and shown[-1].protocol:
    st.caption(f"{shown[-1].protocol} · {data.source} · {frame.spaced(shown[-1].rows)} rows scored")
if data.layout == "demo":
    st.caption(EXAMPLE)
frame.close_page(
    opened,
    cache.score(opened.key, chosen.protocol(opened.pairs.source)),
    [
        (
            r"\hat y(x)=\operatorname{majority}\{y_i : i\in N_5(x)\},\qquad N_5\text{ by }\lVert x-x_i\rVert",
            "Ermolov et al. 2021 (W-MSE), section 4: k-nn with k = 5; ties go to the smallest label",
        ),
        (
            r"\min_W\ \tfrac{1}{2C}\lVert W\rVert^2-\sum_i\log\operatorname{softmax}(Wx_i+b)_{y_i}",
            "Logistic regression. SentEval chooses C inside the training rows; pairs are seen as |u - v| and u v. Published "
            "numbers come from SentEval's PyTorch classifier and differ by tenths",
        ),
        (
            r"\hat y=\mathbb{1}[\cos(u,v)\ge 0.5]",
            "Huang et al. 2021 (WhiteningBERT), appendix A.2",
        ),
    ],
    "A frozen model turns each text into a vector; a simple classifier then shows what can be read from it. A classifier "
    "with weights of its own can undo any invertible map, so whitening changes its score only through the penalty on large "
    "weights and through the directions it drops. Neighbours and fixed thresholds have no weights: for them the shape of "
    "the space decides.",
    frame.preamble(chosen)
    + "\nfrom whitelab.scoring.setting import Setting\n"
    + ("from whitelab.encoding.embeddings import LayerRows\n" if own else "")
    + "from whitelab.probe import How, embed_texts, probe\n\n"
    + f"data = {labelled_texts.code(data)}\n"
    + f"texts = embed_texts(encoder, data{pooling}, store=whitelab.Store())\n"
    + f"for setting in {tuple(map(str, here))!r}:\n"
    + f"    score = probe(texts, data, Setting.parse(setting), How({arguments}){corpus})\n"
    + "    print(setting, score.accuracy, score.low, score.high, score.protocol)\n",
)
