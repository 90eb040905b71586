"""Laws of the layer subsets: every score equals SciPy on the averaged embeddings, whichever path found it."""

import json
import math
from dataclasses import replace
from itertools import combinations

import pytest
import reference
import torch
from torch.testing import assert_close

from tests.conftest import OF_MOMENTS, make_space
from whitelab import whitening
from whitelab.scoring.setting import Setting
from whitelab.statistics.correlation import AGGREGATES
from whitelab.sweeps.layer_subsets import (
    FittedScorer,
    LinearScorer,
    Plan,
    as_layers,
    as_masks,
    counted_among,
    extended,
    scorers,
    search_subsets,
    stream,
)
from whitelab.sweeps.layer_subsets.plan import MAX_EXACT, limits
from whitelab.sweeps.layer_subsets.scorers import cost_of

ALL = [layers for size in (1, 2, 3, 4) for layers in combinations(range(4), size)]
SETTINGS = [(name, k) for name, variant in OF_MOMENTS.items() for k in ((None, 5, 12) if variant.takes_k else (None,))]


def search(space, size="all", variant="none", k=None, how="all", **options):
    return search_subsets(space, Setting(whitening=variant, k=k, aggregate=how), size, **options)


def scores(found):
    """{layers: score} of everything ranked."""
    return {one.layers: one.spearman for one in found.ranking.top}


def expected(space, wanted=ALL, variant="none", k=None, how="all"):
    """The same from SciPy, without the undefined."""
    plain = {layers: reference.score(space, layers, variant, k, how) for layers in wanted}
    return {layers: score for layers, score in plain.items() if not math.isnan(score)}


def without_time(found):
    return replace(found, seconds=0.0)


def plain_beam(space, sizes, width):
    """Sizes 1..: every single layer, then the best `width` with each layer added, scored by SciPy."""
    seen, level = {}, [(i,) for i in range(space.n_layers)]
    for _ in sizes:
        found = expected(space, level)
        seen |= found
        best = sorted(found, key=lambda layers: (-round(found[layers], 9), layers))[:width]
        level = sorted({tuple(sorted((*one, i))) for one in best for i in range(space.n_layers) if i not in one})
    return seen


# ------------------------------------------------------------------------------------ equal to the plain path


@pytest.mark.parametrize("how", AGGREGATES)
@pytest.mark.parametrize("variant", ["none", "center"])
def test_every_subset_equals_scipy_on_the_averaged_embeddings(any_space, variant, how):
    found = search(any_space, variant=variant, how=how)
    assert (found.scored, found.exact, found.finished) == (15, True, True)
    assert scores(found) == pytest.approx(expected(any_space, ALL, variant, None, how), abs=2e-9)


@pytest.mark.parametrize(("variant", "k"), SETTINGS)
def test_fitted_singles_pairs_and_triples_equal_scipy(any_space, variant, k):
    found = search(any_space, range(1, 4), variant, k)
    assert (found.scored, found.exact) == (14, True)
    assert scores(found) == pytest.approx(expected(any_space, ALL[:14], variant, k), abs=2e-9)


@pytest.mark.parametrize("how", ["mean", "wmean"])
def test_fitted_subsets_follow_the_aggregate(space, how):
    assert scores(search(space, 2, "zca", how=how)) == pytest.approx(expected(space, ALL[4:10], "zca", None, how))


def test_whitening_and_averaging_do_change_the_scores(space):
    raw, white = scores(search(space)), scores(search(space, range(1, 4), "pca"))
    assert len(set(raw.values())) == 15
    assert all(raw[layers] != pytest.approx(white[layers]) for layers in white)


@pytest.mark.parametrize("variant", ["none", "center"])
def test_tied_cosines_stay_tied(space, variant):
    """Small whole numbers: many pairs share a cosine, which SciPy sees on the averaged embeddings."""
    coarse = replace(space, values=(space.values[:, :, :3] / 2).round())
    x = reference.transformed(coarse, (0, 1), variant)
    cosines = reference.pair_cosines(x[coarse.first], x[coarse.second])
    assert len(set(cosines)) < 0.8 * len(cosines)
    assert scores(search(coarse, variant=variant)) == pytest.approx(expected(coarse, ALL, variant), abs=2e-9)


@pytest.mark.parametrize("variant", ["none", "center", "pca", "standardize"])
def test_zero_vectors_have_cosine_zero(space, variant):
    values = space.values.clone()
    values[:, ::5] = 0
    values[2, ::3] = 0
    hollow = replace(space, values=values)
    found = search(hollow, range(1, 4), variant)
    assert scores(found) == pytest.approx(expected(hollow, ALL[:14], variant), abs=2e-9)


def test_layers_that_cancel_have_no_score(space):
    values = space.values.clone()
    values[1] = -values[0]
    found = search(replace(space, values=values))
    assert (0, 1) not in scores(found)
    assert len(found.ranking.top) == 14
    assert scores(found)[(0, 1, 2)] == scores(found)[(2,)]


@pytest.mark.parametrize("variant", ["none", "pca"])
def test_a_layer_held_twice_ties_and_the_smaller_then_lower_comes_first(space, variant):
    twice = replace(space, values=space.values[[0, 0, 2, 0]])
    found = search(twice, range(1, 4), variant)
    assert scores(found) == pytest.approx(expected(twice, ALL[:14], variant), abs=2e-9)
    groups = {}
    for one in found.ranking.top:
        groups.setdefault((one.place, one.spearman), []).append(one.layers)
    assert [(0,), (1,), (3,), (0, 1), (0, 3), (1, 3), (0, 1, 3)] in groups.values()
    assert [(0, 2), (1, 2), (2, 3)] in groups.values()
    starts = [place for place, _ in groups]
    assert starts == [1 + sum(len(g) for (p, _), g in groups.items() if p < place) for place in starts]


@pytest.mark.parametrize("variant", OF_MOMENTS)
def test_one_pair_has_no_score(space, variant):
    one = replace(space, **{name: getattr(space, name)[4:5] for name in ("first", "second", "gold", "subset")})
    found = search(one, range(1, 4), variant)
    assert (found.scored, found.best, found.ranking.top, found.ranking.best_by_size) == (14, None, (), {})
    assert found.ranking.layer_counts == (0, 0, 0, 0)


@pytest.mark.parametrize("variant", ["none", "center", "pca"])
def test_constant_gold_has_no_score(space, variant):
    assert search(replace(space, gold=torch.ones_like(space.gold)), 2, variant).best is None


# ------------------------------------------------------------------------------------------- chunks and batches


@pytest.mark.parametrize(("variant", "k"), [("none", None), ("center", None), ("pca", None), ("pca", 5)])
def test_the_byte_budget_changes_nothing(any_space, variant, k, monkeypatch):
    whole = search(any_space, range(1, 4), variant, k)
    for budget in (1, 30_000, 150_000):
        monkeypatch.setattr(scorers, "CHUNK_BYTES", budget)
        monkeypatch.setattr(scorers, "MATRICES_BYTES", budget)
        assert scores(search(any_space, range(1, 4), variant, k)) == pytest.approx(scores(whole), abs=2e-9)


def test_the_byte_budget_bounds_a_chunk(space, monkeypatch):
    def steps(variant):
        taken = []
        search(space, 2, variant, progress=lambda done, total: taken.append(done))
        return taken

    for variant, budget in (("none", "CHUNK_BYTES"), ("pca", "MATRICES_BYTES")):
        whole = steps(variant)
        monkeypatch.setattr(scorers, budget, 4_000)
        small = steps(variant)
        assert small == sorted(set(small))
        assert len(small) > len(whole)


def test_a_factor_gives_the_cosines_of_the_fitted_map(any_space):
    """In `layernorm` single layers are singular and averages are not."""
    scorer = FittedScorer.of(any_space, Setting(whitening="cholesky"))
    (fold,), (blocks,) = scorer.folds, scorer.blocks
    moments = blocks.averages(ALL)
    every = list(zip(ALL, moments, scorer.factors(moments), strict=True))
    found = torch.stack([scorer.cosines(fold, one) for one in every])
    by_map = torch.stack([scorer.cosines(fold, (*one[:2], lambda: None)) for one in every])
    assert_close(found, by_map, atol=1e-9, rtol=0)


def test_the_map_itself_is_fitted_only_where_the_factor_cannot_be_trusted(layernorm, monkeypatch):
    asked = []
    fit = whitening.fit
    monkeypatch.setattr(whitening, "fit", lambda *given: asked.append(given) or fit(*given))
    search(layernorm, range(1, 4), "pca")
    assert asked == []
    search(make_space(n=12, d=30, sizes=(6,)), range(1, 4), "pca")
    assert asked  # far fewer sentences than dimensions


def test_the_cpu_can_be_named_and_an_absent_device_is_refused(space):
    assert without_time(search(space, device="cpu")) == without_time(search(space))
    for device in ("mps", "tpu", "cuda"):
        with pytest.raises(ValueError, match=f"device='{device}' must be cpu, or cuda where there is one"):
            search(space, device=device)


def test_the_whole_space_goes_to_the_device_before_anything_is_scored(space, monkeypatch):
    """The way of a CUDA device, with the CPU in its place."""
    asked = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(type(space), "to", lambda self, device: asked.append(device) or self)
    for variant, k in SETTINGS:
        found, plain = (search(space, range(1, 4), variant, k, device=device) for device in ("cuda:0", None))
        assert scores(found) == scores(plain)
    assert set(asked) == {"cuda:0"}


def test_a_device_that_is_not_there_is_refused_by_its_number(space, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [scorers.check_device(one) for one in ("cuda", "cuda:1")] == ["cuda", "cuda:1"]
    for device in ("cuda:2", "cuda:x", "cuda:-1"):
        with pytest.raises(ValueError, match=f"device='{device}' must be cpu, or cuda where there is one"):
            search(space, device=device)


@pytest.mark.parametrize(("variant", "scorer"), [("none", LinearScorer), ("pca", FittedScorer)])
def test_a_search_that_memory_does_not_hold_goes_on_in_smaller_parts_and_says_so(space, monkeypatch, variant, scorer):
    plain, call, sizes = search(space, variant=variant), scorer.__call__, []

    def small(self, masks):
        sizes.append(len(masks))
        if len(masks) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return call(self, masks)

    monkeypatch.setattr(scorer, "__call__", small)
    found = search(space, variant=variant)
    assert max(sizes) > 2
    assert scores(found) == pytest.approx(scores(plain), abs=1e-9)
    assert found.notes == ("memory ran out: subsets were scored in smaller parts",)
    assert not plain.notes


def test_a_search_whose_device_is_too_small_goes_on_on_the_cpu_and_says_so(space, monkeypatch):
    def to(self, device):
        if device != "cpu":
            raise torch.OutOfMemoryError("CUDA out of memory")
        return self

    plain = search(space)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(type(space), "to", to)
    found = search(space, device="cuda:0")
    assert scores(found) == scores(plain)
    assert "went on on the CPU" in found.notes[0]
    assert found.as_dict()["notes"] == list(found.notes)


@pytest.mark.cuda
def test_cuda_finds_the_same(space, thin, layernorm):
    for variant, k in SETTINGS:
        for one in (space, thin, layernorm):
            found, plain = (search(one, range(1, 4), variant, k, device=device) for device in ("cuda", "cpu"))
            assert scores(found) == pytest.approx(scores(plain), abs=1e-6)


@pytest.mark.cuda
@pytest.mark.parametrize("variant", ["none", "pca"])
def test_a_search_gives_the_same_scores_with_any_memory_of_a_gpu(variant, memory_of_gpu):
    space, said = make_space(n=4000, d=128, layers=8, sizes=(3000,)), set()
    wanted = scores(search(space, range(1, 3), variant))
    for mebibytes in (4096, 256, 128, 64, 32, 8):
        with memory_of_gpu(mebibytes):
            found = search(space, range(1, 3), variant, device="cuda")
        assert scores(found) == pytest.approx(wanted, abs=1e-6), mebibytes
        said.update(found.notes)
    assert "the device has too little memory for the search, which went on on the CPU" in said


# ---------------------------------------------------------------------------------------------- which subsets


@pytest.mark.parametrize(("size", "sizes"), [("all", (1, 2, 3, 4)), (2, (2,)), (range(2, 4), (2, 3)), ((4, 1), (1, 4))])
def test_sizes_can_be_all_one_or_several(space, size, sizes):
    found = search(space, size)
    assert found.sizes == found.exact_sizes == sizes
    assert found.scored == found.total == sum(math.comb(4, s) for s in sizes)
    assert tuple(found.ranking.best_by_size) == sizes
    assert set(scores(found)) == {layers for layers in ALL if len(layers) in sizes}


@pytest.mark.parametrize("variant", ["none", "pca"])
def test_a_beam_as_wide_as_all_is_exact(space, variant):
    full = search(space, variant=variant, max_exact=15)
    wide = search(space, variant=variant, max_exact=4, beam=6)
    assert scores(wide) == pytest.approx(scores(full), abs=2e-9)
    assert (full.exact, wide.exact, wide.scored) == (True, True, 15)
    assert full.strategy == "every subset of 1 to 4 layers"


def test_a_narrow_beam_is_the_plain_one_and_is_labelled():
    space = make_space(layers=6, seed=3)
    found = search(space, range(1, 6), max_exact=6, beam=2)
    assert scores(found) == pytest.approx(plain_beam(space, range(1, 6), 2), abs=2e-9)
    assert not found.exact
    assert found.exact_sizes == (1,)
    assert found.scored == found.total < 62
    assert found.strategy == (
        "every subset of 1 layer; of 2 to 5 layers, each of the best 2 of one layer less with each layer added"
    )
    exact = search(space, range(1, 6))
    assert exact.exact
    for size, best in found.ranking.best_by_size.items():
        assert best.spearman <= exact.ranking.best_by_size[size].spearman


def test_sizes_are_complete_while_they_fit_and_a_beam_starts_from_the_last_of_them():
    space = make_space(layers=6, seed=3)
    found = search(space, 4, max_exact=10, beam=1)  # 15 subsets of 4; of the smaller sizes only 6 singles fit
    assert found.strategy.startswith("every subset of 1 layer; of 2 to 4 layers, each of the best 1 ")
    assert (found.exact, found.exact_sizes, found.scored) == (False, (), 6 + 5 + 4 + 3)
    assert set(found.ranking.best_by_size) == {4}
    assert len(found.ranking.top) == 3
    found = search(space, range(3, 6), max_exact=40, beam=1)  # 6 + 15 fit, 20 triples do not
    assert (found.scored, found.exact_sizes) == (15 + 4 + 3 + 2, ())
    found = search(space, max_exact=41, beam=1)
    assert found.exact_sizes == (1, 2, 3, 6)  # there is one subset of all six


def test_every_subset_is_whitened_up_to_thirteen_layers():
    assert MAX_EXACT["factor"] >= 2**13 - 1
    space = make_space(n=20, d=3, layers=9, sizes=(12,))
    found = search(space, variant="zca", top=511)
    assert (found.scored, found.exact) == (511, True)
    for one in found.ranking.top[::40]:
        assert one.spearman == pytest.approx(reference.score(space, one.layers, "zca"), abs=2e-9)


@pytest.mark.parametrize(("variant", "k", "layers"), [("pca", None, 14), ("pca", 5, 11), ("shrunk", None, 25)])
def test_fitted_searches_beyond_are_complete_up_to_triples(variant, k, layers):
    plan = Plan.of(
        layers, tuple(range(1, layers + 1)), *limits(layers, cost_of(Setting(whitening=variant, k=k), 12), None, None)
    )
    assert {1, 2, 3} <= plan.complete < set(plan.sizes)
    assert plan.beam == 8


def test_subsets_grow_by_one_layer_each_once():
    assert extended([(0, 1), (0, 2)], 4) == [(0, 1, 2), (0, 1, 3), (0, 2, 3)]
    assert extended([], 4) == []
    assert [as_layers(mask) for mask in as_masks([(0, 2), (1, 3)], 4)] == [(0, 2), (1, 3)]


def test_a_model_too_deep_for_every_subset_is_searched_by_the_declared_beam():
    space = make_space(n=20, d=4, layers=25, sizes=(12,))
    steps = []
    found = search(space, max_exact=2000, beam=4, progress=lambda done, total: steps.append((done, total)))
    assert all(done <= total for done, total in steps)
    assert [total for _, total in steps] == sorted((total for _, total in steps), reverse=True)
    assert steps[-1] == (found.scored, found.total) == (found.total, found.scored)
    assert found.exact_sizes == (1, 2, 25)
    assert found.strategy.startswith("every subset of 1 to 2 layers; of 3 to 25 layers")
    assert tuple(found.ranking.best_by_size) == tuple(range(1, 26))
    for one in found.ranking.top[::10]:
        assert one.spearman == pytest.approx(reference.score(space, one.layers), abs=2e-9)


# -------------------------------------------------------------------------------------------------- ranking


@pytest.mark.parametrize("variant", ["none", "pca"])
def test_the_ranking_is_sorted_and_agrees_with_itself(space, variant):
    found = search(space, range(1, 4), variant)
    top = found.ranking.top
    assert [one.spearman for one in top] == sorted((one.spearman for one in top), reverse=True)
    assert [one.place for one in top] == list(range(1, 15))
    assert found.best == top[0]
    assert set(found.ranking.best_by_size) == {1, 2, 3}
    for size, best in found.ranking.best_by_size.items():
        assert best == next(one for one in top if len(one.layers) == size)


def test_top_cuts_the_ranking_and_nothing_else():
    space = make_space(layers=8, seed=4)
    full, short = search(space, top=255), search(space, top=3)
    assert short.ranking.top == full.ranking.top[:3]
    assert replace(short.ranking, top=()) == replace(full.ranking, top=())
    best = [subset.layers for subset in full.ranking.top[: full.ranking.counted]]
    assert full.ranking.counted == 25
    assert full.ranking.needed == tuple(sum(i in layers for layers in best) for i in range(8))


def test_layers_are_counted_among_the_best_tenth_but_neither_too_few_nor_too_many():
    assert [counted_among(n) for n in (0, 3, 15, 127, 255, 8191)] == [0, 3, 10, 12, 25, 100]


def test_several_tasks_are_averaged_and_each_keeps_its_own():
    one, two = make_space(seed=0), make_space(seed=5, sizes=(30, 20))
    for variant, how in (("none", "all"), ("none", "mean"), ("pca", "wmean")):
        found = search({"one": one, "two": two}, range(1, 4), variant, how=how)
        own = [search(space, range(1, 4), variant, how=how) for space in (one, two)]
        average = {layers: (score + scores(own[1])[layers]) / 2 for layers, score in scores(own[0]).items()}
        assert scores(found) == pytest.approx(average, abs=2e-9)
        for subset in found.ranking.top:
            assert subset.tasks == pytest.approx([scores(single)[subset.layers] for single in own])
        for name, single in zip(("one", "two"), own, strict=True):
            theirs = {subset.layers: subset.spearman for subset in found.tasks[name].top}
            assert theirs == pytest.approx(scores(single), abs=2e-9)
            assert found.tasks[name].best.layers == single.best.layers


def test_tasks_without_names_are_numbered_and_a_single_one_is_its_own_average(space):
    assert list(search([space, space]).tasks) == ["task 1", "task 2"]
    found = search(space)
    assert found.tasks == {"task": found.ranking}


def test_an_undefined_task_leaves_no_average_but_the_others_their_own(space):
    flat = replace(space, gold=torch.ones_like(space.gold))
    found = search({"flat": flat, "good": space})
    assert found.best is None
    assert found.tasks["flat"].best is None
    assert found.tasks["good"].top[0].tasks == (None, found.tasks["good"].best.spearman)
    beam = search({"flat": flat, "good": space}, max_exact=4, beam=1)
    assert tuple(beam.tasks["good"].best_by_size) == (1, 2, 3, 4)


def test_the_record_is_json(space):
    record = json.loads(json.dumps(search({"one": space, "two": make_space(seed=5)}, top=2).as_dict()))
    assert record["scored"] == 15
    assert record["exact"] is True
    assert set(record["best_by_size"]) == {"1", "2", "3", "4"}
    assert len(record["top"]) == 2
    assert record["top"][0].keys() == {"layers", "spearman", "place", "tasks"}
    assert record["top"][0]["spearman"] == pytest.approx(sum(record["top"][0]["tasks"].values()) / 2)
    assert record["tasks"]["one"]["top"][0].keys() == {"layers", "spearman", "place"}
    assert record["seconds"] > 0


# ------------------------------------------------------------------------------------- progress and cancelling


@pytest.mark.parametrize(("variant", "options"), [("none", {}), ("pca", {}), ("none", {"max_exact": 4, "beam": 2})])
def test_a_stream_shows_the_best_so_far_and_ends_with_all(space, variant, options, monkeypatch):
    for bound in ("CHUNK_BYTES", "MATRICES_BYTES"):
        monkeypatch.setattr(scorers, bound, 1)  # one subset a chunk
    shown = list(stream(space, Setting(whitening=variant), range(1, 4), every=0.0, **options))
    assert [one.finished for one in shown] == [False] * (len(shown) - 1) + [True]
    counts = [one.scored for one in shown]
    assert counts[0] == 1
    assert counts == sorted(counts)
    assert all(one.scored == len(one.ranking.top) <= one.total for one in shown)
    bests = [one.best.spearman for one in shown]
    assert bests == sorted(bests)
    assert not shown[0].exact
    assert without_time(shown[-1]) == without_time(search(space, range(1, 4), variant, **options))


def test_snapshots_are_apart_in_time(space, monkeypatch):
    monkeypatch.setattr(scorers, "CHUNK_BYTES", 1)
    assert len(list(stream(space, Setting(), every=3600.0))) == 1


def test_progress_can_stop_the_work(space, monkeypatch):
    monkeypatch.setattr(scorers, "CHUNK_BYTES", 1)
    seen = []

    def stop(done, total):
        seen.append((done, total))
        if done == 3:
            raise InterruptedError("a newer request")

    with pytest.raises(InterruptedError, match="a newer request"):
        search(space, progress=stop)
    assert seen == [(0, 15), (1, 15), (2, 15), (3, 15)]
    running = stream(space, Setting(), every=0.0)
    next(running)
    running.close()
    assert list(running) == []


def test_settings_that_do_not_exist_are_refused_before_the_first_step(space):
    for wrong, text in (
        ({"setting": Setting(whitening="pca", k=13)}, "k=13 must lie between 1 and d=12"),
        ({"size": 5}, "size=5 must lie between 1 and l=4"),
        ({"size": range(0, 3)}, "size=0 must lie between 1 and l=4"),
        ({"size": range(2, 2)}, r"size=range\(2, 2\) must hold at least one number of layers"),
        ({"size": "most"}, "size='most' must be 'all', a number of layers or a range of them"),
        ({"top": 0}, "top=0 must be a whole number of at least 1"),
        ({"beam": 0}, "beam=0 must be a whole number of at least 1"),
        ({"max_exact": -1}, "max_exact=-1 must be a whole number of at least 1"),
    ):
        with pytest.raises(ValueError, match=text):
            stream(space, **({"setting": Setting()} | wrong))
    with pytest.raises(ValueError, match=r"same number of layers, got \{'a': 4, 'b': 3\}"):
        stream({"a": space, "b": replace(space, values=space.values[:3])}, Setting())
    with pytest.raises(ValueError, match=r"spaces must be at least one task.* got \{\}"):
        stream([], Setting())


@pytest.mark.parametrize("variant", ["none", "pca"])
def test_numbers_that_are_none_are_refused_as_by_score(space, variant):
    values = space.values.clone()
    values[1, 7, 2] = float("nan")
    with pytest.raises(ValueError, match="must hold finite numbers, row 7"):
        search(replace(space, values=values), 2, variant)


def test_arguments_are_left_alone(space):
    before = space.values.clone()
    for variant in OF_MOMENTS:
        search(space, 2, variant)
    assert torch.equal(space.values, before)


@pytest.mark.parametrize("variant", ["clusters", "flow"])
def test_a_variant_that_is_fitted_to_rows_is_refused(space, variant):
    with pytest.raises(ValueError, match=f"whitening='{variant}.*' is fitted to rows, a while for each map"):
        search(space, 2, variant)


def test_a_scorer_scores_any_masks(space):
    for scorer in (LinearScorer.of(space, Setting()), FittedScorer.of(space, Setting())):
        found = scorer(torch.tensor([[True, False, True, True], [False, True, False, False]]))
        assert found.tolist() == pytest.approx([reference.score(space, layers) for layers in ((0, 2, 3), (1,))])
