"""How many dimensions are worth keeping."""

import streamlit as st

from whitelab import figures
from whitelab.base.wording import amount, in_percent, spaced
from whitelab.sweeps.dimensions import KNEE
from whitelab.ui.frame.page import close_page, open_page
from whitelab.ui.frame.variants import LABELS, all_numbers, instead, over_k
from whitelab.ui.results.crossed import objection
from whitelab.ui.results.scores import curve_of, doubt_of, scored
from whitelab.ui.sections import controls_of_k, every_layer, search_cost
from whitelab.ui.sections.k_curve import cross_fitted, held_out_words, rank_words
from whitelab.ui.sidebar.workspace import take
from whitelab.ui.widgets.address import linked
from whitelab.ui.widgets.chart import chart, line_key
from whitelab.ui.widgets.metric import Metric, headlines, score_metric
from whitelab.whitening import variant

chosen, opened = open_page(
    "How many dimensions are worth keeping?",
    "Look for the point after which the curve is flat: dimensions beyond it cost memory and search time, and buy "
    "nothing or cost points, too. Below, the same for every layer.",
    intervals=True,
)
space, takes_k = opened.space, variant(chosen.setting.whitening).takes_k
setting = over_k(chosen.compared)
other = setting.with_(whitening="center" if setting.whitening != "center" else "pca")
k, spec = setting.k or space.dim, setting.whitening
curve, rival = (curve_of(space, one, by_subset=one is setting) for one in (setting, other))
now, raw = scored(space, setting), scored(space, setting.raw)
held_out = cross_fitted(space, setting)
others = [(other.whitening, LABELS.unscaled(other.whitening), "dot", rival.spearman)]
others += [(spec, f"{LABELS[spec]}, cross-fitted", "dash", held_out.spearman)] if held_out else []
of_another = instead(chosen.compared)
size, kept = 4 * space.n_sentences, variant(spec).columns(now.rank, space.dim)
label = f"Spearman at k = {k}" + f", {LABELS.inline(spec)}" * bool(of_another)
headlines(
    score_metric(label, now, raw, doubt_of(space, setting), objection(space, setting)),
    Metric(
        "Best k",
        str(curve.best_k or "undefined"),
        f"Spearman {curve.spearman[curve.best_k - 1]:.2f}" if curve.best_k else None,
        help="The highest of all k on these very pairs. The fewer they are, the more of its lead is chance: other pairs "
        "may have another best, and Advise tests what they would keep.",
    ),
    Metric("Knee", str(curve.knee or "undefined"), f"within {KNEE:g} points of the best"),
    Metric(
        "Memory saved",
        f"{100 * (1 - kept / space.dim):.3g} %",
        f"{kept} of {space.dim} numbers",
        help=f"Of {amount(size * space.dim)}, which this task's {spaced(space.n_sentences)} sentences take in float32. "
        "An exact search reads the same share of bytes." + all_numbers(spec, space.dim),
    ),
)
with st.container(horizontal=True, vertical_alignment="center"):
    lines = space.n_subsets > 1 and st.toggle("One line for each subset", **linked("lines", False))
    wanted = controls_of_k.ask()
    if curve.best_k and takes_k:
        st.button(f"Take the best k, {curve.best_k}", on_click=take, kwargs={"k": curve.best_k})
        st.button(f"Take the knee, {curve.knee}", on_click=take, kwargs={"k": curve.knee})
controls = controls_of_k.computed(space, setting) if wanted else {}
figure = figures.k_curves(
    curve.spearman,
    curve.subsets if lines else {},
    spec,
    LABELS[spec],
    {"chosen": k, "best": curve.best_k, "knee": curve.knee},
    curve.rank,
    raw.spearman,
    others + controls_of_k.lines(controls),
)
line_key(figure)
chart(
    figure,
    "k-curve",
    lambda: [
        {"k": j, "spearman": score, "explained": share}
        | {name: part[j - 1] for name, part in curve.subsets.items()}
        | ({"cross_fitted": held_out.spearman[j - 1]} if held_out else {})
        | {name: one.spearman[j - 1] for name, one in controls.items()}
        | {"whitening": spec, other.whitening: rival.spearman[j - 1]}
        for j, score, share in zip(curve.k, curve.spearman, curve.explained, strict=True)
    ],
)
held = "The first direction holds" if k == 1 else f"The top {k} directions hold"
st.caption(
    f"{of_another or 'Move k in the bar. '}{held} {in_percent(curve.explained[k - 1], '.1f')} of the variance."
    f"{rank_words(curve, raw)}{held_out_words(space, curve, held_out)}{controls_of_k.words(controls)}"
)
every = every_layer.draw(space, setting)
focus = k if k < space.dim else min(curve.knee or space.dim, max(1, space.dim // 2))
plan = search_cost.draw(space, setting, focus)

close_page(
    chosen,
    opened,
    [
        (variant(spec).formula, variant(spec).source),
        (
            r"\cos_k(a,b)=\frac{\sum_{i\le k} a_i b_i}{\sqrt{\sum_{i\le k} a_i^2\,\sum_{i\le k} b_i^2}}",
            "In the eigenbasis every k is a running sum, so the whole curve costs one projection",
        ),
        (
            r"\text{recall}(k)=\tfrac{1}{10}\,\lvert N_k(q)\cap N_d(q)\rvert",
            "Mean over the queries q of the share of the ten nearest neighbours that stay; a tie with the tenth counts",
        ),
    ],
    "k means the top-k eigen-directions of the covariance, and of the correlation for PCA-cor and ZCA-cor. Whitening "
    "variants that keep the same directions share one curve, because they differ by a rotation inside these. The knee "
    "is the smallest k within 0.5 points of the best. A search among more vectors than your own meets synthetic ones, "
    "drawn from a Gaussian with the mean and covariance of your sentences.",
    controls_of_k.code((other, *[setting.with_(fit="cross")] * bool(held_out), setting), lines, bool(controls))
    + (every_layer.code(setting) if every else "")
    + (search_cost.code(setting, plan) if plan else ""),
)
