"""How many dimensions are worth keeping."""

import streamlit as st

from whitelab import figures
from whitelab.retrieval import search_cost
from whitelab.sweeps.dimensions import KCurve
from whitelab.ui.results import cache
from whitelab.ui.results.jobs import follow, redraw
from whitelab.ui.widgets import frame
from whitelab.whitening import variant as variant_of

chosen, opened = frame.open_page(
    "How many dimensions are worth keeping?",
    "Look for the point after which the curve is flat: dimensions beyond it cost memory and search time, and buy nothing. "
    "Below, the same for every layer.",
)
space, labels = opened.space, frame.labels()
variant = chosen.compared if variant_of(chosen.compared).takes_k else "pca"
other = "center" if variant != "center" else "pca"
k = chosen.k or space.dim
curve = cache.k_curve(opened.key, chosen.layers, variant, chosen.aggregate, chosen.fit)
rival = cache.k_curve(opened.key, chosen.layers, other, chosen.aggregate, chosen.fit)
base = chosen.protocol(opened.pairs.source, whitening=variant, k=k)
now = cache.score(opened.key, base)
raw = cache.score(opened.key, base.with_(whitening="none", k=None))
size = space.n_sentences * 4

for column, draw in zip(
    st.columns(4),
    (
        lambda: frame.score_metric(f"Spearman at k = {k}", now, raw),
        lambda: st.metric(
            "Best k",
            curve.best_k or "undefined",
            delta=f"Spearman {curve.spearman[curve.best_k - 1]:.2f}" if curve.best_k else None,
            delta_color="off",
            delta_arrow="off",
            border=True,
            height="stretch",
        ),
        lambda: st.metric(
            "Knee",
            curve.knee or "undefined",
            delta="within 0.5 points of the best",
            delta_color="off",
            delta_arrow="off",
            border=True,
            height="stretch",
        ),
        lambda: st.metric(
            "Memory saved",
            f"{100 * (1 - k / space.dim):.0f} %",
            delta=f"{size * k / 2**20:.1f} of {size * space.dim / 2**20:.1f} MiB",
            delta_color="off",
            delta_arrow="off",
            border=True,
            height="stretch",
            help=f"float32 vectors of this task's {frame.spaced(space.n_sentences)} sentences. An exact search reads "
            "the same share of bytes.",
        ),
    ),
    strict=True,
):
    with column:
        draw()


def take(value: int) -> None:
    """Move the workspace's k."""
    st.session_state["k"] = value


with st.container(horizontal=True, vertical_alignment="center"):
    lines = space.n_subsets > 1 and st.toggle("One line for each subset", key="lines", bind="query-params")
    if curve.best_k and variant_of(chosen.whitening).takes_k:
        st.button(f"Take the best k, {curve.best_k}", on_click=take, args=(curve.best_k,))
        st.button(f"Take the knee, {curve.knee}", on_click=take, args=(curve.knee,))
frame.chart(
    figures.k_curves(
        curve.spearman,
        curve.subsets if lines else {},
        variant,
        labels[variant],
        k,
        curve.best_k,
        curve.knee,
        curve.rank,
        raw.spearman,
        (other, "PCA without scaling" if other == "center" else labels[other], rival.spearman),
    ),
    "k-curve",
    lambda: [
        {"k": j, "spearman": s, "explained": e, **{name: v[j - 1] for name, v in curve.subsets.items()}}
        for j, s, e in zip(curve.k, curve.spearman, curve.explained, strict=True)
    ],
)
st.caption(
    f"Move k in the bar at the left. The top {k} directions hold {100 * curve.explained[k - 1]:.1f} % of the variance. "
    f"The rank is {curve.rank} of {curve.dim}"
    + (": above it there is no direction left to keep, so the curve is flat." if curve.rank < curve.dim else ".")
)

# Every layer alone, at every k


def draw_surface(curves: tuple[KCurve, ...]) -> None:
    """The surface of the layers there are so far, and the best k of each."""
    first = curves[0]
    alone = (chosen.layers[0], k) if len(chosen.layers) == 1 and first.whitening == variant else None
    frame.chart(
        frame.kept(
            "k-surface",
            (curves, alone),
            lambda: figures.k_surface(
                [one.spearman for one in curves],
                space.n_layers,
                [one.best_k for one in curves],
                labels[first.whitening],
                alone,
            ),
        ),
        "k-surface",
        lambda: [
            {"layer": one.layers[0], "k": j, "spearman": s}
            for one in curves
            for j, s in zip(one.k, one.spearman, strict=True)
        ],
        on_select=taken,
    )
    st.dataframe(
        [
            {
                "layer": one.layers[0],
                "best k": one.best_k,
                "Spearman at best k": one.spearman[one.best_k - 1] if one.best_k else None,
                "knee": one.knee,
                f"Spearman at d = {one.dim}": one.spearman[-1],
                "rank": one.rank,
            }
            for one in curves
        ],
        hide_index=True,
        height=35 * (space.n_layers + 1) + 3,
        column_config={
            name: st.column_config.NumberColumn(format="%.2f")
            for name in ("Spearman at best k", f"Spearman at d = {space.dim}")
        },
    )


def taken() -> None:
    """Take the layer and k of the clicked cell into the workspace."""
    points = st.session_state["k-surface"].selection.points
    if points:
        layer, clicked = points[0]["customdata"]
        st.session_state["layers"] = [layer]
        if variant_of(chosen.whitening).takes_k:
            st.session_state["k"] = clicked
        redraw()


st.subheader("Does every layer want the same k?")
st.markdown(
    "Each layer alone at every k. Look for layers whose star lies far left: most of their directions only add noise."
)
curves = follow(
    cache.layer_curves(opened.key, variant, chosen.aggregate, chosen.fit, "k-surface"),
    draw_surface,
    key="k-surface-part",
    of=opened.key,
    note=lambda found: (
        f"{labels[variant]}, {len(found)} layers at {space.dim} values of k each: "
        f"{frame.spaced(len(found) * space.dim)} settings."
    ),
    room=184 + 26 * max(space.n_layers, 9) + 35 * (space.n_layers + 1) + 3,
)
st.caption(
    "Spearman x 100. Columns are equally wide and stand for every k at first, then for wider steps; colours start at the lower "
    "quartile of the scores. Stars mark the best k of each layer. Click a cell to take its layer and k."
)

# What a smaller k buys. The costs of every search measured in this session are kept under what it was of.
CORPORA, TOP = (10_000, 100_000, 500_000), 10
ROOM = 686  # pixels of the result, kept free while it is measured
halves = search_cost.default_ks(space.dim)
fits = [n for n in CORPORA if search_cost.bytes_needed(space.dim, n, (*halves, space.dim)) <= search_cost.MAX_BYTES]
sizes = [space.n_sentences] * (space.n_sentences > TOP) + [n for n in fits if n > space.n_sentences]
sizes = sizes or [space.n_sentences]
focus = k if k < space.dim else min(curve.knee or space.dim, max(1, space.dim // 2))
one_map = "task" if chosen.fit == "cross" else chosen.fit  # an index holds the vectors of one map
measured = st.session_state.setdefault("searches", {})


def measure(search: cache.Search) -> None:
    """Ask for a measurement, also of what was measured before."""
    search.forget()
    st.session_state["search"] = search


st.subheader("What does a smaller k buy?")
st.markdown(
    "Su et al. (2021) promise less memory and faster retrieval: measure both with faiss, and how many neighbours stay the same."
)
with st.container(horizontal=True, vertical_alignment="bottom"):
    corpus = st.segmented_control(
        "Vectors to search among",
        sizes,
        default=next((n for n in sizes if n >= 100_000), sizes[-1]),
        key="search-corpus",
        bind="query-params",
        required=True,
        format_func=lambda n: frame.spaced(n) + (" (yours)" if n == space.n_sentences else ""),
        help="Your sentences come first. The rest is drawn from a Gaussian with their mean and covariance.",
    )
    search = cache.Search(
        opened.key, chosen.layers, variant, corpus or sizes[-1], search_cost.default_ks(space.dim, focus), TOP, one_map
    )
    known = (search.key, search.layers, search.variant, search.corpus, search.fit)
    st.button("Measure again" if known in measured else "Measure", on_click=measure, args=(search,), key="measure")
asked = st.session_state.get("search")
waiting = asked is not None and (asked.key, asked.layers, asked.variant, asked.corpus, asked.fit) == known
if waiting:
    costs = cache.searched(asked, "search", ROOM)
    if costs is not None:
        measured[known] = costs
        del st.session_state["search"]
        st.rerun()
costs = None if waiting else measured.get(known)
if costs is not None:
    at, whole = costs.nearest(focus), costs.rows[-1]
    notes = f" (k = {focus} was not measured.)" if at.k != focus else ""
    notes += f" The rank is {costs.rank}: no search stores more columns." if at.columns < at.k else ""
    st.markdown(
        f"At k = {at.k} a search takes **{at.time_ratio:.2f}** of the time and **{costs.memory_ratio(at):.2f}** of the memory of "
        f"k = {whole.k}, and finds **{100 * at.recall:.0f} %** of the same {TOP} neighbours. Of the {TOP} neighbours among the raw "
        f"vectors it finds {100 * at.raw_recall:.0f} %, and k = {whole.k} finds {100 * whole.raw_recall:.0f} %.{notes}"
    )
    records = [costs.record(row) for row in costs.rows]
    frame.chart(figures.search_costs(records, variant, at.k, TOP), "search-costs", lambda: records)
    st.caption(
        f"Measured on {costs.machine.line()}. Exact search, float32, {frame.spaced(costs.corpus)} vectors: "
        f"{frame.spaced(costs.sentences)} are your sentences, the rest is drawn from a Gaussian with their mean and covariance; "
        f"{costs.queries} sentences are queries. Points are medians of single queries, bars their quartiles. In batches: "
        f"{frame.spaced(round(at.queries_per_second))} queries a second at k = {at.k}, "
        f"{frame.spaced(round(whole.queries_per_second))} at k = {whole.k}. Su et al. 2021, section 3.3, expect a speed "
        '"directly proportional to the dimensionality", as the memory is; section 4.4 names both.'
    )

frame.close_page(
    opened,
    now,
    [
        (variant_of(variant).formula, variant_of(variant).source),
        (
            r"\cos_k(a,b)=\frac{\sum_{i\le k} a_i b_i}{\sqrt{\sum_{i\le k} a_i^2\,\sum_{i\le k} b_i^2}}",
            "In the eigenbasis every k is a running sum, so the whole curve costs one projection",
        ),
        (
            r"\text{recall}(k)=\tfrac{1}{10}\,\lvert N_k(q)\cap N_d(q)\rvert",
            "Mean over the queries q of the share of the ten nearest neighbours that stay; a tie with the tenth counts",
        ),
    ],
    "k always means the top-k eigen-directions of the covariance. Whitening variants share one curve, because they differ by a "
    "rotation inside those directions. The knee is the smallest k within 0.5 points of the best. A search among more vectors than "
    "your own meets synthetic ones, drawn from a Gaussian with the mean and covariance of your sentences.",
    frame.preamble(chosen)
    + f"\ncurve = whitelab.k_curve(space, {chosen.layers}, {variant!r}, {chosen.aggregate!r}{frame.fit_arguments(chosen)})\n"
    + "print(curve.best_k, curve.knee, curve.spearman[curve.best_k - 1])\n"
    + f"curves = whitelab.k_curves(space, None, {variant!r}, {chosen.aggregate!r}{frame.fit_arguments(chosen)})\n"
    + "print([(one.best_k, one.knee) for one in curves])\n"
    + (
        f"costs = whitelab.search_costs(space, {chosen.layers}, {variant!r}, corpus={costs.corpus}, top={TOP})\n"
        + "print(costs.rows, costs.machine.line())\n"
        if costs
        else ""
    ),
)
