"""Variants side by side on the same pairs: scores, paired differences, verdicts, as dots and as a table."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from whitelab import figures
from whitelab.base.lazy import cached_property
from whitelab.base.records import without_nan
from whitelab.base.wording import best_as_printed, quantity, ratio, spaced
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.scoring.fit_scopes import thin_halves
from whitelab.scoring.paired import LEVEL, RESAMPLES, VERDICTS, Standing
from whitelab.scoring.setting import FIT_SCOPES, OWN_SENTENCES, Setting, scope_name
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.scores import scored, standing
from whitelab.ui.results.study import study
from whitelab.ui.widgets import verdict
from whitelab.ui.widgets.chart import chart, rounded_table
from whitelab.whitening import agreements


@dataclass(frozen=True)
class Standings:
    """`settings` against a `baseline` among them, and `compared` under the fit scopes that need no further encoding."""

    space: LayerEmbeddings
    settings: tuple[Setting, ...]
    baseline: Setting
    compared: Setting

    @cached_property
    def no_cross(self) -> str:
        """Why the pairs cannot be cross-fitted; empty where they can."""
        try:
            scored(self.space, self.compared.with_(fit="cross"))
        except ValueError as error:
            return str(error)
        return ""

    @cached_property
    def scopes(self) -> tuple[Setting, ...]:
        """The compared setting under each fit scope."""
        fits = dict.fromkeys((*OWN_SENTENCES, self.compared.fit))
        return tuple(self.compared.with_(fit=fit) for fit in fits if fit != "cross" or not self.no_cross)

    @cached_property
    def thin(self) -> bool:
        """Whether the halves of the pairs, where there are any, are too small to tell of the whole map."""
        return not self.no_cross and thin_halves(self.space, self.compared, self.scope("task").score.rank)

    def standing(self, setting: Setting, baseline: Setting | None = None) -> Standing:
        """A setting against the baseline, or another one."""
        every = self.settings + self.scopes
        places = every.index(setting), every.index(self.baseline if baseline is None else baseline)
        return study(standing, self.space, every, *places)

    def scope(self, fit: str) -> Standing | None:
        """The compared setting under a fit scope, against raw; None where the pairs cannot be fitted so."""
        setting = self.compared.with_(fit=fit)
        return self.standing(setting, self.compared.raw) if setting in self.scopes else None


def record(standing: Standing) -> dict:
    """A row of the CSV, None for what is not defined; what says nothing has no interval and no test."""
    score, difference, test = standing.score, standing.difference, standing.williams
    unsaid = ("low", "high") if score.starved else ()
    unsaid += ("difference_low", "difference_high", "p_value", "p_williams") if standing.verdict == "starved" else ()
    row = {
        "whitening": score.setting.whitening,
        "k": score.setting.k,
        "spearman": score.spearman,
        "low": standing.low,
        "high": standing.high,
        **difference.as_dict(),
        "p_value": difference.p_value,
        "p_williams": test.p_value if test else None,
        "resamples": RESAMPLES,
        "verdict": standing.verdict,
        "settled": standing.settled,
        "rank": score.rank,
        "dim": score.dim,
        "fitted": score.fitted,
        "held_out_isotropy": score.isotropy,
    }
    return without_nan(row | dict.fromkeys(unsaid))


def draw(standings: Standings) -> None:
    """Dots, what must agree, and the table."""
    found = [standings.standing(setting) for setting in standings.settings]
    rows = [record(one) | {"baseline": standings.baseline.whitening} for one in found]
    for row, setting in zip(rows, standings.settings, strict=True):
        row["fit"] = scope_name(setting.fit, standings.space.texts)
    known = [None if one.score.starved else one.score.spearman for one in found]
    for row, best in zip(rows, best_as_printed(known), strict=True):
        row["best"] = best
    titles = LABELS.titles(standings.settings)
    baseline = LABELS.inline(standings.baseline.whitening)
    left, right = st.columns(2)
    with left:
        st.header("Score")
        raw = standings.standing(standings.compared.raw).score
        chart(figures.score_dots(rows, titles, raw.spearman), "variants", lambda: rows)
    with right:
        st.header(f"Difference from {baseline}")
        chart(figures.difference_dots(rows, titles, baseline), "differences")
    if any(score is not None for score in known):
        _marks_in_words(standings)
    _agreements(standings)
    # Said once: behind the longest name there is no room for it.
    k = next((f", k = {setting.k}" for setting in standings.settings if setting.k), "")
    table(found, f"Variant{k}", [LABELS[row["whitening"]] for row in rows], standings.baseline)


def _marks_in_words(standings: Standings) -> None:
    st.caption(
        f"Whiskers are 95 % intervals from {spaced(RESAMPLES)} resamples of the "
        f"{quantity(standings.space.n_pairs, 'pair')}, the same resamples for every variant, so differences are paired "
        "and narrower than the scores' own intervals. An open mark could be chance, or has no verdict. The dashed line "
        "is raw. Each difference is tested alone: of twenty variants without any effect, one would look real."
        + " Every map was fitted on the sentences it is scored on; *Fitted on what?* asks others."
        * (standings.compared.fit == "task")
    )


def _agreements(standings: Standings) -> None:
    """Which of the variants on the screen must agree, and why."""
    defined = [one for one in standings.settings if standings.standing(one).score.spearman is not None]
    specs = [(setting.whitening, setting.k) for setting in defined]
    for agreement in agreements(specs, standings.space.dim):
        because = "; ".join(f"{LABELS[spec]}: {words}" for spec, words in agreement.because.items())
        names = ", ".join(LABELS[spec] for spec in agreement.specs)
        st.markdown(
            f":material/equal: **{names}** must agree, to the last digit: {agreement.reason}."
            + (f" ({because}.)" if because else "")
        )


def fit_scopes(standings: Standings) -> None:
    """The compared setting under each fit scope: how much comes from fitting to the very sentences it is scored on."""
    st.header("Fitted on what?")
    task, cross = standings.scope("task"), standings.scope("cross")
    if cross:
        apart = standings.standing(task.score.setting, cross.score.setting)
        name, raw = LABELS.inline(standings.compared.whitening), standings.standing(standings.compared.raw)
        with st.container(key="said-fitting"):
            st.markdown(verdict.fitting(task, cross, apart, name, raw, standings.thin))
    else:
        st.markdown(f"Cross-fitting is not possible here: {standings.no_cross}.")
    found = [standings.standing(setting, standings.compared.raw) for setting in standings.scopes]
    texts, fits = standings.space.texts, (setting.fit for setting in standings.scopes)
    table(found, "Fitted on", [FIT_SCOPES.get(fit, scope_name(fit, texts)) for fit in fits])
    st.caption(
        f"{LABELS.at(standings.compared)} against raw under each scope. A cross-fitted map sees only half of the "
        "sentences: what it scores less may come of that, as well as of not having seen those it is scored on. Fit on "
        "all splits or on other text with *Fitted on* in the bar."
    )


def table(found: Sequence[Standing], title: str, names: Sequence[str], baseline: Setting | None = None) -> None:
    """Scores, tests and what was fitted, one line each."""
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    rows, tests = [record(one) for one in found], [verdict.short_p(one) for one in found]
    moved = [one.difference if test else None for one, test in zip(found, tests, strict=True)]
    rounded_table(
        {
            title: names,
            "Spearman": [row["spearman"] for row in rows],
            "Difference": [one and one.estimate for one in moved],
            "Its 95 %": [one and verdict.interval(one.low, one.high, "+") for one in moved],
            "Verdict": ["Baseline" if one.score.setting == baseline else VERDICTS[one.verdict] for one in found],
            "p": tests,
            "Rank": [row["rank"] for row in rows],
            "Per d": [ratio(row["fitted"] / row["dim"]) if row["fitted"] else None for row in rows],
            "Isotropy": [row["held_out_isotropy"] for row in rows],
        },
        {
            title: text(width=178),
            "Spearman": number(format="%.2f", width=72),
            "Difference": number(format="%+.2f", width=78),
            "Its 95 %": text(width=104, help="Percentile interval of the paired difference, by the bootstrap."),
            "Verdict": text(width=114, help=f"Real where both tests say so at p < {LEVEL:g}."),
            "p": text(width=106, help="Bootstrap, then Williams."),
            "Rank": number(width=46, help="Directions kept, of d."),
            "Per d": text(
                width=54, help="Sentences per dimension the map was fitted on; for cross-fitting, those of one half."
            ),
            "Isotropy": number(
                format="%.2f",
                width=64,
                help="Held-out isotropy: IsoScore of sentences that were not fitted on; 1 is round.",
            ),
        },
        alt=f"{title}: scores, their difference with interval and tests, and what the map was fitted on",
        placeholder="",
        height="content",
    )
