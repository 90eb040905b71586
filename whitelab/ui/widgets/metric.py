"""Headline numbers: a row of two to four, each with its change or a note."""

from dataclasses import dataclass

import streamlit as st

from whitelab.base import wording
from whitelab.scoring.paired import VERDICTS, Doubt
from whitelab.scoring.score import Score
from whitelab.ui.widgets.chart import keep_headline
from whitelab.ui.widgets.verdict import objected

# What a delta is -> its colour and its arrow, as Streamlit calls them.
_DELTAS = {
    "up": ("normal", "auto"),
    "down": ("inverse", "auto"),
    "gain": ("green", "up"),
    "loss": ("red", "down"),
    "either": ("off", "auto"),
    "": ("off", "off"),
}


SPEARMAN = (
    "Spearman's rank correlation of the pairs' cosines with the gold scores that people gave them, x 100: 100 is the "
    "same order, 0 no relation. Differences are of scores before they are rounded."
)


@dataclass(frozen=True)
class Metric:
    """One number. `delta` stands below it: a change that is good `up`, `down` or not to be judged (`either`), a `gain`
    or a `loss` in words, or (`good` empty) a note.
    """

    label: str
    value: str
    delta: str | None = None
    good: str = ""
    help: str | None = None
    description: str | None = None

    @property
    def _level(self) -> bool:
        """Whether the delta is a change that rounds to zero, which is neither good nor bad."""
        return self.good in ("up", "down", "either") and bool(self.delta) and float(self.delta.split()[0]) == 0

    def draw(self) -> None:
        """Draw it where the call is, and keep it among the page's results."""
        keep_headline(
            {"label": self.label, "value": self.value, "note": self.delta or "", "more": self.description or ""}
        )
        colour, arrow = _DELTAS["" if self._level else self.good]
        st.metric(
            self.label,
            self.value,
            delta=self.delta,
            delta_color=colour,
            delta_arrow=arrow,
            delta_description=self.description,
            border=True,
            height="stretch",
            help=self.help,
        )


def headlines(*metrics: Metric) -> None:
    """Draw a row of numbers, equally wide."""
    for column, metric in zip(st.columns(len(metrics)), metrics, strict=True):
        with column:
            metric.draw()


def number(value: float | None, digits: int = 2) -> str:
    """A number for a headline; 'undefined' for None or NaN."""
    return wording.number(value, f"z.{digits}f")


def change(now: float | None, before: float | None, words: str = "", digits: int = 2) -> str | None:
    """A signed difference for a metric's second line; None where a number is not defined."""
    if now is None or before is None or now != now or before != before:
        return None
    return f"{now - before:+z.{digits}f} {words}".rstrip()


def in_doubt(verdict: str) -> str:
    """What to say of a change, after its number; empty where nothing is against it."""
    return f"({VERDICTS[verdict].lower()})" if verdict else ""


def score_metric(
    label: str, score: Score, raw: Score | None = None, doubt: Doubt | None = None, objection: str = ""
) -> Metric:
    """A Spearman score with its interval, and its change against raw, without a colour where there is `doubt` or an
    `objection` (`results.crossed`).

    Raw itself has none.
    """
    width = "" if score.half_width is None else f"± {score.half_width:.2f}"
    words = in_doubt(doubt.verdict(score.spearman, score.rank)) if doubt else ""
    words = words or (f"({objected(objection)})" if objection else "")
    compared = raw is not None and raw.setting != score.setting
    delta = change(score.spearman, raw.spearman, words or "against raw") if compared else None
    if not delta:
        return Metric(label, number(score.spearman), width or None, help=SPEARMAN)
    description = f"score {width}" if width else None  # the interval is not the change's
    return Metric(label, number(score.spearman), delta, "either" if words else "up", SPEARMAN, description)
