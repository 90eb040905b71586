"""What the papers draw, on tiny models: every point is the score of its setting, every printed one is in the tables."""

from dataclasses import replace

import numpy as np
import pytest
import reference
from tiny import SENTENCES, build_model, write_task

from whitelab.compare import PRESETS, Bench, Grid, published
from whitelab.compare.bench import Unscored
from whitelab.compare.grid import called
from whitelab.compare.papers import (
    cosine_spread,
    losses,
    pair_average,
    pair_maps,
    panels,
    printed_k,
    printed_ks,
    printed_pairs,
    printed_sizes,
    spaces,
    spot,
    spread_settings,
    task_curves,
)
from whitelab.compare.published import DEPTHS
from whitelab.encoding.encoders import load_encoder
from whitelab.scoring.score import score
from whitelab.scoring.setting import Setting
from whitelab.sweeps.layer_pairs import LayerCell
from whitelab.sweeps.layer_subsets import search_subsets

TASKS = ["sts12", "sts13"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    root = tmp_path_factory.mktemp("papers")
    build_model(root / "model")
    write_task(root / "data", "sts12", pairs=40)
    write_task(root / "data", "sts13", pairs=20, subsets=3)
    rows = [f"{SENTENCES[3 * i]},{SENTENCES[5 * i + 1]},{i % 11 / 2}\n" for i in range(60)]
    (root / "graded.csv").write_text("sentence1,sentence2,score\n" + "".join(rows), "utf-8")
    return root


@pytest.fixture(scope="module")
def encoder(place):
    return load_encoder(str(place / "model"))


@pytest.fixture(scope="module")
def held(encoder, place):
    return dict(spaces(encoder, str(place / "data"), TASKS))


# Measured


def test_a_cell_of_the_heatmap_is_the_mean_over_tasks_of_the_score_of_its_layers(held):
    *_, maps = pair_maps(iter(held.items()))
    average = pair_average(maps)
    assert len(average) == 4 * 5 / 2
    for (i, j), value in average.items():
        layers = tuple(sorted({i, j}))
        scores = [reference.score(space, layers, how="mean") for space in held.values()]
        assert value == pytest.approx(np.mean(scores), abs=1e-6)
        assert value == pytest.approx(np.mean([one[i, j].spearman for one in maps.values()]))


def test_the_heatmap_grows_task_by_task(held):
    found = list(pair_maps(iter(held.items())))
    assert [list(maps) for maps in found] == [["sts12"], ["sts12", "sts13"]]
    assert pair_average(found[0]) == {cell.layers: cell.spearman for cell in found[0]["sts12"].cells}


def test_a_cell_that_one_task_lacks_has_no_average(held):
    *_, maps = pair_maps(iter(held.items()))
    first, *rest = maps["sts13"].cells
    broken = replace(maps["sts13"], cells=(LayerCell(first.layers, None, first.rank), *rest))
    found = pair_average(maps | {"sts13": broken})
    assert found[first.layers] is None
    assert None not in [value for pair, value in found.items() if pair != first.layers]


def test_the_best_pairs_of_the_heatmap_are_the_first_two_sizes_of_the_curve(held):
    *_, maps = pair_maps(iter(held.items()))
    ours = pair_average(maps)
    found = search_subsets(held, Setting(aggregate="mean"), (1, 2)).ranking.best_by_size
    assert found[1].spearman == pytest.approx(max(v for (i, j), v in ours.items() if i == j))
    assert found[2].spearman == pytest.approx(max(v for (i, j), v in ours.items() if i != j))


def test_every_point_of_a_curve_is_the_score_at_its_k(encoder, place):
    setting, seen = Setting.parse("L1+L-1:pca"), []
    *_, curves = task_curves(encoder, str(place / "data"), TASKS, setting, progress=lambda *count: seen.append(count))
    assert seen == [(1, 2), (2, 2)]
    for task, curve in curves.items():
        bench = Bench(encoder, str(place / "data"), task)
        for k in (1, 7, 20):
            expected = bench.score(replace(setting, k=k), PRESETS["bert-whitening"])
            assert curve.spearman[k - 1] == pytest.approx(expected.spearman, abs=1e-6)
        assert curve.setting.aggregate == "wmean"
        assert curve.spearman[curve.best_k - 1] == max(curve.spearman)


@pytest.mark.parametrize(("dim", "groups"), [(768, 128), (384, 128), (1024, 128), (128, 8), (300, 8), (32, 8)])
def test_whitenedcses_own_whitening_has_the_groups_of_its_code_where_they_come_out_even(dim, groups):
    raw, own, full = spread_settings(dim)
    assert (str(raw), full.whitening) == ("mean/L-1", "pca")
    assert own.whitening == f"shuffled_group:groups={groups},seed=0"


@pytest.mark.parametrize("setting", ["L-1", "cls/L2", "L1+L3:pca", "L-1:shuffled_group:groups=4"])
def test_a_spot_is_alignment_and_uniformity_of_its_setting(encoder, place, setting):
    bench, one = Bench(encoder, str(place / "graded.csv"), "graded"), Setting.parse(setting)
    found = spot(bench, one, positives="ge4")
    space, here = bench.scored(one, PRESETS["whiteningbert"])
    assert here.aggregate == "mean"
    assert found.spearman == pytest.approx(score(space, here).spearman)
    if one.whitening in ("none", "pca"):
        z = reference.transformed(space, one.numbers(4), one.whitening)
        a, b = z[space.first.numpy()], z[space.second.numpy()]
        chosen = space.gold.numpy() >= 4
        assert found.positives == chosen.sum() > 0
        assert found.alignment == pytest.approx(reference.alignment(a[chosen], b[chosen]))
        assert found.uniformity == pytest.approx(reference.uniformity(np.concatenate([a, b])))
    assert set(found.as_dict()) > {"model", "setting", "alignment", "uniformity"}


def test_random_cosines_narrow_where_uniformity_falls(encoder, place):
    bench = Bench(encoder, str(place / "data"), "sts12")
    raw, white = (Setting.parse(text) for text in ("L-1", "L-1:pca@8"))
    wide, narrow = (np.std(cosine_spread(bench, one)) + np.mean(cosine_spread(bench, one)) for one in (raw, white))
    assert narrow < wide
    assert spot(bench, white).uniformity < spot(bench, raw).uniformity


def test_the_losses_of_a_grid_are_the_spots_of_its_settings_with_a_reason_for_each_that_is_left_out(encoder, place):
    path, rows, seen = str(place / "model"), tuple(map(Setting.parse, ("L1", "L9", "L-1"))), []
    grid = Grid([path, "nowhere"], str(place / "graded.csv"), ["graded"], rows)
    *_, found = losses(grid, "graded", "ge4", progress=lambda *count: seen.append(count))
    bench, drawn = Bench(encoder, grid.data, "graded"), spread_settings(encoder.dim)
    assert found.spots == tuple(spot(bench, one, positives="ge4") for one in (rows[0], *drawn))
    assert {model: len(reasons) for model, reasons in found.left_out.items()} == {encoder.name: 1, "nowhere": 5}
    for one in drawn:
        assert np.array_equal(found.spreads[encoder.name][one.whitening], cosine_spread(bench, one))
    assert seen == [(done, 10) for done in range(1, 11)]


def test_losses_of_models_whose_names_end_alike_are_told_apart(place):
    paths = [place / name / "model" for name in ("one", "two")]
    for seed, path in enumerate(paths):
        build_model(path, seed=seed)
    grid = Grid([*map(str, paths), str(place / "gone" / "model")], str(place / "graded.csv"), ["graded"], ())
    *_, found = losses(grid, "graded")
    assert [one.model for one in found.spots] == ["one/model"] * 3 + ["two/model"] * 3
    first, second = (found.spreads[f"{name}/model"]["none"] for name in ("one", "two"))
    assert not np.array_equal(first, second)
    assert list(found.left_out) == ["gone/model"]


@pytest.mark.parametrize(
    ("models", "names"),
    [
        (("one/model", "two/model"), ("one/model", "two/model")),
        (("/a/model", "a/model"), ("/a/model", "a/model")),
        (("/a/model", "/a//model"), ("/a/model", "/a//model")),  # one place: no part of it tells them apart
        (("one/model", "one/model/", "two/model"), ("one/model", "one/model/", "two/model")),
        (("bundled", "all-MiniLM-L6-v2"), ("bundled", "all-MiniLM-L6-v2")),
        (("/", "bundled"), ("/", "all-MiniLM-L6-v2")),
        (("a/one/model", "b/one/model", "one/model:2"), ("a/one/model", "b/one/model", "one/model[:2]")),
    ],
)
def test_every_model_is_called_by_a_name_of_its_own_and_two_spellings_of_one_place_as_they_are_spelled(models, names):
    assert tuple(called(models).values()) == names


def test_the_folder_one_is_in_is_called_by_its_name_and_told_from_another_of_that_name(tmp_path, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / name / "model").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "one" / "model")
    assert called((".", "bundled")) == {".": "model", "bundled": "all-MiniLM-L6-v2"}
    assert called((".", "../../two/model")) == {".": "one/model", "../../two/model": "two/model"}


def test_a_task_that_is_not_there_says_so(encoder, place):
    with pytest.raises(Unscored, match="holds no task 'sts99'"):
        list(spaces(encoder, str(place / "data"), ["sts99"]))


# Printed


def test_every_printed_cell_of_figure_1_has_its_place():
    assert panels() == {
        "bert-base": "BERT-base",
        "roberta-base": "RoBERTa-base",
        "distilbert": "DistilBERT",
        "labse": "LaBSE",
    }
    total = 0
    for model in panels():
        found = printed_pairs(model)
        layers = DEPTHS[model] + 1
        assert set(found) == {(i, j) for i in range(layers) for j in range(i, layers)}
        total += len(found)
    assert total == len(published.numbers("whiteningbert", "Figure 1"))
    assert printed_pairs("bert-base")[1, 12] == 62.97
    assert printed_pairs("bert-base")[12, 12] == 55.96


@pytest.mark.parametrize("name", ["google-bert/bert-base-uncased", "bert-base-uncased", "bert-base"])
def test_a_model_is_known_by_all_its_names(name):
    assert printed_pairs(name) == printed_pairs("bert-base") != {}
    assert len(printed_ks(name, 768)) == 14


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "princeton-nlp/unsup-simcse-bert-base-uncased", "t5-base"])
def test_nothing_is_printed_for_other_models_and_for_those_trained_further(name):
    assert printed_pairs(name) == {}
    assert printed_sizes(name) == {}
    assert printed_ks(name, 768) == []


def test_the_printed_sizes_are_the_best_cells_of_figure_1():
    cells = printed_pairs("labse")
    found = printed_sizes("labse")
    assert found[1][1] == max(value for (i, j), value in cells.items() if i == j)
    assert found[2][1] == max(value for (i, j), value in cells.items() if i != j)
    assert cells[found[2][0]] == found[2][1]


def test_printed_ks_lie_at_256_and_at_d():
    found = printed_ks("bert-base", 768)
    assert {printed_k(one, 768) for one in found} == {256, 768}
    assert {one.column for one in found} == {"stsb", "sickr", *(f"sts{year}" for year in range(12, 17))}
    places = {(one.column, printed_k(one, 768)): one.value for one in found}
    assert places["sts12", 256] == 63.89
    assert places["stsb", 768] == 71.34
    assert {printed_k(one, 200) for one in printed_ks("bert-base", 200)} == {200}
