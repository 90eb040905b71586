"""Which layers to average."""

import streamlit as st

from whitelab import datasets, figures
from whitelab.sweeps.layer_pairs import LayerPairs
from whitelab.sweeps.layer_subsets import COUNTED, LayerSubset, SubsetSearch
from whitelab.ui.results import cache
from whitelab.ui.results.jobs import follow, known, redraw, wait
from whitelab.ui.widgets import frame
from whitelab.whitening import variant as variant_of

ROWS = 20  # subsets in the ranking
ROOM = 1140  # pixels of a search's pictures, kept free while there are none

chosen, opened = frame.open_page(
    "Which layers should be averaged?",
    "Look for the star, the best pair of layers, and further down for whether more layers do better. "
    "Click a cell, a point or a line to take its layers into the workspace.",
)
labels, variant = frame.labels(), chosen.compared
base, n_layers = chosen.protocol(opened.pairs.source), opened.space.n_layers
now = cache.score(opened.key, base)
pair_jobs = {
    spec: cache.layer_pairs(opened.key, spec, chosen.k_for(spec), chosen.aggregate, chosen.fit, place)
    for spec, place in (("none", "raw-pairs"), (variant, "whitened-pairs"))
}
places = dict(zip(pair_jobs, ("raw-pairs", "whitened-pairs"), strict=True))


def named(layers: tuple[int, ...]) -> str:
    """`1 + 6`, or `6` for a layer alone."""
    return " + ".join(map(str, dict.fromkeys(layers)))


def titled(spec: str, k: int | None) -> str:
    """A variant with its k."""
    return labels[spec] + (f", k = {k}" if k else "")


def best_metric(label: str, found: LayerPairs | SubsetSearch | None, words: str = "") -> None:
    """The best of a map or search; dots while there is none."""
    best = found and found.best
    st.metric(
        label,
        named(best.layers) if best else "undefined" if found else "…",
        delta=f"Spearman {best.spearman:.2f}{words}" if best else None if found else "being scored",
        delta_color="off",
        delta_arrow="off",
        border=True,
        height="stretch",
    )


def taken(key: str) -> None:
    """Take the layers of what was clicked into the workspace."""
    points = st.session_state[key].selection.points
    if points:
        take(points[0]["customdata"])


def take(layers) -> None:
    """Move the workspace's layers."""
    st.session_state["layers"] = sorted(set(layers))
    redraw()


headline = st.columns(4)

# Every pair

drawn = {spec: known(job, places[spec], opened.key) for spec, job in pair_jobs.items()}
values = [cell.spearman for found in drawn.values() if found for cell in found.cells if cell.spearman is not None]
scale = (min(values), max(values)) if values else None


def draw_pairs(found: LayerPairs) -> None:
    """The map, and its numbers to download."""
    key = f"pairs-{found.whitening}"
    frame.chart(
        figures.pair_heatmap(
            {cell.layers: cell.spearman for cell in found.cells},
            n_layers,
            found.best.layers if found.best else None,
            chosen.layers,
            scale,
        ),
        key,
        lambda: [
            {"layer_i": c.layers[0], "layer_j": c.layers[1], "spearman": c.spearman, "rank": c.rank}
            for c in found.cells
        ],
        on_select=lambda: taken(key),
    )


pairs = {}
for column, (spec, job) in zip(st.columns(2), pair_jobs.items(), strict=True):
    with column:
        st.subheader(titled(spec, chosen.k_for(spec)))
        pairs[spec] = follow(
            job,
            draw_pairs,
            key=places[spec],
            of=opened.key,
            note=lambda found: "Every pair of layers, " + (f"the top {found.k}" if found.k else "all") + " dimensions.",
            room=556,
        )
st.caption(
    "Spearman x 100 of the average of two layers; on the diagonal a layer alone. Both maps share one colour scale; the "
    "right one keeps the workspace's k. The star marks the best pair, the frame the workspace's layers."
)

# Every subset

st.subheader("Would more layers do better?")
st.markdown(
    "Every subset of the layers, averaged and scored: WhiteningBERT's Figure 2 in full. Look at where the curve stops rising."
)
tasks = datasets.discover(chosen.data)
with st.container(horizontal=True, vertical_alignment="bottom"):
    searched = st.segmented_control(
        "Search under",
        ["raw", "whitened"],
        default="raw",
        key="searched",
        bind="query-params",
        required=True,
        format_func={"raw": labels["none"], "whitened": "The workspace's variant"}.get,
        help="Without whitening every subset costs one row of a matrix product. With it each needs a factorisation of "
        "its own, so larger subsets are searched with a beam.",
    )
    average = len(tasks) > 1 and st.toggle(
        f"Average over all {len(tasks)} tasks of this data",
        key="average",
        bind="query-params",
        disabled=chosen.fit == "splits" and searched == "whitened",
        help="Embeds the other tasks first. A subset's score is then the plain mean of the tasks' Spearman, each task "
        "with the workspace's aggregate over its own subsets. Not where a map is fitted on all splits of one task.",
    )
spec = variant if searched == "whitened" else "none"
over = f"{len(tasks)} tasks" if average else opened.pairs.task


def rows_of(best: LayerSubset) -> dict:
    """A subset as a row of a table."""
    return {"place": best.place, "layers": named(best.layers), "spearman": best.spearman}


def draw_search(found: SubsetSearch) -> None:
    """The curve by size, how often each layer is needed, the ranking, and the tasks' own best."""
    searches = [one for one in ((raw_found if found.whitening != "none" else None), found) if one]
    left, right = st.columns([3, 2])
    with left:
        frame.chart(
            figures.size_curves(
                {
                    one.whitening: {n: (s.layers, s.spearman) for n, s in one.ranking.best_by_size.items()}
                    for one in searches
                },
                {one.whitening: titled(one.whitening, one.k) for one in searches},
                n_layers,
            ),
            "size-curve",
            lambda: [
                {"whitening": one.whitening, "k": one.k, "size": n} | rows_of(s)
                for one in searches
                for n, s in one.ranking.best_by_size.items()
            ],
            on_select=lambda: taken("size-curve"),
        )
    with right:
        counts = found.ranking.layer_counts
        among = min(COUNTED, len(found.ranking.top))
        frame.chart(
            figures.layer_counts(counts, among),
            "layer-counts",
            lambda: [{"layer": layer, "among_the_best": count} for layer, count in enumerate(counts)],
        )
    top, lines = found.ranking.top[:ROWS], min(ROWS, 2**n_layers - 1)
    frame.chart(
        figures.subset_ranking([(s.layers, s.spearman, s.place) for s in top], n_layers, chosen.layers, lines),
        "subset-ranking",
        lambda: [rows_of(s) | dict(zip(found.tasks, s.tasks, strict=True)) for s in found.ranking.top],
        on_select=lambda: taken("subset-ranking"),
    )
    best = found.best
    if best:
        st.button(f"Take the best, {named(best.layers)}", on_click=take, args=(best.layers,), key="take-best")
    if len(found.tasks) > 1 and best:
        st.markdown("The best subset of each task, and what the best average costs it.")
        st.dataframe(
            [
                {
                    "task": name,
                    "best layers": named(own.best.layers) if own.best else "undefined",
                    "Spearman x 100": own.best.spearman if own.best else None,
                    f"with {named(best.layers)}": score,
                }
                for (name, own), score in zip(found.tasks.items(), best.tasks, strict=True)
            ],
            hide_index=True,
            column_config={
                name: st.column_config.NumberColumn(format="%.2f")
                for name in ("Spearman x 100", f"with {named(best.layers)}")
            },
        )


def told(found: SubsetSearch) -> str:
    """How many settings were scored, in what time, and whether any was left out."""
    settings = f"{frame.spaced(found.scored)} subsets"
    settings += f" x {len(found.tasks)} tasks" if len(found.tasks) > 1 else ""
    last = next((n for n in range(1, n_layers) if n + 1 not in found.exact_sizes), n_layers)
    kind = "exact" if found.exact else f"exact up to {last} layers, then a beam"
    return f"**{settings}** scored in **{found.seconds:.2f} s**, {kind}."


spaces_key, subsets_found, raw_found = opened.key, None, None
if average:
    gathering = cache.every_task(chosen)
    spaces = wait(gathering, key="tasks", height=ROOM)
    spaces_key = None if spaces is None else cache.joined(gathering.key, opened.key)
if spaces_key is not None:
    settings = (chosen.aggregate, chosen.fit)
    raw_job = cache.subset_search(spaces_key, "none", None, *settings, "raw-subsets")
    job = cache.subset_search(spaces_key, spec, chosen.k_for(spec), *settings, "subsets")
    raw_found = known(raw_job, "raw-subsets", spaces_key)
    subsets_found = follow(job, draw_search, key="subsets", of=spaces_key, note=told, room=ROOM)
    st.caption(
        f"Scores are Spearman x 100 on {over}"
        + (f", the plain mean over the tasks, each with aggregate {chosen.aggregate}. " if average else ". ")
        + (f"Scored: {subsets_found.strategy}. " if subsets_found else "")
        + f"Equal scores share a place. How often a layer is needed is counted among the best {COUNTED} subsets."
    )

with headline[0]:
    best_metric(f"Best pair, {labels['none']}", pairs["none"])
with headline[1]:
    best_metric(f"Best pair, {labels[variant]}", pairs[variant])
with headline[2]:
    best_metric(f"Best subset, {labels[spec]}", subsets_found, f", mean of {over}" if average else "")
with headline[3]:
    frame.score_metric(
        f"Chosen: {named(chosen.layers)}, {labels[chosen.whitening]}",
        now,
        cache.score(opened.key, base.with_(whitening="none", k=None)),
    )

k_argument = f", k={chosen.k_for(variant)}" if chosen.k_for(variant) else ""
search_arguments = "" if spec == "none" else f", variant={variant!r}{k_argument}{frame.fit_arguments(chosen)}"
frame.close_page(
    opened,
    now,
    [
        (
            r"z = \tfrac12\,(h^{(i)} + h^{(j)})",
            "Layer combination: Huang et al. 2021 (WhiteningBERT), section 3.2 and Figure 1",
        ),
        (
            r"a \cdot b = \sum_{i,j} m_i m_j\, a^{(i)} \cdot b^{(j)}, \qquad m \in \{0,1\}^{L+1}",
            "The cosine of any subset m of the layers from Gram matrices between layers, Figure 2 in full",
        ),
        (variant_of(variant).formula, variant_of(variant).source),
    ],
    "Each cell averages two layers of the model and scores the pairs' cosines against gold. Without whitening a cell, and any "
    "larger subset, needs only the small Gram matrices between layers; with it, blocks of the cross-covariance and one "
    "factorisation. So without whitening every subset is scored, for up to 20 layers; with it every layer, pair and triple, and "
    "beyond these each of the best few subsets with each layer added (a beam).",
    frame.preamble(chosen)
    + "\nfrom whitelab import subsets\n\n"
    + f"map_ = whitelab.layer_pairs(space, {variant!r}{k_argument}, how={chosen.aggregate!r}{frame.fit_arguments(chosen)})\n"
    + "print(map_.best)\n"
    + f"found = subsets.search(space, how={chosen.aggregate!r}{search_arguments})\n"
    + "print(found.scored, found.seconds, found.best)\n",
)
