"""The score of every layer alone at every k, as a surface that grows layer by layer."""

from collections.abc import Sequence

import streamlit as st

from whitelab import figures
from whitelab.base.wording import spaced
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.figures import heights
from whitelab.scoring.setting import Setting
from whitelab.sweeps.dimensions import KCurve
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.jobs import follow
from whitelab.ui.results.kept import kept
from whitelab.ui.results.scores import layer_curves, number_of, shared
from whitelab.ui.results.study import study_job
from whitelab.ui.sidebar.workspace import take
from whitelab.ui.widgets.chart import chart, clicked, rounded_table
from whitelab.whitening import variant

_RAW = "Spearman, raw"


def draw(space: LayerEmbeddings, setting: Setting) -> Sequence[KCurve] | None:
    """The surface, and a table of the best k of each layer; a click takes layer and k into the workspace.

    Returns the curves, None while there are none.
    """
    st.header("Does every layer want the same k?")
    st.markdown(
        "Each layer alone at every k. Look for layers that score well above all their directions at a small k: there "
        "the weaker ones cost points. On a flat curve, whose scores at the best k and at all are close, the best k "
        "says little. Where the best is below raw, no k is worth the map."
    )
    every = shared(setting.with_(k=None, layers=(0,)))
    title, name = "Scoring every k of every layer", LABELS[setting.whitening]
    curves = follow(
        study_job(layer_curves, space, every, title=title, unit="layers", place="k-surface"),
        lambda curves: _picture(space, setting, curves),
        key="k-surface-part",
        caption=lambda curves: (
            f"{name}, {len(curves)} layers at {space.dim} values of k each: {spaced(len(curves) * space.dim)} settings."
        ),
        room=heights.room(heights.surface(space.n_layers)) + heights.table(space.n_layers),
    )
    st.caption(
        "Spearman x 100. Columns are equally wide and stand for every k at first, then for wider steps; colours start "
        "at the lower quartile of the scores. Stars mark each layer's best k. Click a cell to take its layer and k."
    )
    return curves


def code(setting: Setting) -> str:
    """The lines that score the same in Python."""
    return (
        f"curves = whitelab.k_curves(space, whitelab.Setting.parse({str(setting)!r}))\n"
        "print([(one.best_k, one.knee) for one in curves])\n"
    )


def _picture(space: LayerEmbeddings, setting: Setting, curves: Sequence[KCurve]) -> None:
    here = (setting.layers[0], setting.k or space.dim) if len(setting.layers) == 1 else None
    best = [curve.best_k for curve in curves]
    name = LABELS[setting.whitening]
    figure = kept(
        "k-surface",
        (tuple(curves), here, name),
        lambda: figures.k_surface([curve.spearman for curve in curves], space.n_layers, best, name, here),
    )
    chart(
        figure,
        "k-surface",
        lambda: [
            {"layer": layer, "whitening": setting.whitening, "k": k, "spearman": score}
            for layer, curve in enumerate(curves)
            for k, score in zip(curve.k, curve.spearman, strict=True)
        ],
        on_select=lambda: _take(variant(setting.whitening).takes_k),
    )
    whole = f"Spearman at d = {space.dim}"
    rounded_table(
        [
            {
                "Layer": layer,
                _RAW: number_of(space, setting.raw.with_(layers=(layer,))).spearman,
                "Best k": curve.best_k,
                "Spearman at best k": curve.spearman[curve.best_k - 1] if curve.best_k else None,
                "Knee": curve.knee,
                whole: curve.spearman[-1],
                "Rank": curve.rank,
            }
            for layer, curve in enumerate(curves)
        ],
        {name: st.column_config.NumberColumn(format="%.2f") for name in (_RAW, "Spearman at best k", whole)},
        alt="Best k, knee, scores and rank of every layer",
        placeholder="-",
        height=heights.table(space.n_layers),
    )


def _take(takes_k: bool) -> None:
    """Take the layer and k of the clicked cell into the workspace."""
    cell = clicked("k-surface")
    if cell:
        take(cell[:1], cell[1] if takes_k else None)
