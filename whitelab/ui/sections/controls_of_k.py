"""The lines a curve over k is held against, asked for with a toggle, because they cost a dozen curves."""

import streamlit as st

from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.figures import heights
from whitelab.scoring.setting import Setting
from whitelab.sweeps.controls import CONTROLS, Control, k_controls
from whitelab.ui.results.jobs import wait
from whitelab.ui.results.study import study_job
from whitelab.ui.widgets.address import linked

_DASHES = {"first": "dot", "random": "dashdot", "projection": "longdash"}  # PCA without scaling is drawn anyway


def ask() -> bool:
    """Whether the controls are drawn."""
    return st.toggle(
        "Controls",
        **linked("controls-of-k", False),
        help="Columns of the raw vectors that no covariance chose: the first k, k random ones, and a random projection "
        "to k. What PCA gains over them is what choosing directions buys.",
    )


def computed(space: LayerEmbeddings, setting: Setting) -> dict[str, Control]:
    """The controls by name; none after drawing the job that makes them."""
    job = study_job(
        k_controls, space, setting.with_(k=None), title="Scoring controls", unit="curves", place="controls-of-k"
    )
    found = wait(job, key="controls-of-k-wait", height=heights.table(2))
    return {name: found[name] for name in _DASHES} if found else {}


def lines(controls: dict[str, Control]) -> list[tuple]:
    """The controls as `figures.k_curves` takes other lines."""
    return [("none", CONTROLS[name], _DASHES[name], one.spearman) for name, one in controls.items()]


def words(controls: dict[str, Control]) -> str:
    """What the lines of random draws are."""
    if not controls:
        return ""
    draws = controls["random"].draws
    return f" Random coordinates and projections are the mean of {draws} draws."
