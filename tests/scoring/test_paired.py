"""Laws of the comparison: what is paired, what is called real, what must be the same."""

import math
from dataclasses import replace

import pytest
import torch

from tests.conftest import with_only
from whitelab.encoding.embeddings import LayerRows
from whitelab.scoring.fit_scopes import is_starved
from whitelab.scoring.paired import LEVEL, VERDICTS, doubt, paired, verdict_of
from whitelab.scoring.score import score
from whitelab.scoring.setting import Setting
from whitelab.statistics.correlation import spearman
from whitelab.statistics.significance import Difference, WilliamsTest, bootstrap, williams, williams_bounds


def scores(space, *specs, k=None, **changes):
    return [score(space, Setting((1, 2), spec, k if spec != "none" else None, **changes)) for spec in specs]


def difference(estimate, low, high, p):
    return Difference(estimate, low, high, p)


def williams_with(p):
    return WilliamsTest(1.0, 10, p, 0.5, 0.4, 0.9)


def test_intervals_and_tests_are_those_of_one_bootstrap_of_all_rows(space):
    given = scores(space, "none", "center", "pca", "soft")
    found = paired(space, given).against(1)
    drawn = bootstrap(torch.stack([one.cosines for one in given]), space.gold, space.subset, space.n_subsets)
    for i, one in enumerate(found):
        assert one.score is given[i]
        assert paired(space, given).standing(i, 1) == one or i == 1  # nan is not equal to itself
        assert (one.low, one.high) == (float(drawn.low[i]), float(drawn.high[i]))
        assert one.difference == drawn.difference(i, 1)
        assert one.low <= one.score.spearman <= one.high
        if i != 1:
            assert one.williams == williams(given[i].cosines, given[1].cosines, space.gold)


def test_scores_that_must_be_equal_are_the_same_and_others_are_not(layernorm):
    given = scores(layernorm, "pca", "zca", "group:groups=1", "group:groups=2")
    found = paired(layernorm, given).against()
    assert [one.verdict == "same" for one in found] == [True, True, True, False]
    assert found[1].difference.low == found[1].difference.high == found[1].difference.estimate == 0


@pytest.mark.parametrize("how", ["all", "mean"])
def test_a_score_of_other_gold_is_refused_also_where_it_shares_a_row(space, how):
    first, second = scores(space, "pca", "zca", aggregate=how)
    assert paired(space, [first, second]).rows == (0, 0)
    ends = torch.stack([space.gold.argmin(), space.gold.argmax()])
    for gold in (space.gold.flip(0), space.gold.index_copy(0, ends, space.gold[ends.flip(0)])):
        (wrong,) = scores(replace(space, gold=gold), "zca", aggregate=how)
        for given, place in (([first, wrong], 1), ([wrong, first], 0)):
            with pytest.raises(
                ValueError, match=rf"scores\[{place}\] must be of the pairs and the gold of space: it is"
            ):
                paired(space, given)
    constant = replace(space, gold=torch.ones_like(space.gold))
    with pytest.raises(ValueError, match=r"scores\[0\] must be of the pairs .*, None there"):
        paired(constant, [first])
    assert paired(constant, scores(constant, "pca", aggregate=how)).against()[0].verdict == "same"


@pytest.mark.parametrize("values", [lambda all: all.flip(1), lambda all: all + 0.01 * all.flip(1)], ids=["far", "near"])
def test_two_spaces_without_a_name_are_not_the_same(space, values):
    other = replace(space, values=values(space.values))
    first, second = (scores(one, "pca")[0] for one in (space, other))
    assert first.protocol == second.protocol
    found = paired(space, [first, second]).against()
    assert found[1].verdict != "same"
    assert found[1].difference.estimate == pytest.approx(second.spearman - first.spearman)


def test_one_variant_with_another_k_or_scope_is_not_the_same(space):
    (pca,), (few,), (cross,) = (
        scores(space, "pca"),
        scores(space, "pca", k=3),
        scores(space, "pca", fit="cross"),
    )
    for name, k in (("none", None), ("prefix", 3)):  # nothing is fitted
        (task,), (halves,) = scores(space, name, k=k), scores(space, name, k=k, fit="cross")
        assert paired(space, [task, halves]).rows == (0, 0)
    assert [one.verdict == "same" for one in paired(space, [pca, few, cross]).against()] == [True, False, False]


@pytest.mark.parametrize(
    ("found", "williams_p", "verdict"),
    [
        (difference(2.0, 1.0, 3.0, 0.002), 0.001, "gain"),
        (difference(-2.0, -3.0, -1.0, 0.002), 0.001, "loss"),
        (difference(0.4, 0.1, 0.9, 0.002), 0.001, "gain"),
        (difference(2.0, 1.0, 3.0, LEVEL), LEVEL, "chance"),
        (difference(2.0, 0.0, 3.0, 0.002), None, "chance"),
        (difference(2.0, 1.0, 3.0, 0.002), None, "gain"),
        (difference(2.0, 1.0, 3.0, 0.002), math.nan, "gain"),
        (difference(2.0, -0.1, 4.0, 0.06), 0.2, "chance"),
        (difference(2.0, -0.1, 4.0, 0.06), None, "chance"),
        (difference(2.0, -0.1, 4.0, 0.06), 0.03, "unclear"),
        (difference(2.0, 0.1, 4.0, 0.04), 0.06, "unclear"),
        (difference(0.0, 0.0, 0.0, 1.0), math.nan, "same"),
        (difference(math.nan, math.nan, math.nan, math.nan), math.nan, "undefined"),
    ],
)
def test_a_difference_is_real_where_every_defined_test_says_so(found, williams_p, verdict):
    assert verdict_of(found, None if williams_p is None else williams_with(williams_p)) == verdict
    assert verdict in VERDICTS


def test_doubt_covers_a_score_exactly_where_williams_test_leaves_one(space):
    kinds, pairs = set(), [space, with_only(space, 0), with_only(space, 2)]
    for one in pairs:
        raw, *others = scores(one, "none", "center", "pca", "soft")
        for other in (*others, *scores(one, "pca", k=5), *scores(one, "pca", k=2), *scores(one, "zca", fit="cross")):
            found = doubt(one, other, raw)
            assert found.low < raw.spearman < found.high
            alike = float(spearman(other.cosines, raw.cosines))
            bounds = williams_bounds(raw.spearman / 100, alike, one.n_pairs)
            for there, bound in zip((found.low, found.high), bounds, strict=True):
                assert there == (pytest.approx(100 * bound) if abs(bound) < 1 else math.copysign(math.inf, bound))
            real = williams(other.cosines, raw.cosines, one.gold).p_value < LEVEL
            assert found.verdict(other.spearman, 0) == ("" if real else "chance")
            kinds.add(real)
    assert kinds == {True, False}


@pytest.mark.parametrize("aggregate", ["all", "mean"])
@pytest.mark.parametrize("k", [2, None])  # of a map that is not starved, and of one that is
def test_a_map_that_keeps_as_many_directions_as_there_are_texts_says_nothing_whatever_its_score(thin, aggregate, k):
    raw, white = scores(thin, "none", "pca", k=k, aggregate=aggregate)
    found = doubt(thin, white, raw)
    assert {found.verdict(score, thin.n_sentences - 1) for score in (-100.0, white.spearman, 100.0)} == {"starved"}
    assert {found.verdict(score, thin.n_sentences - 2) for score in (-100.0, white.spearman, 100.0)} <= {"", "chance"}
    assert (found.verdict(white.spearman, white.rank) == "starved") is white.starved
    assert white.starved is is_starved(thin, white.setting, white.rank) is (k is None)
    for of in (thin, thin.judged):
        assert (paired(of, [raw, white]).against()[1].verdict == "starved") is white.starved


def test_there_is_no_doubt_where_nothing_is_tested(space):
    raw, white = scores(space, "none", "pca")
    few = replace(space, **{name: getattr(space, name)[:3] for name in ("first", "second", "gold", "subset")})
    flat = replace(space, gold=torch.ones_like(space.gold))
    for of, *two in (
        (space, raw, raw),  # nothing changes
        (space, *scores(space, "pca", "none", aggregate="mean")),
        (few, *scores(few, "center", "none")),
    ):
        assert {doubt(of, *two).verdict(score, 1) for score in (-100.0, raw.spearman, 100.0)} == {""}
    assert doubt(flat, *scores(flat, "pca", "none")) is None


def test_williams_is_left_out_where_subsets_are_averaged(space):
    given = scores(space, "none", "pca", aggregate="mean")
    assert [one.williams for one in paired(space, given).against()] == [None, None]
    whole = with_only(space, 0)
    assert paired(whole, scores(whole, "none", "pca", aggregate="mean")).against()[1].williams is not None


def test_a_score_that_is_not_defined_is_said_and_disturbs_nobody(space):
    flat = replace(space, gold=torch.ones_like(space.gold))
    found = paired(flat, scores(flat, "none", "pca")).against()
    assert [one.verdict for one in found] == ["same", "undefined"]
    assert math.isnan(found[1].low)


def test_what_cannot_be_compared_is_refused(space):
    given = scores(space, "none", "pca")
    with pytest.raises(ValueError, match=r"baseline=2 must lie between 0 and len\(scores\)-1=1"):
        paired(space, given).against(2)
    with pytest.raises(ValueError, match="scores must share one aggregate, got all, mean"):
        paired(space, [given[0], scores(space, "pca", aggregate="mean")[0]])


@pytest.mark.parametrize("fit", ["task", "cross", "more"])
def test_texts_that_share_a_vector_are_one_text_to_a_map(distinct, fit):
    """Two sentences of the same tokens leave a direction fewer; all cosines are rounding as without them."""
    values = distinct.values.clone()
    values[:, [1, 19]] = values[:, :1] * torch.tensor([[1 + 1e-8], [1 - 1e-8]])
    doubled = replace(distinct, values=values).with_text("more", LayerRows(values, distinct.counts))
    for spec in ("pca", "zca", "pca_cor", "soft:gamma=1"):
        raw, white = scores(doubled, "none", spec, fit=fit)
        assert white.starved
        assert paired(doubled, [raw, white]).against()[1].verdict == "starved"
        assert doubt(doubled, white, raw).verdict(white.spearman, white.rank) == "starved"
    assert not scores(doubled, "pca", fit=fit, k=5)[0].starved


def test_a_map_of_as_many_directions_as_texts_gets_no_verdict_unless_it_is_fitted_on_more(thin, space):
    raw, white = scores(thin, "none", "pca")
    (cut,) = scores(thin, "pca", k=3)
    assert [one.verdict == "starved" for one in paired(thin, [raw, white, cut]).against()] == [False, True, False]
    assert paired(thin, [white, raw]).against()[1].verdict == "starved"  # on either side
    more = thin.with_text("more", LayerRows(space.values, space.counts))
    assert paired(more, [raw, *scores(more, "pca", fit="more")]).against()[1].verdict != "starved"
