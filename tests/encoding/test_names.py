"""What a model's name asks for, how it is shown, and which names the operator of a server allows."""

import pytest
from tiny import build_model

from whitelab.encoding import checkpoints
from whitelab.encoding.checkpoints import find_model
from whitelab.encoding.names import ModelError, ModelName, allowed, shown_name


def test_the_name_shown_is_the_name_found(folder, monkeypatch):
    assert shown_name(str(folder)) == find_model(str(folder)).name
    monkeypatch.chdir(folder)
    assert shown_name(".") == find_model(".").name == folder.name
    for gone in ("/home/who/acme", "~/acme-gone/acme", "../acme-gone/acme"):
        assert shown_name(gone) == "acme"
        assert shown_name(f"random:{gone}:1") == "random@0:acme[:1]"
    assert shown_name("bundled") == "all-MiniLM-L6-v2"
    assert shown_name("google-bert/bert-base-uncased") == "google-bert/bert-base-uncased"
    assert shown_name(f"random@7:{folder}") == find_model(f"random@7:{folder}").name == f"random@7:{folder.name}"


@pytest.mark.parametrize(
    ("text", "expected"),
    {
        "bundled": ("bundled", "", 0, None),
        " bundled:3 ": ("bundled", "", 0, 3),
        "google-bert/bert-base-uncased": ("google-bert/bert-base-uncased", "", 0, None),
        "google-bert/bert-base-uncased:6": ("google-bert/bert-base-uncased", "", 0, 6),
        "random:bundled": ("bundled", "random", 0, None),
        "random@7:google-bert/bert-base-uncased:2": ("google-bert/bert-base-uncased", "random", 7, 2),
        "static:bundled": ("bundled", "static", 0, None),
        "output:bundled": ("bundled", "output", 0, None),
        "sif:/models/bert": ("/models/bert", "sif", 0, None),
        r"C:\models\bert": (r"C:\models\bert", "", 0, None),
        r"random:C:\models\bert:2": (r"C:\models\bert", "random", 0, 2),
        "randomly:named": ("randomly:named", "", 0, None),
        "random:": ("random:", "", 0, None),
        "someone/model:latest": ("someone/model:latest", "", 0, None),
    }.items(),
    ids=str,
)
def test_a_name_is_taken_apart(text, expected):
    found = ModelName.parse(text)
    assert (found.base, found.kind, found.seed, found.blocks) == expected


def test_a_folder_with_a_colon_is_a_folder(tmp_path, monkeypatch):
    for name in ("model:3", "random:bundled", "sif:x:2"):
        folder = build_model(tmp_path / name)
        assert find_model(str(folder)).blocks is None
        assert find_model(f"{folder}:2").blocks == 2
        assert find_model(f"random:{folder}").folder == folder
    monkeypatch.chdir(tmp_path)
    assert ModelName.parse("random:bundled").kind == ""  # a folder of that name is here
    assert ModelName.parse("random:elsewhere").kind == "random"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("static@3:bundled", "must name a seed for random only: static draws nothing"),
        ("static:bundled:3", "must not name blocks: static has one layer, a table of word embeddings"),
        ("output:bundled:3", "must not name blocks: output has one layer, what its modules make of the last layer"),
        ("random:", "must be 'bundled', a local folder or a Hugging Face name"),
        ("bundled:", "must be 'bundled', a local folder or a Hugging Face name"),
    ],
)
def test_modifiers_that_do_not_go_together_are_refused(name, message):
    with pytest.raises(ModelError, match=message):
        find_model(name)


@pytest.mark.parametrize("name", ["", "   ", "\n"])
def test_an_empty_name_is_refused(name):
    with pytest.raises(ModelError, match="must be 'bundled', a local folder or a Hugging Face name"):
        find_model(name)


# ---------------------------------------------------------------------------------- what the operator allows


def test_everything_is_allowed_where_nothing_is_said(monkeypatch):
    for value in ("", " , "):
        monkeypatch.setenv("WHITELAB_MODELS", value)
        assert allowed("anyone/anything")
    monkeypatch.delenv("WHITELAB_MODELS")
    assert allowed("/any/folder")


@pytest.mark.parametrize(
    ("name", "expected"),
    {
        "bundled": True,
        "random:bundled": True,
        "sif:bundled": True,
        "bundled:3": True,
        "google-bert/bert-base-uncased": True,
        "random@4:google-bert/bert-base-uncased:2": True,
        "other/bert-base-uncased": False,
        "bert-base-uncased": False,
        "GOOGLE-BERT/bert-base-uncased": False,
    }.items(),
)
def test_only_names_the_operator_allows_are_found(name, expected, monkeypatch):
    monkeypatch.setenv("WHITELAB_MODELS", "bundled, google-bert/*")
    monkeypatch.setattr(checkpoints, "_download", lambda *args: pytest.fail("asked the hub"))
    assert allowed(name) is expected
    if not expected:
        with pytest.raises(
            ModelError, match=r"not among those the operator .* allows \(WHITELAB_MODELS\): bundled, goo"
        ):
            find_model(name)


def test_a_refusal_names_models_and_no_folder_of_the_operator(monkeypatch, tmp_path):
    monkeypatch.setenv("WHITELAB_MODELS", f"bundled, {tmp_path}/*, ~/models, google-bert/*")
    with pytest.raises(ModelError, match=r"allows \(WHITELAB_MODELS\): bundled, google-bert/\*$"):
        find_model("other/model")
    monkeypatch.setenv("WHITELAB_MODELS", f"{tmp_path}/*")
    with pytest.raises(ModelError, match=r"allows \(WHITELAB_MODELS\)$"):
        find_model("other/model")


def test_a_folder_is_compared_by_where_it_really_is(folder, tmp_path, monkeypatch):
    inside = build_model(tmp_path / "allowed" / "one")
    (tmp_path / "allowed" / "link").symlink_to(folder)
    monkeypatch.setenv("WHITELAB_MODELS", f"{tmp_path}/allowed/*")
    assert allowed(str(inside))
    assert allowed(f"random:{inside}:2")
    for outside in (folder, tmp_path / "allowed" / ".." / "my-model", tmp_path / "allowed" / "link"):
        assert not allowed(str(outside))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WHITELAB_MODELS", "allowed/*")
    assert allowed("allowed/one")
    assert not allowed("my-model")
    monkeypatch.setenv("WHITELAB_MODELS", "bundled")
    assert not allowed("allowed/one")
