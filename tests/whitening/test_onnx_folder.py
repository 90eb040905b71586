"""Laws of the ONNX graph: onnxruntime and tokenizers alone give whitelab's vectors, in batches of any size."""

import json

import numpy as np
import onnx
import pytest
import torch
from families import build_family
from reference import apart
from tiny import SENTENCES, TEXTS, build_model

from whitelab import Moments, embed, fit, load_encoder
from whitelab.whitening.export import ExportError, onnx_lines, to_onnx

# Positions that begin after the padding, no token types, a normalisation at the end with a first token that does not
# see the sentence; BERT is the bundled model. The other families of tests/helpers/families.py were exported once, by
# hand. Two blocks of each.
KINDS = ["RoBERTa", "DistilBERT", "GPT-2"]
BATCHES = (["water"], TEXTS, TEXTS[-2:], ["a " * 300, "a"])


def loaded(folder, encoder, dim):
    """`encode` of the shown lines, run in a namespace of their own."""
    names = {}
    exec(onnx_lines(folder, encoder, dim), names)
    return names["encode"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_graph_gives_whitelabs_vectors_alone_and_padded(tmp_path, kind):
    encoder = load_encoder(f"{build_family(tmp_path / 'model', kind)}:2", device="cpu")
    pooling, layers = encoder.poolings[-1], (1, encoder.n_layers - 1)
    x = embed(encoder, SENTENCES, pooling)[0][list(layers)].double().mean(dim=0)
    whitener = fit("pca", Moments.of(x), 8)
    to_onnx(tmp_path / "out", encoder, layers, pooling, whitener, {"task": "café"})
    encode = loaded(tmp_path / "out", encoder, 8)
    for texts in BATCHES:
        values = embed(encoder, texts, pooling)[0][list(layers)].double().mean(dim=0)
        found = encode(texts)
        assert found.dtype == np.float32
        assert apart(found, whitener(values).numpy()) < 1e-5
        assert apart(found, (values @ whitener.dense).numpy()) > 1e-2  # the mean counts
    note = json.loads((tmp_path / "out" / "whitelab.json").read_text("utf-8"))
    held = {one.key: one.value for one in onnx.load(tmp_path / "out" / "model.onnx").metadata_props}
    assert json.loads(held["protocol"]) == note["protocol"]
    assert (note["protocol"]["task"], note["protocol"]["layers"]) == ("café", list(layers))
    assert set(note["files"]) == {one.name for one in (tmp_path / "out").iterdir()}
    inputs = [
        [size.dim_param for size in one.type.tensor_type.shape.dim]
        for one in onnx.load(tmp_path / "out" / "model.onnx").graph.input
    ]
    assert all(len(sizes) == 2 and all(sizes) for sizes in inputs)  # both are left open


def test_the_lines_cut_a_sentence_on_the_side_of_its_tokenizer(tmp_path):
    config = build_model(tmp_path / "model", layers=1) / "tokenizer_config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"truncation_side": "left"}))
    encoder = load_encoder(str(tmp_path / "model"), device="cpu", max_length=24)
    whitener = fit("pca", Moments.of(embed(encoder, SENTENCES)[0][1].double()), 8)
    to_onnx(tmp_path / "out", encoder, (1,), "mean", whitener)
    texts = [" ".join(SENTENCES[:9]), "water"]
    assert (
        apart(loaded(tmp_path / "out", encoder, 8)(texts), whitener(embed(encoder, texts)[0][1].double()).numpy())
        < 1e-5
    )


def test_a_tokenizer_that_cuts_elsewhere_is_never_left_behind(tmp_path, monkeypatch):
    encoder = load_encoder(str(build_model(tmp_path / "model", layers=1)), device="cpu")
    shorter = encoder.cut_to(encoder.max_length - 1).cutting_tokenizer()
    monkeypatch.setattr(type(encoder), "cutting_tokenizer", lambda self: shorter)
    whitener = fit("pca", Moments.of(embed(encoder, SENTENCES)[0][1].double()), 8)
    with pytest.raises(ExportError, match="its tokenizer.json gives other tokens"):
        to_onnx(tmp_path / "out", encoder, (1,), "mean", whitener)
    assert not (tmp_path / "out").exists()


def test_a_graph_written_apart_is_the_graph_written_here(tmp_path):
    """Of the first blocks of random weights: the name says both."""
    encoder = load_encoder(f"random@7:{build_model(tmp_path / 'model')}:2", device="cpu")
    whitener = fit("pca", Moments.of(embed(encoder, SENTENCES)[0][1].double()), 8)
    for place in ("here", "apart"):
        to_onnx(tmp_path / place, encoder, (1, 2), "mean", whitener, apart=place == "apart")
    written = [onnx.load(tmp_path / place / "model.onnx").graph for place in ("here", "apart")]
    assert len({tuple(one.op_type for one in graph.node) for graph in written}) == 1
    assert len({tuple(sorted(one.raw_data for one in graph.initializer)) for graph in written}) == 1  # names differ


def test_what_cannot_be_a_graph_is_refused_in_one_line(tmp_path):
    folder = str(build_model(tmp_path / "model"))
    encoder = load_encoder(folder, device="cpu")
    whitener = fit("pca", Moments.of(torch.randn(90, 32, dtype=torch.float64)), 8)
    wrong = fit("pca", Moments.of(torch.randn(90, 7, dtype=torch.float64)), 4)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("no export")
    cases = [
        (tmp_path / "mine", encoder, whitener, "is not an earlier export"),
        (tmp_path / "no" / "where", encoder, whitener, "must lie in a folder that exists"),
        (tmp_path / "out", encoder, wrong, "d=32 dimensions, got 7"),
        (tmp_path / "out", load_encoder(f"static:{folder}"), whitener, "is a table of word embeddings"),
        (tmp_path / "out", load_encoder(folder, device="cpu", dtype="bfloat16"), whitener, "must be 'float32'"),
    ]
    for out, model, fitted, words in cases:
        with pytest.raises(ExportError, match=words):
            to_onnx(out, model, (0,), "mean", fitted)
    assert not (tmp_path / "out").exists()
    with pytest.raises(ValueError, match="pooling='last'"):
        to_onnx(tmp_path / "out", encoder, (1,), "last", whitener)


@pytest.mark.model
def test_the_bundled_model_leaves_as_a_graph(tmp_path):
    encoder = load_encoder("bundled:2", device="cpu")
    values = embed(encoder, SENTENCES)[0][[1, 2]].double().mean(dim=0)
    whitener = fit("soft:gamma=0.25", Moments.of(values), 32)
    to_onnx(tmp_path / "out", encoder, (1, 2), "mean", whitener)
    texts = [*TEXTS, "A man is playing a guitar.", "Ein Satz, den niemand kennt."]
    expected = whitener(embed(encoder, texts)[0][[1, 2]].double().mean(dim=0)).numpy()
    assert apart(loaded(tmp_path / "out", encoder, 32)(texts), expected) < 1e-5
