"""The space before and after, from a baseline to the compared variant: covariance, spectrum, pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import streamlit as st

from whitelab import figures
from whitelab.base.wording import spaced
from whitelab.figures import heights, wrapped
from whitelab.scoring.score import Score
from whitelab.statistics.correlation import is_constant
from whitelab.statistics.significance import Move
from whitelab.sweeps.layer_profiles import CovarianceImage, covariance_image
from whitelab.ui.frame.variants import LABELS
from whitelab.ui.results.kept import kept
from whitelab.ui.results.scores import moves
from whitelab.ui.results.study import study
from whitelab.ui.sections import space_views
from whitelab.ui.sidebar.opening import Opened
from whitelab.ui.widgets.chart import chart, csv_button, rounded_table
from whitelab.ui.widgets.choice import choice
from whitelab.ui.widgets.metric import number
from whitelab.ui.widgets.tabs import tabs
from whitelab.whitening import whitens

SHOWN_PAIRS = 2000  # dots of a scatter
SHOWN_ROWS = 50  # pairs of the table
WHICH = ("all", "towards gold", "away from gold")
PAST = "past gold"


@dataclass(frozen=True, eq=False)
class Stages:
    """Two scores of one space."""

    opened: Opened
    before: Score
    after: Score

    @property
    def names(self) -> tuple[str, str]:
        """Readable names of both."""
        return LABELS.at(self.before.setting), LABELS.at(self.after.setting)

    @property
    def inline(self) -> tuple[str, str]:
        """The same inside a sentence."""
        return LABELS.inline(self.before.setting.whitening), LABELS.inline(self.after.setting.whitening)

    @property
    def covariances(self) -> tuple[CovarianceImage, CovarianceImage]:
        """The covariance of both."""
        return tuple(study(covariance_image, self.opened.space, one.setting) for one in (self.before, self.after))

    @property
    def moves(self) -> tuple[Move, ...]:
        """How far every pair's rank moved, furthest first; pairs that kept theirs are not in it."""
        return study(moves, self.opened.space, self.before.setting, self.after.setting)

    @property
    def graded(self) -> bool:
        """Whether people graded some pair above another, so that a rank can be nearer to gold."""
        return not is_constant(self.opened.space.gold)

    @property
    def pairs(self) -> str:
        """The number of pairs."""
        return spaced(self.opened.space.n_pairs)


def draw(stages: Stages) -> None:
    """Both stages in tabs."""

    def same() -> None:
        st.info(f"{stages.names[1]} is compared with itself. Choose another variant or another baseline.")

    alike = stages.before.setting == stages.after.setting
    tabs({title: same if alike else partial(section, stages) for title, section in TABS.items()}, "see")


def covariances(stages: Stages) -> None:
    """The covariance matrices as images."""
    found = stages.covariances
    for i, (column, name, one) in enumerate(zip(st.columns(2), stages.names, found, strict=True)):
        with column:
            st.markdown(f"**{name}**, {len(one.eigenvalues)} coordinates")
            if len(one.pixels):
                figure = figures.covariance_image(one.pixels, one.block, one.limit, name)
                chart(figure, f"covariance-{i}")
            else:
                st.info("No direction is kept, so there is nothing to show.")
    words = (
        "Blue is positive, orange negative, and zero shows the background. Each image has its own scale, because the "
        "units differ; entries beyond its ends have the colours of its ends."
    )
    if (block := max(one.block for one in found)) > 1:
        words += (
            f" A pixel is the mean of {block} x {block} entries, so an identity's diagonal shows as {1 / block:.2g}."
        )
    if whitens(stages.after.setting.whitening):
        words += " A whitened covariance is the identity on the kept directions, for the sentences fitted on." + (
            "" if stages.after.setting.fit == "task" else " These are others: what is left over did not carry over."
        )
    st.caption(words)


def spectra(stages: Stages) -> None:
    """The eigenvalues."""
    before, after = stages.before.setting, stages.after.setting
    found = {one: image.eigenvalues for one, image in zip((before, after), stages.covariances, strict=True)}
    space_views.spectrum(found, "spectrum")
    if whitens(after.whitening) and after.fit == "task":
        st.caption(
            "Whitening gives every kept direction the same variance: its spectrum is flat, and ends at the rank."
        )


def scatters(stages: Stages) -> None:
    """Gold against cosine."""
    space, n = stages.opened.space, stages.opened.space.n_pairs
    drawn = np.arange(n)
    if n > SHOWN_PAIRS:
        drawn = np.sort(np.random.default_rng(0).choice(n, SHOWN_PAIRS, replace=False))
    gold = space.gold.numpy()[drawn]
    cosines = [one.cosines.numpy()[drawn] for one in (stages.before, stages.after)]
    moves = {move.pair: move for move in stages.moves}
    moved = [moves.get(pair) for pair in drawn.tolist()]
    change = np.array([move.change if move else 0.0 for move in moved])
    hover = [
        f"{text}<br><i>gold {g:.2f}, cosine {a:.3f} → {b:.3f}<br>{_ranks(move)}</i>"
        for text, move, g, a, b in zip(_sentences(stages, drawn), moved, gold, *cosines, strict=True)
    ]
    lowest = min(0.0, *(float(np.nanmin(one)) for one in cosines)) - 0.03
    sides = zip(st.columns(2), stages.names, (stages.before, stages.after), cosines, strict=True)
    for i, (column, name, score, values) in enumerate(sides):
        with column:
            st.markdown(f"**{name}**, Spearman {number(score.spearman)}")
            chart(figures.gold_scatter(gold, values, change, hover, lowest, name), f"scatter-{i}")
    st.caption(
        f"Hover to read a pair. Both charts share one axis. Colour says how far a pair's rank among {stages.pairs} "
        f"moved from {stages.inline[0]} to {stages.inline[1]}: blue became more similar, orange less."
        + (f" {spaced(SHOWN_PAIRS)} pairs are drawn, chosen at random." if len(drawn) < n else "")
    )


def _sentences(stages: Stages, drawn: np.ndarray) -> list[str]:
    """Both sentences of the pairs `drawn`, escaped and wrapped for hover labels."""
    pairs = stages.opened.pairs

    def texts() -> list[str]:
        return [f"{wrapped(pairs.first[i])}<br><br>{wrapped(pairs.second[i])}<br>" for i in drawn.tolist()]

    return kept("hover", (pairs.fingerprint, len(drawn)), texts)


def _ranks(move: Move | None) -> str:
    return (
        f"rank {spaced(move.before)} → {spaced(move.after)}, gold rank {spaced(move.gold)}"
        if move
        else "rank unchanged"
    )


def moved_pairs(stages: Stages) -> None:
    """The pairs that moved most, with their text."""
    which = "all"
    if stages.graded:
        which = choice("Show", WHICH, key="moved", bind="query-params", label_visibility="collapsed")
    moves = stages.moves
    towards, away, past = (sum(_direction(one) == way for one in moves) for way in (*WHICH[1:], PAST))
    found = [one for one in moves if which in ("all", _direction(one))]
    if not found:
        st.info("No pair moved." if which == "all" else f"No pair moved {which}.", icon=":material/equal:")
    else:
        _table(_records(stages, found[:SHOWN_ROWS]))
        csv_button(lambda: _records(stages, found), "moved-pairs")
    tie = stages.after.spearman is None and bool(is_constant(stages.after.cosines))
    nothing = " All cosines are one after it, so every pair has the middle rank: nothing is ordered." if tie else ""
    ranked = (
        f"{spaced(towards)} of {stages.pairs} pairs moved towards their gold rank and {spaced(away)} away from it"
        + (f"; {spaced(past)} crossed it and ended as far from it as before" if past else "")
        if stages.graded
        else f"{spaced(len(moves))} of {stages.pairs} pairs moved; of one gold score for all, no rank is nearer to gold"
    )
    with st.container(key="said-moved"):
        st.caption(
            f"From {stages.inline[0]} to {stages.inline[1]}, {ranked}. Rank 1 is the least similar pair. "
            + (
                f"The {SHOWN_ROWS} furthest are listed; the CSV has all {spaced(len(found))} that moved"
                f"{'' if which == 'all' else f' {which}'}, and no pair that kept its rank."
            )
            * (len(found) > SHOWN_ROWS)
            + nothing
        )


def _direction(move: Move) -> str:
    return WHICH[1] if move.nearer > 0 else WHICH[2] if move.nearer < 0 else PAST


def _records(stages: Stages, moves: Sequence[Move]) -> list[dict]:
    pairs, gold = stages.opened.pairs, stages.opened.pairs.gold.tolist()
    before, after = (one.cosines.tolist() for one in (stages.before, stages.after))
    return [
        {
            "first": pairs.first[move.pair],
            "second": pairs.second[move.pair],
            "gold": gold[move.pair],
            "cosine_before": before[move.pair],
            "cosine_after": after[move.pair],
            "rank_before": move.before,
            "rank_after": move.after,
            "rank_gold": move.gold,
            "change": move.change,
            "direction": _direction(move) if stages.graded else None,
            "baseline": stages.before.setting.whitening,
        }
        for move in moves
    ]


def _table(records: list[dict]) -> None:
    """Equal cosines share a rank, which may then be a half. Of gold that is all equal there is no direction."""
    numbers, text = st.column_config.NumberColumn, st.column_config.TextColumn
    direction = {"Direction": [one["direction"] for one in records]} if records[0]["direction"] else {}
    rounded_table(
        {
            "First sentence": [one["first"] for one in records],
            "Second sentence": [one["second"] for one in records],
            "Gold": [one["gold"] for one in records],
            "Cosine": [f"{one['cosine_before']:.3f} → {one['cosine_after']:.3f}" for one in records],
            "Rank": [f"{spaced(one['rank_before'])} → {spaced(one['rank_after'])}" for one in records],
            "Gold rank": [one["rank_gold"] for one in records],
            "Moved": [one["change"] for one in records],
            **direction,
        },
        {
            "First sentence": text(width=176),
            "Second sentence": text(width=176),
            "Gold": numbers(format="%.2f", width=50),
            "Cosine": text(width=104),
            "Rank": text(width=84),
            "Gold rank": numbers(width=70),
            "Moved": numbers(width=58),
            "Direction": text(width=100),
        },
        printed={"Gold rank": spaced, "Moved": partial(spaced, sign="+")},
        row_height=heights.WRAPPED,
        height=min(540, heights.table(len(records), heights.WRAPPED)),
        alt="The pairs whose rank moved most, with both sentences, gold, cosines and ranks",
    )


TABS = {
    "Pairs that moved most": moved_pairs,
    "Covariance": covariances,
    "Spectrum": spectra,
    "Gold and cosine": scatters,
}
