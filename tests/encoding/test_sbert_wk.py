"""Laws of SBERT-WK through the encoder, the store and a setting: the paper's token by token, kept by itself."""

import pytest
import reference
import torch
from tiny import TEXTS, build_model, write_pairs

from whitelab import Setting, embed_pairs, load, score
from whitelab.encoding.embed import embed
from whitelab.encoding.encoders import load_encoder
from whitelab.store.embedding_store import Store

BLOCKS = 8


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(build_model(tmp_path_factory.mktemp("wk") / "model", layers=BLOCKS))


@pytest.fixture(scope="module")
def encoder(folder):
    return load_encoder(folder, device="cpu")


def test_every_layer_is_the_papers_vector_of_single_sentences(encoder):
    found, _ = embed(encoder, TEXTS, "wk")
    assert found.shape == (BLOCKS + 1, len(TEXTS), encoder.dim)
    for place, ids in enumerate(encoder.tokenize(TEXTS)[0]):
        with torch.inference_mode():
            hidden = encoder.model(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states
        states = torch.cat(hidden).double().numpy()
        for layer in range(BLOCKS + 1):
            expected = torch.from_numpy(reference.sbert_wk(states[: layer + 1])).float()
            torch.testing.assert_close(found[layer, place], expected, atol=2e-4, rtol=2e-4)


@pytest.mark.parametrize("blocks", [1, 3, 6, 7])
def test_a_layer_is_the_last_of_the_model_that_ends_there(folder, encoder, blocks):
    short, _ = embed(load_encoder(f"{folder}:{blocks}", device="cpu"), TEXTS, "wk")
    whole, _ = embed(encoder, TEXTS, "wk")
    torch.testing.assert_close(short[-1], whole[blocks], atol=1e-4, rtol=1e-4)


def test_the_store_keeps_it_apart_and_nobody_computes_it_who_did_not_ask(encoder, tmp_path):
    store = Store(tmp_path)
    mean, _ = embed(encoder, TEXTS, store=store)
    assert {info.folder.split("-")[0] for info in store.spaces()} == {"mean", "cls"}
    first, report = embed(encoder, TEXTS, "wk", store=store)
    assert (report.reused, report.encoded) == (0, len(set(TEXTS)))
    assert {info.folder.split("-")[0] for info in store.spaces()} == {"mean", "cls", "wk"}
    again, report = embed(encoder, TEXTS, "wk", store=store)
    assert (report.reused, report.encoded) == (len(set(TEXTS)), 0)
    assert torch.equal(first, again)
    assert not torch.allclose(first, mean, atol=1e-2)
    assert torch.equal(embed(encoder, TEXTS, store=store)[0], mean)


def test_a_setting_names_it_and_the_protocol_says_it(encoder, tmp_path):
    pairs = load(str(write_pairs(tmp_path / "pairs.csv")))
    space, _ = embed_pairs(encoder, pairs, "wk")
    setting = Setting.parse("wk/L-1")
    assert str(setting) == "wk/L-1"
    assert "wk pooling" in score(space, setting).protocol.line()
    with pytest.raises(ValueError, match="pooling='mean' must be 'wk', that of the embeddings"):
        score(space, Setting.parse("mean/L-1"))


def test_a_table_of_words_has_no_layers_to_weigh(folder):
    encoder = load_encoder(f"static:{folder}", device="cpu")
    with pytest.raises(ValueError, match=r"pooling='wk' must be mean for model=.*: SBERT-WK weighs the layers of a"):
        embed(encoder, TEXTS, "wk")
