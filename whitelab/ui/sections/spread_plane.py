"""Every layer in the plane of alignment and uniformity, under several variants."""

from functools import partial

import streamlit as st

from whitelab import figures
from whitelab.base.wording import layer_names, quantity, spaced
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.figures import heights
from whitelab.scoring.setting import Setting
from whitelab.statistics import geometry
from whitelab.sweeps.layer_profiles import Losses
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.jobs import follow
from whitelab.ui.results.scores import layer_losses, losses_of
from whitelab.ui.results.study import named, study_job
from whitelab.ui.sections.space_views import HALVES
from whitelab.ui.widgets.chart import chart
from whitelab.whitening import agreements, variant


def draw(space: LayerEmbeddings, compared: Setting, paths: tuple[Setting, ...], positives: str) -> None:
    """The plane under each of `paths`, whose k is the compared setting's; it stays until that of another k is there."""
    job = study_job(
        layer_losses, space, paths, positives, title="Measuring every layer", unit="settings", place="profiles"
    )
    follow(
        job,
        partial(_picture, space, compared, positives),
        key="profiles",
        of=named((space, tuple(one.with_(layers=(0,), k=None) for one in (compared, *paths)), positives)),
        caption=lambda _: f"Every layer alone, under {quantity(len(paths), 'variant')}.",
        room=heights.room(heights.plane(len(paths))),
    )


def _picture(space: LayerEmbeddings, compared: Setting, positives: str, profiles: tuple[Losses, ...]) -> None:
    """The plane with its caption, at the k of `profiles`."""
    cut = [one.k for one in profiles if variant(one.whitening).takes_k]
    shown = compared.with_(k=cut[0]) if cut else compared
    kept = shown.directions(space.dim)
    floor = geometry.uniformity_floor(kept)
    names = ("whitening", "k", "alignment", "uniformity", "spearman")
    rows = [{"layer": one.layers[0]} | {name: getattr(one, name) for name in names} for one in profiles]
    selected, together = (shown.layers[0], ()) if len(shown.layers) == 1 else (None, (shown.raw, shown))
    average = [losses_of(space, one, positives) for one in together]
    average = [{"layer": layer_names(one.layers)} | {name: getattr(one, name) for name in names} for one in average]
    drawn = {one.whitening: shown.with_(whitening=one.whitening, k=one.k) for one in profiles}
    titles = {spec: LABELS.at(one) for spec, one in drawn.items()}
    figure = figures.plane(rows, titles, floor, selected, average)
    chart(figure, "plane", lambda: [row | {"positives": positives} for row in rows + average])
    reached = [row["uniformity"] for row in rows if row["uniformity"] is not None and row["k"] == shown.k]
    least = min(reached, default=floor)
    below = "; sentences that a map was fitted on can lie a little below it, more even than chance"
    st.caption(
        "Every point is one layer (its number beside it where there is room) under one variant, cut to the bar's k "
        "where it takes one"
        + f", and {layer_names(compared.layers)} the average of these layers" * bool(average)
        + "; colour is Spearman x 100. Lines lead from layer to layer"
        + ", thin arrows from raw to a variant" * ("none" in drawn and len(drawn) > 1)
        + f". {quantity(len(geometry.positives(space.gold, positives)), 'positive pair')} "
        f"({geometry.POSITIVES[positives]}); uniformity over all {spaced(2 * space.n_pairs)} sentence occurrences. The "
        f"floor for {quantity(kept, 'dimension')} is {floor:.3f}, the value of a uniform distribution on their sphere"
        + below * (least < floor)
        + "."
        + HALVES * (kept != (shown.k or kept))
        + f" What keeps all {space.dim} has its own, {geometry.uniformity_floor(space.dim):.3f}." * (kept < space.dim)
        + "".join(
            f" {' and '.join(LABELS[spec] for spec in one.specs)} coincide: they differ by a rotation only."
            for one in agreements([(one.whitening, one.k) for one in drawn.values()], space.dim)
        )
    )
