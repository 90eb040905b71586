"""The bundled model end to end, through the command line: the published reference numbers, and the demo set.

Reference numbers: all-MiniLM-L6-v2 in float64 with plain NumPy on the files of the WhiteningBERT release, mean
over all tokens including [CLS] and [SEP], at most 128 tokens, whitening fitted per task on every sentence
occurrence of both columns.
"""

import json
import re
import shutil

import needs
import numpy as np
import pytest
import reference
import torch
from processes import ROOT

import whitelab
from whitelab.cli import main
from whitelab.datasets import load
from whitelab.encoding.embeddings import embed_pairs
from whitelab.encoding.encoders import load_encoder
from whitelab.scoring.score import score
from whitelab.scoring.setting import Setting
from whitelab.store.embedding_store import Store
from whitelab.sweeps.layer_profiles import layer_losses, layer_shapes, losses

pytestmark = pytest.mark.model

RELEASE = needs.PUBLISHED / "whiteningbert"
RAW_6 = ["--layers", "6"]
RAW_1 = ["--layers", "1"]
FULL_1_6 = ["--layers", "1,6", "--whitening", "pca"]
K128_1 = ["--layers", "1", "--whitening", "pca", "--k", "128"]

# (setting, aggregate) -> Spearman x 100 on sts13, which has three subsets, and on stsb, whose one makes every
# aggregate the same.
REFERENCE = {
    "layer 6, none, all": (RAW_6, "all", {"sts13": 80.6032, "stsb": 82.0325}),
    "layer 6, none, mean": (RAW_6, "mean", {"sts13": 74.4588}),
    "layer 6, none, wmean": (RAW_6, "wmean", {"sts13": 78.9697}),
    "layer 1, none, all": (RAW_1, "all", {"sts13": 60.5658, "stsb": 56.7291}),
    "layer 1, none, mean": (RAW_1, "mean", {"sts13": 52.5047}),
    "layers 1+6, full rank, all": (FULL_1_6, "all", {"sts13": 81.1304, "stsb": 77.8523}),
    "layers 1+6, full rank, mean": (FULL_1_6, "mean", {"sts13": 70.7629, "stsb": 77.8523}),
    "layers 1+6, full rank, wmean": (FULL_1_6, "wmean", {"sts13": 77.1156}),
    "layer 1, k = 128, all": (K128_1, "all", {"sts13": 75.4178, "stsb": 69.1335}),
    "layer 1, k = 128, mean": (K128_1, "mean", {"sts13": 65.5165}),
}
PAIRS = {"stsb": 1379, "sts13": 1500}

# Alignment (gold > 4: 231 pairs, gold >= 4: 338 pairs) and uniformity on the STS-B test pairs.
GEOMETRY = {
    (6, "none"): (0.25120, 0.32975, -3.80471),
    (1, "none"): (0.14363, 0.15967, -1.52208),
    (1, "pca"): (0.73870, 0.82742, -3.97292),
}


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """One store for the whole session, so each sentence is encoded once."""
    return tmp_path_factory.mktemp("bundled-store")


@pytest.fixture
def document(capsys, cache):
    def document(command, *argv):
        words = [command, "--model", "bundled", "--cache", str(cache), *map(str, argv), "--json"]
        status = main(words)
        out, err = capsys.readouterr()
        assert status == 0, err
        return json.loads(out)

    return document


# --------------------------------------------------------------------------------------- published numbers


@pytest.mark.published
@pytest.mark.parametrize("setting", REFERENCE)
def test_scores_are_the_reference_numbers(document, setting):
    options, aggregate, expected = REFERENCE[setting]
    for task, spearman in expected.items():
        record = document("score", "--data", RELEASE, "--task", task, *options, "--aggregate", aggregate)
        assert record["spearman"] == pytest.approx(spearman, abs=0.01)
        assert record["pairs"] == PAIRS[task]


@pytest.mark.published
@pytest.mark.parametrize(("layers", "rank"), [("6", 381), ("1", 383), ("1,6", 384)])
def test_the_rank_of_a_layer_is_the_reference_rank(document, layers, rank):
    argv = ["--data", RELEASE, "--task", "stsb", "--layers", layers, "--whitening", "pca"]
    assert document("score", *argv)["rank"] == rank


@pytest.mark.published
@pytest.mark.parametrize(("task", "whitening"), [("sts13", "zca"), ("stsb", "cholesky")])
def test_other_full_rank_whitenings_give_the_reference_numbers_too(document, task, whitening):
    expected = REFERENCE["layers 1+6, full rank, all"][2][task]
    argv = ["--data", RELEASE, "--task", task, "--layers", "1,6", "--whitening", whitening]
    assert document("score", *argv)["spearman"] == pytest.approx(expected, abs=0.01)


@pytest.mark.published
@pytest.mark.parametrize(("positives", "pairs"), [("gt4", 231), ("ge4", 338)])
def test_alignment_and_uniformity_are_the_reference_numbers(cache, positives, pairs):
    space, _ = embed_pairs(load_encoder("bundled"), load(RELEASE, "stsb"), store=Store(cache))
    for (layer, variant), (gt4, ge4, uniformity) in GEOMETRY.items():
        found = losses(space, Setting((layer,), variant), positives)
        assert found.positives == pairs
        assert found.alignment == pytest.approx({"gt4": gt4, "ge4": ge4}[positives], abs=2e-5)
        assert found.uniformity == pytest.approx(uniformity, abs=2e-5)


@pytest.mark.published
def test_the_heatmap_and_the_curve_hold_the_reference_numbers(document):
    argv = ["--data", RELEASE, "--task", "stsb"]
    for whitening, expected in {
        "none": {(6, 6): 82.0325, (1, 1): 56.7291},
        "pca": {(1, 6): 77.8523},
    }.items():
        cells = document("layers", *argv, "--whitening", whitening)["cells"]
        found = {tuple(cell["layers"]): cell["spearman"] for cell in cells}
        assert {pair: found[pair] for pair in expected} == pytest.approx(expected, abs=0.01)
    curve = document("kcurve", *argv, "--layers", "1")
    assert curve["spearman"][127] == pytest.approx(69.1335, abs=0.01)
    assert len(curve["k"]) == 384


# ------------------------------------------------------------------------------------------- the demo set


@pytest.fixture(scope="module")
def demo_space(encoded):
    """The embeddings the package has made."""
    space, report = embed_pairs(load_encoder("bundled"), load("demo"), store=Store(encoded))
    assert report.encoded == 0
    return space


@pytest.fixture
def on_demo(document, encoded):
    return lambda command, *argv: document(command, "--data", "demo", "--cache", encoded, *argv)


def test_the_command_line_finds_every_sentence_that_the_package_has_encoded(on_demo):
    found = on_demo("embed")
    assert (found["n_layers"], found["dim"], found["model"]) == (7, 384, "all-MiniLM-L6-v2")
    assert found["sentences"] >= 1600
    assert (found["encoded"], found["reused"]) == (0, found["sentences"])
    assert found["truncated"] == 0


def test_the_model_agrees_with_the_demo_scores_in_every_subset(on_demo):
    record = on_demo("score")
    assert record["pairs"] >= 1200
    assert len(record["subsets"]) >= 8
    assert all(one["pairs"] >= 120 for one in record["subsets"].values())
    assert record["spearman"] > 40
    assert all(one["spearman"] > 15 for one in record["subsets"].values())


def test_whitening_raises_layer_1_on_the_demo_set(on_demo):
    raw = on_demo("score", "--layers", "1")["spearman"]
    assert on_demo("score", "--layers", "1", "--whitening", "pca", "--k", "128")["spearman"] > raw + 1


@pytest.mark.parametrize("setting", [name for name in REFERENCE if "none" in name or name.endswith("all")])
def test_scores_of_the_demo_set_are_those_of_plain_numpy(on_demo, demo_space, setting):
    options, aggregate, _ = REFERENCE[setting]
    chosen = dict(zip(options[::2], options[1::2], strict=True))
    layers = tuple(int(layer) for layer in chosen["--layers"].split(","))
    k = int(chosen["--k"]) if "--k" in chosen else None
    expected = reference.score(demo_space, layers, chosen.get("--whitening", "none"), k, aggregate)
    assert on_demo("score", *options, "--aggregate", aggregate)["spearman"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("layers", "rank"), [("6", 381), ("1,6", 384)])
def test_the_null_directions_are_dropped_on_the_demo_set(on_demo, layers, rank):
    assert on_demo("score", "--layers", layers, "--whitening", "pca")["rank"] == rank


def test_every_full_rank_whitening_scores_the_same_on_the_demo_set(on_demo):
    scores = [on_demo("score", "--whitening", name)["spearman"] for name in ("pca", "zca", "cholesky")]
    assert max(scores) - min(scores) < 1e-6


@pytest.mark.parametrize("whitening", ["none", "pca"])
def test_the_layer_pairs_of_the_demo_set_agree_with_single_scores(on_demo, whitening):
    record = on_demo("layers", "--whitening", whitening)
    assert len(record["cells"]) == 28
    best = record["best"]
    assert best["spearman"] == max(cell["spearman"] for cell in record["cells"])
    names = ",".join(map(str, dict.fromkeys(best["layers"])))
    alone = on_demo("score", "--layers", names, "--whitening", whitening)
    assert best["spearman"] == pytest.approx(alone["spearman"], abs=1e-6)


def test_the_k_curve_of_the_demo_set_is_flat_above_the_rank(on_demo):
    record = on_demo("kcurve", "--layers", "6")
    assert record["k"] == list(range(1, 385))
    assert record["rank"] == 381
    assert len(set(record["spearman"][380:])) == 1
    assert record["spearman"][0] < record["spearman"][record["best_k"] - 1]
    alone = on_demo("score", "--layers", "6", "--whitening", "pca", "--k", "64")
    assert record["spearman"][63] == pytest.approx(alone["spearman"], abs=1e-6)


def test_whitening_makes_every_layer_of_the_demo_set_isotropic(demo_space):
    settings = [Setting((0,), variant) for variant in ("none", "pca")]
    shapes, found = layer_shapes(demo_space, settings), layer_losses(demo_space, settings)
    raw, white, before, after = shapes[::2], shapes[1::2], found[::2], found[1::2]
    for layer in range(demo_space.n_layers):
        assert abs(white[layer].mean_cosine) < 0.01
        assert white[layer].participation_ratio == pytest.approx(white[layer].rank, abs=0.01)
        assert -4 < after[layer].uniformity < before[layer].uniformity
    assert raw[1].mean_cosine > raw[6].mean_cosine
    assert before[1].uniformity > before[6].uniformity


def test_what_is_written_of_python_runs_and_names_everything_public(encoded, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WHITELAB_CACHE", str(shutil.copytree(encoded, tmp_path / "store")))
    monkeypatch.chdir(tmp_path)
    text, names = (ROOT / "docs" / "python.md").read_text("utf-8"), {}
    exec("".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)), names)
    assert capsys.readouterr().out.startswith(f"[{score(names['space'], names['raw']).spearman:.2f}, ")
    written = set(re.findall(r"[`.(\s](\w+)[`(.]", text))
    assert [name for name in whitelab.__all__ if not (name in written or name == "__version__")] == []


def test_what_the_readme_writes_in_python_runs_and_its_two_files_give_the_vectors(
    encoded, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("WHITELAB_CACHE", str(shutil.copytree(encoded, tmp_path / "store")))
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    first, second = {}, {}
    exec(blocks[0], first)
    exec("".join(blocks), second)
    assert capsys.readouterr().out.split()[0] == f"{score(first['space'], first['setting']).spearman}"
    torch.testing.assert_close(second["vectors"], first["vectors"], atol=1e-9, rtol=0)
    np.testing.assert_allclose(second["same"], first["vectors"], atol=1e-9)
