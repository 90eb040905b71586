"""How well documents are found that were judged relevant, raw against whitened."""

import streamlit as st

from whitelab.base.wording import layers_in_words, plain, quantity, spaced
from whitelab.figures import heights
from whitelab.retrieval.metrics import METRICS
from whitelab.retrieval.relevance import retrieval_curve
from whitelab.ui.frame.page import close_page, need_a_model, open_page
from whitelab.ui.frame.recipe import pooling
from whitelab.ui.frame.variants import instead, over_k
from whitelab.ui.results.jobs import follow
from whitelab.ui.results.study import named, study_job
from whitelab.ui.sections import bits, rankings, retrieval_sets, search_meaning, take_away
from whitelab.ui.widgets.chart import data_of
from whitelab.whitening import variant

chosen, opened = open_page(
    "Which setting ranks best, for which queries, and at which k?",
    "Look at whether whitening moves relevant documents up for most queries or only for some, and at which layer: what "
    "helps pairs of sentences need not help a search.",
    of_pairs=False,
)
need_a_model(
    chosen,
    opened,
    "A search embeds documents and queries, and vectors come without a model that could. Choose other data in the bar.",
)
with st.container(key="controls"):
    data = retrieval_sets.choose(chosen.encoder().files)
    if data is None:
        st.stop()
    comparison = rankings.choose(data, chosen, opened)
space = rankings.open_set(chosen, opened, data, comparison)
if space is None:
    st.stop()

compared = comparison.of(chosen.compared)
here = (compared.raw, compared)
data_of(space.space, compared)
curved = over_k(compared).with_(k=None)
layers = layers_in_words(compared.layers)
sizes = f"{quantity(len(data.documents), 'document')}, {quantity(len(data.queries), 'query', 'queries')}"
of = f"{named(space)} {comparison}"
results = follow(
    rankings.ranked(space, here, "ranked-here"),
    lambda found: rankings.standings(found, comparison),
    key="ranked-here",
    of=of,
    caption=lambda found: f"{data.source}, {sizes}, {layers}.",
    room=190,
)
left, right = st.columns(2)
with left:
    st.header("Which layer ranks best?")
    every = [one.with_(layers=(layer,)) for layer in range(space.space.n_layers) for one in here]
    layered = follow(
        rankings.ranked(space, every, "ranked-layers"),
        lambda found: rankings.by_layer(found, comparison, space.space.n_layers),
        key="ranked-layers",
        of=of,
        caption=lambda found: "Every layer alone; whiskers are 95 % intervals from resampled queries.",
        room=heights.room(heights.CURVES),
    )
with right:
    st.header("At which k?")
    raw = results[0].means[comparison.metric] if results else None
    curve = follow(
        study_job(retrieval_curve, space, curved, title="Ranking at every k", unit="queries", place="ranked-k"),
        lambda found: rankings.by_k(found, comparison, compared.k, raw),
        key="ranked-k",
        of=f"{of} {curved}",
        caption=lambda found: (
            f"{instead(compared)}Best k {found.best_k(comparison.metric)}; the smallest within 0.005 of it is "
            f"{found.knee(comparison.metric)}."
        ),
        room=heights.room(heights.CURVES),
    )
bits.draw(space, compared, comparison.metric)
meaning = search_meaning.draw(space, compared)
st.header("For which queries?")
by_query = ""
if results:
    by_query = rankings.by_query(space, results, comparison)
    st.caption(plain(results[-1].line()))
if data.source == "demo-search" and not retrieval_sets.is_upload():
    st.caption(rankings.EXAMPLE)
if results:
    code = rankings.searched_code(data, comparison, pooling(chosen))
    verdict, beaten = rankings.judged(results, comparison), rankings.beaten(results, layered or (), comparison)
    take_away.of_search(chosen, space, compared, code, verdict, beaten)

close_page(
    chosen,
    opened,
    [(METRICS[comparison.metric].formula, f"{comparison.label}. {METRICS[comparison.metric].source}")]
    + [(variant(compared.whitening).formula, variant(compared.whitening).source)],
    "Every document is ranked for every query by the cosine of their embeddings, and the ranking is held against "
    "judgements: a document is relevant where its grade is above 0, and not relevant where nobody judged it. Scores are "
    "means over queries, from 0 to 1. The metrics are those of trec_eval, which BEIR and MTEB use too; of equal cosines "
    "the document whose id comes first stands first, where trec_eval takes the last. A document that is the query itself is left out of its ranking, as in BEIR. Intervals come from "
    f"queries drawn with replacement, the same for both settings (Smucker et al. 2007). Texts are cut at "
    f"{space.space.origin.max_length} tokens: {spaced(space.truncated)} of {quantity(len(data.documents), 'document')} "
    f"and {spaced(space.truncated_queries)} of {quantity(len(data.queries), 'query', 'queries')} are longer. The "
    "prompts typed above stand before queries and documents. A best k found here was chosen on the queries it is scored on.",
    rankings.code(data, here, comparison, curved if curve else None, pooling(chosen))
    + by_query
    + bits.code(compared, "searched", comparison.metric)
    + meaning,
)
