"""Which layers to average."""

import streamlit as st

from whitelab.base.wording import layer_names
from whitelab.ui.frame.page import close_page, open_page
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.crossed import objection
from whitelab.ui.results.scores import doubt_of, number_of, scored
from whitelab.ui.sections import layer_maps, subset_search
from whitelab.ui.widgets.metric import Metric, score_metric
from whitelab.whitening import variant

chosen, opened = open_page(
    "Which layers should be averaged?",
    "Look for the star, the best one or two layers, and further down for whether more layers do better. "
    "Click a cell, a point or a line to take its layers into the bar.",
    intervals=True,
)
space, compared = opened.space, chosen.compared
headline = st.columns(4)
raw_pairs, pairs = layer_maps.draw(space, compared)
searched = subset_search.draw(chosen, opened)


def best(label: str, result, words: str = "", starved: bool = False) -> Metric:
    """The best of a map or search; dots while there is none, and none of `starved` maps."""
    if not result:
        return Metric(label, "…", "not scored yet")
    if not result.best:
        return Metric(label, "undefined")
    if starved:
        return Metric(label, "none", "every sentence equally far from every other")
    names = layer_names(result.best.layers) + " alone" * (len(set(result.best.layers)) == 1)
    words += ", and others tie with it" * (len(result.equals) > 1)
    return Metric(label, names, f"Spearman {result.best.spearman:.2f}{words}")


metrics = (
    best(f"Best one or two, {LABELS.card(compared.raw)}", raw_pairs),
    best(
        f"Best one or two, {LABELS.card(compared)}",
        pairs,
        starved=bool(pairs) and layer_maps.says_nothing(space, pairs),
    ),
    best(
        f"Best subset, {LABELS.card(searched.setting)}",
        searched.result,
        f", mean of {searched.over}" if searched.average else "",
        number_of(space, searched.setting).starved,
    ),
    score_metric(
        f"Chosen: {layer_names(chosen.setting.layers)}, {LABELS.card(chosen.setting)}",
        scored(space, chosen.setting),
        scored(space, chosen.setting.raw),
        doubt_of(space, chosen.setting),
        objection(space, chosen.setting),
    ),
)
for column, metric in zip(headline, metrics, strict=True):
    with column:
        metric.draw()

close_page(
    chosen,
    opened,
    [
        (
            r"z = \tfrac12\,(h^{(i)} + h^{(j)})",
            "Layer combination: Huang et al. 2021 (WhiteningBERT), section 3.2 and Figure 1",
        ),
        (
            r"a \cdot b = \sum_{i,j} m_i m_j\, a^{(i)} \cdot b^{(j)}, \qquad m \in \{0,1\}^{L+1}",
            "The cosine of any subset m of the layers from Gram matrices between layers, Figure 2 in full",
        ),
        (variant(compared.whitening).formula, variant(compared.whitening).source),
    ],
    "Each cell averages two layers of the model and scores the pairs' cosines against gold. Without whitening a cell, "
    "and any larger subset, needs only the small Gram matrices between layers; with it, blocks of the cross-covariance "
    "and one factorisation. So every subset is scored of up to 20 layers without whitening, of up to 13 with it, or 10 "
    "where only k directions are kept. Of deeper models every layer, pair and triple is, and beyond these each of the "
    "best few subsets with each layer added (a beam).",
    f"for text in {tuple(str(one) for one, found in ((compared.raw, raw_pairs), (compared, pairs)) if found)!r}:\n"
    "    pairs_of_layers = whitelab.layer_pairs(space, whitelab.Setting.parse(text))\n"
    "    print(text, pairs_of_layers.best)\n"
    "    for one in pairs_of_layers.cells:\n"
    "        print(one.layers, one.spearman)\n" + (subset_search.code(chosen, searched) if searched.result else ""),
)
