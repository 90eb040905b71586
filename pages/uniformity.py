"""Alignment against uniformity."""

import streamlit as st

from whitelab import figures
from whitelab.base.wording import capitalised, layer_names, layers_in_words, quantity, spaced
from whitelab.figures import heights
from whitelab.statistics import geometry
from whitelab.sweeps.layer_profiles import Losses
from whitelab.ui.results.jobs import follow
from whitelab.ui.results.scores import layer_losses, losses_of
from whitelab.ui.results.study import named, study_job
from whitelab.ui.widgets.chart import chart
from whitelab.ui.widgets.choice import choice
from whitelab.ui.widgets.metric import Metric, change, headlines, number
from whitelab.ui.widgets.page import close_page, open_page
from whitelab.ui.widgets.variants import LABELS, variant_picker
from whitelab.whitening import agreements, variant

chosen, opened = open_page(
    "Are similar sentences close, and all sentences spread out?",
    "Look at which way a variant moves each layer: to the left all sentences spread out, upwards similar ones move "
    "apart. Up and to the left, spread is bought with alignment.",
)
space, compared = opened.space, chosen.compared
left, right = st.columns([1, 3])
with left:
    positives = choice(
        "Positive pairs",
        geometry.POSITIVES,
        key="positives",
        bind="query-params",
        format_func=geometry.POSITIVES.get,
        help="SimCSE's footnote 3 says above 4; code in circulation uses at least 4. The losses differ.",
    )
with right:
    paths = variant_picker(chosen, "paths", ("none", "center", compared.whitening))
before, after = (losses_of(space, one, positives) for one in (compared.raw, compared))
hint = f"Lower is better. {capitalised(layers_in_words(compared.layers))}."
headlines(
    *(
        Metric(f"{title}, {LABELS.card(setting)}", number(value, 3), delta, "down" if delta else "", hint)
        for title, name in (("Alignment", "alignment"), ("Uniformity", "uniformity"))
        for setting, value, delta in (
            (compared.raw, getattr(before, name), None),
            (compared, getattr(after, name), change(getattr(after, name), getattr(before, name), digits=3)),
        )
    )
)
if undefined := geometry.no_positives(space.gold, positives):
    st.warning(f"{capitalised(undefined)}.")


def draw(profiles: tuple[Losses, ...]) -> None:
    """The plane of every layer with its caption, at the k of `profiles`: another than the bar's until that is there."""
    cut = [one.k for one in profiles if variant(one.whitening).takes_k]
    shown = compared.with_(k=cut[0]) if cut else compared
    kept = shown.k or space.dim
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
    reached = [row["uniformity"] for row in rows if row["uniformity"] is not None and (row["k"] or space.dim) == kept]
    least = min(reached, default=floor)
    below = (
        "; sentences that a map was fitted on can lie a little below it, more even than chance" if least < floor else ""
    )
    st.caption(
        "Every point is one layer (its number beside it where there is room) under one variant, cut to the bar's k "
        "where it takes one"
        + f", and {layer_names(compared.layers)} the average of these layers"
        * bool(average)
        + f"; colour is Spearman x 100. {spaced(before.positives)} positive pairs ({geometry.POSITIVES[positives]}); uniformity over "
        f"all {spaced(2 * space.n_pairs)} sentence occurrences. The floor for {kept} dimensions is {floor:.3f}, the value "
        f"of a uniform distribution on their sphere{below}."
        + f" What keeps all {space.dim} has its own, {geometry.uniformity_floor(space.dim):.3f}." * (kept < space.dim)
        + "".join(
            f" {' and '.join(LABELS[spec] for spec in one.specs)} coincide: they differ by a rotation only."
            for one in agreements([(one.whitening, one.k) for one in drawn.values()], space.dim)
        )
    )


job = study_job(
    layer_losses, space, tuple(paths), positives, title="Measuring every layer", unit="settings", place="profiles"
)
follow(
    job,
    draw,
    key="profiles",
    of=named((space, tuple(one.with_(layers=(0,), k=None) for one in (compared, *paths)), positives)),
    note=lambda _: f"Every layer alone, under {quantity(len(paths), 'variant')}.",
    room=heights.room(heights.PLANE),
)

close_page(
    chosen,
    opened,
    [
        (
            r"\ell_{\text{align}}=\mathbb{E}_{(x,y)\sim p_{\text{pos}}}\lVert u_x-u_y\rVert^2",
            "Wang and Isola 2020; WhitenedCSE Eq. 9",
        ),
        (
            r"\ell_{\text{uniform}}=\log\,\mathbb{E}_{i<j}\,e^{-2\lVert u_i-u_j\rVert^2}",
            "Wang and Isola 2020; WhitenedCSE Eq. 10; vectors brought to unit length first",
        ),
    ],
    "Alignment asks whether paraphrases lie close together, uniformity whether all sentences together fill the sphere. "
    "In a narrow cone centring alone explains most of what whitening gains in uniformity at full k.",
    f"for text in {tuple(map(str, paths))!r}:\n"
    f"    for one in whitelab.layer_losses(space, [whitelab.Setting.parse(text)], {positives!r}):\n"
    "        print(text, one.layers, one.alignment, one.uniformity, one.spearman)\n"
    f"for text in {(str(compared.raw), str(compared))!r}:\n"
    f"    one = whitelab.losses(space, whitelab.Setting.parse(text), {positives!r})\n"
    "    print(text, one.layers, one.alignment, one.uniformity)\n",
)
