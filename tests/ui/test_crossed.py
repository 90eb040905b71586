"""What cross-fitted halves say of a gain or loss: nothing where they show it, nothing where they cannot know."""

from dataclasses import replace

import pytest
import torch

from tests.conftest import make_space
from whitelab.encoding.embeddings import LayerRows
from whitelab.scoring.fit_scopes import folds, thin_halves
from whitelab.scoring.paired import LEVEL, paired
from whitelab.scoring.score import score
from whitelab.scoring.setting import Setting
from whitelab.statistics.significance import williams
from whitelab.sweeps.dimensions import k_curve
from whitelab.ui.results.crossed import NEAR, crossed, objection
from whitelab.ui.results.shelf import shelf
from whitelab.ui.sections.k_curve import held_out_words

PCA = Setting((1,), "pca")


def agreeing(space, *, own: float, raw: float, cross: float):
    """The same pairs, judged by what the task's own map, no map and the halves' maps say of them, in these parts."""
    parts = {PCA: own, PCA.raw: raw, PCA.with_(fit="cross"): cross}
    judged = sum(part * (one := score(space, setting).cosines) / one.std() for setting, part in parts.items())
    return shelf().call(replace(space, gold=judged), f"judged {own} {raw} {cross} of {space.values.sum():.9g}")


def scores(space) -> list[float]:
    return [score(space, one).spearman for one in (PCA, PCA.raw, PCA.with_(fit="cross"))]


@pytest.mark.parametrize(
    ("spec", "n", "shown"), [("center", 60, ""), ("standardize", 60, "chance"), ("pca", 80, "chance")]
)
def test_a_change_that_halves_show_too_is_left_alone_and_one_they_do_not_show_is_in_doubt(spec, n, shown):
    space, setting = make_space(n), Setting((1,), spec)
    gold = score(space, setting).cosines  # what people say is what the map says that was fitted on these sentences
    space = shelf().call(replace(space, gold=gold), f"{spec} by the map")
    assert crossed(space, setting) == shown
    assert crossed(space, setting.raw) == crossed(space, setting.with_(fit="cross")) == ""


def test_a_gain_or_a_loss_that_halves_turn_round_is_theirs():
    """A gain on sentences that the map knows by heart and a loss on others, and the other way round."""
    for shown, parts in {"loss": (1.0, 0.6, 0.0), "gain": (-1.0, 0.6, 1.6)}.items():
        space = agreeing(make_space(80), **dict(zip(("own", "raw", "cross"), parts, strict=True)))
        own, raw, cross = scores(space)
        assert (own > raw > cross) if shown == "loss" else (own < raw < cross)
        halves = score(space, PCA.with_(fit="cross")).cosines
        assert williams(halves, score(space, PCA.raw).cosines, space.gold).p_value < LEVEL
        assert crossed(space, PCA) == shown
        apart = replace(space, texts={"other": LayerRows(space.values, space.counts)})
        assert crossed(apart, PCA.with_(fit="other")) == ""  # halves of the task say nothing of a map of other text


@pytest.mark.parametrize("aggregate", ["all", "mean"])
@pytest.mark.parametrize("seed", range(6))
def test_what_halves_turn_round_they_do_by_every_test_there_is(seed, aggregate):
    """An average of subsets is judged by its bootstrap alone; where two tests disagree, the change is in doubt."""
    pca = PCA.with_(aggregate=aggregate)
    for part in (0.2, 0.4, 0.8, 1.6):
        space = agreeing(make_space(80, seed=seed), own=1.0, raw=part, cross=0.0)
        found = paired(space, [score(space, one) for one in (pca.raw, pca, pca.with_(fit="cross"))])
        own, halves = found.standing(1), found.standing(2)
        turned = (own.difference.estimate > 0) != (halves.difference.estimate > 0)
        sure = halves.williams is not None and halves.williams.p_value < LEVEL
        expected = halves.verdict if turned and halves.verdict in ("gain", "loss") else ""
        if halves.verdict == "chance" or halves.verdict == "unclear" and (turned or not sure):
            expected = "chance"
        if aggregate == "mean" and own.verdict not in ("gain", "loss"):
            expected = ""  # which the bootstrap that judges halves has judged too
        assert crossed(space, pca) == expected


def test_a_change_near_the_level_is_unclear_where_the_bootstrap_does_not_show_what_williams_test_does():
    seen = set()
    for seed in (13, 14, 50):
        base = make_space(60, seed=seed)
        own, raw = (score(base, one).cosines for one in (PCA, PCA.raw))
        noise = torch.randn(len(own), generator=torch.Generator().manual_seed(seed), dtype=own.dtype)
        for part in (0.3, 0.4, 0.5, 0.6):
            gold = part * own / own.std() + 0.1 * raw / raw.std() + noise
            space = shelf().call(replace(base, gold=gold), f"near the level {seed} {part}")
            found = paired(space, [score(space, one) for one in (PCA.raw, PCA)]).standing(1)
            disagreed = found.williams.p_value < LEVEL and found.verdict == "unclear"
            assert found.williams.p_value >= NEAR or not disagreed
            assert (objection(space, PCA) == "unclear") is disagreed
            seen.add((disagreed, found.verdict))
    assert seen >= {(True, "unclear"), (False, "chance"), (False, "gain")}


def test_thin_halves_speak_neither_for_a_change_nor_against_it():
    space = agreeing(make_space(30, sizes=(15, 15)), own=1.0, raw=0.4, cross=0.0)
    own, raw, cross = scores(space)
    halves = score(space, PCA.with_(fit="cross"))
    assert own > raw > cross
    assert williams(halves.cosines, score(space, PCA.raw).cosines, space.gold).p_value < LEVEL
    assert thin_halves(space, PCA, space.dim)
    assert thin_halves(space, Setting((1,), "soft"), space.dim)
    assert thin_halves(space, Setting((1,), "group:groups=1"), space.dim)
    assert not thin_halves(space, Setting((1,), "group:groups=2"), space.dim)  # six directions each, by twice as many
    fewest = min(int(fold.rows.counts.count_nonzero()) for fold in folds(space, "cross"))
    assert not thin_halves(space, PCA, int(fewest / 1.5))
    assert thin_halves(space, PCA, int(fewest / 1.5) + 1)
    for spec in ("center", "shrunk", "iternorm", "prefix"):  # which make no direction larger without bound
        assert not thin_halves(space, Setting((1,), spec), space.dim)
    assert crossed(space, PCA) == ""


def test_pairs_that_cannot_be_halved_speak_neither_for_a_change_nor_against_it():
    space = make_space(80)
    tied = replace(space, first=space.first * 0)  # every pair has one sentence in common
    with pytest.raises(ValueError, match="cross"):
        score(tied, PCA.with_(fit="cross"))
    assert crossed(shelf().call(tied, "tied"), PCA) == ""


def test_of_a_best_k_for_which_halves_are_thin_they_do_not_say_what_it_is_worth():
    space = make_space(30, sizes=(15, 15))
    fewest = min(int(fold.rows.counts.count_nonzero()) for fold in folds(space, "cross"))
    own, halves = (k_curve(space, PCA.with_(fit=fit)) for fit in ("task", "cross"))
    for best, thin in ((int(fewest / 1.5), False), (int(fewest / 1.5) + 1, True)):
        peak = replace(own, spearman=tuple(90.0 * (k == best) for k in own.k))
        words = held_out_words(space, peak, halves)
        assert ("too few sentences to say what k = " in words) is thin
        assert (f"{halves.spearman[best - 1]:.2f} instead of 90.00" in words) is not thin
