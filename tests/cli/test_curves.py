"""`kcurve`, `fitsize`, `geometry`, `similarity`: a value for every k, size of the fit, layer, two layers."""

import json

import numpy as np
import pytest
import reference
from tiny import DIM

import whitelab
from whitelab.scoring.setting import Setting
from whitelab.statistics.geometry import METRICS, word_counts, word_frequencies
from whitelab.sweeps.fit_size import fit_sizes
from whitelab.sweeps.layer_profiles import transformed


def test_kcurve_of_each_layer_is_one_curve_a_layer(document, run, options):
    record = document("kcurve", *options, "--layers", "each")
    assert [one["layer"] for one in record["curves"]] == [0, 1, 2, 3]
    for one in record["curves"]:
        alone = document("kcurve", *options, "--layers", one["layer"])
        assert one == {"layer": one["layer"]} | {name: alone[name] for name in one if name != "layer"}
    assert (record["protocol"]["layers"], record["protocol"]["k"]) == ("each", "every k")
    status, out, _ = run("kcurve", *options, "--layers", "each")
    assert status == 0
    assert len(out.splitlines()) == 5


def test_kcurve_has_a_score_for_every_k(document, options):
    record = document("kcurve", *options, "--layers", "2")
    assert record["k"] == list(range(1, DIM + 1))
    assert len(record["spearman"]) == DIM
    best = record["spearman"][record["best_k"] - 1]
    assert best == max(record["spearman"])
    for k in (1, 7, DIM):
        alone = document("score", *options, "--layers", "2", "--whitening", "pca", "--k", k)
        assert record["spearman"][k - 1] == pytest.approx(alone["spearman"], abs=1e-6)


def test_fitsize_has_the_scores_of_the_setting_and_of_a_shrunk_and_a_soft_map(document, options, space):
    record = document("fitsize", *options, "--layers", "2", "--whitening", "zca", "--seed", "3")
    assert [curve["setting"].partition(":")[2].partition(":")[0] for curve in record["curves"]] == [
        "zca",
        "shrunk",
        "soft",
    ]
    assert record["raw"] == pytest.approx(whitelab.score(space[2], Setting((2,))).spearman)
    for curve in record["curves"]:
        *_, points = fit_sizes(space[2], [Setting.parse(curve["setting"])], seed=3)
        for key, name in (("spearman", "score"), ("cross_fitted", "cross_fitted"), ("held_out_isotropy", "isotropy")):
            assert curve[key] == pytest.approx([getattr(point, name) for point in points])
        assert curve["fitted"][-1] == space[2].n_sentences


def test_kcurve_has_controls_where_they_are_asked_for(document, run, options):
    plain, record = (document("kcurve", *options, "--layers", "2", *more) for more in ([], ["--controls"]))
    controls = record.pop("controls")
    assert plain == record
    assert list(controls) == ["first", "random", "projection", "center"]
    centred = document("kcurve", *options, "--layers", "2", "--whitening", "center")
    assert controls["center"]["spearman"] == centred["spearman"]
    assert {len(one["least"]) for one in controls.values()} == {len(record["k"])}
    status, out, _ = run("kcurve", *options, "--layers", "2", "--controls")
    assert (status, "controls: The first k coordinates" in out) == (0, True)
    status, _, err = run("kcurve", *options, "--layers", "each", "--controls")
    assert (status, "--controls does not go with --layers each" in err) == (2, True)


def test_kcurve_has_a_curve_for_each_subset(document, options, place):
    record = document("kcurve", *options, "--data", place / "tasks", "--aggregate", "mean")
    assert {name: len(curve) for name, curve in record["subsets"].items()} == {"part0": DIM, "part1": DIM}


def test_geometry_has_every_layer_raw_and_whitened(document, options):
    record = document("geometry", *options, "--positives", "ge4")
    pairs = whitelab.load(options[options.index("--data") + 1])
    assert record["protocol"]["positives"] == "ge4"
    assert record["protocol"]["positive_pairs"] == sum(pairs.gold >= 4)
    assert [one["layer"] for one in record["layers"]] == [0, 1, 2, 3]
    for one in record["layers"]:
        for measures in (one, one["whitened"]):
            assert set(measures) >= {"mean_cosine", "participation_ratio", "alignment", "uniformity"}
            assert all(isinstance(measures[name], float) for name in ("mean_cosine", "participation_ratio"))
        assert one["whitening"] == "none"
        assert one["whitened"]["whitening"] == "pca"
        # A whitened space uses every direction it keeps equally: its participation ratio is its rank.
        assert one["whitened"]["participation_ratio"] == pytest.approx(one["whitened"]["rank"], abs=1e-6)
        assert one["participation_ratio"] < one["whitened"]["participation_ratio"] - 1


def test_that_no_pair_is_positive_is_said_once_where_alignment_is_null(run, model, place, tmp_path):
    (tmp_path / "to_one.csv").write_text(
        "sentence1,sentence2,score\na man,a dog,0.3\nwater,the cat,0\na singer,water,1\n"
    )
    words = ("--corpus", place / "text.txt", "--steps", "1", "--batch", "8", "--out", tmp_path / "run")
    calls = (
        ("geometry", *model, "--data", tmp_path / "to_one.csv"),
        ("train", *model[:2], "--eval", tmp_path / "to_one.csv", *words),
    )
    for call in calls:
        status, out, err = run(*call, "--positives", "gt4", "--json")
        assert (status, err.count("no pair has gold > 4")) == (0, 1)
        records = [json.loads(line) for line in out.splitlines()]
        assert ("no pair has gold > 4" in records[0].get("note", "")) == (call[0] == "train")
        records = records[0]["layers"] if call[0] == "geometry" else records[:-1]
        assert {one["alignment"] for one in records} == {None}
    record = json.loads(run(*calls[0], "--json")[1])  # not told, it takes the rule that goes with the scale
    assert (record["protocol"]["positives"], record["protocol"]["positive_pairs"]) == ("top", 1)


def test_geometry_measures_each_sentence_once(document, options, space):
    _, pairs, embedded = space
    for one in document("geometry", *options)["layers"]:
        for measures, variant in ((one, "none"), (one["whitened"], "pca")):
            z = transformed(embedded, Setting((one["layer"],), variant)).numpy()
            lists = reference.lists(reference.unit(z) @ reference.unit(z).T, 10)
            counts, skewness = reference.hub_counts(lists)
            assert measures["hub_skewness"] == pytest.approx(skewness, abs=1e-6)
            assert measures["largest_hub"] == counts.max()
            assert measures["two_nn"] == pytest.approx(reference.two_nn(z), rel=1e-6)
            assert measures["iso_score"] == pytest.approx(reference.iso_score(z), abs=1e-6)
            assert measures["partition_isotropy"] == pytest.approx(reference.partition_isotropy(z, False), abs=1e-6)
            norms = np.linalg.norm(z, axis=1)
            words = {"length": word_counts(pairs.sentences), "frequency": word_frequencies(pairs.sentences)}
            for name, values in words.items():
                expected = reference.spearman(norms, values.numpy())
                assert measures[f"norm_{name}_correlation"] == pytest.approx(expected, abs=1e-4)
            assert set(measures) >= set(METRICS)


def test_similarity_is_the_cka_of_every_two_layers_of_one_model_or_of_two(document, run, options, place, space):
    raw = document("similarity", *options)
    assert raw["layers"] == [0, 1, 2, 3]
    rows = [transformed(space[2], Setting((i,))).numpy() for i in range(4)]
    np.testing.assert_allclose(raw["cka"], [[reference.linear_cka(a, b) for b in rows] for a in rows], atol=1e-6)
    white = document("similarity", *options, "--whitening", "pca")
    assert white["protocol"]["whitening"] == "pca"
    rows = [transformed(space[2], Setting((i,), "pca")).numpy() for i in range(4)]
    np.testing.assert_allclose(white["cka"], [[reference.linear_cka(a, b) for b in rows] for a in rows], atol=1e-6)
    two = document("similarity", *options, "--against", f"random:{place / 'model'}")
    assert np.shape(two["cka"]) == (4, 4)
    assert two["against"] == {"model": "random@0:model", "layers": [0, 1, 2, 3]}
    assert two["cka"][3][3] < 0.999
    status, _, err = run("similarity", "--vectors", "mine.npz", "--against", "bundled")
    assert status == 2
    assert "--against bundled does not go with --vectors" in err


@pytest.mark.parametrize("file", ["constant.csv", "one.csv"])
@pytest.mark.parametrize("command", ["layers", "kcurve", "fitsize", "geometry", "similarity"])
def test_undefined_scores_do_not_stop_the_other_commands(document, options, place, file, command):
    assert document(command, *options, "--data", place / file)
