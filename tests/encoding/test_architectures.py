"""Laws that hold for every architecture family: what whitelab gives is what a plain transformers loop gives."""

from contextlib import ExitStack
from functools import cache

import pytest
import torch
import transformers
from families import BLOCKS, FAMILIES, build_family, plain_network
from tiny import DIM, SENTENCES, WORDS, build_once
from transformers import AutoModel, AutoTokenizer
from transformers.utils import logging

from whitelab.encoding import architectures
from whitelab.encoding.embed import embed
from whitelab.encoding.encoders import BATCH_BYTES, load_encoder
from whitelab.encoding.names import ModelError
from whitelab.statistics.moments import Moments
from whitelab.store.embedding_store import Store
from whitelab.whitening import fit
from whitelab.whitening.export import to_sentence_transformers

TEXTS = [*SENTENCES[:24:2], "water", "a b", " ".join(WORDS), " ".join(WORDS * 3), "The long film about a singer"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """family -> folder, built when first asked for."""
    return build_once(tmp_path_factory.mktemp("families"), build_family)


@pytest.fixture(params=FAMILIES)
def name(request):
    return request.param


@pytest.fixture
def folder(folders, name):
    return folders(name)


@pytest.fixture(scope="module")
def loaded(folders):
    """family -> its encoder, what that gives the texts, and its network without whitelab; made when first asked for."""

    @cache
    def made(name):
        encoder = load_encoder(folders(name), device="cpu")
        return encoder, embed(encoder, TEXTS)[0], plain_network(folders(name), name)

    return made


@pytest.fixture
def encoder(loaded, name):
    return loaded(name)[0]


@pytest.fixture
def values(loaded, name):
    return loaded(name)[1]


@pytest.fixture
def network(loaded, name):
    return loaded(name)[2]


@torch.inference_mode()
def one_at_a_time(network, folder, texts, pooling, max_length=128):
    """[l, n, d] from one forward pass a sentence with an attention mask."""
    tokenizer, rows = AutoTokenizer.from_pretrained(folder), []
    for text in texts:
        batch = tokenizer(text, truncation=True, max_length=max_length, return_tensors="pt")
        inputs = {key: batch[key] for key in ("input_ids", "attention_mask")}
        hidden = network(**inputs, output_hidden_states=True).hidden_states
        pick = {"mean": lambda h: h[0].mean(0), "cls": lambda h: h[0, 0], "last": lambda h: h[0, -1]}[pooling]
        rows.append(torch.stack([pick(one) for one in hidden]))
    return torch.stack(rows, dim=1)


def close(found, expected):
    """Equal within float32's rounding, measured by the largest number: some families have large states."""
    scale = float(expected.abs().max())
    torch.testing.assert_close(found / scale, expected / scale, atol=2e-6, rtol=0)


# ------------------------------------------------------------------------------------- what a layer is


def test_there_is_a_layer_for_the_embeddings_and_every_block_and_all_are_of_one_size(encoder, values):
    assert (encoder.n_layers, encoder.dim, encoder.files.layers) == (BLOCKS + 1, DIM, BLOCKS)
    assert values.shape == (BLOCKS + 1, len(TEXTS), DIM)
    assert all(not torch.allclose(values[i], values[j], atol=1e-3) for i in range(BLOCKS + 1) for j in range(i))


def test_the_poolings_are_those_that_see_the_sentence(encoder, name):
    assert encoder.poolings == FAMILIES[name].poolings
    (missing,) = {"cls", "last"} - set(encoder.poolings)
    with pytest.raises(ValueError, match=f"pooling='{missing}' must be mean or "):
        embed(encoder, TEXTS, missing)
    # SBERT-WK where the first token stands for the sentence, so that the last may be left out.
    assert encoder.pooling_choices == (*encoder.poolings, *(("wk",) if missing == "last" else ()))
    if missing == "last":
        assert embed(encoder, TEXTS[:3], "wk")[0].shape == (BLOCKS + 1, 3, DIM)
    else:
        with pytest.raises(ValueError, match="pooling='wk' must be mean or last"):
            embed(encoder, TEXTS[:3], "wk")
    # The one that is offered does see all of it: another word anywhere changes it.
    first, second = "man plays", "dog plays"
    values, _ = embed(encoder, [first, second], encoder.poolings[1])
    assert (values[-1, 0] - values[-1, 1]).abs().max() > 1e-6


def test_every_layer_equals_a_plain_loop_over_single_sentences(encoder, network, folder):
    for pooling in encoder.poolings:
        close(embed(encoder, TEXTS, pooling)[0], one_at_a_time(network, folder, TEXTS, pooling))


# ------------------------------------------------------------------------------- what transformers says


@pytest.fixture
def told():
    """What transformers tells, after it was asked to tell all."""
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_info()
    logging.enable_progress_bar()
    yield lambda: (logging.get_verbosity(), logging.is_progress_bar_enabled())
    logging.set_verbosity(before[0])
    if not before[1]:
        logging.disable_progress_bar()


def test_transformers_is_quiet_inside_and_tells_afterwards_what_it_told_before(folders, tmp_path, told, capfd):
    folder, asked = folders("BERT"), told()
    capfd.readouterr()  # of building the folder
    encoder = load_encoder(folder, device="cpu")
    assert told() == asked
    encoder.save(tmp_path)
    with pytest.raises(ValueError, match="num_layers=99"):
        load_encoder(folder, device="cpu", num_layers=99)
    assert told() == asked
    assert capfd.readouterr() == ("", "")
    logging.disable_progress_bar()
    load_encoder(folder, device="cpu")
    assert told() == (asked[0], False)


def test_transformers_is_quiet_while_it_encodes(folders, told):
    encoder, asked, heard = load_encoder(folders("BERT"), device="cpu"), told(), []
    encoder.model.register_forward_hook(lambda *_: heard.append(told()))
    embed(encoder, TEXTS)
    assert set(heard) == {(logging.ERROR, False)}
    assert told() == asked


def test_transformers_is_quiet_until_the_last_thread_is_done(told):
    asked = told()
    with ExitStack() as here:
        with architectures.quiet:
            here.enter_context(architectures.quiet)
        assert told() == (logging.ERROR, False)
    assert told() == asked


# --------------------------------------------------------------------------------- what decides a vector


def test_a_sentences_vector_does_not_depend_on_its_batch(encoder, values, monkeypatch):
    alone = torch.cat([embed(encoder, [text])[0] for text in TEXTS], dim=1)
    close(values, alone)
    threads = torch.get_num_threads()
    monkeypatch.setitem(BATCH_BYTES, "cpu", 40 * 4 * DIM * (BLOCKS + 1))
    torch.set_num_threads(3)
    try:
        close(embed(encoder, TEXTS[::-1])[0].flip(1), alone)
    finally:
        torch.set_num_threads(threads)


def test_the_same_sentences_give_the_same_bits(folder, values):
    assert torch.equal(embed(load_encoder(folder, device="cpu"), TEXTS)[0], values)


def test_a_long_sentence_is_cut_as_the_tokenizer_cuts_it(folder, network):
    encoder = load_encoder(folder, device="cpu", max_length=9)
    values, report = embed(encoder, TEXTS, "mean")
    assert report.truncated == 2
    close(values, one_at_a_time(network, folder, TEXTS, "mean", max_length=9))


def test_a_saved_model_gives_the_same_vectors(encoder, values, name, tmp_path):
    if FAMILIES[name].bare:
        with pytest.raises(ModelError, match="cannot be saved: transformers has no encoder-only"):
            encoder.save(tmp_path)
        return
    encoder.save(tmp_path)
    again = load_encoder(str(tmp_path), device="cpu")
    assert (again.n_layers, again.poolings) == (encoder.n_layers, encoder.poolings)
    close(embed(again, TEXTS)[0], values)


@pytest.mark.parametrize("name", ["GPT-2", "Llama", "T5"])
def test_an_exported_model_pools_as_the_model_is_pooled(name, folders, tmp_path):
    """`last` is another library's `lasttoken`, with padding; GPT-2's own tokenizer has no token to pad with."""
    from sentence_transformers import SentenceTransformer

    encoder = load_encoder(folders(name), device="cpu")
    if name == "GPT-2":
        encoder.tokenizer.pad_token = None
    pooling = encoder.poolings[1]
    values, _ = embed(encoder, TEXTS, pooling)
    whitener = fit("center", Moments.of(values[BLOCKS].double()))
    to_sentence_transformers(tmp_path / "out", encoder, (BLOCKS,), pooling, whitener)
    found = torch.from_numpy(SentenceTransformer(str(tmp_path / "out"), device="cpu").encode(TEXTS))
    torch.testing.assert_close(found, whitener(values[BLOCKS]).float(), atol=1e-4, rtol=1e-4)


# ------------------------------------------------------------------------------------- the first blocks


def test_the_first_blocks_are_those_of_the_whole_model(folder, name, values):
    short = load_encoder(f"{folder}:2", device="cpu")
    assert short.n_layers == 3
    cut, _ = embed(short, TEXTS)
    close(cut[:2], values[:2])
    # A final normalisation follows the last block that is kept.
    assert torch.allclose(cut[2], values[2], rtol=1e-3, atol=1e-4) == (not FAMILIES[name].normed)


def test_groups_of_shared_weights_cannot_be_cut_in_between(folders):
    with pytest.raises(ModelError, match="shares weights in 2 groups, so num_layers=3 must be one of 2, 4"):
        load_encoder(folders("ALBERT in two groups") + ":3", device="cpu")


# ---------------------------------------------------------------------------------- the random control


def test_random_weights_are_others_and_return_with_their_seed(folder, encoder, values):
    controls = [load_encoder(f"{kind}:{folder}", device="cpu") for kind in ("random", "random@0", "random@1")]
    usual, zero, one = (embed(control, TEXTS)[0] for control in controls)
    assert torch.equal(usual, zero)
    for other in (values, one):
        assert not torch.allclose(usual, other, atol=1e-3)
    assert len({each.key("mean").digest for each in (encoder, *controls)}) == 3
    assert {each.poolings for each in controls} == {encoder.poolings}
    assert {each.n_layers for each in controls} == {encoder.n_layers}


def test_the_first_blocks_of_a_random_control_are_its_own(folder):
    whole = embed(load_encoder(f"random@3:{folder}", device="cpu"), TEXTS)[0]
    short = embed(load_encoder(f"random@3:{folder}:2", device="cpu"), TEXTS)[0]
    close(short[:2], whole[:2])


# ---------------------------------------------------------------------------------- word embeddings alone


def test_static_vectors_are_means_of_rows_of_the_word_embeddings(folder, name):
    encoder = load_encoder(f"static:{folder}", device="cpu")
    assert (encoder.n_layers, encoder.dim, encoder.poolings) == (1, FAMILIES[name].table, ("mean",))
    table = AutoModel.from_pretrained(folder).get_input_embeddings().weight.detach()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    rows = [table[tokenizer(text, add_special_tokens=False)["input_ids"]].mean(0) for text in TEXTS[:6]]
    close(embed(encoder, TEXTS[:6])[0], torch.stack(rows)[None])


# -------------------------------------------------------------------------------------- what cannot work


def write_config(folders, tmp_path, config):
    """The config and random weights of another architecture with BERT's tokenizer."""
    folder = tmp_path / "other"
    AutoTokenizer.from_pretrained(folders("BERT")).save_pretrained(folder)
    AutoModel.from_config(config).save_pretrained(folder)
    return str(folder)


def test_a_model_that_shortens_its_sentences_is_refused(folders, tmp_path):
    sizes = {"d_model": DIM, "block_sizes": [1, 1, 1], "n_head": 4, "d_head": 8, "d_inner": 48}
    config = transformers.FunnelConfig(vocab_size=200, num_decoder_layers=1, architectures=["FunnelModel"], **sizes)
    with pytest.raises(ModelError, match="model='other' cannot be used"):
        load_encoder(write_config(folders, tmp_path, config), device="cpu")


def test_a_model_whose_layers_differ_in_size_is_refused(folders, tmp_path):
    config = transformers.OPTConfig(
        vocab_size=200, hidden_size=DIM, word_embed_proj_dim=16, num_hidden_layers=2, num_attention_heads=4, ffn_dim=48
    )
    with pytest.raises(
        ModelError, match=r"every layer must have a state of one size .* got the shapes \[8, 32\], \[8, 16\]"
    ):
        load_encoder(write_config(folders, tmp_path, config), device="cpu")


def test_a_model_that_needs_pictures_is_refused(folders, tmp_path):
    config = transformers.ViTConfig(hidden_size=DIM, num_hidden_layers=1, num_attention_heads=4, intermediate_size=48)
    with pytest.raises(ModelError, match="model='other' cannot be used"):
        load_encoder(write_config(folders, tmp_path, config), device="cpu")


def test_a_store_holds_only_the_poolings_of_the_model(folders, tmp_path):
    store = Store(tmp_path)
    for name, poolings in {"Llama": {"mean", "last"}, "BERT": {"mean", "cls"}}.items():
        Store(store.root, cap_bytes=0).evict()
        embed(load_encoder(folders(name), device="cpu"), TEXTS, store=store)
        assert {info.folder.split("-")[0] for info in store.spaces()} == poolings


def test_a_config_of_another_depth_than_its_network_is_refused(folders, monkeypatch):
    monkeypatch.setattr(architectures, "probe", lambda *args: (7, DIM, ("mean", "cls")))
    with pytest.raises(ModelError, match="must have a state for the embeddings and each of its 4 blocks; it gave 7"):
        load_encoder(folders("BERT"), device="cpu")
