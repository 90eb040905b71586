"""The space at a glance."""

import streamlit as st

from whitelab.base.wording import plain, quantity
from whitelab.statistics.geometry import METRICS
from whitelab.ui.frame.page import close_page, open_page
from whitelab.ui.frame.variants import LABELS, under
from whitelab.ui.results.crossed import objection
from whitelab.ui.results.scores import doubt_of, number_of, scored, shape_of
from whitelab.ui.sections import explanation, layer_gains, space_views
from whitelab.ui.sidebar import workspace
from whitelab.ui.widgets.metric import Metric, headlines, number, score_metric
from whitelab.whitening import variant, whitens

here = workspace.current()
compared_spec = here.compared.whitening if here else "pca"
after_words = (
    "after whitening, which centres them and makes all directions equally strong"
    if whitens(compared_spec)
    else f"the same vectors, mapped ({LABELS.inline(compared_spec)})"
)
chosen, opened = open_page(
    "What does this space look like, and what would whitening change?",
    "A model makes a vector of each sentence in every layer, and the cosine of two says how nearly they point the same way. A "
    "score (Spearman x 100) says how well cosines rank pairs the way people do: 100 is the same order, 0 no relation. "
    f"Grey dot: a layer's vectors as they are. Filled mark: {after_words}.",
    intervals=True,
)
space, compared = opened.space, chosen.compared
names = dict.fromkeys(("none", "center", "standardize", "pca", "zca", "cholesky", compared.whitening))
settings = {spec: under(chosen, spec) for spec in names}
scores = {spec: number_of(space, setting) for spec, setting in settings.items()}
raw, now = scores["none"], scored(space, compared)
before, after = (shape_of(space, one) for one in (compared.raw, compared))

fitted = f"fitted on {quantity(now.fitted, 'sentence')}" if now.setting.fits else "nothing fitted"
isotropy = f", held-out isotropy {now.isotropy:.2f}" if now.isotropy is not None else ""
headlines(
    score_metric("Spearman, raw", raw),
    score_metric(f"Spearman, {LABELS.card(compared)}", now, raw, doubt_of(space, compared), objection(space, compared)),
    Metric(
        "Mean cosine of random pairs",
        number(after.mean_cosine, 3),
        f"{number(before.mean_cosine, 3)} raw",
        help="Near 1 all sentences point much the same way: a narrow cone. Centring alone brings it near 0, however unlike "
        "in strength the directions stay.",
    ),
    Metric(
        "Directions kept",
        f"{now.rank} of {now.dim}",
        f"{fitted}{isotropy}",
        help="How many of the vectors' d directions the map keeps. Whitening leaves out those along which the sentences "
        "differ by no more than rounding. Held-out isotropy (0 to 1) says how round it makes sentences that it was not "
        "fitted on.",
    ),
)
if now.reason:
    st.warning(f"{plain(now.reason)}.")
layer_gains.draw(space, compared, chosen.setting.layers)
explanation.draw(space, compared)
st.caption("The whitening page tests whether a difference is more than chance gives.")
left, right = st.columns([3, 2])
with left:
    st.header("Spearman by variant")
    space_views.scores({settings[spec]: score for spec, score in scores.items()}, "scores")
with right:
    st.header("Spectrum")
    space_views.spectrum({compared.raw: before.eigenvalues, compared: after.eigenvalues}, "spectrum")
    st.caption(
        f"Participation ratio {before.participation_ratio:.1f} of {space.dim} before and "
        f"{after.participation_ratio:.1f} of {compared.directions(space.dim)} after.",
        help=METRICS["participation_ratio"].hint,
    )
st.header("Where to go next")
with st.container(horizontal=True):
    for page, label in (
        ("lessons", "What is there to learn, step by step?"),
        ("data", "How do I bring data of my own?"),
        ("whitening", "Which whitening, and is the gain real?"),
        ("anisotropy", "How narrow is the cone, layer by layer?"),
        ("layers", "Which layers should be averaged?"),
        ("dimensions", "How many dimensions are worth keeping?"),
        ("uniformity", "Are similar sentences close, and all spread out?"),
        ("compare", "Which model, and does it match what was published?"),
        ("advise", "What should I do with these vectors?"),
    ):
        st.page_link(f"pages/{page}.py", label=label, icon=":material/arrow_forward:")

close_page(
    chosen,
    opened,
    [
        (
            r"\operatorname{score} = 100\,\rho\big(\text{gold}_i,\ \cos(z_{a_i}, z_{b_i})\big)",
            "Spearman's rank correlation",
        ),
        (variant(compared.whitening).formula, variant(compared.whitening).source),
    ],
    f"**{LABELS[compared.whitening]}.** {variant(compared.whitening).hint}",
    layer_gains.code(compared)
    + "for text in (\n"
    + "".join(f"    {str(setting)!r},\n" for setting in settings.values())
    + "):\n"
    "    one = whitelab.Setting.parse(text)\n"
    "    found, shape = whitelab.score(space, one), whitelab.shape(space, one)\n"
    "    print(text, found.spearman, found.half_width, found.rank, shape.mean_cosine, shape.participation_ratio)\n"
    + space_views.code((compared.raw, compared)),
)
