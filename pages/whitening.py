"""Which whitening, fitted on what, and whether its gain is real."""

import streamlit as st

from whitelab.base.wording import capitalised, plain, ratio, spaced
from whitelab.scoring.paired import RESAMPLES, VERDICTS
from whitelab.ui.frame.page import close_page, fit_in_words, open_page
from whitelab.ui.frame.variants import LABELS, baseline_picker, variant_picker
from whitelab.ui.results.crossed import crossed
from whitelab.ui.results.scores import curve_of
from whitelab.ui.sections import bits, explanation, fit_size_curve, stages, standings, take_away
from whitelab.ui.widgets import verdict
from whitelab.ui.widgets.metric import Metric, change, headlines, number
from whitelab.whitening import variant

chosen, opened = open_page(
    "Which whitening, fitted on what, and is the gain real?",
    "Look at whether the interval of a difference has zero in it. If not, other pairs of this kind would most likely show "
    "a gain, or a loss, too; if it has, they might show none, or the opposite.",
    intervals=True,
)
space, compared = opened.space, chosen.compared
with st.container(key="controls"):
    left, right = st.columns([3, 1])
    with left:
        defaults = ("none", "center", compared.whitening, "zca", "soft")
        picked = variant_picker(chosen, "side-by-side", defaults, "Variants side by side")
    with right:
        baseline = baseline_picker(chosen)
settings = tuple(dict.fromkeys((compared.raw, *picked, compared, baseline)))
found = standings.Standings(space, settings, baseline, compared)
now, task, cross = found.standing(compared), found.scope("task"), found.scope("cross")
name, against = LABELS.inline(compared.whitening), LABELS.inline(baseline.whitening)
difference = now.difference
tested = difference.estimate == difference.estimate and now.verdict != "starved"
against_task = (
    "against the task fit" if compared.fit == "task" else f"against {number(task.score.spearman)}, the task fit"
)
against_task = "by halves too small to tell" if found.thin else against_task
beside = cross and change(cross.score.spearman, task.score.spearman, against_task)
judged = baseline == compared.raw and now.verdict in ("gain", "loss")
others = crossed(space, compared) if judged else ""
with st.container(key="few-words"):
    headlines(
        Metric(
            f"Spearman, {LABELS.card(compared)}",
            number(now.score.spearman),
            None if now.score.starved else f"95 %: {verdict.interval(now.low, now.high)}",
            help=f"Percentile interval of {spaced(RESAMPLES)} bootstrap resamples of the pairs.",
        ),
        Metric(
            f"Difference from {against}",
            f"{difference.estimate:+.2f}" if difference.estimate == difference.estimate else "undefined",
            capitalised(verdict.objected(others)) or VERDICTS[now.verdict],
            now.verdict if now.verdict in ("gain", "loss") and not others else "",
            f"Bootstrap of the paired difference, 95 %: {verdict.interval(difference.low, difference.high, '+')}; "
            f"{verdict.tests(now)}."
            if tested
            else None,
            verdict.bootstrap_p(now) if tested else None,
        ),
        Metric(
            "Spearman, cross-fitted",
            number(cross.score.spearman) if cross else "undefined",
            beside if cross is None or not cross.score.starved else VERDICTS["starved"],
            help=found.no_cross or "Each half of the pairs scored with a map fitted on the other half.",
        ),
        Metric(
            "Sentences per dimension",
            ratio(now.score.fitted / now.score.dim) if now.score.setting.fits else "none",
            f"rank {now.score.rank}, isotropy {number(now.score.isotropy)}",
            help="Fewer than about 10 and the weak directions of the covariance are mostly noise, which whitening "
            "amplifies. The held-out isotropy (0 to 1) says how round the space is for sentences that were not fitted on.",
        ),
    )
words = verdict.sentence(now, name, against, spaced(space.n_pairs), verdict.by_halves(cross, others))
if now.verdict == "gain" and compared.k and curve_of(space, compared).best_k == compared.k:
    words += f" And k = {compared.k} is the best on these very pairs, which flatters it."
with st.container(key="said-verdict"):
    st.markdown(f"{verdict.ICONS['unclear' if others else now.verdict]} {words}")
st.caption(plain(capitalised(fit_in_words(now.score))) + ".")
explanation.draw(space, compared, found.standing(compared, compared.raw).verdict)
standings.draw(found)
st.header(f"From {against} to {name}")
stages.draw(stages.Stages(opened, found.standing(baseline).score, now.score))
standings.fit_scopes(found)
fit_size_curve.draw(space, compared)
bits.draw(space, compared)
take_away.section(chosen, opened, now.score)

close_page(
    chosen,
    opened,
    [(variant(one.whitening).formula, f"{LABELS[one.whitening]}. {variant(one.whitening).source}") for one in settings],
    "Whitening is a linear map after which all directions have the same variance and none are correlated. Whether it "
    "helps is a question for data: the same pairs are scored under every variant, and the difference is resampled pair "
    "by pair (Efron and Tibshirani 1993) and tested with Williams' t for two correlations that share the gold scores "
    "(Steiger 1980). " + variant(compared.whitening).hint,
    f"settings = [whitelab.Setting.parse(text) for text in {tuple(map(str, settings))!r}]\n"
    "scores = [whitelab.score(space, one) for one in settings]\n"
    f"for one in whitelab.paired(space, scores).against({settings.index(baseline)}):\n"
    "    print(one.score.setting, one.score.spearman, (one.low, one.high), one.difference, one.verdict)\n"
    + "".join(
        f"print(whitelab.score(space, whitelab.Setting.parse({str(one.score.setting)!r})).spearman)\n"
        for one in (task, cross)
        if one and one.score.setting not in settings
    )
    + fit_size_curve.code(compared)
    + bits.code(compared, "space"),
)
