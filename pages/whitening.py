"""Which whitening, fitted on what, and whether its gain is real."""

from pathlib import Path

import streamlit as st

from whitelab import figures
from whitelab.scoring.paired import RESAMPLES, VERDICTS
from whitelab.ui.results import cache
from whitelab.ui.sections import stages, take_away
from whitelab.ui.widgets import frame, verdict
from whitelab.whitening import agreements
from whitelab.whitening import variant as variant_of

chosen, opened = frame.open_page(
    "Which whitening, fitted on what, and is the gain real?",
    "Look for intervals of the difference that exclude zero: only those are gains or losses that other pairs of this "
    "kind would show too.",
)
space, labels, compared = opened.space, frame.labels(), chosen.compared
with st.container(key="controls"):
    left, right = st.columns([3, 1])
    with left:
        picked = frame.variant_picker(
            chosen, "side-by-side", ("none", "center", compared, "zca", "soft"), "Variants side by side"
        )
    with right:
        baseline = frame.baseline_picker(chosen, "baseline")

# Every variant on the screen, and the compared one under the fit scopes that need no further encoding.
specs = list(dict.fromkeys(("none", *picked, compared, baseline)))
base = chosen.protocol(opened.pairs.source)


def protocol_of(spec: str, fit: str = chosen.fit):
    """The protocol of a variant under a fit scope."""
    return base.with_(whitening=spec, k=chosen.k_for(spec), fit=fit)


why_no_cross = ""
try:
    cache.score(opened.key, protocol_of(compared, "cross"))
except ValueError as error:
    why_no_cross = str(error)
fits = [fit for fit in dict.fromkeys((*OWN, chosen.fit)) if fit != "cross" or not why_no_cross]
protocols = tuple(protocol_of(spec) for spec in specs) + tuple(protocol_of(compared, fit) for fit in fits)
compared_scores = cache.paired_scores(opened.key, protocols)
base_row, raw_row = specs.index(baseline), specs.index("none")
by_spec = {spec: compared_scores.standing(i, base_row) for i, spec in enumerate(specs)}
by_fit = {fit: compared_scores.standing(i, raw_row) for i, fit in enumerate(fits, len(specs))}
now, raw = by_spec[compared], by_spec["none"]
pairs = frame.spaced(space.n_pairs)


def headlines() -> None:
    """Score, difference, cross-fitted score, and what was fitted on."""
    found, first = now.difference, st.columns(4)
    with first[0]:
        st.metric(
            f"Spearman, {variant_of(compared).label}",
            frame.number(now.score.spearman),
            delta=f"95 %: {verdict.interval(now.low, now.high)}",
            delta_color="off",
            delta_arrow="off",
            border=True,
            height="stretch",
            help=f"Percentile interval of {frame.spaced(RESAMPLES)} bootstrap resamples of the pairs.",
        )
    with first[1]:
        colours = {"gain": ("green", "up"), "loss": ("red", "down")}.get(now.verdict, ("off", "off"))
        st.metric(
            f"Difference from {labels.inline(baseline)}",
            f"{found.estimate:+.2f}" if found.estimate == found.estimate else "undefined",
            delta=VERDICTS[now.verdict],
            delta_color=colours[0],
            delta_arrow=colours[1],
            delta_description=verdict.bootstrap_p(now, RESAMPLES) if found.estimate == found.estimate else None,
            border=True,
            height="stretch",
            help=f"Bootstrap of the paired difference, 95 %: {verdict.interval(found.low, found.high, '+')}; "
            f"{verdict.tests(now, RESAMPLES)}.",
        )
    with first[2]:
        cross, task = by_fit.get("cross"), by_fit["task"]
        st.metric(
            "Spearman, cross-fitted",
            frame.number(cross.score.spearman) if cross else "undefined",
            delta=frame.change(cross.score.spearman, task.score.spearman, "against the task fit") if cross else None,
            delta_color="off",
            border=True,
            height="stretch",
            help=why_no_cross or "Each half of the pairs scored with a map fitted on the other half.",
        )
    with first[3]:
        st.metric(
            "Sentences per dimension",
            f"{now.score.sentences / now.score.dim:.1f}",
            delta=f"rank {now.score.rank}, isotropy {frame.number(now.score.isotropy)}",
            delta_color="off",
            delta_arrow="off",
            border=True,
            height="stretch",
            help="Fewer than about 10 and the weak directions of the covariance are mostly noise, which whitening "
            "amplifies. The held-out isotropy (0 to 1) says how round the space is for sentences that were not fitted on.",
        )


def explanation() -> None:
    """Why a score falls under whitening, where it does."""
    lost = compared_scores.standing(specs.index(compared), raw_row)
    centred = cache.score(opened.key, protocol_of("center"))
    flatter = (now.score.isotropy or 0) > (centred.isotropy or 0)
    if lost.verdict != "loss" or not flatter:
        return
    cosine = cache.profile(opened.key, chosen.layers, "none", None, "gt4", chosen.aggregate, chosen.fit).mean_cosine
    ratio = now.score.sentences / now.score.dim
    st.info(
        f"**Why {labels.inline(compared)} loses here.** Encoders trained contrastively, as most sentence encoders are, already "
        "spread their sentences evenly, above all in the last layers. Flattening the spectrum further takes weight from strong "
        "directions that carry meaning and amplifies weak ones that carry little. Two random sentences have a mean cosine of "
        f"{frame.number(cosine)} here (0 is evenly spread, near 1 a narrow cone), and the map is fitted on {ratio:.1f} sentences "
        "per dimension. A soft exponent (γ below 1), a shrunk covariance or a smaller k amplify less.",
        icon=":material/info:",
    )


def agreement_notes() -> None:
    """Which of the variants on the screen must agree, and why."""
    for one in agreements([(spec, chosen.k_for(spec)) for spec in specs], chosen.dim):
        because = "; ".join(f"{labels[spec]}: {words}" for spec, words in one.because.items())
        st.markdown(
            f":material/equal: **{', '.join(labels[spec] for spec in one.specs)}** must agree, to the last digit: {one.reason}."
            + (f" ({because}.)" if because else "")
        )


def record(standing) -> dict:
    """A row of the table and of the CSV."""
    score, found, test = standing.score, standing.difference, standing.williams
    return {
        "whitening": score.protocol.whitening,
        "k": score.protocol.k,
        "fit": score.protocol.fit,
        "spearman": score.spearman,
        "low": standing.low,
        "high": standing.high,
        "difference": found.estimate,
        "difference_low": found.low,
        "difference_high": found.high,
        "p_bootstrap": found.p_value,
        "p_williams": test.p_value if test else None,
        "p": verdict.short_p(standing, RESAMPLES),
        "verdict": VERDICTS[standing.verdict],
        "settled": standing.settled,
        "rank": score.rank,
        "dim": score.dim,
        "sentences": score.sentences,
        "held_out_isotropy": score.isotropy,
    }


rows = [record(by_spec[spec]) for spec in specs]
top = max((round(row["spearman"], 2) for row in rows if row["spearman"] is not None), default=None)
rows[base_row]["verdict"] = "Baseline"
for row in rows:
    row["best"] = row["spearman"] is not None and round(row["spearman"], 2) == top


def table(found: list[dict], first: dict[str, list]) -> None:
    """Scores, tests and what was fitted, one line each."""
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    (lead,) = first
    st.dataframe(
        first
        | {
            "Spearman": [row["spearman"] for row in found],
            "95 %": [verdict.interval(row["low"], row["high"]) for row in found],
            "Difference": [row["difference"] if row["p"] else None for row in found],
            "95 % of it": [
                verdict.interval(row["difference_low"], row["difference_high"], "+") if row["p"] else None
                for row in found
            ],
            "Verdict": [row["verdict"] for row in found],
            "p": [row["p"] for row in found],
            "Rank": [row["rank"] for row in found],
            "Sentences": [
                None
                if row["whitening"] == "none"
                else f"{frame.spaced(row['sentences'])} = {row['sentences'] / row['dim']:.1f} d"
                for row in found
            ],
            "Isotropy": [row["held_out_isotropy"] for row in found],
        },
        hide_index=True,
        placeholder="",
        height="content",
        column_config={
            lead: text(width=178),
            "Spearman": number(format="%.2f", width=72),
            "95 %": text(width=104, help="Percentile interval of the bootstrap."),
            "Difference": number(format="%+.2f", width=78),
            "95 % of it": text(width=112, help="Interval of the paired difference."),
            "Verdict": text(width=114, help="Real where both tests say so at p < 0.05."),
            "p": text(width=106, help="Bootstrap, then Williams."),
            "Rank": number(width=46, help=f"Directions kept, of d = {space.dim}."),
            "Sentences": text(
                width=98,
                help="Occurrences the map was fitted on (for cross-fitting, those of one half), and how many that is per dimension.",
            ),
            "Isotropy": number(
                format="%.2f",
                width=68,
                help="Held-out isotropy: IsoScore of sentences that were not fitted on; 1 is round.",
            ),
        },
    )


headlines()
if now.score.reason:
    st.warning(now.score.reason)
st.markdown(
    f"{verdict.ICONS[now.verdict]} "
    + verdict.sentence(now, labels.inline(compared), labels.inline(baseline), pairs, RESAMPLES)
)
st.caption(frame.fitted_on(now.score).capitalize() + ".")
explanation()

left, right = st.columns(2)
with left:
    st.subheader("Score")
    frame.chart(figures.score_dots(rows, labels, raw.score.spearman), "variants", lambda: rows)
with right:
    st.subheader(f"Difference from {labels.inline(baseline)}")
    frame.chart(figures.difference_dots(rows, labels, labels.inline(baseline)), "differences")
st.caption(
    f"Whiskers are 95 % intervals from {frame.spaced(RESAMPLES)} resamples of the {pairs} pairs, the same resamples for every "
    "variant, so differences are paired and narrower than the scores' own intervals. An open mark could be chance. The dashed "
    "line is raw. Each difference is tested alone: of twenty variants without any effect, one would look real."
)
agreement_notes()
table(rows, {"Variant": [labels[spec] for spec in specs]})


st.subheader(f"From {labels.inline(baseline)} to {labels.inline(compared)}")
stages.draw(stages.Stages(opened, by_spec[baseline].score, now.score, labels))

st.subheader("Fitted on what?")
st.markdown(
    verdict.fitting(
        by_fit["task"],
        by_fit["cross"],
        compared_scores.standing(len(specs) + fits.index("task"), len(specs) + fits.index("cross")),
        labels.inline(compared),
        raw,
    )
    if "cross" in by_fit
    else f"Cross-fitting is not possible here: {why_no_cross}."
)
fit_rows = [record(one) for one in by_fit.values()]
table(fit_rows, {"Fitted on": [SCOPES.get(fit, Path(fit).name) for fit in fits]})
st.caption(
    f"{labels[compared]} against raw under each scope. A cross-fitted map sees only half of the sentences, so its score bounds the "
    "part of fitting to the test sentences from above. Fit on all splits or on other text with *Fitted on* in the bar at the left."
)

st.subheader("Take it away")
one_fit = "task" if chosen.fit == "cross" else chosen.fit
taken = cache.score(opened.key, protocol_of(compared, one_fit))
st.markdown(
    f"The map of **{labels.inline(compared)}**, layer{'s' if len(chosen.layers) > 1 else ''} {' + '.join(map(str, chosen.layers))}, {taken.rank} of {taken.dim} directions, "
    + (
        "fitted on the task's sentences: cross-fitting has two maps, and an export holds one."
        if chosen.fit == "cross"
        else f"fitted on {SCOPES[one_fit][0].lower()}{SCOPES[one_fit][1:]}."
        if one_fit in SCOPES
        else f"fitted on {Path(one_fit).name}."
    )
    + " The protocol goes with it."
)
if taken.rank:
    take_away.draw(take_away.Parcel(chosen, opened, taken))
else:
    st.warning(
        "The sentences it was fitted on do not vary, so the map keeps no direction and there is nothing to export."
    )

frame.close_page(
    opened,
    now.score,
    [(f"{variant_of(spec).formula}", f"{labels[spec]}. {variant_of(spec).source}") for spec in specs],
    "Whitening is a linear map after which all directions have the same variance and none are correlated. Whether it helps is a "
    "question for data: the same pairs are scored under every variant, and the difference is resampled pair by pair (Efron and "
    "Tibshirani 1993) and tested with Williams' t for two correlations that share the gold scores (Steiger 1980). "
    + variant_of(compared).hint,
    frame.preamble(chosen)
    + "\nspecs = "
    + repr({spec: chosen.k_for(spec) for spec in specs})
    + "\nscores = [\n"
    + "    whitelab.score(space, whitelab.Protocol(encoder.name, pairs.source, pairs.task, pairs.split, "
    + f"{chosen.pooling!r},\n"
    + f"        layers={chosen.layers}, whitening=spec, k=k, aggregate={chosen.aggregate!r}, fit={chosen.fit!r})"
    + f"{', corpus' if opened.corpus else ''})\n"
    + "    for spec, k in specs.items()\n]\n"
    + f"for spec, found in zip(specs, whitelab.paired(space, scores).against({base_row})):\n"
    + "    print(spec, found.score.spearman, (found.low, found.high), found.difference, found.verdict)\n",
)
