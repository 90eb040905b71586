"""Which layers to average."""

import streamlit as st

from whitelab import figures
from whitelab.ui import cache, frame
from whitelab.whitening import variant as variant_of

chosen, opened = frame.open_page(
    "Which layers should be averaged?",
    "Look for the star, the best pair of layers, and click any cell to take its layers into the workspace.",
)
labels, variant = frame.labels(), chosen.compared
base = chosen.protocol(opened.pairs.source)
now = cache.score(opened.key, base)
maps = {
    "none": cache.layer_pairs(opened.key, "none", chosen.aggregate, chosen.fit, "raw-pairs"),
    variant: cache.layer_pairs(opened.key, variant, chosen.aggregate, chosen.fit, "whitened-pairs"),
}
if any(found is None for found in maps.values()):
    st.stop()


def named(layers: tuple[int, ...]) -> str:
    """`1 + 6`, or `6` for a layer alone."""
    return " + ".join(map(str, dict.fromkeys(layers)))


def best_metric(column, name: str) -> None:
    """The best pair of one map."""
    best = maps[name].best
    column.metric(
        f"Best layers, {labels[name]}",
        named(best.layers) if best else "undefined",
        delta=f"Spearman {best.spearman:.2f}" if best else None,
        delta_color="off",
        delta_arrow="off",
        border=True,
        height="stretch",
    )


columns = st.columns(3)
best_metric(columns[0], "none")
best_metric(columns[1], variant)
with columns[2]:
    frame.score_metric(
        f"Chosen: {named(chosen.layers)}, {labels[chosen.whitening]}",
        now,
        cache.score(opened.key, base.with_(whitening="none", k=None)),
    )


def picked(key: str) -> None:
    """Take the clicked cell's layers into the workspace."""
    points = st.session_state[key].selection.points
    if points:
        st.session_state["layers"] = sorted(set(points[0]["customdata"]))


values = [cell.spearman for found in maps.values() for cell in found.cells if cell.spearman is not None]
scale = (min(values), max(values)) if values else None
for column, (name, found) in zip(st.columns(2), maps.items(), strict=True):
    with column:
        st.subheader(labels[name])
        frame.chart(
            figures.pair_heatmap(
                {cell.layers: cell.spearman for cell in found.cells},
                opened.space.n_layers,
                found.best.layers if found.best else None,
                chosen.layers,
                scale,
            ),
            f"pairs-{name}",
            lambda found=found: [
                {"layer_i": c.layers[0], "layer_j": c.layers[1], "spearman": c.spearman, "rank": c.rank}
                for c in found.cells
            ],
            on_select=lambda key=f"pairs-{name}": picked(key),
        )
st.caption(
    "Spearman x 100 of the average of two layers; on the diagonal a layer alone. Both maps share one colour scale and keep "
    "all dimensions. The star marks the best pair, the frame the workspace's layers."
)

frame.close_page(
    opened,
    now,
    [
        (
            r"z = \tfrac12\,(h^{(i)} + h^{(j)})",
            "Layer combination: Huang et al. 2021 (WhiteningBERT), section 3.2 and Figure 1",
        ),
        (variant_of(variant).formula, variant_of(variant).source),
    ],
    "Each cell averages two layers of the model and scores the pairs' cosines against gold. Without whitening a cell needs "
    "only the small Gram matrices between layers; with it, blocks of the cross-covariance and one factorisation.",
    frame.preamble(chosen)
    + f"\nmap_ = whitelab.layer_pairs(space, {variant!r}, how={chosen.aggregate!r}{frame.fit_arguments(chosen)})\n"
    + "print(map_.best)\n",
)
