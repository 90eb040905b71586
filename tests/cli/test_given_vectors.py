"""`--vectors`: embeddings made elsewhere score as those of the model."""

import json
import re
import shlex

import numpy as np
import pytest

from whitelab.base.installation import program
from whitelab.cli import main
from whitelab.datasets import DataError
from whitelab.datasets.arrays import read_arrays
from whitelab.encoding import precomputed
from whitelab.whitening.export import from_npz


@pytest.fixture(scope="module")
def embedded(options, tmp_path_factory):
    """What `embed --out` writes of the pairs."""
    out = tmp_path_factory.mktemp("vectors") / "embedded.npz"
    assert main(["embed", *options, "--out", str(out)]) == 0
    return out


# With one map and with two in turn.
VECTOR_RUNS = {
    "score": ["--layers", "1,3", "--whitening", "zca", "--fit", "task"],
    "score of halves": ["--layers", "1,3", "--whitening", "zca", "--fit", "cross"],
    "layers": ["--whitening", "pca", "--k", "5", "--fit", "cross"],
    "layers --size": ["--size", "all", "--fit", "task"],
    "kcurve": ["--layers", "each", "--fit", "cross"],
    "fitsize": ["--whitening", "zca", "--fit", "task"],
    "geometry": ["--fit", "cross"],
    "similarity": ["--whitening", "zca", "--fit", "task"],
    "bits": ["--codes", "float16,binary", "--fit", "cross"],
    "calibrate": ["--whitening", "zca", "--fit", "cross"],
}


@pytest.mark.parametrize("command", VECTOR_RUNS)
def test_vectors_that_embed_has_written_give_what_the_model_gives(document, options, embedded, command):
    argv = [command.split()[0], *VECTOR_RUNS[command]]
    with_model, without = document(*argv, *options), document(*argv, "--vectors", embedded)
    for record in (with_model, without):
        protocol = record.pop("protocol")
        record.pop("seconds", None)
    assert json.loads(json.dumps(without), parse_float=lambda x: round(float(x), 6)) == json.loads(
        json.dumps(with_model).replace('"mean/', '"given/'), parse_float=lambda x: round(float(x), 6)
    )
    assert (protocol["model"], protocol["pooling"]) == ("vectors of embedded.npz: model, mean pooling", "given")
    assert protocol["max_length"] is None


def test_vectors_are_advised_on_as_those_of_their_model(document, run, options, embedded, few_candidates, tmp_path):
    for purpose in ("rank", "store"):
        own = document("advise", *options, "--for", purpose, "--layers", "1")
        given = document("advise", "--vectors", embedded, "--for", purpose, "--layers", "1")
        assert given["sentences"] == own["sentences"]
        for one, other in zip(given["options"], own["options"], strict=True):
            assert (one["setting"], one["bytes"]) == (other["setting"].replace("mean/", "given/"), other["bytes"])
            assert one["score"] == pytest.approx(other["score"], abs=1e-4)
    np.save(tmp_path / "alone.npy", np.load(embedded)["values"])
    alone = document("advise", "--vectors", tmp_path / "alone.npy", "--layers", "1")
    assert (alone["decided"], "isotropy" in alone["sentences"][1]) == (False, True)
    for words, message in (
        (("--vectors", embedded, "--for", "cluster"), "--for cluster cannot be told from pairs"),
        (("--vectors", embedded, "--fit", "splits"), "--fit splits needs a model"),
        (("--vectors", embedded, "--query-prompt", "q: "), "--query-prompt goes with a search"),
        (("--gold", embedded), "needs --vectors"),
    ):
        status, out, err = run("advise", *words)
        assert (status, out) == (2, "")
        assert message in err


def test_a_map_of_vectors_is_exported_as_that_of_their_model(document, run, options, embedded, tmp_path):
    made = ["whiten", "--layers", "1,3", "--whitening", "pca", "--k", "5", "--export", "npz", "--out"]
    document(*made, tmp_path / "model.npz", *options)
    document(*made, tmp_path / "vectors.npz", "--vectors", embedded)
    (own, protocol), (given, told) = (from_npz(tmp_path / f"{name}.npz") for name in ("model", "vectors"))
    np.testing.assert_allclose(given.mean, own.mean, atol=1e-6)
    np.testing.assert_allclose(given.matrix.abs(), own.matrix.abs(), rtol=1e-4, atol=1e-4)
    assert (protocol["pooling"], told["pooling"]) == ("mean", "given")
    every = np.load(embedded)["values"]
    np.save(tmp_path / "alone.npy", every)
    alone = document(*made, tmp_path / "alone.npz", "--vectors", tmp_path / "alone.npy")
    fitted, _ = from_npz(tmp_path / "alone.npz")
    with np.load(tmp_path / "alone.npz") as file:
        assert file["among"] == "random pairs of 'alone'"
    x = every[[1, 3]].astype(np.float64).mean(0)
    z = (x - fitted.mean.numpy()) @ fitted.matrix.numpy()
    np.testing.assert_allclose(np.cov(z.T), np.eye(5), atol=1e-8)
    assert (alone["fitted"], alone["setting"]) == (len(x), "given/L1+L3:pca@5 fit=vectors")
    assert np.load(tmp_path / "alone.npz")["percentile"].max() == 100
    for form in ("onnx", "sentence-transformers"):
        status, out, err = run("whiten", "--vectors", embedded, "--export", form, "--out", tmp_path / form)
        assert (status, out) == (2, "")
        assert f"--export {form} holds a model, which --vectors are without" in err


@pytest.mark.parametrize(
    ("alone", "kept"), [(False, "all the task's sentences (fit='task')"), (True, "all vectors (fit='vectors')")]
)
def test_what_a_cross_fitted_setting_of_vectors_leaves_as_is_said(run, embedded, tmp_path, alone, kept):
    vectors = np.load(embedded)
    np.savez(tmp_path / "given.npz", **({"values": vectors["values"]} if alone else vectors))
    words = ("--fit", "cross", "--export", "npz", "--out", tmp_path / "map.npz")
    status, _, err = run("whiten", "--vectors", tmp_path / "given.npz", "--layers", "1", *words)
    assert status == 0
    assert f"note: --fit cross fits two maps, and an export holds one: that of {kept}" in err
    assert from_npz(tmp_path / "map.npz")[1]["fit"] == ("vectors" if alone else "task")


@pytest.mark.parametrize("whitening", ["pca", "all_but_the_top", "clusters", "flow"])
def test_a_map_of_one_vector_is_not_written(run, tmp_path, whitening):
    out = tmp_path / "map.safetensors"
    np.save(tmp_path / "one.npy", np.random.default_rng(0).standard_normal((1, 16)))
    words = ("--vectors", tmp_path / "one.npy", "--whitening", whitening, "--export", "safetensors", "--out", out)
    status, _, err = run("whiten", *words)
    assert (status, out.exists()) == (2, False)
    assert "has no direction to keep: the 1 row(s) it was fitted on do not vary" in err


def test_what_is_said_to_type_for_a_map_of_vectors_alone_makes_it(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("my vectors.npy", np.random.default_rng(0).standard_normal((40, 4)))
    with pytest.raises(DataError) as refused:
        precomputed.read_vectors(["my vectors.npy"])
    said = re.search("of vectors alone `(.*)` makes a map", str(refused.value))[1]
    assert said.startswith(f"{program()} whiten ")
    assert run(*shlex.split(said.removeprefix(program())))[0] == 0
    assert from_npz("map.npz")[1]["fit"] == "vectors"


@pytest.mark.parametrize("command", ["whiten", "advise"])
def test_a_file_of_vectors_is_read_once(document, embedded, few_candidates, tmp_path, monkeypatch, command):
    read = []
    monkeypatch.setattr(precomputed, "read_arrays", lambda file: read.append(file) or read_arrays(file))
    words = ("--export", "npz", "--out", tmp_path / "map.npz") if command == "whiten" else ()
    document(command, "--vectors", embedded, "--layers", "1", *words)
    assert read == [str(embedded)]


def test_gold_may_lie_in_a_file_of_its_own(document, options, embedded, tmp_path):
    with np.load(embedded) as file:
        np.save(tmp_path / "v.npy", file["values"])
        rows = [*zip(file["first"].tolist(), file["second"].tolist(), file["gold"].tolist(), strict=True)]
    (tmp_path / "gold.csv").write_text("first,second,score\n" + "".join(f"{a},{b},{g}\n" for a, b, g in rows))
    found = document("score", "--vectors", tmp_path / "v.npy", "--gold", tmp_path / "gold.csv")
    assert found["spearman"] == pytest.approx(document("score", *options)["spearman"], abs=1e-6)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--vectors", "nowhere.npz"], "nowhere.npz: no such file"),
        (["--vectors", "EMBEDDED", "--model", "bert"], "--model bert does not go with --vectors"),
        (["--vectors", "EMBEDDED", "--columns", "a", "b", "c"], "--columns a b c does not go with --vectors"),
        (["--vectors", "EMBEDDED", "--model", "bundled"], "--model bundled does not go with --vectors"),
        (["--dtype=float32", "--vectors", "EMBEDDED"], "--dtype float32 does not go with --vectors"),
        (["--vectors", "EMBEDDED", "--num-layers", "2"], "--num-layers 2 does not go with --vectors"),
        (["--vectors", "EMBEDDED", "--cache", "folder"], "--cache folder does not go with --vectors"),
        (["--vectors", "EMBEDDED", "--no-store"], "--no-store does not go with --vectors"),
        (["--vectors", "EMBEDDED", "--allow-bin"], "--allow-bin does not go with --vectors"),
        (["--vectors", "EMBEDDED", "--skip-malformed"], "--skip-malformed does not go with --vectors"),
        (["--vectors", "EMBEDDED", "--fit", "splits"], "--fit splits needs a model to embed that text"),
        (["--vectors", "EMBEDDED", "--gold", "EMBEDDED"], "is given twice"),
        (["--vectors", "EMBEDDED", "--layers", "4"], "--layers 4 must lie between 0 and 3"),
        (["--gold", "gold.csv"], "--gold gold.csv needs --vectors"),
    ],
)
def test_vectors_that_cannot_be_scored_are_refused_in_one_line(run, embedded, argv, message):
    status, out, err = run("score", *[embedded if word == "EMBEDDED" else word for word in argv])
    assert (status, out) == (2, "")
    assert message in err
    assert err.rstrip("\n").count("\n") == 0
