"""What an encoder refuses, and in which words: broken files, missing weights, lack of memory, code in weights."""

import json
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny import TEXTS, WORDS, build_model
from transformers import AutoModel, OPTConfig

from whitelab.encoding import architectures
from whitelab.encoding.checkpoints import PickledWeights
from whitelab.encoding.embed import embed
from whitelab.encoding.encoders import load_encoder
from whitelab.encoding.names import ModelError


def rewrite(folder, change):
    path = folder / "model.safetensors"
    weights = load_file(path)
    change(weights)
    save_file(weights, path, metadata={"format": "pt"})


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_nan_from_the_model_is_an_error_that_names_the_type(tmp_path, store, dtype):
    folder = build_model(tmp_path / "broken")
    name = "encoder.layer.1.output.dense.weight"
    rewrite(folder, lambda weights: weights[name].fill_(float("nan")))
    encoder = load_encoder(str(folder), device="cpu", dtype=dtype)
    with pytest.raises(ModelError, match=f"NaN or infinity in {dtype}") as caught:
        embed(encoder, TEXTS, store=store)
    assert ("choose dtype='float32'" in str(caught.value)) == (dtype != "float32")


def test_out_of_memory_halves_the_batch_until_it_fits(encoder, monkeypatch):
    expected, _ = embed(encoder, TEXTS)
    sizes, forward = [], encoder.forward

    def small_device(ids, pooling):
        sizes.append(len(ids))
        if len(ids) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(ids, pooling)

    monkeypatch.setattr(encoder, "forward", small_device)
    values, _ = embed(encoder, TEXTS)
    assert max(sizes) > 2
    torch.testing.assert_close(values, expected, atol=1e-5, rtol=0)


def test_out_of_memory_for_one_sentence_is_an_error_that_says_what_to_do(encoder, monkeypatch):
    def no_memory(ids, pooling):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(encoder, "forward", no_memory)
    with pytest.raises(ModelError, match=r"does not fit in memory: use a smaller model, fewer layers"):
        embed(encoder, TEXTS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_layers": 0}, "num_layers=0 must lie between 1 and the model's blocks=3"),
        ({"num_layers": 4}, "num_layers=4 must lie between 1 and the model's blocks=3"),
        ({"max_length": 2}, "max_length=2 must be a whole number of at least 3"),
        ({"max_length": 161}, "max_length=161 must lie between 3 and the model's limit=160"),
        ({"dtype": "int8"}, "dtype='int8' must be one of float32, bfloat16, float16"),
        ({"device": "tpu"}, "device='tpu' must be one of cpu, cuda, mps"),
    ],
)
def test_arguments_out_of_range_are_named(models, options, message):
    with pytest.raises(ValueError, match=message):
        load_encoder(models(), **({"device": "cpu"} | options))


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_a_device_this_machine_lacks_is_refused(models, device, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(ValueError, match=f"device='{device}' must be one of cpu on this machine"):
        load_encoder(models(), device=device)


def test_a_model_shorter_than_the_default_length_loads_with_its_own_limit(tmp_path, monkeypatch):
    monkeypatch.setattr("tiny.POSITIONS", 64)
    monkeypatch.setitem(sys.modules["tiny"]._SIZES, "max_position_embeddings", 64)
    encoder = load_encoder(str(build_model(tmp_path / "short")), device="cpu")
    assert encoder.max_length == 64


def test_roberta_without_a_stated_limit_never_runs_past_its_positions(tmp_path):
    """RoBERTa's positions start at 2, so max_position_embeddings=162 leaves room for 160 tokens."""
    folder = build_model(tmp_path / "roberta", "roberta")
    for name in ("tokenizer_config.json", "tokenizer.json"):
        text = (folder / name).read_text("utf-8")
        (folder / name).write_text(text.replace('"model_max_length": 160', '"model_max_length": 100000'), "utf-8")
    encoder = load_encoder(str(folder), device="cpu", max_length=160)
    values, report = embed(encoder, ["water " * 1000])
    assert (encoder.limit, report.truncated) == (160, 1)
    assert values.isfinite().all()
    with pytest.raises(ValueError, match="max_length=162 must lie between 3 and the model's limit=160"):
        load_encoder(str(folder), device="cpu", max_length=162)


@pytest.mark.parametrize("missing", ["encoder.layer.2.", "embeddings.word_embeddings."])
def test_a_checkpoint_without_some_of_its_weights_is_refused_not_filled_with_random_numbers(tmp_path, missing):
    folder = build_model(tmp_path / "partial")

    def drop(weights):
        for name in [name for name in weights if name.startswith(missing)]:
            del weights[name]

    rewrite(folder, drop)
    with pytest.raises(ModelError, match="partial"):
        load_encoder(str(folder), device="cpu")


def test_weights_that_an_adapter_is_to_change_are_refused(tmp_path):
    folder = build_model(tmp_path / "adapted")
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(ModelError, match="model='adapted' has an adapter, which is not applied here"):
        load_encoder(str(folder), device="cpu")


def test_weights_of_another_shape_than_the_config_says_are_named_with_both(tmp_path):
    folder = build_model(tmp_path / "narrow")
    config = json.loads((folder / "config.json").read_text())
    rows, width = config["vocab_size"], config["hidden_size"]
    (folder / "config.json").write_text(json.dumps(config | {"vocab_size": rows - 1}))
    shapes = rf"word_embeddings\.weight: \[{rows}, {width}\] where \[{rows - 1}, {width}\] is expected"
    for name in (str(folder), f"static:{folder}"):
        with pytest.raises(ModelError, match=shapes):
            load_encoder(name, device="cpu")


def test_a_model_that_is_nothing_but_a_decoder_may_lack_no_part_of_it(tmp_path):
    folder = build_model(tmp_path / "opt")
    sizes = {"hidden_size": 32, "word_embed_proj_dim": 32, "num_attention_heads": 4, "ffn_dim": 48}
    AutoModel.from_config(OPTConfig(vocab_size=300, num_hidden_layers=2, **sizes)).save_pretrained(folder)
    assert load_encoder(str(folder), device="cpu").n_layers == 3
    rewrite(folder, lambda weights: weights.pop("decoder.layers.1.fc1.weight"))
    with pytest.raises(ModelError, match=r"lacks 1 of its weights, first decoder\.layers\.1\.fc1\.weight"):
        load_encoder(str(folder), device="cpu")


def test_a_checkpoint_without_the_unused_pooler_is_welcome(tmp_path):
    folder = build_model(tmp_path / "no-pooler")
    expected, _ = embed(load_encoder(str(folder), device="cpu"), TEXTS)

    def drop(weights):
        for name in [name for name in weights if name.startswith("pooler.")]:
            del weights[name]

    rewrite(folder, drop)
    assert torch.equal(embed(load_encoder(str(folder), device="cpu"), TEXTS)[0], expected)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("model.safetensors", b"garbage"),
        ("model.safetensors", b""),
        ("tokenizer.json", b"{"),
        ("config.json", b'{"model_type": "no-such-architecture", "num_hidden_layers": 2}'),
        ("config.json", b"{}"),
        ("config.json", b"[]"),
        ("config.json", b"not json"),
        ("config.json", b'\xff\xfe{"model_type": "bert"}'),
    ],
)
def test_a_broken_file_is_a_model_error_of_one_line(tmp_path, file, content):
    folder = build_model(tmp_path / "broken-file")
    (folder / file).write_bytes(content)
    with pytest.raises(ModelError, match="broken-file") as caught:
        load_encoder(str(folder), device="cpu")
    assert "\n" not in str(caught.value)


def test_weights_of_another_shape_are_a_model_error(tmp_path):
    folder = build_model(tmp_path / "other-shape")
    text = (folder / "config.json").read_text("utf-8")
    (folder / "config.json").write_text(text.replace('"hidden_size": 32', '"hidden_size": 64'), "utf-8")
    with pytest.raises(ModelError, match="other-shape") as caught:
        load_encoder(str(folder), device="cpu")
    assert "\n" not in str(caught.value)


def test_a_tokenizer_with_more_tokens_than_the_weights_have_rows_is_refused_before_the_network_runs(tmp_path, store):
    """On a GPU such a lookup would take the whole process with it."""
    folder = build_model(tmp_path / "cut-short")
    text = json.loads((folder / "config.json").read_text("utf-8"))
    rows = text["vocab_size"] - 3
    (folder / "config.json").write_text(json.dumps(text | {"vocab_size": rows}), "utf-8")
    rewrite(folder, lambda w: w.update({k: v[:rows].clone() for k, v in w.items() if "word_embeddings" in k}))
    encoder = load_encoder(str(folder), device="cpu")
    embed(encoder, [TEXTS[0]], store=store)
    last = WORDS[-1]
    with pytest.raises(
        ModelError, match=f"a tokenizer that does not fit its weights: token id .* below the {rows} rows"
    ):
        embed(encoder, [TEXTS[0], last], store=store)
    with pytest.raises(ModelError, match="a tokenizer that does not fit its weights"):
        embed(load_encoder(f"static:{folder}", device="cpu"), [last])


def test_a_vocabulary_without_a_token_for_unknown_words_is_refused_before_a_sentence_has_one(tmp_path):
    folder = build_model(tmp_path / "all-known")
    tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    tokenizer["model"]["vocab"]["[NONE]"] = tokenizer["model"]["vocab"].pop("[UNK]")
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    for name in (str(folder), f"static:{folder}"):
        with pytest.raises(ModelError, match=r"Missing \[UNK\] token"):
            load_encoder(name, device="cpu")


class Payload:
    """Runs code where it is unpickled."""

    def __init__(self, marker):
        self.marker = str(marker)

    def __reduce__(self):
        return Path.touch, (Path(self.marker),)


def test_code_in_pickled_weights_is_never_run(tmp_path):
    folder, marker = build_model(tmp_path / "pickled"), tmp_path / "MARKER"
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights | {"payload": Payload(marker)}, folder / "pytorch_model.bin")
    with pytest.raises(PickledWeights, match="allow_bin=True"):
        load_encoder(str(folder), device="cpu")
    with pytest.raises(ModelError, match="pickled"):
        load_encoder(str(folder), device="cpu", allow_bin=True)
    assert not marker.exists()
    # Negative control: read in the old way, the file does run code; and without the payload it is welcome.
    torch.load(folder / "pytorch_model.bin", weights_only=False)
    assert marker.exists()
    torch.save(weights, folder / "pytorch_model.bin")
    values, _ = embed(load_encoder(str(folder), device="cpu", allow_bin=True), TEXTS)
    assert torch.equal(values, embed(load_encoder(str(build_model(tmp_path / "safe")), device="cpu"), TEXTS)[0])


def test_a_model_larger_than_memory_is_refused_before_its_weights_are_read(models, monkeypatch):
    folder = models()
    network = AutoModel.from_pretrained(folder)
    need = 4 * sum(one.numel() for one in network.parameters())
    monkeypatch.setattr(architectures, "_pretrained", lambda *args: pytest.fail("weights were read"))
    monkeypatch.setattr(architectures, "available_memory", lambda device: need - 1)
    message = (
        rf"model='bert' is larger than memory: its weights take {need / 2**30:.1f} GiB .* first blocks \(such as bert:6"
    )
    for name in (folder, f"random:{folder}", f"static:{folder}"):
        with pytest.raises(ModelError, match=message if name == folder else "larger than memory"):
            load_encoder(name, device="cpu")


@pytest.mark.parametrize("free", [None, 2**40])
def test_a_model_that_fits_or_a_system_that_does_not_say_is_no_reason_to_refuse(models, monkeypatch, free):
    monkeypatch.setattr(architectures, "available_memory", lambda device: free)
    assert load_encoder(f"{models()}:1", device="cpu").n_layers == 2


def test_only_the_blocks_that_are_loaded_count_for_memory(models, monkeypatch):
    network = AutoModel.from_pretrained(models())
    need = 4 * sum(one.numel() for one in network.parameters())
    monkeypatch.setattr(architectures, "available_memory", lambda device: need - 1)
    assert load_encoder(f"{models()}:1", device="cpu").n_layers == 2


def test_blocks_in_the_name_and_num_layers_must_agree(models):
    assert load_encoder(f"{models()}:2", device="cpu", num_layers=2).n_layers == 3
    with pytest.raises(ValueError, match="num_layers=1 must not differ from the blocks in model="):
        load_encoder(f"{models()}:2", device="cpu", num_layers=1)
    for blocks in (0, 4):
        with pytest.raises(ValueError, match=f"num_layers={blocks} must lie between 1 and the model's blocks=3"):
            load_encoder(f"{models()}:{blocks}", device="cpu")


def test_blocks_in_the_name_share_the_store_with_num_layers(models, store):
    embed(load_encoder(models(), device="cpu", num_layers=2), TEXTS, store=store)
    assert embed(load_encoder(f"{models()}:2", device="cpu"), TEXTS, store=store)[1].encoded == 0


def test_loading_prints_nothing(models, capfd):
    models()
    capfd.readouterr()
    load_encoder(models(), device="cpu")
    assert capfd.readouterr() == ("", "")
