"""`kcurve` and `geometry`: a value for every k, every layer."""

import pytest
from tiny import DIM


def test_kcurve_of_each_layer_is_one_curve_a_layer(document, run, options):
    record = document("kcurve", *options, "--layers", "each")
    assert [one["layers"] for one in record["curves"]] == [[0], [1], [2], [3]]
    for one in record["curves"]:
        alone = document("kcurve", *options, "--layers", one["layers"][0])
        assert one == {"layers": one["layers"]} | {name: alone[name] for name in one if name != "layers"}
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


def test_kcurve_has_a_curve_for_each_subset(document, options, place):
    record = document("kcurve", *options, "--data", place / "tasks", "--aggregate", "mean")
    assert {name: len(curve) for name, curve in record["subsets"].items()} == {"part0": DIM, "part1": DIM}


def test_geometry_has_every_layer_raw_and_whitened(document, options):
    record = document("geometry", *options)
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


@pytest.mark.parametrize("file", ["constant.csv", "one.csv"])
@pytest.mark.parametrize("command", ["layers", "kcurve", "geometry"])
def test_undefined_scores_do_not_stop_the_other_commands(document, options, place, file, command):
    assert document(command, *options, "--data", place / file)
