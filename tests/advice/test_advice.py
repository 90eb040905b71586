"""Laws of advice: it follows where the truth is planted, says so where nothing is there, and counts what is missing."""

import itertools
import json
import math
import re
from dataclasses import replace
from functools import partial
from statistics import NormalDist

import numpy as np
import pytest
import torch
from judged import retrieval_set, write_retrieval
from sklearn.cluster import KMeans
from sklearn.metrics import v_measure_score
from threadpoolctl import ThreadpoolController

from whitelab.advice import (
    advise_pairs,
    advise_search,
    advise_sentences,
    advise_texts,
    advising,
    answer,
    kept_as,
    named,
)
from whitelab.advice.advising import CLUSTER_STARTS, CLUSTERINGS, ON_PAIRS, ON_SEARCH, ON_TEXTS, PURPOSES
from whitelab.advice.answer import FEW
from whitelab.advice.candidates import candidates
from whitelab.advice.evidence import Option, Tried, enough, random_halves, weigh
from whitelab.base import threads
from whitelab.base.installation import MissingLibraryError
from whitelab.base.wording import capitalised
from whitelab.datasets import LabelledTexts, load_labelled, load_retrieval
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows
from whitelab.probe import How, probe
from whitelab.probe.rows import occurrences
from whitelab.retrieval.compression import Code
from whitelab.retrieval.embedded import with_judgements
from whitelab.retrieval.frontier import frontier
from whitelab.retrieval.relevance import retrieve
from whitelab.scoring.calibration import calibrate
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.paired import LEVEL, verdict_of
from whitelab.scoring.score import score
from whitelab.scoring.setting import Setting
from whitelab.statistics import correlation, significance
from whitelab.statistics.significance import Difference, bootstrap_means
from whitelab.ui.sections.advising import KEPT

D = 16


def pairs_of(meaning, nuisance, seed=0, pairs=400):
    """Pairs whose gold is the cosine of what they mean: `meaning` and `nuisance` scale the coordinates of a vector."""
    rng = np.random.default_rng(seed)
    first = rng.normal(size=(pairs, D))
    share = rng.random((pairs, 1))
    second = share * first + (1 - share) * rng.normal(size=(pairs, D))
    kept = meaning > 0
    gold = (first * second)[:, kept].sum(1) / np.linalg.norm(first[:, kept], axis=1)
    gold /= np.linalg.norm(second[:, kept], axis=1)
    x = np.stack([first, second], 1).reshape(-1, D) * meaning + rng.normal(size=(2 * pairs, D)) * nuisance
    values = torch.from_numpy(np.stack([x] * 3)).float()
    rows = torch.arange(2 * pairs)
    zeros = torch.zeros(pairs, dtype=torch.int64)
    return LayerEmbeddings(values, rows[::2], rows[1::2], torch.from_numpy(gold), zeros, ("all",))


CONE = (np.r_[0, np.ones(D - 1)], np.r_[30, np.zeros(D - 1)])  # one coordinate that means nothing, and is all one sees
ROUND = (np.ones(D), np.full(D, 0.1))
SMALL = (np.r_[np.ones(4), np.zeros(D - 4)], np.r_[np.zeros(4), np.full(D - 4, 1e-3)])  # four coordinates say it all


@pytest.fixture(scope="module")
def few_to_rank():
    """What few pairs say of what ranks them."""
    return advise_pairs(pairs_of(*ROUND, pairs=40), Setting((1,))).evidence


@pytest.fixture(scope="module")
def few_to_store():
    """What few pairs say of what is to store."""
    return advise_pairs(pairs_of(*SMALL, pairs=40), Setting((2,)), "store").evidence


@pytest.fixture(scope="module")
def small_to_store():
    """Pairs whose meaning lies in few coordinates, and what to store is advised of them."""
    space = pairs_of(*SMALL, pairs=100)
    return space, advise_pairs(space, Setting((2,)), "store")


def test_where_a_direction_hides_the_meaning_whitening_is_advised_and_its_gain_outlives_the_choice():
    advice = advise_pairs(pairs_of(*CONE), Setting((1,)))
    evidence = advice.evidence
    assert advice.decided
    assert advice.setting.whitening.partition(":")[0] in ("pca", "shrunk")
    assert advice.setting.fit == "cross"
    assert 20 < evidence.honest_gain <= evidence.best.difference.estimate + 1
    assert re.match("Use vectors of layers? .* with (PCA|shrunk) whitening", advice.sentences[0])


def test_the_protocol_that_is_shown_is_said_to_be_that_of_the_model_as_it_comes(few_candidates):
    space = pairs_of(*CONE, pairs=60)
    evidence = advise_pairs(space, Setting((1,))).evidence
    as_it_comes = score(space, evidence.baseline.setting, isotropy=False).line()
    assert evidence.line == f"The model as it comes: {as_it_comes}"


@pytest.mark.parametrize("purpose", ["rank", "threshold", "store"])
def test_however_many_options_are_tried_a_large_gain_is_called_real(purpose):
    space = pairs_of(*CONE, pairs=100)
    space = replace(space, values=space.values[:1].expand(5, -1, -1))
    evidence = advise_pairs(space, Setting((2, 3)), purpose).evidence
    assert len(evidence.options) > 50
    assert evidence.best.difference.low > 5
    assert evidence.best.verdict == "gain"


def test_the_first_layer_the_last_and_both_are_tried_wherever_the_bar_stands():
    usual = candidates(Setting((1,)), 7, D, "cross", D)
    assert {one.layers for one in usual} == {(6,), (1,), (1, 6)}
    for layers in ((6,), (2, 5), (-1, 1)):
        tried = candidates(Setting(layers), 7, D, "cross", D)
        assert (tried[0], set(usual) <= set(tried)) == (Setting((6,)), True)


def test_no_k_is_tried_that_half_of_the_sentences_cannot_fill():
    for purpose in ("rank", "store"):
        for pairs, most in ((40, 8), (6, 4)):  # halves of six sentences span five
            options = advise_pairs(pairs_of(*CONE, pairs=pairs), Setting((1,)), purpose).evidence.options
            assert max(one.setting.k or 0 for one in options) == most


def test_no_k_is_tried_that_the_documents_or_the_texts_cannot_fill():
    rng = np.random.default_rng(2)
    search = retrieval_set(documents=6, queries=20, most=3)
    embedded = with_judgements(torch.from_numpy(rng.normal(size=(2, len(search.sentences), D))).float(), search)
    data = LabelledTexts("made up", tuple(f"text {i}" for i in range(7)), None, np.arange(7) % 2, ("a", "b"), ("",) * 7)
    few = LayerRows(torch.from_numpy(rng.normal(size=(2, 7, D))).float(), torch.ones(7))
    found = [advise_search(embedded, Setting(), purpose) for purpose in ("rank", "store")]
    found.append(advise_texts(few, data, Setting(), "cluster"))
    assert [max(one.setting.k or 0 for one in advice.evidence.options) for advice in found] == [4, 4, 4]


def test_a_vector_counts_the_numbers_that_its_map_leaves():
    space = pairs_of(np.r_[np.ones(8), np.zeros(D - 8)], np.zeros(D), pairs=60)
    options = advise_pairs(space, Setting((1,))).evidence.options
    fitted = {one.setting: fit_scope(space, one.setting).whiteners for one in options}
    assert {one.setting: one.dim for one in options} == {
        setting: min(one.columns for one in maps) for setting, maps in fitted.items()
    }
    assert next(one.dim for one in options if (one.setting.whitening, one.setting.k) == ("pca", None)) == 8


def test_where_the_space_is_round_already_raw_is_the_advice():
    advice = advise_pairs(pairs_of(*ROUND, pairs=1500), Setting((1,)))
    assert advice.setting == advice.evidence.baseline.setting == Setting((2,))
    assert "nothing that was tried is better" in advice.sentences[0]
    assert abs(advice.evidence.honest_gain) < 0.5


@pytest.mark.parametrize("purpose", ["rank", "threshold", "store"])
def test_of_pairs_scored_by_how_far_apart_they_are_nothing_is_advised(purpose):
    space = pairs_of(*CONE, pairs=100)
    advice = advise_pairs(replace(space, gold=-space.gold), Setting((1,)), purpose)
    assert not advice.decided
    assert advice.evidence is None
    assert "If these are distances, turn them round" in advice.sentences[1]


def test_few_pairs_decide_nothing_and_say_how_many_would():
    advice = advise_pairs(pairs_of(*ROUND, pairs=24), Setting((1,)))
    assert not advice.decided
    assert advice.setting is None
    assert advice.needed > 24
    assert f"{advice.needed}"[-3:] in advice.sentences[2]
    more = advise_pairs(pairs_of(*ROUND, pairs=4 * 24), Setting((1,)))
    assert more.decided or 4 * 24 < more.needed < 30 * advice.needed
    for purpose in ("rank", "store"):
        handful = advise_pairs(pairs_of(*CONE, pairs=FEW - 1), Setting((1,)), purpose)
        assert (handful.decided, handful.needed) == (False, None)
        assert "19 pairs are too few to decide" in handful.sentences[0]


def test_what_would_decide_is_more_than_there_is_and_is_about_an_option_that_is_open(few_to_rank):
    raw, *others = few_to_rank.options
    sure = replace(others[0], score=99.0, difference=Difference(0.2, -0.1, 0.5, 0.2), p_holm=1.0)
    for low, estimate, high in ((-0.8, 0.2, 1.1), (-1.0, -0.2, 1.0), (0.1, 2.0, 4.0), (-9.0, 0.0, 9.0)):
        open_ = replace(others[1], score=50.0, difference=Difference(estimate, low, high, 0.2), p_holm=1.0)
        advice = answer(replace(few_to_rank, options=(raw, sure, open_)), "rank")
        assert advice.needed > few_to_rank.count
        which = named(open_.setting)
        assert (capitalised(which) if estimate > 0 else which) in advice.sentences[1]
        assert ("would decide" in advice.sentences[2]) is (estimate > 0)
        assert ("nothing that was tried scores higher" in advice.sentences[0]) is (estimate <= 0)
        assert ("would rule that out" in advice.sentences[2]) is (estimate <= 0)
    assert advice.needed == math.ceil(few_to_rank.count * 81)  # an interval of 9 to either side, where 1 would do


def with_items(evidence, count):
    """The same differences on `count` items: intervals fall as 1 / sqrt(n), and p-values with them."""
    raw, *others = evidence.options
    shorter, normal, found = math.sqrt(evidence.count / count), NormalDist(), []
    for one in others:
        gap = one.difference
        half = shorter * (gap.high - gap.low) / 2
        p_value = 2 * normal.cdf(-abs(gap.estimate) / half * normal.inv_cdf(1 - LEVEL / 2))
        found.append(Difference(gap.estimate, gap.estimate - half, gap.estimate + half, p_value))
    adjusted = significance.holm([one.p_value for one in found])
    options = [replace(one, difference=gap, p_holm=p) for one, gap, p in zip(others, found, adjusted, strict=True)]
    return replace(evidence, count=count, options=(raw, *options))


@pytest.mark.parametrize(
    "gaps",
    [
        [(0.1, 1.5), (-0.5, 4.0)],  # what is best may be ruled out long before another is
        [(-0.1, 1.2), (-0.5, 4.0), (-3.0, 5.0)],
        [(1.5, 2.0), (-0.5, 6.0)],  # what is best is real long before another is ruled out
        [(3.0, 9.0), (2.0, 2.5), (0.9, 1.0)],
    ],
)
def test_so_many_items_as_are_named_would_decide_and_few_less_would_not(gaps, few_to_rank):
    raw, *others = few_to_rank.options
    options = [
        replace(one, score=raw.score + estimate, difference=Difference(estimate, estimate - half, estimate + half, 0.1))
        for one, (estimate, half) in zip(others, gaps, strict=False)
    ]
    here = with_items(replace(few_to_rank, options=(raw, *options)), few_to_rank.count)
    needed = answer(here, "rank").needed
    assert answer(with_items(here, math.ceil(1.02 * needed)), "rank").decided
    assert not answer(with_items(here, math.floor(0.98 * needed)), "rank").decided


def test_the_shortest_vectors_that_hold_the_meaning_are_stored():
    advice = advise_pairs(pairs_of(*SMALL), Setting((2,)), "store")
    said = (advice.setting, advice.code)
    (own,) = [one for one in advice.evidence.options if (one.setting, one.code) == said]
    assert kept_as(own) in advice.sentences[0]
    assert min(own.behind.low, own.difference.low) > -1
    assert own.dim == 4
    assert own.size < 16
    near = [option for option in advice.evidence.options if min(option.behind.low, option.difference.low) > -1]
    assert min(option.size for option in near) == own.size
    whole = advise_pairs(pairs_of(*ROUND), Setting((2,)), "store")  # the control: every coordinate counts
    assert whole.setting is None or whole.setting.k is None
    assert whole.evidence.baseline.size == 4 * D


@pytest.mark.parametrize(("setting", "code"), [("L2", "int8"), ("L2:pca@4", "int8"), ("L2:pca@4", "binary+itq")])
def test_kept_as_advised_by_the_lines_that_are_said_and_shown_vectors_have_the_score_that_is_measured(
    setting, code, small_to_store
):
    space, advice = small_to_store
    chosen, code = Setting.parse(setting), Code.parse(code)
    like = next(one for one in advice.evidence.options if one.code == code and one.setting.k == chosen.k)
    advice = replace(advice, setting=like.setting, code=code)
    *_, found = frontier(space, [chosen.raw, chosen], [code])
    (measured,) = (one for one in found.points if (one.setting, one.code) == (chosen, code))

    def scored(asked, stored):
        cosines = torch.from_numpy((asked[space.first].astype(np.float64) * stored[space.second]).sum(1))
        return correlation.aggregate(cosines.round(decimals=6)[None], space.gold, space.subset, 1, "all").item() * 100

    held = {"advice": replace(advice, setting=chosen), "space": space}
    exec(KEPT.format(space="space", setting="advice.setting.with_(fit='task')", rows=""), held)
    coder, vectors, stored = held["coder"], held["vectors"], held["stored"]
    assert stored.nbytes == len(vectors) * measured.bytes
    assert scored(coder.query(vectors), coder.stored(vectors)) == pytest.approx(measured.score, abs=1e-6)
    assert f"Coder(Code.parse('{code}'), vectors)" in advice.keeping
    made = re.search("`(faiss.IndexScalarQuantizer.*?)`", advice.keeping)
    assert bool(made) == (str(code) == "int8")
    if made:
        index = eval(made[1], {"faiss": pytest.importorskip("faiss")})
        index.train(vectors.astype(np.float32))
        index.add(vectors.astype(np.float32))
        assert index.sa_code_size() == like.size
        products, rows = index.search(vectors.astype(np.float32), len(vectors))
        table = np.zeros_like(products)
        np.put_along_axis(table, rows, products, 1)
        np.testing.assert_allclose(table, coder.query(vectors) @ coder.stored(vectors).T, atol=1e-5)


def test_vectors_that_are_kept_in_float32_need_no_word_on_how():
    assert advise_pairs(pairs_of(*ROUND, pairs=40), Setting((2,))).keeping == ""


def test_a_best_that_is_shorter_and_open_is_weighed_against_raw(few_to_store):
    raw, none = few_to_store.baseline, Difference(0.0, 0.0, 0.0, 1.0)
    short = next(one for one in few_to_store.options if one.size < raw.size)
    best = replace(short, score=99.0, difference=Difference(0.25, -2.25, 2.75, 0.5), behind=none)
    advice = answer(replace(few_to_store, options=(raw, best)), "store")
    assert (advice.setting, advice.needed) == (None, few_to_store.count * 4)  # 2.5 to either side, where 1.25 would do
    assert named(raw.setting) in advice.sentences[0]
    assert "score 99.00 (+0.25 points, -2.25 to +2.75); if it stays so, about 160 pairs" in advice.sentences[2]


@pytest.mark.parametrize("count", [1, 5, 20])
def test_of_many_short_vectors_none_is_stored_whose_loss_only_luck_keeps_below_a_point(count, few_to_store):
    """Nineteen in twenty of such intervals hold what is true, so of twenty options one is likely to be wrong."""
    raw = few_to_store.baseline
    short = next(one for one in few_to_store.options if one.size < raw.size)
    near = Difference(-0.5, -0.99, -0.01, 0.04)
    several = replace(few_to_store, options=(raw, *[replace(short, difference=near, behind=near)] * count))
    advice = answer(several, "store")
    assert advice.decided is (count == 1)
    if count > 1:
        for items, decides in ((math.ceil(1.02 * advice.needed), True), (math.floor(0.98 * advice.needed), False)):
            more = with_items(several, items)
            more = replace(more, options=tuple(replace(one, behind=one.difference) for one in more.options))
            assert answer(more, "store").decided is decides


def test_what_only_the_number_of_options_keeps_from_being_stored_is_named(few_to_store):
    raw, sure, near = few_to_store.baseline, Difference(-0.1, -0.2, 0.1, 0.7), Difference(-0.5, -0.99, -0.01, 0.04)
    short = replace(
        next(one for one in few_to_store.options if one.size < raw.size), size=8, difference=sure, behind=sure
    )
    for gap, best, many, said in (
        (near, sure, 4, True),
        (near, sure, 1, False),  # it is what is advised
        (replace(near, low=-1.01), sure, 4, False),
        (near, Difference(-0.5, -3.0, 2.0, 0.7), 4, True),  # against raw alone, as the best may be better by a point
    ):
        small = replace(short, size=4, score=50.0, difference=gap, behind=gap if best is sure else best)
        options = (raw, replace(short, behind=best), *[small] * many)
        advice = answer(replace(few_to_store, options=options), "store")
        assert advice.decided
        assert (
            f"4 bytes, seem to do as well, but among the {many + 1} shorter ones that were tried one may by luck."
            in advice.sentences[2]
        ) is said
        assert f": {4 if many == 1 else 8} bytes a vector" in advice.sentences[0]


@pytest.mark.parametrize("best", ["raw", "short", "other"])
def test_what_is_to_store_names_no_option_twice(best, few_to_store):
    raw, near = few_to_store.baseline, Difference(-0.1, -0.2, 0.1, 0.7)
    short = replace(next(one for one in few_to_store.options if one.size < raw.size), difference=near, behind=near)
    options = {"raw": raw, "short": short, "other": replace(raw, setting=Setting((1,)))}
    options[best] = replace(options[best], score=200.0)
    _, said, _ = answer(replace(few_to_store, options=tuple(options.values())), "store").sentences
    assert said.count(named(raw.setting)) == 1
    assert said.count("200.00") == 1
    assert (kept_as(options["other"]) in said) is (best == "other")


def test_what_is_surely_as_good_as_raw_is_stored_although_the_best_may_be_better(few_to_store):
    raw = few_to_store.baseline
    short = next(one for one in few_to_store.options if one.size < raw.size)
    safe = replace(short, difference=Difference(0.0, -0.2, 0.2, 1.0), behind=Difference(-0.5, -3.0, 2.0, 0.7))
    best = replace(raw, setting=Setting((1,)), score=99.0, difference=Difference(0.5, -2.0, 3.0, 0.7))
    best = replace(best, behind=Difference(0.0, 0.0, 0.0, 1.0))
    advice = answer(replace(few_to_store, options=(raw, safe, best)), "store")
    assert (advice.setting, advice.code, advice.decided) == (safe.setting, safe.code, True)
    assert advice.sentences[0] == f"Use {kept_as(safe)}: {safe.size} bytes a vector in place of {raw.size}."
    assert "it is -0.50 (-3.00 to +2.00), so more than a point may be left there" in advice.sentences[2]


def test_without_faiss_vectors_are_shortened_only(monkeypatch):
    def missing(extra):
        raise MissingLibraryError(extra)

    monkeypatch.setattr(advising, "need", missing)
    advice = advise_pairs(pairs_of(*SMALL, pairs=100), Setting((2,)), "store")
    assert {option.code for option in advice.evidence.options} == {Code()}


def test_every_score_is_the_scorers_and_the_first_option_is_the_model_as_it_comes():
    space = pairs_of(*CONE, pairs=100)
    options = advise_pairs(space, Setting((0, 1))).evidence.options
    assert [option.setting for option in options] == list(candidates(Setting((0, 1)), 3, D, "cross", D))
    assert options[0].setting == Setting((2,))
    for option in options[::5]:
        assert option.score == pytest.approx(score(space, option.setting).spearman)
        assert option.low <= option.score <= option.high


def test_two_texts_are_called_the_same_by_the_cut_that_is_named(few_candidates):
    space = pairs_of(*CONE, pairs=200)
    found = [advise_pairs(space, Setting((1,)), "threshold", cut).evidence for cut in (None, 0.0, 0.8)]
    assert len({one.best.score for one in found}) == 3
    middle = float(space.gold.min() + space.gold.max()) / 2
    assert found[0].protocol["gold_from"] == pytest.approx(middle)
    with pytest.raises(ValueError, match=r"gold_from=7 must divide the gold scores, which run from -?0\.\d+ to 1"):
        advise_pairs(space, Setting((1,)), "threshold", 7.0)


@pytest.mark.parametrize("truth", [CONE, ROUND])  # decided, and for what comes as it is
def test_the_cosine_that_calls_two_texts_the_same_is_that_of_a_calibration_under_what_is_advised(few_candidates, truth):
    space = pairs_of(*truth, pairs=200)
    advice = advise_pairs(space, Setting((1,)), "threshold", 0.6)
    setting = advice.setting or advice.evidence.baseline.setting
    assert advice.threshold == calibrate(space, setting, 0.6).threshold
    assert f"{named(setting)}, a cosine above {advice.threshold.cosine:.4f}" in advice.cosine
    assert advice.text.split("\n") == [*advice.sentences, advice.cosine, advice.evidence.line]
    assert advice.text.endswith("the same from a gold score of 0.6 on")
    assert advise_pairs(space, Setting((1,))).threshold is None


def test_pairs_on_which_nothing_can_be_measured_are_said_to_decide_nothing():
    space = pairs_of(*CONE, pairs=30)
    constant, hub = replace(space, gold=torch.ones(30)), replace(space, first=torch.zeros(30, dtype=torch.int64))
    for pairs, why in ((constant, "all gold scores are 1"), (hub, "without a common sentence")):
        for purpose in ("rank", "threshold", "store"):
            advice = advise_pairs(pairs, Setting((1,)), purpose)
            assert (advice.decided, advice.evidence) == (False, None)
            assert why in advice.sentences[1]
            assert "fit=" not in advice.sentences[1]  # which is no word of whoever reads three sentences


@pytest.mark.parametrize("purpose", ["rank", "store"])
def test_where_a_subset_of_two_pairs_is_averaged_nothing_is_decided(purpose):
    space = pairs_of(*CONE, pairs=60)
    subset = torch.tensor([1] * 2 + [0] * 58)
    advice = advise_pairs(
        replace(space, subset=subset, subset_names=("a", "b")), Setting((1,), aggregate="mean"), purpose
    )
    assert (advice.decided, advice.evidence) == (False, None)
    assert significance.NO_INTERVAL[1:] in advice.sentences[1]


def test_where_one_pair_is_the_same_no_cosine_is_advised():
    advice = advise_pairs(pairs_of(*ROUND, pairs=60), Setting((1,)), "threshold", gold_from=0.999)
    assert (advice.decided, advice.evidence, advice.threshold) == (False, None, None)
    assert significance.NO_INTERVAL[1:] in advice.sentences[1]


def test_what_is_best_by_luck_alone_loses_its_lead_on_the_other_half():
    settings, leads, kept = candidates(Setting(), 3, D, "cross", D)[:12], [], []
    for seed in range(8):
        values = torch.from_numpy(np.random.default_rng(seed).normal(size=(12, 60)))
        drawn = bootstrap_means(values, enough(len(settings)))
        measured = ("x", "y", 60), ({}, "")
        found = weigh(
            [Tried.whole(one, D) for one in settings],
            drawn,
            values @ random_halves(60) / 30,
            *measured,
        )
        leads.append(found.best.difference.estimate)
        kept.append(found.honest_gain)
        assert answer(found, "rank").setting in (None, settings[0])
    assert np.mean(leads) > 0.15
    assert abs(np.mean(kept)) < np.mean(leads) / 2


@pytest.fixture
def warned_each_time():
    """What torch warns of once in a process, it warns of in this test."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(before)


@pytest.mark.filterwarnings("error:The given NumPy array is not writable")
@pytest.mark.usefixtures("few_candidates", "warned_each_time")
def test_searches_and_texts_are_measured_as_on_their_own_pages(tmp_path):
    rng = np.random.default_rng(1)
    search = load_retrieval(write_retrieval(tmp_path / "search"))
    embedded = with_judgements(torch.from_numpy(rng.normal(size=(3, len(search.sentences), D))).float(), search)
    found = advise_search(embedded, Setting((1,)), "rank").evidence
    for option in found.options:
        assert option.score == pytest.approx(100 * retrieve(embedded, option.setting).means["ndcg@10"])
    data = load_labelled("demo", "act")
    rows, labels = occurrences(data, np.arange(data.n_rows)), torch.tensor(data.y)
    values = torch.from_numpy(rng.normal(size=(3, len(data.sentences), D))).float()
    values[2, rows, 0] += 8 * labels.float()
    space = LayerRows(values, torch.bincount(rows, minlength=len(data.sentences)).double())
    grouped = advise_texts(space, data, Setting((2,)), "cluster").evidence
    x = torch.nn.functional.normalize(values[2, rows].double(), dim=1).numpy()
    runs = [KMeans(len(set(data.y)), n_init=CLUSTER_STARTS, random_state=seed).fit(x) for seed in range(CLUSTERINGS)]
    mean = np.mean([v_measure_score(labels, one.labels_) for one in runs])
    assert grouped.baseline.score == pytest.approx(100 * mean, abs=2)
    assert grouped.baseline.score > 40
    read = advise_texts(space, data, Setting((2,)), "classify").evidence
    assert read.baseline.score == pytest.approx(100 * probe(space, data, Setting((2,)), How("linear")).hits.mean())


def test_layers_that_are_stored_side_by_side_are_those_stored_one_after_another(few_candidates, monkeypatch):
    found = []
    for count in (1, 3):
        seen = []
        monkeypatch.setattr(advising, "side_by_side", partial(threads.side_by_side, threads=count))
        advice = advise_pairs(pairs_of(*ROUND), Setting((1,)), "store", progress=lambda *at, seen=seen: seen.append(at))
        assert seen == sorted(seen)
        found.append(json.dumps(advice.as_dict()))
    assert found[0] == found[1]


def test_groups_that_are_found_side_by_side_are_those_found_one_after_another(monkeypatch):
    rng, n, seen, found_threads = np.random.default_rng(6), 60, [], set()
    kinds = np.arange(n) % 3
    data = LabelledTexts("made up", tuple(map(str, range(n))), None, kinds, ("a", "b", "c"), ("",) * n)
    space = LayerRows(torch.from_numpy(rng.normal(size=(2, n, D)) + kinds[:, None]).float(), torch.ones(n))
    monkeypatch.setattr(advising, "candidates", lambda *_: (Setting((1,)), Setting((0,))))

    def of_three(work, items, count):
        seen.append(count)
        return threads.side_by_side(work, items, count or 3)

    class Watched(KMeans):
        def fit(self, *given, **named):
            found_threads.update(one["num_threads"] for one in ThreadpoolController().info())
            return super().fit(*given, **named)

    monkeypatch.setattr(advising, "side_by_side", of_three)
    monkeypatch.setattr(advising, "KMeans", Watched)
    found = []
    monkeypatch.setattr(threads, "whole", lambda: 3)
    for least, most in ((2**18, 2**27), (0, 2**27), (0, 2 * n * D)):
        monkeypatch.setattr(advising, "_FEW_NUMBERS", least)
        monkeypatch.setattr(advising, "_MANY_NUMBERS", most)
        with ThreadpoolController().limit(limits=2):
            found += [advise_texts(space, data, Setting(), "cluster").evidence]
    assert seen == [1, 1, None, None, 2, 2]
    assert found_threads == {1}  # of BLAS and of OpenMP
    for one, *others in zip(*(each.options for each in found), strict=True):
        for other in others:
            assert (one.score, one.low, one.high) == pytest.approx((other.score, other.low, other.high))


def test_layers_that_differ_by_chance_alone_group_texts_equally_well(monkeypatch):
    monkeypatch.setattr(advising, "candidates", lambda *_: tuple(Setting((layer,)) for layer in range(6)))
    n, kinds, real = 60, np.arange(60) % 4, 0
    data = LabelledTexts("made up", tuple(map(str, range(n))), None, kinds, tuple("abcd"), ("",) * n)
    for seed in range(4, 10):  # in three of these a gain was called real when texts alone were drawn anew
        rng = np.random.default_rng(seed)
        turns = [np.linalg.qr(rng.normal(size=(8, 8)))[0] for _ in range(6)]
        centres, noise = 0.7 * rng.normal(size=(4, 8))[kinds], rng.normal(size=(6, n, 8))
        space = LayerRows(torch.from_numpy(np.stack([centres @ turn for turn in turns]) + noise).float(), torch.ones(n))
        _, *others = advise_texts(space, data, Setting((0,)), "cluster").evidence.options
        real += any(one.verdict != "chance" for one in others)
    assert real <= 1


@pytest.mark.parametrize("purpose", ON_TEXTS)
def test_a_text_that_comes_twice_says_no_more_than_one_that_comes_once(few_candidates, purpose):
    n, rng = 60, np.random.default_rng(3)
    kinds, x = np.arange(n) % 2, rng.normal(size=(2, n, D))
    x[:, :, 0] += kinds
    wide = []
    for often in (1, 2):
        texts, labels = tuple(f"text {i // often}" for i in range(often * n)), np.repeat(kinds, often)
        data = LabelledTexts("made up", texts, None, labels, ("a", "b"), ("",) * len(texts))
        evidence = advise_texts(
            LayerRows(torch.from_numpy(x).float(), often * torch.ones(n)), data, Setting(), purpose
        ).evidence
        assert evidence.count == n
        wide.append(np.mean([one.high - one.low for one in evidence.options]))
    assert wide[1] == pytest.approx(wide[0], rel=0.15)


def test_clusterings_of_the_same_vectors_are_not_told_apart(monkeypatch):
    rng = np.random.default_rng(0)
    n, layers, seeds = 300, 12, itertools.count()
    kinds = rng.integers(10, size=n)  # two to a class: which of them a run joins is chance
    x = rng.normal(size=(10, 24))[kinds] + rng.normal(size=(n, 24)) / 10
    data = LabelledTexts("made up", tuple(map(str, range(n))), None, kinds // 2, tuple("abcde"), ("",) * n)
    space = LayerRows(torch.from_numpy(np.stack([x] * layers)).float(), torch.ones(n))

    def each_drawn_anew(*given, random_state, **named):
        return KMeans(*given, random_state=next(seeds), **named)

    monkeypatch.setattr(advising, "candidates", lambda *_: tuple(Setting((layer,)) for layer in range(layers)))
    monkeypatch.setattr(advising, "KMeans", each_drawn_anew)
    advice = advise_texts(space, data, Setting(), "cluster")
    _, *others = advice.evidence.options
    assert {one.verdict for one in others} == {"chance"}
    assert sum(one.difference.low > 0 or one.difference.high < 0 for one in others) <= 1
    assert (advice.decided, advice.needed) == (False, None)  # more texts do not narrow what lies between the runs


def test_the_resamples_are_followed_as_the_options_are_until_all_is_done(few_candidates, monkeypatch):
    n, rng = 60, np.random.default_rng(4)
    pairs, search = pairs_of(*ROUND, pairs=n), retrieval_set(queries=n)
    embedded = with_judgements(torch.from_numpy(rng.normal(size=(2, len(search.sentences), D))).float(), search)
    data = LabelledTexts("made up", tuple(map(str, range(n))), None, np.arange(n) % 2, ("a", "b"), ("",) * n)
    texts = LayerRows(torch.from_numpy(rng.normal(size=(2, n, D))).float(), torch.ones(n))
    asked = [(advise_pairs, pairs, Setting((1,)), purpose) for purpose in ON_PAIRS]
    asked += [(advise_search, embedded, Setting(), purpose) for purpose in ON_SEARCH]
    asked += [(advise_texts, texts, data, Setting(), purpose) for purpose in ON_TEXTS]
    monkeypatch.setattr(significance, "_CELLS_PER_CHUNK", 700 * n)  # some chunks
    for advise, *given in asked:
        seen = []
        advise(*given, progress=lambda *step, seen=seen: seen.append(step))
        assert seen == sorted(seen)
        assert seen[-1] == (100, 100)
        assert 0 < seen[0][0] < 80
        assert 50 <= seen[-2][0] < 100


@pytest.mark.parametrize("purpose", ON_TEXTS)
def test_an_option_of_few_numbers_counts_as_the_short_work_that_it_is(purpose, monkeypatch):
    settings = Setting((1,)), Setting((1,), whitening="prefix", k=D // 4), Setting((1,), whitening="pca")
    monkeypatch.setattr(advising, "candidates", lambda *_: settings)
    rng, n, seen = np.random.default_rng(4), 60, []
    data = LabelledTexts("made up", tuple(map(str, range(n))), None, np.arange(n) % 2, ("a", "b"), ("",) * n)
    texts = LayerRows(torch.from_numpy(rng.normal(size=(2, n, D))).float(), torch.ones(n))
    advise_texts(texts, data, Setting(), purpose, progress=lambda done, _: seen.append(done))
    first, short, last = np.diff([0, *seen[:3]])
    assert 0 < 3 * short <= min(first, last)
    assert abs(first - last) <= 1


@pytest.mark.parametrize("purpose", PURPOSES)
def test_resamples_go_on_where_the_options_end_and_count_little_where_these_cost_most(purpose):
    seen = []
    measuring, weighing = advising._parts(lambda *step: seen.append(step), purpose)
    measuring(3, 3), weighing(0, 2), weighing(2, 2)
    (measured, _), begun, ended = seen
    assert (begun, ended) == ((measured, 100), (100, 100))
    assert (measured >= 90) == (purpose in ("store", *ON_TEXTS))


def test_sentences_alone_decide_nothing_and_warn_of_a_map_of_few():
    rng = np.random.default_rng(0)
    few, many = (
        advise_sentences(LayerRows(torch.from_numpy(rng.normal(size=(2, n, D))).float(), torch.ones(n)))
        for n in (40, 4000)
    )
    assert not few.decided
    assert not many.decided
    assert "fits noise" in few.sentences[2]
    assert "enough for a map to carry over" in many.sentences[2]
    for one in (few, many):  # what is said of the layer that is advised is measured there
        assert "raw vectors of layer 1" in one.sentences[0]
        assert "whitening of layer 1, fitted" in one.sentences[1]
    with pytest.raises(ValueError, match="sentences must be four that differ, or more, got 3"):
        advise_sentences(LayerRows(torch.ones(2, 3, D), torch.ones(3)))


def test_a_purpose_that_the_data_does_not_serve_is_refused():
    with pytest.raises(ValueError, match="purpose='cluster' must be one of rank, threshold, store"):
        advise_pairs(pairs_of(*ROUND, pairs=30), Setting(), "cluster")
    with pytest.raises(ValueError, match=r"layers=\[9\] must lie between 0 and 2, the last layer"):
        advise_pairs(pairs_of(*ROUND, pairs=30), Setting((9,)))


def test_an_option_is_judged_as_every_score_is_with_the_p_value_that_knows_of_the_others():
    gap = Difference(2.0, 1.0, 3.0, LEVEL / 50)
    option = Option(Setting(), D, 4 * D, Code(), 50.0, 49.0, 51.0, gap, 0.9 * LEVEL, gap, 1000)
    assert option.verdict == verdict_of(gap, None) == "gain"
    assert replace(option, p_holm=LEVEL).verdict == "chance"
    for p, words in ((4 / 1001, "p\u00a0=\u00a00.045"), (2 / 1001, "p\u00a0<\u00a00.045")):  # none is less
        assert replace(option, difference=replace(gap, p_value=p)).p_words == words
    itself = Difference(0.0, 0.0, 0.0, 1.0)
    assert replace(option, difference=itself, p_holm=math.nan).verdict == "same"


def test_an_option_with_nothing_to_tell_of_its_lead_is_still_a_record_of_json():
    nothing = Difference(*[math.nan] * 4)
    option = Option(Setting(), D, 4 * D, Code(), 50.0, math.nan, math.nan, nothing, math.nan, nothing, 0)
    record = json.loads(json.dumps(option.as_dict(), allow_nan=False))
    assert {record[name] for name in ("low", "high", "difference_low", "difference_high", "p_value")} == {None}
    assert record["p_holm"] is None
