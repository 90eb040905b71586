"""A model remembered: what it is called, stored under and gives is as if it had been loaded, and it is not."""

import json

import pytest
import tiny
import torch

from whitelab.encoding import later
from whitelab.encoding.embed import embed
from whitelab.encoding.encoders import Encoder, load_encoder
from whitelab.encoding.later import FOLDER, LaterEncoder, encoder_for_store
from whitelab.encoding.names import ModelError
from whitelab.store.embedding_store import Store

SENTENCES = ("A man plays.", "The water is cold.", "Two dogs run in the snow.")


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A tiny model, and a store of its own."""
    monkeypatch.setenv("WHITELAB_CACHE", str(tmp_path / "store"))
    return str(tiny.build_place(tmp_path / "place") / "model")


@pytest.fixture
def loads(monkeypatch):
    """The models that were loaded."""
    found = []

    def counted(model, **options):
        found.append(model)
        return load_encoder(model, **options)

    monkeypatch.setattr(later, "load_encoder", counted)
    return found


def facts_of(tmp_path):
    """The one file of facts."""
    (path,) = (tmp_path / "store" / FOLDER).iterdir()
    return path


@pytest.mark.parametrize("modifier", ["{}", "{}:1", "random:{}"])
def test_what_is_stored_is_read_without_the_model_and_what_is_not_is_encoded_by_it(model, modifier, loads):
    name = modifier.format(model)
    plain, store = load_encoder(name), Store()
    wanted, _ = embed(encoder_for_store(name), SENTENCES[:2], store=store)
    assert loads == [name]
    known = encoder_for_store(name)
    assert isinstance(known, LaterEncoder)
    read, report = embed(known, SENTENCES[:2], store=store)
    assert torch.equal(read, wanted)
    assert (report.encoded, report.reused, loads) == (0, 2, [name])
    for one in ("name", "n_layers", "dim", "poolings", "pooling_choices", "rows", "limit", "max_length", "device"):
        assert getattr(known, one) == getattr(plain, one), one
    assert known.files == plain.files
    assert [known.key(pooling) for pooling in ("mean", "cls")] == [plain.key(pooling) for pooling in ("mean", "cls")]
    assert known.cut_to(5).key("mean") == plain.cut_to(5).key("mean")
    assert loads == [name]
    more, report = embed(known, SENTENCES, store=store)
    assert (report.encoded, loads) == (1, [name, name])
    assert torch.equal(more, embed(plain, SENTENCES)[0])
    assert torch.equal(embed(known.cut_to(4), SENTENCES)[0], embed(plain.cut_to(4), SENTENCES)[0])
    assert loads == [name, name]


def test_other_weights_are_another_model(model, loads, tmp_path):
    encoder_for_store(model)
    config = tmp_path / "place" / "model" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"layer_norm_eps": 1e-3}))
    assert type(encoder_for_store(model)) is Encoder
    assert len(loads) == 2


@pytest.mark.parametrize("file", ["model.safetensors", "config.json", "vocab.txt"])
def test_a_model_that_changed_on_disk_since_it_was_chosen_is_refused_and_keeps_no_vector(model, file, tmp_path):
    encoder_for_store(model)
    known, folder = encoder_for_store(model), tmp_path / "place" / "model"
    tiny.build_model(tmp_path / "other", seed=1)
    (tmp_path / "other" / "config.json").write_text((folder / "config.json").read_text().replace('"gelu"', '"relu"'))
    (tmp_path / "other" / "vocab.txt").write_text((folder / "vocab.txt").read_text() + "more\n")
    (tmp_path / "other" / file).replace(folder / file)
    with pytest.raises(ModelError, match=r"has changed on disk since it was chosen\. Load it again"):
        embed(known, SENTENCES, store=Store())
    assert embed(load_encoder(model), SENTENCES, store=Store())[1].reused == 0


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"limit": 4}', "null"])
def test_facts_that_cannot_be_read_are_found_anew(model, damage, loads, tmp_path):
    encoder_for_store(model)
    whole = facts_of(tmp_path).read_text()
    facts_of(tmp_path).write_text(damage)
    assert type(encoder_for_store(model)) is Encoder
    assert facts_of(tmp_path).read_text() == whole


def test_facts_that_are_wrong_are_refused_in_words_and_mended(model, loads, tmp_path):
    encoder_for_store(model)
    path = facts_of(tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"dim": 7}))
    with pytest.raises(ModelError, match=r"was remembered with other sizes than it has\. Load it again"):
        embed(encoder_for_store(model), SENTENCES)
    assert encoder_for_store(model).dim == load_encoder(model).dim


def test_a_store_that_cannot_be_written_to_costs_nothing_but_time(model, loads, tmp_path):
    (tmp_path / "store").write_text("a file")
    for _ in range(2):
        assert type(encoder_for_store(model)) is Encoder
