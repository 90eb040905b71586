"""Classification beyond STS, by layer, raw against whitened."""

import streamlit as st

from whitelab.base.wording import layers_in_words, plain, quantity
from whitelab.datasets import DEMO
from whitelab.figures import heights
from whitelab.ui.frame.page import close_page, need_a_model, open_page
from whitelab.ui.frame.recipe import pooling
from whitelab.ui.results.jobs import follow
from whitelab.ui.results.study import named
from whitelab.ui.sections import labelled_texts, probing
from whitelab.ui.widgets.chart import data_of

chosen, opened = open_page(
    "Does whitening help beyond STS?",
    "Look at which layer reads what best, and at the gap between raw and whitened: what helps cosines need not help a "
    "classifier.",
    of_pairs=False,
)
need_a_model(
    chosen,
    opened,
    "A probe embeds labelled texts, and vectors come without a model that could. Choose other data in the bar to probe "
    "a model.",
)
compared = chosen.compared.with_(aggregate="all", fit="task")  # a probe has neither
with st.container(key="controls"):
    data = labelled_texts.choose()
    if data is None:
        st.stop()
    plan = probing.choose(data, chosen, opened)
texts = probing.open_texts(chosen, data)
if texts is None:
    st.stop()

data_of(setting=compared.with_(fit=plan.how.fit), model=texts.model, task=data.task, classifier=plan.how.classifier)
here = (compared.raw, compared)
layers = layers_in_words(compared.layers)
by_layer = [one.with_(layers=(layer,)) for layer in range(texts.space.n_layers) for one in here]
now, wide = probing.probed(texts, here, plan, "probe-here"), probing.probed(texts, by_layer, plan, "probe-layers")
of = f"{named(texts)} {plan.how}"
shown = follow(
    now,
    probing.accuracies,
    key="probe-here",
    of=of,
    caption=lambda scores: f"{plain(data.title)}, {layers}.",
    room=150,
)
st.header("Which layer reads it best?")
follow(
    wide,
    lambda scores: probing.by_layer(scores, texts.space.n_layers),
    key="probe-layers",
    of=of,
    caption=lambda scores: (
        "Every layer alone; whiskers are 95 % Wilson intervals, the dotted line the most frequent class."
    ),
    room=heights.CURVES,
)
if shown:
    probing.mistakes(shown, data, layers)
more = tuple(map(str, probing.more(texts, compared.pooling, plan, of)))
typed = f"others += [whitelab.Setting.parse(text) for text in {more!r}]\n" if more else ""
if shown and shown[-1].protocol:
    st.caption(f"{plain(shown[-1].protocol)} · {plain(data.source)} · {quantity(shown[-1].scored, 'row')} scored")
if data.layout == DEMO:
    st.caption(probing.EXAMPLE)

close_page(
    chosen,
    opened,
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
    "from whitelab.probe import How, embed_texts, tried_probe\n"
    "from whitelab.probe.classifiers import mcnemar\n\n"
    f"data = {labelled_texts.code(data)}\n"
    f"texts, report = embed_texts(encoder, data{pooling(chosen)}, store=whitelab.Store())\n"
    f"rows = {'whitelab.LayerRows(space.values, space.counts)' if plan.rows else None}\n"
    f"settings = [whitelab.Setting.parse(text) for text in {tuple(map(str, here))!r}]\n"
    "others = [one.with_(layers=(layer,)) for layer in range(texts.n_layers) for one in settings]\n"
    f"{typed}"
    "raw, white, *rest = (\n"
    f"    tried_probe(texts, data, one, {plan.code}, encoder.name, rows) for one in (*settings, *others)\n"
    ")\n"
    "for one in (raw, white, *rest):\n"
    "    print(one.setting, one.accuracy, one.low, one.high, one.baseline, one.f1, one.pairs)\n"
    "    print(one.reason or one.protocol)\n"
    "if raw.hits is not None and white.hits is not None:\n"
    "    print(mcnemar(raw.hits, white.hits))\n",
)
