"""Laws of a score: it is the papers' computation, says how it was made, and says why where there is none."""

import json
import re
from dataclasses import replace

import pytest
import reference
import torch
from processes import run_python
from torch.testing import assert_close

from tests.conftest import AT_ONE_DIMENSION, OF_MOMENTS, SMALL, with_only
from whitelab.encoding.embeddings import LayerRows, Origin
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.scoring.score import reversal, score
from whitelab.scoring.setting import Protocol, Setting, check_settings
from whitelab.statistics import correlation, geometry
from whitelab.statistics.correlation import AGGREGATES
from whitelab.statistics.moments import Moments
from whitelab.whitening import WHITENERS, cosine_class

SETTINGS = [(name, k) for name, variant in OF_MOMENTS.items() for k in ((None, 1, 5) if variant.takes_k else (None,))]


def setting(layers=(0, 3), *given, **changes):
    return Setting(layers, *given, **changes)


def written(found):
    return json.loads(json.dumps(found.as_dict(), allow_nan=False))


# The score


@pytest.mark.parametrize(("variant", "k"), SETTINGS)
@pytest.mark.parametrize(("layers", "how"), zip([(2,), (0, 3), (0, 1, 2)], AGGREGATES, strict=True))
def test_a_score_is_the_papers_computation(any_space, variant, k, layers, how):
    found = score(any_space, Setting(layers, variant, k, aggregate=how))
    expected = reference.score(any_space, layers, variant, k, how)  # none of cosines that are all 1
    assert found.spearman == (None if expected != expected else pytest.approx(expected, abs=1e-9))


def test_settings_do_change_the_score(space):
    changes = [{}, {"whitening": "center"}, {"whitening": "standardize"}, {"whitening": "pca"}, {"layers": (1,)}]
    changes += [{"whitening": "pca", "k": 5}, {"aggregate": "mean"}, {"aggregate": "wmean"}]
    assert len({round(score(space, setting(**change)).spearman, 6) for change in changes}) == len(changes)


def test_a_score_carries_its_circumstances(space):
    origin = Origin("a model", "some data", "a task", "test")
    found = score(replace(space, origin=origin), setting((-1, 0), "pca", 5))
    assert (found.pairs, found.fitted, found.rank, found.dim) == (80, 160, 5, 12)
    assert found.protocol == Protocol(setting((0, 3), "pca", 5), origin)
    assert found.setting is found.protocol.setting
    assert found.cosines.shape == (80,)
    assert found.half_width == pytest.approx(100 * correlation.half_width(found.spearman / 100, 80))
    assert {name: one.pairs for name, one in found.subsets.items()} == {
        "part 0": 40,
        "part 1": 25,
        "part 2": 15,
    }


def test_the_score_of_a_subset_ranks_its_pairs_under_the_whole_tasks_fit(space):
    found = score(space, setting(whitening="pca"))
    for number, one in enumerate(found.subsets.values()):
        rows = space.subset == number
        expected = 100 * reference.spearman(found.cosines[rows], space.gold[rows])
        assert one.spearman == pytest.approx(expected, abs=1e-9)
    alone = score(with_only(space, 0), setting(whitening="pca"))
    assert alone.subsets["part 0"].spearman == alone.spearman
    assert alone.spearman != pytest.approx(found.subsets["part 0"].spearman)


def test_identical_pairs_tie_under_every_variant(any_space):
    same = any_space.first == any_space.second
    assert same.sum() > 1
    for variant, k in SETTINGS:
        assert len(fit_scope(any_space, setting((1,), variant, k)).cosines()[same].unique()) == 1


def test_repeated_sentences_count_in_the_fit(space):
    assert space.counts.max() > 1
    assert int(space.counts.sum()) == 2 * space.n_pairs
    rows = torch.from_numpy(reference.task_rows(space, (1,)))
    assert_close(space.moments((1,)).mean, rows.mean(0))
    assert_close(space.moments((1,)).covariance, rows.T.cov())
    assert not torch.allclose(space.moments((1,)).mean, Moments.of(space.combine((1,))).mean)


def test_the_interval_of_a_mean_uses_the_sizes_of_the_subsets(space):
    found = score(space, setting(aggregate="mean"))
    assert found.half_width == pytest.approx(100 * correlation.half_width(found.spearman / 100, [40, 25, 15]))


DOORS = """
from importlib import import_module
from inspect import isfunction, signature
from pkgutil import walk_packages
import whitelab
from whitelab import probe, scoring, sweeps
from whitelab.retrieval.embedded import RetrievalSpace

def functions(package):
    modules = [import_module(one.name) for one in walk_packages(package.__path__, package.__name__ + ".")]
    return {f for module in modules for f in vars(module).values() if isfunction(f) and f.__name__[0] != "_"}

def needed(f):
    named = signature(f).parameters.values()
    return {one.name for one in named if one.default is one.empty and one.kind < one.VAR_KEYWORD}

def said(f, **given):
    try:
        next(f(**given))  # the first of what comes one by one
    except Exception as error:
        print(f.__name__, type(error).__name__, error)

exported = {f for f in (getattr(whitelab, name) for name in whitelab.__all__) if isfunction(f)}
names = {"space", "setting", "settings", "sizes"}
of_a_space = {f for f in functions(scoring) | functions(sweeps) if needed(f) <= names}
"""

TEXT_FOR_A_SETTING = """
for f in of_a_space | exported | {probe.probe}:
    given = dict.fromkeys(needed(f)) | ({"space": RetrievalSpace(*[None] * 4, 0)} if "space" in needed(f) else {})
    for taken in {"setting", "settings", "chosen"} & {*given}:
        said(f, **given | {taken: ["L1:pca"] if taken == "settings" else "L1:pca"})
"""

PAIRS_FOR_A_SPACE = """
chosen = whitelab.Setting(whitening="clusters")
given = {"space": whitelab.load("demo"), "setting": chosen, "settings": [chosen], "sizes": [3]}
for f in of_a_space:
    if "space" in needed(f) != {"space"}:
        said(f, **{name: given[name] for name in needed(f)})
"""

OTHER_THINGS = """
import torch
from whitelab.encoding.embeddings import LayerEmbeddings, Origin
from whitelab.retrieval import coded_search, embedded, relevance
from whitelab.scoring.paired import doubt
from whitelab.statistics.correlation import Judged

rows = torch.zeros(1, dtype=torch.int64)
space = LayerEmbeddings(torch.zeros(1, 1, 2), rows, rows, torch.ones(1), rows, ("",), Origin())
chosen = {"setting": whitelab.Setting(), "settings": [whitelab.Setting()], "query": 0}
others = {coded_search.coded_searches, embedded.with_judgements, relevance.hits, relevance.against, doubt}
for other in ([1.0], ["x"]):
    for f in others | {f for f in exported if ".retrieval." in f.__module__ or f is whitelab.paired}:
        said(f, **dict.fromkeys(needed(f), other) | {name: chosen[name] for name in needed(f) & {*chosen}})
    said(whitelab.paired, space=space, scores=other)
    said(doubt, space=space, score=other, baseline=other)
    said(whitelab.frontier, space=space, settings=chosen["settings"], codes=other)
    said(coded_search.coded_searches, space=space, setting=chosen["setting"], codes=other)
    said(whitelab.search_costs, space=space, setting=chosen["setting"], plan=other)
    said(embedded.with_judgements, values=space.values, data=other)
"""


@pytest.fixture(scope="module")
def said():
    """What the doors say to each of these, asked in one process; here signatures are checked before they can speak."""
    parts = TEXT_FOR_A_SETTING, PAIRS_FOR_A_SPACE, OTHER_THINGS
    lines = run_python(DOORS + "print()\n".join(parts)).stdout.split("\n\n")
    return {part: one.splitlines() for part, one in zip(parts, lines, strict=True)}


def test_text_that_names_a_setting_is_none(said):
    said = said[TEXT_FOR_A_SETTING]
    must = "must be Setting, such as Setting.parse('L1+L6:zca') gives, got str"
    for named in ("score", "k_curve", "layer_pairs", "retrieve", "frontier", "probe", "cones", "held_out_isotropy"):
        assert any(line.startswith(f"{named} ") for line in said), named
    for line in said:
        assert re.fullmatch(rf"\w+ TypeError (setting|settings.0.|chosen) {re.escape(must)}", line), line


def test_pairs_that_are_not_embedded_are_no_space(said):
    said = said[PAIRS_FOR_A_SPACE]
    must = "space must be LayerEmbeddings, such as embed_pairs(encoder, pairs) gives, got SentencePairs"
    assert {"score", "k_curve", "layer_gains", "fit_sizes"} <= {line.split()[0] for line in said}
    for line in said:
        assert re.fullmatch(rf"\w+ TypeError {re.escape(must)}", line), line


def test_other_things_than_spaces_scores_and_codes_are_refused_by_the_name_of_the_argument(said):
    said = said[OTHER_THINGS]
    names = {"embed_retrieval", "retrieve", "search_costs", "calibrate_search", "frontier", "hits", "paired", "doubt"}
    assert names <= {line.split()[0] for line in said}
    must = r"\w+ TypeError \w+(\[0\])? must be \w+, such as .+ (gives|is), got (list|str|float)"
    for line in said:
        assert re.fullmatch(must, line), line


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (Setting(), TypeError, "must be a sequence of Setting, got Setting"),
        ("L1:pca", TypeError, "must be a sequence of Setting, got str"),
        ([], ValueError, "must hold at least 1 Setting, got 0"),
    ],
)
def test_settings_are_several(wrong, error, message):
    with pytest.raises(error, match=f"settings.*{message}"):
        check_settings(wrong)


# Scores that are not defined


def test_constant_gold_is_said(space):
    flat = replace(space, gold=torch.full_like(space.gold, 3.0))
    found = score(flat, setting())
    assert (found.spearman, found.half_width) == (None, None)
    assert found.reason == "Spearman is not defined: all gold scores are 3"
    assert written(found)["reason"] == found.reason


@pytest.mark.parametrize("name", WHITENERS)
@pytest.mark.parametrize("pairs", [0, 1])
def test_fewer_than_two_pairs_are_said_under_every_variant(space, name, pairs):
    for i in range(3 * pairs or 1):  # a random half of the sentences may have none of a pair's, or both
        few = {part: getattr(space, part)[i : i + pairs] for part in ("first", "second", "gold")}
        few |= {"subset": space.subset[:pairs] * 0, "subset_names": ("all",)}
        found = score(replace(space, **few), setting((3,), SMALL.get(name, name)))
        assert found.spearman is None
        assert found.reason == f"Spearman is not defined: it needs at least 2 pairs, got {pairs}"
        assert written(found)["spearman"] is None
        assert written(found)["subsets"] == {"all": {"spearman": None, "pairs": pairs}}


@pytest.mark.parametrize("how", ["mean", "wmean"])
def test_a_subset_of_one_pair_is_said_under_an_average_only(space, how):
    subset = torch.zeros_like(space.subset)
    subset[5] = 1
    lone = replace(space, subset=subset, subset_names=("many", "lone"))
    found = score(lone, setting(aggregate=how))
    assert found.spearman is None
    assert found.reason == "Spearman is not defined in subset 'lone': it needs at least 2 pairs, got 1"
    assert written(found)["subsets"]["lone"] == {"spearman": None, "pairs": 1}
    assert found.subsets["many"].spearman is not None
    whole = score(lone, setting())
    assert whole.spearman is not None
    assert whole.reason == ""
    assert "undefined" not in written(whole)


def test_a_subset_without_pairs_is_said(space):
    empty = replace(space, subset_names=(*space.subset_names, "empty"))
    found = score(empty, setting(aggregate="mean"))
    assert found.reason == "Spearman is not defined in subset 'empty': it needs at least 2 pairs, got 0"
    assert written(found)["subsets"]["empty"] == {"spearman": None, "pairs": 0}


@pytest.mark.parametrize("how", ["all", "mean", "wmean"])
def test_gold_scores_that_run_the_other_way_are_noted_however_small_a_subset_is(space, how):
    subset = torch.zeros_like(space.subset)
    subset[-3:] = 1
    gold = -score(space, setting()).cosines
    turned = replace(space, gold=gold, subset=subset, subset_names=("many", "few"))
    assert "the least alike" in reversal(turned, setting(aggregate=how))
    assert reversal(replace(turned, gold=-gold), setting(aggregate=how)) == ""


@pytest.mark.parametrize("how", ["mean", "wmean"])
@pytest.mark.parametrize("right", [True, False])
def test_small_subsets_do_not_decide_which_way_gold_scores_run(space, how, right):
    subset = torch.zeros_like(space.subset)
    subset[-6:-3], subset[-3:] = 1, 2
    gold = score(space, setting()).cosines * torch.where(subset > 0, -1, 1)
    mixed = replace(space, gold=gold if right else -gold, subset=subset, subset_names=("many", "few", "other"))
    assert (reversal(mixed, setting(aggregate=how)) == "") == right


@pytest.mark.parametrize("how", ["mean", "wmean"])
def test_subsets_with_scales_of_their_own_do_not_run_the_other_way_together(space, how):
    cosines = score(space, setting()).cosines
    subset = (cosines < cosines.median()).long()
    scaled = replace(space, gold=cosines + 10 * subset, subset=subset, subset_names=("near", "far"))
    assert reversal(scaled, setting(aggregate="all"))
    assert reversal(scaled, setting(aggregate=how)) == ""


def test_constant_cosines_are_said(space):
    same = replace(space, second=space.first)
    assert score(same, setting()).reason == "Spearman is not defined: all cosines are 1"


@pytest.mark.parametrize("variant", [name for name, one in WHITENERS.items() if one.whitens])
@pytest.mark.parametrize(
    ("how", "where"), [("all", ""), ("mean", " in subset 'part 0'"), ("wmean", " in subset 'part 0'")]
)
def test_cosines_that_are_constant_but_for_rounding_are_said(distinct, variant, how, where):
    found = score(distinct, setting((1,), whitening=variant, aggregate=how))
    assert (found.spearman, found.half_width, found.rank) == (None, None, 35)
    assert found.reason == f"Spearman is not defined{where}: all cosines are -0.0285714"
    assert {one.spearman for one in found.subsets.values()} == {None}
    assert written(found)["reason"] == found.reason


@pytest.mark.parametrize(("noise", "said"), [(0.0, True), (1e-12, True), (1e-6, False)])
def test_rounding_in_the_cosines_is_not_taken_for_a_difference(distinct, monkeypatch, noise, said):
    # How much rounding is left depends on the machine, so here it is put in by hand.
    noisy = -1 / 35 + noise * torch.rand(18, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    monkeypatch.setattr(geometry, "row_cosines", lambda z, first, second: noisy)
    found = score(distinct, setting((1,), whitening="pca"))
    assert (found.spearman is None) == said
    assert ("all cosines are -0.0285714" in found.reason) == said


@pytest.mark.parametrize(
    "changes",
    [{}, {"whitening": "center"}, {"whitening": "standardize"}, {"whitening": "pca", "k": 34}],
)
def test_the_same_few_sentences_are_scored_where_their_cosines_differ(distinct, changes):
    found = score(distinct, setting((1,), **changes))
    assert found.spearman == pytest.approx(reference.score(distinct, (1,), found.setting.whitening, found.setting.k))
    assert found.reason == ""


@pytest.mark.parametrize("variant", WHITENERS)
def test_one_sentence_over_and_over_has_no_score(space, variant):
    repeated = replace(space, values=space.values[:, :1].expand(4, 60, 12))
    found = score(repeated, setting((1,), whitening=variant))
    assert found.spearman is None
    assert "all cosines are" in found.reason


# Awkward input


@pytest.mark.parametrize("variant", WHITENERS)
def test_awkward_embeddings_give_a_score_or_a_reason(space, variant):
    constant_column = space.values.clone()
    constant_column[:, :, 4] = 0.1
    cases = (space.values[:, :, :1], constant_column, space.values.half(), torch.zeros(4, 60, 12))
    for values in cases:
        spec = AT_ONE_DIMENSION.get(variant, variant) if values.shape[2] == 1 else variant
        found = score(replace(space, values=values), setting((1,), whitening=spec))
        assert (found.spearman is None) == bool(found.reason)
        assert found.cosines.isfinite().all()
        written(found)


@pytest.mark.parametrize("variant", WHITENERS)
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_numbers_that_are_none_are_refused(space, variant, bad):
    values = space.values.clone()
    values[1, 7, 2] = bad
    with pytest.raises(ValueError, match="x must hold finite numbers, row 7"):
        score(replace(space, values=values), setting((1,), whitening=variant))


@pytest.mark.parametrize("variant", WHITENERS)
def test_numbers_whose_squares_no_computer_holds_are_refused(space, variant):
    values = space.values.double()
    values[1, 7, 2] = 1e170
    with pytest.raises(ValueError, match=r"x must hold numbers of at most 1e\+70 in size, .* row 7 has 1e\+170"):
        score(replace(space, values=values), setting((1,), whitening=variant))


@pytest.mark.parametrize("bad", [float("nan"), 1e170])
def test_numbers_that_a_map_of_other_text_is_put_on_are_asked_too(space, bad):
    values = space.values.double()
    other = replace(space, values=values.clone()).with_text("other", LayerRows(values.clone(), space.counts))
    assert score(other, setting((1,), whitening="pca", fit="other")).spearman is not None
    other.values[1, 7, 2] = bad
    with pytest.raises(ValueError, match="values must hold .* row 7"):
        score(replace(other), setting((1,), whitening="pca", fit="other"))


def test_layers_and_k_out_of_range_are_refused(space):
    with pytest.raises(ValueError, match=r"layers=\[4\] must lie between 0 and 3"):
        score(space, setting((4,)))
    with pytest.raises(ValueError, match="k=13 must lie between 1 and d=12"):
        score(space, setting(whitening="zca", k=13))
    with pytest.raises(ValueError, match="k=5 has no meaning for whitening='none'"):
        setting(k=5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"whitening": "ica"}, "whitening='ica' must be one of"),
        ({"aggregate": "sum"}, "aggregate='sum' must be one of all, mean, wmean"),
        ({"pooling": "max"}, "pooling='max' must be one of mean, cls"),
        ({"layers": ()}, r"layers=\[\] must name at least one layer"),
        ({"layers": (1, 1)}, r"layers=\[1, 1\] must name at least one layer, and none twice"),
        ({"fit": ""}, "fit='' must be one of task, splits, cross, tokens, vectors or name other text"),
    ],
)
def test_a_setting_that_does_not_exist_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        setting(**changes)


# What is written


def test_a_score_becomes_json(space):
    record = written(score(space, setting(whitening="pca")))
    assert record["protocol"]["layers"] == [0, 3]
    assert record["spearman"] == score(space, setting(whitening="pca")).spearman
    assert set(record["subsets"]) == set(space.subset_names)
    assert "cosines" not in record


def test_the_line_says_what_decides_the_score():
    origin = Origin("a model", "some data", "a task", "test")
    line = Protocol(setting(whitening="pca", k=5), origin).line(12345, 5)
    for part in ("a model", "layers 0 + 3", "mean pooling", "some data", "pca, k = 5", "rank 5", "aggregate all"):
        assert part in line
    assert "12\u202f345 sentence occurrences" in line
    assert "layer 2 " in Protocol(setting((2,)), origin).line()
    assert "fitted" not in Protocol(setting(), origin).line(160, 12)


def test_arguments_are_left_alone(space):
    held = (space.values, space.first, space.second, space.gold, space.subset)
    before = [t.clone() for t in held]
    for variant, k in SETTINGS:
        score(space, setting((1,), variant, k))
    assert all(torch.equal(a, b) for a, b in zip(held, before, strict=True))
    assert_close(geometry.pair_cosines(space.values[0], space.values[0]), torch.ones(60).double())


# The first coordinates


def test_a_prefix_is_the_raw_vectors_cut_whatever_it_is_fitted_on(space):
    cut = replace(space, values=space.values[..., :5])
    raw = score(cut, Setting((1, 3)), isotropy=False).spearman
    for fit in ("task", "cross"):
        found = score(space, Setting((1, 3), "prefix", 5, fit=fit), isotropy=False)
        assert found.spearman == pytest.approx(raw, abs=1e-9)
        assert "nothing fitted" in found.line()
        assert found.fitted == found.as_dict()["fitted"] == score(space, Setting((1, 3), fit=fit)).fitted == 0
    assert abs(score(space, Setting((1, 3), "pca", 5), isotropy=False).spearman - raw) > 0.01
    whole = score(space, Setting((1, 3), "prefix"), isotropy=False).spearman
    assert whole == pytest.approx(score(space, Setting((1, 3)), isotropy=False).spearman, abs=1e-9)
    assert (cosine_class("prefix"), cosine_class("prefix", 7, 7)) == ("none", "none")
    assert cosine_class("prefix", 3, 7) == "prefix, k=3"
