"""The lines a curve over k is held against, asked for with a toggle, because they cost a dozen curves."""

from collections.abc import Sequence

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


def code(settings: Sequence[Setting], by_subset: bool, controlled: bool) -> str:
    """The lines that give the curves of settings in Python, and of the last of them each subset's and its controls."""
    texts = tuple(str(one.with_(k=None)) for one in settings)
    return (
        f"for text in {texts!r}:\n"
        "    curve = whitelab.k_curve(space, whitelab.Setting.parse(text))\n"
        "    print(text, curve.best_k, curve.knee, dict(zip(curve.k, curve.spearman)))\n"
        + "print(curve.subsets)\n" * by_subset
        + "print(whitelab.k_controls(space, whitelab.Setting.parse(text)))\n" * controlled
    )


def words(controls: dict[str, Control]) -> str:
    """What the lines of random draws are."""
    if not controls:
        return ""
    draws = controls["random"].draws
    return f" Random coordinates and projections are the mean of {draws} draws."
